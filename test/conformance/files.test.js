// Files: every byte and every name comes back, and code and commands see the same directory.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { rejection } from "../support/wait.js";
import { providers } from "./providers.js";

for (const provider of providers) {
  const { facts } = provider;

  describe(`files, ${provider.name}`, { concurrency: 4 }, () => {
    test("C022 every byte value, as base64, both ways", async (t) => {
      const sandbox = provider.world(t).make();
      const bytes = Buffer.alloc(
        102_400,
        Buffer.from(Uint8Array.from({ length: 256 }, (_, index) => index)),
      );
      await sandbox.writeFile("all.bin", bytes.toString("base64"), "base64");
      assert.ok((await sandbox.readFile("all.bin", "base64")) === bytes.toString("base64"));
      assert.deepEqual(Buffer.from(await sandbox.readBytes("all.bin")), bytes);
      assert.equal((await sandbox.shell("wc -c < all.bin")).output.trim(), "102400");
      await sandbox.writeFile("same.bin", new Uint8Array(bytes));
      assert.equal((await sandbox.shell("cmp all.bin same.bin && echo equal")).output, "equal\n");
    });

    test("C023 sizes from 10 bytes to 16 MB", async (t) => {
      const sandbox = provider.world(t).make();
      for (const size of [10, 20_000, 65_536, 1_048_576, 16_777_216]) {
        await sandbox.writeFile("sized", "x".repeat(size));
        assert.equal((await sandbox.shell("wc -c < sized")).output.trim(), String(size));
      }
      assert.equal((await sandbox.readBytes("sized")).length, 16_777_216);
    });

    test("C202 a pipe is refused in words, and holds up no close", async (t) => {
      const sandbox = provider.world(t).make();
      await sandbox.shell("mkdir d; mkfifo d/pipe");
      const began = performance.now();
      const error = await rejection(sandbox.readFile("d/pipe"));
      assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG", error.message);
      assert.match(error.message, /no regular file|not a regular file/);
      await sandbox.close();
      assert.ok(performance.now() - began < 10_000);
    });

    test("C197 a name that is no UTF-8 does not keep the other files from being listed", { skip: !facts.listsFiles }, async (t) => {
      const sandbox = provider.world(t).make();
      await sandbox.shell("mkdir e; mkdir \"$(printf 'd\\376')\"; touch \"$(printf 'a\\377')\" b e/f; echo 1 > \"$(printf 'd\\376')/c\"");
      const files = (await sandbox.listFiles()).map(({ path }) => path);
      for (const name of ["b", "e/f"]) assert.ok(files.includes(name), files.join());
    });

    test("C024 an empty file is empty, a missing one is null", async (t) => {
      const sandbox = provider.world(t).make();
      await sandbox.writeFile("e", "");
      assert.equal(await sandbox.readFile("e"), "");
      assert.equal(await sandbox.readFile("e", "base64"), "");
      assert.equal(await sandbox.readFile("absent"), null);
      assert.equal(await sandbox.readFile("no/such/folder/f"), null);
      assert.equal(await sandbox.readBytes("absent"), null);
    });

    test("C025 folders are made on the way", async (t) => {
      const sandbox = provider.world(t).make();
      await sandbox.writeFile("a/b/c/d.txt", "x");
      assert.equal(await sandbox.readFile("a/b/c/d.txt"), "x");
      assert.equal((await sandbox.shell("cat a/b/c/d.txt")).output, "x");
    });

    test("C026 unusual names are names", async (t) => {
      const sandbox = provider.world(t).make();
      const list = async () => {
        // The code may be a file there itself, while it runs.
        const others = "[n for n in os.listdir('.') if n != os.path.basename(globals().get('__file__', ''))]";
        const { output } = await sandbox.run(`import os, json; print(json.dumps(sorted(${others})))`);
        return JSON.parse(output);
      };
      const before = await list();
      const names = [
        "a b",
        "q'u\"o",
        "$(touch pwned)",
        "-rf",
        "*",
        "\u{1F600}",
        "e\u0301",
        "\u00e9",
        "back\\slash",
        "#",
        "~",
      ];
      if (!facts.refusesControlCharacters) names.push("x\ny");
      // Without anything before it `~` is the home.
      const path = (name) => (name === "~" ? "./~" : name);
      for (const [index, name] of names.entries()) {
        await sandbox.writeFile(path(name), `content ${index}`);
      }
      for (const [index, name] of names.entries()) {
        assert.equal(await sandbox.readFile(path(name)), `content ${index}`, name);
      }
      const plain = names.map((name) => name.replace(/^\.\//, ""));
      assert.deepEqual((await list()).sort(), [...before, ...plain].sort());
      assert.equal(await sandbox.readFile("pwned"), null);
    });

    test("C026 control characters in a name are refused where that is the rule", async (t) => {
      const sandbox = provider.world(t).make();
      for (const name of facts.refusesControlCharacters ? ["x\ny", "x\ty", "\u001b[2J"] : []) {
        for (const call of [() => sandbox.writeFile(name, "x"), () => sandbox.readFile(name)]) {
          const error = await rejection(call());
          assert.equal(error.name, "PathSecurityError");
          assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG");
        }
      }
      for (const call of [() => sandbox.writeFile("a\0b", "x"), () => sandbox.readFile("a\0b")]) {
        assert.equal((await rejection(call())).code, "ERR_SANDBOX_INVALID_ARG");
      }
    });

    test("C027 content that a shell would change is not changed", async (t) => {
      const sandbox = provider.world(t).make();
      const content = "'q' \"d\" \\ \\\\ \\n\nEOF\n$X `date` $(id)\r\nlast line without an end";
      await sandbox.writeFile("f", content);
      assert.equal(await sandbox.readFile("f"), content);
      assert.equal((await sandbox.shell("cat f")).output, content);
    });

    test("C028 a folder is not a file, and a file is not a folder", async (t) => {
      const sandbox = provider.world(t).make();
      await sandbox.writeFile("folder/file.txt", "x");
      for (const [call, path] of [
        [() => sandbox.readFile("."), "."],
        [() => sandbox.readFile("folder"), "folder"],
        [() => sandbox.writeFile("folder", "x"), "folder"],
        [() => sandbox.readFile("folder/file.txt/child"), "folder/file.txt/child"],
        [() => sandbox.writeFile("folder/file.txt/child", "x"), "folder/file.txt/child"],
      ]) {
        const error = await rejection(call());
        assert.match(error.code, /^ERR_SANDBOX_/);
        assert.ok(error.message.includes(path), error.message);
      }
      assert.equal(await sandbox.readFile("folder/file.txt"), "x");
    });

    test("C029 NUL and a byte order mark are content", async (t) => {
      const sandbox = provider.world(t).make();
      await sandbox.writeFile("n", "a\u0000b");
      assert.equal(await sandbox.readFile("n"), "a\u0000b");
      assert.equal(await sandbox.readFile("n", "base64"), Buffer.from("a\0b").toString("base64"));
      await sandbox.writeFile("bom", "\ufeffx");
      assert.equal(await sandbox.readFile("bom"), "\ufeffx");
      assert.equal(
        await sandbox.readFile("bom", "base64"),
        Buffer.from("\ufeffx").toString("base64"),
      );
    });

    test("C031 one directory for files, commands and code", async (t) => {
      const sandbox = provider.world(t).make();
      await sandbox.writeFile("rel.txt", "1");
      assert.deepStrictEqual(await sandbox.shell("cat rel.txt"), { output: "1", exitCode: 0 });
      assert.deepStrictEqual(await sandbox.run("print(open('rel.txt').read())"), {
        output: "1\n",
        exitCode: 0,
      });
      await sandbox.run("open('made.txt', 'w').write('2')");
      assert.equal(await sandbox.readFile("made.txt"), "2");
    });

    test("C032 bytes that are not UTF-8", async (t) => {
      const sandbox = provider.world(t).make();
      await sandbox.shell(String.raw`printf '\377\376A' > f`);
      assert.equal(await sandbox.readFile("f"), "\ufffd\ufffdA");
      assert.equal(await sandbox.readFile("f", "base64"), "//5B");
    });

    test("K7 bytes 0, 255 and 128 as base64", async (t) => {
      const sandbox = provider.world(t).make();
      await sandbox.writeFile("b", "AP+A", "base64");
      assert.equal(await sandbox.readFile("b", "base64"), "AP+A");
      assert.deepEqual([...(await sandbox.readBytes("b"))], [0, 255, 128]);
    });

    test("K7 a sandbox that is gone is not a missing file", async (t) => {
      const world = provider.world(t);
      const sandbox = world.make({ onLost: "reject" });
      await sandbox.writeFile("f", "x");
      world.lose(sandbox);
      assert.equal((await rejection(sandbox.readFile("f"))).code, "ERR_SANDBOX_LOST");
      assert.equal((await rejection(sandbox.readFile("f"))).code, "ERR_SANDBOX_LOST");
    });

    test("D6 base64 is strict, but for padding and line breaks", async (t) => {
      const sandbox = provider.world(t).make();
      for (const bad of ["***", "QUJD=", "A", "QU JD", "QUJ\u00e9", "====", "QQ==QQ=="]) {
        assert.equal(
          (await rejection(sandbox.writeFile("bad", bad, "base64"))).code,
          "ERR_SANDBOX_INVALID_ARG",
          bad,
        );
      }
      assert.equal(await sandbox.readFile("bad"), null);
      for (const good of ["QUI=", "QUI", "QU\nI=", "Q\r\nUI=\r\n"]) {
        await sandbox.writeFile("good", good, "base64");
        assert.equal(await sandbox.readFile("good"), "AB", JSON.stringify(good));
      }
    });

    test("D6 arguments of the wrong kind reject, naming the argument", async (t) => {
      const world = provider.world(t);
      const sandbox = world.make();
      for (const [call, name] of [
        [() => sandbox.writeFile(7, "x"), /path/],
        [() => sandbox.writeFile("f", 7), /contents/],
        [() => sandbox.writeFile("f", "x", "hex"), /encoding/],
        [() => sandbox.readFile(undefined), /path/],
        [() => sandbox.readFile("f", "latin1"), /encoding/],
        [() => sandbox.shell(7), /command/],
        [() => sandbox.run(undefined), /code/],
      ]) {
        const error = await rejection(call());
        assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG");
        assert.match(error.message, name);
      }
      assert.deepEqual(world.existing(), []);
    });

    test("D8 listFiles() gives the regular files with their sizes, and refuses to give too many", async (t) => {
      const sandbox = provider.world(t).make();
      if (!facts.listsFiles) {
        assert.equal((await rejection(sandbox.listFiles())).code, "ERR_SANDBOX_UNSUPPORTED");
        return;
      }
      // A home is not empty: its image has put files there.
      const before = await sandbox.listFiles();
      await sandbox.writeFile("b/c", "123");
      await sandbox.writeFile("a", "");
      await sandbox.shell("ln -s a link; mkdir empty");
      const byPath = (x, y) => (x.path < y.path ? -1 : 1);
      assert.deepEqual(
        (await sandbox.listFiles()).sort(byPath),
        [...before, { path: "a", size: 0 }, { path: "b/c", size: 3 }].sort(byPath),
      );
      const error = await rejection(sandbox.listFiles({ maxEntries: 1 }));
      assert.equal(error.code, "ERR_SANDBOX_TOO_LARGE");
      assert.match(error.message, /more than 1 files; raise `maxEntries`, or list a part with a command/);
    });

    test("D8 a file that is too large is refused with a way to get at it", async (t) => {
      const sandbox = provider.world(t).make();
      await sandbox.writeFile("f", "12345678");
      for (const call of [() => sandbox.readFile("f", "utf8", { maxBytes: 7 }), () => sandbox.readBytes("f", { maxBytes: 7 })]) {
        const error = await rejection(call());
        assert.equal(error.code, "ERR_SANDBOX_TOO_LARGE");
        assert.match(error.message, /7 bytes.*; pass a larger `maxBytes`, or read a part of it with a command/);
      }
    });

    test("D8 what is written replaces what was there", async (t) => {
      const sandbox = provider.world(t).make();
      await sandbox.writeFile("d/f", "a long first content");
      await sandbox.writeFile("d/f", "short");
      assert.equal(await sandbox.readFile("d/f"), "short");
      assert.equal((await sandbox.shell("ls -A d")).output, "f\n", "no temporary file is left");
    });

    if (!facts.replacesFilesAtOnce) return;
    test("D8 of writes at the same time one wins, whole", async (t) => {
      const sandbox = provider.world(t).make();
      await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          sandbox.writeFile("d/raced", String(index).repeat(1000)),
        ),
      );
      assert.match(await sandbox.readFile("d/raced"), /^(\d+?)\1{999}$/);
      assert.equal((await sandbox.shell("ls -A d")).output, "raced\n", "no temporary file is left");
    });
  });
}
