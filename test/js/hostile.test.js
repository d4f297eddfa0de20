// Options and arguments that throw when they are read, that change while they are read, or that only
// look like what they should be: each call rejects as INVALID_ARG and nothing runs.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { DaytonaSandbox, E2BSandbox, HttpSandbox, LocalSandbox, SandboxAgent, SandboxError, SandboxToolkit, defineTool } from "cloudsandbox";
import { mcpTools } from "cloudsandbox/mcp";

import { fakeSandbox } from "../support/fake.js";
import { toolsByRole } from "../support/host.js";
import { tempDir } from "../support/temp.js";
import { rejection } from "../support/wait.js";

const boom = () => {
  throw new RangeError("boom");
};
const throwing = (name, rest = {}) => Object.defineProperty({ ...rest }, name, { enumerable: true, get: boom });
const proxy = (target) => new Proxy(target, { get: boom, ownKeys: boom, has: boom });
const revoked = (target) => {
  const { proxy: dead, revoke } = Proxy.revocable(target, {});
  revoke();
  return dead;
};

function isInvalid(error, what) {
  assert.ok(error instanceof SandboxError, `${what}: ${error?.stack}`);
  assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG", what);
  assert.equal(error.mayHaveRun, false);
  assert.doesNotMatch(error.message, /boom/);
}

