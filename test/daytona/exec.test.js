// Commands: what the report program inside the sandbox is there for. The toolbox's own execute mixes the
// outputs, loses bytes, feeds a command from the script, and drops all output at a timeout.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, test } from "node:test";

import { daytonaReplies } from "../emulators/daytona/replies.js";
import { commandFolders } from "../support/daytona.js";
import { HANG_MS, eventually, rejection } from "../support/wait.js";
import { CREATE, EXECUTE, LOOK, open } from "./support.js";

/** Processes whose environment has this text. */
function marked(text) {
  return readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(`/proc/${pid}/environ`, "latin1").includes(text);
    } catch {
      return false;
    }
  });
}

describe("commands", { concurrency: 3 }, () => {
  test("C009 a passed limit: the output so far of both streams, and no process is left", async (t) => {
    const { sandbox } = await open(t);
    const mark = `KEY_${Math.random()}`;
    const result = await sandbox.exec({
      command: "echo out; echo err >&2; (sleep 60 & setsid sleep 61 & sleep 62) & sleep 63",
      env: { MARK: mark },
      timeoutSeconds: 2,
    });
    assert.equal(result.status, "timedOut");
    assert.equal(result.exitCode, 124);
    assert.equal(result.stdout, "out\n");
    assert.equal(result.stderr, "err\n");
    assert.equal(result.termination, "confirmed");
    await eventually("all of it is gone", () => marked(mark).length === 0);
    assert.ok(result.durationMs < HANG_MS);
  });

  test("an abort ends the whole tree, too", async (t) => {
    const { engine, sandbox } = await open(t);
    const mark = `KEY_${Math.random()}`;
    const controller = new AbortController();
    const running = sandbox.exec({
      command: "echo begun; setsid sleep 60 & sleep 61",
      env: { MARK: mark },
      signal: controller.signal,
      onStdout: () => controller.abort(),
    });
    const result = await running;
    assert.equal(result.status, "cancelled");
    assert.equal(result.stdout, "begun\n");
    assert.equal(result.termination, "confirmed");
    await eventually("all of it is gone", () => marked(mark).length === 0);
    const runs = engine.log.filter(({ route, body }) => route === EXECUTE && body.includes("mkfifo"));
    assert.equal(runs.length, 1);
  });

  test("an abort before the command begins keeps it from running", async (t) => {
    const { engine, sandbox } = await open(t);
    await sandbox.start();
    const gate = engine.gate();
    engine.fault(EXECUTE, { before: gate });
    const controller = new AbortController();
    const running = sandbox.exec({ command: "echo ran >ran.txt", signal: controller.signal });
    await gate.arrived();
    controller.abort();
    await eventually("the kill", () => engine.log.filter((entry) => entry.route === EXECUTE && entry.status === 200).length === 1);
    gate.open();
    assert.equal((await running).status, "cancelled");
    assert.equal(await sandbox.readFile("ran.txt"), null);
  });

  test("C054 the rest of the script is no input, and given input arrives exactly", async (t) => {
    const { sandbox } = await open(t);
    assert.deepEqual(await sandbox.shell("cat\necho b"), { output: "b\n", exitCode: 0 });
    assert.equal((await sandbox.shell("read x; echo got=$x")).output, "got=\n");
    const bytes = Uint8Array.from({ length: 1000 }, (_, i) => i & 255);
    const { stdout } = await sandbox.exec({ command: "cat", stdin: bytes, encoding: "buffer" });
    assert.deepEqual(stdout, bytes);
    const code = "import sys; print(sys.stdin.read().upper())";
    assert.equal((await sandbox.exec({ code, stdin: "abc" })).stdout, "ABC\n");
  });

  test("bytes survive: NUL, what is no UTF-8, no line end added", async (t) => {
    const { sandbox } = await open(t);
    const { stdout, stderr } = await sandbox.exec({
      command: "printf 'a\\000b\\377\\001\\001\\001'; printf '\\002' >&2",
      encoding: "buffer",
    });
    assert.deepEqual([...stdout], [97, 0, 98, 255, 1, 1, 1]);
    assert.deepEqual([...stderr], [2]);
  });

  test("writing to /dev/stderr and /dev/stdout is as with pipes", async (t) => {
    const { sandbox } = await open(t);
    const result = await sandbox.exec({ command: "echo 1; echo 2 >/dev/stderr; echo 3 >/dev/stdout; echo 4 | tee /dev/stderr" });
    assert.equal(result.stdout, "1\n3\n4\n");
    assert.equal(result.stderr, "2\n4\n");
  });

  test("D11 a process left behind does not hold the call, and lives on", async (t) => {
    const { sandbox } = await open(t);
    const begun = performance.now();
    const result = await sandbox.shell("sleep 300 & echo started $!");
    assert.match(result.output, /^started \d+\n$/);
    assert.ok(performance.now() - begun < HANG_MS);
    const pid = result.output.split(" ")[1].trim();
    assert.equal((await sandbox.shell(`kill ${pid}`)).exitCode, 0);
  });

  test("a PATH of the command's own reaches it, and does not break the report", async (t) => {
    const { sandbox } = await open(t);
    const { output, exitCode } = await sandbox.shell("echo $PATH; ls", { env: { PATH: "/nowhere", TMPDIR: "/nowhere" } });
    assert.match(output, /^\/nowhere\n.*not found\n$/s);
    assert.equal(exitCode, 127);
  });

  test("exit codes: the command's own, a signal's, and SIGINT is not ignored", async (t) => {
    const { sandbox } = await open(t);
    for (const [command, code] of [["exit 3", 3], ["exit 255", 255], ["kill -TERM $$", 143], ["kill -INT $$", 130], ["( ", 2], ["", 0]]) {
      assert.equal((await sandbox.shell(command)).exitCode, code, command);
    }
  });

  test("argv: no shell looks at it", async (t) => {
    const { sandbox } = await open(t);
    const argv = ["printf", "%s|", "a b", "$HOME", "'q'", "\"d\"", "\\", "`id`", "", "\n", "\u{1F600}"];
    const { stdout } = await sandbox.exec({ argv });
    assert.equal(stdout, `${argv.slice(2).join("|")}|`);
    assert.equal((await sandbox.exec({ argv: ["nosuchprogram_zz"] })).exitCode, 127);
  });

  test("C169 node code is a file: what needs a module asks for it, and import statements make it one", async (t) => {
    const { sandbox } = await open(t, {}, { language: "node" });
    const code = "const path = require('path'); console.log(path.join('a', 'b'), require.main === module)";
    assert.equal((await sandbox.run(code)).output, "a/b true\n");
    assert.equal((await sandbox.exec({ code, stdin: "x" })).stdout, "a/b true\n");
    assert.equal((await sandbox.run("import path from 'node:path'; console.log(path.join('a', 'b'))")).output, "a/b\n");
  });

  test("cwd: relative, absolute, and one that is not there", async (t) => {
    const { sandbox } = await open(t, { workDir: "project" });
    await sandbox.writeFile("sub/f", "x");
    assert.equal((await sandbox.exec({ command: "ls", cwd: "sub" })).stdout, "f\n");
    assert.equal((await sandbox.exec({ command: "pwd", cwd: "/" })).stdout, "/\n");
    assert.match((await sandbox.shell("pwd")).output, /\/project\n$/);
    const error = await rejection(sandbox.exec({ command: "touch ran", cwd: "nope" }));
    assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG");
    assert.match(error.message, /nope/);
    assert.equal(error.mayHaveRun, false);
  });

  test("callbacks hear output while the command runs, and all of it", async (t) => {
    const { engine, sandbox } = await open(t);
    const heard = { out: "", err: "" };
    let early = false;
    const result = await sandbox.exec({
      command: "echo first; echo problem >&2; while [ ! -e go ]; do sleep 0.05; done; seq 1 200000",
      onStdout(text) {
        if (!early) {
          early = true;
          sandbox.writeFile("go", "");
        }
        heard.out += text;
      },
      onStderr: (text) => (heard.err += text),
      maxOutputBytes: 100,
    });
    assert.equal(result.exitCode, 0);
    assert.equal(heard.err, "problem\n");
    assert.equal(heard.out.length, 6 + 1288895);
    assert.ok(heard.out.endsWith("\n200000\n"));
    assert.equal(result.stdout.length, 100);
    assert.equal(result.droppedBytes.stdout, 6 + 1288895 - 100);
    const runs = engine.log.filter(({ route, body }) => route === EXECUTE && body.includes("mkfifo"));
    assert.equal(runs.length, 1);
  });

  test("head and tail of much output come without the middle", async (t) => {
    const { engine, sandbox } = await open(t);
    const result = await sandbox.exec({ command: "seq 1 300000; echo e >&2", maxOutputBytes: 100, truncate: "middle" });
    assert.match(result.stdout, /^1\n2\n.*bytes left out.*300000\n$/s);
    assert.equal(result.stderr, "e\n");
    const size = 1988895;
    assert.equal(result.droppedBytes.stdout, size - 100);
    assert.ok(engine.log.at(-1).sentBytes < 2000, "the middle stayed in the sandbox");
  });

  test("much output does not fill the sandbox's disk, and is counted to the byte", async (t) => {
    const { sandbox } = await open(t);
    const size = 38_888_896; // of seq 1 5000000
    for (const truncate of ["head", "middle"]) {
      const result = await sandbox.exec({
        command: "seq 1 5000000; du -sk /tmp/.cloudsandbox-$CLOUDSANDBOX_RUN >&2",
        maxOutputBytes: 1000,
        truncate,
        timeoutSeconds: 120,
      });
      assert.equal(result.droppedBytes.stdout, size - 1000);
      assert.ok(result.stdout.startsWith("1\n2\n"));
      assert.equal(result.stdout.endsWith("\n5000000\n"), truncate === "middle");
      assert.ok(parseInt(result.stderr, 10) < 16_000, result.stderr);
    }
  });

  for (const shell of ["/bin/sh", "/bin/bash"]) {
    test(`the daemon's shell is ${shell}`, async (t) => {
      const { sandbox } = await open(t, { shell });
      const text = "#".repeat(300_000);
      assert.deepEqual(await sandbox.shell(`${text}\necho 'one' "two"; echo err >&2; exit 4`), {
        output: "one two\nerr\n",
        exitCode: 4,
      });
      const timed = await sandbox.shell("echo a; sleep 300", { timeoutSeconds: 4 });
      assert.deepEqual(timed, { output: "a\n", exitCode: 124, timedOut: true });
    });
  }

  for (const daemonVersion of ["0.140.0", "0.167.0", "0.190.0"]) {
    test(`C199 a working directory that cannot be entered, at a daemon of version ${daemonVersion}`, async (t) => {
      const { sandbox } = await open(t, { daemonVersion });
      await sandbox.shell("touch file");
      for (const cwd of ["missing", "file", "file/below", "n".repeat(300)]) {
        const error = await rejection(sandbox.exec({ command: "touch ran", cwd }));
        assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG", error.message);
        assert.ok(error.message.includes(`/${cwd.slice(0, 60)}`), error.message);
        assert.deepEqual([error.mayHaveRun, error.retryable], [false, false]);
      }
      assert.equal(await sandbox.readFile("ran"), null);
      // Of the base directory itself, too; a file brings it back.
      await sandbox.shell('rm -rf "$PWD"');
      assert.equal((await rejection(sandbox.shell("true"))).code, "ERR_SANDBOX_INVALID_ARG");
      await sandbox.writeFile("again", "1");
      assert.equal((await sandbox.shell("cat again")).output, "1");
    });
  }

  test("C199 what the daemon says of a shell that it cannot start is no fault of the command", async (t) => {
    const { engine, sandbox } = await open(t);
    await sandbox.start();
    for (const [why, code, retryable] of [
      ["argument list too long", "TOO_LARGE", false],
      ["permission denied", "PROVIDER", true],
    ]) {
      const body = JSON.stringify({ exitCode: -1, result: `fork/exec /usr/bin/bash: ${why}` });
      engine.fault(EXECUTE, { instead: { status: 200, headers: { "content-type": "application/json" }, body } });
      const error = await rejection(sandbox.shell("true"));
      assert.equal(error.code, `ERR_SANDBOX_${code}`, error.message);
      assert.deepEqual([error.mayHaveRun, error.retryable], [false, retryable]);
    }
  });

  test("C204 a variable that no process can be given is not retryable", async (t) => {
    const { sandbox } = await open(t);
    const error = await rejection(sandbox.exec({ command: "true", env: { A: "x".repeat(140_000) } }));
    assert.match(error.code, /^ERR_SANDBOX_(INVALID_ARG|TOO_LARGE)$/);
    assert.equal(error.retryable, false);
  });

  for (const [daemonVersion, prefix, suffix] of [
    ["0.140.0", "v", ""],
    ["0.160.0", "v", ""],
    ["0.160.0", "v", "-b24aa9b"],
    ["0.201.0", "v", "-b24aa9b"],
    ["0.201.0", "", "-b24aa9b"],
  ]) {
    test(`C200 a daemon that calls itself ${prefix}${daemonVersion}${suffix}`, async (t) => {
      const { engine, sandbox } = await open(t, { daemonVersion });
      const said = (body) => body.toString().replace(/"daemonVersion":"[^"]*"/, `"daemonVersion":"${prefix}${daemonVersion}${suffix}"`);
      for (const route of [CREATE, LOOK]) engine.fault(route, { edit: said }, { times: Infinity });
      const result = await sandbox.exec({ command: "echo $A | cat; exit 3", env: { A: "kept" } });
      assert.deepEqual([result.stdout, result.exitCode], ["kept\n", 3]);
    });
  }

  for (const daemonVersion of ["0.120.0", "0.140.0", "0.155.0", "0.160.0", "0.170.0", "0.190.0", "0.200.0"]) {
    test(`a daemon of version ${daemonVersion}`, async (t) => {
      const { sandbox } = await open(t, { daemonVersion, exitField: daemonVersion < "0.15" ? "code" : "exitCode" });
      assert.deepEqual(await sandbox.shell("echo \"$V\"; echo 'x  y' | cat; exit 5", { env: { V: "it's \"v\"" } }), {
        output: "it's \"v\"\nx  y\n",
        exitCode: 5,
      });
      assert.deepEqual(await sandbox.run("print('p')"), { output: "p\n", exitCode: 0 });
      assert.equal((await sandbox.shell("echo a; sleep 300", { timeoutSeconds: 4 })).output, "a\n");
      const refused = await rejection(sandbox.exec({ command: "true", cwd: "nope" }));
      assert.equal(refused.code, "ERR_SANDBOX_INVALID_ARG", refused.message);
    });
  }
});

