// Commands at the process service: what goes over the wire, what runs in the background, how a tree is
// ended, and that what is written by us is told from what is written by the command.
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { describe, test } from "node:test";

import { replies } from "../emulators/engine.js";
import { mark } from "../support/processes.js";
import { HANG_MS, event, eventually, rejection } from "../support/wait.js";
import { open, withoutVariables } from "./support.js";

withoutVariables();

const START = "process.Process/Start";

/** The message of a logged start. */
const messageOf = (entry) => JSON.parse(entry.body.slice(5));
/** Files that calls have uploaded for themselves. */
const uploads = (engine) =>
  engine.requests("envd POST /files").map((entry) => new URL(entry.path, "http://x").searchParams.get("path"));

/** Ids of the processes with this command line. */
function processesOf(commandLine) {
  return readdirSync("/proc").filter((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ").trim() === commandLine;
    } catch {
      return false;
    }
  });
}

describe("the start request", { concurrency: 8 }, () => {
  test("user text, directory and variables have fields of their own; there is no stdin; the limit is told", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make();
    await sandbox.writeFile("sub/f", "");
    engine.clearLog();
    await sandbox.exec({ command: "echo 'x'", cwd: "sub", env: { A: "1", B: "b\n'" }, timeoutSeconds: 7.5 });
    const [entry] = engine.requests(START);
    const { process: config, stdin } = messageOf(entry);
    assert.equal(stdin, false);
    assert.equal(config.cmd, "/bin/sh");
    assert.deepEqual(config.args.slice(-4), ["A B", "shell", "", "echo 'x'"]);
    assert.equal(config.cwd, "./sub");
    assert.deepEqual([config.envs.A, config.envs.B], ["1", "b\n'"]);
    assert.equal(entry.headers["connect-timeout-ms"], "7500");
    assert.equal(entry.headers["keepalive-ping-interval"], "50");
    assert.equal(entry.headers["content-type"], "application/connect+json");
    assert.equal(entry.headers["connect-accept-encoding"], undefined);
  });

  test("no limit: none is sent", async (t) => {
    const { engine, make } = await open(t);
    await make().exec({ command: "true", timeoutSeconds: Infinity });
    assert.equal(engine.requests(START)[0].headers["connect-timeout-ms"], undefined);
  });

  test("the wrapper is the same for every command line, and for all code", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make();
    await sandbox.shell("echo $(id)");
    await sandbox.exec({ argv: ["echo", "$(id)"], stdin: "x" });
    await sandbox.run("print('`id`')");
    await sandbox.run("console.log('`id`')", { language: "node" });
    const [line, words, ...code] = engine.requests(START).map((entry) => messageOf(entry).process.args[1]);
    assert.equal(line, words);
    assert.equal(new Set(code).size, 1);
  });

  test("relative directories begin at home, also behind a '~'", async (t) => {
    const { make } = await open(t);
    const sandbox = make();
    await sandbox.writeFile("~/a/f", "by tilde");
    assert.equal(await sandbox.readFile("a/f"), "by tilde");
    const { stdout: home } = await sandbox.exec({ command: "pwd" });
    const directory = async (cwd) => (await sandbox.exec({ command: "pwd", cwd })).stdout.replace(home.trim(), "H").trim();
    assert.deepEqual(await Promise.all(["a", "./a", "~/a", "a/.."].map(directory)), ["H/a", "H/a", "H/a", "H"]);
    assert.equal(await directory("/tmp"), "/tmp");
  });
});

