// E2BSandbox in the programs of its users: exits, worker threads, other TLS work.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { request } from "node:https";
import { describe, test } from "node:test";
import { Worker } from "node:worker_threads";

import { makeCertificate } from "../emulators/certificate.js";
import { inFlight } from "../support/calls.js";
import { runNode } from "../support/node.js";
import { open, withoutVariables } from "./support.js";

withoutVariables();

const START = "process.Process/Start";

/** A program that has made `sandbox`. */
const program = (options, body) =>
  `import { E2BSandbox } from "cloudsandbox";
   const sandbox = new E2BSandbox(${JSON.stringify(options)});
   ${body}`;

describe("exits", { concurrency: 4 }, () => {
  test("C051 C066 a script without close() ends by itself, and the sandbox has a lifetime", async (t) => {
    const { engine, options } = await open(t);
    const { code, stdout, stderr } = await runNode(
      program(options, `console.log((await sandbox.shell("echo ok")).output, process.uptime());
        process.on("exit", () => console.log(process.uptime()));`),
    );
    assert.deepEqual([code, stderr], [0, ""]);
    const [, before, after] = stdout.trim().split(/\s+/).map(Number);
    assert.ok(after - before < 1, stdout);
    assert.equal(JSON.parse(engine.requests("POST /v2/sandboxes")[0].body).timeout, 300);
    assert.equal(engine.count("DELETE /sandboxes/{id}"), 0);
  });

  test("C067 a call that is the only work keeps the process alive until its answer", async (t) => {
    const { options } = await open(t);
    const { stdout } = await runNode(program(options, `sandbox.run("print(1)").then((result) => console.log(result.output));`));
    assert.equal(stdout, "1\n\n");
  });

  for (const [name, body] of Object.entries({
    "process.exit()": "process.exit(3);",
    "an uncaught exception": "process.on('uncaughtException', () => process.exit(3)); throw new Error('x');",
  })) {
    test(`${name} with every kind of call in flight`, async (t) => {
      const { engine, options } = await open(t);
      engine.fault("envd POST /files", { instead: "hang" }, { times: Infinity });
      const { code, hung, signal, stderr } = await runNode(
        program({ ...options, template: "code-interpreter-v1" }, `
          await sandbox.start();
          sandbox.shell("sleep 300");
          sandbox.run("import time; time.sleep(300)");
          sandbox.exec({ command: "cat", stdin: "x" });
          sandbox.writeFile("f", "x");
          sandbox.readFile("f");
          setTimeout(() => { ${body} }, 300);`),
      );
      assert.deepEqual({ code, hung, signal, stderr }, { code: 3, hung: false, signal: null, stderr: "" });
    });
  }

  test("a start in flight", async (t) => {
    const { engine, options } = await open(t);
    engine.fault("POST /v2/sandboxes", { instead: "hang" });
    const { code, stderr } = await runNode(program(options, `sandbox.start(); setTimeout(() => process.exit(3), 200);`));
    assert.deepEqual([code, stderr], [3, ""]);
  });
});

describe("worker threads", () => {
  test("C065 each has its own connections; one is terminated with calls in flight", async (t) => {
    const { engine, options } = await open(t);
    const start = (body) => new Worker(new URL(`data:text/javascript,${encodeURIComponent(
      `import { parentPort } from "node:worker_threads";
       const { E2BSandbox } = await import(${JSON.stringify(import.meta.resolve("cloudsandbox"))});
       const sandbox = new E2BSandbox(${JSON.stringify(options)});
       ${body}`,
    )}`));
    const working = start(`
      const outputs = await Promise.all(Array.from({ length: 10 }, (_, i) => sandbox.shell("echo " + i)));
      await sandbox.close();
      parentPort.postMessage(outputs.map(({ output }) => output.trim()).join());`);
    const ended = start(`
      await sandbox.start();
      for (let i = 0; i < 5; i++) { sandbox.shell("sleep 300"); sandbox.readFile("f"); }
      parentPort.postMessage("running");`);
    const exit = once(working, "exit");
    const [[answer], [running]] = await Promise.all([once(working, "message"), once(ended, "message")]);
    assert.equal(answer, "0,1,2,3,4,5,6,7,8,9");
    assert.equal(running, "running");
    await engine.waitFor(START, 15);
    await ended.terminate();
    await exit;
  });
});

describe("other work on the same loop", () => {
  test("C064 100 calls over TLS among 100 HTTPS requests and hashes of Node's own", async (t) => {
    const tls = makeCertificate(["127.0.0.1"]);
    const { emulator, make } = await open(t, { tls });
    const sandbox = make();
    const fetchHealth = () =>
      new Promise((resolve, reject) => {
        const { port } = new URL(emulator.apiUrl);
        request({ host: "127.0.0.1", port, path: "/health", ca: tls.cert, headers: { "user-agent": "test" } }, (response) => {
          response.setEncoding("utf8").on("data", resolve).on("error", reject);
        }).on("error", reject).end();
      });
    const one = async (index) => {
      const body = randomBytes(10_000).toString("hex");
      const [health, file] = await Promise.all([
        fetchHealth(),
        sandbox.writeFile(`f${index}`, body).then(() => sandbox.readFile(`f${index}`)),
      ]);
      assert.match(health, /Health/);
      const hash = (text) => createHash("sha256").update(text).digest("hex");
      assert.equal(hash(file), hash(body));
    };
    await inFlight(10, 100, one);
  });
});
