// The workspace of the local backend: where it is, whose it is, and how it goes.
import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";

import { LocalSandbox } from "cloudsandbox";

import { runUnprivileged } from "../support/node.js";
import { tempDir } from "../support/temp.js";
import { rejection } from "../support/wait.js";

describe("workspace", { concurrency: 4 }, () => {
  test("K12 a fresh private folder with our prefix, gone after the close", async (t) => {
    const parent = tempDir(t);
    const sandbox = new LocalSandbox({ isolation: "none", tempDir: parent });
    await sandbox.start();
    const workspace = sandbox.sandboxId;
    assert.equal(path.dirname(workspace), parent);
    assert.match(path.basename(workspace), /^cloudsandbox-/);
    assert.equal(statSync(workspace).mode & 0o777, 0o700);
    assert.equal((await sandbox.shell("pwd")).output, `${workspace}\n`);
    await sandbox.close();
    assert.deepEqual(readdirSync(parent), []);
  });

  test("K12 a workspace of the caller is used as it is and kept", async (t) => {
    const workspace = tempDir(t);
    writeFileSync(path.join(workspace, "before"), "was here");
    const sandbox = new LocalSandbox({ isolation: "none", workspace });
    assert.equal(await sandbox.readFile("before"), "was here");
    await sandbox.writeFile("made", "in it");
    await sandbox.close();
    assert.deepEqual(readdirSync(workspace).sort(), ["before", "made"]);
  });

  test("C057 a folder that was deleted behind our back is named, then replaced", async (t) => {
    const sandbox = new LocalSandbox({ isolation: "none", tempDir: tempDir(t) });
    t.after(() => sandbox.close());
    await sandbox.writeFile("f", "x");
    const first = sandbox.sandboxId;
    rmSync(first, { recursive: true });
    const error = await rejection(sandbox.shell("ls"));
    assert.equal(error.code, "ERR_SANDBOX_LOST");
    assert.ok(error.message.includes(first), error.message);
    assert.deepStrictEqual(await sandbox.shell("ls -A"), { output: "", exitCode: 0 });
    assert.notEqual(sandbox.sandboxId, first);
  });

  test("C057 a caller's folder that was deleted is not made again", async (t) => {
    const workspace = path.join(tempDir(t), "mine");
    mkdirSync(workspace);
    const sandbox = new LocalSandbox({ isolation: "none", workspace });
    t.after(() => sandbox.close());
    await sandbox.start();
    rmSync(workspace, { recursive: true });
    const error = await rejection(sandbox.shell("ls"));
    assert.equal(error.code, "ERR_SANDBOX_LOST");
    assert.ok(error.message.includes(workspace), error.message);
    assert.equal((await rejection(sandbox.shell("ls"))).code, "ERR_SANDBOX_LOST");
    assert.ok(!existsSync(workspace));
  });

  test("C059 folders without rights and links to outside do not stop or extend the removal", async (t) => {
    const source = `
      import { LocalSandbox } from "cloudsandbox";
      import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
      const outside = process.env.TMPDIR + "/outside";
      mkdirSync(outside);
      writeFileSync(outside + "/kept", "x");
      const parent = process.env.TMPDIR + "/parent";
      mkdirSync(parent);
      const sandbox = new LocalSandbox({ isolation: "none", tempDir: parent });
      const { exitCode } = await sandbox.shell(
        "mkdir -p a/b deep; touch a/b/f; ln -s ../../../outside a/b/link; ln -s ../outside link; chmod 500 a/b a; mkdir -p none/in; chmod 000 none; " +
        "d=deep; for i in 1 2 3 4 5 6 7 8 9; do d=$d/0123456789012345678901234567890123456789012345678901234567890123456789; mkdir $d; done");
      await sandbox.close();
      console.log(exitCode, JSON.stringify(readdirSync(parent)), JSON.stringify(readdirSync(outside)));`;
    const { stdout, stderr } = await runUnprivileged(t, source);
    assert.equal(stderr, "");
    assert.equal(stdout, '0 [] ["kept"]\n');
  });

  test("C059 a removal stops at links and at what is deep", async (t) => {
    const base = tempDir(t);
    mkdirSync(path.join(base, "outside"));
    writeFileSync(path.join(base, "outside/kept"), "x");
    mkdirSync(path.join(base, "parent"));
    const sandbox = new LocalSandbox({ isolation: "none", tempDir: path.join(base, "parent") });
    await sandbox.start();
    symlinkSync(path.join(base, "outside"), path.join(sandbox.sandboxId, "link"));
    const { exitCode } = await sandbox.run(
      "import os\nfor i in range(400):\n    os.mkdir('d'); os.chdir('d')\nopen('f', 'w').close()",
    );
    assert.equal(exitCode, 0);
    await sandbox.close();
    assert.deepEqual(readdirSync(path.join(base, "parent")), []);
    assert.equal(readFileSync(path.join(base, "outside/kept"), "utf8"), "x");
  });

  test("K11 a removal that fails rejects, and a second close tries again", async (t) => {
    const source = `
      import { LocalSandbox } from "cloudsandbox";
      import { chmodSync, mkdirSync, readdirSync } from "node:fs";
      const parent = process.env.TMPDIR + "/parent";
      mkdirSync(parent);
      const sandbox = new LocalSandbox({ isolation: "none", tempDir: parent });
      await sandbox.start();
      chmodSync(parent, 0o500);
      const error = await sandbox.close().then(() => null, (error) => error);
      console.log(error?.code, (await sandbox.shell("true").catch((late) => late)).code);
      chmodSync(parent, 0o700);
      await sandbox.close();
      await sandbox.close();
      console.log(JSON.stringify(readdirSync(parent)));`;
    const { stdout, stderr } = await runUnprivileged(t, source);
    assert.equal(stderr, "");
    assert.match(stdout, /^ERR_SANDBOX_\w+ ERR_SANDBOX_CLOSED\n\[\]\n$/);
  });

  test("K7 a file without rights rejects; it is not a missing file", async (t) => {
    const source = `
      import { LocalSandbox } from "cloudsandbox";
      const sandbox = new LocalSandbox({ isolation: "none" });
      await sandbox.shell("echo x > f; chmod 000 f; mkdir d; echo y > d/g; chmod 000 d; mkdir ro; chmod 500 ro");
      for (const call of [() => sandbox.readFile("f"), () => sandbox.readFile("d/g"), () => sandbox.writeFile("ro/new", "x")]) {
        const error = await call().then((value) => ({ code: "resolved with " + value }), (error) => error);
        console.log(error.code, error.name);
      }
      await sandbox.close();`;
    const { stdout, stderr } = await runUnprivileged(t, source);
    assert.equal(stderr, "");
    assert.equal(stdout, "ERR_SANDBOX_FORBIDDEN SandboxError\n".repeat(3));
  });

  test("C044 a temporary folder that does not exist is named", async (t) => {
    const missing = path.join(tempDir(t), "missing");
    const sandbox = new LocalSandbox({ isolation: "none", tempDir: missing });
    const error = await rejection(sandbox.start());
    assert.match(error.code, /^ERR_SANDBOX_/);
    assert.ok(error.message.includes(missing), error.message);
    await sandbox.close();
    assert.ok(!existsSync(missing));
  });
});
