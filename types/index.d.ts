// Public types of cloudsandbox. Written by hand; test/types/ compiles against them, and lib/ is checked
// against them.
//
// Units are in the names: seconds and bytes. Methods never throw synchronously, they reject;
// constructors throw. Every error of this package is a SandboxError; a call that its AbortSignal ended
// rejects with `signal.reason` instead.
//
// Nothing here needs @types/node or the DOM's types.
/// <reference lib="esnext.disposable" />

/** The global AbortSignal; where no types declare one, what is used of it. */
export type CallSignal = typeof globalThis extends { AbortSignal: { prototype: infer Signal } }
  ? Signal
  : {
      readonly aborted: boolean;
      readonly reason: any;
      addEventListener(type: "abort", listener: () => void): void;
      removeEventListener(type: "abort", listener: () => void): void;
    };

declare global {
  // Where other types declare these, they are one with them; where none do, a name is all that is needed here.
  interface ReadableStream<R = any> {}
  interface WritableStream<W = any> {}
}

// ---- errors ---------------------------------------------------------------------------------------

/** What went wrong, stable across versions; `message` is for people and models and may change. */
export type SandboxErrorCode =
  /** An option or argument is wrong; the message names it and what is allowed. */
  | "ERR_SANDBOX_INVALID_ARG"
  | "ERR_SANDBOX_MISSING_KEY"
  /** A system library (libcurl) is missing; the message says how to install it. */
  | "ERR_SANDBOX_MISSING_LIBRARY"
  /** The native part is missing or does not fit this machine; the message says what to do. */
  | "ERR_SANDBOX_MISSING_BINARY"
  | "ERR_SANDBOX_AUTH"
  | "ERR_SANDBOX_FORBIDDEN"
  | "ERR_SANDBOX_NOT_FOUND"
  | "ERR_SANDBOX_CONFLICT"
  | "ERR_SANDBOX_RATE_LIMITED"
  | "ERR_SANDBOX_QUOTA"
  /** A start or a file transfer took too long. A command that does is a result, not an error. */
  | "ERR_SANDBOX_TIMEOUT"
  /** The sandbox is gone with its files; the next call opens a fresh one, unless `onLost` forbids it. */
  | "ERR_SANDBOX_LOST"
  | "ERR_SANDBOX_NETWORK"
  | "ERR_SANDBOX_TLS"
  /** An answer made no sense. It is never taken for success. */
  | "ERR_SANDBOX_PROTOCOL"
  | "ERR_SANDBOX_TOO_LARGE"
  /** The provider, or a tool it runs, failed. */
  | "ERR_SANDBOX_PROVIDER"
  | "ERR_SANDBOX_UNSUPPORTED"
  /** SandboxAgent: `start()` has not been called. */
  | "ERR_SANDBOX_NOT_READY"
  | "ERR_SANDBOX_CLOSED"
  | "ERR_SANDBOX_ISOLATION_UNAVAILABLE"
  | "ERR_SANDBOX_OUT_OF_MEMORY";

/** All codes, in a fixed order. */
export const SANDBOX_ERROR_CODES: readonly SandboxErrorCode[];

export interface SandboxErrorOptions {
  code: SandboxErrorCode;
  provider?: string | undefined;
  status?: number | undefined;
  retryable?: boolean | undefined;
  mayHaveRun?: boolean | undefined;
  cause?: unknown;
}

/** The one error class of this package. No member ever holds a credential. */
export class SandboxError extends Error {
  constructor(message: string, options: SandboxErrorOptions);
  readonly code: SandboxErrorCode;
  /** The provider's id, where a provider was involved. */
  readonly provider: string | undefined;
  /** The HTTP status, where there was one. */
  readonly status: number | undefined;
  /** The same call may succeed later without a change by the caller. */
  readonly retryable: boolean;
  /** The command may have started before this went wrong: do not repeat one with effects blindly. */
  readonly mayHaveRun: boolean;
}

/** A path that leaves the workspace, or that cannot be a path. `name` is "PathSecurityError". */
export class PathSecurityError extends SandboxError {}

// ---- the port -------------------------------------------------------------------------------------

export type SandboxLanguage = "python" | "node" | "shell";

export type FileEncoding = "utf8" | "base64";

export interface SandboxRunOptions {
  /**
   * Default "python"; **a SandboxAgent on "unix-local" has "node"**, so name the language where it may be
   * either. "shell" is the same as calling `shell`.
   */
  language?: SandboxLanguage | undefined;
  /** More than 0 and at most 3600; default 30, or what the sandbox was made with. */
  timeoutSeconds?: number | undefined;
  /** Added to the sandbox's own variables for this call. */
  env?: Record<string, string> | undefined;
  /**
   * Already aborted: rejects with its reason, and nothing is created. Aborted during the call: the
   * command's whole process tree is ended first, then the call rejects with its reason.
   */
  signal?: CallSignal | undefined;
}

/**
 * What became of a command. A flag is absent, not `false`, when it does not apply. The sandboxes of this
 * package always have an exit code; an object of your own may have none.
 */
export interface SandboxRunResult {
  /** Standard output and standard error together. */
  output: string;
  /**
   * 0 is success; 124 after a timeout, 130 after a cancel, 128 + n (137 for a kill) after signal n.
   * SandboxAgent on "unix-local": 137 after any signal.
   */
  exitCode?: number;
  /** The limit passed; the process tree was ended and `output` is what came until then. */
  timedOut?: boolean;
  /** SandboxAgent on "unix-local" only: stopped by a signal or by close(). */
  cancelled?: boolean;
  /** `output` is the first `maxOutputBytes` bytes, or some was lost on its way; the command itself was not stopped for it. */
  outputTruncated?: boolean;
  /** The command was ended since it had no memory left. */
  oomKilled?: true;
  /** The command was ended since it wrote more than `maxOutputMb`: an isolated local sandbox. */
  outputExceeded?: true;
}

export interface SandboxCallOptions {
  signal?: CallSignal | undefined;
}

export interface SandboxCloseOptions {
  /** How long calls in flight may go on before they are ended: 0 to 3600 seconds, default 5. */
  graceSeconds?: number | undefined;
}

export interface SandboxReadOptions extends SandboxCallOptions {
  /** A larger file rejects with ERR_SANDBOX_TOO_LARGE. 1 to 2147483648; default 268435456 (256 MiB). */
  maxBytes?: number | undefined;
}

export interface SandboxShellOptions extends SandboxCallOptions {
  /** Where it begins; the working directory of the commands when left out. */
  cwd?: string | undefined;
  /** Variables that it begins with. */
  env?: Readonly<Record<string, string>> | undefined;
}

/** Options of one command of a shell; as for exec(), whose others belong to the shell. */
export type SandboxShellCommandOptions = Pick<
  ExecText,
  | "stdin"
  | "timeoutSeconds"
  | "maxOutputBytes"
  | "truncate"
  | "mergeStreams"
  | "background"
  | "onStdout"
  | "onStderr"
  | "signal"
>;

