// Tool objects: the schema that checks itself, arguments that a model gets wrong, results and errors as
// text, and defineTool().
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { DaytonaSandbox, E2BSandbox, LocalSandbox, PathSecurityError, SandboxAgent, SandboxError, SandboxToolkit, defineTool } from "cloudsandbox";
import { anthropicTools } from "cloudsandbox/anthropic";
import { langChainTools } from "cloudsandbox/langchain";
import { mcpTools } from "cloudsandbox/mcp";
import { openAIAgentsTools } from "cloudsandbox/openai-agents";

import { fakeSandbox } from "../support/fake.js";
import { toolsByRole } from "../support/host.js";
import { rejection } from "../support/wait.js";

function open(answers) {
  const fake = fakeSandbox(answers);
  return { ...fake, ...toolsByRole(new SandboxToolkit(fake.sandbox)) };
}

describe("one object for many frameworks", () => {
  test("parameters and inputSchema are one JSON Schema object, rawJsonSchema is a plain copy", () => {
    for (const tool of Object.values(toolsByRole(new SandboxToolkit(open().sandbox)))) {
      assert.equal(tool.parameters, tool.inputSchema);
      assert.deepEqual(tool.rawJsonSchema, JSON.parse(JSON.stringify(tool.parameters)));
      // LlamaIndex takes what can parse for a Zod object.
      assert.deepEqual(Reflect.ownKeys(tool.rawJsonSchema), ["type", "properties", "required", "additionalProperties"]);
      assert.equal(tool.id, tool.name);
      assert.deepEqual(Object.keys(tool.parameters), ["type", "properties", "required", "additionalProperties"]);
      for (const mark of ["_def", "_zod"]) assert.equal(mark in tool.parameters, false, "would be taken for a Zod object");
    }
  });

  test("the hidden members: parsers, shape, Standard Schema with JSON Schema", () => {
    const { run } = open();
    const { shape, "~standard": standard } = run.parameters;
    assert.deepEqual(Object.keys(shape), ["code", "language", "timeoutSeconds"]);
    assert.deepEqual([standard.version, standard.vendor], [1, "cloudsandbox"]);
    assert.deepEqual(standard.validate({ code: "1" }), { value: { code: "1" } });
    const { issues } = standard.validate({ code: 1, language: "ruby" });
    assert.deepEqual(issues.map(({ path }) => path), [["code"], ["language"]]);
    const { _errors, code } = run.parameters.safeParse({ code: 1 }).error.format();
    assert.deepEqual({ _errors, code }, { _errors: [], code: { _errors: [issues[0].message] } });
    for (const direction of ["input", "output"]) {
      const json = standard.jsonSchema[direction]({ target: "draft-07" });
      assert.deepEqual(json, JSON.parse(JSON.stringify(run.parameters)));
      assert.notEqual(json, run.parameters, "a copy: a framework may change it");
      assert.throws(() => standard.jsonSchema[direction]({ target: "openapi-3.0" }), /draft-07/);
    }
    assert.deepEqual(run.parameters.parse({ code: "1" }), { code: "1" });
    assert.throws(() => run.parameters.parse({}), SandboxError);
  });

  test("a framework that changes the schema object changes neither the check nor the next tool", () => {
    const { sandbox } = fakeSandbox();
    const toolkit = new SandboxToolkit(sandbox);
    const { shell } = toolsByRole(toolkit);
    delete shell.parameters.properties.command;
    shell.parameters.required.length = 0;
    assert.equal(shell.parameters.safeParse({}).success, false);
    assert.ok(toolsByRole(toolkit).shell.parameters.properties.command);
  });

  test("effects are data, and every tool opts out of being run as source text", () => {
    const tools = new SandboxToolkit(open().sandbox).getTools();
    assert.deepEqual(tools.map((tool) => tool.effect), ["execute", "execute", "write", "read"]);
    assert.deepEqual(tools.map((tool) => tool.sandbox), [false, false, false, false]);
  });

  test("descriptions call nothing isolated that is not", () => {
    for (const tool of new SandboxToolkit(fakeSandbox({}, "unix-local").sandbox).getTools()) {
      assert.match(tool.description, /on the host computer, which is not isolated/);
    }
    for (const tool of new SandboxToolkit(fakeSandbox().sandbox).getTools()) assert.doesNotMatch(tool.description, /isolat/);
  });
});

