// Finding the processes that a command left behind. A command is started with a variable of a
// unique value in its environment; every descendant inherits it, also one that left the process
// group or the session, and /proc shows it. Linux only.
import { randomUUID } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";

import { eventually } from "./wait.js";

const NAME = "SBX_TEST_MARK";

/**
 * Ids of the processes on this machine that satisfy `test(pid)`; one that has just ended does not.
 */
function processesWhere(test) {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return test(pid);
      } catch {
        return false;
      }
    });
}

/**
 * A mark for one test's processes.
 *
 * `env` goes into the call's environment; `alive()` lists the marked processes that live now
 * (zombies have no environment and do not count); `gone()` waits until there are none; `started(n)`
 * waits until there are at least `n`.
 */
export function mark() {
  const value = randomUUID();
  const needle = `${NAME}=${value}`;
  const alive = () =>
    processesWhere((pid) =>
      readFileSync(`/proc/${pid}/environ`, "latin1").split("\0").includes(needle),
    );
  return {
    env: { [NAME]: value },
    alive,
    gone: () => eventually("the end of all marked processes", () => alive().length === 0),
    started: (count = 1) =>
      eventually("the start of a marked process", () => alive().length >= count),
  };
}

/** Ids of this process's children, zombies included. */
export function children() {
  return processesWhere((pid) => {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The name in parentheses may hold anything; the parent's id is the second field after it.
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]) === process.pid;
  });
}
