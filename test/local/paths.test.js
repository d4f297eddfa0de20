// Paths on this machine: nothing outside of the workspace is looked at or changed.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { LocalSandbox } from "cloudsandbox";

import { NOBODY, copyPackage, nodeForNobody, startNode } from "../support/node.js";
import { tempDir } from "../support/temp.js";
import { rejection } from "../support/wait.js";

/** A workspace beside a directory that is none of its business, with links that lead there. */
function workspace(t) {
  const base = tempDir(t);
  const root = path.join(base, "work");
  const outside = path.join(base, "outside");
  mkdirSync(path.join(root, "d"), { recursive: true });
  mkdirSync(outside);
  writeFileSync(path.join(outside, "secret"), "1");
  symlinkSync(outside, path.join(root, "way"));
  symlinkSync(path.join(outside, "secret"), path.join(root, "link"));
  symlinkSync("/proc/self/root", path.join(root, "magic"));
  const sandbox = new LocalSandbox({ isolation: "none", workspace: root });
  t.after(() => sandbox.close());
  return { sandbox, root, outside };
}

test("links that lead out are seen as links, and not followed", async (t) => {
  const { sandbox } = workspace(t);
  for (const name of ["way", "link", "magic"]) assert.equal((await sandbox.stat(name)).type, "link", name);
  assert.deepEqual((await sandbox.listDirectory()).map(({ name, type }) => `${name} ${type}`), ["d directory", "link link", "magic link", "way link"]);
});

test("no path leads out, by no verb", async (t) => {
  const { sandbox, root, outside } = workspace(t);
  writeFileSync(path.join(root, "own"), "2");
  for (const out of ["way/secret", "../outside/secret", path.join(outside, "secret"), "magic/etc/passwd", "d/../../outside/secret"]) {
    const calls = [
      () => sandbox.stat(out), () => sandbox.deleteFile(out), () => sandbox.deleteFile(out, { recursive: true }),
      () => sandbox.moveFile(out, "stolen"), () => sandbox.moveFile("own", out), () => sandbox.mkdir(`${out}/x`),
      () => sandbox.listDirectory(path.posix.join(out, "..") === "." ? out : `${out}/`),
    ];
    for (const call of calls) {
      const error = await rejection(call());
      assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG", `${call} ${out}: ${error.message}`);
      assert.equal(error.name, "PathSecurityError", `${call} ${out}: ${error.message}`);
    }
  }
  assert.equal(readFileSync(path.join(outside, "secret"), "utf8"), "1");
  assert.ok(existsSync(path.join(root, "own")) && !existsSync(path.join(root, "stolen")));
});

test("a link is deleted and moved itself; what it leads to stays", async (t) => {
  const { sandbox, root, outside } = workspace(t);
  await sandbox.moveFile("way", "other");
  assert.equal(await sandbox.deleteFile("other", { recursive: true }), true);
  assert.equal(await sandbox.deleteFile("link"), true);
  assert.ok(existsSync(path.join(outside, "secret")) && !existsSync(path.join(root, "other")));
});

test("a tree with links, and of great depth, is deleted without following any", async (t) => {
  const { sandbox, outside } = workspace(t);
  await sandbox.shell(`mkdir t; cd t; ln -s ${outside} out; i=0; while [ $i -lt 2500 ]; do mkdir d && cd d || exit; i=$((i + 1)); done`);
  assert.equal(await sandbox.deleteFile("t", { recursive: true }), true);
  assert.equal(await sandbox.stat("t"), null);
  assert.ok(existsSync(path.join(outside, "secret")));
});

test("names with control characters are refused", async (t) => {
  const { sandbox } = workspace(t);
  for (const call of [() => sandbox.stat("a\nb"), () => sandbox.mkdir("a\tb"), () => sandbox.moveFile("d", "\u001b[2J"), () => sandbox.deleteFile("\u007f")]) {
    assert.equal((await rejection(call())).name, "PathSecurityError");
  }
});

test("a folder that may not be entered is an error, and not nothing", async (t) => {
  const copy = copyPackage(t);
  spawnSync("chmod", ["-R", "a+rX", path.dirname(copy), copy]);
  const dir = tempDir(t);
  chmodSync(dir, 0o777);
  const { ended } = startNode(
    `import { LocalSandbox } from "cloudsandbox";
     const sandbox = new LocalSandbox({ isolation: "none", tempDir: process.env.DIR });
     await sandbox.shell("mkdir shut; : > shut/f; chmod 0 shut");
     const calls = ["stat", "deleteFile", "listDirectory", "mkdir"].map((name) => [name, () => sandbox[name]("shut/f")]);
     calls.push(["moveFile", () => sandbox.moveFile("shut/f", "x")], ["list it", () => sandbox.listDirectory("shut")]);
     for (const [name, call] of calls) await call().then(() => console.log(name), (error) => console.log(name, error.code));
     await sandbox.shell("chmod 700 shut");
     console.log((await sandbox.stat("shut/f")).type);
     await sandbox.close();`,
    { cwd: copy, ...(process.getuid() === 0 && { uid: NOBODY, execPath: nodeForNobody(t) }), env: { DIR: dir } },
  );
  const { stdout, stderr } = await ended;
  assert.equal(stderr, "");
  const all = ["stat", "deleteFile", "listDirectory", "mkdir", "moveFile", "list it"].map((name) => `${name} ERR_SANDBOX_FORBIDDEN\n`);
  assert.equal(stdout, `${all.join("")}file\n`);
});
