// Remote sandboxes in the programs of their users: exits, worker threads, other TLS work.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { request } from "node:https";
import { describe, test } from "node:test";
import { Worker } from "node:worker_threads";

import { makeCertificate } from "../emulators/certificate.js";
import { inFlight } from "../support/calls.js";
import { runNode } from "../support/node.js";
import { open, program, remotes, withoutVariables } from "./remote.js";

withoutVariables();

const hash = (text) => createHash("sha256").update(text).digest("hex");

for (const remote of remotes) {
  describe(`${remote.name}: exits`, { concurrency: 4 }, () => {
    test("C051 C066 a script without close() ends by itself, and the sandbox has a lifetime", async (t) => {
      const { engine, options } = await open(t, remote);
      const { code, stdout, stderr } = await runNode(
        program(remote, options, `console.log((await sandbox.shell("echo ok")).output, process.uptime());
          process.on("exit", () => console.log(process.uptime()));`),
      );
      assert.deepEqual([code, stderr], [0, ""]);
      const [, before, after] = stdout.trim().split(/\s+/).map(Number);
      assert.ok(after - before < 5, stdout);
      assert.ok(remote.hasLifetime(remote.read(engine.requests(remote.routes.create)[0])));
      assert.equal(engine.count(remote.routes.remove), 0);
    });

    test("C067 a call that is the only work keeps the process alive until its answer", async (t) => {
      const { options } = await open(t, remote);
      const { stdout } = await runNode(
        program(remote, options, `sandbox.run("print(1)").then((result) => console.log(result.output));`),
      );
      assert.equal(stdout, "1\n\n");
    });

    test("a start in flight", async (t) => {
      const { engine, options } = await open(t, remote);
      engine.fault(remote.routes.create, { instead: "hang" });
      const { code, stderr } = await runNode(
        program(remote, options, `sandbox.start(); setTimeout(() => process.exit(3), 200);`),
      );
      assert.deepEqual([code, stderr], [3, ""]);
    });
  });

  describe(`${remote.name}: worker threads`, () => {
    test("C065 each has its own connections; one is terminated with calls in flight", async (t) => {
      const { engine, options } = await open(t, remote);
      const start = (body) => {
        const source = program(remote, options, `const { parentPort } = await import("node:worker_threads");
          ${body}`, import.meta.resolve("cloudsandbox"));
        return new Worker(new URL(`data:text/javascript,${encodeURIComponent(source)}`));
      };
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
      await engine.waitFor(remote.routes.command, 15);
      await ended.terminate();
      await exit;
    });
  });

  describe(`${remote.name}: other work on the same loop`, () => {
    test("C064 100 calls over TLS among 100 HTTPS requests and hashes of Node's own", async (t) => {
      const tls = makeCertificate(["127.0.0.1"]);
      const { make, urls } = await open(t, remote, { tls });
      const sandbox = make();
      const { port } = new URL(urls[0]);
      const { path, part } = remote.health;
      const fetchHealth = () =>
        new Promise((resolve, reject) => {
          request({ host: "127.0.0.1", port, path, ca: tls.cert, headers: { "user-agent": "test" } }, (response) => {
            let text = JSON.stringify(response.headers);
            response.setEncoding("utf8").on("data", (part) => (text += part)).on("end", () => resolve(text)).on("error", reject);
          }).on("error", reject).end();
        });
      const one = async (index) => {
        const body = randomBytes(10_000).toString("hex");
        const [health, file] = await Promise.all([
          fetchHealth(),
          sandbox.writeFile(`f${index}`, body).then(() => sandbox.readFile(`f${index}`)),
        ]);
        assert.match(health, part);
        assert.equal(hash(file), hash(body));
      };
      await inFlight(10, 100, one);
    });
  });
}
