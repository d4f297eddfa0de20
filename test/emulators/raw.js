// A client that hides nothing: writes bytes to a TCP or TLS connection and keeps what comes back and how
// the connection ended.
// @ts-check
import net from "node:net";
import tls from "node:tls";
import { watch } from "./watch.js";

export class RawConnection {
  #bytes = Buffer.alloc(0);
  /** @type {Set<() => void>} */
  #watchers = new Set();
  /** "" while open, "fin" or an error code such as "ECONNRESET". */
  ending = "";

  /** @param {net.Socket} socket */
  constructor(socket) {
    this.socket = socket;
    socket.on("data", (chunk) => {
      this.#bytes = Buffer.concat([this.#bytes, chunk]);
      this.#look();
    });
    socket.on("end", () => (this.ending ||= "fin"));
    socket.on("error", (/** @type {NodeJS.ErrnoException} */ error) => (this.ending = error.code ?? error.message));
    socket.on("close", () => {
      this.ending ||= "fin";
      this.#look();
    });
  }

  /**
   * @param {string} url only its host and port count
   * @param {{ ca?: string }} [options]
   * @returns {Promise<RawConnection>}
   */
  static open(url, { ca } = {}) {
    const { hostname, port, protocol } = new URL(url);
    const target = { host: hostname, port: Number(port) };
    return new Promise((resolve, reject) => {
      const socket = protocol === "https:" ? tls.connect({ ...target, ca }) : net.connect(target);
      socket.once("error", reject);
      socket.once(protocol === "https:" ? "secureConnect" : "connect", () => {
        socket.off("error", reject);
        resolve(new RawConnection(socket));
      });
    });
  }

  get text() {
    return this.#bytes.toString("latin1");
  }

  /** What came after the head of the (first) reply. */
  get body() {
    const at = this.text.indexOf("\r\n\r\n");
    return at < 0 ? "" : this.text.slice(at + 4);
  }

  /** The body without its chunk sizes; undefined if the last chunk is missing. */
  get chunked() {
    let rest = this.body;
    let data = "";
    for (;;) {
      const match = rest.match(/^([0-9a-f]+)\r\n/i);
      if (!match) return { data, complete: false };
      const size = parseInt(match[1], 16);
      if (size === 0) return { data, complete: rest.startsWith("0\r\n\r\n") };
      data += rest.slice(match[0].length, match[0].length + size);
      rest = rest.slice(match[0].length + size + 2);
    }
  }

  /** @param {string | Buffer} bytes */
  write(bytes) {
    this.socket.write(bytes);
  }

  /** A whole request. @param {string} line @param {Record<string, string | number>} [headers] @param {string | Buffer} [body] */
  request(line, headers = {}, body = "") {
    const bytes = Buffer.from(body);
    const all = { host: "127.0.0.1", "content-length": bytes.length, ...headers };
    const head = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
    this.write(Buffer.concat([Buffer.from(`${line} HTTP/1.1\r\n${head.join("")}\r\n`), bytes]));
    return this;
  }

  /** Resolves when the condition holds. @param {(connection: RawConnection) => unknown} condition */
  until(condition) {
    const seen = () => `such state of a connection (${this.ending || "open"}), but: ${this.text.slice(-200)}`;
    return watch(this.#watchers, () => (condition(this) ? this : undefined), seen);
  }

  closed() {
    return this.until(() => this.ending && this.socket.destroyed);
  }

  #look() {
    for (const watcher of this.#watchers) watcher();
  }
}
