// The check of the network, where a manifest turns it off. The outside is on this machine, since nothing else is reached by tests:
// what answers there is "reachable", and where nobody listens it is "blocked".
import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { createServer } from "node:net";
import { after, beforeEach, describe, test } from "node:test";

import { SandboxAgent } from "cloudsandbox";

import { OUTSIDE } from "../../lib/network-check.js";
import { eventually, rejection } from "../support/wait.js";
import { providers } from "./providers.js";

/** Not told by a server: no query leaves this machine. */
const NO_NAME = "nobody..invalid";

async function listen(host) {
  const server = createServer((socket) => socket.on("error", () => {}).destroy());
  server.listen(0, host);
  await once(server, "listening");
  after(() => server.close());
  return [host, server.address().port];
}

const open4 = await listen("127.0.0.1");
const open6 = await listen("::1");
const shut4 = ["127.0.0.1", 1];
const shut6 = ["::1", 1];
const nothingOpen = { tcp4: [shut4], tcp6: [shut6], metadata: [["127.0.0.2", 1]], name: NO_NAME, port: open4[1] };
const real = { ...OUTSIDE };
after(() => Object.assign(OUTSIDE, real));

for (const provider of providers) {
  const { keeps } = provider.facts.manifest;
  // Where this machine's loopback is not the sandbox's, a name that its own files have is what comes through.
  const name = { dns: { name: "localhost" } };
  const everything = { tcp4: { tcp4: [shut4, open4] }, tcp6: { tcp6: [open6] }, metadata: { metadata: [open4] }, ...name };
  const openings = provider.facts.ownLoopback ? name : everything;
  const somethingOpen = Object.values(openings)[0];
  const off = { network: { default: "deny" } };

  describe(`network isolation, ${provider.name}`, () => {
    beforeEach(() => void Object.assign(OUTSIDE, nothingOpen));

    test("no manifest, or one that turns nothing off: not required, and nothing is looked at", async (t) => {
      const world = provider.world(t);
      for (const manifest of [undefined, {}, { network: { default: "allow" } }]) {
        const sandbox = world.make({ manifest });
        assert.deepEqual(sandbox.networkIsolation, { verdict: "not required", evidence: [] });
        assert.ok(Object.isFrozen(sandbox.networkIsolation));
      }
    });

    if (!keeps.includes('network.default: "deny"')) return;

    test("C148 nothing comes through: isolated, with evidence, and the first command runs after that", async (t) => {
      const sandbox = provider.world(t).make({ manifest: off });
      assert.deepEqual(sandbox.networkIsolation, { verdict: "unchecked", evidence: [] });
      assert.deepStrictEqual(await sandbox.shell("echo on"), { output: "on\n", exitCode: 0 });
      const { verdict, evidence } = sandbox.networkIsolation;
      assert.equal(verdict, "isolated");
      assert.deepEqual(evidence.map(({ kind, host, port, result }) => [kind, host, port, result]), [
        ["tcp4", ...shut4, "blocked"], ["tcp6", ...shut6, "blocked"], ["metadata", "127.0.0.2", 1, "blocked"], ["dns", NO_NAME, 0, "blocked"],
      ]);
      assert.ok(evidence.every(({ by }) => /^\w+$/.test(by)));
    });

    for (const [kind, outside] of Object.entries(openings)) {
      test(`C148 ${kind} comes through: the sandbox is deleted, and every call rejects`, async (t) => {
        Object.assign(OUTSIDE, outside);
        const world = provider.world(t);
        const sandbox = world.make({ manifest: off });
        for (const call of [() => sandbox.start(), () => sandbox.shell("echo ran"), () => sandbox.writeFile("a", "a"), () => sandbox.start()]) {
          const error = await rejection(call());
          assert.deepEqual([error.code, error.provider, error.mayHaveRun], ["ERR_SANDBOX_ISOLATION_UNAVAILABLE", provider.providerId, false]);
          assert.match(error.message, new RegExp(`${kind} .*could be reached; no command was run, and the sandbox was deleted\\..*verifyNetwork: false`));
        }
        assert.deepEqual(world.existing(), []);
        assert.equal(sandbox.networkIsolation.verdict, "reachable");
        await sandbox.close();
      });
    }

    test("C148 several calls at once: one look, and none of them runs before its end", async (t) => {
      Object.assign(OUTSIDE, somethingOpen);
      const world = provider.world(t);
      const sandbox = world.make({ manifest: off });
      const calls = [sandbox.start(), sandbox.shell("echo 1"), sandbox.run("print(2)"), sandbox.exec({ command: "echo 3" })];
      const codes = (await Promise.allSettled(calls)).map(({ reason }) => reason?.code);
      assert.deepEqual(codes, Array(4).fill("ERR_SANDBOX_ISOLATION_UNAVAILABLE"));
      assert.deepEqual(world.existing(), []);
    });

    test("verifyNetwork: false: nobody looks, and that is said", async (t) => {
      Object.assign(OUTSIDE, somethingOpen);
      const sandbox = provider.world(t).make({ manifest: off, verifyNetwork: false });
      assert.equal((await sandbox.shell("echo on")).output, "on\n");
      assert.deepEqual(sandbox.networkIsolation, { verdict: "unchecked", evidence: [] });
      assert.throws(() => provider.world(t).make({ manifest: off, verifyNetwork: "no" }), { code: "ERR_SANDBOX_INVALID_ARG" });
    });

    test("a sandbox that takes the place of a lost one is looked at before anything runs in it", async (t) => {
      const world = provider.world(t);
      const sandbox = world.make({ manifest: off });
      await sandbox.start();
      const first = sandbox.networkIsolation;
      await world.lose(sandbox);
      assert.equal((await rejection(sandbox.shell("true"))).code, "ERR_SANDBOX_LOST");
      assert.equal((await sandbox.shell("echo on")).output, "on\n");
      assert.notEqual(sandbox.networkIsolation, first, "a look of its own");
      await world.lose(sandbox);
      assert.equal((await rejection(sandbox.shell("true"))).code, "ERR_SANDBOX_LOST");
      Object.assign(OUTSIDE, somethingOpen);
      assert.equal((await rejection(sandbox.shell("echo ran"))).code, "ERR_SANDBOX_ISOLATION_UNAVAILABLE");
      assert.deepEqual(world.existing(), []);
    });

    test("the look is no command of the user's: not of his budget, and not in the records of commands", async (t) => {
      const world = provider.world(t);
      const none = world.make({ manifest: off, budget: { commands: 0 } });
      assert.equal((await rejection(none.shell("true"))).code, "ERR_SANDBOX_QUOTA");
      assert.deepEqual(world.existing(), []);
      const told = [];
      const hear = (record) => told.push(record);
      subscribe("cloudsandbox:exec", hear);
      t.after(() => unsubscribe("cloudsandbox:exec", hear));
      const one = world.make({ manifest: off, budget: { commands: 1 } });
      assert.equal((await one.shell("echo on")).output, "on\n");
      assert.equal(told.filter(({ sandboxId }) => sandboxId === one.sandboxId).length, 2, "its begin and its end");
      assert.equal((await rejection(one.shell("true"))).code, "ERR_SANDBOX_QUOTA");
    });

    test("close() during the look: who waits is told that it was closed, and nothing is left", async (t) => {
      const world = provider.world(t);
      const sandbox = world.make({ manifest: off });
      const waiting = [rejection(sandbox.start()), rejection(sandbox.shell("echo ran"))];
      await eventually("a sandbox", () => world.existing().length === 1);
      await sandbox.close({ graceSeconds: 0 });
      assert.deepEqual((await Promise.all(waiting)).map(({ code }) => code), ["ERR_SANDBOX_CLOSED", "ERR_SANDBOX_CLOSED"]);
      assert.deepEqual(world.existing(), []);
      assert.equal((await rejection(sandbox.start())).code, "ERR_SANDBOX_CLOSED");
    });

    test("an abort ends the wait; the next call has the look", async (t) => {
      const sandbox = provider.world(t).make({ manifest: off });
      const controller = new AbortController();
      const call = rejection(sandbox.shell("echo ran", { signal: controller.signal }));
      const reason = new Error("enough");
      controller.abort(reason);
      assert.equal(await call, reason);
      assert.equal((await sandbox.shell("echo on")).output, "on\n");
      assert.equal(sandbox.networkIsolation.verdict, "isolated");
    });

    test("a start that fails is no verdict; it can be tried again", async (t) => {
      const world = provider.world(t);
      const mend = world.breakCreation();
      const sandbox = world.make({ manifest: off });
      const error = await rejection(sandbox.shell("true"));
      assert.match(error.message, /could not be started/);
      assert.match(error.stack, /isolation\.test\.js/);
      assert.equal(sandbox.networkIsolation.verdict, "unchecked");
      mend();
      assert.equal((await sandbox.shell("echo on")).output, "on\n");
    });

    test("an agent's files are written beside the look, and none of it is left when that fails", async (t) => {
      const world = provider.world(t);
      const files = [{ path: "a.txt", contents: "a" }, { path: "dir/b.txt", contents: "b" }];
      const agent = new SandboxAgent({ backend: "remote", remote: world.make({ manifest: off }), workspace: { files } });
      t.after(() => agent.close());
      await agent.start();
      assert.equal((await agent.shell("cat a.txt dir/b.txt")).output, "ab");
      Object.assign(OUTSIDE, somethingOpen);
      const other = new SandboxAgent({ backend: "remote", remote: world.make({ manifest: off }), workspace: { files } });
      assert.equal((await rejection(other.start())).code, "ERR_SANDBOX_ISOLATION_UNAVAILABLE");
      assert.equal(world.existing().length, 1);
    });

    // Where this machine's loopback is not the sandbox's, a list has a way of its own: test/isolated/network.test.js.
    const direct = keeps.includes("network.allowedHosts") && !provider.facts.ownLoopback;
    test("with an allow list: one allowed host that answers, and forbidden ones that do not", { skip: !direct }, async (t) => {
      const world = provider.world(t);
      const manifest = { network: { allowedHosts: ["127.0.0.1"] } };
      Object.assign(OUTSIDE, { tcp4: [open4, ["127.0.0.3", 1]] });
      const sandbox = world.make({ manifest });
      await sandbox.start();
      assert.deepEqual(
        sandbox.networkIsolation.evidence.filter(({ kind }) => kind !== "tcp6").map(({ kind, host, result }) => [kind, host, result]),
        [["tcp4", "127.0.0.3", "blocked"], ["metadata", "127.0.0.2", "blocked"], ["dns", NO_NAME, "blocked"], ["allowed", "127.0.0.1", "reachable"]],
      );
      Object.assign(OUTSIDE, { tcp6: [open6] });
      assert.equal((await rejection(world.make({ manifest }).start())).code, "ERR_SANDBOX_ISOLATION_UNAVAILABLE");
      // An allowed host may be down. With a name in the list names have to be found.
      Object.assign(OUTSIDE, { tcp6: [shut6], port: 1, name: "localhost" });
      const named = world.make({ manifest: { network: { allowedHosts: ["*.localhost"] } } });
      Object.assign(OUTSIDE, { tcp4: [shut4] });
      await named.start();
      const { verdict, evidence } = named.networkIsolation;
      assert.deepEqual([verdict, evidence.at(-1).kind, evidence.at(-1).host, evidence.at(-1).result], ["isolated", "allowed", "localhost", "blocked"]);
      assert.ok(evidence.every(({ kind }) => kind !== "dns"));
    });
  });
}
