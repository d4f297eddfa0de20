// What stands before the sandboxes: finds the sandbox and the port that a request is for, by Host or by the
// two routing headers, and answers in the platform's words when there is nothing behind it.
// @ts-check
import http from "node:http";
import { replies } from "../engine.js";
import { serveEnvd } from "./envd.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */
/** @typedef {import("./sandbox.js").Sandbox} Sandbox */
/** @typedef {import("./sandbox.js").Fleet} Fleet */

export const ENVD_PORT = 49983;
export const INTERPRETER_PORT = 49999;
const RESERVED = new Set(["/init", "/freeze", "/unfreeze", "/fsfreeze", "/fsthaw", "/collapse", "/upgrade"]);
export const BROWSER = /mozilla|chrome|safari|firefox|edge|opera|msie/i;
const HOP_HEADERS = ["connection", "keep-alive", "transfer-encoding", "upgrade", "proxy-connection"];

/** @typedef {{ id: string, port: number } | { status: number, text: string }} Route */

/**
 * Where a request goes, or the text that refuses it.
 * @param {Exchange} exchange
 * @returns {Route}
 */
export function findRoute(exchange) {
  const host = exchange.host.replace(/:\d+$/, "");
  const byHeader = /^sandbox\.|^localhost$|^\d+(\.\d+){3}$|^\[.*\]$/.test(host);
  let id = exchange.header("e2b-sandbox-id");
  let port = exchange.header("e2b-sandbox-port");
  if (byHeader && (id || port)) {
    if (!id || !port) return { status: 400, text: "missing header" };
  } else {
    const [first, second] = host.split(".")[0].split("-");
    if (!second || !host.includes(".")) return { status: 400, text: "Invalid host" };
    [port, id] = [first, second];
  }
  if (!/^[a-z0-9]+$/.test(id)) return { status: 400, text: "Invalid sandbox ID" };
  if (!/^\d{1,19}$/.test(port)) {
    return { status: 500, text: "Unexpected error when routing request: invalid sandbox port" };
  }
  return { id, port: Number(port) };
}

const GONE = "The sandbox was not found";
export const SHUT = "The sandbox is running but port is not open";

/** What the proxies answer, for scripted faults. */
export const proxyReplies = {
  /** @param {string} sandboxId */
  gone: (sandboxId) => replies.json(502, { sandboxId, message: GONE, code: 502 }),
  /** @param {string} sandboxId @param {number} port */
  portClosed: (sandboxId, port) => replies.json(502, { sandboxId, message: SHUT, port, code: 502 }),
  unrouted: () => ({
    status: 502,
    headers: { "content-type": "text/plain; charset=utf-8" },
    body: "Failed to route request to sandbox",
  }),
  /** @param {string} sandboxId */
  transitioning: (sandboxId) =>
    replies.json(409, { sandboxId, message: "The sandbox is still transitioning. Try again in a moment.", code: 409 }),
  /** @param {string} sandboxId */
  tooManyConnections: (sandboxId, limit = 100) => {
    const message = `The sandbox has too many concurrent incoming connections (limit: ${limit})`;
    return replies.json(429, { sandboxId, message, code: 429, connectionLimit: limit });
  },
};

/**
 * An error of the proxies: JSON, or a page for what looks like a browser.
 * @param {Exchange} exchange
 * @param {number} code
 * @param {Record<string, unknown>} fields
 */
export async function proxyError(exchange, code, fields) {
  const accept = exchange.header("accept") ?? "";
  const wantsJson = accept.includes("application/json") && !accept.includes("text/html");
  if (BROWSER.test(exchange.header("user-agent") ?? "") && !wantsJson) {
    const page = `<!DOCTYPE html>\n<html><body><h1>${code}</h1><p>${fields.message}</p></body></html>\n`;
    await exchange.reply(code, { "content-type": "text/html; charset=utf-8" }, page);
  } else await exchange.json(code, { ...fields, code });
}

