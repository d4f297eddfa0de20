// Looks whether a request is signed as AWS's Signature Version 4 wants it: computed once more, from what has arrived.
// @ts-check
import { createHash, createHmac, timingSafeEqual } from "node:crypto";

import { forbidden } from "./errors.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */
/** @typedef {{ id: string, secret: string, token?: string }} Keys */
/** @typedef {{ keys: Keys[], region: string, now: number, service?: string }} Expected */

const ALGORITHM = "AWS4-HMAC-SHA256";
const SERVICE = "bedrock-agentcore";
const TOLERANCE_MS = 5 * 60_000;
const AUTHORIZATION = /^AWS4-HMAC-SHA256 Credential=([^/,\s]+)\/(\d{8})\/([^/,]+)\/([^/,]+)\/aws4_request, ?SignedHeaders=([^,\s]+), ?Signature=([0-9a-f]{64})$/;

const sha256 = (/** @type {string | Buffer} */ text) => createHash("sha256").update(text).digest("hex");
const hmac = (/** @type {string | Buffer} */ key, /** @type {string} */ text) => createHmac("sha256", key).update(text).digest();

/** @param {string} text @param {RegExp} kept */
const encoded = (text, kept) =>
  [...Buffer.from(text)].map((byte) => {
    const char = String.fromCharCode(byte);
    return kept.test(char) ? char : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }).join("");

/** @param {string} query as it was sent */
function canonicalQuery(query) {
  const decode = (/** @type {string} */ text) => encoded(decodeURIComponent(text), /[A-Za-z0-9._~-]/);
  const pairs = query.split("&").filter(Boolean).map((pair) => {
    const at = pair.indexOf("=");
    return at < 0 ? [decode(pair), ""] : [decode(pair.slice(0, at)), decode(pair.slice(at + 1))];
  });
  return pairs.sort(([a, x], [b, y]) => (a < b ? -1 : a > b ? 1 : x < y ? -1 : x > y ? 1 : 0)).map((pair) => pair.join("=")).join("&");
}

/**
 * @param {{ method: string, target: string, headers: Record<string, string>, signed: string[], body: Buffer }} request
 * `headers` by names in small letters
 */
export function canonicalRequest({ method, target, headers, signed, body }) {
  const at = target.indexOf("?");
  const path = at < 0 ? target : target.slice(0, at);
  return [
    method,
    encoded(path || "/", /[A-Za-z0-9._~/-]/),
    canonicalQuery(at < 0 ? "" : target.slice(at + 1)),
    ...signed.map((name) => `${name}:${headers[name].trim().replace(/ +/g, " ")}`),
    "",
    signed.join(";"),
    sha256(body),
  ].join("\n");
}

/**
 * @param {string} canonical
 * @param {{ secret: string, stamp: string, region: string, service: string }} how
 */
export function signatureOf(canonical, { secret, stamp, region, service }) {
  const date = stamp.slice(0, 8);
  const scope = `${date}/${region}/${service}/aws4_request`;
  const key = [date, region, service, "aws4_request"].reduce((/** @type {string | Buffer} */ before, part) => hmac(before, part), `AWS4${secret}`);
  return hmac(key, [ALGORITHM, stamp, scope, sha256(canonical)].join("\n")).toString("hex");
}

/** @param {string} stamp @returns {number} ms since 1970 */
function timeOf(stamp) {
  const [, ...parts] = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(stamp) ?? [];
  const [year, month, day, hour, minute, second] = parts.map(Number);
  return parts.length === 6 ? Date.UTC(year, month - 1, day, hour, minute, second) : Number.NaN;
}

/** What has to be signed of what was sent. @param {Record<string, string>} headers @param {string[]} signed */
function unsigned(headers, signed) {
  return ["host", ...Object.keys(headers).filter((name) => name.startsWith("x-amz"))].find((name) => !signed.includes(name));
}

/** @param {Exchange} exchange @returns {Record<string, string>} */
function headersOf(exchange) {
  const names = Object.keys(exchange.headers).filter((name) => !name.startsWith(":"));
  return { ...Object.fromEntries(names.map((name) => [name, exchange.header(name) ?? ""])), host: exchange.host };
}

/**
 * Whose the request is; throws a refusal as the service's.
 * @param {Exchange} exchange
 * @param {Expected} expected
 * @returns {Promise<Keys>}
 */
export async function verify(exchange, { keys, region, now, service = SERVICE }) {
  const body = await exchange.body();
  const headers = headersOf(exchange);
  if (!headers.authorization) throw forbidden("MissingAuthenticationTokenException", "Missing Authentication Token");
  const [, id, date, saidRegion, saidService, names, signature] = AUTHORIZATION.exec(headers.authorization) ?? [];
  if (!id) throw forbidden("IncompleteSignatureException", "Authorization header requires Credential, SignedHeaders and Signature");
  const signed = names.split(";");
  const known = keys.find((pair) => pair.id === id);
  const stamp = headers["x-amz-date"] ?? "";
  if (!known || (known.token ?? "") !== (headers["x-amz-security-token"] ?? "")) {
    throw forbidden("UnrecognizedClientException", "The security token included in the request is invalid.");
  }
  if (saidRegion !== region || saidService !== service || date !== stamp.slice(0, 8)) {
    throw forbidden("InvalidSignatureException", `Credential should be scoped to a valid region and service: ${region}/${service}`);
  }
  const left = unsigned(headers, signed);
  if (left || signed.some((name) => headers[name] === undefined) || signed.join() !== [...signed].sort().join()) {
    throw forbidden("InvalidSignatureException", `The signed headers are not those of the request${left ? `: ${left}` : ""}`);
  }
  if (!(Math.abs(timeOf(stamp) - now) <= TOLERANCE_MS)) {
    throw forbidden("InvalidSignatureException", `Signature expired: ${stamp} is not within 5 minutes of ${new Date(now).toISOString()}`);
  }
  const said = headers["x-amz-content-sha256"];
  const canonical = canonicalRequest({ method: exchange.method, target: exchange.req.url ?? "/", headers, signed, body });
  const ours = signatureOf(canonical, { secret: known.secret, stamp, region, service });
  if ((said !== undefined && said !== sha256(body)) || !timingSafeEqual(Buffer.from(ours), Buffer.from(signature))) {
    throw forbidden("InvalidSignatureException", "The request signature we calculated does not match the signature you provided.");
  }
  return known;
}
