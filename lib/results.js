// What a call gives back: output as it comes and at its end, and entries of listings.
import { checkFunction, invalid, plainBytes } from "./options.js";
import { watch } from "./signals.js";

/** @import { NativeKept, NativeListener, NativeListing, NativeResult } from "./native.js" */
/** @import { ExecResult, ExecShownResult, SandboxFileInfo } from "../types/index.js" */

const { AsyncResource } = process.getBuiltinModule("node:async_hooks");

/** Entries of a listing that are made in one turn of the event loop: some milliseconds' worth. */
const ENTRIES_PER_TURN = 10_000;
/** What is at a path, by the native number. */
const FILE_TYPES = Object.freeze(/** @type {const} */ (["file", "directory", "link", "other"]));
/** @typedef {{ text: string, head: string, tail: string, dropped: number }} KeptParts dropped: bytes between head and tail */

/** Keeps a byte order mark, and turns what is not UTF-8 into U+FFFD. */
const TEXT = /** @type {const} */ ({ ignoreBOM: true });
export const DECODER = new TextDecoder("utf-8", TEXT);

/** @type {NativeKept} */
export const NOTHING = Object.freeze({ bytes: Buffer.alloc(0), dropped: 0, tailAt: 0 });

/**
 * @typedef {object} Listener
 * @property {NativeListener} onOutput for the core; never throws
 * @property {() => void} onFailure called once when a callback of the user threw or rejected
 * @property {(result: Promise<NativeResult>, signal?: AbortSignal) => Promise<NativeResult>} watch the same
 *   result once all callbacks are done or the signal is aborted, or what one of them threw
 */

/**
 * Hands output to the user's callbacks as it arrives: text is never split inside a character, and
 * the callbacks run in the asynchronous context of the caller. What an asynchronous one rejects with
 * counts as thrown.
 *
 * @param {Record<string, any>} spec
 * @param {boolean} asText
 * @returns {Listener | undefined} undefined when nobody listens
 */
export function listen({ onStdout, onStderr, mergeStreams }, asText) {
  if (onStdout === undefined && onStderr === undefined) return undefined;
  if (mergeStreams && onStderr !== undefined) {
    throw invalid("exec: with `mergeStreams` all output goes to `onStdout`; give that one, and leave out `onStderr`");
  }
  const streams = [
    { callback: onStdout, name: "onStdout" },
    { callback: onStderr, name: "onStderr" },
  ].map(({ callback, name }) => ({
    callback: callback === undefined ? undefined : AsyncResource.bind(checkFunction(callback, name)),
    decoder: asText ? new TextDecoder("utf-8", TEXT) : undefined,
  }));
  /** @type {{ error: unknown } | undefined} */
  let thrown;
  /** @type {Set<Promise<void>>} */
  const running = new Set();
  let stopWaiting = () => {};

  /** @param {unknown} error */
  const fail = (error) => {
    if (thrown) return;
    thrown = { error };
    stopWaiting();
    listener.onFailure();
  };
  /** Waits for the callbacks, unless the caller gives up or one of them fails. @param {AbortSignal} [signal] */
  const settled = async (signal) => {
    const stopped = /** @type {Promise<void>} */ (new Promise((resolve) => (stopWaiting = resolve)));
    const unwatch = signal && watch(signal, stopWaiting);
    await Promise.race([Promise.all(running), stopped]);
    unwatch?.();
  };
  /** @param {PromiseLike<unknown>} returned by a callback */
  const follow = (returned) => {
    const done = Promise.resolve(returned)
      .then(() => {}, fail)
      .finally(() => running.delete(done));
    running.add(done);
  };
  /** @param {0 | 1} index @param {Buffer} [bytes] the end of the stream when left out */
  const emit = (index, bytes) => {
    const { callback, decoder } = streams[index];
    if (!callback || thrown) return;
    try {
      const part = decoder ? decoder.decode(bytes, { stream: bytes !== undefined }) : bytes && plainBytes(bytes);
      const returned = part?.length ? callback(part) : undefined;
      if (typeof returned?.then === "function") follow(returned);
    } catch (error) {
      fail(error);
    }
  };
  /** @type {Listener} */
  const listener = {
    onOutput: emit,
    onFailure() {},
    async watch(result, signal) {
      try {
        const value = await result;
        emit(0);
        emit(1);
        // Who has cancelled the call does not wait for his own callbacks.
        if (value.outcome !== "cancelled" && !signal?.aborted && !thrown) await settled(signal);
        return value;
      } finally {
        // What the user's callback threw says more than the cancel that followed it.
        if (thrown) throw thrown.error; // eslint-disable-line no-unsafe-finally
      }
    },
  };
  return listener;
}

