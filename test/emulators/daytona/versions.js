// Versions of daemons and SDKs.
// @ts-check

/** @param {string} version */
const numbers = (version) => version.match(/^v?(\d+)\.(\d+)\.(\d+)/)?.slice(1).map(Number);

/**
 * Below, at or above zero; undefined if one of them is no version.
 * @param {string} a
 * @param {string} b
 */
export function compareVersions(a, b) {
  const [x, y] = [numbers(a), numbers(b)];
  if (!x || !y) return undefined;
  for (let i = 0; i < 3; i += 1) if (x[i] !== y[i]) return x[i] - y[i];
  return 0;
}

/** As the platform tells it. @param {string} version */
export const toldVersion = (version) => `v${version.replace(/^v/, "")}`;

/**
 * @param {string} version
 * @param {string} bound
 */
export function atLeast(version, bound) {
  return (compareVersions(version, bound) ?? 1) >= 0;
}
