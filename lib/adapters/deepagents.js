// "cloudsandbox/deepagents": a sandbox as a backend of deepagents.
import { PathSecurityError, SandboxError, wordsOf } from "../errors.js";
import { checkNames } from "../options.js";
import { MAX_OUTPUT, checkNative } from "./seam.js";

/** @import { BaseSandboxClass } from "../../types/adapters/deepagents.js" */

/** Where that framework puts results that are too long for its model, and what was said. */
const OVERFLOW = /^\/(?=(?:large_tool_results|conversation_history)(?:\/|$))/;
const DEFAULT_SECONDS = 120;

/**
 * @template {abstract new (...args: any[]) => any} Base
 * @param {any} sandbox
 * @param {Base} BaseSandbox of "deepagents"
 * @param {{ timeoutSeconds?: number | undefined, signal?: (() => import("../../types/index.js").CallSignal | undefined) | undefined }} [options]
 * @returns {InstanceType<Base>}
 */
export function deepAgentsBackend(sandbox, BaseSandbox, options) {
  checkNative(sandbox, "deepAgentsBackend");
  const { timeoutSeconds = DEFAULT_SECONDS, signal = () => undefined } = checkNames(options, ["timeoutSeconds", "signal"], "deepAgentsBackend");
  // Commands have their paths as they are, so what they read must be where it was put.
  const inside = (/** @type {string} */ path) => path.replace(OVERFLOW, "");
  const Base = /** @type {BaseSandboxClass} */ (/** @type {unknown} */ (BaseSandbox));
  class Backend extends Base {
    id = `${sandbox.providerId}-${globalThis.crypto.randomUUID()}`;
    /** @param {string} command */
    async execute(command) {
      const abort = signal();
      try {
        const { output, exitCode, truncated, status } = await sandbox.exec({ command, mergeStreams: true, maxOutputBytes: MAX_OUTPUT, timeoutSeconds, signal: abort });
        if (status === "cancelled") throw abort?.reason;
        return { output: status === "timedOut" ? `${output}\n[stopped after ${timeoutSeconds} s]` : output, exitCode, truncated };
      } catch (error) {
        // There what is thrown ends the run.
        if (abort?.aborted) throw error;
        return { output: wordsOf(error), exitCode: null, truncated: false };
      }
    }
    /** @param {[string, Uint8Array][]} files */
    uploadFiles(files) {
      return Promise.all(files.map(async ([path, content]) => {
        try {
          await sandbox.writeFile(inside(path), content);
          return { path, error: null };
        } catch (error) {
          return { path, error: codeOf(error) };
        }
      }));
    }
    /** @param {string[]} paths */
    downloadFiles(paths) {
      return Promise.all(paths.map(async (path) => {
        try {
          const content = await sandbox.readBytes(inside(path));
          return { path, content, error: content === null ? "file_not_found" : null };
        } catch (error) {
          return { path, content: null, error: codeOf(error) };
        }
      }));
    }
  }
  // It makes commands of these, which name the path.
  const { prototype } = /** @type {any} */ (Base);
  for (const name of ["ls", "read", "readRaw", "write", "edit", "delete"]) {
    if (!prototype[name]) continue;
    Object.assign(Backend.prototype, { [name](/** @type {string} */ path, /** @type {any[]} */ ...rest) { return prototype[name].call(this, inside(path), ...rest); } });
  }
  return /** @type {InstanceType<Base>} */ (/** @type {unknown} */ (new Backend()));
}

/** That framework's word for it; what has none there is thrown. @param {unknown} error */
function codeOf(error) {
  if (error instanceof PathSecurityError) return "invalid_path";
  if (!(error instanceof SandboxError)) throw error;
  if (error.code === "ERR_SANDBOX_NOT_FOUND") return "file_not_found";
  if (error.code === "ERR_SANDBOX_FORBIDDEN") return "permission_denied";
  if (error.code === "ERR_SANDBOX_INVALID_ARG") return "is_directory";
  throw error;
}