describe("arguments", () => {
  const slips = [
    ["numeric text", { timeoutSeconds: "5" }, { timeoutSeconds: 5 }],
    ["numeric text with blanks and a fraction", { timeoutSeconds: " 0.5 " }, { timeoutSeconds: 0.5 }],
    ["too long a limit", { timeoutSeconds: 99_999_999 }, { timeoutSeconds: 3600 }],
    ["too long a limit, as text", { timeoutSeconds: "99999999" }, { timeoutSeconds: 3600 }],
    ["null", { timeoutSeconds: null }, {}],
    ["undefined", { timeoutSeconds: undefined }, {}],
    ["a key that is not there", { why: "because", constructor: 1 }, {}],
  ];
  for (const [what, given, expected] of slips) {
    test(`tolerated alike by the schema and by execute: ${what}`, async () => {
      const { shell, calls } = open();
      assert.deepEqual(shell.parameters.safeParse({ command: "c", ...given }), { success: true, data: { command: "c", ...expected } });
      await shell.execute({ command: "c", ...given });
      assert.deepEqual(calls, [["shell", "c", expected]]);
    });
  }

  const ARGUMENTS = {
    run: '`code` (string), `language` ("python" or "node" or "shell", optional), `timeoutSeconds` (number, optional)',
    shell: "`command` (string), `timeoutSeconds` (number, optional)",
    writeFile: '`path` (string), `contents` (string), `encoding` ("utf8" or "base64", optional)',
    readFile: '`path` (string), `encoding` ("utf8" or "base64", optional)',
  };
  const refused = [
    ["shell", { command: "c", timeoutSeconds: -3 }, "`timeoutSeconds` must be at least 0.001 and at most 3600; got -3"],
    ["shell", { command: "c", timeoutSeconds: "-3" }, "`timeoutSeconds` must be at least 0.001 and at most 3600; got -3"],
    ["shell", { command: "c", timeoutSeconds: 0 }, "`timeoutSeconds` must be at least 0.001 and at most 3600; got 0"],
    ["shell", { command: "c", timeoutSeconds: NaN }, "`timeoutSeconds` must be a finite number, not NaN"],
    ["shell", { command: "c", timeoutSeconds: Infinity }, "`timeoutSeconds` must be a finite number, not Infinity"],
    ["shell", { command: "c", timeoutSeconds: "soon" }, "`timeoutSeconds` must be a finite number, not a string"],
    ["shell", { command: "c", timeoutSeconds: "" }, "`timeoutSeconds` must be a finite number, not a string"],
    ["shell", {}, "`command` is missing (string)"],
    ["shell", { command: null }, "`command` is missing (string)"],
    ["shell", { command: ["ls"] }, "`command` must be a string, not an array"],
    ["shell", null, "the arguments must be an object, not null"],
    ["shell", undefined, "the arguments must be an object, not undefined"],
    ["shell", "ls", "the arguments must be an object, not a string"],
    ["shell", [], "the arguments must be an object, not an array"],
    ["shell", ' {"command":"ls"}', "the arguments must be an object, not the JSON text of one: JSON.parse() it first"],
    ["run", { code: "1", language: "ruby" }, '`language` must be one of "python", "node", "shell"'],
    ["run", { code: "1", language: "Python" }, '`language` must be one of "python", "node", "shell"; did you mean "python"?'],
    ["run", { code: "1", language: "js" }, '`language` must be one of "python", "node", "shell"; did you mean "node"?'],
    ["writeFile", { path: "f", contents: "x", encoding: "hex" }, '`encoding` must be one of "utf8", "base64"'],
    ["writeFile", { path: "f", contents: "x", encoding: "utf-8" }, '`encoding` must be one of "utf8", "base64"; did you mean "utf8"?'],
    ["shell", { cmd: "ls", timeoutSeconds: 5 }, "`command` is missing (string); there is no argument `cmd`, did you mean `command`?"],
    ["shell", { zzz: "ls" }, "`command` is missing (string); there is no argument `zzz`"],
    ["writeFile", { file_path: "f", contents: "x", body: "x" }, "`path` is missing (string); there is no argument `file_path`, did you mean `path`?; there is no argument `body`"],
    ["writeFile", {}, "`path` is missing (string); `contents` is missing (string)"],
    ["readFile", { path: 7 }, "`path` must be a string, not 7"],
  ];
  for (const [role, args, words] of refused) {
    test(`refused alike: ${role} ${JSON.stringify(args)}`, async () => {
      const { calls, ...tools } = open();
      const { name } = tools[role];
      const parsed = tools[role].parameters.safeParse(args);
      assert.equal(parsed.success, false);
      const end = /[.?]$/.test(words) ? "" : ".";
      const message = `${name} was not run, and nothing has changed: ${words}${end} Call it again with an object with ${ARGUMENTS[role]}.`;
      assert.equal(parsed.error.message, message);
      assert.ok(parsed.error.issues.length > 0);
      const error = await rejection(tools[role].execute(args));
      assert.equal(error.message, message);
      assert.equal(error.mayHaveRun, false);
      assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG");
      assert.deepEqual(calls, []);
    });
  }

  test("the schema itself states the range that is kept", () => {
    const { properties } = open().shell.parameters;
    assert.equal(properties.timeoutSeconds.minimum, 0.001);
    assert.equal(properties.timeoutSeconds.maximum, 3600);
  });

  test("what the sandbox gets", async () => {
    const { run, shell, writeFile, readFile, calls } = open();
    const { signal } = new AbortController();
    await run.execute({ code: "1", language: "node", timeoutSeconds: 2 }, { signal });
    await run.execute({ code: "1" });
    await shell.execute({ command: "ls" }, { signal });
    await writeFile.execute({ path: "f", contents: "" });
    await writeFile.execute({ path: "f", contents: "AA==", encoding: "base64" }, { signal });
    await readFile.execute({ path: "f" });
    await readFile.execute({ path: "f", encoding: "base64" }, { signal });
    assert.deepEqual(calls, [
      ["run", "1", { language: "node", timeoutSeconds: 2, signal }],
      ["run", "1", {}],
      ["shell", "ls", { signal }],
      ["writeFile", "f", "", "utf8"],
      ["writeFile", "f", "AA==", "base64", { signal }],
      ["readFile", "f", "utf8"],
      ["readFile", "f", "base64", { signal }],
    ]);
  });

  test("the signal is found where each framework puts it", async () => {
    const { shell, calls } = open();
    const { signal } = new AbortController();
    const places = [[{ signal }], [{ abortSignal: signal }], [{}, { signal }], [undefined, { abortSignal: signal }], [{ signal: "no" }, { signal }]];
    for (const context of places) await shell.execute({ command: "c" }, ...context);
    assert.deepEqual(calls, places.map(() => ["shell", "c", { signal }]));
  });

  test("a signal that was aborted before: its reason, and the sandbox is not called", async () => {
    const { calls, ...tools } = open();
    const reason = new Error("stopped");
    const args = { run: { code: "1" }, shell: { command: "c" }, writeFile: { path: "f", contents: "" }, readFile: { path: "f" } };
    for (const role of Object.keys(args)) {
      assert.equal(await rejection(tools[role].execute(args[role], { signal: AbortSignal.abort(reason) })), reason);
    }
    assert.deepEqual(calls, []);
  });
});

