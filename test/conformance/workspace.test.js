// Workspaces: seeding, guests, what comes back, the end. The same over every provider.
import assert from "node:assert/strict";
import { chmodSync, existsSync, lstatSync, mkdirSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";

import { SandboxToolkit } from "cloudsandbox";
import { Workspace } from "cloudsandbox/workspace";

import { tempDir } from "../support/temp.js";
import { eventually, rejection } from "../support/wait.js";
import { providers } from "./providers.js";

const ALL_BYTES = Buffer.from(Uint8Array.from({ length: 256 }, (_, index) => index));

/** Makes files; text that begins with "-> " is a link. */
function fill(folder, files) {
  for (const [name, contents] of Object.entries(files)) {
    const file = path.join(folder, name);
    mkdirSync(path.dirname(file), { recursive: true });
    if (typeof contents === "string" && contents.startsWith("-> ")) symlinkSync(contents.slice(3), file);
    else writeFileSync(file, contents);
  }
  return folder;
}

/** A workspace that is closed when the test ends. */
function open(t, options) {
  const workspace = new Workspace(options);
  t.after(() => workspace.close());
  return workspace;
}

const reasons = ({ skipped }) => Object.fromEntries(skipped.map((it) => [it.path, it.reason]));

for (const provider of providers) {
  describe(`workspace, ${provider.name}`, { concurrency: 4 }, () => {
    test("C084 seeded: exact bytes, modes, inner links; no secrets, nothing from outside, and the list of what was left out", async (t) => {
      const sandbox = provider.world(t).make();
      const base = tempDir(t);
      fill(base, { "outside/k": "secret" });
      const seedFrom = fill(path.join(base, "project"), {
        "all.bin": ALL_BYTES, "empty": "", "run.sh": "#!/bin/sh\necho ran\n", "a b/q'u\"o/$(x).txt": "odd", "-rf": "option", [`${"long/".repeat(30)}${"n".repeat(120)}`]: "long",
        "link": "-> all.bin", "d/up": "-> ../run.sh", "folder-link": "-> d", "dangling": "-> later", "out": "-> ../outside/k", "abs": `-> ${base}/outside`, "inner-abs": `-> ${base}/project/all.bin`,
        ".env": "S=1", "d/.env.local": "S=1", "id.pem": "x", "id_rsa": "x", "KEY.PEM": "x", "credentials.json": "x", "secrets/k": "x", "d/secrets/k": "x", ".git/config": "x",
        "node_modules/m/i.js": "x", ".env.example": "S=", "dist/x": "x",
      });
      chmodSync(path.join(seedFrom, "run.sh"), 0o755);
      chmodSync(path.join(seedFrom, "empty"), 0o600);
      mkdirSync(path.join(seedFrom, "void/inner"), { recursive: true });
      const progress = [];
      const workspace = open(t, { backend: sandbox, seedFrom, seedExcludes: ["dist/", "!.env.example"], onSeedProgress: (told) => progress.push(told) });
      const guest = workspace.attach();

      const { output } = await guest.shell("./run.sh; stat -c '%a %n' run.sh empty; cat ./-rf d/up; ls -d void/inner; readlink link folder-link dangling inner-abs");
      assert.equal(output, "ran\n755 run.sh\n600 empty\noption#!/bin/sh\necho ran\nvoid/inner\nall.bin\nd\nlater\nall.bin\n");
      assert.deepEqual(Buffer.from(await guest.readBytes("all.bin")), ALL_BYTES);
      assert.equal(await guest.readFile("a b/q'u\"o/$(x).txt"), "odd");
      assert.equal(await guest.readFile(`${"long/".repeat(30)}${"n".repeat(120)}`), "long");
      for (const name of [".env", "d/.env.local", "id.pem", "id_rsa", "KEY.PEM", "credentials.json", "secrets/k", "d/secrets/k", ".git/config", "node_modules/m/i.js", "dist/x", "out", "abs/k"]) {
        assert.equal(await guest.readFile(name), null, name);
      }
      const why = reasons(workspace.seedResult);
      assert.equal(why.secrets, "left out by the pattern secrets/");
      assert.equal(why.out, "a link that leads out of the folder");
      assert.equal(why.abs, "a link that leads out of the folder");
      assert.deepEqual(Object.keys(why).sort(), [".env", ".git", "KEY.PEM", "abs", "credentials.json", "d/.env.local", "d/secrets", "dist", "id.pem", "id_rsa", "node_modules", "out", "secrets"].sort());
      assert.equal(workspace.seedResult.files, 7);
      const bytes = 256 + 0 + 19 + 3 + 6 + 4 + 2;
      assert.deepEqual(progress.at(-1), { files: 7, bytes, totalFiles: 7, totalBytes: bytes });
      const { output: own } = await guest.shell("ls -A | grep cloudsandbox; true");
      assert.equal(own, "", "nothing of ours stays");
    });

    test("what is there already is not sent again", async (t) => {
      const sandbox = provider.world(t).make();
      const seedFrom = fill(tempDir(t), { "a": "1", "back\\slash": "2", "b": "3", "c": "4" });
      // Several workspaces over one sandbox, of which only the last is closed.
      await new Workspace({ backend: sandbox, seedFrom }).start();
      writeFileSync(path.join(seedFrom, "b"), "changed");
      chmodSync(path.join(seedFrom, "c"), 0o755);
      const again = open(t, { backend: sandbox, seedFrom });
      await again.start();
      const { files, bytes, unchanged } = again.seedResult;
      assert.deepEqual({ files, bytes, unchanged }, { files: 2, bytes: 8, unchanged: 2 });
      assert.equal((await sandbox.shell("cat b; [ -x c ] && echo program")).output, "changedprogram\n");
    });

    test("guests see each other's files; one that is read-only is refused before anything exists", async (t) => {
      const world = provider.world(t);
      const workspace = open(t, { backend: world.make() });
      const reviewer = workspace.attach({ mode: "read-only" });
      const tools = Object.fromEntries(new SandboxToolkit(reviewer, { name: "r" }).getTools().map((tool) => [tool.name, tool]));
      const refused = [
        () => reviewer.shell("touch x"), () => reviewer.run("1"), () => reviewer.exec({ argv: ["touch", "x"] }), () => reviewer.writeFile("x", "y"),
        () => reviewer.writeStream("x"), () => reviewer.deleteFile("x"), () => reviewer.moveFile("x", "y"), () => reviewer.mkdir("x"),
        () => tools.sandbox_r_shell.execute({ command: "touch x" }), () => tools.sandbox_r_run.execute({ code: "1" }),
        () => tools.sandbox_r_write_file.execute({ path: "x", contents: "y" }),
      ];
      for (const call of refused) {
        const error = await rejection(call());
        assert.deepEqual([error.code, error.mayHaveRun, /read-only/.test(error.message)], ["ERR_SANDBOX_FORBIDDEN", false, true], error.message);
      }
      assert.deepEqual(world.existing(), []);

      const coder = workspace.attach();
      await coder.writeFile("dir/main.py", "print(1)");
      assert.equal((await workspace.attach().shell("cat dir/main.py")).output, "print(1)");
      assert.equal(await reviewer.readFile("dir/main.py"), "print(1)");
      assert.equal(Buffer.from(await reviewer.readBytes("dir/main.py")).toString(), "print(1)");
      assert.ok((await reviewer.listFiles()).some((file) => file.path === "dir/main.py"));
      const own = Object.fromEntries(reviewer.getTools().map((tool) => [tool.name, tool]));
      assert.deepEqual(Object.keys(own), ["sandbox_workspace_read_file", "sandbox_workspace_list_files"]);
      assert.equal(await own.sandbox_workspace_list_files.execute({ path: "dir" }), "dir/main.py (8 bytes)\n");
      assert.equal(await own.sandbox_workspace_read_file.execute({ path: "dir/main.py" }), "print(1)");
      assert.equal(world.existing().length, 1);
    });

    test("a guest has the verbs of paths and the streams; a read-only one those that only look", async (t) => {
      const workspace = open(t, { backend: provider.world(t).make() });
      const [coder, reviewer] = [workspace.attach(), workspace.attach({ mode: "read-only" })];
      await coder.start();
      const { paths, streams, spawn } = coder.capabilities;
      assert.equal(spawn, false);
      await coder.writeFile("d/f", "text");
      const textOf = async (stream) => Buffer.from(await new Response(stream).arrayBuffer()).toString();
      if (paths) {
        await coder.mkdir("e/g");
        await coder.moveFile("d/f", "e/f");
        const { type, size } = await reviewer.stat("e/f");
        assert.deepEqual([type, size, await reviewer.stat("d/f")], ["file", 4, null]);
        assert.deepEqual((await reviewer.listDirectory("e")).map((entry) => [entry.name, entry.type]), [["f", "file"], ["g", "directory"]]);
        assert.ok((await reviewer.listDirectory()).some(({ name }) => name === "d"));
        assert.deepEqual([await coder.deleteFile("e", { recursive: true }), await coder.deleteFile("e")], [true, false]);
      } else {
        const refused = await Promise.all([reviewer.stat("d"), reviewer.listDirectory(), coder.mkdir("e")].map(rejection));
        for (const { code } of refused) assert.equal(code, "ERR_SANDBOX_UNSUPPORTED");
      }
      if (streams) {
        const writer = (await coder.writeStream("s")).getWriter();
        await writer.write("one ");
        assert.equal(await reviewer.readFile("s"), null);
        await writer.write("two");
        await writer.close();
        assert.equal(await textOf(await reviewer.readStream("s")), "one two");
        assert.equal(await reviewer.readStream("none"), null);
      } else {
        const refused = await Promise.all([reviewer.readStream("s"), coder.writeStream("s")].map(rejection));
        for (const { code } of refused) assert.equal(code, "ERR_SANDBOX_UNSUPPORTED");
      }
    });

    test("detach ends the guest's own calls, and no others", async (t) => {
      const workspace = open(t, { backend: provider.world(t).make() });
      const [one, other] = [workspace.attach(), workspace.attach()];
      await workspace.start();
      const ended = [one.shell("sleep 30"), one.exec({ command: "sleep 30" })].map(rejection);
      const goesOn = other.shell("sleep 1; echo done");
      await other.writeFile("f", "x");
      await one.detach();
      for (const error of await Promise.all(ended)) assert.deepEqual([error.code, /detached/.test(error.message)], ["ERR_SANDBOX_CLOSED", true]);
      assert.equal((await rejection(one.readFile("f"))).code, "ERR_SANDBOX_CLOSED");
      assert.equal((await goesOn).output, "done\n");
      assert.equal(await other.readFile("f"), "x");
      await one.close();
    });

    test("around commands changes go up and come back, and nothing leaves the folder", async (t) => {
      const base = tempDir(t);
      const folder = fill(path.join(base, "project"), { "a": "1", "keep": "k", "both": "0", "gone": "g", "away": `-> ${base}/elsewhere` });
      mkdirSync(path.join(base, "elsewhere"));
      const workspace = open(t, { backend: provider.world(t).make(), seedFrom: folder, sync: { up: true, down: true, maxFileBytes: 100 } });
      const guest = workspace.attach();
      await guest.shell("printf 2 >a; mkdir -p new/deep; printf n >new/deep/f; printf '#!/bin/sh\\n' >p.sh; chmod +x p.sh");
      assert.equal(readFileSync(path.join(folder, "a"), "utf8"), "2");
      assert.equal(readFileSync(path.join(folder, "new/deep/f"), "utf8"), "n");
      assert.equal(lstatSync(path.join(folder, "p.sh")).mode & 0o111, 0o111);
      assert.equal(workspace.lastSync.down.files, 3);

      writeFileSync(path.join(folder, "a"), "33");
      writeFileSync(path.join(folder, "fresh"), "f");
      rmSync(path.join(folder, "gone"));
      const { output } = await guest.shell("cat a fresh");
      assert.equal(output, "33f");
      assert.deepEqual([workspace.lastSync.up.files, workspace.lastSync.down.files], [2, 0]);
      assert.ok(!existsSync(path.join(folder, "gone")), "what was deleted here does not come back");

      const running = guest.shell("printf there >both; sleep 1");
      await eventually("the command has written", async () => (await workspace.sandbox.readFile("both")) === "there");
      writeFileSync(path.join(folder, "both"), "here");
      await running;
      assert.equal(readFileSync(path.join(folder, "both"), "utf8"), "here");

      await guest.shell(`rm -f both; mkdir -p away .git/hooks .GIT secrets; for f in away/f .git/hooks/pre-commit .GIT/config secrets/k .env "$(printf 'new\\nline')"; do echo x >"$f"; done; head -c 101 /dev/zero >big; ln -s /etc/hostname l`);
      assert.deepEqual(readdirSync(path.join(base, "elsewhere")), []);
      assert.deepEqual(readdirSync(folder).sort(), ["a", "away", "both", "fresh", "keep", "new", "p.sh"].sort());
      const why = reasons(workspace.lastSync.down);
      assert.match(why["away/f"], /a link stands in the place/);
      assert.match(why[".git/hooks/pre-commit"], /repository's own/);
      assert.match(why.secrets, /secrets\//);
      assert.match(why["new\nline"], /control characters/);
      assert.match(why.big, /more than 100 bytes/);
      assert.equal(workspace.lastSync.error, undefined);
    });

    test("exportTo() brings it all into a folder, and says what it left", async (t) => {
      const sandbox = provider.world(t).make();
      const workspace = open(t, { backend: sandbox });
      const guest = workspace.attach();
      await guest.writeFile("bin", ALL_BYTES);
      await guest.shell("mkdir -p d node_modules/m; printf x >d/f; printf y >node_modules/m/i; printf z >skip.log; chmod +x d/f; ln -s d/f link");
      const folder = path.join(tempDir(t), "made/for/it");
      const result = await workspace.exportTo(folder, { exclude: ["*.log"] });
      assert.deepEqual([readFileSync(path.join(folder, "bin")), readFileSync(path.join(folder, "d/f"), "utf8")], [ALL_BYTES, "x"]);
      assert.equal(lstatSync(path.join(folder, "d/f")).mode & 0o777, 0o755);
      assert.ok(!existsSync(path.join(folder, "node_modules")) && !existsSync(path.join(folder, "skip.log")) && !existsSync(path.join(folder, "link")));
      const why = reasons(result);
      assert.match(why.node_modules, /node_modules\//);
      assert.match(why["skip.log"], /\*\.log/);
      const again = await workspace.exportTo(folder, { exclude: ["*.log"] });
      assert.deepEqual([again.files, again.unchanged], [0, result.files]);
      const few = await workspace.exportTo(path.join(folder, "few"), { maxFiles: 1, exclude: ["few/"] });
      assert.ok(few.files === 1 && Object.values(reasons(few)).some((reason) => /more than 1 files/.test(reason)));
    });

    test("after a loss the next call finds the files again", async (t) => {
      const world = provider.world(t);
      const seedFrom = fill(tempDir(t), { "a/f": "seed" });
      const workspace = open(t, { backend: world.make(), seedFrom });
      const guest = workspace.attach();
      await guest.writeFile("made", "x");
      await world.lose(workspace.sandbox);
      const error = await rejection(guest.shell("cat a/f"));
      assert.deepEqual([error.code, /sets up the workspace/.test(error.message)], ["ERR_SANDBOX_LOST", true], error.message);
      assert.equal((await guest.shell("cat a/f")).output, "seed");
      assert.equal(await guest.readFile("made"), null);
    });

    test("its time ends it, with a warning before, and extend() moves the end", async (t) => {
      const world = provider.world(t);
      const workspace = open(t, { backend: world.make(), ttlSeconds: 4, warnSeconds: 2 });
      const told = [];
      workspace.on("expiring", ({ secondsLeft }) => told.push(secondsLeft));
      const expired = new Promise((resolve) => workspace.once("expired", resolve));
      const guest = workspace.attach();
      await guest.shell("true");
      const before = workspace.expiresAt;
      await workspace.extend(2);
      assert.ok(Math.abs(workspace.expiresAt - before - 2000) < 100);
      const running = rejection(guest.shell("sleep 30"));
      const { closed } = await expired;
      await closed;
      assert.ok(told.length === 1 && told[0] <= 2.1 && told[0] > 0.5, String(told));
      assert.equal((await running).code, "ERR_SANDBOX_CLOSED");
      const error = await rejection(guest.readFile("f"));
      assert.deepEqual([error.code, /time to live of 6 seconds/.test(error.message)], ["ERR_SANDBOX_CLOSED", true], error.message);
      assert.deepEqual(world.existing(), []);
    });
  });
}
