// Processes of the local backend: what is awkward to end, and what must not outlive a call, a
// close, a worker or the host.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";
import { Worker } from "node:worker_threads";

import { LocalSandbox } from "cloudsandbox";

import { runNode, startNode } from "../support/node.js";
import { children, mark } from "../support/processes.js";
import { openDescriptors } from "../support/resources.js";
import { tempDir } from "../support/temp.js";
import { HANG_MS, eventually } from "../support/wait.js";

function open(t, options) {
  const sandbox = new LocalSandbox({ isolation: "none", tempDir: tempDir(t), ...options });
  t.after(() => sandbox.close());
  return sandbox;
}

describe("processes", { concurrency: 4 }, () => {
  test("I49 a command that closes its output and runs on is waited for", async (t) => {
    const result = await open(t).shell("exec >&- 2>&-; sleep 0.5; exit 5");
    assert.deepStrictEqual(result, { output: "", exitCode: 5 });
  });

  for (const [name, redirected] of [
    ["holds the output", ""],
    ["lets go of the output", "> /dev/null 2>&1 < /dev/null "],
  ]) {
    test(`I50 a background child that ${name} does not hold the call, and lives until the close`, async (t) => {
      const sandbox = open(t);
      const tracked = mark();
      const begin = performance.now();
      const result = await sandbox.exec({ command: `sleep 300 ${redirected}& echo done`, env: tracked.env });
      assert.ok(performance.now() - begin < HANG_MS);
      const { status, exitCode, stdout, backgroundKilled, backgroundRunning } = result;
      assert.deepEqual(
        { status, exitCode, stdout, backgroundKilled, backgroundRunning },
        { status: "exited", exitCode: 0, stdout: "done\n", backgroundKilled: false, backgroundRunning: true },
      );
      const left = await sandbox.shell(`sleep 300 ${redirected}& exit 6`, { env: tracked.env });
      assert.equal(left.exitCode, 6);
      assert.equal(tracked.alive().length, 2);
      await sandbox.close();
      assert.deepEqual(tracked.alive(), []);
    });

    test(`I50 background: "end" ends a child that ${name} with its command`, async (t) => {
      const tracked = mark();
      const command = `sleep 300 ${redirected}& echo done`;
      const result = await open(t).exec({ command, env: tracked.env, background: "end" });
      const { stdout, backgroundKilled, backgroundRunning } = result;
      assert.deepEqual(
        { stdout, backgroundKilled, backgroundRunning },
        { stdout: "done\n", backgroundKilled: true, backgroundRunning: false },
      );
      assert.deepEqual(tracked.alive(), []);
    });
  }

  test("C163 a host that ends leaves nothing of the background, and is not kept alive by it", async (t) => {
    const tracked = mark();
    const dir = tempDir(t);
    const { code, stdout, hung } = await runNode(
      `import { LocalSandbox } from "cloudsandbox";
       const sandbox = new LocalSandbox({ isolation: "none", tempDir: ${JSON.stringify(dir)} });
       const r = await sandbox.exec({ command: "setsid sleep 300 & echo on", env: ${JSON.stringify(tracked.env)} });
       console.log(r.stdout, r.backgroundRunning);`,
    );
    assert.deepEqual({ code, stdout, hung }, { code: 0, stdout: "on\n true\n", hung: false });
    await tracked.gone();
    await eventually("the folder's end", () => readdirSync(dir).length === 0);
  });

  test("C163 a hundred of them cost the host no descriptor", async (t) => {
    const sandbox = open(t);
    const tracked = mark();
    await sandbox.shell("true");
    const before = openDescriptors();
    for (let i = 0; i < 100; i++) await sandbox.shell("sleep 300 >/dev/null 2>&1 &", { env: tracked.env });
    assert.equal(tracked.alive().length, 100);
    // Other tests run beside this one.
    assert.ok(openDescriptors() < before + 50);
    await sandbox.close();
    assert.deepEqual(tracked.alive(), []);
  });

  test("I50 a command without background children reports none", async (t) => {
    const { backgroundKilled, termination } = await open(t).exec({
      command: "sleep 0.1 & wait; echo done",
    });
    assert.deepEqual(
      { backgroundKilled, termination },
      { backgroundKilled: false, termination: "none" },
    );
  });

  test("I51 daemons that left the session are gone when the call has ended them", async (t) => {
    const sandbox = open(t);
    const tracked = mark();
    const daemon =
      "(setsid sh -c 'sleep 300 & exec sleep 300' > /dev/null 2>&1 &) ; sleep 0.2; echo done";
    const ended = await sandbox.exec({ command: daemon, env: tracked.env, background: "end" });
    assert.deepEqual([ended.output, ended.exitCode], ["done\n", 0]);
    assert.deepEqual(tracked.alive(), []);
    const limited = await sandbox.shell(`${daemon}; sleep 300`, {
      env: tracked.env,
      timeoutSeconds: 2,
    });
    assert.deepStrictEqual(limited, { output: "done\n", exitCode: 124, timedOut: true });
    assert.deepEqual(tracked.alive(), []);
  });

  test("I52 a command that ignores every polite signal is ended after the grace", async (t) => {
    const sandbox = open(t, { killGraceSeconds: 0.2 });
    const tracked = mark();
    const command = "trap '' TERM INT HUP QUIT; echo deaf; while :; do sleep 0.1; done";
    const result = await sandbox.shell(command, { timeoutSeconds: 2, env: tracked.env });
    assert.deepStrictEqual(result, { output: "deaf\n", exitCode: 124, timedOut: true });
    assert.deepEqual(tracked.alive(), []);
  });

  test("I52 a command that minds SIGTERM may tidy up within the grace", async (t) => {
    const command = "trap 'echo tidied; exit 0' TERM; echo begun; while :; do sleep 0.05; done";
    const result = await open(t).shell(command, { timeoutSeconds: 2 });
    // The shell may add a line about its own child.
    assert.match(result.output, /^begun\n(.*\n)?tidied\n$/);
    assert.deepEqual({ ...result, output: "" }, { output: "", exitCode: 124, timedOut: true });
  });

  test("I53 a command that stops itself, or its whole group, is ended by the limit", async (t) => {
    const sandbox = open(t, { killGraceSeconds: 0.2 });
    for (const target of ["$$", "0"]) {
      const tracked = mark();
      const result = await sandbox.shell(
        `echo begun; sleep 300 & kill -STOP ${target}; echo not reached`,
        { timeoutSeconds: 2, env: tracked.env },
      );
      assert.deepStrictEqual(result, { output: "begun\n", exitCode: 124, timedOut: true }, target);
      assert.deepEqual(tracked.alive(), []);
    }
  });

  test("a command that stops the process that watches it is ended by the limit all the same", async (t) => {
    const sandbox = open(t, { killGraceSeconds: 0.2 });
    const tracked = mark();
    const command = "kill -STOP $PPID; echo begun; sleep 300";
    const result = await sandbox.exec({ command, timeoutSeconds: 2, env: tracked.env });
    assert.deepEqual([result.status, result.termination, result.output], ["timedOut", "confirmed", "begun\n"]);
    assert.deepEqual(tracked.alive(), []);
  });

  test("I55 standard input is at its end at once", async (t) => {
    const sandbox = open(t);
    assert.deepStrictEqual(await sandbox.shell("wc -c"), { output: "0\n", exitCode: 0 });
    assert.deepStrictEqual(await sandbox.shell("readlink /proc/self/fd/0"), {
      output: "/dev/null\n",
      exitCode: 0,
    });
  });

  test("I63 a host that ignores SIGCHLD, and one that reaps every child", async (t) => {
    const library = path.join(tempDir(t), "reaper.so");
    const compiled = spawnSync(
      "cc",
      [
        "-shared",
        "-fPIC",
        "-O1",
        "-o",
        library,
        path.resolve(import.meta.dirname, "../support/reaper.c"),
        "-lpthread",
      ],
      { encoding: "utf8" },
    );
    assert.equal(compiled.status, 0, compiled.stderr);
    for (const mode of ["ignore", "reap"]) {
      const { stdout, stderr, code } = await runNode(
        `import { LocalSandbox } from "cloudsandbox";
         const sandbox = new LocalSandbox({ isolation: "none" });
         const calls = Array.from({ length: 20 }, (_, index) => sandbox.shell("echo " + index + "; exit " + (index % 5)));
         console.log(JSON.stringify((await Promise.all(calls)).map(({ output, exitCode }) => output.trim() + " " + exitCode)));
         console.log(JSON.stringify(await sandbox.shell("sleep 300", { timeoutSeconds: 0.5 })));
         await sandbox.close();
         console.log("closed");`,
        { env: { LD_PRELOAD: library, REAPER_MODE: mode } },
      );
      assert.equal(stderr, "", mode);
      assert.equal(code, 0, mode);
      const [results, limited, closed] = stdout.trim().split("\n");
      assert.deepEqual(
        JSON.parse(results),
        Array.from({ length: 20 }, (_, index) => `${index} ${index % 5}`),
      );
      assert.deepEqual(JSON.parse(limited), { output: "", exitCode: 124, timedOut: true });
      assert.equal(closed, "closed");
    }
  });
});

