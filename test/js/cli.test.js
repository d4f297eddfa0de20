// The command line: the real program in a process of its own, on the local sandbox and on an emulated engine.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { bundle } from "../../scripts/bundle.mjs";
import { startDocker } from "../emulators/docker/index.js";
import { ROOT, SANITIZER_ENV, copyPackage } from "../support/node.js";
import { mark } from "../support/processes.js";
import { tempDir } from "../support/temp.js";

const manifest = JSON.parse(readFileSync(path.join(ROOT, "package.json"), "utf8"));
const BIN = path.join(ROOT, manifest.bin.cloudsandbox);
const LOCAL = ["-p", "unix-local"];

/** Starts the program; `ended` gives { code, signal, stdout, stderr }. */
function start(args, { env = {}, cwd = ROOT, input } = {}) {
  const child = spawn(process.execPath, [BIN, ...args], {
    cwd,
    env: { PATH: process.env.PATH, TMPDIR: process.env.TMPDIR ?? "/tmp", ...SANITIZER_ENV, ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  child.stdin.end(input);
  const seen = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"]) child[name].setEncoding("utf8").on("data", (text) => (seen[name] += text));
  const ended = new Promise((resolve) => child.on("close", (code, signal) => resolve({ code, signal, ...seen })));
  return { child, ended, seen };
}

const cli = (args, options) => start(args, options).ended;

describe("build", { concurrency: 2 }, () => {
  for (const bundled of [false, true]) {
    test(`runs the package's own script, and ends as it does${bundled ? ", in the published package, too" : ""}`, async (t) => {
      const copy = copyPackage(t, { native: false });
      if (bundled) {
        rmSync(path.join(copy, "lib"), { recursive: true });
        await bundle(manifest, path.join(copy, "lib"));
      }
      const run = () => spawnSync(process.execPath, [path.join(copy, manifest.bin.cloudsandbox), "build"], { cwd: tempDir(t), encoding: "utf8" });
      const without = run();
      assert.equal(without.status, 125);
      assert.match(without.stderr, /its build script is not there\. Run: node \S+build\.mjs/);
      mkdirSync(path.join(copy, "scripts"));
      writeFileSync(path.join(copy, "scripts/build.mjs"), 'console.log("building in", import.meta.dirname); process.exit(1);');
      const { status, stdout, stderr } = run();
      assert.deepEqual([status, stdout, stderr], [1, `building in ${path.join(copy, "scripts")}\n`, ""]);
    });
  }
});

describe("help and mistakes", { concurrency: 2 }, () => {
  test("help of all, of each command, and the version; no colours but on a terminal", async () => {
    for (const args of [[], ["help"], ["--help"], ["-h"]]) {
      const { code, stdout, stderr } = await cli(args);
      assert.deepEqual([code, stderr], [0, ""]);
      for (const name of ["run", "shell", "put", "get", "ls", "mcp", "providers", "doctor", "build", "report"]) assert.match(stdout, new RegExp(`^  ${name} `, "m"));
      assert.doesNotMatch(stdout, /\x1b/); // eslint-disable-line no-control-regex
      for (const line of stdout.split("\n")) assert.ok(line.length <= 100, line);
    }
    for (const name of ["run", "shell", "put", "get", "ls", "mcp", "providers", "doctor", "build", "report"]) {
      const { code, stdout } = await cli([name, "--help"]);
      assert.equal(code, 0);
      assert.match(stdout, new RegExp(`^cloudsandbox ${name}: .*\\n\\nUsage\\n  cloudsandbox ${name}[ \\n]`));
      assert.equal((await cli(["help", name])).stdout, stdout);
    }
    assert.equal((await cli(["--version"])).stdout, `${manifest.version}\n`);
  });

  const wrong = [
    [["shel"], /^cloudsandbox: there is no command "shel"; did you mean `shell`\? See `cloudsandbox --help`\.\n$/],
    [["shell"], /^cloudsandbox: shell needs an argument\. See `cloudsandbox shell --help`\.\n$/],
    [["shell", "--frob", "x"], /^cloudsandbox: Unknown option '--frob'\. See `cloudsandbox shell --help`\.\n$/],
    [["shell", "-t", "soon", "ls"], /--timeout must be a number of seconds above 0/],
    [["shell", "-e", "A", "ls"], /--env must be NAME=VALUE/],
    [["shell", "-p", "lokal", "ls"], /there is no provider "lokal"; there are local, unix-local, isolated-local, e2b, /],
    [["shell", "-p", "local", "-o", "imag=x", "ls"], /there is no option `imag`/],
    [["run", "notes.txt"], /the name of notes\.txt does not tell its language; say --language/],
    [["run", "-l", "ruby", "x.rb"], /--language must be python, node or shell/],
    [["ls", "a", "b"], /ls takes at most one argument, and "b" is one too many/],
    [["put", "a", "b"], /the sandbox would be deleted with the files in it; say --keep, or --sandbox ID/],
    [["shell", "-p", "e2b", "ls"], /E2B_API_KEY/, 125],
    [["run", "absent.py"], /there is no file absent\.py on this machine; give the path of one, or - for standard input\. See/],
    [["run", "a.py", "x"], /at most one argument, and "x" is one too many; a program that takes arguments is put into a sandbox/],
    [["run", "--tiemout", "3", "a.py"], /Unknown option '--tiemout'; did you mean --timeout\? See/],
  ];
  for (const [args, words, code = 2] of wrong) {
    test(`refused in one sentence: ${args.join(" ")}`, async () => {
      const ended = await cli(args);
      assert.deepEqual([ended.code, ended.stdout], [code, ""]);
      assert.match(ended.stderr, words);
      assert.equal(ended.stderr.trim().split("\n").length, 1, ended.stderr);
    });
  }
});

test("with --json an error is one object, too", async () => {
  const usage = await cli(["run", "--json", "absent.py"]);
  const { error } = JSON.parse(usage.stdout);
  assert.deepEqual([usage.code, error.code, error.mayHaveRun], [2, "ERR_SANDBOX_INVALID_ARG", false]);
  assert.equal(usage.stderr, `cloudsandbox: ${error.message}\n`);
  const gone = await cli(["get", ...LOCAL, "--json", "absent"]);
  assert.deepEqual([gone.code, JSON.parse(gone.stdout).error.code], [125, "ERR_SANDBOX_NOT_FOUND"]);
  const theirs = await cli(["shell", "-p", "lokal", "echo", "--json"]);
  assert.deepEqual([theirs.code, theirs.stdout], [2, ""]);
});

describe("run and shell", { concurrency: 2 }, () => {
  test("streams stay apart, and the exit code is that of the command", async () => {
    assert.deepEqual(await cli(["shell", ...LOCAL, "echo out; echo err >&2; exit 3"]), { code: 3, signal: null, stdout: "out\n", stderr: "err\n" });
    assert.deepEqual(await cli(["shell", ...LOCAL, "echo", "-n", "--help"]), { code: 0, signal: null, stdout: "--help", stderr: "" }, "what follows is the command's");
    assert.deepEqual(await cli(["shell", ...LOCAL, "--", "echo", "x"]), { code: 0, signal: null, stdout: "x\n", stderr: "" });
  });

  test("isolated on this machine unless another place is named; where that cannot be had, nothing runs and the way out is named", async (t) => {
    const dir = tempDir(t);
    for (const args of [["shell"], ["shell", "-p", "local"], ["shell", "--keep"]]) {
      const { code, stdout, stderr } = await cli([...args, "id -u; pwd; touch f"], { env: { TMPDIR: dir } });
      if (code === 0) {
        assert.equal(stdout, "1000\n/workspace\n");
        assert.match(stderr, args[1] === "--keep" ? /^cloudsandbox: the sandbox was kept; .*\n$/ : /^$/);
      } else {
        t.diagnostic(`unavailable here: ${stderr}`);
        assert.deepEqual([code, stdout], [125, ""]);
        assert.match(stderr, /^cloudsandbox: .*Layer \w+: .*isolation: "none".* \(here: --provider unix-local\)\n$/);
      }
    }
    assert.equal((await cli(["shell", "-p", "local", "-o", "isolation=none", "pwd"], { env: { TMPDIR: dir } })).stdout.slice(0, dir.length), dir);
    assert.equal((await cli(["shell", "true"], { env: { CLOUDSANDBOX_PROVIDER: "lokal" } })).code, 2);
  });

  test("files by their name, standard input, variables, a folder, input", async (t) => {
    const dir = tempDir(t);
    writeFileSync(path.join(dir, "a.py"), "print(6 * 7)");
    writeFileSync(path.join(dir, "a.mjs"), "console.log(typeof process)");
    writeFileSync(path.join(dir, "a.sh"), "echo $WORD; pwd | sed 's,.*/,,'");
    assert.equal((await cli(["run", ...LOCAL, "a.py"], { cwd: dir })).stdout, "42\n");
    assert.equal((await cli(["run", ...LOCAL, "a.mjs"], { cwd: dir })).stdout, "object\n");
    mkdirSync(path.join(dir, "work/sub"), { recursive: true });
    const args = ["run", ...LOCAL, "-e", "WORD=a=b", "-s", "work", "--cwd", "sub", "a.sh"];
    assert.equal((await cli(args, { cwd: dir })).stdout, "a=b\nsub\n");
    assert.equal((await cli(["run", ...LOCAL, "-"], { input: "print('in')" })).stdout, "in\n");
    assert.equal((await cli(["run", ...LOCAL, "-l", "node"], { input: "console.log(1)" })).stdout, "1\n");
    assert.equal((await cli(["shell", ...LOCAL, "-i", "tr a-z A-Z"], { input: "given" })).stdout, "GIVEN");
  });

  test("output comes while the command runs, all of it, byte for byte", async () => {
    const { child, ended, seen } = start(["shell", ...LOCAL, "echo one; sleep 600"]);
    await new Promise((resolve) => child.stdout.once("data", resolve));
    assert.equal(seen.stdout, "one\n");
    child.kill("SIGINT");
    assert.equal((await ended).code, 130);
    const { stdout } = await cli(["shell", ...LOCAL, "seq 1 400000"]);
    assert.equal(stdout.length, 2688895);
    const raw = spawnSync(process.execPath, [BIN, "shell", ...LOCAL, "printf '\\377\\000\\303'"], { env: { PATH: process.env.PATH, ...SANITIZER_ENV } });
    assert.deepEqual([...raw.stdout], [0xff, 0, 0xc3]);
  });

  test("--timeout ends it with 124; --json tells all at the end", async () => {
    const { code, stderr } = await cli(["shell", ...LOCAL, "-t", "0.3", "sleep 600"]);
    assert.equal(code, 124);
    assert.match(stderr, /ended after 0\.3 s/);
    const json = await cli(["shell", ...LOCAL, "--json", "echo out; echo err >&2; exit 4"]);
    const { stdout, stderr: err, exitCode, provider, status } = JSON.parse(json.stdout);
    assert.deepEqual([json.code, stdout, err, exitCode, provider, status], [4, "out\n", "err\n", 4, "unix-local", "exited"]);
  });

  for (const [signal, code] of [["SIGINT", 130], ["SIGTERM", 143]]) {
    test(`${signal} kills the command and all that it started; exit code ${code}`, async () => {
      const { env, started, gone } = mark();
      const pairs = Object.entries(env).flatMap(([name, value]) => ["-e", `${name}=${value}`]);
      const { child, ended } = start(["shell", ...LOCAL, ...pairs, "sleep 600 & sleep 600"]);
      await started(2);
      child.kill(signal);
      assert.equal((await ended).code, code);
      await gone();
    });
  }

  test("a reader that has gone, as `head` has, ends it without a word", async () => {
    const { child, ended } = start(["shell", ...LOCAL, "yes"]);
    await new Promise((resolve) => child.stdout.once("data", resolve));
    child.stdout.destroy();
    const { code, stderr } = await ended;
    assert.deepEqual([code, stderr], [141, ""]);
  });

  test("nothing is left; --keep keeps, and --sandbox goes on there", async (t) => {
    const dir = tempDir(t);
    const env = { TMPDIR: dir };
    await cli(["shell", ...LOCAL, "touch f"], { env });
    assert.deepEqual(readdirSync(dir), []);
    const { stderr } = await cli(["shell", ...LOCAL, "--keep", "echo kept > f"], { env });
    const [, id] = /^cloudsandbox: the sandbox was kept; go on with --provider unix-local --sandbox (\S+)\n$/.exec(stderr);
    assert.equal((await cli(["shell", ...LOCAL, "--sandbox", id, "cat f"], { env })).stdout, "kept\n");
    assert.ok(existsSync(path.join(id, "f")), "one that was kept is deleted by nobody else");
  });
});

describe("files", { concurrency: 2 }, () => {
  test("put, ls and get, with folders and bytes", async (t) => {
    const dir = tempDir(t);
    const box = path.join(dir, "box");
    mkdirSync(box);
    mkdirSync(path.join(dir, "src/deep"), { recursive: true });
    const bytes = Buffer.from([0, 255, 1, 254]);
    writeFileSync(path.join(dir, "src/deep/b.bin"), bytes);
    writeFileSync(path.join(dir, "a.txt"), "a\n");
    const on = (args) => cli([args[0], ...LOCAL, "-s", box, ...args.slice(1)], { cwd: dir });
    assert.equal((await on(["put", "src", "a.txt", "to/"])).code, 0);
    assert.equal((await on(["put", "a.txt", "renamed.txt"])).code, 0);
    assert.equal((await on(["ls"])).stdout, "2  renamed.txt\n2  to/a.txt\n4  to/src/deep/b.bin\n");
    assert.equal((await on(["ls", "to/src"])).stdout, "4  to/src/deep/b.bin\n");
    assert.deepEqual(JSON.parse((await on(["ls", "--json", "to/src"])).stdout).files, [{ path: "to/src/deep/b.bin", size: 4 }]);
    assert.equal((await on(["get", "to/src/deep/b.bin"])).code, 0);
    assert.deepEqual(readFileSync(path.join(dir, "b.bin")), bytes);
    assert.equal((await on(["get", "to/a.txt", "-"])).stdout, "a\n");
    assert.equal((await on(["get", "to/a.txt", "src"])).code, 0);
    assert.ok(statSync(path.join(dir, "src/a.txt")).isFile());
    const absent = await on(["get", "absent"]);
    assert.deepEqual([absent.code, absent.stdout], [125, ""]);
    assert.match(absent.stderr, /^cloudsandbox: there is no file absent in the sandbox; `cloudsandbox ls` shows what there is\n$/);
    assert.deepEqual(readdirSync(dir).sort(), ["a.txt", "b.bin", "box", "src"], "no half file is left");
  });

  test("a report of a record", async (t) => {
    const dir = tempDir(t);
    writeFileSync(path.join(dir, "r.ndjson"), "");
    const { code, stderr } = await cli(["report", "r.ndjson", "r.html"], { cwd: dir });
    assert.equal(code, 0, stderr);
    assert.match(readFileSync(path.join(dir, "r.html"), "utf8"), /^<!doctype html>/i);
  });
});

describe("on an engine", () => {
  let emulator;
  before(async () => {
    emulator = await startDocker({ kind: "docker" });
    emulator.settings.images.add("cli:1");
  });
  after(() => emulator.close());

  // The client is well there, with an emulator that runs under another version.
  const deaf = Number.parseInt(process.versions.node) >= 26 && "under this Node.js the emulator does not see the end of an input";
  test("shell, --keep and --sandbox, put and get; what was not kept is removed", { skip: deaf }, async (t) => {
    const dir = tempDir(t);
    const at = ["-p", "docker", "-o", `host=${emulator.host}`];
    const made = [...at, "-o", "image=cli:1", "-o", "pull=never", "-o", `workingDir=${path.join(emulator.base, "cli")}`];
    assert.deepEqual(await cli(["shell", ...made, "echo in; exit 5"]), { code: 5, signal: null, stdout: "in\n", stderr: "" });
    assert.equal(emulator.containers.size, 0);
    const { code, stderr } = await cli(["shell", ...made, "--keep", "true"]);
    assert.equal(code, 0, stderr);
    const [, id] = /--sandbox (\S+)\n$/.exec(stderr);
    assert.equal(emulator.containers.size, 1);
    writeFileSync(path.join(dir, "f"), "put\n");
    const there = [...at, "-s", id];
    assert.equal((await cli(["put", ...there, "f", "g"], { cwd: dir })).code, 0);
    assert.equal((await cli(["get", ...there, "g", "-"])).stdout, "put\n");
    assert.equal(emulator.containers.size, 1);
  });

  test("doctor and providers: what is there; keys are never shown", async () => {
    const env = { DOCKER_HOST: emulator.host, E2B_API_KEY: "e2b_secretsecret", E2B_API_URL: "http://127.0.0.1:9" };
    const { code, stdout } = await cli(["doctor", "--json"], { env });
    const found = Object.fromEntries(JSON.parse(stdout).findings.map(({ name, state, text }) => [name, [state, text]]));
    assert.equal(code, 1, "one service is set up and does not answer");
    assert.equal(found["Node.js"][0], "ok");
    assert.equal(found["native part"][0], "ok");
    assert.match(found.libcurl[1], /libcurl/);
    assert.deepEqual(found["local sandbox"], ["ok", "starts, runs a command"]);
    if (found.isolation[0] === "ok") assert.equal(found.Landlock[0], "ok", "it was tried, whatever is mounted");
    assert.deepEqual(found.e2b[0], "wrong");
    assert.deepEqual(found.daytona[0], "missing");
    const offline = await cli(["doctor", "--offline"], { env });
    assert.equal(offline.code, 0);
    const listed = await cli(["providers"], { env });
    for (const name of ["local", "unix-local", "isolated-local", "e2b", "daytona", "docker", "http", "vercel"]) assert.match(listed.stdout, new RegExp(`^  (ok|--) ${name} `, "m"));
    for (const text of [stdout, offline.stdout, listed.stdout]) assert.doesNotMatch(text, /secretsecret/);
  });

  test("mcp without the SDK says how to get it", async (t) => {
    const { code, stderr } = await cli(["mcp", ...LOCAL], { cwd: tempDir(t) });
    assert.equal(code, 2);
    assert.match(stderr, /^cloudsandbox: mcp needs the package @modelcontextprotocol\/sdk, which is not installed: run `npm install @modelcontextprotocol\/sdk`/);
  });
});

test("the package itself imports nothing of the command", () => {
  const files = readdirSync(path.join(ROOT, "lib"), { recursive: true }).filter((name) => name.endsWith(".js") && !name.startsWith("cli"));
  for (const name of files) assert.doesNotMatch(readFileSync(path.join(ROOT, "lib", name), "utf8"), /["']\.{1,2}\/cli\//, name);
  assert.match(readFileSync(BIN, "utf8"), /^#!\/usr\/bin\/env node\n/);
  assert.ok(statSync(BIN).mode & 0o100, "it can be executed");
});