/**
 * @param {NativeResult} raw
 * @param {boolean} asText
 * @returns {ExecResult<any>}
 */
export function execResult(raw, asText) {
  const { output = NOTHING, stdout = NOTHING, stderr = NOTHING } = raw;
  /** @param {NativeKept} kept */
  const value = (kept) => (asText ? textOf(kept) : plainBytes(kept.bytes));
  /** @type {ExecResult<any>} */
  const result = {
    status: raw.outcome,
    exitCode: raw.exitCode,
    output: value(output),
    stdout: value(stdout),
    stderr: value(stderr),
    truncated: raw.outputLost ?? output.dropped + stdout.dropped + stderr.dropped > 0,
    droppedBytes: { output: output.dropped, stdout: stdout.dropped, stderr: stderr.dropped },
    termination: raw.termination ?? "none",
    backgroundKilled: raw.backgroundKilled ?? false,
    backgroundRunning: raw.backgroundRunning ?? false,
    durationMs: raw.durationMs,
  };
  if (raw.signal !== undefined) result.signal = raw.signal;
  if (raw.oomKilled) result.oomKilled = true;
  if (raw.outputExceeded) result.outputExceeded = true;
  if (raw.peakBytes !== undefined) result.usage = { cpuSeconds: (raw.cpuMicroseconds ?? 0) / 1e6, peakMemoryBytes: raw.peakBytes };
  return raw.details === undefined ? result : Object.assign(result, detailsOf(raw.details));
}

/**
 * @param {Record<string, any>} result as the wire has it
 * @returns {ExecShownResult}
 */
function shownResult(result) {
  const { is_main_result: isMain, extra, ...formats } = result;
  delete formats.type;
  const hasExtra = extra && Object.keys(extra).length > 0;
  return { ...formats, ...(hasExtra && { extra }), isMainResult: isMain === true };
}

/**
 * What an interpreter gave besides its output.
 *
 * @param {string} json
 * @returns {Pick<ExecResult, "results" | "droppedResults" | "error">}
 */
function detailsOf(json) {
  const { results, droppedResults, error } = JSON.parse(json);
  return {
    results: results.map(shownResult),
    ...(droppedResults > 0 && { droppedResults }),
    ...(error && { error }),
  };
}

/**
 * Kept bytes as text; a gap inside shows as a line of its own.
 *
 * @param {NativeKept} kept
 */
export function textOf({ bytes, dropped, tailAt }) {
  if (bytes.length === 0 && dropped === 0) return "";
  if (dropped === 0 || tailAt >= bytes.length) return DECODER.decode(bytes);
  const head = DECODER.decode(bytes.subarray(0, tailAt));
  const tail = DECODER.decode(bytes.subarray(tailAt));
  return `${head}${head === "" || head.endsWith("\n") ? "" : "\n"}[${dropped} bytes left out]\n${tail}`;
}

/**
 * The same in its parts; of an output without a gap all is in `head`.
 *
 * @param {NativeKept} kept
 * @param {string} text of all of it
 * @returns {KeptParts}
 */
export function partsOf({ bytes, dropped, tailAt }, text) {
  if (dropped === 0) return { text, head: text, tail: "", dropped };
  return { text, head: DECODER.decode(bytes.subarray(0, tailAt)), tail: DECODER.decode(bytes.subarray(tailAt)), dropped };
}

/**
 * A listing's entries; of a long one a part at a time, so that the host's event loop goes on.
 *
 * @param {NativeListing} listing
 */
export function entriesOf({ names, sizes }) {
  return inParts(names, (path, index) => ({ path, size: sizes[index] }));
}

/** @param {Float64Array} numbers @param {number} index @returns {SandboxFileInfo} */
export function infoOf(numbers, index) {
  const [kind, size, mtimeMs, mode] = numbers.subarray(index * 4, index * 4 + 4);
  return { type: FILE_TYPES[kind], size, mtimeMs: Number.isNaN(mtimeMs) ? null : mtimeMs, mode: mode < 0 ? null : mode };
}

/**
 * @template T
 * @param {string} names each ends with U+0000
 * @param {(name: string, index: number) => T} make
 */
export async function inParts(names, make) {
  /** @type {T[]} */
  const made = [];
  for (let at = 0; at < names.length; ) {
    const end = names.indexOf("\0", at);
    made.push(make(names.slice(at, end), made.length));
    at = end + 1;
    if (made.length % ENTRIES_PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  return made;
}
