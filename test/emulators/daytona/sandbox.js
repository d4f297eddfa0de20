// One emulated sandbox and the fleet that holds them. What would be a container is a directory and the
// processes started in it.
// @ts-check
import { randomBytes, randomUUID } from "node:crypto";
import { EventEmitter } from "node:events";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { PipeMaker } from "../fifo.js";
import { Reaper, removeFolder, signalMarked } from "../processes.js";
import { Transition } from "./states.js";
import { atLeast } from "./versions.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */
/** @typedef {import("./session.js").Session} Session */
/** @typedef {import("./states.js").ScriptStep} ScriptStep */
/** @typedef {import("./states.js").Step} Step */
/** @typedef {{ steps: ScriptStep[], waitMs: number }} Script */

/**
 * What a create request says, checked and with the server's defaults.
 * @typedef {object} SandboxSpec
 * @property {string} [name]
 * @property {string} user
 * @property {Record<string, string>} env
 * @property {Record<string, string>} labels
 * @property {boolean} public
 * @property {boolean} networkBlockAll
 * @property {string} [networkAllowList]
 * @property {string} [domainAllowList]
 * @property {string} target
 * @property {number} cpu
 * @property {number} memory
 * @property {number} disk
 * @property {number} gpu
 * @property {string} [snapshot]
 * @property {Record<string, unknown>} [buildInfo]
 * @property {number} autoStopInterval
 * @property {number} autoArchiveInterval
 * @property {number} autoDeleteInterval
 * @property {number} [ttlMinutes]
 * @property {unknown[]} [volumes]
 */

/**
 * How a request is broken off that is under way: "504" with a page; "replay": the proxy's connection to the daemon
 * breaks, and it sends the request once more.
 * @typedef {"502" | "504" | "eof" | "reset" | "replay"} Breaking
 */

/**
 * @typedef {object} Settings what an emulator was started with, with the defaults filled in
 * @property {string[]} apiKeys
 * @property {string[]} jwtTokens accepted together with the organization's header
 * @property {string} organizationId
 * @property {string} apiVersion
 * @property {string} daemonVersion of sandboxes made or started from now on
 * @property {"sandbox" | "route" | "config" | "none"} toolboxUrl where replies tell the toolbox's address:
 *   in the sandbox, only by the route for it, only in the public configuration, or nowhere
 * @property {string | null} answerToolboxUrl told instead of the proxy's real address
 * @property {boolean} legacyRoute whether the API passes calls on to the toolbox
 * @property {Record<string, { cpu?: number, memory?: number, disk?: number, state?: string }>} snapshots
 * @property {string} defaultSnapshot
 * @property {string[]} regions
 * @property {{ cpu: number, memory: number, disk: number, perSandbox: { cpu: number, memory: number, disk: number } }} quota
 * @property {boolean} warmPool whether a snapshot's sandbox is there at once
 * @property {number} createWaitMs how long a create waits for the start
 * @property {number} stepMs how long a state lasts that no script names
 * @property {number} failedAuthLimit refused requests after which the answer is 429
 * @property {number} drainMs how long a stop waits for requests under way
 * @property {Breaking} breakAs what a request gets whose sandbox goes away
 * @property {number} proxyCacheMs how long the proxy remembers a good key for a sandbox
 * @property {401 | 400} goneStatus what the proxy says of a former sandbox after that
 * @property {string | null} shell in place of the one that /etc/shells names first
 * @property {string | null} workDir below the home directory
 * @property {boolean} codeRun whether the daemon knows code-run
 * @property {"exitCode" | "code" | "none"} exitField what an exit code is called
 * @property {boolean} runner whether a runner stands before the daemon, who follows logs over plain HTTP
 * @property {number} sessionPollMs how often the daemon looks for a command's end
 * @property {number} sessionGraceMs between a session's SIGTERM and SIGKILL
 * @property {number} followEndMs how late a followed log's end is noticed
 * @property {number} frameBytes at most so many bytes of a log in one frame
 * @property {number} minuteMs length of a minute for the intervals
 * @property {number} jobMs how often the intervals are looked at
 */

const STABLE = new Set(["started", "stopped", "archived", "error", "build_failed", "paused", "destroyed"]);

export class Sandbox extends EventEmitter {
  id = randomUUID();
  /** @type {string} */
  state = "creating";
  desiredState = "started";
  /** @type {string | undefined} */
  errorReason;
  recoverable = false;
  createdAt = new Date();
  updatedAt = this.createdAt;
  lastActivityAt = this.createdAt;
  previewToken = randomBytes(12).toString("hex");
  /** Whether a container is there, whatever the state says. */
  container = false;
  /** When the proxy last found a key good for it; 0: never. */
  seenByProxy = 0;
  /** Requests that are inside the container now, and what breaks each off. @type {Map<Exchange, (how?: Breaking) => void>} */
  inside = new Map();
  /** @type {Map<string, Session>} */
  sessions = new Map();
  /** @type {Set<string>} */
  openingSessions = new Set();
  /** @type {Transition | undefined} */
  #transition;

