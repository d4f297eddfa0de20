// The AgentCore emulator: the Code Interpreter's data plane on loopback, with real processes. Every signature is computed
// once more; sessions belong to the access key that has started them.
// @ts-check
import { mkdtempSync, realpathSync } from "node:fs";
import os from "node:os";
import path from "node:path";

import { Engine } from "../engine.js";
import { removeFolder } from "../processes.js";
import { ApiError, agentCoreReplies, invalid, missing } from "./errors.js";
import { event, exception } from "./eventstream.js";
import { Session, onlyMembers } from "./session.js";
import { verify } from "./signature.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */
/** @typedef {import("./signature.js").Keys} Keys */

/**
 * @typedef {object} Settings
 * @property {Keys[]} keys who may ask
 * @property {string} region
 * @property {string[]} interpreters identifiers, or ARNs
 * @property {number} limit of sessions of an access key
 * @property {number} skewMs how far the service's clock is ahead
 * @property {import("./errors.js").Place} typeIn where a refusal says its type
 * @property {number} pageMost a list has no more on a page, whatever is asked for
 * @property {boolean} serial a session that runs a tool refuses another one
 * @property {404 | 400} overStatus what is said of a session that is over
 * @property {number} secondMs length of a second of a session's life
 */

/** @type {Settings} */
const DEFAULTS = {
  keys: [{ id: "AKIDEMULATOR00000001", secret: "wJalrXUtnFEMI/K7MDENG+emulatorEXAMPLEKEY" }],
  region: "us-west-2",
  interpreters: ["aws.codeinterpreter.v1"],
  limit: 1000,
  skewMs: 0,
  typeIn: "header",
  pageMost: 100,
  serial: false,
  overStatus: 404,
  secondMs: 1000,
};

const ROUTE = /^\/code-interpreters\/([^/]+)\/(sessions\/(?:start|stop|get|list)|tools\/invoke)$/;
/** @type {Record<string, string>} */
const METHODS = { "sessions/start": "PUT", "sessions/stop": "PUT", "sessions/get": "GET", "sessions/list": "POST", "tools/invoke": "POST" };
const SESSION_HEADER = "x-amzn-code-interpreter-session-id";
const MAX_SECONDS = 28800;

/** @param {Exchange} exchange */
function match({ method, req }) {
  const target = String(req.url).split("?")[0];
  const [, identifier, action] = ROUTE.exec(target) ?? [];
  return METHODS[action] === method ? { identifier: decodeURIComponent(identifier), action } : undefined;
}

/** @param {Exchange} exchange */
const routeOf = (exchange) => {
  const found = match(exchange);
  return found ? `${exchange.method} /${found.action}` : `${exchange.method} ${exchange.path}`;
};

export class AgentCoreEmulator {
  engine = new Engine();
  url = "";
  #base = realpathSync(mkdtempSync(path.join(os.tmpdir(), "agentcore-emulator-")));
  /** @type {Map<string, Session>} */
  #sessions = new Map();
  /** Sessions by the token of their start. @type {Map<string, Session>} */
  #started = new Map();
  /** @type {Set<NodeJS.Timeout>} */
  #timers = new Set();
  #closed = false;

  /** @param {Partial<Settings>} [settings] */
  constructor(settings = {}) {
    /** May be changed while it runs. @type {Settings} */
    this.settings = { ...DEFAULTS, ...settings };
  }

