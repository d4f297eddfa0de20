// What requests have to be like.
// @ts-check
import { bad } from "./errors.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */

/** A JSON object with no other members than these. @param {Exchange} exchange @param {readonly string[]} names */
export async function jsonBody(exchange, names) {
  let body;
  try {
    body = JSON.parse(String(await exchange.body()));
  } catch {
    throw bad("Invalid JSON");
  }
  if (!isObject(body)) throw bad("Invalid request: should be object");
  for (const name of Object.keys(body)) {
    if (!names.includes(name)) throw bad(`Invalid request: should NOT have additional property \`${name}\``);
    if (body[name] === null) throw bad(`Invalid request: \`${name}\` should not be null`);
  }
  return body;
}

/** @param {unknown} value @returns {value is Record<string, any>} */
export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** @param {Record<string, any>} body @param {string} name @returns {string} */
export function textField(body, name) {
  if (typeof body[name] !== "string" || body[name] === "") throw bad(`Invalid request: \`${name}\` should be a string`);
  return body[name];
}

/** @param {Record<string, any>} body @param {string} name @param {number} fallback @param {number} min @param {number} max */
export function wholeField(body, name, fallback, min, max) {
  const value = body[name] ?? fallback;
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw bad(`Invalid request: \`${name}\` should be an integer from ${min} to ${max}`);
}

/** @param {Record<string, any>} body @param {string} name */
export function flagField(body, name) {
  const value = body[name] ?? false;
  if (typeof value !== "boolean") throw bad(`Invalid request: \`${name}\` should be boolean`);
  return value;
}

/** @param {Record<string, any>} body @param {string} name @returns {Record<string, string>} */
export function textsField(body, name) {
  const value = body[name] ?? {};
  if (isObject(value) && Object.values(value).every((text) => typeof text === "string")) return value;
  throw bad(`Invalid request: \`${name}\` should be an object of strings`);
}

/** @param {Record<string, any>} body @param {string} name @returns {string[]} */
export function listField(body, name) {
  const value = body[name] ?? [];
  if (Array.isArray(value) && value.every((text) => typeof text === "string")) return value;
  throw bad(`Invalid request: \`${name}\` should be an array of strings`);
}