export class Edge {
  /** @param {Fleet} fleet */
  constructor(fleet) {
    this.fleet = fleet;
  }

  /** @param {Exchange} exchange */
  async serve(exchange) {
    const route = findRoute(exchange);
    if ("status" in route) {
      await exchange.text(route.status, route.text);
      return;
    }
    const sandbox = this.fleet.get(route.id);
    if (sandbox?.state === "paused" && !sandbox.pausing && sandbox.spec.autoResume) this.fleet.resume(sandbox, sandbox.spec.timeout);
    if (sandbox?.state !== "running") {
      await proxyError(exchange, 502, { sandboxId: route.id, message: GONE });
      return;
    }
    await this.inside(exchange, sandbox, route.port);
  }

  /**
   * @param {Exchange} exchange
   * @param {Sandbox} sandbox
   * @param {number} port
   */
  async inside(exchange, sandbox, port) {
    if (port === ENVD_PORT && RESERVED.has(exchange.path)) {
      const message = "This endpoint is reserved for the E2B control plane and is not reachable through the sandbox URL";
      await proxyError(exchange, 404, { message, path: exchange.path });
      return;
    }
    const token = sandbox.trafficAccessToken;
    const given = exchange.header("e2b-traffic-access-token");
    if (port !== ENVD_PORT && token && given !== token) {
      const how = given === undefined ? "missing" : "invalid";
      const message = `Sandbox is secured with traffic access token. Token header 'e2b-traffic-access-token' is ${how}`;
      await proxyError(exchange, 403, { sandboxId: sandbox.id, message });
      return;
    }
    sandbox.exchanges.add(exchange);
    try {
      if (port === ENVD_PORT) await serveEnvd(exchange, sandbox);
      else if (port === INTERPRETER_PORT && sandbox.interpreter) await sandbox.interpreter.serve(exchange);
      else await this.#forward(exchange, sandbox, port);
    } finally {
      sandbox.exchanges.delete(exchange);
    }
  }

  /**
   * To a server that the user has started in the sandbox.
   * @param {Exchange} exchange
   * @param {Sandbox} sandbox
   * @param {number} port
   */
  async #forward(exchange, sandbox, port) {
    const body = await exchange.body();
    // The interpreter's port may be taken on this machine, by an emulator in debug mode.
    const reply = port === INTERPRETER_PORT || port > 65535 ? undefined : await this.#tryPort(exchange, body, port);
    if (reply) {
      await exchange.open(reply.statusCode ?? 502, withoutHopHeaders(reply.headers));
      for await (const chunk of reply) await exchange.write(chunk);
      await exchange.end();
      return;
    }
    for (const ms of this.fleet.settings.dialDelaysMs) await new Promise((resolve) => setTimeout(resolve, ms));
    await proxyError(exchange, 502, { sandboxId: sandbox.id, message: SHUT, port });
  }

  /**
   * @param {Exchange} exchange
   * @param {Buffer} body
   * @param {number} port
   * @returns {Promise<http.IncomingMessage | undefined>}
   */
  #tryPort(exchange, body, port) {
    return new Promise((resolve) => {
      const { method } = exchange;
      const headers = withoutHopHeaders({ ...exchange.headers, host: exchange.host });
      const target = { host: "127.0.0.1", port, method, path: exchange.record.path, headers };
      const request = http.request(target, resolve);
      request.on("error", () => resolve(undefined));
      request.end(body);
    });
  }
}

/**
 * @param {Record<string, string | string[] | undefined>} headers
 * @returns {Record<string, string | string[]>}
 */
function withoutHopHeaders(headers) {
  const kept = Object.entries(headers).filter(
    ([name, value]) => value !== undefined && !name.startsWith(":") && !HOP_HEADERS.includes(name),
  );
  return /** @type {Record<string, string | string[]>} */ (Object.fromEntries(kept));
}
