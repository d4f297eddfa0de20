// Tools for an agent: plain objects that Agentium, the Vercel AI SDK and Mastra take as they are, and
// that other frameworks need one line for. defineTool() makes one; sandboxTools() makes those of a sandbox: four,
// and what a toolkit's options add or leave out.
//
// Invariant: arguments are checked inside execute() too, because some frameworks hand over what the
// model wrote; and whatever fails becomes one sentence that a model can act on, since it sees no more.
import { PathSecurityError, SandboxError, detailsOf, lazily, wordsOf } from "./errors.js";
import { unfenced } from "./fence.js";
import { MAX_TIMEOUT_SECONDS, checkNames, invalid, isSignal, reading } from "./options.js";
import { inTool } from "./recording.js";
import { LARGER_FILE, forTools, toolCall } from "./sandbox.js";
import { LANGUAGES } from "./spec.js";
import { isRecord, objectSchema, plainSchema } from "./schema.js";

/** @import { CloudSandbox, SandboxRunOptions, SandboxTool } from "../types/index.js" */
/** @import { ToolConfig, ToolDef, ToolEffect } from "../types/index.js" */
/** @import { ToolCall } from "./sandbox.js" */

/** Longest and only form of tool name that every framework and model API takes. */
const TOOL_NAME = /^[A-Za-z0-9_-]{1,64}$/;
/** Longest reason of a failure that is passed on to a model. */
const MAX_REASON = 1500;
/** Largest file that read_file returns, where the sandbox can be told. */
const MAX_FILE_BYTES = 16 * 1024 * 1024;
const FILE_NOT_FOUND = "[file not found]";

const extras = lazily("tool-extras.js", () => import("./tool-extras.js"));

const EFFECTS = ["execute", "write", "read"];

/** What the providerId of a SandboxAgent begins with; that of its sandbox follows. */
export const AGENT_PREFIX = "sandbox-agent-";

/** Where a sandbox runs, in words for the model. Only what is known to be isolated may be called so. */
const PLACES = new Map([["unix-local", "on the host computer, which is not isolated"]]);

/**
 * Makes a tool. `parameters` is a JSON Schema object, which the tool then checks itself, or a Zod or
 * Standard Schema object, which stays as it is and is checked by the framework.
 *
 * @param {ToolConfig} config
 * @returns {ToolDef}
 */
export function defineTool(config) {
  const { name, description, parameters, execute, rawJsonSchema, ...others } = checkToolOptions(config);
  const where = `defineTool "${name}"`;
  const rest = { ...others, ...approvalNames(others.requiresApproval) };
  if (reading(`${where}: \`parameters\``, () => isParser(parameters))) {
    const raw = rawJsonSchema && { rawJsonSchema };
    return { id: name, name, description, parameters, inputSchema: parameters, ...raw, ...rest, execute };
  }
  if (!isRecord(parameters)) {
    throw invalid(`${where}: \`parameters\` must be a JSON Schema, Zod or Standard Schema object`);
  }
  const schema = reading(`${where}: \`parameters\``, () => objectSchema(parameters, { where, tool: name }));
  return tool({ name, description, schema, ...(rawJsonSchema && { rawJsonSchema }), ...rest }, execute);
}

/**
 * The same rule for the AI SDK and for Mastra, which would not see it under Agentium's name.
 *
 * @param {ToolConfig["requiresApproval"]} rule
 */
function approvalNames(rule) {
  return rule === undefined ? {} : { needsApproval: rule, requireApproval: rule };
}

/**
 * @typedef {object} ToolFacts what is known of a sandbox besides the port
 * @property {string} [shell] the one that was chosen
 * @property {readonly string[]} languages the default first
 * @property {boolean} keepsVariables code runs in an interpreter
 */

/** The tools that there are, in their order. */
export const TOOL_ROLES = Object.freeze(/** @type {const} */ (["run", "shell", "write_file", "read_file", "list_files", "edit_file"]));

