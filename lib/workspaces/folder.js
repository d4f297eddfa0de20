// A folder of this machine: what is in it, and what is written into it.
//
// Invariants: no link of it is followed, neither to read nor to write; nothing is written outside of it, whatever
// names come.
import { invalid } from "../options.js";

const { constants } = process.getBuiltinModule("node:fs");
const { chmod, lstat, mkdir, open, readdir, readlink, realpath, rename, rm } = process.getBuiltinModule("node:fs").promises;
const { randomBytes } = process.getBuiltinModule("node:crypto");
const path = process.getBuiltinModule("node:path");

/**
 * @typedef {{ path: string, reason: string }} Skip
 * @typedef {{ path: string, mode: number, size: number, mtimeMs: number }} FoundFile
 * @typedef {object} Found
 * @property {{ path: string, mode: number, mtimeMs: number }[]} folders those above before those in them
 * @property {FoundFile[]} files
 * @property {{ path: string, target: string, mtimeMs: number }[]} links that lead to something inside
 * @property {Skip[]} skipped
 */

/** Of a file of the host more cannot be sent. */
export const MOST_FILE_BYTES = 256 * 1024 * 1024;
const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
// eslint-disable-next-line no-control-regex
const CONTROL = /[\0-\x1f\x7f]/;
const WHY = new Map([
  ["EACCES", "it may not be read"], ["EPERM", "it may not be read"], ["ENOENT", "it is gone"], ["ELOOP", "it has become a link"],
]);

/** The folder itself, all links resolved. @param {string} folder @param {string} name of the option */
export async function realFolder(folder, name) {
  const real = await realpath(folder).catch(() => undefined);
  if (real !== undefined && (await lstat(real)).isDirectory()) return real;
  throw invalid(`\`${name}\`: there is no folder ${JSON.stringify(folder.slice(0, 200))}`);
}

/**
 * All that is in a folder and is not left out, in the order of names.
 *
 * @param {string} root real
 * @param {(path: string, isFolder?: boolean) => string | undefined} leftOutBy
 * @param {AbortSignal} [signal]
 * @returns {Promise<Found>}
 */
export async function contentsOf(root, leftOutBy, signal) {
  /** @type {Found} */
  const found = { folders: [], files: [], links: [], skipped: [] };
  /** @param {string} file @param {string} reason */
  const skip = (file, reason) => found.skipped.push({ path: file, reason });

  /** @param {string} inner path of a folder in it, "" for itself */
  const walk = async (inner) => {
    signal?.throwIfAborted();
    const names = await readdir(path.join(root, inner), "buffer").catch((error) => reasonOf(error));
    if (typeof names === "string") return skip(inner || ".", names);
    names.sort(Buffer.compare);
    for (const bytes of names) {
      const name = bytes.toString();
      const file = inner === "" ? name : `${inner}/${name}`;
      if (name.includes("\uFFFD") && !Buffer.from(name).equals(bytes)) {
        skip(file, "its name is no UTF-8");
        continue;
      }
      if (CONTROL.test(name)) {
        skip(file, "its name has control characters");
        continue;
      }
      await take(file);
    }
  };

  /** @param {string} file */
  const take = async (file) => {
    const at = path.join(root, file);
    const info = await lstat(at).catch((error) => reasonOf(error));
    if (typeof info === "string") return skip(file, info);
    const pattern = leftOutBy(file, info.isDirectory());
    if (pattern !== undefined) return skip(file, `left out by the pattern ${pattern}`);
    const { size, mtimeMs } = info;
    const mode = info.mode & 0o777;
    if (info.isDirectory()) {
      found.folders.push({ path: file, mode, mtimeMs });
      await walk(file);
    } else if (info.isSymbolicLink()) {
      const target = await innerTarget(root, file);
      if (target === undefined) skip(file, "a link that leads out of the folder");
      else found.links.push({ path: file, target, mtimeMs });
    } else if (!info.isFile()) {
      skip(file, "neither a file nor a folder nor a link");
    } else if (size > MOST_FILE_BYTES) {
      skip(file, "it has more than 256 MiB");
    } else {
      found.files.push({ path: file, mode, size, mtimeMs });
    }
    return undefined;
  };

  await walk("");
  return found;
}

/**
 * Where a link leads, relative to its place; undefined when that is outside. Both by its words, which are what the
 * sandbox sees, and by what is on this machine.
 *
 * @param {string} root
 * @param {string} link
 */
