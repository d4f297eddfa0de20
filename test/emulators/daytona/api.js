// The control plane: makes sandboxes, shows them, starts, stops and deletes them.
// @ts-check
import { STATUS_CODES } from "node:http";
import { listByCursor, listByPage } from "./listing.js";
import { decodeName } from "./paths.js";
import { toldVersion } from "./versions.js";
import { Quota } from "./quota.js";
import { ApiError, checkAllowList, readCreate } from "./request.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */
/** @typedef {import("./sandbox.js").Fleet} Fleet */
/** @typedef {import("./sandbox.js").Sandbox} Sandbox */
/** @typedef {(exchange: Exchange, names: string[]) => unknown} Handler */

const PREFIX = "/api";
const DASHBOARD = `<!doctype html>\n<html lang="en">\n<head><title>Dashboard</title></head>\n<body><div id="root"></div></body>\n</html>\n`;

/** The path below the API's base, or undefined for a page of the dashboard. @param {Exchange} exchange */
export function apiPath(exchange) {
  if (exchange.path === PREFIX) return "/";
  return exchange.path.startsWith(`${PREFIX}/`) ? exchange.path.slice(PREFIX.length) : undefined;
}

/** Where a call passed on to the toolbox goes. @param {Exchange} exchange */
export function legacyTarget(exchange) {
  const match = apiPath(exchange)?.match(/^\/toolbox\/([^/]+)\/toolbox(\/.*)?$/);
  return match ? { id: decodeName(match[1]), path: match[2] ?? "/" } : undefined;
}

const missing = (/** @type {string} */ id) => new ApiError(404, `Sandbox with ID or name ${id} not found`);
const busy = () => new ApiError(409, "Sandbox state change in progress");

export class Api {
  #failedAuth = 0;
  /** @type {{ route: string, pattern: RegExp, handler: Handler }[]} */
  #routes;

