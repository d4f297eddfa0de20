// What SandboxAgent works in: a directory on this machine, or a sandbox that the user gave. Both are
// seeded from the manifest before the first call, and again before the next call after a loss.
import { SandboxError, lazily, pathTraversal } from "./errors.js";
import { LocalSandbox } from "./local.js";
import { checkNames, checkSignal, checkString, checkWord, reading } from "./options.js";
import { checksNetwork, execWithin, toolCall, toolCallIn } from "./sandbox.js";
import { signalIn, watch } from "./signals.js";
import { EXEC_OPTIONS } from "./spec.js";
import { Seeded } from "./seeded.js";

const { constants } = process.getBuiltinModule("node:buffer");
const { lstat, realpath, rm } = process.getBuiltinModule("node:fs").promises;
const { randomUUID } = process.getBuiltinModule("node:crypto");
const { tmpdir } = process.getBuiltinModule("node:os");
const path = process.getBuiltinModule("node:path");

/** @import { CloudSandbox, FileEncoding, SandboxCallOptions } from "../types/index.js" */
/** @import { SandboxCloseOptions, SandboxReadOptions } from "../types/index.js" */
/** @import { SandboxRunOptions, SandboxRunResult, WorkspaceFile } from "../types/index.js" */
/**
 * @typedef {object} Manifest complete and checked
 * @property {Required<WorkspaceFile>[]} files
 * @property {{ repo: string, path: string, ref?: string }[]} gitClones
 * @property {Record<string, string>} env
 */

/** Bounds of a call; the first is what a 32-bit timer of milliseconds can count. */
const BOUNDS = { timeoutSeconds: 2147483, endless: false, outputBytes: Number.MAX_SAFE_INTEGER };
/** What run() takes, the default first: the contract's, not the port's. */
const LANGUAGES = ["node", "python", "shell"];
const RUN_OPTIONS = ["language", "timeoutSeconds", "env", "signal"];
const EXEC_ONLY = {
  names: EXEC_OPTIONS,
  words: "exec() of a LocalSandbox takes it, and SandboxAgent has no exec()",
};

/** Few agents clone or take snapshots: each module costs every start its share. */
const clones = lazily("clone.js", () => import("./clone.js"));
const snapshots = lazily("snapshot.js", () => import("./snapshot.js"));

class ManifestWorkspace extends Seeded {
  /** @param {Manifest} manifest */
  constructor(manifest) {
    super();
    this.manifest = manifest;
  }

  /** Ends what can be ended at once: close() comes next. */
  stop() {}

  /** @override */
  get seededWith() {
    const { files, gitClones } = this.manifest;
    const bytes = files.reduce((sum, { contents, encoding }) => sum + Buffer.byteLength(contents, encoding), 0);
    return { files: files.length, bytes, clones: gitClones.length || undefined };
  }
}

/** A directory of its own on this machine. */
export class LocalWorkspace extends ManifestWorkspace {
  #options;
  /** @type {LocalSandbox | undefined} */
  #sandbox;
  /**
   * Calls that close() ends.
   *
   * @type {Map<AbortController, Promise<unknown>>}
   */
  #running = new Map();
  /**
   * Where package managers keep what they can fetch again: not in the workspace, and gone with it. They make
   * it; nobody else can have made it before, since nobody can guess it.
   */
  #cache = path.join(tmpdir(), `cloudsandbox-cache-${randomUUID()}`);
  #isClosed = false;

  /**
   * @param {{ inheritEnv: string[], maxOutputBytes?: number, env?: Record<string, string>, defaultTimeoutSeconds?: number }} options
   * @param {Manifest} manifest
   */
  constructor(options, manifest) {
    super(manifest);
    const { maxOutputBytes } = options;
    // More than one string can hold is no use to anybody.
    const most = maxOutputBytes && Math.min(maxOutputBytes, constants.MAX_STRING_LENGTH);
    this.#options = { ...options, maxOutputBytes: most };
  }

  /** @override */
  async seed() {
    const { gitClones } = this.manifest;
    if (gitClones.length > 0) {
      const { checkRef } = await clones();
      for (const { ref } of gitClones) checkRef(ref);
    }
    const { inheritEnv, env, defaultTimeoutSeconds } = this.#options;
    this.#sandbox ??= new LocalSandbox({ isolation: "none", inheritEnv, env: { ...env, ...this.manifest.env }, defaultTimeoutSeconds });
    await this.#sandbox.start();
    for (const file of this.manifest.files) {
      await this.#open().writeFile(file.path, file.contents, file.encoding);
    }
    for (const [index, clone] of gitClones.entries()) await this.#clone(clone, index);
  }