describe("background processes", { concurrency: 8 }, () => {
  test("D11 one that keeps the pipes does not hold the call, and lives on", async (t) => {
    const { make } = await open(t);
    const sandbox = make();
    const tracked = mark();
    const begin = performance.now();
    const command = "(while :; do echo tick; date +%s%N > t; mv t tick; sleep 0.05; done) & echo started";
    const result = await sandbox.exec({ command, env: tracked.env });
    assert.ok(performance.now() - begin < HANG_MS);
    assert.deepEqual([result.status, result.exitCode, result.termination], ["exited", 0, "none"]);
    assert.match(result.stdout, /^started$/m);
    const before = await sandbox.readFile("tick");
    await eventually("a later tick", async () => (await sandbox.readFile("tick")) !== before);
    assert.ok(tracked.alive().length > 0);
  });

  test("D11 all that the command itself wrote has arrived, exactly, and its exit code", async (t) => {
    const { make } = await open(t);
    const result = await make({ maxOutputBytes: 8_000_000 }).exec({ command: "sleep 300 & seq 1 300000; echo e >&2; exit 5" });
    assert.equal(result.exitCode, 5);
    assert.equal(result.stdout, Array.from({ length: 300_000 }, (_, i) => `${i + 1}\n`).join(""));
    assert.equal(result.stderr, "e\n");
  });

  test("D11 one that lets go of the pipes costs no time", async (t) => {
    const { make } = await open(t);
    const sandbox = make();
    await sandbox.start();
    // What waits for the pipes takes at least half a second, each time; a busy machine does not.
    await eventually("a quick end", async () => {
      const begin = performance.now();
      assert.deepEqual(await sandbox.shell("sleep 300 > /dev/null 2>&1 & echo ok"), { output: "ok\n", exitCode: 0 });
      return performance.now() - begin < 450;
    });
  });
});

describe("the end of a tree", { concurrency: 8 }, () => {
  test("a limit ends children, those with a session of their own and those with an empty environment", async (t) => {
    const { make } = await open(t);
    const tracked = mark();
    const odd = 300 + Math.random();
    const command = `sleep 300 & setsid sleep 300 & env -i sleep ${odd} & (sleep 300; sleep 300) & wait`;
    const call = make().exec({ command, env: tracked.env, timeoutSeconds: 3 });
    await eventually("the start", () => processesOf(`sleep ${odd}`).length === 1);
    const result = await call;
    assert.deepEqual([result.status, result.termination], ["timedOut", "confirmed"]);
    assert.deepEqual(tracked.alive(), []);
    assert.deepEqual(processesOf(`sleep ${odd}`), []);
  });

  test("C194 a limit that the service keeps ends a command that has become one with an empty environment", async (t) => {
    const { make } = await open(t);
    const odd = 300 + Math.random();
    const call = make().exec({ command: `exec env -i sleep ${odd}`, timeoutSeconds: 3 });
    await eventually("the start", () => processesOf(`sleep ${odd}`).length === 1);
    const result = await call;
    assert.deepEqual([result.status, result.termination], ["timedOut", "confirmed"]);
    assert.deepEqual(processesOf(`sleep ${odd}`), []);
  });

  for (const command of ["sudo setsid sleep $N & sleep 60", "env -i setsid sleep $N & sleep 60"]) {
    test(`C194 ${command}: nothing lives, or it is not said to be gone`, async (t) => {
      const { make } = await open(t);
      const odd = String(300 + Math.random());
      const tracked = mark();
      // Where there is no sudo, something else that clears the environment.
      const line = `sudo() { env -i "$@"; }; ${command.replace("$N", odd)}`;
      const result = await make().exec({ command: line, env: tracked.env, timeoutSeconds: 1 });
      assert.equal(result.status, "timedOut");
      if (result.termination === "confirmed") assert.deepEqual([processesOf(`sleep ${odd}`), tracked.alive()], [[], []]);
    });
  }

  test("so does a cancel, and what was written until then is there", async (t) => {
    const { make } = await open(t);
    const tracked = mark();
    const controller = new AbortController();
    const said = event();
    const spec = { command: "echo a; sleep 300 & sleep 300", env: tracked.env, signal: controller.signal, onStdout: said.fire };
    const call = make().exec(spec);
    await said.happened;
    controller.abort();
    const result = await call;
    assert.deepEqual([result.status, result.stdout, result.termination], ["cancelled", "a\n", "confirmed"]);
    assert.deepEqual(tracked.alive(), []);
  });

  test("other commands of the sandbox are left alone", async (t) => {
    const { make } = await open(t);
    const sandbox = make();
    const other = sandbox.shell("sleep 1.5; echo whole");
    assert.equal((await sandbox.shell("sleep 300", { timeoutSeconds: 0.5 })).timedOut, true);
    assert.deepEqual(await other, { output: "whole\n", exitCode: 0 });
  });

  test("the killer is root", async (t) => {
    const { engine, make } = await open(t);
    const abort = new AbortController();
    await make().exec({ command: "echo; sleep 300", signal: abort.signal, onStdout: () => abort.abort() });
    const [command, killer] = engine.requests(START);
    assert.equal(command.headers.authorization, undefined);
    assert.equal(killer.headers.authorization, "Basic cm9vdDo=");
    // It works on when nobody waits for it any more: what it had stopped by then would stay so.
    assert.equal(killer.headers["connect-timeout-ms"], "60000");
  });
});

