// Starting, closing, failing and vanishing.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { SandboxToolkit } from "cloudsandbox";

import { inFlight } from "../support/calls.js";
import { mark } from "../support/processes.js";
import { event, rejection } from "../support/wait.js";
import { providers } from "./providers.js";

for (const provider of providers) {
  const { facts } = provider;

  describe(`lifecycle, ${provider.name}`, { concurrency: 4 }, () => {
    test("K2 C046 constructors and getTools() create nothing", async (t) => {
      const world = provider.world(t);
      const sandbox = world.make();
      const toolkit = new SandboxToolkit(sandbox, { name: "one" });
      assert.equal(toolkit.getTools().length, 4);
      assert.equal(toolkit.getSandbox(), sandbox);
      assert.equal(sandbox.sandboxId, null);
      assert.deepEqual(world.existing(), []);
      await toolkit.close();
      assert.deepEqual(world.existing(), []);
    });

    test("K3 C043 starts and calls in parallel share one sandbox", async (t) => {
      const world = provider.world(t);
      const sandbox = world.make();
      const [, , ran] = await Promise.all([
        sandbox.start(),
        sandbox.start(),
        sandbox.run("print(1)"),
        sandbox.shell("true"),
      ]);
      assert.deepStrictEqual(ran, { output: "1\n", exitCode: 0 });
      assert.equal(world.existing().length, 1);
      await sandbox.start();
      assert.equal(world.existing().length, 1);
    });

    test("K3 C045 closing twice, at once and later, deletes the sandbox", async (t) => {
      const world = provider.world(t);
      const sandbox = world.make();
      await sandbox.start();
      await Promise.all([sandbox.close(), sandbox.close()]);
      assert.deepEqual(world.existing(), []);
      await sandbox.close();
      const untouched = world.make();
      await untouched.close();
      await untouched.close();
    });

    test("C045 closing a sandbox that is gone already resolves", async (t) => {
      const world = provider.world(t);
      const sandbox = world.make();
      await sandbox.start();
      world.lose(sandbox);
      await sandbox.close();
    });

    test("K3 C047 every call after a close rejects as closed", async (t) => {
      const world = provider.world(t);
      const sandbox = world.make();
      await sandbox.start();
      await sandbox.close();
      for (const call of [
        () => sandbox.start(),
        () => sandbox.run("print(1)"),
        () => sandbox.shell("true"),
        () => sandbox.exec({ command: "true" }),
        () => sandbox.writeFile("f", "x"),
        () => sandbox.readFile("f"),
        () => sandbox.readBytes("f"),
      ]) {
        const error = await rejection(call());
        assert.equal(error.code, "ERR_SANDBOX_CLOSED");
        assert.match(error.message, /closed/);
      }
      assert.deepEqual(world.existing(), []);
    });

    test("K4 a close during the creation waits for it, then deletes", async (t) => {
      const world = provider.world(t);
      const sandbox = world.make();
      const started = sandbox.start();
      const closed = sandbox.close();
      await started;
      await closed;
      assert.deepEqual(world.existing(), []);
    });

    test("K5 a close during a call gives it time to end", async (t) => {
      const world = provider.world(t);
      const sandbox = world.make();
      const begun = event();
      const order = [];
      const call = sandbox
        .exec({
          command: "echo begun; sleep 0.5; ls > /dev/null && echo done",
          onStdout: begun.fire,
        })
        .finally(() => order.push("call"));
      await begun.happened;
      const closed = sandbox.close().then(() => order.push("close"));
      assert.equal((await rejection(sandbox.shell("echo late"))).code, "ERR_SANDBOX_CLOSED");
      assert.equal(world.existing().length, 1, "still there while the call runs");
      assert.equal((await call).stdout, "begun\ndone\n");
      await closed;
      assert.deepEqual(order, ["call", "close"]);
      assert.deepEqual(world.existing(), []);
    });

    test("C171 a close does not wait for a command without a limit", async (t) => {
      const world = provider.world(t);
      const sandbox = world.make();
      const tracked = mark();
      const begun = event();
      const order = [];
      const call = rejection(
        sandbox
          .exec({
            command: "echo begun; sleep 300 & sleep 300",
            env: tracked.env,
            timeoutSeconds: Infinity,
            onStdout: begun.fire,
          })
          .finally(() => order.push("call")),
      );
      await begun.happened;
      await sandbox.close({ graceSeconds: 3600 }).then(() => order.push("close"));
      const error = await call;
      assert.equal(error.code, "ERR_SANDBOX_CLOSED");
      assert.equal(error.mayHaveRun, true);
      assert.match(error.message, /closed while this call ran/);
      assert.deepEqual(order, ["call", "close"]);
      assert.deepEqual(world.existing(), []);
      await tracked.gone();
    });

    test("C171 what the grace does not suffice for is ended; what ends in it has its result", async (t) => {
      const world = provider.world(t);
      const sandbox = world.make();
      const tracked = mark();
      const begun = event();
      const long = rejection(
        sandbox.exec({ command: "echo begun; sleep 300", env: tracked.env, timeoutSeconds: 300, onStdout: begun.fire }),
      );
      await begun.happened;
      const short = sandbox.exec({ command: "sleep 0.2; exit 3" });
      const closed = sandbox.close({ graceSeconds: 2 });
      assert.equal((await rejection(sandbox.shell("echo late"))).code, "ERR_SANDBOX_CLOSED");
      await closed;
      assert.equal((await long).code, "ERR_SANDBOX_CLOSED");
      assert.equal((await short).exitCode, 3);
      assert.deepEqual(world.existing(), []);
      await tracked.gone();
    });

    test("C171 a second close joins the first one and may shorten its grace", async (t) => {
      const world = provider.world(t);
      const sandbox = world.make();
      const begun = event();
      const call = rejection(
        sandbox.shell("echo begun; sleep 300", { timeoutSeconds: 300 }),
      );
      sandbox.exec({ command: "echo begun; sleep 0.2", onStdout: begun.fire }).catch(() => {});
      await begun.happened;
      const patient = sandbox.close({ graceSeconds: 3600 });
      await Promise.all([patient, sandbox.close({ graceSeconds: 0 })]);
      assert.equal((await call).code, "ERR_SANDBOX_CLOSED");
      assert.deepEqual(world.existing(), []);
    });

    test("C171 a grace that is none is refused, and nothing is closed", async (t) => {
      const world = provider.world(t);
      const sandbox = world.make();
      for (const graceSeconds of [-1, NaN, Infinity, 3601, "5", null]) {
        const error = await rejection(sandbox.close({ graceSeconds }));
        assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG");
        assert.match(error.message, /graceSeconds.*from 0 to 3600/);
      }
      const error = await rejection(sandbox.close({ grace: 1 }));
      assert.match(error.message, /graceSeconds/);
      assert.equal((await sandbox.shell("echo on")).output, "on\n");
    });

    test("C044 a failed creation rejects for everybody who waits, and the next start works", async (t) => {
      const world = provider.world(t);
      const sandbox = world.make();
      const mend = world.breakCreation();
      const errors = await Promise.all(
        [sandbox.start(), sandbox.start(), sandbox.shell("true")].map(rejection),
      );
      for (const error of errors) assert.match(error.code, /^ERR_SANDBOX_/);
      mend();
      await sandbox.start();
      assert.deepStrictEqual(await sandbox.shell("echo ok"), { output: "ok\n", exitCode: 0 });
    });

    test("C050 a close in `finally` after a rejected call deletes the sandbox", async (t) => {
      const world = provider.world(t);
      const sandbox = world.make();
      const error = await rejection(
        (async () => {
          try {
            await sandbox.start();
            await sandbox.readFile(".");
          } finally {
            await sandbox.close();
          }
        })(),
      );
      assert.match(error.code, /^ERR_SANDBOX_/);
      assert.deepEqual(world.existing(), []);
    });

    test("D5 a sandbox that vanished is reported once, then replaced by a fresh one", async (t) => {
      const world = provider.world(t);
      const sandbox = world.make();
      await sandbox.writeFile("f", "x");
      world.lose(sandbox);
      const error = await rejection(sandbox.shell("cat f"));
      assert.equal(error.code, "ERR_SANDBOX_LOST");
      assert.deepStrictEqual(await sandbox.shell("ls"), { output: "", exitCode: 0 });
      assert.equal(world.existing().length, 1);
    });

    test('D5 with onLost: "reject" it stays lost', async (t) => {
      const world = provider.world(t);
      const sandbox = world.make({ onLost: "reject" });
      await sandbox.start();
      world.lose(sandbox);
      assert.equal((await rejection(sandbox.shell("true"))).code, "ERR_SANDBOX_LOST");
      assert.equal((await rejection(sandbox.shell("true"))).code, "ERR_SANDBOX_LOST");
      assert.deepEqual(world.existing(), []);
    });

    test("D5 asynchronous disposal is a close", async (t) => {
      const world = provider.world(t);
      const sandbox = world.make();
      await sandbox.start();
      await sandbox[Symbol.asyncDispose ?? Symbol.for("nodejs.asyncDispose")]();
      assert.deepEqual(world.existing(), []);
      assert.equal((await rejection(sandbox.start())).code, "ERR_SANDBOX_CLOSED");
    });

    test("C042 300 calls, 50 at a time: each settles once, with its own answer", async (t) => {
      const sandbox = provider.world(t).make();
      const answers = new Map();
      await inFlight(50, 300, async (id) => {
        const { output, exitCode } = await sandbox.shell(`echo ${id}; exit ${id % 3}`, { timeoutSeconds: 600 });
        assert.ok(!answers.has(id));
        answers.set(id, `${output.trim()} ${exitCode}`);
      });
      assert.equal(answers.size, 300);
      for (const [id, answer] of answers) assert.equal(answer, `${id} ${id % 3}`);
      if (facts.onThisMachine) {
        assert.deepStrictEqual(await sandbox.shell("ls -A"), { output: "", exitCode: 0 });
      }
    });
  });
}
