// The daemon's calls that carry file contents, one file or many, up and down.
// @ts-check
import { createReadStream } from "node:fs";
import { mkdir, open, stat } from "node:fs/promises";
import path from "node:path";
import { goReason } from "../go.js";
import { DaemonError, STRUCTURED, daemonErrorBody, pageNotFound, plainForbidden } from "./errors.js";
import { fileError, fileRefusal, givenPath } from "./files.js";
import { goJson, goUnmarshal } from "./gojson.js";
import { MultipartError, boundaryOf, collect, disposition, readParts } from "../multipart.js";
import { locate } from "./paths.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */
/** @typedef {import("../exchange.js").Reply} Reply */
/** @typedef {import("./sandbox.js").Sandbox} Sandbox */

/** Fixed, whatever the files contain. */
const BOUNDARY = "DAYTONA-FILE-BOUNDARY";

/** @param {number} status @param {unknown} value @returns {Reply} */
const json = (status, value) => ({
  status,
  headers: { "content-type": "application/json; charset=utf-8" },
  body: goJson(value),
});

/**
 * The file's size, or an error if it is none that can be downloaded.
 * @param {Sandbox} sandbox
 * @param {string} name
 */
async function checkFile(sandbox, name) {
  const full = locate(sandbox, name);
  const stats = await stat(full).catch((error) => {
    throw fileError(error, "stat", name);
  });
  if (stats.isDirectory()) throw fileRefusal("path must be a file", "INVALID_FILE_PATH");
  // The emulator may run as a user who has all rights; the sandbox's has not.
  if ((stats.mode & 0o444) === 0) throw fileError({ code: "EACCES" }, "open", name);
  if (stats.isFIFO()) return { full, size: 0, modified: stats.mtime, fifo: true };
  const handle = await open(full).catch((error) => {
    throw fileError(error, "open", name);
  });
  await handle.close();
  return { full, size: stats.size, modified: stats.mtime, fifo: false };
}

/**
 * The part that is asked for, if one is and there is such a part.
 * @param {string | undefined} header
 * @param {number} size
 */
function readRange(header, size) {
  const match = header?.match(/^bytes=(\d*)-(\d*)$/);
  if (!match || !(match[1] || match[2])) return undefined;
  const start = match[1] ? Number(match[1]) : Math.max(0, size - Number(match[2]));
  const end = match[1] && match[2] ? Math.min(Number(match[2]), size - 1) : size - 1;
  return { start, end, possible: start <= end };
}

/**
 * @param {Exchange} exchange
 * @param {string} full
 * @param {{ start: number, end: number }} range
 * @returns {Promise<number>} how much there was
 */
async function sendBytes(exchange, full, range) {
  if (range.end < range.start) return 0;
  let length = 0;
  for await (const chunk of createReadStream(full, range)) {
    if (exchange.signal.aborted) break;
    await exchange.write(chunk);
    length += chunk.length;
  }
  return length;
}

