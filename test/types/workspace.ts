// Workspaces: what a backend may be, what a guest is, which events there are.
import { DockerSandbox, LocalSandbox, SandboxToolkit } from "cloudsandbox";
import type { CloudSandbox } from "cloudsandbox";
import { DEFAULT_SEED_EXCLUDES, Workspace, workspaceIdForRun } from "cloudsandbox/workspace";
import type { SandboxTemplate, WorkspaceGuest, WorkspaceTransfer } from "cloudsandbox/workspace";

const template: SandboxTemplate<DockerSandbox> = { buildForSession: (id: string) => new DockerSandbox({ labels: { id } }) };
export const made: DockerSandbox = new Workspace({ backend: template, workspaceId: workspaceIdForRun("run") }).sandbox;
export const given: LocalSandbox = new Workspace({ backend: new LocalSandbox({ isolation: "none", inheritEnv: true }) }).sandbox;
new Workspace({ backend: "docker", backendOptions: { image: "alpine" }, ttlSeconds: Infinity });

const workspace = new Workspace({
  backend: "local",
  seedFrom: ".",
  seedExcludes: [...DEFAULT_SEED_EXCLUDES, "dist/"],
  sync: { up: true, down: true, maxFiles: 10 },
  onSeedProgress: ({ files, totalFiles }) => void (files / totalFiles),
});
// @ts-expect-error a backend is needed
new Workspace({ ttlSeconds: 5 });
// @ts-expect-error a misspelt mode
workspace.attach({ mode: "readonly" });
// @ts-expect-error the defaults are nobody's to change
DEFAULT_SEED_EXCLUDES.push("x");

workspace.on("expiring", ({ expiresAt, secondsLeft }) => void (expiresAt.getTime() + secondsLeft));
workspace.once("synced", ({ down, error }) => void [down?.files, error?.message]);
// @ts-expect-error no such event
workspace.on("ended", () => {});

export async function use(): Promise<WorkspaceTransfer> {
  const guest: WorkspaceGuest = workspace.attach({ mode: "read-only" });
  const port: CloudSandbox = guest;
  new SandboxToolkit(port);
  const { stdout } = await guest.exec({ argv: ["ls"] });
  void stdout.length;
  guest.getTools({ name: "reviewer" }).map((tool) => tool.name);
  await guest.detach();
  await workspace.extend(60);
  return workspace.exportTo("out", { exclude: ["*.log"], maxBytes: 1000 });
}
