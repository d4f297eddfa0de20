// SandboxAgent on its own local workspace, and its rules for a remote one as a recording double
// sees them: the parts of contract item K12 that no provider changes.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";

import { SandboxAgent } from "cloudsandbox";

import { fakeSandbox } from "../support/fake.js";
import { runNode } from "../support/node.js";
import { mark } from "../support/processes.js";
import { tempDir } from "../support/temp.js";
import { HANG_MS, rejection } from "../support/wait.js";

function make(t, config) {
  const agent = new SandboxAgent({ backend: "unix-local", ...config });
  t.after(() => agent.close());
  return agent;
}

async function start(t, config) {
  const agent = make(t, config);
  await agent.start();
  return agent;
}

/** The agent's folder, as its own commands see it. */
async function folderOf(agent) {
  return (await agent.shell("pwd")).output.trim();
}

/** A git repository with two commits; `first` is the id of the first. */
function repository(t) {
  const dir = tempDir(t);
  const git = (...args) => {
    const run = spawnSync(
      "git",
      ["-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.org", ...args],
      { encoding: "utf8" },
    );
    assert.equal(run.status, 0, run.stderr);
    return run.stdout.trim();
  };
  git("init", "--quiet");
  writeFileSync(path.join(dir, "file"), "one\n");
  git("add", "file");
  git("commit", "--quiet", "-m", "one");
  const first = git("rev-parse", "HEAD");
  writeFileSync(path.join(dir, "file"), "two\n");
  git("commit", "--quiet", "-am", "two");
  return { dir, first };
}

describe("backends", { concurrency: 4 }, () => {
  test("C086 K13 unknown backends are refused, with no folder and no process", async (t) => {
    const dir = tempDir(t);
    const { stdout, stderr } = await runNode(
      `import { SandboxAgent } from "cloudsandbox";
       for (const backend of ["Docker", "dokcer", "", undefined, 7]) {
         try { new SandboxAgent({ backend }); console.log("made"); }
         catch (error) { console.log(error.code, /Unsupported/.test(error.message)); }
       }`,
      { env: { TMPDIR: dir } },
    );
    assert.equal(stderr, "");
    assert.equal(stdout, "ERR_SANDBOX_UNSUPPORTED true\n".repeat(5));
    assert.deepEqual(readdirSync(dir), []);
  });

  test("C086 a remote backend needs a remote, and makes no clones", () => {
    assert.throws(() => new SandboxAgent({ backend: "remote" }), /requires `remote`/);
    assert.throws(() => new SandboxAgent({ backend: "remote", remote: {} }), {
      code: "ERR_SANDBOX_INVALID_ARG",
    });
    const { sandbox: remote, calls } = fakeSandbox();
    assert.throws(
      () =>
        new SandboxAgent({
          backend: "remote",
          remote,
          workspace: { gitClones: [{ repo: "r", path: "p" }] },
        }),
      /gitClones/,
    );
    assert.deepEqual(calls, []);
  });

  test("K12 a bad limit for the output is refused", () => {
    for (const maxOutputBytes of [0, -1, 1.5, NaN, "64"]) {
      assert.throws(
        () => new SandboxAgent({ backend: "unix-local", maxOutputBytes }),
        /maxOutputBytes/,
      );
    }
  });
});