  /**
   * @param {Fleet} fleet
   * @param {{ enter: (exchange: Exchange, sandbox: Sandbox, path: string) => Promise<void> }} proxy
   * @param {() => { toolboxUrl: string, proxyUrl: string }} addresses
   */
  constructor(fleet, proxy, addresses) {
    this.fleet = fleet;
    this.settings = fleet.settings;
    this.quota = new Quota(fleet);
    this.proxy = proxy;
    this.addresses = addresses;
    this.#routes = this.#table().map(([route, handler]) => ({
      route,
      handler,
      pattern: new RegExp(`^${route.replace(/\{\w+\}/g, "([^/]+)")}$`),
    }));
  }

  /** @returns {[string, Handler][]} */
  #table() {
    const found = (/** @type {string[]} */ [id]) => this.#find(id);
    const shown = (/** @type {Sandbox} */ sandbox) => this.view(sandbox);
    const interval = (/** @type {"autoStopInterval" | "autoArchiveInterval" | "autoDeleteInterval"} */ name) =>
      /** @type {Handler} */ (
        (exchange, names) => {
          const sandbox = found(names);
          const minutes = Number(names[1]);
          if (!Number.isInteger(minutes)) throw new ApiError(400, "Validation failed (numeric string is expected)");
          sandbox.spec[name] = minutes;
          return exchange.json(201, shown(sandbox));
        }
      );
    return [
      ["POST /sandbox", (exchange) => this.#create(exchange)],
      ["GET /sandbox", (exchange) => this.#list(exchange, listByCursor)],
      ["GET /sandbox/paginated", (exchange) => this.#list(exchange, listByPage)],
      ["GET /sandbox/{id}", (exchange, names) => this.#get(exchange, names)],
      ["DELETE /sandbox/{id}", (exchange, names) => this.#delete(exchange, names)],
      ["POST /sandbox/{id}/start", (exchange, names) => this.#start(exchange, names)],
      ["POST /sandbox/{id}/stop", (exchange, names) => this.#stop(exchange, names)],
      ["POST /sandbox/{id}/archive", (exchange, names) => this.#archive(exchange, names)],
      ["POST /sandbox/{id}/recover", (exchange, names) => this.#recover(exchange, names)],
      ["POST /sandbox/{id}/pause", (_, names) => this.#refuseClass(found(names))],
      ["POST /sandbox/{id}/fork", (_, names) => this.#refuseClass(found(names))],
      ["PUT /sandbox/{id}/labels", (exchange, names) => this.#setLabels(exchange, names)],
      ["POST /sandbox/{id}/public/{flag}", (exchange, names) => this.#setPublic(exchange, names)],
      ["POST /sandbox/{id}/autostop/{minutes}", interval("autoStopInterval")],
      ["POST /sandbox/{id}/autoarchive/{minutes}", interval("autoArchiveInterval")],
      ["POST /sandbox/{id}/autodelete/{minutes}", interval("autoDeleteInterval")],
      ["POST /sandbox/{id}/network-settings", (exchange, names) => this.#setNetwork(exchange, names)],
      ["POST /sandbox/{id}/last-activity", (exchange, names) => this.#touch(exchange, names)],
      ["GET /sandbox/{id}/toolbox-proxy-url", (exchange, names) => this.#tellToolboxUrl(exchange, names)],
      ["GET /sandbox/{id}/ports/{port}/preview-url", (exchange, names) => this.#preview(exchange, names)],
      [
        "GET /sandbox/{id}/build-logs-url",
        (exchange, names) => exchange.json(200, { url: `${this.addresses().proxyUrl}/build-logs/${found(names).id}` }),
      ],
    ];
  }

  /** @param {string} method @param {string} path */
  #match(method, path) {
    for (const { route, handler, pattern } of this.#routes) {
      const match = `${method} ${path}`.match(pattern);
      if (match) return { route, handler, names: match.slice(1).map(decodeName) };
    }
    return undefined;
  }

  /** The call's name for the log and for faults. @param {Exchange} exchange */
  route(exchange) {
    const path = apiPath(exchange);
    if (path === undefined) return `page ${exchange.method} ${exchange.path}`;
    return this.#match(exchange.method, path)?.route ?? `${exchange.method} ${path}`;
  }

  /** @param {Exchange} exchange */
  async serve(exchange) {
    const path = apiPath(exchange);
    if (path === undefined) {
      await exchange.reply(200, { "content-type": "text/html; charset=utf-8" }, DASHBOARD);
      return;
    }
    try {
      await this.#serveApi(exchange, path);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const { status, message, headers } = error;
      const timestamp = new Date().toISOString();
      const body = { path: exchange.record.path, timestamp, statusCode: status, error: STATUS_CODES[status], message };
      await exchange.json(status, body, { "x-daytona-api-version": this.settings.apiVersion, ...headers });
    }
  }

  /**
   * @param {Exchange} exchange
   * @param {string} path
   */
  async #serveApi(exchange, path) {
    if (`${exchange.method} ${path}` === "GET /config") {
      await this.#answer(exchange, this.#config());
      return;
    }
    this.#authenticate(exchange);
    const legacy = legacyTarget(exchange);
    if (legacy && this.settings.legacyRoute) {
      await this.#passOn(exchange, legacy);
      return;
    }
    const found = this.#match(exchange.method, path);
    if (!found) throw new ApiError(404, `Cannot ${exchange.method} ${exchange.path}`);
    await found.handler(exchange, found.names);
  }

  /** @param {Exchange} exchange */
  #authenticate(exchange) {
    const { apiKeys, jwtTokens, organizationId, failedAuthLimit } = this.settings;
    const token = exchange.header("authorization")?.match(/^Bearer (.+)$/)?.[1] ?? "";
    if (apiKeys.includes(token)) return;
    if (jwtTokens.includes(token)) {
      if (exchange.header("x-daytona-organization-id") === organizationId) return;
      throw new ApiError(403, "Forbidden resource");
    }
    this.#failedAuth += 1;
    if (this.#failedAuth <= failedAuthLimit) throw new ApiError(401, "Invalid credentials");
    const limits = { "x-ratelimit-limit-failed-auth": failedAuthLimit, "x-ratelimit-remaining-failed-auth": 0 };
    const headers = { "retry-after": 60, "retry-after-failed-auth": 60, "x-ratelimit-reset-failed-auth": 60, ...limits };
    throw new ApiError(429, "ThrottlerException: Too Many Requests", headers);
  }

  /**
   * @param {Exchange} exchange
   * @param {{ id: string, path: string }} target
   */
  async #passOn(exchange, { id, path }) {
    const sandbox = this.#find(id);
    if (sandbox.state !== "started") throw new ApiError(400, "Sandbox is not running");
    await this.proxy.enter(exchange, sandbox, path);
  }

  /** @param {Exchange} exchange @param {unknown} value */
  #answer(exchange, value) {
    return exchange.json(200, value, { "x-daytona-api-version": this.settings.apiVersion });
  }

  #config() {
    const { apiVersion, defaultSnapshot, toolboxUrl } = this.settings;
    const { toolboxUrl: address, proxyUrl } = this.addresses();
    const { host, protocol } = new URL(proxyUrl);
    return {
      version: apiVersion,
      proxyTemplateUrl: `${protocol}//{{PORT}}-{{sandboxId}}.${host}`,
      ...(toolboxUrl === "none" ? {} : { proxyToolboxUrl: address }),
      defaultSnapshot,
      dashboardUrl: "http://localhost/dashboard",
      maxAutoArchiveInterval: 43200,
      maintananceMode: false,
      environment: "emulator",
      announcements: {},
      linkedAccountsEnabled: false,
    };
  }

  /** @param {string} idOrName */
  #find(idOrName) {
    const sandbox = this.fleet.find(idOrName);
    if (!sandbox) throw missing(idOrName);
    return sandbox;
  }

  /** A sandbox as a list shows it. @param {Sandbox} sandbox */
  listView(sandbox) {
    const { spec } = sandbox;
    const placed = sandbox.state === "started" ? { runnerId: `runner-${sandbox.id.slice(0, 8)}` } : {};
    return {
      id: sandbox.id,
      organizationId: this.settings.organizationId,
      name: sandbox.name,
      user: spec.user,
      labels: sandbox.labels,
      public: sandbox.public,
      ...pick(spec, ["snapshot"]),
      target: spec.target,
      ...pick(spec, ["cpu", "gpu", "memory", "disk"]),
      state: sandbox.state,
      desiredState: sandbox.desiredState,
      ...(sandbox.errorReason ? { errorReason: sandbox.errorReason } : {}),
      recoverable: sandbox.recoverable,
      backupState: "None",
      ...pick(spec, ["autoStopInterval", "autoArchiveInterval", "autoDeleteInterval"]),
      createdAt: sandbox.createdAt.toISOString(),
      updatedAt: sandbox.updatedAt.toISOString(),
      lastActivityAt: sandbox.lastActivityAt.toISOString(),
      sandboxClass: "container",
      daemonVersion: toldVersion(sandbox.daemonVersion),
      ...placed,
      ...(this.settings.toolboxUrl === "sandbox" ? { toolboxProxyUrl: this.addresses().toolboxUrl } : {}),
    };
  }

  /** @param {Sandbox} sandbox */
  view(sandbox) {
    const { networkBlockAll, env } = sandbox.spec;
    const further = pick(sandbox.spec, ["networkAllowList", "domainAllowList", "volumes", "buildInfo"]);
    return { ...this.listView(sandbox), networkBlockAll, env, ...further };
  }

  /** @param {Exchange} exchange */
  async #create(exchange) {
    const spec = readCreate(await readJson(exchange), this.settings);
    this.quota.check(spec);
    if (spec.name !== undefined && this.fleet.find(spec.name)) {
      throw new ApiError(409, `Sandbox with name ${spec.name} already exists`);
    }
    const sandbox = this.fleet.create(spec);
    const scripted = this.fleet.takeScript("create");
    const wait = this.#begin(sandbox, scripted?.steps);
    const before = this.view(sandbox);
    const waitMs = scripted ? scripted.waitMs : wait ? this.settings.createWaitMs : 0;
    if (waitMs > 0) await Promise.race([sandbox.settled(), this.#timeout(waitMs)]);
    if (waitMs > 0 && sandbox.state === "error") {
      throw new ApiError(400, `Sandbox failed to start: ${sandbox.errorReason ?? "unknown reason"}`);
    }
    await this.#answer(exchange, before);
  }

  /**
   * Sets a new sandbox going; says whether the create waits for it.
   * @param {Sandbox} sandbox
   * @param {import("./states.js").ScriptStep[]} [steps]
   */
  #begin(sandbox, steps) {
    const { stepMs, warmPool } = this.settings;
    const lasting = (/** @type {string[]} */ ...states) => states.map((state) => ({ state, ms: stepMs }));
    if (steps) sandbox.go(steps, "started");
    else if (sandbox.spec.buildInfo) {
      const build = lasting("pending_build", "building_snapshot", "pulling_snapshot", "starting");
      sandbox.go([...build, "started"], "started");
    } else if (warmPool) sandbox.go(["started"], "started");
    else {
      sandbox.go([...lasting("creating", "starting"), "started"], "started");
      return true;
    }
    return false;
  }

  /** @param {number} ms */
  #timeout(ms) {
    return new Promise((resolve) => setTimeout(resolve, ms).unref());
  }

  /**
   * @param {Exchange} exchange
   * @param {typeof listByCursor | typeof listByPage} lister
   */
  #list(exchange, lister) {
    const live = this.fleet.all();
    return this.#answer(exchange, lister(live, exchange.query, (sandbox) => this.listView(sandbox)));
  }

  /** @param {Exchange} exchange @param {string[]} names */
  async #get(exchange, [id]) {
    const sandbox = this.#find(id);
    const view = this.view(sandbox);
    sandbox.seen();
    await this.#answer(exchange, view);
  }

  /** @param {Exchange} exchange @param {string[]} names */
  async #delete(exchange, [id]) {
    const sandbox = this.#find(id);
    if (sandbox.inTransition && sandbox.state !== "pending_build") throw busy();
    if (sandbox.desiredState === "destroyed") throw missing(id);
    this.fleet.destroy(sandbox);
    await this.#answer(exchange, this.view(sandbox));
  }

  /** @param {Exchange} exchange @param {string[]} names */
  async #start(exchange, [id]) {
    const sandbox = this.#find(id);
    if (sandbox.inTransition) throw busy();
    if (sandbox.state === "error" || sandbox.state === "build_failed") {
      throw new ApiError(400, "Sandbox is in an errored state");
    }
    if (sandbox.state !== "started") {
      this.quota.check(sandbox.spec, sandbox);
      this.fleet.start(sandbox);
    }
    await this.#answer(exchange, this.view(sandbox));
  }

  /** @param {Exchange} exchange @param {string[]} names */
  async #stop(exchange, [id]) {
    const sandbox = this.#find(id);
    if (sandbox.inTransition) throw busy();
    if (sandbox.state !== "started") throw new ApiError(400, "Sandbox is not in a stoppable state");
    this.fleet.stop(sandbox, exchange.query.get("force") === "true");
    await this.#answer(exchange, this.view(sandbox));
  }

  /** @param {Exchange} exchange @param {string[]} names */
  async #archive(exchange, [id]) {
    const sandbox = this.#find(id);
    if (sandbox.inTransition) throw busy();
    if (sandbox.state !== "stopped") throw new ApiError(400, "Sandbox is not stopped");
    this.fleet.archive(sandbox);
    await this.#answer(exchange, this.view(sandbox));
  }

  /** @param {Exchange} exchange @param {string[]} names */
  async #recover(exchange, [id]) {
    const sandbox = this.#find(id);
    if (sandbox.state !== "error") throw new ApiError(400, "Sandbox must be in error state to recover");
    if (!sandbox.recoverable) throw new ApiError(400, "Sandbox is not recoverable");
    if (exchange.query.get("skipStart") === "true") sandbox.jump("stopped");
    else this.fleet.start(sandbox);
    await this.#answer(exchange, this.view(sandbox));
  }

  /** @param {Sandbox} _sandbox @returns {never} */
  #refuseClass(_sandbox) {
    throw new ApiError(422, "This operation is not supported for sandboxes of class container");
  }

  /** @param {Exchange} exchange @param {string[]} names */
  async #setLabels(exchange, [id]) {
    const sandbox = this.#find(id);
    const { labels } = (await readJson(exchange)) ?? {};
    if (labels === null || typeof labels !== "object") throw new ApiError(400, "labels must be an object");
    sandbox.labels = labels;
    await this.#answer(exchange, { labels });
  }

  /** @param {Exchange} exchange @param {string[]} names */
  async #setPublic(exchange, [id, flag]) {
    const sandbox = this.#find(id);
    sandbox.public = flag === "true";
    await exchange.json(201, this.view(sandbox));
  }

  /** @param {Exchange} exchange @param {string[]} names */
  async #setNetwork(exchange, [id]) {
    const { spec } = this.#find(id);
    const { networkBlockAll, networkAllowList, domainAllowList } = (await readJson(exchange)) ?? {};
    if (networkAllowList) checkAllowList(networkAllowList);
    if (networkBlockAll !== undefined) spec.networkBlockAll = networkBlockAll;
    if (networkAllowList !== undefined) spec.networkAllowList = networkAllowList;
    if (domainAllowList !== undefined) spec.domainAllowList = domainAllowList;
    await this.#answer(exchange, this.view(this.#find(id)));
  }

  /** @param {Exchange} exchange @param {string[]} names */
  async #touch(exchange, [id]) {
    const sandbox = this.fleet.get(id);
    if (!sandbox) throw missing(id);
    sandbox.touch();
    await exchange.reply(201);
  }

  /** @param {Exchange} exchange @param {string[]} names */
  async #tellToolboxUrl(exchange, [id]) {
    const { toolboxUrl } = this.settings;
    if (toolboxUrl !== "sandbox" && toolboxUrl !== "route") {
      throw new ApiError(404, `Cannot ${exchange.method} ${exchange.path}`);
    }
    if (!this.fleet.get(id)) throw missing(id);
    await this.#answer(exchange, { url: this.addresses().toolboxUrl });
  }

  /** @param {Exchange} exchange @param {string[]} names */
  async #preview(exchange, [id, port]) {
    const sandbox = this.#find(id);
    const number = Number(port);
    if (!Number.isInteger(number) || number < 1 || number > 65535) throw new ApiError(400, "Invalid port");
    const { host, protocol } = new URL(this.addresses().proxyUrl);
    const url = `${protocol}//${number}-${sandbox.id}.${host}`;
    await this.#answer(exchange, { sandboxId: sandbox.id, url, token: sandbox.previewToken });
  }
}

/**
 * The fields that are there.
 * @param {Record<string, any>} from
 * @param {string[]} names
 */
function pick(from, names) {
  return Object.fromEntries(names.filter((name) => from[name] !== undefined).map((name) => [name, from[name]]));
}

/** @param {Exchange} exchange @returns {Promise<any>} */
async function readJson(exchange) {
  const text = (await exchange.body()).toString();
  try {
    return text ? JSON.parse(text) : {};
  } catch {
    throw new ApiError(400, "Unexpected token in JSON");
  }
}
