// envd's Process service: real processes, watched by any number of streams. As in the real daemon, a
// stream that goes away does not end its process, a signal reaches the leader only, and the end comes
// when both output pipes have closed.
// @ts-check
import { spawn } from "node:child_process";
import { statSync } from "node:fs";
import os from "node:os";
import { ConnectError, boolField, bytesField, connectTimeout, omitZero, onlyMessage, stringField, uintField } from "./connect.js";
import { PipeMaker } from "../fifo.js";
import { goReason } from "../go.js";
import { PathError, resolvePath } from "./paths.js";

/** @typedef {import("./sandbox.js").Sandbox} Sandbox */
/** @typedef {import("./connect.js").Stream} Stream */
/** @typedef {import("../exchange.js").Exchange} Exchange */

const OUTPUT_CHUNK = 32 << 10;
const DEFAULT_KEEPALIVE_SECONDS = 90;
// The real daemon starts everything through this shell; it is why a missing program is exit code 127.
const WRAPPER = '{ echo 100 > /proc/$$/oom_score_adj; } 2>/dev/null; exec "${@}"';
const SIGNALS = /** @type {Record<string, NodeJS.Signals>} */ ({
  SIGNAL_SIGTERM: "SIGTERM",
  15: "SIGTERM",
  SIGNAL_SIGKILL: "SIGKILL",
  9: "SIGKILL",
});
/** How Go names them. */
const SIGNAL_TEXT = /** @type {Record<string, string>} */ ({
  SIGHUP: "hangup",
  SIGINT: "interrupt",
  SIGQUIT: "quit",
  SIGILL: "illegal instruction",
  SIGTRAP: "trace/breakpoint trap",
  SIGABRT: "aborted",
  SIGBUS: "bus error",
  SIGFPE: "floating point exception",
  SIGKILL: "killed",
  SIGUSR1: "user defined signal 1",
  SIGSEGV: "segmentation fault",
  SIGUSR2: "user defined signal 2",
  SIGPIPE: "broken pipe",
  SIGALRM: "alarm clock",
  SIGTERM: "terminated",
});

/**
 * @typedef {object} ProcessConfig
 * @property {string} cmd
 * @property {string[]} args
 * @property {Record<string, string>} envs
 * @property {string | undefined} cwd
 */

/** Passes once, unless it is cancelled. */
class Deadline {
  /** @type {Promise<Deadline>} */
  passed;
  /** @type {NodeJS.Timeout | undefined} */
  #timer;

  /** @param {number | undefined} milliseconds never when left out @param {() => void} [then] what is done once it has passed */
  constructor(milliseconds, then) {
    this.passed = new Promise((resolve) => {
      if (!milliseconds) return;
      this.#timer = setTimeout(() => {
        resolve(this);
        then?.();
      }, milliseconds);
    });
  }

  cancel() {
    clearTimeout(this.#timer);
  }
}

/** A stream that gets a process's events, with keepalives while there are none. */
class Subscriber {
  #stream;
  #interval;
  /** @type {NodeJS.Timeout | undefined} */
  #timer;

  /**
   * @param {Stream} stream
   * @param {number} seconds
   */
  constructor(stream, seconds) {
    this.#stream = stream;
    this.#interval = seconds * 1000;
  }

