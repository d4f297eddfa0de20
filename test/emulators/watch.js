// Waiting for what others do, with an end in words: no test hangs at it for ever.
// @ts-check

/** Far above what a loaded machine needs. */
const PATIENCE_MS = 45_000;

/**
 * Resolves with what `look` gives, once that is neither false nor undefined; it is asked now and whenever the
 * watchers are called. Rejects when that takes too long.
 * @template T
 * @param {Set<() => void>} watchers
 * @param {() => T | false | undefined} look
 * @param {() => string} what it is waited for, and what there is instead
 * @param {number} [patienceMs]
 * @returns {Promise<T>}
 */
export function watch(watchers, look, what, patienceMs = PATIENCE_MS) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      watchers.delete(again);
      reject(new Error(`emulator: in ${patienceMs / 1000} s there was no ${what()}`));
    }, patienceMs);
    // A test that has ended otherwise is not held up.
    timer.unref();
    const again = () => {
      const found = look();
      if (found === false || found === undefined) return;
      watchers.delete(again);
      clearTimeout(timer);
      resolve(found);
    };
    watchers.add(again);
    again();
  });
}
