// A call's AbortSignal: what it cancels, and what gives up waiting because of it.
import { checkNames, checkSignal, reading } from "./options.js";

const FILE_OPTIONS = Object.freeze(["signal"]);

/**
 * What each signal has to cancel. One listener per signal, since Node warns of a leak at eleven.
 *
 * @type {WeakMap<AbortSignal, { cancels: Set<() => void>, onAbort: () => void }>}
 */
const watched = new WeakMap();

/**
 * Calls `cancel` when the signal is aborted.
 *
 * @param {AbortSignal} signal
 * @param {() => void} cancel
 * @returns {() => void} ends it
 */
export function watch(signal, cancel) {
  const { cancels, onAbort } = watched.get(signal) ?? watcher();
  if (cancels.size === 0) {
    watched.set(signal, { cancels, onAbort });
    signal.addEventListener("abort", onAbort);
  }
  cancels.add(cancel);
  return () => {
    cancels.delete(cancel);
    if (cancels.size === 0) signal.removeEventListener("abort", onAbort);
  };
}

/** Not by `this`: a signal of another make may call its listeners without one. */
function watcher() {
  /** @type {Set<() => void>} */
  const cancels = new Set();
  const onAbort = () => {
    for (const cancel of cancels) cancel();
  };
  return { cancels, onAbort };
}

/**
 * The promise, or the signal's reason when that comes first.
 *
 * @template T
 * @param {Promise<T>} promise
 * @param {AbortSignal} [signal]
 * @returns {Promise<T>}
 */
export async function unlessAborted(promise, signal) {
  if (signal === undefined) return promise;
  if (checkSignal(signal)?.aborted) {
    promise.catch(() => {}); // As the race does: nobody else may hear of it.
    throw signal.reason;
  }
  let unwatch = () => {};
  /** @type {Promise<never>} */
  const aborted = new Promise((_, reject) => {
    unwatch = watch(signal, () => reject(signal.reason));
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    unwatch();
  }
}

/** @param {{ signal?: AbortSignal | undefined }} [options] */
export function signalIn(options) {
  return reading("the options' `signal`", () => options?.signal);
}

/**
 * The signal of a call that has no other option.
 *
 * @param {unknown} options
 * @param {string} where
 */
export function signalOf(options, where) {
  return checkSignal(checkNames(options, FILE_OPTIONS, where).signal);
}
