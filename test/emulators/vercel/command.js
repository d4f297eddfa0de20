// One command of a session: a real process, its outputs as log lines, and whoever reads them.
// @ts-check
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { constants } from "node:os";
import { StringDecoder } from "node:string_decoder";

import { PipeMaker } from "../fifo.js";
import { bad } from "./errors.js";

/** @typedef {import("./session.js").Session} Session */
/** @typedef {{ stream: "stdout" | "stderr", data: string } | { stream: "error", data: { code: string, message: string } }} Log */
/** @typedef {{ command: string, args: string[], cwd: string, env: Record<string, string>, sudo: boolean, timeout?: number }} CommandSpec */

export class Command {
  id = `cmd_${randomBytes(10).toString("hex")}`;
  /** @type {number | null} */
  exitCode = null;
  /** Cut off: the stream never says how it ended. */
  broken = false;
  startedAt = Date.now();
  /** @type {number | undefined} */
  durationMs;
  /** @type {Log[]} */
  logs = [];
  /** @type {Set<() => void>} */
  #readers = new Set();
  /** @type {import("node:child_process").ChildProcess | undefined} */
  #child;

  /** @param {Session} session @param {CommandSpec} spec */
  constructor(session, spec) {
    this.session = session;
    this.spec = spec;
  }

  /** As replies show it. */
  view() {
    const { command: name, args, cwd } = this.spec;
    const { id, exitCode, durationMs, startedAt } = this;
    return { id, name, args, cwd, sessionId: this.session.id, exitCode, ...(exitCode !== null && { durationMs }), startedAt };
  }

  get ended() {
    return this.exitCode !== null || this.broken;
  }

  /** Starts the process. A program that is not there is a refusal, and nothing has run. */
  async start() {
    const { session, spec } = this;
    const [out, err] = await Promise.all([session.pipes.output(), session.pipes.output()]);
    // Before anything can close them: an end that was missed would be waited for for ever.
    const read = Promise.all([this.#read(out.readable, "stdout"), this.#read(err.readable, "stderr")]);
    const late = session.settings.lateCommand?.(spec) ? ["sh", "-c", 'sleep 1; exec "$@"', "sh"] : [];
    const [program = "", ...args] = [...late, spec.command, ...spec.args];
    const child = spawn(program, args, {
      cwd: spec.cwd,
      env: session.environment(spec.env, spec.sudo),
      stdio: ["ignore", out.childFd, err.childFd],
      detached: true,
    });
    this.#child = child;
    const exited = new Promise((resolve) => child.once("exit", (code, signal) => resolve([code, signal])));
    const started = new Promise((resolve) => {
      child.once("spawn", () => resolve(undefined));
      child.once("error", resolve);
    });
    await PipeMaker.close([out.childFd, err.childFd]);
    const problem = await started;
    if (problem) {
      out.readable.destroy();
      err.readable.destroy();
      throw bad(`Failed to start command: ${problem.code === "ENOENT" ? "no such file or directory" : problem.message}`);
    }
    const timer = spec.timeout && setTimeout(() => this.signal(constants.signals.SIGKILL), spec.timeout);
    void Promise.all([exited, read]).then(([[code, signal]]) => {
      if (timer) clearTimeout(timer);
      if (this.broken) return;
      this.durationMs = Date.now() - this.startedAt;
      this.exitCode = signal ? 128 + constants.signals[/** @type {NodeJS.Signals} */ (signal)] : code;
      this.#tell();
    });
  }

  /**
   * What arrives together is decoded alone: a letter that comes in two parts is lost, as a service may lose it that
   * puts bytes into JSON as they come. With `wholeLetters` it is kept.
   * @param {import("node:net").Socket} readable
   * @param {"stdout" | "stderr"} stream
   */
  async #read(readable, stream) {
    const decoder = this.session.settings.wholeLetters ? new StringDecoder("utf8") : undefined;
    readable.on("data", (bytes) => this.#log({ stream, data: decoder ? decoder.write(bytes) : bytes.toString() }));
    readable.on("error", () => {});
    await once(readable, "close");
  }

  /** @param {Log} log */
  #log(log) {
    this.logs.push(log);
    this.#tell();
  }

  #tell() {
    for (const reader of [...this.#readers]) reader();
  }

  /** Whether a signal was sent to it. */
  get killed() {
    return this.#child?.killed === true;
  }

  /** The process alone, as the service does it. @param {number} number */
  signal(number) {
    try {
      this.#child?.kill(number);
    } catch {
      throw bad(`Invalid signal: ${number}`);
    }
  }

  /** The session is over: with an error line, or without a word. @param {boolean} told */
  breakOff(told) {
    if (this.ended) return;
    this.broken = true;
    if (told) this.logs.push({ stream: "error", data: { code: "sandbox_stopped", message: "Sandbox was stopped" } });
    this.#tell();
  }

  /** Resolves at the next change, or when the signal is aborted. @param {AbortSignal} signal */
  #change(signal) {
    return /** @type {Promise<void>} */ (
      new Promise((resolve) => {
        const done = () => {
          this.#readers.delete(done);
          signal.removeEventListener("abort", done);
          resolve();
        };
        this.#readers.add(done);
        signal.addEventListener("abort", done);
      })
    );
  }

  /** @param {AbortSignal} signal */
  async end(signal) {
    while (!this.ended && !signal.aborted) await this.#change(signal);
  }

  /** Its log lines from the first one on, until it has ended. @param {AbortSignal} signal */
  async *follow(signal) {
    for (let at = 0; !signal.aborted; ) {
      if (at < this.logs.length) yield this.logs[at++];
      else if (this.ended) return;
      else await this.#change(signal);
    }
  }
}
