// The daemon's calls about files that carry no file contents.
// @ts-check
import { statSync } from "node:fs";
import { chmod, chown, mkdir, readdir, rename, rm, rmdir, stat, unlink } from "node:fs/promises";
import path from "node:path";
import { goReason } from "../go.js";
import { DaemonError } from "./errors.js";
import { goJson } from "./gojson.js";
import { locate } from "./paths.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */
/** @typedef {import("../exchange.js").Reply} Reply */
/** @typedef {import("./sandbox.js").Sandbox} Sandbox */
/** @typedef {import("node:fs").Stats} Stats */

/**
 * What a failed system call becomes.
 * @param {unknown} error
 * @param {string} operation as Go names it
 * @param {string} name
 */
export function fileError(error, operation, name) {
  const { code } = /** @type {NodeJS.ErrnoException} */ (error);
  const message = `${operation} ${name}: ${goReason(error)}`;
  if (code === "ENOENT") return new DaemonError(404, message, { code: "FILE_NOT_FOUND", careless: true });
  if (code === "EACCES" || code === "EPERM") {
    return new DaemonError(403, message, { code: "FILE_ACCESS_DENIED", careless: true });
  }
  return new DaemonError(400, message, { careless: true });
}

/** @param {string} message @param {string} [code] */
export const fileRefusal = (message, code) => new DaemonError(400, message, { ...(code ? { code } : {}), careless: true });

/**
 * A path that must be given.
 * @param {Exchange} exchange
 * @param {string} [parameter]
 */
export function givenPath(exchange, parameter = "path") {
  const name = exchange.query.get(parameter);
  if (!name) throw fileRefusal(`${parameter} is required`);
  if (name.includes("\0")) throw fileRefusal(`stat ${name}: invalid argument`, "INVALID_FILE_PATH");
  return name;
}

/** @param {unknown} value @returns {Reply} */
const ok = (value) => ({
  status: 200,
  headers: { "content-type": "application/json; charset=utf-8" },
  body: goJson(value),
});

/** @param {Stats} stats */
function goMode(stats) {
  const kind = stats.isDirectory() ? "d" : stats.isFIFO() ? "p" : stats.isSocket() ? "S" : "";
  const special = [stats.mode & 0o4000 && "u", stats.mode & 0o2000 && "g", stats.mode & 0o1000 && "t"].filter(Boolean);
  const bits = [...(stats.mode & 0o777).toString(2).padStart(9, "0")];
  const rights = bits.map((bit, i) => (bit === "1" ? "rwx"[i % 3] : "-")).join("");
  return `${kind}${special.join("")}${kind || special.length > 0 ? "" : "-"}${rights}`;
}

/** With nanoseconds, their zeros at the end left out, as Go writes a time. @param {string} full @param {Stats} stats */
function goTime(full, { mtime }) {
  const nanoseconds = statSync(full, { bigint: true, throwIfNoEntry: false })?.mtimeNs ?? BigInt(mtime.getTime()) * 1_000_000n;
  const fraction = String(nanoseconds % 1_000_000_000n).padStart(9, "0").replace(/0+$/, "");
  return mtime.toISOString().replace(/\.\d+Z$/, `${fraction ? "." : ""}${fraction}Z`);
}

/**
 * @param {Sandbox} sandbox
 * @param {string} full
 * @param {Stats} stats
 */
function describe(sandbox, full, stats) {
  const modified = stats.mtime.toISOString();
  return {
    name: path.basename(full),
    size: stats.size,
    mode: goMode(stats),
    modTime: modified.replace("T", " ").replace("Z", " +0000 UTC"),
    modifiedAt: goTime(full, stats),
    isDir: stats.isDirectory(),
    owner: String(stats.uid),
    group: String(stats.gid),
    permissions: (stats.mode & 0o777).toString(8).padStart(4, "0"),
    ...(sandbox.daemonAtLeast("0.191.0") ? { path: full } : {}),
  };
}

/**
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 */
export async function info(exchange, sandbox) {
  const name = givenPath(exchange);
  const full = locate(sandbox, name);
  const stats = await stat(full).catch((error) => {
    throw fileError(error, "stat", name);
  });
  return ok(describe(sandbox, full, stats));
}

