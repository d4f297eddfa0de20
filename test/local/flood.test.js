// Floods of output and of calls: memory, descriptors and the loop stay as they were. One after the
// other, in a process where nothing else runs.
import assert from "node:assert/strict";
import { test } from "node:test";

import { LocalSandbox } from "cloudsandbox";

import { inFlight } from "../support/calls.js";
import { openDescriptors, residentBytes } from "../support/resources.js";
import { slow } from "../support/slow.js";
import { tempDir } from "../support/temp.js";
import { eventually } from "../support/wait.js";

const MiB = 1 << 20;

function open(t, options) {
  const sandbox = new LocalSandbox({ isolation: "none", tempDir: tempDir(t), ...options });
  t.after(() => sandbox.close());
  return sandbox;
}

/** Runs `work` and reports how memory grew at most, and how often a 5 ms timer came meanwhile. */
async function watched(work) {
  const before = residentBytes();
  let peak = before;
  let ticks = 0;
  const timer = setInterval(() => {
    ticks++;
    peak = Math.max(peak, process.memoryUsage.rss());
  }, 5);
  try {
    return { result: await work(), grown: peak - before, ticks };
  } finally {
    clearInterval(timer);
  }
}

test("C058 fifty megabytes under a small cap: the first bytes, the flag, and the command's own exit code", async (t) => {
  const sandbox = open(t, { maxOutputBytes: 1000 });
  const result = await sandbox.shell("head -c 50000000 /dev/zero | tr '\\0' x; exit 5");
  assert.deepStrictEqual(result, { output: "x".repeat(1000), exitCode: 5, outputTruncated: true });
});

for (const [id, command, start] of [
  ["I47 a flood of lines", (bytes) => `yes | head -c ${bytes}`, "y\ny\n"],
  ["I48 one endless line", (bytes) => `head -c ${bytes} /dev/zero | tr '\\0' a`, "aaaa"],
]) {
  test(`${id}: bounded memory, and the loop stays alive`, async (t) => {
    const sandbox = open(t);
    await sandbox.shell("head -c 4000000 /dev/zero");
    const bytes = slow ? 10_000_000_000 : 500_000_000;
    const { result, grown, ticks } = await watched(() =>
      sandbox.exec({ command: command(bytes), timeoutSeconds: 600, mergeStreams: true }),
    );
    assert.equal(result.status, "exited");
    assert.equal(result.exitCode, 0);
    assert.ok(result.output.startsWith(start));
    assert.equal(result.output.length, MiB);
    assert.equal(result.droppedBytes.output, bytes - MiB);
    assert.ok(grown < 32 * MiB, `${Math.round(grown / MiB)} MiB`);
    assert.ok(ticks >= 5, `${ticks} timer ticks in ${result.durationMs} ms`);
  });
}

test("I47 a flood that somebody listens to is heard to the last byte, in bounded memory", async (t) => {
  const sandbox = open(t);
  let heard = 0;
  const bytes = 100_000_000;
  const { grown } = await watched(() =>
    sandbox.exec({
      command: `head -c ${bytes} /dev/zero`,
      encoding: "buffer",
      onStdout: (chunk) => (heard += chunk.length),
    }),
  );
  assert.equal(heard, bytes);
  assert.ok(grown < 128 * MiB, `${Math.round(grown / MiB)} MiB`);
});

test("C069 5004 calls, half of them commands, of which many fail: memory and descriptors stay flat", async (t) => {
  const sandbox = open(t, { maxOutputBytes: 10_000 });
  const controller = new AbortController();
  controller.abort();
  const one = async (index) => {
    switch (index % 6) {
      case 0: // refused before anything runs
        return assert.rejects(sandbox.shell("true", { timeoutSeconds: -1 }), {
          code: "ERR_SANDBOX_INVALID_ARG",
        });
      case 1: // refused by the files' rules
        return assert.rejects(sandbox.readFile("../outside"), { name: "PathSecurityError" });
      case 2:
        return assert.equal(await sandbox.readFile("absent"), null);
      case 3:
        return assert.deepStrictEqual(await sandbox.shell(`echo ${index}; exit 3`), {
          output: `${index}\n`,
          exitCode: 3,
        });
      default:
        return assert.deepStrictEqual(await sandbox.shell(`echo ${index}`), {
          output: `${index}\n`,
          exitCode: 0,
        });
    }
  };
  await inFlight(8, 1002, one);
  const [memory, descriptors] = [residentBytes(), openDescriptors()];
  await inFlight(8, 4002, one);
  assert.ok(
    residentBytes() - memory < 24 * MiB,
    `${Math.round((residentBytes() - memory) / MiB)} MiB`,
  );
  await eventually("as many descriptors as before", () => openDescriptors() <= descriptors);
});

test("a large file is in memory once when it was read", async (t) => {
  const sandbox = open(t);
  assert.equal((await sandbox.shell("truncate -s 192M big; printf end >> big")).exitCode, 0);
  const { result, grown } = await watched(async () => {
    const bytes = await sandbox.readBytes("big");
    await new Promise((resolve) => setTimeout(resolve, 20));
    return bytes;
  });
  assert.equal(result.length, 192 * MiB + 3);
  assert.equal(Buffer.from(result.subarray(-4)).toString(), "\0end");
  assert.ok(grown < 1.5 * result.length, `grew by ${Math.round(grown / MiB)} MiB`);
});
