// Answers requests of both services' protocols with replies made beforehand: no process runs, no file
// is stored, so that what is measured is the client.
import { createServer } from "node:net";
import { FILE_BYTES } from "./measures.js";

const NOTHING = Buffer.alloc(0);
const LINE_END = Buffer.from("\r\n");
const HEAD_END = Buffer.from("\r\n\r\n");

/** @typedef {Buffer | ((body: Buffer) => Buffer)} Reply made beforehand, or of the request's body */

/**
 * @param {string} status
 * @param {string} type
 * @param {string | Buffer} body
 */
function reply(status, type, body) {
  const length = Buffer.byteLength(body);
  const head = `HTTP/1.1 ${status}\r\ncontent-type: ${type}\r\ncontent-length: ${length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), Buffer.from(body)]);
}

const json = (/** @type {unknown} */ value, status = "200 OK") => reply(status, "application/json", JSON.stringify(value));

/** The Connect protocol's envelopes, as one chunk of a chunked body. @param {[number, unknown][]} messages */
function stream(messages) {
  const envelopes = messages.map(([flags, value]) => {
    const payload = Buffer.from(JSON.stringify(value));
    const head = Buffer.alloc(5, flags);
    head.writeUInt32BE(payload.length, 1);
    return Buffer.concat([head, payload]);
  });
  const body = Buffer.concat(envelopes);
  const head = "HTTP/1.1 200 OK\r\ncontent-type: application/connect+json\r\ntransfer-encoding: chunked\r\n\r\n";
  return Buffer.concat([Buffer.from(`${head}${body.length.toString(16)}\r\n`), body, Buffer.from("\r\n0\r\n\r\n")]);
}

const sandbox = (/** @type {number} */ port) => ({
  id: "6a0b1c9e-0000-4000-8000-000000000001",
  organizationId: "6a0b1c9e-0000-4000-8000-000000000002",
  name: "bench",
  user: "daytona",
  env: {},
  labels: {},
  public: false,
  networkBlockAll: false,
  target: "us",
  cpu: 1,
  gpu: 0,
  memory: 1,
  disk: 3,
  state: "started",
  desiredState: "started",
  daemonVersion: "v0.218.0",
  createdAt: "2026-01-01T00:00:00.000Z",
  updatedAt: "2026-01-01T00:00:00.000Z",
  toolboxProxyUrl: `http://127.0.0.1:${port}/toolbox`,
});

/** The reply to a Daytona command. Our program prints a report that bears the request's tag; the
 * vendor's client takes any text. */
function makeRan() {
  const mark = Buffer.from(" cloudsandbox ");
  const zeros = "0".repeat(32);
  const plain = json({ exitCode: 0, result: "" });
  const report = json({ exitCode: 0, result: `\n${zeros} ran 0 1 0 0\n\n\n\n\n${zeros} end\n` });
  const places = [report.indexOf(zeros), report.lastIndexOf(zeros)];
  return (/** @type {Buffer} */ body) => {
    const at = body.indexOf(mark);
    if (at < 0) return plain;
    const filled = Buffer.from(report);
    for (const place of places) body.copy(filled, place, at + mark.length, at + mark.length + zeros.length);
    return filled;
  };
}

/** Replies by method and path. */
function routes(/** @type {number} */ port) {
  const created = { sandboxID: "ibench0000000000000001", templateID: "base", clientID: "6532622b", envdVersion: "0.6.13" };
  const file = reply("200 OK", "application/octet-stream", Buffer.alloc(FILE_BYTES, "0123456789abcdef"));
  const ended = stream([
    [0, { event: { start: { pid: 42 } } }],
    [0, { event: { end: { exited: true, status: "exit status 0" } } }],
    [2, {}],
  ]);
  const none = Buffer.from("HTTP/1.1 204 No Content\r\n\r\n");
  const { id } = sandbox(port);
  return new Map(
    /** @type {[string, Reply][]} */ ([
      ["POST /v2/sandboxes", json({ ...created, envdAccessToken: "token" }, "201 Created")],
      [`DELETE /sandboxes/${created.sandboxID}`, none],
      ["POST /process.Process/Start", ended],
      ["GET /files", file],
      ["POST /files", json([{ name: "big", path: "/home/user/big", type: "file" }])],
      ["GET /health", none],
      ["POST /api/sandbox", json(sandbox(port))],
      [`GET /api/sandbox/${id}`, json(sandbox(port))],
      [`DELETE /api/sandbox/${id}`, json({ ...sandbox(port), state: "destroyed" })],
      [`GET /toolbox/${id}/work-dir`, json({ dir: "/home/daytona" })],
      [`POST /toolbox/${id}/process/execute`, makeRan()],
    ]),
  );
}