describe("C157 schemas that every model API takes", () => {
  const KNOWN = ["type", "description", "properties", "required", "enum", "items", "minimum", "maximum", "additionalProperties"];
  const keywords = (schema) => [
    ...Object.keys(schema),
    ...Object.values(schema.properties ?? {}).flatMap(keywords),
    ...(typeof schema.items === "object" ? keywords(schema.items) : []),
  ];
  const tools = new SandboxToolkit(fakeSandbox().sandbox).getTools();
  const made = {
    "the tools' parameters": tools.map((tool) => tool.parameters),
    "the tools' rawJsonSchema": tools.map((tool) => tool.rawJsonSchema),
    "the Standard Schema's JSON Schema": tools.map((tool) => tool.parameters["~standard"].jsonSchema.input()),
    anthropicTools: anthropicTools(tools).map((it) => it.input_schema),
    openAIAgentsTools: openAIAgentsTools(tools).map((it) => it.parameters),
    langChainTools: langChainTools(tools, (_, it) => it).map((it) => it.schema),
  };
  for (const [what, schemas] of Object.entries(made)) {
    test(`C157 ${what}: no other keyword`, () => {
      assert.equal(schemas.length, 4);
      for (const keyword of schemas.flatMap(keywords)) assert.ok(KNOWN.includes(keyword), keyword);
    });
  }

  test("C157 mcpTools: no other keyword", async () => {
    const { tools: listed } = await mcpTools(tools).listTools();
    assert.equal(listed.length, 4);
    for (const keyword of listed.map((it) => it.inputSchema).flatMap(keywords)) assert.ok(KNOWN.includes(keyword), keyword);
  });

  test("C157 the bound is kept by execute", async () => {
    for (const timeoutSeconds of [0, -0, -1, "0", 0.0001]) {
      const { run, shell, calls } = open();
      for (const call of [run.execute({ code: "1", timeoutSeconds }), shell.execute({ command: "c", timeoutSeconds })]) {
        assert.equal((await rejection(call)).code, "ERR_SANDBOX_INVALID_ARG", String(timeoutSeconds));
      }
      assert.deepEqual(calls, []);
    }
  });
});