/**
 * @typedef {typeof TOOL_ROLES[number]} ToolRole
 * @typedef {object} ToolSettings what a toolkit's options come to
 * @property {ReadonlySet<ToolRole>} offered
 * @property {boolean} ranges whether read_file takes `offset` and `limit`
 * @property {number} most characters of a result
 * @property {Partial<Record<ToolRole, string | ((text: string) => string)>>} describe
 */

/**
 * @typedef {object} Call what a framework gives with a call
 * @property {AbortSignal | undefined} signal
 * @property {((text: string) => void) | undefined} onOutput never throws
 */

/**
 * @typedef {object} Kind one of the tools
 * @property {ToolEffect} effect
 * @property {Record<string, object>} properties
 * @property {string} text
 * @property {(args: any, call: Call) => Promise<string>} body
 */

/**
 * The tools of a sandbox. Every call makes new objects over the same sandbox.
 *
 * @param {CloudSandbox} sandbox
 * @param {string} prefix such as "sandbox_local"
 * @param {ToolSettings} settings
 * @returns {SandboxTool[]}
 */
export function sandboxTools(sandbox, prefix, settings) {
  const { offered, ranges, most, describe } = settings;
  const providerId = reading("the sandbox's `providerId`", () => sandbox.providerId);
  const isAgent = providerId.startsWith(AGENT_PREFIX);
  const host = isAgent ? providerId.slice(AGENT_PREFIX.length) : providerId;
  const place = PLACES.get(host) ?? "in the sandbox";
  // The tool says python; the default of a local SandboxAgent is node.
  const ownLanguage = isAgent && host === "unix-local" ? "python" : undefined;
  // Of a sandbox of another's making no more is known than what the port says.
  const facts = reading("the sandbox", () => /** @type {any} */ (sandbox)[forTools]);
  const texts = executeTexts(place, facts);
  const shell = offered.has("shell") ? `${prefix}_shell` : undefined;
  /** @param {AbortSignal | undefined} signal */
  const readOptions = (signal) => {
    const options = given({ maxBytes: facts ? MAX_FILE_BYTES : undefined, signal });
    return Object.keys(options).length > 0 ? options : undefined;
  };
  /** @type {Record<ToolRole, () => Kind>} */
  const kinds = {
    run: () => ({
      effect: "execute",
      properties: runSchema(facts),
      text: texts.run,
      body: ({ code, language = ownLanguage, timeoutSeconds }, call) =>
        runSource(sandbox, code, language, { timeoutSeconds, call, most, knows: facts !== undefined }),
    }),
    shell: () => ({
      effect: "execute",
      properties: SHELL,
      text: texts.shell,
      body: ({ command, timeoutSeconds }, call) =>
        runSource(sandbox, command, COMMAND, { timeoutSeconds, call, most, knows: facts !== undefined }),
    }),
    write_file: () => ({
      effect: "write",
      properties: WRITE_FILE,
      text: `Create or replace a file ${place}; missing folders are made. Returns "ok".`,
      async body({ path, contents, encoding = "utf8" }, { signal }) {
        await sandbox.writeFile(path, contents, encoding, ...(signal ? [{ signal }] : []));
        return "ok";
      },
    }),
    read_file: () => ({
      effect: "read",
      properties: ranges ? { ...READ_FILE, ...RANGE } : READ_FILE,
      text: `Read ${ranges ? "a file, or some lines of it," : "a whole file"} ${place}. Returns its content, or "${FILE_NOT_FOUND}".`,
      async body({ path, encoding = "utf8", ...range }, { signal }) {
        const options = readOptions(signal);
        try {
          const content = await sandbox.readFile(path, encoding, ...(options ? [options] : []));
          return await contentText(content, encoding, range, { name: `${prefix}_read_file`, shell, ranges, most });
        } catch (error) {
          throw withAdvice(error);
        }
      },
    }),
    list_files: () => ({
      effect: "read",
      properties: LIST_FILES,
      text: `List the files ${place}, in all folders, with their sizes. Returns a line for each.`,
      body: async (args, { signal }) => (await extras()).listOf(sandbox, args, { signal, most, shell }),
    }),
    edit_file: () => ({
      effect: "write",
      properties: EDIT_FILE,
      text: `Replace text in a file ${place}. \`oldText\` must be in the file exactly once, spaces and line ends included. Returns "ok" and the line.`,
      body: async (args, { signal }) => (await extras()).edit(sandbox, args, signal, readOptions(signal)),
    }),
  };
  return TOOL_ROLES.filter((role) => offered.has(role)).map((role) => {
    const kind = kinds[role]();
    return sandboxTool(`${prefix}_${role}`, { ...kind, text: described(role, describe[role], kind.text) });
  });
}

