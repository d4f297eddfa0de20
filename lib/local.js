// LocalSandbox: commands on this computer, isolated unless the user says that they are trusted.
import { SandboxError } from "./errors.js";
import { ISOLATED_OPTIONS, LAYERS, isolated } from "./isolated.js";
import { withManifest } from "./manifest.js";
import { guardPath, ownFile } from "./native.js";
import { checkBoolean, checkEnvNames, checkEnvObject, checkNames, checkNumber, checkString, checkWord, invalid } from "./options.js";
import { readEnvironment } from "./remote-options.js";
import { COMMON_OPTIONS, NativeSandbox, isolationText } from "./sandbox.js";
import { CALL_ONLY } from "./spec.js";

const { readFileSync } = process.getBuiltinModule("node:fs");

/** @import { LocalSandboxOptions } from "../types/index.js" */

const LOCAL_OPTIONS = Object.freeze([
  ...COMMON_OPTIONS,
  "workspace", "tempDir", "env", "inheritEnv", "killGraceSeconds", "nodePath", "isolation", "trusted", ...ISOLATED_OPTIONS,
]);

/** Of the host's, what every sandbox looks at. */
const OWN_VARIABLES = Object.freeze(["PATH", "LC_ALL", "LANG", "TZ", "TMPDIR"]);

const UNKEPT =
  "it isolates and limits nothing but time for certain, and what runs there may have the rights of this process: use an isolated LocalSandbox, docker or a remote provider";

/** What is kept of a manifest on this machine: what needs no keeping. @type {import("./manifest.js").ManifestTable} */
export const LOCAL_MANIFEST = Object.freeze({
  provider: "unix-local",
  existing: "workspace",
  anyway: ["env", "network.default"],
  network: [],
  keeps: { "network.default": (rule) => (rule === "allow" ? {} : UNKEPT) },
  otherwise: UNKEPT,
});

/** What is kept of a manifest in an isolated sandbox. @type {import("./manifest.js").ManifestTable} */
export const ISOLATED_MANIFEST = Object.freeze({
  provider: "isolated-local",
  existing: "workspace",
  anyway: ["env", "network.default", "network.allowedHosts"],
  network: ["network", "allowedHosts"],
  keeps: {
    "network.default": (rule) => ({ network: rule === "deny" ? "off" : "on" }),
    "network.allowedHosts": (hosts) => ({ allowedHosts: hosts }),
  },
});

/** The same where it may turn out that there is no isolation: what only that one keeps is refused. @type {import("./manifest.js").ManifestTable} */
const EITHER_MANIFEST = Object.freeze({
  ...LOCAL_MANIFEST,
  network: ["network", "allowedHosts"],
  keeps: { "network.default": (rule) => (rule === "allow" ? { network: "on" } : UNKEPT) },
});

let warned = false;

/**
 * A sandbox on this computer: a directory of its own, an environment of its own, limits on time and
 * output, and every process ended with its call. Isolated unless the user has said that it need not be: then the
 * code has the privileges of this process and can read what it can read.
 */
