// Names: in addresses, and of files in a sandbox.
// @ts-check
import path from "node:path";

/** @typedef {import("./sandbox.js").Sandbox} Sandbox */

/** A segment of an address. @param {string} segment */
export function decodeName(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/**
 * The real path. Commands know the home directory by its real name; callers may also know it as the one
 * that it would have in a container.
 * @param {Sandbox} sandbox
 * @param {string} name
 */
export function locate(sandbox, name) {
  const full = path.resolve(sandbox.workDir, name);
  const home = `/home/${sandbox.spec.user}`;
  return full === home || full.startsWith(`${home}/`) ? path.join(sandbox.home, full.slice(home.length)) : full;
}
