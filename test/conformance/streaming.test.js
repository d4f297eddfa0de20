// Output: every byte once, in order, bounded, and text only where it is whole.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { mark } from "../support/processes.js";
import { HANG_MS, rejection } from "../support/wait.js";
import { providers } from "./providers.js";

for (const provider of providers) {
  const { facts } = provider;

  describe(`streaming, ${provider.name}`, { concurrency: 2 }, () => {
    test("C015 a character that arrives in two parts is one character", async (t) => {
      const sandbox = provider.world(t).make();
      const command = String.raw`printf '\360\237'; sleep 0.2; printf '\230\200'`;
      assert.deepStrictEqual(await sandbox.shell(command), { output: "\u{1F600}", exitCode: 0 });
      const heard = [];
      const { stdout } = await sandbox.exec({ command, onStdout: (text) => heard.push(text) });
      assert.equal(stdout, "\u{1F600}");
      assert.equal(heard.join(""), "\u{1F600}");
    });

    test("C018 200000 lines below the cap: exact to the byte", async (t) => {
      const sandbox = provider.world(t).make({ maxOutputBytes: 4_000_000 });
      const expected = Array.from({ length: 200_000 }, (_, index) => `${index + 1}\n`).join("");
      const { output, ...rest } = await sandbox.shell("seq 1 200000");
      assert.ok(
        output === expected,
        `${output.length} characters, ends with ${JSON.stringify(output.slice(-20))}`,
      );
      assert.deepStrictEqual(rest, { exitCode: 0 });
    });

    test("C019 five megabytes without a line end: bounded by bytes, marked, and quick", async (t) => {
      const sandbox = provider.world(t).make();
      const begin = performance.now();
      const { output, ...rest } = await sandbox.shell("head -c 5000000 /dev/zero | tr '\\0' a");
      assert.ok(output === "a".repeat(1_048_576));
      assert.deepStrictEqual(rest, { exitCode: 0, outputTruncated: true });
      const whole = await sandbox.exec({
        command: "head -c 5000000 /dev/zero | tr '\\0' a",
        maxOutputBytes: 16_777_216,
      });
      assert.ok(whole.stdout === "a".repeat(5_000_000));
      assert.equal(whole.truncated, false);
      assert.ok(performance.now() - begin < HANG_MS);
    });

    test("C020 line ends come back as they were written", async (t) => {
      const sandbox = provider.world(t).make();
      assert.deepStrictEqual(await sandbox.shell(String.raw`printf 'a\r\nb\rc\n'`), {
        output: "a\r\nb\rc\n",
        exitCode: 0,
      });
    });

    test("C021 both streams are in the output, in the order of writing where the wire keeps it", async (t) => {
      const { output } = await provider.world(t).make().shell("echo o; echo e >&2; echo o2");
      if (facts.keepsStreamOrder) assert.equal(output, "o\ne\no2\n");
      else assert.deepEqual(output.split("\n").sort(), ["", "e", "o", "o2"]);
    });

    test("C021 Python's output is not held back: it streams, and both streams keep their order", async (t) => {
      const sandbox = provider.world(t).make();
      for (const stdin of [undefined, "given"]) {
        const controller = new AbortController();
        const result = await sandbox.exec({
          code: "import time\nprint('first', end='')\ntime.sleep(300)",
          stdin,
          signal: controller.signal,
          onStdout: () => controller.abort(),
        });
        assert.deepEqual([result.status, result.stdout], ["cancelled", "first"]);
      }
      if (!facts.keepsStreamOrder) return;
      const both = await sandbox.run("import sys\nprint('o')\nprint('e', file=sys.stderr)\nprint('o2')");
      assert.deepStrictEqual(both, { output: "o\ne\no2\n", exitCode: 0 });
    });

    test("I62 a cut inside a character leaves text that is whole", async (t) => {
      const sandbox = provider.world(t).make({ maxOutputBytes: 10 });
      const cut = await sandbox.shell("printf 'aéééééé'");
      assert.deepStrictEqual(cut, { output: "aéééé", exitCode: 0, outputTruncated: true });
      const invalid = await sandbox.shell(String.raw`printf '\377\376ok\303'`);
      assert.deepStrictEqual(invalid, { output: "\ufffd\ufffdok\ufffd", exitCode: 0 });
    });

    test("D2 NUL bytes survive", async (t) => {
      const sandbox = provider.world(t).make();
      assert.deepStrictEqual(await sandbox.shell(String.raw`printf 'a\000b\000'`), {
        output: "a\0b\0",
        exitCode: 0,
      });
    });

    test("D2 exec() counts what it drops, and keeps head and tail on request", async (t) => {
      const sandbox = provider.world(t).make();
      const command = "seq 1 10000; echo the end";
      const total =
        Array.from({ length: 10_000 }, (_, index) => `${index + 1}\n`).join("").length + 8;
      const head = await sandbox.exec({ command, maxOutputBytes: 1000, mergeStreams: true });
      assert.equal(head.truncated, true);
      assert.equal(Buffer.byteLength(head.output) + head.droppedBytes.output, total);
      assert.ok(head.output.startsWith("1\n2\n3\n"));
      const both = await sandbox.exec({
        command,
        maxOutputBytes: 1000,
        truncate: "middle",
        mergeStreams: true,
      });
      assert.ok(both.output.startsWith("1\n2\n3\n"));
      assert.ok(both.output.endsWith("10000\nthe end\n"));
      assert.ok(
        both.output.includes(String(both.droppedBytes.output)),
        "the gap is marked with its size",
      );
      const raw = await sandbox.exec({
        command,
        maxOutputBytes: 1000,
        truncate: "middle",
        mergeStreams: true,
        encoding: "buffer",
      });
      assert.equal(raw.output.length + raw.droppedBytes.output, total);
    });

    test("D2 callbacks hear everything, also what is not kept", async (t) => {
      const sandbox = provider.world(t).make();
      const heard = { out: "", err: "" };
      const result = await sandbox.exec({
        command: "seq 1 3000; echo problem >&2",
        maxOutputBytes: 10,
        onStdout: (text) => (heard.out += text),
        onStderr: (text) => (heard.err += text),
      });
      assert.equal(result.truncated, true);
      assert.equal(
        heard.out,
        Array.from({ length: 3000 }, (_, index) => `${index + 1}\n`).join(""),
      );
      if (facts.separatesStreams) assert.equal(heard.err, "problem\n");
    });

    test("D2 a callback that throws ends the command, and its error is the call's", async (t) => {
      const sandbox = provider.world(t).make();
      const tracked = mark();
      const mistake = new Error("in the callback");
      const call = sandbox.exec({
        command: "echo a; sleep 300",
        env: tracked.env,
        onStdout: () => {
          throw mistake;
        },
      });
      assert.equal(await rejection(call), mistake);
      if (facts.onThisMachine) await tracked.gone();
      assert.deepStrictEqual(await sandbox.shell("echo usable"), {
        output: "usable\n",
        exitCode: 0,
      });
    });
  });
}
