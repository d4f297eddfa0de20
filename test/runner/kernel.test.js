// kernel.sh: what a kernel of Jupyter has started, and the kernel.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";

import { eventually } from "../support/wait.js";
import { everyShell, newTag, runText, text } from "./support.js";

const program = text("kernel");

/** A process that looks like a kernel, and tells the numbers of what it has started. @param {any} t @param {string} id */
async function kernel(t, id) {
  const line = "sleep 60 & echo $!; setsid sleep 61 & echo $!; env -i setsid sleep 62 & echo $!; (setsid sleep 63 & echo $!); wait";
  const child = spawn("/bin/bash", ["-c", line, "kernel", "-f", `/runtime/kernel-${id}.json`], {
    detached: true,
    stdio: ["ignore", "pipe", "ignore"],
    env: { ...process.env, JPY_SESSION_NAME: id },
  });
  let said = "";
  child.stdout.on("data", (bytes) => (said += bytes));
  await eventually("its children", () => said.split("\n").length > 4);
  const pids = [child.pid, ...said.trim().split("\n").map(Number)];
  const living = () => pids.filter((pid) => {
    try {
      return process.kill(Number(pid), 0);
    } catch {
      return false;
    }
  });
  t.after(() => living().forEach((pid) => process.kill(Number(pid), "SIGKILL")));
  return living;
}

everyShell("C194 ends a kernel with all that it has started, and no other one", async (t, shell) => {
  const [one, two] = [newTag(), newTag()];
  const [living, others] = [await kernel(t, one), await kernel(t, two)];
  assert.equal((await runText(shell, program, ["kernel", newTag()])).code, 3, "there is no such kernel");
  const { code, stdout, stderr } = await runText(shell, program, ["kernel", one]);
  assert.deepEqual({ code, stdout: stdout.toString(), stderr }, { code: 0, stdout: "", stderr: "" });
  await eventually("that they are collected", () => living().length === 0);
  assert.equal(others().length, 5);
});
