// Toolkits: any object with the port's members, names, and who closes what.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { inspect } from "node:util";

import { DaytonaSandboxToolkit, E2BSandboxToolkit, HttpSandboxToolkit, LocalSandbox, LocalSandboxToolkit, SandboxAgent, SandboxToolkit, Toolkit, collectToolkitTools, defineTool, describeToolLibrary } from "cloudsandbox";

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
    const local = new LocalSandboxToolkit({ trusted: true });
    assert.match(inspect(local), /^LocalSandboxToolkit \{\s+name: 'sandbox-local',\s+sandbox: LocalSandbox \{/);
  });

  test("a method that was taken off its toolkit says so", async () => {
    const { getTools, getSandbox, close } = new LocalSandboxToolkit({ trusted: true });
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
    const toolkit = new LocalSandboxToolkit({ trusted: true, env: { A: "a" } });
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
    const sandbox = new LocalSandbox({ trusted: true });
    const two = collectToolkitTools([new LocalSandboxToolkit({ trusted: true }), new SandboxToolkit(sandbox, { name: "second" })]);
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
