// One request and its reply, as an emulator's handler sees them. Every byte of a reply passes through
// here, so that a scripted fault can stop it at any byte, whoever produced it.
// @ts-check
import http2 from "node:http2";

const LOGGED_BODY_BYTES = 1 << 20;
const CONNECTION_HEADERS = new Set(["connection", "keep-alive", "transfer-encoding", "upgrade"]);

/**
 * How a reply ends before its time. "end": as a complete reply, only shorter. "close": the connection
 * is closed without a last chunk (HTTP/2: RST_STREAM). "reset": TCP RST (HTTP/2: RST_STREAM). "drop":
 * TCP RST under every protocol. "hang": nothing more is sent. `{ rst }`: RST_STREAM with that code.
 * @typedef {"end" | "close" | "reset" | "drop" | "hang" | { rst: number }} Ending
 */

/**
 * @typedef {object} Reply
 * @property {number} status
 * @property {Record<string, string | number>} [headers]
 * @property {string | Buffer} [body]
 */

/**
 * Lets `after` bytes of a reply's body through, or all up to what `until` matches first; waits for `gate`, then ends
 * the reply `how`.
 * @typedef {object} Stop
 * @property {number} [after]
 * @property {RegExp} [until] without the flags "g" and "y"; if nothing matches, the reply is complete
 * @property {Ending} how
 * @property {import("./engine.js").Gate} [gate]
 * @property {boolean} [keepLength] a promised length stays as it is
 */

/**
 * @typedef {object} Fault
 * @property {string} [name] shown in the log
 * @property {number} [delayMs] wait before the handler
 * @property {import("./engine.js").Gate} [before] wait until it opens, before the handler
 * @property {import("./engine.js").Gate} [hold] wait until it opens, after the handler's work and before the reply
 * @property {Reply | Ending} [instead] what the client gets in place of the handler's reply
 * @property {boolean} [run] with `instead`: the handler runs all the same, only its reply is lost
 * @property {boolean} [readBody] with `instead`: take the whole request first; default true
 * @property {(body: Buffer) => Buffer | string} [edit] changes the body of a reply that is sent in one piece
 * @property {Record<string, string | number | null>} [headers] set on (null: removed from) the reply
 * @property {number} [pieceBytes] write the reply in pieces of at most this many bytes
 * @property {Stop} [stop]
 * @property {{ code?: number, refuse?: boolean }} [goaway] HTTP/2 GOAWAY before the handler; `refuse`:
 *   this stream is not processed (REFUSED_STREAM)
 */

/**
 * What the log keeps of one request.
 * @typedef {object} LogEntry
 * @property {number} seq
 * @property {string} listener
 * @property {string} route the emulator's name for it, such as "POST /sandboxes"
 * @property {string} method
 * @property {string} path with the query
 * @property {string} protocol "1.1" or "2.0"
 * @property {number} connection number of the TCP connection, in the order of acceptance
 * @property {Record<string, string | string[] | undefined>} headers
 * @property {string} body text of the first MiB
 * @property {Buffer} bytes the same as it came
 * @property {number} bodyBytes
 * @property {number} status 0 until a reply has begun
 * @property {number} sentBytes of the reply's body
 * @property {string} outcome "pending", "complete", "client closed" or "fault: ..."
 * @property {string} [fault]
 * @property {Promise<void>} closed when nothing more happens in this exchange
 */

export class Exchange {
  #engine;
  #raw;
  /** @type {Fault | undefined} */
  #fault;
  #abort = new AbortController();
  /** @type {Promise<void>} */
  #gone;
  #muted = false;
  #halted = false;
  #fixedLength = false;
  /** The connection, once an upgrade was accepted. @type {import("node:net").Socket | undefined} */
  #tunnel;
  #finished = false;
  /** @type {Buffer[]} */
  #logged = [];
  #loggedBytes = 0;
  /** @type {Promise<Buffer> | undefined} */
  #body;
  /** The request body once more. @type {Buffer | undefined} */
  #again;
  /** What `until` of a fault has been shown. */
  #shown = "";

