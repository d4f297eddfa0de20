// JSON Schema objects that can check what they describe. A tool carries one of them as `parameters` and
// `inputSchema` at once: to a reader of JSON it is plain JSON Schema; its parsers
// are non-enumerable, so they are neither sent to a model nor printed. It never gets a `_def` or
// `_zod`, which would make frameworks take it for a Zod object.
//
// Invariant: safeParse, parse and `~standard`.validate are one function, so the check that a framework
// makes before a call and the check inside the call always agree.
import { meantName, wordAdvice } from "./meant.js";
import { invalid, kindOf } from "./options.js";

const ANNOTATIONS = [
  "title",
  "description",
  "default",
  "examples",
  "deprecated",
  "format",
  "$comment",
  "$schema",
];
const KEYWORDS = {
  string: ["enum", "const", "minLength", "maxLength", "pattern"],
  number: ["enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"],
  integer: ["enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"],
  boolean: ["const"],
  array: ["items", "minItems", "maxItems"],
  object: ["properties", "required", "additionalProperties"],
};

/** Most names of one kind in a message. */
const MAX_SHOWN = 10;

/** Same text for all drafts that have numeric `exclusiveMinimum`. */
const JSON_SCHEMA_TARGETS = ["draft-2020-12", "draft-07"];

/**
 * @typedef {{ path: PropertyKey[], message: string }} Issue
 * @typedef {(value: unknown, path: PropertyKey[], issues: Issue[]) => unknown} Check
 *   Returns the cleaned value, or adds to `issues`.
 */

