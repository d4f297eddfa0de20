// One session of the emulated service: a directory of its own, and the commands that run in it.
//
// Commands run on this machine as this user. The manifest's working directory stands for the session's folder in
// `cwd` and in file paths; commands see the real one.
// @ts-check
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import path from "node:path";
import { removeFolder, signalMarked } from "../processes.js";

/**
 * @typedef {object} Manifest
 * @property {string | null} image
 * @property {string} working_dir
 * @property {Record<string, string>} environment
 * @property {{ default: "deny" | "allow", allowed_hosts: string[], denied_hosts: string[] }} network
 * @property {{ cpu: string | null, memory: string | null, gpu: boolean }} resources
 */

/**
 * @typedef {object} Command
 * @property {string[]} command
 * @property {string | null} [cwd]
 * @property {Record<string, string>} [env]
 * @property {number | null} [timeout_seconds]
 * @property {string | null} [stdin]
 */

/** @typedef {{ exit_code: number, stdout: string, stderr: string, timed_out: boolean }} Result */

const LIMIT_EXIT_CODE = 124;
const NOT_FOUND_EXIT_CODE = 127;

export class Session {
  id = `s-${randomBytes(12).toString("hex")}`;
  state = "running";
  /** Its own of what stands in /tmp, which a real sandbox takes along. @type {Set<string>} */
  leftovers = new Set();

  /** @param {string} owner @param {Manifest} manifest @param {string} base */
  constructor(owner, manifest, base) {
    this.owner = owner;
    this.manifest = manifest;
    this.folder = path.join(base, this.id);
    this.directory = path.join(this.folder, "workspace");
    this.marker = `EMULATED_SESSION=${randomBytes(12).toString("hex")}`;
    mkdirSync(this.directory, { recursive: true });
  }

  /** The real path of one of the sandbox's; undefined: it lies outside of the working directory. @param {string} name */
  below(name) {
    const { working_dir: top } = this.manifest;
    for (const root of [top, this.directory]) {
      const relative = path.posix.relative(root, name);
      if (relative !== ".." && !relative.startsWith("../")) return path.join(this.directory, relative);
    }
    return undefined;
  }

  /**
   * @param {Command} command checked
   * @param {AbortSignal} [signal] ends the command
   * @returns {Promise<Result>}
   */
  run({ command, cwd, env = {}, timeout_seconds: limit = null, stdin = null }, signal) {
    for (const text of command) {
      for (const tag of text.match(/(?<=' sh )[0-9a-f]{32}/g) ?? []) this.leftovers.add(`/tmp/.cloudsandbox-${tag}`);
    }
    const where = cwd === null || cwd === undefined ? this.directory : (this.below(cwd) ?? cwd);
    const [name, value] = this.marker.split("=");
    const child = spawn(command[0], command.slice(1), {
      cwd: where,
      env: { PATH: process.env.PATH, HOME: this.directory, ...this.manifest.environment, ...env, [name]: value },
      stdio: [stdin === null ? "ignore" : "pipe", "pipe", "pipe"],
      detached: true,
    });
    return new Promise((resolve, reject) => {
      let late = false;
      const kill = () => {
        try {
          if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
        } catch {
          // It has ended meanwhile.
        }
      };
      const timer = limit === null ? undefined : setTimeout(() => ((late = true), kill()), limit * 1000);
      signal?.addEventListener("abort", kill);
      /** @type {Buffer[][]} */
      const [out, err] = [[], []];
      child.stdout?.on("data", (bytes) => out.push(bytes));
      child.stderr?.on("data", (bytes) => err.push(bytes));
      child.stdin?.on("error", () => {});
      child.stdin?.end(stdin ?? "");
      child.once("error", (/** @type {NodeJS.ErrnoException} */ error) => {
        clearTimeout(timer);
        if (error.code === "ENOENT" || error.code === "EACCES") {
          resolve({ exit_code: NOT_FOUND_EXIT_CODE, stdout: "", stderr: `${command[0]}: ${error.code}`, timed_out: false });
        } else reject(error);
      });
      child.once("close", (code, name) => {
        clearTimeout(timer);
        const text = (/** @type {Buffer[]} */ parts) => Buffer.concat(parts).toString();
        const exitCode = late ? LIMIT_EXIT_CODE : (code ?? 128 + signalNumber(name));
        resolve({ exit_code: exitCode, stdout: text(out), stderr: text(err), timed_out: late });
      });
    });
  }

  /** All that runs in it, and its files. */
  end() {
    this.state = "destroyed";
    signalMarked(this.marker, "SIGKILL", this.folder);
    removeFolder(this.folder);
    for (const name of this.leftovers) {
      for (const end of ["", ".stop", ".text", ".input", ".env"]) removeFolder(name + end);
    }
  }
}

/** @param {NodeJS.Signals | null} name */
function signalNumber(name) {
  const { signals } = process.getBuiltinModule("node:os").constants;
  return name === null ? 0 : signals[name];
}
