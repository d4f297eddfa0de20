// Many environments in one process: each has its own loop state, and each may end at any moment.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { describe, test } from "node:test";
import { Worker } from "node:worker_threads";

import { LocalSandbox } from "cloudsandbox";

import { NOT_NODE, runNode } from "../support/node.js";
import { mark } from "../support/processes.js";
import { openDescriptors } from "../support/resources.js";
import { tempDir } from "../support/temp.js";
import { eventually } from "../support/wait.js";

const FIXTURE = new URL("./fixtures/worker.js", import.meta.url);

/** Starts a worker; `ended` resolves with its messages, its exit code and the error it died of. */
function start(workerData, onMessage = () => {}) {
  const worker = new Worker(FIXTURE, { workerData });
  const ended = new Promise((resolve) => {
    const result = { messages: [], error: undefined };
    worker.on("message", (message) => {
      result.messages.push(message);
      onMessage(worker, message);
    });
    worker.on("error", (error) => (result.error = error));
    worker.on("exit", (code) => resolve({ ...result, code }));
  });
  return { worker, ended };
}

// Deno resolves before it has run the hooks of a terminated worker, and runs none while JavaScript does not return.
const noHooks = process.versions.deno ? "Deno does not wait for a worker's hooks" : false;

describe("worker threads", () => {
  test("commands get the variables of the worker, not what the process keeps from it", async () => {
    process.env.CLOUDSANDBOX_TEST_KEPT = "the process's";
    const code = `
      const { workerData, parentPort } = require("node:worker_threads");
      import(workerData).then(async ({ LocalSandbox }) => {
        const sandbox = new LocalSandbox({ isolation: "none", inheritEnv: ["CLOUDSANDBOX_TEST_KEPT", "MINE", "EMPTY"] });
        const { output } = await sandbox.shell('echo "\${CLOUDSANDBOX_TEST_KEPT-unset} $MINE \${EMPTY-unset} $PATH $TZ"');
        await sandbox.close();
        parentPort.postMessage(output);
      });`;
    const env = { PATH: "/bin:/usr/bin", TZ: "UTC", MINE: "mine", EMPTY: "" };
    const worker = new Worker(code, { eval: true, env, workerData: import.meta.resolve("cloudsandbox") });
    const [output] = await once(worker, "message");
    delete process.env.CLOUDSANDBOX_TEST_KEPT;
    assert.equal(output, "unset mine  /bin:/usr/bin UTC\n");
  });

  test("a worker without a PATH does not get that of the process", async () => {
    const code = `
      const { workerData, parentPort } = require("node:worker_threads");
      import(workerData).then(async ({ LocalSandbox }) => {
        const sandbox = new LocalSandbox({ isolation: "none", inheritEnv: ["PATH"] });
        const { output } = await sandbox.shell('echo "$PATH"');
        await sandbox.close();
        parentPort.postMessage(output);
      });`;
    const path = process.env.PATH;
    process.env.PATH = `/opt/of-the-process:${path}`;
    const worker = new Worker(code, { eval: true, env: {}, workerData: import.meta.resolve("cloudsandbox") });
    const [output] = await once(worker, "message");
    process.env.PATH = path;
    assert.equal(output, "/usr/local/bin:/usr/bin:/bin\n");
  });

  test("C065 this thread and two workers run 20 commands each; one ends early", async (t) => {
    const dir = tempDir(t);
    const sandbox = new LocalSandbox({ isolation: "none", tempDir: dir });
    t.after(() => sandbox.close());
    const whole = start({ job: "commands", count: 20, tempDir: dir });
    const early = start({ job: "commands", count: 20, leaveAfter: 5, tempDir: dir });
    const ids = [whole.worker.threadId, early.worker.threadId];
    const mine = await Promise.all(
      Array.from({ length: 20 }, (_, index) => sandbox.shell(`echo main:${index}`)),
    );
    assert.deepEqual(
      mine.map(({ output }) => output),
      Array.from({ length: 20 }, (_, index) => `main:${index}\n`),
    );
    const [first, second] = await Promise.all([whole.ended, early.ended]);
    assert.equal(first.code, 0);
    assert.deepEqual(
      new Set(first.messages),
      new Set(Array.from({ length: 20 }, (_, index) => `${ids[0]}:${index}`)),
    );
    assert.equal(second.code, 7);
    assert.ok(second.messages.every((message) => message.startsWith(`${ids[1]}:`)));
    assert.deepStrictEqual(await sandbox.shell("echo after"), { output: "after\n", exitCode: 0 });
  });

  for (const job of ["inFlight", "busy", "starting"]) {
    test(`terminated with calls in flight (${job}): no crash, no process, no directory`, { skip: noHooks }, async (t) => {
      const dir = tempDir(t);
      for (let round = 0; round < 3; round++) {
        const tag = mark();
        const { ended } = start({ job, tempDir: dir, env: tag.env }, (worker) => worker.terminate());
        const { messages, code, error } = await ended;
        assert.deepEqual({ messages, code, error }, { messages: ["running"], code: 1, error: undefined });
        await tag.gone();
        assert.deepEqual(readdirSync(dir), []);
      }
    });
  }

  test("terminated at a random moment", { skip: noHooks }, async (t) => {
    const dir = tempDir(t);
    const tag = mark();
    const rounds = Array.from({ length: 12 }, async (_, index) => {
      const { worker, ended } = start({
        job: index % 2 ? "starting" : "inFlight",
        tempDir: dir,
        env: tag.env,
      });
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 150));
      await worker.terminate();
      return ended;
    });
    for (const { error } of await Promise.all(rounds)) assert.equal(error, undefined);
    await tag.gone();
    assert.deepEqual(readdirSync(dir), []);
  });

  test("process.exit() from inside an output callback ends the thread", async (t) => {
    const dir = tempDir(t);
    const tag = mark();
    const { code, error } = await start({ job: "exitInOutput", tempDir: dir, env: tag.env }).ended;
    assert.deepEqual({ code, error }, { code: 7, error: undefined });
    await tag.gone();
    assert.deepEqual(readdirSync(dir), []);
  });

  test("an uncaught error with calls in flight", async (t) => {
    const dir = tempDir(t);
    const tag = mark();
    const { code, error } = await start({ job: "throws", tempDir: dir, env: tag.env }).ended;
    // Bun's workers say 0.
    assert.deepEqual([NOT_NODE ? 1 : code, error?.message], [1, "uncaught in a worker"]);
    await tag.gone();
    assert.deepEqual(readdirSync(dir), []);
  });

  test("a worker that closes nothing ends by itself, and leaves no descriptor", async (t) => {
    const dir = tempDir(t);
    await start({ job: "leaves", tempDir: dir }).ended;
    const before = openDescriptors();
    for (let round = 0; round < 5; round++) {
      const { code, error } = await start({ job: "leaves", tempDir: dir }).ended;
      assert.deepEqual({ code, error }, { code: 0, error: undefined });
      assert.deepEqual(readdirSync(dir), []);
    }
    await eventually("as many descriptors as before", () => openDescriptors() <= before);
  });
});

