// What the emulator's own tests ask with: plain HTTP, and the Connect framing read to the letter.
import { ask } from "../ask.js";
import { envelope, readEnvelopes } from "./connect.js";

export { ask };

/** The envelopes of a whole reply. @param {Buffer} bytes */
export async function envelopes(bytes) {
  const found = [];
  for await (const { flags, payload } of readEnvelopes(
    (async function* () {
      yield bytes;
    })(),
  )) {
    found.push({ flags, text: payload.toString(), message: JSON.parse(payload.toString()) });
  }
  return found;
}

/** A client bound to one sandbox of an emulator. */
export class SandboxClient {
  /**
   * @param {import("./index.js").E2BEmulator} emulator
   * @param {{ sandboxID: string, envdAccessToken?: string }} created
   */
  constructor(emulator, { sandboxID, envdAccessToken }) {
    this.emulator = emulator;
    this.id = sandboxID;
    this.token = envdAccessToken;
  }

  /** @param {number} port @returns {Record<string, string>} */
  headers(port = 49983) {
    const routing = { "e2b-sandbox-id": this.id, "e2b-sandbox-port": String(port) };
    return this.token ? { ...routing, "x-access-token": this.token } : routing;
  }

  /**
   * @param {string} path
   * @param {{ method?: string, headers?: Record<string, string>, body?: string | Buffer, port?: number }} [options]
   */
  ask(path, { headers, port, ...rest } = {}) {
    return ask(`${this.emulator.sandboxUrl}${path}`, { ...rest, headers: { ...this.headers(port), ...headers } });
  }

  /**
   * A unary call.
   * @param {string} method
   * @param {unknown} message
   * @param {Record<string, string>} [headers]
   */
  call(method, message, headers) {
    const all = { "content-type": "application/json", ...headers };
    return this.ask(`/${method}`, { method: "POST", headers: all, body: JSON.stringify(message) });
  }

  /**
   * A stream, read to its end.
   * @param {string} method
   * @param {unknown[]} messages
   * @param {Record<string, string>} [headers]
   */
  async stream(method, messages, headers) {
    const body = Buffer.concat(messages.map((message) => envelope(0, JSON.stringify(message))));
    const all = { "content-type": "application/connect+json", ...headers };
    const reply = await this.ask(`/${method}`, { method: "POST", headers: all, body });
    return { ...reply, frames: reply.status === 200 && reply.complete ? await envelopes(reply.body) : [] };
  }

  /**
   * `bash -c` without standard input.
   * @param {string} command
   * @param {Record<string, string>} [headers]
   */
  run(command, headers) {
    const process = { cmd: "/bin/bash", args: ["-c", command] };
    return this.stream("process.Process/Start", [{ process, stdin: false }], headers);
  }
}

/**
 * @param {import("./index.js").E2BEmulator} emulator
 * @param {Record<string, unknown>} [request]
 * @param {string} [path]
 */
export async function create(emulator, request = {}, path = "/v2/sandboxes") {
  const reply = await control(emulator, path, { templateID: "base", ...request });
  if (reply.status !== 201) throw new Error(`create: ${reply.status} ${reply.text}`);
  return new SandboxClient(emulator, reply.json);
}

/**
 * @param {import("./index.js").E2BEmulator} emulator
 * @param {string} path
 * @param {unknown} [body] sent by POST; none: GET
 * @param {{ method?: string, headers?: Record<string, string> }} [options]
 */
export function control(emulator, path, body, { method = body === undefined ? "GET" : "POST", headers } = {}) {
  const all = { "x-api-key": emulator.apiKey, "content-type": "application/json", ...headers };
  return ask(`${emulator.apiUrl}${path}`, {
    method,
    headers: all,
    body: body === undefined ? undefined : JSON.stringify(body),
  });
}
