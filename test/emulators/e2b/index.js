// The E2B emulator: control plane, edge, envd and code interpreter on loopback, with real processes.
// @ts-check
import { Engine } from "../engine.js";
import { ControlPlane, controlRoute } from "./control.js";
import { ENVD_PORT, Edge, INTERPRETER_PORT, findRoute } from "./edge.js";
import { findFaultWith } from "./manners.js";
import { Fleet } from "./sandbox.js";
import { readTemplate } from "./schema.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */
/** @typedef {import("./manners.js").Plane} Plane */
/** @typedef {import("./sandbox.js").Settings} Settings */
/** @typedef {import("./sandbox.js").Sandbox} Sandbox */

/**
 * @typedef {object} StartOptions
 * @property {number} [apiPort]
 * @property {number} [sandboxPort]
 * @property {{ key: string | Buffer, cert: string | Buffer }} [tls]
 * @property {boolean} [noContinue] never answers "Expect: 100-continue"
 * @property {boolean} [debug] also serves one sandbox on the fixed ports that a client in debug mode uses
 */

/** @type {Settings} */
const DEFAULTS = {
  apiKeys: ["e2b_0123456789abcdef0123456789abcdef01234567"],
  domain: "e2b.test",
  answerDomain: null,
  v2: true,
  concurrencyLimit: 100,
  maxHours: 24,
  envdVersion: "0.6.13",
  templates: { base: {}, "code-interpreter-v1": { interpreter: true } },
  dialDelaysMs: [100, 200, 300, 400],
  executeKeepaliveMs: 5000,
  interruptOnDisconnect: true,
  pauseMs: 0,
  diskFreeBytes: Infinity,
  retainExitMs: 30_000,
  seed: 1,
};

/** A small generator whose numbers can be had again. @param {number | null} seed */
function makeRandom(seed) {
  if (seed === null) return () => 0;
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/**
 * The name of a request to the data plane, such as "envd GET /files", "process.Process/Start" or
 * "interpreter POST /execute".
 * @param {Exchange} exchange
 */
function dataRoute(exchange) {
  const route = findRoute(exchange);
  if ("status" in route) return `edge ${exchange.method} ${exchange.path}`;
  return portRoute(exchange, route.port);
}

/**
 * @param {Exchange} exchange
 * @param {number} port
 */
function portRoute(exchange, port) {
  if (port === ENVD_PORT) {
    const rpc = exchange.path.match(/^\/((?:process|filesystem)\.\w+\/\w+)$/);
    return rpc ? rpc[1] : `envd ${exchange.method} ${exchange.path}`;
  }
  const path = exchange.path.replace(/^\/contexts\/[^/]+/, "/contexts/{id}");
  return `${port === INTERPRETER_PORT ? "interpreter" : `port ${port}`} ${exchange.method} ${path}`;
}

export { proxyReplies } from "./edge.js";

/**
 * For the stop of a scripted fault: a stream of Process/Start that breaks right after its first event, as the
 * vendor's proxies break some. The process runs on.
 */
export const cutAfterStart = { until: /"start":\s?\{"pid":\s?\d+\}\}\}/, how: /** @type {const} */ ("close") };

export class E2BEmulator {
  engine = new Engine();
  apiUrl = "";
  sandboxUrl = "";
  apiPort = 0;
  sandboxPort = 0;
  /** The sandbox of debug mode. @type {Sandbox | undefined} */
  debugSandbox;
  /** What a well-behaved client would not have done. @type {string[]} */
  complaints = [];
  #closed = false;

  /** @param {Partial<Settings>} [settings] */
  constructor(settings = {}) {
    /** May be changed while it runs. @type {Settings} */
    this.settings = { ...DEFAULTS, ...settings };
    this.fleet = new Fleet(this.settings, makeRandom(this.settings.seed));
    this.control = new ControlPlane(this.fleet);
    this.edge = new Edge(this.fleet);
  }

