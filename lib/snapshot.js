// What a snapshot of a workspace keeps: its regular files, as base64.
//
// Invariant: a snapshot that cannot hold all of a workspace is refused; nothing is left out of it in silence.
import { PathSecurityError, SandboxError, lazily } from "./errors.js";
import { invalid } from "./options.js";

/** @import { NativeSandbox } from "./sandbox.js" */
/** @import { WorkspaceFile } from "../types/index.js" */

const SNAPSHOT_FILES = 1000;
/** What is gone through to find them, or to say how many there are. */
const SNAPSHOT_LISTED = 200_000;
const SNAPSHOT_BYTES = 16 * 1024 * 1024;
// eslint-disable-next-line no-control-regex
const CONTROL = /[\0-\x1f\x7f]/;
const patterns = lazily("workspaces/ignore.js", () => import("./workspaces/ignore.js"));

/**
 * The files of a sandbox, in the order of their names.
 *
 * @param {() => NativeSandbox} open the sandbox; throws when it has been closed meanwhile
 * @param {string[]} exclude patterns of what is left out, as in a .gitignore file
 * @param {AbortSignal} [signal]
 * @returns {Promise<WorkspaceFile[]>}
 */
export async function snapshotOf(open, exclude, signal) {
  const entries = await listed(open, exclude, signal);
  const files = [];
  let left = SNAPSHOT_BYTES;
  for (const entry of entries) {
    const bytes = await contentsOf(open, entry.path, left, signal);
    if (!bytes) continue;
    left -= bytes.length;
    if (left < 0) throw snapshotTooLarge();
    files.push({
      path: entry.path,
      contents: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64"),
      encoding: /** @type {const} */ ("base64"),
    });
  }
  return files;
}

/** @param {() => NativeSandbox} open @param {string[]} exclude @param {AbortSignal} [signal] */
async function listed(open, exclude, signal) {
  const all = await open()
    .listFiles({ maxEntries: SNAPSHOT_LISTED, signal })
    .catch((error) => {
      throw error.code === "ERR_SANDBOX_TOO_LARGE" ? snapshotTooLarge() : error;
    });
  // Here a path may begin as one does for a shell.
  const entries = exclude.length === 0 ? all : await without(all, exclude);
  const total = entries.reduce((sum, entry) => sum + entry.size, 0);
  if (entries.length > SNAPSHOT_FILES || total > SNAPSHOT_BYTES) throw snapshotTooLarge(entries);
  return entries.sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** @template {{ path: string }} T @param {T[]} all @param {string[]} exclude @returns {Promise<T[]>} */
async function without(all, exclude) {
  const { ignoring } = await patterns();
  // Here a path may begin as one does for a shell.
  const leftOutBy = ignoring(exclude.map((pattern) => pattern.replace(/^\.\//, "/")));
  return all.filter((entry) => leftOutBy(entry.path) === undefined);
}

/**
 * A listed file's bytes; null when it is gone since then.
 *
 * @param {() => NativeSandbox} open
 * @param {string} file
 * @param {number} left bytes that may still be kept
 * @param {AbortSignal} [signal]
 */
async function contentsOf(open, file, left, signal) {
  try {
    const bytes = await open().readBytes(file, { maxBytes: Math.max(left, 1), signal });
    // A name that is not UTF-8 is not found either, and must not vanish silently.
    if (bytes || !file.includes("\uFFFD")) return bytes;
  } catch (error) {
    const { code } = /** @type {any} */ (error);
    if (code === "ERR_SANDBOX_TOO_LARGE") throw snapshotTooLarge();
    if (!(error instanceof PathSecurityError && CONTROL.test(file))) throw error;
  }
  const why = file.includes("\uFFFD") ? "is not UTF-8" : "has control characters";
  throw invalid(`snapshot: the name of ${JSON.stringify(file)} ${why}; rename or remove the file`);
}

/**
 * @param {{ path: string, size: number }[]} [entries] what it would hold, where that is known
 */
function snapshotTooLarge(entries = []) {
  const total = entries.reduce((sum, entry) => sum + entry.size, 0);
  const largest = entries.reduce((most, entry) => (entry.size > most.size ? entry : most), { path: "", size: 0 });
  const name = JSON.stringify(largest.path.slice(0, 200));
  const found =
    entries.length > 0
      ? `, and here are ${entries.length} files and ${inMiB(total)}, of which ${name} has ${inMiB(largest.size)}`
      : "";
  return new SandboxError(
    `a snapshot holds at most 1000 files and 16 MiB${found}; leave out what can be made again, as in ` +
      'snapshot({ exclude: ["node_modules", ".venv", "__pycache__"] }), or remove what need not be kept first',
    { code: "ERR_SANDBOX_TOO_LARGE" },
  );
}

/** @param {number} bytes */
function inMiB(bytes) {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}