describe("unix-local workspace", { concurrency: 4 }, () => {
  test("K12 a fresh folder under the temporary one, gone after the close", async (t) => {
    const dir = tempDir(t);
    const { stdout, stderr } = await runNode(
      `import { SandboxAgent } from "cloudsandbox";
       import { readdirSync } from "node:fs";
       const agent = new SandboxAgent({ backend: "unix-local" });
       const list = () => JSON.stringify(readdirSync(process.env.TMPDIR).map((name) => name.replace(/-.*/s, "")));
       console.log(list());
       await agent.start();
       console.log(list());
       await agent.close();
       console.log(list());`,
      { env: { TMPDIR: dir } },
    );
    assert.equal(stderr, "", "and no warning: the backend was named");
    assert.deepEqual(stdout.trim().split("\n"), ["[]", '["cloudsandbox"]', "[]"]);
  });

  test("K12 source text is literal, in node and in the shell", async (t) => {
    const agent = await start(t);
    const text = "'q' \"d\" `date` $HOME ${x} \\n";
    assert.deepStrictEqual(await agent.run(`console.log(${JSON.stringify(text)})`), {
      output: `${text}\n`,
      exitCode: 0,
    });
    assert.deepStrictEqual(await agent.run("printf '%s' '$HOME `date`'", { language: "shell" }), {
      output: "$HOME `date`",
      exitCode: 0,
    });
  });

  test("K12 only the search path, named variables, the manifest's and the call's", async (t) => {
    process.env.SBX_TEST_HOST_ONLY = "host";
    process.env.SBX_TEST_NAMED = "named";
    t.after(() => {
      delete process.env.SBX_TEST_HOST_ONLY;
      delete process.env.SBX_TEST_NAMED;
    });
    const agent = await start(t, {
      inheritEnv: ["SBX_TEST_NAMED"],
      workspace: { env: { FROM: "manifest" } },
    });
    const { output } = await agent.shell('echo "$SBX_TEST_HOST_ONLY,$SBX_TEST_NAMED,$FROM,$CALL"', {
      env: { CALL: "call" },
    });
    assert.equal(output, ",named,manifest,call\n");
  });

  test("K12 a limit of 0.03 s ends a background child too", async (t) => {
    const agent = await start(t);
    const tracked = mark();
    const result = await agent.shell("sleep 300 & sleep 300", {
      timeoutSeconds: 0.03,
      env: tracked.env,
    });
    assert.equal(result.timedOut, true);
    assert.equal(result.exitCode, 124);
    await tracked.gone();
  });

  test("K12 limits up to 2147483 seconds are limits", async (t) => {
    const agent = await start(t);
    assert.deepStrictEqual(await agent.shell("sleep 0.2; echo ok", { timeoutSeconds: 2_147_483 }), {
      output: "ok\n",
      exitCode: 0,
    });
    for (const timeoutSeconds of [0, -1, NaN, Infinity, 2_147_484]) {
      assert.match(
        (await rejection(agent.shell("true", { timeoutSeconds }))).message,
        /timeoutSeconds/,
      );
    }
  });

  test("K12 64 bytes of output are kept, in order, and the flag says so", async (t) => {
    const agent = await start(t, { maxOutputBytes: 64 });
    const { output, outputTruncated } = await agent.shell("printf %0100d 0");
    assert.deepEqual(
      { output, outputTruncated },
      { output: "0".repeat(64), outputTruncated: true },
    );
    assert.deepStrictEqual(await agent.shell("echo a; echo b >&2; echo c"), {
      output: "a\nb\nc\n",
      exitCode: 0,
    });
  });

  test("K12 a death by a signal is 137 for SIGKILL", async (t) => {
    const agent = await start(t);
    assert.deepStrictEqual(await agent.shell("kill -9 $$"), { output: "", exitCode: 137 });
    assert.deepStrictEqual(await agent.shell("exit 7"), { output: "", exitCode: 7 });
  });

  test("K12 close() ends running commands, which resolve as cancelled, then removes the folder", async (t) => {
    const agent = await start(t);
    const tracked = mark();
    const calls = [1, 2].map(() =>
      agent.shell("echo begun; sleep 300 & sleep 300", { env: tracked.env }),
    );
    await tracked.started(4);
    const begin = performance.now();
    await agent.close();
    assert.ok(performance.now() - begin < HANG_MS);
    for (const result of await Promise.all(calls)) {
      assert.deepStrictEqual(result, { output: "begun\n", exitCode: 130, cancelled: true });
    }
    assert.deepEqual(tracked.alive(), []);
  });

  test("K12 a group is told to end once", async (t) => {
    const agent = await start(t);
    const tracked = mark();
    const call = agent.shell(
      "trap 'echo told' TERM; echo begun; touch ready; while :; do sleep 0.05; done",
      { env: tracked.env },
    );
    await agent.shell("while ! test -e ready; do sleep 0.02; done");
    await Promise.all([agent.close(), agent.close()]);
    const { output, ...rest } = await call;
    assert.deepEqual(output.match(/begun|told/g), ["begun", "told"]);
    assert.deepStrictEqual(rest, { exitCode: 130, cancelled: true });
  });

  test("K12 a limit wins over a cancel that comes with it", async (t) => {
    const agent = await start(t);
    const result = await agent.shell("sleep 300", { timeoutSeconds: 0.2 });
    assert.deepStrictEqual(result, { output: "", exitCode: 124, timedOut: true });
  });
});

