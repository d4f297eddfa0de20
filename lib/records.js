// Keeping records: as lines of JSON in a file, and read again from there; or handed to a function.
import { RECORD_TYPES, askForContents, channels, contentsOf } from "./events.js";
import { checkFunction, checkInteger, checkNames, checkString } from "./options.js";

const { closeSync, openSync, readSync, fstatSync, writeSync } = process.getBuiltinModule("node:fs");
const { open } = process.getBuiltinModule("node:fs").promises;

/** @import { RecordToOptions, SandboxRecord } from "../types/records.js" */

export { RECORD_TYPES };

/** Of the first line of each recording. */
const FORMAT = 1;
const RECORD_OPTIONS = ["commandBytes", "outputBytes", "redact"];
const MAX_CONTENT_BYTES = 1024 * 1024;
/** A file of outputs is nobody else's business. */
const MODE = 0o600;
const NEWLINE = 10;

/**
 * Calls `listener` with every record, as it happens, until the function that it returns is called.
 *
 * @param {(record: SandboxRecord) => void} listener
 * @returns {() => void}
 */
export function onRecord(listener) {
  checkFunction(listener, "listener");
  const call = (/** @type {unknown} */ record) => listener(/** @type {SandboxRecord} */ (record));
  for (const one of channels.values()) one.subscribe(call);
  return () => {
    for (const one of channels.values()) one.unsubscribe(call);
  };
}

/**
 * Appends every record to a file, one line of JSON each. A line is handed to the system whole, before the call
 * that caused it goes on, so a process that crashes loses none.
 *
 * @param {string} file made when it is not there, for its owner only
 * @param {RecordToOptions} [options]
 */
export function recordTo(file, options) {
  return new Recording(checkString(file, "file"), checkOptions(options));
}

/** @param {RecordToOptions} [options] */
function checkOptions(options) {
  const { commandBytes = 0, outputBytes = 0, redact } = checkNames(options, RECORD_OPTIONS, "recordTo");
  return {
    commandBytes: checkInteger(commandBytes, "commandBytes", 0, MAX_CONTENT_BYTES),
    outputBytes: checkInteger(outputBytes, "outputBytes", 0, MAX_CONTENT_BYTES),
    redact: redact === undefined ? undefined : checkFunction(redact, "redact"),
  };
}

/** What recordTo() gives. */
class Recording {
  #file;
  #options;
  /** @type {number | undefined} */
  #descriptor;
  #written = 0;
  #missed = 0;
  /** Whether the file may end inside a line. */
  #torn = false;
  #stops;

  /** @param {string} file @param {ReturnType<typeof checkOptions>} options */
  constructor(file, options) {
    this.#file = file;
    this.#options = options;
    this.#descriptor = openSync(file, "a+", MODE);
    try {
      this.#torn = !endsWithLine(this.#descriptor);
      this.#write({ type: "recording", at: Date.now(), format: FORMAT, pid: process.pid });
    } catch (error) {
      closeSync(this.#descriptor);
      throw error;
    }
    this.#written = 0;
    this.#stops = [onRecord((record) => this.#add(record))];
    if (options.commandBytes > 0 || options.outputBytes > 0) this.#stops.push(askForContents());
  }

  get file() {
    return this.#file;
  }

  /** How many records were written. */
  get written() {
    return this.#written;
  }

  /** How many could not be written. */
  get missed() {
    return this.#missed;
  }

  /** Ends it. May be called again. */
  stop() {
    if (this.#descriptor === undefined) return;
    for (const stop of this.#stops) stop();
    closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  [Symbol.dispose ?? Symbol.for("nodejs.dispose")]() {
    this.stop();
  }

  /** @param {SandboxRecord} record */
  #add(record) {
    const { commandBytes, outputBytes, redact } = this.#options;
    const { command, output } = contentsOf(record) ?? {};
    try {
      const contents = { ...headOf("command", command, commandBytes, redact), ...headOf("output", output, outputBytes, redact) };
      this.#write({ ...record, ...contents });
    } catch (error) {
      this.#miss(error);
    }
  }

  /** @param {Record<string, unknown>} record */
  #write(record) {
    if (this.#descriptor === undefined) return;
    const line = Buffer.from(`${this.#torn ? "\n" : ""}${JSON.stringify(record)}\n`);
    this.#torn = true;
    for (let at = 0; at < line.length; ) at += writeSync(this.#descriptor, line, at);
    this.#torn = false;
    this.#written += 1;
  }

  /** What was to be recorded has happened all the same: its caller is not told, the process is, once. @param {any} error */
  #miss(error) {
    this.#missed += 1;
    if (this.#missed > 1) return;
    process.emitWarning(`recordTo: a record could not be written to ${this.#file} (${error?.code ?? error?.message})`, {
      type: "SandboxWarning",
      code: "CLOUDSANDBOX_RECORD_MISSED",
    });
  }
}

/**
 * The first bytes of a text under its name, and whether there are more.
 *
 * @param {"command" | "output"} name
 * @param {string | undefined} text
 * @param {number} bytes
 * @param {((text: string) => string) | undefined} redact
 */
function headOf(name, text, bytes, redact) {
  if (text === undefined || bytes === 0) return {};
  // First all of it: a secret that stands across the cut would not be known by its head.
  const shown = Buffer.from(redact ? String(redact(text)) : text);
  if (shown.length <= bytes) return { [name]: shown.toString() };
  let end = bytes;
  while (end > 0 && (shown[end] & 0xc0) === 0x80) end -= 1;
  return { [name]: shown.toString("utf8", 0, end), [`${name}Cut`]: true };
}

/** Whether a line may be added: a crash may have left a part of one. @param {number} descriptor */
function endsWithLine(descriptor) {
  const { size } = fstatSync(descriptor);
  if (size === 0) return true;
  const last = Buffer.alloc(1);
  return readSync(descriptor, last, 0, 1, size - 1) === 1 && last[0] === NEWLINE;
}

/**
 * What recordTo() has written, by whichever processes. Lines that a crash has cut short are left out and counted.
 *
 * @param {string} file
 * @returns {Promise<{ records: SandboxRecord[], damaged: number }>}
 */
export async function readRecords(file) {
  const handle = await open(checkString(file, "file"));
  /** @type {SandboxRecord[]} */
  const records = [];
  let damaged = 0;
  try {
    for await (const line of handle.readLines()) {
      const record = line === "" ? undefined : parsed(line);
      if (record === null) damaged += 1;
      else if (record) records.push(record);
    }
  } finally {
    await handle.close().catch(() => {});
  }
  return { records, damaged };
}

/** @param {string} line @returns {SandboxRecord | null} */
function parsed(line) {
  try {
    const value = JSON.parse(line);
    return typeof value?.type === "string" && typeof value.at === "number" ? value : null;
  } catch {
    return null;
  }
}
