// The Daytona emulator: control plane, proxy, runner and toolbox daemon on loopback, with real processes.
// @ts-check
import { Engine } from "../engine.js";
import { Api, apiPath, legacyTarget } from "./api.js";
import { daemonRoute } from "./daemon.js";
import { Events } from "./events.js";
import { Proxy, proxyRoute } from "./proxy.js";
import { Fleet } from "./sandbox.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */
/** @typedef {import("./sandbox.js").Breaking} Breaking */
/** @typedef {import("./sandbox.js").Settings} Settings */
/** @typedef {import("./states.js").ScriptStep} ScriptStep */

/**
 * @typedef {object} StartOptions
 * @property {number} [apiPort]
 * @property {number} [proxyPort]
 * @property {{ key: string | Buffer, cert: string | Buffer }} [tls]
 * @property {boolean} [noContinue] never answers "Expect: 100-continue"
 */

/** @type {Settings} */
const DEFAULTS = {
  apiKeys: ["dtn_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"],
  jwtTokens: ["eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJlbXVsYXRvciJ9.c2lnbmF0dXJl"],
  organizationId: "9b2e4a52-6d0c-4d0b-9c7e-5b1f3a2d8e10",
  apiVersion: "0.220.0",
  daemonVersion: "0.218.0",
  toolboxUrl: "sandbox",
  answerToolboxUrl: null,
  legacyRoute: true,
  snapshots: {
    "daytonaio/sandbox:0.5.0-slim": { cpu: 1, memory: 1, disk: 3 },
    "daytona-small": { cpu: 1, memory: 1, disk: 3 },
    "daytona-medium": { cpu: 2, memory: 4, disk: 8 },
    "daytona-large": { cpu: 4, memory: 8, disk: 10 },
    "still-building": { state: "building" },
  },
  defaultSnapshot: "daytonaio/sandbox:0.5.0-slim",
  regions: ["us", "eu"],
  quota: { cpu: 100, memory: 200, disk: 300, perSandbox: { cpu: 4, memory: 8, disk: 10 } },
  warmPool: false,
  createWaitMs: 30_000,
  stepMs: 10,
  failedAuthLimit: Infinity,
  drainMs: 200,
  breakAs: "502",
  proxyCacheMs: 120_000,
  goneStatus: 401,
  shell: null,
  workDir: null,
  codeRun: true,
  exitField: "exitCode",
  runner: true,
  sessionPollMs: 50,
  sessionGraceMs: 5000,
  followEndMs: 100,
  frameBytes: 32 << 10,
  minuteMs: 60_000,
  jobMs: 10_000,
};

export class DaytonaEmulator {
  engine = new Engine();
  /** With the path that clients need. */
  apiUrl = "";
  proxyUrl = "";
  #closed = false;

  /** @param {Partial<Settings>} [settings] */
  constructor(settings = {}) {
    /** May be changed while it runs. @type {Settings} */
    this.settings = { ...DEFAULTS, ...settings };
    this.fleet = new Fleet(this.settings);
    this.proxy = new Proxy(this.fleet);
    const addresses = () => ({ toolboxUrl: this.toolboxUrl, proxyUrl: this.proxyUrl });
    this.api = new Api(this.fleet, this.proxy, addresses);
    this.events = new Events(this.fleet, (sandbox) => this.api.view(sandbox));
  }

  get apiKey() {
    return this.settings.apiKeys[0];
  }

  get jwtToken() {
    return this.settings.jwtTokens[0];
  }

  get organizationId() {
    return this.settings.organizationId;
  }

  /** The toolbox's base, without a sandbox's id. */
  get toolboxUrl() {
    return this.settings.answerToolboxUrl ?? `${this.proxyUrl}/toolbox`;
  }

  /** @param {string} idOrName */
  sandbox(idOrName) {
    return this.fleet.find(idOrName);
  }

  /**
   * How the next operation of a kind goes.
   * @param {"create" | "start" | "stop" | "delete" | "archive"} operation
   * @param {ScriptStep[]} steps
   * @param {{ waitMs?: number }} [options] how long a create waits for the last step; usually not at all
   */
  script(operation, steps, { waitMs = 0 } = {}) {
    this.fleet.script(operation, steps, waitMs);
  }

  /**
   * The container is gone without a word. What the control plane then says of it is up to the caller:
   * "destroyed" (nothing more is known of it), "error", "stopped", or still "started".
   * @param {string} idOrName
   * @param {string} [state]
   */
  lose(idOrName, state = "destroyed") {
    const sandbox = this.fleet.find(idOrName);
    if (!sandbox) return;
    sandbox.halt();
    if (state !== "started") sandbox.jump(state);
  }

  /**
   * Breaks off the requests inside a sandbox that have no answer yet, as a balancer does whose idle limit has
   * passed. What they have begun goes on.
   * @param {string} idOrName
   * @param {Breaking} [how]
   * @returns {number} how many there were
   */
  cut(idOrName, how = "504") {
    const silent = [...(this.fleet.find(idOrName)?.inside ?? [])].filter(([exchange]) => !exchange.replied);
    for (const [, cut] of silent) cut(how);
    return silent.length;
  }

  /** @param {StartOptions} [options] */
  async start({ apiPort, proxyPort, tls, noContinue } = {}) {
    const common = { ...(tls ? { tls } : {}), ...(noContinue ? { noContinue } : {}), upgrades: true };
    const api = await this.engine.listen({
      ...common,
      name: "api",
      port: apiPort,
      route: (exchange) => this.#apiRoute(exchange),
      handler: (exchange) => this.#serveApi(exchange),
    });
    const proxy = await this.engine.listen({
      ...common,
      name: "proxy",
      port: proxyPort,
      route: proxyRoute,
      handler: (exchange) => this.proxy.serve(exchange),
    });
    this.apiUrl = `${api.url}/api`;
    this.proxyUrl = proxy.url;
    return this;
  }

  /** A call to the toolbox has the same name on both ways. @param {Exchange} exchange */
  #apiRoute(exchange) {
    const legacy = legacyTarget(exchange);
    return legacy ? daemonRoute(exchange.method, legacy.path) : this.api.route(exchange);
  }

  /** @param {Exchange} exchange */
  #serveApi(exchange) {
    return apiPath(exchange) === "/socket.io/" ? this.events.serve(exchange) : this.api.serve(exchange);
  }

  /** Ends the sandboxes with all their processes, then the listeners. */
  async close() {
    if (this.#closed) return;
    this.#closed = true;
    this.fleet.close();
    await this.engine.close();
  }
}

/**
 * @param {Partial<Settings> & StartOptions} [options]
 * @returns {Promise<DaytonaEmulator>}
 */
export async function startDaytona({ apiPort, proxyPort, tls, noContinue, ...settings } = {}) {
  const emulator = new DaytonaEmulator(settings);
  try {
    return await emulator.start({ apiPort, proxyPort, tls, noContinue });
  } catch (error) {
    await emulator.close();
    throw error;
  }
}
