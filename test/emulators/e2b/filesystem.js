// envd's Filesystem service.
// @ts-check
import { isUtf8 } from "node:buffer";
import { statSync, watch } from "node:fs";
import { lstat, mkdir, readdir, readlink, realpath, rename, rm, stat as statFile } from "node:fs/promises";
import path from "node:path";
import { goReason } from "../go.js";
import { ConnectError, boolField, connectTimeout, omitZero, onlyMessage, stringField, uintField } from "./connect.js";
import { PathError, resolvePath } from "./paths.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */
/** @typedef {import("./sandbox.js").Sandbox} Sandbox */
/** @typedef {import("./connect.js").Stream} Stream */
/** @typedef {{ name: string, home: string }} User */

/**
 * @param {Sandbox} sandbox
 * @param {User} user
 * @param {any} message
 * @param {string} field
 */
function pathField(sandbox, user, message, field) {
  try {
    return resolvePath(sandbox, user.home, stringField(message, field));
  } catch (error) {
    if (error instanceof PathError) throw new ConnectError("invalid_argument", error.message);
    throw error;
  }
}

/**
 * @param {unknown} error
 * @param {string} file
 * @returns {never}
 */
function fail(error, file) {
  const { code } = /** @type {NodeJS.ErrnoException} */ (error);
  if (code === "ENOENT") throw new ConnectError("not_found", `file not found: stat ${file}: no such file or directory`);
  if (code === "ELOOP") throw new ConnectError("failed_precondition", `cyclic symlink or chain >255 links at "${file}"`);
  throw new ConnectError("internal", `error getting file info: stat ${file}: ${goReason(error)}`);
}

/** "-rw-r--r--", as Go writes a mode. @param {import("node:fs").Stats} info @param {boolean} isLink */
function permissionText(info, isLink) {
  const bits = [..."rwxrwxrwx"].map((letter, i) => (info.mode & (1 << (8 - i)) ? letter : "-")).join("");
  const letters = { L: isLink, d: info.isDirectory(), p: info.isFIFO(), S: info.isSocket(), D: info.isBlockDevice(), Dc: info.isCharacterDevice() };
  return `${Object.entries(letters).find(([, is]) => is)?.[0] ?? "-"}${bits}`;
}

/**
 * @param {Sandbox} sandbox
 * @param {string} file
 */
async function entryInfo(sandbox, file) {
  const own = await lstat(file);
  const isLink = own.isSymbolicLink();
  let target;
  if (isLink) target = await realpath(file).catch(() => undefined);
  const info = target === undefined ? own : await statFile(file);
  const kind = info.isDirectory() ? "FILE_TYPE_DIRECTORY" : info.isFile() ? "FILE_TYPE_FILE" : undefined;
  const entry = omitZero({
    name: path.basename(file),
    type: kind,
    path: file,
    size: info.size ? String(info.size) : undefined,
    mode: info.mode & 0o777,
    permissions: permissionText(info, isLink),
    owner: "user",
    group: "user",
    modifiedTime: info.mtime.toISOString(),
    metadata: sandbox.fileMetadata.get(file),
  });
  if (isLink) entry.symlinkTarget = target ?? (await readlink(file));
  return entry;
}

/**
 * @param {Sandbox} sandbox
 * @param {User} user
 * @param {any} message
 */
export async function stat(sandbox, user, message) {
  const file = pathField(sandbox, user, message, "path");
  return { entry: await entryInfo(sandbox, file).catch((error) => fail(error, file)) };
}

/**
 * @param {Sandbox} sandbox
 * @param {User} user
 * @param {any} message
 */
export async function makeDir(sandbox, user, message) {
  const directory = pathField(sandbox, user, message, "path");
  const present = statSync(directory, { throwIfNoEntry: false });
  if (present?.isDirectory()) throw new ConnectError("already_exists", `directory already exists: ${directory}`);
  await mkdir(directory, { recursive: true }).catch((/** @type {NodeJS.ErrnoException} */ error) => {
    if (error.code === "EEXIST" || error.code === "ENOTDIR") {
      throw new ConnectError("invalid_argument", `path already exists but it is not a directory: ${directory}`);
    }
    throw new ConnectError("internal", error.message);
  });
  return { entry: await entryInfo(sandbox, directory) };
}

/**
 * @param {Sandbox} sandbox
 * @param {User} user
 * @param {any} message
 */
