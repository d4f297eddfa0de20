// multipart/form-data: read part by part while it arrives, and written.
// @ts-check

/**
 * @typedef {object} Part
 * @property {string} name
 * @property {Record<string, string>} headers
 * @property {AsyncGenerator<Buffer, void>} data
 */

/** The body breaks off. The texts are those of Go's reader. */
export class MultipartError extends Error {}

class Source {
  #chunks;
  #bytes = Buffer.alloc(0);
  /** The end of the part that is being read. @type {Buffer | undefined} */
  #mark;

  /** @param {AsyncIterable<Buffer>} chunks */
  constructor(chunks) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  async #more() {
    const { value, done } = await this.#chunks.next();
    if (done) throw new MultipartError("unexpected EOF");
    this.#bytes = Buffer.concat([this.#bytes, value]);
  }

  /** @param {number} count */
  async take(count) {
    while (this.#bytes.length < count) await this.#more();
    const taken = this.#bytes.subarray(0, count);
    this.#bytes = this.#bytes.subarray(count);
    return taken;
  }

  /** What comes before the mark, in pieces; the mark itself is taken away. @param {Buffer} mark */
  until(mark) {
    this.#mark = mark;
    return this.#pieces(mark);
  }

  /** Goes to the mark, if it has not been reached. */
  async skip() {
    if (this.#mark) await collect(this.#pieces(this.#mark));
  }

  /** @param {Buffer} mark @returns {AsyncGenerator<Buffer, void>} */
  async *#pieces(mark) {
    for (;;) {
      const at = this.#bytes.indexOf(mark);
      if (at >= 0) {
        if (at > 0) yield await this.take(at);
        await this.take(mark.length);
        this.#mark = undefined;
        return;
      }
      const safe = this.#bytes.length - mark.length + 1;
      if (safe > 0) yield await this.take(safe);
      await this.#more();
    }
  }
}

/** @param {AsyncIterable<Buffer>} pieces */
export async function collect(pieces) {
  const all = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all);
}

/** @param {string | undefined} contentType */
export function boundaryOf(contentType = "") {
  if (!/^multipart\/form-data\s*;/i.test(contentType)) return undefined;
  const match = contentType.match(/boundary=(?:"([^"]+)"|([^;\s]+))/i);
  return match?.[1] ?? match?.[2];
}

/**
 * @param {AsyncIterable<Buffer>} chunks
 * @param {string} boundary
 * @returns {AsyncGenerator<Part, void>}
 */
export async function* readParts(chunks, boundary) {
  const source = new Source(chunks);
  await collect(source.until(Buffer.from(`--${boundary}`)));
  for (;;) {
    const after = (await source.take(2)).toString();
    if (after === "--") return;
    if (after !== "\r\n") throw new MultipartError("expecting a new Part");
    const head = (await collect(source.until(Buffer.from("\r\n\r\n")))).toString();
    const headers = Object.fromEntries(
      head.split("\r\n").map((line) => {
        const colon = line.indexOf(":");
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
      }),
    );
    const name = headers["content-disposition"]?.match(/[;\s]name="((?:[^"\\]|\\.)*)"/)?.[1] ?? "";
    const data = source.until(Buffer.from(`\r\n--${boundary}`));
    yield { name, headers, data };
    await source.skip();
  }
}

/**
 * A file's name in a header: Latin-1 for the old parameter, percent-encoded UTF-8 for the new one.
 * @param {string} field
 * @param {string} filename
 */
export function disposition(field, filename) {
  const latin = filename.replace(/[^\x20-\xff]/g, "_").replace(/["\\]/g, "\\$&");
  const encoded = encodeURIComponent(filename).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `form-data; name="${field}"; filename="${latin}"; filename*=utf-8''${encoded}`;
}
