// Tools, toolkits and SandboxAgent in the types of the frameworks that take them. The frameworks' own
// types are stood in for by what they ask of a tool.
import {
  LocalSandbox,
  LocalSandboxToolkit,
  SandboxAgent,
  SandboxToolkit,
  Toolkit,
  collectToolkitTools,
  defineTool,
  describeToolLibrary,
} from "cloudsandbox";
import { SandboxToolkit as SameToolkit } from "cloudsandbox/toolkits";
import type {
  CloudSandbox,
  SandboxAgentConfig,
  SandboxTool,
  ToolDef,
  WorkspaceManifest,
  WorkspaceSnapshot,
} from "cloudsandbox";

// What Agentium 4 asks of a tool, with a parameter object as its Zod 3 users have it.
interface Zod3Like {
  readonly _def: { readonly typeName?: string };
  readonly _output: unknown;
  parse(value: unknown): unknown;
  safeParse(
    value: unknown,
  ):
    | { success: true; data: unknown }
    | {
        success: false;
        error: { message: string; issues: readonly { path: readonly PropertyKey[]; message: string }[] };
      };
}
interface AgentiumTool {
  name: string;
  description: string;
  parameters: Zod3Like & {
    readonly _def: { readonly typeName: "ZodObject" };
    readonly _output: Record<string, unknown>;
    readonly shape: Record<string, Zod3Like>;
  };
  execute: (
    args: Record<string, unknown>,
    ctx: { runId: string; signal?: AbortSignal },
  ) => Promise<string | { content: string }>;
  rawJsonSchema?: Record<string, unknown>;
  sandbox?: boolean | { enabled?: boolean };
  requiresApproval?: boolean | ((args: Record<string, unknown>) => boolean);
}

// What the AI SDK asks of a tool.
interface StandardJsonSchema<Output> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
    readonly validate: (
      value: unknown,
    ) =>
      | { readonly value: Output; readonly issues?: undefined }
      | { readonly issues: readonly { readonly message: string }[] }
      | Promise<never>;
    readonly jsonSchema: { readonly input: (options: { target: "draft-07" }) => Record<string, unknown> };
  };
}
interface AiTool<Input> {
  description?: string;
  inputSchema: StandardJsonSchema<Input>;
  inputExamples?: { input: Input }[];
  toModelOutput?: (options: { toolCallId: string; output: any }) => { type: "text"; value: string };
  execute?: (
    input: Input,
    options: { toolCallId: string; abortSignal?: AbortSignal },
  ) => PromiseLike<unknown>;
}

export async function useToolkits(own: CloudSandbox) {
  await using toolkit = new SandboxToolkit(own, { name: "mine" });
  const tools: SandboxTool[] = toolkit.getTools();
  const forAgentium: AgentiumTool[] = tools;
  const forAiSdk: Record<string, AiTool<any>> = collectToolkitTools([
    toolkit,
    new LocalSandboxToolkit({ isolation: "none" }),
  ]);
  // All four are there, also for the compiler's noUncheckedIndexedAccess.
  const [run, , , readFile] = toolkit.getTools();
  const text: string = await run.execute({ code: "1", timeoutSeconds: 5 }, { signal: AbortSignal.timeout(5) });
  const effect: "execute" | "write" | "read" = readFile.effect;
  const described: { name: string; parameters: string[] }[] = describeToolLibrary(
    collectToolkitTools([toolkit]),
  );
  const sandbox: CloudSandbox = toolkit.getSandbox();
  const local: LocalSandbox = new SameToolkit(new LocalSandbox()).getSandbox();
  void [forAgentium, forAiSdk, text, effect, described, sandbox, local];

  const parsed = run.parameters.safeParse({});
  if (!parsed.success) void parsed.error.issues.map((issue) => issue.path.length);

  // @ts-expect-error no sandbox
  new SandboxToolkit({ run: own.run });
  // @ts-expect-error abstract
  new Toolkit();
  // @ts-expect-error the limit is a number
  await run?.execute({ code: "1", timeoutSeconds: "5" });
}

// An own toolkit.
export class Clock extends Toolkit {
  readonly name = "clock";
  getTools() {
    return [
      defineTool({
        name: "clock_now",
        description: "The time.",
        parameters: { type: "object", properties: { zone: { type: "string" } }, additionalProperties: false },
        execute: async ({ zone }) => new Date().toLocaleString("en", { timeZone: zone }),
        effect: "read",
      }),
    ];
  }
}
// @ts-expect-error getTools is missing
export class Nothing extends Toolkit {
  readonly name = "nothing";
}