/** What openShell() gives. Commands run one at a time, in the order of the calls. */
export interface SandboxShell {
  /**
   * Runs a command line, and keeps what it leaves of directory, variables, functions, aliases and options. `exit` ends the command and
   * not the shell. A command that was ended, by its limit, a signal or a cancel, changes nothing of them.
   */
  run(command: string, options?: SandboxShellCommandOptions): Promise<ExecResult>;
  /** Removes what is kept of it, after the command that is running. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Options of spawn(); as for exec(), but without a `timeoutSeconds` there is no limit. */
export type SandboxSpawnOptions = Omit<
  ExecText,
  "command" | "code" | "language" | "context" | "argv" | "stdin" | "encoding"
> &
  SandboxTtyOption;
export type SandboxSpawnBytesOptions = Omit<
  ExecBytes,
  "command" | "code" | "language" | "context" | "argv" | "stdin"
> &
  SandboxTtyOption;

/** In characters; each from 1 to 65535. */
export interface SandboxTtySize {
  columns: number;
  rows: number;
}

export interface SandboxTtyOption {
  /**
   * The command has a terminal of this size: its input and both outputs, so that all it prints comes as stdout, with the line ends of
   * a terminal. `TERM` is xterm-256color unless `env` has another. Needs `capabilities.tty`.
   */
  tty?: SandboxTtySize | undefined;
}

/** What a command of spawn() can be sent. */
export type SandboxSignal =
  | "SIGHUP"
  | "SIGINT"
  | "SIGQUIT"
  | "SIGKILL"
  | "SIGUSR1"
  | "SIGUSR2"
  | "SIGTERM"
  | "SIGCONT"
  | "SIGSTOP";

/** What spawn() gives: a command that runs. */
export interface SandboxProcess<T extends string | Uint8Array = string> {
  /** Standard input as a web stream: to close or abort it ends the input. */
  readonly stdin: WritableStream<Uint8Array | string>;
  /**
   * Writes to the standard input, behind what was written before; resolves when all of it was taken, which happens as the command
   * reads. Rejects with ERR_SANDBOX_CLOSED when the command has ended or has closed its input, and after `end()`.
   */
  write(data: string | Uint8Array): Promise<void>;
  /**
   * Ends the standard input, behind what was written before, and behind `data`, which is written as by write(). Of a terminal by what
   * Ctrl-D writes, which is the end at the beginning of a line.
   */
  end(data?: string | Uint8Array): Promise<void>;
  /**
   * Sends a signal, SIGTERM when left out, to the command and what it has started in its process group; SIGKILL ends the whole
   * process tree. Resolves to false when the command had ended before.
   */
  kill(signal?: SandboxSignal): Promise<boolean>;
  /**
   * Gives its terminal another size, of which it is told with SIGWINCH. Resolves to false when it had ended before; rejects with
   * ERR_SANDBOX_INVALID_ARG when it has no terminal.
   */
  resize(size: SandboxTtySize): Promise<boolean>;
  /** What became of it, as exec() tells it: its output, too. */
  wait(): Promise<ExecResult<T>>;
  /** Ends it with SIGKILL, if it still runs. */
  [Symbol.asyncDispose](): Promise<void>;
}

export interface SandboxStreamOptions extends SandboxCallOptions {
  /** 1 or more; no limit when left out. */
  maxBytes?: number | undefined;
}

/**
 * The port: any object with these seven members can be given to SandboxToolkit and SandboxAgent.
 *
 * Relative file paths, `run` and `shell` share one directory. `~` and `~/x` are the home of the sandbox's
 * user, in every path and `cwd`. Each call runs in a new process: files stay, a changed directory and
 * variables do not.
 */
export interface CloudSandbox {
  readonly providerId: string;
  /** Creates the sandbox. Optional: every other method does it when needed. */
  start(): Promise<void>;
  /** Runs source text. A non-zero exit is a result. */
  run(code: string, options?: SandboxRunOptions): Promise<SandboxRunResult>;
  /** Runs a command line, with bash where the sandbox has it, else with sh. A non-zero exit is a result. */
  shell(command: string, options?: SandboxRunOptions): Promise<SandboxRunResult>;
  /** Creates or replaces a file, with its folders. */
  writeFile(
    path: string,
    contents: string,
    encoding?: FileEncoding,
    options?: SandboxCallOptions,
  ): Promise<void>;
  /** The whole file, or null when there is no such file; everything else that goes wrong rejects. */
  readFile(path: string, encoding?: FileEncoding, options?: SandboxCallOptions): Promise<string | null>;
  /** Frees the sandbox, once. The sandboxes of this package take a grace for the calls in flight. */
  close(options?: SandboxCloseOptions): Promise<void>;
}

// ---- exec: the rich call --------------------------------------------------------------------------

interface ExecCommon {
  /** Relative to the sandbox's directory, which is the default. */
  cwd?: string | undefined;
  env?: Record<string, string> | undefined;
  /** Default: nothing; a command that reads its input sees the end at once. */
  stdin?: string | Uint8Array | undefined;
  /** More than 0, at most 86400, or Infinity for no limit; default as for `run`. */
  timeoutSeconds?: number | undefined;
  /** Kept of each stream: 1 to 16777216, default 1048576. The command is not stopped for size. */
  maxOutputBytes?: number | undefined;
  /** What is kept of more: the "head" (default), or head and tail with one line between ("middle"). */
  truncate?: "head" | "middle" | undefined;
  /** For `command`: "bash", "sh" or an absolute path. Default: the sandbox's `shell` option. */
  shell?: string | undefined;
  /**
   * What the command leaves in the background: "keep" (default) lets it live until this call times out or is
   * cancelled, or the sandbox is closed; "end" ends it with the command.
   */
  background?: "keep" | "end" | undefined;
  /** Aborted during the call: resolves with status "cancelled" after the process tree was ended. */
  signal?: CallSignal | undefined;
}

/** How an interpreter shows one value; which formats there are is up to the value. */
export interface ExecShownResult {
  text?: string;
  html?: string;
  markdown?: string;
  svg?: string;
  /** base64, as are `jpeg` and `pdf`. */
  png?: string;
  jpeg?: string;
  pdf?: string;
  latex?: string;
  json?: any;
  javascript?: string;
  /** The data of a table. */
  data?: any;
  /** The data of a chart. */
  chart?: any;
  extra?: Record<string, any>;
  /** The value of the last expression; the others were shown on the way. */
  isMainResult: boolean;
}

type ExecTarget =
  /** A command line for the shell. */
  | { command: string; code?: never; language?: never; context?: never; argv?: never }
  /** Source text; default language "python". */
  | {
      code: string;
      language?: "python" | "node" | undefined;
      /** Name of an interpreter's context, made at its first use. Needs `capabilities.contexts`. */
      context?: string | undefined;
      command?: never;
      argv?: never;
    }
  /** A program and its arguments, without a shell. */
  | { argv: readonly string[]; command?: never; code?: never; language?: never; context?: never };

/** Who merges both streams has all output in `output` and at `onStdout`, in exact order. */
type Streams<Data> =
  | { mergeStreams?: false | undefined; onStderr?: ((data: Data) => unknown) | undefined }
  | {
      /** Both streams through one pipe: exact order, everything in `output` and to `onStdout`. */
      mergeStreams?: boolean | undefined;
      onStderr?: undefined;
    };

interface TextStreams {
  /** "utf8" (default): invalid bytes become U+FFFD, a byte order mark stays. */
  encoding?: "utf8" | undefined;
  /**
   * Called as output arrives; characters are never split. Throwing cancels the call and rejects it, and
   * so does a promise that is returned and rejects; the call ends when such promises have settled, or
   * `signal` is aborted.
   */
  onStdout?: ((text: string) => unknown) | undefined;
}

interface ByteStreams {
  /** Results and callbacks get exact bytes. */
  encoding: "buffer";
  onStdout?: ((bytes: Uint8Array) => unknown) | undefined;
}

type ExecText = ExecTarget & ExecCommon & TextStreams & Streams<string>;
type ExecBytes = ExecTarget & ExecCommon & ByteStreams & Streams<Uint8Array>;
export type ExecSpec = ExecText | ExecBytes;

export interface ExecResult<Data extends string | Uint8Array = string> {
  status: "exited" | "signalled" | "timedOut" | "cancelled";
  /** As in SandboxRunResult. */
  exitCode: number;
  /** The signal's name, such as "SIGKILL"; absent otherwise. */
  signal?: string;
  /** Both streams in the order of arrival. */
  output: Data;
  stdout: Data;
  stderr: Data;
  /** Something is missing of any stream. */
  truncated: boolean;
  /** Bytes that the command wrote and that are not in the result, as far as they were counted. */
  droppedBytes: { output: number; stdout: number; stderr: number };
  /** After a timeout or a cancel: is the process tree gone? "none": nothing had to be ended. */
  termination: "none" | "confirmed" | "requested" | "unknown";
  /** Processes that outlived the command were ended. */
  backgroundKilled: boolean;
  /** Processes that outlived the command were seen to live on. */
  backgroundRunning: boolean;
  /** It was killed for want of memory; absent otherwise, and where nobody tells. */
  oomKilled?: true;
  /** It was killed because it had written more than `maxOutputMb` of the isolated sandbox; absent otherwise. */
  outputExceeded?: true;
  /** What the command has used, where that is known: it, and the processes that it has waited for. On this machine. */
  usage?: { cpuSeconds: number; peakMemoryBytes: number };
  durationMs: number;
  /** Code in an interpreter: what it showed, in order. */
  results?: ExecShownResult[];
  /** How many results were too large to keep; absent when none. */
  droppedResults?: number;
  /** Code in an interpreter that failed: the error that ended it; `traceback` as for a terminal. */
  error?: { name: string; value: string; traceback: string };
}

/** What a sandbox can do, by its provider and its options. */
export interface SandboxCapabilities {
  readonly separateStreams: boolean;
  /** Merged output keeps the order in which it was written. */
  readonly trueOrder: boolean;
  readonly stdin: boolean;
  readonly cwd: boolean;
  /** A timeout ends the whole process tree. */
  readonly kill: boolean;
  readonly list: boolean;
  /** Commands run on this machine. */
  readonly local: boolean;
  /** Code runs in an interpreter that keeps its state; `context` chooses one. */
  readonly contexts: boolean;
  /** The sandbox's lifetime can be set. */
  readonly lifetime: boolean;
  /** It can be paused and resumed. */
  readonly pause: boolean;
  /** Its lifetime can be extended. */
  readonly extend: boolean;
  /** stat(), listDirectory(), deleteFile(), moveFile() and mkdir() work. */
  readonly paths: boolean;
  /** readStream() and writeStream() work. */
  readonly streams: boolean;
  /** spawn() works. */
  readonly spawn: boolean;
  /** spawn() takes `tty`. */
  readonly tty: boolean;
}

/** What is at a path. */
export interface SandboxFileInfo {
  /** Links are followed by stat(), so "link" is one that leads nowhere; in a directory they are not. */
  type: "file" | "directory" | "link" | "other";
  /** Bytes; 0 of what is no file. */
  size: number;
  /** Last change in ms since 1970; null where the sandbox's image has no way to tell. */
  mtimeMs: number | null;
  /** Permissions, such as 0o644; null where the sandbox's image has no way to tell. */
  mode: number | null;
}

export interface SandboxDirectoryEntry extends SandboxFileInfo {
  name: string;
}

/** What the sandbox classes of this package have in common. Not a value: extend CloudSandbox instead. */
declare abstract class NativeSandbox implements CloudSandbox {
  get providerId(): string;
  /** The provider's id of the running sandbox (local: its directory); null before a start. */
  get sandboxId(): string | null;
  get capabilities(): SandboxCapabilities;
  /** What was found of a network that the manifest turns off. */
  get networkIsolation(): SandboxNetworkIsolation;
  /** Creates the sandbox; calls in flight share one creation. Rejects with "closed" after close(). */
  start(options?: SandboxCallOptions): Promise<void>;
  run(code: string, options?: SandboxRunOptions): Promise<SandboxRunResult & { exitCode: number }>;
  shell(command: string, options?: SandboxRunOptions): Promise<SandboxRunResult & { exitCode: number }>;
  /** Runs one command and tells all about it; resolves whatever became of the process. */
  exec(spec: ExecBytes): Promise<ExecResult<Uint8Array>>;
  exec(spec: ExecText): Promise<ExecResult>;
  exec(spec: ExecSpec): Promise<ExecResult<string | Uint8Array>>;
  /**
   * A shell whose directory, variables, functions, aliases and options last from command to command. Rejects with
   * ERR_SANDBOX_UNSUPPORTED where the sandbox has no bash.
   */
  openShell(options?: SandboxShellOptions): Promise<SandboxShell>;
  /**
   * Starts a command whose standard input stays open, and that takes signals: a command line, or a program with its arguments. Needs
   * `capabilities.spawn`, else it rejects with ERR_SANDBOX_UNSUPPORTED, and nothing was created.
   */
  spawn(command: string | readonly string[], options: SandboxSpawnBytesOptions): Promise<SandboxProcess<Uint8Array>>;
  spawn(command: string | readonly string[], options?: SandboxSpawnOptions): Promise<SandboxProcess>;
  /**
   * Bytes are written as they are; `encoding` is for text only. Bad base64 rejects, nothing is written.
   * Local: a new file has mode 0644 (not executable), an existing one keeps its mode.
   */
  writeFile(
    path: string,
    contents: Uint8Array,
    encoding?: undefined,
    options?: SandboxCallOptions,
  ): Promise<void>;
  writeFile(
    path: string,
    contents: string,
    encoding?: FileEncoding,
    options?: SandboxCallOptions,
  ): Promise<void>;
  /** A file that is larger than `maxBytes`, or than one string can hold, rejects with ERR_SANDBOX_TOO_LARGE. */
  readFile(path: string, encoding?: FileEncoding, options?: SandboxReadOptions): Promise<string | null>;
  /** The whole file as bytes, or null when there is no such file. */
  readBytes(path: string, options?: SandboxReadOptions): Promise<Uint8Array | null>;
  /**
   * A file as a web stream of parts of up to 4 MiB, each read when there is room for it; null when there is no such file. A file
   * larger than `maxBytes` (none when left out) rejects with ERR_SANDBOX_TOO_LARGE; one that is changed or replaced while it is
   * read errors the stream with ERR_SANDBOX_CONFLICT, so that what was read is never a mixture. Needs `capabilities.streams`.
   */
  readStream(path: string, options?: SandboxStreamOptions): Promise<ReadableStream<Uint8Array> | null>;
  /**
   * A web stream that makes the file, or replaces it, when it is closed; until then, and when it is aborted or fails, the file
   * stays as it was. Strings are written as UTF-8. More than `maxBytes` (none when left out) errors it with
   * ERR_SANDBOX_TOO_LARGE. Needs `capabilities.streams`.
   */
  writeStream(path: string, options?: SandboxStreamOptions): Promise<WritableStream<Uint8Array | string>>;
  /**
   * All regular files below the directory, links left out. `maxEntries`: 1 to 1000000, default 10000;
   * more files than that reject with ERR_SANDBOX_TOO_LARGE. Needs `capabilities.list`.
   */
  listFiles(options?: {
    maxEntries?: number | undefined;
    signal?: CallSignal | undefined;
  }): Promise<{ path: string; size: number }[]>;
  /** What is at a path, links followed; null when there is nothing. Needs `capabilities.paths`, as the four below. */
  stat(path: string, options?: SandboxCallOptions): Promise<SandboxFileInfo | null>;
  /**
   * What is in a directory (default: the working directory of the commands), in the order of the names' UTF-8. Rejects with
   * ERR_SANDBOX_NOT_FOUND where there is none, with ERR_SANDBOX_INVALID_ARG where a file is, and with ERR_SANDBOX_TOO_LARGE when
   * it has more than `maxEntries` (1 to 1000000, default 10000).
   */
  listDirectory(
    path?: string,
    options?: { maxEntries?: number | undefined; signal?: CallSignal | undefined },
  ): Promise<SandboxDirectoryEntry[]>;
  /**
   * Deletes a file, or a link itself; with `recursive` a directory and all that is in it. Without, a directory rejects with
   * ERR_SANDBOX_INVALID_ARG. Resolves to false when there was nothing.
   */
  deleteFile(
    path: string,
    options?: { recursive?: boolean | undefined; signal?: CallSignal | undefined },
  ): Promise<boolean>;
  /**
   * Gives a file, a directory or a link another path; directories above that are made. A file that has the path is replaced,
   * a directory is not: ERR_SANDBOX_INVALID_ARG. Rejects with ERR_SANDBOX_NOT_FOUND when there is nothing at `from`.
   */
  moveFile(from: string, to: string, options?: SandboxCallOptions): Promise<void>;
  /** Makes a directory, and those above it; resolves when it is there already. */
  mkdir(path: string, options?: SandboxCallOptions): Promise<void>;
  /**
   * Refuses new calls at once and gives those in flight `graceSeconds` (5) to end; a command without a limit
   * gets none. Then their process trees are killed and they reject with ERR_SANDBOX_CLOSED, and the sandbox is
   * deleted exactly once. Concurrent calls share one promise, and the shortest grace. When the delete fails
   * it rejects, and may be called again.
   */
  close(options?: SandboxCloseOptions): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** What may be used; one of the two, or both. What is over it rejects with ERR_SANDBOX_QUOTA, and nothing is sent. */
export interface SandboxBudget {
  /** How many commands: run(), shell(), exec() and the tools that run something. 0 or more. */
  commands?: number | undefined;
  /** How long sandboxes may exist. A command that runs is not ended for it; the next one is refused. */
  sandboxSeconds?: number | undefined;
}

// ---- manifest -------------------------------------------------------------------------------------

/**
 * What a sandbox is to be made of and what it may do, in the same words for every provider. Each provider keeps some of the
 * settings (docs/policy.md has the table). One that it cannot keep is refused by the constructor, with
 * ERR_SANDBOX_UNSUPPORTED, the setting and what to do; a member that does not exist, too. Copied; nothing is ever dropped.
 */
export interface SandboxManifest {
  /** A container's image; with e2b the template. */
  readonly image?: string | undefined;
  /** Where commands run; absolute. */
  readonly workingDir?: string | undefined;
  readonly network?: SandboxManifestNetwork | undefined;
  /** Variables of every command. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly resources?:
    | {
        readonly cpus?: number | undefined;
        readonly memoryMb?: number | undefined;
        readonly diskMb?: number | undefined;
        /** How many, or of which kind; 0 is none. */
        readonly gpu?: number | string | undefined;
        /** Of a command that brings no limit of its own, as `defaultTimeoutSeconds`. */
        readonly timeoutSeconds?: number | undefined;
      }
    | undefined;
  /** Folders of the machine where the sandbox runs. */
  readonly mounts?: readonly DockerMount[] | undefined;
  readonly lifecycle?:
    | {
        /** What close() does. "always": it deletes; "never": it leaves alone what existed before. */
        readonly cleanup?: "always" | "onSuccess" | "never" | undefined;
      }
    | undefined;
}

/** Options of every sandbox class. */
export interface SandboxPolicyOptions {
  /** What the sandbox is to be made of and what it may do. */
  manifest?: SandboxManifest | undefined;
  /**
   * Where the manifest's network is off: whether that is looked at from inside before the first command. Default true.
   * `networkIsolation` says what was found.
   */
  verifyNetwork?: boolean | undefined;
}

export interface SandboxManifestNetwork {
  /** Default "deny": it is off, but for `allowedHosts`. */
  readonly default?: "deny" | "allow" | undefined;
  /** Names, "*.example.com", addresses, ranges ("192.0.2.0/24"); no scheme, port or path. */
  readonly allowedHosts?: readonly string[] | undefined;
  /** Exceptions of "allow". */
  readonly deniedHosts?: readonly string[] | undefined;
}

/** What is known of a network that the manifest turns off. */
export interface SandboxNetworkIsolation {
  /**
   * "isolated": nothing came through. "reachable", "unknown": the sandbox was deleted, and every call rejects with
   * ERR_SANDBOX_ISOLATION_UNAVAILABLE. "unchecked": not looked at yet, or `verifyNetwork` is false. "not required": no
   * manifest turns the network off.
   */
  readonly verdict: "isolated" | "reachable" | "unknown" | "unchecked" | "not required";
  readonly evidence: readonly SandboxNetworkAttempt[];
}

/** One attempt to reach something from inside. */
export interface SandboxNetworkAttempt {
  /** "metadata": where clouds hand out credentials. "allowed": a host of the manifest's list, which may be reachable. */
  readonly kind: "tcp4" | "tcp6" | "dns" | "metadata" | "allowed";
  readonly host: string;
  /** 0 with "dns". */
  readonly port: number;
  readonly result: "reachable" | "blocked" | "unknown";
  /** The program that has found it, such as "bash"; "interfaces": there is none to go through. */
  readonly by?: string;
}

// ---- local ----------------------------------------------------------------------------------------

export interface LocalSandboxOptions extends SandboxPolicyOptions {
  /** An existing directory to work in, absolute; kept by close(). Default: a new one, removed by close(). */
  workspace?: string | undefined;
  /** Where the new directory is made; default: the system's. */
  tempDir?: string | undefined;
  /** Variables for every command. */
  env?: Record<string, string> | undefined;
  /**
   * Names of this process's variables to pass on; besides PATH, LANG and TZ; HOME is the workspace. `true`: all of
   * them, keys and tokens among them; the process is warned once.
   */
  inheritEnv?: readonly string[] | true | undefined;
  /** More than 0, at most 3600; default 30. */
  defaultTimeoutSeconds?: number | undefined;
  /** Kept of each command's output: 1 to 16777216, default 1048576. */
  maxOutputBytes?: number | undefined;
  /** Default 60. */
  startTimeoutSeconds?: number | undefined;
  /** Between the request to end and the kill: 0 to 3, default 2. */
  killGraceSeconds?: number | undefined;
  /** Runs "node" code; default: this process's own executable. */
  nodePath?: string | undefined;
  /** When the workspace was removed behind our back: a fresh one for the next call (default), or none. */
  onLost?: "recreate" | "reject" | undefined;
  /** For command lines: "bash", "sh" or an absolute path. Default: bash where the sandbox has it, else sh. */
  shell?: string | undefined;
  /** Refuses commands once it is spent, before anything is sent. */
  budget?: SandboxBudget | undefined;
  /**
   * "required" (default): commands are isolated from this machine, or start() rejects with
   * ERR_SANDBOX_ISOLATION_UNAVAILABLE; Linux only, see docs/isolation.md. "none": they are not isolated, have your rights
   * and are trusted. "best-effort": isolated where this machine can do that, else as "none"; the process is warned then, and
   * `isolation` of the sandbox says why.
   */
  isolation?: "none" | "best-effort" | "required" | undefined;
  /** The same as isolation: "none". With "best-effort": no warning. */
  trusted?: boolean | undefined;