  /** @param {Record<string, any>} event */
  async send(event) {
    clearTimeout(this.#timer);
    if (this.#stream.signal.aborted) return;
    await this.#stream.send({ event });
    if ("end" in event || this.#stream.signal.aborted) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.send({ keepalive: {} }), this.#interval);
    this.#timer.unref();
  }

  stop() {
    clearTimeout(this.#timer);
  }
}

class RunningProcess {
  /** @type {Set<Subscriber>} */
  subscribers = new Set();
  /** @type {Record<string, any> | undefined} */
  endEvent;
  /** Resolves when the end event has been sent. @type {Promise<void>} */
  finished;
  #finish = () => {};
  #child;
  /** @type {Promise<void>} */
  #exited;
  #signalled = () => {};
  /** @type {Promise<void>} */
  #wasSignalled = new Promise((resolve) => (this.#signalled = resolve));

  /**
   * @param {import("node:child_process").ChildProcess} child
   * @param {ProcessConfig} config
   * @param {string | undefined} tag
   * @param {import("node:net").Socket | undefined} stdin
   */
  constructor(child, config, tag, stdin) {
    this.#child = child;
    this.pid = /** @type {number} */ (child.pid);
    this.config = config;
    this.tag = tag;
    this.stdin = stdin;
    stdin?.on("error", () => (this.stdin = undefined));
    this.finished = new Promise((resolve) => (this.#finish = resolve));
    this.#exited = new Promise((resolve) => child.on("exit", () => resolve()));
  }

  /** @param {NodeJS.Signals} signal */
  kill(signal) {
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.#child.kill(signal);
    this.#signalled();
  }

  closeStdin() {
    this.stdin?.end();
    this.stdin = undefined;
  }

  /**
   * Sends the output to whoever listens, then the end. A listener that does not read slows the process
   * down, as a full pipe does.
   * @param {{ stdout: import("node:net").Socket, stderr: import("node:net").Socket }} pipes
   */
  async pump(pipes) {
    const readers = Object.entries(pipes).map(async ([name, pipe]) => {
      pipe.on("error", () => {});
      for await (const chunk of pipe) {
        for (let at = 0; at < chunk.length; at += OUTPUT_CHUNK) {
          const data = { [name]: chunk.subarray(at, at + OUTPUT_CHUNK).toString("base64") };
          await this.#publish({ data });
        }
      }
    });
    const closed = Promise.allSettled(readers);
    await this.#exited;
    // After a signal nobody waits for pipes that a surviving child may hold open.
    const settled = this.#wasSignalled.then(() => new Promise((resolve) => setTimeout(resolve, 20)));
    await Promise.race([closed, settled]);
    for (const pipe of Object.values(pipes)) pipe.destroy();
    this.stdin?.destroy();
    this.stdin = undefined;
    this.endEvent = this.#describeEnd();
    await this.#publish({ end: this.endEvent });
    this.#finish();
  }

  #describeEnd() {
    const { exitCode, signalCode } = this.#child;
    if (signalCode) {
      const text = `signal: ${SIGNAL_TEXT[signalCode] ?? `signal ${os.constants.signals[signalCode]}`}`;
      return { exitCode: -1, status: text, error: text };
    }
    const status = `exit status ${exitCode}`;
    return omitZero({ exitCode, exited: true, status, error: exitCode ? status : undefined });
  }

  /** @param {Record<string, any>} event */
  async #publish(event) {
    await Promise.all([...this.subscribers].map((subscriber) => subscriber.send(event)));
  }
}

export class ProcessTable {
  /** @type {Map<number, RunningProcess>} */
  #processes = new Map();
  /** @type {Set<NodeJS.Timeout>} */
  #timers = new Set();

  /** @param {Sandbox} sandbox */
  constructor(sandbox) {
    this.sandbox = sandbox;
  }

  /**
   * @param {Exchange} exchange
   * @param {{ name: string, home: string }} user
   * @param {AsyncGenerator<any>} messages
   * @param {Stream} stream
   */
  async start(exchange, user, messages, stream) {
    const timeout = connectTimeout(exchange);
    const request = await onlyMessage(messages);
    if (request.pty) throw new ConnectError("unimplemented", "this emulator has no terminals");
    const config = readConfig(request.process);
    const tag = request.tag === undefined ? undefined : stringField(request, "tag");
    const wantsStdin = request.stdin === undefined || boolField(request, "stdin") || !this.sandbox.atLeast("0.3.0");
    const { running, pipes } = await this.#spawn(config, user, tag, wantsStdin);
    this.#processes.set(running.pid, running);
    const subscriber = new Subscriber(stream, keepaliveSeconds(exchange));
    running.subscribers.add(subscriber);
    // The stream ends first, and so does not tell of the kill, which comes also when the client has gone.
    const deadline = new Deadline(timeout, () => running.kill("SIGKILL"));
    await subscriber.send({ start: { pid: running.pid } });
    void running.pump(pipes).then(() => {
      deadline.cancel();
      this.#retain(running);
    });
    await this.#follow(running, subscriber, stream, deadline);
  }

  /**
   * @param {Exchange} exchange
   * @param {AsyncGenerator<any>} messages
   * @param {Stream} stream
   */
  async connect(exchange, messages, stream) {
    const timeout = connectTimeout(exchange);
    const running = this.#find((await onlyMessage(messages)).process, true);
    const subscriber = new Subscriber(stream, keepaliveSeconds(exchange));
    await subscriber.send({ start: { pid: running.pid } });
    if (running.endEvent) await subscriber.send({ end: running.endEvent });
    else {
      running.subscribers.add(subscriber);
      const deadline = new Deadline(timeout);
      await this.#follow(running, subscriber, stream, deadline);
      deadline.cancel();
    }
  }

  list() {
    const processes = [...this.#processes.values()]
      .filter((running) => !running.endEvent)
      .map(({ pid, tag, config }) => ({
        config: { ...omitZero({ cmd: config.cmd, args: config.args, envs: config.envs }), cwd: config.cwd },
        pid,
        tag,
      }));
    return omitZero({ processes });
  }

  /** @param {any} request */
  async sendInput(request) {
    const running = this.#find(request.process);
    await this.#input(running, request.input);
    return {};
  }

  /** @param {AsyncGenerator<any>} messages */
  async streamInput(messages) {
    /** @type {RunningProcess | undefined} */
    let running;
    for await (const message of messages) {
      if (message.start) running = this.#find(message.start.process);
      else if (message.data) {
        if (!running) throw new ConnectError("invalid_argument", "no start event");
        await this.#input(running, message.data.input);
      }
    }
    return {};
  }

  /** @param {any} request */
  sendSignal(request) {
    const running = this.#find(request.process);
    const signal = SIGNALS[String(request.signal ?? 0)];
    if (!signal) throw new ConnectError("unimplemented", `invalid signal: ${request.signal ?? "SIGNAL_UNSPECIFIED"}`);
    running.kill(signal);
    return {};
  }

  /** @param {any} request */
  closeStdin(request) {
    const running = this.#find(request.process);
    if (!running.stdin) throw new ConnectError("internal", "stdin not enabled or closed");
    running.closeStdin();
    return {};
  }

  /** @param {any} request @returns {never} */
  update(request) {
    const running = this.#find(request.process);
    throw new ConnectError("internal", `error resizing tty: process ${running.pid} has no tty`);
  }

  /** Forgets everything; the fleet ends what they have left behind. */
  stop() {
    for (const timer of this.#timers) clearTimeout(timer);
    for (const running of this.#processes.values()) {
      for (const subscriber of running.subscribers) subscriber.stop();
      running.subscribers.clear();
      running.kill("SIGKILL");
    }
    this.#processes.clear();
  }

  /**
   * @param {ProcessConfig} config
   * @param {{ name: string, home: string }} user
   * @param {string | undefined} tag
   * @param {boolean} wantsStdin
   */
  async #spawn(config, user, tag, wantsStdin) {
    const cwd = checkDirectory(this.sandbox, user.home, config.cwd ?? "");
    const { pipes: maker } = this.sandbox;
    /** @type {{ childFd: number, readable?: import("node:net").Socket, writable?: import("node:net").Socket }[]} */
    const made = [];
    const env = {
      PATH: process.env.PATH,
      HOME: user.home,
      USER: user.name,
      LOGNAME: user.name,
      ...this.sandbox.environment,
      ...config.envs,
    };
    try {
      const stdout = await maker.output();
      made.push(stdout);
      const stderr = await maker.output();
      made.push(stderr);
      const stdin = wantsStdin ? await maker.input() : undefined;
      if (stdin) made.push(stdin);
      if (this.sandbox.ended) throw new Error("the sandbox has ended");
      if (!mayEnter(this.sandbox, user.name, cwd)) throw Object.assign(new Error(), { code: "EACCES" });
      const child = spawn("/bin/sh", ["-c", WRAPPER, "--", config.cmd, ...config.args], {
        cwd,
        env,
        stdio: [stdin?.childFd ?? "ignore", stdout.childFd, stderr.childFd],
      });
      await new Promise((resolve, reject) => {
        child.on("spawn", resolve);
        child.on("error", reject);
      });
      const running = new RunningProcess(child, config, tag, stdin?.writable);
      return { running, pipes: { stdout: stdout.readable, stderr: stderr.readable } };
    } catch (error) {
      for (const { readable, writable } of made) (readable ?? writable)?.destroy();
      const command = [config.cmd, ...config.args].join(" ");
      const reason = `fork/exec /bin/sh: ${goReason(error)}`;
      throw new ConnectError("invalid_argument", `error starting process '${command}': ${reason}`);
    } finally {
      await PipeMaker.close(made.map(({ childFd }) => childFd));
    }
  }

  /**
   * Until the process has ended, the deadline has passed or the client has gone.
   * @param {RunningProcess} running
   * @param {Subscriber} subscriber
   * @param {Stream} stream
   * @param {Deadline} deadline
   */
  async #follow(running, subscriber, stream, deadline) {
    const gone = new Promise((resolve) => stream.signal.addEventListener("abort", resolve, { once: true }));
    const first = await Promise.race([running.finished, deadline.passed, gone]);
    subscriber.stop();
    running.subscribers.delete(subscriber);
    if (first === deadline) throw new ConnectError("deadline_exceeded", "context deadline exceeded");
  }

  /**
   * Keeps the exit code of an ended process for a while.
   * @param {RunningProcess} running
   */
  #retain(running) {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      if (this.#processes.get(running.pid) === running) this.#processes.delete(running.pid);
    }, this.sandbox.settings.retainExitMs);
    timer.unref();
    this.#timers.add(timer);
  }

  /**
   * @param {any} selector
   * @param {boolean} [alsoEnded] those whose exit code is still kept, by pid only
   */
  #find(selector, alsoEnded = false) {
    if (selector?.tag !== undefined) {
      const tag = stringField(selector, "tag");
      for (const running of this.#processes.values()) {
        if (running.tag === tag && !running.endEvent) return running;
      }
      throw new ConnectError("not_found", `process with tag ${tag} not found`);
    }
    if (selector?.pid === undefined) throw new ConnectError("unimplemented", "invalid selector type <nil>");
    const pid = uintField(selector, "pid");
    const running = this.#processes.get(pid);
    if (!running || (running.endEvent && !alsoEnded)) {
      throw new ConnectError("not_found", `process with pid ${pid} not found`);
    }
    return running;
  }