  get apiKey() {
    return this.settings.apiKeys[0];
  }

  /** @param {string} id */
  sandbox(id) {
    return this.fleet.get(id);
  }

  /** Why and when a sandbox has ended. @param {string} id */
  ended(id) {
    return this.fleet.ended(id);
  }

  /** The node fails: the sandbox is gone without a word. @param {string} id */
  lose(id) {
    const sandbox = this.fleet.get(id);
    if (sandbox) this.fleet.end(sandbox, "lost");
  }

  /** The daemon of a sandbox fails and is started again, without what the control plane had told it. @param {string} id */
  restartDaemon(id) {
    const sandbox = this.fleet.get(id);
    if (sandbox) this.fleet.restartDaemon(sandbox);
  }

  /** @param {StartOptions} [options] */
  async start({ apiPort, sandboxPort, tls, noContinue, debug = false } = {}) {
    const watch = (/** @type {Exchange} */ exchange, /** @type {string} */ route, /** @type {Plane} */ plane) => {
      this.complaints.push(...findFaultWith(exchange, route, plane));
      return route;
    };
    const control = (/** @type {Exchange} */ exchange) => watch(exchange, controlRoute(exchange), "control");
    const data = (/** @type {Exchange} */ exchange) => watch(exchange, dataRoute(exchange), "data");
    const isControl = (/** @type {Exchange} */ exchange) => exchange.host.startsWith("api.");
    const isData = (/** @type {Exchange} */ exchange) => /^(sandbox\.|\d+-)/.test(exchange.host);
    const onControl = (/** @type {Exchange} */ exchange) => this.control.serve(exchange);
    const onData = (/** @type {Exchange} */ exchange) => this.edge.serve(exchange);
    const common = { tls, noContinue };
    // Either listener serves both, by Host, so that one port can stand for a whole domain.
    const apiListener = await this.engine.listen({
      ...common,
      name: "api",
      port: debug ? (apiPort ?? 3000) : apiPort,
      route: (exchange) => (isData(exchange) ? data(exchange) : control(exchange)),
      handler: (exchange) => (isData(exchange) ? onData(exchange) : onControl(exchange)),
    });
    const sandboxListener = await this.engine.listen({
      ...common,
      name: "sandbox",
      port: sandboxPort,
      route: (exchange) => (isControl(exchange) ? control(exchange) : data(exchange)),
      handler: (exchange) => (isControl(exchange) ? onControl(exchange) : onData(exchange)),
    });
    this.apiUrl = apiListener.url;
    this.apiPort = apiListener.port;
    this.sandboxUrl = sandboxListener.url;
    this.sandboxPort = sandboxListener.port;
    if (debug) await this.#serveDebug();
    return this;
  }

  /** The machine that a client in debug mode believes to run on: one sandbox, no proxy, no tokens. */
  async #serveDebug() {
    const template = readTemplate("code-interpreter-v1", { "code-interpreter-v1": { interpreter: true } });
    if (typeof template === "string") throw new Error(template);
    const seconds = this.settings.maxHours * 3600;
    const sandbox = this.fleet.create({ template, timeout: seconds, secure: false });
    this.debugSandbox = sandbox;
    for (const port of [ENVD_PORT, INTERPRETER_PORT]) {
      await this.engine.listen({
        name: `debug ${port}`,
        port,
        route: (exchange) => portRoute(exchange, port),
        handler: (exchange) => this.edge.inside(exchange, sandbox, port),
      });
    }
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
 * @returns {Promise<E2BEmulator>}
 */
export async function startE2B({ apiPort, sandboxPort, tls, noContinue, debug, ...settings } = {}) {
  const emulator = new E2BEmulator(settings);
  try {
    return await emulator.start({ apiPort, sandboxPort, tls, noContinue, debug });
  } catch (error) {
    await emulator.close();
    throw error;
  }
}
