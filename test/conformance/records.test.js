// What is recorded of a sandbox: the same on every provider, and never what was run, written or printed.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { onRecord } from "cloudsandbox/records";

import { rejection } from "../support/wait.js";
import { agents, providers } from "./providers.js";

/** The records from now on; tests of this file run one by one. */
function recorded(t) {
  const records = [];
  t.after(onRecord((record) => records.push(record)));
  return {
    records,
    take: () => records.splice(0),
    of: (type) => records.filter((record) => record.type === type),
  };
}

/** "exec begin", "file write", or the type alone. */
const nameOf = ({ type, phase, operation }) => [type, phase ?? operation].filter(Boolean).join(" ");

for (const provider of providers) {
  const { facts } = provider;

  describe(`records, ${provider.name}`, () => {
    test("R1 a life from its creation to its deletion, in order and with its numbers", async (t) => {
      const world = provider.world(t);
      const { records } = recorded(t);
      const sandbox = world.make();
      assert.deepEqual(records, [], "nothing has happened");
      const result = await sandbox.exec({ command: "printf abc; printf de >&2; exit 3", stdin: "12345", timeoutSeconds: 20 });
      const { sandboxId } = sandbox;
      await sandbox.writeFile("dir/f.txt", "twelve bytes");
      await sandbox.readFile("dir/f.txt");
      await sandbox.readFile("none");
      if (facts.listsFiles) await sandbox.listFiles();
      await sandbox.close();
      const [begin, created, started, end, ...rest] = records;
      assert.deepEqual([begin, created, started, end].map(nameOf), ["exec begin", "created", "started", "exec end"]);
      assert.deepEqual(rest.map(nameOf), ["file write", "file read", "file read", ...(facts.listsFiles ? ["file list"] : []), "deleted"]);
      const [write, read, none] = rest;

      for (const record of records) {
        assert.equal(record.provider, provider.providerId);
        assert.equal(record.instanceId, begin.instanceId);
        assert.equal(record.sandboxId, record === begin ? null : sandboxId, nameOf(record));
        assert.ok(Math.abs(record.at - Date.now()) < 120_000);
      }
      assert.equal(end.callId, begin.callId);
      assert.equal(new Set([begin, write, read, none].map((record) => record.callId)).size, 4);
      assert.deepEqual([begin.kind, begin.commandBytes, begin.stdinBytes, begin.timeoutMs], ["command", 33, 5, 20000]);
      assert.deepEqual([end.status, end.exitCode, end.outputBytes, end.truncated, end.droppedBytes], ["exited", 3, 5, false, 0]);
      if (facts.separatesStreams) assert.deepEqual([end.stdoutBytes, end.stderrBytes], [3, 2]);
      assert.equal(end.durationMs, result.durationMs);
      assert.ok(end.totalMs + 1 >= end.durationMs);
      assert.deepEqual([write.path, write.bytes], ["dir/f.txt", 12]);
      assert.deepEqual([read.found, read.bytes, none.found, none.bytes], [true, 12, false, 0]);
      assert.ok(started.durationMs >= 0 && rest.at(-1).durationMs >= 0);
    });

    test("R2 what is run, given, written or printed is in no record", async (t) => {
      const { records } = recorded(t);
      const sandbox = provider.world(t).make();
      const secrets = ["s3cr3t-command", "s3cr3t-value", "s3cr3t-input", "s3cr3t-content", "s3cr3t-code", "s3cr3t-word"];
      await sandbox.exec({ command: `echo ${secrets[0]}; env; cat`, env: { KEY: secrets[1] }, stdin: secrets[2] });
      await sandbox.run(`print("${secrets[4]}")`);
      await sandbox.exec({ argv: ["echo", secrets[5]] });
      await sandbox.writeFile("f", secrets[3]);
      await sandbox.readFile("f");
      const error = await rejection(sandbox.readFile("f/x"));
      const text = JSON.stringify(records) + records.map((record) => Object.getOwnPropertySymbols(record).length).join("");
      assert.doesNotMatch(text, /s3cr3t/);
      const failed = records.find((record) => record.path === "f/x");
      assert.equal(failed.error.code, error.code);
      assert.deepEqual(Object.keys(failed.error).filter((name) => !["code", "status", "mayHaveRun"].includes(name)), []);
    });

    test("R3 a timeout, a cancel, and what was ended for them", async (t) => {
      const { of, take } = recorded(t);
      const sandbox = provider.world(t).make();
      await sandbox.start();
      await sandbox.exec({ command: "sleep 100", timeoutSeconds: 1 });
      const [{ callId }] = of("exec");
      assert.deepEqual(of("timedOut").map((record) => [record.callId, record.timeoutMs]), [[callId, 1000]]);
      assert.deepEqual(of("killed").map((record) => [record.callId, record.reason]), [[callId, "timeout"]]);
      const end = of("exec").at(-1);
      assert.deepEqual([end.status, end.exitCode, end.termination], ["timedOut", 124, of("killed")[0].termination]);

      take();
      const controller = new AbortController();
      const running = sandbox.shell("sleep 100", { signal: controller.signal });
      setTimeout(() => controller.abort(), 300);
      await rejection(running);
      assert.deepEqual(of("killed").map(({ reason }) => reason), ["cancel"]);
      assert.deepEqual(of("exec").map(({ status }) => status), [undefined, "cancelled"]);
      assert.deepEqual(of("timedOut"), []);
    });

    test("R4 a loss, and the sandbox that comes after it", async (t) => {
      const world = provider.world(t);
      const { records, of } = recorded(t);
      const sandbox = world.make();
      await sandbox.start();
      const { sandboxId } = sandbox;
      world.lose(sandbox);
      await rejection(sandbox.shell("true"));
      await sandbox.shell("true");
      assert.deepEqual(of("lost").map((record) => record.sandboxId), [sandboxId]);
      assert.deepEqual(of("created").map((record) => record.sandboxId), [sandboxId, sandbox.sandboxId]);
      const failed = records.find((record) => record.status === "failed");
      assert.deepEqual([failed.sandboxId, failed.error.code], [sandboxId, "ERR_SANDBOX_LOST"]);
      await sandbox.close();
      assert.deepEqual(of("deleted").map((record) => record.sandboxId), [of("created")[1].sandboxId]);
    });

    test("R5 a start that fails", async (t) => {
      const world = provider.world(t);
      const { of } = recorded(t);
      const sandbox = world.make();
      const mend = world.breakCreation();
      const error = await rejection(sandbox.shell("true"));
      mend();
      assert.deepEqual(of("failed").map(({ what, error: { code } }) => [what, code]), [["start", error.code]]);
      assert.deepEqual(of("exec").map(({ status }) => status), [undefined, "failed"]);
      assert.deepEqual(of("created"), []);
    });
  });
}

for (const agent of agents) {
  test(`R6 the files that a workspace begins with, ${agent.name}`, async (t) => {
    const { of } = recorded(t);
    const workspace = agent.world(t).make({
      workspace: { files: [{ path: "a", contents: "äb" }, { path: "d/b", contents: "AAEC", encoding: "base64" }] },
    });
    await workspace.start();
    assert.deepEqual(of("seeded").map(({ files, bytes }) => [files, bytes]), [[2, 6]]);
    assert.equal(of("seeded")[0].instanceId, of("file")[0].instanceId);
    assert.equal(of("seeded")[0].sandboxId, of("started")[0].sandboxId);
    assert.doesNotMatch(JSON.stringify(of("seeded")), /äb|AAEC/);
  });
}