  // The rest goes with isolation.

  /** Layers without which there is to be no sandbox, besides those that are required anyway. Not with "best-effort". */
  require?: readonly SandboxIsolationLayer[] | undefined;
  /** Layers that may be missing. */
  accept?: readonly SandboxIsolationLayer[] | undefined;
  /** "off" (default): nothing but a loopback of its own. "on": the network of this machine, its loopback included. */
  network?: "off" | "on" | undefined;
  /**
   * What is reached all the same when the network is off, by programs that use the proxy of the variables HTTP_PROXY and
   * HTTPS_PROXY: "example.com" (ports 443 and 80), "*.example.com" (what is below it), "example.com:8443", "192.0.2.1",
   * "192.0.2.0/24". Addresses of this machine and of private networks are refused unless they stand here themselves.
   */
  allowedHosts?: readonly string[] | undefined;
  /** Absolute paths that are to be seen at the same place in the sandbox, and cannot be written. They must be there when it starts. */
  readOnlyPaths?: readonly string[] | undefined;
  /**
   * "required" (default): a limit that cannot be kept rejects the start. "best-effort": what there is, is taken; that is
   * the default of isolation: "best-effort".
   */
  limits?: "required" | "best-effort" | undefined;
  /** Of all commands together, looked at ten times a second; a command that is ended for it says `oomKilled`. */
  memoryMb?: number | undefined;
  /** Processes and threads of all commands together; default 256. */
  processes?: number | undefined;
  /** Processor time of each process. */
  cpuSeconds?: number | undefined;
  /** Size of each file. */
  maxFileMb?: number | undefined;
  /**
   * A command that writes more than this is ended, and its result says `outputExceeded`; what is kept of it is
   * `maxOutputBytes`. Default 256, or 64 times `maxOutputBytes` if that is more.
   */
  maxOutputMb?: number | undefined;
  /** All that is in /tmp and in the home; /dev/shm has as much again. Default 512. */
  tempMb?: number | undefined;
  /** Open files of each process; default 1024. */
  openFiles?: number | undefined;
}

/** A wall between a sandbox and this machine; docs/isolation.md says what each is good for. */
export type SandboxIsolationLayer =
  | "userns" | "mounts" | "pidns" | "procfs" | "netns" | "ipcns" | "utsns" | "cgroupns"
  | "no_new_privs" | "capabilities" | "seccomp" | "landlock" | "session" | "keyring" | "rlimits"
  | "cgroup_memory" | "cgroup_pids" | "cgroup_cpu" | "cgroup_kill" | "disk_quota";

/** Each was looked at from inside, not taken on trust. */
export type SandboxIsolation = Readonly<
  Record<
    SandboxIsolationLayer,
    {
      readonly state: "enforced" | "partial" | "unavailable" | "off";
      /** Such as "EPERM". */
      readonly errno?: string;
      /** Why, and what to do about it. */
      readonly hint?: string;
    }
  >
>;

/**
 * Runs commands on this machine, in a directory of their own. Linux and macOS.
 *
 * Commands are isolated from it where nothing else is said: Linux only, see docs/isolation.md. **With isolation: "none" they
 * are not isolated.** They have your user's rights then: they can read your files and use your network. Time, output and
 * left-over processes are bounded, nothing else. Nothing in this package chooses that for you.
 */
export class LocalSandbox extends NativeSandbox {
  constructor(options?: LocalSandboxOptions);
  /** "isolated-local"; "unix-local" with isolation: "none", and with "best-effort" as long as it is not known to be isolated. */
  get providerId(): string;
  /**
   * What isolates the running sandbox; null before a start, and with isolation: "none". Where "best-effort" has come to nothing
   * every layer is "off", and its hint says why.
   */
  get isolation(): SandboxIsolation | null;
}

// ---- Daytona --------------------------------------------------------------------------------------

/** Options of every remote provider. */
export interface RemoteSandboxOptions extends SandboxPolicyOptions {
  apiKey?: string | undefined;
  /** Base URL of the provider's API, for a server of your own. */
  baseURL?: string | undefined;
  /** URL of an HTTP proxy; "" or null: none. Default: what HTTPS_PROXY, HTTP_PROXY and NO_PROXY say. */
  proxy?: string | null | undefined;
  /** Certificates in PEM to trust in place of the system's. NODE_EXTRA_CA_CERTS adds to the system's. */
  ca?: string | Uint8Array | undefined;
  /** Without a key it is the first use that rejects, not the constructor that throws. */
  lateAuth?: boolean | undefined;
  /** More than 0, at most 3600; default 30. */
  defaultTimeoutSeconds?: number | undefined;
  /** For the creation, until the first command could run. More than 0, at most 3600; default 60. */
  startTimeoutSeconds?: number | undefined;
  /** Kept of each command's output: 1 to 16777216, default 1048576. */
  maxOutputBytes?: number | undefined;
  /** When the sandbox has vanished: a fresh one for the next call (default), or none. */
  onLost?: "recreate" | "reject" | undefined;
  /** For command lines: "bash", "sh" or an absolute path. Default: bash where the sandbox has it, else sh. */
  shell?: string | undefined;
  /** Refuses commands once it is spent, before anything is sent. */
  budget?: SandboxBudget | undefined;
}

/** Of a variable's name in parentheses the value is the default. */
export interface DaytonaSandboxOptions extends RemoteSandboxOptions {
  /** (DAYTONA_API_KEY) */
  apiKey?: string | undefined;
  /** In place of an API key, with `organizationId`. (DAYTONA_JWT_TOKEN) */
  jwtToken?: string | undefined;
  /** (DAYTONA_ORGANIZATION_ID) */
  organizationId?: string | undefined;
  /** Ends in "/api" as a rule. (DAYTONA_API_URL, DAYTONA_SERVER_URL); default "https://app.daytona.io/api" */
  baseURL?: string | undefined;
  /** Base URL of the toolboxes, in place of what the API says; for names that do not resolve. */
  toolboxUrl?: string | undefined;
  /** Region. (DAYTONA_TARGET) */
  target?: string | undefined;
  /** Name of the new sandbox; default: a unique one. A name that is taken rejects. */
  workspace?: string | undefined;
  /** Id or name of an existing sandbox to work in; it is started if need be, and not deleted by close(). */
  sandboxId?: string | undefined;
  /** Only with `sandboxId`: close() deletes it all the same. */
  owned?: boolean | undefined;
  /** What `run` takes besides "shell", and its default. Default "python". */
  language?: "python" | "node" | undefined;
  /** `run` takes both languages. */
  allowAnyLanguage?: boolean | undefined;
  /** Name or id of what the sandbox is made from; default: the server's default. */
  snapshot?: string | undefined;
  /** A container image in place of a snapshot; building may take minutes: raise `startTimeoutSeconds`. */
  image?: string | undefined;
  /** Cores, GiB, GiB; with `image` only. */
  cpu?: number | undefined;
  memory?: number | undefined;
  disk?: number | undefined;
  /** The operating system's user; default: the server's. */
  user?: string | undefined;
  /** Variables of everything that runs in the sandbox. */
  env?: Record<string, string> | undefined;
  labels?: Record<string, string> | undefined;
  /**
   * Minutes without use after which the server stops it; 0: never. Default 5. One that is not
   * deleted by that (see `ephemeral`) keeps its files, and the next call starts it again.
   */
  autoStopMinutes?: number | undefined;
  /** Minutes after a stop; 0: the server's maximum. Default: the server's. */
  autoArchiveMinutes?: number | undefined;
  /** Minutes after a stop; 0: as soon as it stops (default), -1: never. */
  autoDeleteMinutes?: number | undefined;
  /** true: `autoDeleteMinutes: 0`; false: -1. */
  ephemeral?: boolean | undefined;
  networkBlockAll?: boolean | undefined;
  /** IPv4 networks such as "10.0.0.0/8"; at most 10. */
  networkAllowList?: string | readonly string[] | undefined;
  /** Domains, "*.example.com" too; at most 10. */
  domainAllowList?: string | readonly string[] | undefined;
  /** Previews without a token. */
  public?: boolean | undefined;
}

/** Agentium's name for the options. */
export type DaytonaSandboxConfig = DaytonaSandboxOptions;

/**
 * A sandbox at Daytona, hosted or on a server of your own.
 *
 * `run` takes "shell" and the language that the sandbox was made for; another one rejects, unless
 * `allowAnyLanguage`.
 */
export class DaytonaSandbox extends NativeSandbox {
  constructor(options?: DaytonaSandboxOptions);
  /** "daytona" */
  get providerId(): string;
}

// ---- http -----------------------------------------------------------------------------------------

/** Of a variable's name in parentheses the value is the default. */
export interface HttpSandboxOptions extends Omit<RemoteSandboxOptions, "apiKey" | "lateAuth"> {
  /** Address of your sandbox service, required; "/sessions" and so on are added to it. (SANDBOX_HTTP_URL) */
  baseURL?: string | undefined;
  /** Sent as `Authorization: Bearer ...`; none where the service asks for none. (SANDBOX_HTTP_TOKEN) */
  token?: string | undefined;
  /** Sent with every request; the token wins over an `Authorization` of these. */
  headers?: Record<string, string> | undefined;
  /** Id of an existing session to work in; it is not deleted by close(). */
  sandboxId?: string | undefined;
  /** Only with `sandboxId`: close() deletes it all the same. */
  owned?: boolean | undefined;
  /** Where commands begin: an absolute path in the sandbox. Default "/workspace"; of an existing session: its own. */
  workingDir?: string | undefined;
  /** What the sandbox is made from; default: the service's default. */
  image?: string | undefined;
  /** Variables of everything that runs in the sandbox. */
  env?: Record<string, string> | undefined;
  /** What the sandbox may reach. Default "deny". */
  network?: "deny" | "allow" | undefined;
  /** Host names that may be reached all the same, "*.example.com" too. */
  allowedHosts?: readonly string[] | undefined;
  /** Host names that must not be reached. */
  deniedHosts?: readonly string[] | undefined;
  /** Cores, such as 2 or "0.5". */
  cpu?: number | string | undefined;
  /** Such as "512m" or "2g"; a number is of bytes. */
  memory?: number | string | undefined;
  gpu?: boolean | undefined;
}

/**
 * A sandbox of a service of your own that speaks the protocol of docs/http-protocol.md. Isolation is that service's: this
 * class only says what is wanted.
 */
export class HttpSandbox extends NativeSandbox {
  constructor(options?: HttpSandboxOptions);
  /** "http" */
  get providerId(): string;
}

// ---- Vercel ---------------------------------------------------------------------------------------

/** What the sandbox may reach; a rule is Vercel's own object. */
export type VercelNetworkPolicy =
  | "allow-all"
  | "deny-all"
  | {
      /** Domains such as "*.example.com"; or an object of lists of rules by domain. */
      allow?: readonly string[] | Readonly<Record<string, readonly object[]>> | undefined;
      /** Networks such as "10.0.0.0/8". */
      subnets?: { allow?: readonly string[] | undefined; deny?: readonly string[] | undefined } | undefined;
    };

/** Of a variable's name in parentheses the value is the default. */
export interface VercelSandboxOptions extends Omit<RemoteSandboxOptions, "apiKey"> {
  /** With `teamId` and `projectId`. (VERCEL_TOKEN) */
  token?: string | undefined;
  /** (VERCEL_TEAM_ID) */
  teamId?: string | undefined;
  /** (VERCEL_PROJECT_ID) */
  projectId?: string | undefined;
  /** In place of the three: a token that names its team and project itself. (VERCEL_OIDC_TOKEN) */
  oidcToken?: string | undefined;
  /** Name of an existing sandbox to work in; it is resumed if need be, and not deleted by close(). */
  sandboxId?: string | undefined;
  /** Only with `sandboxId`: close() deletes it all the same. */
  owned?: boolean | undefined;
  /** Name of the new sandbox; default: a unique one. A name that is taken rejects. */
  name?: string | undefined;
  /** Such as "vercel/sandbox/python:3.14"; default: Vercel's default. */
  image?: string | undefined;
  /** Such as "node24"; the older way, in place of `image`. */
  runtime?: string | undefined;
  /** Each with 2 GiB of memory. */
  vcpus?: number | undefined;
  /** After which Vercel ends the sandbox: 1 to 86400, default 300. See `extendLifetime()`. */
  lifetimeSeconds?: number | undefined;
  /** Such as "iad1". */
  region?: string | undefined;
  /** Variables of everything that runs in the sandbox. */
  env?: Record<string, string> | undefined;
  /** At most 4. */
  tags?: Record<string, string> | undefined;
  /** Default: Vercel's, which allows everything. */
  networkPolicy?: VercelNetworkPolicy | undefined;
  /** Nothing is kept when it ends. */
  persistent?: false | undefined;
}

/** A name like those of the other providers. */
export type VercelSandboxConfig = VercelSandboxOptions;

/** A sandbox at Vercel. It is deleted by `close()`, and keeps nothing when its lifetime is over. */
export class VercelSandbox extends NativeSandbox {
  constructor(options?: VercelSandboxOptions);
  /** "vercel" */
  get providerId(): string;
  /** It lives that many seconds longer: whole, 1 to 86400. It must have started. */
  extendLifetime(seconds: number, options?: SandboxCallOptions): Promise<void>;
}

// ---- AgentCore ------------------------------------------------------------------------------------

/** Of a variable's name in parentheses the value is the default. */
export interface AgentCoreSandboxOptions extends Omit<RemoteSandboxOptions, "apiKey"> {
  /** With `secretAccessKey`. (AWS_ACCESS_KEY_ID) Without any credentials: as AWS's own clients find them. */
  accessKeyId?: string | undefined;
  /** (AWS_SECRET_ACCESS_KEY) */
  secretAccessKey?: string | undefined;
  /** Of temporary credentials. (AWS_SESSION_TOKEN) */
  sessionToken?: string | undefined;
  /** In place of these: a profile of ~/.aws/credentials and ~/.aws/config. (AWS_PROFILE) */
  profile?: string | undefined;
  /** Default: AWS_REGION, AWS_DEFAULT_REGION, the profile's, else "us-west-2". */
  region?: string | undefined;
  /** Identifier or ARN of the code interpreter; default "aws.codeinterpreter.v1". */
  codeInterpreter?: string | undefined;
  /** Id of an existing session to work in; it is not stopped by close(). */
  sandboxId?: string | undefined;
  /** Only with `sandboxId`: close() stops it all the same. */
  owned?: boolean | undefined;
  /** What the session's name begins with: 1 to 60 letters, digits, `-` and `_`; a random end is added. */
  name?: string | undefined;
  /** After which AWS ends the session, whatever runs in it: 1 to 28800, default 900. It cannot be prolonged. */
  lifetimeSeconds?: number | undefined;
  /** Variables of every command. */
  env?: Record<string, string> | undefined;
}

/** A name like those of the other providers. */
export type AgentCoreSandboxConfig = AgentCoreSandboxOptions;

/** A session of AWS Bedrock AgentCore's Code Interpreter. It is stopped by `close()`, and keeps nothing when it ends. */
export class AgentCoreSandbox extends NativeSandbox {
  constructor(options?: AgentCoreSandboxOptions);
  /** "agentcore" */
  get providerId(): string;
}

// ---- Modal ----------------------------------------------------------------------------------------

/** Of a variable's name in parentheses the value is the default; then comes Modal's own configuration file. */
export interface ModalSandboxOptions extends Omit<RemoteSandboxOptions, "apiKey"> {
  /** With `tokenSecret`. (MODAL_TOKEN_ID) */
  tokenId?: string | undefined;
  /** (MODAL_TOKEN_SECRET) */
  tokenSecret?: string | undefined;
  /** Of ~/.modal.toml, or the file that MODAL_CONFIG_PATH names; default: the active one. (MODAL_PROFILE) */
  profile?: string | undefined;
  /** Of Modal; default: the account's. (MODAL_ENVIRONMENT) */
  environment?: string | undefined;
  /** Under which the sandbox is made; made when it is missing. Default "cloudsandbox". */
  app?: string | undefined;
  /** Id of an existing sandbox to work in; it is not terminated by close(). */
  sandboxId?: string | undefined;
  /** Only with `sandboxId`: close() terminates it all the same. */
  owned?: boolean | undefined;
  /** Of the new sandbox; one that is taken in this app rejects. */
  name?: string | undefined;
  /** Of a registry; built by Modal at its first use. Default "python:3.12-slim". */
  image?: string | undefined;
  /** Of an image that Modal has built; in place of `image`. */
  imageId?: string | undefined;
  /** Default: the environment's. (MODAL_IMAGE_BUILDER_VERSION) */
  imageBuilderVersion?: "2023.12" | "2024.04" | "2024.10" | "2025.06" | "PREVIEW" | undefined;
  /** Absolute; where commands run. Default: the image's. */
  workingDir?: string | undefined;
  cpus?: number | undefined;
  memoryMb?: number | undefined;
  /** After which Modal ends the sandbox: 1 to 86400, default 300. */
  lifetimeSeconds?: number | undefined;
  /** Modal also ends it after so long without a command. */
  idleTimeoutSeconds?: number | undefined;
  /** No network at all. */
  blockNetwork?: boolean | undefined;
  /** Only these; such as "*.example.com". */
  allowedDomains?: readonly string[] | undefined;
  /** Only these; such as "192.0.2.0/24". */
  allowedCidrs?: readonly string[] | undefined;
  /** Variables of everything that runs in the sandbox. */
  env?: Record<string, string> | undefined;
  tags?: Record<string, string> | undefined;
}

/** A name like those of the other providers. */
export type ModalSandboxConfig = ModalSandboxOptions;

/** A sandbox at Modal. It is terminated by `close()`, and keeps nothing when its lifetime is over. */
export class ModalSandbox extends NativeSandbox {
  constructor(options?: ModalSandboxOptions);
  /** "modal" */
  get providerId(): string;
}

// ---- E2B ------------------------------------------------------------------------------------------

export interface E2BSandboxOptions extends SandboxPolicyOptions {
  /** Default: the variable E2B_API_KEY. Goes to the control plane only. */
  apiKey?: string | undefined;
  /** Do not throw for a missing key before the first use. */
  lateAuth?: boolean | undefined;
  /** Default: E2B_DOMAIN, else "e2b.app". */
  domain?: string | undefined;
  /** The control plane; default: E2B_API_URL, else `https://api.<domain>`. */
  baseURL?: string | undefined;
  /** What serves all sandboxes; default: E2B_SANDBOX_URL, else made of the domain. */
  sandboxUrl?: string | undefined;
  /** Everything runs on this machine and nothing is created; default: E2B_DEBUG is "true". */
  debug?: boolean | undefined;
  /** Name or id; default "base". */
  template?: string | undefined;
  /**
   * E2B ends the sandbox this long after its start, 1 to 86400 whole seconds (as far as the plan
   * allows); default 300. While a command runs it is begun anew in good time.
   */
  lifetimeSeconds?: number | undefined;
  /** More than 0, at most 3600; default 30. */
  defaultTimeoutSeconds?: number | undefined;
  /** Kept of each command's output: 1 to 16777216, default 1048576. */
  maxOutputBytes?: number | undefined;
  /** Default 60. */
  startTimeoutSeconds?: number | undefined;
  /** Shown in E2B's lists. */
  metadata?: Record<string, string> | undefined;
  /** Variables of everything in the sandbox. */
  env?: Record<string, string> | undefined;
  /** false: the sandbox's services ask for no token. Default true. */
  secure?: boolean | undefined;
  /** false: no way out. Check from inside before you rely on it. */
  allowInternetAccess?: boolean | undefined;
  /** E2B's own rules. A name that is none of these throws. */
  network?: E2BNetwork | undefined;
  /** At the end of its lifetime the sandbox is paused, not ended. */
  autoPause?: boolean | undefined;
  /** Any request wakes it up again. */
  autoResume?: boolean | undefined;
  /** An existing sandbox to use. close() leaves it alone, unless `owned`. */
  sandboxId?: string | undefined;
  /** Only with `sandboxId`: close() deletes it all the same. */
  owned?: boolean | undefined;
  /**
   * Run code in the template's interpreter, where variables last from call to call. Default: the
   * template's name begins with "code-interpreter".
   */
  interpreter?: boolean | undefined;
  /** Sent with every request, to the control plane and to the sandbox. */
  headers?: Record<string, string> | undefined;
  /** URL; "" for none. Default: the usual variables (HTTPS_PROXY, NO_PROXY, ...). */
  proxy?: string | undefined;
  /** Certificates in PEM to trust in place of the system's. */
  ca?: string | Uint8Array | undefined;
  /** When the sandbox was lost: a fresh one for the next call (default), or none. */
  onLost?: "recreate" | "reject" | undefined;
  /** For command lines: "bash", "sh" or an absolute path. Default: bash where the sandbox has it, else sh. */
  shell?: string | undefined;
  /** Refuses commands once it is spent, before anything is sent. */
  budget?: SandboxBudget | undefined;
}

/** Agentium's name for the options. */
export type E2BSandboxConfig = E2BSandboxOptions;

/** Rules of a sandbox's network, as E2B takes them. Check from inside before you rely on a denial. */
export interface E2BNetwork {
  /** Networks, addresses and domains ("*.example.com"); a domain needs `denyOut: ["0.0.0.0/0"]`. */
  allowOut?: readonly string[] | undefined;
  /** Networks and addresses; `allowOut` wins. */
  denyOut?: readonly string[] | undefined;
  /** false: who reaches a port of the sandbox needs its traffic token. Default true. */
  allowPublicTraffic?: boolean | undefined;
  /** The Host that servers in the sandbox see; `${PORT}` stands for the port. */
  maskRequestHost?: string | undefined;
  /** Ports in the sandbox that speak HTTPS. */
  httpsPorts?: readonly number[] | undefined;
  /** A SOCKS5 proxy for the way out, "host:port". */
  egressProxy?: { address: string; username?: string | undefined; password?: string | undefined } | undefined;
  /** By domain: headers that requests to it get. */
  rules?: Record<string, readonly E2BNetworkRule[]> | undefined;
}

export interface E2BNetworkRule {
  transform?: { headers?: Record<string, string> | undefined } | undefined;
}

export interface E2BRunOptions extends SandboxRunOptions {
  /** Name of the interpreter's context to run in, made at its first use. */
  context?: string | undefined;
}

/**
 * A sandbox at E2B, by E2B's own protocol.
 *
 * Without an interpreter each run() is a new process; with one, code runs in a kernel that keeps its
 * variables (a run that is cut off by its limit restarts it, and they are gone).
 */
export class E2BSandbox extends NativeSandbox {
  /** Throws when there is no key (unless `lateAuth`, or debug mode) and on wrong options. No I/O. */
  constructor(options?: E2BSandboxOptions);
  /** "e2b" */
  get providerId(): string;
  run(code: string, options?: E2BRunOptions): Promise<SandboxRunResult & { exitCode: number }>;
  /** The sandbox now ends that many whole seconds from now, 1 to 86400. */
  setLifetime(seconds: number, options?: SandboxCallOptions): Promise<void>;
  /**
   * Keeps files and memory. From its beginning until resume() calls reject with ERR_SANDBOX_CONFLICT, also
   * those that run when it begins.
   */
  pause(options?: SandboxCallOptions): Promise<void>;
  /** Goes on after a pause, for a new lifetime: default `lifetimeSeconds`. */
  resume(options?: { lifetimeSeconds?: number | undefined; signal?: CallSignal | undefined }): Promise<void>;
}

// ---- Docker and Podman -----------------------------------------------------------------------------

/** Where the engine is. Of a variable's name in parentheses the value is the default. */
export interface DockerConnectionOptions {
  /**
   * "unix:///path/of/the/socket", "tcp://host:port", "http://host:port" or "https://host:port". (DOCKER_HOST); default:
   * the first of these sockets that is there: `~/.docker/run/docker.sock`, `/var/run/docker.sock`, rootless Podman's
   * `$XDG_RUNTIME_DIR/podman/podman.sock`, `/run/podman/podman.sock`.
   */
  host?: string | undefined;
  /**
   * Folder with `ca.pem`, `cert.pem` and `key.pem`; "tcp://" is then TLS. (DOCKER_CERT_PATH; with DOCKER_TLS_VERIFY
   * `~/.docker`.) The server's certificate is always verified.
   */
  certPath?: string | undefined;
  /** Certificates in PEM to trust in place of `ca.pem` and the system's. */
  ca?: string | Uint8Array | undefined;
  /** Such as "1.41"; default: the newest that both sides know. (DOCKER_API_VERSION) */
  apiVersion?: string | undefined;
}

export interface DockerSandboxOptions extends DockerConnectionOptions, SandboxPolicyOptions {
  /** Default "python:3.12-slim". It needs a shell; `run` needs python3 or node in it. */
  image?: string | undefined;
  /** "missing" (default): when the engine does not have the image. "never": then the start rejects. */
  pull?: "missing" | "always" | "never" | undefined;
  /** Told how far a pull is. */
  onProgress?: ((progress: DockerPullProgress) => void) | undefined;
  /** Numbers, "1000" or "1000:1000" for user and group; default "65534:65534", who is nobody. */
  user?: string | number | undefined;
  /** Where commands run and relative paths begin; default "/workspace". */
  workingDir?: string | undefined;
  /** "none" (default), or the name of a network; "bridge" is open to all that this machine can reach. */
  network?: string | undefined;
  /** 16 to 1048576; default 1024. There is no swap on top of it. */
  memoryMb?: number | undefined;
  /** From 0.01, such as 0.5 for half a core; default: all. */
  cpus?: number | undefined;
  /** Processes and threads at once: 16 to 4194304, default 256. */
  pids?: number | undefined;
  /** Of the working directory: 1 to 1048576, default 512. */
  diskMb?: number | undefined;
  /** Nothing of the image can be changed; the working directory and /tmp can be written. Default true. */
  readOnlyRoot?: boolean | undefined;
  /** Capabilities to have, such as ["NET_BIND_SERVICE"]; default: none. They are of use to user 0 only. */
  capabilities?: readonly string[] | undefined;
  /** Programs with a set-user-ID bit change nothing. Default true. */
  noNewPrivileges?: boolean | undefined;
  /** A runtime that the engine knows, such as "runsc". */
  runtime?: string | undefined;
  /** Such as "linux/amd64"; default: the engine's own. */
  platform?: string | undefined;
  /** What of the engine's machine the container may see. */
  mounts?: readonly DockerMount[] | undefined;
  /** Variables of everything in the sandbox. */
  env?: Record<string, string> | undefined;
  /** Names that begin with "cloudsandbox" are taken. */
  labels?: Record<string, string> | undefined;
  /** The container ends itself then, also when this process is gone: 1 to 2592000 whole seconds, default 3600. */
  lifetimeSeconds?: number | undefined;
  /** Id or name of a running container to work in; close() leaves it alone, unless `owned`. */
  containerId?: string | undefined;
  /** Only with `containerId`: close() removes it all the same. */
  owned?: boolean | undefined;
  /** More than 0, at most 3600; default 30. */
  defaultTimeoutSeconds?: number | undefined;
  /** For the start, a pull included: more than 0, at most 3600; default 60. */
  startTimeoutSeconds?: number | undefined;
  /** Kept of each command's output: 1 to 16777216, default 1048576. */
  maxOutputBytes?: number | undefined;
  /** When the container is gone: a fresh one for the next call (default), or none. */
  onLost?: "recreate" | "reject" | undefined;
  /** For command lines: "bash", "sh" or an absolute path. Default: bash where the image has it, else sh. */
  shell?: string | undefined;
  /** Refuses commands once it is spent, before anything is sent. */
  budget?: SandboxBudget | undefined;
}

/**
 * A folder or file of the engine's machine. Always refused, also by way of a link or of "..": the engine's socket, `/`,
 * `/etc`, `/proc`, `/sys`, `/dev`, homes, and places of credentials such as `.ssh`.
 */
export interface DockerMount {
  /** Absolute. */
  source: string;
  /** Absolute, in the container. */
  target: string;
  /** Default true. */
  readOnly?: boolean | undefined;
}

/** What the engine says about a pull. */
export interface DockerPullProgress {
  /** Such as "Downloading". */
  status: string;
  /** Of the layer. */
  id?: string;
  /** Bytes of the layer: so far, and in all. */
  current?: number;
  total?: number;
}

/**
 * A container of Docker or Podman: made at the first use, removed by close(), and ended by itself after its lifetime.
 */
export class DockerSandbox extends NativeSandbox {
  /** Throws on wrong options. Looks at the sources of `mounts`, and does no other I/O. */
  constructor(options?: DockerSandboxOptions);
  /** "docker" */
  get providerId(): string;
}

/**
 * Removes the containers of this package whose lifetime is over, or whose process on this machine is dead. Those of
 * others, and of processes that live, stay. Resolves to the ids of what was removed.
 */
export function removeStaleDockerSandboxes(
  options?: DockerConnectionOptions & SandboxCallOptions,
): Promise<{ removed: string[] }>;

// ---- tools ----------------------------------------------------------------------------------------

/** What a tool does, for a host that approves calls by kind. */
export type ToolEffect = "execute" | "write" | "read";

export type ToolInputIssue = { path: PropertyKey[]; message: string };

/** The messages of each path, as Zod's errors have them. */
export type ToolFormattedError = { _errors: string[]; [name: string]: ToolFormattedError | string[] };

export type ToolParseResult<Args> =
  { success: true; data: Args } | { success: false; error: SandboxError & { issues: ToolInputIssue[]; format(): ToolFormattedError } };

/**
 * A JSON Schema that checks what it describes. To a reader of JSON it is plain JSON Schema; the
 * functions are not enumerable. Unknown members are dropped where the schema allows none; null counts
 * as absent.
 */
export type ToolSchema<Args = any> = {
  readonly type: "object";
  readonly properties: Record<string, any>;
  readonly required?: string[];
  readonly additionalProperties?: boolean | object;
  safeParse(value: unknown): ToolParseResult<Args>;
  /** As safeParse, but throws the error. */
  parse(value: unknown): Args;
  readonly shape: Record<string, any>;
  /** Standard Schema 1 with JSON Schema, for "draft-2020-12" and "draft-07". */
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: "cloudsandbox";
    readonly validate: (value: unknown) => { value: Args; issues?: undefined } | { issues: ToolInputIssue[] };
    readonly jsonSchema: {
      readonly input: (options: { target: string }) => Record<string, unknown>;
      readonly output: (options: { target: string }) => Record<string, unknown>;
    };
    readonly types?: { readonly input: Args; readonly output: Args };
  };
  /** Declared for Agentium's types only; the object has no such member. */
  readonly _def: { readonly typeName: "ZodObject" };
  /** Declared for Agentium's types only; the object has no such member. */
  readonly _output: Args;
};

