// JSON as Go writes it: some characters always escaped, and bytes that are no UTF-8 replaced one by one.
// @ts-check
import { isUtf8 } from "node:buffer";

/** Stands for a broken byte until it is written: Go escapes it, unlike the same character in good text. */
const BROKEN = "\udfff";
const ESCAPED = /** @type {Record<string, string>} */ ({
  "<": "\\u003c",
  ">": "\\u003e",
  "&": "\\u0026",
  "\u2028": "\\u2028",
  "\u2029": "\\u2029",
});

/** @param {unknown} value */
export function goJson(value) {
  return JSON.stringify(value)
    .replace(/\\\\|\\udfff/g, (escape) => (escape === "\\udfff" ? "\\ufffd" : escape))
    .replace(/[<>&\u2028\u2029]/g, (character) => ESCAPED[character]);
}

/**
 * The text of some output, for goJson(). Unlike a TextDecoder, Go replaces every byte of a broken sequence.
 * @param {Buffer} bytes
 */
export function goText(bytes) {
  if (isUtf8(bytes)) return bytes.toString();
  let text = "";
  let start = 0;
  let at = 0;
  while (at < bytes.length) {
    const length = sequenceLength(bytes, at);
    if (length > 0) at += length;
    else {
      text += bytes.subarray(start, at).toString() + BROKEN;
      at += 1;
      start = at;
    }
  }
  return text + bytes.subarray(start).toString();
}

/**
 * The length of the whole character that starts here, or 0.
 * @param {Buffer} bytes
 * @param {number} at
 */
function sequenceLength(bytes, at) {
  const first = bytes[at];
  if (first < 0x80) return 1;
  const length = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  return length > 0 && at + length <= bytes.length && isUtf8(bytes.subarray(at, at + length)) ? length : 0;
}

const TYPE_NAMES = /** @type {Record<string, string>} */ ({ boolean: "bool" });

/** How Go names a JSON value that does not fit. @param {unknown} value */
function describe(value) {
  if (typeof value === "number") return `number ${value}`;
  if (Array.isArray(value)) return "array";
  return TYPE_NAMES[typeof value] ?? typeof value;
}

/**
 * @param {string} struct
 * @param {string} field
 * @param {unknown} value
 * @param {string} type
 */
const mismatch = (struct, field, value, type) =>
  `json: cannot unmarshal ${describe(value)} into Go struct field ${struct}.${field} of type ${type}`;

const isStringMap = (/** @type {any} */ value) =>
  value !== null &&
  typeof value === "object" &&
  !Array.isArray(value) &&
  Object.values(value).every((item) => typeof item === "string");

/** @type {Record<string, (value: any) => boolean>} */
const FITS = {
  string: (value) => typeof value === "string",
  bool: (value) => typeof value === "boolean",
  uint16: (value) => Number.isInteger(value) && value >= 0 && value < 2 ** 16,
  uint32: (value) => Number.isInteger(value) && value >= 0 && value < 2 ** 32,
  "[]string": (value) => Array.isArray(value) && value.every((item) => typeof item === "string"),
  "map[string]string": isStringMap,
};

/**
 * Reads a body into the fields of a Go struct: unknown fields are passed over, null is as good as absent.
 * @param {Buffer} body
 * @param {string} struct
 * @param {Record<string, string>} fields name and Go type
 * @returns {Record<string, any> | string} a string is the reason of a refusal
 */
export function goUnmarshal(body, struct, fields) {
  let value;
  const text = body.toString();
  try {
    value = JSON.parse(text);
  } catch {
    return body.length === 0 ? "EOF" : "invalid character in JSON input";
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    return `json: cannot unmarshal ${describe(value)} into Go value of type ${struct}`;
  }
  /** @type {Record<string, any>} */
  const read = {};
  for (const [name, type] of Object.entries(fields)) {
    const given = value[name];
    if (given === undefined || given === null) continue;
    if (!FITS[type](given)) return mismatch(struct, name, given, type);
    const written = type.startsWith("uint") && text.match(new RegExp(`"${name}"\\s*:\\s*([-+.\\deE]+)`))?.[1];
    if (written && !/^\d+$/.test(written)) {
      return `json: cannot unmarshal number ${written} into Go struct field ${struct}.${name} of type ${type}`;
    }
    read[name] = given;
  }
  return read;
}
