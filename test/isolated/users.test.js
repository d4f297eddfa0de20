// When root runs the tests, the whole folder runs once more as an ordinary user: the two ways to a sandbox differ.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chownSync, readdirSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { NOBODY } from "../support/node.js";
import { tempDir } from "../support/temp.js";
import { asOrdinary, readableCopy } from "./support.js";

test("all of it as an ordinary user", { skip: process.getuid() !== 0 && "this is one" }, (t) => {
  const home = tempDir(t);
  chownSync(home, NOBODY, NOBODY);
  const { node, user } = asOrdinary(t);
  const files = readdirSync(import.meta.dirname).filter((name) => /\.test\.js$/.test(name) && name !== "users.test.js");
  const args = ["--test", "--test-concurrency=2", "--test-reporter=tap", ...files.map((name) => path.join("test/isolated", name))];
  const env = { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: home, TMPDIR: home };
  const { stdout, status } = spawnSync(node, args, { cwd: readableCopy(t), encoding: "utf8", env, ...user });
  const missed = stdout.match(/# SKIP unavailable here.*/g) ?? [];
  for (const line of missed) t.diagnostic(line);
  assert.equal(status, 0, stdout.match(/^ *not ok .*\n *---\n[^]*?^ *\.\.\.$/gm)?.join("\n"));
  assert.match(stdout, /^# pass [1-9]/m);
});
