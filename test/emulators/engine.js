// What every emulator stands on: loopback listeners (HTTP/1.1, or TLS with HTTP/2 and HTTP/1.1), a log of
// requests and connections, and scripted faults. It knows no provider; an emulator names the routes.
// @ts-check
import http from "node:http";
import http2 from "node:http2";
import https from "node:https";
import { Exchange } from "./exchange.js";
import { watch } from "./watch.js";

const KEEP_ALIVE_MS = 610_000;

/** @typedef {import("./exchange.js").Fault} Fault */
/** @typedef {import("./exchange.js").LogEntry} LogEntry */

/**
 * @typedef {object} ListenOptions
 * @property {string} name of the listener, in the log
 * @property {(exchange: Exchange) => unknown} handler
 * @property {(exchange: Exchange) => string} [route] names a request for counters and faults
 * @property {number} [port] default: any free one
 * @property {string} [host]
 * @property {string} [socketPath] listens there, and not at a port
 * @property {{ key: string | Buffer, cert: string | Buffer, ca?: string | Buffer }} [tls] serves h2 and HTTP/1.1 by
 *   ALPN; `ca`: only to clients with a certificate of that authority
 * @property {boolean} [http1] no HTTP/2 under TLS
 * @property {boolean} [h2c] without TLS: HTTP/2 by prior knowledge, and nothing else
 * @property {boolean} [noContinue] never answers "Expect: 100-continue"
 * @property {boolean} [upgrades] a handler may accept an upgrade (HTTP/1.1) by `exchange.upgrade`; without
 *   this such a request is like any other
 */

/**
 * Which requests a fault is for: `skip` matching ones pass first, then it acts `times` times, on one of each
 * `every` matching ones.
 * @typedef {object} FaultScope
 * @property {number} [skip] default 0
 * @property {number} [every] default 1
 * @property {number} [times] default 1, with `every` without end
 * @property {(exchange: Exchange) => boolean} [where]
 */

/** A door that a test opens; whoever comes before waits. */
export class Gate {
  arrivals = 0;
  /** @type {Set<() => void>} */
  #watchers = new Set();
  #open = () => {};
  #opened = /** @type {Promise<void>} */ (new Promise((resolve) => (this.#open = resolve)));

