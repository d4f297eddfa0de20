// LocalSandbox: commands on this computer, with the privileges of this process.
import { SandboxError } from "./errors.js";
import { guardPath, ownFile } from "./native.js";
import {
  checkBoolean, checkEnvNames, checkEnvObject, checkNames, checkNumber, checkString, checkWord, invalid,
} from "./options.js";
import { CALL_ONLY, COMMON_OPTIONS, NativeSandbox } from "./sandbox.js";

/** @import { LocalSandboxOptions } from "../types/index.js" */

const LOCAL_OPTIONS = Object.freeze([
  ...COMMON_OPTIONS,
  "workspace", "tempDir", "env", "inheritEnv", "killGraceSeconds", "nodePath", "isolation", "trusted",
]);

/** As the core's. */
const DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin";

let warned = false;

/**
 * A sandbox on this computer: a directory of its own, an environment of its own, limits on time and
 * output, and every process ended with its call. It is not a security boundary: the code has the
 * privileges of this process and can read what it can read.
 */
export class LocalSandbox extends NativeSandbox {
  /** @param {LocalSandboxOptions} [options] @param {string} [where] what messages call this class */
  constructor(options, where = "LocalSandbox") {
    if (process.platform === "win32") {
      throw new SandboxError("LocalSandbox does not run on Windows; use WSL or a remote sandbox", {
        code: "ERR_SANDBOX_UNSUPPORTED",
      });
    }
    const given = checkNames(options, LOCAL_OPTIONS, where, CALL_ONLY);
    const knowing = checkIsolation(given);
    super({ provider: "local", providerId: "unix-local", options: given, own: ownOptions(given) });
    if (!knowing) warnOnce();
  }
}

/**
 * The options of the core's local provider.
 *
 * @param {Record<string, any>} options names checked
 */
function ownOptions({ workspace, tempDir, env = {}, inheritEnv = [], killGraceSeconds = 2, nodePath }) {
  return {
    guardPath: guardPath(),
    ...nodeProgram(nodePath),
    killGraceMs: Math.round(checkNumber(killGraceSeconds, "killGraceSeconds", 0, 3) * 1000),
    ...(workspace !== undefined && { workspace: checkAbsolute(workspace, "workspace") }),
    ...(tempDir !== undefined && { tempDir: checkAbsolute(tempDir, "tempDir") }),
    ...variables(checkEnvNames(inheritEnv, "inheritEnv"), checkEnvObject(env)),
  };
}

/**
 * What runs JavaScript code: the user's program, else the one that runs this. In an app that has Node inside
 * it the latter is the app, which must not be started once more: Electron's is Node when it is told so; of
 * another one nothing is known, and the `node` of the command's PATH is used.
 *
 * @param {string | undefined} nodePath
 */
function nodeProgram(nodePath) {
  const nodeArgs = ["--require", ownFile(import.meta.url && new URL("./node-globals.cjs", import.meta.url))];
  if (nodePath !== undefined) return { nodePath: checkAbsolute(nodePath, "nodePath"), nodeArgs };
  const { execPath, versions } = process;
  if (versions.electron) return { nodePath: "/usr/bin/env", nodeArgs: ["ELECTRON_RUN_AS_NODE=1", execPath, ...nodeArgs] };
  const isApp = "nw" in versions || "pkg" in process || process.getBuiltinModule("node:sea")?.isSea();
  return { nodePath: isApp ? "node" : execPath, nodeArgs };
}

/**
 * What commands get of this thread's variables, and `env`. The core sees the process's: those are the
 * main thread's, byte for byte. A worker has its own, and what was kept from it must not be passed on.
 *
 * @param {string[]} inheritEnv
 * @param {Record<string, string>} env
 */
function variables(inheritEnv, env) {
  if (process.getBuiltinModule("node:worker_threads").isMainThread) return { inheritEnv, env };
  /** @type {Record<string, string>} */
  const inherited = { PATH: process.env.PATH || DEFAULT_PATH };
  for (const name of ["TZ", ...inheritEnv]) {
    const value = process.env[name];
    if (value !== undefined && name !== "PATH") inherited[name] = value;
  }
  return { env: { ...inherited, ...env } };
}

/** @param {unknown} value @param {string} name */
function checkAbsolute(value, name) {
  const path = checkString(value, name);
  if (path.startsWith("/") && !path.includes("\0")) return path;
  throw invalid(`\`${name}\` must be an absolute path: it begins with "/"`);
}

/**
 * Whether the user has said that isolation is not needed.
 *
 * @param {Record<string, any>} options
 */
function checkIsolation({ isolation = "best-effort", trusted = false }) {
  checkWord(isolation, ["none", "best-effort", "required"], "isolation");
  checkBoolean(trusted, "trusted");
  if (isolation === "required") {
    throw new SandboxError(
      "LocalSandbox cannot isolate the code that it runs. Use a remote sandbox for code that you do not trust, " +
        'or pass isolation: "none" to run it with the privileges of this process.',
      { code: "ERR_SANDBOX_ISOLATION_UNAVAILABLE", provider: "unix-local" },
    );
  }
  return trusted || isolation === "none";
}

function warnOnce() {
  if (warned) return;
  warned = true;
  process.emitWarning(
    "LocalSandbox does not isolate: its commands have the privileges of this process. " +
      'Pass trusted: true or isolation: "none" if that is meant, or use a remote sandbox.',
    { type: "SecurityWarning", code: "CLOUDSANDBOX_NOT_ISOLATED" },
  );
}
