// Files as web streams, part by part: readStream() and writeStream() of a sandbox. Loaded by the first of them.
//
// Invariant: no more than two parts of a file are in memory at a time, whatever its size; a part is asked for when there is
// room for it, and one that has failed is the stream's end.
import { SandboxError, atSite } from "./errors.js";
import { bytesOf, invalid, kindOf, plainBytes } from "./options.js";

const { randomBytes } = process.getBuiltinModule("node:crypto");

/** @import { NativePart } from "./native.js" */

/** Bytes of the first part, and of a later one. A part costs a remote sandbox a request or two. */
const FIRST_BYTES = 1024 * 1024;
const PART_BYTES = 4 * FIRST_BYTES;
const MORE = 0;
const LAST = 1;
const DROP = 2;
const NOTHING = new Uint8Array(0);

/**
 * @typedef {object} Limits
 * @property {number | undefined} maxBytes
 * @property {string} providerId
 * @property {{ stack?: string }} site of the call that has made the stream
 */

/** @param {Limits} limits */
function tooLarge({ maxBytes, providerId, site }) {
  const message = `the file has more than ${maxBytes} bytes; pass a larger \`maxBytes\``;
  return atSite(new SandboxError(message, { code: "ERR_SANDBOX_TOO_LARGE", provider: providerId, retryable: false, mayHaveRun: false }), site);
}

/** How long the part at `offset` may be: each begins at a multiple of it, where sandboxes find it fastest. @param {number} offset */
function mostAt(offset) {
  return Math.min(PART_BYTES, Math.max(FIRST_BYTES, offset));
}

/**
 * @param {(offset: number, most: number, stamp: string) => Promise<NativePart | null>} read
 * @param {Limits} limits
 * @param {Stop} stop
 * @returns {Promise<ReadableStream<Uint8Array> | null>} null: there is no such file
 */
export async function readable(read, limits, stop) {
  const { maxBytes = Infinity } = limits;
  /** @type {NativePart | undefined | null} */
  let next = await failing(stop, read(0, FIRST_BYTES, ""));
  if (next === null) {
    stop.end();
    return null;
  }
  const { stamp, size } = next;
  let offset = 0;
  const over = () => {
    stop.end();
    return tooLarge(limits);
  };
  if (size > maxBytes) throw over();
  return new ReadableStream({
    async pull(controller) {
      const part = next ?? (await failing(stop, read(offset, mostAt(offset), stamp)));
      next = undefined;
      if (part === null) return;
      offset += part.bytes.length;
      if (offset > maxBytes) throw over();
      if (part.bytes.length > 0) controller.enqueue(plainBytes(part.bytes));
      if (!part.last) return;
      stop.end();
      controller.close();
    },
    cancel(reason) {
      next = undefined;
      stop.now(reason);
    },
  });
}

/**
 * @param {(token: string, offset: number, bytes: Uint8Array, step: 0 | 1 | 2, signal?: AbortSignal) => Promise<void>} write
 * @param {Limits} limits
 * @param {Stop} stop
 * @returns {WritableStream<Uint8Array | string>}
 */
export function writable(write, limits, stop) {
  const { maxBytes = Infinity } = limits;
  const token = randomBytes(16).toString("hex");
  let buffer = NOTHING;
  let length = 0;
  let offset = 0;
  /** Whether something may lie beside the path. */
  let begun = false;
  /** Whether something is being written; what ends it drops the rest. */
  let busy = false;
  /** What was written goes away, with its sandbox when that is gone. When that fails it stays, hidden. @param {any} [error] */
  const drop = async (error) => {
    stop.end();
    buffer = NOTHING;
    if (!begun || error?.code === "ERR_SANDBOX_LOST" || error?.code === "ERR_SANDBOX_CLOSED") return;
    begun = false;
    await write(token, 0, NOTHING, DROP).catch(() => {});
  };
  /** @param {0 | 1} step */
  const send = async (step) => {
    begun ||= step === MORE;
    await write(token, offset, buffer.subarray(0, length), step, stop.signal);
    offset += length;
    length = 0;
  };
  /** @param {() => Promise<void>} work */
  const orDrop = async (work) => {
    try {
      busy = true;
      await work();
      busy = false;
    } catch (error) {
      await drop(error);
      throw error;
    }
  };
  return new WritableStream({
    start(controller) {
      // An abort waits for what is in flight, which ends early.
      const { signal } = /** @type {{ signal: AbortSignal }} */ (/** @type {unknown} */ (controller));
      signal.addEventListener("abort", () => stop.now(signal.reason));
      stop.signal.addEventListener("abort", () => {
        if (signal.aborted) return;
        controller.error(stop.signal.reason);
        if (!busy) drop();
      });
    },
    write: (chunk) =>
      orDrop(async () => {
        const bytes = typeof chunk === "string" ? Buffer.from(chunk) : bytesOf(chunk);
        if (!bytes) throw invalid(`writeStream: each chunk must be a Uint8Array or a string, not ${kindOf(chunk)}`);
        if (offset + length + bytes.length > maxBytes) throw tooLarge(limits);
        for (let at = 0; at < bytes.length; ) {
          // Sent before there is more, so that what comes with the last part is never nothing.
          if (length === mostAt(offset)) await send(MORE);
          const some = bytes.subarray(at, at + mostAt(offset) - length);
          buffer = roomFor(buffer, length, some.length);
          buffer.set(some, length);
          length += some.length;
          at += some.length;
        }
      }),
    close: () =>
      orDrop(async () => {
        await send(LAST);
        stop.end();
        buffer = NOTHING;
      }),
    abort: drop,
  });
}

/**
 * @param {Uint8Array<ArrayBuffer>} buffer
 * @param {number} length of it in use
 * @param {number} more
 */
function roomFor(buffer, length, more) {
  if (buffer.length >= length + more) return buffer;
  const larger = new Uint8Array(Math.min(PART_BYTES, Math.max(64 * 1024, 2 * (length + more))));
  larger.set(buffer.subarray(0, length));
  return larger;
}

/**
 * Ends the waiting when the promise rejects.
 *
 * @template T
 * @param {Stop} stop
 * @param {Promise<T>} promise
 */
async function failing(stop, promise) {
  try {
    return await promise;
  } catch (error) {
    stop.end();
    throw error;
  }
}

/** What ends the call that a stream has in flight: the user's signal, or the stream's own cancel or abort. */
export class Stop {
  #own = new AbortController();
  /** @type {() => void} */
  #unwatch = () => {};

  /**
   * @param {AbortSignal | undefined} signal
   * @param {(signal: AbortSignal, cancel: () => void) => () => void} watch
   */
  constructor(signal, watch) {
    if (signal?.aborted) this.now(signal.reason);
    else if (signal) this.#unwatch = watch(signal, () => this.now(signal.reason));
  }

  get signal() {
    return this.#own.signal;
  }

  /** @param {unknown} reason */
  now(reason) {
    this.end();
    this.#own.abort(reason);
  }

  /** The stream is over: the user's signal is let go. */
  end() {
    this.#unwatch();
    this.#unwatch = () => {};
  }
}