export interface ToolArtifact {
  type: string;
  data: unknown;
  mimeType?: string;
}

export interface ToolResult {
  content: string;
  artifacts?: ToolArtifact[];
}

/** Whatever the framework passes; the signal is taken from the first of these that is there. */
export interface ToolCallContext {
  signal?: CallSignal | undefined;
  abortSignal?: CallSignal | undefined;
  /**
   * Hears the output of the run and the shell tool as it comes, as text. What it throws does not stop the command. Of a
   * sandbox of your own making it hears all at the end.
   */
  onOutput?: ((text: string) => unknown) | undefined;
}

/** What a tool may have besides its name, description, parameters and function. */
export interface ToolOptions {
  /** What the model gets to see instead of the schema made from `parameters`. */
  rawJsonSchema?: Record<string, unknown>;
  /** `ttl` in milliseconds. */
  cache?: { ttl: number };
  /** Agentium: run the function in a process of its own. Closures are lost there. */
  sandbox?: boolean | Record<string, any>;
  /** The tool has it under the names of the AI SDK and of Mastra too. */
  requiresApproval?: boolean | ((args: Record<string, unknown>) => boolean);
  strict?: boolean;
  inputExamples?: Record<string, unknown>[];
  toModelOutput?(result: string | ToolResult, context: any): Promise<string | ToolResult>;
  effect?: ToolEffect;
}