describe("C175 code in a Markdown fence", () => {
  const fenced = [
    ["without a word", "```\nls\n```", "ls\n"],
    ["with a line end behind it", "```\nls\n```\n", "ls\n"],
    ["with empty lines around it", "\n \n```\nls\n```\n\n", "ls\n"],
    ["of tildes", "~~~\nls\n~~~", "ls\n"],
    ["with Windows line ends", "```\r\nls\r\n```\r\n", "ls\n"],
    ["of more marks, with a fence inside", "````\ncat <<E\n```\nx\n```\nE\n````", "cat <<E\n```\nx\n```\nE\n"],
    ["closed by more marks", "```\nls\n`````", "ls\n"],
    ["tildes around backticks", "~~~\necho '\n```\n'\n~~~", "echo '\n```\n'\n"],
    ["indented", "  ```\n  ls\n    pwd\n  ```", "ls\n  pwd\n"],
    ["empty", "```\n```", ""],
    ["with a word that names no language here", "```text\nls\n```", "ls\n"],
  ];
  for (const [what, source, inside] of fenced) {
    test(`C175 a fence ${what}`, async () => {
      const { shell, run, calls } = open();
      await shell.execute({ command: source });
      await run.execute({ code: source, language: "shell" });
      assert.deepEqual(calls, [["shell", inside, {}], ["run", inside, { language: "shell" }]]);
    });
  }

  const words = {
    python: ["python", "py", "Python", "python3", "python title=x", "py{1,3}"],
    node: ["javascript", "js", "node", "JS"],
  };
  for (const [language, names] of Object.entries(words)) {
    test(`C175 the word names the language: ${language}`, async () => {
      for (const name of names) {
        const { shell, run, calls } = open();
        const { signal } = new AbortController();
        await run.execute({ code: `\`\`\`${name}\n1\n\`\`\``, language: "shell" });
        await shell.execute({ command: `~~~ ${name}\n1\n~~~`, timeoutSeconds: 2 }, { signal });
        assert.deepEqual(calls, [["run", "1\n", { language }], ["run", "1\n", { language, timeoutSeconds: 2, signal }]], name);
      }
    });
  }

  test("C175 the word names the shell: a command line in both tools", async () => {
    for (const name of ["bash", "sh", "shell", "zsh"]) {
      const { shell, run, calls } = open();
      await run.execute({ code: `\`\`\`${name}\nls\n\`\`\``, language: "python", timeoutSeconds: 3 });
      await shell.execute({ command: `\`\`\`${name}\nls\n\`\`\`` });
      assert.deepEqual(calls, [["shell", "ls\n", { timeoutSeconds: 3 }], ["shell", "ls\n", {}]], name);
    }
  });

  const untouched = [
    "echo '```'", "x = '''\n```\na\n```\n'''", "```\nls\n```\nthen\n```\npwd\n```", "```\nls\n```\npwd", "```\nls", "```ls```",
    "echo a\n```\nls\n```", "``\nls\n``", "```\nls\n~~~", "```", "", "\n\n", "~~\n~~", "`ls`", "```\nls\n``` x", "~/x",
  ];
  for (const source of untouched) {
    test(`C175 left as it is: ${JSON.stringify(source)}`, async () => {
      const { shell, run, calls } = open();
      await shell.execute({ command: source });
      await run.execute({ code: source });
      assert.deepEqual(calls, [["shell", source, {}], ["run", source, {}]]);
    });
  }

  test("C175 a long text costs no more than its length", async () => {
    const { shell } = open();
    const start = performance.now();
    for (const part of ["```\n", "`", " ", "\n", "~~~ x\n", "\r", " \n", "\t"]) {
      const long = part.repeat(200_000 / part.length);
      for (const command of [`\`\`\`\n${long}`, `${long}\nx`, `\n${long}`, `\`\`\`${long}x`, `\`\`\`x${long}x`]) await shell.execute({ command });
    }
    assert.ok(performance.now() - start < 5000);
  });
});

