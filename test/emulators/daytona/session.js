// Sessions: a shell that lives on between commands. Each command's text is written to a file that the shell
// sources, with named pipes as its outputs; whatever comes out of them is marked line by line and kept.
// A command is over when its status is written and both pipes have been closed; if it ends the shell itself,
// that never happens.
// @ts-check
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { EventEmitter } from "node:events";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { PipeMaker } from "../fifo.js";
import { DaemonError } from "./errors.js";
import { family, findShell, isRunning, signalGroup, signalProcess, started } from "./shell.js";

/** @typedef {import("./sandbox.js").Sandbox} Sandbox */

export const STDOUT_MARK = Buffer.from([1, 1, 1]);
export const STDERR_MARK = Buffer.from([2, 2, 2]);
const NEWLINE = Buffer.from("\n");

const quoted = (/** @type {string} */ name) => `'${name.replace(/'/g, "'\\''")}'`;
const pause = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Marks whole lines, and drops the NUL bytes that a shell's `read` drops. */
class Labeler {
  #mark;
  #rest = Buffer.alloc(0);

  /** @param {Buffer} mark */
  constructor(mark) {
    this.#mark = mark;
  }

  /** @param {Buffer} chunk */
  lines(chunk) {
    const bytes = Buffer.concat([this.#rest, chunk.filter((byte) => byte !== 0)]);
    const end = bytes.lastIndexOf(NEWLINE) + 1;
    this.#rest = bytes.subarray(end);
    return end > 0 ? this.#label(bytes.subarray(0, end)) : Buffer.alloc(0);
  }

  /** The last line, ended if it was not. */
  last() {
    return this.#rest.length > 0 ? this.#label(Buffer.concat([this.#rest, NEWLINE])) : Buffer.alloc(0);
  }

  /** @param {Buffer} lines */
  #label(lines) {
    const parts = [];
    for (let at = 0; at < lines.length;) {
      const next = lines.indexOf(NEWLINE, at) + 1;
      parts.push(this.#mark, lines.subarray(at, next));
      at = next;
    }
    return Buffer.concat(parts);
  }
}

export class Command extends EventEmitter {
  id = randomUUID();
  /** @type {number | undefined} */
  exitCode;
  /** @type {Buffer[]} */
  #log = [];
  /** @type {import("node:net").Socket | undefined} */
  #stdin;
  /** Resolves with the exit code. @type {Promise<number>} */
  done;
  #setDone = (/** @type {number} */ _exitCode) => {};

  /**
   * @param {string} text
   * @param {string} directory
   * @param {boolean} echo whether input shows in the log
   */
  constructor(text, directory, echo) {
    super();
    this.text = text;
    this.directory = path.join(directory, this.id);
    this.echo = echo;
    this.done = new Promise((resolve) => (this.#setDone = resolve));
    this.setMaxListeners(0);
  }

  get log() {
    return Buffer.concat(this.#log);
  }

  get description() {
    const { id, text, exitCode } = this;
    return { id, command: text, ...(exitCode === undefined ? {} : { exitCode }) };
  }

  /** @param {string} name */
  file(name) {
    return path.join(this.directory, name);
  }

  /**
   * Makes its files.
   * @param {Sandbox} sandbox
   * @param {boolean} keepsInput whether standard input stays open
   */
  async prepare({ pipes }, keepsInput) {
    await mkdir(this.directory, { recursive: true });
    await writeFile(this.file("cmd.sh"), this.text, { mode: 0o600 });
    /** @type {{ holdFd: number, readable: import("node:net").Socket }[]} */
    const outputs = [];
    try {
      for (const name of ["stdout.pipe", "stderr.pipe"]) outputs.push(await pipes.outputAt(this.file(name)));
      if (keepsInput) this.#stdin = await pipes.inputAt(this.file("input.pipe"));
    } catch (error) {
      for (const { readable } of outputs) readable.destroy();
      await PipeMaker.close(outputs.map(({ holdFd }) => holdFd));
      throw error;
    }
    this.#stdin?.on("error", () => {});
    const ends = outputs.map(({ readable }, i) => this.#follow(readable, i === 0 ? STDOUT_MARK : STDERR_MARK));
    return { holdFds: outputs.map(({ holdFd }) => holdFd), drained: Promise.all(ends) };
  }

  /** What the session's shell is told. @param {boolean} keepsInput */
  line(keepsInput) {
    const input = keepsInput ? quoted(this.file("input.pipe")) : "/dev/null";
    const outputs = `> ${quoted(this.file("stdout.pipe"))} 2> ${quoted(this.file("stderr.pipe"))}`;
    return `{ . ${quoted(this.file("cmd.sh"))}; } < ${input} ${outputs}; echo "$?" > ${quoted(this.file("status"))}\n`;
  }

  /** The status, if the shell has written it. */
  async status() {
    const text = await readFile(this.file("status"), "utf8").catch(() => "");
    return text.endsWith("\n") ? Number(text) : undefined;
  }

  /** @param {number} exitCode */
  finish(exitCode) {
    this.#stdin?.destroy();
    this.#stdin = undefined;
    this.exitCode = exitCode;
    this.emit("end");
    this.#setDone(exitCode);
  }

  abandon() {
    this.#stdin?.destroy();
    this.#stdin = undefined;
    this.emit("end");
  }

  /** @param {string} data */
  async input(data) {
    const stdin = this.#stdin;
    if (!stdin) throw new DaemonError(500, "failed to open input pipe: no such file or directory");
    const bytes = Buffer.from(data.endsWith("\n") ? data : `${data}\n`);
    await new Promise((resolve) => stdin.write(bytes, resolve));
    if (this.echo) this.#append(Buffer.concat([STDOUT_MARK, bytes]));
  }

  /**
   * @param {import("node:net").Socket} readable
   * @param {Buffer} mark
   */
  #follow(readable, mark) {
    const labeler = new Labeler(mark);
    readable.on("error", () => {});
    readable.on("data", (chunk) => this.#append(labeler.lines(chunk)));
    return /** @type {Promise<void>} */ (
      new Promise((resolve) => {
        readable.once("close", () => {
          this.#append(labeler.last());
          resolve();
        });
      })
    );
  }

  /** @param {Buffer} bytes */
  #append(bytes) {
    if (bytes.length === 0) return;
    this.#log.push(bytes);
    this.emit("output", bytes);
  }
}

export class Session {
  /** @type {Map<string, Command>} */
  commands = new Map();
  exited = false;
  /** Resolves when the session has been deleted, or its sandbox is gone. @type {Promise<void>} */
  cancelled;
  #cancel = () => {};
  #gone = false;
  #child;
  #stdin;
  /** The command before the next one. @type {Promise<unknown>} */
  #tail = Promise.resolve();

  /**
   * @param {Sandbox} sandbox
   * @param {string} id
   * @param {string} directory
   * @param {import("node:child_process").ChildProcess} child
   * @param {import("node:net").Socket} stdin
   */
  constructor(sandbox, id, directory, child, stdin) {
    this.sandbox = sandbox;
    this.id = id;
    this.directory = directory;
    this.#child = child;
    this.#stdin = stdin;
    this.pid = /** @type {number} */ (child.pid);
    this.cancelled = new Promise((resolve) => (this.#cancel = resolve));
    stdin.on("error", () => {});
    child.once("exit", () => (this.exited = true));
    if (child.exitCode !== null || child.signalCode !== null) this.exited = true;
  }

  /**
   * @param {Sandbox} sandbox
   * @param {string} id
   */
  static async open(sandbox, id) {
    const directory = path.join(sandbox.home, ".daytona", "sessions", encodeURIComponent(id));
    await mkdir(directory, { recursive: true });
    const stdin = await sandbox.pipes.input();
    try {
      const child = spawn(findShell(sandbox), [], {
        cwd: sandbox.workDir,
        env: sandbox.environment(),
        detached: true,
        stdio: [stdin.childFd, "ignore", "ignore"],
      });
      await started(sandbox, child);
      return new Session(sandbox, id, directory, child, stdin.writable);
    } catch (error) {
      stdin.writable.destroy();
      throw error;
    } finally {
      await PipeMaker.close([stdin.childFd]);
    }
  }

  get description() {
    return { sessionId: this.id, commands: [...this.commands.values()].map(({ description }) => description) };
  }

  /**
   * Hands a command to the shell, which takes it when it is through with those before.
   * @param {string} text
   * @param {{ keepsInput: boolean, echo: boolean }} options
   */
  async execute(text, { keepsInput, echo }) {
    const command = new Command(text, this.directory, echo);
    this.commands.set(command.id, command);
    // Its turn is that of its arrival, however long the preparation takes.
    const prepared = command.prepare(this.sandbox, keepsInput);
    const ready = prepared.catch(() => undefined);
    this.#tail = Promise.all([ready, this.#tail]).then(
      ([pipes]) => pipes && this.#perform(command, keepsInput, pipes.holdFds, pipes.drained),
    );
    await prepared;
    return command;
  }

  /**
   * @param {Command} command
   * @param {boolean} keepsInput
   * @param {number[]} holdFds
   * @param {Promise<unknown>} drained
   */
  async #perform(command, keepsInput, holdFds, drained) {
    this.#stdin.write(command.line(keepsInput));
    let status;
    while (!this.#gone) {
      // Looked at before the status, which the shell writes before it may end.
      const { exited } = this;
      status = await command.status();
      if (status !== undefined || exited) break;
      await pause(this.sandbox.settings.sessionPollMs);
    }
    await PipeMaker.close(holdFds);
    await Promise.race([drained, this.cancelled]);
    if (status !== undefined && !this.#gone) command.finish(status);
    else await this.cancelled.then(() => command.abandon());
  }

  /** SIGTERM to all of it, time to obey, SIGKILL. */
  async delete() {
    const { sessions, settings } = this.sandbox;
    const members = new Set(family(this.sandbox, this.pid));
    const signal = (/** @type {NodeJS.Signals} */ name) => {
      this.#child.kill(name);
      signalGroup(this.sandbox, this.pid, name);
      for (const pid of members) signalProcess(pid, name);
    };
    signal("SIGTERM");
    const until = Date.now() + settings.sessionGraceMs;
    while ([...members].some(isRunning) && Date.now() < until) {
      await pause(10);
      for (const pid of family(this.sandbox, this.pid)) members.add(pid);
    }
    signal("SIGKILL");
    this.forget();
    await rm(this.directory, { recursive: true, force: true, maxRetries: 3 });
    sessions.delete(this.id);
  }

  /** Stops waiting for anything; what runs is ended by others. */
  forget() {
    this.#gone = true;
    this.#cancel();
    this.#stdin.destroy();
  }
}
