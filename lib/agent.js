// SandboxAgent: a workspace with files, variables and a life. It holds no model; the name is the
// contract's. What differs between the backends is in workspace.js; here are the states.
//
// new -> starting -> ready -> closing -> closed; a failed start and resume() lead back to new.
//
// Invariant: at most one start, one close and one resume run at a time, and whatever was made stays
// known (in #workspace or #leftovers) until its removal has succeeded.
import { DockerSandbox } from "./docker.js";
import { SandboxError, detailsOf, lazily, pathTraversal } from "./errors.js";
import { LOCAL_MANIFEST, LocalSandbox } from "./local.js";
import { checkManifest, withManifest } from "./manifest.js";
import {
  asyncDispose,
  checkBase64,
  checkBudget,
  checkEncoding,
  checkEnvNames,
  checkEnvObject,
  checkInteger,
  checkItems,
  checkNames,
  checkNumber,
  checkSignal,
  checkString,
  detached,
  inspectKey,
  invalid,
  kindOf,
  reading,
  shownAs,
} from "./options.js";
import { forTools, graceOf } from "./sandbox.js";
import { signalIn, signalOf, unlessAborted } from "./signals.js";
import { LANGUAGES } from "./spec.js";
import { checkSandbox } from "./toolkit.js";
import { AGENT_PREFIX } from "./tools.js";

const { dirname, isAbsolute, normalize } = process.getBuiltinModule("node:path");

/** @import { CloudSandbox, FileEncoding, SandboxAgentConfig, SandboxCallOptions } from "../types/index.js" */
/** @import { SandboxCloseOptions, SandboxReadOptions, SandboxSnapshotOptions } from "../types/index.js" */
/** @import { SandboxRunOptions, WorkspaceFile, WorkspaceSnapshot } from "../types/index.js" */
/** @import { DockerWorkspace } from "./docker-workspace.js" */
/** @import { LocalWorkspace, Manifest, RemoteWorkspace } from "./workspace.js" */
/** @typedef {LocalWorkspace | RemoteWorkspace | DockerWorkspace} AnyWorkspace */

const AGENT_OPTIONS = ["backend", "remote", "docker", "isolated", "workspace", "manifest", "inheritEnv", "maxOutputBytes", "budget"];
const SNAPSHOT_OPTIONS = ["signal", "exclude"];
const EXCLUDE = 'an array of names or paths to leave out, such as ["node_modules", "*.pyc", "build/out"]';
const MANIFEST_OPTIONS = ["files", "gitClones", "env"];
const MANIFEST_ONLY = { names: MANIFEST_OPTIONS, words: "it goes into `workspace`, as in workspace: { files: [...] }" };

/** What a budget counts the time of: the workspace, whatever it is made of. */
const WORKSPACE = "workspace";

/** What the tools say of a local workspace; in their hands its default language is theirs. */
const LOCAL_FACTS = Object.freeze({ languages: LANGUAGES, keepsVariables: false });

/**
 * Whether a value is an agent itself, and no Proxy of one.
 *
 * @type {(value: unknown) => boolean}
 */
let isAgent;

/**
 * Throws unless the method was called on an agent.
 *
 * @param {unknown} self
 * @param {string} method
 */
function checkSelf(self, method) {
  if (!isAgent(self)) throw detached(method, "agent");
}

export class SandboxAgent {
  /** @type {(manifest: Manifest) => Promise<AnyWorkspace>} */
  #makeWorkspace;
  #providerId;
  /** Whether the workspace is of our making, so that it can be kept as a list of files and made anew of one. */
  #keepsFiles;
  #forTools;
  #limits;
  /** @type {import("./budget.js").Budget | undefined} */
  #budget;
  /** @type {Manifest} */
  #manifest;
  /** @type {"new" | "starting" | "ready" | "closing" | "closed"} */
  #state = "new";
  /** @type {AnyWorkspace | undefined} */
  #workspace;
  /**
   * Workspaces whose removal failed.
   *
   * @type {Set<AnyWorkspace>}
   */
  #leftovers = new Set();
  /** @type {Promise<void> | undefined} */
  #starting;
  /** @type {Promise<void> | undefined} */
  #closing;
  /** @type {Promise<void> | undefined} */
  #resuming;
  /**
   * A close that waits for the resume.
   *
   * @type {Promise<void> | undefined}
   */
  #closingLater;