export class LocalSandbox extends NativeSandbox {
  /** @param {LocalSandboxOptions} [options] @param {string} [where] what messages call this class */
  constructor(options, where = "LocalSandbox") {
    if (process.platform === "win32") {
      throw new SandboxError("LocalSandbox does not run on Windows; use WSL or a remote sandbox", {
        code: "ERR_SANDBOX_UNSUPPORTED",
      });
    }
    const named = checkNames(options, LOCAL_OPTIONS, where, CALL_ONLY);
    const level = checkIsolation(named);
    const given = withManifest(named, { required: ISOLATED_MANIFEST, "best-effort": EITHER_MANIFEST, none: LOCAL_MANIFEST }[level]);
    const own = ownOptions(given);
    const trusted = { provider: "local", providerId: "unix-local", options: given, own };
    if (level === "none") {
      super(trusted);
      return;
    }
    const walled = { ...trusted, providerId: "isolated-local", own: { ...own, ...isolated(given, own) } };
    if (level === "required") {
      super(walled);
      return;
    }
    super({
      ...walled,
      instead: { code: "ERR_SANDBOX_ISOLATION_UNAVAILABLE", ...trusted, taken: (error) => this.#isolateNot(error, given.trusted === true) },
    });
  }

  /** Why it is not isolated although that was wanted. @type {string | undefined} */
  #reason;

  /**
   * What isolates the running sandbox, by layer: what is enforced, and what is not and why. null before a start, and
   * for commands that are not meant to be isolated.
   *
   * @returns {import("../types/index.js").SandboxIsolation | null}
   */
  get isolation() {
    if (this.#reason !== undefined) {
      const layer = Object.freeze({ state: /** @type {const} */ ("off"), hint: this.#reason });
      return Object.freeze(/** @type {any} */ (Object.fromEntries(LAYERS.map((name) => [name, layer]))));
    }
    const told = this[isolationText];
    return told ? Object.freeze(JSON.parse(told)) : null;
  }

  /** @param {string} reason @param {boolean} isTrusted */
  #isolateNot(reason, isTrusted) {
    this.#reason = reason;
    if (!isTrusted) warnOnce(reason);
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
    ...variables(inheritEnv === true ? allNames() : checkEnvNames(inheritEnv, "inheritEnv"), checkEnvObject(env)),
  };
}

/**
 * What runs JavaScript code: the user's program, else the one that runs this. Bun and Deno are not Node.js, and in an
 * app that has Node inside it the latter is the app, which must not be started once more: Electron's is Node when it is told so; of
 * another one nothing is known. The `node` of the command's PATH is used there.
 *
 * @param {string | undefined} nodePath
 */
function nodeProgram(nodePath) {
  const nodeArgs = ["--require", ownFile(import.meta.url && new URL("./node-globals.cjs", import.meta.url))];
  if (nodePath !== undefined) return { nodePath: checkAbsolute(nodePath, "nodePath"), nodeArgs };
  const { execPath, versions } = process;
  if (versions.electron) return { nodePath: "/usr/bin/env", nodeArgs: ["ELECTRON_RUN_AS_NODE=1", execPath, ...nodeArgs] };
  const { bun, deno } = versions;
  const isOther = bun || deno || "nw" in versions || "pkg" in process || process.getBuiltinModule("node:sea")?.isSea();
  return { nodePath: isOther ? "node" : execPath, nodeArgs };
}

/** What a sandbox has of its own, and a shell sets by itself. */
const NOT_INHERITED = new Set(["HOME", "PWD", "OLDPWD", "SHLVL", "_"]);
let warnedOfEnv = false;

/** The names of all variables of this thread that can be passed on; says once what that means. */
function allNames() {
  if (!warnedOfEnv) {
    warnedOfEnv = true;
    process.emitWarning(
      "LocalSandbox with inheritEnv: true hands all variables of this process to its commands, keys and tokens among them; " +
        "leaving files such as .env out of a workspace does not help against that. Name the variables that are needed instead.",
      { type: "SecurityWarning", code: "CLOUDSANDBOX_INHERITS_ENV" },
    );
  }
  return checkEnvNames(Object.keys(process.env).filter((name) => !NOT_INHERITED.has(name) && name !== ""), "inheritEnv");
}

/**
 * What commands get of this thread's variables, and `env`.
 *
 * @param {string[]} inheritEnv
 * @param {Record<string, string>} env
 */
function variables(inheritEnv, env) {
  /** @type {Record<string, string | string[]>} */
  const environment = readEnvironment([...OWN_VARIABLES, ...inheritEnv]);
  for (const name of inheritEnv) {
    const bytes = bytesOfVariable(name, environment[name]);
    if (bytes) environment[name] = [bytes.toString("base64")];
  }
  return { environment, inheritEnv, env };
}

/**
 * The bytes of a variable whose text has lost some: as the process began with it, if it is still the same.
 *
 * @param {string} name
 * @param {string | string[] | undefined} text
 */
function bytesOfVariable(name, text) {
  if (typeof text !== "string" || !text.includes("\uFFFD")) return undefined;
  try {
    const began = readFileSync("/proc/self/environ");
    const mark = Buffer.from(`${name}=`);
    for (let at = 0, end; at < began.length; at = end + 1) {
      end = began.indexOf(0, at);
      if (end < 0) end = began.length;
      const value = began.subarray(at + mark.length, end);
      if (began.subarray(at, at + mark.length).equals(mark) && value.toString() === text) return value;
    }
  } catch {
    // Not on this system: the text is what there is.
  }
  return undefined;
}

/** @param {unknown} value @param {string} name */
function checkAbsolute(value, name) {
  const path = checkString(value, name);
  if (path.startsWith("/") && !path.includes("\0")) return path;
  throw invalid(`\`${name}\` must be an absolute path: it begins with "/"`);
}

/**
 * Whether commands are isolated: "required", unless the user says something else.
 *
 * @param {Record<string, any>} options
 * @returns {"none" | "best-effort" | "required"}
 */
function checkIsolation(options) {
  const { trusted = false } = options;
  checkBoolean(trusted, "trusted");
  const { isolation = trusted ? "none" : "required" } = options;
  checkWord(isolation, ["none", "best-effort", "required"], "isolation");
  if (isolation === "required" && trusted) {
    throw invalid('`trusted: true` says that no isolation is needed, and isolation: "required" that it is: leave one of them out');
  }
  const extra = isolation === "none" && ISOLATED_OPTIONS.find((name) => options[name] !== undefined);
  if (extra) throw invalid(`\`${extra}\` is an option of the isolated sandbox: leave out \`${options.isolation ? "isolation" : "trusted"}\`, or \`${extra}\` (by name: "isolated-local")`);
  if (isolation === "best-effort" && options.require !== undefined) {
    throw invalid('`require` names what must be there, and isolation: "best-effort" says that nothing must: pass isolation: "required" with it');
  }
  return isolation;
}

/** @param {string} reason */
function warnOnce(reason) {
  if (warned) return;
  warned = true;
  process.emitWarning(
    `LocalSandbox runs its commands without isolation, with the privileges of this process. It has tried to isolate them: ${reason}`,
    { type: "SecurityWarning", code: "CLOUDSANDBOX_NOT_ISOLATED" },
  );
}
