// The sandbox of one command: made of the options, watched by Ctrl-C, deleted or kept at the end.
//
// Invariant: a sandbox that was made here is deleted before the program ends, whatever happened, unless --keep.
import { createSandbox, listSandboxProviders } from "../registry.js";
import { colourful } from "./help.js";
import { UsageError } from "./parse.js";

const { chown, mkdtemp } = process.getBuiltinModule("node:fs").promises;
const { constants, tmpdir, userInfo } = process.getBuiltinModule("node:os");
const { join, resolve } = process.getBuiltinModule("node:path");

const CLOSE = { graceSeconds: 1 };
const NOBODY = 65534;
/** On this machine, in a folder of it. */
const LOCAL = ["local", "isolated-local", "unix-local"];
/** @type {readonly NodeJS.Signals[]} */
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"];

/** @param {Record<string, any>} values of --provider, --option, --sandbox, --keep */
export function providerOf(values) {
  return values.provider ?? process.env.CLOUDSANDBOX_PROVIDER ?? "local";
}

/** @param {readonly string[]} given NAME=VALUE @param {string} option @param {boolean} [isJson] @returns {Record<string, any>} */
export function pairs(given = [], option, isJson = false) {
  return Object.fromEntries(given.map((pair) => {
    const at = pair.indexOf("=");
    if (at < 1) throw new UsageError(`--${option} must be NAME=VALUE`);
    const text = pair.slice(at + 1);
    return [pair.slice(0, at), isJson ? parsed(text) : text];
  }));
}

/** JSON, or else text. @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/**
 * @param {Record<string, any>} values
 * @returns {Promise<any>} a sandbox, not started
 */
export async function sandboxOf(values) {
  const provider = providerOf(values);
  if (!listSandboxProviders().includes(provider)) {
    throw new UsageError(`there is no provider "${String(provider).slice(0, 60)}"; there are ${listSandboxProviders().join(", ")}`);
  }
  const options = pairs(values.option, "option", true);
  if (LOCAL.includes(provider)) {
    if (values.sandbox !== undefined) options.workspace = resolve(values.sandbox);
    else if (values.workspace !== undefined) options.workspace = resolve(values.workspace);
    else if (values.keep) options.workspace = await keptFolder();
  } else {
    if (values.workspace !== undefined) throw new UsageError(`--workspace goes with --provider ${LOCAL.join(", ")} only`);
    if (values.sandbox !== undefined) options[provider === "docker" ? "containerId" : "sandboxId"] = values.sandbox;
  }
  if (provider === "docker" && process.stderr.isTTY) options.onProgress = (/** @type {any} */ told) => progress(pullText(told));
  return createSandbox(provider, options);
}

/** Given to whom root's isolated commands run as; root itself may enter it anyway. */
async function keptFolder() {
  const folder = await mkdtemp(join(tmpdir(), "cloudsandbox-kept-"));
  if (userInfo().uid === 0) await chown(folder, NOBODY, NOBODY);
  return folder;
}

/** @param {{ status: string, current?: number, total?: number }} told */
function pullText({ status, current, total }) {
  if (!current || !total) return status;
  const share = Math.min(1, current / total);
  return `${status} [${"#".repeat(Math.round(share * 20)).padEnd(20)}] ${Math.round(share * 100)} %`;
}

/**
 * Runs `use` with a sandbox and a signal that Ctrl-C aborts.
 *
 * @param {Record<string, any>} values
 * @param {(sandbox: any, signal: AbortSignal) => Promise<number>} use gives the exit code
 * @returns {Promise<number>}
 */
export async function withSandbox(values, use) {
  const sandbox = await sandboxOf(values);
  const controller = new AbortController();
  let interrupted = 0;
  const onSignal = (/** @type {NodeJS.Signals} */ name) => {
    const code = 128 + constants.signals[name];
    if (interrupted) process.exit(code);
    interrupted = code;
    controller.abort();
  };
  for (const name of SIGNALS) process.on(name, onSignal);
  try {
    progress(`starting a sandbox (${sandbox.providerId})`);
    await sandbox.start({ signal: controller.signal });
    progress();
    const code = await use(sandbox, controller.signal);
    return interrupted || code;
  } catch (error) {
    if (interrupted && error === controller.signal.reason) return interrupted;
    throw error;
  } finally {
    progress();
    const { sandboxId } = sandbox;
    if (values.keep && sandboxId && !interrupted) say(`the sandbox was kept; go on with --provider ${providerOf(values)} --sandbox ${sandboxId}`);
    else await sandbox.close(CLOSE);
    for (const name of SIGNALS) process.off(name, onSignal);
  }
}

/** @param {string} text */
export function say(text) {
  process.stderr.write(`cloudsandbox: ${text}\n`);
}

/** One line of a terminal that is written over by the next; nothing elsewhere. @param {string} [text] none: it goes away */
export function progress(text) {
  if (!process.stderr.isTTY || process.env.TERM === "dumb") return;
  const width = Math.max(20, (process.stderr.columns ?? 80) - 1);
  const shown = text === undefined ? "" : colourful(process.stderr) ? `\x1b[2m${text.slice(0, width)}\x1b[22m` : text.slice(0, width);
  process.stderr.write(`\r\x1b[K${shown}`);
}
