// Toolkits: any object with the port's members, names, and who closes what.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { inspect } from "node:util";

import { DaytonaSandboxToolkit, E2BSandboxToolkit, HttpSandboxToolkit, LocalSandbox, LocalSandboxToolkit, SandboxAgent, SandboxError, SandboxToolkit, Toolkit, collectToolkitTools, defineTool, describeToolLibrary } from "cloudsandbox";

import { fakeSandbox } from "../support/fake.js";

const ROLES = ["run", "shell", "write_file", "read_file"];
const names = (toolkit) => toolkit.getTools().map((tool) => tool.name);

describe("what is a sandbox", () => {
  test("any object with the seven members, whatever its class and wherever they are", () => {
    class Own {
      get providerId() {
        return "own";
      }
      start() {}
      run() {}
      shell() {}
      writeFile() {}
      readFile() {}
      close() {}
    }
    assert.deepEqual(names(new SandboxToolkit(new Own())), ROLES.map((role) => `sandbox_own_${role}`));
    const bare = Object.assign(Object.create(null), fakeSandbox().sandbox);
    assert.equal(new SandboxToolkit(bare).getSandbox(), bare);
  });

  test("a missing member is named", () => {
    const { sandbox } = fakeSandbox();
    for (const member of Object.keys(sandbox)) {
      const rest = { ...sandbox };
      delete rest[member];
      for (const incomplete of [rest, { ...rest, [member]: 7 }]) {
        assert.throws(() => new SandboxToolkit(incomplete), { code: "ERR_SANDBOX_INVALID_ARG", message: new RegExp(`\`${member}\`.*a CloudSandbox has providerId, start`) });
      }
    }
    for (const none of [undefined, null, "e2b", 7]) assert.throws(() => new SandboxToolkit(none), /must be an object/);
  });
});

