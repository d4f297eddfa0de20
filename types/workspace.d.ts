// Types of "cloudsandbox/workspace".
import type {
  CallSignal,
  CloudSandbox,
  FileEncoding,
  LocalSandbox,
  SandboxCallOptions,
  SandboxCapabilities,
  SandboxCloseOptions,
  SandboxNetworkIsolation,
  SandboxReadOptions,
  SandboxRunOptions,
  SandboxRunResult,
  SandboxToolOptions,
  ToolDef,
} from "./index.js";

/** Patterns as in a .gitignore file: what is left out unless a later pattern takes it in again. Without regard to upper and lower case. */
export const DEFAULT_SEED_EXCLUDES: readonly string[];

/** A workspace's id for a run: always the same for the same run; at most 40 characters a-z, 0-9 and "-". */
export function workspaceIdForRun(runId: string): string;

/** What makes a workspace's sandbox; holds none, so that one serves many workspaces. */
export interface SandboxTemplate<T extends CloudSandbox = CloudSandbox> {
  /** Called once for each workspace, by its constructor; does no I/O. */
  buildForSession(workspaceId: string): T;
}

export interface WorkspaceLimits {
  maxFiles?: number | undefined;
  maxFileBytes?: number | undefined;
  /** Of all together. */
  maxBytes?: number | undefined;
}

export interface WorkspaceSyncOptions extends WorkspaceLimits {
  /** Default: `seedFrom`. */
  folder?: string | undefined;
  /** Before each command, what has changed in the folder goes into the sandbox. */
  up?: boolean | undefined;
  /** After each command, what it has made or changed comes into the folder. */
  down?: boolean | undefined;
}

export interface WorkspaceOptions<T extends CloudSandbox = CloudSandbox> {
  /** At most 40 characters a-z, 0-9 and "-", the first a letter. Default: a new one. */
  workspaceId?: string | undefined;
  /** A sandbox, which is closed with the workspace; a template; or the name of a provider. */
  backend: T | SandboxTemplate<T> | string;
  /** With a name: the options of that provider. */
  backendOptions?: object | undefined;
  /** From the start on, whatever happens; up to 604800, or Infinity. Default 3600. */
  ttlSeconds?: number | undefined;
  /** How long before its end "expiring" is emitted. Default: a tenth of the time to live, at most 60. */
  warnSeconds?: number | undefined;
  /** A folder of this machine, whose files are in the sandbox before anything runs. */
  seedFrom?: string | undefined;
  /** Patterns after those of DEFAULT_SEED_EXCLUDES: "dist/" leaves out more, "!.env.example" takes in again. */
  seedExcludes?: readonly string[] | undefined;
  onSeedProgress?: ((progress: WorkspaceProgress) => void) | undefined;
  /** At most 500 files, of 2 MiB each and 20 MiB together, unless it says otherwise. */
  sync?: WorkspaceSyncOptions | undefined;
}

/** How far a transfer is; what was skipped counts as done. */
export interface WorkspaceProgress {
  files: number;
  bytes: number;
  totalFiles: number;
  totalBytes: number;
}

/** What one transfer has done. */
export interface WorkspaceTransfer {
  /** How many were written. */
  files: number;
  bytes: number;
  /** Files that were the same on both sides. */
  unchanged: number;
  /** What was left out, and why; a folder that is left out stands for all that is in it. */
  skipped: { path: string; reason: string }[];
  durationMs: number;
}

/** What went to and fro around one command. */
export interface WorkspaceSync {
  up?: WorkspaceTransfer;
  down?: WorkspaceTransfer;
  /** Why nothing, or not all, came back. The command had run. */
  error?: Error;
}

export interface WorkspaceExportOptions extends WorkspaceLimits, SandboxCallOptions {
  /** Patterns after those of DEFAULT_SEED_EXCLUDES. */
  exclude?: readonly string[] | undefined;
}

export type WorkspaceMode = "read-only" | "read-write";

