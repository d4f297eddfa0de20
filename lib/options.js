// Checks of what users pass in. Each throws a SandboxError with code ERR_SANDBOX_INVALID_ARG whose
// message names the option and says what to write instead.
//
// Invariant: a message shows numbers, words from a fixed list, and a short word that was given for one of
// them, never another value: it may be a secret.
import { SandboxError } from "./errors.js";
import { meantWord, optionAdvice, wordAdvice } from "./meant.js";

/** @import { SandboxBudget } from "../types/index.js" */

const { types } = process.getBuiltinModule("node:util");

/** Longest limit of run(), shell() and the tools, in seconds. */
export const MAX_TIMEOUT_SECONDS = 3600;
/** Longest limit of exec(), in seconds. */
export const MAX_EXEC_TIMEOUT_SECONDS = 86400;
/** Most bytes kept of one output. */
export const MAX_OUTPUT_BYTES = 16777216;
/** Bytes kept of one output unless told otherwise. */
export const DEFAULT_OUTPUT_BYTES = 1048576;

/**
 * What `await using` calls; Node 20.19 knows the symbol, older type libraries do not.
 *
 * @type {typeof Symbol.asyncDispose}
 */
export const asyncDispose = /** @type {any} */ (Symbol.asyncDispose ?? Symbol.for("nodejs.asyncDispose"));

/** What console.log() calls for the text of an object. */
export const inspectKey = Symbol.for("nodejs.util.inspect.custom");

/**
 * An object's text for console.log(): its class, and some members.
 *
 * @param {object} object
 * @param {Record<string, unknown>} members
 * @param {number} depth
 * @param {object} options
 * @param {(value: unknown, options: object) => string} inspect
 */
export function shownAs(object, members, depth, options, inspect) {
  const { name } = object.constructor;
  return depth < 0 ? `[${name}]` : `${name} ${inspect(members, options)}`;
}

/**
 * The error of a method that was taken off its object, as in `const { run } = sandbox`.
 *
 * @param {string} method
 * @param {string} object
 */
export function detached(method, object) {
  return invalid(
    `${method}() was called without its ${object}, and did nothing: write ${object}.${method}(...), ` +
      `or pass on (...args) => ${object}.${method}(...args)`,
  );
}

/**
 * @param {string} message
 * @returns {SandboxError}
 */
export function invalid(message) {
  return new SandboxError(message, { code: "ERR_SANDBOX_INVALID_ARG" });
}

/**
 * What `read` returns. A getter or a Proxy of the user's may throw anything; out of here comes a
 * SandboxError.
 *
 * @template T
 * @param {string} what is read
 * @param {() => T} read
 * @returns {T}
 */
export function reading(what, read) {
  try {
    return read();
  } catch (cause) {
    if (cause instanceof SandboxError) throw cause;
    throw new SandboxError(`${what} cannot be read; \`cause\` says why`, { code: "ERR_SANDBOX_INVALID_ARG", cause });
  }
}

/**
 * An object of options; undefined counts as none.
 *
 * @param {any} value
 * @param {string} where
 * @returns {Record<string, any>}
 */
export function checkObject(value, where) {
  if (value === undefined) return {};
  if (typeof value !== "object" || value === null || isArray(value)) {
    throw invalid(`${where}: the options must be an object, not ${kindOf(value)}`);
  }
  const other = reading(`${where}: the options`, () => noRecord(value));
  if (other) throw invalid(`${where}: the options must be a plain object, not ${other}`);
  return value;
}

/**
 * What an object is whose contents are no properties, so that all of it would be ignored.
 *
 * @param {any} value
 * @returns {string | undefined}
 */
function noRecord(value) {
  if (typeof value.then === "function") return "a promise: await it first";
  return typeof value[Symbol.iterator] === "function" ? "a Map or the like: Object.fromEntries() makes one of it" : undefined;
}

/**
 * Refuses options that do not exist, so that a misspelt one is not silently ignored. Each option is read
 * once, into the object that is returned: what was checked is then what is used.
 *
 * @param {any} options
 * @param {readonly string[]} allowed
 * @param {string} where
 * @param {{ names: readonly string[], words: string }} [elsewhere] options of another method, and what to
 *   say when one of them is given here
 * @returns {Record<string, any>} those that have a value
 */