describe("unix-local manifest", { concurrency: 4 }, () => {
  test("K12 the manifest is copied: later edits have no effect", async (t) => {
    const workspace = { files: [{ path: "f", contents: "first" }], env: { A: "first" } };
    const agent = make(t, { workspace });
    workspace.files[0].contents = "changed";
    workspace.files.push({ path: "g", contents: "added" });
    workspace.env.A = "changed";
    await agent.start();
    assert.deepStrictEqual(await agent.shell('cat f; echo " $A"; ls'), {
      output: "first first\nf\n",
      exitCode: 0,
    });
  });

  test("K12 clones: at the newest commit, at a given one, and bad ones", async (t) => {
    const { dir, first } = repository(t);
    const agent = await start(t, {
      workspace: {
        files: [{ path: "seed", contents: "x" }],
        gitClones: [
          { repo: dir, path: "newest" },
          { repo: `file://${dir}`, path: "deep/er/first", ref: first },
        ],
      },
    });
    const heads = await agent.shell(
      "cat newest/file deep/er/first/file; git -C deep/er/first symbolic-ref -q HEAD || echo detached",
    );
    assert.deepStrictEqual(heads, { output: "two\none\ndetached\n", exitCode: 0 });
  });

  test("clones at a branch, a tag, a part of a commit's id; and what is none of these", async (t) => {
    const { dir: repo, first } = repository(t);
    for (const args of [["branch", "side/branch", first], ["tag", "v1", first]]) {
      assert.equal(spawnSync("git", ["-C", repo, ...args]).status, 0);
    }
    for (const ref of ["side/branch", "v1", first.slice(0, 10), "HEAD~1"]) {
      const agent = await start(t, { workspace: { gitClones: [{ repo, path: "r", ref }] } });
      assert.equal(await agent.readFile("r/file"), "one\n", ref);
    }
    for (const ref of ["nope", "v1^{tree}", "a b", "0".repeat(40)]) {
      const agent = make(t, { workspace: { gitClones: [{ repo, path: "r", ref }] } });
      const error = await rejection(agent.start());
      assert.equal(error.code, "ERR_SANDBOX_NOT_FOUND");
      assert.equal(error.message, `there is no branch, tag or commit "${ref}" in gitClones[0] (${repo})`);
    }
  });

  test("K12 a start that fails leaves no folder and can be tried again", async (t) => {
    const dir = tempDir(t);
    const { dir: repo } = repository(t);
    const bad = [
      {
        files: [
          { path: "good", contents: "x" },
          { path: "../outside", contents: "x" },
        ],
      },
      { files: [{ path: "bad", contents: "***", encoding: "base64" }] },
      { gitClones: [{ repo: path.join(dir, "missing"), path: "r" }] },
      { gitClones: [{ repo, path: "../outside" }] },
      { gitClones: [{ repo, path: "r", ref: "--upload-pack=touch pwned" }] },
      { gitClones: [{ repo, path: "r", ref: "no-such-ref" }] },
      { gitClones: [{ repo: "--upload-pack=touch pwned", path: "r" }] },
    ];
    const { stdout, stderr } = await runNode(
      `import { SandboxAgent } from "cloudsandbox";
       import { readdirSync } from "node:fs";
       for (const workspace of ${JSON.stringify(bad)}) {
         const agent = new SandboxAgent({ backend: "unix-local", workspace });
         const errors = [];
         for (let attempt = 0; attempt < 2; attempt++) await agent.start().catch((error) => errors.push(/^ERR_SANDBOX_(?!CLOSED)/.test(error.code)));
         console.log(JSON.stringify(errors), agent.ready, JSON.stringify(readdirSync(process.env.TMPDIR)));
         await agent.close();
       }`,
      { env: { TMPDIR: dir } },
    );
    assert.equal(stderr, "");
    assert.deepEqual(
      stdout.trim().split("\n"),
      bad.map(() => "[true,true] false []"),
    );
  });
});