/** @param {unknown} value */
export function isRecord(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Makes a self-checking copy of a JSON Schema whose root is an object.
 *
 * `prepare` holds, by property of the root, a function that sees a given value before it is checked:
 * the place for what is tolerated although the schema does not say so.
 *
 * @param {Record<string, any>} json
 * @param {{ where: string, tool: string, prepare?: Record<string, (value: unknown) => unknown> }} options
 *   tool: its name in messages
 * @returns {any}
 */
export function objectSchema(json, { where, tool, prepare = {} }) {
  const schema = cloneJson(json);
  if (schema.type !== "object") throw invalid(`${where}: a tool's JSON Schema must have type "object"`);
  const plain = cloneJson(schema);
  const check = compile(plain, where, prepare);

  /** @param {unknown} value */
  function safeParse(value) {
    /** @type {Issue[]} */
    const issues = [];
    const data = check(value, [], issues);
    if (issues.length === 0) return { success: true, data };
    return { success: false, error: inputError(tool, issues, value, plain) };
  }
  /** @param {unknown} value */
  function parse(value) {
    const result = safeParse(value);
    if (!result.success) throw result.error;
    return result.data;
  }
  /** @param {unknown} value */
  function validate(value) {
    const result = safeParse(value);
    return result.success ? { value: result.data } : { issues: result.error?.issues };
  }
  /** @param {{ target?: string }} [options] */
  function toJsonSchema({ target = "draft-2020-12" } = {}) {
    if (!JSON_SCHEMA_TARGETS.includes(target)) {
      throw invalid(
        `JSON Schema for the target "${target}" is not available; use ${inWords(JSON_SCHEMA_TARGETS)}`,
      );
    }
    return cloneJson(plain);
  }

  const hidden = {
    safeParse,
    parse,
    shape: cloneJson(plain.properties ?? {}),
    "~standard": {
      version: 1,
      vendor: "cloudsandbox",
      validate,
      jsonSchema: { input: toJsonSchema, output: toJsonSchema },
    },
  };
  for (const [name, value] of Object.entries(hidden)) Object.defineProperty(schema, name, { value });
  return schema;
}

/**
 * A copy without the hidden members. Some frameworks take whatever can parse for a Zod object.
 *
 * @param {Record<string, any>} schema
 * @returns {Record<string, any>}
 */
export function plainSchema(schema) {
  return cloneJson(schema);
}

/**
 * Turns a schema into a check. Keywords that this validator does not know are refused here, when the
 * tool is defined: ignoring one would let through what the author meant to keep out.
 *
 * @param {Record<string, any>} schema
 * @param {string} where
 * @param {Record<string, (value: unknown) => unknown>} [prepare]
 * @returns {Check}
 */
function compile(schema, where, prepare) {
  if (!isRecord(schema)) throw invalid(`${where}: a JSON Schema must be an object`);
  const known = KEYWORDS[/** @type {keyof typeof KEYWORDS} */ (schema.type)];
  if (!known) {
    throw invalid(
      `${where}: \`type\` must be one of ${inWords(Object.keys(KEYWORDS))}; ` +
        "for anything else pass a Zod or Standard Schema object",
    );
  }
  for (const keyword of Object.keys(schema)) {
    if (keyword !== "type" && !known.includes(keyword) && !ANNOTATIONS.includes(keyword)) {
      throw invalid(
        `${where}: the JSON Schema keyword \`${keyword}\` is not supported for ${schema.type}; ` +
          "pass a Zod or Standard Schema object instead",
      );
    }
  }
  switch (schema.type) {
    case "object":
      return compileObject(schema, where, prepare ?? {});
    case "array":
      return compileArray(schema, where);
    case "string":
      return compileString(schema);
    case "boolean":
      return scalar("a boolean", (value) => typeof value === "boolean", schema);
    case "integer":
      return compileNumber(schema, "an integer", Number.isInteger);
    default:
      return compileNumber(schema, "a finite number", Number.isFinite);
  }
}

/**
 * Model APIs that have arguments as JSON text leave the parsing to the caller.
 *
 * @param {unknown} value
 * @param {readonly unknown[]} path
 */
function noObject(value, path) {
  if (typeof value !== "string" || !/^\s*\{/.test(value)) return kindOf(value);
  return `the JSON text of one${path.length === 0 ? ": JSON.parse() it first" : ""}`;
}

/**
 * @param {Record<string, any>} schema
 * @param {string} where
 * @param {Record<string, (value: unknown) => unknown>} prepare
 * @returns {Check}
 */
function compileObject(schema, where, prepare) {
  const { properties = {}, required = [], additionalProperties = true } = schema;
  /** @type {Map<string, Check>} */
  const checks = new Map();
  for (const [key, child] of Object.entries(properties)) {
    if (key === "__proto__") throw invalid(`${where}: a property cannot be named __proto__`);
    checks.set(key, compile(child, `${where}, property \`${key}\``));
  }
  const rest = isRecord(additionalProperties)
    ? compile(additionalProperties, `${where}, additionalProperties`)
    : undefined;

  return (value, path, issues) => {
    if (!isRecord(value)) return fail(issues, path, `must be an object, not ${noObject(value, path)}`);
    const given = /** @type {Record<string, unknown>} */ (value);
    /** @type {Record<string, unknown>} */
    const data = {};
    for (const [key, check] of checks) {
      // A model that has no way to leave something out sends null.
      const raw = Object.hasOwn(given, key) ? (given[key] ?? undefined) : undefined;
      if (raw !== undefined) {
        data[key] = check(Object.hasOwn(prepare, key) ? prepare[key](raw) : raw, [...path, key], issues);
      } else if (required.includes(key)) {
        fail(issues, [...path, key], `is missing (${properties[key].type})`);
      }
    }
    if (additionalProperties === false) return data;
    for (const [key, extra] of Object.entries(given)) {
      if (!checks.has(key) && key !== "__proto__") {
        data[key] = rest ? rest(extra, [...path, key], issues) : extra;
      }
    }
    return data;
  };
}

/**
 * @param {Record<string, any>} schema
 * @param {string} where
 * @returns {Check}
 */
function compileArray(schema, where) {
  const { minItems = 0, maxItems = Infinity } = schema;
  const item = schema.items === undefined ? undefined : compile(schema.items, `${where}, items`);
  return (value, path, issues) => {
    if (!Array.isArray(value)) return fail(issues, path, `must be an array, not ${kindOf(value)}`);
    if (value.length < minItems || value.length > maxItems) {
      return fail(issues, path, `must have ${range(minItems, maxItems)} items; it has ${value.length}`);
    }
    return item ? value.map((entry, index) => item(entry, [...path, index], issues)) : value;
  };
}

/**
 * @param {Record<string, any>} schema
 * @returns {Check}
 */
function compileString(schema) {
  const { minLength = 0, maxLength = Infinity } = schema;
  const pattern = schema.pattern === undefined ? undefined : new RegExp(schema.pattern, "u");
  const isString = scalar("a string", (value) => typeof value === "string", schema);
  return (value, path, issues) => {
    const text = isString(value, path, issues);
    if (typeof text !== "string") return text;
    const length = minLength > 0 || maxLength < Infinity ? [...text].length : 0;
    if (length < minLength || length > maxLength) {
      return fail(issues, path, `must have ${range(minLength, maxLength)} characters; it has ${length}`);
    }
    if (pattern && !pattern.test(text)) return fail(issues, path, `must match ${schema.pattern}`);
    return text;
  };
}

/**
 * @param {Record<string, any>} schema
 * @param {string} kind
 * @param {(value: unknown) => boolean} test
 * @returns {Check}
 */
function compileNumber(schema, kind, test) {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema;
  const isNumber = scalar(kind, test, schema);
  const rules = [
    { holds: (/** @type {number} */ n) => n >= minimum, text: `at least ${minimum}`, on: minimum },
    {
      holds: (/** @type {number} */ n) => n > exclusiveMinimum,
      text: `greater than ${exclusiveMinimum}`,
      on: exclusiveMinimum,
    },
    { holds: (/** @type {number} */ n) => n <= maximum, text: `at most ${maximum}`, on: maximum },
    {
      holds: (/** @type {number} */ n) => n < exclusiveMaximum,
      text: `less than ${exclusiveMaximum}`,
      on: exclusiveMaximum,
    },
  ].filter((rule) => rule.on !== undefined);
  const words = rules.map((rule) => rule.text).join(" and ");
  return (value, path, issues) => {
    const number = isNumber(value, path, issues);
    if (typeof number !== "number" || rules.every((rule) => rule.holds(number))) return number;
    return fail(issues, path, `must be ${words}; got ${number}`);
  };
}

/**
 * @param {string} kind
 * @param {(value: unknown) => boolean} test
 * @param {Record<string, any>} schema
 * @returns {Check}
 */
function scalar(kind, test, schema) {
  const allowed = schema.enum ?? (schema.const === undefined ? undefined : [schema.const]);
  return (value, path, issues) => {
    if (!test(value)) {
      return fail(issues, path, `must be ${kind}, not ${typeof value === "number" ? value : kindOf(value)}`);
    }
    if (!allowed || allowed.includes(value)) return value;
    const one = allowed.length === 1 ? "" : "one of ";
    return fail(issues, path, `must be ${one}${inWords(allowed)}${wordAdvice(value, allowed)}`);
  };
}

/**
 * @param {Issue[]} issues
 * @param {PropertyKey[]} path
 * @param {string} what
 */
function fail(issues, path, what) {
  const subject = path.length === 0 ? "the arguments" : `\`${path.map(String).join(".")}\``;
  issues.push({ path, message: `${subject} ${what}` });
  return undefined;
}

/**
 * What is wrong, that nothing has happened yet, and what to write: a model sees no more than this. Names of
 * arguments are shown, values are not.
 *
 * @param {string} tool
 * @param {Issue[]} issues
 * @param {unknown} value
 * @param {Record<string, any>} schema
 */
function inputError(tool, issues, value, schema) {
  const { properties = {}, required = [], additionalProperties = true } = schema;
  const names = Object.keys(properties);
  const unknown = isRecord(value) && additionalProperties === false ? Object.keys(/** @type {object} */ (value)).filter((key) => !names.includes(key)) : [];
  const left = names.filter((name) => !isRecord(value) || !Object.hasOwn(/** @type {object} */ (value), name));
  const strangers = unknown.slice(0, MAX_SHOWN).map((key) => {
    const meant = meantName(key, left);
    return `there is no argument \`${key.slice(0, 60)}\`${meant ? `, did you mean ${meant}` : ""}`;
  });
  const known = names.slice(0, MAX_SHOWN).map((name) => `\`${name}\` (${typeWords(properties[name])}${required.includes(name) ? "" : ", optional"})`);
  if (names.length > MAX_SHOWN) known.push("...");
  const what = [...issues.slice(0, MAX_SHOWN).map((issue) => issue.message), ...strangers].join("; ");
  const wanted = known.length > 0 ? `an object with ${known.join(", ")}` : "an object";
  const error = invalid(`${tool} was not run, and nothing has changed: ${what}${/[.?]$/.test(what) ? "" : "."} Call it again with ${wanted}.`);
  return Object.defineProperties(/** @type {ReturnType<typeof invalid> & { issues: Issue[] }} */ (error), {
    issues: { value: issues },
    format: { value: () => formatted(issues) },
  });
}

/**
 * As Zod's errors have it, which Mastra 0.24 asks for: the messages of each path at `_errors`.
 *
 * @param {Issue[]} issues
 */
function formatted(issues) {
  const all = { _errors: /** @type {string[]} */ ([]) };
  for (const { path, message } of issues) {
    /** @type {any} */
    let at = all;
    for (const key of path) {
      if (!Object.hasOwn(at, key)) at[key] = { _errors: [] };
      at = at[key];
    }
    at._errors.push(message);
  }
  return all;
}

/** @param {Record<string, any>} schema */
function typeWords({ type, enum: allowed }) {
  return allowed ? allowed.slice(0, MAX_SHOWN).map((/** @type {unknown} */ word) => JSON.stringify(word)).join(" or ") : type;
}

/** @param {unknown[]} values */
function inWords(values) {
  return values.map((value) => JSON.stringify(value)).join(", ");
}

/**
 * @param {number} min
 * @param {number} max
 */
function range(min, max) {
  if (max === Infinity) return `at least ${min}`;
  return min === 0 ? `at most ${max}` : `${min} to ${max}`;
}

/**
 * @template T
 * @param {T} value
 * @returns {T}
 */
function cloneJson(value) {
  return JSON.parse(JSON.stringify(value));
}
