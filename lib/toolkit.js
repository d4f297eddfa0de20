// Toolkits: what an agent is given to get tools. SandboxToolkit makes the four tools for any object
// that has the seven members of a CloudSandbox; the classes below it only make that object.
//
// Invariant: a toolkit holds one sandbox for its whole life and getTools() does no I/O, so giving an
// agent tools that it never calls costs nothing.
import { DaytonaSandbox } from "./daytona.js";
import { DockerSandbox } from "./docker.js";
import { E2BSandbox } from "./e2b.js";
import { HttpSandbox } from "./http.js";
import { LocalSandbox } from "./local.js";
import { asyncDispose, checkNames, detached, inspectKey, invalid, reading, shownAs } from "./options.js";
import { AGENT_PREFIX, sandboxTools } from "./tools.js";
import { VercelSandbox } from "./vercel.js";

/** @import { CloudSandbox, DaytonaSandboxOptions, DockerSandboxOptions, E2BSandboxOptions } from "../types/index.js" */
/** @import { HttpSandboxOptions, LocalSandboxOptions, SandboxCloseOptions, SandboxTools, ToolDef } from "../types/index.js" */
/** @import { VercelSandboxOptions } from "../types/index.js" */

const METHODS = /** @type {const} */ (["start", "run", "shell", "writeFile", "readFile", "close"]);
/** The longest tool name, `sandbox_<name>_write_file`, must not pass 64 characters. */
const TOOLKIT_NAME = /^[a-z0-9_-]{1,45}$/;
/** Names that differ from the provider's id, because the id says how and the tools say where. */
const NAMES = new Map([["unix-local", "local"]]);

/** Base class of everything that has a name and gives tools. */
export class Toolkit {
  constructor() {
    if (new.target === Toolkit) {
      throw new TypeError("Toolkit is abstract: extend it with a `name` and getTools()");
    }
  }

  /** @returns {ToolDef[]} */
  getTools() {
    throw new TypeError(`${this.constructor.name} does not implement getTools()`);
  }
}

/**
 * Whether a value is a toolkit of this class itself, and no Proxy of one.
 *
 * @type {(value: unknown) => boolean}
 */
let isToolkit;

/**
 * The four tools of one sandbox.
 *
 * @template {CloudSandbox} [T=CloudSandbox]
 */
export class SandboxToolkit extends Toolkit {
  /** @type {T} */
  #sandbox;
  /** @type {string} */
  #name;

  static {
    isToolkit = (value) => typeof value === "object" && value !== null && #sandbox in value;
  }

  /**
   * @param {T} sandbox
   * @param {{ name?: string }} [options]
   */
  constructor(sandbox, options = {}) {
    super();
    this.#sandbox = checkSandbox(sandbox, new.target.name);
    const { name } = checkNames(options, ["name"], new.target.name);
    this.#name = name === undefined ? defaultName(sandbox.providerId) : checkName(name);
  }

  /** "sandbox-" and the name; with "_" for "-" it is the prefix of the tools' names. */
  get name() {
    return `sandbox-${this.#name}`;
  }

