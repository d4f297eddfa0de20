// The Modal emulator: control plane and command router at one port, with real processes.
// @ts-check
import net from "node:net";
import tls from "node:tls";

import { Engine } from "../engine.js";
import { Control } from "./control.js";
import { Fleet, RESULT } from "./fleet.js";
import { GrpcError, serve } from "./grpc.js";
import * as messages from "./messages.js";
import { Router } from "./router.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */

/**
 * @typedef {object} Settings what an emulator was started with, with the defaults filled in
 * @property {Record<string, string>} tokens secrets by ids
 * @property {Set<string>} authTokens
 * @property {string[]} environments
 * @property {string} builder version of the image builder
 * @property {number} builds how many calls an image's build takes
 * @property {number} limit of running sandboxes for a token
 * @property {number} startMs how long a sandbox has no task
 * @property {boolean} closesOutputs an exec's outputs end with it, also when something still writes
 * @property {number} jwtSeconds of the router's tokens
 * @property {number} authSeconds of the control plane's
 * @property {number} secondMs length of a second of a sandbox's life
 * @property {boolean} v2 whether it knows the calls of the new kind
 * @property {string} routerUrl
 */

/** @type {Omit<Settings, "authTokens">} */
const DEFAULTS = {
  tokens: { "ak-0123456789abcdefABCDEF": "as-0123456789abcdefABCDEF" },
  environments: ["main"],
  builder: "2025.06",
  builds: 0,
  limit: 1000,
  startMs: 0,
  closesOutputs: false,
  jwtSeconds: 3600,
  authSeconds: 3600,
  secondMs: 1000,
  v2: true,
  routerUrl: "",
};

const CONTROL = "/modal.client.ModalClient/";
const ROUTER = "/modal.task_command_router.TaskCommandRouter/";

/** The name of its call. @param {Exchange} exchange */
const routeOf = (exchange) => exchange.path.slice(exchange.path.lastIndexOf("/") + 1);

/**
 * @typedef {object} StartOptions
 * @property {number} [port]
 * @property {{ key: string | Buffer, cert: string | Buffer }} [tls]
 */

export class ModalEmulator {
  engine = new Engine();
  apiUrl = "";
  #closed = false;
  /** @type {net.Server | undefined} */
  #front;

  /** @param {Partial<Settings>} [settings] */
  constructor(settings = {}) {
    /** May be changed while it runs. @type {Settings} */
    this.settings = { authTokens: new Set(), ...DEFAULTS, ...settings };
    this.fleet = new Fleet(this.settings);
    this.control = new Control(this.fleet);
    this.router = new Router(this.fleet);
  }

  /** What a client needs. */
  get credentials() {
    const [tokenId, tokenSecret] = Object.entries(this.settings.tokens)[0];
    return { tokenId, tokenSecret };
  }

  /** The sandbox is gone without a word: nothing more is known of it. @param {string} id */
  lose(id) {
    const sandbox = this.fleet.sandboxes.get(id);
    if (sandbox) this.fleet.remove(sandbox);
  }

  /** Its time is over. @param {string} id @param {keyof typeof RESULT} [how] */
  expire(id, how = "timeout") {
    this.fleet.sandboxes.get(id)?.end(RESULT[how]);
  }

  /** The router's tokens are good no more. */
  revoke() {
    for (const sandbox of this.fleet.all()) sandbox.jwts.clear();
  }

  /** @param {Exchange} exchange */
  async #handle(exchange) {
    const method = routeOf(exchange);
    const isRouter = exchange.path.startsWith(ROUTER);
    const service = /** @type {any} */ (isRouter ? this.router : this.control);
    const known = isRouter ? messages.router : exchange.path.startsWith(CONTROL) ? messages.control : {};
    const tables = known[method];
    if (!tables || (!this.settings.v2 && method.endsWith("V2"))) {
      await serve(exchange, [{}, {}], false, () => {
        throw new GrpcError("UNIMPLEMENTED", `unknown method ${method}`);
      });
      return;
    }
    await serve(exchange, tables, method === "TaskExecStdinWriteStream", (request, of) => {
      service.check(method, of);
      return service[method](request, of);
    });
  }

  /** @param {StartOptions} [options] */
  async start({ port, tls: certificate } = {}) {
    const { url } = await this.engine.listen({
      ...(certificate ? { tls: certificate } : { h2c: true }),
      name: "modal",
      port,
      route: routeOf,
      handler: (exchange) => this.#handle(exchange),
    });
    this.apiUrl = url;
    this.settings.routerUrl ||= url.replace(/^http:/, "https:");
    return this;
  }

  /**
   * TLS before a plain port, for clients that offer no protocol in its handshake.
   * @param {{ key: string | Buffer, cert: string | Buffer }} certificate
   */
  async front(certificate) {
    const { port } = new URL(this.apiUrl);
    const server = tls.createServer({ ...certificate, ALPNProtocols: ["h2"] }, (client) => {
      const inner = net.connect(Number(port), "127.0.0.1");
      for (const [one, other] of [[client, inner], [inner, client]]) {
        one.on("error", () => other.destroy());
        one.on("close", () => other.destroy());
      }
      client.pipe(inner).pipe(client);
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
    this.#front = server;
    return `https://127.0.0.1:${/** @type {import("node:net").AddressInfo} */ (server.address()).port}`;
  }

  /** Ends the sandboxes with all their processes, then the listener. */
  async close() {
    if (this.#closed) return;
    this.#closed = true;
    this.fleet.close();
    this.#front?.close();
    await this.engine.close();
  }
}

/**
 * @param {Partial<Settings> & StartOptions} [options]
 * @returns {Promise<ModalEmulator>}
 */
export async function startModal({ port, tls: certificate, ...settings } = {}) {
  const emulator = new ModalEmulator(settings);
  try {
    return await emulator.start({ port, ...(certificate && { tls: certificate }) });
  } catch (error) {
    await emulator.close();
    throw error;
  }
}
