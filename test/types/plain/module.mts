// An ES module of a project without @types/node and without the DOM's types.
import { LocalSandbox, SandboxAgent, SandboxError, SandboxToolkit } from "cloudsandbox";
import type { CallSignal, CloudSandbox } from "cloudsandbox";
import { mcpTools } from "cloudsandbox/mcp";
import { SandboxToolkit as SameToolkit } from "cloudsandbox/toolkits";

/** An AbortSignal of the user's own making will do. */
export async function use(signal: CallSignal, remote: CloudSandbox) {
  await using sandbox = new LocalSandbox({ isolation: "none" });
  const { output, exitCode } = await sandbox.run("1", { signal });
  await using agent = new SandboxAgent({ backend: "remote", remote });
  const toolkit: SandboxToolkit<LocalSandbox> = new SameToolkit(sandbox);
  const { callTool } = mcpTools(toolkit.getTools());
  const aborted: boolean = signal.aborted;
  void [output, exitCode.toFixed(), agent.ready, callTool, aborted];

  // @ts-expect-error a signal has more than this
  await sandbox.run("1", { signal: { aborted: false } });
  // @ts-expect-error there is no default export
  (await import("cloudsandbox")).default;
}

export const code = (error: unknown) => (error instanceof SandboxError ? error.code : undefined);
