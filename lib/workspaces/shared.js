// What the guests of a workspace share: its sandbox, seeded, and the files that go to and fro around their commands.
import { SandboxError, detailsOf, lazily } from "../errors.js";
import { Seeded } from "../seeded.js";
import { unlessAborted } from "../signals.js";
import { Clock } from "./clock.js";
import { bringAll, bringChanges, ownOf } from "./down.js";
import { realFolder } from "./folder.js";
import { sendChanges, sendFolder } from "./up.js";

/** No provider's lifetime can be set to more. */
const MOST_LIFETIME_SECONDS = 86_400;

const ignores = lazily("workspaces/ignore.js", () => import("./ignore.js"));
const { mkdir } = process.getBuiltinModule("node:fs").promises;

/** @import { Port } from "./place.js" */
/** @import { Known, Limits, Way } from "./up.js" */
/** @import { WorkspaceProgress, WorkspaceSync, WorkspaceTransfer } from "../../types/workspace.js" */
/**
 * @typedef {object} Setup checked
 * @property {string} workspaceId
 * @property {Port} sandbox
 * @property {number} ttlSeconds
 * @property {number} warnSeconds
 * @property {string | undefined} seedFrom
 * @property {readonly string[]} patterns
 * @property {((progress: WorkspaceProgress) => void) | undefined} onSeedProgress
 * @property {{ folder: string, up: boolean, down: boolean, limits: Limits } | undefined} sync
 * @property {(event: "expiring" | "expired" | "synced", detail: object) => void} tell
 */

export class Shared extends Seeded {
  #setup;
  #clock;
  #hasBegun = false;
  /** Ends seeding when the workspace ends. */
  #life = new AbortController();
  /** @type {"open" | "closed" | "expired"} */
  #state = "open";
  /** @type {Promise<void> | undefined} */
  #closing;
  /** @type {Map<string, Known>} */
  #known = new Map();
  /** What the sandbox had besides. @type {Map<string, string | undefined>} */
  #before = new Map();
  /** Exchanges of files wait for each other. @type {Promise<unknown>} */
  #exchange = Promise.resolve();
  /** @type {WorkspaceTransfer | undefined} */
  seedResult;
  /** @type {WorkspaceSync | undefined} */
  lastSync;

