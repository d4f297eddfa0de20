// Keeping records: the channels, files of lines, and what a crash leaves of them.
import assert from "node:assert/strict";
import { channel, subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { appendFileSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";

import { LocalSandbox, SandboxToolkit } from "cloudsandbox";
import { RECORD_TYPES, onRecord, readRecords, recordTo } from "cloudsandbox/records";

import { runNode } from "../support/node.js";
import { tempDir } from "../support/temp.js";

function local(t) {
  const sandbox = new LocalSandbox({ isolation: "none", tempDir: tempDir(t) });
  t.after(() => sandbox.close());
  return sandbox;
}

function recording(t, options) {
  const recording = recordTo(path.join(tempDir(t), "session.jsonl"), options);
  t.after(() => recording.stop());
  return recording;
}

describe("channels", { concurrency: 1 }, () => {
  test("each type has its own, under its name", async (t) => {
    const seen = [];
    const listener = (record, name) => seen.push([name, record.type]);
    for (const type of ["exec", "deleted"]) subscribe(`cloudsandbox:${type}`, listener);
    t.after(() => ["exec", "deleted"].forEach((type) => unsubscribe(`cloudsandbox:${type}`, listener)));
    const sandbox = local(t);
    await sandbox.shell("true");
    await sandbox.writeFile("f", "x");
    await sandbox.close();
    assert.deepEqual(seen, [["cloudsandbox:exec", "exec"], ["cloudsandbox:exec", "exec"], ["cloudsandbox:deleted", "deleted"]]);
  });

  test("who listens by Node's own means needs no module of ours", async () => {
    const { stdout, stderr } = await runNode(`import { subscribe } from "node:diagnostics_channel";
      import { LocalSandbox } from "cloudsandbox";
      const seen = [];
      for (const type of ["created", "started", "exec", "deleted"]) subscribe("cloudsandbox:" + type, (record) => seen.push(record.phase ?? record.type));
      const sandbox = new LocalSandbox({ isolation: "none" });
      await sandbox.shell("true");
      await sandbox.close();
      console.log(seen.join());`);
    assert.equal(stderr, "");
    assert.equal(stdout, "begin,created,started,end,deleted\n");
  });

  test("a function hears all of them until it has enough", async (t) => {
    const types = new Set();
    const stop = onRecord((record) => types.add(record.type));
    const sandbox = local(t);
    await sandbox.shell("true");
    stop();
    stop();
    await sandbox.writeFile("f", "x");
    assert.deepEqual([...types], ["exec", "created", "started"]);
    for (const type of RECORD_TYPES) assert.equal(channel(`cloudsandbox:${type}`).hasSubscribers, false);
    assert.throws(() => onRecord("f"), { code: "ERR_SANDBOX_INVALID_ARG" });
  });

  test("a listener that throws is the process's affair, and the call goes on", async () => {
    const { stdout } = await runNode(`import { onRecord } from "cloudsandbox/records";
      import { LocalSandbox } from "cloudsandbox";
      let thrown = 0;
      process.on("uncaughtException", ({ message }) => { thrown += message === "mine" ? 1 : 0; });
      onRecord(() => { throw new Error("mine"); });
      const sandbox = new LocalSandbox({ isolation: "none" });
      const { exitCode } = await sandbox.shell("exit 4");
      await sandbox.close();
      console.log(exitCode, thrown);`);
    assert.equal(stdout, "4 5\n");
  });

  test("a call that a tool makes names the tool, and the framework's id of that call", async (t) => {
    const records = [];
    t.after(onRecord((record) => records.push(record)));
    const sandbox = local(t);
    const [run, shell, write, read] = new SandboxToolkit(sandbox, { name: "x" }).getTools();
    await Promise.all([
      run.execute({ code: "1" }, { toolCallId: "a" }),
      shell.execute({ command: "true" }, {}, { toolCall: { callId: "b" } }),
      write.execute({ path: "f", contents: "1" }, { toolCall: { id: "c" } }),
    ]);
    await read.execute({ path: "f" }, { toolCallId: 7 });
    await read.execute({ path: "f" }, { get toolCallId() { throw new Error("no"); } });
    await sandbox.shell("true");
    const names = new Set(records.filter(({ callId }) => callId).map(({ tool, toolCallId }) => [tool, toolCallId].join()));
    assert.deepEqual([...names].sort(), [",", "sandbox_x_read_file,", "sandbox_x_run,a", "sandbox_x_shell,b", "sandbox_x_write_file,c"]);
  });

  test("aborted before it begins: no record", async (t) => {
    const records = [];
    t.after(onRecord((record) => records.push(record)));
    await assert.rejects(local(t).shell("true", { signal: AbortSignal.abort() }));
    assert.deepEqual(records, []);
  });

  test("what a callback threw ends the call; its words are not recorded", async (t) => {
    const records = [];
    t.after(onRecord((record) => records.push(record)));
    const onStdout = () => {
      throw new Error("words");
    };
    await assert.rejects(local(t).exec({ command: "echo x; sleep 100", onStdout }), /words/);
    const { status, error } = records.findLast((record) => record.type === "exec");
    assert.deepEqual([status, error], ["failed", { code: "other" }]);
  });
});

describe("recordTo", { concurrency: 1 }, () => {
  test("lines of JSON, in order, for the owner only; a second recording goes on in the file", async (t) => {
    const first = recording(t);
    const sandbox = local(t);
    await sandbox.shell("true");
    first.stop();
    first.stop();
    await sandbox.shell("true");
    assert.equal(first.written, 4);
    assert.equal(statSync(first.file).mode & 0o777, 0o600);
    const second = recordTo(first.file);
    await sandbox.writeFile("f", "x");
    second.stop();
    const { records, damaged } = await readRecords(first.file);
    assert.equal(damaged, 0);
    assert.deepEqual(records.map(({ type }) => type), ["recording", "exec", "created", "started", "exec", "recording", "file"]);
    assert.equal(records[0].pid, process.pid);
    assert.ok(readFileSync(first.file, "utf8").endsWith("}\n"));
  });

  test("a line that a crash has cut short is counted, and the next one does not join it", async (t) => {
    const file = path.join(tempDir(t), "session.jsonl");
    writeFileSync(file, '{"type":"lost","at":1}\n\n{"type":"exec","at":17,"pha');
    const again = recordTo(file);
    again.stop();
    assert.match(readFileSync(file, "utf8"), /"pha\n\{"type":"recording"/);
    const { records, damaged } = await readRecords(file);
    assert.deepEqual([records.map(({ type }) => type), damaged], [["lost", "recording"], 1]);
    appendFileSync(file, 'null\n{"at":1}\n[1]\n"x"\n\0\0\0\0');
    assert.deepEqual((await readRecords(file)).damaged, 6);
  });

  test("a process that is killed has written what had happened", async (t) => {
    const file = path.join(tempDir(t), "session.jsonl");
    await runNode(`import { recordTo } from "cloudsandbox/records";
      import { LocalSandbox } from "cloudsandbox";
      recordTo(${JSON.stringify(file)});
      const sandbox = new LocalSandbox({ isolation: "none" });
      await sandbox.shell("true");
      sandbox.shell("sleep 100");
      process.kill(process.pid, "SIGKILL");`).catch(() => {});
    const { records, damaged } = await readRecords(file);
    assert.deepEqual(records.map(({ phase, type }) => phase ?? type), ["recording", "begin", "created", "started", "end", "begin"]);
    assert.equal(damaged, 0);
  });

  test("contents by choice only: heads, cut at a whole character, and by the hand of `redact` before that", async (t) => {
    const kept = recording(t, { commandBytes: 16, outputBytes: 5, redact: (text) => text.replaceAll("hidden", "***") });
    const plain = recording(t);
    const sandbox = local(t);
    await sandbox.shell("printf 'aääää'");
    await sandbox.exec({ argv: ["printf", "%s", "1hidden"] });
    await sandbox.run("print(1)");
    kept.stop();
    plain.stop();
    await sandbox.shell("true");
    const { records } = await readRecords(kept.file);
    const shown = records.filter(({ type }) => type === "exec").map(({ command, commandCut, output, outputCut }) => [command ?? output, commandCut ?? outputCut]);
    assert.deepEqual(shown, [
      ["printf 'aäää", true], ["aää", true],
      ["printf %s 1***", undefined], ["1***", undefined],
      ["print(1)", undefined], ["1\n", undefined],
    ]);
    assert.doesNotMatch(readFileSync(plain.file, "utf8"), /printf|hidden|print\(/);
  });

  test("a `redact` that throws costs that record, and keeps its text out of the file", async (t) => {
    const warned = once(process, "warning");
    const kept = recording(t, {
      commandBytes: 100,
      redact() {
        throw new Error("no");
      },
    });
    await local(t).shell("echo secret");
    assert.match((await warned)[0].message, /a record could not be written to .*session\.jsonl \(no\)/);
    assert.equal(kept.missed, 1);
    assert.equal(kept.written, 3);
    assert.doesNotMatch(readFileSync(kept.file, "utf8"), /secret/);
  });

  test("a full disk costs records and no call; what comes after it stands on a line of its own", async (t) => {
    const file = path.join(tempDir(t), "session.jsonl");
    const { stdout, stderr } = await runNode(`const fs = process.getBuiltinModule("node:fs");
      const { writeSync } = fs;
      let lines = 0;
      fs.writeSync = (descriptor, bytes, at) => {
        lines += 1;
        if (lines !== 3) return writeSync(descriptor, bytes, at);
        writeSync(descriptor, bytes.subarray(0, 30));
        throw Object.assign(new Error("no room"), { code: "ENOSPC" });
      };
      const { recordTo } = await import("cloudsandbox/records");
      const { LocalSandbox } = await import("cloudsandbox");
      const recording = recordTo(${JSON.stringify(file)});
      const sandbox = new LocalSandbox({ isolation: "none" });
      const { exitCode } = await sandbox.shell("exit 4");
      await sandbox.close();
      console.log(exitCode, recording.written, recording.missed);`);
    assert.equal(stdout, "4 4 1\n");
    assert.match(stderr, /CLOUDSANDBOX_RECORD_MISSED.*\(ENOSPC\)/);
    const { records, damaged } = await readRecords(file);
    assert.deepEqual([records.map(({ phase, type }) => phase ?? type).join(), damaged], ["recording,begin,started,end,deleted", 1]);
  });

  test("a file that takes nothing is refused at once", { skip: !existsSync("/dev/full") }, () => {
    assert.throws(() => recordTo("/dev/full"), { code: "ENOSPC" });
  });

  test("bad options and files that cannot be opened throw", (t) => {
    const file = path.join(tempDir(t), "f");
    for (const options of [{ outputBytes: -1 }, { outputBytes: 2 ** 21 }, { commandBytes: "1" }, { redact: 1 }, { outputbytes: 1 }]) {
      assert.throws(() => recordTo(file, options), { code: "ERR_SANDBOX_INVALID_ARG" });
    }
    assert.throws(() => recordTo(1), { code: "ERR_SANDBOX_INVALID_ARG" });
    assert.equal(existsSync(file), false);
    assert.throws(() => recordTo(path.join(file, "g")), { code: "ENOENT" });
  });
});
