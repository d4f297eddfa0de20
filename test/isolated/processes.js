// Processes of this machine, as the tests of the isolated sandbox look at them from outside.
import { readFileSync, readdirSync } from "node:fs";

/** The children of a process of this machine. @param {number} pid @returns {number[]} */
export function childrenOf(pid) {
  return readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").split(" ").filter(Boolean).map(Number));
}

/** @param {number} pid */
function hasEnded(pid) {
  try {
    return /\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return true;
  }
}

/** Kills a sandbox's helper, and waits until the kernel has ended its sandbox. @param {number} pid */
export async function killHelper(pid) {
  const all = [pid, ...childrenOf(pid)];
  process.kill(pid, "SIGKILL");
  while (!all.every(hasEnded)) await new Promise((resolve) => setTimeout(resolve, 1));
}
