// What the emulator's own tests ask with: plain HTTP, and WebSocket frames read to the letter.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { after, afterEach, before } from "node:test";
import { ask } from "../ask.js";
import { RawConnection } from "../raw.js";
import { startDaytona } from "./index.js";
import { parseFrame } from "./websocket.js";

export { ask };

/**
 * One emulator for a suite; every test leaves it with its first settings, without sandboxes, faults and
 * internal errors.
 * @param {Partial<import("./sandbox.js").Settings>} [settings]
 */
export function useEmulator(settings = {}) {
  /** @type {RawConnection[]} */
  const open = [];
  const use = {
    emulator: /** @type {import("./index.js").DaytonaEmulator} */ (/** @type {unknown} */ (undefined)),
    engine: /** @type {import("../engine.js").Engine} */ (/** @type {unknown} */ (undefined)),
    /** A connection that the test's end closes. @param {string} url */
    async connect(url) {
      const connection = await RawConnection.open(url);
      open.push(connection);
      return connection;
    },
    /** Makes the file that commands in the tests wait for. @param {string} id */
    letGo(id) {
      writeFileSync(path.join(use.emulator.sandbox(id)?.home ?? "", "go"), "");
    },
  };
  let initial = {};
  before(async () => {
    use.emulator = await startDaytona(settings);
    use.engine = use.emulator.engine;
    initial = { ...use.emulator.settings };
  });
  afterEach(() => {
    for (const { socket } of open.splice(0)) socket.destroy();
    for (const sandbox of use.emulator.fleet.all()) sandbox.jump("destroyed");
    use.engine.clearFaults();
    use.engine.clearLog();
    Object.assign(use.emulator.settings, initial);
    assert.deepEqual(use.engine.errors, []);
  });
  after(() => use.emulator.close());
  return use;
}

/** @typedef {{ method?: string, headers?: Record<string, string>, raw?: string | Buffer }} AskOptions */

/**
 * @param {string} url
 * @param {Record<string, string>} headers
 * @param {unknown} value sent by POST as JSON; none: GET
 * @param {AskOptions} [options]
 */
function askJson(url, headers, value, { method, headers: more, raw } = {}) {
  const body = raw ?? (value === undefined ? undefined : JSON.stringify(value));
  /** @type {Record<string, string>} */
  const type = body === undefined ? {} : { "content-type": "application/json" };
  return ask(url, {
    method: method ?? (body === undefined ? "GET" : "POST"),
    headers: { ...headers, ...type, ...more },
    body,
  });
}

/** A client bound to one sandbox of an emulator. */
export class SandboxClient {
  /**
   * @param {import("./index.js").DaytonaEmulator} emulator
   * @param {string} id
   * @param {string} [base] default: the proxy's
   */
  constructor(emulator, id, base = `${emulator.proxyUrl}/toolbox/${id}`) {
    this.emulator = emulator;
    this.id = id;
    this.base = base;
  }

  get headers() {
    return { authorization: `Bearer ${this.emulator.apiKey}`, "x-daytona-sdk-version": "0.218.0" };
  }

  /**
   * @param {string} path
   * @param {unknown} [value]
   * @param {AskOptions} [options]
   */
  ask(path, value, options) {
    return askJson(`${this.base}${path}`, this.headers, value, options);
  }

  /**
   * @param {string} command
   * @param {Record<string, unknown>} [more]
   */
  execute(command, more = {}) {
    return this.ask("/process/execute", { command, ...more });
  }

  /**
   * A command of a session, waited for.
   * @param {string} session
   * @param {string} command
   * @param {Record<string, unknown>} [more]
   * @param {AskOptions} [options]
   */
  exec(session, command, more = {}, options = {}) {
    return this.ask(`/process/session/${session}/exec`, { command, ...more }, options);
  }

  /**
   * Files by the bulk route, path part first.
   * @param {[string, string | Buffer][]} files
   */
  upload(files) {
    const parts = files.flatMap(([name, data], i) => [
      [`files[${i}].path`, "", name],
      [`files[${i}].file`, '; filename="x"\r\nContent-Type: application/octet-stream', data],
    ]);
    return this.uploadParts(/** @type {[string, string, string | Buffer][]} */ (parts));
  }

  /**
   * @param {[string, string, string | Buffer][]} parts name, the rest of the part's head, data
   * @param {string} [path]
   */
  uploadParts(parts, path = "/files/bulk-upload") {
    const pieces = parts.flatMap(([name, rest, data]) => [
      Buffer.from(`--cut\r\nContent-Disposition: form-data; name="${name}"${rest}\r\n\r\n`),
      Buffer.from(data),
      Buffer.from("\r\n"),
    ]);
    const raw = Buffer.concat([...pieces, Buffer.from("--cut--\r\n")]);
    return this.ask(path, undefined, { raw, headers: { "content-type": "multipart/form-data; boundary=cut" } });
  }

  /**
   * Opens a WebSocket and says what came: the handshake's head, the frames, how it ended.
   * @param {string} path
   * @param {Record<string, string>} [headers]
   */
  async socket(path, headers = {}) {
    const url = new URL(`${this.base}${path}`);
    const connection = await RawConnection.open(url.href);
    connection.request(`GET ${url.pathname}${url.search}`, {
      ...this.headers,
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
      ...headers,
    });
    return new SocketClient(connection);
  }
}

export class SocketClient {
  /** @param {RawConnection} connection */
  constructor(connection) {
    this.connection = connection;
  }

  get frames() {
    const found = [];
    let rest = Buffer.from(this.connection.body, "latin1");
    for (let frame = parseFrame(rest); frame; frame = parseFrame(rest)) {
      found.push(frame);
      rest = rest.subarray(frame.size);
    }
    return found;
  }

  /** The data frames' payloads, joined. */
  get data() {
    return Buffer.concat(this.frames.filter(({ opcode }) => opcode < 8).map(({ payload }) => payload));
  }

  /** The code of the close frame, if one has come. */
  get code() {
    return this.frames.find(({ opcode }) => opcode === 8)?.payload.readUInt16BE(0);
  }

  /** Answers the server's close, so that the connection ends. */
  async finished() {
    await this.connection.until(() => this.code !== undefined || this.connection.ending);
    this.connection.write(Buffer.from([0x88, 0x80, 0, 0, 0, 0]));
    await this.connection.closed();
    return this;
  }
}

/**
 * @param {import("./index.js").DaytonaEmulator} emulator
 * @param {string} path below the API's base
 * @param {unknown} [value] sent by POST; none: GET
 * @param {AskOptions} [options]
 */
export function control(emulator, path, value, options) {
  return askJson(`${emulator.apiUrl}${path}`, { authorization: `Bearer ${emulator.apiKey}` }, value, options);
}

/**
 * @param {import("./index.js").DaytonaEmulator} emulator
 * @param {Record<string, unknown>} [request]
 */
export async function create(emulator, request = {}) {
  const reply = await control(emulator, "/sandbox", request);
  if (reply.status !== 200) throw new Error(`create: ${reply.status} ${reply.text}`);
  return new SandboxClient(emulator, reply.json.id);
}