test("every command has a name of its own, also of those that run at once", async (t) => {
  const { sandbox } = await open(t);
  const results = await Promise.all(Array.from({ length: 10 }, () => sandbox.shell("echo $CLOUDSANDBOX_RUN")));
  const names = results.map(({ output }) => output.trim());
  assert.equal(new Set(names).size, 10);
  for (const name of names) assert.match(name, /^[0-9a-f]{32}$/);
});

describe("text and input that are too large for a line", { concurrency: 2 }, () => {
  const UPLOAD = "toolbox POST /files/upload";
  const input = Buffer.alloc(10_000_000, "\0\xff0123456789\n", "latin1");
  const long = `: '${"x".repeat(200_000)}'`;
  const routes = ({ log }) => log.flatMap(({ route }) => (route === UPLOAD || route === EXECUTE ? [route] : []));

  test("10 MB of input and a long text: uploaded, exact, and gone afterwards", async (t) => {
    const { engine, sandbox } = await open(t);
    const result = await sandbox.exec({ command: `${long}\nsha256sum; exit 3`, stdin: input });
    const digest = createHash("sha256").update(input).digest("hex");
    assert.deepEqual([result.stdout, result.exitCode], [`${digest}  -\n`, 3]);
    assert.deepEqual(routes(engine), [UPLOAD, UPLOAD, EXECUTE]);
    const [folder] = commandFolders(engine);
    await eventually("its files are gone", () => commandFolders(engine).join() === folder && !existsSync(`${folder}/input`));
    const words = await sandbox.exec({ argv: ["printf", "%s", ...Array.from({ length: 50 }, () => "w'".repeat(2000))] });
    assert.equal(words.stdout, "w'".repeat(100_000));
    const code = await sandbox.exec({ code: `x = '${"y".repeat(200_000)}'\nprint(len(x), input())`, language: "python", stdin: "in\n" });
    assert.equal(code.stdout, "200000 in\n");
  });

  test("an upload whose connection breaks is repeated; where it is refused lines carry it", async (t) => {
    const { engine, sandbox } = await open(t);
    await sandbox.start();
    engine.clearLog();
    engine.fault(UPLOAD, { stop: { after: 0, how: "reset" } });
    assert.equal((await sandbox.exec({ command: "wc -c", stdin: input.subarray(0, 100_000) })).stdout.trim(), "100000");
    assert.deepEqual(routes(engine), [UPLOAD, UPLOAD, EXECUTE]);
    engine.clearLog();
    engine.fault(UPLOAD, { instead: daytonaReplies.toolbox(400, "open /tmp/x: read-only file system") });
    assert.equal((await sandbox.exec({ command: "sha256sum", stdin: input.subarray(0, 150_000) })).exitCode, 0);
    assert.deepEqual(routes(engine), [UPLOAD, EXECUTE, EXECUTE, EXECUTE, EXECUTE]);
    await eventually("the files are gone", () => commandFolders(engine).length === 1);
  });

  for (const daemonVersion of ["0.120.0", "0.160.0"]) {
    test(`also variables, at a daemon of version ${daemonVersion}`, async (t) => {
      const { sandbox } = await open(t, { daemonVersion });
      const env = { LONG: `it's ${"v".repeat(90_000)}`, SHORT: "s" };
      const { stdout } = await sandbox.exec({ command: `${long}\necho \${#LONG} $SHORT; cat`, env, stdin: "in" });
      assert.equal(stdout, "90005 s\nin");
    });
  }

  test("a call that is given up while it uploads runs nothing, and leaves nothing for long", async (t) => {
    const { engine, sandbox } = await open(t);
    await sandbox.start();
    engine.clearLog();
    engine.fault(UPLOAD, { delayMs: 1000 });
    const { status } = await sandbox.exec({ command: "touch ran", stdin: input, signal: AbortSignal.timeout(300) });
    assert.equal(status, "cancelled");
    assert.equal((await sandbox.shell("ls ran 2>&1")).exitCode, 2);
    await eventually("the file is gone", () => commandFolders(engine).length === 1);
  });
});

