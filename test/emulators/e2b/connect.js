// The Connect protocol's server side in its JSON form: unary calls, streams of envelopes, error codes, and
// the habits of the proto3 JSON mapping (zero values left out, 64-bit integers as strings, stray blanks).
// @ts-check
import { gunzipSync, gzipSync } from "node:zlib";

/** @typedef {import("../exchange.js").Exchange} Exchange */

const HTTP_STATUS = /** @type {const} */ ({
  canceled: 499,
  unknown: 500,
  invalid_argument: 400,
  deadline_exceeded: 504,
  not_found: 404,
  already_exists: 409,
  permission_denied: 403,
  resource_exhausted: 429,
  failed_precondition: 400,
  aborted: 409,
  out_of_range: 400,
  unimplemented: 501,
  internal: 500,
  unavailable: 503,
  data_loss: 500,
  unauthenticated: 401,
});

/** @typedef {keyof typeof HTTP_STATUS} Code */

const FLAG_COMPRESSED = 0x01;
const FLAG_END = 0x02;
const MAX_ENVELOPE = 64 << 20;

export class ConnectError extends Error {
  /**
   * @param {Code} code
   * @param {string} message
   */
  constructor(code, message) {
    super(message);
    this.code = code;
  }

  toJSON() {
    return { code: this.code, message: this.message };
  }
}

/**
 * @param {number} flags
 * @param {string | Buffer} payload
 */
export function envelope(flags, payload) {
  const body = Buffer.from(payload);
  const head = Buffer.alloc(5);
  head[0] = flags;
  head.writeUInt32BE(body.length, 1);
  return Buffer.concat([head, body]);
}

/**
 * Envelopes out of bytes that were cut anywhere.
 * @param {AsyncIterable<Buffer>} chunks
 */
export async function* readEnvelopes(chunks) {
  let pending = Buffer.alloc(0);
  for await (const chunk of chunks) {
    pending = Buffer.concat([pending, chunk]);
    while (pending.length >= 5) {
      const length = pending.readUInt32BE(1);
      if (length > MAX_ENVELOPE) throw new ConnectError("resource_exhausted", `message size ${length} is too large`);
      if (pending.length < 5 + length) break;
      yield { flags: pending[0], payload: pending.subarray(5, 5 + length) };
      pending = pending.subarray(5 + length);
    }
  }
  if (pending.length) throw new ConnectError("invalid_argument", "protocol error: incomplete envelope: unexpected EOF");
}

/**
 * A message without its zero values, as proto3 JSON writes it.
 * @param {Record<string, any>} message
 */
export function omitZero(message) {
  return Object.fromEntries(
    Object.entries(message).filter(
      ([, value]) =>
        value !== undefined &&
        value !== 0 &&
        value !== false &&
        value !== "" &&
        !(Array.isArray(value) && value.length === 0) &&
        !(value?.constructor === Object && Object.keys(value).length === 0),
    ),
  );
}

/**
 * JSON text with a blank here and there after a colon or comma: a reader must not compare bytes.
 * @param {unknown} value
 * @param {() => number} random
 * @returns {string}
 */
export function protoJson(value, random) {
  const blank = () => (random() < 0.5 ? " " : "");
  if (Array.isArray(value)) {
    return `[${value.map((item, i) => (i ? `,${blank()}` : "") + protoJson(item, random)).join("")}]`;
  }
  if (value !== null && typeof value === "object") {
    const fields = Object.entries(value).filter(([, field]) => field !== undefined);
    const texts = fields.map(
      ([name, field], i) => `${i ? `,${blank()}` : ""}${JSON.stringify(name)}:${blank()}${protoJson(field, random)}`,
    );
    return `{${texts.join("")}}`;
  }
  return JSON.stringify(value);
}

/**
 * A string field of a request message; absent means "".
 * @param {any} message
 * @param {string} name
 * @returns {string}
 */
export function stringField(message, name) {
  const value = message?.[name] ?? "";
  if (typeof value !== "string") throw badField(name, value);
  return value;
}

/**
 * @param {any} message
 * @param {string} name
 * @returns {number}
 */
export function uintField(message, name) {
  const value = message?.[name] ?? 0;
  const number = typeof value === "string" ? Number(value) : value;
  if (!Number.isInteger(number) || number < 0 || number > 0xffffffff) throw badField(name, value);
  return number;
}

/**
 * @param {any} message
 * @param {string} name
 * @returns {boolean}
 */
export function boolField(message, name) {
  const value = message?.[name] ?? false;
  if (typeof value !== "boolean") throw badField(name, value);
  return value;
}

/**
 * Base64 with either alphabet, padded or not.
 * @param {any} message
 * @param {string} name
 */
export function bytesField(message, name) {
  const value = stringField(message, name);
  if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(value)) throw badField(name, value);
  return Buffer.from(value, "base64");
}

/**
 * @param {string} name
 * @param {unknown} value
 */
function badField(name, value) {
  return new ConnectError(
    "invalid_argument",
    `unmarshal message: proto: invalid value for field ${name}: ${JSON.stringify(value).slice(0, 100)}`,
  );
}

/**
 * The call's deadline in milliseconds; undefined for none.
 * @param {Exchange} exchange
 */
export function connectTimeout(exchange) {
  const text = exchange.header("connect-timeout-ms");
  if (text === undefined || text === "") return undefined;
  if (!/^\d{1,10}$/.test(text)) {
    throw new ConnectError("invalid_argument", `protocol error: invalid timeout: "${text}"`);
  }
  return Number(text) || undefined;
}

