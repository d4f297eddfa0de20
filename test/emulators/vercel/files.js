// POST fs/write, fs/read and fs/mkdir.
// @ts-check
import { chmod, mkdir, open, stat, writeFile } from "node:fs/promises";
import path from "node:path";

import { readArchive } from "./archive.js";
import { ApiError, bad, missing } from "./errors.js";
import { jsonBody, textField } from "./request.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */
/** @typedef {import("./session.js").Session} Session */

const PIECE = 64 << 10;

/** What the file system refuses, in the service's words. @param {any} error */
function refusal(error) {
  if (error instanceof ApiError) return error;
  if (error.code === "ENOENT") return missing("File not found");
  if (["EISDIR", "ENOTDIR", "EEXIST", "EACCES", "ENAMETOOLONG", "ELOOP"].includes(error.code)) return bad(error.message);
  return new ApiError(500, "internal_server_error", error.message);
}

/** An open of a pipe waits for its other end, which nobody opens. @param {Exchange} exchange @param {string} file */
async function waitAtPipe(exchange, file) {
  const found = await stat(file).catch(() => undefined);
  if (!found?.isFIFO()) return;
  await new Promise((resolve) => exchange.signal.addEventListener("abort", resolve));
  throw new Error("the client has gone");
}

/** @param {Exchange} exchange @param {Session} session */
export async function write(exchange, session) {
  if (exchange.header("content-type") !== "application/gzip") throw bad("Content-Type must be application/gzip");
  const base = exchange.header("x-cwd") ?? session.cwd;
  for (const { name, mode, bytes } of readArchive(await exchange.body())) {
    if (name.startsWith("/") || name.split("/").includes("..")) throw bad("Invalid archive: a name leads out of it");
    const file = path.join(base, name);
    await waitAtPipe(exchange, file);
    try {
      await mkdir(path.dirname(file), { recursive: true });
      await writeFile(file, bytes);
      await chmod(file, mode & 0o777);
    } catch (error) {
      // Not "not found": nothing was looked for.
      const refused = refusal(error);
      throw refused.status === 404 ? bad(refused.message) : refused;
    }
  }
  await exchange.json(200, {});
}

/** @param {Exchange} exchange @param {Session} session */
export async function read(exchange, session) {
  const body = await jsonBody(exchange, ["path", "cwd"]);
  const file = path.resolve(session.resolve(body.cwd ?? ""), textField(body, "path"));
  await waitAtPipe(exchange, file);
  let handle;
  try {
    handle = await open(file, "r");
    if ((await handle.stat()).isDirectory()) throw bad("Path is a directory");
  } catch (error) {
    await handle?.close();
    throw refusal(error);
  }
  try {
    await exchange.open(200, { "content-type": "application/octet-stream" });
    const piece = Buffer.alloc(PIECE);
    for (;;) {
      const { bytesRead } = await handle.read(piece, 0, PIECE);
      if (bytesRead === 0 || exchange.signal.aborted) break;
      await exchange.write(Buffer.from(piece.subarray(0, bytesRead)));
    }
    await exchange.end();
  } finally {
    await handle.close();
  }
}

/** @param {Exchange} exchange @param {Session} session */
export async function makeDirectory(exchange, session) {
  const body = await jsonBody(exchange, ["path", "cwd"]);
  try {
    await mkdir(path.resolve(session.resolve(body.cwd ?? ""), textField(body, "path")));
  } catch (error) {
    throw refusal(error);
  }
  await exchange.json(200, {});
}
