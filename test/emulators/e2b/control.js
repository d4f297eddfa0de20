// The control plane: creates, lists, prolongs, pauses and ends sandboxes.
// @ts-check
import { compareVersions, randomId } from "./sandbox.js";
import { SchemaError, readCreate, readSeconds, readTemplate } from "./schema.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */
/** @typedef {import("./sandbox.js").Fleet} Fleet */
/** @typedef {import("./sandbox.js").Sandbox} Sandbox */

const V1_TIMEOUT = 15;
const V2_TIMEOUT = 300;
const SHORTEST_REFRESH = 15;
const LIST_LIMIT = 100;

export class ApiError extends Error {
  /**
   * @param {number} code
   * @param {string} message
   * @param {Record<string, string>} [headers]
   */
  constructor(code, message, headers = {}) {
    super(message);
    this.code = code;
    this.headers = headers;
  }
}

const missing = (/** @type {string} */ id) =>
  new ApiError(404, `Sandbox "${id}" doesn't exist or you don't have access to it`);

/** @param {number} ms */
const time = (ms) => new Date(ms).toISOString();

/**
 * The route's name, ids replaced.
 * @param {Exchange} exchange
 */
export function controlRoute(exchange) {
  return `${exchange.method} ${exchange.path.replace(/^((?:\/v2)?\/sandboxes)\/[^/]+/, "$1/{id}")}`;
}

export class ControlPlane {
  /** @type {Record<string, (exchange: Exchange, id: string) => Promise<void>>} */
  #routes;

  /** @param {Fleet} fleet */
  constructor(fleet) {
    this.fleet = fleet;
    this.settings = fleet.settings;
    const connect = (/** @type {Exchange} */ exchange, /** @type {string} */ id) => this.#connect(exchange, id);
    this.#routes = {
      "POST /sandboxes": (exchange) => this.#create(exchange, 1),
      "POST /v2/sandboxes": (exchange) => this.#create(exchange, 2),
      "GET /sandboxes": (exchange) => this.#list(exchange, 1),
      "GET /v2/sandboxes": (exchange) => this.#list(exchange, 2),
      "GET /sandboxes/{id}": (exchange, id) => exchange.json(200, this.#detail(this.#find(id))),
      "DELETE /sandboxes/{id}": (exchange, id) => this.#delete(exchange, id),
      "POST /sandboxes/{id}/timeout": (exchange, id) => this.#timeout(exchange, id),
      "POST /sandboxes/{id}/refreshes": (exchange, id) => this.#refresh(exchange, id),
      "POST /sandboxes/{id}/pause": (exchange, id) => this.#pause(exchange, id),
      "POST /sandboxes/{id}/resume": (exchange, id) => this.#resume(exchange, id),
      "POST /sandboxes/{id}/connect": connect,
      "POST /v2/sandboxes/{id}/connect": connect,
      "PUT /sandboxes/{id}/network": (exchange, id) => this.#network(exchange, id),
      "GET /sandboxes/{id}/metrics": (exchange, id) => exchange.json(200, this.#find(id) && []),
    };
  }

  /** @param {Exchange} exchange */
  async serve(exchange) {
    try {
      const route = controlRoute(exchange);
      if (route === "GET /health") {
        await exchange.text(200, "Health check successful");
        return;
      }
      this.#authenticate(exchange);
      const handler = this.#offered(route);
      const id = exchange.path.match(/\/sandboxes\/([^/]+)/)?.[1] ?? "";
      const sandboxID = decodeURIComponent(id).split("-")[0];
      if (id && !/^[a-z0-9]+$/.test(sandboxID)) throw new ApiError(400, "Invalid sandbox ID");
      await handler(exchange, sandboxID);
    } catch (error) {
      const known = error instanceof SchemaError ? new ApiError(400, error.message) : error;
      if (!(known instanceof ApiError)) throw known;
      const headers = { "x-e2b-trace-id": randomId(32), ...known.headers };
      await exchange.json(known.code, { code: known.code, message: known.message }, headers);
    }
  }

  /** @param {Exchange} exchange */
  #authenticate(exchange) {
    const key = exchange.header("x-api-key");
    if (!key) throw new ApiError(401, "authorization header is missing");
    if (!key.startsWith("e2b_")) throw new ApiError(401, "authorization header is malformed");
    if (!this.settings.apiKeys.includes(key)) {
      throw new ApiError(401, "Invalid API key, please visit the dashboard for a valid one.\nno team has this key");
    }
  }

