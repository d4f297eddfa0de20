// Field cases that only this machine's files and limits show.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";

import { LocalSandbox } from "cloudsandbox";

import { runNode } from "../support/node.js";
import { tempDir } from "../support/temp.js";
import { rejection } from "../support/wait.js";

function open(t, options) {
  const sandbox = new LocalSandbox({ isolation: "none", tempDir: tempDir(t), ...options });
  t.after(() => sandbox.close());
  return sandbox;
}

const mode = (file) => (statSync(file).mode & 0o7777).toString(8);

describe("local cases", { concurrency: 4 }, () => {
  // Its output fits into the pipe: a command that waits for its reader does not end in time.
  test("C178 a command that ended in time did so, however busy its host was", async () => {
    const { stdout } = await runNode(
      `import { LocalSandbox } from "cloudsandbox";
       const sandbox = new LocalSandbox({ isolation: "none", killGraceSeconds: 0 });
       await sandbox.start();
       const calls = [["sleep 0.5; seq 1 10000; exit 3", 2], ["sleep 60", 1]].map(([command, timeoutSeconds]) =>
         sandbox.exec({ command, timeoutSeconds }));
       await new Promise((resolve) => setTimeout(resolve, 200));
       const end = performance.now() + 3000;
       while (performance.now() < end);
       for (const { status, exitCode, output } of await Promise.all(calls)) console.log(status, exitCode, output.length);
       await sandbox.close();`,
    );
    assert.equal(stdout, "exited 3 48894\ntimedOut 124 0\n");
  });

  test("C181 a new file is 0644 less the umask", async (t) => {
    const dir = tempDir(t);
    const { stdout, stderr } = await runNode(
      `import { LocalSandbox } from "cloudsandbox";
       import { statSync } from "node:fs";
       const sandbox = new LocalSandbox({ isolation: "none", workspace: ${JSON.stringify(dir)} });
       for (const umask of [0o022, 0o077]) {
         process.umask(umask);
         await sandbox.writeFile("f" + umask, "x");
         console.log((statSync(${JSON.stringify(dir)} + "/f" + umask).mode & 0o7777).toString(8));
       }
       await sandbox.close();`,
    );
    assert.deepEqual([stdout, stderr], ["644\n600\n", ""]);
  });

  test("C181 a file that is replaced keeps its whole mode", async (t) => {
    const dir = tempDir(t);
    const sandbox = open(t, { workspace: dir });
    for (const bits of [0o2755, 0o4711, 0o600, 0o1777]) {
      const file = path.join(dir, `f${bits}`);
      writeFileSync(file, "old");
      chmodSync(file, bits);
      await sandbox.writeFile(`f${bits}`, "new");
      assert.equal(mode(file), bits.toString(8));
    }
  });

  test("C195 the reason of a refused start is one sentence with the directory and the advice", async (t) => {
    const sandbox = open(t);
    await sandbox.writeFile("f", "x");
    for (const [cwd, reason] of [
      ["f", /^cannot run in "f": a file stands where a directory is needed; make that directory first/],
      ["f/x", /^cannot run in "f\/x": a file stands where a directory is needed; make that directory first/],
      ["none", /^cannot run in "none": it does not exist; make that directory first/],
      ["/root", /^cannot run in "\/root": it is outside of the workspace.*give a path inside it/],
    ]) {
      const error = await rejection(sandbox.exec({ command: "true", cwd }));
      assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG");
      assert.equal(error.mayHaveRun, false);
      assert.match(error.message, reason);
    }
    const many = await rejection(sandbox.exec({ argv: ["echo", ...Array(1500).fill("x".repeat(2000))] }));
    assert.equal(many.code, "ERR_SANDBOX_TOO_LARGE");
    assert.match(many.message, /pass long text through stdin or a file; the command did not run$/);
  });

  test("C202 files whose size is a fiction are read to their end", { skip: process.platform !== "linux" }, async (t) => {
    assert.match(await open(t, { workspace: "/proc" }).readFile("version"), /^Linux version .+\n$/);
    const { stdout } = spawnSync("cat", ["/sys/kernel/mm/transparent_hugepage/enabled"], { encoding: "utf8" });
    const sys = open(t, { workspace: "/sys" });
    if (stdout) assert.equal(await sys.readFile("kernel/mm/transparent_hugepage/enabled"), stdout);
  });

  test("C202 a pipe and a device are refused in words, and hold up no close", async (t) => {
    const sandbox = open(t);
    await sandbox.shell("mkfifo pipe; ln -s pipe link; mkfifo dir; (sleep 300 > pipe) 2>/dev/null &");
    for (const name of ["pipe", "link", "dir"]) {
      for (const call of [() => sandbox.readFile(name), () => sandbox.writeFile(name, "x")]) {
        const error = await rejection(call());
        assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG");
        assert.match(error.message, /is not a regular file/);
      }
    }
    const begin = performance.now();
    await sandbox.close();
    assert.ok(performance.now() - begin < 10_000);
  });

  test("C204 a variable of more than 128 KiB is too large, which no repeat changes", async (t) => {
    const sandbox = open(t);
    const error = await rejection(sandbox.exec({ command: "true", env: { A: "x".repeat(140_000) } }));
    assert.equal(error.code, "ERR_SANDBOX_TOO_LARGE");
    assert.deepEqual([error.retryable, error.mayHaveRun], [false, false]);
  });
});
