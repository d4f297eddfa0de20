// Toolkits: what an agent is given to get tools. SandboxToolkit makes the tools for any object
// that has the seven members of a CloudSandbox; the classes below it only make that object.
//
// Invariant: a toolkit holds one sandbox for its whole life and getTools() does no I/O, so giving an
// agent tools that it never calls costs nothing.
import { AgentCoreSandbox } from "./agentcore.js";
import { DaytonaSandbox } from "./daytona.js";
import { DockerSandbox } from "./docker.js";
import { E2BSandbox } from "./e2b.js";
import { HttpSandbox } from "./http.js";
import { LocalSandbox } from "./local.js";
import { ModalSandbox } from "./modal.js";
import { asyncDispose, checkBoolean, checkInteger, checkNames, detached, inspectKey, invalid, kindOf, reading, shownAs } from "./options.js";
import { AGENT_PREFIX, TOOL_ROLES, sandboxTools } from "./tools.js";
import { VercelSandbox } from "./vercel.js";

/** @import { CloudSandbox, DaytonaSandboxOptions, DockerSandboxOptions, E2BSandboxOptions } from "../types/index.js" */
/** @import { HttpSandboxOptions, LocalSandboxOptions, SandboxCloseOptions, SandboxTools, SandboxToolOptions, ToolDef } from "../types/index.js" */
/** @import { ModalSandboxOptions, VercelSandboxOptions } from "../types/index.js" */
/** @import { ToolRole, ToolSettings } from "./tools.js" */
/** @import { AgentCoreSandboxOptions } from "../types/index.js" */

const METHODS = /** @type {const} */ (["start", "run", "shell", "writeFile", "readFile", "close"]);
/** The longest tool name, `sandbox_<name>_write_file`, must not pass 64 characters. */
const TOOLKIT_NAME = /^[a-z0-9_-]{1,45}$/;
const TOOL_OPTIONS = Object.freeze(["maxToolOutputChars", "readOnly", "tools", "describe"]);
/** Characters of a result: some 12,000 tokens. */
const DEFAULT_OUTPUT_CHARS = 50_000;
/** A result needs room for the line that says what is missing. */
const MIN_OUTPUT_CHARS = 1000;
/** What a model is given unless the options say otherwise. */
const OFFERED = Object.freeze(/** @type {const} */ (["run", "shell", "write_file", "read_file"]));
const READING = Object.freeze(/** @type {const} */ (["read_file", "list_files"]));
/** Names that differ from the provider's id, because the id says how and the tools say where. */
const NAMES = new Map([["unix-local", "local"], ["isolated-local", "local"]]);

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
 * The tools of one sandbox.
 *
 * @template {CloudSandbox} [T=CloudSandbox]
 */
export class SandboxToolkit extends Toolkit {
  /** @type {T} */
  #sandbox;
  /** @type {string} */
  #name;
  /** @type {ToolSettings} */
  #settings;

  static {
    isToolkit = (value) => typeof value === "object" && value !== null && #sandbox in value;
  }

  /**
   * @param {T} sandbox
   * @param {{ name?: string } & SandboxToolOptions} [options]
   */
  constructor(sandbox, options = {}) {
    super();
    this.#sandbox = checkSandbox(sandbox, new.target.name);
    const { name, ...others } = checkNames(options, ["name", ...TOOL_OPTIONS], new.target.name);
    this.#name = name === undefined ? defaultName(sandbox.providerId) : checkName(name);
    this.#settings = toolSettings(others, new.target.name, canList(sandbox));
  }

  /** "sandbox-" and the name; with "_" for "-" it is the prefix of the tools' names. */
  get name() {
    return `sandbox-${this.#name}`;
  }

