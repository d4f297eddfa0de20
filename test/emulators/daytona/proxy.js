// The way into a sandbox: the proxy, which checks who asks, and the runner, which knows the container.
// @ts-check
import { replies } from "../engine.js";
import { daemonRoute, serveDaemon } from "./daemon.js";
import { hopError } from "./errors.js";
import { decodeName } from "./paths.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */
/** @typedef {import("../exchange.js").Reply} Reply */
/** @typedef {import("./sandbox.js").Breaking} Breaking */
/** @typedef {import("./sandbox.js").Fleet} Fleet */
/** @typedef {import("./sandbox.js").Sandbox} Sandbox */

/** A request up to this size is sent once more when the connection behind the proxy breaks. */
const REPLAYED_BYTES = 256 << 10;
const BUILD_LOGS = "/build-logs/";
/** States in which no runner is known. */
const UNPLACED = new Set(["pending_build", "building_snapshot", "pulling_snapshot", "creating", "archived", "build_failed"]);
/** States in which the container has no address. */
const HALTED = new Set(["stopped", "starting", "stopping", "restoring", "paused", "resuming", "archiving"]);

/** @param {Exchange} exchange @returns {{ id: string, path: string } | undefined} */
function readPath(exchange) {
  const match = exchange.path.match(/^\/toolbox\/([^/]+)(\/.*)?$/);
  return match ? { id: decodeName(match[1]), path: match[2] ?? "/" } : undefined;
}

/** @param {Exchange} exchange */
export function proxyRoute(exchange) {
  const found = readPath(exchange);
  return found ? daemonRoute(exchange.method, found.path) : `proxy ${exchange.method} ${exchange.path}`;
}

/** What a key is shown as: header, query or cookie. @param {Exchange} exchange @param {string} id */
function credentials(exchange, id) {
  const bearer = exchange.header("authorization")?.match(/^Bearer (.+)$/)?.[1];
  const cookie = exchange.header("cookie")?.match(new RegExp(`daytona-sandbox-auth-${id}=([^;]+)`))?.[1];
  const token =
    exchange.header("x-daytona-preview-token") ?? exchange.query.get("DAYTONA_SANDBOX_AUTH_KEY") ?? cookie;
  return { bearer, token };
}

/**
 * @param {Exchange} exchange
 * @param {Reply | undefined} reply
 */
async function send(exchange, reply) {
  if (reply) await exchange.reply(reply.status, reply.headers, reply.body);
}

export class Proxy {
  /** @param {Fleet} fleet */
  constructor(fleet) {
    this.fleet = fleet;
  }

  /** @param {Exchange} exchange */
  async serve(exchange) {
    if (exchange.path.startsWith(BUILD_LOGS)) {
      await this.#buildLogs(exchange, exchange.path.slice(BUILD_LOGS.length));
      return;
    }
    const found = readPath(exchange);
    if (!found) {
      await send(exchange, hopError(exchange, 404, "not found"));
      return;
    }
    const sandbox = this.fleet.get(found.id);
    const refusal = this.#refuse(exchange, found.id, sandbox);
    if (refusal || !sandbox) await send(exchange, refusal);
    else await this.enter(exchange, sandbox, found.path);
  }

