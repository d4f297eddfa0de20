// "cloudsandbox/computesdk": sandboxes as a provider of ComputeSDK.
import { SandboxError } from "../errors.js";
import { checkFunction, checkNames } from "../options.js";
import { MAX_OUTPUT, checkNative, guarded, secondsOf, unsupported, whole } from "./seam.js";

/** @import { DefineProvider } from "../../types/adapters/computesdk.js" */

/** Runs its argument and does not wait for it. */
const BEHIND = 'sh -c "$1" </dev/null >/dev/null 2>&1 &';

/**
 * @template Provider
 * @param {DefineProvider<Provider>} defineProvider of "@computesdk/provider"
 * @param {(options: any) => any} make a new sandbox for each create(), of its options
 * @param {{ name?: string | undefined }} [options]
 * @returns {Provider}
 */
export function computeSdkProvider(defineProvider, make, options) {
  checkFunction(defineProvider, "defineProvider");
  checkFunction(make, "make");
  const { name = "cloudsandbox" } = checkNames(options, ["name"], "computeSdkProvider");
  /** @type {Map<string, { sandbox: any, sandboxId: string, createdAt: Date, timeout: number }>} */
  const open = new Map();
  const sandbox = {
    /** @param {unknown} _ @param {any} [given] */
    async create(_, given = {}) {
      const made = checkNative(await make(given), "computeSdkProvider: what `make` gave", "mkdir");
      try {
        await made.start({ signal: given.signal });
      } catch (error) {
        await made.close().catch(() => {});
        throw error;
      }
      const sandboxId = made.sandboxId ?? globalThis.crypto.randomUUID();
      const entry = { sandbox: made, sandboxId, createdAt: new Date(), timeout: given.timeout ?? 0 };
      open.set(sandboxId, entry);
      return entry;
    },
    getById: async (/** @type {unknown} */ _, /** @type {string} */ id) => open.get(id) ?? null,
    list: async () => [...open.values()],
    // Goes through for what is gone; what could not be deleted stays in the list.
    async destroy(/** @type {unknown} */ _, /** @type {string} */ id) {
      await open.get(id)?.sandbox.close();
      open.delete(id);
    },
    runCommand,
    streamCommand: runCommand,
    async getInfo(/** @type {any} */ one) {
      const entry = [...open.values()].find((other) => other.sandbox === one);
      const { sandboxId: id = "", createdAt = new Date(0), timeout = 0 } = entry ?? {};
      return { id, provider: name, status: entry ? "running" : "stopped", createdAt, timeout, metadata: { providerId: one.providerId } };
    },
    async getUrl() {
      throw unsupported("getUrl: a sandbox of this package has no address for its ports");
    },
    getInstance: (/** @type {any} */ one) => one,
    filesystem,
  };
  return defineProvider({ name, methods: { sandbox } })({});
}

/** @param {any} sandbox @param {string} command @param {any} [options] */
async function runCommand(sandbox, command, { cwd, env, timeout, background = false, onStdout, onStderr } = {}) {
  const what = background ? { argv: ["sh", "-c", BEHIND, "sh", command], background: "keep" } : { command };
  const result = await sandbox.exec({
    ...what, cwd, env, timeoutSeconds: secondsOf(timeout), maxOutputBytes: MAX_OUTPUT, truncate: "middle",
    onStdout: guarded(onStdout), onStderr: guarded(onStderr),
  });
  return { stdout: whole(result, "stdout"), stderr: whole(result, "stderr"), exitCode: result.exitCode, durationMs: result.durationMs };
}

const filesystem = {
  /** @param {any} sandbox @param {string} path */
  async readFile(sandbox, path) {
    const text = await sandbox.readFile(path);
    if (text === null) throw new SandboxError(`readFile: there is no file ${JSON.stringify(path)}`, { code: "ERR_SANDBOX_NOT_FOUND" });
    return text;
  },
  /** @param {any} sandbox @param {string} path @param {string} content */
  writeFile: (sandbox, path, content) => sandbox.writeFile(path, content),
  /** @param {any} sandbox @param {string} path */
  mkdir: (sandbox, path) => sandbox.mkdir(path),
  /** @param {any} sandbox @param {string} path */
  async readdir(sandbox, path) {
    /** @type {any[]} */
    const entries = await sandbox.listDirectory(path);
    return entries.map(({ name, type, size, mtimeMs }) => {
      return { name, type: type === "directory" ? type : "file", size, ...(mtimeMs !== null && { modified: new Date(mtimeMs) }) };
    });
  },
  /** @param {any} sandbox @param {string} path */
  exists: async (sandbox, path) => (await sandbox.stat(path)) !== null,
  /** @param {any} sandbox @param {string} path */
  async remove(sandbox, path) {
    await sandbox.deleteFile(path, { recursive: true });
  },
};
