// Refusals as AgentCore words them.
// @ts-check

/** @typedef {import("../exchange.js").Reply} Reply */

export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {string} type
   * @param {string} message
   */
  constructor(status, type, message) {
    super(message);
    this.status = status;
    this.type = type;
  }
}

export const invalid = (/** @type {string} */ message) => new ApiError(400, "ValidationException", message);
export const missing = (/** @type {string} */ message) => new ApiError(404, "ResourceNotFoundException", message);
export const forbidden = (/** @type {string} */ type, /** @type {string} */ message) => new ApiError(403, type, message);

/** @typedef {"header" | "__type" | "code"} Place where a refusal says its type */

/** @type {Record<number, string>} */
const TYPES = {
  400: "ValidationException", 402: "ServiceQuotaExceededException", 403: "AccessDeniedException", 404: "ResourceNotFoundException",
  409: "ConflictException", 429: "ThrottlingException", 500: "InternalServerException",
};

/** The body of a refusal, for faults too. */
export const agentCoreReplies = {
  /**
   * @param {number} status
   * @param {string} type
   * @param {string} message
   * @param {Record<string, string | number>} [headers]
   * @param {Place} [place]
   * @returns {Reply}
   */
  error: (status, type, message, headers = {}, place = "header") => ({
    status,
    headers: {
      "content-type": "application/json",
      ...(place === "header" && { "x-amzn-errortype": `${type}:http://internal.amazon.example/coral/` }),
      ...headers,
    },
    body: JSON.stringify({ ...(place !== "header" && { [place]: `com.amazon.example#${type}` }), message }),
  }),
  /** Of the type that goes with the status. @param {number} status @param {string} message @returns {Reply} */
  typed: (status, message) => agentCoreReplies.error(status, TYPES[status] ?? "ServiceException", message),
};
