// Paths of the local backend: what leads outside the workspace is refused, however it is spelled.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  linkSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import path from "node:path";
import { describe, test } from "node:test";

import { LocalSandbox } from "cloudsandbox";

import { tempDir, tree } from "../support/temp.js";
import { rejection } from "../support/wait.js";

/** A started sandbox, its workspace, and a folder beside it with a secret in it. */
async function open(t) {
  const base = tempDir(t);
  const outside = path.join(base, "outside");
  mkdirSync(outside);
  writeFileSync(path.join(outside, "secret"), "outside content");
  const sandbox = new LocalSandbox({ trusted: true, tempDir: base });
  t.after(() => sandbox.close());
  await sandbox.start();
  return { base, outside, sandbox, workspace: sandbox.sandboxId };
}

async function refused(call, name) {
  const error = await rejection(call);
  assert.equal(error.name, "PathSecurityError", `${name}: ${error.message}`);
  assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG");
  return error;
}

describe("paths", { concurrency: 4 }, () => {
  test("C079 paths that leave the workspace are refused, and nothing is written", async (t) => {
    const { base, outside, sandbox } = await open(t);
    const before = tree(base);
    for (const name of [
      "../x",
      "a/../../x",
      "../outside/secret",
      "..",
      "a/b/../../..",
      `${outside}/x`,
      "/etc/passwd",
      "/",
    ]) {
      assert.match((await refused(sandbox.writeFile(name, "x"), name)).message, /traversal/);
      assert.match((await refused(sandbox.readFile(name), name)).message, /traversal/);
    }
    assert.deepEqual(tree(base), before);
    for (const name of ["", ".", "./", "a/.."]) {
      assert.match((await rejection(sandbox.writeFile(name, "x"))).code, /^ERR_SANDBOX_/, name);
      assert.match((await rejection(sandbox.readFile(name))).code, /^ERR_SANDBOX_/, name);
    }
    assert.deepEqual(tree(base), before);
  });

  test("C079 paths that only look as if they left are fine", async (t) => {
    const { sandbox, workspace } = await open(t);
    await sandbox.writeFile("a/../x", "inside");
    assert.equal(await sandbox.readFile("x"), "inside");
    await sandbox.writeFile("./b//c/./d", "inside too");
    assert.equal(await sandbox.readFile("b/c/d"), "inside too");
    await sandbox.writeFile(path.join(workspace, "absolute"), "absolute, inside");
    assert.equal(await sandbox.readFile("absolute"), "absolute, inside");
    assert.equal(await sandbox.readFile(path.join(workspace, "b/c/d")), "inside too");
  });

  test("C080 a folder whose name begins like the workspace's is outside", async (t) => {
    const { sandbox, workspace } = await open(t);
    const sibling = `${workspace}-other`;
    mkdirSync(sibling);
    writeFileSync(path.join(sibling, "f"), "outside content");
    for (const name of [`../${path.basename(sibling)}/f`, `${sibling}/f`]) {
      await refused(sandbox.readFile(name), name);
      await refused(sandbox.writeFile(name, "x"), name);
    }
    assert.equal(readFileSync(path.join(sibling, "f"), "utf8"), "outside content");
  });

  test("C081 names with dots are names", async (t) => {
    const { sandbox, workspace } = await open(t);
    for (const name of ["advisory-db..lock", "..hidden", "a../b", "...", "x..", "..a/..b"]) {
      await sandbox.writeFile(name, name);
      assert.equal(await sandbox.readFile(name), name);
      assert.equal(readFileSync(path.join(workspace, name), "utf8"), name);
    }
  });

  test("I36 a link to a file outside is not followed", async (t) => {
    const { sandbox, outside, workspace } = await open(t);
    symlinkSync("/etc/passwd", path.join(workspace, "passwd"));
    symlinkSync(path.join(outside, "secret"), path.join(workspace, "absolute"));
    symlinkSync("../outside/secret", path.join(workspace, "relative"));
    symlinkSync("../outside", path.join(workspace, "folder"));
    symlinkSync("absolute", path.join(workspace, "twice"));
    for (const name of ["passwd", "absolute", "relative", "folder/secret", "twice"]) {
      await refused(sandbox.readFile(name), name);
      await refused(sandbox.readBytes(name), name);
    }
    for (const name of ["folder/new", "folder/deep/new"]) {
      await refused(sandbox.writeFile(name, "x"), name);
    }
    for (const name of ["absolute", "relative", "twice"]) {
      // Refused, or replaced in the workspace; never written through.
      await sandbox
        .writeFile(name, "new")
        .catch((error) => assert.equal(error.name, "PathSecurityError"));
    }
    assert.deepEqual(readdirSync(outside), ["secret"]);
    assert.equal(readFileSync(path.join(outside, "secret"), "utf8"), "outside content");
  });

  test("I36 a link inside to something inside works", async (t) => {
    const { sandbox, workspace } = await open(t);
    await sandbox.writeFile("folder/f", "inside");
    symlinkSync("folder/f", path.join(workspace, "file-link"));
    symlinkSync("folder", path.join(workspace, "folder-link"));
    await sandbox.shell('ln -s "$PWD/folder/f" absolute-link; ln -s "$PWD/folder" absolute-folder-link');
    for (const name of ["file-link", "folder-link/f", "absolute-link", "absolute-folder-link/f"]) {
      assert.equal(await sandbox.readFile(name), "inside");
    }
    await sandbox.writeFile("absolute-link", "through the link");
    assert.equal(await sandbox.readFile("folder/f"), "through the link");
    assert.equal((await sandbox.exec({ argv: ["ls"], cwd: "absolute-folder-link" })).output, "f\n");
    await sandbox.writeFile("folder-link/g", "through the link");
    assert.equal(await sandbox.readFile("folder/g"), "through the link");
  });

  test("I37 links of /proc do not lead outside", async (t) => {
    const { sandbox, workspace, outside } = await open(t);
    symlinkSync("/proc/self/root", path.join(workspace, "root"));
    symlinkSync("/proc/self/cwd", path.join(workspace, "cwd"));
    for (const name of [`root${outside}/secret`, "root/etc/passwd", "cwd/package.json"]) {
      await refused(sandbox.readFile(name), name);
      await refused(sandbox.writeFile(name, "x"), name);
    }
  });

  test("I37 a folder that is swapped for a link meanwhile never shows what is outside", async (t) => {
    const { sandbox, outside, workspace } = await open(t);
    mkdirSync(path.join(workspace, "racer"));
    writeFileSync(path.join(workspace, "racer/secret"), "inside content");
    symlinkSync(outside, path.join(workspace, "link"));
    // Exchanges the folder and the link as fast as it can until it is told to stop; "racer" always
    // exists.
    const swapping = sandbox.exec({
      code: [
        "import ctypes, os",
        "AT_FDCWD, RENAME_EXCHANGE, swaps = -100, 2, 0",
        "renameat2 = ctypes.CDLL(None, use_errno=True).renameat2",
        "while not os.path.exists('stop'):",
        "    assert renameat2(AT_FDCWD, b'racer', AT_FDCWD, b'link', RENAME_EXCHANGE) == 0",
        "    swaps += 1",
        "    if swaps == 1: open('swapping', 'w').close()",
        "print(swaps)",
      ].join("\n"),
      language: "python",
      timeoutSeconds: 600,
    });
    await sandbox.shell("while ! test -e swapping; do sleep 0.01; done");
    const seen = { inside: 0, refused: 0, absent: 0 };
    for (let round = 0; round < 150; round++) {
      const reads = Array.from({ length: 8 }, () =>
        sandbox.readFile("racer/secret").catch((error) => error),
      );
      const writing = sandbox.writeFile("racer/new", "x").catch((error) => error);
      for (const answer of await Promise.all(reads)) {
        if (answer === "inside content") seen.inside++;
        else if (answer === null) seen.absent++;
        else {
          assert.equal(answer.name, "PathSecurityError", String(answer));
          seen.refused++;
        }
      }
      const failure = await writing;
      if (failure) assert.match(failure.code, /^ERR_SANDBOX_/, String(failure));
    }
    await sandbox.writeFile("stop", "");
    const { exitCode, stdout, stderr } = await swapping;
    assert.equal(exitCode, 0, stderr);
    assert.ok(Number(stdout) >= 150, `${stdout.trim()} swaps, ${JSON.stringify(seen)}`);
    assert.deepEqual(readdirSync(outside), ["secret"]);
    assert.equal(seen.inside + seen.refused + seen.absent, 1200);
  });

  test("I38 writing onto a dangling link creates nothing outside", async (t) => {
    const { sandbox, outside, workspace } = await open(t);
    symlinkSync("../outside/new", path.join(workspace, "relative"));
    symlinkSync(path.join(outside, "new"), path.join(workspace, "absolute"));
    symlinkSync("../outside/new-folder", path.join(workspace, "folder"));
    for (const name of ["relative", "absolute", "folder/f"]) {
      await refused(sandbox.writeFile(name, "x"), name);
    }
    assert.deepEqual(readdirSync(outside), ["secret"]);
  });

  test("I38 a dangling link is not a missing file", async (t) => {
    const { sandbox, workspace } = await open(t);
    symlinkSync("nowhere", path.join(workspace, "inside"));
    symlinkSync("../outside/nowhere", path.join(workspace, "outside"));
    for (const name of ["inside", "outside"]) {
      assert.match((await rejection(sandbox.readFile(name))).code, /^ERR_SANDBOX_/, name);
    }
  });

  test("I39 writing onto a hard link leaves the other name's content alone", async (t) => {
    const { sandbox, outside, workspace } = await open(t);
    linkSync(path.join(outside, "secret"), path.join(workspace, "hard"));
    await sandbox.writeFile("hard", "new");
    assert.equal(await sandbox.readFile("hard"), "new");
    assert.equal(readFileSync(path.join(outside, "secret"), "utf8"), "outside content");
  });

  test("I40 what is not a regular file is refused at once", async (t) => {
    const { sandbox, workspace } = await open(t);
    assert.equal(spawnSync("mkfifo", [path.join(workspace, "fifo")]).status, 0);
    const server = createServer().listen(path.join(workspace, "socket"));
    t.after(() => server.close());
    await once(server, "listening");
    mkdirSync(path.join(workspace, "folder"));
    const names = ["fifo", "socket", "folder"];
    // A device needs rights that not every machine gives; the rule is the same.
    if (spawnSync("mknod", [path.join(workspace, "device"), "c", "1", "5"]).status === 0) {
      names.push("device");
    }
    for (const name of names) {
      const error = await rejection(sandbox.readFile(name));
      assert.match(error.code, /^ERR_SANDBOX_/);
      assert.ok(error.message.includes(name), error.message);
    }
  });

  test("I40 a file of a terabyte is too large, without an attempt to read it", async (t) => {
    const { sandbox, workspace } = await open(t);
    const file = path.join(workspace, "sparse");
    writeFileSync(file, "");
    truncateSync(file, 2 ** 40);
    const error = await rejection(sandbox.readFile("sparse"));
    assert.equal(error.code, "ERR_SANDBOX_TOO_LARGE");
  });

  test("I40 cwd of a command follows the same rules", async (t) => {
    const { sandbox, workspace } = await open(t);
    symlinkSync("/", path.join(workspace, "root"));
    for (const cwd of ["..", "/", "root", "root/etc"]) {
      await refused(sandbox.exec({ command: "pwd", cwd }), cwd);
    }
    for (const cwd of ["absent", "a\0b"]) {
      assert.match((await rejection(sandbox.exec({ command: "pwd", cwd }))).code, /^ERR_SANDBOX_/);
    }
    await sandbox.writeFile("sub/f", "");
    assert.equal(
      (await sandbox.exec({ command: "pwd", cwd: "sub" })).stdout,
      `${path.join(workspace, "sub")}\n`,
    );
  });

  test("I37 a workspace that was moved away and replaced is not used", async (t) => {
    const { sandbox, workspace } = await open(t);
    await sandbox.writeFile("f", "inside");
    renameSync(workspace, `${workspace}-moved`);
    symlinkSync("/etc", workspace);
    const answer = await sandbox.readFile("passwd").catch((error) => error);
    assert.ok(answer === null || answer instanceof Error, "nothing of /etc");
    rmSync(workspace);
    rmSync(`${workspace}-moved`, { recursive: true });
  });
});
