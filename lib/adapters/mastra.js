// "cloudsandbox/mastra": a sandbox as the sandbox, and its files as the filesystem, of a Mastra workspace.
import { checkNames } from "../options.js";
import { checkNative, guarded, secondsOf, unsupported } from "./seam.js";

export { mastraFilesystem } from "./mastra-filesystem.js";

/** @import { MastraProcesses } from "../../types/adapters/mastra.js" */

/**
 * @template {MastraProcesses} Module
 * @param {any} sandbox
 * @param {Module} workspace "@mastra/core/workspace"
 * @param {{ id?: string | undefined, env?: Record<string, string | undefined> | undefined, instructions?: string | undefined }} [options]
 * @returns {InstanceType<Module["MastraSandbox"]>}
 */
export function mastraSandbox(sandbox, workspace, options) {
  checkNative(sandbox, "mastraSandbox");
  const {
    id = `${sandbox.providerId}-${globalThis.crypto.randomUUID()}`,
    env,
    instructions = `A ${sandbox.providerId} sandbox. Commands begin in its working directory, which relative paths mean too.`,
  } = checkNames(options, ["id", "env", "instructions"], "mastraSandbox");
  const { MastraSandbox } = workspace;
  const processes = managerOf(sandbox, workspace);
  // That framework puts guarded versions of the methods on the object: they must be methods, and no fields.
  class Sandbox extends MastraSandbox {
    id = id;
    name = "CloudSandbox";
    provider = sandbox.providerId;
    status = "pending";
    createdAt = new Date();

    constructor() {
      super({ name: "CloudSandbox", processes, ...(env && { env }) });
    }

    /** @param {{ abortSignal?: AbortSignal }} [options] */
    async start({ abortSignal: signal } = {}) {
      await sandbox.start({ signal });
      return { outcome: "created" };
    }

    /** Its files are still there at the next start. */
    async stop() {
      await processes.killAll();
    }

    async destroy() {
      await sandbox.close();
    }

    getInstructions() {
      return instructions;
    }

    getInfo() {
      const { name, provider, status, createdAt } = this;
      return { id, name, provider, status, createdAt };
    }
  }
  return /** @type {InstanceType<Module["MastraSandbox"]>} */ (new Sandbox());
}

/** @param {any} sandbox @param {MastraProcesses} workspace */
function managerOf(sandbox, { SandboxProcessManager, ProcessHandle }) {
  let made = 0;

  class Handle extends ProcessHandle {
    pid = String(++made);
    /** @type {number | undefined} */
    exitCode = undefined;
    #controller = new AbortController();
    /** Its process, where standard input stays open. @type {Promise<any> | undefined} */
    #child;
    /** @type {Promise<any>} */
    #ended;

    /** @param {string} command @param {any} options */
    constructor(command, options) {
      super(options);
      this.command = command;
      this.#ended = this.#run(command, options);
      this.#ended.catch(() => {}); // Until somebody waits.
    }

    wait() {
      return this.#ended;
    }

    async kill() {
      if (this.exitCode !== undefined) return false;
      this.#controller.abort(new Error("the process was killed"));
      await this.#ended.catch(() => {});
      return true;
    }

    /** @param {string} text */
    async sendStdin(text) {
      const child = await this.#child;
      if (!child) throw unsupported("sendStdin: the standard input of this process is at its end; nothing was sent. Write what the command reads to a file");
      await child.write(text);
    }

    async closeStdin() {
      const child = await this.#child; // Else it is at its end already.
      await child?.end();
    }

    /** @param {string} command @param {any} options */
    async #run(command, { cwd, env = {}, timeout, stdinMode }) {
      const since = performance.now();
      try {
        const spec = {
          cwd,
          env: Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined)),
          timeoutSeconds: secondsOf(timeout),
          maxOutputBytes: 1, // The handle keeps the newest itself.
          onStdout: guarded((text) => this.emitStdout(text)),
          onStderr: guarded((text) => this.emitStderr(text)),
          signal: this.#controller.signal,
        };
        if (stdinMode !== "ignore" && sandbox.capabilities?.spawn) this.#child = sandbox.spawn(command, spec);
        const { exitCode, status } = await (this.#child ? (await this.#child).wait() : sandbox.exec({ ...spec, command }));
        this.exitCode = exitCode;
        const { stdout, stderr, stdoutTruncated, stderrTruncated, stdoutDroppedBytes, stderrDroppedBytes } = this;
        return {
          success: exitCode === 0, exitCode, stdout, stderr, executionTimeMs: performance.now() - since,
          ...(status === "timedOut" && { timedOut: true }), ...(status === "cancelled" && { killed: true }),
          stdoutTruncated, stderrTruncated, stdoutDroppedBytes, stderrDroppedBytes,
        };
      } finally {
        this.exitCode ??= -1; // Of one that could not run, or whose sandbox is gone.
      }
    }
  }

  class Manager extends SandboxProcessManager {
    /** @param {string} command @param {any} [options] */
    async spawn(command, options = {}) {
      const handle = new Handle(command, options);
      this._tracked.set(handle.pid, handle);
      return handle;
    }

    async list() {
      return Array.from(this._tracked.values(), ({ pid, command, exitCode }) => {
        return { pid, command, running: exitCode === undefined, ...(exitCode !== undefined && { exitCode }) };
      });
    }

    async killAll() {
      await Promise.all(Array.from(this._tracked.values(), (handle) => handle.kill()));
    }
  }
  return new Manager();
}
