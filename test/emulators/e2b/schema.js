// What the control plane accepts in a request body.
// @ts-check

/** @typedef {import("./sandbox.js").Template} Template */

export class SchemaError extends Error {
  /** @param {string} detail */
  constructor(detail) {
    super(`validation error: request body has an error: ${detail}`);
  }
}

const isObject = (/** @type {unknown} */ value) =>
  value !== null && typeof value === "object" && !Array.isArray(value);
const isStringMap = (/** @type {any} */ value) =>
  isObject(value) && Object.values(value).every((item) => typeof item === "string");
const isStrings = (/** @type {any} */ value) =>
  Array.isArray(value) && value.every((item) => typeof item === "string");
const isInt32 = (/** @type {any} */ value) => Number.isInteger(value) && Math.abs(value) < 2 ** 31;
const isBoolean = (/** @type {unknown} */ value) => typeof value === "boolean";
const isString = (/** @type {unknown} */ value) => typeof value === "string";

/** @type {Record<string, (value: any) => boolean>} */
const CREATE = {
  templateID: isString,
  timeout: isInt32,
  metadata: isStringMap,
  envVars: isStringMap,
  secure: isBoolean,
  allow_internet_access: isBoolean,
  network: isObject,
  autoPause: isBoolean,
  autoPauseMemory: isBoolean,
  autoResume: (value) => isObject(value) && isBoolean(value.enabled),
  mcp: (value) => value === null || isObject(value),
  volumeMounts: (value) => Array.isArray(value) && value.every(isStringMap),
  iam: isObject,
};

/** @type {Record<string, (value: any) => boolean>} */
const NETWORK = {
  allowOut: isStrings,
  denyOut: isStrings,
  allowPublicTraffic: isBoolean,
  maskRequestHost: isString,
  httpsPorts: (value) => Array.isArray(value) && value.every(Number.isInteger),
  egressProxy: isObject,
  rules: isObject,
};

/**
 * @param {Record<string, any>} body
 * @param {Record<string, (value: any) => boolean>} schema
 * @param {string} prefix
 */
function check(body, schema, prefix) {
  for (const [name, value] of Object.entries(body)) {
    if (Object.hasOwn(schema, name) && !schema[name](value)) {
      throw new SchemaError(`doesn't match schema: Error at "/${prefix}${name}"`);
    }
  }
}

/**
 * @param {Record<string, any>} body
 * @param {1 | 2} generation
 */
export function readCreate(body, generation) {
  check(body, CREATE, "");
  if (body.templateID === undefined) throw new SchemaError('Error at "/templateID": property "templateID" is missing');
  if (generation === 2 && body.secure !== undefined) throw new SchemaError('property "secure" is unsupported');
  if (body.network) {
    check(body.network, NETWORK, "network/");
    const { allowOut = [], denyOut = [] } = body.network;
    const isAddress = (/** @type {string} */ entry) => /^[\d.]+(\/\d+)?$|:/.test(entry);
    const domain = denyOut.find((/** @type {string} */ entry) => !isAddress(entry));
    if (domain !== undefined) throw new SchemaError(`invalid denied CIDR ${domain}`);
    if (allowOut.some((/** @type {string} */ entry) => !isAddress(entry)) && !denyOut.includes("0.0.0.0/0")) {
      throw new SchemaError("allow out contains a domain but deny out is missing 0.0.0.0/0");
    }
  }
  if (body.autoPauseMemory === false && (!body.autoPause || body.autoResume?.enabled)) {
    throw new SchemaError("autoPauseMemory false needs autoPause and excludes autoResume");
  }
  return body;
}

/**
 * @param {Record<string, any>} body
 * @param {string} name
 * @param {{ required?: boolean, max?: number }} [rules]
 * @returns {number | undefined}
 */
export function readSeconds(body, name, { required = false, max = Infinity } = {}) {
  const value = body[name];
  if (value === undefined) {
    if (required) throw new SchemaError(`Error at "/${name}": property "${name}" is missing`);
    return undefined;
  }
  if (!isInt32(value) || value > max) throw new SchemaError(`doesn't match schema: Error at "/${name}"`);
  return value;
}

/**
 * A template by its reference `[namespace/]name[:tag]`, or the reason why there is none.
 * @param {string} reference
 * @param {Record<string, { interpreter?: boolean, envVars?: Record<string, string> }>} templates
 * @returns {Template | string}
 */
export function readTemplate(reference, templates) {
  const match = reference.trim().toLowerCase().match(/^(?:([a-z0-9_-]+)\/)?([a-z0-9_-]+)(?::([a-z0-9_.-]+))?$/);
  if (!match) return `template '${reference}' not found`;
  const [, , name, tag = "default"] = match;
  const found = Object.entries(templates).find(([alias]) => alias === name || templateId(alias) === name);
  if (!found) return `template '${reference}' not found`;
  if (tag !== "default") return `tag '${tag}' does not exist for template '${name}'`;
  const [alias, { interpreter = false, envVars = {} }] = found;
  return { id: templateId(alias), name: alias, interpreter, envVars };
}

/** A stable id of twenty characters for a name. @param {string} name */
function templateId(name) {
  let state = 2166136261;
  let id = "";
  for (let i = 0; i < 20; i += 1) {
    state = Math.imul(state ^ name.charCodeAt(i % name.length) ^ (i << 8), 16777619) >>> 0;
    id += ((state >>> 8) % 36).toString(36);
  }
  return id;
}