  /** @param {Setup} setup */
  constructor(setup) {
    super();
    this.#setup = setup;
    const end = () => this.#expire();
    const warn = () => setup.tell("expiring", { expiresAt: this.expiresAt, secondsLeft: Math.max(0, this.#clock.left) });
    this.#clock = new Clock(setup.ttlSeconds, setup.warnSeconds, { warn, end });
  }

  /** @override */
  get sandbox() {
    return this.#setup.sandbox;
  }

  get workspaceId() {
    return this.#setup.workspaceId;
  }

  get state() {
    return this.#state;
  }

  /** @returns {Date | null} */
  get expiresAt() {
    const { left } = this.#clock;
    return this.#hasBegun && left !== Infinity ? new Date(Date.now() + left * 1000) : null;
  }

  /** Throws when no call may begin. */
  check() {
    if (this.#clock.isOver || this.#state !== "open") throw this.#ended();
  }

  /** @override */
  async seed() {
    this.check();
    const { sandbox, seedFrom, onSeedProgress, sync } = this.#setup;
    const { signal } = this.#life;
    const root = seedFrom === undefined ? undefined : await realFolder(seedFrom, "seedFrom");
    await this.#untilEnd(/** @type {any} */ (sandbox).start({ signal }));
    this.#clock.begin();
    this.#hasBegun = true;
    const { left } = this.#clock;
    if (sandbox.setLifetime && left !== Infinity) await sandbox.setLifetime(lifetime(left), { signal });
    // What is in it is known of no sandbox that took the place of a lost one.
    this.#known.clear();
    if (root !== undefined) {
      this.seedResult = await this.#untilEnd(sendFolder({ ...(await this.#way(root, signal)), onProgress: onSeedProgress }));
    }
    if (sync?.down) this.#before = await this.#untilEnd(ownOf(await this.#way(sync.folder, signal)));
  }

  /** @override */
  get seededWith() {
    const { files = 0, bytes = 0 } = this.seedResult ?? {};
    return { files, bytes };
  }

  /**
   * A command, with what has changed here brought up before it, and what it has changed brought back after it.
   *
   * @template T
   * @param {AbortSignal} signal
   * @param {() => Promise<T>} call
   * @returns {Promise<T>}
   */
  command(signal, call) {
    const { sync } = this.#setup;
    if (!sync) return this.use(signal, call);
    return this.use(signal, async () => {
      /** @type {WorkspaceSync} */
      const done = {};
      if (sync.up) done.up = await this.#alone(async () => sendChanges(await this.#syncWay(signal)));
      const result = await call();
      if (sync.down) {
        try {
          done.down = await this.#alone(async () => bringChanges(await this.#syncWay(signal)));
        } catch (error) {
          // The command has run, and its result is worth more than this.
          done.error = /** @type {Error} */ (error);
        }
      }
      this.lastSync = done;
      this.#setup.tell("synced", done);
      if (detailsOf(done.error)?.code === "ERR_SANDBOX_LOST") this.seedAgain();
      return result;
    });
  }

  /**
   * @param {string} folder
   * @param {{ patterns: readonly string[], limits: Limits, signal: AbortSignal | undefined }} how
   * @returns {Promise<WorkspaceTransfer>}
   */
  exportTo(folder, { patterns, limits, signal }) {
    return this.use(signal, async () => {
      await mkdir(folder, { recursive: true });
      const root = await realFolder(folder, "folder");
      const leftOutBy = await this.#leftOutBy(patterns);
      return this.#alone(() => bringAll({ port: this.sandbox, root, leftOutBy, known: new Map(), limits, signal }));
    });
  }

  /** @param {number} seconds @param {AbortSignal} [signal] */
  async extend(seconds, signal) {
    this.check();
    this.#clock.extend(seconds);
    const { sandbox } = this.#setup;
    if (!this.#hasBegun || this.#clock.left === Infinity) return;
    if (sandbox.setLifetime) await sandbox.setLifetime(lifetime(this.#clock.left), { signal });
    else if (sandbox.extendLifetime) await sandbox.extendLifetime(lifetime(seconds), { signal });
  }

  get secondsLeft() {
    return this.#clock.left;
  }

  /** @param {object} [options] of the sandbox's close() @param {"closed" | "expired"} [state] @returns {Promise<void>} */
  close(options, state = "closed") {
    if (this.#state === "open") this.#state = state;
    this.#clock.stop();
    this.#life.abort(this.#ended());
    // A failed one may be tried again; the sandbox itself joins those that are under way.
    this.#closing = Promise.resolve(options === undefined ? this.sandbox.close() : this.sandbox.close(options));
    return this.#closing;
  }

  #expire() {
    if (this.#state !== "open") return;
    const closing = this.close({ graceSeconds: 0 }, "expired");
    this.#setup.tell("expired", { closed: closing });
    closing.catch(() => {});
  }

  #ended() {
    const { workspaceId, sandbox } = this.#setup;
    const expired = this.#state === "expired";
    const why = expired ? `its time to live of ${this.#clock.seconds} seconds has passed; extend() makes it longer while it lasts` : "make a new Workspace";
    return new SandboxError(`workspace ${workspaceId} is ${expired ? "at its end" : "closed"}: ${why}`, {
      code: "ERR_SANDBOX_CLOSED",
      provider: sandbox.providerId,
    });
  }

  /** @param {AbortSignal} signal */
  async #syncWay(signal) {
    const { sync } = /** @type {{ sync: NonNullable<Setup["sync"]> }} */ (this.#setup);
    return { ...(await this.#way(await realFolder(sync.folder, "sync.folder"), signal)), limits: sync.limits };
  }

  /** @param {string} root @param {AbortSignal} signal @returns {Promise<Way>} */
  async #way(root, signal) {
    const leftOutBy = await this.#leftOutBy(this.#setup.patterns);
    return { port: this.sandbox, root, leftOutBy, known: this.#known, before: this.#before, signal };
  }

  /** @param {readonly string[]} patterns */
  async #leftOutBy(patterns) {
    const { ignoring } = await ignores();
    return ignoring(patterns, { ignoreCase: true });
  }

  /** @template T @param {() => Promise<T>} exchange @returns {Promise<T>} */
  #alone(exchange) {
    const done = this.#exchange.then(exchange, exchange);
    this.#exchange = done.catch(() => {});
    return done;
  }

  /** @template T @param {Promise<T>} promise */
  #untilEnd(promise) {
    return unlessAborted(promise, this.#life.signal);
  }
}

/** As providers count it. @param {number} seconds */
function lifetime(seconds) {
  return Math.min(MOST_LIFETIME_SECONDS, Math.max(1, Math.ceil(seconds)));
}
