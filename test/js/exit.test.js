// The ends of a process: by itself, by process.exit(), by an error, by a signal, with and without calls
// in flight. None may hang, crash, or leave a process or a directory behind.
import assert from "node:assert/strict";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";

import { runNode, startNode } from "../support/node.js";
import { mark } from "../support/processes.js";
import { tempDir } from "../support/temp.js";
import { eventually } from "../support/wait.js";

const OPEN = `import { LocalSandbox } from "cloudsandbox";
  const env = { SBX_TEST_MARK: process.env.SBX_TEST_MARK ?? "" };
  const sandbox = new LocalSandbox({ isolation: "none" });\n`;
const IN_FLIGHT = `${OPEN}
  await sandbox.start();
  sandbox.shell("sleep 300 & sleep 300", { env });
  sandbox.exec({ command: "while :; do echo x; done", env, onStdout() {} });
  sandbox.writeFile("big", new Uint8Array(8 << 20));
  await new Promise((resolve) => setTimeout(resolve, 100));\n`;

/** Runs a program to its end and checks that it leaves nothing. */
async function end(t, source, expected) {
  const dir = tempDir(t);
  const tag = mark();
  const result = await runNode(source, { env: { TMPDIR: dir, ...tag.env } });
  const seen = Object.fromEntries(Object.keys(expected).map((name) => [name, result[name]]));
  assert.deepEqual({ ...seen, hung: result.hung }, { ...expected, hung: false }, result.stderr);
  await tag.gone();
  await eventually("an empty temporary directory", () => readdirSync(dir).length === 0);
  return result;
}

describe("exit", { concurrency: 4 }, () => {
  test("C066 an idle sandbox does not keep the process", async (t) => {
    await end(t, `${OPEN} await sandbox.run("1");`, { code: 0, stderr: "" });
    await end(t, `${OPEN} await sandbox.start();`, { code: 0, stderr: "" });
    await end(t, OPEN, { code: 0, stderr: "" });
    await end(t, `${OPEN} await sandbox.shell("true"); await sandbox.close();`, { code: 0, stderr: "" });
  });

  test("C171 a handler of SIGTERM closes in bounded time, whatever runs", async (t) => {
    await end(
      t,
      `${OPEN}
      await sandbox.start();
      const tell = (error) => console.log(error.code);
      sandbox.exec({ command: "sleep 300 & sleep 300", env, timeoutSeconds: Infinity }).catch(tell);
      sandbox.exec({ command: "sleep 300", env, timeoutSeconds: 300 }).catch(tell);
      process.once("SIGTERM", () => sandbox.close({ graceSeconds: 0.2 }));
      setTimeout(() => process.kill(process.pid, "SIGTERM"), 300);`,
      { code: 0, stdout: "ERR_SANDBOX_CLOSED\nERR_SANDBOX_CLOSED\n" },
    );
  });

  test("C067 a call in flight does", async (t) => {
    await end(t, `${OPEN} sandbox.run("print(42)").then(({ output }) => console.log(output.trim()));`, {
      code: 0,
      stdout: "42\n",
      stderr: "",
    });
    await end(t, `${OPEN} sandbox.readFile("none").then(console.log);`, {
      code: 0,
      stdout: "null\n",
      stderr: "",
    });
    await end(t, `${OPEN} sandbox.close().then(() => console.log("closed"));`, {
      code: 0,
      stdout: "closed\n",
      stderr: "",
    });
  });

  test("process.exit() with calls in flight", async (t) => {
    await end(t, `${IN_FLIGHT} process.exit(3);`, { code: 3, stderr: "" });
    await end(t, `${OPEN} sandbox.shell("sleep 300", { env }); process.exit(3);`, { code: 3, stderr: "" });
    await end(
      t,
      `${OPEN} sandbox.exec({ command: "echo x; sleep 300", env, onStdout: () => process.exit(3) });`,
      { code: 3, stderr: "" },
    );
    await end(
      t,
      `${OPEN} sandbox.shell("true").then(() => { sandbox.shell("sleep 300", { env }); process.exit(3); });`,
      { code: 3, stderr: "" },
    );
  });

  test("process.exit() with an idle sandbox", async (t) => {
    await end(t, `${OPEN} await sandbox.shell("echo x > file"); process.exit(3);`, { code: 3, stderr: "" });
  });

  test("calls made by an exit listener do no harm", async (t) => {
    await end(
      t,
      `${IN_FLIGHT}
      process.on("exit", () => {
        sandbox.shell("true").catch(() => {});
        sandbox.close();
        console.log(sandbox.sandboxId, sandbox.capabilities.local);
        try { new LocalSandbox({ isolation: "none" }); } catch (error) { console.log(error.code); }
      });
      process.exit(3);`,
      { code: 3, stdout: "null false\nERR_SANDBOX_CLOSED\n", stderr: "" },
    );
  });

  test("an uncaught error and an unhandled rejection", async (t) => {
    const thrown = await end(t, `${IN_FLIGHT} throw new Error("mine");`, { code: 1 });
    assert.match(thrown.stderr, /[Ee]rror: mine/);
    const rejected = await end(t, `${IN_FLIGHT} sandbox.run("1", { language: "ruby" });`, { code: 1 });
    assert.match(rejected.stderr, /SandboxError: Unsupported/);
  });

  test("a directory that was given stays when a signal ends the process", async (t) => {
    const dir = tempDir(t);
    writeFileSync(path.join(dir, "mine"), "x");
    const source = `import { LocalSandbox } from "cloudsandbox";
      const sandbox = new LocalSandbox({ isolation: "none", workspace: ${JSON.stringify(dir)} });
      console.log((await sandbox.exec({ command: "cut -d ' ' -f 4 /proc/$PPID/stat" })).stdout);
      setInterval(() => {}, 1000);`;
    const { child, ended } = startNode(source, { env: { TMPDIR: tempDir(t) } });
    const helper = Number(await new Promise((resolve) => child.stdout.once("data", resolve)));
    child.kill("SIGKILL");
    await ended;
    await eventually("the end of the helper", () => !existsSync(`/proc/${helper}`));
    assert.deepEqual(readdirSync(dir), ["mine"]);
  });

  test("process.abort() and signals: no process and no directory is left", async (t) => {
    for (const how of ["SIGTERM", "SIGINT", "SIGHUP", "SIGKILL", "SIGABRT"]) {
      const tag = mark();
      const dir = tempDir(t);
      const { child, ended } = startNode(
        `${IN_FLIGHT} console.log("running"); setInterval(() => {}, 1000);`,
        {
          env: { TMPDIR: dir, ...tag.env },
        },
      );
      await new Promise((resolve) => child.stdout.once("data", resolve));
      child.kill(how);
      const { signal } = await ended;
      assert.equal(signal, how);
      await tag.gone();
      await eventually("an empty temporary directory", () => readdirSync(dir).length === 0);
    }
  });
});
