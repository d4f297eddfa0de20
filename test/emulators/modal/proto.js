// Protocol buffers by tables: { number: [name, type, table] }. Types: s string, b bytes, u unsigned, i int32, o bool,
// f float, d double, m message, map of strings; "r" before one of them: repeated; "x" behind it: it says whether it is there.
// @ts-check

/** @typedef {{ [number: number]: [name: string, type: string, table?: Table] }} Table */

/** @param {bigint} value */
function varint(value) {
  const bytes = [];
  let rest = BigInt.asUintN(64, value);
  for (; rest >= 128n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}

/** @param {Buffer} bytes @param {number} at @returns {[bigint, number]} */
function readVarint(bytes, at) {
  let value = 0n;
  for (let shift = 0n; ; shift += 7n) {
    if (at >= bytes.length || shift > 63n) throw new Error("a varint that has no end");
    const byte = bytes[at++];
    value |= BigInt(byte & 127) << shift;
    if (byte < 128) return [BigInt.asUintN(64, value), at];
  }
}

const MAP = /** @type {Table} */ ({ 1: ["key", "s"], 2: ["value", "s"] });
const kindOf = (/** @type {string} */ type) => type.replace(/^r/, "").replace(/x$/, "");

/** @param {string} type @param {any} value @param {Table} [table] @returns {[wire: number, bytes: Buffer]} */
function encodeValue(type, value, table) {
  const sized = (/** @type {Buffer} */ bytes) => /** @type {[number, Buffer]} */ ([2, Buffer.concat([varint(BigInt(bytes.length)), bytes])]);
  switch (type) {
    case "s":
      return sized(Buffer.from(value));
    case "b":
      return sized(value);
    case "m":
      return sized(encode(/** @type {Table} */ (table), value));
    case "map":
      return sized(encode(MAP, value));
    case "f":
    case "d": {
      const bytes = Buffer.alloc(type === "f" ? 4 : 8);
      if (type === "f") bytes.writeFloatLE(value);
      else bytes.writeDoubleLE(value);
      return [type === "f" ? 5 : 1, bytes];
    }
    default:
      return [0, varint(BigInt(value))];
  }
}

/** @param {Table} table @param {Record<string, any>} message */
export function encode(table, message) {
  const parts = [];
  for (const [number, [name, type, inner]] of Object.entries(table)) {
    const value = message[name];
    if (value === undefined || value === null) continue;
    const kind = kindOf(type);
    const values = kind === "map" ? Object.entries(value).map(([key, text]) => ({ key, value: text })) : type.startsWith("r") ? value : [value];
    for (const item of values) {
      // A number that is 0, and an empty text, are not there; but for those that tell by being there.
      if (!type.startsWith("r") && !type.endsWith("x") && !["m", "map"].includes(kind) && (!item || item.length === 0)) continue;
      const [wire, bytes] = encodeValue(kind, item, inner);
      parts.push(varint((BigInt(number) << 3n) | BigInt(wire)), bytes);
    }
  }
  return Buffer.concat(parts);
}

/** @param {Buffer} bytes @param {number} at @param {number} wire @returns {[Buffer | bigint, number]} */
function readValue(bytes, at, wire) {
  if (wire === 0) return readVarint(bytes, at);
  let size = wire === 5 ? 4 : 8;
  if (wire === 2) {
    const [length, next] = readVarint(bytes, at);
    [size, at] = [Number(length), next];
  } else if (wire !== 1 && wire !== 5) throw new Error(`wire type ${wire}`);
  if (at + size > bytes.length) throw new Error("a field that is cut");
  return [bytes.subarray(at, at + size), at + size];
}

/** @param {string} kind @param {any} raw @param {Table} [table] */
function decodeValue(kind, raw, table) {
  switch (kind) {
    case "s":
      return new TextDecoder("utf-8", { fatal: true }).decode(raw);
    case "m":
      return decode(/** @type {Table} */ (table), raw);
    case "map":
      return decode(MAP, raw);
    case "f":
      return raw.readFloatLE();
    case "d":
      return raw.readDoubleLE();
    case "i":
      return Number(BigInt.asIntN(32, raw));
    case "u":
      return Number(raw);
    case "o":
      return raw !== 0n;
    default:
      return raw;
  }
}

/**
 * What is in no table is under `unknown`, by its number.
 * @param {Table} table
 * @param {Buffer} bytes
 * @returns {any}
 */
export function decode(table, bytes) {
  /** @type {any} */
  const message = { unknown: [] };
  for (const [name, type] of Object.values(table)) {
    if (type.startsWith("r")) message[name] = [];
    else if (kindOf(type) === "map") message[name] = {};
  }
  for (let at = 0; at < bytes.length;) {
    const [key, next] = readVarint(bytes, at);
    const [raw, after] = readValue(bytes, next, Number(key & 7n));
    at = after;
    const field = table[Number(key >> 3n)];
    if (!field) {
      message.unknown.push(Number(key >> 3n));
      continue;
    }
    const [name, type, inner] = field;
    const value = decodeValue(kindOf(type), raw, inner);
    if (kindOf(type) === "map") message[name][value.key ?? ""] = value.value ?? "";
    else if (type.startsWith("r")) message[name].push(value);
    else message[name] = value;
  }
  return message;
}
