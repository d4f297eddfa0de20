// `~` is the home of the sandbox's user, for files, working directories and the shell alike.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { rejection } from "../support/wait.js";
import { providers } from "./providers.js";

for (const provider of providers) {
  const skip = !provider.facts.knowsHome;

  describe(`home, ${provider.name}`, { concurrency: 2 }, () => {
    test("C165 `~/a.txt` is the same file for writeFile, the shell and readFile", { skip }, async (t) => {
      const sandbox = provider.world(t).make();
      await sandbox.writeFile("~/.sbx-test/a.txt", "x");
      assert.deepStrictEqual(await sandbox.shell("cat ~/.sbx-test/a.txt; rm -r ~/.sbx-test"), { output: "x", exitCode: 0 });
      await sandbox.shell("mkdir ~/.sbx-test; echo y > ~/.sbx-test/b.txt");
      assert.equal(await sandbox.readFile("~/.sbx-test/b.txt"), "y\n");
      assert.equal(await sandbox.readFile("~/.sbx-test/none"), null);
      await sandbox.shell("rm -r ~/.sbx-test");
    });

    test("C165 `~` and a folder below it are working directories", { skip }, async (t) => {
      const sandbox = provider.world(t).make();
      const command = 'cd "$(pwd -P)"; [ "$(pwd -P)" = "$(cd ~ && pwd -P)" ] && echo home';
      assert.equal((await sandbox.exec({ command, cwd: "~" })).stdout, "home\n");
      await sandbox.shell("mkdir ~/.sbx-dir");
      const { stdout } = await sandbox.exec({ command: "basename \"$(pwd -P)\"; rmdir ~/.sbx-dir", cwd: "~/.sbx-dir" });
      assert.equal(stdout, ".sbx-dir\n");
    });

    test("C165 nothing makes a folder that is named `~`", { skip }, async (t) => {
      const sandbox = provider.world(t).make();
      await sandbox.writeFile("~/.sbx-test-f", "x");
      assert.deepStrictEqual(await sandbox.shell("ls -d ./~* 2>&1 | grep -c '^[.]/~'; rm ~/.sbx-test-f"), {
        output: "0\n",
        exitCode: 0,
      });
    });

    test("C165 another user's home is refused before anything is sent", async (t) => {
      const world = provider.world(t);
      const sandbox = world.make();
      for (const call of [
        () => sandbox.writeFile("~other/f", "x"),
        () => sandbox.readFile("~other"),
        () => sandbox.readBytes("~root/.profile"),
        () => sandbox.exec({ command: "true", cwd: "~other" }),
      ]) {
        const error = await rejection(call());
        assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG");
        assert.match(error.message, /only "~" and "~\/\.\.\." are a home directory.*write "\.\/~\.\.\."/);
      }
      assert.deepEqual(world.existing(), []);
    });

    test("C165 behind a `./` and inside a name it is a character like any other", async (t) => {
      const sandbox = provider.world(t).make();
      for (const name of ["a~b", "dir/~", "./~x"]) {
        await sandbox.writeFile(name, name);
        assert.equal(await sandbox.readFile(name), name);
      }
      assert.equal((await sandbox.shell("cat 'a~b' 'dir/~' './~x'")).output, "a~bdir/~./~x");
    });
  });
}