test("the folder of a command stays until the next one, and is small", async (t) => {
  const { engine, sandbox } = await open(t);
  const input = "x".repeat(1_000_000);
  assert.equal((await sandbox.exec({ command: `: ${input}; echo out`, stdin: input })).stdout, "out\n");
  const [folder, ...others] = commandFolders(engine);
  assert.deepEqual(others, []);
  await eventually("the input is gone", () => !existsSync(`${folder}/input`));
  await sandbox.shell("true");
  await eventually("the first one is gone", () => !existsSync(folder));
  assert.equal(commandFolders(engine).length, 1);
});

test("no command leaves its folder behind for longer", async (t) => {
  const { engine, sandbox } = await open(t);
  await sandbox.shell("true");
  await sandbox.shell("sleep 5", { timeoutSeconds: 0.2 });
  await rejection(sandbox.shell("sleep 5", { signal: AbortSignal.timeout(300) }));
  await Promise.all(Array.from({ length: 8 }, () => sandbox.shell("true")));
  engine.fault(EXECUTE, { instead: daytonaReplies.toolbox(408, "command execution timeout", "REQUEST_TIMEOUT"), run: true });
  await sandbox.shell("true");
  // One whose answer is not the last word is not taken for a farewell to the others.
  engine.fault(EXECUTE, { instead: { status: 200, body: "{}" } });
  await rejection(sandbox.shell("true"));
  await sandbox.shell("true");
  await eventually("only the last one is there", () => commandFolders(engine).length === 1);
});

