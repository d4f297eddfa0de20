// cloudsandbox/workspace: one sandbox that several agents share, seeded from a folder, with an end.
import {
  asyncDispose, checkBoolean, checkFunction, checkInteger, checkItems, checkNames, checkNumber, checkSignal, checkString, checkWord, detached,
  inspectKey, invalid, reading, shownAs,
} from "../options.js";
import { createSandbox } from "../registry.js";
import { unlessAborted } from "../signals.js";
import { checkSandbox } from "../toolkit.js";
import { MOST_SECONDS } from "./clock.js";
import { Guest } from "./guest.js";
import { unlisted } from "./place.js";
import { Shared } from "./shared.js";

const { createHash, randomUUID } = process.getBuiltinModule("node:crypto");
const { EventEmitter } = process.getBuiltinModule("node:events");
const path = process.getBuiltinModule("node:path");

/** @import { Port } from "./place.js" */
/** @import { Limits } from "./up.js" */
/** @import { WorkspaceOptions } from "../../types/workspace.js" */

const OPTIONS = ["workspaceId", "backend", "backendOptions", "ttlSeconds", "warnSeconds", "seedFrom", "seedExcludes", "onSeedProgress", "sync"];
const LIMITS = ["maxFiles", "maxFileBytes", "maxBytes"];
/** Every provider takes it for a name; and it is one label of a host's name. */
const ID = /^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$/;

/** What is not to leave this machine, and what is made again where it is needed. */
export const DEFAULT_SEED_EXCLUDES = Object.freeze([
  ".env", ".env.*", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "id_*", "credentials.json", "secrets/",
  ".netrc", ".npmrc", ".pypirc", ".git-credentials", ".aws/", ".ssh/", ".gnupg/", ".kube/", ".docker/",
  ".git/", "node_modules/", ".venv/", "venv/", "__pycache__/", ".DS_Store",
]);
/** Of the files that go to and fro around a command; and of an export. */
const SYNC_LIMITS = Object.freeze({ maxFiles: 500, maxFileBytes: 2 * 1024 * 1024, maxBytes: 20 * 1024 * 1024 });
const EXPORT_LIMITS = Object.freeze({ maxFiles: 10_000, maxFileBytes: 256 * 1024 * 1024, maxBytes: 1024 * 1024 * 1024 });

/**
 * A workspace's id for a run: always the same one for the same run, and a name for every provider.
 *
 * @param {string} runId
 */
export function workspaceIdForRun(runId) {
  if (checkString(runId, "runId") === "") throw invalid("workspaceIdForRun: `runId` must not be empty");
  const readable = runId.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+/, "").slice(0, 20).replace(/-+$/, "");
  const digest = createHash("sha256").update(runId).digest("hex").slice(0, 16);
  return ["ws", readable, digest].filter(Boolean).join("-");
}

/** Whether a value is a workspace itself, and no Proxy of one. @type {(value: unknown) => boolean} */
let isWorkspace;

export class Workspace extends EventEmitter {
  #shared;
  /** @type {Set<Guest>} */
  #guests = new Set();

  static {
    isWorkspace = (value) => typeof value === "object" && value !== null && #shared in value;
  }

