// Images that have less than the usual one, and agents with containers of their own; on the real engines.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";

import { DockerSandbox, SandboxAgent } from "cloudsandbox";

import { rejection } from "../support/wait.js";
import { engines, open } from "./support.js";

/** A repository of this machine, with a branch. */
function repository(t) {
  const dir = mkdtempSync("/tmp/cloudsandbox-repository-");
  t.after(() => rmSync(dir, { recursive: true }));
  const git = (...args) => execFileSync("git", ["-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.org", ...args], { stdio: "pipe" });
  git("init", "--quiet", "-b", "main");
  writeFileSync(path.join(dir, "file"), "main\n");
  writeFileSync(path.join(dir, "run.sh"), "echo ran\n", { mode: 0o755 });
  git("add", ".");
  git("commit", "--quiet", "-m", "one");
  git("checkout", "--quiet", "-b", "other");
  writeFileSync(path.join(dir, "file"), "other\n");
  git("commit", "--quiet", "-am", "two");
  git("checkout", "--quiet", "main");
  return dir;
}

for (const engine of engines) {
  describe(`images, ${engine.name}`, { concurrency: 2 }, () => {
    for (const image of ["cloudsandbox/busybox", "cloudsandbox/dash"]) {
      test(`${image}: commands, streams, limits, files`, async (t) => {
        const sandbox = open(t, engine).make({ image });
        const result = await sandbox.exec({ command: "echo out; echo err >&2; exit 3" });
        assert.deepEqual([result.stdout, result.stderr, result.exitCode], ["out\n", "err\n", 3]);
        assert.deepEqual(await sandbox.exec({ argv: ["cat"], stdin: "given\n" }).then(({ stdout }) => stdout), "given\n");
        const bytes = Uint8Array.from({ length: 70_000 }, (_, index) => index * 7);
        await sandbox.writeFile("deep/er/b in", bytes);
        assert.deepEqual(await sandbox.readBytes("deep/er/b in"), bytes);
        assert.equal(await sandbox.readFile("none"), null);
        assert.deepEqual(await sandbox.listFiles(), [{ path: "deep/er/b in", size: 70_000 }]);
        const late = await sandbox.exec({ command: "echo begun; sleep 300 & sleep 300", timeoutSeconds: 2 });
        assert.deepEqual([late.status, late.stdout], ["timedOut", "begun\n"]);
        const left = await sandbox.shell("for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done 2>/dev/null | grep -c '^sleep 300' || true");
        assert.equal(left.output.trim(), "0");
      });
    }

    test("without bash the shell is sh; without an interpreter code says what is missing", async (t) => {
      const sandbox = open(t, engine).make({ image: "cloudsandbox/busybox" });
      assert.deepEqual(await sandbox.shell('echo "[$BASH_VERSION]"'), { output: "[]\n", exitCode: 0 });
      for (const [language, program] of [["python", "python3"], ["node", "node"]]) {
        const outcome = await sandbox.run("1", { language }).then(({ exitCode, output }) => `${exitCode} ${output}`, (error) => error.message);
        assert.match(outcome, new RegExp(program));
      }
      const error = await rejection(open(t, engine).make({ image: "cloudsandbox/busybox", shell: "bash" }).shell("true")).catch((it) => it);
      assert.match(error.message, /bash/);
    });

    test("without any shell the start names the image, and nothing is left", async (t) => {
      const { make, left } = open(t, engine);
      const error = await rejection(make({ image: "cloudsandbox/noshell" }).start());
      assert.equal(error.code, "ERR_SANDBOX_UNSUPPORTED");
      assert.match(error.message, /cloudsandbox\/noshell.*shell/);
      assert.deepEqual(left().filter(({ State }) => State === "running"), []);
    });

    test("an image that is not there, and whose registry cannot be reached", async (t) => {
      const { make } = open(t, engine);
      const never = await rejection(make({ image: "cloudsandbox/nosuch" }).start());
      assert.equal(never.code, "ERR_SANDBOX_NOT_FOUND", never.message);
      const pulled = await rejection(make({ image: "registry.invalid/nosuch:1", pull: "missing" }).start());
      assert.match(pulled.message, /registry\.invalid/);
      assert.equal(pulled.mayHaveRun, false);
    });

    test("the usual image is taken when none is named", async (t) => {
      const { options } = open(t, engine);
      const sandbox = new DockerSandbox({ host: options.host, labels: options.labels });
      t.after(() => sandbox.close());
      assert.equal((await sandbox.run("print(6 * 7)")).output, "42\n");
      await sandbox.close();
    });
  });

  describe(`agents, ${engine.name}`, { concurrency: 2 }, () => {
    test("files, variables, a snapshot, and a resume in a container of its own", async (t) => {
      const { options, left } = open(t, engine);
      const agent = new SandboxAgent({
        backend: "docker", docker: options, workspace: { files: [{ path: "src/a.py", contents: "import os; print(os.environ['WHO'])" }], env: { WHO: "me" } },
      });
      await agent.start();
      assert.deepEqual(await agent.shell("python3 src/a.py; echo more > more"), { output: "me\n", exitCode: 0 });
      const [first] = left();
      const snapshot = await agent.snapshot({ exclude: ["*.pyc"] });
      assert.deepEqual(snapshot.files.map((it) => it.path), ["more", "src/a.py"]);
      await agent.resume(JSON.parse(JSON.stringify(snapshot)));
      assert.notEqual(left()[0].Id, first.Id);
      assert.deepEqual(await agent.shell("python3 src/a.py; cat more"), { output: "me\nmore\n", exitCode: 0 });
      await agent.close();
      assert.deepEqual(left(), []);
    });

    test("clones are made outside and copied when there is no network, with a word", async (t) => {
      const { options } = open(t, engine);
      const repo = repository(t);
      const words = [];
      const listen = (warning) => words.push(warning.code);
      process.on("warning", listen);
      const agent = new SandboxAgent({
        backend: "docker", docker: options,
        workspace: { gitClones: [{ repo, path: "r" }, { repo, path: "deep/o", ref: "other" }, { repo: `file://${repo}`, path: "~/h" }] },
      });
      await agent.start();
      const { output } = await agent.shell("cat r/file deep/o/file h/file; sh -c ./r/run.sh; git -C r -c safe.directory='*' log --oneline | wc -l; test -x r/run.sh && echo executable");
      assert.equal(output, "main\nother\nmain\nran\n1\nexecutable\n");
      await agent.close();
      process.off("warning", listen);
      const second = new SandboxAgent({ backend: "docker", docker: options, workspace: { gitClones: [{ repo, path: "r", ref: "none" }] } });
      const error = await rejection(second.start());
      await second.close();
      assert.equal(error.code, "ERR_SANDBOX_NOT_FOUND");
      assert.ok(words.filter((code) => code === "CLOUDSANDBOX_CLONED_HERE").length <= 1);
    });

    test("with a network git runs in the container, where this machine's repositories are not", { skip: engine.name === "rootless" }, async (t) => {
      const { options } = open(t, engine);
      const repo = repository(t);
      const agent = new SandboxAgent({ backend: "docker", docker: { ...options, network: "bridge" }, workspace: { gitClones: [{ repo, path: "r" }] } });
      const error = await rejection(agent.start());
      await agent.close();
      assert.match(error.message, /git clone of gitClones\[0\].*failed with exit code 128/s);
    });
  });
}