/** @param {ToolRole} role @param {string | ((text: string) => string) | undefined} own @param {string} text */
function described(role, own, text) {
  if (own === undefined) return text;
  const made = typeof own === "function" ? own(text) : own;
  if (typeof made === "string" && made !== "") return made;
  throw invalid(`\`describe.${role}\` must return a text that is not empty`);
}

/**
 * What the tools run and shell say of themselves.
 *
 * @param {string} place
 * @param {ToolFacts | undefined} facts
 */
function executeTexts(place, facts) {
  const result =
    'Returns JSON: {"output": standard output and error together, "exitCode": 0 on success, ' +
    '"timedOut" or "outputTruncated": true when so}.';
  const fresh = "Every call starts a new process in the working directory; only files stay for later calls";
  if (!facts) {
    return {
      run: `Run source code ${place}. ${fresh}. ${result}`,
      shell: `Run a command line with the shell ${place}. ${fresh}. ${result}`,
    };
  }
  const main = "The code is the main file of a new process in the working directory; only files stay for later calls.";
  const kept =
    "Variables and files stay for later calls; a timeout clears the variables. " +
    "Only what the code prints is returned, not the value of its last line: use print().";
  const shell = facts.shell ?? "bash, or sh where there is no bash,";
  const background =
    "and what runs in the background. So start a server with `command >server.log 2>&1 &`: it runs until the " +
    "sandbox is closed; `curl --retry 9 --retry-connrefused` waits until it listens";
  return {
    run: `Run source code ${place}. ${facts.keepsVariables ? kept : main} ${result}`,
    shell: `Run a command line with ${shell} ${place}. ${fresh} ${background}. ${result}`,
  };
}

/** Stands for a command line where there could be a language. */
const COMMAND = Symbol("command");

/**
 * Runs code or a command line as a model wrote it. The word of a fence around it stands nearer to it than
 * the argument, or the tool, that the model chose.
 *
 * @param {CloudSandbox} sandbox
 * @param {string} source
 * @param {"python" | "node" | "shell" | typeof COMMAND | undefined} chosen
 * @param {{ timeoutSeconds?: number, call: Call, most: number, knows: boolean }} how knows: whether the sandbox is of this package
 */
async function runSource(sandbox, source, chosen, { timeoutSeconds, call: { signal, onOutput }, most, knows }) {
  const { text, language: named } = unfenced(source);
  const language = named === "shell" ? COMMAND : (named ?? chosen);
  const isShell = language === COMMAND || language === "shell";
  // A line end of Windows would make the last word of each line end in a carriage return.
  const lines = isShell ? text.replaceAll("\r\n", "\n") : text;
  /** @type {ToolCall} */
  const heard = onOutput ? { onOutput } : {};
  /** @type {SandboxRunOptions} */
  const options = { ...given({ timeoutSeconds, signal }), ...(knows && { [toolCall]: heard }) };
  const result = await (language === COMMAND ? sandbox.shell(lines, options) : sandbox.run(lines, { ...given({ language }), ...options }));
  if (typeof result?.output !== "string") throw protocolError("the sandbox's answer has no `output` text");
  // A sandbox that has not told of it as it came tells it now.
  if (!heard.parts && result.output !== "") onOutput?.(result.output);
  // Who stands in between may have changed the text, and had a reason.
  const parts = heard.parts?.text === result.output ? heard.parts : undefined;
  const json = JSON.stringify(result);
  return json.length <= most && !parts?.dropped ? json : (await extras()).longResult(result, parts, most);
}

