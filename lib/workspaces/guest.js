// A guest of a workspace: the port over what all its guests share, with what this one may do.
//
// Invariant: what a guest may not do is refused before anything is started or sent.
import { SandboxError } from "../errors.js";
import { asyncDispose, checkObject, checkSignal, detached, inspectKey, reading, shownAs } from "../options.js";
import { forTools } from "../sandbox.js";
import { watch } from "../signals.js";
import { SandboxToolkit } from "../toolkit.js";
import { OWN_FILES } from "./place.js";

/** @import { FileEncoding, ToolDef } from "../../types/index.js" */
/** @import { Port } from "./place.js" */
/** @import { Shared } from "./shared.js" */
/** @typedef {"exec" | "readBytes" | "readStream" | "writeStream" | "listFiles" | "stat" | "listDirectory" | "deleteFile" | "moveFile" | "mkdir"} More */
/** @typedef {"start" | "run" | "shell" | "writeFile" | "readFile" | More} Method */

/** How long detach() waits for calls that a sandbox of another's making does not end. */
const DETACH_MS = 10_000;
/** What a read-only guest may not do, and what has not become of it. @type {Partial<Record<Method, string>>} */
const REFUSED = {
  run: "run", shell: "run", exec: "run", writeFile: "written", writeStream: "written", deleteFile: "deleted", moveFile: "moved", mkdir: "made",
};
/** Whether a value is a guest itself, and no Proxy of one. @type {(value: unknown) => boolean} */
let isGuest;

/**
 * The guest that a method was called on.
 *
 * @param {Guest} self
 * @param {string} method
 */
function of(self, method) {
  if (!isGuest(self)) throw detached(method, "guest");
  return self;
}

export class Guest {
  /** @type {Shared} */
  #shared;
  #mode;
  #isDetached = false;
  /** @type {Map<AbortController, Promise<unknown>>} */
  #running = new Map();
  /** @type {() => void} */
  #left;

  static {
    isGuest = (value) => typeof value === "object" && value !== null && #shared in value;
  }

  /** @param {Shared} shared @param {"read-only" | "read-write"} mode @param {() => void} left called when it is detached */
  constructor(shared, mode, left) {
    this.#shared = shared;
    this.#mode = mode;
    this.#left = left;
  }

  get mode() {
    return this.#mode;
  }

  get workspaceId() {
    return this.#shared.workspaceId;
  }

  get providerId() {
    return this.#port.providerId;
  }

  get sandboxId() {
    return this.#port.sandboxId ?? null;
  }

  /** A guest has no spawn(). */
  get capabilities() {
    const all = this.#port.capabilities;
    return all && Object.freeze({ ...all, spawn: false, tty: false });
  }

  get networkIsolation() {
    return this.#port.networkIsolation;
  }

