// Commands and code: what they get, and what comes back.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import path from "node:path";
import { describe, test } from "node:test";
import { inspect } from "node:util";

import { mark } from "../support/processes.js";
import { event, rejection } from "../support/wait.js";
import { providers } from "./providers.js";

/** Where python3 itself is first: what stands for it on some machines is a script with variables of its own. */
function pathOfPython() {
  const program = execFileSync("python3", ["-c", "import sys; print(sys.executable)"], { encoding: "utf8" }).trim();
  return `${path.dirname(program)}:${process.env.PATH}`;
}

for (const provider of providers) {
  const { facts } = provider;

  describe(`exec, ${provider.name}`, { concurrency: 4 }, () => {
    test("C204 a variable or an argument that is larger than the system takes is refused before anything is sent", async (t) => {
      const world = provider.world(t);
      const sandbox = world.make();
      const value = "x".repeat(140_000);
      for (const [spec, words] of [
        [{ command: "true", env: { A: "1", BIG: value } }, /variable BIG has 140003 bytes .* at most 131070; .*file/],
        [{ argv: ["echo", value] }, /argument 1 has 140000 bytes, .* at most 131071; .*file/],
      ]) {
        const error = await rejection(sandbox.exec(spec));
        assert.deepEqual([error.code, error.retryable, error.mayHaveRun], ["ERR_SANDBOX_TOO_LARGE", false, false]);
        assert.match(error.message, words);
      }
      assert.deepEqual(world.existing(), []);
      const env = { A: "y".repeat(100_000) };
      const { stdout } = await sandbox.exec({ argv: ["sh", "-c", 'echo ${#A} ${#1}', "sh", env.A], env });
      assert.equal(stdout, "100000 100000\n");
    });

    test("K1 the seven members of the port, and results without absent flags", async (t) => {
      const sandbox = provider.world(t).make();
      assert.equal(sandbox.providerId, provider.providerId);
      for (const name of ["start", "run", "shell", "writeFile", "readFile", "close"]) {
        assert.equal(typeof sandbox[name], "function", name);
      }
      assert.equal(await sandbox.start(), undefined);
      assert.deepStrictEqual(await sandbox.shell("echo hi"), { output: "hi\n", exitCode: 0 });
      assert.deepStrictEqual(await sandbox.run("print('hi')"), { output: "hi\n", exitCode: 0 });
      assert.equal(await sandbox.writeFile("f", "x"), undefined);
      assert.equal(await sandbox.close(), undefined);
    });

    test("K1 the capabilities say what the wire can do", (t) => {
      const { capabilities } = provider.world(t).make();
      assert.equal(capabilities.separateStreams, facts.separatesStreams);
      assert.equal(capabilities.trueOrder, facts.keepsStreamOrder);
      assert.equal(capabilities.list, facts.listsFiles);
      assert.equal(capabilities.local, facts.onThisMachine);
    });

    test("K1 run() knows every language of the provider, and the first is the default", async (t) => {
      const sandbox = provider.world(t).make();
      const source = { python: "print(6*7)", node: "console.log(6*7)", shell: "echo $((6*7))" };
      for (const language of facts.languages) {
        assert.deepStrictEqual(
          await sandbox.run(source[language], { language }),
          { output: "42\n", exitCode: 0 },
          language,
        );
      }
      assert.equal((await sandbox.run(source[facts.languages[0]])).output, "42\n");
    });

    test("C001 a command that does not exist: 127 and the shell's words", async (t) => {
      const { output, exitCode } = await provider.world(t).make().shell("nosuchcmd_zz --flag");
      assert.equal(exitCode, 127);
      assert.match(output, /nosuchcmd_zz.*not found/);
    });

    test("C002 quotes and blanks inside a command line stay as they are", async (t) => {
      const sandbox = provider.world(t).make();
      assert.deepStrictEqual(await sandbox.shell(`python3 -c "print('a  b')"`), {
        output: "a  b\n",
        exitCode: 0,
      });
    });

    test("C003 a variable of the call arrives whole", async (t) => {
      const sandbox = provider.world(t).make();
      const env = { V: "hello big world" };
      assert.equal(
        (await sandbox.run("import os;print(os.environ['V'])", { env })).output,
        "hello big world\n",
      );
      assert.equal((await sandbox.shell('printf %s "$V"', { env })).output, "hello big world");
    });

    test("C003 no variable has a name that the way to the command uses for itself", async (t) => {
      const letters = Array.from("abcdefghijklmnopqrstuvwxyz", (letter) => [letter, letter.toUpperCase()]).flat();
      const names = [...letters, "input", "script", "merge", "code"];
      const values = names.map((name) => `"$${name}"  of '${name}'`);
      const env = { PATH: pathOfPython(), ...Object.fromEntries(names.map((name, index) => [name, values[index]])) };
      const list = JSON.stringify(names);
      const source = {
        python: `import os\nfor name in ${list}: print(os.environ.get(name))`,
        node: `for (const name of ${list}) console.log(process.env[name])`,
        shell: names.map((name) => `printf '%s\\n' "$${name}"`).join("\n"),
      };
      const expected = { output: `${values.join("\n")}\n`, exitCode: 0 };
      const world = provider.world(t);
      const [ofCall, ofSandbox] = [world.make(), world.make({ env })];
      for (const [sandbox, options] of [[ofCall, { env }], [ofSandbox, {}]]) {
        assert.deepStrictEqual(await sandbox.shell(source.shell, options), expected);
        for (const language of facts.languages) {
          assert.deepStrictEqual(await sandbox.run(source[language], { ...options, language }), expected, language);
        }
        const { output, exitCode } = await sandbox.exec({ command: source.shell, stdin: "x", ...options });
        assert.deepStrictEqual({ output, exitCode }, expected);
      }
    });

    test("C004 source text and command lines of 400 KB", async (t) => {
      const sandbox = provider.world(t).make();
      const long = "a".repeat(400_000);
      assert.deepStrictEqual(await sandbox.run(`x = '${long}'\nprint(len(x))`), {
        output: "400000\n",
        exitCode: 0,
      });
      assert.deepStrictEqual(await sandbox.shell(`x='${long}'; echo \${#x}`), {
        output: "400000\n",
        exitCode: 0,
      });
      assert.deepStrictEqual(await sandbox.run(`x='${long}'; echo \${#x}`, { language: "shell" }), {
        output: "400000\n",
        exitCode: 0,
      });
    });

    test("C005 a failing command is a result with both streams", async (t) => {
      const { output, exitCode } = await provider
        .world(t)
        .make()
        .shell("echo out; echo err >&2; exit 3");
      assert.equal(exitCode, 3);
      assert.match(output, /^out$/m);
      assert.match(output, /^err$/m);
    });

    test("C006 text that looks like an option, empty text, only a comment", async (t) => {
      const sandbox = provider.world(t).make();
      assert.equal((await sandbox.shell("--version")).exitCode, 127);
      assert.deepStrictEqual(await sandbox.shell(""), { output: "", exitCode: 0 });
      assert.deepStrictEqual(await sandbox.shell("  # only a comment"), {
        output: "",
        exitCode: 0,
      });
    });

    test("C007 code that fails: exit code 1, what it printed, and why", async (t) => {
      const sandbox = provider.world(t).make();
      const raised = await sandbox.run("print('a')\n1/0");
      assert.equal(raised.exitCode, 1);
      assert.match(raised.output, /^a$/m);
      assert.match(raised.output, /ZeroDivisionError/);
      const refused = await sandbox.run("print(2***2)");
      assert.equal(refused.exitCode, 1);
      assert.match(refused.output, /SyntaxError/);
    });

    test("C008 code with every kind of quote is not touched by a shell", async (t) => {
      const sandbox = provider.world(t).make();
      const text = 'a \'b\' "c" `date` $HOME $(id) ${x} \\n \\\\ \t tab """x""" %s ! # *';
      const python = await sandbox.run(
        `print(r'''${text.replaceAll("'", "_")}''')\nprint(${JSON.stringify(text)})`,
      );
      assert.deepStrictEqual(python, {
        output: `${text.replaceAll("'", "_")}\n${text}\n`,
        exitCode: 0,
      });
      if (!facts.languages.includes("node")) return;
      const node = await sandbox.run(
        `/* ${text.replaceAll("*", "")} */ console.log(${JSON.stringify(text)})`,
        { language: "node" },
      );
      assert.deepStrictEqual(node, { output: `${text}\n`, exitCode: 0 });
    });

    test("K8 exit code 7 stays 7", async (t) => {
      const sandbox = provider.world(t).make();
      assert.deepStrictEqual(await sandbox.shell("exit 7"), { output: "", exitCode: 7 });
      assert.deepStrictEqual(await sandbox.run("import sys; sys.exit(7)"), {
        output: "",
        exitCode: 7,
      });
    });

    test("K8 ten bytes of output are kept, and the flag says so", async (t) => {
      const sandbox = provider.world(t).make({ maxOutputBytes: 10 });
      assert.deepStrictEqual(await sandbox.shell("printf 0123456789abcdef"), {
        output: "0123456789",
        exitCode: 0,
        outputTruncated: true,
      });
      assert.deepStrictEqual(await sandbox.shell("printf 0123456789"), {
        output: "0123456789",
        exitCode: 0,
      });
    });

    test("C054 nothing waits for input that cannot come", async (t) => {
      const sandbox = provider.world(t).make();
      assert.deepStrictEqual(await sandbox.shell("cat"), { output: "", exitCode: 0 });
      assert.deepStrictEqual(await sandbox.shell("read x; echo got=$x"), {
        output: "got=\n",
        exitCode: 0,
      });
      const asked = await sandbox.run("input()");
      assert.equal(asked.exitCode, 1);
      assert.match(asked.output, /EOFError/);
    });

    test("D4 the outcome of exec() is never guessed", async (t) => {
      const sandbox = provider.world(t).make();
      const exited = await sandbox.exec({ command: "echo out; echo err >&2; exit 4" });
      assert.equal(exited.status, "exited");
      assert.equal(exited.exitCode, 4);
      if (facts.separatesStreams) {
        assert.equal(exited.stdout, "out\n");
        assert.equal(exited.stderr, "err\n");
      }
      assert.equal(exited.truncated, false);
      const killed = await sandbox.exec({ command: "kill -9 $$" });
      assert.equal(killed.exitCode, 137);
      if (facts.onThisMachine) {
        assert.equal(killed.status, "signalled");
        assert.equal(killed.signal, "SIGKILL");
      }
    });

    for (const cwd of ["no such folder", "file"]) {
      test(`D9 a working directory that is none (${cwd}): INVALID_ARG, nothing runs, and what to do`, async (t) => {
        const sandbox = provider.world(t).make();
        await sandbox.writeFile("file", "x");
        const error = await rejection(sandbox.exec({ command: "touch ran", cwd }));
        assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG", error.message);
        assert.deepEqual([error.retryable, error.mayHaveRun], [false, false]);
        assert.ok(error.message.includes(cwd), error.message);
        assert.match(error.message, /make that directory first, or give `cwd` another one; the command did not run/);
        assert.equal(await sandbox.readFile("ran"), null);
      });
    }

    test("D9 arguments, directory and input have fields of their own", async (t) => {
      const sandbox = provider.world(t).make();
      const words = ["a  b", "$HOME", "'q\"", "*", ""];
      const { stdout } = await sandbox.exec({ argv: ["printf", "[%s]", ...words] });
      assert.equal(stdout, words.map((word) => `[${word}]`).join(""));
      await sandbox.writeFile("sub dir/f", "x");
      assert.equal((await sandbox.exec({ command: "ls", cwd: "sub dir" })).stdout, "f\n");
      assert.equal((await sandbox.exec({ command: "cat", stdin: "given" })).stdout, "given");
      const bytes = Uint8Array.from({ length: 256 }, (_, index) => index);
      const echoed = await sandbox.exec({ argv: ["cat"], stdin: bytes, encoding: "buffer" });
      assert.deepEqual(new Uint8Array(echoed.stdout), bytes);
    });

    test("K6 a signal that was aborted before: nothing is created", async (t) => {
      const world = provider.world(t);
      const sandbox = world.make();
      const reason = new Error("not wanted");
      const signal = AbortSignal.abort(reason);
      assert.equal(await rejection(sandbox.shell("echo no", { signal })), reason);
      assert.equal(await rejection(sandbox.run("print(1)", { signal })), reason);
      assert.equal(await rejection(sandbox.exec({ command: "echo no", signal })), reason);
      assert.deepEqual(world.existing(), []);
    });

    test("K6 an abort in flight ends the command and rejects with the reason", async (t) => {
      const sandbox = provider.world(t).make();
      const tracked = mark();
      const controller = new AbortController();
      const reason = new Error("enough");
      const call = sandbox.shell("sleep 300 & sleep 300", {
        signal: controller.signal,
        env: tracked.env,
      });
      const settled = rejection(call);
      if (facts.onThisMachine) await tracked.started(2);
      controller.abort(reason);
      assert.equal(await settled, reason);
      if (facts.onThisMachine) await tracked.gone();
      assert.deepStrictEqual(await sandbox.shell("echo usable"), {
        output: "usable\n",
        exitCode: 0,
      });
    });

    test("D7 an aborted exec() resolves as cancelled, with the output so far", async (t) => {
      const sandbox = provider.world(t).make();
      const controller = new AbortController();
      const said = event();
      const call = sandbox.exec({
        command: "echo begun; sleep 300",
        signal: controller.signal,
        onStdout: said.fire,
      });
      await said.happened;
      controller.abort();
      const result = await call;
      assert.equal(result.status, "cancelled");
      assert.equal(result.exitCode, 130);
      assert.equal(result.stdout, "begun\n");
    });

    test("C082 variable names that a shell could misread are refused before anything is created", async (t) => {
      const world = provider.world(t);
      const sandbox = world.make();
      for (const name of ["A;touch pwned;B", "A=B", "", "1A", "$(id)", "A\nB", "A B", "A\u0000B"]) {
        for (const call of [
          () => sandbox.shell("true", { env: { [name]: "x" } }),
          () => sandbox.run("1", { env: { [name]: "x" } }),
          () => sandbox.exec({ command: "true", env: { [name]: "x" } }),
        ]) {
          assert.equal(
            (await rejection(call())).code,
            "ERR_SANDBOX_INVALID_ARG",
            JSON.stringify(name),
          );
        }
      }
      assert.deepEqual(world.existing(), []);
      assert.equal(await sandbox.readFile("pwned"), null);
    });

    test("C182 a process's own variables: names that a shell cannot hold are named, and to be left out", async (t) => {
      const world = provider.world(t);
      const strange = { "BASH_FUNC_x%%": "() { :; }", "my.var": "1" };
      const words = /"BASH_FUNC_x%%" and "my\.var" do not\. Leave them out/;
      assert.throws(() => world.make({ env: strange }), words);
      const sandbox = world.make();
      for (const env of [strange, { OK: "1", ...strange }]) {
        for (const call of [sandbox.shell("true", { env }), sandbox.run("1", { env }), sandbox.exec({ argv: ["true"], env })]) {
          const error = await rejection(call);
          assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG");
          assert.match(error.message, words);
        }
      }
      assert.deepEqual(world.existing(), []);
    });

    test("C077 a language that is not offered is refused in words that name those that are", async (t) => {
      const world = provider.world(t);
      const sandbox = world.make();
      for (const language of ["ruby", "Python", "js", "", 7]) {
        const error = await rejection(sandbox.run("puts 1", { language }));
        assert.match(error.message, /Unsupported/, String(language));
        for (const offered of facts.languages) {
          assert.ok(error.message.includes(offered), error.message);
        }
      }
      assert.deepEqual(world.existing(), []);
    });

    test("C083 values of the environment never show in errors or in inspected objects", async (t) => {
      const world = provider.world(t);
      const canary = "sk-canary-7f3a";
      const sandbox = world.make({ env: { API_KEY: canary } });
      const env = { TOKEN: canary };
      const seen = [
        inspect(sandbox, { depth: 9, showHidden: true, getters: true }),
        JSON.stringify(sandbox),
      ];
      const provoke = [
        () => sandbox.shell("true", { env: { ...env, "bad name": canary } }),
        () => sandbox.shell("true", { env, timeoutSeconds: -1 }),
        () => sandbox.run("1", { env, language: "ruby" }),
        () => sandbox.exec({ command: "true", env: { TOKEN: `${canary}\u0000` } }),
        () => sandbox.exec({ command: "true", env, cwd: "no such folder" }),
        () => sandbox.readFile("."),
        () => sandbox.writeFile("f", "***", "base64"),
        async () => {
          await sandbox.close();
          await sandbox.shell("true", { env });
        },
      ];
      for (const call of provoke) {
        const error = await rejection(call());
        seen.push(
          error.message,
          error.stack,
          String(error.cause),
          JSON.stringify(error),
          inspect(error, { depth: 9, showHidden: true }),
        );
      }
      for (const text of seen) assert.ok(!text?.includes(canary), text);
    });
  });
}