export function checkNames(options, allowed, where, elsewhere) {
  const passed = checkObject(options, where);
  for (const name of reading(`${where}: the options`, () => Object.keys(passed))) {
    if (allowed.includes(name)) continue;
    throw invalid(`${where}: there is no option \`${name.slice(0, 60)}\`; ${optionAdvice(name, allowed, elsewhere)}`);
  }
  /** @type {Record<string, any>} */
  const copy = {};
  for (const name of allowed) {
    const value = reading(`${where}: \`${name}\``, () => passed[name]);
    if (value !== undefined) copy[name] = value;
  }
  return copy;
}

/**
 * A copy of an array, each item read once and checked before the next.
 *
 * @template T
 * @param {any} value
 * @param {string} name
 * @param {string} wanted what it must be, in words
 * @param {(item: any, index: number) => T} check
 * @returns {T[]}
 */
export function checkItems(value, name, wanted, check) {
  if (!isArray(value)) throw invalid(`\`${name}\` must be ${wanted}, not ${kindOf(value)}`);
  const copy = [];
  const length = reading(`\`${name}\``, () => value.length);
  for (let index = 0; index < length; index++) {
    copy.push(check(reading(`\`${name}[${index}]\``, () => value[index]), index));
  }
  return copy;
}

/**
 * @param {unknown} value
 * @param {string} name
 * @returns {string}
 */
export function checkString(value, name) {
  if (typeof value !== "string") throw invalid(`\`${name}\` must be a string, not ${kindOf(value)}`);
  return value;
}

/**
 * @param {unknown} value
 * @param {string} name
 * @returns {boolean}
 */
export function checkBoolean(value, name) {
  if (typeof value !== "boolean") throw invalid(`\`${name}\` must be true or false, not ${kindOf(value)}`);
  return value;
}

/**
 * @template {Function} T
 * @param {T} value
 * @param {string} name
 * @returns {T}
 */
export function checkFunction(value, name) {
  if (typeof value !== "function") throw invalid(`\`${name}\` must be a function, not ${kindOf(value)}`);
  return value;
}

/**
 * @template {string} T
 * @param {unknown} value
 * @param {readonly T[]} words
 * @param {string} name
 * @returns {T}
 */
export function checkWord(value, words, name) {
  if (words.includes(/** @type {T} */ (value))) return /** @type {T} */ (value);
  const list = words.map((word) => JSON.stringify(word)).join(", ");
  throw invalid(`Unsupported \`${name}\`: it must be one of ${list}, not ${shownWord(value)}${wordAdvice(value, words)}`);
}

/**
 * A limit in seconds, as milliseconds: above 0, at most `max`; `Infinity` where `endless`.
 *
 * @param {unknown} value
 * @param {string} name
 * @param {{ max?: number, endless?: boolean, more?: string }} [range] more: what to say of a larger one
 * @returns {number}
 */
export function checkTimeoutSeconds(value, name, { max = MAX_TIMEOUT_SECONDS, endless = false, more = "" } = {}) {
  if (typeof value === "number" && value > 0 && value <= max) return Math.max(1, Math.round(value * 1000));
  if (endless && value === Infinity) return Infinity;
  throw invalid(
    `\`${name}\` must be a number of seconds above 0 and at most ${max}` +
      `${endless ? ", or Infinity for no limit" : ""}, not ${shownNumber(value)}` +
      (typeof value === "number" && value > max ? more : ""),
  );
}

/**
 * @param {unknown} value
 * @param {string} name
 * @param {number} min
 * @param {number} max
 * @returns {number}
 */
export function checkNumber(value, name, min, max) {
  if (typeof value === "number" && value >= min && value <= max) return value;
  throw invalid(`\`${name}\` must be a number from ${min} to ${max}, not ${shownNumber(value)}`);
}

/**
 * @param {unknown} value
 * @param {string} name
 * @param {number} min
 * @param {number} max
 * @returns {number}
 */
export function checkInteger(value, name, min, max) {
  if (Number.isSafeInteger(value) && checkNumber(value, name, min, max) === value) return value;
  throw invalid(`\`${name}\` must be a whole number from ${min} to ${max}, not ${shownNumber(value)}`);
}

/**
 * @param {unknown} value
 * @returns {number}
 */
export function checkMaxOutputBytes(value) {
  return checkInteger(value, "maxOutputBytes", 1, MAX_OUTPUT_BYTES);
}

/**
 * Environment variables as a flat list: name, value, name, value, ...
 *
 * @param {unknown} value
 * @param {string} [name]
 * @returns {string[]}
 */
