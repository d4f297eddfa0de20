// Writes tar archives, which GNU tar, BusyBox and bsdtar read alike: ustar headers, and GNU's for long names.

const BLOCK = 512;
const NAME_BYTES = 100;
const TYPES = { file: "0", link: "2", folder: "5", longTarget: "K", longName: "L" };

/** An archive that is being filled. */
export class Archive {
  /** @type {Uint8Array[]} */
  #parts = [];
  #size = 0;

  /** How many bytes it has by now. */
  get size() {
    return this.#size;
  }

  /** @param {{ path: string, mode: number, mtimeMs: number }} file @param {Uint8Array} bytes */
  file({ path, mode, mtimeMs }, bytes) {
    this.#header(path, { type: TYPES.file, mode, mtimeMs, size: bytes.length });
    this.#add(bytes);
    this.#add(Buffer.alloc(-bytes.length & (BLOCK - 1)));
  }

  /** @param {{ path: string, mode: number, mtimeMs: number }} folder */
  folder({ path, mode, mtimeMs }) {
    // Without these its own files could not be made in it.
    this.#header(`${path}/`, { type: TYPES.folder, mode: mode | 0o700, mtimeMs, size: 0 });
  }

  /** @param {{ path: string, target: string, mtimeMs: number }} link */
  link({ path, target, mtimeMs }) {
    this.#header(path, { type: TYPES.link, mode: 0o777, mtimeMs, size: 0, target });
  }

  /** The whole of it. */
  end() {
    return Buffer.concat([...this.#parts, Buffer.alloc(2 * BLOCK)]);
  }

  /** @param {string} path @param {{ type: string, mode: number, mtimeMs: number, size: number, target?: string }} entry */
  #header(path, { type, mode, mtimeMs, size, target = "" }) {
    // As a path of its own: no name is taken for an option, nor for a path that begins elsewhere.
    const name = Buffer.from(`./${path}`);
    const to = Buffer.from(target);
    if (to.length > NAME_BYTES) this.#long(TYPES.longTarget, to);
    if (name.length > NAME_BYTES) this.#long(TYPES.longName, name);
    this.#add(block({ name, type, mode, mtime: Math.max(0, Math.floor(mtimeMs / 1000)), size, to }));
  }

  /** @param {string} type @param {Buffer} text */
  #long(type, text) {
    const bytes = Buffer.concat([text, Buffer.alloc(1)]);
    this.#add(block({ name: Buffer.from("././@LongLink"), type, mode: 0, mtime: 0, size: bytes.length, to: Buffer.alloc(0) }));
    this.#add(bytes);
    this.#add(Buffer.alloc(-bytes.length & (BLOCK - 1)));
  }

  /** @param {Uint8Array} bytes */
  #add(bytes) {
    this.#parts.push(bytes);
    this.#size += bytes.length;
  }
}

/** @param {{ name: Buffer, type: string, mode: number, mtime: number, size: number, to: Buffer }} entry */
function block({ name, type, mode, mtime, size, to }) {
  const header = Buffer.alloc(BLOCK);
  name.copy(header, 0, 0, NAME_BYTES);
  header.write(octal(mode, 7), 100);
  header.write(octal(0, 7), 108);
  header.write(octal(0, 7), 116);
  header.write(octal(size, 11), 124);
  header.write(octal(mtime, 11), 136);
  header.fill(" ", 148, 156);
  header.write(type, 156);
  to.copy(header, 157, 0, NAME_BYTES);
  // With GNU's mark, since its long names are only known with that one.
  header.write("ustar  \0", 257, "latin1");
  header.write(`${octal(header.reduce((sum, byte) => sum + byte, 0), 6)}\0 `, 148);
  return header;
}

/** @param {number} value @param {number} digits */
function octal(value, digits) {
  return value.toString(8).padStart(digits, "0");
}
