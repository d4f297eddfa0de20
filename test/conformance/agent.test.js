// SandboxAgent: the same rules over its own local workspace and over every provider.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, test } from "node:test";

import { SandboxAgent } from "cloudsandbox";

import { mark } from "../support/processes.js";
import { rejection } from "../support/wait.js";
import { agents, providers } from "./providers.js";

for (const kind of agents) {
  const { facts } = kind;

  describe(kind.name, { concurrency: 4 }, () => {
    test("C087 the workspace's files are there before the first command", async (t) => {
      const big = "0123456789abcdef".repeat(65_536);
      const binary = Buffer.from(Uint8Array.from({ length: 256 }, (_, index) => index));
      const agent = kind.world(t).make({
        workspace: {
          files: [
            { path: "deep/er/nested.txt", contents: "nested\n" },
            { path: "empty", contents: "" },
            { path: "binary", contents: binary.toString("base64"), encoding: "base64" },
            { path: "big", contents: big },
          ],
        },
      });
      await agent.start();
      const { output } = await agent.run(
        "import hashlib\nfor f in ['deep/er/nested.txt', 'empty', 'binary', 'big']: print(hashlib.sha256(open(f, 'rb').read()).hexdigest())",
        { language: "python" },
      );
      const hash = (content) => createHash("sha256").update(content).digest("hex");
      assert.deepEqual(output.trim().split("\n"), ["nested\n", "", binary, big].map(hash));
    });

    test("C088 files persist from call to call; directory and variables do not", async (t) => {
      const agent = kind.world(t).make();
      await agent.start();
      await agent.shell("mkdir sub; cd sub; export A=1; echo made > f");
      assert.deepStrictEqual(await agent.shell('cat sub/f; echo "[$A]"; ls'), {
        output: "made\n[]\nsub\n",
        exitCode: 0,
      });
    });

    test("C089 two agents have separate workspaces", async (t) => {
      const world = kind.world(t);
      const [one, two] = [world.make(), world.make()];
      await Promise.all([one.start(), two.start()]);
      await Promise.all([one.writeFile("x", "one"), two.writeFile("x", "two")]);
      assert.deepEqual(await Promise.all([one.readFile("x"), two.readFile("x")]), ["one", "two"]);
      assert.deepEqual(
        (await Promise.all([one.shell("cat x"), two.shell("cat x")])).map(({ output }) => output),
        ["one", "two"],
      );
    });

    test("C091 an aborted command is stopped, and the sandbox is still usable", async (t) => {
      const agent = kind.world(t).make();
      await agent.start();
      const tracked = mark();
      const controller = new AbortController();
      const reason = new Error("enough");
      const call = agent.shell("echo begun; sleep 300 & sleep 300", {
        signal: controller.signal,
        env: tracked.env,
      });
      const settled = call.catch((error) => error);
      await tracked.started(2);
      controller.abort(reason);
      if (facts.abort === "reason") assert.equal(await settled, reason);
      else {
        assert.deepStrictEqual(await settled, {
          output: "begun\n",
          exitCode: 130,
          cancelled: true,
        });
      }
      await tracked.gone();
      assert.deepStrictEqual(await agent.shell("echo next"), { output: "next\n", exitCode: 0 });
    });

    test("K6 a signal that was aborted before rejects with its reason", async (t) => {
      const agent = kind.world(t).make();
      await agent.start();
      const reason = new Error("not wanted");
      assert.equal(
        await rejection(agent.shell("touch no", { signal: AbortSignal.abort(reason) })),
        reason,
      );
      assert.equal(await agent.readFile("no"), null);
    });

    test("K12 before the start: not ready; after the close: closed", async (t) => {
      const agent = kind.world(t).make();
      assert.equal(agent.kind, "sandbox-agent");
      assert.equal(agent.ready, false);
      const calls = [
        () => agent.run("1"),
        () => agent.shell("true"),
        () => agent.readFile("f"),
        () => agent.writeFile("f", "x"),
        () => agent.snapshot(),
      ];
      for (const call of calls) assert.match((await rejection(call())).message, /not ready/);
      const starting = Promise.all([agent.start(), agent.start()]);
      assert.deepStrictEqual(await agent.shell("echo waited"), { output: "waited\n", exitCode: 0 });
      await starting;
      await agent.start();
      assert.equal(agent.ready, true);
      await Promise.all([agent.close(), agent.close()]);
      await agent.close();
      assert.equal(agent.ready, false);
      for (const call of [...calls, () => agent.start()]) {
        assert.match((await rejection(call())).message, /closed/);
      }
    });

    test("K12 the default language, and a language that is not offered", async (t) => {
      const agent = kind.world(t).make();
      await agent.start();
      const source = { node: "console.log(typeof process)", python: "print(type(1).__name__)" }[
        facts.language
      ];
      const expected = { node: "object\n", python: "int\n" }[facts.language];
      assert.deepStrictEqual(await agent.run(source), { output: expected, exitCode: 0 });
      assert.match(
        (await rejection(agent.run("puts 1", { language: "ruby" }))).message,
        /Unsupported/,
      );
    });

    test("K12 variables: the manifest's, overlaid by the call's", async (t) => {
      const env = { A: "manifest a", B: "manifest b" };
      const agent = kind.world(t).make({ workspace: { env } });
      env.A = "changed later";
      await agent.start();
      assert.equal((await agent.shell('echo "$A, $B, $C"')).output, "manifest a, manifest b, \n");
      assert.equal(
        (await agent.shell('echo "$A, $B, $C"', { env: { B: "call b", C: "call c" } })).output,
        "manifest a, call b, call c\n",
      );
    });

    test("K12 a start that fails at a seed file leaves nothing, and rejects with that error", async (t) => {
      const agent = kind.world(t).make({
        workspace: {
          files: [
            { path: "good", contents: "x" },
            { path: "bad", contents: "***", encoding: "base64" },
          ],
        },
      });
      const error = await rejection(agent.start());
      assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG");
      assert.equal(agent.ready, false);
    });
  });
}

