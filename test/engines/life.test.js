// Containers over time, on the real engines: many at once, a client that is killed, lifetimes, what is left.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { describe, test } from "node:test";

import { DockerSandbox, removeStaleDockerSandboxes } from "cloudsandbox";

import { openDescriptors } from "../support/resources.js";
import { HANG_MS, eventually, rejection } from "../support/wait.js";
import { ask, engines, keepsLimits, missing, open, removeContainer } from "./support.js";

/** Of the whole process, however many sandboxes it has had. */
const KEPT_CONNECTIONS = 16;

const volumes = (engine) => (ask(engine, "GET", "/volumes").body.Volumes ?? []).map(({ Name }) => Name);

/** A program that starts `count` sandboxes, says their ids, and waits. */
function client(options, count) {
  const code = `
    const { DockerSandbox } = await import("cloudsandbox");
    const sandboxes = Array.from({ length: ${count} }, () => new DockerSandbox(${JSON.stringify(options)}));
    for (const sandbox of sandboxes) await sandbox.shell("sleep 1000 & echo on");
    console.log(JSON.stringify(sandboxes.map((it) => it.sandboxId)));
    setInterval(() => {}, 1000);`;
  return spawn(process.execPath, ["--input-type=module", "-e", code], { cwd: path.join(import.meta.dirname, "../.."), stdio: ["ignore", "pipe", "inherit"] });
}

test("rootless Podman is there, or its absence has a reason", { skip: engines.length === 0 }, () => {
  assert.ok(engines.some(({ name }) => name === "rootless") || missing("rootless"));
});

for (const engine of engines) {
  describe(`life, ${engine.name}`, () => {
    test("fifty containers: all answer, and nothing is left of them", { skip: engine.name === "rootless", timeout: 20 * HANG_MS }, async (t) => {
      const { make, left } = open(t, engine);
      const before = volumes(engine);
      const warm = make();
      await warm.start();
      await warm.close();
      const descriptors = openDescriptors();
      const sandboxes = Array.from({ length: 50 }, () => make({ startTimeoutSeconds: 600 }));
      for (let at = 0; at < 50; at += 5) await Promise.all(sandboxes.slice(at, at + 5).map((it) => it.start()));
      assert.equal(left().length, 50);
      for (let at = 0; at < 50; at += 10) {
        const answers = sandboxes.slice(at, at + 10).map((it, index) => it.shell(`echo ${at + index}`, { timeoutSeconds: 120 }));
        assert.deepEqual((await Promise.all(answers)).map(({ output }) => output), answers.map((_, index) => `${at + index}\n`));
      }
      for (let at = 0; at < 50; at += 10) await Promise.all(sandboxes.slice(at, at + 10).map((it) => it.close()));
      assert.deepEqual(left(), []);
      assert.deepEqual(volumes(engine), before);
      // Some connections are kept for the next sandbox.
      await eventually("descriptors are given back", () => openDescriptors() <= descriptors + KEPT_CONNECTIONS);
    });

    test("commands leave no process behind in their container", { timeout: 4 * HANG_MS }, async (t) => {
      const sandbox = open(t, engine).make();
      for (let at = 0; at < 20; at += 5) {
        await Promise.all(Array.from({ length: 5 }, () => sandbox.shell("exit 3", { timeoutSeconds: 120 })));
      }
      // Each process is a folder: the first one with its sleep, and this command's own.
      const count = async () => Number((await sandbox.shell("set -- /proc/[0-9]*; echo $#", { timeoutSeconds: 120 })).output);
      await eventually("their ends", async () => (await count()) < 10);
    });

    test("a client that was killed: its containers are found stale and removed, and only they", { timeout: 4 * HANG_MS }, async (t) => {
      const { options, make, left } = open(t, engine);
      const mine = make();
      await mine.start();
      const child = client(options, 2);
      t.after(() => child.kill("SIGKILL"));
      let told = "";
      for await (const chunk of child.stdout) {
        told += chunk;
        if (told.includes("\n")) break;
      }
      const ids = JSON.parse(told);
      assert.equal(left().length, 3);
      assert.deepEqual(await removeStaleDockerSandboxes({ host: engine.host }), { removed: [] }, "it still lives");
      child.kill("SIGKILL");
      await once(child, "exit");
      const { removed } = await removeStaleDockerSandboxes({ host: engine.host });
      assert.deepEqual([...removed].sort(), ids.sort());
      assert.deepEqual(left().map(({ Id }) => Id), [mine.sandboxId]);
      assert.deepEqual(await mine.shell("echo mine"), { output: "mine\n", exitCode: 0 });
    });

    test("a client that was killed: its containers end by themselves when their lifetime is over", { timeout: 4 * HANG_MS }, async (t) => {
      const { options, left } = open(t, engine);
      const child = client({ ...options, lifetimeSeconds: 8 }, 1);
      t.after(() => child.kill("SIGKILL"));
      await once(child.stdout, "data");
      child.kill("SIGKILL");
      await once(child, "exit");
      assert.equal(left().length, 1);
      await eventually("it is gone", () => left().length === 0);
    });

    test("a container that is gone is lost; the next call has a fresh one", async (t) => {
      const { make } = open(t, engine);
      const sandbox = make();
      await sandbox.writeFile("f", "x");
      const running = rejection(sandbox.exec({ command: "sleep 300" }));
      await sandbox.shell("true");
      removeContainer(engine, sandbox.sandboxId);
      assert.equal((await running).code, "ERR_SANDBOX_LOST");
      assert.equal(await sandbox.readFile("f"), null);
    });

    test("one that is there can be worked in, paused and not, and is left alone", async (t) => {
      const { make, options } = open(t, engine);
      const owner = make();
      await owner.writeFile("f", "of another\n");
      const attached = new DockerSandbox({ host: options.host, containerId: owner.sandboxId });
      assert.deepEqual(await attached.shell("cat f; id -u"), { output: "of another\n65534\n", exitCode: 0 });
      if (engine.name !== "rootless") {
        ask(engine, "POST", `/containers/${owner.sandboxId}/pause`);
        const error = await rejection(attached.shell("true"));
        assert.deepEqual([error.code, error.mayHaveRun], ["ERR_SANDBOX_CONFLICT", false], error.message);
        ask(engine, "POST", `/containers/${owner.sandboxId}/unpause`);
        assert.deepEqual(await attached.shell("echo on"), { output: "on\n", exitCode: 0 });
      }
      await attached.close();
      assert.deepEqual(await owner.shell("echo alive"), { output: "alive\n", exitCode: 0 });
      const owning = new DockerSandbox({ host: options.host, containerId: owner.sandboxId, owned: true });
      await owning.shell("true");
      await owning.close();
      assert.equal(ask(engine, "GET", `/containers/${owner.sandboxId}/json`).status, 404);
    });

    test("limits that this engine only pretends to keep are refused when they are asked for", { skip: keepsLimits(engine) }, async (t) => {
      const { make } = open(t, engine);
      const info = ask(engine, "GET", "/info").body;
      if (info.CgroupVersion !== "1") return;
      for (const options of [{ memoryMb: 64 }, { pids: 64 }, { cpus: 1 }]) {
        const error = await rejection(make(options).start());
        assert.equal(error.code, "ERR_SANDBOX_UNSUPPORTED", error.message);
        assert.match(error.message, new RegExp(Object.keys(options)[0]));
      }
      assert.deepEqual(await make().shell("echo on"), { output: "on\n", exitCode: 0 });
    });
  });
}