  /** @param {string} route */
  #offered(route) {
    const { v2 } = this.settings;
    const second = route === "POST /v2/sandboxes" || route === "POST /v2/sandboxes/{id}/connect";
    const handler = second && v2 !== true ? undefined : this.#routes[route];
    if (handler) return handler;
    const path = route.slice(route.indexOf(" ") + 1);
    const others = Object.keys(this.#routes).filter((known) => known.endsWith(` ${path}`) && known !== route);
    const reason = others.length > 0 ? "method not allowed" : "no matching operation was found";
    throw new ApiError(second && v2 === 405 ? 405 : 404, `validation error: ${reason}`);
  }

  /** @param {string} id */
  #find(id) {
    const sandbox = this.fleet.get(id);
    if (!sandbox) throw missing(id);
    return sandbox;
  }

  /** @param {string} id */
  #findRunning(id) {
    const sandbox = this.#find(id);
    if (sandbox.pausing) throw new ApiError(409, `Sandbox "${id}" is being paused`);
    if (sandbox.state !== "running") throw missing(id);
    return sandbox;
  }

  /**
   * @param {Exchange} exchange
   * @param {1 | 2} generation
   */
  async #create(exchange, generation) {
    const request = readCreate(await readJson(exchange), generation);
    const template = readTemplate(request.templateID, this.settings.templates);
    if (typeof template === "string") throw new ApiError(404, template);
    const timeout = request.timeout ?? (generation === 1 ? V1_TIMEOUT : V2_TIMEOUT);
    this.#checkTimeout(timeout);
    const secure = generation === 2 || request.secure === true;
    if (secure && compareVersions(this.settings.envdVersion, "0.2.0") < 0) {
      throw new ApiError(400, "current template build does not support access flag; please re-build template and try again");
    }
    if (request.network?.allowPublicTraffic === false && !secure) {
      throw new ApiError(400, "you cannot disable public access without enabling secure envd access via 'secure' flag");
    }
    this.#checkRoom();
    const sandbox = this.fleet.create({
      template,
      timeout,
      secure,
      metadata: request.metadata,
      envVars: request.envVars,
      network: request.network,
      allowInternetAccess: request.allow_internet_access,
      autoPause: request.autoPause,
      autoPauseMemory: request.autoPauseMemory,
      autoResume: request.autoResume?.enabled,
    });
    await exchange.json(201, this.#summary(sandbox));
  }

  /** @param {number} seconds */
  #checkTimeout(seconds) {
    if (seconds <= 0) throw new ApiError(400, "Timeout must be greater than 0");
    const hours = this.settings.maxHours;
    if (seconds > hours * 3600) throw new ApiError(400, `Timeout cannot be greater than ${hours} hours`);
  }

  #checkRoom() {
    const limit = this.settings.concurrencyLimit;
    if (this.fleet.running < limit) return;
    const advice = "If you need more, please contact support";
    throw new ApiError(429, `you have reached the maximum number of concurrent E2B sandboxes (${limit}). ${advice}`);
  }

  /**
   * @param {Exchange} exchange
   * @param {string} id
   */
  async #delete(exchange, id) {
    this.fleet.end(this.#find(id), "killed");
    await exchange.reply(204);
  }

  /**
   * @param {Exchange} exchange
   * @param {string} id
   */
  async #timeout(exchange, id) {
    const seconds = readSeconds(await readJson(exchange), "timeout", { required: true });
    const sandbox = this.#findRunning(id);
    if (this.fleet.latestEnd(sandbox) <= Date.now()) throw new ApiError(400, "Max instance length exceeded");
    this.fleet.setEnd(sandbox, Date.now() + Math.max(0, seconds ?? 0) * 1000);
    await exchange.reply(204);
  }

  /**
   * @param {Exchange} exchange
   * @param {string} id
   */
  async #refresh(exchange, id) {
    const seconds = readSeconds(await readJson(exchange, true), "duration", { max: 3600 }) ?? 0;
    const sandbox = this.#findRunning(id);
    const endAt = Date.now() + Math.max(SHORTEST_REFRESH, seconds) * 1000;
    if (endAt > sandbox.endAt) this.fleet.setEnd(sandbox, endAt);
    await exchange.reply(204);
  }

  /**
   * @param {Exchange} exchange
   * @param {string} id
   */
  async #pause(exchange, id) {
    const { memory = true } = await readJson(exchange, true);
    const sandbox = this.#find(id);
    if (sandbox.pausing) throw new ApiError(409, `Sandbox '${id}' cannot be paused while in 'pausing' state`);
    if (sandbox.state === "paused") {
      throw new ApiError(409, `Error pausing sandbox - sandbox '${id}' is already paused`);
    }
    await this.fleet.pause(sandbox, memory !== false);
    await exchange.reply(204);
  }

  /**
   * @param {Exchange} exchange
   * @param {string} id
   */
  async #resume(exchange, id) {
    const seconds = readSeconds(await readJson(exchange, true), "timeout") ?? V1_TIMEOUT;
    const sandbox = this.#find(id);
    await sandbox.pausing;
    if (sandbox.state === "running") throw new ApiError(409, `Sandbox "${id}" is already running`);
    this.#checkTimeout(seconds);
    this.#checkRoom();
    this.fleet.resume(sandbox, seconds);
    await exchange.json(201, this.#summary(sandbox));
  }

  /**
   * @param {Exchange} exchange
   * @param {string} id
   */
  async #connect(exchange, id) {
    const second = exchange.path.startsWith("/v2/");
    const body = await readJson(exchange, second);
    const seconds = readSeconds(body, "timeout", { required: !second }) ?? V2_TIMEOUT;
    this.#checkTimeout(seconds);
    const sandbox = this.#find(id);
    await sandbox.pausing;
    const wasRunning = sandbox.state === "running";
    if (wasRunning) {
      const endAt = Date.now() + seconds * 1000;
      if (endAt > sandbox.endAt) this.fleet.setEnd(sandbox, endAt);
    } else {
      this.#checkRoom();
      this.fleet.resume(sandbox, seconds);
    }
    await exchange.json(wasRunning ? 200 : 201, this.#summary(sandbox));
  }

  /**
   * @param {Exchange} exchange
   * @param {string} id
   */
  async #network(exchange, id) {
    const body = await readJson(exchange);
    const sandbox = this.#findRunning(id);
    const { allow_internet_access: allowed, ...network } = body;
    sandbox.network = network;
    sandbox.spec.allowInternetAccess = allowed;
    await exchange.reply(204);
  }

  /**
   * @param {Exchange} exchange
   * @param {1 | 2} generation
   */
  async #list(exchange, generation) {
    const { query } = exchange;
    const wanted = readMetadataQuery(query.get("metadata") ?? "");
    const states = generation === 1 ? ["running"] : (query.get("state") ?? "running,paused").split(",");
    const ascending = query.get("order") === "asc";
    const after = Date.parse(query.get("startedAfter") ?? "") || 0;
    const template = query.get("template");
    const found = this.fleet
      .all()
      .filter((sandbox) => states.includes(sandbox.state))
      .filter((sandbox) => Object.entries(wanted).every(([key, value]) => sandbox.metadata?.[key] === value))
      .filter((sandbox) => sandbox.startedAt > after)
      .filter(({ template: own }) => !template || template === own.id || template === own.name)
      .sort((a, b) => a.startedAt - b.startedAt || (a.id < b.id ? -1 : 1));
    if (!ascending) found.reverse();
    if (generation === 1) {
      await exchange.json(200, found.map((sandbox) => this.#listed(sandbox)));
      return;
    }
    const limit = Number(query.get("limit") ?? LIST_LIMIT);
    if (!Number.isInteger(limit) || limit < 1 || limit > LIST_LIMIT) {
      throw new ApiError(400, "validation error: parameter limit must be between 1 and 100");
    }
    const from = readToken(query.get("nextToken"), found, ascending);
    const page = found.slice(from, from + limit);
    const running = found.filter((sandbox) => sandbox.state === "running").length;
    /** @type {Record<string, string | number>} */
    const headers = { "x-total-running": running };
    if (from + limit < found.length) headers["x-next-token"] = makeToken(page[page.length - 1], ascending);
    await exchange.json(200, page.map((sandbox) => this.#listed(sandbox)), headers);
  }

  /** @param {Sandbox} sandbox */
  #summary(sandbox) {
    return {
      sandboxID: sandbox.id,
      templateID: sandbox.template.id,
      alias: sandbox.template.name,
      clientID: sandbox.clientID,
      envdVersion: sandbox.envdVersion,
      envdAccessToken: sandbox.envdAccessToken,
      trafficAccessToken: sandbox.trafficAccessToken ?? null,
      domain: this.settings.answerDomain,
    };
  }

  /** @param {Sandbox} sandbox */
  #listed(sandbox) {
    return {
      sandboxID: sandbox.id,
      templateID: sandbox.template.id,
      alias: sandbox.template.name,
      clientID: sandbox.clientID,
      startedAt: time(sandbox.startedAt),
      endAt: time(sandbox.endAt),
      state: sandbox.state,
      cpuCount: 2,
      memoryMB: 512,
      diskSizeMB: 5120,
      envdVersion: sandbox.envdVersion,
      metadata: sandbox.metadata,
    };
  }

  /** @param {Sandbox} sandbox */
  #detail(sandbox) {
    const { spec } = sandbox;
    return {
      ...this.#listed(sandbox),
      envdAccessToken: sandbox.envdAccessToken,
      domain: this.settings.answerDomain,
      allowInternetAccess: spec.allowInternetAccess,
      network: sandbox.network,
      lifecycle: { onTimeout: spec.autoPause ? "pause" : "kill", autoResume: spec.autoResume === true },
    };
  }
}