  wait() {
    this.arrivals += 1;
    for (const watcher of this.#watchers) watcher();
    return this.#opened;
  }

  open() {
    this.#open();
  }

  /** Resolves when `count` have come, waiting or gone through. */
  arrived(count = 1) {
    return watch(this.#watchers, () => this.arrivals >= count, () => `arrival number ${count} at a gate, but ${this.arrivals}`);
  }
}

export class Engine {
  /** @type {LogEntry[]} */
  log = [];
  /** TCP connections accepted, by listener. @type {Record<string, number>} */
  connections = {};
  /** What handlers threw without the client having gone: an honest emulator leaves this empty. @type {unknown[]} */
  errors = [];
  #accepted = 0;
  /** @type {Set<http.Server | https.Server | http2.Http2Server | http2.Http2SecureServer>} */
  #servers = new Set();
  /** @type {Map<import("node:net").Socket, number>} */
  #sockets = new Map();
  /** @type {Set<Gate>} */
  #gates = new Set();
  /** @type {Set<NodeJS.Timeout>} */
  #timers = new Set();
  /** @type {Map<string, number>} */
  #counts = new Map();
  /** @type {Set<() => void>} */
  #watchers = new Set();
  /** @type {{ match: string | RegExp, fault: Fault, skip: number, every: number, times: number, where?: (exchange: Exchange) => boolean }[]} */
  #faults = [];

  /**
   * @param {ListenOptions} options
   * @returns {Promise<{ url: string, port: number }>}
   */
  async listen(options) {
    const { name, handler, route, port = 0, host = "127.0.0.1", socketPath, tls, h2c, noContinue = false, upgrades = false } = options;
    this.connections[name] ??= 0;
    const server = makeServer(options);
    Object.assign(server, { keepAliveTimeout: KEEP_ALIVE_MS, requestTimeout: 0, headersTimeout: 0 });
    /** @type {Map<string, import("node:net").Socket>} */
    const byPeer = new Map();
    server.on("connection", (socket) => {
      this.connections[name] += 1;
      this.#accepted += 1;
      this.#sockets.set(socket, this.#accepted);
      const peer = `${socket.remoteAddress}:${socket.remotePort}`;
      byPeer.set(peer, socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        this.#sockets.delete(socket);
        if (byPeer.get(peer) === socket) byPeer.delete(peer);
      });
    });
    const onRequest = (/** @type {any} */ req, /** @type {any} */ res) => {
      const raw = tls || h2c ? byPeer.get(`${req.socket?.remoteAddress}:${req.socket?.remotePort}`) : req.socket;
      void this.#serve({ name, handler, route }, req, res, raw);
    };
    server.on("request", onRequest);
    if (noContinue) server.on("checkContinue", onRequest);
    if (upgrades) {
      server.on("upgrade", (req, socket, head) => {
        // No parser is left on the connection, so a refusal is its last reply.
        const res = new http.ServerResponse(req);
        res.shouldKeepAlive = false;
        res.assignSocket(socket);
        res.on("finish", () => socket.destroySoon());
        if (head.length) socket.unshift(head);
        onRequest(req, res);
      });
    }
    if (tls || h2c) server.on("sessionError", () => {});
    await /** @type {Promise<void>} */ (
      new Promise((resolve, reject) => {
        server.once("error", reject);
        const listening = () => {
          server.off("error", reject);
          resolve();
        };
        if (socketPath) server.listen(socketPath, listening);
        else server.listen(port, host, listening);
      })
    );
    this.#servers.add(server);
    if (socketPath) return { url: `unix://${socketPath}`, port: 0 };
    const bound = /** @type {import("node:net").AddressInfo} */ (server.address()).port;
    const shown = host.includes(":") ? `[${host}]` : host;
    return { url: `${tls ? "https" : "http"}://${shown}:${bound}`, port: bound };
  }

  /**
   * Scripts a fault for the next requests of a route. Of several that match, the first set acts.
   * @param {string | RegExp} match the route's name
   * @param {Fault} fault
   * @param {FaultScope} [scope]
   */
  fault(match, fault, { skip = 0, every, times = every ? Infinity : 1, where } = {}) {
    this.#faults.push({ match, fault, skip, every: every ?? 1, times, where });
  }

  /** Takes back what `fault` has set. Gates stay as they are. */
  clearFaults() {
    this.#faults = [];
  }

  gate() {
    const gate = new Gate();
    this.#gates.add(gate);
    return gate;
  }

  /** Forgets the log and the counters, not the connections. */
  clearLog() {
    this.log = [];
    this.#counts.clear();
  }

  /** How many requests of this route have come. @param {string} route */
  count(route) {
    return this.#counts.get(route) ?? 0;
  }

  /** Requests of this route, oldest first. @param {string | RegExp} route */
  requests(route) {
    return this.log.filter((entry) => matches(route, entry.route));
  }

  /** TCP connections accepted, on all listeners. */
  get accepted() {
    return this.#accepted;
  }

  /** TCP connections open now. */
  get open() {
    return this.#sockets.size;
  }

  /**
   * Resolves with the `count`-th request of the route, at once if it has come already.
   * @param {string | RegExp} route
   * @param {number} [count]
   * @returns {Promise<LogEntry>}
   */
  waitFor(route, count = 1) {
    const asked = () => `request number ${count} of ${route}, but ${this.requests(route).length}`;
    return watch(this.#watchers, () => this.requests(route)[count - 1], asked);
  }

  /** Ends early when the engine closes. @param {number} ms */
  sleep(ms) {
    return /** @type {Promise<void>} */ (
      new Promise((resolve) => {
        const timer = setTimeout(() => {
          this.#timers.delete(timer);
          resolve();
        }, ms);
        this.#timers.add(timer);
      })
    );
  }

  /** Closes every TCP connection by a reset, as a crashing host would. */
  dropConnections() {
    for (const socket of this.#sockets.keys()) socket.remoteAddress ? socket.resetAndDestroy() : socket.destroy();
  }

  /** Ends all listeners and connections; what waits at a gate goes on, to find its client gone. */
  async close() {
    const closed = [...this.#servers].map((server) => new Promise((resolve) => server.close(resolve)));
    this.#servers.clear();
    for (const socket of this.#sockets.keys()) socket.destroy();
    for (const gate of this.#gates) gate.open();
    for (const timer of this.#timers) clearTimeout(timer);
    await Promise.all(closed);
  }

  /**
   * @param {Pick<ListenOptions, "name" | "handler" | "route">} listener
   * @param {any} req
   * @param {any} res
   * @param {import("node:net").Socket | undefined} raw
   */
  async #serve({ name, handler, route }, req, res, raw) {
    /** @type {LogEntry} */
    const record = {
      seq: this.log.length + 1,
      listener: name,
      route: "",
      method: req.method,
      path: req.url,
      protocol: req.httpVersion,
      connection: (raw && this.#sockets.get(raw)) ?? 0,
      headers: req.headers,
      body: "",
      bytes: Buffer.alloc(0),
      bodyBytes: 0,
      status: 0,
      sentBytes: 0,
      outcome: "pending",
      closed: Promise.resolve(),
    };
    const exchange = new Exchange(this, req, res, raw, record);
    record.route = route ? route(exchange) : `${exchange.method} ${exchange.path}`;
    const fault = this.#takeFault(exchange);
    if (fault) record.fault = fault.name ?? Object.keys(fault).join("+");
    this.log.push(record);
    this.#counts.set(record.route, this.count(record.route) + 1);
    for (const watcher of this.#watchers) watcher();
    try {
      await exchange.run(handler, fault);
    } catch (error) {
      // Not `req.destroyed`: a request of HTTP/1.1 is that as soon as its body was read.
      if (exchange.signal.aborted || (res.stream ?? res).destroyed || raw?.destroyed) return;
      this.errors.push(error);
      if (!exchange.replied) await exchange.text(500, `emulator: ${error}`);
      else await exchange.halt("reset", "handler failed");
    }
  }

  /** @param {Exchange} exchange */
  #takeFault(exchange) {
    for (const scripted of this.#faults) {
      if (scripted.times <= 0 || !matches(scripted.match, exchange.record.route)) continue;
      if (scripted.where && !scripted.where(exchange)) continue;
      if (scripted.skip > 0) scripted.skip -= 1;
      else {
        scripted.times -= 1;
        scripted.skip = scripted.every - 1;
        return scripted.fault;
      }
    }
    return undefined;
  }
}

/** @param {ListenOptions} options */
function makeServer({ tls, http1, h2c }) {
  if (!tls) return h2c ? http2.createServer() : http.createServer();
  const all = { ...tls, requestCert: tls.ca !== undefined, rejectUnauthorized: tls.ca !== undefined };
  return http1 ? https.createServer(all) : http2.createSecureServer({ ...all, allowHTTP1: true });
}

/**
 * @param {string | RegExp} match
 * @param {string} route
 */
function matches(match, route) {
  return typeof match === "string" ? match === route : match.test(route);
}

/** Replies that providers and what stands before them are known to give. */
export const replies = {
  /**
   * @param {number} status
   * @param {unknown} value
   * @param {Record<string, string | number>} [headers]
   */
  json: (status, value, headers = {}) => ({
    status,
    headers: { "content-type": "application/json; charset=utf-8", ...headers },
    body: JSON.stringify(value),
  }),

  /** A load balancer's page, some kilobytes long. @param {number} status */
  html: (status) => ({
    status,
    headers: { "content-type": "text/html" },
    body:
      `<html>\r\n<head><title>${status} ${http.STATUS_CODES[status]}</title></head>\r\n<body>\r\n` +
      `<center><h1>${status} ${http.STATUS_CODES[status]}</h1></center>\r\n<hr>` +
      `${"<!-- a padding to disable friendly error pages -->\r\n".repeat(60)}</body>\r\n</html>\r\n`,
  }),

  /** Valid JSON's first half. @param {unknown} value */
  halfJson: (value, status = 200) => {
    const text = JSON.stringify(value);
    return {
      status,
      headers: { "content-type": "application/json; charset=utf-8" },
      body: text.slice(0, Math.ceil(text.length / 2)),
    };
  },

  /** @param {number | Date | string | undefined} retryAfter seconds, a date, or the header's text */
  tooMany: (retryAfter, message = "Rate limit exceeded") => {
    const value = retryAfter instanceof Date ? retryAfter.toUTCString() : retryAfter;
    /** @type {Record<string, string | number>} */
    const headers = { "content-type": "application/json; charset=utf-8" };
    if (value !== undefined) headers["retry-after"] = String(value);
    return { status: 429, headers, body: JSON.stringify({ code: 429, message }) };
  },
};
