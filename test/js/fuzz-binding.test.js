// Random values at every entry point, in processes of their own: none of them may crash or hang.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { SANITIZER_ENV } from "../support/node.js";
import { tempDir } from "../support/temp.js";

const FIXTURE = fileURLToPath(new URL("./fixtures/fuzz-binding.js", import.meta.url));
const ROUNDS = 1500;
const HANG_MS = 120_000;

describe("fuzz", { concurrency: 2 }, () => {
  const seeds = [1, 2, 3, Date.now() % 1_000_000];
  for (const seed of seeds) {
    test(`seed ${seed}`, async (t) => {
      const child = spawn(process.execPath, ["--no-warnings", FIXTURE, String(seed), String(ROUNDS)], {
        env: { PATH: process.env.PATH, ...SANITIZER_ENV, TMPDIR: tempDir(t) },
        stdio: ["ignore", "pipe", "pipe"],
        timeout: HANG_MS,
        killSignal: "SIGKILL",
      });
      let stdout = "";
      let stderr = "";
      child.stdout.on("data", (data) => (stdout += data));
      child.stderr.on("data", (data) => (stderr += data));
      const [code, signal] = await new Promise((resolve) => child.on("close", (...how) => resolve(how)));
      assert.deepEqual(
        { code, signal, stdout },
        { code: 0, signal: null, stdout: "done\n" },
        `seed ${seed}: ${stderr.slice(-2000)}`,
      );
    });
  }
});
