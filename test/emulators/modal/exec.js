// One exec of a sandbox: a real process, what it has printed from its first byte on, and its input.
// @ts-check
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { constants } from "node:os";
import path from "node:path";

import { PipeMaker } from "../fifo.js";
import { signalMarked } from "../processes.js";
import { GrpcError } from "./grpc.js";

/** @typedef {import("./fleet.js").Sandbox} Sandbox */
/** @typedef {{ args: string[], stdout: number, stderr: number, timeoutSecs?: number, workdir?: string, env: Record<string, string> }} ExecSpec */

const HELPER = "/__modal/.bin/modal-sandbox-fs-tools";
const PIECE = 64 * 1024;

/** An output: all of it, and whether more comes. */
class Output {
  /** @type {Buffer[]} */
  pieces = [];
  length = 0;
  ended = false;

  /** @param {Buffer} bytes */
  add(bytes) {
    this.pieces.push(bytes);
    this.length += bytes.length;
  }
}

export class Exec {
  /** @type {{ code?: number, signal?: number } | undefined} */
  end;
  outputs = [new Output(), new Output()];
  /** @type {Set<() => void>} */
  #watchers = new Set();
  /** @type {import("node:child_process").ChildProcess | undefined} */
  #child;
  /** @type {import("node:net").Socket | undefined} */
  #input;
  #written = 0;
  #inputEnded = false;

  /** @param {Sandbox} sandbox @param {ExecSpec} spec */
  constructor(sandbox, spec) {
    this.sandbox = sandbox;
    this.spec = spec;
  }

  /** Resolves when the process runs. */
  async start() {
    const { sandbox, spec } = this;
    const { pipes } = sandbox;
    const [input, out, err] = await Promise.all([pipes.input(), pipes.output(), pipes.output()]);
    const merged = spec.stderr === 2;
    this.#input = input.writable;
    input.writable.on("error", () => (this.#inputEnded = true));
    this.#read(out.readable, 0);
    this.#read(err.readable, 1);
    const [command, ...args] = spec.args[0] === HELPER ? [process.execPath, path.join(import.meta.dirname, "fstools.js"), ...spec.args.slice(1)] : spec.args;
    const cwd = spec.workdir ?? sandbox.workdir;
    const child = spawn(command, args, {
      cwd,
      env: sandbox.environment(spec.env),
      stdio: [input.childFd, out.childFd, merged ? out.childFd : err.childFd],
      detached: true,
    });
    this.#child = child;
    const exited = new Promise((resolve) => child.once("exit", (code, signal) => resolve([code, signal])));
    const problem = await new Promise((resolve) => {
      child.once("spawn", () => resolve(undefined));
      child.once("error", resolve);
    });
    await PipeMaker.close([input.childFd, out.childFd, err.childFd]);
    if (problem) {
      for (const { readable } of [out, err]) readable.destroy();
      input.writable.destroy();
      const where = existsSync(cwd) ? `${command}: ${problem.message}` : `working directory ${cwd} does not exist`;
      throw new GrpcError(existsSync(cwd) ? "NOT_FOUND" : "INVALID_ARGUMENT", where);
    }
    const timer = spec.timeoutSecs && setTimeout(() => this.kill(), spec.timeoutSecs * 1000);
    void exited.then(([code, signal]) => {
      if (timer) clearTimeout(timer);
      this.end = signal ? { signal: constants.signals[/** @type {NodeJS.Signals} */ (signal)] } : { code };
      if (this.sandbox.settings.closesOutputs) void this.#closeEmpty([out.readable, err.readable]);
      this.#tell();
    });
  }

  /**
   * Once nothing is in them any more. What an ended process has printed is in the pipes already, however late this process
   * comes to look: two whole turns of its loop without a byte, each of which looks at every pipe.
   * @param {import("node:net").Socket[]} outputs
   */
  async #closeEmpty(outputs) {
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    const arrived = () => outputs.reduce((sum, { bytesRead }) => sum + bytesRead, 0);
    let seen = arrived();
    for (let quiet = 0; quiet < 2; ) {
      await turn();
      quiet = arrived() === seen ? quiet + 1 : 0;
      seen = arrived();
    }
    for (const output of outputs) output.destroy();
  }

  /** @param {import("node:net").Socket} readable @param {0 | 1} fd */
  #read(readable, fd) {
    const output = this.outputs[fd];
    const keep = [this.spec.stdout, this.spec.stderr === 2 ? 1 : this.spec.stderr][fd] !== 0;
    readable.on("data", (bytes) => {
      if (keep) output.add(bytes);
      this.#tell();
    });
    readable.on("error", () => {});
    readable.on("close", () => {
      output.ended = true;
      this.#tell();
    });
  }

  /** With what it has started, as far as that stayed in its group. */
  kill() {
    try {
      if (this.#child?.pid) process.kill(-this.#child.pid, "SIGKILL");
    } catch {
      // Gone meanwhile.
    }
  }

  #tell() {
    for (const watcher of [...this.#watchers]) watcher();
  }

  /** Its sandbox is over. */
  breakOff() {
    for (const output of this.outputs) output.ended = true;
    this.end ??= { signal: constants.signals.SIGKILL };
    this.#input?.destroy();
    this.#tell();
  }

  /** @param {AbortSignal} signal @param {number} [ms] */
  #change(signal, ms) {
    return /** @type {Promise<void>} */ (
      new Promise((resolve) => {
        const timer = ms === undefined ? undefined : setTimeout(() => done(), ms);
        const done = () => {
          clearTimeout(timer);
          this.#watchers.delete(done);
          signal.removeEventListener("abort", done);
          resolve();
        };
        this.#watchers.add(done);
        signal.addEventListener("abort", done);
      })
    );
  }

  /** What an output has from `offset` on, until it ends. @param {number} offset @param {number} fd @param {AbortSignal} signal */
  async *follow(offset, fd, signal) {
    const output = this.outputs[fd];
    let [index, before] = [0, 0];
    while (!signal.aborted) {
      if (index < output.pieces.length) {
        const piece = output.pieces[index++];
        const data = piece.subarray(Math.max(0, offset - before));
        before += piece.length;
        for (let at = 0; at < data.length; at += PIECE) yield { data: data.subarray(at, at + PIECE) };
      } else if (output.ended) return;
      else await this.#change(signal);
    }
  }

  /** @param {AbortSignal} signal */
  async wait(signal) {
    while (!this.end && !signal.aborted) await this.#change(signal);
    return this.end ?? {};
  }

  get inputStatus() {
    return { written: this.#written, closed: this.#inputEnded };
  }

  /** Bytes that were written before are dropped. @param {number} offset @param {Buffer} data @param {boolean} eof */
  async write(offset, data, eof) {
    if (offset > this.#written) throw new GrpcError("OUT_OF_RANGE", `offset ${offset} is behind ${this.#written}`);
    const fresh = data.subarray(this.#written - offset);
    if (fresh.length > 0 && (this.#inputEnded || this.end)) throw new GrpcError("FAILED_PRECONDITION", "stdin is closed");
    this.#written += fresh.length;
    const input = /** @type {import("node:net").Socket} */ (this.#input);
    if (fresh.length > 0) {
      await new Promise((resolve) => input.write(fresh, resolve));
      if (this.#inputEnded) throw new GrpcError("FAILED_PRECONDITION", "stdin is closed");
    }
    if (eof) {
      this.#inputEnded = true;
      input.end();
    }
  }
}

/** Ends all that was started in a sandbox. @param {Sandbox} sandbox */
export function endProcesses(sandbox) {
  signalMarked(sandbox.marker, "SIGKILL", sandbox.directory);
}
