// One emulated sandbox and the fleet that holds them: ids, tokens, lifetimes, directories. What would be
// a virtual machine is a directory and the processes started in it.
// @ts-check
import { randomBytes, randomInt } from "node:crypto";
import { EventEmitter } from "node:events";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { PipeMaker } from "../fifo.js";
import { ProcessTable } from "./process.js";
import { Interpreter } from "./interpreter.js";
import { Reaper, removeFolder, signalMarked } from "../processes.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */

/**
 * What a create request says, checked.
 * @typedef {object} SandboxSpec
 * @property {Template} template
 * @property {number} timeout seconds
 * @property {boolean} secure
 * @property {Record<string, string>} [metadata]
 * @property {Record<string, string>} [envVars]
 * @property {Record<string, any>} [network]
 * @property {boolean} [allowInternetAccess]
 * @property {boolean} [autoPause]
 * @property {boolean} [autoPauseMemory]
 * @property {boolean} [autoResume]
 * @property {string} [id] default: a new one
 */

/**
 * @typedef {object} Template
 * @property {string} id
 * @property {string} name
 * @property {boolean} interpreter whether something serves port 49999
 * @property {Record<string, string>} envVars
 */

/**
 * @typedef {object} Settings what an emulator was started with, with the defaults filled in
 * @property {string[]} apiKeys
 * @property {string} domain
 * @property {string | null} answerDomain what create answers as `domain`
 * @property {boolean | 404 | 405} v2 whether the second generation of create and connect is served
 * @property {number} concurrencyLimit
 * @property {number} maxHours
 * @property {string} envdVersion
 * @property {Record<string, { interpreter?: boolean, envVars?: Record<string, string> }>} templates
 * @property {number[]} dialDelaysMs waits between the tries to reach a closed port
 * @property {number} executeKeepaliveMs
 * @property {boolean} interruptOnDisconnect whether /execute interrupts when its client has gone
 * @property {number} pauseMs how long a pause is in flight
 * @property {number} diskFreeBytes more than that cannot be uploaded into a file
 * @property {number} retainExitMs how long an exit code can still be asked for
 * @property {number | null} seed of what is random on the wire: blanks in JSON, cuts in envelopes; null:
 *   no cuts, for measurements
 */

/** What the images' skeleton gives a new home. */
const SKELETON = {
  ".profile": '[ -n "$BASH_VERSION" ] && [ -f "$HOME/.bashrc" ] && . "$HOME/.bashrc"\n[ ! -d "$HOME/bin" ] || PATH="$HOME/bin:$PATH"\n',
  ".bashrc": "case $- in *i*) ;; *) return ;; esac\nHISTCONTROL=ignoreboth\n",
  ".bash_logout": "# what a login shell does at its end\n",
};

const ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789";

/** @param {number} length */
export function randomId(length) {
  return Array.from({ length }, () => ALPHABET[randomInt(ALPHABET.length)]).join("");
}

/**
 * @param {string} a
 * @param {string} b
 */
export function compareVersions(a, b) {
  const [x, y] = [a, b].map((text) => text.split(".").map(Number));
  for (let i = 0; i < 3; i += 1) {
    if ((x[i] ?? 0) !== (y[i] ?? 0)) return (x[i] ?? 0) - (y[i] ?? 0);
  }
  return 0;
}

export class Sandbox {
  clientID = "6532622b";
  /** @type {"running" | "paused"} */
  state = "running";
  /** @type {Set<Exchange>} requests that are inside the sandbox now */
  exchanges = new Set();
  /** User metadata of uploaded files, by path. @type {Map<string, Record<string, string>>} */
  fileMetadata = new Map();
  startedAt = Date.now();
  endAt = 0;
  ended = false;
  /** While a pause is in flight: resolves when it is done. @type {Promise<void> | undefined} */
  pausing;

  /**
   * @param {SandboxSpec} spec
   * @param {Settings} settings
   * @param {string} directory
   * @param {PipeMaker} pipes
   * @param {() => number} random
   */
  constructor(spec, settings, directory, pipes, random) {
    this.spec = spec;
    this.settings = settings;
    this.random = random;
    this.pipes = pipes;
    this.id = spec.id ?? `i${randomId(20)}`;
    this.template = spec.template;
    this.envdVersion = settings.envdVersion;
    this.metadata = spec.metadata;
    this.network = spec.network;
    this.envdAccessToken = spec.secure ? randomBytes(32).toString("hex") : undefined;
    this.trafficAccessToken = spec.network?.allowPublicTraffic === false ? randomBytes(32).toString("hex") : undefined;
    this.root = path.join(directory, this.id);
    /** @type {Record<string, string>} */
    this.homes = { user: path.join(this.root, "home", "user"), root: path.join(this.root, "root") };
    for (const home of Object.values(this.homes)) {
      mkdirSync(home, { recursive: true });
      for (const [name, text] of Object.entries(SKELETON)) writeFileSync(path.join(home, name), text);
    }
    this.marker = `E2B_SANDBOX_ID=${this.id}`;
    this.initDaemon();
    this.processes = new ProcessTable(this);
    this.interpreter = spec.template.interpreter ? new Interpreter(this) : undefined;
  }

  /**
   * What the daemon has been told by the control plane since it was started.
   * @type {{ token: string | undefined, user: "user" | "root", variables: Record<string, string> }}
   */
  daemon = { token: undefined, user: "root", variables: {} };

  /** As the control plane calls it: by "POST /init", which nobody can reach from outside. */
  initDaemon() {
    const variables = { ...this.template.envVars, ...this.spec.envVars };
    this.daemon = { token: this.envdAccessToken, user: "user", variables };
  }