describe("C176 Windows line ends", () => {
  test("C176 a command is as with LF; code and files stay as they are", async () => {
    const { shell, run, writeFile, calls } = open();
    await shell.execute({ command: "ls\r\necho x > out.txt\r\n" });
    await run.execute({ code: "ls\r\n", language: "shell" });
    await run.execute({ code: "print('''a\r\nb''')\r\n" });
    await shell.execute({ command: "printf 'a\rb'" });
    await writeFile.execute({ path: "f", contents: "a\r\n" });
    assert.deepEqual(calls, [
      ["shell", "ls\necho x > out.txt\n", {}],
      ["run", "ls\n", { language: "shell" }],
      ["run", "print('''a\r\nb''')\r\n", {}],
      ["shell", "printf 'a\rb'", {}],
      ["writeFile", "f", "a\r\n", "utf8"],
    ]);
  });
});

describe("what a tool says of itself", () => {
  const own = (options) => toolsByRole(new SandboxToolkit(new LocalSandbox({ isolation: "none", ...options })));

  test("C161 the shell is named: bash, the one that was chosen, or none where it is not known", () => {
    assert.match(own().shell.description, /with bash, or sh where there is no bash, on the host/);
    assert.match(own({ shell: "sh" }).shell.description, /with sh on the host/);
    assert.match(own({ shell: "/bin/zsh" }).shell.description, /with \/bin\/zsh on the host/);
    assert.match(open().shell.description, /with the shell in the sandbox/);
  });

  test("C163 how to start a server, and how long it lives", () => {
    assert.match(own().shell.description, /start a server with `command >server\.log 2>&1 &`: it runs until the sandbox is closed.*--retry-connrefused/);
    assert.doesNotMatch(open().shell.description, /server/);
  });

  test("C167 code is a main file; in an interpreter variables stay", () => {
    assert.match(own().run.description, /main file of a new process/);
    const interpreter = new E2BSandbox({ apiKey: "k", interpreter: true });
    const { run } = toolsByRole(new SandboxToolkit(interpreter));
    assert.match(run.description, /Variables and files stay/);
    assert.doesNotMatch(run.description, /new process/);
    assert.match(run.description, /a timeout clears the variables.*Only what the code prints is returned.*use print\(\)/);
  });

  test("C167 at E2B without an interpreter no variable is said to stay, through an agent neither", () => {
    for (const options of [{}, { template: "base" }, { interpreter: false, template: "code-interpreter-v1" }]) {
      const remote = new E2BSandbox({ apiKey: "k", ...options });
      assert.equal(remote.capabilities.contexts, false);
      for (const sandbox of [remote, new SandboxAgent({ backend: "remote", remote })]) {
        const { run } = toolsByRole(new SandboxToolkit(sandbox, { name: "x" }));
        assert.match(run.description, /main file of a new process.*only files stay/);
        assert.doesNotMatch(run.description, /[Vv]ariables|print/);
      }
    }
    assert.equal(new E2BSandbox({ apiKey: "k", template: "code-interpreter-v1" }).capabilities.contexts, true);
  });

  test("the languages that the sandbox runs are those that are offered, and the default is named", () => {
    const languageOf = (sandbox) => toolsByRole(new SandboxToolkit(sandbox, { name: "x" })).run.parameters.properties.language;
    const daytona = (options) => new DaytonaSandbox({ apiKey: "k", ...options });
    for (const [sandbox, words, omitted] of [
      [daytona(), ["python", "shell"], /python when omitted\.$/],
      [daytona({ language: "node" }), ["node", "shell"], /node when omitted\.$/],
      [daytona({ language: "node", allowAnyLanguage: true }), ["python", "node", "shell"], /node when omitted\.$/],
      [new SandboxAgent({ backend: "remote", remote: daytona() }), ["python", "shell"], /python when omitted\.$/],
      [new SandboxAgent({ backend: "unix-local" }), ["python", "node", "shell"], /python when omitted\.$/],
      [open().sandbox, ["python", "node", "shell"], /unless the sandbox was made for another language/],
    ]) {
      const { enum: offered, description } = languageOf(sandbox);
      assert.deepEqual(offered, words);
      assert.match(description, omitted);
    }
  });

  test("the agent's tools say what its sandbox's say", () => {
    const remote = new E2BSandbox({ apiKey: "k", shell: "sh" });
    const tools = (sandbox) => new SandboxToolkit(sandbox, { name: "x" }).getTools().map((tool) => tool.description);
    assert.deepEqual(tools(new SandboxAgent({ backend: "remote", remote })), tools(remote));
    assert.deepEqual(tools(new SandboxAgent({ backend: "unix-local" })), tools(new LocalSandbox({ isolation: "none" })));
  });

  test("all of it is short", () => {
    for (const tool of new SandboxToolkit(new LocalSandbox({ isolation: "none" })).getTools()) assert.ok(tool.description.length < 600, tool.description);
  });
});