for (const provider of providers) {
  describe(`agents over one ${provider.name}`, () => {
    test("C090 agents that share a sandbox: the last one to close it closes it", async (t) => {
      const world = provider.world(t);
      const remote = world.make();
      const [one, two] = [1, 2].map(() => new SandboxAgent({ backend: "remote", remote }));
      await Promise.all([one.start(), two.start()]);
      await one.writeFile("f", "shared");
      await one.close();
      assert.match((await rejection(one.shell("true"))).message, /closed/);
      assert.equal(await two.readFile("f"), "shared");
      assert.deepStrictEqual(await two.shell("cat f"), { output: "shared", exitCode: 0 });
      assert.equal(world.existing().length, 1);
      await two.close();
      assert.deepEqual(world.existing(), []);
      assert.equal((await rejection(remote.shell("true"))).code, "ERR_SANDBOX_CLOSED");
    });

    test("D5 after a loss the workspace's files are there again, and the loss is told", async (t) => {
      const world = provider.world(t);
      const remote = world.make();
      const agent = new SandboxAgent({
        backend: "remote",
        remote,
        workspace: { files: [{ path: "seed", contents: "seeded" }] },
      });
      t.after(() => agent.close());
      await agent.start();
      await agent.shell("echo changed > seed; echo more > other");
      world.lose(remote);
      const error = await rejection(agent.shell("cat seed"));
      assert.equal(error.code, "ERR_SANDBOX_LOST");
      assert.match(error.message, /next call starts a new one and sets up the workspace/);
      assert.doesNotMatch(error.message + error.stack, /empty sandbox/);
      assert.deepStrictEqual(await agent.shell("cat seed; ls"), {
        output: "seededseed\n",
        exitCode: 0,
      });
    });

    test("K12 a failed start closes the sandbox", async (t) => {
      const world = provider.world(t);
      const agent = new SandboxAgent({
        backend: "remote",
        remote: world.make(),
        workspace: { files: [{ path: "bad", contents: "***", encoding: "base64" }] },
      });
      await rejection(agent.start());
      assert.deepEqual(world.existing(), []);
    });

    test("K12 snapshots of a remote workspace are the provider's business", async (t) => {
      const agent = new SandboxAgent({ backend: "remote", remote: provider.world(t).make() });
      await agent.start();
      assert.match((await rejection(agent.snapshot())).message, /provider-specific/);
    });
  });
}