describe("unix-local files", { concurrency: 4 }, () => {
  test("K12 traversal, absolute paths, control characters", async (t) => {
    const agent = await start(t);
    const folder = await folderOf(agent);
    for (const name of ["../x", "a/../../x", "/etc/passwd", `${folder}-other/x`]) {
      for (const call of [() => agent.readFile(name), () => agent.writeFile(name, "x")]) {
        const error = await rejection(call());
        assert.equal(error.name, "PathSecurityError", name);
        assert.match(error.message, /traversal/);
      }
    }
    for (const name of ["a\0b", "a\nb", "\u0001"]) {
      assert.equal((await rejection(agent.readFile(name))).name, "PathSecurityError");
    }
    await agent.writeFile(path.join(folder, "inside/f"), "x");
    assert.equal(await agent.readFile("inside/f"), "x");
    assert.equal(await agent.readFile("missing"), null);
    assert.match((await rejection(agent.readFile("inside"))).code, /^ERR_SANDBOX_/);
    assert.match((await rejection(agent.readFile("inside/f/child"))).code, /^ERR_SANDBOX_/);
  });

  test("K12 links: escaping and dangling ones reject, inner ones work", async (t) => {
    const agent = await start(t);
    const folder = await folderOf(agent);
    await agent.writeFile("f", "inside");
    symlinkSync("/etc/passwd", path.join(folder, "escaping"));
    symlinkSync("nowhere", path.join(folder, "dangling"));
    symlinkSync("f", path.join(folder, "inner"));
    assert.equal((await rejection(agent.readFile("escaping"))).name, "PathSecurityError");
    assert.match((await rejection(agent.readFile("dangling"))).code, /^ERR_SANDBOX_/);
    assert.equal(await agent.readFile("inner"), "inside");
  });
});

describe("unix-local snapshots", { concurrency: 4 }, () => {
  test("K12 a snapshot holds the regular files and the manifest's variables, and resume() brings them back", async (t) => {
    const agent = await start(t, {
      workspace: { files: [{ path: "seed", contents: "x" }], env: { A: "a" } },
    });
    await agent.shell(
      "mkdir -p deep/er empty; printf '\\000\\377' > deep/er/bytes; ln -s seed link; : > nothing",
    );
    const snapshot = await agent.snapshot();
    assert.deepEqual(JSON.parse(JSON.stringify(snapshot)), snapshot, "plain JSON");
    assert.equal(typeof snapshot.takenAt, "number");
    assert.deepEqual(snapshot.env, { A: "a" });
    assert.deepEqual(
      snapshot.files.map((file) => [file.path, file.contents, file.encoding]).sort(),
      [
        ["deep/er/bytes", "AP8=", "base64"],
        ["nothing", "", "base64"],
        ["seed", "eA==", "base64"],
      ],
    );
    const first = await folderOf(agent);
    await agent.resume(snapshot);
    assert.notEqual(await folderOf(agent), first);
    assert.equal(await agent.readFile("deep/er/bytes", "base64"), "AP8=");
    assert.deepStrictEqual(await agent.shell('ls; echo "$A"'), {
      output: "deep\nnothing\nseed\na\n",
      exitCode: 0,
    });
    await agent.close();
    await agent.resume(snapshot);
    assert.equal(await agent.readFile("seed"), "x");
  });

  test("a snapshot that no folder can hold is refused, and the workspace stays", async (t) => {
    const agent = await start(t);
    await agent.writeFile("mine", "kept");
    const folder = await folderOf(agent);
    const file = (name) => ({ path: name, contents: "x" });
    for (const name of ["../x", "a/../../x", "/etc/x", `${folder}/x`, "a\nb", "a\0b"]) {
      const error = await rejection(agent.resume({ files: [file("good"), file(name)] }));
      assert.equal(error.name, "PathSecurityError", name);
    }
    for (const names of [[""], ["."], ["a/"], ["a/.."], ["a", "a/b"], ["a/b/c", "a"]]) {
      const error = await rejection(agent.resume({ files: names.map(file) }));
      assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG", names.join());
    }
    assert.equal(await folderOf(agent), folder);
    assert.equal(await agent.readFile("mine"), "kept");
    await agent.resume({ files: [file("a/../b"), file("./c"), file("..d")] });
    assert.equal((await agent.shell("ls -A")).output, "..d\nb\nc\n");
  });

  test("K12 a snapshot of more than 1000 files or 16 MiB rejects, naming both limits", async (t) => {
    const agent = await start(t);
    await agent.run("for (let i = 0; i < 1001; i++) require('fs').writeFileSync('f' + i, '')");
    const many = await rejection(agent.snapshot());
    assert.match(many.message, /1000/);
    assert.match(many.message, /16 ?Mi?B|16777216/);
    await agent.shell("rm -f f*; head -c 16777217 /dev/zero > big");
    const large = await rejection(agent.snapshot());
    assert.match(large.message, /1000/);
    await agent.shell("rm big; head -c 1000 /dev/zero > fits");
    assert.equal((await agent.snapshot()).files.length, 1);
  });

  test("K12 two resumes at once: the second rejects; a close during a resume waits for it", async (t) => {
    const agent = await start(t);
    const snapshot = await agent.snapshot();
    const first = agent.resume(snapshot);
    await rejection(agent.resume(snapshot));
    await first;
    assert.equal(agent.ready, true);
    const resumed = agent.resume(snapshot);
    const closed = agent.close();
    await Promise.allSettled([resumed]);
    await closed;
    assert.equal(agent.ready, false);
    assert.match((await rejection(agent.shell("true"))).message, /closed/);
  });
});

