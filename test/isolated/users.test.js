// When root runs the tests, the whole folder runs once more as an ordinary user: the two ways to a sandbox differ.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chownSync, readdirSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { tempDir } from "../support/temp.js";

const ROOT = path.resolve(import.meta.dirname, "../..");
const ORDINARY = 65534;

test("all of it as an ordinary user", { skip: process.getuid() !== 0 && "this is one" }, (t) => {
  const home = tempDir(t);
  chownSync(home, ORDINARY, ORDINARY);
  const as = { cwd: "/", uid: ORDINARY, gid: ORDINARY, encoding: "utf8", env: { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: home, TMPDIR: home } };
  const readable = spawnSync(process.execPath, ["-e", `require("fs").accessSync(${JSON.stringify(import.meta.filename)})`], as);
  if (readable.status !== 0) return t.skip("unavailable here: another user cannot read this folder");
  const files = readdirSync(import.meta.dirname).filter((name) => /\.test\.js$/.test(name) && name !== "users.test.js");
  const args = ["--test", "--test-concurrency=2", "--test-reporter=tap", ...files.map((name) => path.join("test/isolated", name))];
  const { stdout, status } = spawnSync(process.execPath, args, { ...as, cwd: ROOT });
  const missed = stdout.match(/# SKIP unavailable here.*/g) ?? [];
  for (const line of missed) t.diagnostic(line);
  assert.equal(status, 0, stdout.split("\n").filter((line) => /^\s*(not ok|error:)/.test(line)).join("\n"));
});