  /** The environment of everything inside; the platform's own names win over the user's. */
  get environment() {
    return {
      ...this.daemon.variables,
      E2B_SANDBOX: "true",
      E2B_SANDBOX_ID: this.id,
      E2B_TEMPLATE_ID: this.template.id,
      E2B_EVENTS_ADDRESS: "http://192.0.2.1",
    };
  }

  /** @param {string} version */
  atLeast(version) {
    return compareVersions(this.envdVersion, version) >= 0;
  }

  /** Ends what streams out of the sandbox, as the node does when the machine stops. */
  dropExchanges() {
    for (const exchange of this.exchanges) void exchange.halt("close", "sandbox stopped");
    this.exchanges.clear();
  }
}

/**
 * Events: "ended" (sandbox id, reason) and "paused" (sandbox id).
 */
export class Fleet extends EventEmitter {
  /** @type {Map<string, Sandbox>} */
  #sandboxes = new Map();
  /** @type {Map<string, NodeJS.Timeout>} */
  #timers = new Map();
  /** Why each former sandbox ended: "killed" or "expired". @type {Map<string, string>} */
  #ended = new Map();

  /**
   * @param {Settings} settings
   * @param {() => number} random
   */
  constructor(settings, random) {
    super();
    this.settings = settings;
    this.random = random;
    this.directory = mkdtempSync(path.join(os.tmpdir(), "e2b-emulator-"));
    this.pipes = new PipeMaker(this.directory);
    this.reaper = new Reaper(this.directory);
  }

  /** @param {string} id */
  get(id) {
    return this.#sandboxes.get(id);
  }

  all() {
    return [...this.#sandboxes.values()];
  }

  get running() {
    return this.all().filter((sandbox) => sandbox.state === "running").length;
  }

  /** @param {SandboxSpec} spec */
  create(spec) {
    const sandbox = new Sandbox(spec, this.settings, this.directory, this.pipes, this.random);
    this.reaper.watch(sandbox.marker);
    this.#sandboxes.set(sandbox.id, sandbox);
    this.setEnd(sandbox, Date.now() + spec.timeout * 1000);
    return sandbox;
  }

  /** The latest moment that the plan allows. @param {Sandbox} sandbox */
  latestEnd(sandbox) {
    return sandbox.startedAt + this.settings.maxHours * 3_600_000;
  }

  /**
   * @param {Sandbox} sandbox
   * @param {number} endAt milliseconds
   */
  setEnd(sandbox, endAt) {
    sandbox.endAt = Math.min(endAt, this.latestEnd(sandbox));
    clearTimeout(this.#timers.get(sandbox.id));
    const timer = setTimeout(() => this.#expire(sandbox), Math.max(0, sandbox.endAt - Date.now()));
    timer.unref();
    this.#timers.set(sandbox.id, timer);
  }

  /** @param {Sandbox} sandbox */
  #expire(sandbox) {
    if (sandbox.spec.autoPause) void this.pause(sandbox, sandbox.spec.autoPauseMemory !== false);
    else this.end(sandbox, "expired");
  }

  /**
   * @param {Sandbox} sandbox
   * @param {string} reason
   */
  end(sandbox, reason) {
    sandbox.ended = true;
    this.#sandboxes.delete(sandbox.id);
    this.#ended.set(sandbox.id, reason);
    clearTimeout(this.#timers.get(sandbox.id));
    this.#timers.delete(sandbox.id);
    sandbox.dropExchanges();
    this.#stopProcesses(sandbox);
    this.reaper.forget(sandbox.marker);
    removeFolder(sandbox.root);
    this.emit("ended", sandbox.id, reason);
  }

  /**
   * From its first moment on, nothing finds the way to the sandbox any more.
   * @param {Sandbox} sandbox
   * @param {boolean} memory false: only the disk is kept
   */
  async pause(sandbox, memory) {
    sandbox.state = "paused";
    clearTimeout(this.#timers.get(sandbox.id));
    sandbox.dropExchanges();
    if (memory) signalMarked(sandbox.marker, "SIGSTOP");
    else this.#stopProcesses(sandbox);
    this.emit("paused", sandbox.id);
    sandbox.pausing = new Promise((resolve) => setTimeout(resolve, this.settings.pauseMs).unref());
    await sandbox.pausing;
    sandbox.pausing = undefined;
  }

  /** The service manager starts the daemon again: it knows of nothing that it was told or had started. @param {Sandbox} sandbox */
  restartDaemon(sandbox) {
    sandbox.dropExchanges();
    sandbox.processes.stop();
    sandbox.daemon = { token: undefined, user: "root", variables: {} };
  }

  /**
   * @param {Sandbox} sandbox
   * @param {number} timeout seconds
   */
  resume(sandbox, timeout) {
    sandbox.state = "running";
    sandbox.startedAt = Date.now();
    signalMarked(sandbox.marker, "SIGCONT");
    this.setEnd(sandbox, Date.now() + timeout * 1000);
  }

  /**
   * Resolves with the reason when the sandbox has ended by request or by age.
   * @param {string} id
   * @returns {Promise<string>}
   */
  ended(id) {
    const reason = this.#ended.get(id);
    if (reason) return Promise.resolve(reason);
    return new Promise((resolve) => {
      const listener = (/** @type {string} */ ended, /** @type {string} */ why) => {
        if (ended !== id) return;
        this.off("ended", listener);
        resolve(why);
      };
      this.on("ended", listener);
    });
  }

  /** @param {Sandbox} sandbox */
  #stopProcesses(sandbox) {
    sandbox.processes.stop();
    sandbox.interpreter?.stop();
    signalMarked(sandbox.marker, "SIGKILL", sandbox.root);
  }

  close() {
    for (const sandbox of this.all()) this.end(sandbox, "emulator closed");
    removeFolder(this.directory);
    this.reaper.dismiss();
  }
}
