// The server's side of a WebSocket (RFC 6455) over an upgraded exchange, so that faults can cut it anywhere.
// @ts-check
import { createHash } from "node:crypto";

/** @typedef {import("../exchange.js").Exchange} Exchange */

const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const TEXT = 1;
const BINARY = 2;
const CLOSE = 8;
const PING = 9;
const PONG = 10;

/** @param {Exchange} exchange */
export function wantsWebSocket(exchange) {
  return exchange.header("upgrade")?.toLowerCase() === "websocket" && exchange.header("sec-websocket-key") !== undefined;
}

/**
 * @param {number} opcode
 * @param {Buffer} payload
 */
export function frame(opcode, payload) {
  const { length } = payload;
  let head;
  if (length < 126) head = Buffer.from([0x80 | opcode, length]);
  else if (length < 1 << 16) {
    head = Buffer.from([0x80 | opcode, 126, 0, 0]);
    head.writeUInt16BE(length, 2);
  } else {
    head = Buffer.alloc(10);
    head[0] = 0x80 | opcode;
    head[1] = 127;
    head.writeBigUInt64BE(BigInt(length), 2);
  }
  return Buffer.concat([head, payload]);
}

/**
 * The first frame in some bytes from a client, unmasked.
 * @param {Buffer} bytes
 * @returns {{ opcode: number, final: boolean, payload: Buffer, size: number } | undefined}
 */
export function parseFrame(bytes) {
  if (bytes.length < 2) return undefined;
  const masked = (bytes[1] & 0x80) !== 0;
  let length = bytes[1] & 0x7f;
  let at = 2;
  if (length === 126) {
    if (bytes.length < 4) return undefined;
    length = bytes.readUInt16BE(2);
    at = 4;
  } else if (length === 127) {
    if (bytes.length < 10) return undefined;
    length = Number(bytes.readBigUInt64BE(2));
    at = 10;
  }
  const start = at + (masked ? 4 : 0);
  if (bytes.length < start + length) return undefined;
  const payload = Buffer.from(bytes.subarray(start, start + length));
  if (masked) for (let i = 0; i < length; i += 1) payload[i] ^= bytes[at + (i & 3)];
  return { opcode: bytes[0] & 0x0f, final: (bytes[0] & 0x80) !== 0, payload, size: start + length };
}

export class WebSocketChannel {
  #exchange;
  #closing = false;
  #pending = Buffer.alloc(0);
  /** Resolves when the client has closed, or has gone. @type {Promise<void>} */
  closed;
  #setClosed = () => {};
  /** Called with each text message. @type {(text: string) => void} */
  onText = () => {};

  /**
   * @param {Exchange} exchange
   * @param {import("node:net").Socket} socket
   */
  constructor(exchange, socket) {
    this.#exchange = exchange;
    this.closed = new Promise((resolve) => (this.#setClosed = resolve));
    socket.on("data", (bytes) => void this.#read(bytes));
    socket.on("close", () => this.#setClosed());
    socket.on("end", () => this.#setClosed());
  }

  /**
   * Answers the handshake. Of the subprotocols that the client offers, the first known one is chosen.
   * @param {Exchange} exchange
   * @param {string[]} [protocols] known ones
   * @returns {Promise<WebSocketChannel | undefined>}
   */
  static async accept(exchange, protocols = []) {
    const key = exchange.header("sec-websocket-key") ?? "";
    const offered = (exchange.header("sec-websocket-protocol") ?? "").split(",").map((name) => name.trim());
    const protocol = offered.find((name) => protocols.includes(name));
    const socket = await exchange.upgrade({
      upgrade: "websocket",
      "sec-websocket-accept": createHash("sha1").update(`${key}${GUID}`).digest("base64"),
      ...(protocol ? { "sec-websocket-protocol": protocol } : {}),
    });
    return socket && new WebSocketChannel(exchange, socket);
  }

  /** @param {Buffer} payload */
  async send(payload) {
    if (!this.#closing) await this.#exchange.write(frame(BINARY, payload));
  }

  /** @param {string} text */
  async sendText(text) {
    if (!this.#closing) await this.#exchange.write(frame(TEXT, Buffer.from(text)));
  }

  /** Says why, waits for the client's answer or its going, and ends the connection. @param {number} code */
  async close(code) {
    if (this.#closing) return;
    this.#closing = true;
    const payload = Buffer.alloc(2);
    payload.writeUInt16BE(code);
    await this.#exchange.write(frame(CLOSE, payload));
    await Promise.race([this.closed, new Promise((resolve) => setTimeout(resolve, 1000).unref())]);
    await this.#exchange.end();
  }

  /** @param {Buffer} bytes */
  async #read(bytes) {
    this.#pending = Buffer.concat([this.#pending, bytes]);
    for (let found = parseFrame(this.#pending); found; found = parseFrame(this.#pending)) {
      this.#pending = this.#pending.subarray(found.size);
      const { opcode, payload } = found;
      if (opcode === TEXT) this.onText(payload.toString());
      else if (opcode === PING) await this.#exchange.write(frame(PONG, payload));
      else if (opcode === CLOSE) {
        this.#setClosed();
        if (this.#closing) continue;
        this.#closing = true;
        await this.#exchange.write(frame(CLOSE, payload.subarray(0, 2)));
        await this.#exchange.end();
      }
    }
  }
}