  /**
   * @param {SandboxSpec} spec
   * @param {Settings} settings
   * @param {string} directory
   * @param {PipeMaker} pipes
   */
  constructor(spec, settings, directory, pipes) {
    super();
    this.spec = spec;
    this.settings = settings;
    this.pipes = pipes;
    this.name = spec.name ?? this.id;
    this.labels = spec.labels;
    this.public = spec.public;
    this.env = { ...spec.env };
    this.daemonVersion = settings.daemonVersion;
    this.root = path.join(directory, this.id);
    this.home = path.join(this.root, "home", spec.user);
    this.workDir = path.join(this.home, settings.workDir ?? "");
    mkdirSync(this.workDir, { recursive: true });
    this.temporary = path.join(this.root, "tmp");
    mkdirSync(this.temporary);
    mkdirSync(path.join(this.home, ".daytona"));
    this.worker = path.join(this.home, ".daytona", "daytona_repl_worker.py");
    writeFileSync(this.worker, "read request\n");
    this.marker = `DAYTONA_SANDBOX_ID=${this.id}`;
  }

  /** Whether the daemon has what came with this version. @param {string} version */
  daemonAtLeast(version) {
    return atLeast(this.daemonVersion, version);
  }

  /**
   * The environment of a process in the container.
   * @param {Record<string, string>} [more]
   * @returns {Record<string, string>}
   */
  environment(more = {}) {
    return {
      PATH: process.env.PATH ?? "",
      LANG: "C.UTF-8",
      HOME: this.home,
      USER: this.spec.user,
      TMPDIR: this.temporary,
      DAYTONA_SANDBOX_USER: this.spec.user,
      ...this.env,
      ...more,
      DAYTONA_SANDBOX_ID: this.id,
    };
  }

  get ephemeral() {
    return this.spec.autoDeleteInterval === 0;
  }

  get inTransition() {
    return this.#transition !== undefined && !this.#transition.finished;
  }

  get stable() {
    return STABLE.has(this.state) && !this.inTransition;
  }

  /**
   * @param {ScriptStep[]} steps
   * @param {string} desired
   */
  go(steps, desired) {
    this.#transition?.cancel();
    this.desiredState = desired;
    this.#transition = new Transition(this, steps);
    return this.#transition.start();
  }

  /** Resolves when no transition is under way. */
  async settled() {
    await this.#transition?.done;
  }

  /** Jumps, with no regard to what is under way. @param {string} state */
  jump(state) {
    this.#transition?.cancel();
    this.enter({ state });
  }

  /** Called by a transition. @param {Step} step */
  enter({ state, errorReason, recoverable }) {
    const oldState = this.state;
    this.state = state;
    this.updatedAt = new Date();
    if (errorReason !== undefined) this.errorReason = errorReason;
    if (recoverable !== undefined) this.recoverable = recoverable;
    if (state === "started") {
      this.errorReason = undefined;
      this.recoverable = false;
      this.daemonVersion = this.settings.daemonVersion;
      this.lastActivityAt = new Date();
      if (!this.container) this.#startWorker();
      this.container = true;
    }
    this.emit("state", oldState);
  }