  /** What a client needs. */
  get credentials() {
    const [{ id: accessKeyId, secret: secretAccessKey, token: sessionToken }] = this.settings.keys;
    return { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }), region: this.settings.region };
  }

  get fleet() {
    return { all: () => [...this.#sessions.values()].filter(({ status }) => status === "READY") };
  }

  /** Ids of somebody's sessions. @param {string} owner */
  existing(owner) {
    return this.fleet.all().flatMap(({ id, spec }) => (spec.owner === owner ? [id] : []));
  }

  /** @param {string} id */
  session(id) {
    return this.#sessions.get(id);
  }

  /** Nothing more is known of it. @param {string} id */
  lose(id) {
    this.#sessions.get(id)?.end();
    this.#sessions.delete(id);
  }

  /** Its time is over. @param {string} id */
  expire(id) {
    this.#sessions.get(id)?.end();
  }

  /** @param {{ port?: number, tls?: { key: string | Buffer, cert: string | Buffer } }} [options] */
  async start({ port, tls } = {}) {
    const listening = await this.engine.listen({ ...(tls ? { tls } : {}), name: "api", port, route: routeOf, handler: (exchange) => this.#serve(exchange) });
    this.url = listening.url;
    return this;
  }

  async close() {
    if (this.#closed) return;
    this.#closed = true;
    for (const timer of this.#timers) clearTimeout(timer);
    for (const session of this.#sessions.values()) session.end();
    await this.engine.close();
    removeFolder(this.#base);
  }

  // ---- requests ----

  get #now() {
    return Date.now() + this.settings.skewMs;
  }

  /** @param {Exchange} exchange */
  async #serve(exchange) {
    const date = new Date(this.#now).toUTCString();
    try {
      const found = match(exchange);
      if (!found) throw new ApiError(404, "UnknownOperationException", "");
      const { keys, region } = this.settings;
      const owner = await verify(exchange, { keys, region, now: this.#now });
      if (!this.settings.interpreters.includes(found.identifier)) throw missing(`Code interpreter not found: ${found.identifier}`);
      await this.#answer(exchange, { ...found, owner: owner.id, date });
    } catch (error) {
      if (!(error instanceof ApiError) || exchange.replied) throw error;
      const { status, headers, body } = agentCoreReplies.error(error.status, error.type, error.message, { date }, this.settings.typeIn);
      await exchange.reply(status, headers, body);
    }
  }

  /** @param {Exchange} exchange @param {{ identifier: string, action: string, owner: string, date: string }} asked */
  async #answer(exchange, { identifier, action, owner, date }) {
    const json = (/** @type {unknown} */ value) => exchange.reply(200, { "content-type": "application/json", date }, JSON.stringify(value));
    const named = () => this.#find(exchange.query.get("sessionId") ?? undefined, owner);
    switch (action) {
      case "sessions/start":
        return json(this.#begin(await bodyOf(exchange), identifier, owner));
      case "sessions/get":
        return json(named().view());
      case "sessions/list":
        return json(this.#list(await bodyOf(exchange), owner));
      case "sessions/stop": {
        onlyMembers(await bodyOf(exchange), ["clientToken"]);
        const session = named();
        session.end();
        return json({ codeInterpreterIdentifier: identifier, sessionId: session.id, lastUpdatedAt: new Date() });
      }
      default:
        return this.#invoke(exchange, owner, date);
    }
  }

  /** @param {string | undefined} id @param {string} owner */
  #find(id, owner) {
    const session = id === undefined ? undefined : this.#sessions.get(id);
    if (session?.spec.owner === owner) return session;
    throw missing(`Code interpreter session not found: ${id}`);
  }

  /** @param {any} body @param {string} identifier @param {string} owner */
  #begin(body, identifier, owner) {
    onlyMembers(body, ["name", "sessionTimeoutSeconds", "clientToken", "certificates", "filesystemConfigurations"]);
    const { name, sessionTimeoutSeconds: seconds = 900, clientToken } = body;
    if (name !== undefined && (typeof name !== "string" || name === "" || name.length > 100)) throw invalid("name has 1 to 100 characters");
    if (!Number.isInteger(seconds) || seconds < 1 || seconds > MAX_SECONDS) throw invalid(`sessionTimeoutSeconds must be 1 to ${MAX_SECONDS}`);
    if (clientToken !== undefined && !(clientToken?.length >= 33)) throw invalid("clientToken has at least 33 characters");
    const key = `${owner} ${clientToken}`;
    const session = (clientToken && this.#started.get(key)) || this.#make({ name, seconds, identifier, owner });
    this.#started.set(key, session);
    return { codeInterpreterIdentifier: identifier, sessionId: session.id, createdAt: session.createdAt };
  }

  /** @param {import("./session.js").Spec} spec */
  #make(spec) {
    if (this.existing(spec.owner).length >= this.settings.limit) {
      throw new ApiError(402, "ServiceQuotaExceededException", "You have too many active sessions");
    }
    const session = new Session(spec, this.#base);
    this.#sessions.set(session.id, session);
    const timer = setTimeout(() => (this.#timers.delete(timer), session.end()), spec.seconds * this.settings.secondMs);
    this.#timers.add(timer);
    return session;
  }

  /** @param {any} body @param {string} owner */
  #list(body, owner) {
    onlyMembers(body, ["maxResults", "nextToken", "status"]);
    const { maxResults = 10, nextToken = "0", status } = body;
    if (!Number.isInteger(maxResults) || maxResults < 1 || maxResults > 100) throw invalid("maxResults must be 1 to 100");
    if (status !== undefined && !["READY", "TERMINATED"].includes(status)) throw invalid("status must be READY or TERMINATED");
    const all = [...this.#sessions.values()].filter((it) => it.spec.owner === owner && (status === undefined || it.status === status));
    const from = Number(nextToken);
    const end = from + Math.min(maxResults, this.settings.pageMost);
    const items = all.slice(from, end).map((it) => {
      const { sessionTimeoutSeconds: _, ...summary } = it.view();
      return summary;
    });
    return { items, ...(end < all.length && { nextToken: String(end) }) };
  }

  /** @param {Exchange} exchange @param {string} owner @param {string} date */
  async #invoke(exchange, owner, date) {
    const body = await bodyOf(exchange);
    onlyMembers(body, ["name", "arguments"]);
    const session = this.#find(exchange.header(SESSION_HEADER), owner);
    if (session.status !== "READY") {
      throw this.settings.overStatus === 404 ? missing("Code interpreter session not found") : invalid(`Session ${session.id} is not active`);
    }
    if (this.settings.serial && session.busy > 0) throw new ApiError(409, "ConflictException", "The session is busy");
    const result = await Promise.race([session.call(body.name, body.arguments ?? {}), session.ended]);
    const bytes = result ? event(result) : exception("resourceNotFoundException", "The session has ended");
    const headers = { "content-type": "application/vnd.amazon.eventstream", [SESSION_HEADER]: session.id, date };
    await exchange.reply(200, headers, bytes);
  }
}

/** @param {Exchange} exchange */
async function bodyOf(exchange) {
  if (exchange.header("content-type") !== "application/json") throw invalid("the content type must be application/json");
  try {
    return JSON.parse(String(await exchange.body()));
  } catch {
    throw invalid("Could not parse request body into json");
  }
}

/**
 * @param {Partial<Settings> & { port?: number, tls?: { key: string | Buffer, cert: string | Buffer } }} [options]
 * @returns {Promise<AgentCoreEmulator>}
 */
export async function startAgentCore({ port, tls, ...settings } = {}) {
  const emulator = new AgentCoreEmulator(settings);
  try {
    return await emulator.start({ port, tls });
  } catch (error) {
    await emulator.close();
    throw error;
  }
}
