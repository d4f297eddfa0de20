// The port over the native core: what every provider class of this package inherits. A subclass only
// translates its options; all semantics are in the core, all checks of arguments are here.
//
// Invariant: every method returns a Promise and never throws synchronously, and nothing that can be
// listed or inspected on the object holds an option or the native handle.
import { captureSite, errorFromNative, isNativeError, lazily } from "./errors.js";
import { POLICY_OPTIONS } from "./manifest.js";
import { native } from "./native.js";
import {
  DEFAULT_OUTPUT_BYTES, MAX_EXEC_TIMEOUT_SECONDS, MAX_OUTPUT_BYTES, asyncDispose, bytesOf, checkBase64, checkBoolean, checkBudget,
  checkContents, checkEncoding, checkEnv, checkInteger, checkMaxOutputBytes, checkNames, checkNumber, checkSignal, checkString,
  checkTimeoutSeconds, checkTtySize, checkWord, detached, inspectKey, invalid, plainBytes, reading, shownAs,
} from "./options.js";
import { events, isRecorded, needEvents } from "./recording.js";
import { DECODER, NOTHING, entriesOf, execResult, inParts, infoOf, listen, partsOf, textOf } from "./results.js";
import { signalOf, unlessAborted, watch } from "./signals.js";
import { EXEC_ONLY, EXEC_OPTIONS, LANGUAGES, RUN_OPTIONS, checkContext, checkShell, whatToRun } from "./spec.js";

const { AsyncResource } = process.getBuiltinModule("node:async_hooks");
const { constants } = process.getBuiltinModule("node:buffer");

/** @import { NativeHandle, NativeSpec } from "./native.js" */
/** @import { KeptParts, Listener } from "./results.js" */
/** @import { CloudSandbox, ExecResult, FileEncoding, SandboxCallOptions } from "../types/index.js" */
/** @import { SandboxBudget } from "../types/index.js" */
/** @import { SandboxManifestNetwork, SandboxNetworkIsolation } from "../types/index.js" */
/** @import { SandboxDirectoryEntry, SandboxFileInfo } from "../types/index.js" */
/** @import { SandboxCapabilities, SandboxCloseOptions, SandboxLanguage, SandboxReadOptions, SandboxRunOptions, SandboxProcess, SandboxRunResult, SandboxShell, SandboxShellOptions, SandboxSpawnOptions, SandboxStreamOptions } from "../types/index.js" */

/** Options that every provider class takes. */
export const COMMON_OPTIONS = Object.freeze([
  "defaultTimeoutSeconds", "startTimeoutSeconds", "maxOutputBytes", "onLost", "shell", "budget", ...POLICY_OPTIONS,
]);
/** What spawn() takes: exec()'s, without what is to run, and the input. */
const SPAWN_OPTIONS = Object.freeze([
  "cwd", "env", "timeoutSeconds", "maxOutputBytes", "truncate", "mergeStreams", "shell", "background", "encoding", "onStdout", "onStderr", "signal",
  "tty",
]);
/** Most bytes of one file unless told otherwise; and what the core can hold at all. */
const DEFAULT_READ_BYTES = 256 * 1024 * 1024;
const MAX_READ_BYTES = 2 ** 31;
/** Bytes that fit into one string: as UTF-8, and as base64, which has four characters for three. */
const MAX_TEXT_BYTES = constants.MAX_STRING_LENGTH;
const MAX_BASE64_BYTES = Math.floor(constants.MAX_STRING_LENGTH / 4) * 3;
/** How to get at a file that has more bytes than are allowed; and at one that no string can hold. */
export const LARGER_FILE = "; pass a larger `maxBytes`, or read a part of it with a command such as `head -c 20000`";
const LARGER_TEXT = "; call readBytes(), or read a part of it with a command such as `head -c 20000`";
const CLOSE_OPTIONS = Object.freeze(["graceSeconds"]);
const CLOSE_GRACE_SECONDS = 5;
const MAX_CLOSE_GRACE_SECONDS = 3600;
const READ_OPTIONS = Object.freeze(["maxBytes", "signal"]);
const SHELL_OPTIONS = Object.freeze(["cwd", "env", "signal"]);
const LIST_OPTIONS = Object.freeze(["maxEntries", "signal"]);
const DELETE_OPTIONS = Object.freeze(["recursive", "signal"]);

/** Bounds of exec(). */
const EXEC_BOUNDS = Object.freeze({
  timeoutSeconds: MAX_EXEC_TIMEOUT_SECONDS,
  endless: true,
  outputBytes: MAX_OUTPUT_BYTES,
});

/** For the removal of what shells have kept, at a close. */
const SHELLS_MS = 2000;
/** That of run() and shell(), and where a longer one is possible. */
const PORT_LIMIT = Object.freeze({ more: `; exec() takes up to ${MAX_EXEC_TIMEOUT_SECONDS}, or Infinity for no limit` });

/** Key of exec() with bounds of the caller's choice: SandboxAgent's contract has wider ones. */
export const execWithin = Symbol("execWithin");

/**
 * Key of what the tools know of a sandbox besides the port: its presence says that readFile() takes
 * `maxBytes`, and that commands and code run as docs/api.md says.
 */
export const forTools = Symbol("forTools");

/**
 * Key, in the options of run() and shell(), of what a tool asks for besides: that both ends of a long output are kept,
 * and to hear it as it comes. In the options, so that a class of the user's that passes these on need not know of it.
 *
 * @typedef {object} ToolCall
 * @property {(text: string) => void} [onOutput] never throws
 * @property {KeptParts} [parts] set when the call has ended
 */