describe("results", () => {
  test("run and shell: the result as JSON, whatever the output holds", async () => {
    const output = "q\" ' \\ \n \t \0 \u001b[1m \u{1F600} \u2028 \ud800";
    const result = { output, exitCode: 124, timedOut: true, outputTruncated: true };
    const { run, shell } = open({ run: result, shell: result });
    for (const text of [await run.execute({ code: "1" }), await shell.execute({ command: "c" })]) {
      assert.deepEqual(JSON.parse(text), result);
    }
  });

  test("files: ok, the content, an empty content, not found", async () => {
    for (const [answer, text] of [["content", "content"], ["", ""], [null, "[file not found]"], [undefined, "[file not found]"]]) {
      assert.equal(await open({ readFile: () => answer }).readFile.execute({ path: "f" }), text);
    }
    assert.equal(await open().writeFile.execute({ path: "f", contents: "" }), "ok");
  });

  test("an answer that is none is an error, never a success", async () => {
    for (const run of [undefined, null, {}, { output: 7 }, "text"]) {
      const error = await rejection(open({ run: () => run }).run.execute({ code: "1" }));
      assert.equal(error.code, "ERR_SANDBOX_PROTOCOL");
      assert.match(error.message, /may have run/);
    }
    assert.equal((await rejection(open({ readFile: () => 7 }).readFile.execute({ path: "f" }))).code, "ERR_SANDBOX_PROTOCOL");
  });
});

describe("errors, as a model reads them", () => {
  const fail = async (role, error, context) => {
    const tools = open({ [role]: () => Promise.reject(error) });
    const args = { code: "1", command: "c", path: "f", contents: "" };
    return rejection(tools[role].execute(args, context));
  };
  const sandboxError = (details) => new SandboxError("the network is down", { code: "ERR_SANDBOX_NETWORK", ...details });

  test("what failed, whether it may have run, whether a repeat is safe", async () => {
    const message = async (role, details) => (await fail(role, sandboxError(details))).message;
    const ran = { mayHaveRun: true, retryable: true };
    assert.equal(await message("shell", ran), "sandbox_fake_shell failed: the network is down. The command may have run: check its effects before repeating it.");
    assert.equal(await message("shell", { retryable: true }), "sandbox_fake_shell failed: the network is down. Nothing was run; repeating the call is safe.");
    assert.equal(await message("run", {}), "sandbox_fake_run failed: the network is down. Nothing was run; repeating the same call will not help.");
    assert.equal(await message("run", { code: "ERR_SANDBOX_LOST" }), "sandbox_fake_run failed: the network is down. Nothing was run; repeating the call is safe.");
    assert.match(await message("writeFile", ran), /The file may have been written; writing it again is safe\.$/);
    assert.match(await message("readFile", ran), /Reading again is safe\.$/);
    assert.match(await message("readFile", { code: "ERR_SANDBOX_CLOSED" }), /Nothing was read; repeating the same call will not help\.$/);
  });

  test("class, code and details stay; the original is the cause", async () => {
    const original = new PathSecurityError("leaves", { code: "ERR_SANDBOX_INVALID_ARG", provider: "p", status: 500 });
    const error = await fail("writeFile", original);
    assert.ok(error instanceof PathSecurityError);
    assert.deepEqual([error.name, error.code, error.provider, error.status, error.cause], ["PathSecurityError", "ERR_SANDBOX_INVALID_ARG", "p", 500, original]);
  });

  test("an error that says nothing about it leaves it open, and is cut to a readable length", async () => {
    const error = await fail("shell", new Error("x".repeat(100_000)));
    assert.match(error.message, /The command may have run: check its effects before repeating it\.$/);
    assert.ok(error.message.length < 2000);
    assert.equal(error.mayHaveRun, true);
    for (const odd of ["text", null, undefined, 7, {}]) assert.match((await fail("run", odd)).message, /^sandbox_fake_run failed: \S/);
  });

  test("the signal's reason passes unchanged", async () => {
    const controller = new AbortController();
    const reason = new Error("enough");
    const { shell } = open({
      shell: (_, { signal }) => {
        controller.abort(reason);
        return Promise.reject(signal.reason);
      },
    });
    assert.equal(await rejection(shell.execute({ command: "c" }, controller)), reason);
  });
});

