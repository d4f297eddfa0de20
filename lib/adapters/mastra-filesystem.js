// A sandbox's files as the filesystem of a Mastra workspace. Part of "cloudsandbox/mastra".
//
// Invariant: what fails there by a class of its own is of the caller's module, which looks with instanceof.
import { SandboxError } from "../errors.js";
import { checkNames } from "../options.js";
import { checkNative } from "./seam.js";

const { basename, dirname, extname } = process.getBuiltinModule("node:path").posix;

/** @import { MastraFiles } from "../../types/adapters/mastra.js" */

/** Of what no tool should show as text. @type {Record<string, string>} */
const TYPES = {
  ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".pdf": "application/pdf",
  ".zip": "application/zip", ".gz": "application/gzip", ".tar": "application/x-tar", ".wasm": "application/wasm", ".so": "application/octet-stream",
  ".bin": "application/octet-stream",
};

/** The workspace is all that there is: `/x`, `x` and `./x` are one file. @param {string} path */
function inside(path) {
  const own = path.replace(/^\/+/, "") || ".";
  return own.startsWith("~") ? `./${own}` : own; // Else it would be the home.
}

/**
 * @template {MastraFiles} Module
 * @param {any} sandbox
 * @param {Module} workspace "@mastra/core/workspace"
 * @param {{ id?: string | undefined, readOnly?: boolean | undefined }} [options]
 * @returns {InstanceType<Module["MastraFilesystem"]>}
 */
