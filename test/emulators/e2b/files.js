// envd's /files: whole files up and down, by access token or by signed URL.
// @ts-check
import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, open, stat } from "node:fs/promises";
import path from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip, createGzip } from "node:zlib";
import { goReason } from "../go.js";
import { MultipartError, boundaryOf, readParts } from "../multipart.js";
import { ENVD_PORT, SHUT, proxyError } from "./edge.js";
import { envdError } from "./envd.js";
import { PathError, UserError, findUser, resolvePath } from "./paths.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */
/** @typedef {import("./sandbox.js").Sandbox} Sandbox */

const TYPES = /** @type {Record<string, string>} */ ({
  ".txt": "text/plain; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".css": "text/css; charset=utf-8",
  ".png": "image/png",
  ".pdf": "application/pdf",
});
/** A body up to this length has left the proxies by the time that a refusal comes. */
const IN_FLIGHT_BYTES = 200_000;
const METADATA_PREFIX = "x-metadata-";

class FileError extends Error {
  /**
   * @param {number} status
   * @param {string} message
   */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/**
 * What a signed URL must carry.
 * @param {{ path: string, operation: "read" | "write", user: string, token: string, expiration?: string }} what
 */
export function signature({ path: name, operation, user, token, expiration }) {
  const raw = [name, operation, user, token, ...(expiration === undefined ? [] : [expiration])].join(":");
  return `v1_${createHash("sha256").update(raw).digest("base64").replace(/=+$/, "")}`;
}

/**
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 * @param {"read" | "write"} operation
 */
function authorize(exchange, sandbox, operation) {
  const { token } = sandbox.daemon;
  if (!token) return;
  const given = exchange.header("x-access-token");
  if (given !== undefined) {
    if (given !== token) throw new FileError(401, "access token present in header but does not match");
    return;
  }
  const signed = exchange.query.get("signature");
  if (signed === null) throw new FileError(401, "missing signature query parameter");
  const expiration = exchange.query.get("signature_expiration") ?? undefined;
  const name = exchange.query.get("path") ?? "";
  const user = exchange.query.get("username") ?? "";
  if (signed !== signature({ path: name, operation, user, token, expiration })) {
    throw new FileError(401, "invalid signature");
  }
  if (expiration !== undefined && Number(expiration) < Date.now() / 1000) {
    throw new FileError(401, "signature is already expired");
  }
}

/**
 * @param {Sandbox} sandbox
 * @param {Exchange} exchange
 * @param {string} name
 */
function locate(sandbox, exchange, name) {
  const username = exchange.query.get("username") ?? undefined;
  try {
    return resolvePath(sandbox, findUser(sandbox, username).home, name);
  } catch (error) {
    if (error instanceof UserError) {
      if (!username) throw new FileError(400, error.message);
      throw new FileError(401, `error looking up user '${username}': user: unknown user ${username}`);
    }
    if (error instanceof PathError) throw new FileError(400, error.message);
    throw error;
  }
}

/**
 * @param {Exchange} exchange
 * @param {() => Promise<void>} action
 */
async function guarded(exchange, action) {
  try {
    await action();
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    await envdError(exchange, error.status, error.message);
  }
}

/**
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 */
export function downloadFile(exchange, sandbox) {
  return guarded(exchange, async () => {
    authorize(exchange, sandbox, "read");
    const file = locate(sandbox, exchange, exchange.query.get("path") ?? "");
    const info = await stat(file).catch((/** @type {NodeJS.ErrnoException} */ error) => {
      if (error.code === "ENOENT") throw new FileError(404, `path '${file}' does not exist`);
      if (error.code === "ENAMETOOLONG") throw longName(file);
      throw new FileError(500, `error checking if path exists '${file}': stat ${file}: ${goReason(error)}`);
    });
    if (info.isDirectory()) throw new FileError(400, `path '${file}' is a directory`);
    if (info.isFIFO()) return gone(exchange);
    if (info.size === 0 && file.startsWith("/proc/")) return exchange.text(500, "seeker can't seek\n");
    const headers = {
      "content-type": TYPES[path.extname(file)] ?? (await sniff(file)),
      "content-disposition": disposition(path.basename(file)),
      vary: "Accept-Encoding",
    };
    const accepted = exchange.header("accept-encoding") ?? "";
    const partial = ["range", "if-modified-since", "if-none-match", "if-range"].some((name) => exchange.header(name));
    if (/\bgzip\b(?!;q=0)/.test(accepted) && !partial) {
      await exchange.open(200, { ...headers, "content-encoding": "gzip" });
      await copyOut(exchange, createReadStream(file).pipe(createGzip()));
    } else if (/(identity|\*);q=0(?![.\d])/.test(accepted) && !partial) {
      await envdError(exchange, 406, "no acceptable encoding found, supported: [gzip]");
    } else await sendPlain(exchange, file, info, headers);
  });
}

/** @param {string} file */
const longName = (file) => new FileError(500, `error getting file info: stat ${file}: file name too long`);

/** A FIFO is opened, and that waits for its other end: until the client leaves. @param {Exchange} exchange @returns {Promise<void>} */
function gone({ signal }) {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

/** @param {string} name */
function disposition(name) {
  if (/^[\w.!#$&+^`|~-]+$/.test(name)) return `inline; filename=${name}`;
  if (/^[\x20-\x7e]+$/.test(name)) return `inline; filename="${name.replace(/["\\]/g, "\\$&")}"`;
  return `inline; filename*=utf-8''${encodeURIComponent(name)}`;
}

/** The type by a look at the first bytes. @param {string} file */
async function sniff(file) {
  const handle = await open(file);
  try {
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(512), 0, 512, 0);
    const binary = buffer.subarray(0, bytesRead).some((byte) => byte < 9 || (byte > 13 && byte < 32 && byte !== 27));
    return binary ? "application/octet-stream" : "text/plain; charset=utf-8";
  } finally {
    await handle.close();
  }
}

/**
 * @param {Exchange} exchange
 * @param {string} file
 * @param {import("node:fs").Stats} info
 * @param {Record<string, string>} common
 */
async function sendPlain(exchange, file, info, common) {
  /** @type {Record<string, string | number>} */
  const headers = { ...common, "accept-ranges": "bytes", "last-modified": info.mtime.toUTCString() };
  const since = Date.parse(exchange.header("if-modified-since") ?? "");
  if (since >= Math.floor(info.mtimeMs / 1000) * 1000) {
    await exchange.reply(304, headers);
    return;
  }
  let start = 0;
  let end = info.size - 1;
  let status = 200;
  const range = exchange.header("range")?.match(/^bytes=(\d*)-(\d*)$/);
  if (range && (range[1] || range[2])) {
    status = 206;
    start = range[1] ? Number(range[1]) : Math.max(0, info.size - Number(range[2]));
    if (range[1] && range[2]) end = Math.min(end, Number(range[2]));
    if (start > end) {
      await exchange.reply(416, { "content-range": `bytes */${info.size}` }, "invalid range: failed to overlap\n");
      return;
    }
  }
  const length = end - start + 1;
  headers["content-length"] = length;
  if (status === 206) headers["content-range"] = `bytes ${start}-${end}/${info.size}`;
  await exchange.open(status, headers);
  await copyOut(exchange, length > 0 ? createReadStream(file, { start, end }) : Readable.from([]), length);
}

/**
 * @param {Exchange} exchange
 * @param {Readable} source
 * @param {number} [promised] how long it is, as the headers say
 */
async function copyOut(exchange, source, promised = 0) {
  let length = 0;
  for await (const chunk of source) {
    if (exchange.signal.aborted) return;
    await exchange.write(chunk);
    length += chunk.length;
  }
  // A file that has become shorter meanwhile: net/http closes the connection.
  if (length < promised) await exchange.halt("close", "shorter than promised");
  else await exchange.end();
}

/**
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 */
export async function uploadFiles(exchange, sandbox) {
  const type = exchange.header("content-type") ?? "";
  const kind = type.split(";")[0].trim().toLowerCase();
  const chunks = exchange.chunks();
  try {
    authorize(exchange, sandbox, "write");
    const metadata = readMetadata(exchange, sandbox);
    let written;
    if (kind === "application/octet-stream" && sandbox.atLeast("0.5.7")) {
      written = await uploadRaw(exchange, sandbox, chunks, metadata);
    } else if (kind === "multipart/form-data" || kind === "application/octet-stream") {
      written = await uploadParts(exchange, sandbox, chunks, metadata);
    } else throw new FileError(400, `unsupported content type: ${type}`);
    if (written) await exchange.text(200, JSON.stringify(written));
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    await refuseUpload(exchange, sandbox, error);
  }
}

/**
 * A refusal gets lost when it comes before the request's body was read: the node's proxy fails to write the rest,
 * and says so in its own words. The reader of a form reads all of it first; only a token is looked at before.
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 * @param {FileError} error
 */
async function refuseUpload(exchange, sandbox, { status, message }) {
  const form = boundaryOf(exchange.header("content-type")) !== undefined;
  const waits = form && (status !== 401 || sandbox.random() < 0.5);
  for await (const _ of exchange.chunks()) {
    if (waits || exchange.record.bodyBytes <= IN_FLIGHT_BYTES) continue;
    await proxyError(exchange, 502, { sandboxId: sandbox.id, message: SHUT, port: ENVD_PORT });
    return;
  }
  await envdError(exchange, status, message);
}

/**
 * The body is the file.
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 * @param {AsyncIterable<Buffer>} chunks
 * @param {Record<string, string>} metadata
 */
async function uploadRaw(exchange, sandbox, chunks, metadata) {
  const name = exchange.query.get("path");
  if (!name) throw new FileError(400, "path query parameter is required for application/octet-stream uploads");
  const data = exchange.header("content-encoding") === "gzip" ? Readable.from(chunks).pipe(createGunzip()) : chunks;
  const file = await store(exchange, sandbox, locate(sandbox, exchange, name), data, metadata);
  return file && [file];
}

/**
 * The parts of a form that are called "file".
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 * @param {AsyncIterable<Buffer>} chunks
 * @param {Record<string, string>} metadata
 */
async function uploadParts(exchange, sandbox, chunks, metadata) {
  const boundary = boundaryOf(exchange.header("content-type"));
  if (!boundary) {
    throw new FileError(500, "error parsing multipart form: request Content-Type isn't multipart/form-data");
  }
  const written = [];
  const targets = new Set();
  try {
    for await (const { name, headers, data } of readParts(chunks, boundary)) {
      if (name !== "file") continue;
      const filename = headers["content-disposition"].match(/[;\s]filename="((?:[^"\\]|\\.)*)"/)?.[1] ?? "";
      const given = exchange.query.get("path") ?? filename.replace(/\\(.)/g, "$1");
      const target = locate(sandbox, exchange, given);
      if (targets.has(target)) {
        throw new FileError(400, "you cannot upload multiple files to the same path in one upload request");
      }
      targets.add(target);
      const file = await store(exchange, sandbox, target, data, metadata);
      if (!file) return undefined;
      written.push(file);
    }
  } catch (error) {
    if (error instanceof MultipartError) throw new FileError(500, `error parsing multipart form: ${error.message}`);
    throw error;
  }
  return written;
}

/**
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 */
function readMetadata(exchange, sandbox) {
  /** @type {Record<string, string>} */
  const metadata = {};
  if (!sandbox.atLeast("0.6.2")) return metadata;
  for (const [name, value] of Object.entries(exchange.headers)) {
    if (name.startsWith(METADATA_PREFIX)) metadata[name.slice(METADATA_PREFIX.length)] = String(value);
  }
  const bad = Object.entries(metadata).find(([key, value]) => key.length > 246 || !/^[\x20-\x7e]*$/.test(value));
  if (bad) throw new FileError(400, `invalid metadata '${bad[0]}'`);
  return metadata;
}

/**
 * Writes in place, as the daemon does: an upload that breaks off leaves what has arrived.
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 * @param {string} file
 * @param {AsyncIterable<Buffer>} source
 * @param {Record<string, string>} metadata
 */
async function store(exchange, sandbox, file, source, metadata) {
  const directory = path.dirname(file);
  await mkdir(directory, { recursive: true }).catch((/** @type {NodeJS.ErrnoException} */ error) => {
    if (error.code === "ENOTDIR" || error.code === "EEXIST") {
      throw new FileError(500, `error ensuring directories: path is a file: ${error.path ?? directory}`);
    }
    throw new FileError(500, `error ensuring directories: ${goReason(error)}`);
  });
  const present = await stat(file).catch((/** @type {NodeJS.ErrnoException} */ error) => {
    if (error.code === "ENAMETOOLONG") throw longName(file);
  });
  if (present?.isDirectory()) throw new FileError(400, `path is a directory: ${file}`);
  if (present?.isFIFO()) return gone(exchange);
  const room = sandbox.settings.diskFreeBytes;
  try {
    await pipeline(source, within(room), createWriteStream(file, { flags: "w", mode: 0o666 }));
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === "ENOSPC") {
      throw new FileError(507, "not enough disk space available");
    }
    if (error instanceof MultipartError) throw error;
    throw new FileError(500, `error writing file: ${goReason(error)}`);
  }
  const hasMetadata = Object.keys(metadata).length > 0;
  if (hasMetadata) sandbox.fileMetadata.set(file, metadata);
  else sandbox.fileMetadata.delete(file);
  return { name: path.basename(file), path: file, type: "file", metadata: hasMetadata ? metadata : undefined };
}

/** @param {number} room */
function within(room) {
  return async function* (/** @type {AsyncIterable<Buffer>} */ source) {
    let length = 0;
    for await (const chunk of source) {
      length += chunk.length;
      if (length > room) throw Object.assign(new Error(), { code: "ENOSPC" });
      yield chunk;
    }
  };
}