// A tool with a Zod object knows its arguments.
declare const zodLike: {
  readonly _output: { city: string };
  safeParse(value: unknown): { success: boolean };
};
export const weather: ToolDef<typeof zodLike> = defineTool({
  name: "weather",
  description: "The weather of a city.",
  parameters: zodLike,
  execute: async ({ city }, context) => ({
    content: city.toUpperCase(),
    artifacts: [{ type: "json", data: context }],
  }),
  cache: { ttl: 1000 },
  requiresApproval: (args) => args["city"] !== "Oslo",
});
// And so does one with a Standard Schema object.
declare const standard: StandardJsonSchema<{ n: number }>;
export const number = defineTool({
  name: "number",
  description: "A number.",
  parameters: standard,
  execute: async ({ n }) => n.toFixed(),
});
export const numberForAiSdk: AiTool<{ n: number }> = number;
// With JSON Schema the type is the author's word.
export const typed = defineTool<{ n: number }>({
  name: "typed",
  description: "A number.",
  parameters: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
  execute: async ({ n }) => n.toFixed(),
});
// @ts-expect-error a result is text or has text
defineTool({ name: "bad", description: "x", parameters: zodLike, execute: async () => 5 });
// @ts-expect-error there is no such option
defineTool({ name: "bad", description: "x", parameters: zodLike, execute: async () => "", retries: 3 });
// @ts-expect-error the argument is not there
defineTool({ name: "bad", description: "x", parameters: zodLike, execute: async ({ country }) => country });

export async function useAgent(remote: CloudSandbox) {
  const workspace: WorkspaceManifest = {
    files: [
      { path: "a", contents: "" },
      { path: "b", contents: "AA==", encoding: "base64" },
    ],
    gitClones: [{ repo: "https://example.org/r.git", path: "r", ref: "v1" }],
    env: { A: "1" },
  };
  const config: SandboxAgentConfig = {
    backend: "unix-local",
    workspace,
    inheritEnv: ["LANG"],
    maxOutputBytes: 64,
  };
  await using agent = new SandboxAgent(config);
  const over = new SandboxAgent({ backend: "remote", remote });
  await Promise.all([agent.start(), over.start()]);
  const kind: "sandbox-agent" = agent.kind;
  const { output, cancelled = false } = await agent.run("1", { language: "python" });
  const snapshot: WorkspaceSnapshot = await agent.snapshot();
  await agent.resume(snapshot);
  await agent.resume(JSON.parse(JSON.stringify(snapshot)) as WorkspaceSnapshot);
  void [kind, output, cancelled, agent.ready];

  const port: CloudSandbox = agent;
  const ofAgent: SandboxToolkit<SandboxAgent> = new SandboxToolkit(agent);
  void [port, ofAgent];

  // @ts-expect-error "remote" requires a remote
  new SandboxAgent({ backend: "remote" });
  // @ts-expect-error and a remote requires "remote"
  new SandboxAgent({ backend: "unix-local", remote });
  // @ts-expect-error what a remote inherits is its own affair
  new SandboxAgent({ backend: "remote", remote, inheritEnv: ["LANG"] });
  // @ts-expect-error the snapshot, not its promise
  await agent.resume(agent.snapshot());
  new SandboxAgent({ backend: "docker", workspace, docker: { image: "node:22", network: "bridge" } });
  // @ts-expect-error its options are the container's
  new SandboxAgent({ backend: "docker", image: "node:22" });
  // @ts-expect-error and nobody else's
  new SandboxAgent({ backend: "unix-local", docker: {} });
  // @ts-expect-error a backend must be named: nothing runs on this machine by default
  new SandboxAgent({ workspace });
  // @ts-expect-error files have contents
  new SandboxAgent({ backend: "unix-local", workspace: { files: [{ path: "a" }] } });
  // @ts-expect-error read only
  agent.ready = true;
}

export function chooseTools(sandbox: CloudSandbox) {
  const toolkit = new SandboxToolkit(sandbox, {
    name: "own",
    maxToolOutputChars: 10_000,
    describe: { run: "Runs code.", shell: (text: string) => `${text} Ask first.` },
  });
  const [run]: [SandboxTool, ...SandboxTool[]] = toolkit.getTools();
  const chosen = new LocalSandboxToolkit({ isolation: "none" }, { tools: { run: false, list_files: true, read_file: { range: true } } });
  const some: SandboxTool[] = chosen.getTools();
  // @ts-expect-error which ones there are is not known
  const [first]: [SandboxTool, ...SandboxTool[]] = chosen.getTools();
  void run?.execute({ code: "1" }, { onOutput: (text) => console.log(text) });
  // @ts-expect-error there is no such tool
  new SandboxToolkit(sandbox, { tools: { writeFile: false } });
  return [some, first];
}
