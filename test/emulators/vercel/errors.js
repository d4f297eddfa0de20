// Refusals as Vercel's API words them.
// @ts-check

/** @typedef {import("../exchange.js").Reply} Reply */

export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {string} code
   * @param {string} message
   */
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export const bad = (/** @type {string} */ message) => new ApiError(400, "bad_request", message);
export const missing = (/** @type {string} */ message) => new ApiError(404, "not_found", message);

/** The body of a refusal, for faults too. */
export const vercelReplies = {
  /**
   * @param {number} status
   * @param {string} code
   * @param {string} message
   * @param {Record<string, string | number>} [headers]
   * @returns {Reply}
   */
  error: (status, code, message, headers = {}) => ({
    status,
    headers: { "content-type": "application/json; charset=utf-8", ...headers },
    body: JSON.stringify({ error: { code, message } }),
  }),
};