  /**
   * @param {RunningProcess} running
   * @param {any} input
   */
  async #input(running, input) {
    if (input?.pty !== undefined) throw new ConnectError("internal", "tty not assigned to process");
    if (input?.stdin === undefined) throw new ConnectError("unimplemented", "invalid input type <nil>");
    const bytes = bytesField(input, "stdin");
    const { stdin } = running;
    if (!stdin) throw new ConnectError("internal", "error writing to stdin: stdin not enabled or closed");
    await /** @type {Promise<void>} */ (
      new Promise((resolve, reject) => {
        stdin.write(bytes, (error) => {
          if (error) reject(new ConnectError("internal", `error writing to stdin: ${error.message}`));
          else resolve();
        });
      })
    );
  }
}

/**
 * @param {any} message
 * @returns {ProcessConfig}
 */
function readConfig(message) {
  const args = message?.args ?? [];
  const envs = message?.envs ?? {};
  if (!Array.isArray(args) || args.some((arg) => typeof arg !== "string")) {
    throw new ConnectError("invalid_argument", "unmarshal message: proto: invalid value for field args");
  }
  if (envs.constructor !== Object || Object.values(envs).some((value) => typeof value !== "string")) {
    throw new ConnectError("invalid_argument", "unmarshal message: proto: invalid value for field envs");
  }
  const cwd = message?.cwd === undefined || message.cwd === null ? undefined : stringField(message, "cwd");
  return { cmd: stringField(message, "cmd"), args, envs, cwd };
}

