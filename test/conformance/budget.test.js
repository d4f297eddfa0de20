// A budget refuses before a command, and nothing of it is sent.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";

import { SandboxToolkit } from "cloudsandbox";
import { onRecord } from "cloudsandbox/records";

import { rejection } from "../support/wait.js";
import { agents, providers } from "./providers.js";

function assertSpent(error, words, provider) {
  assert.deepEqual([error.code, error.provider, error.retryable, error.mayHaveRun], ["ERR_SANDBOX_QUOTA", provider, false, false]);
  assert.match(error.message, words);
}

for (const provider of providers) {
  describe(`budget, ${provider.name}`, { concurrency: 4 }, () => {
    test("R7 commands: the last one runs, the next one is refused and files are not", async (t) => {
      const world = provider.world(t);
      const sandbox = world.make({ budget: { commands: 3 } });
      const [, , write] = new SandboxToolkit(sandbox, { name: "one" }).getTools();
      const files = Promise.all([sandbox.writeFile("f", "x"), sandbox.readFile("none")]);
      const calls = [sandbox.shell("echo 1 >> log"), sandbox.run('open("log", "a").write("2\\n")'), sandbox.exec({ command: "echo 3 >> log" })];
      const late = rejection(sandbox.shell("echo 4 >> log"));
      await Promise.all([...calls, files]);
      const words = /^the budget is spent: 3 of 3 commands have run, and nothing was sent\. Files can still be read; .*`budget\.commands`/;
      assertSpent(await late, words, provider.providerId);
      for (const call of [() => sandbox.run("1"), () => sandbox.exec({ argv: ["true"] })]) {
        assertSpent(await rejection(call()), words, provider.providerId);
      }
      assert.equal(await write.execute({ path: "g", contents: "x" }), "ok");
      assert.deepEqual((await sandbox.readFile("log")).split("\n").sort().join(""), "123");
    });

    test("R7 what certainly did not run is not counted", async (t) => {
      const world = provider.world(t);
      const sandbox = world.make({ budget: { commands: 1 } });
      const mend = world.breakCreation();
      await rejection(sandbox.shell("true"));
      await rejection(sandbox.shell("true", { signal: AbortSignal.abort() }));
      await rejection(sandbox.shell(7));
      mend();
      assert.equal((await sandbox.shell("echo ran")).output, "ran\n");
      assertSpent(await rejection(sandbox.shell("true")), /1 of 1 commands/, provider.providerId);
    });

    test("R7 no commands at all: nothing is created", async (t) => {
      const world = provider.world(t);
      const sandbox = world.make({ budget: { commands: 0 } });
      assertSpent(await rejection(sandbox.shell("true")), /0 of 0 commands/, provider.providerId);
      assert.deepEqual(world.existing(), []);
    });

    test("R8 sandbox seconds pass while the sandbox exists, and what is lost costs no more", async (t) => {
      const world = provider.world(t);
      const sandbox = world.make({ budget: { sandboxSeconds: 3 } });
      await delay(300);
      await sandbox.shell("true");
      assert.deepStrictEqual(await sandbox.shell("sleep 3.2; echo to the end"), { output: "to the end\n", exitCode: 0 });
      const words = /^the budget is spent: \d+ of 3 sandbox seconds have passed, and nothing was sent; .*`budget\.sandboxSeconds`/;
      assertSpent(await rejection(sandbox.shell("true")), words, provider.providerId);
      await sandbox.writeFile("f", "x");
      world.lose(sandbox);
      await rejection(sandbox.readFile("f"));
      // A new one would cost.
      for (const call of [() => sandbox.readFile("f"), () => sandbox.start()]) assertSpent(await rejection(call()), words, provider.providerId);
      assert.deepEqual(world.existing(), []);
      await sandbox.close();
    });
  });

  test(`R7 a refusal is recorded, ${provider.name}`, async (t) => {
    const records = [];
    t.after(onRecord((record) => records.push(record)));
    const sandbox = provider.world(t).make({ budget: { commands: 1 } });
    await sandbox.shell("true");
    await rejection(sandbox.shell("true"));
    const { type, reason, spent, sandboxId } = records.at(-1);
    assert.deepEqual([type, reason, spent, sandboxId], ["refused", "budget", "commands", sandbox.sandboxId]);
  });
}

for (const agent of agents) {
  test(`R9 an agent's budget: seeding is no command, and what is refused is not counted, ${agent.name}`, async (t) => {
    const workspace = agent.world(t).make({ budget: { commands: 2, sandboxSeconds: 3600 }, workspace: { files: [{ path: "f", contents: "x" }] } });
    await workspace.start();
    await workspace.shell("true");
    await rejection(workspace.shell(7));
    await workspace.run("1");
    const error = await rejection(workspace.shell("true"));
    assertSpent(error, /2 of 2 commands/, workspace.providerId);
    assert.equal(await workspace.readFile("f"), "x");
  });
}