// The schemas use no keyword that one of the model APIs refuses, such as exclusiveMinimum.
const TIMEOUT_SECONDS = {
  type: "number",
  minimum: 0.001,
  maximum: MAX_TIMEOUT_SECONDS,
  description: "Stop after this many seconds; 30 when omitted, unless the sandbox was set up otherwise.",
};
/** @param {ToolFacts | undefined} facts */
function runSchema(facts) {
  const omitted = facts
    ? `${facts.languages[0]} when omitted.`
    : "python when omitted, unless the sandbox was made for another language.";
  const language = {
    type: "string",
    enum: LANGUAGES.filter((it) => !facts || facts.languages.includes(it)),
    description: `What runs it; ${omitted}`,
  };
  return { code: { type: "string", description: "Source text to run." }, language, timeoutSeconds: TIMEOUT_SECONDS };
}
const SHELL = {
  command: { type: "string", description: "Command line for the sandbox's shell." },
  timeoutSeconds: TIMEOUT_SECONDS,
};
const WRITE_FILE = {
  path: { type: "string", description: "Where to write; a relative path starts at the working directory." },
  contents: { type: "string", description: "Text, or base64 when `encoding` says so." },
  encoding: {
    type: "string",
    enum: ["utf8", "base64"],
    description: "How `contents` is encoded; utf8 when omitted.",
  },
};
const READ_FILE = {
  path: { type: "string", description: "File to read; a relative path starts at the working directory." },
  encoding: { type: "string", enum: ["utf8", "base64"], description: "How to return it; utf8 when omitted." },
};
const RANGE = {
  offset: { type: "integer", minimum: 1, description: "First line to return; 1 when omitted." },
  limit: { type: "integer", minimum: 1, description: "How many lines; all that fit when omitted." },
};
const LIST_FILES = {
  path: { type: "string", description: "Folder whose files are listed; the working directory when omitted." },
};
const EDIT_FILE = {
  path: { type: "string", description: "File to change; a relative path starts at the working directory." },
  oldText: { type: "string", description: "The text to replace, exactly as it is in the file." },
  newText: { type: "string", description: "What stands there instead; empty to delete it." },
  replaceAll: { type: "boolean", description: "Replace every place where it is; false when omitted." },
};
const OPTIONAL = ["language", "timeoutSeconds", "encoding", "offset", "limit", "replaceAll"];

/**
 * A tool over a sandbox: its failures are explained to the model, and records name it.
 *
 * @param {string} name
 * @param {Kind} kind
 * @returns {SandboxTool}
 */
export function sandboxTool(name, { effect, properties, text: description, body }) {
  const required = properties === LIST_FILES ? [] : Object.keys(properties).filter((key) => !OPTIONAL.includes(key));
  const json = { type: "object", properties, required, additionalProperties: false };
  const schema = objectSchema(json, { where: name, tool: name, prepare: { timeoutSeconds: tolerantTimeout } });
  // `sandbox: false`: Agentium must not run the function from its source text, which would lose `body`.
  return tool({ name, description, schema, sandbox: false, effect }, async (args, ctx, extra) => {
    const signal = signalOf(ctx, extra);
    if (signal?.aborted) throw signal.reason;
    try {
      return await inTool(name, () => callIdOf(ctx, extra), () => body(args, { signal, onOutput: listenerOf(ctx, extra) }));
    } catch (error) {
      if (signal?.aborted && error === signal.reason) throw error;
      throw explained(name, effect, error);
    }
  });
}

/**
 * @param {{ name: string, description: string, schema: any, [option: string]: unknown }} definition
 * @param {(args: any, ctx?: any, extra?: any) => any} body
 * @returns {any}
 */
function tool({ name, description, schema, ...options }, body) {
  /** @param {unknown} args @param {unknown} [ctx] @param {unknown} [extra] */
  async function execute(args, ctx, extra) {
    return body(reading(`${name} was not run, and nothing has changed: its arguments`, () => schema.parse(args)), ctx, extra);
  }
  return {
    id: name,
    name,
    description,
    parameters: schema,
    inputSchema: schema,
    rawJsonSchema: plainSchema(schema),
    ...options,
    execute,
  };
}

/**
 * Numeric text counts as a number, and what is too long is cut to the maximum: both are a model's
 * slips with a plain meaning.
 *
 * @param {unknown} value
 */