/** A tool as Agentium, the Vercel AI SDK and Mastra take it. */
export interface ToolDef<Parameters = any> extends Omit<ToolOptions, "inputExamples" | "toModelOutput"> {
  /** Same as `name`. */
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly parameters: Parameters;
  /** Same object as `parameters`. */
  readonly inputSchema: Parameters;
  /** Same as `requiresApproval`, for the AI SDK. */
  readonly needsApproval?: boolean | ((args: any) => boolean);
  /** Same as `requiresApproval`, for Mastra. */
  readonly requireApproval?: boolean | ((args: any) => boolean);
  execute(args: any, context?: any, extra?: any): Promise<string | ToolResult>;
  // The frameworks have different types for these two under the same names.
  inputExamples?: any[];
  toModelOutput?(...args: any[]): any;
}

/** A schema object that brings its own parser: Zod 3, Zod 4 or any Standard Schema. */
export type ParserSchema =
  | { readonly _output: unknown; safeParse(value: unknown): unknown }
  | {
      readonly "~standard": {
        readonly version: 1;
        readonly types?: { readonly output: unknown } | undefined;
      };
    };

/** What a ParserSchema gives to `execute`. */
export type ParsedBy<Schema> = Schema extends { readonly _output: infer Output }
  ? Output
  : Schema extends {
        readonly "~standard": { readonly types?: { readonly output: infer Output } | undefined };
      }
    ? Output
    : any;