  static {
    isAgent = (value) => typeof value === "object" && value !== null && #state in value;
  }

  /** @param {SandboxAgentConfig} config */
  constructor(config) {
    const given = checkNames(config, AGENT_OPTIONS, "SandboxAgent", MANIFEST_ONLY);
    const { providerId, make, facts } = workspaceMaker(/** @type {any} */ (given));
    this.#providerId = providerId;
    this.#keepsFiles = given.backend !== "remote";
    this.#forTools = facts;
    this.#makeWorkspace = make;
    this.#limits = given.budget === undefined ? undefined : checkBudget(given.budget);
    this.#manifest = checkWorkspace(given.workspace);
    if (given.backend === "remote" && this.#manifest.gitClones.length > 0) {
      throw invalid(
        'SandboxAgent: `workspace.gitClones` works with backend "isolated-local", "unix-local" and "docker"; clone with shell() instead',
      );
    }
  }

  get kind() {
    return /** @type {const} */ ("sandbox-agent");
  }

  /** "sandbox-agent-" and the provider of what it works in. */
  get providerId() {
    return AGENT_PREFIX + this.#providerId;
  }

  get [forTools]() {
    return this.#forTools;
  }

  get ready() {
    return this.#state === "ready";
  }

  /** @param {SandboxCallOptions} [options] @returns {Promise<void>} */
  start(options) {
    if (!isAgent(this)) return Promise.reject(detached("start", "agent"));
    const start = () => (this.#closingLater ? Promise.reject(closedError()) : this.#start());
    return options === undefined ? start() : untilAborted(options, "start", start);
  }

  /** @param {string} code @param {SandboxRunOptions} [options] */
  async run(code, options) {
    checkSelf(this, "run");
    const workspace = await this.#current(options);
    return this.#spend(() => workspace.run(code, options));
  }

  /** @param {string} command @param {SandboxRunOptions} [options] */
  async shell(command, options) {
    checkSelf(this, "shell");
    const workspace = await this.#current(options);
    return this.#spend(() => workspace.shell(command, options));
  }

  /**
   * @param {string} path
   * @param {string} contents
   * @param {FileEncoding} [encoding]
   * @param {SandboxCallOptions} [options]
   */
  async writeFile(path, contents, encoding = "utf8", options = undefined) {
    checkSelf(this, "writeFile");
    const workspace = await this.#current(options);
    await workspace.writeFile(path, contents, encoding, options);
  }

  /** @param {string} path @param {FileEncoding} [encoding] @param {SandboxReadOptions} [options] */
  async readFile(path, encoding = "utf8", options = undefined) {
    checkSelf(this, "readFile");
    const workspace = await this.#current(options);
    return workspace.readFile(path, encoding, options);
  }

  /** @param {SandboxSnapshotOptions} [options] @returns {Promise<WorkspaceSnapshot>} */
  async snapshot(options) {
    checkSelf(this, "snapshot");
    const { signal, exclude = [] } = checkNames(options, SNAPSHOT_OPTIONS, "snapshot");
    checkSignal(signal);
    const patterns = checkItems(exclude, "exclude", EXCLUDE, checkPattern);
    const workspace = await this.#current(options);
    const files = await workspace.snapshotFiles(signal, patterns);
    return { takenAt: Date.now(), files, env: { ...workspace.manifest.env } };
  }

  /**
   * @param {Pick<WorkspaceSnapshot, "files"> & Partial<WorkspaceSnapshot>} snapshot
   * @param {SandboxCallOptions} [options]
   */
  async resume(snapshot, options) {
    checkSelf(this, "resume");
    return untilAborted(options, "resume", () => this.#resume(snapshot));
  }

  /** @param {Pick<WorkspaceSnapshot, "files"> & Partial<WorkspaceSnapshot>} snapshot */
  async #resume(snapshot) {
    if (this.#resuming) {
      throw new SandboxError("SandboxAgent: another resume() is running; wait for it", {
        code: "ERR_SANDBOX_CONFLICT",
        retryable: true,
      });
    }
    const manifest = checkSnapshot(snapshot, this.#keepsFiles, this.#manifest.env);
    this.#resuming = this.#replace(manifest);
    try {
      await this.#resuming;
    } finally {
      this.#resuming = undefined;
    }
  }

  /** @param {SandboxCloseOptions} [options] @returns {Promise<void>} */
  close(options) {
    if (!isAgent(this)) return Promise.reject(detached("close", "agent"));
    try {
      graceOf(options);
    } catch (error) {
      return Promise.reject(error);
    }
    if (!this.#resuming) return this.#close(options);
    this.#closingLater ??= this.#resuming
      .catch(() => {})
      .then(() => this.#close(options))
      .finally(() => {
        this.#closingLater = undefined;
      });
    return this.#closingLater;
  }

  [asyncDispose]() {
    return this.close();
  }

  /**
   * What console.log() shows: neither an option nor what is in the workspace.
   *
   * @param {number} depth
   * @param {object} options
   * @param {(value: unknown, options: object) => string} inspect
   */
  [inspectKey](depth, options, inspect) {
    if (!isAgent(this)) return "[SandboxAgent]";
    return shownAs(this, { providerId: this.providerId, state: this.#state }, depth, options, inspect);
  }

  /**
   * One command, where the budget allows it.
   *
   * @template T
   * @param {() => Promise<T>} run
   */
  async #spend(run) {
    const takeBack = this.#budget?.take(this);
    try {
      return await run();
    } catch (error) {
      if (detailsOf(error)?.mayHaveRun === false) takeBack?.();
      throw error;
    }
  }

  /** The workspace for a call, once it is ready. @param {SandboxCallOptions} [options] of the call */
  async #current(options) {
    if (this.#state === "starting" && this.#starting && !this.#closingLater) {
      await unlessAborted(this.#starting, signalIn(options));
    }
    if (this.#state === "ready" && this.#workspace && !this.#closingLater) return this.#workspace;
    if (this.#state !== "new" || this.#closingLater) throw closedError();
    throw new SandboxError("SandboxAgent is not ready: call start() first", {
      code: "ERR_SANDBOX_NOT_READY",
    });
  }

  #start() {
    if (this.#state === "ready") return Promise.resolve();
    if (this.#state === "starting" && this.#starting) return this.#starting;
    if (this.#state !== "new") return Promise.reject(closedError());
    this.#state = "starting";
    this.#starting = this.#open();
    return this.#starting;
  }

  async #open() {
    try {
      if (this.#limits) this.#budget ??= new (await budgets()).Budget(this.#limits);
      this.#budget?.checkTime(this);
      this.#workspace = await this.#makeWorkspace(this.#manifest);
      this.#budget?.exists(WORKSPACE);
      if (this.#state !== "starting") this.#workspace.stop(); // A close that came meanwhile.
      await this.#workspace.seeded();
      this.#leaveStarting("ready");
    } catch (error) {
      await this.#discard();
      this.#leaveStarting("new");
      throw error;
    }
  }

  /** A close that came meanwhile has taken over. @param {"ready" | "new"} state */
  #leaveStarting(state) {
    if (this.#state === "starting") this.#state = state;
  }

  /** Removes what a failed start has made. Its own failure is left to close(). */
  async #discard() {
    const workspace = this.#workspace;
    this.#workspace = undefined;
    if (!workspace) return;
    this.#leftovers.add(workspace);
    await workspace.close().then(
      () => this.#isClosed(workspace),
      () => {},
    );
  }

  /** @param {AnyWorkspace} workspace */
  #isClosed(workspace) {
    this.#leftovers.delete(workspace);
    if (this.#leftovers.size === 0) this.#budget?.isGone(WORKSPACE);
  }

  /** @param {SandboxCloseOptions} [options] */
  #close(options) {
    if (this.#state === "closed") return Promise.resolve();
    this.#closing ??= this.#cleanUp(options).finally(() => {
      this.#closing = undefined;
    });
    return this.#closing;
  }

  /** @param {SandboxCloseOptions} [options] */
  async #cleanUp(options) {
    const neverStarted = this.#state === "new" && this.#leftovers.size === 0;
    const starting = this.#state === "starting" ? this.#starting : undefined;
    this.#state = "closing";
    // A start that hangs must not hold up the end.
    if (starting) this.#workspace?.stop();
    await starting?.catch(() => {});
    // Making a workspace does nothing; closing one that never started closes the remote that it owns.
    if (neverStarted) this.#workspace = await this.#makeWorkspace(this.#manifest);
    if (this.#workspace) this.#leftovers.add(this.#workspace);
    this.#workspace = undefined;
    const failures = [];
    for (const workspace of this.#leftovers) {
      try {
        await workspace.close(options);
        this.#isClosed(workspace);
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length === 1) throw failures[0];
    if (failures.length > 1) {
      throw new AggregateError(failures, "SandboxAgent: cleanup failed; call close() again");
    }
    this.#state = "closed";
  }

  /** @param {Manifest} manifest */
  async #replace(manifest) {
    // What never started has nothing to remove, and a remote may be closed only once.
    if (this.#state !== "new" || this.#leftovers.size > 0) await this.#close();
    this.#manifest = manifest;
    this.#state = "new";
    await this.#start();
  }
}

/**
 * What `begin` starts, for who may give up waiting: it goes on then, for others may wait too.
 *
 * @param {SandboxCallOptions | undefined} options
 * @param {string} where
 * @param {() => Promise<void>} begin
 */
async function untilAborted(options, where, begin) {
  const signal = signalOf(options, where);
  if (signal?.aborted) throw signal.reason;
  return unlessAborted(begin(), signal);
}

/** Loaded at the first start: each module costs every import of the package its share. */
const workspaces = lazily("workspace.js", () => import("./workspace.js"));

const budgets = lazily("budget.js", () => import("./budget.js"));

const containers = lazily("docker-workspace.js", () => import("./docker-workspace.js"));

/**
 * Checks the backend and its options; returns the id of its provider, what makes its workspaces, and what tools know
 * of it.
 *
 * @param {SandboxAgentConfig} config
 * @returns {{ providerId: string, make: (contents: Manifest) => Promise<AnyWorkspace>, facts: unknown }}
 */
function workspaceMaker({ backend, remote, docker, isolated, manifest, inheritEnv, maxOutputBytes }) {
  if (backend !== "isolated-local") refuseGiven({ isolated }, 'goes with backend "isolated-local" only');
  switch (backend) {
    case "isolated-local": {
      refuseGiven({ remote }, 'goes with backend "remote" only');
      refuseGiven({ docker }, 'goes with backend "docker" only');
      refuseGiven({ inheritEnv, maxOutputBytes }, "goes into `isolated`, as in isolated: { maxOutputBytes: 65536 }");
      // Each life of the workspace has a sandbox of its own; this one checks the options, and is never started.
      /** @type {Record<string, any>} */
      const options = { ...isolated };
      refuseGiven({ "isolated.isolation": options.isolation }, "is what the backend says already: leave it out");
      if (manifest !== undefined) {
        refuseGiven({ "isolated.manifest": options.manifest }, "and `manifest` are the same: give one of the two");
        options.manifest = checkManifest(manifest);
      }
      const { providerId, [forTools]: facts } = new LocalSandbox({ ...options, isolation: "required" }, "SandboxAgent: `isolated`");
      return {
        providerId,
        make: async (contents) => new (await containers()).IsolatedWorkspace(options, contents),
        facts,
      };
    }
    case "unix-local": {
      refuseGiven({ remote }, 'goes with backend "remote" only');
      refuseGiven({ docker }, 'goes with backend "docker" only');
      const { env, defaultTimeoutSeconds } = withManifest(manifest === undefined ? {} : { manifest }, LOCAL_MANIFEST);
      const options = {
        inheritEnv: checkEnvNames(inheritEnv ?? [], "inheritEnv"),
        env,
        defaultTimeoutSeconds,
        ...(maxOutputBytes !== undefined && {
          maxOutputBytes: checkInteger(maxOutputBytes, "maxOutputBytes", 1, Number.MAX_SAFE_INTEGER),
        }),
      };
      return {
        providerId: "unix-local",
        make: async (contents) => new (await workspaces()).LocalWorkspace(options, contents),
        facts: LOCAL_FACTS,
      };
    }
    case "docker": {
      refuseGiven({ remote }, 'goes with backend "remote" only');
      refuseGiven({ inheritEnv }, 'goes with backend "unix-local" only: nothing of this process is in a container; use `workspace.env`');
      refuseGiven({ maxOutputBytes }, "goes into `docker`, as in docker: { maxOutputBytes: 65536 }");
      // Each life of the workspace has a container of its own; this one checks the options, and is never started.
      const options = { ...docker };
      if (manifest !== undefined) {
        refuseGiven({ "docker.manifest": options.manifest }, "and `manifest` are the same: give one of the two");
        options.manifest = checkManifest(manifest);
      }
      const { providerId, [forTools]: facts } = new DockerSandbox(manifest === undefined ? docker : options, "SandboxAgent: `docker`");
      return {
        providerId,
        make: async (contents) => new (await containers()).DockerWorkspace(options, contents),
        facts,
      };
    }
    case "remote": {
      if (!remote) {
        throw invalid(
          'SandboxAgent: backend "remote" requires `remote`, an object with the members of a CloudSandbox',
        );
      }
      refuseGiven({ docker }, 'goes with backend "docker" only');
      refuseGiven({ manifest }, "says how a sandbox is made, and `remote` is one already: give it to that one's constructor, as in new E2BSandbox({ manifest })");
      refuseGiven({ inheritEnv, maxOutputBytes }, 'goes with backend "unix-local" only; `remote` has options of its own');
      const sandbox = checkSandbox(/** @type {CloudSandbox} */ (remote), "SandboxAgent");
      return {
        providerId: sandbox.providerId,
        make: async (contents) => new (await workspaces()).RemoteWorkspace(sandbox, contents),
        facts: reading("`remote`", () => /** @type {any} */ (remote)[forTools]),
      };
    }
    default:
      throw new SandboxError(
        `Unsupported sandbox backend ${JSON.stringify(String(backend).slice(0, 40))}: ` +
          'use "docker" (a container of its own), "isolated-local" (this machine, isolated; Linux), "unix-local" (this machine, not isolated), or "remote" with a sandbox as `remote`',
        { code: "ERR_SANDBOX_UNSUPPORTED" },
      );
  }
}

/**
 * Refuses what would be ignored.
 *
 * @param {Record<string, unknown>} options
 * @param {string} words
 */
function refuseGiven(options, words) {
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined) throw invalid(`SandboxAgent: \`${name}\` ${words}`);
  }
}

/** @param {unknown} pattern */
function checkPattern(pattern) {
  if (typeof pattern === "string" && /^(?!\/)(?!(.*\/)?\.\.(\/|$)).*[^/.]/.test(pattern)) return pattern;
  throw invalid(`\`exclude\` must be ${EXCLUDE}; a path begins at the workspace`);
}

/**
 * A deep copy of a manifest, or an error that names the member of the wrong shape. Contents and paths
 * are checked when they are used.
 *
 * @param {any} manifest
 * @param {string} [name]
 * @returns {Manifest}
 */
function checkWorkspace(manifest, name = "workspace") {
  const { files = [], gitClones = [], env = {} } = checkNames(manifest, MANIFEST_OPTIONS, name);
  return {
    files: checkList(files, `${name}.files`, ["path", "contents", "encoding"], checkFile),
    gitClones: checkList(gitClones, `${name}.gitClones`, ["repo", "path", "ref"], checkClone),
    env: checkEnvObject(env, `${name}.env`),
  };
}

/**
 * The manifest that a snapshot gives, checked as far as possible without making it: the workspace that
 * there is must not be closed for one that cannot be made.
 *
 * @param {any} snapshot
 * @param {boolean} ofFiles whether the workspace is made of these files alone
 * @param {Record<string, string>} ownEnv what counts when the snapshot names no variables
 * @returns {Manifest}
 */
function checkSnapshot(snapshot, ofFiles, ownEnv) {
  const where = "SandboxAgent.resume";
  if (typeof snapshot === "string") throw invalid(`${where}: a snapshot is an object, not its JSON text: JSON.parse() it first`);
  if (reading(where, () => typeof snapshot?.then === "function")) throw invalid(`${where}: a snapshot, not a promise of one: await agent.snapshot() first`);
  if (kindOf(snapshot) !== "an object") {
    throw invalid(`${where}: the snapshot must be an object, what agent.snapshot() gave, not ${kindOf(snapshot)}`);
  }
  const { takenAt = 0, files, env = ownEnv } = checkNames(snapshot, ["takenAt", "files", "env"], where);
  checkNumber(takenAt, "snapshot.takenAt", -8.64e15, 8.64e15);
  if (files === undefined) throw invalid(`${where}: the snapshot has no \`files\`; give what agent.snapshot() gave`);
  const manifest = checkWorkspace({ files, env }, "snapshot");
  for (const [index, { contents, encoding }] of manifest.files.entries()) {
    if (encoding === "base64") checkBase64(contents, `snapshot.files[${index}].contents`);
  }
  if (ofFiles) checkTree(manifest.files.map((file) => file.path));
  return manifest;
}

/**
 * Refuses a list of files that no fresh workspace can hold.
 *
 * @param {string[]} files
 */
function checkTree(files) {
  const seen = new Set();
  for (const file of files) {
    const plain = normalize(file);
    // eslint-disable-next-line no-control-regex
    if (/[\0-\x1f]/.test(file) || isAbsolute(file) || /^\.\.(\/|$)/.test(plain)) throw pathTraversal(file);
    if (plain === "." || plain.endsWith("/")) throw invalid(`${JSON.stringify(file.slice(0, 200))} is no name of a file`);
    seen.add(plain);
  }
  for (const file of seen) {
    for (let folder = dirname(file); folder !== "."; folder = dirname(folder)) {
      if (!seen.has(folder)) continue;
      throw invalid(`${JSON.stringify(folder.slice(0, 200))} cannot be both a file and a folder`);
    }
  }
}

/**
 * @template T
 * @param {any} list
 * @param {string} name
 * @param {string[]} members
 * @param {(item: any, name: string) => T} check
 * @returns {T[]}
 */
function checkList(list, name, members, check) {
  return checkItems(list, name, "an array", (item, index) => {
    const where = `${name}[${index}]`;
    return check(checkNames(item ?? null, members, where), where);
  });
}

/** @param {any} file @param {string} name @returns {Required<WorkspaceFile>} */
function checkFile({ path, contents, encoding }, name) {
  return {
    path: checkString(path, `${name}.path`),
    contents: checkString(contents, `${name}.contents`),
    encoding: checkEncoding(encoding),
  };
}

/** @param {any} clone @param {string} name */
function checkClone({ repo, path, ref }, name) {
  return {
    repo: checkString(repo, `${name}.repo`),
    path: checkString(path, `${name}.path`),
    ...(ref !== undefined && { ref: checkString(ref, `${name}.ref`) }),
  };
}

function closedError() {
  return new SandboxError("SandboxAgent is closed: make a new one, or resume() from a snapshot", {
    code: "ERR_SANDBOX_CLOSED",
  });
}