describe("names", () => {
  test("from the name, or from the provider's id", () => {
    const cases = [
      [["fake", undefined], "sandbox-fake", "sandbox_fake_run"],
      [["fake", { name: "my-own_2" }], "sandbox-my-own_2", "sandbox_my_own_2_run"],
      [["unix-local", undefined], "sandbox-local", "sandbox_local_run"],
      [["unix-local", {}], "sandbox-local", "sandbox_local_run"],
      [["Any Text!", { name: "text" }], "sandbox-text", "sandbox_text_run"],
    ];
    for (const [[providerId, options], name, tool] of cases) {
      const toolkit = new SandboxToolkit(fakeSandbox({}, providerId).sandbox, options);
      assert.equal(toolkit.name, name);
      assert.equal(names(toolkit)[0], tool);
    }
  });

  test("console.log() shows nothing of another's sandbox but its provider", async () => {
    const { sandbox } = fakeSandbox();
    const toolkit = new SandboxToolkit(Object.assign(sandbox, { key: "canary" }), { name: "x" });
    assert.equal(inspect(toolkit), `SandboxToolkit { name: 'sandbox-x', sandbox: '${sandbox.providerId}' }`);
    const local = new LocalSandboxToolkit({ isolation: "none" });
    assert.match(inspect(local), /^LocalSandboxToolkit \{\s+name: 'sandbox-local',\s+sandbox: LocalSandbox \{/);
  });

  test("a method that was taken off its toolkit says so", async () => {
    const { getTools, getSandbox, close } = new LocalSandboxToolkit({ isolation: "none" });
    const words = /was called without its toolkit, and did nothing: write toolkit\./;
    assert.throws(() => getTools(), words);
    assert.throws(() => getSandbox(), words);
    await assert.rejects(close(), words);
  });

  test("no name is changed silently, and none is too long for a tool", () => {
    const { sandbox } = fakeSandbox();
    for (const name of ["", "Upper", "a b", "a.b", "é", "x".repeat(46), 7, null]) {
      assert.throws(() => new SandboxToolkit(sandbox, { name }), { code: "ERR_SANDBOX_INVALID_ARG", message: /`name`/ });
    }
    assert.ok(names(new SandboxToolkit(sandbox, { name: "x".repeat(45) })).every((name) => name.length <= 64));
    assert.throws(() => new SandboxToolkit(fakeSandbox({}, "My Sandbox").sandbox), /"My Sandbox".*\{ name \}/);
    assert.throws(() => new SandboxToolkit(sandbox, { nam: "x" }), /did you mean `name`/);
  });
});

describe("life", () => {
  test("neither the toolkit nor its tools touch the sandbox before a call", () => {
    const { sandbox, calls } = fakeSandbox();
    const toolkit = new SandboxToolkit(sandbox);
    const [first, second] = [toolkit.getTools(), toolkit.getTools()];
    assert.equal(toolkit.getSandbox(), sandbox);
    for (const [index, tool] of first.entries()) assert.notEqual(tool, second[index]);
    assert.deepEqual(calls, []);
  });

  test("close and `await using` close the sandbox, and its failure shows", async () => {
    const { sandbox, calls } = fakeSandbox();
    const toolkit = new SandboxToolkit(sandbox);
    assert.equal(await toolkit.close(), undefined);
    await toolkit[Symbol.asyncDispose]();
    assert.deepEqual(calls, [["close"], ["close"]], "whether the second does anything is the sandbox's rule");
    await toolkit.close({ graceSeconds: 1 });
    assert.deepEqual(calls[2], ["close", { graceSeconds: 1 }]);
    const failure = new Error("not now");
    await assert.rejects(new SandboxToolkit(fakeSandbox({ close: failure }).sandbox).close(), failure);
  });

  test("two toolkits in one list reach their own sandboxes", async () => {
    const [one, two] = [fakeSandbox({}, "one"), fakeSandbox({}, "two")];
    const tools = collectToolkitTools([new SandboxToolkit(one.sandbox), new SandboxToolkit(two.sandbox)]);
    assert.equal(Object.keys(tools).length, 8);
    await tools.sandbox_two_shell.execute({ command: "c" });
    assert.deepEqual([one.calls.length, two.calls.length], [0, 1]);
  });

  test("nothing of the sandbox shows on the toolkit", () => {
    const toolkit = new SandboxToolkit(fakeSandbox().sandbox);
    assert.deepEqual(Object.keys(toolkit), []);
    assert.equal(JSON.stringify(toolkit), "{}");
  });
});

describe("LocalSandboxToolkit", () => {
  test("makes a LocalSandbox with the options that it is given", async (t) => {
    const toolkit = new LocalSandboxToolkit({ isolation: "none", env: { A: "a" } });
    t.after(() => toolkit.close());
    assert.ok(toolkit instanceof SandboxToolkit);
    assert.ok(toolkit.getSandbox() instanceof LocalSandbox);
    assert.equal(toolkit.name, "sandbox-local");
    assert.deepEqual(names(toolkit), ROLES.map((role) => `sandbox_local_${role}`));
    assert.equal(await toolkit.getTools()[1].execute({ command: 'echo "$A"' }), '{"output":"a\\n","exitCode":0}');
    assert.throws(() => new LocalSandboxToolkit({ timeout: 5 }), {
      code: "ERR_SANDBOX_INVALID_ARG",
      message: /^LocalSandboxToolkit: there is no option `timeout`; did you mean `defaultTimeoutSeconds`/,
    });
    assert.throws(() => new LocalSandboxToolkit(7), { message: /^LocalSandboxToolkit: the options must be an object/ });
  });
});

describe("a toolkit over a SandboxAgent", () => {
  test("its name, and the place that its tools tell of", () => {
    const local = new SandboxToolkit(new SandboxAgent({ backend: "unix-local" }));
    assert.equal(local.getSandbox().providerId, "sandbox-agent-unix-local");
    assert.deepEqual(names(local), ROLES.map((role) => `sandbox_workspace_${role}`));
    assert.match(local.getTools()[0].description, /not isolated/);
    const remote = new SandboxToolkit(new SandboxAgent({ backend: "remote", remote: fakeSandbox({}, "Own one").sandbox }));
    assert.equal(remote.getSandbox().providerId, "sandbox-agent-Own one");
    assert.equal(remote.name, "sandbox-workspace");
    assert.match(remote.getTools()[0].description, /in the sandbox/);
    assert.equal(new SandboxToolkit(remote.getSandbox(), { name: "mine" }).name, "sandbox-mine");
  });

  test("a remote's default language is its own affair", async () => {
    const { sandbox, named } = fakeSandbox();
    const agent = new SandboxAgent({ backend: "remote", remote: sandbox });
    await agent.start();
    await new SandboxToolkit(agent).getTools()[0].execute({ code: "1" });
    assert.deepEqual(named("run"), [["run", "1", { env: {} }]]);
  });

  test("a tool does not start it, and says so", async () => {
    const { sandbox, calls } = fakeSandbox();
    const agent = new SandboxAgent({ backend: "remote", remote: sandbox });
    const [run] = new SandboxToolkit(agent).getTools();
    await assert.rejects(run.execute({ code: "1" }), {
      code: "ERR_SANDBOX_NOT_READY",
      message: "sandbox_workspace_run failed: SandboxAgent is not ready: call start() first. Nothing was run; repeating the same call will not help.",
    });
    assert.deepEqual(calls, []);
  });

  test("once started its files and variables are there; python is the default, as the tool says", async (t) => {
    const agent = new SandboxAgent({ backend: "unix-local", workspace: { files: [{ path: "in", contents: "seed" }], env: { A: "a" } } });
    const toolkit = new SandboxToolkit(agent);
    t.after(() => toolkit.close());
    await agent.start();
    const [run, shell, , read] = toolkit.getTools();
    assert.equal(await read.execute({ path: "in" }), "seed");
    assert.equal(await shell.execute({ command: "cat in; echo $A" }), '{"output":"seeda\\n","exitCode":0}');
    assert.equal(await run.execute({ code: "print(type(1).__name__)" }), '{"output":"int\\n","exitCode":0}');
    assert.equal(await run.execute({ code: "console.log(1)", language: "node" }), '{"output":"1\\n","exitCode":0}');
    await toolkit.close();
    assert.equal(agent.ready, false);
  });
});

describe("own toolkits and tool libraries", () => {
  const tool = (name, description) => defineTool({ name, description, parameters: { type: "object", properties: { a: { type: "string" }, b: { type: "string" } } }, execute: async () => "" });
  class Own extends Toolkit {
    name = "own";
    constructor(tools) {
      super();
      this.tools = tools;
    }
    getTools() {
      return this.tools;
    }
  }

  test("the base class is abstract", () => {
    assert.throws(() => new Toolkit(), /abstract/);
    class Empty extends Toolkit {}
    assert.throws(() => new Empty().getTools(), /Empty does not implement getTools/);
    assert.equal(new Own([]).name, "own");
  });

  test("a second toolkit of a kind: its own name is refused with what works", () => {
    for (const [Kind, options] of [[LocalSandboxToolkit, {}], [E2BSandboxToolkit, { apiKey: "k" }], [DaytonaSandboxToolkit, { apiKey: "k" }], [HttpSandboxToolkit, { baseURL: "http://127.0.0.1:1" }]]) {
      const message = new RegExp(`^${Kind.name}: there is no option .name.*new SandboxToolkit\\(new ${Kind.name.replace("Toolkit", "")}\\(.*{ name`);
      assert.throws(() => new Kind({ ...options, name: "second" }), { code: "ERR_SANDBOX_INVALID_ARG", message });
    }
    const sandbox = new LocalSandbox({ isolation: "none" });
    const two = collectToolkitTools([new LocalSandboxToolkit({ isolation: "none" }), new SandboxToolkit(sandbox, { name: "second" })]);
    assert.equal(Object.keys(two).length, 8);
  });

  test("collecting: by name, of equal names the later one", () => {
    const [first, second] = [tool("same", "first"), tool("same", "second")];
    const library = collectToolkitTools([new Own([tool("one", "1"), first]), new Own([second])]);
    assert.deepEqual(Object.keys(library), ["one", "same"]);
    assert.equal(library.same, second);
    assert.deepEqual(collectToolkitTools([]), {});
    for (const wrong of [new Own([first]), [first], undefined, 5]) {
      assert.throws(() => collectToolkitTools(wrong), { code: "ERR_SANDBOX_INVALID_ARG", message: /give an array of toolkits/ });
    }
  });

  test("describing: name, description, parameter names; also of tools made elsewhere", () => {
    const zodLike = { name: "z", description: "made with Zod", parameters: { shape: { city: {} } } };
    for (const wrong of [undefined, null, 7, "tools", [undefined], { run: null }, { run: {} }]) {
      assert.throws(() => describeToolLibrary(wrong), { code: "ERR_SANDBOX_INVALID_ARG", message: /collectToolkitTools/ });
    }
    assert.deepEqual(describeToolLibrary({ t: tool("t", "mine"), z: zodLike, none: { name: "none", description: "no parameters" } }), [
      { name: "t", description: "mine", parameters: ["a", "b"] },
      { name: "z", description: "made with Zod", parameters: ["city"] },
      { name: "none", description: "no parameters", parameters: [] },
    ]);
  });
});

describe("which tools, and how they speak", () => {
  const roles = (options, sandbox = new LocalSandbox({ isolation: "none" })) =>
    new SandboxToolkit(sandbox, { name: "x", ...options }).getTools().map(({ name }) => name.replace("sandbox_x_", ""));

  test("four tools; `tools` leaves out and adds, in a fixed order", () => {
    assert.deepEqual(roles({}), ["run", "shell", "write_file", "read_file"]);
    assert.deepEqual(roles({ tools: { edit_file: true, run: false, list_files: true } }), ["shell", "write_file", "read_file", "list_files", "edit_file"]);
    assert.deepEqual(roles({ readOnly: true }), ["read_file", "list_files"]);
    assert.deepEqual(roles({ readOnly: true, tools: { list_files: false } }), ["read_file"]);
    assert.deepEqual(roles({ readOnly: true }, fakeSandbox().sandbox), ["read_file"], "it cannot list");
    assert.deepEqual(new LocalSandboxToolkit({ isolation: "none" }, { readOnly: true }).getTools().map(({ name }) => name), ["sandbox_local_read_file", "sandbox_local_list_files"]);
  });

  test("read_file takes a range where asked for, and where no command can print a part", () => {
    const takes = (options) => "offset" in new SandboxToolkit(fakeSandbox().sandbox, options).getTools().at(-1).parameters.properties;
    assert.equal(takes({}), false);
    assert.equal(takes({ tools: { read_file: { range: true } } }), true);
    assert.equal(takes({ readOnly: true }), true);
    assert.equal(takes({ readOnly: true, tools: { read_file: { range: false } } }), false);
    assert.equal(takes({ tools: { run: false, shell: false } }), true);
  });

  test("`describe` takes the place of our words, or adds to them", () => {
    const options = { describe: { run: "Runs it.", shell: (text) => `${text} Ask first.` } };
    const [run, shell, write] = new SandboxToolkit(fakeSandbox().sandbox, options).getTools();
    assert.equal(run.description, "Runs it.");
    assert.match(shell.description, /^Run a command line .* Ask first\.$/s);
    assert.match(write.description, /^Create or replace/);
  });

  test("wrong options are refused in words", () => {
    const wrong = [
      [{ tools: { writeFile: false } }, /`tools`: there is no option `writeFile`.*did you mean `write_file`/],
      [{ tools: { run: "no" } }, /`tools.run` must be true or false/],
      [{ tools: { read_file: { lines: true } } }, /`tools.read_file`: there is no option `lines`/],
      [{ readOnly: true, tools: { shell: true } }, /`tools.shell` changes things, and `readOnly`/],
      [{ readOnly: "yes" }, /`readOnly` must be true or false/],
      [{ tools: { run: false, shell: false, write_file: false, read_file: false } }, /leaves no tool/],
      [{ tools: { list_files: true } }, /`tools.list_files` needs a sandbox with listFiles\(\)/],
      [{ maxToolOutputChars: 10 }, /`maxToolOutputChars` must be a number from 1000/],
      [{ describe: { run: "" } }, /`describe.run` must be a text/],
      [{ describe: { ran: "x" } }, /`describe`: there is no option `ran`/],
    ];
    for (const [options, message] of wrong) {
      assert.throws(() => new SandboxToolkit(fakeSandbox().sandbox, options), { code: "ERR_SANDBOX_INVALID_ARG", message }, JSON.stringify(options));
    }
    assert.throws(() => new LocalSandboxToolkit({ isolation: "none" }, { name: "x" }), { message: /there is no option `name`/ });
    assert.throws(() => new SandboxToolkit(fakeSandbox().sandbox, { describe: { run: () => 7 } }).getTools(), { message: /`describe.run` must return a text/ });
  });
});

describe("list_files", () => {
  /** The tool over a sandbox with these files, or with an error in their place. */
  function listing(files, more) {
    const { sandbox } = fakeSandbox();
    const listFiles = async () => {
      if (files instanceof Error) throw files;
      return files.map((path) => ({ path, size: 1000 }));
    };
    const toolkit = new SandboxToolkit(Object.assign(sandbox, { listFiles, ...more }), { tools: { list_files: true }, maxToolOutputChars: 1000 });
    return toolkit.getTools().at(-1);
  }
  const tooLarge = () => new SandboxError("too many", { code: "ERR_SANDBOX_TOO_LARGE" });

  test("what is there in bulk is counted, and shown when it is named; a file is its own list", async () => {
    const list = listing(["a/.git/HEAD", "a/x", "a/node_modules/m/i.js", "node_modules.txt"]);
    assert.equal(await list.execute({}), "a/x (1,000 bytes)\nnode_modules.txt (1,000 bytes)\n[2 files in .git, node_modules and the like left out here; list such a folder with `path`]");
    assert.equal(await list.execute({ path: "a/.git" }), "a/.git/HEAD (1,000 bytes)\n");
    assert.equal(await list.execute({ path: "a/x" }), "a/x (1,000 bytes)\n");
    assert.equal(await list.execute({ path: "b" }), "[no files in b]");
  });

  test("of too many files one folder, with what its entries are", async () => {
    const asked = [];
    const listDirectory = async (...args) => {
      asked.push(args);
      return [{ name: "d", type: "directory", size: 0 }, { name: "f", type: "file", size: 3 }, { name: "l", type: "link", size: 9 }];
    };
    const list = listing(tooLarge(), { listDirectory });
    const note = "[there are more than 100,000 files in all, so this is one folder without what is below it; list those below with `path`]";
    assert.equal(await list.execute({}), `d/\nf (3 bytes)\nl (link)\n${note}`);
    assert.equal(await list.execute({ path: "./a/" }), `a/d/\na/f (3 bytes)\na/l (link)\n${note}`);
    assert.deepEqual(asked, [[".", { maxEntries: 100_000 }], ["a/", { maxEntries: 100_000 }]]);
    await assert.rejects(listing(tooLarge()).execute({}), /there are more than 100,000 files; look at one folder with/);
  });
});

describe("long results of a sandbox of one's own", () => {
  const open = (answers, options) => {
    const [run, shell, , read] = new SandboxToolkit(fakeSandbox(answers).sandbox, { maxToolOutputChars: 1000, ...options }).getTools();
    return { run, shell, read };
  };

  test("F1 head, one line, tail; what else the result says stays", async () => {
    const { shell } = open({ shell: { output: `${"a".repeat(3000)}\n${"z".repeat(3000)}`, exitCode: 3, timedOut: true } });
    const text = await shell.execute({ command: "c" });
    assert.ok(text.length <= 1000);
    const { output, ...others } = JSON.parse(text);
    assert.deepEqual(others, { exitCode: 3, timedOut: true, outputTruncated: true });
    const [, head, missing, tail] = /^(a+)\n\[([\d,]+) characters left out here; .*\]\n(z+)$/.exec(output);
    assert.equal(head.length + tail.length + Number(missing.replace(",", "")), 6001);
  });

  test("F1 no character is cut in half, and the text is kept to the last character that fits", async () => {
    for (const length of [999, 1000, 1001, 5001]) {
      const { read } = open({ readFile: "\u{1F600}".repeat(length) });
      const content = await read.execute({ path: "f" });
      assert.ok(content.length <= 1000 && content.isWellFormed(), `${length}`);
    }
    const exact = "x".repeat(1000);
    assert.equal(await open({ readFile: exact }).read.execute({ path: "f" }), exact);
    assert.equal(await open({ readFile: `${exact}${exact}` }, { maxToolOutputChars: Infinity }).read.execute({ path: "f" }), exact + exact);
  });

  test("F1 members that are long themselves: the output gives way, and there is an end", async () => {
    const { shell } = open({ shell: { output: "o".repeat(5000), exitCode: 0, note: "n".repeat(2000) } });
    const { output, note } = JSON.parse(await shell.execute({ command: "c" }));
    assert.equal(note.length, 2000);
    assert.match(output, /^\[5,000 characters left out/);
  });

  test("onOutput hears all at the end, from the context or the third argument", async () => {
    const { shell } = open();
    const heard = [];
    const onOutput = (text) => Promise.reject(heard.push(text));
    await shell.execute({ command: "c" }, { onOutput });
    await shell.execute({ command: "c" }, {}, { onOutput });
    assert.deepEqual(heard, ["shelled", "shelled"]);
  });

  test("a class of the user's that changes the output: what it returned is what is shown", async (t) => {
    class Redacting extends LocalSandbox {
      async shell(command, options) {
        const result = await super.shell(command, options);
        return { ...result, output: result.output.replaceAll("secret", "******") };
      }
    }
    const toolkit = new SandboxToolkit(new Redacting({ isolation: "none" }));
    t.after(() => toolkit.close());
    const text = await toolkit.getTools()[1].execute({ command: "for i in $(seq 200000); do echo secret; done" });
    assert.doesNotMatch(text, /secret/);
    assert.ok(text.length <= 50_000);
  });
});

describe("an edit that does not fit says why", () => {
  const edit = async (content, oldText, more) => {
    const base64 = Buffer.from(content).toString("base64");
    const { sandbox, named } = fakeSandbox({ readFile: base64 });
    const tool = new SandboxToolkit(sandbox, { tools: { edit_file: true } }).getTools().at(-1);
    const text = await tool.execute({ path: "f", oldText, newText: "new", ...more }).catch((error) => error.message);
    return { text, written: named("writeFile").map(([, , contents]) => contents) };
  };
  const refused = [
    ["a\n\tb\n", "a\n  b", /`oldText` is not in f; line 1 differs from it in spaces only/],
    ["x\na b\n", "a  b\n", /line 2 differs from it in spaces only/],
    ["a\r\nb\r\n", "a\nb", /its lines end with \\r\\n/],
    ["a", "b", /`oldText` is not in f; read the file again/],
    ["a", "", /`oldText` is empty/],
    ["new", "new", /are the same/],
    [Buffer.from([0xff, 0x61]), "a", /f is no UTF-8 text/],
    ["aa\na\n".repeat(9), "a\n", /18 times \(at lines 1, 2, 3, 4, 5, \.\.\.\)/],
  ];
  for (const [content, oldText, words] of refused) {
    test(`F1 refused: ${JSON.stringify(oldText)} in ${JSON.stringify(String(content)).slice(0, 30)}`, async () => {
      const { text, written } = await edit(content, oldText);
      assert.match(text, words);
      assert.match(text, /Nothing was written; repeating the same call will not help\./);
      assert.deepEqual(written, []);
    });
  }

  test("F1 what is in the text is text, and a byte order mark stays", async () => {
    assert.deepEqual((await edit("\ufeffa $& b", "a", { newText: "$1$&$$" })).written, ["\ufeff$1$&$$ $& b"]);
  });
});