/** A FIFO is opened, and that waits for its other end: until the client leaves. @param {Exchange} exchange @returns {Promise<void>} */
function gone({ signal }) {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

/**
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 */
export async function download(exchange, sandbox) {
  const checked = await checkFile(sandbox, givenPath(exchange)).catch((error) => {
    if (error instanceof DaemonError && error.status === 403 && !sandbox.daemonAtLeast(STRUCTURED)) return undefined;
    throw error;
  });
  if (!checked) return plainForbidden();
  const { full, size, modified, fifo } = checked;
  if (fifo) {
    await gone(exchange);
    return undefined;
  }
  /** @type {Record<string, string | number>} */
  const headers = {
    "content-type": "application/octet-stream",
    "content-description": "File Transfer",
    "content-disposition": `attachment; filename*=UTF-8''${encodeURIComponent(path.basename(full))}`,
    "content-transfer-encoding": "binary",
    "cache-control": "must-revalidate",
    "accept-ranges": "bytes",
    "last-modified": modified.toUTCString(),
  };
  const range = readRange(exchange.header("range"), size);
  if (range && !range.possible) {
    return { status: 416, headers: { "content-range": `bytes */${size}` }, body: "invalid range: failed to overlap\n" };
  }
  const { start, end } = range ?? { start: 0, end: size - 1 };
  headers["content-length"] = end - start + 1;
  if (range) headers["content-range"] = `bytes ${start}-${end}/${size}`;
  await exchange.open(range ? 206 : 200, headers);
  // Files of the kernel are not as long as they say: what was promised decides.
  const length = await sendBytes(exchange, full, { start, end });
  if (length < end - start + 1) await exchange.halt("close", "shorter than promised");
  else await exchange.end();
  return undefined;
}

/**
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 */
export async function downloadMany(exchange, sandbox) {
  const request = goUnmarshal(await exchange.body(), "FilesDownloadRequest", { paths: "[]string" });
  if (typeof request === "string" || !request.paths?.length) {
    return json(400, { error: 'request body must be {"paths": [ ... ]} and non-empty' });
  }
  await exchange.open(200, { "content-type": `multipart/form-data; boundary=${BOUNDARY}` });
  for (const [i, name] of request.paths.entries()) {
    await exchange.write(Buffer.from(`${i > 0 ? "\r\n" : ""}--${BOUNDARY}\r\n`));
    await sendPart(exchange, sandbox, name);
  }
  await exchange.write(Buffer.from(`\r\n--${BOUNDARY}--\r\n`));
  await exchange.end();
  return undefined;
}

/**
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 * @param {string} name
 */
async function sendPart(exchange, sandbox, name) {
  const head = (/** @type {string} */ field, /** @type {string} */ type, /** @type {number} */ length) => {
    const size = sandbox.daemonAtLeast("0.175.0") ? [`Content-Length: ${length}`] : [];
    const lines = [`Content-Disposition: ${disposition(field, name)}`, `Content-Type: ${type}`, ...size];
    return Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
  };
  try {
    const { full, size, fifo } = await checkFile(sandbox, name);
    if (fifo) {
      await gone(exchange);
      return;
    }
    await exchange.write(head("file", "application/octet-stream", size));
    await sendBytes(exchange, full, { start: 0, end: Infinity });
  } catch (error) {
    if (!(error instanceof DaemonError)) throw error;
    const { type, body } = errorPart(error, sandbox);
    await exchange.write(head("error", type, body.length));
    await exchange.write(body);
  }
}

/**
 * @param {DaemonError} error
 * @param {Sandbox} sandbox
 */
function errorPart(error, sandbox) {
  if (!sandbox.daemonAtLeast("0.163.0")) return { type: "text/plain; charset=utf-8", body: Buffer.from(error.message) };
  const where = { path: "/files/bulk-download", method: "POST" };
  const atLeast = (/** @type {string} */ version) => sandbox.daemonAtLeast(version);
  const body = { ...daemonErrorBody(error, atLeast, where), ...(error.code ? { code: error.code } : {}) };
  return { type: "application/json; charset=utf-8", body: Buffer.from(goJson(body)) };
}

/**
 * Writes in place: what breaks off leaves what has arrived. An existing file keeps its mode.
 * @param {string} full
 * @param {AsyncIterable<Buffer>} data
 */
async function store(full, data) {
  const handle = await open(full, "w", 0o666);
  let bytes = 0;
  try {
    for await (const chunk of data) {
      await handle.writeFile(chunk);
      bytes += chunk.length;
    }
  } finally {
    await handle.close();
  }
  return bytes;
}

/** Whether a file could not be written, rather than its bytes not be had. @param {unknown} error */
const isSystemError = (error) => /** @type {NodeJS.ErrnoException} */ (error).syscall !== undefined;

/** @param {Exchange} exchange */
function parts(exchange) {
  const boundary = boundaryOf(exchange.header("content-type"));
  return boundary === undefined ? undefined : readParts(exchange.chunks(), boundary);
}

/**
 * One field "file"; directories are made.
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 */
export async function upload(exchange, sandbox) {
  const name = givenPath(exchange);
  const found = await storeFilePart(exchange, sandbox, name, false);
  if (!found) throw fileRefusal("http: no such file");
  return { status: 200 };
}

/**
 * A field "file" or the mere bytes; directories are made.
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 */
export async function uploadAny(exchange, sandbox) {
  if (!sandbox.daemonAtLeast("0.191.0")) return pageNotFound();
  const name = givenPath(exchange);
  const full = locate(sandbox, name);
  if (!(await storeFilePart(exchange, sandbox, name, true))) throw fileRefusal("http: no such file");
  return json(200, { name: path.basename(full), path: full, type: "file" });
}

/**
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 * @param {string} name
 * @param {boolean} lenient
 */
async function storeFilePart(exchange, sandbox, name, lenient) {
  const full = locate(sandbox, name);
  const write = async (/** @type {AsyncIterable<Buffer>} */ data) => {
    try {
      await mkdir(path.dirname(full), { recursive: true, mode: 0o755 });
      await store(full, data);
    } catch (error) {
      if (!isSystemError(error)) throw error;
      throw fileRefusal(`open ${name}: ${goReason(error)}`);
    }
  };
  const form = parts(exchange);
  if (!form) {
    if (!lenient) throw fileRefusal("request Content-Type isn't multipart/form-data");
    await write(exchange.chunks());
    return true;
  }
  let found = false;
  try {
    for await (const part of form) {
      if (part.name !== "file" || found) continue;
      found = true;
      await write(part.data);
    }
  } catch (error) {
    if (!(error instanceof MultipartError)) throw error;
    throw fileRefusal(`multipart: NextPart: ${error.message}`);
  }
  return found;
}

/**
 * Pairs of fields `files[i].path` and `files[i].file`; one that fails does not keep the others from being written.
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 */
export async function uploadMany(exchange, sandbox) {
  if (!sandbox.daemonAtLeast("0.101.0")) return pageNotFound();
  const form = parts(exchange);
  if (!form) return json(400, { errors: ["invalid multipart form"] });
  /** @type {Map<string, string>} */
  const names = new Map();
  /** @type {string[]} */
  const errors = [];
  /** @type {{ path: string, bytes: number }[]} */
  const files = [];
  try {
    for await (const part of form) {
      const match = part.name.match(/^files\[(.*)\]\.(path|file)$/);
      if (!match) continue;
      const [, index, kind] = match;
      if (kind === "path") names.set(index, (await collect(part.data)).toString().trim());
      else await storeIndexed(sandbox, index, names.get(index), part.data, { errors, files });
    }
  } catch (error) {
    if (!(error instanceof MultipartError)) throw error;
    errors.push(`reading part: multipart: NextPart: ${error.message}`);
  }
  const detailed = sandbox.daemonAtLeast("0.176.0");
  if (errors.length > 0) return json(400, { errors, ...(detailed ? { files: files.length > 0 ? files : null } : {}) });
  return detailed ? json(200, { files }) : { status: 200 };
}

/**
 * @param {Sandbox} sandbox
 * @param {string} index
 * @param {string | undefined} name
 * @param {AsyncIterable<Buffer>} data
 * @param {{ errors: string[], files: { path: string, bytes: number }[] }} results
 */
async function storeIndexed(sandbox, index, name, data, { errors, files }) {
  if (name === undefined) {
    errors.push(`file[${index}]: missing .path metadata`);
    return;
  }
  const full = locate(sandbox, name);
  const directory = path.dirname(full);
  try {
    await mkdir(directory, { recursive: true, mode: 0o755 });
  } catch (error) {
    const known = /** @type {NodeJS.ErrnoException} */ (error).code === "EEXIST" ? { code: "ENOTDIR" } : error;
    errors.push(`${name}: mkdir ${directory}: ${goReason(known)}`);
    return;
  }
  try {
    files.push({ path: name, bytes: await store(full, data) });
  } catch (error) {
    if (!isSystemError(error)) throw error;
    errors.push(`${name}: create: open ${name}: ${goReason(error)}`);
  }
}
