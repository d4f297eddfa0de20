// What is at a path, and changes of names: stat, listDirectory, deleteFile, moveFile, mkdir.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { rejection } from "../support/wait.js";
import { providers } from "./providers.js";

const codeOf = async (promise) => (await rejection(promise)).code;

for (const provider of providers) {
  describe(`paths, ${provider.name}`, { concurrency: 4 }, () => {
    test("stat tells files, directories and what is not there; links are followed", async (t) => {
      const sandbox = provider.world(t).make();
      assert.equal(sandbox.capabilities.paths, true);
      await sandbox.writeFile("d/f.txt", "hello");
      await sandbox.shell("chmod 640 d/f.txt; touch -d @1700000000 d/f.txt; ln -s d/f.txt in; ln -s d dir; ln -s nowhere lost; mkfifo pipe");
      const file = { type: "file", size: 5, mtimeMs: 1_700_000_000_000, mode: 0o640 };
      assert.deepEqual(await sandbox.stat("d/f.txt"), file);
      assert.deepEqual(await sandbox.stat("in"), file);
      const { type, size, mode } = await sandbox.stat("d/");
      assert.deepEqual([type, size, (mode & 0o700) === 0o700], ["directory", 0, true]);
      assert.equal((await sandbox.stat("dir")).type, "directory");
      assert.equal((await sandbox.stat("lost")).type, "link");
      assert.equal((await sandbox.stat("pipe")).type, "other");
      assert.equal((await sandbox.stat(".")).type, "directory");
      for (const missing of ["absent", "d/absent", "no/such/file"]) assert.equal(await sandbox.stat(missing), null);
      assert.equal(await codeOf(sandbox.stat("d/f.txt/below")), "ERR_SANDBOX_INVALID_ARG");
    });

    test("a directory is listed, one level, in order, links not followed, hidden names too", async (t) => {
      const sandbox = provider.world(t).make();
      await sandbox.shell("mkdir -p l/sub/deep l/empty; printf 12345 > l/b; : > l/a; : > l/.hidden; : > l/..odd; : > l/sub/deep/f; ln -s b l/link; ln -s l way");
      const shown = async (...args) => (await sandbox.listDirectory(...args)).map(({ name, type, size }) => `${name} ${type} ${size}`);
      const all = ["..odd file 0", ".hidden file 0", "a file 0", "b file 5", "empty directory 0", "link link 0", "sub directory 0"];
      assert.deepEqual(await shown("l"), all);
      assert.deepEqual(await shown("way/"), all);
      assert.deepEqual(await shown("l/empty"), []);
      const here = (await sandbox.listDirectory()).map(({ name }) => name);
      assert.ok(here.includes("l") && here.includes("way"), here.join());
      const { mtimeMs, mode } = (await sandbox.listDirectory("l")).find(({ name }) => name === "b");
      assert.ok(Math.abs(mtimeMs - Date.now()) < 600_000 && mode > 0, `${mtimeMs} ${mode}`);
      assert.equal((await sandbox.listDirectory("l", { maxEntries: 7 })).length, 7);
      assert.equal(await codeOf(sandbox.listDirectory("l", { maxEntries: 6 })), "ERR_SANDBOX_TOO_LARGE");
      assert.equal(await codeOf(sandbox.listDirectory("absent")), "ERR_SANDBOX_NOT_FOUND");
      assert.equal(await codeOf(sandbox.listDirectory("l/b")), "ERR_SANDBOX_INVALID_ARG");
    });

    test("a directory with thousands of entries", async (t) => {
      const sandbox = provider.world(t).make();
      await sandbox.shell("mkdir many; cd many; i=0; while [ $i -lt 3000 ]; do : > file-with-a-long-name-$i; i=$((i + 1)); done");
      assert.equal((await sandbox.listDirectory("many")).length, 3000);
    });

    test("deleteFile takes files and links; a directory only when told", async (t) => {
      const sandbox = provider.world(t).make();
      await sandbox.shell("mkdir -p d/e; : > d/e/f; : > f; ln -s d link; ln -s nowhere lost; mkdir -p ro/in; : > ro/in/x");
      assert.equal(await sandbox.deleteFile("f"), true);
      assert.equal(await sandbox.deleteFile("f"), false);
      assert.equal(await sandbox.deleteFile("no/such/file"), false);
      assert.equal(await sandbox.deleteFile("lost"), true);
      const error = await rejection(sandbox.deleteFile("d"));
      assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG");
      assert.match(error.message, /recursive/);
      assert.equal(await sandbox.deleteFile("link", { recursive: true }), true);
      assert.equal((await sandbox.stat("d/e/f")).type, "file", "a link's target stays");
      assert.equal(await sandbox.deleteFile("d/", { recursive: true }), true);
      assert.equal(await sandbox.stat("d"), null);
      assert.equal(await codeOf(sandbox.deleteFile("ro/in/x/y")), "ERR_SANDBOX_INVALID_ARG");
      for (const itself of [".", "./", "..", "ro/..", "ro/.", "/", "~", "~/"]) {
        assert.equal(await codeOf(sandbox.deleteFile(itself, { recursive: true })), "ERR_SANDBOX_INVALID_ARG", itself);
      }
      assert.equal((await sandbox.stat("ro/in/x")).type, "file");
    });

    test("moveFile renames, makes what is above, replaces a file and no directory", async (t) => {
      const sandbox = provider.world(t).make();
      await sandbox.shell("mkdir -p d/e; printf 1 > a; printf 2 > b; printf 3 > d/e/f; ln -s b link; mkdir full; : > full/x");
      await sandbox.moveFile("a", "new/place/a");
      assert.deepEqual([await sandbox.readFile("new/place/a"), await sandbox.stat("a")], ["1", null]);
      await sandbox.moveFile("new/place/a", "b");
      assert.equal(await sandbox.readFile("b"), "1");
      await sandbox.moveFile("d", "moved/d");
      assert.equal(await sandbox.readFile("moved/d/e/f"), "3");
      await sandbox.moveFile("link", "link2");
      assert.equal((await sandbox.shell("readlink link2")).output, "b\n");
      await sandbox.moveFile("b", "b");
      assert.equal(await sandbox.readFile("b"), "1");
      const missing = await rejection(sandbox.moveFile("absent", "x/y"));
      assert.equal(missing.code, "ERR_SANDBOX_NOT_FOUND");
      assert.doesNotMatch(missing.message, /may have been moved/);
      assert.equal(await sandbox.stat("x"), null, "nothing is made for it");
      assert.equal(await codeOf(sandbox.moveFile("b", "full")), "ERR_SANDBOX_INVALID_ARG");
      assert.equal(await codeOf(sandbox.moveFile("moved", "moved/d/into/itself")), "ERR_SANDBOX_INVALID_ARG");
      assert.equal(await codeOf(sandbox.moveFile("full/x", "b/below")), "ERR_SANDBOX_INVALID_ARG");
      assert.equal(await codeOf(sandbox.moveFile(".", "x")), "ERR_SANDBOX_INVALID_ARG");
      assert.equal((await sandbox.stat("full/x")).type, "file");
    });

    test("mkdir makes all of it, and is content with what is there", async (t) => {
      const sandbox = provider.world(t).make();
      await sandbox.mkdir("a/b/c");
      await sandbox.mkdir("a/b/c/");
      assert.equal((await sandbox.stat("a/b/c")).type, "directory");
      await sandbox.writeFile("f", "x");
      for (const wrong of ["f", "f/below"]) assert.equal(await codeOf(sandbox.mkdir(wrong)), "ERR_SANDBOX_INVALID_ARG");
      assert.equal(await sandbox.readFile("f"), "x");
    });

    test("C026 unusual names are names", async (t) => {
      const sandbox = provider.world(t).make();
      const names = ["a b", "q'u\"o", "$(touch pwned)", "-rf", "*", "\u{1F600}", "e\u0301", "back\\slash", "#", "~", "%s", "--", "=x 1"];
      if (!provider.facts.refusesControlCharacters) names.push("x\ny");
      for (const name of names) {
        const path = name === "~" ? "./~" : name;
        await sandbox.mkdir(`u/${name}`);
        await sandbox.writeFile(path, "1");
        assert.equal((await sandbox.stat(path)).size, 1, name);
        await sandbox.moveFile(path, `u/${name}/${name}`);
        assert.deepEqual((await sandbox.listDirectory(`u/${name}`)).map((entry) => entry.name), [name]);
      }
      const listed = (await sandbox.listDirectory("u")).map(({ name }) => name);
      assert.deepEqual(listed, names.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))));
      for (const name of names) assert.equal(await sandbox.deleteFile(`u/${name}/${name}`), true, name);
      assert.equal(await sandbox.stat("pwned"), null);
      assert.equal(await codeOf(sandbox.stat("")), "ERR_SANDBOX_INVALID_ARG");
      assert.equal(await codeOf(sandbox.stat("a\0b")), "ERR_SANDBOX_INVALID_ARG");
    });

    test("a call may start the sandbox, and be cancelled", async (t) => {
      const sandbox = provider.world(t).make();
      assert.equal(await sandbox.stat("absent"), null);
      const reason = new Error("no more");
      assert.equal(await rejection(sandbox.listDirectory(".", { signal: AbortSignal.abort(reason) })), reason);
      await sandbox.close();
      assert.equal(await codeOf(sandbox.mkdir("x")), "ERR_SANDBOX_CLOSED");
    });
  });
}