function tolerantTimeout(value) {
  const numeric = typeof value === "string" && /^\s*[+-]?(\d+\.?\d*|\.\d+)\s*$/.test(value);
  const number = numeric ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number)
    ? Math.min(number, MAX_TIMEOUT_SECONDS)
    : number;
}

/**
 * The signal that stops a call: Agentium, LangChain and Anthropic have `signal` in the context, the AI
 * SDK and Mastra `abortSignal`, OpenAI Agents `signal` in a third argument.
 *
 * @param {any} ctx
 * @param {any} extra
 * @returns {AbortSignal | undefined}
 */
function signalOf(ctx, extra) {
  const read = () => [ctx?.signal, ctx?.abortSignal, extra?.signal, extra?.abortSignal];
  return reading("the context's signal", read).find(isSignal);
}

/**
 * Who wants to hear the output of a call as it comes. A listener that fails, as a stream does whose reader has gone,
 * is no reason to end the command.
 *
 * @param {any} ctx
 * @param {any} extra
 * @returns {((text: string) => void) | undefined}
 */
function listenerOf(ctx, extra) {
  const listener = reading("the context's `onOutput`", () => [ctx?.onOutput, extra?.onOutput]).find((it) => typeof it === "function");
  if (!listener) return undefined;
  return (text) => {
    try {
      const returned = listener(text);
      if (typeof returned?.then === "function") returned.then(undefined, () => {});
    } catch {
      // Its own affair.
    }
  };
}

/**
 * The id that the framework, or the model, has given to the call, where it hands it on: the AI SDK, Mastra and Agentium in the
 * context, LangChain and OpenAI Agents in an object of the call.
 *
 * @param {any} ctx
 * @param {any} extra
 * @returns {string | undefined}
 */
function callIdOf(ctx, extra) {
  try {
    const ids = [ctx?.toolCallId, ctx?.toolCall?.id, extra?.toolCallId, extra?.toolCall?.callId, extra?.toolCall?.id];
    return ids.find((id) => typeof id === "string" && id.length > 0 && id.length <= 256);
  } catch {
    return undefined;
  }
}

/**
 * The options that have a value.
 *
 * @template {Record<string, unknown>} T
 * @param {T} options
 * @returns {Partial<T>}
 */
function given(options) {
  return /** @type {Partial<T>} */ (
    Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
  );
}

/**
 * @param {string | null} content
 * @param {string} encoding
 * @param {{ offset?: number, limit?: number }} range
 * @param {{ name: string, shell: string | undefined, ranges: boolean, most: number }} tool
 */
async function contentText(content, encoding, range, { name, shell, ranges, most }) {
  if (content === null || content === undefined) return FILE_NOT_FOUND;
  if (typeof content !== "string") throw protocolError("the sandbox's answer is neither text nor null");
  const isPart = range.offset !== undefined || range.limit !== undefined;
  if (encoding === "base64") {
    if (isPart) throw invalid("`offset` and `limit` count lines of text; leave them out with base64");
    if (content.length <= most) return content;
    const how = shell ? `; take a part of it with ${shell}, as \`head -c 20000 file | base64\` does` : "";
    throw new SandboxError(`the file has ${content.length} characters in base64, and a result at most ${most}${how}`, { code: "ERR_SANDBOX_TOO_LARGE" });
  }
  if (!isPart && content.length <= most) return content;
  const { linesOf, longContent } = await extras();
  return ranges ? linesOf(content, range, most) : longContent(content, most, name, shell);
}

/** The error, with a way to get at a file that is too large. @param {unknown} cause */
function withAdvice(cause) {
  if (!(cause instanceof SandboxError) || cause.code !== "ERR_SANDBOX_TOO_LARGE") return cause;
  const { code, provider, status, retryable, mayHaveRun } = cause;
  const message = `${cause.message.replace(LARGER_FILE, "")}; read a part of it with the shell tool, as \`head -c 20000\` and \`tail -c 20000\` do`;
  return new SandboxError(message, { code, provider, status, retryable, mayHaveRun, cause });
}