  /** @returns {SandboxTools} */
  getTools() {
    if (!isToolkit(this)) throw detached("getTools", "toolkit");
    return sandboxTools(this.#sandbox, this.name.replaceAll("-", "_"));
  }

  getSandbox() {
    if (!isToolkit(this)) throw detached("getSandbox", "toolkit");
    return this.#sandbox;
  }

  /**
   * Closes the sandbox: its own rules for calls in flight and repeated calls hold.
   *
   * @param {SandboxCloseOptions} [options] passed on to the sandbox
   */
  async close(options) {
    if (!isToolkit(this)) throw detached("close", "toolkit");
    await (options === undefined ? this.#sandbox.close() : this.#sandbox.close(options));
  }

  [asyncDispose]() {
    return this.close();
  }

  /**
   * What console.log() shows. Of a sandbox of another's making it is the id of its provider: what else it
   * holds may be a secret.
   *
   * @param {number} depth
   * @param {object} options
   * @param {(value: unknown, options: object) => string} inspect
   */
  [inspectKey](depth, options, inspect) {
    if (!isToolkit(this)) return "[SandboxToolkit]";
    const sandbox = inspectKey in this.#sandbox ? this.#sandbox : this.#sandbox.providerId;
    return shownAs(this, { name: this.name, sandbox }, depth, options, inspect);
  }
}

/**
 * The four tools of a new LocalSandbox, named `sandbox_local_*`.
 *
 * @extends {SandboxToolkit<LocalSandbox>}
 */
export class LocalSandboxToolkit extends SandboxToolkit {
  /** @param {LocalSandboxOptions} [options] */
  constructor(options) {
    super(new LocalSandbox(unnamed(options, "LocalSandbox"), "LocalSandboxToolkit"), { name: "local" });
  }
}

/**
 * The four tools of a new E2BSandbox, named `sandbox_e2b_*`.
 *
 * @extends {SandboxToolkit<E2BSandbox>}
 */
export class E2BSandboxToolkit extends SandboxToolkit {
  /** @param {E2BSandboxOptions} [options] */
  constructor(options) {
    super(new E2BSandbox(unnamed(options, "E2BSandbox"), "E2BSandboxToolkit"), { name: "e2b" });
  }
}

/**
 * The four tools of a new DaytonaSandbox, named `sandbox_daytona_*`.
 *
 * @extends {SandboxToolkit<DaytonaSandbox>}
 */
export class DaytonaSandboxToolkit extends SandboxToolkit {
  /** @param {DaytonaSandboxOptions} [options] */
  constructor(options) {
    super(new DaytonaSandbox(unnamed(options, "DaytonaSandbox"), "DaytonaSandboxToolkit"), { name: "daytona" });
  }
}

/**
 * The four tools of a new DockerSandbox, named `sandbox_docker_*`.
 *
 * @extends {SandboxToolkit<DockerSandbox>}
 */
export class DockerSandboxToolkit extends SandboxToolkit {
  /** @param {DockerSandboxOptions} [options] */
  constructor(options) {
    super(new DockerSandbox(unnamed(options, "DockerSandbox"), "DockerSandboxToolkit"), { name: "docker" });
  }
}

/**
 * The four tools of a new HttpSandbox, named `sandbox_http_*`.
 *
 * @extends {SandboxToolkit<HttpSandbox>}
 */
export class HttpSandboxToolkit extends SandboxToolkit {
  /** @param {HttpSandboxOptions} [options] */
  constructor(options) {
    super(new HttpSandbox(unnamed(options, "HttpSandbox"), "HttpSandboxToolkit"), { name: "http" });
  }
}

/**
 * The four tools of a new VercelSandbox, named `sandbox_vercel_*`.
 *
 * @extends {SandboxToolkit<VercelSandbox>}
 */
export class VercelSandboxToolkit extends SandboxToolkit {
  /** @param {VercelSandboxOptions} [options] */
  constructor(options) {
    super(new VercelSandbox(unnamed(options, "VercelSandbox"), "VercelSandboxToolkit"), { name: "vercel" });
  }
}

/**
 * All tools of some toolkits by name; of two tools with one name, the later one.
 *
 * @template {{ name: string }} Tool
 * @param {Iterable<{ getTools(): Tool[] }>} toolkits
 * @returns {Record<string, Tool>}
 */
export function collectToolkitTools(toolkits) {
  const all = typeof toolkits?.[Symbol.iterator] === "function" ? [...toolkits] : undefined;
  if (!all?.every((toolkit) => typeof toolkit?.getTools === "function")) {
    throw invalid("collectToolkitTools: give an array of toolkits, such as [new LocalSandboxToolkit()]");
  }
  return Object.fromEntries(all.flatMap((toolkit) => toolkit.getTools().map((tool) => [tool.name, tool])));
}

/**
 * Name, description and parameter names of each tool, for a prompt or a listing.
 *
 * @param {Record<string, { name: string, description: string, parameters?: any }>} library
 */
export function describeToolLibrary(library) {
  return reading("describeToolLibrary: the tools", () => {
    /** @type {any[]} */
    const tools = typeof library === "object" && library !== null ? Object.values(library) : [undefined];
    if (!tools.every((tool) => typeof tool?.name === "string")) {
      throw invalid("describeToolLibrary: give what collectToolkitTools() gave: an object with tools in it");
    }
    return tools.map(({ name, description, parameters }) => ({
      name,
      description,
      parameters: Object.keys(parameters?.shape ?? {}),
    }));
  });
}

/**
 * Returns `sandbox` when it has the seven members of the port, whatever its class.
 *
 * @template {CloudSandbox} T
 * @param {T} sandbox
 * @param {string} where
 * @returns {T}
 */
export function checkSandbox(sandbox, where) {
  const object = /** @type {any} */ (sandbox);
  const wanted = `a CloudSandbox has providerId, ${METHODS.join(", ")}`;
  if (typeof object !== "object" || object === null) {
    throw invalid(`${where}: the sandbox must be an object; ${wanted}`);
  }
  if (reading(`${where}: the sandbox's \`providerId\``, () => typeof object.providerId !== "string")) {
    throw invalid(`${where}: the sandbox's \`providerId\` must be a string; ${wanted}`);
  }
  const missing = reading(`${where}: the sandbox`, () => METHODS.filter((it) => typeof object[it] !== "function"));
  if (missing.length === 0) return sandbox;
  throw invalid(`${where}: the sandbox has no function \`${missing.join("`, `")}\`; ${wanted}`);
}

/**
 * The options, unless they ask for a name, which these toolkits have already.
 *
 * @template T
 * @param {T} options
 * @param {string} kind
 * @returns {T}
 */
function unnamed(options, kind) {
  const where = `${kind}Toolkit`;
  if (reading(`${where}: \`name\``, () => /** @type {any} */ (options)?.name) === undefined) return options;
  const whole = `new SandboxToolkit(new ${kind}({ ... }), { name: "..." })`;
  throw invalid(`${where}: there is no option \`name\`: its tools always have the same names. For others, write ${whole}`);
}

/** @param {string} providerId */
function defaultName(providerId) {
  const name = providerId.startsWith(AGENT_PREFIX) ? "workspace" : (NAMES.get(providerId) ?? providerId);
  if (TOOLKIT_NAME.test(name)) return name;
  throw invalid(
    `SandboxToolkit: providerId ${JSON.stringify(name.slice(0, 60))} cannot be part of a tool's name; ` +
      "give one in the options: { name } of 1 to 45 characters a-z, 0-9, `_`, `-`",
  );
}

/** @param {string} name */
function checkName(name) {
  if (typeof name === "string" && TOOLKIT_NAME.test(name)) return name;
  throw invalid("SandboxToolkit: `name` must have 1 to 45 characters a-z, 0-9, `_` or `-`");
}