describe("output", { concurrency: 4 }, () => {
  test("bytes that look like our own line are the command's", async (t) => {
    const { make } = await open(t);
    const sandbox = make();
    const bytes = "\u001e\u001e0123456789abcdef0123456789abcdef 0\n\u001e";
    assert.equal((await sandbox.exec({ command: "cat", stdin: bytes })).stdout, bytes);
    const almost = String.raw`printf '\036%.31s\n\036%sx 0\n\036%s\n\036%s 1234\n\036%s 7x\n\036' $CLOUDSANDBOX_CALL $CLOUDSANDBOX_CALL $CLOUDSANDBOX_CALL $CLOUDSANDBOX_CALL $CLOUDSANDBOX_CALL`;
    const { stdout, exitCode } = await sandbox.exec({ command: `${almost}; ${almost} >&2; exit 3` });
    assert.equal(exitCode, 3);
    const token = stdout.match(/[0-9a-f]{32}/)[0];
    const text = `\u001e${token.slice(0, 31)}\n\u001e${token}x 0\n\u001e${token}\n\u001e${token} 1234\n\u001e${token} 7x\n\u001e`;
    assert.equal(stdout, text);
  });

  test("30 MB in pieces of all sizes: bounded, counted, exact", async (t) => {
    const { make } = await open(t);
    const sandbox = make();
    const result = await sandbox.exec({ command: "head -c 30000000 /dev/zero", encoding: "buffer" });
    assert.equal(result.stdout.length, 1_048_576);
    assert.equal(result.droppedBytes.stdout, 30_000_000 - 1_048_576);
    assert.ok(result.stdout.every((byte) => byte === 0));
  });

  test("C015 one byte at a time", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make();
    engine.fault(START, { pieceBytes: 1 });
    assert.deepEqual(await sandbox.shell("echo h\u00e9llo \u{1F600}"), { output: "h\u00e9llo \u{1F600}\n", exitCode: 0 });
  });

  test("both streams in the order of writing, where they are joined", async (t) => {
    const { make } = await open(t);
    const command = "for i in 1 2 3 4 5 6 7 8 9; do echo o$i; echo e$i >&2; done";
    const expected = Array.from({ length: 9 }, (_, i) => `o${i + 1}\ne${i + 1}\n`).join("");
    assert.equal((await make().shell(command)).output, expected);
  });
});