export function mastraFilesystem(sandbox, workspace, options) {
  checkNative(sandbox, "mastraFilesystem", "moveFile", "mkdir");
  const { id = `${sandbox.providerId}-${globalThis.crypto.randomUUID()}`, readOnly = sandbox.mode === "read-only" } = checkNames(options, ["id", "readOnly"], "mastraFilesystem");
  const failures = workspace;

  /** @param {string} path @returns {Promise<any>} what is there, or null */
  const look = (path) => sandbox.stat(inside(path));

  /** @param {string} path */
  async function mustBe(path) {
    const found = await look(path);
    if (found === null) throw new failures.FileNotFoundError(path);
    return found;
  }

  /** @param {string} path @param {boolean | undefined} overwrite */
  async function mustBeFree(path, overwrite) {
    const found = await look(path);
    if (found?.type === "directory") throw new failures.IsDirectoryError(path);
    if (found !== null && overwrite === false) throw new failures.FileExistsError(path);
    return found;
  }

  /** @param {string} path @param {unknown} error */
  async function told(path, error) {
    if (!(error instanceof SandboxError) || error.code !== "ERR_SANDBOX_INVALID_ARG") return error;
    const found = await look(path).catch(() => null);
    return found?.type === "directory" ? new failures.IsDirectoryError(path) : error;
  }

  /** @param {string} path @returns {Promise<Uint8Array>} */
  async function bytesOf(path) {
    const bytes = await sandbox.readBytes(inside(path)).catch(async (/** @type {unknown} */ error) => {
      throw await told(path, error);
    });
    if (bytes === null) throw new failures.FileNotFoundError(path);
    return bytes;
  }

  /** @param {string} path @param {string | Uint8Array} content */
  const put = (path, content) => sandbox.writeFile(inside(path), typeof content === "string" ? content : new Uint8Array(content));

  /** @param {string} path @param {any} how @param {number} depth @param {string} prefix @returns {Promise<any[]>} */
  async function entriesOf(path, how, depth, prefix) {
    const { recursive = false, extension, maxDepth = Infinity } = how;
    const extensions = extension && [extension].flat().map((one) => (one.startsWith(".") ? one : `.${one}`));
    const all = [];
    for (const { name, type, size } of await sandbox.listDirectory(path)) {
      const isSymlink = type === "link";
      const below = `${path}/${name}`;
      const real = isSymlink ? await sandbox.stat(below).catch(() => null) : { type, size };
      const isDirectory = real?.type === "directory";
      if (isDirectory || !extensions || extensions.includes(extname(name))) {
        all.push({ name: prefix + name, type: isDirectory ? "directory" : "file", ...(!isDirectory && { size: real?.size ?? 0 }), ...(isSymlink && { isSymlink }) });
      }
      // What a link leads to may be above it.
      if (recursive && isDirectory && !isSymlink && depth < maxDepth) all.push(...(await entriesOf(below, how, depth + 1, `${prefix}${name}/`)));
    }
    return all;
  }

  class Filesystem extends failures.MastraFilesystem {
    id = id;
    name = "CloudSandboxFilesystem";
    provider = sandbox.providerId;
    status = "pending";
    readOnly = readOnly;

    constructor() {
      super({ name: "CloudSandboxFilesystem" });
    }

    async init() {
      await sandbox.start();
    }

    /** The sandbox belongs to others too. */
    async destroy() {}

    getInstructions() {
      return "The files of the sandbox that the commands work on. `/` is its working directory.";
    }

    /** @param {string} path @param {{ encoding?: BufferEncoding }} [options] */
    async readFile(path, { encoding } = {}) {
      const bytes = Buffer.from(await bytesOf(path));
      return encoding ? bytes.toString(encoding) : bytes;
    }

    /** @param {string} path @param {string | Uint8Array} content @param {any} [options] */
    async writeFile(path, content, { overwrite, expectedMtime } = {}) {
      const found = await mustBeFree(path, overwrite);
      const seen = found?.mtimeMs;
      if (expectedMtime && seen != null && Math.trunc(seen) !== expectedMtime.getTime()) throw new failures.StaleFileError(path, expectedMtime, new Date(seen));
      await put(path, content);
    }

    /** @param {string} path @param {string | Uint8Array} content */
    async appendFile(path, content) {
      const found = await mustBeFree(path, true);
      const before = found === null ? Buffer.of() : await bytesOf(path);
      await put(path, Buffer.concat([before, Buffer.from(content)]));
    }

    /** @param {string} path @param {any} [options] */
    async deleteFile(path, { force = false } = {}) {
      const was = await sandbox.deleteFile(inside(path)).catch(async (/** @type {unknown} */ error) => {
        throw await told(path, error);
      });
      if (!was && !force) throw new failures.FileNotFoundError(path);
    }

    /** @param {string} from @param {string} to @param {any} [options] */
    async copyFile(from, to, { overwrite, recursive = false } = {}) {
      const { type } = await mustBe(from);
      if (type === "directory" && !recursive) throw new failures.IsDirectoryError(from);
      await mustBeFree(to, overwrite);
      await sandbox.mkdir(dirname(inside(to)));
      // Both are paths of the sandbox's own, as those two have found. A program stays one.
      const { exitCode, stderr } = await sandbox.exec({ argv: ["cp", "-RH", `./${inside(from)}`, `./${inside(to)}`] });
      if (exitCode !== 0) throw new failures.FilesystemError(`copyFile: ${stderr.trim() || `cp ended with ${exitCode}`}`, "EIO", to);
    }

    /** @param {string} from @param {string} to @param {any} [options] */
    async moveFile(from, to, { overwrite } = {}) {
      await mustBe(from);
      await mustBeFree(to, overwrite);
      await sandbox.moveFile(inside(from), inside(to));
    }

    /** @param {string} path @param {any} [options] */
    async mkdir(path, { recursive = true } = {}) {
      const found = await look(path);
      if (found !== null && (found.type !== "directory" || !recursive)) throw new failures.FileExistsError(path);
      if (!recursive && (await look(dirname(inside(path)))) === null) throw new failures.DirectoryNotFoundError(dirname(path));
      await sandbox.mkdir(inside(path));
    }

    /** @param {string} path @param {any} [options] */
    async rmdir(path, { recursive = false, force = false } = {}) {
      const found = await look(path);
      if (found === null && force) return;
      if (found === null) throw new failures.DirectoryNotFoundError(path);
      if (found.type !== "directory") throw new failures.NotDirectoryError(path);
      if (!recursive && (await sandbox.listDirectory(inside(path))).length > 0) throw new failures.DirectoryNotEmptyError(path);
      await sandbox.deleteFile(inside(path), { recursive: true });
    }

    /** @param {string} path @param {any} [how] */
    async readdir(path, how = {}) {
      const found = await look(path);
      if (found === null) throw new failures.DirectoryNotFoundError(path);
      if (found.type !== "directory") throw new failures.NotDirectoryError(path);
      return entriesOf(inside(path), how, 1, "");
    }

    /** @param {string} path */
    async exists(path) {
      return (await look(path)) !== null;
    }

    /** @param {string} path */
    async stat(path) {
      const { type, size, mtimeMs } = await mustBe(path);
      const modifiedAt = new Date(mtimeMs ?? 0);
      const mimeType = TYPES[extname(path).toLowerCase()];
      return { name: basename(path), path, type: type === "directory" ? type : "file", size, createdAt: modifiedAt, modifiedAt, ...(mimeType && { mimeType }) };
    }
  }
  return /** @type {InstanceType<Module["MastraFilesystem"]>} */ (new Filesystem());
}