interface ToolBasics<Args, Parameters> extends ToolOptions {
  /** 1 to 64 letters, digits, `_` or `-`. */
  name: string;
  description: string;
  parameters: Parameters;
  execute(args: Args, context?: any, extra?: any): Promise<string | ToolResult>;
}

export type ToolConfig = ToolBasics<any, any>;

/**
 * Makes a tool of a Zod or Standard Schema object, which the framework then checks arguments with. The
 * object is passed on unchanged. Throws on unknown or wrong options.
 */
export function defineTool<Schema extends ParserSchema>(
  config: ToolBasics<ParsedBy<Schema>, Schema>,
): ToolDef<Schema>;
/**
 * Makes a tool of a plain JSON Schema (root type "object"; the usual keywords, no references and no
 * unions), which the tool checks its arguments with, also inside `execute`.
 */
export function defineTool<Args extends object = Record<string, any>>(
  config: ToolBasics<Args, { type: "object"; properties?: Record<string, any>; [keyword: string]: unknown }>,
): ToolDef<ToolSchema<Args>>;

/** Arguments of the tools, after the check. */
export interface SandboxToolArgs {
  code?: string;
  command?: string;
  language?: SandboxLanguage;
  path?: string;
  contents?: string;
  encoding?: FileEncoding;
  timeoutSeconds?: number;
  /** Of read_file with `range`: lines. */
  offset?: number;
  limit?: number;
  oldText?: string;
  newText?: string;
  replaceAll?: boolean;
}

