// The files of a folder on their way into a sandbox: as archives where it has a tar, else a few at a time.
import { fewAtATime, inShell, look, put, quoted, unpack } from "./place.js";
import { bytesOfFile, contentsOf } from "./folder.js";
import { Archive } from "./tar.js";

const { createHash } = process.getBuiltinModule("node:crypto");

/** @import { Port } from "./place.js" */
/** @import { Found, FoundFile, Skip } from "./folder.js" */
/** @import { WorkspaceTransfer, WorkspaceProgress } from "../../types/workspace.js" */

/** An archive is held in memory, and sent when it has so many. */
const ARCHIVE_BYTES = 8 * 1024 * 1024;
const HASHED_AT_ONCE = 4 * 1024 * 1024;

/**
 * @typedef {{ maxFiles: number, maxFileBytes: number, maxBytes: number }} Limits
 * @typedef {object} Way what one transfer goes by
 * @property {Port} port
 * @property {string} root the folder, real
 * @property {(path: string, isFolder?: boolean) => string | undefined} leftOutBy
 * @property {Map<string, Known>} known what both sides had when they were last alike; what has been deleted since then stays in it, so
 *   that it does not come back
 * @property {ReadonlyMap<string, string | undefined>} [before] hashes of what the sandbox had besides, which is nothing that a command has made
 * @property {AbortSignal | undefined} [signal]
 * @property {((progress: WorkspaceProgress) => void) | undefined} [onProgress]
 * @property {Limits} [limits]
 *
 * @typedef {{ hash: string, isProgram: boolean, size: number, mtimeMs: number }} Known
 */

/** In parts, so that the host's event loop goes on. @param {Uint8Array} bytes */
export async function hashOf(bytes) {
  const hash = createHash("sha256");
  for (let at = 0; at < bytes.length; at += HASHED_AT_ONCE) {
    if (at > 0) await otherWork();
    hash.update(bytes.subarray(at, at + HASHED_AT_ONCE));
  }
  return hash.digest("hex");
}

/** Lets the event loop go round. */
export function otherWork() {
  return new Promise((resolve) => setImmediate(resolve));
}

/** @param {number} mode */
const isProgram = (mode) => (mode & 0o111) !== 0;

/**
 * Sends what is not there yet.
 *
 * @param {Way} way
 * @returns {Promise<WorkspaceTransfer>}
 */
export async function sendFolder(way) {
  const found = await contentsOf(way.root, way.leftOutBy, way.signal);
  return send(way, found);
}

/**
 * Sends what has changed since both sides were last alike; new folders and links come with a file in them, or not at all.
 *
 * @param {Way} way
 * @returns {Promise<WorkspaceTransfer>}
 */
export async function sendChanges(way) {
  const found = await contentsOf(way.root, way.leftOutBy, way.signal);
  const changed = found.files.filter(({ path, size, mtimeMs, mode }) => {
    const known = way.known.get(path);
    return known?.size !== size || known.mtimeMs !== mtimeMs || known.isProgram !== isProgram(mode);
  });
  const skipped = found.skipped.filter(({ reason }) => !reason.startsWith("left out"));
  return send(way, { folders: [], links: [], files: changed, skipped });
}

/**
 * @param {Way} way
 * @param {Found} wanted
 * @returns {Promise<WorkspaceTransfer>}
 */
async function send(way, wanted) {
  const began = performance.now();
  const skipped = [...wanted.skipped];
  const files = within(wanted.files, way.limits, skipped);
  const { port, signal } = way;
  const total = { totalFiles: files.length, totalBytes: files.reduce((sum, { size }) => sum + size, 0) };
  /** @type {WorkspaceTransfer} */
  const result = { files: 0, bytes: 0, unchanged: 0, skipped, durationMs: 0 };
  const progress = { files: 0, bytes: 0, ...total };
  const isNothing = files.length + wanted.folders.length + wanted.links.length === 0;
  if (!isNothing) {
    const { files: there, hasTar } = await look(port, files.map(({ path }) => path), signal);
    const load = hasTar ? new Archives(way) : new Singles(way);
    for (const folder of wanted.folders) load.folder(folder);
    for (const file of files) {
      signal?.throwIfAborted();
      const bytes = await bytesOfFile(way.root, file.path);
      progress.files += 1;
      progress.bytes += file.size;
      if (typeof bytes === "string") {
        skipped.push({ path: file.path, reason: bytes });
        continue;
      }
      const known = { hash: await hashOf(bytes), isProgram: isProgram(file.mode), size: file.size, mtimeMs: file.mtimeMs };
      const seen = there.get(file.path);
      if (seen?.hash === known.hash && seen.isProgram === known.isProgram) {
        result.unchanged += 1;
        way.known.set(file.path, known);
      } else {
        result.files += 1;
        result.bytes += bytes.length;
        // Known once it is there: what fails in between is sent again.
        await load.file(file, bytes, () => way.known.set(file.path, known));
      }
      if (load.isIdle) way.onProgress?.({ ...progress });
    }
    for (const link of wanted.links) load.link(link);
    await load.end();
    way.onProgress?.({ ...progress });
  }
  result.durationMs = Math.round(performance.now() - began);
  return result;
}

