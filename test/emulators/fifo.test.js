// Pipes for child processes, when making them fails.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { PipeMaker } from "./fifo.js";

test("after a failure the next pipe is made, and nothing is left of the one that failed", async (t) => {
  const base = mkdtempSync(path.join(os.tmpdir(), "emulator-fifo-"));
  t.after(() => rmSync(base, { recursive: true }));
  const directory = path.join(base, "pipes");
  const maker = new PipeMaker(directory);
  await assert.rejects(maker.output());
  mkdirSync(directory);
  const { childFd, readable } = await maker.output();
  const held = readdirSync("/proc/self/fd").length;
  // The pipe cannot be put there.
  await assert.rejects(maker.outputAt(path.join(base, "none", "pipe")), { code: "ENOENT" });
  assert.equal(readdirSync("/proc/self/fd").length, held);
  readable.destroy();
  await PipeMaker.close([childFd]);
});