export const toolCall = Symbol("toolCall");

/** Key of whether start() looks at the network, so that other work can be done beside it. */
export const checksNetwork = Symbol("checksNetwork");

/** Key of what changes the life of a sandbox; a subclass makes it public where its provider can. */
export const control = Symbol("control");

/** Key of what isolates the running sandbox, as JSON; "" where nothing of ours does. */
export const isolationText = Symbol("isolationText");
const TRUNCATE = /** @type {const} */ (["head", "middle"]);
const BACKGROUND = /** @type {const} */ (["keep", "end"]);

/** Bits of the native `capabilities`, in order. */
const CAPABILITIES = Object.freeze([
  "separateStreams", "trueOrder", "stdin", "cwd", "kill", "list", "local", "contexts", "lifetime", "pause",
  "extend", "paths", "streams", "spawn", "tty",
]);

/** Few manifests turn a network off, and most programs have no manifest. */
const networkChecks = lazily("network-check.js", () => import("./network-check.js"));
/** What is known of a network before it was looked at, and when nobody asks for that. */
const NOT_REQUIRED = Object.freeze({ verdict: /** @type {const} */ ("not required"), evidence: Object.freeze([]) });
const UNCHECKED = Object.freeze({ verdict: /** @type {const} */ ("unchecked"), evidence: Object.freeze([]) });

const fileStreams = lazily("streams.js", () => import("./streams.js"));
const shells = lazily("shell.js", () => import("./shell.js"));
const processes = lazily("process.js", () => import("./process.js"));
const budgets = lazily("budget.js", () => import("./budget.js"));

/**
 * @typedef {object} NativeSetup
 * @property {string} provider id in the native core
 * @property {string} providerId what users see
 * @property {Record<string, any>} options the user's, names checked
 * @property {Record<string, unknown>} own what the provider itself takes, in the core's spelling
 * @property {readonly SandboxLanguage[]} [languages] what run() takes, the default first
 * @property {readonly string[]} [runOptions] the options of run(), when there are more than the port's
 * @property {(progress: any) => void} [onProgress] told how far a start is
 * @property {Instead} [instead] what is used where the first start shows that this cannot be had
 */
/**
 * @typedef {object} Instead
 * @property {string} code of the error that says so
 * @property {string} provider
 * @property {string} providerId also until it is known which of the two it is
 * @property {Record<string, unknown>} own
 * @property {(reason: string) => void} taken called with the error's message
 */

/**
 * Whether a value is a sandbox of these classes itself, and no Proxy of one.
 *
 * @type {(value: unknown) => boolean}
 */
let isSandbox;

/**
 * Throws unless the method was called on a sandbox.
 *
 * @param {unknown} self
 * @param {string} method
 */
export function checkSelf(self, method) {
  if (!isSandbox(self)) throw detached(method, "sandbox");
}

/**
 * The call sites above `method`, which must have been called on a sandbox.
 *
 * @param {unknown} self
 * @param {Function} method
 */
export function siteOf(self, method) {
  checkSelf(self, method.name);
  return captureSite(method);
}

/**
 * Base of the provider classes; not exported by the package.
 *
 * @implements {CloudSandbox}
 */
export class NativeSandbox {
  /** @type {NativeHandle} */
  #handle;
  #providerId;
  /** As long as it is not known which one is used. @type {Instead & { wantedId: string, common: Record<string, unknown> } | undefined} */
  #instead;
  /** A start that will show it. @type {Promise<void> | undefined} */
  #choosing;
  #shell;
  #languages;
  #runOptions;
  #maxOutputBytes;
  /**
   * The network that is to be looked at before anything runs; undefined when it is not.
   *
   * @type {SandboxManifestNetwork | undefined}
   */
  #network;
  /** Looks at it. @type {import("./network-check.js").NetworkGuard | undefined} */
  #guard;
  /** @type {SandboxNetworkIsolation} */
  #isolation;
  #lastCall = 0;
  /** Whether the options name an existing sandbox. */
  #attached;
  #limits;
  /** @type {import("./budget.js").Budget | undefined} */
  #budget;
  /** @type {Promise<void> | undefined} */
  #closing;
  #isClosed = false;
  /** Whether the directory of the commands outlives the sandbox. */
  #staysBehind;
  /** Files of open shells that would stay in it. @type {Set<string[]>} */
  #shellFiles = new Set();

  static {
    isSandbox = (value) => typeof value === "object" && value !== null && #handle in value;
  }

  /**
   * No I/O; nothing is created until it is needed.
   *
   * @param {NativeSetup} setup
   */
  constructor({ provider, providerId, options, own, languages = LANGUAGES, runOptions = RUN_OPTIONS, onProgress, instead }) {
    const { defaultTimeoutSeconds = 30, startTimeoutSeconds = 60, onLost = "recreate", shell } = options;
    this.#providerId = providerId;
    this.#languages = languages;
    this.#runOptions = runOptions;
    this.#shell = shell === undefined ? undefined : checkShell(shell);
    this.#maxOutputBytes = checkMaxOutputBytes(options.maxOutputBytes ?? DEFAULT_OUTPUT_BYTES);
    this.#limits = options.budget === undefined ? undefined : checkBudget(options.budget);
    const isOff = options.manifest?.network?.default === "deny";
    this.#network = isOff && checkBoolean(options.verifyNetwork ?? true, "verifyNetwork") ? options.manifest.network : undefined;
    this.#isolation = isOff ? UNCHECKED : NOT_REQUIRED;
    const common = {
      defaultTimeoutMs: checkTimeoutSeconds(defaultTimeoutSeconds, "defaultTimeoutSeconds"),
      startTimeoutMs: checkTimeoutSeconds(startTimeoutSeconds, "startTimeoutSeconds"),
      onLost: checkWord(onLost, ["recreate", "reject"], "onLost"),
      ...(shell !== undefined && { shell }),
    };
    this.#handle = this.#make(provider, { ...common, ...own }, captureSite(new.target));
    if (instead) {
      this.#instead = { ...instead, wantedId: providerId, common };
      this.#providerId = instead.providerId;
    }
    this.#staysBehind = own.workspace !== undefined;
    this.#attached = own.sandboxId !== undefined || own.containerId !== undefined;
    if (onProgress) this.#handle.onProgress = AsyncResource.bind((/** @type {string} */ told) => onProgress(JSON.parse(told)));
  }

