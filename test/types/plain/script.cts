// CommonJS in TypeScript: require() gets types of its own, which are the same ones.
import { LocalSandbox, SandboxAgent } from "cloudsandbox";
import type { SandboxRunResult } from "cloudsandbox";
import { langChainTools } from "cloudsandbox/langchain";
import toolkits = require("cloudsandbox/toolkits");

export async function use(): Promise<SandboxRunResult> {
  const sandbox: toolkits.LocalSandbox = new LocalSandbox({ isolation: "none" });
  const toolkit = new toolkits.SandboxToolkit(sandbox, { name: "local" });
  const tools = langChainTools(toolkit.getTools(), (run) => run);
  const agent = new SandboxAgent({ backend: "remote", remote: sandbox });
  void [tools, agent];
  // @ts-expect-error a misspelt option
  return sandbox.run("1", { timeoutSecond: 5 });
}
