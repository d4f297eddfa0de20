// Files: exact bytes both ways, routes that are missing, and a missing file told from everything else.
import assert from "node:assert/strict";
import { closeSync, constants, openSync } from "node:fs";
import { describe, test } from "node:test";

import { daytonaReplies } from "../emulators/daytona/replies.js";
import { replies } from "../emulators/engine.js";
import { rejection } from "../support/wait.js";
import { open } from "./support.js";

const BULK = "toolbox POST /files/bulk-upload";
const UPLOAD = "toolbox POST /files/upload";
const FOLDER = "toolbox POST /files/folder";
const DOWNLOAD = "toolbox GET /files/download";

describe("files", { concurrency: 4 }, () => {
  for (const daemonVersion of ["0.120.0", "0.140.0", "0.160.0", "0.175.0", "0.190.0", "0.218.0"]) {
    test(`a daemon of version ${daemonVersion}: write, read, missing, refused`, async (t) => {
      const { sandbox } = await open(t, { daemonVersion });
      const bytes = Uint8Array.from({ length: 70_000 }, (_, i) => (i * 7) & 255);
      await sandbox.writeFile("a/b/c.bin", bytes);
      assert.deepEqual(await sandbox.readBytes("a/b/c.bin"), bytes);
      await sandbox.writeFile("empty", "");
      assert.equal(await sandbox.readFile("empty"), "");
      assert.equal(await sandbox.readFile("absent"), null);
      assert.equal(await sandbox.readFile("no/such/folder"), null);
      for (const call of [() => sandbox.readFile("a/b"), () => sandbox.writeFile("a/b", "x")]) {
        const error = await rejection(call());
        assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG", error.message);
        assert.ok(error.message.includes("a/b"));
      }
    });
  }

  test("relative paths begin at the working directory, absolute ones are kept", async (t) => {
    const { emulator, sandbox } = await open(t, { workDir: "project" });
    await sandbox.writeFile("rel.txt", "1");
    assert.equal((await sandbox.shell("cat rel.txt")).output, "1");
    const { workDir, home } = emulator.sandbox(sandbox.sandboxId);
    assert.equal(await sandbox.readFile(`${workDir}/rel.txt`), "1");
    await sandbox.writeFile(`${home}/up.txt`, "2");
    assert.equal(await sandbox.readFile("../up.txt"), "2");
  });

  test("names that an address or a form could misread", async (t) => {
    const { sandbox } = await open(t);
    const names = ["a b", "a+b", "a%20b", "a&b=c", "a#b", "a?b", "q'u\"o", "b\\s", "x\ny", "t ", "u\t", "e\u0301", "\u{1F600}", "\u00a0n\u00a0"];
    for (const name of names) {
      await sandbox.writeFile(`d/${name}`, name);
      assert.equal(await sandbox.readFile(`d/${name}`), name, JSON.stringify(name));
    }
    const { stdout } = await sandbox.exec({ code: "import os, json; print(json.dumps(sorted(os.listdir('d'))))" });
    assert.deepEqual(JSON.parse(stdout), [...names].sort());
  });

  for (const [name, reply] of [
    ["not there", daytonaReplies.noRoute()],
    ["refused with 405", { status: 405 }],
    ["refused with 501", { status: 501 }],
  ]) {
    test(`the bulk route is ${name}: folder and single upload`, async (t) => {
      const { engine, sandbox } = await open(t);
      engine.fault(BULK, { instead: reply }, { times: Infinity });
      await sandbox.writeFile("new/deep/f", "x");
      assert.equal(await sandbox.readFile("new/deep/f"), "x");
      assert.deepEqual([engine.count(BULK), engine.count(FOLDER), engine.count(UPLOAD)], [1, 1, 1]);
    });
  }

  test("the bulk route says what is wrong with a file", async (t) => {
    const { engine, sandbox } = await open(t);
    engine.fault(BULK, { instead: daytonaReplies.uploadRefused(["f: create: no space left on device"]) });
    const error = await rejection(sandbox.writeFile("f", "x"));
    assert.match(error.message, /: HTTP 400: f: create: no space left on device; the path was \S*f$/);
    assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG");
  });

  /** What the daemon answers to a read, while the sandbox is there, and what that means. */
  for (const [name, reply, code] of [
    ["404 with an empty body", { status: 404 }, null],
    ["404 FILE_NOT_FOUND", daytonaReplies.toolbox(404, "gone", "FILE_NOT_FOUND"), null],
    ["404 of old daemons", { status: 404, body: '{"statusCode":500,"message":"stat /x: no such file or directory"}' }, null],
    ["404 of the container", daytonaReplies.noContainer(), "CONFLICT"],
    ["404 of the route", daytonaReplies.noRoute(), "PROTOCOL"],
    ["404 page", replies.html(404), "PROTOCOL"],
    ["403", daytonaReplies.toolbox(403, "permission denied", "FILE_ACCESS_DENIED"), "FORBIDDEN"],
    ["401", daytonaReplies.unauthorized(), "AUTH"],
    ["400 not started", daytonaReplies.notStarted(), "CONFLICT"],
    ["502", daytonaReplies.badGateway(), "PROVIDER"],
    ["204", { status: 204 }, "PROTOCOL"],
  ]) {
    test(`a read is answered ${name}: ${code ?? "no such file"}`, async (t) => {
      const { engine, sandbox } = await open(t);
      await sandbox.start();
      engine.fault(DOWNLOAD, { instead: reply });
      if (code === null) {
        assert.equal(await sandbox.readFile("f"), null);
      } else {
        const error = await rejection(sandbox.readFile("f"));
        assert.equal(error.code, `ERR_SANDBOX_${code}`, error.message);
        assert.match(error.message, /; the path was f$/);
      }
      assert.equal(engine.count(DOWNLOAD), 1);
    });
  }

  test("a download that breaks off is no file", async (t) => {
    const { engine, sandbox } = await open(t);
    await sandbox.writeFile("f", "x".repeat(100_000));
    engine.fault(DOWNLOAD, { stop: { after: 5000, how: "drop", keepLength: true } });
    const error = await rejection(sandbox.readFile("f"));
    assert.equal(error.code, "ERR_SANDBOX_NETWORK");
    assert.equal((await sandbox.readFile("f")).length, 100_000);
  });

  test("C202 files of the kernel have their text, whatever the daemon says of their length", async (t) => {
    const { engine, sandbox } = await open(t);
    await sandbox.shell("ln -s /proc/version link");
    assert.equal(await sandbox.readFile("/proc/version"), (await sandbox.shell("cat /proc/version")).output);
    assert.equal(engine.count(DOWNLOAD), 0);
    engine.fault(DOWNLOAD, { instead: { status: 200, headers: { "content-length": "0" } } });
    assert.match(await sandbox.readFile("link"), /^Linux version/, "nothing came, so it is read in another way");
    // /sys promises a page and closes early.
    await sandbox.writeFile("page", "real text\n");
    engine.fault(DOWNLOAD, { stop: { after: 6, how: "drop", keepLength: true } });
    assert.equal(await sandbox.readFile("page"), "real text\n");
    assert.match((await rejection(sandbox.readFile("/proc/self"))).message, /it is no regular file.*; the path was \/proc\/self/);
    assert.equal(await sandbox.readFile("/proc/no/such"), null);
    assert.equal((await rejection(sandbox.readBytes("/proc/kallsyms", { maxBytes: 100 }))).code, "ERR_SANDBOX_TOO_LARGE");
  });

  test("C202 a pipe and a device are refused in words, and hold nothing up", async (t) => {
    const { emulator, engine, sandbox } = await open(t);
    await sandbox.shell("mkfifo pipe; mkdir d; mkfifo d/pipe");
    const { home } = emulator.sandbox(sandbox.sandboxId);
    // The daemon's own open() waits for ever: here it is woken, so that the test can end.
    const wake = () => ["pipe", "d/pipe"].forEach((name) => closeSync(openSync(`${home}/${name}`, constants.O_RDWR)));
    const began = Date.now();
    const errors = await Promise.all([rejection(sandbox.readFile("pipe")), rejection(sandbox.writeFile("d/pipe", "x"))]).finally(wake);
    for (const error of errors) {
      assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG", error.message);
      assert.match(error.message, /it is no regular file.*; the path was (d\/)?pipe$/);
    }
    engine.fault(DOWNLOAD, { instead: { status: 200, headers: { "content-length": "0" } } });
    assert.match((await rejection(sandbox.readFile("/dev/zero"))).message, /no regular file/);
    await sandbox.close();
    assert.ok(Date.now() - began < 8000);
  });

  test("C202 a file that may not be read: FORBIDDEN, with the path", async (t) => {
    const { engine, sandbox } = await open(t);
    await sandbox.start();
    const forbidden = { status: 403, headers: { "content-type": "text/plain; charset=utf-8" }, body: "403 Forbidden" };
    engine.fault(DOWNLOAD, { instead: forbidden });
    const error = await rejection(sandbox.readFile("secret"));
    assert.equal(error.code, "ERR_SANDBOX_FORBIDDEN");
    assert.match(error.message, /the path was secret$/);
  });

  test("C165 ~ is the home of the sandbox's user, asked for once", async (t) => {
    const { emulator, engine, sandbox } = await open(t, { workDir: "project" });
    const HOME = "toolbox GET /user-home-dir";
    await sandbox.writeFile("plain", "1");
    await sandbox.writeFile("a~b", "name");
    assert.equal(engine.count(HOME), 0);
    await sandbox.writeFile("~/a.txt", "x");
    assert.equal((await sandbox.shell("cat ~/a.txt; ls")).output, "xa~b\nplain\n");
    assert.equal(await sandbox.readFile("~/a.txt"), "x");
    assert.equal(await sandbox.readFile(`${emulator.sandbox(sandbox.sandboxId).home}/a.txt`), "x");
    assert.equal(engine.count(HOME), 1);
    engine.fault(HOME, { instead: daytonaReplies.badGateway() });
    const other = await open(t);
    other.engine.fault(HOME, { instead: daytonaReplies.badGateway() });
    assert.match((await rejection(other.sandbox.readFile("~/b"))).message, /ask for the home of the sandbox's user: HTTP 502/);
    assert.equal(await other.sandbox.readFile("~/b"), null);
  });

  test("files of a sandbox that is gone: lost, not missing", async (t) => {
    for (const settings of [{}, { proxyCacheMs: 0 }]) {
      const { emulator, sandbox } = await open(t, settings, { onLost: "reject" });
      await sandbox.start();
      emulator.lose(sandbox.sandboxId);
      assert.equal((await rejection(sandbox.readFile("f"))).code, "ERR_SANDBOX_LOST");
    }
  });

  test("C197 a name that is no UTF-8 does not keep the other files from being listed", async (t) => {
    const { sandbox } = await open(t);
    const before = (await sandbox.listFiles()).map(({ path }) => path);
    await sandbox.shell("mkdir e $'d\\xfe'; touch $'a\\xff' b e/f; echo 1 > $'d\\xfe/c'", { env: {} });
    const files = await sandbox.listFiles();
    const made = files.map(({ path }) => path).filter((path) => !before.includes(path));
    assert.deepEqual(made.sort(), ["a\ufffd", "b", "d\ufffd/c", "e/f"]);
  });

  test("listing: any name, no links, and an end where there are too many", async (t) => {
    const { sandbox } = await open(t);
    const before = await sandbox.listFiles();
    const count = before.length;
    await sandbox.shell("mkdir -p d/e; printf xyz >'d/e/a b'; printf 1 >'q\"$x'; printf 22 >\"$(printf 'n\nl')\"; ln -s d l; ln -s d/e/a\\ b m");
    const files = await sandbox.listFiles();
    assert.deepEqual(
      files.filter(({ path }) => before.every((file) => file.path !== path)).sort((a, b) => a.size - b.size),
      [{ path: 'q"$x', size: 1 }, { path: "n\nl", size: 2 }, { path: "d/e/a b", size: 3 }],
    );
    await sandbox.shell("seq 1 3000 | xargs touch");
    assert.equal((await sandbox.listFiles()).length, count + 3003);
    for (const maxEntries of [1, count + 3002]) {
      assert.equal((await rejection(sandbox.listFiles({ maxEntries }))).code, "ERR_SANDBOX_TOO_LARGE");
    }
    assert.equal((await sandbox.listFiles({ maxEntries: count + 3003 })).length, count + 3003);
  });
});