  get [forTools]() {
    return /** @type {any} */ (this.#port)[forTools];
  }

  /** @param {any} [options] */
  async start(options) {
    return of(this, "start").#call("start", options, async () => {});
  }

  /** @param {string} code @param {any} [options] */
  async run(code, options) {
    return of(this, "run").#call("run", options, (given) => this.#port.run(code, given));
  }

  /** @param {string} command @param {any} [options] */
  async shell(command, options) {
    return of(this, "shell").#call("shell", options, (given) => this.#port.shell(command, given));
  }

  /** @param {any} spec */
  async exec(spec) {
    // What is no object is refused by the sandbox, with what to write instead.
    const isText = typeof spec === "string";
    return of(this, "exec").#call("exec", isText ? undefined : spec, (given) => this.#has("exec")(isText ? spec : given));
  }

  /** @param {string} path @param {any} contents @param {FileEncoding} [encoding] @param {any} [options] */
  async writeFile(path, contents, encoding, options) {
    return of(this, "writeFile").#call("writeFile", options, (given) => this.#port.writeFile(path, contents, encoding, given));
  }

  /** @param {string} path @param {FileEncoding} [encoding] @param {any} [options] */
  async readFile(path, encoding, options) {
    return of(this, "readFile").#call("readFile", options, (given) => this.#port.readFile(path, encoding, given));
  }

  /** @param {string} path @param {any} [options] */
  async readBytes(path, options) {
    return of(this, "readBytes").#call("readBytes", options, (given) => this.#has("readBytes")(path, given));
  }

  /** @param {any} [options] */
  async listFiles(options) {
    const files = await of(this, "listFiles").#call("listFiles", options, (given) => this.#has("listFiles")(given));
    return guestsOf(files);
  }

  /** @param {string} path @param {any} [options] */
  async readStream(path, options) {
    return of(this, "readStream").#call("readStream", options, (given) => this.#has("readStream")(path, given), readUntil);
  }

  /** @param {string} path @param {any} [options] */
  async writeStream(path, options) {
    return of(this, "writeStream").#call("writeStream", options, (given) => this.#has("writeStream")(path, given), writtenUntil);
  }

  /** @param {string} path @param {any} [options] */
  async stat(path, options) {
    return of(this, "stat").#call("stat", options, (given) => this.#has("stat")(path, given));
  }

  /** @param {string} [path] @param {any} [options] */
  async listDirectory(path, options) {
    /** @type {{ name: string }[]} */
    const entries = await of(this, "listDirectory").#call("listDirectory", options, (given) => this.#has("listDirectory")(path, given));
    return entries.filter(({ name }) => !name.startsWith(OWN_FILES));
  }

  /** @param {string} path @param {any} [options] */
  async deleteFile(path, options) {
    return of(this, "deleteFile").#call("deleteFile", options, (given) => this.#has("deleteFile")(path, given));
  }

  /** @param {string} from @param {string} to @param {any} [options] */
  async moveFile(from, to, options) {
    return of(this, "moveFile").#call("moveFile", options, (given) => this.#has("moveFile")(from, to, given));
  }

  /** @param {string} path @param {any} [options] */
  async mkdir(path, options) {
    return of(this, "mkdir").#call("mkdir", options, (given) => this.#has("mkdir")(path, given));
  }

  /**
   * Ends this guest's calls and refuses further ones; what it has made stays, and the other guests are not disturbed.
   *
   * @returns {Promise<void>}
   */
  async detach() {
    of(this, "detach");
    this.#isDetached = true;
    this.#left();
    for (const controller of this.#running.keys()) controller.abort(this.#detached());
    /** @type {NodeJS.Timeout | undefined} */
    let timer;
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, DETACH_MS);
    });
    await Promise.race([Promise.allSettled(this.#running.values()), late]);
    clearTimeout(timer);
  }

  /** The port's word for it: the sandbox is the workspace's, and stays. */
  async close() {
    return of(this, "close").detach();
  }

  [asyncDispose]() {
    return this.detach();
  }

  /**
   * Tools for an agent: the four of every sandbox; for a read-only guest one that reads, and one that lists.
   *
   * @param {import("../../types/index.js").SandboxToolOptions & { name?: string | undefined }} [options] "workspace" when `name` is left out: `sandbox_workspace_run` and so on
   * @returns {ToolDef[]}
   */
  getTools(options) {
    of(this, "getTools");
    const { name = "workspace", tools, readOnly = false, ...more } = options ?? {};
    const settings = {
      ...more,
      name,
      readOnly: this.#mode === "read-only" || readOnly,
      tools: { ...(!this.#port.listFiles && { list_files: false }), ...tools },
    };
    return /** @type {any[]} */ (new SandboxToolkit(/** @type {any} */ (this), settings).getTools());
  }

  /** @param {number} depth @param {object} options @param {(value: unknown, options: object) => string} inspect */
  [inspectKey](depth, options, inspect) {
    if (!isGuest(this)) return "[Guest]";
    const { workspaceId, providerId, mode } = this;
    const state = this.#isDetached ? "detached" : this.#shared.state;
    return shownAs(this, { workspaceId, providerId, mode, state }, depth, options, inspect);
  }

  /** @returns {Port} */
  get #port() {
    return this.#shared.sandbox;
  }

  /** @param {More} method @returns {(...args: any[]) => Promise<any>} */
  #has(method) {
    /** @type {any} */
    const port = this.#port;
    if (typeof port[method] === "function") return port[method].bind(port);
    throw new SandboxError(`the sandbox of this workspace, "${port.providerId}", has no ${method}()`, { code: "ERR_SANDBOX_UNSUPPORTED" });
  }

  /**
   * @template T
   * @param {Method} method
   * @param {any} options
   * @param {(given: Record<string, any>) => Promise<T>} call with the options, and a signal of ours in the place of theirs
   * @param {(result: T, over: () => void) => T} [lasting] for a result that goes on after the call; calls `over` at its end
   * @returns {Promise<T>}
   */
  async #call(method, options, call, lasting) {
    const isCommand = REFUSED[method] === "run";
    if (this.#isDetached) throw this.#detached();
    if (this.#mode === "read-only" && REFUSED[method]) throw this.#refused(method);
    this.#shared.check();
    checkObject(options, method);
    /** @type {Record<string, any>} */
    const given = reading(`${method}: the options`, () => ({ ...options }));
    const outer = checkSignal(given.signal);
    if (outer?.aborted) throw outer.reason;
    const controller = new AbortController();
    const unwatch = outer && watch(outer, () => controller.abort(outer.reason));
    const { signal } = controller;
    given.signal = signal;
    const running = isCommand ? this.#shared.command(signal, () => call(given)) : this.#shared.use(signal, () => call(given));
    this.#running.set(controller, running);
    const over = () => {
      this.#running.delete(controller);
      unwatch?.();
    };
    let goesOn = false;
    try {
      const result = await running;
      // exec() resolves for a command that was ended.
      if (this.#isDetached && signal.aborted && /** @type {any} */ (result)?.status === "cancelled") throw signal.reason;
      goesOn = lasting !== undefined && result !== null;
      return lasting && goesOn ? lasting(result, over) : result;
    } finally {
      if (!goesOn) over();
    }
  }

  #detached() {
    return new SandboxError("this guest was detached from its workspace; attach() makes another one", { code: "ERR_SANDBOX_CLOSED" });
  }

  /** @param {Method} method */
  #refused(method) {
    const what = `nothing was ${REFUSED[method]}`;
    return new SandboxError(`${method}(): this guest of the workspace is read-only: it can read files, and neither write nor run anything; ${what}`, {
      code: "ERR_SANDBOX_FORBIDDEN",
    });
  }
}

/** Without what the workspace has there for a moment. @param {{ path: string, size: number }[]} files */
function guestsOf(files) {
  return files.filter(({ path }) => !path.slice(path.lastIndexOf("/") + 1).startsWith(OWN_FILES));
}

/** @param {ReadableStream<Uint8Array>} stream @param {() => void} over */
function readUntil(stream, over) {
  /** @type {TransformStream<Uint8Array, Uint8Array>} */
  const { readable, writable } = new TransformStream();
  // What ends it, on either side, is the other side's end too.
  stream.pipeTo(writable).then(over, over);
  return readable;
}

/** @param {WritableStream<any>} stream @param {() => void} over */
function writtenUntil(stream, over) {
  const writer = stream.getWriter();
  return new WritableStream({
    start(controller) {
      writer.closed.then(over, (error) => {
        over();
        controller.error(error);
      });
    },
    write: (chunk) => writer.write(chunk),
    // The file is there when this has settled.
    close: () => writer.close(),
    abort: (reason) => writer.abort(reason),
  });
}
