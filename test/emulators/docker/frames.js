// The frames of an attached process: one byte for the stream, three of zero, the length, the bytes.
// @ts-check

const HEADER_BYTES = 8;
/** What the engine reads of a pipe at once. */
const MOST = 32 * 1024;

/** @param {1 | 2} stream @param {Buffer | string} payload */
export function frame(stream, payload) {
  const bytes = Buffer.from(payload);
  const header = Buffer.alloc(HEADER_BYTES);
  header[0] = stream;
  header.writeUInt32BE(bytes.length, 4);
  return Buffer.concat([header, bytes]);
}

/** One chunk of output as frames. @param {1 | 2} stream @param {Buffer} chunk */
export function frames(stream, chunk) {
  const parts = [];
  for (let at = 0; at < chunk.length; at += MOST) parts.push(frame(stream, chunk.subarray(at, at + MOST)));
  return parts;
}

/**
 * Frames as one reads them at random: cut inside the header, two at once, one byte at a time.
 * @param {number | null} seed null: as they are
 */
export function cutter(seed) {
  let state = (seed ?? 0) >>> 0;
  const random = (/** @type {number} */ below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  return (/** @type {Buffer} */ bytes) => {
    if (seed === null || random(3) === 0) return [bytes];
    const cut = 1 + random(Math.min(bytes.length, HEADER_BYTES + 2));
    return [bytes.subarray(0, cut), bytes.subarray(cut)].filter((part) => part.length > 0);
  };
}

/**
 * What a stream of frames holds, by stream; for tests of the emulator.
 * @param {Buffer} bytes
 */
export function unframe(bytes) {
  const out = { stdout: "", stderr: "" };
  for (let at = 0; at < bytes.length;) {
    const length = bytes.readUInt32BE(at + 4);
    out[bytes[at] === 2 ? "stderr" : "stdout"] += bytes.subarray(at + HEADER_BYTES, at + HEADER_BYTES + length).toString();
    at += HEADER_BYTES + length;
  }
  return out;
}