/** Splits what comes over one connection into requests, and answers them. */
class Connection {
  /** @type {Buffer} */
  #rest = NOTHING;
  /** @type {Reply | undefined} */
  #reply;
  /** @type {Buffer[]} */
  #body = [];
  #missing = 0; // bytes of the body, or of the present chunk and the line end behind it
  #inChunks = false;

  /** @param {import("node:net").Socket} socket @param {Map<string, Reply>} table */
  constructor(socket, table) {
    this.socket = socket;
    this.table = table;
  }

  /** @param {Buffer} bytes */
  feed(bytes) {
    this.#rest = this.#rest.length > 0 ? Buffer.concat([this.#rest, bytes]) : bytes;
    while (this.#rest.length > 0) {
      if (this.#missing > 0) this.#takeBody();
      else if (!this.#takeLines()) return;
    }
  }

  #takeBody() {
    const part = this.#take(Math.min(this.#missing, this.#rest.length));
    this.#missing -= part.length;
    if (typeof this.#reply === "function") this.#body.push(part);
    if (this.#missing === 0 && !this.#inChunks) this.#answer();
  }

  /** A request's head, or the line before a chunk. False: not all of it is there. */
  #takeLines() {
    const mark = this.#inChunks ? LINE_END : HEAD_END;
    const end = this.#rest.indexOf(mark);
    if (end < 0) return false;
    const text = this.#take(end + mark.length).toString("latin1", 0, end);
    if (this.#inChunks) this.#beginChunk(text);
    else this.#beginRequest(text);
    return true;
  }

  #beginChunk(/** @type {string} */ line) {
    if (line === "") {
      this.#inChunks = false;
      this.#answer();
      return;
    }
    const size = Number.parseInt(line, 16);
    this.#missing = size > 0 ? size + LINE_END.length : 0;
  }

  #beginRequest(/** @type {string} */ head) {
    const line = head.slice(0, head.indexOf("\r\n"));
    const [method, target] = line.split(" ");
    this.#reply = this.table.get(`${method} ${target.split("?", 1)[0]}`);
    if (!this.#reply) {
      console.error(`no reply for: ${line}`);
      this.socket.destroy();
    }
    this.#inChunks = /^transfer-encoding: *chunked/im.test(head);
    this.#missing = Number(head.match(/^content-length: *(\d+)/im)?.[1] ?? 0);
    if (!this.#inChunks && this.#missing === 0) this.#answer();
  }

  #answer() {
    const reply = this.#reply;
    const bytes = typeof reply === "function" ? reply(this.#body.length === 1 ? this.#body[0] : Buffer.concat(this.#body)) : reply;
    this.#body = [];
    if (bytes) this.socket.write(bytes);
  }

  #take(/** @type {number} */ count) {
    const part = this.#rest.subarray(0, count);
    this.#rest = this.#rest.subarray(count);
    return part;
  }
}

/** @type {Map<string, Reply>} */
let table;
const server = createServer((socket) => {
  const connection = new Connection(socket, table);
  socket.setNoDelay(true);
  socket.on("data", (bytes) => connection.feed(bytes));
  socket.on("error", () => socket.destroy());
});
server.listen(0, "127.0.0.1", () => {
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  table = routes(port);
  process.send?.({ url: `http://127.0.0.1:${port}` });
});
process.on("disconnect", () => process.exit());