  /** @override */
  get sandbox() {
    return this.#sandbox;
  }

  /** @param {string} code @param {SandboxRunOptions} [options] */
  async run(code, options) {
    const given = checkNames(options, RUN_OPTIONS, "run", EXEC_ONLY);
    const { language = LANGUAGES[0] } = given;
    checkString(code, "code");
    checkWord(language, LANGUAGES, "language");
    return this.#runSpec(language === "shell" ? { command: code } : { code, language }, given, toolCallIn(options));
  }

  /** @param {string} command @param {SandboxRunOptions} [options] */
  async shell(command, options) {
    const given = checkNames(options, RUN_OPTIONS, "shell", EXEC_ONLY);
    return this.#runSpec({ command: checkString(command, "command") }, given, toolCallIn(options));
  }

  /**
   * @param {string} file
   * @param {string} contents
   * @param {FileEncoding} encoding
   * @param {SandboxCallOptions} [options]
   */
  writeFile(file, contents, encoding, options) {
    return this.use(signalIn(options), () => this.#open().writeFile(file, contents, encoding, options));
  }

  /** @param {string} file @param {FileEncoding} encoding @param {SandboxReadOptions} [options] */
  readFile(file, encoding, options) {
    return this.use(signalIn(options), () => this.#open().readFile(file, encoding, options));
  }

  /** @param {AbortSignal} [signal] @param {string[]} [exclude] @returns {Promise<WorkspaceFile[]>} */
  snapshotFiles(signal, exclude = []) {
    return this.use(signal, async () => (await snapshots()).snapshotOf(() => this.#open(), exclude, signal));
  }

  /** @override */
  stop() {
    this.#isClosed = true;
    for (const controller of this.#running.keys()) controller.abort(closedError());
  }

  /**
   * Ends the running calls, waits for them, and removes the directory. May be called again.
   *
   * @param {SandboxCloseOptions} [options]
   */
  async close(options) {
    this.stop();
    await Promise.allSettled(this.#running.values());
    await this.#sandbox?.close(options);
    await rm(this.#cache, { recursive: true, force: true });
  }

  #open() {
    if (this.#isClosed || !this.#sandbox) throw closedError();
    return this.#sandbox;
  }

  /** Variables that keep caches out of the workspace, which is the home, unless the user has his own. */
  get #cacheEnv() {
    const own = { XDG_CACHE_HOME: this.#cache, npm_config_cache: path.join(this.#cache, "npm") };
    return Object.fromEntries(Object.entries(own).filter(([name]) => !this.#options.inheritEnv.includes(name)));
  }

  /**
   * run() and shell(). Here a cancel is a result.
   *
   * @param {{ command: string } | { code: string, language: string }} what
   * @param {SandboxRunOptions} options names checked
   * @param {import("./sandbox.js").ToolCall} [tool]
   * @returns {Promise<SandboxRunResult>}
   */
  async #runSpec(what, options, tool) {
    const { timeoutSeconds, env } = options;
    const signal = checkSignal(options.signal);
    const { maxOutputBytes } = this.#options;
    const result = await this.use(signal, () =>
      this.#exec({ ...what, timeoutSeconds, env, maxOutputBytes, mergeStreams: true, ...(tool && { [toolCall]: tool }) }, signal),
    );
    return {
      output: result.output,
      exitCode: result.status === "signalled" ? 137 : result.exitCode,
      ...(result.status === "timedOut" && { timedOut: true }),
      ...(result.status === "cancelled" && { cancelled: true }),
      ...(result.truncated && { outputTruncated: true }),
    };
  }

  /**
   * One command, ended by the user's signal or by close().
   *
   * @param {Record<string, any>} spec
   * @param {AbortSignal} [signal]
   */
  async #exec(spec, signal) {
    const sandbox = this.#open();
    if (signal?.aborted) throw signal.reason;
    const controller = new AbortController();
    const unwatch = signal && watch(signal, () => controller.abort(signal.reason));
    const env = { ...this.#cacheEnv, ...this.manifest.env, ...spec.env };
    const running = sandbox[execWithin]({ ...spec, env, signal: controller.signal }, BOUNDS);
    this.#running.set(controller, running);
    try {
      return await running;
    } finally {
      this.#running.delete(controller);
      unwatch?.();
    }
  }

  /** @param {{ repo: string, path: string, ref?: string }} clone @param {number} index */
  async #clone(clone, index) {
    const directory = await insideWorkspace(/** @type {string} */ (this.#open().sandboxId), clone.path);
    const { gitClone } = await clones();
    const run = async (/** @type {Record<string, any>} */ spec) => {
      const result = await this.#exec(spec);
      this.#open();
      return result;
    };
    await gitClone(run, clone, { index, directory, provider: "unix-local" });
  }
}

/**
 * The workspaces that use a given sandbox; the last one to close closes it.
 *
 * @type {WeakMap<CloudSandbox, Set<RemoteWorkspace>>}
 */
const users = new WeakMap();

/** A sandbox that the user gave; paths, options and errors pass through. */
export class RemoteWorkspace extends ManifestWorkspace {
  #remote;

  /** @param {CloudSandbox} remote @param {Manifest} manifest */
  constructor(remote, manifest) {
    super(manifest);
    this.#remote = remote;
  }

  /** @override */
  async seed() {
    users.set(this.#remote, (users.get(this.#remote) ?? new Set()).add(this));
    const starting = this.#remote.start();
    // Files can be written while a sandbox of ours looks at its network.
    if (!reading("`remote`", () => /** @type {any} */ (this.#remote)[checksNetwork])) await starting;
    try {
      for (const file of this.manifest.files) await this.#remote.writeFile(file.path, file.contents, file.encoding);
    } finally {
      await starting;
    }
  }

  /** @override */
  get sandbox() {
    return this.#remote;
  }

  /** @param {string} code @param {SandboxRunOptions} [options] */
  run(code, options) {
    return this.use(signalIn(options), () => this.#remote.run(code, this.#withEnv(options)));
  }

  /** @param {string} command @param {SandboxRunOptions} [options] */
  shell(command, options) {
    return this.use(signalIn(options), () => this.#remote.shell(command, this.#withEnv(options)));
  }

  /**
   * @param {string} file
   * @param {string} contents
   * @param {FileEncoding} encoding
   * @param {SandboxCallOptions} [options]
   */
  writeFile(file, contents, encoding, options) {
    return this.use(signalIn(options), () =>
      this.#remote.writeFile(file, contents, encoding, ...(options ? [options] : [])),
    );
  }

  /** @param {string} file @param {FileEncoding} encoding @param {SandboxReadOptions} [options] */
  readFile(file, encoding, options) {
    return this.use(signalIn(options), () =>
      this.#remote.readFile(file, encoding, ...(options ? [options] : [])),
    );
  }

  /** @returns {Promise<WorkspaceFile[]>} */
  async snapshotFiles() {
    throw new SandboxError(
      'snapshot() works with backend "isolated-local", "unix-local" and "docker": snapshots of a remote sandbox are provider-specific',
      { code: "ERR_SANDBOX_UNSUPPORTED" },
    );
  }

  /**
   * Closes the sandbox unless another agent uses it. May be called again.
   *
   * @param {SandboxCloseOptions} [options]
   */
  async close(options) {
    const others = users.get(this.#remote);
    others?.delete(this);
    if (others?.size) return;
    await this.#remote.close(...(options ? [options] : []));
  }

  /** @param {SandboxRunOptions} [options] */
  #withEnv(options) {
    const read = () => ({ ...options, env: { ...this.manifest.env, ...options?.env } });
    return reading("the options", read);
  }
}

/**
 * The absolute path of `target` in the workspace, links of what exists resolved. Holds only while
 * nothing else runs there, which is so during seeding.
 *
 * @param {string} root
 * @param {string} target
 */
async function insideWorkspace(root, target) {
  const base = await realpath(root);
  // The workspace is the home of what runs in it.
  const wanted = path.resolve(base, target.replace(/^~(?=\/|$)/, "."));
  // eslint-disable-next-line no-control-regex
  if (/[\0-\x1f]/.test(target) || !isInside(base, wanted)) throw pathTraversal(target);
  let existing = wanted;
  while (!(await exists(existing))) existing = path.dirname(existing);
  const real = await realpath(existing).catch(() => "");
  if (!isInside(base, real)) throw pathTraversal(target);
  return path.join(real, path.relative(existing, wanted));
}

/** @param {string} base @param {string} candidate */
function isInside(base, candidate) {
  return candidate === base || candidate.startsWith(`${base}${path.sep}`);
}

/** @param {string} file */
async function exists(file) {
  return lstat(file).then(
    () => true,
    () => false,
  );
}

function closedError() {
  return new SandboxError("SandboxAgent is closed", { code: "ERR_SANDBOX_CLOSED" });
}
