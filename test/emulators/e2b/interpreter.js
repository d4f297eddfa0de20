// The code interpreter on port 49999: contexts with a persistent kernel each, and /execute, whose reply is
// one JSON object per line.
// @ts-check
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { statSync } from "node:fs";
import path from "node:path";
import readline from "node:readline";
import { resolvePath } from "./paths.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */
/** @typedef {import("./sandbox.js").Sandbox} Sandbox */

const ALIASES = /** @type {Record<string, string>} */ ({ js: "javascript", ts: "typescript" });
const KERNELS = /** @type {Record<string, string[]>} */ ({
  python: ["python3", path.join(import.meta.dirname, "kernel.py")],
  javascript: [process.execPath, path.join(import.meta.dirname, "kernel-node.js")],
});

/** How a variable is set, and taken back, in a context's language: pasted, as the service does. */
const SNIPPETS = /** @type {Record<string, { set: (key: string, value: string) => string, unset: (key: string) => string }>} */ ({
  python: {
    set: (key, value) => `import os; os.environ['${key}'] = '${value}'`,
    unset: (key) => `import os; del os.environ['${key}']`,
  },
  javascript: {
    set: (key, value) => `process.env['${key}'] = '${value}'`,
    unset: (key) => `delete process.env['${key}']`,
  },
});