describe("input and long text", { concurrency: 4 }, () => {
  test("3 MB of input, byte for byte, and nothing is left of it", async (t) => {
    const { engine, make } = await open(t);
    const stdin = Uint8Array.from({ length: 3_000_000 }, (_, i) => (i * 7) & 255);
    const result = await make({ maxOutputBytes: 4_000_000 }).exec({ argv: ["cat"], stdin, encoding: "buffer" });
    assert.deepEqual(result.stdout, stdin);
    assert.deepEqual(uploads(engine).map(existsSync), [false]);
  });

  test("a command that does not read its input", async (t) => {
    const { make } = await open(t);
    assert.equal((await make().exec({ command: "exit 4", stdin: "x".repeat(1_000_000) })).exitCode, 4);
  });

  test("an upload that fails: the command is not started", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make();
    await sandbox.start();
    engine.fault("envd POST /files", { instead: "reset" });
    const error = await rejection(sandbox.exec({ command: "cat", stdin: "x" }));
    assert.deepEqual([error.code, error.mayHaveRun], ["ERR_SANDBOX_NETWORK", false]);
    assert.match(error.message, /did not run/);
    assert.equal(engine.count(START), 0);
  });

  test("a long script: line numbers, arguments and exit code hold", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make();
    const filler = `: ${"x".repeat(120_000)}\n`;
    const { output, exitCode } = await sandbox.shell(`${filler}nosuchcmd_zz\nls /proc/self/fd; exit 6`);
    assert.equal(exitCode, 6);
    assert.match(output, /line 2: nosuchcmd_zz: command not found/);
    assert.ok(!/^9$/m.test(output), "the descriptor of the script is closed");
    assert.deepEqual(uploads(engine).map(existsSync), [false]);
  });

  test("C167 long code in both languages, also with input", async (t) => {
    const { make } = await open(t);
    const sandbox = make();
    const filler = "x".repeat(150_000);
    assert.equal((await sandbox.run(`s = '${filler}'\nimport sys\nprint(len(s), sys.stdin.read())`)).output, "150000 \n");
    assert.equal((await sandbox.run(`const s = '${filler}';\nconsole.log(s.length)`, { language: "node" })).output, "150000\n");
    assert.equal((await sandbox.exec({ code: `s = '${filler}'\nprint(len(s), input())`, stdin: "x" })).stdout, "150000 x\n");
    assert.equal((await sandbox.exec({ code: "print(input())", stdin: "given\n" })).stdout, "given\n");
  });

  test("code that begins with a '-', and module paths begin at the directory", async (t) => {
    const { make } = await open(t);
    const sandbox = make();
    assert.equal((await sandbox.run("-1; console.log('ok')", { language: "node" })).output, "ok\n");
    assert.equal((await sandbox.run("-1; print('ok')")).output, "ok\n");
    await sandbox.writeFile("mine.py", "value = 7");
    assert.equal((await sandbox.run("import mine; print(mine.value)")).output, "7\n");
  });

  test("programs that a shell has built in are programs", async (t) => {
    const { make } = await open(t);
    const sandbox = make();
    assert.equal((await sandbox.exec({ argv: ["printf", "%s", "x"] })).stdout, "x");
    assert.equal((await sandbox.exec({ argv: ["eval", "echo no"] })).exitCode, 127);
    assert.equal((await sandbox.exec({ argv: ["exit", "0"] })).exitCode, 127);
  });

  test("cancelled while the input is uploaded: the command never starts", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make();
    await sandbox.start();
    engine.fault("envd POST /files", { instead: "hang" });
    const controller = new AbortController();
    const call = sandbox.exec({ command: "cat", stdin: "x", signal: controller.signal });
    await engine.waitFor("envd POST /files");
    controller.abort();
    const result = await call;
    assert.deepEqual([result.status, result.termination], ["cancelled", "confirmed"]);
    assert.deepEqual(engine.requests(START).map((entry) => entry.headers.authorization), ["Basic cm9vdDo="]);
  });
});

describe("input of a command that does not start", { concurrency: 4 }, () => {
  const long = `: ${"x".repeat(120_000)}`;

  test("it is refused: the uploads are removed", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make();
    engine.fault(START, { instead: replies.tooMany(undefined) });
    const error = await rejection(sandbox.exec({ command: long, stdin: "x" }));
    assert.deepEqual([error.code, error.mayHaveRun], ["ERR_SANDBOX_RATE_LIMITED", false]);
    assert.equal(uploads(engine).length, 2);
    await eventually("the removal", () => !uploads(engine).some(existsSync));
    assert.equal(engine.count("filesystem.Filesystem/Remove"), 2);
  });

  test("it is cancelled: what was uploaded is removed", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make();
    await sandbox.start();
    const gate = engine.gate();
    engine.fault("envd POST /files", { hold: gate });
    const controller = new AbortController();
    const call = sandbox.exec({ command: "cat", stdin: "x", signal: controller.signal });
    await gate.arrived();
    assert.deepEqual(uploads(engine).map(existsSync), [true]);
    controller.abort();
    assert.equal((await call).status, "cancelled");
    await eventually("the removal", () => !uploads(engine).some(existsSync));
    gate.open();
  });
});

