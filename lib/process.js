// A command that runs: what spawn() gives. Loaded by the first one.
//
// Invariant: what is written reaches the command in the order of the calls, a part at a time: one is sent when the sandbox has taken
// the one before.
import { SandboxError } from "./errors.js";
import { asyncDispose, checkContents, checkString, checkTtySize, detached } from "./options.js";
import { Turns } from "./turns.js";

/** @import { ExecResult } from "../types/index.js" */

/** Bytes that are on their way at once: what is kept of them beside the caller's own. */
const PART_BYTES = 1024 * 1024;

/**
 * @typedef {object} Running a command, while it runs
 * @property {(bytes: Uint8Array) => Promise<void>} write resolves when the sandbox has taken them
 * @property {() => Promise<void>} end
 * @property {(name: string) => Promise<void>} signal
 * @property {(size: { columns: number, rows: number }) => Promise<void>} resize
 */

/** @implements {AsyncDisposable} */
export class Process {
  #running;
  /** @type {Promise<ExecResult<any>>} */
  #ended;
  #turns = new Turns();
  /** @type {Promise<void> | undefined} */
  #ending;
  /** @type {WritableStream<Uint8Array | string> | undefined} */
  #stdin;

  /** @param {Promise<ExecResult<any>>} ended @param {Running} running */
  constructor(ended, running) {
    this.#ended = ended;
    this.#running = running;
  }

  /** Standard input as a web stream; to close it ends the input, to abort it does the same. */
  get stdin() {
    if (!isProcess(this)) throw detached("stdin", "process");
    this.#stdin ??= new WritableStream({
      write: (chunk) => this.write(chunk),
      close: () => this.end(),
      abort: () => this.end().catch(() => {}),
    });
    return this.#stdin;
  }

  /**
   * Writes to the standard input, behind what was written before.
   *
   * @param {string | Uint8Array} data
   * @returns {Promise<void>} resolves when all of it was taken, which happens as the command reads
   */
  async write(data) {
    if (!isProcess(this)) throw detached("write", "process");
    const bytes = checkContents(data, "data");
    return this.#turns.next(async () => {
      for (let at = 0; at < bytes.length; at += PART_BYTES) await this.#running.write(bytes.subarray(at, at + PART_BYTES));
    });
  }

  /**
   * Ends the standard input, behind what was written before; of a command that has ended, and a second time, it does nothing.
   *
   * @param {string | Uint8Array} [data] written before
   * @returns {Promise<void>}
   */
  async end(data) {
    if (!isProcess(this)) throw detached("end", "process");
    const written = data === undefined ? undefined : this.write(data);
    this.#ending ??= this.#turns.next(() => this.#running.end()).catch(unlessEnded);
    await Promise.all([written, this.#ending]);
  }

  /**
   * Sends a signal to the command and what it has started; SIGKILL ends the whole process tree.
   *
   * @param {string} [signal]
   * @returns {Promise<boolean>} false when it had ended before
   */
  async kill(signal = "SIGTERM") {
    if (!isProcess(this)) throw detached("kill", "process");
    checkString(signal, "signal");
    return whileItRuns(this.#running.signal(signal));
  }

  /**
   * Gives its terminal another size, of which it is told with SIGWINCH. Rejects with ERR_SANDBOX_INVALID_ARG when it has none.
   *
   * @param {{ columns: number, rows: number }} size
   * @returns {Promise<boolean>} false when it had ended before
   */
  async resize(size) {
    if (!isProcess(this)) throw detached("resize", "process");
    return whileItRuns(this.#running.resize(checkTtySize(size, "size")));
  }

  /**
   * What became of it, as exec() tells it; rejects as exec() does.
   *
   * @returns {Promise<ExecResult<any>>}
   */
  async wait() {
    if (!isProcess(this)) throw detached("wait", "process");
    return this.#ended;
  }

  /** Ends it, if it still runs. */
  async [asyncDispose]() {
    await this.kill("SIGKILL");
    await this.#ended.catch(() => {});
  }

  /** @param {unknown} value */
  static is(value) {
    return typeof value === "object" && value !== null && #running in value;
  }
}

const isProcess = Process.is;

/** @param {Promise<void>} given @returns {Promise<boolean>} false: it had ended before */
async function whileItRuns(given) {
  try {
    await given;
    return true;
  } catch (error) {
    unlessEnded(error);
    return false;
  }
}

/** @param {unknown} error */
function unlessEnded(error) {
  if (!(error instanceof SandboxError && error.code === "ERR_SANDBOX_CLOSED")) throw error;
}