describe("defineTool", () => {
  const base = { name: "t", description: "a tool", execute: async (args) => JSON.stringify(args) };
  const parameters = (properties, more) => ({ type: "object", properties, additionalProperties: false, ...more });

  test("JSON Schema: the arguments are checked, also inside execute", async () => {
    const json = parameters({ n: { type: "integer", minimum: 1, maximum: 3 }, tags: { type: "array", items: { type: "string" } } }, { required: ["n"] });
    const tool = defineTool({ ...base, parameters: json, cache: { ttl: 5 }, requiresApproval: true, effect: "read" });
    assert.deepEqual(JSON.parse(JSON.stringify(tool.parameters)), json);
    assert.deepEqual([tool.id, tool.cache, tool.requiresApproval, tool.effect, "sandbox" in tool], ["t", { ttl: 5 }, true, "read", false]);
    assert.equal(await tool.execute({ n: 2, tags: ["a"], extra: 1 }), '{"n":2,"tags":["a"]}');
    const error = await rejection(tool.execute({ n: 2.5, tags: ["a", 7] }));
    assert.equal(
      error.message,
      "t was not run, and nothing has changed: `n` must be an integer, not 2.5; `tags.1` must be a string, not 7. " +
        "Call it again with an object with `n` (integer), `tags` (array, optional).",
    );
    assert.match((await rejection(tool.execute({ n: 4 }))).message, /`n` must be at least 1 and at most 3; got 4/);
  });

  test("requiresApproval has the names that the AI SDK and Mastra read", () => {
    for (const rule of [true, false, ({ n }) => n > 1]) {
      for (const schema of [parameters({}), { _zod: {} }]) {
        const tool = defineTool({ ...base, parameters: schema, requiresApproval: rule });
        assert.deepEqual([tool.requiresApproval, tool.needsApproval, tool.requireApproval], [rule, rule, rule]);
      }
    }
    const plain = defineTool({ ...base, parameters: parameters({}) });
    for (const name of ["requiresApproval", "needsApproval", "requireApproval"]) assert.equal(name in plain, false);
  });

  test("the keywords that are known", () => {
    const cases = [
      [{ type: "string", minLength: 2, maxLength: 3 }, ["ab", "\u{1F600}\u{1F600}"], ["a", "abcd", 7]],
      [{ type: "string", pattern: "^a+$" }, ["aa"], ["b"]],
      [{ type: "string", const: "x" }, ["x"], ["y"]],
      [{ type: "number", exclusiveMinimum: 0, exclusiveMaximum: 1 }, [0.5], [0, 1, NaN, "0.5"]],
      [{ type: "number", enum: [1, 2] }, [1], [3]],
      [{ type: "boolean" }, [true, false], ["true", 1]],
      [{ type: "array", minItems: 1, maxItems: 2 }, [[1], [1, 2]], [[], [1, 2, 3], {}]],
      [parameters({ deep: { type: "boolean" } }, { required: ["deep"] }), [{ deep: true }], [{}, { deep: 1 }, []]],
      [{ type: "object", additionalProperties: { type: "string" } }, [{ a: "b" }], [{ a: 1 }]],
      [{ type: "object" }, [{ anything: [1, { goes: null }] }], ["text"]],
    ];
    for (const [schema, good, bad] of cases) {
      const tool = defineTool({ ...base, parameters: parameters({ v: schema }) });
      for (const v of good) assert.deepEqual(tool.parameters.safeParse({ v }), { success: true, data: { v } }, JSON.stringify([schema, v]));
      for (const v of bad) assert.equal(tool.parameters.safeParse({ v }).success, false, JSON.stringify([schema, v]));
    }
  });

  test("a keyword that would be ignored is refused when the tool is defined", () => {
    const schemas = [
      { type: "object", oneOf: [] },
      parameters({ a: { $ref: "#/x" } }),
      parameters({ a: { type: ["string", "null"] } }),
      parameters({ a: { type: "array", uniqueItems: true } }),
      parameters({ a: true }),
      parameters({ ["__proto__"]: { type: "string" } }),
      { type: "string" },
      {},
    ];
    for (const schema of schemas) {
      assert.throws(() => defineTool({ ...base, parameters: schema }), { code: "ERR_SANDBOX_INVALID_ARG", message: /defineTool "t"/ }, JSON.stringify(schema));
    }
  });

  test("no property of the arguments reaches a prototype", () => {
    const tool = defineTool({ ...base, parameters: { type: "object", properties: { toString: { type: "string" } }, required: ["toString"] } });
    assert.match(tool.parameters.safeParse({}).error.message, /`toString` is missing/);
    const { data } = tool.parameters.safeParse(JSON.parse('{"toString":"x","__proto__":{"polluted":1}}'));
    assert.equal(data.polluted, undefined);
    assert.equal(Object.getPrototypeOf(data), Object.prototype);
  });

  test("Zod and Standard Schema objects pass through, and so do arguments, context and result", async () => {
    const standard = { "~standard": { version: 1, vendor: "v", validate: (value) => ({ value }) } };
    for (const schema of [{ _def: {}, shape: {}, safeParse() {}, parse() {} }, { _zod: {} }, standard]) {
      const seen = [];
      const result = { content: "c", artifacts: [] };
      const tool = defineTool({ ...base, parameters: schema, rawJsonSchema: { type: "object" }, execute: async (...args) => (seen.push(args), result) });
      assert.equal(tool.parameters, schema);
      assert.equal(tool.inputSchema, schema);
      assert.deepEqual(tool.rawJsonSchema, { type: "object" });
      const args = { anything: true };
      const context = { runId: "r" };
      assert.equal(await tool.execute(args, context), result);
      assert.equal(seen[0][0], args);
      assert.equal(seen[0][1], context);
    }
  });

  test("wrong definitions are refused, naming the option", () => {
    const good = { ...base, parameters: parameters({}) };
    const wrong = [
      [{ name: "" }, /`name`/], [{ name: "a b" }, /`name`/], [{ name: "x".repeat(65) }, /`name`/], [{ name: 7 }, /`name`/],
      [{ description: "" }, /`description`/], [{ execute: "x" }, /`execute`/], [{ parameters: undefined }, /`parameters`/],
      [{ cache: { ttl: -1 } }, /`cache`/], [{ sandbox: "yes" }, /`sandbox`/], [{ requiresApproval: 1 }, /`requiresApproval`/],
      [{ strict: 1 }, /`strict`/], [{ inputExamples: [1] }, /`inputExamples`/], [{ toModelOutput: 1 }, /`toModelOutput`/],
      [{ effect: "destroy" }, /`effect`.*execute, write, read/], [{ rawJsonSchema: [] }, /`rawJsonSchema`/],
      [{ requireApproval: true }, /requireApproval.*did you mean `requiresApproval`/],
    ];
    for (const [change, words] of wrong) {
      assert.throws(() => defineTool({ ...good, ...change }), { code: "ERR_SANDBOX_INVALID_ARG", message: words }, JSON.stringify(change));
    }
    for (const config of [undefined, null, 7, []]) assert.throws(() => defineTool(config), { code: "ERR_SANDBOX_INVALID_ARG" });
  });
});
