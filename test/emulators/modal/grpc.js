// gRPC over the engine's exchanges: messages in, messages and a status out.
// @ts-check
import { decode, encode } from "./proto.js";
import { retryPolicy, status } from "./messages.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */
/** @typedef {import("./proto.js").Table} Table */

export const CODES = /** @type {const} */ ({
  OK: 0, CANCELLED: 1, UNKNOWN: 2, INVALID_ARGUMENT: 3, DEADLINE_EXCEEDED: 4, NOT_FOUND: 5, ALREADY_EXISTS: 6, PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8, FAILED_PRECONDITION: 9, ABORTED: 10, OUT_OF_RANGE: 11, UNIMPLEMENTED: 12, INTERNAL: 13, UNAVAILABLE: 14,
  DATA_LOSS: 15, UNAUTHENTICATED: 16,
});

export class GrpcError extends Error {
  /** @param {keyof typeof CODES} code @param {string} message @param {number} [retryAfterSecs] */
  constructor(code, message, retryAfterSecs) {
    super(message);
    this.code = CODES[code];
    this.retryAfterSecs = retryAfterSecs;
  }

  /** @returns {Record<string, string>} */
  trailers() {
    const { code, message, retryAfterSecs } = this;
    const text = encodeURIComponent(message).replaceAll("%20", " ");
    if (retryAfterSecs === undefined) return { "grpc-status": String(code), "grpc-message": text };
    const value = encode(retryPolicy, { retryAfterSecs });
    const details = [{ typeUrl: "type.googleapis.com/modal.client.RPCRetryPolicy", value }];
    const bytes = encode(status, { code, message, details });
    return { "grpc-status": String(code), "grpc-message": text, "grpc-status-details-bin": bytes.toString("base64").replaceAll("=", "") };
  }
}

/** A refusal in the only head, as a scripted fault. @param {keyof typeof CODES} code @param {string} message @param {number} [retryAfterSecs] */
export function refusal(code, message, retryAfterSecs) {
  return { status: 200, headers: { "content-type": "application/grpc", ...new GrpcError(code, message, retryAfterSecs).trailers() } };
}

/** @param {Buffer} message */
export function frame(message) {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** The messages of a request, as they come. @param {Exchange} exchange */
async function* frames(exchange) {
  let bytes = Buffer.alloc(0);
  /** @type {Buffer[]} */
  let held = [];
  let size = 0;
  for await (const chunk of exchange.chunks()) {
    held.push(chunk);
    size += chunk.length;
    if (bytes.length >= 5 && bytes.length + size < 5 + bytes.readUInt32BE(1)) continue;
    bytes = Buffer.concat([bytes, ...held]);
    held = [];
    size = 0;
    while (bytes.length >= 5 && bytes.length >= 5 + bytes.readUInt32BE(1)) {
      if (bytes[0] !== 0) throw new GrpcError("UNIMPLEMENTED", "compressed messages are not taken");
      const end = 5 + bytes.readUInt32BE(1);
      yield bytes.subarray(5, end);
      bytes = bytes.subarray(end);
    }
  }
  if (bytes.length > 0) throw new GrpcError("INTERNAL", "the request ends inside of a message");
}

/**
 * One call. A method gets the message, or for a stream of the client's all of them, and returns its answer, or yields
 * several.
 * @param {Exchange} exchange
 * @param {readonly [Table, Table]} tables
 * @param {boolean} clientStream
 * @param {(request: any, exchange: Exchange) => any} method
 */
export async function serve(exchange, [request, reply], clientStream, method) {
  /** @type {Record<string, string>} */
  let trailers = { "grpc-status": "0" };
  const head = { "content-type": "application/grpc" };
  let open = false;
  const begin = async () => {
    if (!open) await exchange.open(200, head);
    open = true;
  };
  try {
    if (exchange.header("te") !== "trailers") throw new GrpcError("INTERNAL", "te: trailers is missing");
    const messages = (async function* () {
      for await (const bytes of frames(exchange)) yield decode(request, bytes);
    })();
    /** @type {any} */
    let asked = messages;
    if (!clientStream) {
      const all = [];
      for await (const message of messages) all.push(message);
      if (all.length !== 1) throw new GrpcError("INTERNAL", `${all.length} messages came in place of one`);
      asked = all[0];
    }
    const answer = method(asked, exchange);
    if (answer?.[Symbol.asyncIterator]) {
      for await (const message of answer) {
        await begin();
        await exchange.write(frame(encode(reply, message)));
        if (exchange.signal.aborted) return;
      }
    } else {
      const message = frame(encode(reply, (await answer) ?? {}));
      await begin();
      await exchange.write(message);
    }
  } catch (error) {
    if (exchange.signal.aborted) return;
    if (!(error instanceof GrpcError)) throw error;
    trailers = error.trailers();
  }
  await begin();
  await exchange.end(trailers);
}
