// Providers by name, manifests and the check of the network as a TypeScript user writes them. Nothing here runs; a line
// that must not compile is marked as an expected error.
import {
  AgentCoreSandbox, DaytonaSandbox, DockerSandbox, E2BSandbox, HttpSandbox, LocalSandbox, ModalSandbox, SandboxAgent, VercelSandbox, createSandbox, listSandboxProviders, registerSandboxProvider,
} from "cloudsandbox";
import type { CloudSandbox, SandboxManifest } from "cloudsandbox";

// The options and the class of a built-in provider, a CloudSandbox of any other name.
export const byName: DockerSandbox = createSandbox("docker", { image: "alpine" });
export const another: CloudSandbox = createSandbox("ours", { region: "eu" });
registerSandboxProvider("ours", (options: { region: string }) => new LocalSandbox({ env: { REGION: options.region } }));
// @ts-expect-error no sandbox
registerSandboxProvider("none", () => ({ run() {} }));
export const names: string[] = listSandboxProviders();

// One manifest for all.
const manifest: SandboxManifest = {
  image: "python:3.12-slim",
  workingDir: "/work",
  network: { default: "deny", allowedHosts: ["files.example.org"] },
  env: { MODE: "test" },
  resources: { cpus: 0.5, memoryMb: 512, diskMb: 1024, gpu: "H100", timeoutSeconds: 60 },
  mounts: [{ source: "/srv/data", target: "/data", readOnly: true }],
  lifecycle: { cleanup: "always" },
};
for (const Class of [LocalSandbox, E2BSandbox, DaytonaSandbox, DockerSandbox, HttpSandbox, VercelSandbox, AgentCoreSandbox, ModalSandbox]) new Class({ manifest, verifyNetwork: false });
new SandboxAgent({ backend: "docker", manifest });
// @ts-expect-error to the constructor of `remote`
new SandboxAgent({ backend: "remote", remote: another, manifest });
// @ts-expect-error no such member
export const misspelt: SandboxManifest = { netwrok: {} };
// @ts-expect-error no such rule
export const wrong: SandboxManifest = { network: { default: "off" } };
