// Replies to put in the place of the emulator's own, as a service and what stands before it are known to
// give them. For refusals that depend on the sandbox's state, bring that about instead.
// @ts-check
import { STATUS_CODES } from "node:http";
import { errorBody } from "./errors.js";
import { goJson } from "./gojson.js";

/** @typedef {import("../exchange.js").Reply} Reply */

const JSON_TYPE = { "content-type": "application/json; charset=utf-8" };

export const daytonaReplies = {
  /**
   * The control plane's error.
   * @param {number} status
   * @param {string} message
   * @param {Record<string, string | number>} [headers]
   * @returns {Reply}
   */
  api: (status, message, headers = {}) => ({
    status,
    headers: { ...JSON_TYPE, ...headers },
    body: JSON.stringify({
      path: "/api/sandbox",
      timestamp: new Date().toISOString(),
      statusCode: status,
      error: STATUS_CODES[status],
      message,
    }),
  }),

  /**
   * Too many requests. The wait is told by a header that has the limiter's name in its own; only the one for
   * failed logins also sends the usual header.
   * @param {number | string} seconds
   * @param {"anonymous" | "failed-auth" | "authenticated" | "sandbox-create" | "sandbox-lifecycle"} limiter
   */
  tooMany: (seconds, limiter = "sandbox-create") =>
    daytonaReplies.api(429, "ThrottlerException: Too Many Requests", {
      [`retry-after-${limiter}`]: seconds,
      [`x-ratelimit-limit-${limiter}`]: 300,
      [`x-ratelimit-remaining-${limiter}`]: 0,
      [`x-ratelimit-reset-${limiter}`]: seconds,
      ...(limiter === "failed-auth" ? { "retry-after": seconds } : {}),
    }),

  /** @returns {Reply} */
  conflict: () => daytonaReplies.api(409, "Sandbox state change in progress"),

  /** @returns {Reply} */
  quota: () => daytonaReplies.api(400, "Total CPU limit exceeded. Maximum allowed: 10.\nStop or delete sandboxes."),

  /**
   * An error of the proxy, the runner or the daemon.
   * @param {number} status
   * @param {string} message
   * @param {string} [code]
   * @returns {Reply}
   */
  toolbox: (status, message, code) => ({
    status,
    headers: JSON_TYPE,
    body: goJson(errorBody(status, message, { code, path: "/process/execute", method: "POST" })),
  }),

  /** A broken connection between the hops. @returns {Reply} */
  badGateway: () => ({ status: 502 }),

  /** @returns {Reply} */
  notStarted: () =>
    daytonaReplies.toolbox(400, "bad request: failed to resolve container IP: no IP address found. Is the Sandbox started?"),

  /** @returns {Reply} */
  noContainer: () => daytonaReplies.toolbox(404, "not found: sandbox container not found: No such container"),

  /** @returns {Reply} */
  unauthorized: () => daytonaReplies.toolbox(401, "unauthorized: authentication failed: Bearer token is invalid"),

  /** A daemon without the route. @returns {Reply} */
  noRoute: () => ({ status: 404, headers: { "content-type": "text/plain" }, body: "404 page not found" }),

  /** @param {string[]} errors @returns {Reply} */
  uploadRefused: (errors = ["file[0]: missing .path metadata"]) => ({
    status: 400,
    headers: JSON_TYPE,
    body: goJson({ errors, files: [] }),
  }),
};