describe("what throws when it is read", { concurrency: 4 }, () => {
  test("options of calls", async (t) => {
    const parent = tempDir(t);
    const local = new LocalSandbox({ isolation: "none", tempDir: parent });
    const daytona = new DaytonaSandbox({ apiKey: "k" });
    t.after(() => local.close());
    const calls = [
      (options) => local.start(options),
      (options) => local.run("1", options),
      (options) => local.shell("true", options),
      (options) => local.exec(options),
      (options) => local.writeFile("f", "", "utf8", options),
      (options) => local.readFile("f", "utf8", options),
      (options) => local.readBytes("f", options),
      (options) => local.listFiles(options),
      (options) => daytona.run("1", options),
      (options) => daytona.exec(options),
    ];
    const hostile = [throwing("signal"), proxy({}), revoked({}), revoked([]), { signal: proxy({}) }, { signal: throwing("aborted") }];
    for (const [index, call] of calls.entries()) {
      for (const options of hostile) isInvalid(await rejection(call(options)), `${index}`);
    }
    const members = { env: [throwing("A"), proxy({}), revoked({})], stdin: [proxy(new Uint8Array(1)), revoked({})], maxOutputBytes: [proxy({})] };
    for (const [name, values] of Object.entries(members)) {
      for (const value of values) isInvalid(await rejection(local.exec({ command: "true", [name]: value })), name);
    }
    isInvalid(await rejection(local.writeFile("f", proxy(new Uint8Array(1)))), "contents");
    const { buffer } = new Uint8Array(8);
    structuredClone(buffer, { transfer: [buffer] });
    isInvalid(await rejection(local.writeFile("f", buffer)), "detached");
    assert.equal(local.sandboxId, null);
  });

  test("argv: sparse, of other things, changing", async (t) => {
    const local = new LocalSandbox({ isolation: "none", tempDir: tempDir(t) });
    t.after(() => local.close());
    const sparse = ["echo", "a", "b"];
    delete sparse[1];
    const lists = [[], sparse, new Array(3), new Array(2 ** 32 - 1), ["echo", 1], proxy(["echo"]), revoked(["echo"]), Object.defineProperty(["echo", "x"], 1, { get: boom })];
    for (const argv of lists) isInvalid(await rejection(local.exec({ argv })), "argv");
    assert.equal(local.sandboxId, null);
    let reads = 0;
    const changing = Object.defineProperty(["echo", ""], 1, { get: () => (reads++ === 0 ? "once" : 7) });
    assert.equal((await local.exec({ argv: changing })).output, "once\n");
    const spec = { get command() { return reads++ === 1 ? "echo first" : 7; } };
    assert.equal((await local.exec(spec)).output, "first\n");
  });

  test("options of constructors", () => {
    const make = {
      local: (options) => new LocalSandbox({ isolation: "none", ...options }),
      e2b: (options) => new E2BSandbox({ apiKey: "k", ...options }),
      daytona: (options) => new DaytonaSandbox({ apiKey: "k", ...options }),
      http: (options) => new HttpSandbox({ baseURL: "http://127.0.0.1:1", ...options }),
      agent: (options) => new SandboxAgent({ backend: "unix-local", ...options }),
      remote: (remote) => new SandboxAgent({ backend: "remote", remote }),
      toolkit: (sandbox) => new SandboxToolkit(sandbox),
      tool: (options) => defineTool({ name: "t", description: "d", execute() {}, parameters: { type: "object" }, ...options }),
    };
    const cycle = {};
    cycle.self = cycle;
    const wrong = {
      local: [{ env: proxy({}) }, { inheritEnv: proxy([]) }, { inheritEnv: revoked([]) }, { inheritEnv: new Array(1) }],
      e2b: [{ env: throwing("A") }, { metadata: proxy({}) }, { headers: revoked({}) }, { network: cycle }, { network: throwing("a") }, { network: { a: 1n } }],
      daytona: [{ labels: proxy({}) }, { networkAllowList: proxy([]) }, { networkAllowList: [] }, { domainAllowList: new Array(1) }],
      http: [{ headers: proxy({}) }, { env: throwing("A") }, { allowedHosts: proxy([]) }, { deniedHosts: new Array(1) }, { cpu: throwing("x") }, { memory: 1n }, { network: cycle }],
      agent: [{ workspace: proxy({}) }, { workspace: { files: proxy([]) } }, { workspace: { files: [throwing("path")] } }, { workspace: { env: throwing("A") } }, { workspace: { files: new Array(1) } }],
      remote: [proxy({}), revoked({}), throwing("providerId")],
      toolkit: [proxy({}), throwing("run", fakeSandbox().sandbox)],
      tool: [{ parameters: proxy({}) }, { parameters: cycle }, { parameters: { ...cycle, type: "object" } }, { cache: throwing("ttl") }],
    };
    for (const [name, values] of Object.entries(wrong)) {
      for (const [index, value] of values.entries()) {
        assert.throws(() => make[name](value), (error) => (isInvalid(error, `${name} ${index}`), true));
      }
    }
    for (const Class of [LocalSandbox, E2BSandbox, DaytonaSandbox, HttpSandbox, SandboxAgent, SandboxToolkit]) {
      for (const options of [proxy({}), revoked({})]) assert.throws(() => new Class(options), (error) => (isInvalid(error, Class.name), true));
    }
    for (const config of [proxy({}), revoked({}), throwing("name")]) assert.throws(() => defineTool(config), (error) => (isInvalid(error, "defineTool"), true));
  });

  test("an agent's calls and snapshots", async () => {
    const agent = new SandboxAgent({ backend: "remote", remote: fakeSandbox().sandbox });
    for (const snapshot of [proxy({}), revoked({}), throwing("files"), throwing("then")]) isInvalid(await rejection(agent.resume(snapshot)), "resume");
    await agent.start();
    for (const options of [proxy({}), throwing("signal"), { env: throwing("A") }]) isInvalid(await rejection(agent.shell("true", options)), "shell");
    isInvalid(await rejection(agent.readFile("f", "utf8", throwing("signal"))), "readFile");
    await agent.close();
  });

  test("arguments and contexts of tools, and errors that say nothing", async () => {
    const hostile = [Object.create(null), throwing("message"), proxy({}), undefined, Symbol("s")];
    for (const thrown of hostile) {
      const { shell } = toolsByRole(new SandboxToolkit(fakeSandbox({ shell: () => Promise.reject(thrown) }).sandbox));
      const error = await rejection(shell.execute({ command: "c" }));
      assert.equal(error.code, "ERR_SANDBOX_PROVIDER");
      assert.match(error.message, /^sandbox_fake_shell failed: .*The command may have run/);
      const tools = [{ ...shell, execute: () => Promise.reject(thrown) }];
      const { isError } = await mcpTools(tools).callTool({ params: { name: shell.name, arguments: {} } }, {});
      assert.equal(isError, true);
    }
    const { shell } = toolsByRole(new SandboxToolkit(fakeSandbox().sandbox));
    for (const args of [proxy({}), throwing("command"), revoked({})]) isInvalid(await rejection(shell.execute(args)), "arguments");
    for (const context of [proxy({}), throwing("signal"), { signal: throwing("aborted") }]) isInvalid(await rejection(shell.execute({ command: "c" }, context)), "context");
  });
});

test("a signal that cannot be unwatched is no signal; a result is never lost for it", async (t) => {
  const local = new LocalSandbox({ isolation: "none", tempDir: tempDir(t) });
  t.after(() => local.close());
  const bare = { aborted: false, addEventListener() {} };
  isInvalid(await rejection(local.shell("touch f", { signal: bare })), "signal");
  assert.equal((await local.shell("ls", { signal: { ...bare, removeEventListener() {} } })).output, "");
});
