// The port, LocalSandbox and errors as a TypeScript user writes them. Nothing here runs; a line that
// must not compile is marked as an expected error.
import { LocalSandbox, PathSecurityError, SANDBOX_ERROR_CODES, SandboxAgent, SandboxError, createSandbox } from "cloudsandbox";
import type {
  CloudSandbox,
  ExecResult,
  ExecSpec,
  SandboxErrorCode,
  SandboxIsolation,
  SandboxIsolationLayer,
  SandboxRunOptions,
  SandboxRunResult,
} from "cloudsandbox";

/** Holds when both types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(holds: Same<A, B>) => holds;

// A user's own object with the seven members is a sandbox.
export const own: CloudSandbox = {
  providerId: "mine",
  start: async () => {},
  run: async (code, { timeoutSeconds = 30, env = {} } = {}) => ({
    output: `${code} ${timeoutSeconds} ${env["A"]}`,
  }),
  shell: async (command) => ({ output: command, exitCode: 0, timedOut: true }),
  writeFile: async (path, contents, encoding = "utf8") => void [path, contents, encoding],
  readFile: async (path) => (path === "absent" ? null : ""),
  close: async () => {},
};
// @ts-expect-error readFile is missing
export const incomplete: CloudSandbox = {
  providerId: "x",
  start: own.start,
  run: own.run,
  shell: own.shell,
  writeFile: own.writeFile,
  close: own.close,
};
// @ts-expect-error there is no such language
export const ruby: SandboxRunOptions = { language: "ruby" };
// @ts-expect-error the limit is a number of seconds
export const text: SandboxRunOptions = { timeoutSeconds: "5" };

export async function usePort(signal: AbortSignal) {
  const options = {
    defaultTimeoutSeconds: 5,
    inheritEnv: ["LANG"],
    isolation: "none",
    trusted: true,
  } as const;
  await using sandbox: LocalSandbox = new LocalSandbox(options);
  const port: CloudSandbox = sandbox;
  const result = await sandbox.run("1", { language: "node", signal, env: { A: "1" } });
  same<typeof result.exitCode, number>(true);
  const portResult: SandboxRunResult = await port.shell("true", { timeoutSeconds: 5 });
  same<typeof portResult.exitCode, number | undefined>(true);
  const content = await sandbox.readFile("f", "base64", { signal });
  same<typeof content, string | null>(true);
  const bytes = await sandbox.readBytes("f");
  same<typeof bytes, Uint8Array | null>(true);
  await sandbox.writeFile("f", new Uint8Array(3));
  await sandbox.writeFile("f", "AAAA", "base64", { signal });
  await sandbox.writeFile("f", new Uint8Array(3), undefined, { signal });
  const info: { type: "file" | "directory" | "link" | "other"; size: number; mtimeMs: number | null } | null = await sandbox.stat("a");
  const names: string[] = (await sandbox.listDirectory("d", { maxEntries: 10 })).map(({ name }) => name);
  const existed: boolean = await sandbox.deleteFile("d", { recursive: true });
  // @ts-expect-error it is a boolean
  await sandbox.deleteFile("d", { recursive: "yes" });
  await sandbox.moveFile("a", "b", { signal: AbortSignal.timeout(1000) });
  await sandbox.mkdir("c");
  const shell = await sandbox.openShell({ cwd: "d", env: { A: "1" } });
  const code: number = (await shell.run("cd ..", { timeoutSeconds: 1 })).exitCode;
  void code;
  await shell.close();
  const process = await sandbox.spawn(["cat"], { cwd: "d", timeoutSeconds: 1, onStdout: (text: string) => void text });
  await process.write("a");
  await process.stdin.close();
  const sent: boolean = await process.kill("SIGINT");
  const said: string = (await process.wait()).stdout;
  const raw: Uint8Array = (await (await sandbox.spawn("cat", { encoding: "buffer" })).wait()).stdout;
  // @ts-expect-error no such signal
  await process.kill("SIGNONE");
  console.log(sent, said, raw);
  const stream: ReadableStream<Uint8Array> | null = await sandbox.readStream("b", { maxBytes: 10 });
  await stream?.pipeTo(await sandbox.writeStream("c/d"));
  console.log(info, names, existed);
  for (const { path, size } of await sandbox.listFiles({ maxEntries: 10 }))
    void [path.length, size.toFixed()];
  const id: string | null = sandbox.sandboxId;
  const separate: boolean = sandbox.capabilities.separateStreams;
  void [id, separate];

  // @ts-expect-error bytes have no encoding
  await sandbox.writeFile("f", new Uint8Array(3), "base64");
  // @ts-expect-error hex is not offered
  await sandbox.readFile("f", "hex");
  // @ts-expect-error may be null
  content.length;
  // @ts-expect-error a misspelt option
  await sandbox.run("1", { timeoutSecond: 5 });
  // @ts-expect-error a variable is a string
  await sandbox.shell("true", { env: { A: 1 } });
  // @ts-expect-error assigned once
  sandbox.sandboxId = "x";
}

// @ts-expect-error there is no such option
export const misspelt = new LocalSandbox({ timeoutSeconds: 5 });
export async function useIsolation() {
  const sandbox = new LocalSandbox({
    isolation: "best-effort", network: "off", allowedHosts: ["example.com", "*.example.org:8443"] as const, accept: ["procfs"],
    readOnlyPaths: ["/opt/tools"], limits: "best-effort", memoryMb: 512, processes: 64, cpuSeconds: 5, maxFileMb: 10, tempMb: 64, openFiles: 256,
  });
  await sandbox.start();
  const { isolation } = sandbox;
  same<typeof isolation, SandboxIsolation | null>(true);
  const state: "enforced" | "partial" | "unavailable" | "off" | undefined = isolation?.landlock.state;
  const why: string | undefined = isolation?.netns.hint ?? isolation?.userns.errno;
  // @ts-expect-error null before a start
  isolation.netns;
  // @ts-expect-error there is no such layer
  isolation?.walls;
  // @ts-expect-error read, not set
  if (isolation) isolation.seccomp.state = "off";
  const { usage, oomKilled } = await sandbox.exec({ command: "true" });
  same<typeof usage, { cpuSeconds: number; peakMemoryBytes: number } | undefined>(true);
  same<typeof oomKilled, true | undefined>(true);
  void [state, why];
}

const layers: SandboxIsolationLayer[] = ["landlock", "cgroup_memory"];
export const strict = new LocalSandbox({ require: layers });
export const named: LocalSandbox[] = [createSandbox("isolated-local", { allowedHosts: ["example.com"] }), createSandbox("unix-local"), createSandbox("local")];
export const agents = [
  new SandboxAgent({ backend: "isolated-local", isolated: { allowedHosts: ["example.com"], memoryMb: 512, limits: "best-effort" } }),
  // @ts-expect-error the backend says that already
  new SandboxAgent({ backend: "isolated-local", isolated: { isolation: "none" } }),
  // @ts-expect-error it goes with "isolated-local"
  new SandboxAgent({ backend: "unix-local", isolated: { network: "off" } }),
];
// @ts-expect-error there is no such layer
export const walls = new LocalSandbox({ require: ["walls"] });
// @ts-expect-error one host is a list, too
export const host = new LocalSandbox({ allowedHosts: "example.com" });
// @ts-expect-error a list of hosts is no network
export const list = new LocalSandbox({ network: ["example.com"] });
// @ts-expect-error there is no such level
export const level = new LocalSandbox({ isolation: "maybe" });

export async function useExec(sandbox: LocalSandbox, spec: ExecSpec) {
  const chunks: string[] = [];
  await sandbox.exec({ command: "true", onStdout: (text) => process.stdout.write(text), onStderr: (text) => chunks.push(text) });
  await sandbox.exec({ command: "true", onStdout: async (text) => chunks.push(text) });
  const result = await sandbox.exec({ command: "true", onStdout: (part) => void part.toUpperCase() });
  same<typeof result, ExecResult>(true);
  same<typeof result.stdout, string>(true);
  same<typeof result.signal, string | undefined>(true);
  const bytes = await sandbox.exec({
    argv: ["ls", "-l"],
    encoding: "buffer",
    onStderr: (part) => void part.byteLength,
  });
  same<typeof bytes.output, Uint8Array>(true);
  const code = await sandbox.exec({
    code: "1",
    language: "node",
    stdin: new Uint8Array(1),
    cwd: "x",
    truncate: "middle",
    timeoutSeconds: Infinity,
  });
  if (code.status === "timedOut") code.droppedBytes.output.toFixed();

  // A spec that was put together elsewhere.
  const either = await sandbox.exec(spec);
  same<typeof either.output, string | Uint8Array>(true);

  const merged = { command: "true", mergeStreams: chunks.length > 0 };
  await sandbox.exec(merged);
  await sandbox.exec({ command: "true", mergeStreams: true, onStdout: (part) => void part.toUpperCase() });
  await sandbox.exec({ command: "true", mergeStreams: false, onStderr: (part) => void part.toUpperCase() });
  // @ts-expect-error merged output goes to onStdout
  await sandbox.exec({ command: "true", mergeStreams: true, onStderr: () => {} });

  // @ts-expect-error one of the three, not two
  await sandbox.exec({ command: "true", argv: ["true"] });
  // @ts-expect-error none of the three
  await sandbox.exec({ timeoutSeconds: 1 });
  // @ts-expect-error a language belongs to code
  await sandbox.exec({ command: "true", language: "node" });
  // @ts-expect-error "shell" code is a command
  await sandbox.exec({ code: "true", language: "shell" });
  // @ts-expect-error there is no such status
  if (result.status === "killed") return;
}

export function useErrors(error: unknown) {
  if (error instanceof PathSecurityError) return error.message;
  if (!(error instanceof SandboxError)) return undefined;
  const code: SandboxErrorCode = error.code;
  const flags: boolean[] = [error.retryable, error.mayHaveRun];
  const details: [string | undefined, number | undefined] = [error.provider, error.status];
  // @ts-expect-error there is no such code
  if (code === "ERR_SANDBOX_NOPE") return undefined;
  // @ts-expect-error read only
  error.code = "ERR_SANDBOX_AUTH";
  return SANDBOX_ERROR_CODES.includes(code) ? [...flags, ...details] : undefined;
}

// Daytona: options are checked, the name of the older contract works, and the toolkit knows its sandbox.
import { DaytonaSandbox, DaytonaSandboxToolkit } from "cloudsandbox";
import type { DaytonaSandboxConfig } from "cloudsandbox/toolkits";

const daytonaConfig: DaytonaSandboxConfig = { apiKey: "k", language: "node", autoStopMinutes: 5 };
export const daytona: CloudSandbox = new DaytonaSandbox(daytonaConfig);
export const fromToolkit: DaytonaSandbox = new DaytonaSandboxToolkit({ apiKey: "k" }).getSandbox();
// @ts-expect-error "shell" is no language to create a sandbox for
export const shellOnly: DaytonaSandboxConfig = { language: "shell" };

// What a close, a command and a snapshot take.
export async function closeOptions(sandbox: LocalSandbox, agent: SandboxAgent) {
  await sandbox.exec({ command: "make", shell: "bash", background: "end" });
  // @ts-expect-error there is no such word
  await sandbox.exec({ command: "make", background: "kill" });
  await agent.snapshot({ exclude: ["node_modules"], signal: AbortSignal.timeout(1) });
  // @ts-expect-error a list
  await agent.snapshot({ exclude: "node_modules" });
  await agent.close({ graceSeconds: 0 });
  // @ts-expect-error a number
  await sandbox.close({ graceSeconds: "5" });
  await sandbox.close({ graceSeconds: 1 });
}