/**
 * @param {Exchange} exchange
 * @param {boolean} [optional] an empty body counts as {}
 * @returns {Promise<Record<string, any>>}
 */
async function readJson(exchange, optional = false) {
  const body = await exchange.body();
  if (!body.length && optional) return {};
  const type = exchange.header("content-type") ?? "";
  if (!type.startsWith("application/json")) {
    throw new ApiError(400, `validation error: request body has an error: header Content-Type has unexpected value "${type}"`);
  }
  try {
    const value = JSON.parse(body.toString());
    if (value !== null && typeof value === "object" && !Array.isArray(value)) return value;
  } catch (error) {
    throw new ApiError(400, `Error when parsing request: ${error}`);
  }
  throw new ApiError(400, "validation error: request body has an error: value must be an object");
}

/**
 * "k=v&k2=v2", escaped as a whole and then each part.
 * @param {string} text the query value, unescaped once
 */
function readMetadataQuery(text) {
  /** @type {Record<string, string>} */
  const wanted = {};
  const unescape = (/** @type {string} */ part) => decodeURIComponent(part.replaceAll("+", " "));
  try {
    for (const pair of unescape(text).split("&").filter(Boolean)) {
      const [key, value = ""] = pair.split("=");
      wanted[unescape(key)] = unescape(value);
    }
  } catch {
    throw new ApiError(400, "Error parsing metadata: invalid URL escape");
  }
  return wanted;
}

/**
 * @param {Sandbox} last
 * @param {boolean} ascending
 */
function makeToken(last, ascending) {
  return Buffer.from(`${time(last.startedAt)}__${last.id}${ascending ? "__asc" : ""}`).toString("base64url");
}

/**
 * The index of the first sandbox after the one that the token names.
 * @param {string | null} token
 * @param {Sandbox[]} found
 * @param {boolean} ascending
 */
function readToken(token, found, ascending) {
  if (!token) return 0;
  const [started, id, order] = Buffer.from(token, "base64url").toString().split("__");
  const startedAt = Date.parse(started);
  if (!id || Number.isNaN(startedAt) || (order === "asc") !== ascending) throw new ApiError(400, "Invalid next token");
  const sign = ascending ? 1 : -1;
  const at = found.findIndex(
    (sandbox) => sign * (sandbox.startedAt - startedAt || (sandbox.id < id ? -1 : sandbox.id > id ? 1 : 0)) > 0,
  );
  return at < 0 ? found.length : at;
}
