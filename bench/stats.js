// Small helpers of the benchmarks: medians, ratios, one table row per figure.

/** @param {number[]} values @param {number} q between 0 and 1 */
export function quantile(values, q) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
}

export const median = (/** @type {number[]} */ values) => quantile(values, 0.5);

/** Times `ours` and `theirs` in turn, so that a drift of the machine's speed meets both.
 * @param {number} rounds @param {() => Promise<unknown>} ours @param {() => Promise<unknown>} theirs
 * @returns {Promise<{ ours: number[], theirs: number[] }>} milliseconds per call */
export async function inTurn(rounds, ours, theirs) {
  const times = { ours: /** @type {number[]} */ ([]), theirs: /** @type {number[]} */ ([]) };
  for (let i = -Math.ceil(rounds / 10); i < rounds; i++) {
    for (const [name, call] of /** @type {const} */ ([["ours", ours], ["theirs", theirs]])) {
      const start = performance.now();
      await call();
      if (i >= 0) times[name].push(performance.now() - start);
    }
  }
  return times;
}

/** @param {string} figure @param {string} value @param {string} [bound] */
export function row(figure, value, bound = "") {
  console.log(`| ${figure} | ${value} | ${bound} |`);
}

export const ms = (/** @type {number} */ value) => `${value.toFixed(2)} ms`;
export const mib = (/** @type {number} */ bytes) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