export async function move(sandbox, user, message) {
  const source = pathField(sandbox, user, message, "source");
  const destination = pathField(sandbox, user, message, "destination");
  await lstat(source).catch(() => {
    throw new ConnectError("not_found", `source file not found: rename ${source} ${destination}: no such file or directory`);
  });
  try {
    await mkdir(path.dirname(destination), { recursive: true });
    await rename(source, destination);
  } catch (error) {
    throw new ConnectError("internal", `error renaming: ${/** @type {Error} */ (error).message}`);
  }
  const metadata = sandbox.fileMetadata.get(source);
  sandbox.fileMetadata.delete(source);
  if (metadata) sandbox.fileMetadata.set(destination, metadata);
  return { entry: await entryInfo(sandbox, destination) };
}

/**
 * @param {Sandbox} sandbox
 * @param {User} user
 * @param {any} message
 */
export async function listDir(sandbox, user, message) {
  const depth = uintField(message, "depth") || 1;
  const asked = pathField(sandbox, user, message, "path");
  const directory = await realpath(asked).catch((/** @type {NodeJS.ErrnoException} */ error) => {
    if (error.code === "ENOENT") throw new ConnectError("not_found", `path not found: ${asked}`);
    return fail(error, asked);
  });
  if (!statSync(directory).isDirectory()) {
    throw new ConnectError("invalid_argument", `path is not a directory: ${directory}`);
  }
  /** @type {Record<string, any>[]} */
  const entries = [];
  const visit = async (/** @type {string} */ real, /** @type {string} */ shown, /** @type {number} */ left) => {
    const names = await readdir(real, { encoding: "buffer" });
    if (!names.every((name) => isUtf8(name))) {
      const reason = "proto: field filesystem.EntryInfo.name contains invalid UTF-8";
      throw new ConnectError("internal", `marshal message: ${reason}`);
    }
    for (const name of names.map(String).sort()) {
      const entry = await entryInfo(sandbox, path.join(real, name)).catch(() => undefined);
      if (!entry) continue;
      entries.push({ ...entry, path: path.join(shown, name) });
      const isRealDirectory = entry.type === "FILE_TYPE_DIRECTORY" && entry.symlinkTarget === undefined;
      if (left > 1 && isRealDirectory) await visit(path.join(real, name), path.join(shown, name), left - 1);
    }
  };
  await visit(directory, asked, depth);
  return omitZero({ entries });
}

/**
 * @param {Sandbox} sandbox
 * @param {User} user
 * @param {any} message
 */
export async function remove(sandbox, user, message) {
  const file = pathField(sandbox, user, message, "path");
  await rm(file, { recursive: true, force: true }).catch((/** @type {Error} */ error) => {
    throw new ConnectError("internal", `error removing file or directory: ${error.message}`);
  });
  sandbox.fileMetadata.delete(file);
  return {};
}

/**
 * Changes below a directory until the client goes. The kernel's order of events is kept, their number is
 * not: what one editor's save gives differs between kernels.
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 * @param {User} user
 * @param {AsyncGenerator<any>} messages
 * @param {Stream} stream
 */
export async function watchDir(exchange, sandbox, user, messages, stream) {
  const timeout = connectTimeout(exchange);
  const message = await onlyMessage(messages);
  const directory = pathField(sandbox, user, message, "path");
  const recursive = boolField(message, "recursive");
  const withEntry = boolField(message, "includeEntry") || boolField(message, "include_entry");
  const info = statSync(directory, { throwIfNoEntry: false });
  if (!info) throw new ConnectError("not_found", `path ${directory} not found: no such file or directory`);
  if (!info.isDirectory()) throw new ConnectError("invalid_argument", `path ${directory} is not a directory`);

  const known = new Set(await readdir(directory, { recursive }));
  const watcher = watch(directory, { recursive });
  const gone = new Promise((resolve) => stream.signal.addEventListener("abort", resolve, { once: true }));
  /** @type {NodeJS.Timeout | undefined} */
  let timer;
  const passed = new Promise((resolve) => {
    if (timeout) timer = setTimeout(() => resolve("deadline"), timeout);
  });
  watcher.on("error", () => {});
  watcher.on("change", async (kind, changed) => {
    const name = String(changed);
    const file = path.join(directory, name);
    const exists = statSync(file, { throwIfNoEntry: false }) !== undefined;
    let type = "EVENT_TYPE_WRITE";
    if (kind === "rename") {
      if (exists && known.has(name)) type = "EVENT_TYPE_RENAME";
      else if (exists) type = "EVENT_TYPE_CREATE";
      else type = "EVENT_TYPE_REMOVE";
      if (exists) known.add(name);
      else known.delete(name);
    }
    const entry = withEntry && exists ? await entryInfo(sandbox, file).catch(() => undefined) : undefined;
    await stream.send({ filesystem: { name, type, entry } });
  });
  try {
    await stream.send({ start: {} });
    if ((await Promise.race([gone, passed])) === "deadline") {
      throw new ConnectError("deadline_exceeded", "context deadline exceeded");
    }
  } finally {
    clearTimeout(timer);
    watcher.close();
  }
}
