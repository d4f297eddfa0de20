// What the daemon, the runner and the proxy say when they refuse. The body of one and the same refusal
// differs between daemon versions; the status never does.
// @ts-check
import { goJson } from "./gojson.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */
/** @typedef {import("../exchange.js").Reply} Reply */

/** From here on errors have finer codes and name their source. */
export const STRUCTURED = "0.191.0";

const GENERIC = /** @type {Record<number, [string, string]>} */ ({
  400: ["BAD_REQUEST", "bad request"],
  401: ["UNAUTHORIZED", "unauthorized"],
  403: ["FORBIDDEN", "forbidden"],
  404: ["NOT_FOUND", "not found"],
  408: ["REQUEST_TIMEOUT", "request timeout"],
  409: ["CONFLICT", "conflict"],
  410: ["GONE", "gone"],
  422: ["UNPROCESSABLE_ENTITY", "unprocessable entity"],
  500: ["INTERNAL_SERVER_ERROR", "internal server error"],
});

/**
 * An error of the daemon. `careless`: raised in a way that costs its body on some versions.
 */
export class DaemonError extends Error {
  /**
   * @param {number} status
   * @param {string} message
   * @param {{ code?: string, careless?: boolean }} [options] `code`: the finer one
   */
  constructor(status, message, { code, careless = false } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.careless = careless;
  }
}

/** A file that its rights hide is refused by another hand, in plain text. @returns {Reply} */
export const plainForbidden = () => ({
  status: 403,
  headers: { "content-type": "text/plain; charset=utf-8" },
  body: "403 Forbidden\n",
});

/** A body that is no JSON, or does not fit. @param {string} reason @param {{ careless?: boolean }} [options] */
export function badBody(reason, options = {}) {
  return new DaemonError(400, `invalid request body: ${reason}`, { code: "INVALID_REQUEST_BODY", ...options });
}

/** With nanoseconds, as Go prints the time. */
const now = () => new Date().toISOString().replace(/Z$/, "000000Z");

/**
 * The shape that all hops share.
 * @param {number} status
 * @param {string} message
 * @param {{ code?: string, path: string, method: string, source?: string }} where
 */
export function errorBody(status, message, { code, path, method, source }) {
  return {
    statusCode: status,
    message,
    code: code ?? GENERIC[status][0],
    timestamp: now(),
    path,
    method,
    ...(source ? { source } : {}),
  };
}

/** @param {number} status @param {unknown} body @param {string} [type] @returns {Reply} */
function jsonReply(status, body, type = "application/json") {
  return { status, headers: { "content-type": type }, body: goJson(body) };
}

/**
 * What the runner or the proxy answers.
 * @param {Exchange} exchange
 * @param {number} status
 * @param {string} message without the generic prefix
 */
export function hopError(exchange, status, message) {
  const where = { path: exchange.path, method: exchange.method };
  return jsonReply(status, errorBody(status, `${GENERIC[status][1]}: ${message}`, where));
}

/**
 * What a daemon of the given version says.
 * @param {DaemonError} error
 * @param {(version: string) => boolean} atLeast
 * @param {{ path: string, method: string }} where
 * @returns {Record<string, unknown>}
 */
export function daemonErrorBody(error, atLeast, where) {
  const { status, message } = error;
  if (atLeast(STRUCTURED)) {
    return errorBody(status, message, { ...where, code: error.code, source: "DAYTONA_DAEMON" });
  }
  const [code, prefix] = GENERIC[status];
  return errorBody(status, `${prefix}: ${message}`, { ...where, code });
}

/**
 * @param {DaemonError} error
 * @param {(version: string) => boolean} atLeast
 * @param {{ path: string, method: string }} where
 * @returns {Reply}
 */
export function daemonError(error, atLeast, where) {
  const body = daemonErrorBody(error, atLeast, where);
  if (!error.careless || atLeast(STRUCTURED)) return jsonReply(error.status, body);
  if (atLeast("0.148.0")) return { status: error.status };
  if (atLeast("0.136.0")) body.statusCode = 500;
  return jsonReply(error.status, body, "text/plain; charset=utf-8");
}

/** What the daemon's router says to a path that it does not know. @returns {Reply} */
export const pageNotFound = () => ({
  status: 404,
  headers: { "content-type": "text/plain" },
  body: "404 page not found",
});