/**
 * One of a sandbox's tools.
 *
 * `execute` checks the arguments again, with the same rules as `parameters.safeParse`: unknown members
 * are dropped, null is absent, a number may be written as text, and a `timeoutSeconds` above 3600 is
 * cut to 3600. Everything else is refused in words. It resolves with text for the model: JSON of the
 * result (run, shell), "ok" (write_file, edit_file), the content or "[file not found]" (read_file), a line for each file
 * (list_files); never more than `maxToolOutputChars` characters. It rejects
 * with an error whose message says what failed, whether anything may have run and whether a repeat is
 * safe; or with the signal's reason.
 */
export interface SandboxTool {
  /** Same as `name`. */
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly parameters: ToolSchema;
  /** Same object as `parameters`. */
  readonly inputSchema: ToolSchema;
  /** A plain copy of `parameters`, without the functions. */
  readonly rawJsonSchema: Record<string, any>;
  /** Opts out of Agentium's function sandboxing, which would lose what `execute` closes over. */
  readonly sandbox: false;
  readonly effect: ToolEffect;
  execute(args: SandboxToolArgs, context?: ToolCallContext, extra?: ToolCallContext): Promise<string>;
}

/** The four tools of a sandbox: `sandbox_<name>_run`, `_shell`, `_write_file` and `_read_file`. */
export type SandboxTools = [
  run: SandboxTool,
  shell: SandboxTool,
  writeFile: SandboxTool,
  readFile: SandboxTool,
];

/** What a sandbox's tools are called, behind `sandbox_<name>_`; in the order of getTools(). */
export type SandboxToolRole = "run" | "shell" | "write_file" | "read_file" | "list_files" | "edit_file";

/** Which tools a model is given, and how much of a result it sees. */
export interface SandboxToolOptions {
  /** Most characters of a result; what is longer keeps head and tail. 50000 when left out; 1000 or more, or Infinity. */
  maxToolOutputChars?: number | undefined;
  /** Only tools that change nothing: read_file with `range`, and list_files where the sandbox can list. */
  readOnly?: boolean | undefined;
  /**
   * false leaves a tool out, true adds one: list_files and edit_file are off unless named. `read_file: { range: true }`
   * gives that tool `offset` and `limit`, in lines; it has them anyway where no command can be run.
   */
  tools?:
    | {
        run?: boolean | undefined;
        shell?: boolean | undefined;
        write_file?: boolean | undefined;
        read_file?: boolean | { range?: boolean | undefined } | undefined;
        list_files?: boolean | undefined;
        edit_file?: boolean | undefined;
      }
    | undefined;
  /** What a tool says of itself: a text, or a function of ours. */
  describe?: { [Role in SandboxToolRole]?: string | ((text: string) => string) | undefined } | undefined;
}

/** The four tools; with options that change which there are, a list of no known length. */
export type SandboxToolsOf<Options> = Options extends { tools: object } | { readOnly: true | boolean }
  ? SandboxTool[]
  : SandboxTools;

// ---- providers by name ----------------------------------------------------------------------------

/** The options that createSandbox() takes for the built-in names, and what it makes. */
export interface SandboxProviders {
  local: { options: LocalSandboxOptions; sandbox: LocalSandbox };
  "unix-local": { options: LocalSandboxOptions; sandbox: LocalSandbox };
  "isolated-local": { options: LocalSandboxOptions; sandbox: LocalSandbox };
  e2b: { options: E2BSandboxOptions; sandbox: E2BSandbox };
  daytona: { options: DaytonaSandboxOptions; sandbox: DaytonaSandbox };
  docker: { options: DockerSandboxOptions; sandbox: DockerSandbox };
  http: { options: HttpSandboxOptions; sandbox: HttpSandbox };
  vercel: { options: VercelSandboxOptions; sandbox: VercelSandbox };
  agentcore: { options: AgentCoreSandboxOptions; sandbox: AgentCoreSandbox };
  modal: { options: ModalSandboxOptions; sandbox: ModalSandbox };
}

/**
 * A new sandbox of the provider with this name, as its class would make it. Throws when there is no such provider, and
 * when what a factory has made lacks a member of a CloudSandbox; the message names the member.
 */
export function createSandbox<Name extends keyof SandboxProviders>(
  name: Name,
  options?: SandboxProviders[Name]["options"],
): SandboxProviders[Name]["sandbox"];
export function createSandbox(name: string, options?: object): CloudSandbox;

/**
 * Makes a provider of your own known to createSandbox(), for this thread. `name`: 1 to 45 characters a-z, 0-9, `_`, `-`,
 * of which none is registered yet. `factory` is called with the options by each createSandbox(), and returns the
 * sandbox at once; what takes time belongs to its start().
 */
export function registerSandboxProvider(name: string, factory: (options: any) => CloudSandbox): void;

/** The names that createSandbox() takes, the built-in ones first. */
export function listSandboxProviders(): string[];

// ---- toolkits -------------------------------------------------------------------------------------

export abstract class Toolkit {
  abstract readonly name: string;
  abstract getTools(): ToolDef[];
}

/**
 * The tools of one sandbox: `sandbox_<name>_run`, `_shell`, `_write_file` and `_read_file`, and what the options add. Nothing
 * is created before the first call; close it when the work is done. Use one per session: whoever
 * shares a sandbox shares its files.
 */
export class SandboxToolkit<
  Sandbox extends CloudSandbox = CloudSandbox,
  Options extends SandboxToolOptions = {},
