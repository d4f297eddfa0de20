// One session of the emulated Code Interpreter: a directory of its own, and what its tools do in it.
//
// Commands run on this machine as this user.
// @ts-check
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";

import { removeFolder, signalMarked } from "../processes.js";
import { invalid } from "./errors.js";

/** @typedef {{ content: object[], structuredContent?: Record<string, unknown>, isError: boolean }} Result */
/** @typedef {{ name?: string, seconds: number, identifier: string, owner: string }} Spec */
/** @typedef {{ status: string, stdout: string, stderr: string, exitCode?: number, child: import("node:child_process").ChildProcess }} Task */

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const TEXTS = Object.freeze(["python", "javascript", "typescript"]);

const ulid = () => `01${[...randomBytes(24)].map((byte) => ALPHABET[byte % 32]).join("")}`;

/** @param {string} text @returns {Result} */
const failure = (text) => ({ content: [{ type: "text", text }], isError: true });

export class Session {
  id = ulid();
  status = "READY";
  createdAt = new Date();
  /** Calls of tools that run now. */
  busy = 0;
  /** Its own of what stands in /tmp, which a real session takes along. @type {Set<string>} */
  #leftovers = new Set();
  /** @type {Map<string, Task>} */
  #tasks = new Map();
  /** @type {() => void} */
  #over = () => {};
  /** Resolves when it has ended. */
  ended = /** @type {Promise<void>} */ (new Promise((resolve) => (this.#over = resolve)));

  /** @param {Spec} spec @param {string} base */
  constructor(spec, base) {
    this.spec = spec;
    this.folder = path.join(base, this.id);
    this.directory = path.join(this.folder, "work");
    this.marker = `EMULATED_SESSION=${randomBytes(12).toString("hex")}`;
    mkdirSync(this.directory, { recursive: true });
  }

  /** As replies show it. */
  view() {
    const { name, identifier: codeInterpreterIdentifier, seconds: sessionTimeoutSeconds } = this.spec;
    const { id: sessionId, status, createdAt } = this;
    return { codeInterpreterIdentifier, sessionId, ...(name !== undefined && { name }), createdAt, status, sessionTimeoutSeconds };
  }

  /** @param {string} name @param {Record<string, any>} args @returns {Promise<Result>} */
  async call(name, args) {
    const tool = Object.hasOwn(this.#tools, name) ? this.#tools[name] : undefined;
    if (!tool) throw invalid(`Unknown tool: ${name}`);
    this.busy += 1;
    try {
      return await tool(args);
    } finally {
      this.busy -= 1;
    }
  }

  /** @type {Record<string, (args: any) => Promise<Result>>} */
  #tools = {
    executeCommand: (args) => this.#run(["/bin/sh", "-c", text(args, "command", ["command"])]),
    executeCode: (args) => this.#code(args),
    startCommandExecution: async (args) => this.#begin(text(args, "command", ["command"])),
    getTask: async (args) => this.#look(text(args, "taskId", ["taskId"])),
    stopTask: async (args) => this.#stop(text(args, "taskId", ["taskId"])),
    readFiles: (args) => this.#read(texts(args, "paths")),
    writeFiles: (args) => this.#write(args),
    listFiles: (args) => this.#list(args),
    removeFiles: (args) => this.#remove(texts(args, "paths")),
  };

  // ---- commands ----

  /** @param {string[]} argv */
  #spawn(argv) {
    for (const part of argv) {
      for (const tag of part.match(/(?<=' sh )[0-9a-f]{32}/g) ?? []) this.#leftovers.add(`/tmp/.cloudsandbox-${tag}`);
    }
    const [name, value] = this.marker.split("=");
    return spawn(argv[0], argv.slice(1), {
      cwd: this.directory,
      env: { PATH: process.env.PATH, HOME: this.directory, LANG: "C.UTF-8", [name]: value },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
  }

  /** Outputs are text: what is no UTF-8 is lost. @param {string[]} argv @returns {Promise<Result>} */
  #run(argv) {
    const began = performance.now();
    const child = this.#spawn(argv);
    return new Promise((resolve, reject) => {
      const outputs = [child.stdout, child.stderr].map((stream) => {
        /** @type {Buffer[]} */
        const parts = [];
        stream?.on("data", (bytes) => parts.push(bytes));
        return parts;
      });
      child.once("error", reject);
      child.once("close", (code, signal) => {
        const [stdout, stderr] = outputs.map((parts) => Buffer.concat(parts).toString());
        resolve(outcome(stdout, stderr, exitCodeOf(code, signal), performance.now() - began));
      });
    });
  }

  /** Each call is a program of its own here: variables do not live on. @param {any} args */
  async #code(args) {
    onlyMembers(args, ["code", "language", "clearContext", "runtime"]);
    const code = text(args, "code");
    if (!TEXTS.includes(args.language)) throw invalid("language must be one of python, javascript, typescript");
    return this.#run(args.language === "python" ? ["python3", "-c", code] : [process.execPath, "-e", code]);
  }

  /** @param {string} command @returns {Result} */
  #begin(command) {
    const taskId = ulid();
    const child = this.#spawn(["/bin/sh", "-c", command]);
    /** @type {Task} */
    const task = { status: "working", stdout: "", stderr: "", child };
    this.#tasks.set(taskId, task);
    child.stdout.on("data", (bytes) => (task.stdout += bytes));
    child.stderr.on("data", (bytes) => (task.stderr += bytes));
    child.once("close", (code, signal) => {
      task.exitCode = exitCodeOf(code, signal);
      if (task.status === "working") task.status = task.exitCode === 0 ? "completed" : "failed";
    });
    return this.#look(taskId);
  }

  /** @param {string} taskId @returns {Result} */
  #look(taskId) {
    const task = this.#tasks.get(taskId);
    if (!task) return failure(`Task not found: ${taskId}`);
    const { status: taskStatus, stdout, stderr, exitCode } = task;
    return { content: [], structuredContent: { taskId, taskStatus, stdout, stderr, ...(exitCode !== undefined && { exitCode }) }, isError: false };
  }

  /** @param {string} taskId @returns {Result} */
  #stop(taskId) {
    const task = this.#tasks.get(taskId);
    if (task?.status === "working") {
      task.status = "canceled";
      task.child.kill("SIGKILL");
    }
    return this.#look(taskId);
  }

  // ---- files ----

  /** @param {unknown} name */
  #below(name) {
    const full = typeof name === "string" && name !== "" && !name.startsWith("/") ? path.join(this.directory, name) : "";
    return full.startsWith(`${this.directory}/`) || full === this.directory ? full : undefined;
  }

  /** @param {string[]} paths @returns {Promise<Result>} */
  async #read(paths) {
    /** @type {object[]} */
    const content = [];
    for (const name of paths) {
      const full = this.#below(name);
      const bytes = full && (await readFile(full).catch(() => undefined));
      if (!bytes) return failure(`File not found: ${name}`);
      const isText = Buffer.from(bytes.toString()).equals(bytes);
      const body = isText ? { type: "text", mimeType: "text/plain", text: bytes.toString() } : { type: "blob", mimeType: "application/octet-stream", blob: bytes.toString("base64") };
      content.push({ type: "resource", resource: { uri: `file:///${name}`, ...body } });
    }
    return { content, isError: false };
  }