  /** @returns {SandboxTools} */
  getTools() {
    if (!isToolkit(this)) throw detached("getTools", "toolkit");
    const tools = sandboxTools(this.#sandbox, this.name.replaceAll("-", "_"), this.#settings);
    return /** @type {SandboxTools} */ (/** @type {unknown} */ (tools));
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
  /** @param {LocalSandboxOptions} [options] @param {SandboxToolOptions} [tools] */
  constructor(options, tools) {
    super(new LocalSandbox(unnamed(options, "LocalSandbox"), "LocalSandboxToolkit"), named("local", tools, "LocalSandboxToolkit"));
  }
}

/**
 * The four tools of a new E2BSandbox, named `sandbox_e2b_*`.
 *
 * @extends {SandboxToolkit<E2BSandbox>}
 */
export class E2BSandboxToolkit extends SandboxToolkit {
  /** @param {E2BSandboxOptions} [options] @param {SandboxToolOptions} [tools] */
  constructor(options, tools) {
    super(new E2BSandbox(unnamed(options, "E2BSandbox"), "E2BSandboxToolkit"), named("e2b", tools, "E2BSandboxToolkit"));
  }
}

/**
 * The four tools of a new DaytonaSandbox, named `sandbox_daytona_*`.
 *
 * @extends {SandboxToolkit<DaytonaSandbox>}
 */
export class DaytonaSandboxToolkit extends SandboxToolkit {
  /** @param {DaytonaSandboxOptions} [options] @param {SandboxToolOptions} [tools] */
  constructor(options, tools) {
    super(new DaytonaSandbox(unnamed(options, "DaytonaSandbox"), "DaytonaSandboxToolkit"), named("daytona", tools, "DaytonaSandboxToolkit"));
  }
}

/**
 * The four tools of a new DockerSandbox, named `sandbox_docker_*`.
 *
 * @extends {SandboxToolkit<DockerSandbox>}
 */
export class DockerSandboxToolkit extends SandboxToolkit {
  /** @param {DockerSandboxOptions} [options] @param {SandboxToolOptions} [tools] */
  constructor(options, tools) {
    super(new DockerSandbox(unnamed(options, "DockerSandbox"), "DockerSandboxToolkit"), named("docker", tools, "DockerSandboxToolkit"));
  }
}

/**
 * The four tools of a new HttpSandbox, named `sandbox_http_*`.
 *
 * @extends {SandboxToolkit<HttpSandbox>}
 */
export class HttpSandboxToolkit extends SandboxToolkit {
  /** @param {HttpSandboxOptions} [options] @param {SandboxToolOptions} [tools] */
  constructor(options, tools) {
    super(new HttpSandbox(unnamed(options, "HttpSandbox"), "HttpSandboxToolkit"), named("http", tools, "HttpSandboxToolkit"));
  }
}

/**
 * The four tools of a new VercelSandbox, named `sandbox_vercel_*`.
 *
 * @extends {SandboxToolkit<VercelSandbox>}
 */
export class VercelSandboxToolkit extends SandboxToolkit {
  /** @param {VercelSandboxOptions} [options] @param {SandboxToolOptions} [tools] */
  constructor(options, tools) {
    super(new VercelSandbox(unnamed(options, "VercelSandbox"), "VercelSandboxToolkit"), named("vercel", tools, "VercelSandboxToolkit"));
  }
}

/**
 * The four tools of a new AgentCoreSandbox, named `sandbox_agentcore_*`.
 *
 * @extends {SandboxToolkit<AgentCoreSandbox>}
 */
export class AgentCoreSandboxToolkit extends SandboxToolkit {
  /** @param {AgentCoreSandboxOptions} [options] @param {SandboxToolOptions} [tools] */
  constructor(options, tools) {
    super(new AgentCoreSandbox(unnamed(options, "AgentCoreSandbox"), "AgentCoreSandboxToolkit"), named("agentcore", tools, "AgentCoreSandboxToolkit"));
  }
}

/**
 * The four tools of a new ModalSandbox, named `sandbox_modal_*`.
 *
 * @extends {SandboxToolkit<ModalSandbox>}
 */
export class ModalSandboxToolkit extends SandboxToolkit {
  /** @param {ModalSandboxOptions} [options] @param {SandboxToolOptions} [tools] */
  constructor(options, tools) {
    super(new ModalSandbox(unnamed(options, "ModalSandbox"), "ModalSandboxToolkit"), named("modal", tools, "ModalSandboxToolkit"));
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

/**
 * @param {string} name
 * @param {SandboxToolOptions | undefined} tools
 * @param {string} where
 */
function named(name, tools, where) {
  return { ...checkNames(tools, TOOL_OPTIONS, where), name };
}

/** @param {any} sandbox */
function canList(sandbox) {
  return reading("the sandbox's `listFiles`", () => typeof sandbox.listFiles === "function");
}

/**
 * @param {Record<string, any>} options names checked
 * @param {string} where
 * @param {boolean} lists whether the sandbox can list its files
 * @returns {ToolSettings}
 */
function toolSettings({ maxToolOutputChars = DEFAULT_OUTPUT_CHARS, readOnly = false, tools, describe }, where, lists) {
  const most = maxToolOutputChars === Infinity ? Infinity : checkInteger(maxToolOutputChars, "maxToolOutputChars", MIN_OUTPUT_CHARS, Number.MAX_SAFE_INTEGER);
  checkBoolean(readOnly, "readOnly");
  const chosen = checkNames(tools, TOOL_ROLES, `${where}: \`tools\``);
  const usual = readOnly ? READING.filter((role) => role !== "list_files" || lists) : OFFERED;
  const offered = new Set(TOOL_ROLES.filter((role) => isOffered(role, chosen[role], usual.includes(/** @type {any} */ (role)))));
  const changing = readOnly && TOOL_ROLES.find((role) => offered.has(role) && !READING.includes(/** @type {any} */ (role)));
  if (changing) throw invalid(`${where}: \`tools.${changing}\` changes things, and \`readOnly\` leaves out what does; leave out one of the two`);
  if (offered.size === 0) throw invalid(`${where}: \`tools\` leaves no tool; there are ${TOOL_ROLES.join(", ")}`);
  if (offered.has("list_files") && !lists) throw invalid(`${where}: \`tools.list_files\` needs a sandbox with listFiles(), and this one has none`);
  // Where no command can print a part of a file, nothing else can.
  const ranges = chosen.read_file?.range ?? !(offered.has("shell") || offered.has("run"));
  return { offered, ranges: checkBoolean(ranges, "tools.read_file.range"), most, describe: checkDescribe(describe, where) };
}

/** @param {ToolRole} role @param {any} choice @param {boolean} usual */
function isOffered(role, choice, usual) {
  if (choice === undefined) return usual;
  if (role === "read_file" && typeof choice === "object" && choice !== null) {
    checkNames(choice, ["range"], "`tools.read_file`");
    return true;
  }
  return checkBoolean(choice, `tools.${role}`);
}

/** @param {any} describe @param {string} where @returns {ToolSettings["describe"]} */
function checkDescribe(describe, where) {
  const checked = checkNames(describe, TOOL_ROLES, `${where}: \`describe\``);
  for (const [role, text] of Object.entries(checked)) {
    if (typeof text === "function" || (typeof text === "string" && text !== "")) continue;
    throw invalid(`${where}: \`describe.${role}\` must be a text that is not empty, or a function that makes one of ours, not ${kindOf(text)}`);
  }
  return checked;
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