/**
 * The error with what a model needs to decide on a repeat. What the sandbox did not say stays unknown.
 *
 * @param {string} name
 * @param {ToolEffect} effect
 * @param {any} cause
 */
function explained(name, effect, cause) {
  const known = detailsOf(cause);
  // The advice says again what these say.
  const text = wordsOf(cause)
    .trim()
    .replace(/; (nothing was \w+|the command did not run)\.?$/, "")
    .replace("; the command may have run and was not sent again: look at its effects before a repeat", "");
  const what = text.slice(0, MAX_REASON) + (/[.!?]$/.test(text) ? "" : ".");
  const message = `${name} failed: ${what} ${advice(effect, known)}`;
  const Kind = cause instanceof PathSecurityError ? PathSecurityError : SandboxError;
  const unknown = { code: /** @type {const} */ ("ERR_SANDBOX_PROVIDER"), mayHaveRun: effect !== "read" };
  return new Kind(message, { ...(known ?? unknown), cause });
}

/**
 * @param {ToolEffect} effect
 * @param {import("./errors.js").SandboxErrorDetails} [error]
 */
function advice(effect, error) {
  if (error && !error.mayHaveRun) {
    const again = error.retryable || error.code === "ERR_SANDBOX_LOST";
    const done = { execute: "run", write: "written", read: "read" }[effect];
    const repeat = again ? "repeating the call is safe" : "repeating the same call will not help";
    return `Nothing was ${done}; ${repeat}.`;
  }
  return {
    execute: "The command may have run: check its effects before repeating it.",
    write: "The file may have been written; writing it again is safe.",
    read: "Reading again is safe.",
  }[effect];
}

/** @type {Record<string, { required?: boolean, holds: (value: any) => boolean, words: string }>} */
const TOOL_OPTIONS = {
  name: {
    required: true,
    holds: (value) => typeof value === "string" && TOOL_NAME.test(value),
    words: "1 to 64 letters, digits, `_` or `-`",
  },
  description: {
    required: true,
    holds: (value) => typeof value === "string" && value !== "",
    words: "a text that is not empty",
  },
  parameters: { holds: () => true, words: "" },
  execute: { required: true, holds: (value) => typeof value === "function", words: "a function" },
  rawJsonSchema: { holds: isRecord, words: "an object" },
  cache: { holds: (value) => value?.ttl > 0, words: "an object with a positive `ttl` in milliseconds" },
  sandbox: {
    holds: (value) => typeof value === "boolean" || isRecord(value),
    words: "a boolean or an object",
  },
  requiresApproval: {
    holds: (value) => ["boolean", "function"].includes(typeof value),
    words: "a boolean or a function",
  },
  strict: { holds: (value) => typeof value === "boolean", words: "a boolean" },
  inputExamples: {
    holds: (value) => Array.isArray(value) && value.every(isRecord),
    words: "an array of objects",
  },
  toModelOutput: { holds: (value) => typeof value === "function", words: "a function" },
  effect: { holds: (value) => EFFECTS.includes(value), words: `one of ${EFFECTS.join(", ")}` },
};

/** @param {any} config @returns {any} a copy */
function checkToolOptions(config) {
  const checked = checkNames(config ?? null, Object.keys(TOOL_OPTIONS), "defineTool");
  for (const [name, { required = false, holds, words }] of Object.entries(TOOL_OPTIONS)) {
    const value = checked[name];
    if (value === undefined ? required : !reading(`defineTool: \`${name}\``, () => holds(value))) {
      throw invalid(`defineTool: \`${name}\` must be ${words}`);
    }
  }
  return checked;
}

/**
 * Whether `parameters` brings its own parser: Zod 3 and 4, and Standard Schema objects.
 *
 * @param {any} parameters
 */
function isParser(parameters) {
  if (parameters === null || !["object", "function"].includes(typeof parameters)) return false;
  return typeof parameters.safeParse === "function" || "~standard" in parameters || "_zod" in parameters;
}

/** @param {string} message */
function protocolError(message) {
  return new SandboxError(message, { code: "ERR_SANDBOX_PROTOCOL", mayHaveRun: true });
}