/**
 * Only what is missing is noticed before the process is started.
 * @param {Sandbox} sandbox
 * @param {string} home
 * @param {string} given
 */
function checkDirectory(sandbox, home, given) {
  let cwd;
  try {
    cwd = resolvePath(sandbox, home, given);
  } catch (error) {
    if (error instanceof PathError) throw new ConnectError("invalid_argument", error.message);
    throw error;
  }
  try {
    statSync(cwd);
  } catch (error) {
    const { code } = /** @type {NodeJS.ErrnoException} */ (error);
    if (code === "ENOENT") throw new ConnectError("invalid_argument", `cwd '${cwd}' does not exist`);
  }
  return cwd;
}

/**
 * Whether the user's rights would suffice; the emulator may run as a user who has all.
 * @param {Sandbox} sandbox
 * @param {string} user
 * @param {string} cwd
 */
function mayEnter(sandbox, user, cwd) {
  if (user === "root") return true;
  const { root } = sandbox.homes;
  if (cwd === root || cwd.startsWith(`${root}/`)) return false;
  try {
    const stat = statSync(cwd);
    return !stat.isDirectory() || (stat.mode & 0o111) !== 0;
  } catch {
    return true;
  }
}

/** @param {Exchange} exchange */
function keepaliveSeconds(exchange) {
  const seconds = Number(exchange.header("keepalive-ping-interval"));
  return Number.isInteger(seconds) && seconds > 0 ? seconds : DEFAULT_KEEPALIVE_SECONDS;
}
