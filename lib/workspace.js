// What SandboxAgent works in: a directory on this machine, or a sandbox that the user gave. Both are
// seeded from the manifest before the first call, and again before the next call after a loss.
//
// Invariant: no call runs in a workspace that is not seeded; who waits for seeding shares one attempt.
import { PathSecurityError, SandboxError, detailsOf, lazily, pathTraversal, reword } from "./errors.js";
import { LocalSandbox } from "./local.js";
import { checkNames, checkSignal, checkString, checkWord, invalid, reading } from "./options.js";
import { EXEC_OPTIONS, execWithin, signalIn, unlessAborted, watch } from "./sandbox.js";

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

const SNAPSHOT_FILES = 1000;
/** What is gone through to find them, or to say how many there are. */
const SNAPSHOT_LISTED = 200_000;
const SNAPSHOT_BYTES = 16 * 1024 * 1024;
const CLONE_SECONDS = 30;
/** Exit code when the program is not there. */
const MISSING_PROGRAM = 127;
/** Bounds of a call; the first is what a 32-bit timer of milliseconds can count. */
const BOUNDS = { timeoutSeconds: 2147483, endless: false, outputBytes: Number.MAX_SAFE_INTEGER };
/** What run() takes, the default first: the contract's, not the port's. */
const LANGUAGES = ["node", "python", "shell"];
const RUN_OPTIONS = ["language", "timeoutSeconds", "env", "signal"];
// eslint-disable-next-line no-control-regex
const CONTROL = /[\0-\x1f\x7f]/;
const EXEC_ONLY = {
  names: EXEC_OPTIONS,
  words: "exec() of a LocalSandbox takes it, and SandboxAgent has no exec()",
};

/** What the core says of the call after a loss; and what is so where a workspace is set up again first. */
const EMPTY_SANDBOX = "the next call starts a new, empty sandbox";
const SEEDED_SANDBOX = "the next call starts a new one and sets up the workspace in it as at its start";

/** Few agents clone: each module costs every import of the package its share. */
const repositories = lazily("repository.js", () => import("./repository.js"));

class Workspace {
  /** @type {Promise<void> | undefined} */
  #seeding;

  /** @param {Manifest} manifest */
  constructor(manifest) {
    this.manifest = manifest;
  }

  /** @returns {Promise<void>} */
  async seed() {}

  /** Ends what can be ended at once: close() comes next. */
  stop() {}

  /** Resolves when the manifest's contents are in place. */
  seeded() {
    if (!this.#seeding) {
      const seeding = this.seed();
      this.#seeding = seeding;
      seeding.catch(() => this.#forget(seeding));
    }
    return this.#seeding;
  }

  /**
   * Runs a call in the seeded workspace. When the call finds that the sandbox is lost, the next one
   * seeds again; a loss that is reported late, by a call to an earlier sandbox, changes nothing.
   *
   * @template T
   * @param {AbortSignal | undefined} signal
   * @param {() => Promise<T>} call
   * @returns {Promise<T>}
   */
  async use(signal, call) {
    if (checkSignal(signal)?.aborted) throw signal?.reason;
    const seeding = this.seeded();
    await unlessAborted(seeding, signal);
    try {
      return await call();
    } catch (error) {
      if (detailsOf(error)?.code === "ERR_SANDBOX_LOST") {
        this.#forget(seeding);
        if (error instanceof SandboxError) reword(error, EMPTY_SANDBOX, SEEDED_SANDBOX);
      }
      throw error;
    }
  }

  /** @param {Promise<void>} seeding */
  #forget(seeding) {
    if (this.#seeding === seeding) this.#seeding = undefined;
  }
}

/** A directory of its own on this machine. */
export class LocalWorkspace extends Workspace {
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
   * @param {{ inheritEnv: string[], maxOutputBytes?: number }} options
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
    for (const { ref } of this.manifest.gitClones) checkRef(ref);
    const { inheritEnv } = this.#options;
    this.#sandbox ??= new LocalSandbox({ trusted: true, inheritEnv, env: this.manifest.env });
    await this.#sandbox.start();
    for (const file of this.manifest.files) {
      await this.#open().writeFile(file.path, file.contents, file.encoding);
    }
    for (const [index, clone] of this.manifest.gitClones.entries()) await this.#clone(clone, index);
  }

  /** @param {string} code @param {SandboxRunOptions} [options] */
  async run(code, options) {
    const given = checkNames(options, RUN_OPTIONS, "run", EXEC_ONLY);
    const { language = LANGUAGES[0] } = given;
    checkString(code, "code");
    checkWord(language, LANGUAGES, "language");
    return this.#runSpec(language === "shell" ? { command: code } : { code, language }, given);
  }