  /** All or nothing. @param {any} args @returns {Promise<Result>} */
  async #write(args) {
    onlyMembers(args, ["content"]);
    const { content } = args;
    if (!Array.isArray(content)) throw invalid("content must be an array");
    /** @type {[string, Buffer][]} */
    const files = [];
    for (const item of content) {
      onlyMembers(item, ["path", "text", "blob"]);
      const full = this.#below(item.path);
      if (!full) return failure(`Invalid path: ${item.path}`);
      if ((typeof item.text === "string") === (typeof item.blob === "string")) throw invalid("each of content has text or blob");
      files.push([full, item.text === undefined ? Buffer.from(item.blob, "base64") : Buffer.from(item.text)]);
    }
    try {
      for (const [full, bytes] of files) {
        await mkdir(path.dirname(full), { recursive: true });
        await writeFile(full, bytes);
      }
    } catch (error) {
      return failure(`Cannot write: ${/** @type {NodeJS.ErrnoException} */ (error).code}`);
    }
    return { content: [{ type: "text", text: `Successfully wrote all ${files.length} files` }], isError: false };
  }

  /** @param {any} args @returns {Promise<Result>} */
  async #list(args) {
    onlyMembers(args, ["path", "directoryPath"]);
    const full = this.#below(args.path || args.directoryPath || ".");
    const names = full && (await readdir(full, { withFileTypes: true }).catch(() => undefined));
    if (!names) return failure("Directory not found");
    const links = names.map((entry) => ({
      type: "resource_link", uri: `file:///${entry.name}`, name: entry.name, description: entry.isDirectory() ? "Directory" : "File",
    }));
    return { content: links, isError: false };
  }

  /** @param {string[]} paths @returns {Promise<Result>} */
  async #remove(paths) {
    for (const name of paths) {
      const full = this.#below(name);
      if (!full || !(await stat(full).catch(() => undefined))) return failure(`File not found: ${name}`);
      await rm(full, { recursive: true });
    }
    return { content: [{ type: "text", text: `Successfully removed ${paths.length} files` }], isError: false };
  }

  /** All that runs in it, and its files. */
  end() {
    if (this.status !== "READY") return;
    this.status = "TERMINATED";
    this.#over();
    signalMarked(this.marker, "SIGKILL", this.folder);
    removeFolder(this.folder);
    for (const name of this.#leftovers) {
      for (const last of ["", ".stop", ".text", ".input", ".env"]) removeFolder(name + last);
    }
  }
}

/** @param {number | null} code @param {NodeJS.Signals | null} signal */
const exitCodeOf = (code, signal) => code ?? 128 + (signal ? os.constants.signals[signal] : 0);

/** @param {string} stdout @param {string} stderr @param {number} exitCode @param {number} executionTime @returns {Result} */
const outcome = (stdout, stderr, exitCode, executionTime) => ({
  content: [{ type: "text", text: stdout || stderr }],
  structuredContent: { stdout, stderr, exitCode, executionTime },
  isError: exitCode !== 0,
});

/** @param {any} value @param {readonly string[]} names */
export function onlyMembers(value, names) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw invalid("an object is missing");
  const strange = Object.keys(value).find((name) => !names.includes(name));
  if (strange !== undefined) throw invalid(`Unexpected field: ${strange}`);
}

/** @param {any} args @param {string} name @param {readonly string[]} [names] all that may be there @returns {string} */
function text(args, name, names) {
  if (names) onlyMembers(args, names);
  if (typeof args[name] === "string" && args[name] !== "") return args[name];
  throw invalid(`${name} must be text`);
}

/** @param {any} args @param {string} name @returns {string[]} */
function texts(args, name) {
  onlyMembers(args, [name]);
  if (Array.isArray(args[name]) && args[name].every((/** @type {unknown} */ it) => typeof it === "string")) return args[name];
  throw invalid(`${name} must be an array of texts`);
}