export function checkEnv(value, name = "env") {
  if (typeof value !== "object" || value === null || isArray(value)) {
    throw invalid(`\`${name}\` must be an object of strings such as { LANG: "C" }, not ${kindOf(value)}`);
  }
  const other = reading(`\`${name}\``, () => noRecord(value));
  if (other) throw invalid(`\`${name}\` must be an object of strings such as { LANG: "C" }, not ${other}`);
  const flat = [];
  const entries = reading(`\`${name}\``, () => Object.entries(value));
  const strange = entries.map(([key]) => key).filter((key) => !ENV_NAME.test(key));
  if (strange.length > 0) throw invalid(`\`${name}\`: ${envNameRule(strange)}. Leave ${strange.length > 1 ? "them" : "it"} out`);
  for (const [key, text] of entries) {
    if (typeof text !== "string") throw invalid(`\`${name}.${key}\` must be a string, not ${kindOf(text)}`);
    if (text.includes("\0")) throw invalid(`\`${name}.${key}\` must not contain U+0000`);
    flat.push(key, text);
  }
  return flat;
}

/**
 * The same as an object, which is a copy.
 *
 * @param {unknown} value
 * @param {string} [name]
 * @returns {Record<string, string>}
 */
export function checkEnvObject(value, name) {
  const flat = checkEnv(value, name);
  return Object.fromEntries(flat.flatMap((key, index) => (index % 2 ? [] : [[key, flat[index + 1]]])));
}

/** What a shell can hold as a variable's name. */
const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * A list of names of this process's variables. Those that a shell cannot hold are left out: a process has
 * some, such as the functions that bash exports, and means no harm by them.
 *
 * @param {unknown} value
 * @param {string} name
 * @returns {string[]}
 */
export function checkEnvNames(value, name) {
  const names = checkItems(value, name, "an array of variable names", (item) => {
    if (typeof item !== "string") throw invalid(`\`${name}\` must hold variable names, not ${kindOf(item)}`);
    if (!item || /[=\0]/.test(item)) throw invalid(`\`${name}\`: ${envNameRule([item])}`);
    return item;
  });
  return names.filter((item) => ENV_NAME.test(item));
}

/** @param {string[]} strange */
function envNameRule(strange) {
  const shown = strange.slice(0, 5).map((it) => JSON.stringify(it.slice(0, 40)));
  const last = strange.length > 5 ? `${strange.length - 5} others` : shown.pop();
  return (
    'a variable name has letters, digits and "_" only and begins with no digit; ' +
    `${shown.length > 0 ? `${shown.join(", ")} and ${last} do` : `${last} does`} not`
  );
}

/**
 * @param {unknown} value
 * @returns {"utf8" | "base64"}
 */
export function checkEncoding(value) {
  if (value === undefined || value === "utf8") return "utf8";
  if (value === "base64") return "base64";
  const place = typeof value === "object" ? '; options come behind it, as in readFile(path, "utf8", { maxBytes })' : "";
  const isBytes = meantWord(value, ["buffer"]) !== undefined;
  const hint = isBytes ? "; for bytes, call readBytes(), or writeFile() with a Uint8Array" : wordAdvice(value, ["utf8", "base64"]);
  throw invalid(`\`encoding\` must be "utf8" or "base64"${hint}${place}`);
}

/**
 * @param {any} value
 * @returns {AbortSignal | undefined}
 */
export function checkSignal(value) {
  if (value === undefined) return undefined;
  if (isSignal(value)) return value;
  if (reading("`signal`", () => isSignal(value?.signal))) {
    throw invalid("`signal` must be an AbortSignal, not its controller: pass controller.signal");
  }
  throw invalid(`\`signal\` must be an AbortSignal, not ${kindOf(value)}`);
}

/**
 * Whether `value` has what is used of an AbortSignal.
 *
 * @param {any} value
 * @returns {value is AbortSignal}
 */
export function isSignal(value) {
  return reading(
    "`signal`",
    () =>
      typeof value?.aborted === "boolean" &&
      typeof value.addEventListener === "function" &&
      typeof value.removeEventListener === "function",
  );
}

/**
 * The bytes of a typed array, DataView or ArrayBuffer, not copied.
 *
 * @param {unknown} value
 * @returns {Uint8Array | undefined} undefined when it is none of these
 */
