// The messages of an event stream, written.
// @ts-check

const TABLE = Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value >>> 0;
});

/** zlib's; Node 20 has none. @param {Buffer} bytes */
export function crc32(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ TABLE[(crc ^ byte) & 255];
  return (crc ^ 0xffffffff) >>> 0;
}

/** @param {number} value */
function number(value) {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** A header that is text. @param {[string, string]} header */
function headerOf([name, value]) {
  const text = Buffer.from(value);
  return Buffer.concat([Buffer.of(name.length), Buffer.from(name), Buffer.of(7, text.length >> 8, text.length & 255), text]);
}

/**
 * @param {Record<string, string>} headers
 * @param {string | Buffer} [payload]
 * @returns {Buffer}
 */
export function message(headers, payload = "") {
  const head = Buffer.concat(Object.entries(headers).map(headerOf));
  const body = Buffer.from(payload);
  const lengths = Buffer.concat([number(head.length + body.length + 16), number(head.length)]);
  const all = Buffer.concat([lengths, number(crc32(lengths)), head, body]);
  return Buffer.concat([all, number(crc32(all))]);
}

/** @param {unknown} result @param {string} [type] */
export const event = (result, type = "result") =>
  message({ ":message-type": "event", ":event-type": type, ":content-type": "application/json" }, JSON.stringify(result));

/** @param {string} type such as "throttlingException" @param {string} text */
export const exception = (type, text) =>
  message({ ":message-type": "exception", ":exception-type": type, ":content-type": "application/json" }, JSON.stringify({ message: text }));

/** @param {string} code @param {string} text */
export const streamError = (code, text) => message({ ":message-type": "error", ":error-code": code, ":error-message": text });

/** A 200 of these messages, for faults. @param {...Buffer} messages @returns {import("../exchange.js").Reply} */
export const streamOf = (...messages) => ({
  status: 200,
  headers: { "content-type": "application/vnd.amazon.eventstream" },
  body: Buffer.concat(messages),
});
