// Runs a command as the daemon does: a shell without arguments, fed by its standard input, both outputs in
// one pipe, a process group of its own. The end is when the shell has exited and the pipe is closed by
// everybody who holds it.
// @ts-check
import { spawn } from "node:child_process";
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { PipeMaker } from "../fifo.js";
import { goReason } from "../go.js";
import { findMarked } from "../processes.js";
import { locate } from "./paths.js";

/** @typedef {import("./sandbox.js").Sandbox} Sandbox */
/** @typedef {import("node:child_process").ChildProcess} ChildProcess */

/**
 * @typedef {object} Run
 * @property {string[]} argv
 * @property {string} [script] written to standard input; none: it is empty
 * @property {string} cwd
 * @property {Record<string, string>} env
 * @property {number} timeoutMs 0: none
 * @property {boolean} [group] whether a timeout ends the whole group; default true
 */

/** @typedef {{ exitCode: number, output: Buffer, timedOut: boolean }} Outcome */

const PREFERRED = ["/usr/bin/zsh", "/bin/zsh", "/usr/bin/bash", "/bin/bash"];

/** The shell that the daemon takes. @param {Sandbox} sandbox */
export function findShell(sandbox) {
  if (sandbox.settings.shell) return sandbox.settings.shell;
  const listed = existsSync("/etc/shells") ? readFileSync("/etc/shells", "utf8").split("\n") : [];
  return PREFERRED.find((name) => listed.includes(name) && existsSync(name)) ?? process.env.SHELL ?? "sh";
}

/** Whether the sandbox's user could enter it; the emulator may run as one who has all rights. @param {string} cwd */
function mayEnter(cwd) {
  try {
    const stats = statSync(cwd);
    return !stats.isDirectory() || (stats.mode & 0o111) !== 0;
  } catch {
    return true;
  }
}

/**
 * @param {number} pid
 * @param {NodeJS.Signals} signal
 */
export function signalProcess(pid, signal) {
  try {
    process.kill(pid, signal);
  } catch {
    // Gone meanwhile.
  }
}

/**
 * A process's state, parent and group, if it is there and no zombie. Linux only.
 * @param {number | string} pid
 */
function look(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const [state, parent, group] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return state === "Z" || state === "X" ? undefined : { pid: Number(pid), parent: Number(parent), group: Number(group) };
  } catch {
    return undefined;
  }
}

/** @param {number} pid */
export const isRunning = (pid) => look(pid) !== undefined;

/**
 * What is left in a sandbox of a process's group and descendants. Linux only; elsewhere nothing.
 * @param {Sandbox} sandbox
 * @param {number} leader
 */
export function family(sandbox, leader) {
  const names = existsSync("/proc") ? readdirSync("/proc").filter((name) => /^\d+$/.test(name)) : [];
  const all = names.flatMap((name) => look(name) ?? []);
  const found = new Set([leader]);
  for (let size = 0; size !== found.size;) {
    size = found.size;
    for (const { pid, parent, group } of all) if (group === leader || found.has(parent)) found.add(pid);
  }
  // A number may have passed on to a process of somebody else.
  return findMarked(sandbox.marker).filter((pid) => found.has(pid) && isRunning(pid));
}

/**
 * Signals a process's group, if something of the sandbox is left in it.
 * @param {Sandbox} sandbox
 * @param {number} leader
 * @param {NodeJS.Signals} signal
 */
export function signalGroup(sandbox, leader, signal) {
  if (family(sandbox, leader).some((pid) => look(pid)?.group === leader)) signalProcess(-leader, signal);
}

/**
 * @param {Sandbox} sandbox
 * @param {ChildProcess} child
 */
function killGroup(sandbox, child) {
  const pid = /** @type {number} */ (child.pid);
  if (child.exitCode === null && child.signalCode === null) signalProcess(-pid, "SIGKILL");
  else signalGroup(sandbox, pid, "SIGKILL");
}

/**
 * Waits until it has started, or rejects.
 * @param {Sandbox} sandbox
 * @param {ChildProcess} child
 */
export async function started(sandbox, child) {
  await new Promise((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", reject);
  });
  child.on("error", () => {});
  // The container may have gone while the process was made.
  if (!sandbox.container) signalProcess(-(/** @type {number} */ (child.pid)), "SIGKILL");
}

/**
 * Both or none.
 * @param {Sandbox} sandbox
 * @param {boolean} withInput
 */
async function makePipes({ pipes }, withInput) {
  const output = await pipes.output();
  try {
    return { output, input: withInput ? await pipes.input() : undefined };
  } catch (error) {
    output.readable.destroy();
    await PipeMaker.close([output.childFd]);
    throw error;
  }
}

/**
 * @param {Sandbox} sandbox
 * @param {Run} run
 * @returns {Promise<Outcome | string>} a string is the reason why nothing could start
 */
export async function runCommand(sandbox, { argv, script, cwd, env, timeoutMs, group = true }) {
  if ([cwd, ...Object.values(env)].some((text) => text.includes("\0"))) {
    return "exec: environment variable contains NUL";
  }
  const directory = locate(sandbox, cwd);
  if (!mayEnter(directory)) return `fork/exec ${argv[0]}: permission denied`;
  const { output, input } = await makePipes(sandbox, script !== undefined);
  const childFds = [output.childFd, ...(input ? [input.childFd] : [])];
  let child;
  try {
    const stdio = /** @type {import("node:child_process").StdioOptions} */ ([
      input?.childFd ?? "ignore",
      output.childFd,
      output.childFd,
    ]);
    child = spawn(argv[0], argv.slice(1), { cwd: directory, env, detached: true, stdio });
    await started(sandbox, child);
  } catch (error) {
    output.readable.destroy();
    input?.writable.destroy();
    const { code } = /** @type {NodeJS.ErrnoException} */ (error);
    if (code === "ENOENT" && !argv[0].includes("/") && existsSync(directory)) return `exec: "${argv[0]}": executable file not found in $PATH`;
    return `fork/exec ${argv[0]}: ${goReason(error)}`;
  } finally {
    await PipeMaker.close(childFds);
  }
  input?.writable.on("error", () => {});
  input?.writable.end(script ?? "");
  const onTimeout = () => (group ? killGroup(sandbox, child) : child.kill("SIGKILL"));
  return finish(child, output.readable, timeoutMs, onTimeout);
}

/**
 * @param {ChildProcess} child
 * @param {import("node:net").Socket} readable
 * @param {number} timeoutMs
 * @param {() => unknown} onTimeout
 * @returns {Promise<Outcome>}
 */
async function finish(child, readable, timeoutMs, onTimeout) {
  /** @type {Buffer[]} */
  const chunks = [];
  readable.on("error", () => {});
  readable.on("data", (chunk) => chunks.push(chunk));
  const closed = new Promise((resolve) => readable.once("close", resolve));
  const exited = new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) resolve(undefined);
    else child.once("exit", resolve);
  });
  let fired = false;
  const fire = () => {
    fired = true;
    onTimeout();
  };
  const timer = timeoutMs > 0 ? setTimeout(fire, timeoutMs) : undefined;
  await Promise.all([exited, closed]);
  clearTimeout(timer);
  const exitCode = child.exitCode ?? -1;
  // A shell that had ended well before its children were killed counts as one that ended well.
  return { exitCode, output: Buffer.concat(chunks), timedOut: fired && exitCode !== 0 };
}