class HttpError extends Error {
  /**
   * @param {number} status
   * @param {string} message
   */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/**
 * One line of a reply, in ASCII.
 * @param {Record<string, unknown>} value
 */
function line(value) {
  const text = JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return Buffer.from(`${text}\n`);
}

/** Text loses one pair of quotes around it. @param {string} text */
function unquote(text) {
  return /^(['"])[^]*\1$/.test(text) && text.length > 1 ? text.slice(1, -1) : text;
}

class Context {
  executions = 0;
  globalsKnown = false;
  /** @type {import("node:child_process").ChildProcess | undefined} */
  #kernel;
  /** Runs one cell after the other. @type {Promise<unknown>} */
  #lock = Promise.resolve();
  /** The cell that runs now. @type {{ kernel: object, listener: (event: Record<string, any>) => void } | undefined} */
  #cell;

  /**
   * @param {Sandbox} sandbox
   * @param {string} language
   * @param {string} cwd where it runs
   * @param {string} told where it says to run
   */
  constructor(sandbox, language, cwd, told) {
    this.sandbox = sandbox;
    this.language = language;
    this.cwd = cwd;
    this.told = told;
    this.id = randomUUID();
    this.name = randomUUID();
  }

  describe() {
    return { id: this.id, language: this.language, cwd: this.told };
  }

  /**
   * @template T
   * @param {() => Promise<T>} action
   * @returns {Promise<T>}
   */
  exclusive(action) {
    const result = this.#lock.then(action);
    this.#lock = result.catch(() => {});
    return result;
  }

  /**
   * Runs a cell; events go to `listener`. False if the kernel has died over it.
   * @param {string} code
   * @param {boolean} silent
   * @param {(event: Record<string, any>) => void} listener
   */
  async cell(code, silent, listener) {
    const kernel = (this.#kernel ??= this.#launch());
    const alive = await /** @type {Promise<boolean>} */ (
      new Promise((resolve) => {
        const onEvent = (/** @type {Record<string, any>} */ event) => {
          if (event.type === "done" || event.type === "died") resolve(event.type === "done");
          if (event.type !== "done") listener(event);
        };
        this.#cell = { kernel, listener: onEvent };
        kernel.stdin?.write(`${JSON.stringify({ code, silent })}\n`);
      })
    );
    this.#cell = undefined;
    return alive;
  }

  interrupt() {
    if (this.language === "python") this.#signal("SIGINT");
    else this.stop();
  }

  stop() {
    this.#signal("SIGKILL");
    this.#kernel = undefined;
  }

  /** To the kernel's whole group, as Jupyter does: a child in a session of its own is not reached. @param {NodeJS.Signals} signal */
  #signal(signal) {
    const pid = this.#kernel?.pid;
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch {
      // Gone meanwhile.
    }
  }

  restart() {
    this.stop();
    this.executions = 0;
    this.globalsKnown = false;
  }

  #launch() {
    const { environment, homes } = this.sandbox;
    const [program, ...args] = KERNELS[this.language];
    // Jupyter's server says by them which kernel it is.
    const kernel = spawn(program, [...args, "-f", `/root/.local/share/jupyter/runtime/kernel-${this.id}.json`], {
      cwd: this.cwd,
      env: {
        PATH: process.env.PATH,
        HOME: homes.user,
        USER: "user",
        LOGNAME: "user",
        PYTHONIOENCODING: "utf-8",
        JPY_SESSION_NAME: this.name,
        E2B_SANDBOX: environment.E2B_SANDBOX,
        E2B_SANDBOX_ID: environment.E2B_SANDBOX_ID,
      },
      stdio: ["pipe", "pipe", "pipe", "pipe"],
      detached: true,
    });
    // A kernel that is being replaced may still speak; the next cell must not hear it.
    const tell = (/** @type {Record<string, any>} */ event) => {
      if (this.#cell?.kernel === kernel) this.#cell.listener(event);
    };
    kernel.stdin.on("error", () => {});
    // Output of child processes and of code below the language's own streams.
    for (const name of /** @type {const} */ (["stdout", "stderr"])) {
      kernel[name].setEncoding("utf8");
      kernel[name].on("data", (text) => tell({ type: name, text }));
    }
    const events = /** @type {import("node:stream").Readable} */ (kernel.stdio[3]);
    readline.createInterface({ input: events }).on("line", (text) => tell(JSON.parse(text)));
    const died = () => {
      if (this.#kernel === kernel) this.restart();
      tell({ type: "died" });
    };
    kernel.on("error", died);
    // Its pipes may be held open by a child that has survived it.
    kernel.on("exit", () => setTimeout(died, 20));
    return kernel;
  }
}

export class Interpreter {
  /** @type {Map<string, Context>} */
  #contexts = new Map();

  /** @param {Sandbox} sandbox */
  constructor(sandbox) {
    this.sandbox = sandbox;
    this.defaults = {
      python: this.#create("python", undefined),
      javascript: this.#create("javascript", undefined),
    };
  }

  /** @param {Exchange} exchange */
  async serve(exchange) {
    const [, collection, id, action] = exchange.path.split("/");
    const call = `${exchange.method} /${collection}${id ? "/{id}" : ""}${action ? `/${action}` : ""}`;
    try {
      if (call === "GET /health") await exchange.json(200, "OK");
      else if (call === "POST /execute") await this.#execute(exchange);
      else if (call === "POST /contexts") await this.#newContext(exchange);
      else if (call === "GET /contexts") {
        await exchange.json(200, [...this.#contexts.values()].map((context) => context.describe()));
      } else if (call === "DELETE /contexts/{id}") {
        this.#find(id).stop();
        this.#contexts.delete(id);
        await exchange.json(200, null);
      } else if (call === "POST /contexts/{id}/restart") {
        this.#find(id).restart();
        await exchange.json(200, null);
      } else await exchange.json(404, { detail: "Not Found" });
    } catch (error) {
      if (!(error instanceof HttpError)) throw error;
      await exchange.text(error.status, error.message);
    }
  }

  stop() {
    for (const context of this.#contexts.values()) context.stop();
  }

  /** @param {string} id */
  #find(id) {
    const context = this.#contexts.get(id);
    if (!context) throw new HttpError(404, `Context ${id} not found`);
    return context;
  }

  /**
   * @param {string} given
   * @param {string | undefined} cwd
   */
  #create(given, cwd) {
    const language = normalize(given);
    if (!KERNELS[language]) throw new HttpError(500, `Failed to create context: no kernel for ${language}`);
    const { user: home } = this.sandbox.homes;
    const context = new Context(this.sandbox, language, findDirectory(this.sandbox, cwd) ?? home, cwd ?? home);
    this.#contexts.set(context.id, context);
    return context;
  }

  /** @param {Exchange} exchange */
  async #newContext(exchange) {
    const request = await readObject(exchange, { language: "string", cwd: "string" });
    if (request) await exchange.json(200, this.#create(request.language ?? "python", request.cwd ?? undefined).describe());
  }

  /** @param {Exchange} exchange */
  async #execute(exchange) {
    const fields = { code: "string", language: "string", context_id: "string", env_vars: "object" };
    const request = await readObject(exchange, fields, ["code"]);
    if (!request) return;
    if (request.context_id && request.language) {
      throw new HttpError(400, "Only one of context_id or language can be provided");
    }
    const language = normalize(request.language ?? "python");
    let context;
    if (request.context_id) context = this.#find(request.context_id);
    else if (language === "python" || language === "javascript") context = this.defaults[language];
    else context = this.#create(language, undefined);
    await exchange.open(200);
    await this.#stream(exchange, context, request);
    await exchange.end();
  }

  /**
   * @param {Exchange} exchange
   * @param {Context} context
   * @param {Record<string, any>} request
   */
  async #stream(exchange, context, request) {
    const { executeKeepaliveMs, interruptOnDisconnect } = this.sandbox.settings;
    /** @type {Promise<void>} */
    let written = Promise.resolve();
    let interruptible = false;
    /** @type {NodeJS.Timeout | undefined} */
    let timer;
    const send = (/** @type {Record<string, unknown>} */ value) => {
      clearTimeout(timer);
      if (exchange.signal.aborted) {
        if (interruptible && interruptOnDisconnect) context.interrupt();
        interruptible = false;
        return;
      }
      written = written.then(() => exchange.write(line(value)));
      timer = setTimeout(() => send({ type: "keepalive" }), executeKeepaliveMs);
      timer.unref();
    };
    timer = setTimeout(() => send({ type: "keepalive" }), executeKeepaliveMs);
    await context.exclusive(async () => {
      interruptible = true;
      const { set, unset } = SNIPPETS[context.language];
      const globals = this.#globals(exchange);
      const own = request.env_vars ?? {};
      const before = Object.entries({ ...(context.globalsKnown ? {} : globals), ...own });
      context.globalsKnown = true;
      context.executions += 1;
      send({ type: "number_of_executions", execution_count: context.executions });
      const code = [...before.map(([key, value]) => set(key, String(value))), request.code].join("\n");
      const alive = await context.cell(code, false, (event) => send(translate(event)));
      interruptible = false;
      const after = Object.keys(own).map((key) => (key in globals ? set(key, globals[key]) : unset(key)));
      if (alive && after.length) await context.cell(after.join("\n"), true, () => {});
    });
    send({ type: "end_of_execution" });
    clearTimeout(timer);
    await written;
  }

  /**
   * The sandbox's environment, for which the service asks envd with the caller's token.
   * @param {Exchange} exchange
   * @returns {Record<string, string>}
   */
  #globals(exchange) {
    const { daemon, environment } = this.sandbox;
    return !daemon.token || exchange.header("x-access-token") === daemon.token ? environment : {};
  }
}

/** @param {Record<string, any>} event */
function translate(event) {
  if (event.type === "result") {
    const text = typeof event.data.text === "string" ? unquote(event.data.text) : undefined;
    return { type: "result", ...event.data, text, extra: {}, is_main_result: event.main || undefined };
  }
  if (event.type === "died") {
    return { type: "error", name: "ContextRestarting", value: "Context was restarted", traceback: "" };
  }
  if (event.type === "error") return event;
  return { type: event.type, text: event.text, timestamp: new Date().toISOString().replace("Z", "000+00:00") };
}

/**
 * Where code of a context can run; undefined if it cannot there, and nobody says so: the directory is pasted into the
 * first cell, which then fails unseen.
 * @param {Sandbox} sandbox
 * @param {string} [cwd]
 */
function findDirectory(sandbox, cwd = "") {
  if (cwd.includes("'")) return undefined;
  try {
    const directory = resolvePath(sandbox, sandbox.homes.user, cwd);
    return statSync(directory).isDirectory() ? directory : undefined;
  } catch {
    return undefined;
  }
}

/** @param {string} language */
function normalize(language) {
  const name = language.trim().toLowerCase();
  return ALIASES[name] ?? name;
}

/**
 * A JSON request body with the service's schema errors; undefined when one was answered.
 * @param {Exchange} exchange
 * @param {Record<string, string>} fields name and type; null counts as absent
 * @param {string[]} [required]
 * @returns {Promise<Record<string, any> | undefined>}
 */
async function readObject(exchange, fields, required = []) {
  let value;
  try {
    value = JSON.parse((await exchange.body()).toString());
  } catch (error) {
    const detail = [{ type: "json_invalid", loc: ["body", 0], msg: "JSON decode error", input: {}, ctx: { error: String(error) } }];
    await exchange.json(422, { detail });
    return undefined;
  }
  const detail = [];
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    detail.push({ type: "model_attributes_type", loc: ["body"], msg: "Input should be a valid dictionary or object to extract fields from" });
  } else {
    for (const name of required) {
      if (value[name] === undefined) detail.push({ type: "missing", loc: ["body", name], msg: "Field required", input: value });
    }
    for (const [name, type] of Object.entries(fields)) {
      const given = value[name] ?? undefined;
      if (given !== undefined && typeof given !== type) {
        detail.push({ type: `${type}_type`, loc: ["body", name], msg: `Input should be a valid ${type}`, input: given });
      }
    }
  }
  if (!detail.length) return value;
  await exchange.json(422, { detail });
  return undefined;
}
