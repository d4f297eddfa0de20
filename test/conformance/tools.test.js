// The four tools, called as an agent framework calls them.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { SandboxToolkit, collectToolkitTools, describeToolLibrary } from "cloudsandbox";
import { anthropicBashTool, anthropicMemory } from "cloudsandbox/anthropic";

import { callTool, toolsByRole } from "../support/host.js";
import { providers } from "./providers.js";

for (const provider of providers) {
  const { facts } = provider;
  const open = (t, options) => {
    const world = provider.world(t);
    const sandbox = world.make(options);
    const toolkit = new SandboxToolkit(sandbox, { name: provider.name });
    return { world, sandbox, toolkit, ...toolsByRole(toolkit) };
  };

  describe(`tools, ${provider.name}`, { concurrency: 4 }, () => {
    test("K2 four tools in order, with names made from the toolkit's", (t) => {
      const { toolkit } = open(t);
      const prefix = `sandbox_${provider.name}_`;
      const names = ["run", "shell", "write_file", "read_file"].map((role) => prefix + role);
      assert.deepEqual(
        toolkit.getTools().map((tool) => tool.name),
        names,
      );
      assert.deepEqual(Object.keys(collectToolkitTools([toolkit])), names);
      assert.notEqual(toolkit.getTools()[0], toolkit.getTools()[0]);
      for (const tool of toolkit.getTools()) {
        assert.ok(tool.description.length > 20, tool.name);
        assert.match(tool.name, /^[A-Za-z0-9_-]{1,64}$/);
      }
    });

    test("K2 the schemas: parameters, required ones, limits", (t) => {
      const { toolkit } = open(t);
      assert.deepEqual(
        describeToolLibrary(collectToolkitTools([toolkit])).map(({ name, parameters }) => [
          name.replace(/^sandbox_[a-z0-9]+_/, ""),
          parameters,
        ]),
        [
          ["run", ["code", "language", "timeoutSeconds"]],
          ["shell", ["command", "timeoutSeconds"]],
          ["write_file", ["path", "contents", "encoding"]],
          ["read_file", ["path", "encoding"]],
        ],
      );
      const required = [["code"], ["command"], ["path", "contents"], ["path"]];
      for (const [index, tool] of toolkit.getTools().entries()) {
        assert.equal(tool.rawJsonSchema.type, "object");
        assert.deepEqual(tool.rawJsonSchema.required, required[index]);
        assert.equal(tool.rawJsonSchema.additionalProperties, false);
        assert.equal(tool.rawJsonSchema.properties.env, undefined, "a model cannot set variables");
        assert.deepEqual(
          JSON.parse(JSON.stringify(tool.parameters)),
          JSON.parse(JSON.stringify(tool.rawJsonSchema)),
        );
      }
      const { shell } = toolsByRole(toolkit);
      assert.equal(
        shell.parameters.safeParse({ command: "true", timeoutSeconds: -1 }).success,
        false,
      );
      assert.equal(
        shell.parameters.safeParse({ command: "true", timeoutSeconds: 5 }).success,
        true,
      );
    });

    test("K2 C073 write, read, read a missing file, read an empty file", async (t) => {
      const { writeFile, readFile } = open(t);
      assert.equal(await callTool(writeFile, { path: "f", contents: "content\n" }), "ok");
      assert.equal(await callTool(readFile, { path: "f" }), "content\n");
      assert.equal(
        await callTool(readFile, { path: "f", encoding: "base64" }),
        Buffer.from("content\n").toString("base64"),
      );
      assert.equal(await callTool(readFile, { path: "absent" }), "[file not found]");
      assert.equal(await callTool(writeFile, { path: "e", contents: "" }), "ok");
      assert.equal(await callTool(readFile, { path: "e" }), "");
      assert.equal(
        await callTool(writeFile, { path: "b", contents: "AP+A", encoding: "base64" }),
        "ok",
      );
      assert.equal(await callTool(readFile, { path: "b", encoding: "base64" }), "AP+A");
    });

    test("C167 variables stay from run to run where the tool and the capabilities say so", async (t) => {
      const { run, sandbox } = open(t);
      await callTool(run, { code: "kept = 7" });
      const { exitCode } = JSON.parse(await callTool(run, { code: "print(kept)" }));
      assert.equal(exitCode === 0, sandbox.capabilities.contexts);
      assert.equal(/Variables and files stay/.test(run.description), sandbox.capabilities.contexts);
    });

    test("K14 a tool opts out of being run as source text elsewhere", (t) => {
      const { toolkit } = open(t);
      for (const tool of toolkit.getTools()) assert.equal(tool.sandbox, false);
    });

    test("C070 a model may ask for a longer limit", async (t) => {
      const { shell } = open(t);
      const text = await callTool(shell, { command: "sleep 2; echo ok", timeoutSeconds: 60 });
      assert.deepStrictEqual(JSON.parse(text), { output: "ok\n", exitCode: 0 });
    });

    test("C175 code and commands in a Markdown fence: the inside runs, not its output", async (t) => {
      const { run, shell } = open(t);
      const fenced = (word, inside) => `\`\`\`${word}\n${inside}\n\`\`\`\n`;
      const ok = { output: "touch made\n", exitCode: 0 };
      const result = async (tool, args) => JSON.parse(await callTool(tool, args));
      assert.deepStrictEqual(await result(shell, { command: fenced("", "echo touch made") }), ok);
      assert.deepStrictEqual(await result(shell, { command: fenced("bash", "echo touch made") }), ok);
      assert.deepStrictEqual(await result(run, { code: fenced("sh", "echo touch made") }), ok);
      assert.deepStrictEqual(await result(run, { code: fenced("python", "print('touch made')") }), ok);
      assert.deepStrictEqual(await result(shell, { command: fenced("python", "print('touch made')") }), ok);
      assert.deepStrictEqual(await result(shell, { command: "ls" }), { output: "", exitCode: 0 });
    });

    test("C176 Windows line ends in a command are as LF", async (t) => {
      const { run, shell } = open(t);
      await callTool(shell, { command: "ls\r\necho x > out.txt\r\n" });
      await callTool(run, { code: "echo y > more.txt\r\n", language: "shell" });
      assert.deepStrictEqual(JSON.parse(await callTool(shell, { command: "ls | tr '\\r' '#'\r\n" })), {
        output: "more.txt\nout.txt\n",
        exitCode: 0,
      });
    });

    test("C071 arguments that a model gets wrong", async (t) => {
      const { shell, writeFile, run, world } = open(t);
      const refused = [
        [shell, { command: "true", timeoutSeconds: -3 }, /timeoutSeconds/],
        [shell, { command: "true", timeoutSeconds: 0 }, /timeoutSeconds/],
        [shell, { command: "true", timeoutSeconds: "soon" }, /timeoutSeconds/],
        [shell, {}, /command/],
        [shell, { command: 7 }, /command/],
        [shell, null, /object/],
        [shell, "true", /object/],
        [run, { language: "python" }, /code/],
        [writeFile, { path: "f", contents: "x", encoding: "hex" }, /encoding/],
        [writeFile, { path: "f" }, /contents/],
      ];
      for (const [tool, args, words] of refused) {
        const text = await callTool(tool, args);
        assert.match(text, /^(Invalid arguments|Error): /, JSON.stringify(args));
        assert.match(text, words);
      }
      assert.deepEqual(world.existing(), []);
      const ok = { output: "ok\n", exitCode: 0 };
      for (const slip of [
        { timeoutSeconds: null },
        { timeoutSeconds: "5" },
        { timeoutSeconds: 99_999_999 },
        { why: "an extra key" },
      ]) {
        assert.deepStrictEqual(
          JSON.parse(await callTool(shell, { command: "echo ok", ...slip })),
          ok,
          JSON.stringify(slip),
        );
      }
      const limited = await callTool(shell, { command: "sleep 300", timeoutSeconds: "0.5" });
      assert.deepStrictEqual(
        JSON.parse(limited),
        { output: "", exitCode: 124, timedOut: true },
        "numeric text counts as the number",
      );
    });

    test("C071 execute() checks too, for hosts that do not", async (t) => {
      const { shell, writeFile } = open(t);
      await assert.rejects(shell.execute({}), /command/);
      await assert.rejects(
        shell.execute({ command: "true", timeoutSeconds: -1 }),
        /timeoutSeconds/,
      );
      await assert.rejects(
        writeFile.execute({ path: "f", contents: "x", encoding: "hex" }),
        /encoding/,
      );
      await assert.rejects(shell.execute(undefined), /object|command/);
    });

    test("C072 output of every kind survives as JSON", async (t) => {
      const { run } = open(t);
      const text = "q\" ' \\ \n \t \0 \u001b[1m \u{1F600} \u2028 </script>";
      const result = await callTool(run, {
        code: `import sys\nsys.stdout.reconfigure(encoding='utf-8')\nprint(${pythonLiteral(text)}, end='')`,
      });
      assert.deepStrictEqual(JSON.parse(result), { output: text, exitCode: 0 });
    });

    test("C074 two toolkits in one list: eight names, each with its own sandbox", async (t) => {
      const world = provider.world(t);
      const toolkits = ["one", "two"].map((name) => new SandboxToolkit(world.make(), { name }));
      const library = collectToolkitTools(toolkits);
      assert.equal(Object.keys(library).length, 8);
      for (const name of ["one", "two"]) {
        assert.equal(
          await callTool(library[`sandbox_${name}_write_file`], { path: "who", contents: name }),
          "ok",
        );
      }
      for (const name of ["one", "two"]) {
        assert.equal(await callTool(library[`sandbox_${name}_read_file`], { path: "who" }), name);
      }
      assert.equal(world.existing().length, 2);
      await Promise.all(toolkits.map((toolkit) => toolkit.close()));
      assert.deepEqual(world.existing(), []);
    });

    test("C076 what the model reads when the sandbox cannot be had: short, and what failed", async (t) => {
      const { shell, sandbox, world } = open(t);
      const mend = world.breakCreation();
      const text = await callTool(shell, { command: "true" });
      assert.match(text, /^Error: \S/);
      assert.ok(text.length < 1000, text);
      mend();
      await callTool(shell, { command: "true" });
      world.lose(sandbox);
      assert.match(
        await callTool(shell, { command: "echo lost" }),
        /^Error: .*(gone|lost|vanished|removed|no longer)/is,
      );
    });

    test("C077 a language that is not offered", async (t) => {
      const { run, world } = open(t);
      for (const language of ["ruby", "Python", "js"]) {
        const text = await callTool(run, { code: "puts 1", language });
        assert.match(text, /^(Invalid arguments|Error): .*language/s);
        for (const offered of facts.languages) assert.ok(text.includes(offered), text);
      }
      assert.deepEqual(world.existing(), []);
    });

    test("C078 four tools at once on a fresh toolkit: one sandbox, four results", async (t) => {
      const { run, shell, writeFile, readFile, world } = open(t);
      const results = await Promise.all([
        callTool(run, { code: "print(1)" }),
        callTool(shell, { command: "echo 2" }),
        callTool(writeFile, { path: "f", contents: "3" }),
        callTool(readFile, { path: "absent" }),
      ]);
      assert.deepEqual(results, [
        '{"output":"1\\n","exitCode":0}',
        '{"output":"2\\n","exitCode":0}',
        "ok",
        "[file not found]",
      ]);
      assert.equal(world.existing().length, 1);
    });

    const chosen = (t, options, more) => {
      const world = provider.world(t);
      const sandbox = world.make(more);
      const toolkit = new SandboxToolkit(sandbox, { name: provider.name, ...options });
      const tools = Object.fromEntries(toolkit.getTools().map((tool) => [tool.name.replace(/^sandbox_[a-z0-9]+_/, ""), tool]));
      return { world, sandbox, toolkit, tools };
    };

    test("F1 a long output keeps its head and its tail, and one line says what is missing and how to get it", async (t) => {
      const { shell, run } = open(t);
      // More than the sandbox keeps.
      const texts = [await callTool(shell, { command: "seq 1 200000" }), await callTool(run, { code: "for i in range(1, 200001): print(i)" })];
      for (const text of texts) {
        assert.ok(text.length <= 50_000 && text.length > 40_000, `${text.length}`);
        const { output, exitCode, outputTruncated } = JSON.parse(text);
        assert.deepEqual([exitCode, outputTruncated], [0, true]);
        const [head, line, tail] = output.split(/^\[(.*)\]$/m);
        assert.match(head, /^1\n2\n3\n/);
        assert.match(tail, /\n199999\n200000\n$/);
        const missing = Number(/^([\d,]+) bytes left out here; .*out\.txt/.exec(line)[1].replaceAll(",", ""));
        assert.equal(head.length + tail.length - 1 + missing, 1288895, "nothing is missing that is not told");
      }
    });

    test("F1 the bound holds for what escapes make long, and is a setting", async (t) => {
      const { tools } = chosen(t, { maxToolOutputChars: 2000 });
      const text = await callTool(tools.run, { code: "print('\\x01' * 5000, end='')" });
      assert.ok(text.length <= 2000 && text.length > 1000, `${text.length}`);
      assert.match(JSON.parse(text).output, /\n\[4,\d\d\d characters left out here; .*\]\n/);
      assert.deepStrictEqual(JSON.parse(await callTool(tools.shell, { command: "seq 1 100" })).outputTruncated, undefined);
      await callTool(tools.shell, { command: "seq 1 3000 > long.txt" });
      const content = await callTool(tools.read_file, { path: "long.txt" });
      assert.ok(content.length <= 2000 && content.length > 1500, `${content.length}`);
      assert.match(content, /^1\n2\n[^]*\n\[sandbox_\w+_read_file: 12,\d\d\d characters of 13,893 \(3,000 lines\) left out here; print parts .* with sandbox_\w+_shell, .*\]\n[^]*\n3000\n$/);
      assert.match(await callTool(tools.read_file, { path: "long.txt", encoding: "base64" }), /^Error: .*18524 characters.* at most 2000; .*base64/);
    });

    test("F1 output is heard as it comes, and a listener that throws ends nothing", async (t) => {
      const { shell } = open(t);
      const heard = [];
      let first;
      const begun = new Promise((resolve) => (first = resolve));
      const onOutput = (text) => {
        heard.push(text);
        first();
        throw new Error("a reader that has gone");
      };
      const call = callTool(shell, { command: "echo one; while [ ! -e go ]; do sleep 0.05; done; echo two" }, { onOutput });
      await begun;
      assert.equal(heard.join(""), "one\n");
      await callTool(shell, { command: "touch go" });
      assert.deepStrictEqual(JSON.parse(await call), { output: "one\ntwo\n", exitCode: 0 });
      assert.equal(heard.join(""), "one\ntwo\n");
    });

    test("F1 list_files, edit_file and read_file with a range", async (t) => {
      const { tools } = chosen(t, { tools: { list_files: true, edit_file: true, read_file: { range: true } } });
      assert.deepEqual(Object.keys(tools), ["run", "shell", "write_file", "read_file", "list_files", "edit_file"]);
      // A home may have files of its own.
      const own = (await callTool(tools.list_files, {})).split("\n").filter((line) => line.startsWith("."));
      await callTool(tools.write_file, { path: "src/a.txt", contents: "one\ntwo\nthree\ntwo\n" });
      await callTool(tools.write_file, { path: "b.txt", contents: "b" });
      const made = ["b.txt (1 bytes)", "src/a.txt (18 bytes)", ""];
      assert.deepEqual((await callTool(tools.list_files, {})).split("\n"), [...own, ...made]);
      assert.equal(await callTool(tools.list_files, { path: "./src/" }), "src/a.txt (18 bytes)\n");
      assert.equal(await callTool(tools.list_files, { path: "none" }), "[no files in none]");

      const edit = (oldText, newText, more) => callTool(tools.edit_file, { path: "src/a.txt", oldText, newText, ...more });
      assert.equal(await edit("three", "3"), "ok: replaced 1 place (line 3)");
      assert.match(await edit("two", "2"), /^Error: .*`oldText` is in src\/a\.txt 2 times \(at lines 2, 4\).*`replaceAll`.* Nothing was written/s);
      assert.match(await edit("four", "4"), /^Error: .*`oldText` is not in src\/a\.txt.* Nothing was written/s);
      assert.equal(await edit("two", "2", { replaceAll: true }), "ok: replaced 2 places (line 2, 4)");
      assert.match(await callTool(tools.edit_file, { path: "none", oldText: "a", newText: "b" }), /^Error: .*there is no file none/);
      assert.equal(await callTool(tools.read_file, { path: "src/a.txt" }), "one\n2\n3\n2\n");
      assert.equal(await callTool(tools.read_file, { path: "src/a.txt", offset: 2, limit: 2 }), "2\n3\n[lines 2 to 3 of 4; call again with offset 4 for more]");
      assert.equal(await callTool(tools.read_file, { path: "src/a.txt", offset: 4 }), "2\n");
      assert.equal(await callTool(tools.read_file, { path: "src/a.txt", offset: 9 }), "[the file has 4 lines, and no line 9]");
    });

    test("F1 two edits of one file at once: both are in it", async (t) => {
      const { tools } = chosen(t, { tools: { edit_file: true } });
      await callTool(tools.write_file, { path: "f", contents: "a b c d" });
      const letters = ["a", "b", "c", "d"];
      const made = await Promise.all(letters.map((it) => callTool(tools.edit_file, { path: "f", oldText: it, newText: it.toUpperCase() })));
      assert.deepEqual(made, letters.map(() => "ok: replaced 1 place (line 1)"));
      assert.equal(await callTool(tools.read_file, { path: "f" }), "A B C D");
    });

    test("F1 Anthropic's bash and memory: a session that lasts, a folder", async (t) => {
      const { sandbox } = open(t);
      const bash = anthropicBashTool(sandbox);
      assert.equal(await bash.run({ command: "mkdir -p d && cd d && export WORD='it is' && echo -n in" }), "in");
      assert.equal(await bash.run({ command: "basename \"$PWD\"; echo \"$WORD\"; exit 3" }), "d\nit is\n[exit code 3]");
      await bash.run({ restart: true });
      assert.equal(await bash.run({ command: "echo \"[$WORD]\"; ls" }), "[]\nd\n");
      const memory = anthropicMemory(sandbox);
      await memory.create({ path: "/memories/a/n.txt", file_text: "one\n" });
      await memory.insert({ path: "/memories/a/n.txt", insert_line: 1, insert_text: "two" });
      await memory.rename({ old_path: "/memories/a/n.txt", new_path: "/memories/m.txt" });
      assert.equal(await memory.view({ path: "/memories" }), "/memories has, in two levels:\n/memories/a/\n/memories/m.txt");
      assert.equal(await memory.view({ path: "/memories/m.txt" }), "/memories/m.txt, lines 1 to 2 of 2:\n     1\tone\n     2\ttwo");
      await memory.delete({ path: "/memories/a" });
      await assert.rejects(memory.delete({ path: "/memories/a" }), /there is no \/memories\/a/);
    });

    test("F1 readOnly: nothing that changes anything, and all can be read", async (t) => {
      const { tools, sandbox } = chosen(t, { readOnly: true, maxToolOutputChars: 1000 });
      assert.deepEqual(Object.keys(tools), ["read_file", "list_files"]);
      for (const tool of Object.values(tools)) assert.equal(tool.effect, "read");
      const lines = Array.from({ length: 500 }, (_, index) => `line ${index + 1}\n`);
      await sandbox.writeFile("f", lines.join(""));
      let read = "";
      for (let offset = 1, calls = 0; offset <= 500; calls++) {
        assert.ok(calls < 20);
        const text = await callTool(tools.read_file, { path: "f", offset });
        assert.ok(text.length <= 1000);
        const [, part, next] = /^([^]*?)(?:\[lines \d+ to \d+ of 500; call again with offset (\d+) for more\])?$/.exec(text);
        read += part;
        offset = Number(next ?? 501);
      }
      assert.equal(read, lines.join(""));
    });

    test("K6 the host's signal reaches run and shell, wherever the host puts it", async (t) => {
      const { run, shell, world } = open(t);
      const reason = new Error("the run was stopped");
      const signal = AbortSignal.abort(reason);
      for (const context of [[{ signal }], [{ abortSignal: signal }], [{}, { signal }]]) {
        await assert.rejects(shell.execute({ command: "true" }, ...context), reason);
        await assert.rejects(run.execute({ code: "1" }, ...context), reason);
      }
      assert.deepEqual(world.existing(), []);
    });
  });
}

/** A Python string literal for `text`. */
function pythonLiteral(text) {
  const escaped = [...text]
    .map((c) => `\\U${c.codePointAt(0).toString(16).padStart(8, "0")}`)
    .join("");
  return `'${escaped}'`;
}
