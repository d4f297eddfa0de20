// Providers by name, manifests and the check of the network as a TypeScript user writes them. Nothing here runs; a line
// that must not compile is marked as an expected error.
import { DockerSandbox, LocalSandbox, createSandbox, listSandboxProviders, registerSandboxProvider } from "cloudsandbox";
import type { CloudSandbox } from "cloudsandbox";

// The options and the class of a built-in provider, a CloudSandbox of any other name.
export const byName: DockerSandbox = createSandbox("docker", { image: "alpine" });
export const another: CloudSandbox = createSandbox("ours", { region: "eu" });
registerSandboxProvider("ours", (options: { region: string }) => new LocalSandbox({ env: { REGION: options.region } }));
// @ts-expect-error no sandbox
registerSandboxProvider("none", () => ({ run() {} }));
export const names: string[] = listSandboxProviders();