/**
 * @param {Sandbox} sandbox
 * @param {string} directory
 * @param {string} shown
 * @param {number} depth
 * @returns {Promise<ReturnType<typeof describe>[]>}
 */
async function listDirectory(sandbox, directory, shown, depth) {
  const names = await readdir(directory).catch((error) => {
    throw fileError(error, "open", shown);
  });
  const found = [];
  for (const name of names.sort()) {
    const full = path.join(directory, name);
    const stats = await stat(full).catch(() => undefined);
    if (!stats) continue;
    found.push(describe(sandbox, full, stats));
    if (depth > 1 && stats.isDirectory()) {
      found.push(...(await listDirectory(sandbox, full, full, depth - 1).catch(() => [])));
    }
  }
  return found;
}

/**
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 */
export async function list(exchange, sandbox) {
  const name = exchange.query.get("path") || ".";
  const depth = sandbox.daemonAtLeast("0.191.0") ? Number(exchange.query.get("depth") ?? 1) : 1;
  if (!Number.isInteger(depth) || depth < 1) throw fileRefusal("depth must be at least 1");
  return ok(await listDirectory(sandbox, locate(sandbox, name), name, depth));
}

/**
 * @param {Exchange} exchange
 * @returns {number | undefined}
 */
function givenMode(exchange) {
  const text = exchange.query.get("mode");
  if (!text) return undefined;
  if (!/^[0-7]+$/.test(text)) throw fileRefusal("invalid mode format");
  return parseInt(text, 8);
}

/**
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 */
export async function makeFolder(exchange, sandbox) {
  const name = givenPath(exchange);
  const mode = givenMode(exchange) ?? 0o755;
  const full = locate(sandbox, name);
  await mkdir(full, { recursive: true, mode }).catch((error) => {
    throw fileRefusal(`mkdir ${name}: ${goReason(error.code === "EEXIST" ? { code: "ENOTDIR" } : error)}`);
  });
  return { status: 201 };
}

/**
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 */
export async function remove(exchange, sandbox) {
  const name = givenPath(exchange);
  const full = locate(sandbox, name);
  const recursive = exchange.query.get("recursive") === "true";
  const stats = await stat(full).catch((error) => {
    throw fileError(error, "stat", name);
  });
  if (stats.isDirectory() && !recursive) throw fileRefusal("cannot delete directory without recursive flag");
  try {
    if (recursive) await rm(full, { recursive: true, force: true });
    else if (stats.isDirectory()) await rmdir(full);
    else await unlink(full);
  } catch (error) {
    throw fileRefusal(`remove ${name}: ${goReason(error)}`);
  }
  return { status: 204 };
}

/**
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 */
export async function move(exchange, sandbox) {
  const [source, destination] = ["source", "destination"].map((parameter) => {
    if (!exchange.query.get(parameter)) throw fileRefusal("source and destination paths are required");
    return givenPath(exchange, parameter);
  });
  const [from, to] = [source, destination].map((name) => locate(sandbox, name));
  for (const full of [from, path.dirname(to)]) {
    await stat(full).catch((error) => {
      throw fileError(error, "stat", full);
    });
  }
  if (await stat(to).catch(() => undefined)) {
    throw new DaemonError(409, "destination already exists", { careless: true });
  }
  await rename(from, to).catch((error) => {
    throw fileRefusal(`failed to move file: ${goReason(error)}`);
  });
  return { status: 200 };
}

/**
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 */
export async function setPermissions(exchange, sandbox) {
  const name = givenPath(exchange);
  const full = locate(sandbox, name);
  const mode = givenMode(exchange);
  await stat(full).catch((error) => {
    throw fileError(error, "stat", name);
  });
  const ids = ["owner", "group"].map((parameter) => {
    const text = exchange.query.get(parameter);
    if (text && !/^\d+$/.test(text)) throw fileRefusal(`invalid ${parameter}`);
    return text ? Number(text) : -1;
  });
  try {
    if (mode !== undefined) await chmod(full, mode);
    if (ids.some((id) => id >= 0)) await chown(full, ids[0], ids[1]);
  } catch (error) {
    throw fileError(error, "chmod", name);
  }
  return { status: 200 };
}
