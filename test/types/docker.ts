// Compiled against the package's types: a container's options, its toolkit and its agent.
import { DockerSandbox, DockerSandboxToolkit, removeStaleDockerSandboxes } from "cloudsandbox";
import type { CloudSandbox, DockerMount, DockerPullProgress, DockerSandboxOptions } from "cloudsandbox";
import type { DockerSandboxOptions as SameOptions } from "cloudsandbox/toolkits";

const mounts: readonly DockerMount[] = [{ source: "/srv/data", target: "/data" }, { source: "/srv/out", target: "/out", readOnly: false }];
const options: DockerSandboxOptions & SameOptions = {
  image: "node:22", pull: "never", user: 1000, network: "none", memoryMb: 256, cpus: 0.5, pids: 64, diskMb: 64, mounts,
  capabilities: ["NET_BIND_SERVICE"], runtime: "runsc", platform: "linux/amd64", env: { A: "1" }, labels: { team: "x" },
  lifetimeSeconds: 60, onProgress: ({ status, current = 0 }: DockerPullProgress) => `${status} ${current}`,
};
export const sandbox: CloudSandbox = new DockerSandbox(options);
export const ofToolkit: DockerSandbox = new DockerSandboxToolkit({ host: "unix:///run/docker.sock" }).getSandbox();
export const removed: Promise<{ removed: string[] }> = removeStaleDockerSandboxes({ host: "tcp://10.0.0.5:2376", certPath: "/certs" });

// @ts-expect-error a word, not a boolean
export const pull: DockerSandboxOptions = { pull: true };
// @ts-expect-error an object
export const mount: DockerSandboxOptions = { mounts: ["/srv:/srv"] };
// @ts-expect-error not of a container
new DockerSandbox({ apiKey: "k" });