  /** No I/O. @param {WorkspaceOptions} options */
  constructor(options) {
    super();
    const given = checkNames(options, OPTIONS, "Workspace");
    const workspaceId = given.workspaceId === undefined ? `ws-${randomUUID()}` : checkId(given.workspaceId);
    const { ttlSeconds = 3600, seedFrom, seedExcludes = [] } = given;
    const life = ttlSeconds === Infinity ? Infinity : checkNumber(ttlSeconds, "ttlSeconds", 0.001, MOST_SECONDS);
    const warnSeconds = checkNumber(given.warnSeconds ?? Math.min(60, life / 10), "warnSeconds", 0, MOST_SECONDS);
    const from = seedFrom === undefined ? undefined : checkFolder(seedFrom, "seedFrom");
    const patterns = [...DEFAULT_SEED_EXCLUDES, ...checkPatterns(seedExcludes, "seedExcludes")];
    const sync = given.sync === undefined ? undefined : checkSync(given.sync, from);
    const { onSeedProgress } = given;
    if (onSeedProgress !== undefined) checkFunction(onSeedProgress, "onSeedProgress");
    // Last: what it makes is nobody's when another option is wrong.
    const sandbox = sandboxOf(given, workspaceId);
    if (sync?.down && !sandbox.listFiles) throw unlisted(sandbox);
    this.#shared = new Shared({
      workspaceId, sandbox, ttlSeconds: life, warnSeconds, seedFrom: from, patterns, onSeedProgress, sync,
      tell: (event, detail) => this.emit(event, detail),
    });
  }

  get workspaceId() {
    return this.#shared.workspaceId;
  }

  /** The sandbox itself, which knows nothing of guests. @returns {any} */
  get sandbox() {
    return this.#shared.sandbox;
  }

  /** When it ends; null before its start, and when it has no end. */
  get expiresAt() {
    return this.#shared.expiresAt;
  }

  /** What was done to seed it, and what was left out; undefined before. */
  get seedResult() {
    return this.#shared.seedResult;
  }

  /** What went to and fro around the last command. */
  get lastSync() {
    return this.#shared.lastSync;
  }

  /**
   * Starts the sandbox and seeds it. Every call of a guest does so when needed.
   *
   * @param {{ signal?: AbortSignal | undefined }} [options]
   */
  async start(options) {
    checkSelf(this, "start");
    const { signal } = checkNames(options, ["signal"], "start");
    this.#shared.check();
    await unlessAborted(this.#shared.seeded(), checkSignal(signal));
  }

  /**
   * A guest: a sandbox to its holder, with what it may do.
   *
   * @param {{ mode?: "read-only" | "read-write" }} [options]
   * @returns {any}
   */
  attach(options) {
    checkSelf(this, "attach");
    const { mode = "read-write" } = checkNames(options, ["mode"], "attach");
    checkWord(mode, /** @type {const} */ (["read-only", "read-write"]), "mode");
    this.#shared.check();
    const guest = new Guest(this.#shared, mode, () => this.#guests.delete(guest));
    this.#guests.add(guest);
    return guest;
  }

  /**
   * Makes the time to live longer, counted from its end.
   *
   * @param {number} seconds
   * @param {{ signal?: AbortSignal | undefined }} [options]
   */
  async extend(seconds, options) {
    checkSelf(this, "extend");
    const { signal } = checkNames(options, ["signal"], "extend");
    checkNumber(seconds, "seconds", 0.001, MOST_SECONDS);
    const { secondsLeft } = this.#shared;
    if (secondsLeft !== Infinity && secondsLeft + seconds > MOST_SECONDS) throw invalid(`extend: at most ${MOST_SECONDS} seconds may be left in all`);
    await this.#shared.extend(seconds, checkSignal(signal));
  }

  /**
   * Brings the sandbox's files into a folder of this machine, which is made; nothing is written outside of it.
   *
   * @param {string} folder
   * @param {any} [options]
   */
  async exportTo(folder, options) {
    checkSelf(this, "exportTo");
    const { signal, exclude = [], ...limits } = checkNames(options, ["signal", "exclude", ...LIMITS], "exportTo");
    this.#shared.check();
    const patterns = [...DEFAULT_SEED_EXCLUDES, ...checkPatterns(exclude, "exclude")];
    return this.#shared.exportTo(checkFolder(folder, "folder"), { patterns, limits: checkLimits(limits, EXPORT_LIMITS), signal: checkSignal(signal) });
  }

  /**
   * Ends the workspace with its sandbox. May be called again.
   *
   * @param {{ graceSeconds?: number }} [options] of the sandbox's close()
   */
  async close(options) {
    checkSelf(this, "close");
    await this.#shared.close(options);
    for (const guest of [...this.#guests]) await guest.detach();
  }

  [asyncDispose]() {
    return this.close();
  }

  /** @param {number} depth @param {object} options @param {(value: unknown, options: object) => string} inspect */
  [inspectKey](depth, options, inspect) {
    if (!isWorkspace(this)) return "[Workspace]";
    const { workspaceId, expiresAt } = this;
    const { sandbox, state } = this.#shared;
    return shownAs(this, { workspaceId, provider: sandbox.providerId, state, expiresAt, guests: this.#guests.size }, depth, options, inspect);
  }
}

/** @param {unknown} self @param {string} method */
function checkSelf(self, method) {
  if (!isWorkspace(self)) throw detached(method, "workspace");
}

/** @param {unknown} id */
function checkId(id) {
  const text = checkString(id, "workspaceId");
  if (ID.test(text)) return text;
  throw invalid("`workspaceId` must have 1 to 40 characters a-z, 0-9 or `-`, the first a letter, the last no `-`; workspaceIdForRun() makes one of any text");
}

/** @param {Record<string, any>} options @param {string} workspaceId @returns {Port} */
function sandboxOf({ backend, backendOptions }, workspaceId) {
  if (typeof backend === "string") return createSandbox(backend, backendOptions);
  if (backendOptions !== undefined) throw invalid("Workspace: `backendOptions` go with a `backend` that is a provider's name");
  if (backend === undefined) {
    throw invalid('Workspace: give a `backend`: a sandbox, a provider\'s name such as "docker", or { buildForSession(workspaceId) }');
  }
  const isTemplate = reading("`backend`", () => typeof backend?.buildForSession === "function");
  if (!isTemplate) return checkSandbox(backend, "Workspace: `backend`");
  return checkSandbox(backend.buildForSession(workspaceId), "Workspace: what buildForSession() returned");
}

/** @param {unknown} folder @param {string} name */
function checkFolder(folder, name) {
  const text = checkString(folder, name);
  if (text === "" || text.includes("\0")) throw invalid(`\`${name}\` must be the path of a folder`);
  return path.resolve(text);
}

/** @param {unknown} patterns @param {string} name @returns {string[]} */
function checkPatterns(patterns, name) {
  const wanted = 'an array of lines as in a .gitignore file, such as ["dist/", "!.env.example"]';
  return checkItems(patterns, name, wanted, (item) => {
    if (typeof item === "string" && !/[\0\n]/.test(item)) return item;
    throw invalid(`\`${name}\` must be ${wanted}`);
  });
}

/** @param {unknown} sync @param {string | undefined} seedFrom */
function checkSync(sync, seedFrom) {
  const { folder, up = false, down = false, ...limits } = checkNames(sync, ["folder", "up", "down", ...LIMITS], "sync");
  const where = folder === undefined ? seedFrom : checkFolder(folder, "sync.folder");
  if (where === undefined) throw invalid("Workspace: `sync` needs `seedFrom`, or a `folder` of its own");
  if (!checkBoolean(up, "sync.up") && !checkBoolean(down, "sync.down")) throw invalid("Workspace: `sync` must say `up: true`, `down: true`, or both");
  return { folder: where, up, down: checkBoolean(down, "sync.down"), limits: checkLimits(limits, SYNC_LIMITS) };
}

/** @param {Record<string, any>} given @param {Limits} otherwise @returns {Limits} */
function checkLimits(given, otherwise) {
  const { maxFiles, maxFileBytes, maxBytes } = { ...otherwise, ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) };
  return {
    maxFiles: checkInteger(maxFiles, "maxFiles", 0, 1_000_000),
    maxFileBytes: checkInteger(maxFileBytes, "maxFileBytes", 0, 2 ** 31 - 1),
    maxBytes: checkInteger(maxBytes, "maxBytes", 0, Number.MAX_SAFE_INTEGER),
  };
}
