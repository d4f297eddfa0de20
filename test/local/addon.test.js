// The addon in the programs of its users: imports, exits, workers, other work on the same loop.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { createServer } from "node:http";
import { describe, test } from "node:test";
import { Worker } from "node:worker_threads";

import { LocalSandbox } from "cloudsandbox";

import { inFlight } from "../support/calls.js";
import { copyPackage, runNode } from "../support/node.js";
import { tempDir } from "../support/temp.js";

describe("addon", { concurrency: 4 }, () => {
  test("C063 without the binary: one error that names this machine and the way out", async (t) => {
    const copy = copyPackage(t, { native: false });
    const { stdout, stderr } = await runNode(
      `import { LocalSandbox, SandboxError } from "cloudsandbox";
       try { new LocalSandbox({ isolation: "none" }); }
       catch (error) { console.log(error instanceof SandboxError, error.code); console.log(error.message); }`,
      { cwd: copy },
    );
    assert.equal(stderr, "");
    const [first, ...message] = stdout.trim().split("\n");
    assert.equal(first, "true ERR_SANDBOX_MISSING_BINARY");
    const text = message.join("\n");
    const libc = process.report.getReport().header.glibcVersionRuntime ? "glibc" : "musl";
    for (const part of [
      process.platform,
      process.arch,
      libc,
      process.version,
      "scripts/build.mjs",
    ]) {
      assert.ok(text.includes(part), `${part} in: ${text}`);
    }
  });

  test("C064 100 commands among 100 fetches and hashes", async (t) => {
    const server = createServer((request, response) => request.pipe(response)).listen(
      0,
      "127.0.0.1",
    );
    t.after(() => server.close());
    await once(server, "listening");
    const url = `http://127.0.0.1:${server.address().port}/`;
    const sandbox = new LocalSandbox({ isolation: "none", tempDir: tempDir(t) });
    t.after(() => sandbox.close());
    const one = async (index) => {
      const body = randomBytes(10_000).toString("hex");
      const [echoed, command, file] = await Promise.all([
        fetch(url, { method: "POST", body }).then((response) => response.text()),
        sandbox.exec({ command: "cat | tr a-f A-F", stdin: body }),
        sandbox.writeFile(`f${index}`, body).then(() => sandbox.readFile(`f${index}`)),
      ]);
      const hash = (text) => createHash("sha256").update(text).digest("hex");
      assert.equal(hash(echoed), hash(body));
      assert.equal(hash(command.stdout), hash(body.toUpperCase()));
      assert.equal(hash(file), hash(body));
    };
    await inFlight(10, 100, one);
  });

  test("C065 this thread and two workers run commands; one worker ends early", async (t) => {
    const dir = tempDir(t);
    const start = (leaveAfter) =>
      new Promise((resolve, reject) => {
        const worker = new Worker(new URL("./fixtures/many-commands.js", import.meta.url), {
          workerData: { tempDir: dir, leaveAfter },
        });
        const answers = [];
        worker.on("message", (answer) => answers.push(answer));
        worker.on("error", reject);
        worker.on("exit", (code) => resolve({ answers, code, id: worker.threadId }));
      });
    const sandbox = new LocalSandbox({ isolation: "none", tempDir: dir });
    t.after(() => sandbox.close());
    const mine = Promise.all(
      Array.from({ length: 20 }, (_, index) => sandbox.shell(`echo main ${index}`)),
    );
    const [whole, early] = await Promise.all([start(20), start(5)]);
    assert.deepEqual(
      (await mine).map(({ output }) => output),
      Array.from({ length: 20 }, (_, index) => `main ${index}\n`),
    );
    assert.deepEqual(
      whole.answers.sort((a, b) => a.index - b.index).map(({ output }) => output),
      Array.from({ length: 20 }, (_, index) => `worker ${index}\n`),
    );
    assert.ok(
      whole.answers.every(({ thread }) => thread === whole.answers[0].thread && thread !== 0),
    );
    assert.equal(whole.code, 0);
    assert.ok(early.answers.length >= 5);
    assert.deepStrictEqual(await sandbox.shell("echo after"), { output: "after\n", exitCode: 0 });
  });

  test("C066 a sandbox that was not closed does not keep the process alive, and leaves no folder", async (t) => {
    const dir = tempDir(t);
    const { code, stderr, hung } = await runNode(
      `import { LocalSandbox } from "cloudsandbox";
       const sandbox = new LocalSandbox({ isolation: "none" });
       await sandbox.run("1");`,
      { env: { TMPDIR: dir } },
    );
    assert.deepEqual({ code, stderr, hung }, { code: 0, stderr: "", hung: false });
    assert.deepEqual(readdirSync(dir), []);
  });

  test("C051 C066 neither does one that only started, or was only made", async () => {
    const { code, stderr, hung } = await runNode(
      `import { LocalSandbox, SandboxToolkit } from "cloudsandbox";
       const started = new LocalSandbox({ isolation: "none" });
       await started.start();
       new SandboxToolkit(new LocalSandbox({ isolation: "none" }), { name: "x" }).getTools();`,
    );
    assert.deepEqual({ code, stderr, hung }, { code: 0, stderr: "", hung: false });
  });

  test("C067 a call in flight keeps the process alive until its answer is there", async () => {
    const { stdout, code } = await runNode(
      `import { LocalSandbox } from "cloudsandbox";
       new LocalSandbox({ isolation: "none" }).shell("sleep 0.5; echo answer").then(({ output }) => console.log(output));`,
    );
    assert.deepEqual({ stdout, code }, { stdout: "answer\n\n", code: 0 });
  });

  test("C068 import and require give the same names, from both entries", async () => {
    const list =
      "console.log(JSON.stringify([Object.keys(root).sort(), Object.keys(toolkits).sort()]));";
    const imported = await runNode(
      `import * as root from "cloudsandbox"; import * as toolkits from "cloudsandbox/toolkits"; ${list}`,
    );
    const required = await runNode(
      `const root = require("cloudsandbox"), toolkits = require("cloudsandbox/toolkits"); ${list}`,
      {
        commonjs: true,
        flags: ["--disable-warning=ExperimentalWarning"],
      },
    );
    assert.equal(imported.stderr, "");
    const [root, toolkits] = JSON.parse(imported.stdout);
    assert.deepEqual(
      JSON.parse(required.stdout).map((names) =>
        names.filter((name) => !["default", "module.exports", "__esModule"].includes(name)),
      ),
      [root, toolkits],
    );
    for (const name of [
      "LocalSandbox",
      "SandboxAgent",
      "SandboxToolkit",
      "Toolkit",
      "collectToolkitTools",
      "describeToolLibrary",
      "defineTool",
      "SandboxError",
      "PathSecurityError",
    ]) {
      assert.ok(root.includes(name), name);
    }
    for (const name of [
      "LocalSandbox",
      "SandboxToolkit",
      "Toolkit",
      "collectToolkitTools",
      "describeToolLibrary",
    ]) {
      assert.ok(toolkits.includes(name), name);
    }
  });

  test("C068 importing loads no binary and starts nothing; the first sandbox loads it", async () => {
    const { stdout, stderr } = await runNode(
      `const loaded = () => process.report.getReport().sharedObjects.filter((name) => /cloudsandbox\\.node$|libcurl/.test(name)).length;
       // Reading the modules' files may still be ending.
       const handles = () => process.getActiveResourcesInfo().filter((name) => !/^(CloseReq|FSReq)/.test(name)).length;
       const before = handles();
       const { LocalSandbox, SandboxToolkit } = await import("cloudsandbox");
       await import("cloudsandbox/toolkits");
       console.log(loaded(), handles() - before);
       const sandbox = new LocalSandbox({ isolation: "none" });
       await sandbox.shell("true");
       await sandbox.close();
       console.log(loaded());`,
    );
    assert.equal(stderr, "");
    assert.equal(stdout, "0 0\n1\n", "the addon alone: a local sandbox needs no libcurl");
  });
});