describe("workers and the environment", () => {
  test("C187 sandboxes are made while the main thread changes its variables", async () => {
    const body = `
      const { E2BSandbox, LocalSandbox } = await import(${JSON.stringify(import.meta.resolve("cloudsandbox"))});
      const until = performance.now() + 1500;
      while (performance.now() < until) {
        for (let i = 0; i < 200; i++) {
          new LocalSandbox({ isolation: "none", inheritEnv: ["ZZ1", "ZZ2", "HOME"] });
          new E2BSandbox({ apiKey: "k" });
        }
        await new Promise((resolve) => setImmediate(resolve));
      }`;
    const source = `
      import { Worker } from "node:worker_threads";
      const workers = [0, 1].map(() => new Worker(new URL("data:text/javascript," + ${JSON.stringify(encodeURIComponent(body))})));
      let running = workers.length;
      for (const worker of workers) worker.on("exit", () => running--).on("error", (error) => console.error(error));
      for (let n = 0; running > 0; ) {
        for (let i = 0; i < 2000; i++, n++) process.env["V" + (n % 4000) + "_" + "x".repeat(n % 50)] = "y".repeat(n % 200);
        for (const name of Object.keys(process.env)) if (/^V\\\\d/.test(name)) delete process.env[name];
        await new Promise((resolve) => setImmediate(resolve));
      }
      console.log("no crash");`;
    const { code, signal, stdout, stderr } = await runNode(source);
    assert.deepEqual({ code, signal, stdout, stderr }, { code: 0, signal: null, stdout: "no crash\n", stderr: "" });
  });
});
