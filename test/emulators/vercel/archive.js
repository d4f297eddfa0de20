// Reads the archives of POST fs/write: gzip of tar, with PAX headers.
// @ts-check
import { gunzipSync } from "node:zlib";

import { bad } from "./errors.js";

const BLOCK = 512;

/** @typedef {{ name: string, mode: number, bytes: Buffer }} Entry */

/** A text up to its first NUL. @param {Buffer} field */
function text(field) {
  const end = field.indexOf(0);
  return field.toString("utf8", 0, end < 0 ? field.length : end);
}

/** @param {Buffer} field */
function octal(field) {
  const digits = text(field).trim();
  if (!/^[0-7]*$/.test(digits)) throw bad("Invalid archive: a number is not octal");
  return parseInt(digits || "0", 8);
}

/** @param {Buffer} header */
function checkSum(header) {
  let sum = 0;
  header.forEach((byte, at) => (sum += at >= 148 && at < 156 ? 32 : byte));
  if (octal(header.subarray(148, 156)) !== sum) throw bad("Invalid archive: wrong checksum");
}

/** Records of the form "LENGTH KEY=VALUE\n". @param {Buffer} bytes */
function paxRecords(bytes) {
  /** @type {Record<string, string>} */
  const records = {};
  for (let at = 0; at < bytes.length;) {
    const length = parseInt(bytes.toString("latin1", at, at + 20), 10);
    const record = bytes.subarray(at, at + length);
    if (!(length > 0) || record.length !== length || record.at(-1) !== 10) throw bad("Invalid archive: a PAX record");
    const line = record.toString("utf8", record.indexOf(32) + 1, length - 1);
    records[line.slice(0, line.indexOf("="))] = line.slice(line.indexOf("=") + 1);
    at += length;
  }
  return records;
}

/** @param {Buffer} archive @returns {Entry[]} */
export function readTar(archive) {
  /** @type {Entry[]} */
  const entries = [];
  /** @type {Record<string, string>} */
  let pax = {};
  for (let at = 0; ; ) {
    const header = archive.subarray(at, at + BLOCK);
    if (header.length < BLOCK) throw bad("Invalid archive: it has no end");
    if (header.every((byte) => byte === 0)) return entries;
    checkSum(header);
    if (text(header.subarray(257, 263)) !== "ustar") throw bad("Invalid archive: it is no ustar");
    const size = octal(header.subarray(124, 136));
    const bytes = archive.subarray(at + BLOCK, at + BLOCK + size);
    if (bytes.length < size) throw bad("Invalid archive: it ends early");
    const type = String.fromCharCode(header[156]);
    if (type === "x") pax = paxRecords(bytes);
    else if (type === "0" || type === "\0") {
      const prefix = text(header.subarray(345, 500));
      const name = pax.path ?? (prefix ? `${prefix}/` : "") + text(header.subarray(0, 100));
      entries.push({ name, mode: octal(header.subarray(100, 108)), bytes });
      pax = {};
    } else throw bad(`Invalid archive: an entry of type ${JSON.stringify(type)}`);
    at += BLOCK * (1 + Math.ceil(size / BLOCK));
  }
}

/** @param {Buffer} body @returns {Entry[]} */
export function readArchive(body) {
  let archive;
  try {
    archive = gunzipSync(body);
  } catch {
    throw bad("Invalid archive: it is no gzip");
  }
  return readTar(archive);
}
