// SandboxAgent on "unix-local" with real processes: what test/local/agent.test.js leaves open. Bounds,
// clones that try to leave, loss, snapshots of odd names, and what is never loaded.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { getEventListeners, once } from "node:events";
import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import net from "node:net";
import path from "node:path";
import { describe, test } from "node:test";

import { LocalSandbox, SandboxAgent, SandboxToolkit } from "cloudsandbox";

import { toolsByRole } from "../support/host.js";
import { runNode } from "../support/node.js";
import { slow } from "../support/slow.js";
import { tempDir } from "../support/temp.js";
import { rejection } from "../support/wait.js";

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

const folderOf = async (agent) => (await agent.shell("pwd")).output.trim();

/** A git repository with one commit of what `fill(dir)` puts there. */
function repository(t, fill) {
  const dir = path.join(tempDir(t), "repository");
  mkdirSync(dir);
  fill(dir);
  for (const args of [["init", "-q"], ["add", "."], ["-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "-m", "one"]]) {
    const run = spawnSync("git", ["-C", dir, ...args], { encoding: "utf8" });
    assert.equal(run.status, 0, run.stderr);
  }
  return dir;
}

describe("bounds", { concurrency: 4 }, () => {
  test("timeoutSeconds: above 0 and up to 2147483", async (t) => {
    const agent = await start(t);
    assert.deepEqual(await agent.shell("echo ok", { timeoutSeconds: 2147483 }), { output: "ok\n", exitCode: 0 });
    assert.deepEqual(await agent.shell("sleep 60 & wait", { timeoutSeconds: 0.03 }), { output: "", exitCode: 124, timedOut: true });
    for (const timeoutSeconds of [0, -1, NaN, 2147484, 1e12, "5"]) {
      const error = await rejection(agent.shell("touch no", { timeoutSeconds }));
      assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG");
      assert.match(error.message, /timeoutSeconds.*2147483/);
    }
    assert.equal(await agent.readFile("no"), null);
  });

  test("maxOutputBytes: the first bytes, to a whole character; the command goes on; no upper bound", async (t) => {
    const small = await start(t, { maxOutputBytes: 64 });
    assert.deepEqual(await small.run("process.stdout.write('x'.repeat(10000)); process.exitCode = 5"), { output: "x".repeat(64), exitCode: 5, outputTruncated: true });
    assert.equal((await small.shell("yes é | tr -d '\\n' | head -c 100 | cut -b 2-")).output.length <= 64, true);
    const large = await start(t, { maxOutputBytes: Number.MAX_SAFE_INTEGER });
    const { output, outputTruncated } = await large.shell("head -c 20000000 /dev/zero | tr '\\0' x");
    assert.deepEqual([output.length, outputTruncated], [20_000_000, undefined]);
  });

  test("death by a signal is 137, whichever it was", async (t) => {
    const agent = await start(t);
    for (const name of ["KILL", "TERM", "SEGV"]) assert.deepEqual(await agent.shell(`echo a; kill -${name} $$`), { output: "a\n", exitCode: 137 });
  });

  test("a misspelt option, a language that is not offered, code that is no text", async (t) => {
    const agent = await start(t);
    assert.match((await rejection(agent.shell("true", { timeout: 5 }))).message, /timeout/);
    const error = await rejection(agent.run("puts 1", { language: "ruby" }));
    assert.deepEqual([error.code, /Unsupported.*"node", "python", "shell"/.test(error.message)], ["ERR_SANDBOX_INVALID_ARG", true], "as in every sandbox");
    assert.match((await rejection(agent.run("1", { language: "py" }))).message, /not "py"; did you mean "python"\?$/);
    for (const code of [undefined, 7, null]) assert.equal((await rejection(agent.run(code))).code, "ERR_SANDBOX_INVALID_ARG");
    assert.equal((await rejection(agent.shell("true", { env: { "A;B": "x" } }))).code, "ERR_SANDBOX_INVALID_ARG");
  });
});

describe("clones", { concurrency: 4 }, () => {
  const plain = (t) => repository(t, (dir) => writeFileSync(path.join(dir, "file"), "content\n"));

  test("a link that an earlier clone brought cannot lead a later one outside", async (t) => {
    const outside = tempDir(t);
    const hostile = repository(t, (dir) => {
      symlinkSync(outside, path.join(dir, "out"));
      symlinkSync(path.join(outside, "missing"), path.join(dir, "dangling"));
      symlinkSync("inside", path.join(dir, "inner"));
      mkdirSync(path.join(dir, "inside"));
      writeFileSync(path.join(dir, "inside/file"), "");
    });
    const repo = plain(t);
    for (const target of ["first/out/second", "first/dangling", "first/dangling/second"]) {
      const agent = make(t, { workspace: { gitClones: [{ repo: hostile, path: "first" }, { repo, path: target }] } });
      const error = await rejection(agent.start());
      assert.deepEqual([error.name, /traversal/.test(error.message)], ["PathSecurityError", true], target);
    }
    assert.deepEqual(readdirSync(outside), []);
    const agent = await start(t, { workspace: { gitClones: [{ repo: hostile, path: "first" }, { repo, path: "first/inner/second" }] } });
    assert.equal(await agent.readFile("first/inside/second/file"), "content\n");
  });

  test("paths that leave, control characters", async (t) => {
    const repo = plain(t);
    for (const target of ["../x", "a/../../x", "/etc/x", "a\0b", "a\nb"]) {
      const error = await rejection(make(t, { workspace: { gitClones: [{ repo, path: target }] } }).start());
      assert.equal(error.name, "PathSecurityError", target);
    }
  });

  test("into the workspace itself", async (t) => {
    const agent = await start(t, { workspace: { gitClones: [{ repo: plain(t), path: "." }] } });
    assert.equal(await agent.readFile("file"), "content\n");
  });

  test("C165 below the home, which is the workspace", async (t) => {
    const agent = await start(t, { workspace: { gitClones: [{ repo: plain(t), path: "~/r" }] } });
    assert.equal(await agent.readFile("r/file"), "content\n");
  });

  test("a bad ref is refused before anything is made", async (t) => {
    const dir = tempDir(t);
    const { stdout, stderr } = await runNode(
      `import { LocalSandbox, SandboxAgent, SandboxToolkit } from "cloudsandbox";
       import fs from "node:fs";
       for (const ref of ["-x", "--upload-pack=x", ""]) {
         let made = false;
         const watcher = fs.watch(process.env.TMPDIR, () => (made = true));
         const agent = new SandboxAgent({ backend: "unix-local", workspace: { gitClones: [{ repo: "r", path: "p", ref }] } });
         await agent.start().catch((error) => console.log(error.code, /\`ref\`/.test(error.message)));
         await new Promise(setImmediate);
         watcher.close();
         console.log(made);
       }`,
      { env: { TMPDIR: dir } },
    );
    assert.equal(stderr, "");
    assert.equal(stdout, "ERR_SANDBOX_INVALID_ARG true\nfalse\n".repeat(3));
  });

  test("a machine without git: the clone says what to install", async (t) => {
    const dir = tempDir(t);
    const { stdout } = await runNode(
      `import { SandboxAgent } from "cloudsandbox";
       const agent = new SandboxAgent({ backend: "unix-local", workspace: { gitClones: [{ repo: "r", path: "p" }] } });
       await agent.start().catch((error) => console.log(error.code, error.retryable, /no program git.*install git/.test(error.message)));`,
      { env: { PATH: dir } },
    );
    assert.equal(stdout, "ERR_SANDBOX_UNSUPPORTED false true\n");
  });

  test("what git said is told, without the password of the address, and nobody is asked for one", async (t) => {
    const agent = make(t, { workspace: { gitClones: [{ repo: "http://user:canary@127.0.0.1:1/r.git", path: "r" }] } });
    const error = await rejection(agent.start());
    assert.equal(error.code, "ERR_SANDBOX_PROVIDER");
    assert.match(error.message, /git clone of gitClones\[0\] \(127\.0\.0\.1:1\/r\.git\) failed with exit code 128: .*fatal: /s);
    assert.doesNotMatch(error.message, /canary/);
    assert.deepEqual([error.retryable, error.mayHaveRun], [false, false], "only git's words tell whether it can pass");
    assert.equal(agent.ready, false);
  });

  test("a clone that takes too long may succeed later, and says so", { skip: !slow }, async (t) => {
    const server = net.createServer(() => {}).listen(0, "127.0.0.1");
    t.after(() => server.close());
    await once(server, "listening");
    const repo = `http://127.0.0.1:${server.address().port}/r.git`;
    const error = await rejection(make(t, { workspace: { gitClones: [{ repo, path: "r" }] } }).start());
    assert.deepEqual([error.code, error.retryable, error.mayHaveRun], ["ERR_SANDBOX_TIMEOUT", true, false]);
    assert.match(error.message, /took longer than 30 seconds/);
  });

  test("no part of a secret in an address is told, however it is written", async (t) => {
    const host = "127.0.0.1:1/r.git";
    const addresses = [
      [`http://user:can'ary@${host}`, `(${host})`],
      [`http://user:can"ary \\x@${host}`, `(${host})`],
      [`http://user:can%27ary%20@${host}`, `(${host})`],
      [`http://user:can%zzary@${host}`, `(${host})`],
      [`http://canary@${host}`, `(${host})`],
      [`http://user:sesame/canary@${host}`, ""],
      [`http://user:sesame@canary@${host}`, `(${host})`],
      [`http://user:1/canary@${host}`, ""],
      [`http://user:sesame?canary@${host}`, ""],
      [`http://${host}?private_token=canary&x=1#canary`, `(${host})`],
      [`http://${host}?private_token=c%61nary@x`, ""],
      [`nobody:canary@localhost.invalid:r.git`, "(localhost.invalid/r.git)"],
      [`//user:canary@${host}`, `(${host})`],
      [`nope:canary://user:canary@${host}`, `(${host})`],
    ];
    await Promise.all(
      addresses.map(async ([repo, shown]) => {
        const agent = make(t, { workspace: { gitClones: [{ repo, path: "r" }] } });
        const error = await rejection(agent.start());
        assert.equal(error.code, "ERR_SANDBOX_PROVIDER", error.message);
        assert.ok(error.message.startsWith(`git clone of gitClones[0]${shown && ` ${shown}`} failed with exit code`), error.message);
        assert.doesNotMatch(`${error.stack}${JSON.stringify(error)}`, /can.{0,12}ary|c%61nary|sesame/i, repo);
      }),
    );
  });
});

describe("close() during start()", () => {
  test("ends a clone that hangs: the start rejects as closed, and nothing is left", async (t) => {
    const server = net.createServer().listen(0, "127.0.0.1");
    t.after(() => server.close());
    await once(server, "listening");
    const repo = `git://127.0.0.1:${server.address().port}/r`;
    const agent = make(t, { workspace: { gitClones: [{ repo, path: "r" }, { repo, path: "s" }] } });
    const start = rejection(agent.start());
    const [socket] = await once(server, "connection");
    const ended = once(socket.on("error", () => {}).resume(), "close");
    const call = rejection(agent.shell("true"));
    await agent.close();
    // A clone that was waited for would have ended as ERR_SANDBOX_TIMEOUT.
    assert.equal((await start).code, "ERR_SANDBOX_CLOSED");
    assert.equal((await call).code, "ERR_SANDBOX_CLOSED");
    await ended;
    assert.equal((await rejection(agent.start())).code, "ERR_SANDBOX_CLOSED");
  });
});

describe("loss", { concurrency: 4 }, () => {
  test("the call that finds the folder gone names it; the next one has files and clones again", async (t) => {
    const repo = repository(t, (dir) => writeFileSync(path.join(dir, "file"), "cloned\n"));
    const agent = await start(t, { workspace: { files: [{ path: "seed", contents: "seeded\n" }], gitClones: [{ repo, path: "r" }] } });
    const folder = await folderOf(agent);
    await agent.writeFile("seed", "changed");
    await agent.writeFile("other", "");
    rmSync(folder, { recursive: true });
    const error = await rejection(agent.shell("cat seed"));
    assert.equal(error.code, "ERR_SANDBOX_LOST");
    assert.ok(error.message.includes(folder), error.message);
    assert.match(error.message, /next call starts a new one and sets up the workspace/);
    const results = await Promise.all([agent.shell("cat seed r/file; ls"), agent.readFile("seed")]);
    assert.deepEqual(results, [{ output: "seeded\ncloned\nr\nseed\n", exitCode: 0 }, "seeded\n"]);
    const again = await folderOf(agent);
    assert.notEqual(again, folder);
    await agent.close();
    assert.equal(existsSync(again), false);
  });
});

test("one signal for many calls, on either backend, is no leak", async (t) => {
  const warnings = [];
  const onWarning = (warning) => warnings.push(warning);
  process.on("warning", onWarning);
  t.after(() => process.off("warning", onWarning));
  const remote = new LocalSandbox({ isolation: "none" });
  for (const config of [{}, { backend: "remote", remote }]) {
    const agent = await start(t, config);
    const { signal } = new AbortController();
    const calls = Array.from({ length: 15 }, () => agent.shell("true", { signal }));
    for (const { exitCode } of await Promise.all(calls)) assert.equal(exitCode, 0);
    assert.equal(getEventListeners(signal, "abort").length, 0);
  }
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(warnings, []);
});

describe("snapshots", { concurrency: 4 }, () => {
  test("one can be given up", async (t) => {
    const agent = await start(t, { workspace: { files: Array.from({ length: 300 }, (_, i) => ({ path: `f${i}`, contents: "x" })) } });
    assert.equal(await rejection(agent.snapshot({ signal: AbortSignal.abort("early") })), "early");
    const abort = new AbortController();
    const taken = rejection(agent.snapshot({ signal: abort.signal }));
    setImmediate(() => abort.abort("late"));
    assert.equal(await taken, "late");
    assert.equal((await agent.snapshot()).files.length, 300);
  });

  test("a file that is being written is not in it under another name", async (t) => {
    const agent = await start(t);
    const writing = agent.writeFile("f", "x".repeat(15_000_000));
    const names = new Set();
    for (let left = 5; left > 0; left--) {
      for (const file of (await agent.snapshot()).files) names.add(file.path);
    }
    await writing;
    names.add("f");
    assert.deepEqual([...names], ["f"]);
  });

  test("every name that can be kept comes back; one that cannot is told, not left out", async (t) => {
    const names = ["a b", "q'u\"o", "$(touch pwned)", "-rf", "*", "\u{1F600}", "e\u0301", "\uFFFD", "..dots", "d/e/f"];
    const agent = await start(t, { workspace: { files: names.map((name) => ({ path: name, contents: name })) } });
    const snapshot = await agent.snapshot();
    assert.deepEqual(snapshot.files.map((file) => file.path), [...names].sort());
    await agent.resume(snapshot);
    for (const name of names) assert.equal(await agent.readFile(name), name);
    await agent.shell("printf x > \"$(printf 'bad\\377name')\"");
    assert.match((await rejection(agent.snapshot())).message, /not UTF-8/);
  });

  test("a name with control characters is told, escaped, as what the snapshot cannot hold", async (t) => {
    const agent = await start(t);
    await agent.shell(`mkdir d && touch "$(printf 'd/a\\nb')"`);
    const error = await rejection(agent.snapshot());
    assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG");
    assert.equal(error.message, 'snapshot: the name of "d/a\\nb" has control characters; rename or remove the file');
  });
});

describe("read_file", () => {
  test("a file of more than 16 MiB is refused, with a way to read a part of it", async (t) => {
    const local = new LocalSandbox({ isolation: "none", tempDir: tempDir(t) });
    const agents = [await start(t), await start(t, { backend: "remote", remote: local })];
    for (const agent of agents) {
      const { readFile } = toolsByRole(new SandboxToolkit(agent));
      await agent.shell("truncate -s 16M full; truncate -s 17M more");
      const error = await rejection(readFile.execute({ path: "more" }));
      assert.equal(error.code, "ERR_SANDBOX_TOO_LARGE");
      assert.match(error.message, /16777216 bytes; read a part of it with the shell tool.*Nothing was read; repeating the same call will not help\.$/);
      const shown = await readFile.execute({ path: "full" });
      assert.ok(shown.length <= 50_000);
      assert.match(shown.replaceAll("\0", ""), /characters of 16,777,216 .*left out/);
      assert.equal((await agent.readFile("more")).length, 17 * 1048576);
      assert.equal((await rejection(agent.readFile("more", "utf8", { maxBytes: 5 }))).code, "ERR_SANDBOX_TOO_LARGE");
    }
  });
});

describe("what is not needed is not done", () => {
  test("an agent that never started loads no binary and leaves no folder", async (t) => {
    const dir = tempDir(t);
    const { stdout, stderr } = await runNode(
      `import { LocalSandbox, SandboxAgent, SandboxToolkit } from "cloudsandbox";
       const dlopen = process.dlopen;
       process.dlopen = (...args) => (console.log("loaded"), dlopen.apply(process, args));
       const agent = new SandboxAgent({ backend: "unix-local", workspace: { files: [{ path: "f", contents: "" }] } });
       await agent.close();
       console.log("closed", (await import("node:fs")).readdirSync(process.env.TMPDIR).length);`,
      { env: { TMPDIR: dir } },
    );
    assert.equal(stderr, "");
    assert.equal(stdout, "closed 0\n");
  });

  test("a started agent that nobody closes lets the process end, and its folder goes with it", async (t) => {
    const dir = tempDir(t);
    const { code, hung } = await runNode(
      `import { LocalSandbox, SandboxAgent, SandboxToolkit } from "cloudsandbox";
       const agent = new SandboxAgent({ backend: "unix-local" });
       await agent.start();
       await agent.shell("sleep 60 &");`,
      { env: { TMPDIR: dir } },
    );
    assert.deepEqual([code, hung], [0, false]);
    assert.deepEqual(readdirSync(dir), []);
  });
});

describe("what package managers leave", { concurrency: 2 }, () => {
  const installed = (t) => start(t, {
    workspace: {
      files: [
        { path: "package.json", contents: '{ "name": "own", "version": "1.0.0", "private": true }' },
        { path: "tiny/package.json", contents: '{ "name": "tiny", "version": "1.0.0", "main": "index.js" }' },
        { path: "tiny/index.js", contents: "module.exports = 42;\n" },
        { path: "own.py", contents: "VALUE = 1\n" },
      ],
    },
  });

  test("C177 caches do not stand in the workspace, and packages can be left out of a snapshot", async (t) => {
    const agent = await installed(t);
    // npm itself may be absent here; what counts is where it is told to keep its cache.
    const { output } = await agent.shell('echo "$npm_config_cache:$XDG_CACHE_HOME"; pwd -P');
    const [caches, workspace] = output.trim().split("\n");
    for (const cache of caches.split(":")) assert.ok(!`${cache}/`.startsWith(`${workspace}/`), cache);
    const npm = await agent.shell("npm install ./tiny --install-links --offline --no-audit --no-fund 2>&1", { timeoutSeconds: 300 });
    if (npm.exitCode !== 127) {
      assert.equal(npm.exitCode, 0, npm.output);
      assert.equal((await agent.run("console.log(require('tiny'))")).output, "42\n");
    }
    await agent.shell("mkdir -p node_modules/other; echo x > node_modules/other/f; mkdir -p $XDG_CACHE_HOME/pip; echo x > $XDG_CACHE_HOME/pip/f");
    const venv = await agent.shell("python3 -m venv --without-pip .venv && python3 -c 'import own'", { timeoutSeconds: 300 });
    assert.equal(venv.exitCode, 0, venv.output);

    const paths = (snapshot) => snapshot.files.map((file) => file.path);
    const all = paths(await agent.snapshot());
    assert.deepEqual(all.filter((file) => /(^|\/)\.?(npm|cache|_cacache|_logs)(\/|$)/.test(file)), []);
    assert.ok(all.includes("node_modules/other/f") && all.some((file) => file.startsWith(".venv/")), String(all));
    const left = paths(await agent.snapshot({ exclude: ["node_modules", ".venv", "__pycache__"] }));
    const own = ["own.py", "package.json", "tiny/index.js", "tiny/package.json"];
    assert.deepEqual(left.filter((file) => file !== "package-lock.json"), own);
    await agent.close();
    assert.ok(!existsSync(caches.split(":")[1]));
  });

  test("a budget lasts over all lives, and without time no new one begins", async (t) => {
    const agent = await start(t, { budget: { commands: 2 } });
    await agent.shell("true");
    await agent.resume({ files: [{ path: "f", contents: "x" }] });
    await agent.shell("true");
    assert.equal((await rejection(agent.shell("true"))).code, "ERR_SANDBOX_QUOTA");
    assert.equal(await agent.readFile("f"), "x");

    const brief = await start(t, { budget: { sandboxSeconds: 0.3 } });
    await brief.shell("sleep 0.4");
    for (const call of [() => brief.shell("true"), () => brief.resume({ files: [] }), () => brief.start()]) {
      const error = await rejection(call());
      assert.deepEqual([error.code, /0 of 0\.3 sandbox seconds/.test(error.message)], ["ERR_SANDBOX_QUOTA", true]);
    }
  });

  test("a snapshot of too many bytes says how many there are, and which file has most of them", async (t) => {
    const agent = await start(t, {});
    await agent.shell("mkdir d; head -c 13000000 /dev/zero >d/big; head -c 5000000 /dev/zero >small");
    const error = await rejection(agent.snapshot());
    assert.equal(error.code, "ERR_SANDBOX_TOO_LARGE");
    assert.match(error.message, /here are 2 files and 17\.2 MiB, of which "d\/big" has 12\.4 MiB; leave out/);
  });

  test("C177 a snapshot that is too large says how to leave things out, and what is left out does not count", async (t) => {
    const agent = await start(t, {});
    await agent.shell("mkdir -p a/node_modules b; cd a/node_modules; touch $(seq 1200); cd ../..; touch b/kept b/x.pyc b/y.pyc");
    const error = await rejection(agent.snapshot());
    assert.equal(error.code, "ERR_SANDBOX_TOO_LARGE");
    assert.match(error.message, /1000 files and 16 MiB, and here are 1203 files.*exclude: \["node_modules"/);
    for (const [exclude, expected] of [
      [["node_modules", "*.pyc"], ["b/kept"]],
      [["a/node_modules"], ["b/kept", "b/x.pyc", "b/y.pyc"]],
      [["./a/", "y*"], ["b/kept", "b/x.pyc"]],
      [["node_modules", "b/x.pyc", "k.pt", "ept"], ["b/kept", "b/y.pyc"]],
      [["node_modules/", "*.pyc", "!y.pyc"], ["b/kept", "b/y.pyc"]],
      [["**/node_modules", "b/[xy].pyc"], ["b/kept"]],
      [["node_modules", "b/*/"], ["b/kept", "b/x.pyc", "b/y.pyc"]],
    ]) {
      assert.deepEqual((await agent.snapshot({ exclude })).files.map((file) => file.path), expected);
    }
    for (const exclude of ["node_modules", [1], [""], ["/abs"], ["../up"], ["."]]) {
      assert.match((await rejection(agent.snapshot({ exclude }))).message, /`exclude` must be an array of names or paths/);
    }
  });
});