describe("remote, as a recording double sees it", () => {
  test("K12 seed files are written one after another, with path, contents and encoding", async () => {
    const { sandbox: remote, calls } = fakeSandbox();
    const agent = new SandboxAgent({
      backend: "remote",
      remote,
      workspace: {
        files: [
          { path: "x", contents: "y" },
          { path: "../b", contents: "AP8=", encoding: "base64" },
        ],
      },
    });
    await agent.start();
    assert.deepEqual(calls, [
      ["start"],
      ["writeFile", "x", "y", "utf8"],
      ["writeFile", "../b", "AP8=", "base64"],
    ]);
    await agent.close();
    await agent.close();
    assert.deepEqual(calls.slice(3), [["close"]]);
  });

  test("K12 calls are passed on with the workspace's variables under the call's", async () => {
    const answer = { output: "o", exitCode: 0 };
    const { sandbox: remote, calls } = fakeSandbox({ run: answer, shell: answer, readFile: null });
    const agent = new SandboxAgent({
      backend: "remote",
      remote,
      workspace: { env: { A: "1", B: "1" } },
    });
    await agent.start();
    assert.deepEqual(
      await agent.run("code", { language: "python", timeoutSeconds: 5, env: { B: "2" } }),
      answer,
    );
    assert.deepEqual(await agent.shell("command"), answer);
    assert.equal(await agent.readFile("f"), null);
    const [, [, code, options], [, command, shellOptions]] = calls;
    assert.equal(code, "code");
    assert.deepEqual(
      { ...options },
      { language: "python", timeoutSeconds: 5, env: { A: "1", B: "2" } },
    );
    assert.equal(command, "command");
    assert.deepEqual(shellOptions.env, { A: "1", B: "1" });
    await agent.close();
  });

  test("K12 a start that fails closes the remote, and rejects with its error", async () => {
    for (const failing of ["start", "writeFile"]) {
      const mistake = new Error("mine");
      const { sandbox: remote, calls } = fakeSandbox({ [failing]: mistake });
      const agent = new SandboxAgent({
        backend: "remote",
        remote,
        workspace: { files: [{ path: "x", contents: "y" }] },
      });
      assert.equal(await rejection(agent.start()), mistake);
      assert.deepEqual(calls.at(-1), ["close"]);
      assert.equal(agent.ready, false);
    }
  });

  test("K11 a close that fails rejects, and a second one tries again", async () => {
    let refuse = true;
    const close = () => {
      if (refuse) throw new Error("not now");
    };
    const { sandbox: remote, calls } = fakeSandbox({ close });
    const agent = new SandboxAgent({ backend: "remote", remote });
    await agent.start();
    await assert.rejects(agent.close(), /not now/);
    refuse = false;
    await agent.close();
    assert.deepEqual(
      calls.map(([name]) => name),
      ["start", "close", "close"],
    );
  });

  test("K12 a user's own object literal is a remote", async () => {
    const agent = new SandboxAgent({
      backend: "remote",
      remote: {
        providerId: "mine",
        start: async () => {},
        run: async (code) => ({ output: code, exitCode: 0 }),
        shell: async (command) => ({ output: command, exitCode: 0 }),
        writeFile: async () => {},
        readFile: async () => null,
        close: async () => {},
      },
    });
    await agent.start();
    assert.deepEqual(await agent.run("x"), { output: "x", exitCode: 0 });
    await agent.close();
  });
});
