// Records of what happens to sandboxes: plain objects on Node's diagnostics channels, one channel for each
// type, "cloudsandbox:exec" and so on. Loaded once somebody listens.
//
// Invariant: no record holds what was run, what was written or read, or what was printed; of an error it has
// the code. Who keeps contents by choice gets them from contentsOf(), and only while askForContents() holds.
import { detailsOf } from "./errors.js";
import { RECORD_TYPES, isRecorded, useEvents } from "./recording.js";

const { channel } = process.getBuiltinModule("node:diagnostics_channel");
const { AsyncLocalStorage } = process.getBuiltinModule("node:async_hooks");
const { randomBytes } = process.getBuiltinModule("node:crypto");

/** @import { NativeKept, NativeListing, NativeResult, NativeStats, NativeSpec } from "./native.js" */
/** @import { RecordError, SandboxRecord, SandboxRecordType } from "../types/records.js" */
/** @typedef {{ providerId: string, sandboxId?: string | null }} Instance an object with the port; only ours has a sandboxId */
/** @typedef {{ command?: string, output?: string }} Contents */
/** What is done to files, and not to their sandbox. */
const FILE_ACTIONS = new Set(["write", "read", "list", "stat", "listDirectory", "delete", "move", "mkdir", "readPart", "writePart"]);
/** @typedef {"exec" | "write" | "read" | "list" | "stat" | "listDirectory" | "delete" | "move" | "mkdir" | "readPart" | "writePart" | "lifetime" | "pause" | "resume"} Action */

const channels = new Map(RECORD_TYPES.map((type) => [type, channel(`cloudsandbox:${type}`)]));

/** Tells the objects of this process from those of others, which may write to the same file. */
const PROCESS = randomBytes(6).toString("hex");
let objects = 0;
/** @type {WeakMap<Instance, string>} */
const instances = new WeakMap();

/** @param {Instance} instance */
function idOf(instance) {
  let id = instances.get(instance);
  if (id === undefined) instances.set(instance, (id = `${PROCESS}-${++objects}`));
  return id;
}

/**
 * Publishes a record. Members that are undefined are left out.
 *
 * @param {SandboxRecordType} type
 * @param {Instance} instance
 * @param {string | null | undefined} sandboxId
 * @param {Record<string, unknown>} members
 * @param {() => Contents} [contents]
 */
function publish(type, instance, sandboxId, members, contents) {
  const to = channels.get(type);
  if (!to?.hasSubscribers) return;
  /** @type {Record<string, unknown>} */
  const record = { type, at: Date.now(), instanceId: idOf(instance), provider: instance.providerId, sandboxId: sandboxId ?? null };
  for (const [name, value] of Object.entries(members)) {
    if (value !== undefined) record[name] = value;
  }
  if (contents && wanted > 0) kept.set(record, contents);
  to.publish(record);
}

// ---- contents, for who keeps them by choice --------------------------------------------------------

/** How many ask for contents. */
let wanted = 0;
/** @type {WeakMap<object, () => Contents>} */
const kept = new WeakMap();

/** @returns {() => void} ends it */
export function askForContents() {
  wanted += 1;
  return () => {
    wanted -= 1;
  };
}

/** What was run, or printed, of a record of "exec"; while its listeners are called. @param {SandboxRecord} record */
export function contentsOf(record) {
  return kept.get(record)?.();
}

// ---- calls ------------------------------------------------------------------------------------------

/** The tool that a call was made for. @type {import("node:async_hooks").AsyncLocalStorage<{ tool: string, toolCallId?: string }>} */
const tools = new AsyncLocalStorage();

/**
 * Runs what a tool does; the records of its calls name it.
 *
 * @template T
 * @param {{ tool: string, toolCallId?: string }} tool
 * @param {() => T} run
 * @returns {T}
 */
function inTool(tool, run) {
  return tools.run(tool, run);
}

/** One call of a sandbox: its records are published as it begins and ends. */
class Recorded {
  #instance;
  #callId;
  #action;
  #detail;
  #size;
  #sandboxId;
  #tool = tools.getStore();
  #began = performance.now();

  /**
   * @param {Instance} instance
   * @param {number} callId
   * @param {Action} action
   * @param {any} detail the spec of an exec, else a path
   * @param {number | undefined} size bytes of a write, seconds of a lifetime
   */
  constructor(instance, callId, action, detail, size) {
    this.#instance = instance;
    this.#callId = callId;
    this.#action = action;
    this.#detail = detail;
    this.#size = size;
    this.#sandboxId = instance.sandboxId;
    if (action === "exec") this.#publish("exec", { phase: "begin", ...whatRuns(detail) }, () => ({ command: commandOf(detail) }));
  }

  /** @param {any} result what the core gave */
  end(result) {
    switch (this.#action) {
      case "exec":
        return this.#endExec(result);
      case "write":
      case "writePart":
        return this.#endFile({ bytes: this.#size });
      case "read":
        return this.#endFile({ found: result !== null, bytes: result?.length ?? 0 });
      case "readPart":
        return this.#endFile({ found: result !== null, bytes: result?.bytes.length ?? 0 });
      case "list":
        return this.#endFile({ entries: /** @type {NativeListing} */ (result).sizes.length });
      case "stat":
        return this.#endFile({ found: result !== null });
      case "listDirectory":
        return this.#endFile({ entries: /** @type {NativeStats} */ (result).numbers.length / 4 });
      case "delete":
        return this.#endFile({ found: result });
      case "move":
      case "mkdir":
        return this.#endFile({});
      default:
        return this.#endControl({});
    }
  }