  /** The daemon keeps a worker for its interpreter ready. A shell that waits for input stands for it. */
  #startWorker() {
    const child = spawn("/bin/sh", [this.worker], {
      cwd: this.home,
      env: this.environment(),
      stdio: ["pipe", "ignore", "ignore"],
      detached: true,
    });
    child.on("error", () => {});
    child.unref();
    const stdin = /** @type {import("node:net").Socket} */ (child.stdin);
    stdin.on("error", () => {});
    stdin.unref();
  }

  /** Somebody has been shown the sandbox. */
  seen() {
    this.#transition?.seen();
  }

  touch() {
    this.lastActivityAt = new Date();
  }

  /** The container goes away with all that runs in it; the files stay. */
  halt() {
    this.container = false;
    for (const breakOff of [...this.inside.values()]) breakOff();
    for (const session of this.sessions.values()) session.forget();
    this.sessions.clear();
    signalMarked(this.marker, "SIGKILL");
  }

  /** Resolves when no request is inside, or after the time given. @param {number} ms */
  async drain(ms) {
    const until = Date.now() + ms;
    while (this.inside.size > 0 && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/**
 * Events: "created" (sandbox), "state" (sandbox, old state) and "ended" (sandbox).
 */
export class Fleet extends EventEmitter {
  /** @type {Map<string, Sandbox>} */
  #sandboxes = new Map();
  /** Former ones. @type {Map<string, Sandbox>} */
  #former = new Map();
  /** @type {Map<string, Script[]>} */
  #scripts = new Map();

  /** @param {Settings} settings */
  constructor(settings) {
    super();
    this.settings = settings;
    this.directory = mkdtempSync(path.join(os.tmpdir(), "daytona-emulator-"));
    this.pipes = new PipeMaker(this.directory);
    this.reaper = new Reaper(this.directory);
    this.jobs = setInterval(() => this.#runJobs(), settings.jobMs);
    this.jobs.unref();
  }

  /**
   * How the next operation of a kind goes. Of several, the first set is used first.
   * @param {string} operation "create", "start", "stop", "delete" or "archive"
   * @param {ScriptStep[]} steps
   * @param {number} waitMs how long a create waits for the last step
   */
  script(operation, steps, waitMs) {
    const queue = this.#scripts.get(operation) ?? [];
    queue.push({ steps, waitMs });
    this.#scripts.set(operation, queue);
  }

  /** @param {string} operation */
  takeScript(operation) {
    return this.#scripts.get(operation)?.shift();
  }

  /** By id only. @param {string} id */
  get(id) {
    return this.#sandboxes.get(id);
  }

  /** @param {string} id */
  former(id) {
    return this.#former.get(id);
  }

  /** @param {string} idOrName */
  find(idOrName) {
    return this.#sandboxes.get(idOrName) ?? this.all().find((sandbox) => sandbox.name === idOrName);
  }

  all() {
    return [...this.#sandboxes.values()];
  }

  /** @param {SandboxSpec} spec */
  create(spec) {
    const sandbox = new Sandbox(spec, this.settings, this.directory, this.pipes);
    this.reaper.watch(sandbox.marker);
    this.#sandboxes.set(sandbox.id, sandbox);
    sandbox.on("state", (oldState) => {
      this.emit("state", sandbox, oldState);
      if (sandbox.state === "destroyed") this.end(sandbox);
    });
    this.emit("created", sandbox);
    return sandbox;
  }

  /** @param {Sandbox} sandbox @param {ScriptStep[]} [steps] */
  start(sandbox, steps) {
    sandbox.previewToken = randomBytes(12).toString("hex");
    const first = sandbox.state === "archived" ? "restoring" : "starting";
    const usual = [{ state: first, ms: this.settings.stepMs }, "started"];
    return sandbox.go(steps ?? this.takeScript("start")?.steps ?? usual, "started");
  }

  /**
   * @param {Sandbox} sandbox
   * @param {boolean} force
   */
  stop(sandbox, force) {
    if (sandbox.ephemeral) return this.destroy(sandbox);
    const scripted = this.takeScript("stop");
    if (scripted) {
      sandbox.halt();
      return sandbox.go(scripted.steps, "stopped");
    }
    const { drainMs, stepMs } = this.settings;
    const wait = async () => {
      await sandbox.drain(force ? 0 : drainMs);
      sandbox.halt();
    };
    return sandbox.go([{ state: "stopping", gate: { wait } }, { state: "stopping", ms: stepMs }, "stopped"], "stopped");
  }

  /** @param {Sandbox} sandbox */
  archive(sandbox) {
    const usual = [{ state: "archiving", ms: this.settings.stepMs }, "archived"];
    return sandbox.go(this.takeScript("archive")?.steps ?? usual, "archived");
  }

  /** @param {Sandbox} sandbox */
  destroy(sandbox) {
    sandbox.name = `DESTROYED_${sandbox.name}_${Date.now()}`;
    sandbox.halt();
    const usual = [{ state: "destroying", ms: this.settings.stepMs }, "destroyed"];
    return sandbox.go(this.takeScript("delete")?.steps ?? usual, "destroyed");
  }

  /** @param {Sandbox} sandbox */
  end(sandbox) {
    if (!this.#sandboxes.delete(sandbox.id)) return;
    this.#former.set(sandbox.id, sandbox);
    sandbox.halt();
    this.reaper.forget(sandbox.marker);
    removeFolder(sandbox.root);
    this.emit("ended", sandbox);
  }

  #runJobs() {
    const { minuteMs } = this.settings;
    for (const sandbox of this.all()) {
      const { autoStopInterval, autoDeleteInterval, ttlMinutes } = sandbox.spec;
      const age = (/** @type {Date} */ since) => (Date.now() - since.getTime()) / minuteMs;
      if (sandbox.inside.size > 0) sandbox.touch();
      if (!sandbox.stable) continue;
      if (ttlMinutes && age(sandbox.createdAt) >= ttlMinutes) this.destroy(sandbox);
      else if (sandbox.state === "started") {
        if (autoStopInterval > 0 && age(sandbox.lastActivityAt) >= autoStopInterval) this.stop(sandbox, false);
      } else if (sandbox.state === "stopped" && autoDeleteInterval > 0) {
        if (age(sandbox.updatedAt) >= autoDeleteInterval) this.destroy(sandbox);
      }
    }
  }

  close() {
    clearInterval(this.jobs);
    for (const sandbox of this.all()) {
      sandbox.jump("destroyed");
    }
    removeFolder(this.directory);
    this.reaper.dismiss();
  }
}