  /** @param {string} command @param {SandboxRunOptions} [options] */
  async shell(command, options) {
    const given = checkNames(options, RUN_OPTIONS, "shell", EXEC_ONLY);
    return this.#runSpec({ command: checkString(command, "command") }, given);
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
    return this.use(signal, async () => {
      const entries = await this.#listForSnapshot(exclude, signal);
      const files = [];
      let left = SNAPSHOT_BYTES;
      for (const entry of entries) {
        const bytes = await this.#readForSnapshot(entry.path, left, signal);
        if (!bytes) continue;
        left -= bytes.length;
        if (left < 0) throw snapshotTooLarge();
        files.push({
          path: entry.path,
          contents: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64"),
          encoding: /** @type {const} */ ("base64"),
        });
      }
      return files;
    });
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

  /** @param {string[]} exclude @param {AbortSignal} [signal] */
  async #listForSnapshot(exclude, signal) {
    const all = await this.#open()
      .listFiles({ maxEntries: SNAPSHOT_LISTED, signal })
      .catch((error) => {
        throw error.code === "ERR_SANDBOX_TOO_LARGE" ? snapshotTooLarge() : error;
      });
    const isExcluded = excluder(exclude);
    const entries = all.filter((entry) => !isExcluded(entry.path));
    const total = entries.reduce((sum, entry) => sum + entry.size, 0);
    if (entries.length > SNAPSHOT_FILES || total > SNAPSHOT_BYTES) throw snapshotTooLarge(entries);
    return entries.sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  /**
   * A listed file's bytes; null when it is gone since then.
   *
   * @param {string} file
   * @param {number} left bytes that may still be kept
   * @param {AbortSignal} [signal]
   */
  async #readForSnapshot(file, left, signal) {
    try {
      const bytes = await this.#open().readBytes(file, { maxBytes: Math.max(left, 1), signal });
      // A name that is not UTF-8 is not found either, and must not vanish silently.
      if (bytes || !file.includes("\uFFFD")) return bytes;
    } catch (error) {
      const { code } = /** @type {any} */ (error);
      if (code === "ERR_SANDBOX_TOO_LARGE") throw snapshotTooLarge();
      if (!(error instanceof PathSecurityError && CONTROL.test(file))) throw error;
    }
    const why = file.includes("\uFFFD") ? "is not UTF-8" : "has control characters";
    throw invalid(`snapshot: the name of ${JSON.stringify(file)} ${why}; rename or remove the file`);
  }

  /**
   * run() and shell(). Here a cancel is a result.
   *
   * @param {{ command: string } | { code: string, language: string }} what
   * @param {SandboxRunOptions} options names checked
   * @returns {Promise<SandboxRunResult>}
   */
  async #runSpec(what, options) {
    const { timeoutSeconds, env } = options;
    const signal = checkSignal(options.signal);
    const { maxOutputBytes } = this.#options;
    const result = await this.use(signal, () =>
      this.#exec({ ...what, timeoutSeconds, env, maxOutputBytes, mergeStreams: true }, signal),
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
  async #clone({ repo, path: target, ref }, index) {
    const directory = await insideWorkspace(/** @type {string} */ (this.#open().sandboxId), target);
    const { repositoryWords } = await repositories();
    const { shown, hide } = repositoryWords(repo);
    const name = `gitClones[${index}]${shown && ` (${shown})`}`;
    await this.#git(`clone of ${name}`, ["clone", "--", repo, directory], hide);
    if (ref === undefined) return;
    const commit = await this.#commitOf(directory, ref);
    if (!commit) {
      const text = `there is no branch, tag or commit ${JSON.stringify(ref)} in ${name}`;
      throw new SandboxError(text, { code: "ERR_SANDBOX_NOT_FOUND", provider: "unix-local" });
    }
    await this.#git(`checkout in ${name}`, ["-C", directory, "checkout", "--detach", commit], hide);
  }

  /**
   * The commit that `ref` names in a fresh clone, where branches are those of the origin; "" when none.
   *
   * @param {string} directory
   * @param {string} ref
   */
  async #commitOf(directory, ref) {
    for (const name of [`refs/remotes/origin/${ref}`, ref]) {
      const argv = ["git", "-C", directory, "rev-parse", "--verify", "--quiet", `${name}^{commit}`];
      const { exitCode, stdout } = await this.#exec({ argv, timeoutSeconds: CLONE_SECONDS });
      this.#open();
      if (exitCode === 0) return stdout.trim();
    }
    return "";
  }

  /** @param {string} what @param {string[]} args @param {(text: string) => string} hide */
  async #git(what, args, hide) {
    // Never ask for a password: nobody is there to answer.
    const env = { GIT_TERMINAL_PROMPT: "0" };
    const result = await this.#exec({
      argv: ["git", ...args],
      env,
      timeoutSeconds: CLONE_SECONDS,
      mergeStreams: true,
      truncate: "middle",
      maxOutputBytes: 65536,
    });
    this.#open();
    if (result.status === "exited" && result.exitCode === 0) return;
    if (result.exitCode === MISSING_PROGRAM) {
      const text = `git ${what} failed: there is no program git on the PATH; install git, or leave out \`gitClones\``;
      throw new SandboxError(text, { code: "ERR_SANDBOX_UNSUPPORTED", provider: "unix-local" });
    }
    const late = result.status === "timedOut";
    const how = late
      ? `took longer than ${CLONE_SECONDS} seconds`
      : `failed with exit code ${result.exitCode}`;
    const lastLines = hide(result.output).trim().split("\n").slice(-5).join("\n");
    throw new SandboxError(`git ${what} ${how}: ${lastLines.slice(-1000)}`, {
      code: late ? "ERR_SANDBOX_TIMEOUT" : "ERR_SANDBOX_PROVIDER",
      provider: "unix-local",
      // Of another failure only git's words tell whether it can pass.
      retryable: late,
    });
  }
}