const LONG_CALL = `
  import { LocalSandbox } from "cloudsandbox";
  const sandbox = new LocalSandbox({ isolation: "none" });
  const env = { SBX_TEST_MARK: process.env.SBX_TEST_MARK_VALUE };
  const call = sandbox.exec({ command: "echo begun; setsid sleep 300 & sleep 300", env, onStdout: begun });
`;

/**
 * Starts a host with a long command in flight; `then` is what the host does when the command runs.
 */
function startHost(t, then) {
  const tracked = mark();
  const dir = tempDir(t);
  const host = startNode(`${LONG_CALL} async function begun() { ${then} } await call;`, {
    env: { SBX_TEST_MARK_VALUE: Object.values(tracked.env)[0], TMPDIR: dir },
  });
  return { ...host, tracked, dir };
}

describe("ends of the host", { concurrency: 4 }, () => {
  test("I64 process.exit() with a command in flight leaves no process and no folder", async (t) => {
    const { ended, tracked, dir } = startHost(t, "process.exit(3)");
    const { code, stderr } = await ended;
    assert.equal(stderr, "");
    assert.equal(code, 3);
    await tracked.gone();
    await eventually("an empty temporary folder", () => readdirSync(dir).length === 0);
  });

  test("I64 an uncaught error with a command in flight leaves no process and no folder", async (t) => {
    const { ended, tracked, dir } = startHost(
      t,
      "setImmediate(() => { throw new Error('mine'); })",
    );
    const { code, stderr } = await ended;
    assert.match(stderr, /[Ee]rror: mine/);
    assert.equal(code, 1);
    await tracked.gone();
    await eventually("an empty temporary folder", () => readdirSync(dir).length === 0);
  });

  test("I54 a host that is killed leaves no process", async (t) => {
    const { ended, tracked } = startHost(t, "process.kill(process.pid, 'SIGKILL')");
    assert.equal((await ended).signal, "SIGKILL");
    await tracked.gone();
  });

  test("I54 a host that is interrupted leaves no process", async (t) => {
    const { ended, tracked } = startHost(t, "process.kill(process.pid, 'SIGINT')");
    assert.equal((await ended).signal, "SIGINT");
    await tracked.gone();
  });

  test("I64 a worker that is terminated with commands in flight leaves no process and no folder", async (t) => {
    const tracked = mark();
    const dir = tempDir(t);
    const worker = new Worker(new URL("./fixtures/long-command.js", import.meta.url), {
      workerData: { env: tracked.env, tempDir: dir },
    });
    await once(worker, "message");
    assert.equal(readdirSync(dir).length, 1);
    await worker.terminate();
    await tracked.gone();
    await eventually("an empty temporary folder", () => readdirSync(dir).length === 0);
    assert.deepStrictEqual(await open(t).shell("echo usable"), { output: "usable\n", exitCode: 0 });
  });
});

test("I64 200 commands at once: right answers, no descriptor, process or folder left", async (t) => {
  const dir = tempDir(t);
  const tracked = mark();
  const warm = new LocalSandbox({ isolation: "none", tempDir: dir });
  await warm.shell("true");
  await warm.close();
  const before = openDescriptors();
  const childrenBefore = children().length;
  const sandbox = new LocalSandbox({ isolation: "none", tempDir: dir });
  const results = await Promise.all(
    Array.from({ length: 200 }, (_, index) =>
      sandbox.shell(`sleep 0.1; echo ${index}; exit ${index % 7}`, { env: tracked.env }),
    ),
  );
  for (const [index, result] of results.entries()) {
    assert.deepStrictEqual(result, { output: `${index}\n`, exitCode: index % 7 });
  }
  const workspace = sandbox.sandboxId;
  assert.equal(path.dirname(workspace), dir);
  await sandbox.close();
  assert.ok(!existsSync(workspace));
  assert.deepEqual(readdirSync(dir), []);
  assert.deepEqual(tracked.alive(), []);
  await eventually("as many descriptors as before", () => openDescriptors() <= before);
  await eventually(
    "no child of ours, not even a zombie",
    () => children().length <= childrenBefore,
  );
});
