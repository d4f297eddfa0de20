// What openShell() says of sandboxes that cannot keep a shell.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { openShell } from "../../lib/shell.js";
import { rejection } from "../support/wait.js";
import { tempDir } from "../support/temp.js";

/** A place that runs commands with this shell, in its home. */
function place(shell, home, seen = []) {
  return {
    id: () => "id",
    isClosed: () => false,
    providerId: "fake",
    isLocal: true,
    choosesShell: false,
    files: new Set(),
    async exec({ command }) {
      seen.push(command);
      const { status, stdout, stderr } = spawnSync(shell, ["-c", command], { cwd: home, encoding: "utf8", env: { HOME: home, PATH: process.env.PATH } });
      return { exitCode: status, stdout, stderr, status: "exited" };
    },
  };
}

test("a sandbox without bash", async (t) => {
  const home = tempDir(t);
  const error = await rejection(openShell(place("dash", home), {}, new Error()));
  assert.equal(error.code, "ERR_SANDBOX_UNSUPPORTED");
  assert.match(error.message, /no bash/);
  assert.deepEqual(readdirSync(home), []);
});

test("a sandbox where nothing can be written", async () => {
  const error = await rejection(openShell(place("bash", "/proc"), {}, new Error()));
  assert.equal(error.code, "ERR_SANDBOX_PROVIDER");
  assert.match(error.message, /cannot be kept/);
});

test("a command carries its own text, and the state is nobody else's to read", async (t) => {
  const home = tempDir(t);
  const seen = [];
  const shell = await openShell(place("bash", home, seen), {}, new Error());
  await shell.run("SECRET=x");
  assert.ok(seen.at(-1).length < 2 * home.length + 400, seen.at(-1));
  const files = readdirSync(home);
  assert.equal(files.length, 2);
  const modes = spawnSync("stat", ["-c", "%a", ...files], { cwd: home, encoding: "utf8" }).stdout;
  assert.equal(modes, "600\n600\n");
  for (const file of files) {
    rmSync(path.join(home, file));
    const { exitCode, stdout, stderr } = await shell.run("echo ran");
    assert.deepEqual([exitCode, stdout], [125, ""]);
    assert.match(stderr, /^cloudsandbox: the state of this shell is gone[^\n]*\n$/);
  }
});