/**
 * The workspaces that use a given sandbox; the last one to close closes it.
 *
 * @type {WeakMap<CloudSandbox, Set<RemoteWorkspace>>}
 */
const users = new WeakMap();

/** A sandbox that the user gave; paths, options and errors pass through. */
export class RemoteWorkspace extends Workspace {
  #remote;

  /** @param {CloudSandbox} remote @param {Manifest} manifest */
  constructor(remote, manifest) {
    super(manifest);
    this.#remote = remote;
  }

  /** @override */
  async seed() {
    users.set(this.#remote, (users.get(this.#remote) ?? new Set()).add(this));
    await this.#remote.start();
    for (const file of this.manifest.files) {
      await this.#remote.writeFile(file.path, file.contents, file.encoding);
    }
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
      'snapshot() works with backend "unix-local" only: snapshots of a remote sandbox are provider-specific',
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

/** @param {string} [ref] */
function checkRef(ref) {
  if (ref === undefined || !/^(-|$)/.test(ref)) return;
  throw invalid('`workspace.gitClones`: `ref` must name a branch, tag or commit and cannot begin with "-"');
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

/**
 * Whether a path is left out: one of its names is, or it lies below a path that is. `*` stands for any
 * characters of one name.
 *
 * @param {string[]} patterns
 */
function excluder(patterns) {
  const plain = patterns.map((pattern) => pattern.replace(/^\.\//, "").replace(/\/+$/, ""));
  const [paths, names] = [plain.filter((it) => it.includes("/")), plain.filter((it) => !it.includes("/"))];
  const matchers = [
    ...(names.length > 0 ? [new RegExp(`(?:^|/)(?:${names.map(asExpression).join("|")})(?:/|$)`)] : []),
    ...(paths.length > 0 ? [new RegExp(`^(?:${paths.map(asExpression).join("|")})(?:/|$)`)] : []),
  ];
  return (/** @type {string} */ file) => matchers.some((matcher) => matcher.test(file));
}

/** @param {string} pattern */
function asExpression(pattern) {
  return pattern
    .split("*")
    .map((part) => part.replace(/[\\^$.|?+()[\]{}]/g, "\\$&"))
    .join("[^/]*");
}

/**
 * @param {{ path: string, size: number }[]} [entries] what it would hold, where that is known
 */
function snapshotTooLarge(entries = []) {
  const total = entries.reduce((sum, entry) => sum + entry.size, 0);
  const largest = entries.reduce((most, entry) => (entry.size > most.size ? entry : most), { path: "", size: 0 });
  const name = JSON.stringify(largest.path.slice(0, 200));
  const found =
    entries.length > 0
      ? `, and here are ${entries.length} files and ${inMiB(total)}, of which ${name} has ${inMiB(largest.size)}`
      : "";
  return new SandboxError(
    `a snapshot holds at most 1000 files and 16 MiB${found}; leave out what can be made again, as in ` +
      'snapshot({ exclude: ["node_modules", ".venv", "__pycache__"] }), or remove what need not be kept first',
    { code: "ERR_SANDBOX_TOO_LARGE" },
  );
}

/** @param {number} bytes */
function inMiB(bytes) {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}
