// The Vercel emulator: the API's routes for sandboxes on loopback, with real processes.
// @ts-check
import { Engine } from "../engine.js";
import { Api, routeOf } from "./api.js";
import { Fleet } from "./fleet.js";

/**
 * @typedef {object} Settings what an emulator was started with, with the defaults filled in
 * @property {string[]} tokens
 * @property {string} teamId
 * @property {string} projectId
 * @property {number} limit of running sandboxes for a token
 * @property {number} maxTimeout in ms
 * @property {number} maxVcpus
 * @property {number} startMs how long a session is pending
 * @property {"running" | "failed" | "aborted"} startsAs
 * @property {number} stopMs how long it is stopping
 * @property {boolean} sudo whether commands can be root's
 * @property {boolean} tellsEnd a session that ends says so in the streams of its commands; else they only end
 * @property {boolean} wholeLetters a letter that comes in two parts is put together
 * @property {((spec: import("./command.js").CommandSpec) => boolean) | undefined} lateCommand whether a command begins a second after the answer
 * @property {number} secondMs length of a second of a session's life
 */

/** @type {Settings} */
const DEFAULTS = {
  tokens: ["vck_0123456789abcdefABCDEF01"],
  teamId: "team_0123456789",
  projectId: "prj_0123456789",
  limit: 1000,
  maxTimeout: 24 * 3600 * 1000,
  maxVcpus: 8,
  startMs: 0,
  startsAs: "running",
  stopMs: 0,
  sudo: true,
  tellsEnd: true,
  wholeLetters: false,
  lateCommand: undefined,
  secondMs: 1000,
};

/**
 * @typedef {object} StartOptions
 * @property {number} [port]
 * @property {{ key: string | Buffer, cert: string | Buffer }} [tls]
 * @property {boolean} [noContinue] never answers "Expect: 100-continue"
 */

export class VercelEmulator {
  engine = new Engine();
  /** With the path that clients need. */
  apiUrl = "";
  #closed = false;

  /** @param {Partial<Settings>} [settings] */
  constructor(settings = {}) {
    /** May be changed while it runs. @type {Settings} */
    this.settings = { ...DEFAULTS, ...settings };
    this.fleet = new Fleet(this.settings);
    this.api = new Api(this.fleet);
  }

  /** What a client needs. */
  get credentials() {
    const { tokens, teamId, projectId } = this.settings;
    return { token: tokens[0], teamId, projectId };
  }

  /**
   * The sandbox is gone without a word: nothing more is known of it.
   * @param {string} name
   */
  lose(name) {
    const sandbox = this.fleet.find(name);
    if (sandbox) this.fleet.remove(sandbox);
  }

  /** Its session is over, as at the end of its time. @param {string} name */
  expire(name) {
    this.fleet.find(name)?.session.end("stopped");
  }

  /** @param {StartOptions} [options] */
  async start({ port, tls, noContinue } = {}) {
    const { url } = await this.engine.listen({
      ...(tls ? { tls } : {}),
      ...(noContinue ? { noContinue } : {}),
      name: "api",
      port,
      route: routeOf,
      handler: (exchange) => this.api.serve(exchange),
    });
    this.apiUrl = `${url}/api`;
    return this;
  }

  /** Ends the sandboxes with all their processes, then the listener. */
  async close() {
    if (this.#closed) return;
    this.#closed = true;
    this.fleet.close();
    await this.engine.close();
  }
}

/**
 * @param {Partial<Settings> & StartOptions} [options]
 * @returns {Promise<VercelEmulator>}
 */
export async function startVercel({ port, tls, noContinue, ...settings } = {}) {
  const emulator = new VercelEmulator(settings);
  try {
    return await emulator.start({ port, tls, noContinue });
  } catch (error) {
    await emulator.close();
    throw error;
  }
}
