// One container: a directory of this machine, a main process, and the processes that were started in it.
// @ts-check
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, rmSync, statSync } from "node:fs";
import { constants } from "node:os";
import path from "node:path";
import { PipeMaker } from "../fifo.js";
import { signalMarked } from "../processes.js";
import { cutter, frame, frames } from "./frames.js";

/** @typedef {import("./index.js").Docker} Docker */
/** @typedef {import("../exchange.js").Exchange} Exchange */

export const newId = () => randomBytes(32).toString("hex");

/** What an exit code says of a process that has ended. @param {number | null} code @param {string | null} signal */
function codeOf(code, signal) {
  return code ?? 128 + (signal ? constants.signals[/** @type {NodeJS.Signals} */ (signal)] : 0);
}

export class Container {
  id = newId();
  /** @type {"created" | "running" | "paused" | "exited"} */
  status = "created";
  created = new Date();
  started = new Date(0);
  finished = new Date(0);
  exitCode = 0;
  oomKilled = false;
  /** @type {Map<string, Exec>} */
  execs = new Map();
  /** @type {import("node:child_process").ChildProcess | undefined} */
  #main;
  #ended = () => {};
  /** Resolves when its main process has ended. */
  ended = /** @type {Promise<void>} */ (new Promise((resolve) => (this.#ended = resolve)));

  /** @param {Docker} docker @param {string} name @param {Record<string, any>} spec the body of the create */
  constructor(docker, name, spec) {
    this.docker = docker;
    this.name = name;
    this.spec = spec;
    this.host = spec.HostConfig ?? {};
    this.marker = `DOCKER_EMULATOR=${this.id}`;
    const wanted = spec.WorkingDir || "/";
    /** A working directory below the emulator's own is meant as it is; any other one has a stand-in. */
    this.dir = wanted.startsWith(`${docker.base}/`) ? wanted : path.join(docker.base, this.id.slice(0, 12));
  }

  get isRunning() {
    return this.status === "running" || this.status === "paused";
  }

  /** Where a path of the container is on this machine. @param {string} place */
  real(place) {
    const wanted = this.spec.WorkingDir || "/";
    const full = path.posix.resolve(wanted, place);
    if (wanted === "/" || !(full === wanted || full.startsWith(`${wanted}/`))) return full;
    return path.join(this.dir, full.slice(wanted.length));
  }

  /** Whether a path of the container is in one of its file systems in memory. @param {string} full absolute */
  isInMemory(full) {
    return Object.keys(this.host.Tmpfs ?? {}).some((target) => full === target || full.startsWith(`${target}/`));
  }

  /** What is below those: part of the image, and empty. */
  get below() {
    return path.join(this.docker.base, `${this.id.slice(0, 12)}-below`);
  }

  /** Where archive calls find a path of the container. @param {string} full absolute */
  seenByArchive(full) {
    const hidden = this.docker.settings.kind === "docker" || this.status !== "running";
    if (!hidden || !this.isInMemory(full)) return this.real(full);
    for (const target of Object.keys(this.host.Tmpfs)) mkdirSync(path.join(this.below, target), { recursive: true });
    return path.join(this.below, full);
  }

  /** @param {string[]} more variables as "NAME=value" */
  #env(more = []) {
    const given = [...(this.spec.Env ?? []), ...more].map((line) => {
      const at = line.indexOf("=");
      return [line.slice(0, at), line.slice(at + 1)];
    });
    const all = Object.fromEntries([["PATH", process.env.PATH], ["HOSTNAME", this.id.slice(0, 12)], ["HOME", this.dir], ...given]);
    if (all.HOME === this.spec.WorkingDir) all.HOME = this.dir;
    all.DOCKER_EMULATOR = this.id;
    return all;
  }

  start() {
    mkdirSync(this.dir, { recursive: true });
    this.docker.reaper.watch(this.marker);
    const [program, ...args] = [...(this.spec.Entrypoint ?? []), ...(this.spec.Cmd ?? [])];
    const main = spawn(program, args, { cwd: this.dir, env: this.#env(), stdio: "ignore", detached: true });
    this.#main = main;
    this.status = "running";
    this.started = new Date();
    main.once("error", () => this.#onEnd(127));
    main.once("exit", (code, signal) => this.#onEnd(codeOf(code, signal)));
  }

  /** Nothing outlives the main process. @param {number} code */
  #onEnd(code) {
    if (!this.isRunning) return;
    this.status = "exited";
    this.exitCode = code;
    this.finished = new Date();
    signalMarked(this.marker, "SIGKILL", this.dir);
    this.docker.reaper.forget(this.marker);
    this.#ended();
    if (this.host.AutoRemove) this.remove();
  }

  /** @param {NodeJS.Signals} signal */
  signal(signal) {
    if (signal === "SIGKILL" || signal === "SIGSTOP" || signal === "SIGCONT") signalMarked(this.marker, signal, this.dir);
    else this.#main?.kill(signal);
  }

  /** @param {boolean} paused */
  pause(paused) {
    this.signal(paused ? "SIGSTOP" : "SIGCONT");
    this.status = paused ? "paused" : "running";
  }

  /** Ends it at once, and forgets it. */
  remove() {
    this.docker.containers.delete(this.id);
    if (this.isRunning) this.signal("SIGKILL");
    for (const exec of this.execs.values()) this.docker.execs.delete(exec.id);
    for (const dir of [this.dir, this.below]) rmSync(dir, { recursive: true, force: true });
  }

  inspect() {
    const { id, name, spec, host } = this;
    const State = {
      Status: this.status,
      Running: this.isRunning,
      Paused: this.status === "paused",
      Restarting: false,
      OOMKilled: this.oomKilled,
      Dead: false,
      Pid: this.#main?.pid ?? 0,
      ExitCode: this.exitCode,
      Error: "",
      StartedAt: this.started.toISOString(),
      FinishedAt: this.finished.toISOString(),
    };
    return {
      Id: id, Created: this.created.toISOString(), Name: `/${name}`, State, Image: "sha256:0", HostConfig: host, Mounts: [],
      Config: { Hostname: id.slice(0, 12), Image: spec.Image, Env: spec.Env ?? [], Cmd: spec.Cmd, Entrypoint: spec.Entrypoint,
        Labels: spec.Labels ?? {}, WorkingDir: spec.WorkingDir ?? "", User: spec.User ?? "", Tty: false },
      NetworkSettings: { Networks: { [host.NetworkMode ?? "bridge"]: {} } },
    };
  }

  summary() {
    const Created = Math.floor(this.created.getTime() / 1000);
    return { Id: this.id, Names: [`/${this.name}`], Image: this.spec.Image, ImageID: "sha256:0", Command: "", Created, Ports: [],
      Labels: this.spec.Labels ?? {}, State: this.status, Status: this.status, HostConfig: { NetworkMode: this.host.NetworkMode ?? "bridge" } };
  }

  /** What a process gets besides its own: for Exec. @param {string[]} more */
  envOf(more) {
    return this.#env(more);
  }
}

/** A process in a container: made, started once, looked at. */
export class Exec {
  id = newId();
  /** @type {"made" | "running" | "ended"} */
  state = "made";
  exitCode = 0;
  pid = 0;
  /** How often it is still said to run after it has ended. */
  #late;

  /** @param {Container} container @param {Record<string, any>} spec */
  constructor(container, spec) {
    this.container = container;
    this.spec = spec;
    this.#late = container.docker.settings.lateRunning;
  }

  inspect() {
    const [entrypoint, ...args] = this.spec.Cmd;
    const isPodman = this.container.docker.settings.kind === "podman";
    const late = this.state === "ended" && this.#late-- > 0;
    const running = this.state === "running" || late;
    const unknown = isPodman ? 0 : null;
    return {
      ID: this.id, ContainerID: this.container.id, Running: running, ExitCode: running || this.state === "made" ? unknown : this.exitCode,
      Pid: running ? this.pid : 0, OpenStdin: Boolean(this.spec.AttachStdin), OpenStdout: true, OpenStderr: true,
      CanRemove: isPodman && this.state === "ended", DetachKeys: "",
      ProcessConfig: { tty: false, entrypoint, arguments: args, privileged: false, user: this.spec.User ?? "" },
    };
  }

  /**
   * Runs it; resolves when nobody can write to its streams any more.
   * @param {(stream: 1 | 2, bytes: Buffer) => Promise<void>} write
   * @param {import("node:stream").Readable} [stdin] what its client sends
   */
  async run(write, stdin) {
    const { container, spec } = this;
    const cwd = container.real(spec.WorkingDir || container.spec.WorkingDir || "/");
    this.state = "running";
    if (!existsSync(cwd) || !statSync(cwd).isDirectory()) {
      await this.#failed(write, `chdir to cwd (${JSON.stringify(cwd)}) set in config.json failed: no such file or directory`);
      return;
    }
    const { pipes } = container.docker;
    const out = await pipes.output();
    const err = await pipes.output();
    const input = spec.AttachStdin ? await pipes.input() : undefined;
    const [program, ...args] = spec.Cmd;
    const child = spawn(program, args, {
      cwd, env: container.envOf(spec.Env ?? []), detached: true, stdio: [input?.childFd ?? "ignore", out.childFd, err.childFd],
    });
    const ended = new Promise((resolve) => {
      child.once("error", (/** @type {NodeJS.ErrnoException} */ error) => resolve(error));
      child.once("exit", (code, signal) => {
        this.exitCode = codeOf(code, signal);
        this.state = "ended";
        resolve(undefined);
      });
    });
    this.pid = child.pid ?? 0;
    await PipeMaker.close([out.childFd, err.childFd, ...(input ? [input.childFd] : [])]);
    if (input) this.#feed(input.writable, stdin);
    const copy = async (/** @type {1 | 2} */ stream, /** @type {AsyncIterable<Buffer>} */ readable) => {
      for await (const chunk of readable) await write(stream, chunk);
    };
    await Promise.all([copy(1, out.readable), copy(2, err.readable)]);
    const error = await ended;
    if (error) await this.#failed(write, `exec: ${JSON.stringify(program)}: ${error.code === "EACCES" ? "permission denied" : "executable file not found in $PATH"}`);
  }

  /** @param {import("node:net").Socket} writable @param {import("node:stream").Readable} [stdin] */
  #feed(writable, stdin) {
    writable.on("error", () => stdin?.resume());
    if (!stdin) writable.end();
    else stdin.on("error", () => writable.end()).pipe(writable);
  }

  /** One that cannot start: the engine says so where its output would be. @param {(stream: 1 | 2, bytes: Buffer) => Promise<void>} write @param {string} why */
  async #failed(write, why) {
    const isPodman = this.container.docker.settings.kind === "podman";
    const start = "exec failed: unable to start container process: ";
    this.exitCode = why.includes("permission denied") || !isPodman ? 126 : 127;
    this.state = "ended";
    if (isPodman) {
      await write(2, Buffer.from(`Error: runc: ${start}${why}: OCI runtime attempted to invoke a command that was not found\n`));
      await write(2, Buffer.from("Error: read unixpacket @->/proc/self/fd/14/attach: read: connection reset by peer\n"));
    } else await write(1, Buffer.from(`OCI runtime exec failed: ${start}${why}: unknown\r\n`));
  }

  /**
   * Runs it for a client, whose leaving ends nothing.
   * @param {Exchange} exchange its reply has begun
   * @param {import("node:stream").Readable} [stdin]
   */
  async attach(exchange, stdin) {
    const cut = cutter(this.container.docker.settings.seed);
    /** Frames of both streams go out one after the other. @type {Promise<void>} */
    let turn = Promise.resolve();
    await this.run((stream, bytes) => {
      turn = turn.then(async () => {
        for (const whole of frames(stream, bytes)) for (const part of cut(whole)) await exchange.write(part);
      });
      return turn;
    }, stdin);
    await exchange.end();
  }

  /** As an engine answers that finds out too late. @param {Exchange} exchange */
  async refuseAgain(exchange) {
    await exchange.write(frame(1, `Error: Exec command ${this.id} is already running\n`));
    await exchange.end();
  }
}
