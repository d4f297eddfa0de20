// Providers by name: createSandbox(), registerSandboxProvider(), listSandboxProviders().
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import {
  AgentCoreSandbox, DaytonaSandbox, DockerSandbox, E2BSandbox, HttpSandbox, LocalSandbox, ModalSandbox, SandboxToolkit, VercelSandbox, createSandbox,
  listSandboxProviders, registerSandboxProvider,
} from "cloudsandbox";

/** A sandbox of nobody's class. */
function port(members = {}) {
  const nothing = async () => {};
  const output = async () => ({ output: "done\n", exitCode: 0 });
  return {
    providerId: "mine", start: nothing, run: output, shell: output, writeFile: nothing, readFile: async () => null, close: nothing,
    ...members,
  };
}

const refusal = (message) => ({ name: "SandboxError", code: "ERR_SANDBOX_INVALID_ARG", message });

describe("registry", () => {
  test("the built-in providers stand in it, by their names", () => {
    assert.deepEqual(listSandboxProviders().slice(0, 10), ["local", "unix-local", "isolated-local", "e2b", "daytona", "docker", "http", "vercel", "agentcore", "modal"]);
    const made = {
      local: [LocalSandbox, {}],
      "unix-local": [LocalSandbox, {}],
      "isolated-local": [LocalSandbox, {}],
      e2b: [E2BSandbox, { apiKey: "k" }],
      daytona: [DaytonaSandbox, { apiKey: "k" }],
      docker: [DockerSandbox, {}],
      http: [HttpSandbox, { baseURL: "http://127.0.0.1:1" }],
      vercel: [VercelSandbox, { lateAuth: true }],
      agentcore: [AgentCoreSandbox, { lateAuth: true }],
      modal: [ModalSandbox, { tokenId: "i", tokenSecret: "s" }],
    };
    for (const [name, [Class, options]] of Object.entries(made)) assert.ok(createSandbox(name, options) instanceof Class, name);
    const ids = ["local", "unix-local", "isolated-local"].map((name) => createSandbox(name).providerId);
    assert.deepEqual(ids, ["isolated-local", "unix-local", "isolated-local"]);
    assert.equal(createSandbox("local", { isolation: "none" }).providerId, "unix-local");
    assert.equal(createSandbox("isolated-local", { isolation: "required" }).providerId, "isolated-local");
    for (const [name, isolation] of [["isolated-local", "none"], ["isolated-local", "best-effort"], ["unix-local", "required"]]) {
      assert.throws(() => createSandbox(name, { isolation }), { code: "ERR_SANDBOX_INVALID_ARG", message: /says `isolation: .*take the provider "local"/ });
    }
    assert.throws(() => createSandbox("isolated-local", { trusted: true }), { code: "ERR_SANDBOX_INVALID_ARG" });
  });

  test("a class's own checks hold", () => {
    assert.throws(() => createSandbox("e2b", { apiKey: "k", templat: "x" }), refusal(/no option `templat`.*`template`/));
    assert.throws(() => createSandbox("e2b", { apiKey: "" }), { code: "ERR_SANDBOX_MISSING_KEY" });
  });

  test("a provider of one's own: made by each call, of the options, and used by a toolkit", async () => {
    const seen = [];
    registerSandboxProvider("of-mine", (options) => {
      seen.push(options);
      return port();
    });
    assert.deepEqual(seen, []);
    assert.ok(listSandboxProviders().includes("of-mine"));
    const [one, two] = [createSandbox("of-mine", { a: 1 }), createSandbox("of-mine")];
    assert.notEqual(one, two);
    assert.deepEqual(seen, [{ a: 1 }, undefined]);
    const shell = new SandboxToolkit(one).getTools().find(({ name }) => name === "sandbox_mine_shell");
    assert.match(String(await shell.execute({ command: "x" }, {})), /done/);
  });

  test("a name that is not there: the nearest one, and all there are", () => {
    assert.throws(() => createSandbox("dayton"), refusal(/no provider "dayton"; did you mean `daytona`\?.*local, e2b, daytona, docker, http, vercel, agentcore, modal/));
    assert.throws(() => createSandbox("x".repeat(500)), (error) => error.message.length < 300);
    for (const name of [undefined, null, 1, {}]) assert.throws(() => createSandbox(name), refusal(/`name` must be a string/));
  });

  test("what is registered is checked: name, taken names, factory", () => {
    for (const name of ["", "Upper", "-x", "a b", "x".repeat(46)]) {
      assert.throws(() => registerSandboxProvider(name, port), refusal(/1 to 45 characters/), name);
    }
    assert.throws(() => registerSandboxProvider("docker", port), refusal(/"docker" already/));
    registerSandboxProvider("once", port);
    assert.throws(() => registerSandboxProvider("once", port), refusal(/"once" already/));
    assert.throws(() => registerSandboxProvider("none", {}), refusal(/`factory` must be a function/));
    assert.ok(!listSandboxProviders().includes("none"));
  });

  for (const member of ["start", "run", "shell", "writeFile", "readFile", "close"]) {
    test(`a factory whose object has no ${member} is told so`, () => {
      registerSandboxProvider(`no-${member.toLowerCase()}`, () => port({ [member]: undefined }));
      assert.throws(
        () => createSandbox(`no-${member.toLowerCase()}`),
        refusal(new RegExp(`the factory of "no-${member.toLowerCase()}" returned.* no function \`${member}\``)),
      );
    });
  }

  test("what is no sandbox at all: nothing, a promise, a getter that throws", () => {
    const bad = {
      "bad-nothing": [() => undefined, /must be an object/],
      "bad-id": [() => port({ providerId: 7 }), /`providerId` must be a string/],
      "bad-promise": [async () => port(), /is a promise; a factory returns the sandbox at once/],
      "bad-getter": [() => Object.defineProperty({}, "then", { get() { throw new Error("no"); } }), /cannot be read/],
    };
    for (const [name, [factory, message]] of Object.entries(bad)) {
      registerSandboxProvider(name, factory);
      assert.throws(() => createSandbox(name), refusal(message), name);
    }
  });

  test("what a factory throws is passed on", () => {
    const failure = new Error("no room");
    registerSandboxProvider("throws", () => {
      throw failure;
    });
    assert.throws(() => createSandbox("throws"), (error) => error === failure);
  });
});