/** Not made with `new`: workspace.attach() gives one. */
declare abstract class Guest implements CloudSandbox {
  readonly mode: WorkspaceMode;
  readonly workspaceId: string;
  readonly providerId: string;
  readonly sandboxId: string | null;
  /** Of the workspace's sandbox, where it tells them. */
  readonly capabilities: SandboxCapabilities | undefined;
  readonly networkIsolation: SandboxNetworkIsolation | undefined;
  start(options?: SandboxCallOptions): Promise<void>;
  /** Read-only: rejects with ERR_SANDBOX_FORBIDDEN before anything is sent, as does all else that runs or changes something. */
  run(code: string, options?: SandboxRunOptions): Promise<SandboxRunResult>;
  shell(command: string, options?: SandboxRunOptions): Promise<SandboxRunResult>;
  /** This, and what is beyond CloudSandbox below: where the workspace's sandbox has it; else ERR_SANDBOX_UNSUPPORTED. */
  readonly exec: LocalSandbox["exec"];
  writeFile(path: string, contents: Uint8Array, encoding?: undefined, options?: SandboxCallOptions): Promise<void>;
  writeFile(path: string, contents: string, encoding?: FileEncoding, options?: SandboxCallOptions): Promise<void>;
  readFile(path: string, encoding?: FileEncoding, options?: SandboxReadOptions): Promise<string | null>;
  readBytes(path: string, options?: SandboxReadOptions): Promise<Uint8Array | null>;
  listFiles(options?: {
    maxEntries?: number | undefined;
    signal?: CallSignal | undefined;
  }): Promise<{ path: string; size: number }[]>;
  readonly stat: LocalSandbox["stat"];
  readonly listDirectory: LocalSandbox["listDirectory"];
  readonly deleteFile: LocalSandbox["deleteFile"];
  readonly moveFile: LocalSandbox["moveFile"];
  readonly mkdir: LocalSandbox["mkdir"];
  /** detach() ends this stream, and that of writeStream(), whose file then stays as it was. */
  readonly readStream: LocalSandbox["readStream"];
  readonly writeStream: LocalSandbox["writeStream"];
  /** The four tools of a sandbox; read-only: one that reads a file, and one that lists them. Options as those of a toolkit. */
  getTools(options?: SandboxToolOptions & { name?: string | undefined }): ToolDef[];
  /** Ends this guest's calls and refuses further ones. Its files, the sandbox and the other guests stay. */
  detach(): Promise<void>;
  /** The same as detach(). */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export type WorkspaceGuest = Guest;

interface WorkspaceEvents {
  /** `warnSeconds` before its end. */
  expiring: { expiresAt: Date; secondsLeft: number };
  /** Its time is over, and its sandbox is being closed. */
  expired: { closed: Promise<void> };
  /** With `sync`, after each command. */
  synced: WorkspaceSync;
}

/** One sandbox that several agents share, seeded from a folder, with an end. */
export class Workspace<T extends CloudSandbox = CloudSandbox> {
  /** No I/O: the sandbox is started by start(), or by a guest's first call. */
  constructor(options: WorkspaceOptions<T>);
  readonly workspaceId: string;
  /** The sandbox itself. Calls on it do not seed it, and nothing goes to and fro around them. */
  readonly sandbox: T;
  /** null before the start, and without an end. */
  readonly expiresAt: Date | null;
  /** Of the last seeding. */
  readonly seedResult: WorkspaceTransfer | undefined;
  /** Of the last command. */
  readonly lastSync: WorkspaceSync | undefined;
  start(options?: SandboxCallOptions): Promise<void>;
  /** "read-write" when left out. */
  attach(options?: { mode?: WorkspaceMode | undefined }): Guest;
  /** Moves the end; and the lifetime at the provider, where it can be set. */
  extend(seconds: number, options?: SandboxCallOptions): Promise<void>;
  /** At most 10000 files, of 256 MiB each and 1 GiB together, unless the options say otherwise. */
  exportTo(folder: string, options?: WorkspaceExportOptions): Promise<WorkspaceTransfer>;
  /** Ends it with its sandbox, and with all guests. May be called again when it rejects. */
  close(options?: SandboxCloseOptions): Promise<void>;
  on<E extends keyof WorkspaceEvents>(event: E, listener: (detail: WorkspaceEvents[E]) => void): this;
  once<E extends keyof WorkspaceEvents>(event: E, listener: (detail: WorkspaceEvents[E]) => void): this;
  off<E extends keyof WorkspaceEvents>(event: E, listener: (detail: WorkspaceEvents[E]) => void): this;
  [Symbol.asyncDispose](): Promise<void>;
}
