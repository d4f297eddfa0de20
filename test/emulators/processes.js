// Ends what a sandbox's commands have left behind. A real sandbox takes its machine with it; here the
// processes are found by a variable with a random value that everything started in a sandbox inherits,
// whatever session or parent it has got meanwhile.
// @ts-check
import { spawn } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";

/** Whether a process works in this directory, also after it was removed. @param {number} pid @param {string} directory */
function worksIn(pid, directory) {
  return `${readlinkSync(`/proc/${pid}/cwd`)}/`.startsWith(`${directory}/`);
}

/**
 * Process ids whose environment holds `NAME=value`, or that work in the directory, with their descendants: whoever has
 * cleared its environment and lost its parent mostly is where it was started. Linux only; elsewhere empty.
 * @param {string} marker
 * @param {string} [directory] the sandbox's own
 * @returns {number[]}
 */
export function findMarked(marker, directory) {
  /** @type {Map<number, number>} */
  const parents = new Map();
  /** @type {Set<number>} */
  const found = new Set();
  const needle = Buffer.from(`\0${marker}\0`);
  let names;
  try {
    names = readdirSync("/proc");
  } catch {
    return [];
  }
  for (const name of names) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      if (fields[0] === "Z" || fields[0] === "X") continue;
      parents.set(pid, Number(fields[1]));
      const environment = readFileSync(`/proc/${pid}/environ`);
      if (Buffer.concat([Buffer.of(0), environment, Buffer.of(0)]).includes(needle)) found.add(pid);
      else if (directory !== undefined && worksIn(pid, directory)) found.add(pid);
    } catch {
      // Gone meanwhile, or another user's.
    }
  }
  for (let grown = true; grown;) {
    grown = false;
    for (const [pid, parent] of parents) {
      if (found.has(pid) || !found.has(parent)) continue;
      found.add(pid);
      grown = true;
    }
  }
  return [...found];
}

/**
 * Signals all of them; again until none is left when the signal is SIGKILL.
 * @param {string} marker
 * @param {NodeJS.Signals} signal
 * @param {string} [directory]
 */
export function signalMarked(marker, signal, directory) {
  for (let round = 0; round < 10; round += 1) {
    const pids = findMarked(marker, directory);
    for (const pid of pids) {
      try {
        process.kill(pid, signal);
      } catch {
        // Gone meanwhile.
      }
    }
    if (!pids.length || signal !== "SIGKILL") return;
  }
}

/**
 * A helper process that outlives the emulator by a moment: when the emulator ends without having closed,
 * even by SIGKILL, it ends the marked processes and removes the directory.
 */
export class Reaper {
  #child;

  /** @param {string} directory below the system's temporary directory */
  constructor(directory) {
    this.#child = spawn(process.execPath, [import.meta.filename, directory], {
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
      env: process.env.TMPDIR ? { TMPDIR: process.env.TMPDIR } : {},
    });
    this.#child.unref();
    this.#child.on("error", () => {});
    const stdin = /** @type {import("node:net").Socket} */ (this.#child.stdin);
    stdin.on("error", () => {});
    stdin.unref();
  }

  /** @param {string} marker */
  watch(marker) {
    this.#child.stdin.write(`+${marker}\n`);
  }

  /** @param {string} marker */
  forget(marker) {
    this.#child.stdin.write(`-${marker}\n`);
  }

  /** After an orderly close: nothing is left to do. */
  dismiss() {
    this.#child.stdin.end("done\n");
  }
}

async function reap() {
  const directory = process.argv[2];
  const markers = new Set();
  let text = "";
  process.stdin.setEncoding("utf8");
  for await (const chunk of process.stdin) text += chunk;
  for (const line of text.split("\n")) {
    if (line === "done") return;
    if (line.startsWith("+")) markers.add(line.slice(1));
    else if (line.startsWith("-")) markers.delete(line.slice(1));
  }
  for (const marker of markers) signalMarked(marker, "SIGKILL", directory);
  if (path.dirname(directory) === os.tmpdir()) removeFolder(directory);
}

if (process.argv[1] === import.meta.filename) await reap();

/**
 * Also while something is about to end that still makes files in it: rmSync() itself tries only the folder again, not
 * what has come into it.
 *
 * @param {string} folder
 */
export function removeFolder(folder) {
  const clock = new Int32Array(new SharedArrayBuffer(4));
  for (let left = 40; ; left--) {
    try {
      rmSync(folder, { recursive: true, force: true });
      return;
    } catch (error) {
      if (left === 0) throw error;
      Atomics.wait(clock, 0, 0, 50);
    }
  }
}