  /**
   * Who may not come in, and who asks for what is no more. The proxy remembers for a while that a key was
   * good for a sandbox, so that a former sandbox is first missed by its runner and only later by the proxy.
   * @param {Exchange} exchange
   * @param {string} id
   * @param {Sandbox | undefined} sandbox
   */
  #refuse(exchange, id, sandbox) {
    const { apiKeys, jwtTokens, proxyCacheMs, goneStatus } = this.fleet.settings;
    const { bearer, token } = credentials(exchange, id);
    if (!bearer && !token) {
      return hopError(exchange, 401, "missing authentication: provide a preview access token or an API key");
    }
    const keyIsGood = bearer !== undefined && [...apiKeys, ...jwtTokens].includes(bearer);
    const former = this.fleet.former(id);
    if (!sandbox && former && keyIsGood) {
      if (Date.now() - former.seenByProxy < proxyCacheMs) return hopError(exchange, 404, missingContainer(id));
      if (goneStatus === 400) return hopError(exchange, 400, noRunner(id));
    }
    if (!sandbox || !(keyIsGood || token === sandbox.previewToken)) {
      return hopError(exchange, 401, "authentication failed: Bearer token is invalid");
    }
    sandbox.seenByProxy = Date.now();
    return undefined;
  }

  /**
   * What the runner finds.
   * @param {Exchange} exchange
   * @param {Sandbox} sandbox
   * @returns {Reply | undefined}
   */
  #findContainer(exchange, { id, state, container }) {
    if (container) return state === "stopping" ? { status: 502 } : undefined;
    if (UNPLACED.has(state)) return hopError(exchange, 400, noRunner(id));
    if (HALTED.has(state)) {
      return hopError(exchange, 400, `failed to resolve container IP: no IP address found. Is the Sandbox started?`);
    }
    return hopError(exchange, 404, missingContainer(id));
  }

  /**
   * @param {Exchange} exchange
   * @param {Sandbox} sandbox
   * @param {string} path within the toolbox
   */
  async enter(exchange, sandbox, path) {
    const refusal = this.#findContainer(exchange, sandbox);
    if (refusal) {
      await send(exchange, refusal);
      return;
    }
    if (exchange.header("x-daytona-skip-last-activity-update") !== "true") sandbox.touch();
    const { breakAs } = this.fleet.settings;
    const attempt = async () => {
      /** @type {Promise<Breaking>} */
      const broken = new Promise((resolve) => sandbox.inside.set(exchange, (how = breakAs) => resolve(how)));
      return Promise.race([serveDaemon(exchange, sandbox, path), broken]);
    };
    try {
      let reply = await attempt();
      if (reply === "replay") {
        const unknown = exchange.header("transfer-encoding") ? Infinity : 0;
        const length = Number(exchange.header("content-length") ?? unknown);
        const small = length <= REPLAYED_BYTES && !exchange.replied;
        if (small) await exchange.rewind();
        reply = small ? await attempt() : "502";
      }
      if (typeof reply === "string") await this.#breakOff(exchange, reply);
      else await send(exchange, reply);
    } finally {
      sandbox.inside.delete(exchange);
    }
  }

  /**
   * The container has gone while it was at work, or something on the way has had enough.
   * @param {Exchange} exchange
   * @param {Breaking} how
   */
  async #breakOff(exchange, how) {
    if (how === "502" && !exchange.replied) await exchange.reply(502);
    else if (how === "504" && !exchange.replied) await send(exchange, replies.html(504));
    else await exchange.halt(how === "reset" ? "reset" : "close", "broken off");
  }

  /** @param {Exchange} exchange @param {string} id */
  async #buildLogs(exchange, id) {
    const sandbox = this.fleet.get(decodeName(id));
    const { bearer } = credentials(exchange, id);
    if (!sandbox || !bearer || !this.fleet.settings.apiKeys.includes(bearer)) {
      await send(exchange, hopError(exchange, 401, "authentication failed: Bearer token is invalid"));
      return;
    }
    const { dockerfileContent = "" } = /** @type {{ dockerfileContent?: string }} */ (sandbox.spec.buildInfo ?? {});
    await exchange.open(200, { "content-type": "text/plain; charset=utf-8" });
    for (const [i, line] of dockerfileContent.trim().split("\n").entries()) {
      await exchange.write(Buffer.from(`Step ${i + 1} : ${line}\n`));
    }
    if (exchange.query.get("follow") === "true") await sandbox.settled();
    await exchange.write(Buffer.from(`${sandbox.state === "build_failed" ? "build failed" : "build done"}\n`));
    await exchange.end();
  }
}

/** @param {string} id */
const missingContainer = (id) => `sandbox container not found: Error response from daemon: No such container: ${id}`;

/** @param {string} id */
const noRunner = (id) => `failed to get runner info: no runner found for sandbox ${id}`;