  /**
   * @param {import("./engine.js").Engine} engine
   * @param {import("node:http").IncomingMessage | http2.Http2ServerRequest} req
   * @param {any} res http.ServerResponse or http2.Http2ServerResponse; their union cannot be called
   * @param {import("node:net").Socket | undefined} raw the TCP socket under it
   * @param {LogEntry} record
   */
  constructor(engine, req, res, raw, record) {
    this.#engine = engine;
    this.#raw = raw;
    this.req = req;
    this.res = res;
    this.record = record;
    this.method = req.method ?? "";
    this.headers = req.headers;
    this.host = String(req.headers[":authority"] ?? req.headers.host ?? "");
    this.url = new URL(req.url ?? "/", "http://emulator.invalid");
    this.path = this.url.pathname;
    this.query = this.url.searchParams;
    this.isHttp2 = req.httpVersionMajor === 2;
    Object.defineProperty(record, "body", { get: () => Buffer.concat(this.#logged).toString(), enumerable: true });
    Object.defineProperty(record, "bytes", { get: () => Buffer.concat(this.#logged) });
    record.closed = this.#gone = new Promise((resolve) => {
      res.on("close", () => {
        const finished = res.writableFinished || this.#finished;
        if (record.outcome === "pending") record.outcome = finished ? "complete" : "client closed";
        if (!finished) this.#abort.abort();
        resolve();
      });
    });
    req.on("error", () => {});
    res.on("error", () => {});
  }

  /** Aborted when the client has gone, or the reply was cut, before it was complete. */
  get signal() {
    return this.#abort.signal;
  }

  /** @param {string} name */
  header(name) {
    const value = this.headers[name];
    return Array.isArray(value) ? value.join(", ") : value;
  }

  /** The request body in pieces, as they arrive. */
  async *chunks() {
    if (this.#again) {
      yield this.#again;
      return;
    }
    // Who stops reading early leaves the connection in peace: a reply still has to go over it.
    for await (const chunk of this.req.iterator({ destroyOnReturn: false })) {
      this.record.bodyBytes += chunk.length;
      if (this.#loggedBytes < LOGGED_BODY_BYTES) {
        const part = chunk.subarray(0, LOGGED_BODY_BYTES - this.#loggedBytes);
        this.#logged.push(part);
        this.#loggedBytes += part.length;
      }
      yield /** @type {Buffer} */ (chunk);
    }
  }

  /** Lets the (short) request body be read from its beginning again, as a proxy does that sends it twice. */
  async rewind() {
    for await (const _ of this.chunks());
    this.#again = Buffer.concat(this.#logged);
  }

  /** The whole request body; may be asked for more than once. */
  body() {
    this.#body ??= (async () => {
      const parts = [];
      for await (const chunk of this.chunks()) parts.push(chunk);
      return Buffer.concat(parts);
    })();
    return this.#body;
  }

  /** True once a reply has begun (or was lost on purpose). */
  get replied() {
    return this.res.headersSent || this.#tunnel !== undefined || this.#halted;
  }

  /**
   * A complete reply.
   * @param {number} status
   * @param {Record<string, string | number>} [headers]
   * @param {string | Buffer} [body]
   */
  async reply(status, headers = {}, body = "") {
    let bytes = Buffer.from(body);
    if (this.#fault?.edit && !this.#muted) bytes = Buffer.from(this.#fault.edit(bytes));
    const bodyless = status === 204 || status === 304;
    /** @type {Record<string, string | number>} */
    const all = bodyless ? {} : { "content-length": bytes.length };
    await this.open(status, { ...all, ...headers });
    if (bytes.length && !bodyless && this.method !== "HEAD") await this.write(bytes);
    await this.end();
  }

  /**
   * @param {number} status
   * @param {unknown} value
   * @param {Record<string, string | number>} [headers]
   */
  json(status, value, headers = {}) {
    const type = { "content-type": "application/json; charset=utf-8" };
    return this.reply(status, { ...type, ...headers }, JSON.stringify(value));
  }

  /**
   * @param {number} status
   * @param {string} body
   */
  text(status, body) {
    return this.reply(status, { "content-type": "text/plain; charset=utf-8" }, body);
  }

  /**
   * Sends status and headers; the body follows by `write` and `end`.
   * @param {number} status
   * @param {Record<string, string | number | string[]>} [headers]
   */
  async open(status, headers = {}) {
    if (!(await this.#mayBegin())) return;
    /** @type {Record<string, string | number | string[]>} */
    const all = {};
    const stop = this.#fault?.stop;
    for (const [name, value] of Object.entries({ ...headers, ...this.#fault?.headers })) {
      const key = name.toLowerCase();
      if (value === null || (this.isHttp2 && CONNECTION_HEADERS.has(key))) delete all[key];
      else if (!(key === "content-length" && stop && !stop.keepLength)) all[key] = value;
    }
    this.record.status = status;
    this.#fixedLength = all["content-length"] !== undefined;
    this.res.writeHead(status, all);
    this.res.flushHeaders();
    if (stop?.after === 0) await this.#stopNow(stop);
  }

  /**
   * Accepts a request to speak another protocol. What the client sends is read from the returned socket;
   * what is sent to it goes through `write` and `end`, where faults can stop it.
   * @param {Record<string, string>} headers
   * @param {string} [words] of the status
   * @returns {Promise<import("node:net").Socket | undefined>} undefined: the reply was lost on purpose
   */
  async upgrade(headers, words = "Switching Protocols") {
    if (!(await this.#mayBegin())) return undefined;
    const socket = /** @type {import("node:net").Socket} */ (this.res.socket);
    const all = { connection: "Upgrade", ...headers, ...this.#fault?.headers };
    const lines = Object.entries(all).filter(([, value]) => value !== null);
    const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join("");
    this.record.status = 101;
    this.#tunnel = socket;
    socket.write(`HTTP/1.1 101 ${words}\r\n${head}\r\n`);
    if (this.#fault?.stop?.after === 0) await this.#stopNow(this.#fault.stop);
    return socket;
  }

  /**
   * Resolves when the bytes have left for the kernel: a slow reader slows its writer down.
   * @param {Buffer} bytes
   */
  async write(bytes) {
    if (this.#muted || this.#halted || this.signal.aborted || !bytes.length) return;
    const stop = this.#fault?.stop;
    const room = stop ? this.#room(stop, bytes) : Infinity;
    await this.#pieces(bytes.length < room ? bytes : bytes.subarray(0, room));
    if (stop && bytes.length >= room) await this.#stopNow(stop);
  }

  /** @param {Record<string, string>} [trailers] what comes behind the body */
  async end(trailers) {
    if (this.#muted || this.#halted || this.signal.aborted) return;
    if (this.#fault?.stop?.after !== undefined) {
      await this.#stopNow(this.#fault.stop);
      return;
    }
    if (this.#tunnel) {
      this.#finished = true;
      this.#tunnel.end();
    } else {
      if (trailers) this.res.addTrailers(trailers);
      this.res.end();
    }
    await this.#gone;
  }

  /**
   * Ends the exchange in an improper way.
   * @param {Ending} how
   * @param {string} [outcome]
   */
  async halt(how, outcome = `fault: ${typeof how === "string" ? how : `rst ${how.rst}`}`) {
    if (this.#halted || this.record.outcome !== "pending" || this.res.writableFinished) return;
    this.#halted = true;
    this.record.outcome = outcome;
    await this.#flushed();
    this.#abort.abort();
    // A reply that was completed meanwhile: its connection may carry the next request already.
    if (this.res.writableFinished) return;
    if (how === "hang") return;
    if (how === "end") {
      // A reply with a promised length can only be ended early by closing the connection.
      if (!this.isHttp2 && this.#fixedLength) this.res.destroy();
      else (this.#tunnel ?? this.res).end();
    } else if (how === "drop") this.#resetConnection();
    else if (this.isHttp2) {
      const code = typeof how === "object" ? how.rst : http2.constants.NGHTTP2_INTERNAL_ERROR;
      this.res.stream?.close(code);
    } else if (how === "close") this.res.socket?.destroy();
    else this.#resetConnection();
  }

  /**
   * Runs the handler, or what the fault puts in its place. Used by the engine.
   * @param {(exchange: Exchange) => unknown} handler
   * @param {Fault | undefined} fault
   */
  async run(handler, fault) {
    this.#fault = fault;
    if (fault?.delayMs) await this.#wait(this.#engine.sleep(fault.delayMs));
    if (fault?.before) await this.#wait(fault.before.wait());
    if (fault?.goaway && (await this.#goaway(fault.goaway))) return;
    const instead = fault?.instead;
    if (instead === undefined) {
      await handler(this);
      return;
    }
    if (fault?.run) {
      this.#muted = true;
      await handler(this);
      this.#muted = false;
    } else if (fault?.readBody !== false) await this.body();
    if (typeof instead === "object" && "status" in instead) {
      await this.reply(instead.status, instead.headers, instead.body);
    } else {
      if (fault?.hold) await this.#wait(fault.hold.wait());
      await this.halt(instead);
    }
  }

  /** Whether a reply may begin now; waits for what holds it. */
  async #mayBegin() {
    if (this.#muted || this.#halted || this.signal.aborted) return false;
    if (this.#fault?.hold) await this.#wait(this.#fault.hold.wait());
    return !this.#halted && !this.signal.aborted;
  }

  /**
   * @param {{ code?: number, refuse?: boolean }} goaway
   * @returns {Promise<boolean>} whether the stream was refused
   */
  async #goaway({ code = 0, refuse = false }) {
    // Not at once: nghttp2 still reads the request, and Node 20.20 would free the stream under it.
    await new Promise((resolve) => setImmediate(resolve));
    const stream = /** @type {http2.Http2ServerRequest} */ (this.req).stream;
    const session = stream?.session;
    if (!this.isHttp2 || !session) throw new Error("a goaway fault needs HTTP/2");
    const id = stream.id ?? 1;
    session.goaway(code, refuse && id > 1 ? id - 2 : id);
    if (!refuse) return false;
    this.#halted = true;
    this.record.outcome = "fault: goaway";
    stream.close(http2.constants.NGHTTP2_REFUSED_STREAM);
    return true;
  }

  /** @param {Buffer} bytes */
  async #pieces(bytes) {
    const size = this.#fault?.pieceBytes ?? bytes.length;
    for (let at = 0; at < bytes.length && !this.signal.aborted; at += size) {
      const piece = bytes.subarray(at, at + size);
      this.record.sentBytes += piece.length;
      await this.#wait(new Promise((resolve) => (this.#tunnel ?? this.res).write(piece, resolve)));
    }
  }

  /** How many of these bytes may leave before the reply is stopped. @param {Stop} stop @param {Buffer} bytes */
  #room({ after = Infinity, until }, bytes) {
    if (until === undefined) return after - this.record.sentBytes;
    this.#shown += bytes.toString("latin1");
    const match = until.exec(this.#shown);
    return match ? match.index + match[0].length - this.record.sentBytes : Infinity;
  }

  /** @param {Stop} stop */
  async #stopNow(stop) {
    if (stop.gate) await this.#wait(stop.gate.wait());
    await this.halt(stop.how);
  }

  /** Waits until what was written has been handed to the kernel, so that a cut comes after it. */
  async #flushed() {
    const socket = this.res.socket;
    if (!(this.res.headersSent || this.#tunnel) || !socket || this.isHttp2) {
      await new Promise((resolve) => setImmediate(resolve));
    } else await this.#wait(new Promise((resolve) => socket.write("", resolve)));
  }

  /** A Unix socket knows no reset: its peer sees an end. */
  #resetConnection() {
    if (this.#raw?.remoteAddress) this.#raw.resetAndDestroy();
    else this.#raw?.destroy();
  }

  /** @param {Promise<unknown>} promise */
  #wait(promise) {
    return Promise.race([promise, this.#gone]);
  }
}