describe("a context without an interpreter", () => {
  test("is refused, and nothing runs", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make();
    const error = await rejection(sandbox.run("1", { context: "a" }));
    assert.equal(error.code, "ERR_SANDBOX_UNSUPPORTED");
    assert.match(error.message, /no interpreter.*`interpreter: true`/);
    assert.equal(engine.log.length, 0, "nothing is created for it");
    assert.equal((await rejection(sandbox.exec({ command: "true", context: "a" }))).code, "ERR_SANDBOX_INVALID_ARG");
    assert.equal((await rejection(sandbox.run("1", { language: "shell", context: "a" }))).code, "ERR_SANDBOX_INVALID_ARG");
  });
});

describe("shells", { concurrency: 8 }, () => {
  test("C161 a login bash, whose profile does not change what the call says", async (t) => {
    const { make } = await open(t);
    const sandbox = make();
    await sandbox.writeFile(".bash_profile", "export A=profile B=profile PATH=/usr/bin:/bin; greet() { echo no; }\n");
    await sandbox.writeFile(".bash_logout", "echo logout\n");
    const { stdout } = await sandbox.exec({ command: 'echo "$A $B $#"; set | grep -c "^__[a-z]"; exit 0', env: { A: "the call's \n$(x)" } });
    assert.equal(stdout, "the call's \n$(x) profile 0\n0\n");
    assert.equal((await sandbox.exec({ command: "echo $A", shell: "bash" })).stdout, "\n");
    assert.equal((await sandbox.exec({ command: "-x; echo on" })).stdout, "on\n");
  });

  test("C161 a shell that is not there: INVALID_ARG, and nothing ran", async (t) => {
    const { make } = await open(t);
    const error = await rejection(make().exec({ command: "true", shell: "/no/such" }));
    assert.deepEqual([error.code, error.mayHaveRun], ["ERR_SANDBOX_INVALID_ARG", false]);
    assert.match(error.message, /no shell \/no\/such/);
  });

  test("C167 C169 code is a file beside the user's, of which nothing is listed or left", async (t) => {
    const { make } = await open(t);
    const sandbox = make();
    await sandbox.writeFile("sub/near.py", "v = 1");
    const code = "import os, near\nprint(os.path.dirname(__file__) == os.getcwd(), near.v)";
    assert.equal((await sandbox.exec({ code, cwd: "sub" })).stdout, "True 1\n");
    const node = "console.log(require.main === module, __dirname === process.cwd())";
    assert.equal((await sandbox.exec({ code: node, language: "node", cwd: "sub" })).stdout, "true true\n");
    const late = sandbox.exec({ code: "import time; print(flush=True); time.sleep(99)", cwd: "sub", timeoutSeconds: 1 });
    await eventually("the file", async () => (await sandbox.shell("ls -A sub")).output.includes(".cloudsandbox-"));
    const names = (await sandbox.listFiles()).map((entry) => entry.path).filter((path) => path.startsWith("sub/"));
    assert.deepEqual(names.filter((path) => !path.includes("__pycache__")), ["sub/near.py"]);
    assert.equal((await late).status, "timedOut");
    assert.doesNotMatch((await sandbox.shell("ls -A sub")).output, /cloudsandbox/);
  });

  test("C204 a variable of 140,000 bytes: TOO_LARGE before the wire", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make();
    await sandbox.start();
    const error = await rejection(sandbox.exec({ command: "true", env: { A: "x".repeat(140_000) } }));
    assert.deepEqual([error.code, error.retryable, error.mayHaveRun], ["ERR_SANDBOX_TOO_LARGE", false, false]);
    assert.equal(engine.count(START), 0);
    const longest = await sandbox.exec({ command: "echo ${#A}", env: { A: "x".repeat(128 * 1024 - 9) } });
    assert.equal(longest.stdout, "131063\n");
  });
});