test("one whose program was killed goes, too, and one that is given up while it runs", async (t) => {
  const { emulator, engine, sandbox } = await open(t);
  const itself = "p=$(cat /tmp/.cloudsandbox-$CLOUDSANDBOX_RUN/pid); kill -9 $p $(ps -o pid= --ppid $p)";
  const killed = rejection(sandbox.shell(`echo x >ran.txt; ${itself}`));
  assert.equal((await killed).code, "ERR_SANDBOX_PROTOCOL");
  // Nobody can be asked for its end: that is waited for some seconds.
  const given = rejection(sandbox.shell("echo x >begun.txt; while [ ! -e go ]; do sleep 0.02; done"));
  await eventually("the command", () => sandbox.readFile("begun.txt"));
  engine.fault(EXECUTE, { instead: daytonaReplies.toolbox(403, "forbidden") });
  emulator.cut(sandbox.sandboxId);
  assert.equal((await given).code, "ERR_SANDBOX_PROVIDER");
  await sandbox.shell("true");
  await eventually("the first one is gone", () => commandFolders(engine).length === 2);
  await sandbox.shell("touch go");
  await eventually("the second one is gone, with the one after it", () => commandFolders(engine).length === 1);
});

test("what is more than a report goes when the call ends", async (t) => {
  const { engine, sandbox } = await open(t);
  await sandbox.exec({ command: "seq 1 500000", onStdout() {} });
  await eventually("the folder is gone", () => commandFolders(engine).length === 0);
});

