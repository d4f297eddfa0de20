// ComputeSDK over our sandboxes.
import assert from "node:assert/strict";
import { test } from "node:test";

import { defineProvider } from "@computesdk/provider";
import { LocalSandbox } from "cloudsandbox";
import { computeSdkProvider } from "cloudsandbox/computesdk";
import { compute } from "computesdk";

import { mark } from "../../support/processes.js";
import { rejection } from "../../support/wait.js";

function providerFor(t, more) {
  const made = [];
  t.after(() => Promise.all(made.map((sandbox) => sandbox.close())));
  const provider = computeSdkProvider(defineProvider, ({ envs }) => {
    const sandbox = new LocalSandbox({ trusted: true, env: { ...envs }, ...more });
    made.push(sandbox);
    return sandbox;
  });
  return { provider, made };
}

test("commands, streams, files, and the sandbox itself", async (t) => {
  const { provider, made } = providerFor(t);
  compute.setConfig({ provider });
  const sandbox = await compute.sandbox.create({ envs: { A: "1" }, timeout: 60_000 });
  const [ours] = made;
  assert.equal(sandbox.getInstance(), ours);
  assert.equal(sandbox.sandboxId, ours.sandboxId);
  await sandbox.filesystem.mkdir("d");
  const { stdout, stderr, exitCode, durationMs } = await sandbox.runCommand("pwd | sed 's,.*/,,'; echo $A$B; echo lost >&2; exit 3", { cwd: "d", env: { B: "2" } });
  assert.deepEqual({ stdout, stderr, exitCode }, { stdout: "d\n12\n", stderr: "lost\n", exitCode: 3 });
  assert.equal(typeof durationMs, "number");

  const chunks = [];
  const streaming = sandbox.runCommand("echo begun; while [ ! -e go ]; do sleep 0.05; done; echo over", {
    onStdout(text) {
      chunks.push(text);
      if (chunks.length === 1) sandbox.filesystem.writeFile("go", "");
      throw new Error("the listener's own");
    },
  });
  assert.equal((await streaming).stdout, "begun\nover\n");
  assert.equal(chunks.join(""), "begun\nover\n");
  assert.equal((await sandbox.runCommand("sleep 600", { timeout: 200 })).exitCode, 124);

  await sandbox.filesystem.writeFile("d/f", "text\n");
  assert.equal(await sandbox.filesystem.readFile("d/f"), "text\n");
  assert.deepEqual((await sandbox.filesystem.readdir("d")).map(({ name, type, size }) => [name, type, size]), [["f", "file", 5]]);
  assert.equal((await rejection(sandbox.filesystem.readFile("none"))).code, "ERR_SANDBOX_NOT_FOUND");
  await sandbox.filesystem.remove("d");
  assert.equal(await sandbox.filesystem.exists("d"), false);

  const { id, status, provider: name, timeout } = await sandbox.getInfo();
  assert.deepEqual([id, status, name, timeout], [ours.sandboxId, "running", "cloudsandbox", 60_000]);
  assert.match((await rejection(sandbox.getUrl({ port: 80 }))).message, /no address for its ports/);
  assert.equal((await compute.sandbox.getById(sandbox.sandboxId)).getInstance(), ours);
  assert.equal((await compute.sandbox.list()).length, 1);
  await sandbox.destroy();
  await sandbox.destroy();
  assert.deepEqual([await compute.sandbox.getById(sandbox.sandboxId), await compute.sandbox.list()], [null, []]);
});

test("destroy ends what runs, and an aborted creation leaves nothing", async (t) => {
  const { env, started, gone } = mark();
  const { provider, made } = providerFor(t, { env });
  const sandbox = await provider.sandbox.create();
  const running = sandbox.runCommand("sleep 600").catch(() => {});
  await sandbox.runCommand("sleep 600", { background: true });
  await started(2);
  made[0].close({ graceSeconds: 0 });
  await sandbox.destroy();
  await gone();
  await running;

  const controller = new AbortController();
  const created = rejection(provider.sandbox.create({ signal: controller.signal }));
  controller.abort();
  assert.equal((await created).name, "AbortError");
  for (const one of made.slice(1)) assert.equal((await rejection(one.shell("true"))).code, "ERR_SANDBOX_CLOSED");
  assert.deepEqual(await provider.sandbox.list(), []);
});