> extends Toolkit {
  /**
   * `name`: 1 to 45 characters a-z, 0-9, `_`, `-`; default: the sandbox's `providerId`, "local" for a
   * LocalSandbox and "workspace" for a SandboxAgent. Throws when the sandbox lacks a member of the port.
   */
  constructor(sandbox: Sandbox, options?: { name?: string | undefined } & Options);
  /** "sandbox-" and the name. */
  get name(): string;
  /** New objects each time, over the same sandbox; in this order. */
  getTools(): SandboxToolsOf<Options>;
  getSandbox(): Sandbox;
  /** Closes the sandbox; the options are passed on to it. */
  close(options?: SandboxCloseOptions): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The four `sandbox_local_*` tools of a new LocalSandbox. **Not isolated** with isolation: "none", see LocalSandbox. */
export class LocalSandboxToolkit<Options extends SandboxToolOptions = {}> extends SandboxToolkit<LocalSandbox, Options> {
  constructor(options?: LocalSandboxOptions, tools?: Options);
}

/** The four `sandbox_daytona_*` tools of a new DaytonaSandbox. */
export class DaytonaSandboxToolkit<Options extends SandboxToolOptions = {}> extends SandboxToolkit<DaytonaSandbox, Options> {
  constructor(options?: DaytonaSandboxOptions, tools?: Options);
}

/** The four `sandbox_agentcore_*` tools of a new AgentCoreSandbox. */
export class AgentCoreSandboxToolkit<Options extends SandboxToolOptions = {}> extends SandboxToolkit<AgentCoreSandbox, Options> {
  constructor(options?: AgentCoreSandboxOptions, tools?: Options);
}

/** The four `sandbox_modal_*` tools of a new ModalSandbox. */
export class ModalSandboxToolkit<Options extends SandboxToolOptions = {}> extends SandboxToolkit<ModalSandbox, Options> {
  constructor(options?: ModalSandboxOptions, tools?: Options);
}

/** The four `sandbox_vercel_*` tools of a new VercelSandbox. */
export class VercelSandboxToolkit<Options extends SandboxToolOptions = {}> extends SandboxToolkit<VercelSandbox, Options> {
  constructor(options?: VercelSandboxOptions, tools?: Options);
}

/** The four `sandbox_e2b_*` tools of a new E2BSandbox. */
export class E2BSandboxToolkit<Options extends SandboxToolOptions = {}> extends SandboxToolkit<E2BSandbox, Options> {
  constructor(options?: E2BSandboxOptions, tools?: Options);
}

/** The four `sandbox_docker_*` tools of a new DockerSandbox. */
export class DockerSandboxToolkit<Options extends SandboxToolOptions = {}> extends SandboxToolkit<DockerSandbox, Options> {
  constructor(options?: DockerSandboxOptions, tools?: Options);
}

/** The four `sandbox_http_*` tools of a new HttpSandbox. */
export class HttpSandboxToolkit<Options extends SandboxToolOptions = {}> extends SandboxToolkit<HttpSandbox, Options> {
  constructor(options?: HttpSandboxOptions, tools?: Options);
}

/** All tools of some toolkits by name; of two with the same name the later one. */
export function collectToolkitTools<Tool extends { name: string }>(
  toolkits: Iterable<{ getTools(): Tool[] }>,
): Record<string, Tool>;

/** Name, description and parameter names of every tool. */
export function describeToolLibrary(
  library: Record<string, { name: string; description: string; parameters?: any }>,
): { name: string; description: string; parameters: string[] }[];

// ---- SandboxAgent ---------------------------------------------------------------------------------

export type SandboxBackend = "isolated-local" | "unix-local" | "docker" | "remote";

export interface WorkspaceFile {
  path: string;
  contents: string;
  /** Default "utf8". */
  encoding?: FileEncoding | undefined;
}

export interface WorkspaceManifest {
  /** Written in this order by start(). */
  files?: readonly WorkspaceFile[] | undefined;
  /**
   * Cloned after the files, in this order, each within 30 seconds. Not on "remote"; into a sandbox that
   * has no network, or no git, a clone that was made on this machine is copied. With a `ref` (a branch, a tag or a
   * commit) the clone stands at that commit, on no branch.
   */
  gitClones?: readonly { repo: string; path: string; ref?: string | undefined }[] | undefined;
  /** Variables of every command. */
  env?: Record<string, string> | undefined;
}

/** Plain JSON: can be stored and given to resume() later. It has no modes: no file of it is executable. */
export interface WorkspaceSnapshot {
  /** Milliseconds since 1970. */
  takenAt: number;
  files: WorkspaceFile[];
  env: Record<string, string>;
}

export interface LocalAgentConfig {
  /** This machine, **not isolated**. There is no default backend and no fallback. */
  backend: "unix-local";
  /** What the workspace may do; on this machine hardly anything can be kept, and the rest is refused. */
  manifest?: SandboxManifest | undefined;
  workspace?: WorkspaceManifest | undefined;
  /** Over all its lives; `start()` and `resume()` are no commands. */
  budget?: SandboxBudget | undefined;
  /** Names of this process's variables to pass on. */
  inheritEnv?: readonly string[] | undefined;
  /** Bytes of output to keep per command; 1 or more, default 1048576. */
  maxOutputBytes?: number | undefined;
  remote?: undefined;
  docker?: undefined;
  isolated?: undefined;
}

export interface IsolatedAgentConfig {
  /** This machine, isolated; Linux. Each resume() makes a new sandbox. See docs/isolation.md. */
  backend: "isolated-local";
  /** Options of the LocalSandbox, but for `isolation`. */
  isolated?: Omit<LocalSandboxOptions, "isolation" | "trusted"> | undefined;
  /** What the sandbox may do. */
  manifest?: SandboxManifest | undefined;
  workspace?: WorkspaceManifest | undefined;
  /** Over all its lives; `start()` and `resume()` are no commands. */
  budget?: SandboxBudget | undefined;
  remote?: undefined;
  docker?: undefined;
  inheritEnv?: undefined;
  maxOutputBytes?: undefined;
}

export interface DockerAgentConfig {
  /** A container of the agent's own; each resume() makes a new one. */
  backend: "docker";
  /** Options of the DockerSandbox. */
  docker?: DockerSandboxOptions | undefined;
  /** What the container is to be made of and what it may do. `workspace` says what is put into it. */
  manifest?: SandboxManifest | undefined;
  workspace?: WorkspaceManifest | undefined;
  /** Over all its lives; `start()` and `resume()` are no commands. */
  budget?: SandboxBudget | undefined;
  remote?: undefined;
  isolated?: undefined;
  inheritEnv?: undefined;
  maxOutputBytes?: undefined;
}

export interface RemoteAgentConfig {
  backend: "remote";
  /** The sandbox to work in; it has its own options. The agent closes it, see SandboxAgent. */
  remote: CloudSandbox;
  workspace?: WorkspaceManifest | undefined;
  /** Over all its lives; `start()` and `resume()` are no commands. */
  budget?: SandboxBudget | undefined;
  /** Goes to the constructor of `remote`. */
  manifest?: undefined;
  docker?: undefined;
  inheritEnv?: undefined;
  maxOutputBytes?: undefined;
  isolated?: undefined;
}

export type SandboxAgentConfig = IsolatedAgentConfig | LocalAgentConfig | DockerAgentConfig | RemoteAgentConfig;

export interface SandboxSnapshotOptions extends SandboxCallOptions {
  /**
   * What is left out, in the syntax of a .gitignore file: a name of files or folders wherever they are ("node_modules",
   * "*.pyc"), or a path from the workspace on ("build/out"); the last pattern that fits decides ("!keep.pyc").
   */
  exclude?: string[] | undefined;
}

/**
 * A workspace with files, variables and a life: start, use, snapshot, resume, close. It holds no model.
 * It has the members of a CloudSandbox, so a SandboxToolkit can be made of it: call start() yourself, for
 * a tool never does.
 *
 * - "unix-local" works in a new directory `cloudsandbox-*` under the system's temporary directory, with
 *   the rights of this process: **it is not isolation**. Default language is "node". `timeoutSeconds`
 *   may be up to 2147483. A call that is aborted, or running at close(), *resolves* with
 *   `cancelled: true` and exit code 130 after its process tree was ended. The exit code after a death
 *   by a signal, whichever it was, is 137. A path that leaves the workspace, also through a link,
 *   rejects with PathSecurityError.
 * - "isolated-local" works in an isolated LocalSandbox of its own; files, clones and snapshots as on "unix-local",
 *   everything else as in a LocalSandbox.
 * - "docker" works in a container of its own; files, clones and snapshots as on "unix-local", everything else as in a
 *   DockerSandbox.
 * - "remote" passes every call on, with the workspace's variables added. It owns the object it was
 *   given: close() closes it, and so does a start that fails. When several agents were started on one
 *   object, the last one to close does.
 * - When a call rejects with ERR_SANDBOX_LOST, the next one writes the workspace's files (and makes its
 *   clones) again before it runs. What else was in the sandbox is gone.
 */
export class SandboxAgent {
  /** Throws on an unknown backend, on "remote" without `remote`, and on everything of a wrong shape. */
  constructor(config: SandboxAgentConfig);
  get kind(): "sandbox-agent";
  /** "sandbox-agent-" and the provider's id, such as "sandbox-agent-unix-local". */
  get providerId(): string;
  get ready(): boolean;
  /**
   * Creates the workspace. A start that fails removes what it made and may be called again. A `signal` ends
   * the wait; close() ends the start.
   */
  start(options?: SandboxCallOptions): Promise<void>;
  /** "unix-local" takes `maxBytes`; with "remote" it is up to the sandbox. */
  readFile(path: string, encoding?: FileEncoding, options?: SandboxReadOptions): Promise<string | null>;
  /**
   * All regular files (links and empty folders left out, modes lost), base64, at most 1000 files and
   * 16 MiB; what `exclude` names does not count. Not with "remote". Take it while nothing runs: files are read
   * one after another.
   */
  snapshot(options?: SandboxSnapshotOptions): Promise<WorkspaceSnapshot>;
  /**
   * Closes the current workspace, if any, and starts a new one with the snapshot's files and variables; where it
   * names none, the variables stay. A snapshot of the wrong shape is refused before anything is closed. A
   * `signal` ends the wait, not the rest.
   */
  resume(
    snapshot: Pick<WorkspaceSnapshot, "files"> & Partial<WorkspaceSnapshot>,
    options?: SandboxCallOptions,
  ): Promise<void>;
  /**
   * Ends what runs, a start too, and removes the workspace; with "remote", closes that sandbox with these
   * options. When that fails it rejects, and may be called again.
   */
  close(options?: SandboxCloseOptions): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}
// Its other members are the port's.
export interface SandboxAgent extends CloudSandbox {}

// Only what says `export` is public.
export {};