/**
 * Those that the limits allow, in their order.
 *
 * @template {{ path: string, size: number }} T
 * @param {readonly T[]} files
 * @param {Limits | undefined} limits
 * @param {Skip[]} skipped gets the others
 */
export function within(files, limits, skipped) {
  if (!limits) return [...files];
  const { maxFiles, maxFileBytes, maxBytes } = limits;
  const taken = [];
  let bytes = 0;
  for (const file of files) {
    const reason =
      file.size > maxFileBytes ? `it has more than ${maxFileBytes} bytes`
      : taken.length >= maxFiles ? `there are more than ${maxFiles} files`
      : bytes + file.size > maxBytes ? `all together have more than ${maxBytes} bytes`
      : undefined;
    if (reason === undefined) {
      taken.push(file);
      bytes += file.size;
    } else {
      skipped.push({ path: file.path, reason });
    }
  }
  return taken;
}

/** As archives, one after the other. */
class Archives {
  #way;
  #archive = new Archive();
  /** @type {(() => void)[]} */
  #arrived = [];

  /** @param {Way} way */
  constructor(way) {
    this.#way = way;
  }

  /** Whether all that it was given is there. */
  get isIdle() {
    return this.#archive.size === 0;
  }

  /** @param {Found["folders"][number]} folder */
  folder(folder) {
    this.#archive.folder(folder);
  }

  /** @param {Found["links"][number]} link */
  link(link) {
    this.#archive.link(link);
  }

  /** @param {FoundFile} file @param {Uint8Array} bytes @param {() => void} arrived */
  async file(file, bytes, arrived) {
    if (this.#archive.size > 0 && this.#archive.size + bytes.length > ARCHIVE_BYTES) await this.end();
    this.#archive.file(file, bytes);
    this.#arrived.push(arrived);
    if (this.#archive.size > ARCHIVE_BYTES) await this.end();
  }

  async end() {
    if (this.#archive.size === 0) return;
    const archive = this.#archive;
    this.#archive = new Archive();
    await unpack(this.#way.port, archive.end(), this.#way.signal);
    for (const arrived of this.#arrived.splice(0)) arrived();
  }
}

/** Each by itself, where there is no tar. */
class Singles {
  #way;
  /** @type {{ path: string, bytes: Uint8Array, arrived: () => void }[]} */
  #waiting = [];
  #size = 0;
  /** @type {string[]} */
  #before = [];
  /** @type {string[]} */
  #after = [];

  /** @param {Way} way */
  constructor(way) {
    this.#way = way;
  }

  get isIdle() {
    return this.#waiting.length === 0;
  }

  /** @param {Found["folders"][number]} folder */
  folder({ path, mode }) {
    this.#before.push(`mkdir -p ${inside(path)}`);
    this.#after.push(`chmod ${octal(mode | 0o700)} ${inside(path)}`);
  }

  /** @param {Found["links"][number]} link */
  link({ path, target }) {
    this.#after.push(`rm -f ${inside(path)} && ln -s ${quoted(target)} ${inside(path)}`);
  }

  /** @param {FoundFile} file @param {Uint8Array} bytes @param {() => void} arrived */
  async file({ path, mode }, bytes, arrived) {
    this.#waiting.push({ path, bytes, arrived });
    this.#size += bytes.length;
    this.#after.push(`chmod ${octal(mode)} ${inside(path)}`);
    if (this.#size > ARCHIVE_BYTES || this.#waiting.length >= 100) await this.#send();
  }

  async end() {
    await this.#send();
    await inShell(this.#way.port, this.#before.splice(0), this.#way.signal);
    await inShell(this.#way.port, this.#after.splice(0), this.#way.signal);
  }

  async #send() {
    this.#size = 0;
    await fewAtATime(this.#waiting.splice(0), async ({ path, bytes, arrived }) => {
      await put(this.#way.port, path, bytes, this.#way.signal);
      arrived();
    });
  }
}

/** @param {string} path */
function inside(path) {
  return quoted(`./${path}`);
}

/** @param {number} mode */
function octal(mode) {
  return mode.toString(8);
}