test("more commands at once than are remembered: no folder stays", async (t) => {
  const { engine, sandbox } = await open(t);
  await Promise.all(Array.from({ length: 70 }, () => sandbox.shell("true")));
  await sandbox.shell("true");
  await eventually("only the last one is there", () => commandFolders(engine).length === 1);
});

describe("variables of the command", { concurrency: 2 }, () => {
  const letters = [..."abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"];
  const env = Object.fromEntries(letters.map((name) => [name, `it is ${name}`]));
  const wanted = letters.map((name) => `${name}=it is ${name}\n`).join("");
  const code = {
    python: "import os; print(''.join(f'{k}={os.environ[k]}\\n' for k in os.environ if len(k) == 1 and k != '_'), end='')",
    node: "for (const k of Object.keys(process.env)) if (k.length === 1 && k !== '_') console.log(`${k}=${process.env[k]}`)",
  };
  const sorted = (text) => text.split(/(?<=\n)/).sort().join("");

  for (const [name, options, more] of [["with the command", {}, { env }], ["of the sandbox", { env }, {}]]) {
    test(`names of one letter reach it as they are: ${name}`, async (t) => {
      const { sandbox } = await open(t, {}, { ...options, allowAnyLanguage: true });
      const all = [
        await sandbox.shell("env | grep '^[a-zA-Z]='", more),
        await sandbox.run(code.python, { language: "python", ...more }),
        await sandbox.run(code.node, { language: "node", ...more }),
        { output: (await sandbox.exec({ code: code.node, language: "node", stdin: "x", ...more })).stdout, exitCode: 0 },
      ];
      for (const { output, exitCode } of all) {
        assert.equal(sorted(output), sorted(wanted));
        assert.equal(exitCode, 0);
      }
    });
  }
});