/**
 * Answers what is wrong with the request's outer form; false if it was answered.
 * @param {Exchange} exchange
 * @param {"application/json" | "application/connect+json"} type
 */
async function wellFormed(exchange, type) {
  if (exchange.method !== "POST") {
    await exchange.reply(405, { allow: "POST" });
    return false;
  }
  const given = (exchange.header("content-type") ?? "").split(";")[0].trim().toLowerCase();
  if (given !== type) {
    await exchange.reply(415, { "accept-post": type });
    return false;
  }
  return true;
}

/** @param {Exchange} exchange */
function checkVersion(exchange) {
  const version = exchange.header("connect-protocol-version");
  if (version !== undefined && version !== "1") {
    throw new ConnectError("invalid_argument", `connect-protocol-version must be "1": got "${version}"`);
  }
}

/**
 * @param {Buffer} payload
 * @param {string | undefined} encoding
 */
function decodeMessage(payload, encoding) {
  let bytes = payload;
  if (encoding === "gzip") bytes = gunzipSync(payload);
  else if (encoding && encoding !== "identity") {
    throw new ConnectError("unimplemented", `unknown compression "${encoding}": supported encodings are gzip`);
  }
  try {
    const message = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    if (message !== null && typeof message === "object" && !Array.isArray(message)) return message;
  } catch {
    // Reported below, together with JSON that is no message.
  }
  throw new ConnectError("invalid_argument", "unmarshal message: proto: syntax error");
}

/** @param {unknown} error */
function asConnectError(error) {
  if (error instanceof ConnectError) return error;
  throw error;
}

/**
 * A unary call: JSON in, JSON out; a failure is an HTTP status with an error object.
 * @param {Exchange} exchange
 * @param {() => number} random
 * @param {(message: any) => unknown} handler
 */
export async function unary(exchange, random, handler) {
  if (!(await wellFormed(exchange, "application/json"))) return;
  try {
    checkVersion(exchange);
    const message = decodeMessage(await exchange.body(), exchange.header("content-encoding"));
    const answer = protoJson(await handler(message), random);
    const gzip = /\bgzip\b/.test(exchange.header("accept-encoding") ?? "");
    /** @type {Record<string, string>} */
    const headers = { "content-type": "application/json", "accept-encoding": "gzip" };
    if (gzip) headers["content-encoding"] = "gzip";
    await exchange.reply(200, headers, gzip ? gzipSync(answer) : answer);
  } catch (error) {
    const known = asConnectError(error);
    await exchange.reply(HTTP_STATUS[known.code], { "content-type": "application/json" }, JSON.stringify(known));
  }
}

/**
 * The reply of a streaming call.
 */
export class Stream {
  #exchange;
  #random;
  #last = Promise.resolve();

  /**
   * @param {Exchange} exchange
   * @param {() => number} random
   */
  constructor(exchange, random) {
    this.#exchange = exchange;
    this.#random = random;
  }

  get signal() {
    return this.#exchange.signal;
  }

  /** One message; resolves when the client's side has taken it. @param {unknown} message */
  send(message) {
    return this.#write(envelope(0, protoJson(message, this.#random)));
  }

  /** The end frame, then the end. @param {ConnectError} [error] */
  async end(error) {
    await this.#write(envelope(FLAG_END, JSON.stringify(error ? { error } : {})));
    await this.#exchange.end();
  }

  /**
   * An envelope leaves in up to three pieces, cut at random: a reader must put it together.
   * @param {Buffer} bytes
   */
  #write(bytes) {
    const cuts = [0, 0].map(() => Math.floor(this.#random() * bytes.length)).sort((a, b) => a - b);
    this.#last = this.#last.then(async () => {
      let from = 0;
      for (const to of [...cuts, bytes.length]) {
        if (to > from) await this.#exchange.write(bytes.subarray(from, to));
        from = to;
      }
    });
    return this.#last;
  }
}

/**
 * A call whose reply is a stream. Failures travel in the end frame of a reply with status 200.
 * @param {Exchange} exchange
 * @param {() => number} random
 * @param {(messages: AsyncGenerator<any>, stream: Stream) => unknown} handler
 */
export async function streaming(exchange, random, handler) {
  if (!(await wellFormed(exchange, "application/connect+json"))) return;
  const stream = new Stream(exchange, random);
  await exchange.open(200, { "content-type": "application/connect+json", "connect-accept-encoding": "gzip" });
  try {
    checkVersion(exchange);
    await handler(readMessages(exchange), stream);
    await stream.end();
  } catch (error) {
    await stream.end(asConnectError(error));
  }
}

/** @param {Exchange} exchange */
async function* readMessages(exchange) {
  const encoding = exchange.header("connect-content-encoding");
  for await (const { flags, payload } of readEnvelopes(exchange.chunks())) {
    if (flags & ~FLAG_COMPRESSED) {
      throw new ConnectError("internal", `protocol error: invalid envelope flags ${flags}`);
    }
    if (flags & FLAG_COMPRESSED && !encoding) {
      throw new ConnectError("internal", "protocol error: sent compressed message without compression support");
    }
    yield decodeMessage(payload, flags & FLAG_COMPRESSED ? encoding : undefined);
  }
}

/**
 * The single request message of a server-streaming call.
 * @param {AsyncGenerator<any>} messages
 */
export async function onlyMessage(messages) {
  const first = await messages.next();
  if (first.done) throw new ConnectError("invalid_argument", "protocol error: expected one message, got none");
  const second = await messages.next();
  if (!second.done) throw new ConnectError("unimplemented", "unary request has multiple messages");
  return first.value;
}