  /** @param {unknown} reason @param {boolean} aborted */
  fail(reason, aborted) {
    const error = aborted ? { code: "aborted" } : errorOf(reason);
    if (this.#action === "exec") {
      this.#publish("exec", { phase: "end", status: aborted ? "aborted" : "failed", totalMs: this.#ms, error });
    } else if (FILE_ACTIONS.has(this.#action)) {
      this.#endFile({ error });
    } else {
      this.#endControl({ error });
    }
  }

  get #ms() {
    return Math.round((performance.now() - this.#began) * 10) / 10;
  }

  /**
   * @param {SandboxRecordType} type
   * @param {Record<string, unknown>} members
   * @param {() => Contents} [contents]
   */
  #publish(type, members, contents) {
    // Of one that was lost meanwhile nothing is known any more.
    this.#sandboxId = this.#instance.sandboxId ?? this.#sandboxId;
    publish(type, this.#instance, this.#sandboxId, { callId: this.#callId, ...this.#tool, ...members }, contents);
  }

  /** @param {Record<string, unknown>} members */
  #endFile(members) {
    this.#publish("file", { operation: this.#action, path: this.#detail, durationMs: this.#ms, ...members });
  }

  /** @param {Record<string, unknown>} members */
  #endControl(members) {
    const seconds = this.#action === "pause" ? undefined : this.#size;
    this.#publish("control", { action: this.#action, seconds, durationMs: this.#ms, ...members });
  }

  /** @param {NativeResult} raw */
  #endExec(raw) {
    const { outcome, durationMs, termination } = raw;
    if (outcome === "timedOut") {
      const { timeoutMs } = this.#detail;
      this.#publish("timedOut", { timeoutMs: finite(timeoutMs), durationMs, termination });
    }
    if (termination !== undefined) {
      this.#publish("killed", { reason: outcome === "timedOut" ? "timeout" : "cancel", termination });
    } else if (raw.oomKilled) {
      this.#publish("killed", { reason: "memory" });
    } else if (raw.outputExceeded) {
      this.#publish("killed", { reason: "output" });
    }
    const sizes = [raw.output, raw.stdout, raw.stderr];
    const [outputBytes, stdoutBytes, stderrBytes] = sizes.map((one) => (one ? one.bytes.length + one.dropped : 0));
    const droppedBytes = raw.output?.dropped ?? 0;
    this.#publish(
      "exec",
      {
        phase: "end",
        status: outcome,
        exitCode: raw.exitCode,
        signal: raw.signal,
        durationMs,
        totalMs: this.#ms,
        outputBytes,
        // Streams that went through one pipe are not told apart.
        ...(!this.#detail.mergeStreams && { stdoutBytes, stderrBytes }),
        truncated: raw.outputLost ?? sizes.some((one) => one && one.dropped > 0),
        droppedBytes,
        termination,
        backgroundRunning: raw.backgroundRunning,
        backgroundKilled: raw.backgroundKilled,
        oomKilled: raw.oomKilled,
        outputExceeded: raw.outputExceeded,
      },
      () => ({ output: textOf(raw.output) }),
    );
  }
}

/**
 * The record of a call that begins; undefined when it has none.
 *
 * @param {Instance} instance
 * @param {number} callId
 * @param {Action | "start"} action
 * @param {any} detail
 * @param {number | undefined} size
 */
function begin(instance, callId, action, detail, size) {
  // What comes of a start is told by told().
  return action === "start" ? undefined : new Recorded(instance, callId, action, detail, size);
}

/** What kind of command it is, and how large; nothing of itself. @param {NativeSpec} spec */
function whatRuns({ kind, language, text, argv, stdin, timeoutMs }) {
  return {
    kind: kind === "shell" ? "command" : kind,
    language,
    commandBytes: argv ? argv.reduce((sum, word) => sum + Buffer.byteLength(word), 0) : Buffer.byteLength(text ?? ""),
    stdinBytes: stdin?.length,
    timeoutMs: finite(timeoutMs),
  };
}

/** @param {NativeSpec} spec */
function commandOf({ text, argv }) {
  return argv ? argv.map((word) => (/^[\w./:=@%+,-]+$/.test(word) ? word : JSON.stringify(word))).join(" ") : (text ?? "");
}

/** @param {NativeKept} [output] */
function textOf(output) {
  return output ? output.bytes.toString("utf8", 0, Math.min(output.bytes.length, output.tailAt)) : "";
}

/** No limit has no number in JSON. @param {number | undefined} ms */
function finite(ms) {
  return ms === Infinity ? null : ms;
}

/**
 * What is told of an error: its words may hold those of a service.
 *
 * @param {unknown} reason
 * @returns {RecordError}
 */
function errorOf(reason) {
  const details = detailsOf(reason);
  // What a callback of the user's threw.
  if (!details) return { code: "other" };
  const { code, status, mayHaveRun } = details;
  return { code, ...(status && { status }), ...(mayHaveRun && { mayHaveRun }) };
}

// ---- the life of a sandbox --------------------------------------------------------------------------

/**
 * What the core tells of the sandboxes of an object.
 *
 * @param {Instance} instance
 * @param {boolean} attached the sandbox was named by the user
 * @param {Record<string, any>} news
 */
function told(instance, attached, { event, id = null, owned, durationMs, again, what, code, status }) {
  switch (event) {
    case "created":
      if (!attached) publish("created", instance, id, {});
      break;
    case "started":
      publish("started", instance, id, { durationMs, again, attached: attached || !owned ? true : undefined });
      break;
    case "failed":
      publish("failed", instance, id, { what, durationMs, error: { code: `ERR_SANDBOX_${code}`, ...(status && { status }) } });
      break;
    default:
      publish(event, instance, id, { durationMs });
  }
}

useEvents({ begin, told, publish, inTool });

export { RECORD_TYPES, channels, isRecorded };
