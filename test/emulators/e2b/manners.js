// Things that a client may do without being refused, and that are wrong all the same.
// @ts-check
import { BROWSER } from "./edge.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */
/** @typedef {"control" | "data"} Plane */

/**
 * @param {Exchange} exchange
 * @param {string} route
 * @param {Plane} plane
 * @returns {string[]}
 */
export function findFaultWith(exchange, route, plane) {
  const found = [];
  const userAgent = exchange.header("user-agent");
  const isRpc = /^(process|filesystem)\./.test(route);
  if (!userAgent) found.push("no User-Agent");
  else if (BROWSER.test(userAgent)) found.push("a User-Agent that gets HTML errors");
  if (exchange.header("expect")) found.push("an Expect header");
  if (plane === "data" && exchange.header("x-api-key")) found.push("the API key sent into a sandbox");
  if (plane === "control" && exchange.header("x-access-token")) found.push("a sandbox's token sent to the control plane");
  if (isRpc && exchange.header("connect-protocol-version") !== "1") found.push("no Connect-Protocol-Version: 1");
  if (exchange.header("connect-accept-encoding")) found.push("compressed envelopes asked for");
  return found.map((text) => `${route}: ${text}`);
}