async function innerTarget(root, link) {
  const place = path.dirname(path.join(root, link));
  const words = await readlink(path.join(root, link)).catch(() => undefined);
  if (words === undefined || CONTROL.test(words)) return undefined;
  const meant = path.resolve(place, words);
  const real = await realpath(path.join(root, link)).catch(() => meant);
  if (!isInside(root, meant) || !isInside(root, real)) return undefined;
  // Relative, and without leaving the folder on the way: where it stands has another name there.
  return path.isAbsolute(words) || leaves(path.relative(root, place), words) ? path.relative(place, meant) || "." : words;
}

/** Whether a relative target is outside somewhere on its way. @param {string} place @param {string} target */
function leaves(place, target) {
  let depth = place === "" ? 0 : place.split("/").length;
  for (const part of target.split("/")) {
    if (part === "..") depth -= 1;
    else if (part !== "" && part !== ".") depth += 1;
    if (depth < 0) return true;
  }
  return false;
}

/** @param {string} root @param {string} target */
export function isInside(root, target) {
  const between = path.relative(root, target);
  return between !== ".." && !between.startsWith("../") && !path.isAbsolute(between);
}

/**
 * A file's bytes, or the reason why there are none.
 *
 * @param {string} root
 * @param {string} file
 * @returns {Promise<Buffer | string>}
 */
export async function bytesOfFile(root, file) {
  try {
    const handle = await open(path.join(root, file), READ);
    try {
      const info = await handle.stat();
      if (!info.isFile()) return "it is a file no more";
      if (info.size > MOST_FILE_BYTES) return "it has more than 256 MiB";
      return await handle.readFile();
    } finally {
      await handle.close();
    }
  } catch (error) {
    return reasonOf(error);
  }
}

/**
 * Why a name that came from a sandbox is none to write to; undefined for a plain path.
 *
 * @param {string} name
 */
export function badName(name) {
  if (name === "" || name.includes("\uFFFD")) return "its name is no UTF-8";
  if (CONTROL.test(name)) return "its name has control characters";
  const parts = name.split("/");
  if (parts.some((part) => part === "" || part === "." || part === "..")) return "its path does not stay inside the folder";
  if (process.platform === "win32" && /[\\:]/.test(name)) return "its name is none on this system";
  // What git runs by itself would run here. HFS+ ignores some characters.
  if (parts.some((part) => part.replace(/[^\x20-\x7e]/g, "").toLowerCase() === ".git")) return "a repository's own files do not come back";
  return undefined;
}

/**
 * Writes a file in the folder, in one step; folders are made. Its path has passed badName().
 *
 * @param {string} root real
 * @param {string} file
 * @param {Uint8Array} bytes
 * @param {boolean} isProgram
 * @returns {Promise<string | undefined>} why it was not written
 */
export async function putFile(root, file, bytes, isProgram) {
  const refused = await foldersOf(root, path.dirname(file));
  if (refused !== undefined) return refused;
  const target = path.join(root, file);
  const old = await lstat(target).catch(() => undefined);
  if (old && !old.isFile()) return old.isSymbolicLink() ? "a link stands in its place" : "something else stands in its place";
  const besides = path.join(path.dirname(target), `.cloudsandbox-${randomBytes(8).toString("hex")}`);
  try {
    const mode = old ? old.mode & 0o777 & ~0o111 : 0o644;
    const handle = await open(besides, "wx", mode);
    try {
      await handle.writeFile(bytes);
    } finally {
      await handle.close();
    }
    if (old || isProgram) await chmod(besides, isProgram ? mode | ((mode & 0o444) >> 2) : mode);
    await rename(besides, target);
    return undefined;
  } catch (error) {
    await rm(besides, { force: true }).catch(() => {});
    return reasonOf(error);
  }
}

/** Makes the folders of a file; none of them may be a link. @param {string} root @param {string} inner */
async function foldersOf(root, inner) {
  let at = root;
  for (const part of inner === "." ? [] : inner.split("/")) {
    at = path.join(at, part);
    await mkdir(at).catch(() => {});
    const info = await lstat(at).catch(() => undefined);
    if (info?.isSymbolicLink()) return "a link stands in the place of one of its folders";
    if (!info?.isDirectory()) return "one of its folders cannot be made";
  }
  return undefined;
}

/** @param {any} error */
function reasonOf(error) {
  return WHY.get(error?.code) ?? `it cannot be read or written (${error?.code ?? "for no known reason"})`;
}