export function bytesOf(value) {
  // Not `instanceof`: a Proxy passes that, and has no bytes.
  if (ArrayBuffer.isView(value)) {
    if (value instanceof Uint8Array) return value;
    return reading("the bytes", () => new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
  }
  return types.isArrayBuffer(value) ? reading("the bytes", () => new Uint8Array(value)) : undefined;
}

/**
 * Text as UTF-8 (lone surrogates become U+FFFD), or bytes as they are.
 *
 * @param {unknown} value
 * @param {string} name
 * @returns {Uint8Array}
 */
export function checkContents(value, name) {
  const bytes = typeof value === "string" ? Buffer.from(value) : bytesOf(value);
  if (bytes) return bytes;
  throw invalid(`\`${name}\` must be a string or a Uint8Array, not ${kindOf(value)}`);
}

/** @param {unknown} value @param {string} name @returns {{ columns: number, rows: number }} */
export function checkTtySize(value, name) {
  const { columns, rows } = checkNames(value, ["columns", "rows"], name);
  return { columns: checkInteger(columns, `${name}.columns`, 1, 65535), rows: checkInteger(rows, `${name}.rows`, 1, 65535) };
}

/**
 * Strict base64: the standard alphabet; line breaks are left out and padding may be missing.
 *
 * @param {unknown} value
 * @param {string} name
 * @returns {Uint8Array}
 */
export function checkBase64(value, name) {
  const text = checkString(value, name).replace(/[\r\n]+/g, "");
  const digits = text.replace(/={1,2}$/, "");
  const bytes = Buffer.from(digits, "base64");
  const padded = digits.length === text.length || text.length % 4 === 0;
  // Writing it out again must give the same digits: this refuses what Buffer skips or tolerates.
  if (padded && bytes.toString("base64").replace(/=+$/, "") === digits) return bytes;
  throw invalid(`\`${name}\` is not base64 (A-Z a-z 0-9 + / with = at the end); nothing was written`);
}

/** @param {unknown} value */
function shownNumber(value) {
  return typeof value === "number" ? String(value) : kindOf(value);
}

/**
 * A word that was given for one of a list. What is more than a word of a language may be a secret.
 *
 * @param {unknown} value
 */
export function shownWord(value) {
  return typeof value === "string" && /^[A-Za-z]{1,16}[0-9]?$/.test(value) ? JSON.stringify(value) : kindOf(value);
}

/** Array.isArray(), which throws for a Proxy that was revoked. @param {unknown} value @returns {value is any[]} */
function isArray(value) {
  try {
    return Array.isArray(value);
  } catch {
    return false;
  }
}

/**
 * What a value is, in words and without showing it.
 *
 * @param {unknown} value
 */
export function kindOf(value) {
  if (value === null) return "null";
  if (isArray(value)) return "an array";
  if (value === undefined) return "undefined";
  const type = typeof value;
  return type === "object" ? "an object" : `a ${type}`;
}

/**
 * An object of strings.
 *
 * @param {any} value
 * @param {string} name
 * @returns {Record<string, string>}
 */
export function checkTexts(value, name) {
  if (kindOf(value) !== "an object") throw invalid(`\`${name}\` must be an object of strings, not ${kindOf(value)}`);
  const entries = reading(`\`${name}\``, () => Object.entries(value));
  for (const [key, text] of entries) checkString(text, `${name}.${key}`);
  return Object.fromEntries(entries);
}

/**
 * Those of the options that were given, checked.
 *
 * @param {Record<string, any>} options
 * @param {readonly string[]} names
 * @param {(value: any, name: string) => unknown} check
 */
export function given(options, names, check) {
  return Object.fromEntries(
    names.filter((name) => options[name] !== undefined).map((name) => [name, check(options[name], name)]),
  );
}

/**
 * A whole number or undefined.
 *
 * @param {unknown} value
 * @param {string} name
 * @param {number} min
 * @param {number} max
 */
export function wholeOrNone(value, name, min, max) {
  if (value === undefined) return undefined;
  if (Number.isInteger(value)) return checkNumber(value, name, min, max);
  throw invalid(`\`${name}\` must be a whole number from ${min} to ${max}, not ${kindOf(value)}`);
}

/**
 * A copy of `budget`.
 *
 * @param {unknown} value
 * @returns {SandboxBudget}
 */
export function checkBudget(value) {
  const { commands, sandboxSeconds } = checkNames(value, ["commands", "sandboxSeconds"], "budget");
  if (commands === undefined && sandboxSeconds === undefined) {
    throw invalid("`budget` must say how much: { commands }, { sandboxSeconds } or both; leave it out for no limit");
  }
  return {
    ...(commands !== undefined && { commands: checkInteger(commands, "budget.commands", 0, Number.MAX_SAFE_INTEGER) }),
    ...(sandboxSeconds !== undefined && { sandboxSeconds: checkNumber(sandboxSeconds, "budget.sandboxSeconds", 0, 1e9) }),
  };
}

/**
 * A Uint8Array that is no Buffer, over the same memory.
 *
 * @param {Buffer} buffer
 */
export function plainBytes(buffer) {
  return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.length);
}
