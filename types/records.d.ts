// Types of "cloudsandbox/records".

/** The names of the types; each has a channel of `node:diagnostics_channel`, "cloudsandbox:" and its name. */
export type SandboxRecordType =
  | "created"
  | "started"
  | "failed"
  | "seeded"
  | "exec"
  | "file"
  | "timedOut"
  | "killed"
  | "control"
  | "refused"
  | "lost"
  | "deleted";

export const RECORD_TYPES: readonly SandboxRecordType[];

/** What is told of an error: its code, never its words. */
export interface RecordError {
  /** A code of SandboxError; "aborted" by a signal; "other" is what a callback of yours threw. */
  code: string;
  status?: number;
  mayHaveRun?: true;
}

interface RecordBasics {
  /** When, in milliseconds since 1970. */
  at: number;
  /** Which object, unique over processes. */
  instanceId: string;
  /** Its providerId. */
  provider: string;
  /** The provider's id of the sandbox; null before there is one. */
  sandboxId: string | null;
}

/** A call of that object; the records of one call have one number. */
interface RecordOfCall extends RecordBasics {
  callId: number;
  /** The tool that it was made for, and the id that the agent's framework has given to that call. */
  tool?: string;
  toolCallId?: string;
}

/** The provider has made a sandbox. One that was named in the options is only "started". */
export interface CreatedRecord extends RecordBasics {
  type: "created";
}

/** Calls can run in it. */
export interface StartedRecord extends RecordBasics {
  type: "started";
  durationMs: number;
  /** It had stopped, and has its files. */
  again?: true;
  /** It was there already. */
  attached?: true;
}

export interface FailedRecord extends RecordBasics {
  type: "failed";
  what: "start" | "delete";
  durationMs: number;
  error: RecordError;
}

/** A workspace's files are in place. */
export interface SeededRecord extends RecordBasics {
  type: "seeded";
  files: number;
  bytes: number;
  /** Repositories that were cloned. */
  clones?: number;
  durationMs: number;
}

export interface ExecBeginRecord extends RecordOfCall {
  type: "exec";
  phase: "begin";
  kind: "command" | "code" | "argv";
  language?: "python" | "node";
  /** Bytes of the command or the code. */
  commandBytes: number;
  stdinBytes?: number;
  /** Left out: the sandbox's own. null: none. */
  timeoutMs?: number | null;
}

export interface ExecEndRecord extends RecordOfCall {
  type: "exec";
  phase: "end";
  /** What became of the process; "aborted" and "failed" when the call rejected. */
  status: "exited" | "signalled" | "timedOut" | "cancelled" | "aborted" | "failed";
  exitCode?: number;
  signal?: string;
  /** The command's own time. */
  durationMs?: number;
  /** That of the call, with a start that it waited for. */
  totalMs: number;
  /** What it wrote, kept or not. */
  outputBytes?: number;
  stdoutBytes?: number;
  stderrBytes?: number;
  truncated?: boolean;
  /** Of `outputBytes`, those that were not kept. */
  droppedBytes?: number;
  termination?: "confirmed" | "requested" | "unknown";
  backgroundRunning?: true;
  backgroundKilled?: true;
  oomKilled?: true;
  outputExceeded?: true;
  error?: RecordError;
}

export interface FileRecord extends RecordOfCall {
  type: "file";
  /** A stream is a readPart or a writePart for each of its parts. */
  operation: "write" | "read" | "list" | "stat" | "listDirectory" | "delete" | "move" | "mkdir" | "readPart" | "writePart";
  /** Of a move: the old one. */
  path?: string;
  bytes?: number;
  /** Of a read, a readPart, a stat and a delete. */
  found?: boolean;
  /** Of a list and a listDirectory. */
  entries?: number;
  durationMs: number;
  error?: RecordError;
}

export interface TimedOutRecord extends RecordOfCall {
  type: "timedOut";
  timeoutMs?: number | null;
  durationMs: number;
  termination?: "confirmed" | "requested" | "unknown";
}

/** Processes were ended. */
export interface KilledRecord extends RecordOfCall {
  type: "killed";
  reason: "timeout" | "cancel" | "memory" | "output";
  termination?: "confirmed" | "requested" | "unknown";
}

export interface ControlRecord extends RecordOfCall {
  type: "control";
  action: "lifetime" | "pause" | "resume";
  seconds?: number;
  durationMs: number;
  error?: RecordError;
}

/** A budget was spent; nothing was sent. */
export interface RefusedRecord extends RecordBasics {
  type: "refused";
  reason: "budget";
  spent: "commands" | "sandboxSeconds";
}

/** It is gone with its files. */
export interface LostRecord extends RecordBasics {
  type: "lost";
}

export interface DeletedRecord extends RecordBasics {
  type: "deleted";
  durationMs: number;
}

export type SandboxRecord =
  | CreatedRecord
  | StartedRecord
  | FailedRecord
  | SeededRecord
  | ExecBeginRecord
  | ExecEndRecord
  | FileRecord
  | TimedOutRecord
  | KilledRecord
  | ControlRecord
  | RefusedRecord
  | LostRecord
  | DeletedRecord;

/** First line of each recording in a file. */
export interface RecordingRecord {
  type: "recording";
  at: number;
  format: number;
  pid: number;
}

/** As in a file: contents only where they were asked for. */
export type WrittenRecord =
  | RecordingRecord
  | (SandboxRecord & { command?: string; commandCut?: true; output?: string; outputCut?: true });

export interface RecordToOptions {
  /** Also keep that much of each command or code, which may hold secrets. 0 when left out, at most 1048576. */
  commandBytes?: number | undefined;
  /** Also keep that much of each output, which may hold secrets. 0 when left out, at most 1048576. */
  outputBytes?: number | undefined;
  /** Called with each command and each output before it is cut; what it returns is written. */
  redact?: ((text: string) => string) | undefined;
}

export interface Recording {
  readonly file: string;
  /** Records in the file that are of this recording. */
  readonly written: number;
  /** Those that could not be written; of the first one the process is warned. */
  readonly missed: number;
  /** Ends it. May be called again. */
  stop(): void;
}

/** Calls `listener` with every record of this thread, as it happens, until the returned function is called. */
export function onRecord(listener: (record: SandboxRecord) => void): () => void;

/** Appends every record of this thread to a file, as lines of JSON. Throws when the file cannot be opened. */
export function recordTo(file: string, options?: RecordToOptions): Recording;

/** What is in such a file. Lines that a crash has cut short are left out and counted. */
export function readRecords(file: string): Promise<{ records: WrittenRecord[]; damaged: number }>;