  /**
   * @param {string} provider
   * @param {Record<string, unknown>} options the core's
   * @param {{ stack?: string }} site
   * @returns {NativeHandle}
   */
  #make(provider, options, site) {
    const { Sandbox } = native();
    try {
      const handle = new Sandbox(provider, JSON.stringify(options));
      handle.onLife = (/** @type {string} */ told) => this.#hear(told);
      return handle;
    } catch (error) {
      const { sbx } = /** @type {any} */ (error);
      throw isNativeError(sbx) ? this.#translate(sbx, site) : error;
    }
  }

  /** Id of the provider, such as "unix-local". */
  get providerId() {
    return this.#providerId;
  }

  /** The provider's id of the running sandbox; null before a start. */
  get sandboxId() {
    return this.#handle.id;
  }

  /**
   * What this sandbox can do, by its provider and its options.
   *
   * @returns {SandboxCapabilities}
   */
  get capabilities() {
    const bits = this.#handle.capabilities;
    const entries = CAPABILITIES.map((name, bit) => [name, (bits & (1 << bit)) !== 0]);
    return Object.freeze(Object.fromEntries(entries));
  }

  /** What is known of a network that the manifest turns off. @returns {SandboxNetworkIsolation} */
  get networkIsolation() {
    return this.#guard?.isolation ?? this.#isolation;
  }

  get [isolationText]() {
    return this.#handle.isolation;
  }

  get [checksNetwork]() {
    return this.#network !== undefined;
  }

  /**
   * Creates the sandbox. Every other method does so when needed.
   *
   * @param {SandboxCallOptions} [options]
   * @returns {Promise<void>}
   */
  async start(options) {
    const site = siteOf(this, NativeSandbox.prototype.start);
    const signal = signalOf(options, "start");
    return this.#call(site, signal, (id) => this.#handle.start(id), "start");
  }

  /**
   * Runs source text. A non-zero exit and a timeout are results.
   *
   * @param {string} code
   * @param {SandboxRunOptions} [options] timeoutSeconds: at most 3600
   * @returns {Promise<SandboxRunResult & { exitCode: number }>}
   */
  async run(code, options) {
    const site = siteOf(this, NativeSandbox.prototype.run);
    const given = checkNames(options, this.#runOptions, "run", EXEC_ONLY);
    const { language = this.#languages[0], context } = given;
    checkWord(language, this.#languages, "language");
    checkString(code, "code");
    if (context !== undefined) checkContext(context, language === "shell" ? undefined : code);
    const tool = toolCallIn(options);
    if (language === "shell") return this.#port("shell", code, given, site, tool);
    return this.#port("code", code, given, site, tool, language, context);
  }

  /**
   * Runs a command line with bash where the sandbox has it, else with sh. A non-zero exit and a timeout are results.
   *
   * @param {string} command
   * @param {SandboxRunOptions} [options] timeoutSeconds: at most 3600; `language` says nothing here
   * @returns {Promise<SandboxRunResult & { exitCode: number }>}
   */
  async shell(command, options) {
    const site = siteOf(this, NativeSandbox.prototype.shell);
    const given = checkNames(options, RUN_OPTIONS, "shell", EXEC_ONLY);
    return this.#port("shell", checkString(command, "command"), given, site, toolCallIn(options));
  }

  /**
   * Runs one command and tells everything about it. Resolves for whatever happened to the process;
   * rejects when the sandbox, the network or the provider failed.
   *
   * @param {Record<string, any>} spec one of { command }, { code, language }, { argv }; the rest is optional
   * @returns {Promise<ExecResult<any>>}
   */
  async exec(spec) {
    const site = siteOf(this, NativeSandbox.prototype.exec);
    return this[execWithin](spec, EXEC_BOUNDS, site);
  }

  /**
   * @param {Record<string, any>} spec
   * @param {{ timeoutSeconds: number, endless: boolean, outputBytes: number }} bounds
   * @param {{ stack?: string }} [site]
   * @returns {Promise<ExecResult<any>>}
   */
  async [execWithin](spec, bounds, site = captureSite(NativeSandbox.prototype[execWithin])) {
    if (spec === undefined || typeof spec === "string") {
      throw invalid('exec: give one of { command }, { code, language } or { argv }, as in exec({ command: "ls -l" })');
    }
    const given = checkNames(spec, EXEC_OPTIONS, "exec");
    const nativeSpec = this.#execSpec(given, bounds);
    const signal = checkSignal(given.signal);
    const asText = checkWord(given.encoding ?? "utf8", ["utf8", "buffer"], "encoding") === "utf8";
    const tool = toolCallIn(spec);
    if (tool) nativeSpec.truncate = "middle";
    const listener = listen(tool?.onOutput ? { ...given, onStdout: tool.onOutput } : given, asText);
    const raw = await this.#heard(listener, nativeSpec, signal, site);
    const result = execResult(raw, asText);
    if (tool && asText) tool.parts = partsOf(raw.output ?? NOTHING, result.output);
    return result;
  }

  /**
   * @param {Listener | undefined} listener
   * @param {NativeSpec} spec
   * @param {AbortSignal | undefined} signal
   * @param {{ stack?: string }} site
   * @param {(id: number) => void} [begun] told the number of the call, when the core has it
   */
  #heard(listener, spec, signal, site, begun) {
    return this.#call(site, signal, (id) => {
      const result = this.#handle.exec(id, spec, listener?.onOutput);
      begun?.(id);
      if (!listener) return result;
      listener.onFailure = () => this.#handle.cancel(id);
      return listener.watch(result, signal);
    }, "exec", spec);
  }

  /**
   * Starts a command whose standard input stays open, and that takes signals. Rejects with ERR_SANDBOX_UNSUPPORTED, before
   * anything is created, where `capabilities.spawn` is false.
   *
   * @param {string | readonly string[]} command a command line for the shell, or a program with its arguments
   * @param {SandboxSpawnOptions | import("../types/index.js").SandboxSpawnBytesOptions} [options] timeoutSeconds: no limit when left out
   * @returns {Promise<SandboxProcess<any>>}
   */
  async spawn(command, options) {
    const site = siteOf(this, NativeSandbox.prototype.spawn);
    const given = checkNames(options, SPAWN_OPTIONS, "spawn");
    const { timeoutSeconds = Infinity, tty, ...others } = given;
    const what = typeof command === "string" ? { command } : { argv: command };
    const size = tty === undefined ? undefined : checkTtySize(tty, "tty");
    const terminal = size && { ttyColumns: size.columns, ttyRows: size.rows };
    const spec = { ...this.#execSpec({ ...others, ...what, timeoutSeconds }, EXEC_BOUNDS), openStdin: true, ...terminal };
    const signal = checkSignal(given.signal);
    const asText = checkWord(given.encoding ?? "utf8", ["utf8", "buffer"], "encoding") === "utf8";
    const listener = listen(given, asText);
    const { Process } = await processes();
    /** @type {Promise<number>} */
    let running = Promise.resolve(0);
    const ended = new Promise((resolve, reject) => {
      running = new Promise((begun) => {
        this.#heard(listener, spec, signal, site, begun).then((raw) => execResult(raw, asText)).then(resolve, reject);
      });
    });
    let isRefused = false;
    ended.catch(() => (isRefused = true)); // Also: nobody may wait yet.
    // What the core refuses at once starts nothing. Else the start is one for all that wait for it, and the command tells how it failed.
    const started = running
      .then(() => new Promise((resolve) => setImmediate(resolve)))
      .then(() => (isRefused ? ended : this.#handle.start(++this.#lastCall)))
      .catch(() => ended);
    await Promise.race([ended, started]);
    const id = await running;
    const give = (/** @type {(call: number) => Promise<void>} */ begin) => this.#call(site, undefined, begin);
    return new Process(ended, {
      write: (bytes) => give((call) => this.#handle.feed(call, id, bytes)),
      end: () => give((call) => this.#handle.endInput(call, id)),
      signal: (name) => give((call) => this.#handle.signal(call, id, name)),
      resize: ({ columns, rows }) => give((call) => this.#handle.resize(call, id, columns, rows)),
    });
  }

  /**
   * A shell whose directory, variables, functions, aliases and options last from command to command. Rejects with
   * ERR_SANDBOX_UNSUPPORTED where the sandbox has no bash.
   *
   * @param {SandboxShellOptions} [options] where it begins, and with which variables
   * @returns {Promise<SandboxShell>}
   */
  async openShell(options) {
    const site = siteOf(this, NativeSandbox.prototype.openShell);
    const given = checkNames(options, SHELL_OPTIONS, "openShell");
    const { openShell } = await shells();
    return openShell({
      exec: (/** @type {Record<string, any>} */ spec) => this[execWithin](spec, EXEC_BOUNDS, site),
      id: () => this.sandboxId,
      isClosed: () => this.#isClosed,
      providerId: this.#providerId,
      isLocal: this.capabilities.local,
      choosesShell: this.#shell !== undefined,
      files: this.#shellFiles,
    }, given, site);
  }

  /**
   * Creates or replaces a file; missing folders are made.
   *
   * @param {string} path relative to the working directory of the commands
   * @param {string | Uint8Array} contents
   * @param {FileEncoding} [encoding] what a string is; "utf8" when left out
   * @param {SandboxCallOptions} [options]
   * @returns {Promise<void>}
   */
  async writeFile(path, contents, encoding, options) {
    const site = siteOf(this, NativeSandbox.prototype.writeFile);
    checkString(path, "path");
    const isBase64 = checkEncoding(encoding) === "base64";
    if (isBase64 && bytesOf(contents)) throw invalid("leave out the `encoding` when `contents` are bytes");
    const bytes = isBase64 ? checkBase64(contents, "contents") : checkContents(contents, "contents");
    const signal = signalOf(options, "writeFile");
    return this.#call(site, signal, (id) => this.#handle.write(id, path, bytes), "write", path, bytes.length);
  }

  /**
   * What the tools say of this sandbox. `shell`: the one that was chosen for it; `languages`: what run()
   * takes, the default first.
   */
  get [forTools]() {
    return { shell: this.#shell, languages: this.#languages, keepsVariables: this.capabilities.contexts };
  }

  /**
   * Reads a whole file; null when there is none. A larger one than `maxBytes`, or than one string can
   * hold, rejects with ERR_SANDBOX_TOO_LARGE.
   *
   * @param {string} path relative to the working directory of the commands
   * @param {FileEncoding} [encoding] what to return; "utf8" when left out
   * @param {SandboxReadOptions} [options] maxBytes: 268435456 when left out
   * @returns {Promise<string | null>}
   */
  async readFile(path, encoding, options) {
    const site = siteOf(this, NativeSandbox.prototype.readFile);
    const isBase64 = checkEncoding(encoding) === "base64";
    const most = isBase64 ? MAX_BASE64_BYTES : MAX_TEXT_BYTES;
    const bytes = await this.#read(path, options, "readFile", most, site);
    if (bytes === null) return null;
    return isBase64 ? bytes.toString("base64") : DECODER.decode(bytes);
  }

  /**
   * Reads a whole file as bytes; null when there is none. A larger one than `maxBytes` rejects with
   * ERR_SANDBOX_TOO_LARGE.
   *
   * @param {string} path relative to the working directory of the commands
   * @param {SandboxReadOptions} [options] maxBytes: 268435456 when left out
   * @returns {Promise<Uint8Array | null>}
   */
  async readBytes(path, options) {
    const site = siteOf(this, NativeSandbox.prototype.readBytes);
    const bytes = await this.#read(path, options, "readBytes", MAX_READ_BYTES, site);
    return bytes && plainBytes(bytes);
  }

  /**
   * A file as a stream, read part by part as it is asked for; null when there is none. A larger one than `maxBytes` rejects
   * with ERR_SANDBOX_TOO_LARGE. One that changes meanwhile ends the stream with ERR_SANDBOX_CONFLICT.
   *
   * @param {string} path relative to the working directory of the commands
   * @param {SandboxStreamOptions} [options] maxBytes: none when left out
   * @returns {Promise<ReadableStream<Uint8Array> | null>}
   */
  async readStream(path, options) {
    const site = siteOf(this, NativeSandbox.prototype.readStream);
    const { limits, signal } = this.#streamOf(path, options, "readStream", site);
    const { Stop, readable } = await fileStreams();
    const stop = new Stop(signal, watch);
    return readable((offset, most, stamp) => {
      return this.#call(site, stop.signal, (id) => this.#handle.readPart(id, path, offset, most, stamp), "readPart", path);
    }, limits, stop);
  }

  /**
   * A stream that makes a file of what is written to it, or replaces one, when it is closed; until then the file stays as it
   * was. Missing folders are made. More than `maxBytes` errors it with ERR_SANDBOX_TOO_LARGE.
   *
   * @param {string} path relative to the working directory of the commands
   * @param {SandboxStreamOptions} [options] maxBytes: none when left out
   * @returns {Promise<WritableStream<Uint8Array | string>>}
   */
  async writeStream(path, options) {
    const site = siteOf(this, NativeSandbox.prototype.writeStream);
    const { limits, signal } = this.#streamOf(path, options, "writeStream", site);
    await this.#call(site, signal, (id) => this.#handle.start(id), "start");
    const { Stop, writable } = await fileStreams();
    return writable((token, offset, bytes, step, until) => {
      return this.#call(site, until, (id) => this.#handle.writePart(id, path, token, offset, bytes, step), "writePart", path, bytes.length);
    }, limits, new Stop(signal, watch));
  }

  /**
   * All regular files, links left out. Rejects with ERR_SANDBOX_TOO_LARGE when there are more than
   * `maxEntries`, and with ERR_SANDBOX_UNSUPPORTED where the provider cannot list.
   *
   * @param {{ maxEntries?: number, signal?: AbortSignal | undefined }} [options] maxEntries: 10000 when left out
   * @returns {Promise<{ path: string, size: number }[]>} sizes in bytes
   */
  async listFiles(options) {
    const site = siteOf(this, NativeSandbox.prototype.listFiles);
    const { maxEntries = 10000, signal } = checkNames(options, LIST_OPTIONS, "listFiles");
    checkInteger(maxEntries, "maxEntries", 1, 1000000);
    return entriesOf(await this.#call(site, checkSignal(signal), (id) => this.#handle.list(id, maxEntries), "list"));
  }

  /**
   * What is at a path, links followed; null when there is nothing.
   *
   * @param {string} path relative to the working directory of the commands
   * @param {SandboxCallOptions} [options]
   * @returns {Promise<SandboxFileInfo | null>}
   */
  async stat(path, options) {
    const site = siteOf(this, NativeSandbox.prototype.stat);
    checkString(path, "path");
    const found = await this.#call(site, signalOf(options, "stat"), (id) => this.#handle.stat(id, path), "stat", path);
    return found && infoOf(found.numbers, 0);
  }

  /**
   * What is in a directory, in the order of the names' UTF-8; links are not followed.
   *
   * @param {string} [path] relative to the working directory of the commands, which it is when left out
   * @param {{ maxEntries?: number, signal?: AbortSignal | undefined }} [options] maxEntries: 10000 when left out
   * @returns {Promise<SandboxDirectoryEntry[]>}
   */
  async listDirectory(path = ".", options) {
    const site = siteOf(this, NativeSandbox.prototype.listDirectory);
    checkString(path, "path");
    const { maxEntries = 10000, signal } = checkNames(options, LIST_OPTIONS, "listDirectory");
    checkInteger(maxEntries, "maxEntries", 1, 1000000);
    const begin = (/** @type {number} */ id) => this.#handle.listDir(id, path, maxEntries);
    const { names, numbers } = await this.#call(site, checkSignal(signal), begin, "listDirectory", path);
    return inParts(names, (name, index) => ({ name, ...infoOf(numbers, index) }));
  }

  /**
   * Deletes a file, or a link itself; with `recursive` a directory and all that is in it.
   *
   * @param {string} path relative to the working directory of the commands
   * @param {{ recursive?: boolean, signal?: AbortSignal | undefined }} [options]
   * @returns {Promise<boolean>} whether there was something
   */
  async deleteFile(path, options) {
    const site = siteOf(this, NativeSandbox.prototype.deleteFile);
    checkString(path, "path");
    const { recursive = false, signal } = checkNames(options, DELETE_OPTIONS, "deleteFile");
    const all = checkBoolean(recursive, "recursive") ? 1 : 0;
    return this.#call(site, checkSignal(signal), (id) => this.#handle.remove(id, path, all), "delete", path);
  }

  /**
   * Gives a file, a directory or a link another path. A file that has it is replaced.
   *
   * @param {string} from relative to the working directory of the commands
   * @param {string} to the same; missing folders above it are made
   * @param {SandboxCallOptions} [options]
   * @returns {Promise<void>}
   */
  async moveFile(from, to, options) {
    const site = siteOf(this, NativeSandbox.prototype.moveFile);
    checkString(from, "from");
    checkString(to, "to");
    return this.#call(site, signalOf(options, "moveFile"), (id) => this.#handle.move(id, from, to), "move", from);
  }

  /**
   * Makes a directory, and those above it.
   *
   * @param {string} path relative to the working directory of the commands
   * @param {SandboxCallOptions} [options]
   * @returns {Promise<void>}
   */
  async mkdir(path, options) {
    const site = siteOf(this, NativeSandbox.prototype.mkdir);
    checkString(path, "path");
    return this.#call(site, signalOf(options, "mkdir"), (id) => this.#handle.makeDir(id, path), "mkdir", path);
  }

  /**
   * Ends the sandbox for good: refuses new calls at once, gives those in flight a grace, ends what is left
   * of them, then deletes it. May be called again: during a close it joins that one, after a failure it
   * tries again, after a success it does nothing.
   *
   * @param {SandboxCloseOptions} [options]
   * @returns {Promise<void>}
   */
  close(options) {
    if (!isSandbox(this)) return Promise.reject(detached("close", "sandbox"));
    let graceMs;
    try {
      graceMs = graceOf(options);
    } catch (error) {
      return Promise.reject(error);
    }
    const site = captureSite(NativeSandbox.prototype.close);
    if (this.#closing) {
      // Who joins may shorten the grace; what comes of it is what the first one is told.
      this.#handle.close(graceMs).catch(() => {});
      return this.#closing;
    }
    this.#closing = this.#close(graceMs, site).finally(() => {
      this.#closing = undefined;
    });
    return this.#closing;
  }

  /** @param {number} graceMs @param {{ stack?: string }} site */
  async #close(graceMs, site) {
    await this.#call(site, undefined, () => this.#closeShells(graceMs));
    this.#isClosed = true;
  }

  /**
   * What shells keep in a workspace of the user's goes first. The close has begun before it is gone, so no new call comes between,
   * and those in flight get no more than their grace, or what the removal takes.
   *
   * @param {number} graceMs
   */
  #closeShells(graceMs) {
    const files = [...this.#shellFiles].flat();
    this.#shellFiles.clear();
    if (files.length === 0 || !this.#staysBehind || !this.capabilities.local || this.sandboxId === null) return this.#handle.close(graceMs);
    const began = performance.now();
    const spec = { kind: "argv", argv: ["rm", "-f", ...files], maxOutputBytes: 1024, timeoutMs: SHELLS_MS };
    const removed = this.#handle.exec(++this.#lastCall, /** @type {NativeSpec} */ (spec));
    const closed = this.#handle.close(Math.max(graceMs, SHELLS_MS));
    const shorten = () => this.#handle.close(Math.max(0, Math.round(graceMs - (performance.now() - began)))).catch(() => {});
    removed.then(shorten, shorten);
    return closed;
  }

  [asyncDispose]() {
    return this.close();
  }

  /**
   * What console.log() shows: never an option.
   *
   * @param {number} depth
   * @param {object} options
   * @param {(value: unknown, options: object) => string} inspect
   */
  [inspectKey](depth, options, inspect) {
    if (!isSandbox(this)) return "[NativeSandbox]";
    const { providerId, sandboxId } = this;
    const alive = sandboxId === null ? "not started" : "started";
    const state = this.#isClosed ? "closed" : this.#closing ? "closing" : alive;
    return shownAs(this, { providerId, sandboxId, state }, depth, options, inspect);
  }

  /**
   * @param {"lifetime" | "extend" | "pause" | "resume"} what
   * @param {number} seconds
   * @param {AbortSignal | undefined} signal
   * @param {{ stack?: string }} site
   * @returns {Promise<void>}
   */
  async [control](what, seconds, signal, site) {
    return this.#call(site, signal, (id) => this.#handle.control(id, what, seconds), what, undefined, seconds);
  }

  /**
   * run() and shell(): one joined output, and exactly the port's keys. No literal here spreads another
   * one: the engine would make a new hidden class at every call.
   *
   * @param {"shell" | "code"} kind
   * @param {string} text
   * @param {Record<string, any>} options names checked
   * @param {{ stack?: string }} site
   * @param {ToolCall} [tool]
   * @param {"python" | "node"} [language]
   * @param {string} [context]
   * @returns {Promise<SandboxRunResult & { exitCode: number }>}
   */
  async #port(kind, text, options, site, tool, language, context) {
    const signal = checkSignal(options.signal);
    const { timeoutSeconds, env } = options;
    /** @type {NativeSpec} */
    const spec = {
      kind,
      text,
      language,
      context,
      mergeStreams: true,
      truncate: tool && "middle",
      maxOutputBytes: this.#maxOutputBytes,
      timeoutMs: timeoutSeconds === undefined ? undefined : checkTimeoutSeconds(timeoutSeconds, "timeoutSeconds", PORT_LIMIT),
      env: env === undefined ? undefined : checkEnv(env),
    };
    const listener = tool?.onOutput && listen({ onStdout: tool.onOutput }, true);
    const { outcome, exitCode, output = NOTHING, outputLost, oomKilled, outputExceeded } = await this.#heard(listener, spec, signal, site);
    if (outcome === "cancelled") throw signal?.reason;
    /** @type {SandboxRunResult & { exitCode: number }} */
    const result = { output: textOf(output), exitCode };
    if (tool) tool.parts = partsOf(output, result.output);
    if (outcome === "timedOut") result.timedOut = true;
    if (output.dropped > 0 || outputLost) result.outputTruncated = true;
    if (oomKilled) result.oomKilled = true;
    if (outputExceeded) result.outputExceeded = true;
    return result;
  }

  /**
   * @param {Record<string, any>} spec names checked
   * @param {{ timeoutSeconds: number, endless: boolean, outputBytes: number }} bounds
   * @returns {NativeSpec}
   */
  #execSpec(spec, bounds) {
    const { cwd, env, stdin, timeoutSeconds, maxOutputBytes = this.#maxOutputBytes, truncate, mergeStreams } = spec;
    const { shell, background } = spec;
    /** @type {NativeSpec} */
    const checked = whatToRun(spec);
    checked.maxOutputBytes = checkInteger(maxOutputBytes, "maxOutputBytes", 1, bounds.outputBytes);
    if (cwd !== undefined) checked.cwd = checkString(cwd, "cwd");
    if (env !== undefined) checked.env = checkEnv(env);
    if (stdin !== undefined) checked.stdin = checkContents(stdin, "stdin");
    if (truncate !== undefined) checked.truncate = checkWord(truncate, TRUNCATE, "truncate");
    if (shell !== undefined) checked.shell = checkShell(shell);
    if (background !== undefined) checked.endBackground = checkWord(background, BACKGROUND, "background") === "end";
    if (mergeStreams !== undefined) checked.mergeStreams = checkBoolean(mergeStreams, "mergeStreams");
    if (timeoutSeconds !== undefined) {
      const range = { max: bounds.timeoutSeconds, endless: bounds.endless };
      checked.timeoutMs = checkTimeoutSeconds(timeoutSeconds, "timeoutSeconds", range);
    }
    return checked;
  }

  /**
   * @param {string} path
   * @param {SandboxReadOptions | undefined} options
   * @param {string} where
   * @param {number} most bytes that can be returned, whatever the user allows
   * @param {{ stack?: string }} site
   */
  async #read(path, options, where, most, site) {
    checkString(path, "path");
    const { maxBytes, signal } = checkNames(options, READ_OPTIONS, where);
    const bound = maxBytes === undefined ? DEFAULT_READ_BYTES : checkInteger(maxBytes, "maxBytes", 1, MAX_READ_BYTES);
    return this.#call(site, checkSignal(signal), async (id) => {
      try {
        return await this.#handle.read(id, path, Math.min(bound, most));
      } catch (error) {
        if (!isTooLarge(error)) throw error;
        const advice = bound < most || most === MAX_READ_BYTES ? LARGER_FILE : LARGER_TEXT;
        throw { ...error, message: error.message + advice };
      }
    }, "read", path);
  }

  /** @param {string} path @param {SandboxStreamOptions | undefined} options @param {string} where @param {{ stack?: string }} site */
  #streamOf(path, options, where, site) {
    checkString(path, "path");
    const { maxBytes, signal } = checkNames(options, READ_OPTIONS, where);
    if (maxBytes !== undefined) checkInteger(maxBytes, "maxBytes", 1, Number.MAX_SAFE_INTEGER);
    return { limits: { maxBytes, providerId: this.#providerId, site }, signal: checkSignal(signal) };
  }

  /**
   * Resolves when the network that is to be off was found to be off in the sandbox that a call would run in now. Each sandbox is
   * looked at once, one that takes the place of a lost one, too.
   *
   * @param {{ stack?: string }} site
   * @param {AbortSignal | undefined} signal
   */
  async #passed(site, signal) {
    while (this.#network && !this.#guard?.hasPassed(this.#handle.id)) await this.#look(this.#network, site, signal);
  }

  /** @param {SandboxManifestNetwork} network @param {{ stack?: string }} site @param {AbortSignal | undefined} signal */
  async #look(network, site, signal) {
    if (signal?.aborted) throw signal.reason;
    const { NetworkGuard } = await networkChecks();
    this.#guard ??= new NetworkGuard(network, this.#providerId, {
      id: () => this.#handle.id,
      start: () => this.#handle.start((this.#lastCall += 1)),
      exec: (spec) => this.#handle.exec((this.#lastCall += 1), spec),
      destroy: () => this.#close(0, site),
    });
    try {
      await unlessAborted(this.#guard.look(), signal);
    } catch (error) {
      throw this.#guard.refused(site) ?? (isNativeError(error) ? this.#translate(error, site) : error);
    }
  }

  /**
   * Starts what is wanted, once for all calls that come meanwhile, and takes the other one where that cannot be had. Any other failure is
   * left to the call, which meets it again.
   *
   * @param {Instead & { wantedId: string, common: Record<string, unknown> }} instead
   * @param {{ stack?: string }} site
   */
  async #choose({ code, provider, providerId, own, taken, wantedId, common }, site) {
    this.#providerId = wantedId;
    try {
      await this.#handle.start((this.#lastCall += 1));
      this.#instead = undefined;
    } catch (error) {
      this.#providerId = providerId;
      if (!isNativeError(error) || error.code !== code || this.#closing || this.#isClosed) return;
      this.#handle.close(0).catch(() => {});
      this.#handle = this.#make(provider, { ...common, ...own }, site);
      this.#instead = undefined;
      taken(error.message);
    }
  }

  /**
   * One call of the core: a number to cancel it by, the signal, and errors with a stack.
   *
   * @template T
   * @param {{ stack?: string }} site
   * @param {AbortSignal | undefined} signal
   * @param {(id: number) => Promise<T>} begin
   * @param {string} [action] what records call it; without one there are none, and nothing comes before `begin`
   * @param {unknown} [detail] what is run, or a path
   * @param {number} [size] of what is written, or a number of seconds
   * @returns {Promise<T>}
   */
  async #call(site, signal, begin, action, detail, size) {
    const recorded = action !== undefined && isRecorded();
    if (recorded && !events) await needEvents();
    if (action !== undefined && this.#limits && !this.#budget) await this.#needBudget(this.#limits);
    if (signal?.aborted) throw signal.reason;
    if (this.#instead && action !== undefined) {
      this.#choosing ??= this.#choose(this.#instead, site).finally(() => {
        this.#choosing = undefined;
      });
      await unlessAborted(this.#choosing, signal);
    }
    const takeBack = action === undefined ? undefined : this.#spend(action);
    // From here to `begin` no other sandbox can take the place of the one that was looked at.
    if (this.#network && (action === "start" || action === "exec")) {
      await this.#passed(site, signal).catch((error) => {
        takeBack?.();
        throw error;
      });
    }
    const id = ++this.#lastCall;
    const call = recorded ? events?.begin(this, id, action, detail, size) : undefined;
    const unwatch = signal && watch(signal, () => this.#handle.cancel(id));
    try {
      const result = await begin(id);
      call?.end(result);
      if (action === "pause" || action === "resume") this.#charge(action);
      return result;
    } catch (error) {
      const aborted = signal?.aborted === true && isNativeError(error) && error.code === "ERR_SANDBOX_CANCELED";
      call?.fail(error, aborted);
      if (!isNativeError(error)) throw error;
      const refused = error.code === "ERR_SANDBOX_CLOSED" && this.#guard?.refused(site);
      if (refused) throw refused;
      if (!error.mayHaveRun) takeBack?.();
      throw aborted ? signal?.reason : this.#translate(error, site);
    } finally {
      unwatch?.();
    }
  }

  /** What the core tells of a sandbox of this object. @param {string} json */
  async #hear(json) {
    const recorded = isRecorded();
    if (!recorded && !this.#budget) return;
    const news = JSON.parse(json);
    this.#charge(news.event, news.id);
    if (recorded && !events) await needEvents();
    if (recorded) events?.told(this, this.#attached, news);
  }

  /** @param {SandboxBudget} limits */
  async #needBudget(limits) {
    const { Budget } = await budgets();
    this.#budget ??= new Budget(limits);
  }

  /** Throws when the budget allows no such call. @param {string} action */
  #spend(action) {
    if (action === "exec") return this.#budget?.take(this);
    // Else it would make a sandbox.
    if (this.sandboxId === null) this.#budget?.checkTime(this);
    return undefined;
  }

  /** @param {string} event @param {string | null} [id] */
  #charge(event, id = this.sandboxId) {
    if (!this.#budget || !id) return;
    if (event === "created" || event === "started" || event === "resume") this.#budget.exists(id);
    else if (event !== "failed") this.#budget.isGone(id);
  }

  /**
   * @param {import("./errors.js").NativeError} plain
   * @param {{ stack?: string }} site
   */
  #translate(plain, site) {
    return errorFromNative({ ...plain, provider: plain.provider === null ? null : this.#providerId }, site);
  }
}

/**
 * The grace that a close() gives the calls in flight, in milliseconds.
 *
 * @param {unknown} options
 */
export function graceOf(options) {
  const { graceSeconds = CLOSE_GRACE_SECONDS } = checkNames(options, CLOSE_OPTIONS, "close");
  return Math.round(checkNumber(graceSeconds, "graceSeconds", 0, MAX_CLOSE_GRACE_SECONDS) * 1000);
}

/** @param {any} options @returns {ToolCall | undefined} */
export function toolCallIn(options) {
  return reading("the options", () => options?.[toolCall]);
}

/**
 * @param {unknown} error
 * @returns {error is import("./errors.js").NativeError}
 */
function isTooLarge(error) {
  return isNativeError(error) && error.code === "ERR_SANDBOX_TOO_LARGE";
}
