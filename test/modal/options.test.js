// What a ModalSandbox may be told, where its token comes from, and what a create then says.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { inspect } from "node:util";

import { ModalSandbox, ModalSandboxToolkit, SandboxAgent } from "cloudsandbox";

import { tempDir } from "../support/temp.js";
import { rejection } from "../support/wait.js";
import { open, startEmulator } from "./support.js";

const TOKEN = { tokenId: "ak-id", tokenSecret: "as-secret" };
const CREATE = "SandboxCreateV2";

const saved = {};
beforeEach(() => {
  for (const name of Object.keys(process.env).filter((it) => it.startsWith("MODAL_"))) {
    saved[name] = process.env[name];
    delete process.env[name];
  }
  process.env.MODAL_CONFIG_PATH = "/nowhere/modal.toml";
});
afterEach(() => {
  for (const name of Object.keys(process.env).filter((it) => it.startsWith("MODAL_"))) delete process.env[name];
  Object.assign(process.env, saved);
});

const refused = (options, code, words) => {
  assert.throws(
    () => new ModalSandbox(options),
    (error) => error.code === `ERR_SANDBOX_${code}` && words.test(error.message) && !error.message.includes("canary"),
    inspect(options),
  );
};

/** A configuration file that counts. @param {import("node:test").TestContext} t @param {string} text */
function configure(t, text) {
  const file = path.join(tempDir(t), "modal.toml");
  writeFileSync(file, text);
  process.env.MODAL_CONFIG_PATH = file;
}

describe("credentials", () => {
  test("both, as options or variables, or what is missing is named", () => {
    refused({}, "MISSING_KEY", /MODAL_TOKEN_ID.*modal token new/);
    refused({ tokenId: "canary" }, "MISSING_KEY", /missing: `tokenSecret`/);
    refused({ tokenSecret: "canary" }, "MISSING_KEY", /missing: `tokenId`/);
    process.env.MODAL_TOKEN_ID = "canary";
    refused({}, "MISSING_KEY", /missing: `tokenSecret`/);
    process.env.MODAL_TOKEN_SECRET = "canary";
    new ModalSandbox();
    // Half of one and half of another is no token.
    refused({ tokenId: "canary" }, "MISSING_KEY", /missing: `tokenSecret`/);
    refused({ ...TOKEN, tokenSecret: "canary\ncanary" }, "INVALID_ARG", /tokenSecret/);
  });

  test("lateAuth: the first use rejects", async () => {
    const sandbox = new ModalSandbox({ lateAuth: true });
    assert.equal((await rejection(sandbox.start())).code, "ERR_SANDBOX_MISSING_KEY");
    await sandbox.close();
  });

  test("the active profile of Modal's own file, or the one that is named", async (t) => {
    const { emulator, engine, ca } = await startEmulator(t);
    const { tokenId, tokenSecret } = emulator.credentials;
    const good = `token_id = "${tokenId}" # mine\ntoken_secret = '${tokenSecret}'\nserver_url = "${emulator.apiUrl}"\n`;
    configure(t, `# a comment\n[other]\ntoken_id = "canary"\ntoken_secret = "canary"\n\n["work"]\n${good}environment = "main"\nactive = true\n`);
    const first = new ModalSandbox({ ca });
    await first.start();
    await first.close();
    assert.match(engine.requests("EnvironmentGetOrCreate")[0].body, /main/);
    configure(t, `[default]\ntoken_id = "canary"\ntoken_secret = "canary"\nactive = true\n[work]\n${good}`);
    for (const options of [{ ca, profile: "work" }, { ca }]) {
      if (!options.profile) process.env.MODAL_PROFILE = "work";
      const sandbox = new ModalSandbox(options);
      await sandbox.start();
      await sandbox.close();
    }
    refused({ profile: "canary" }, "INVALID_ARG", /no profile of that name/);
    assert.deepEqual(engine.requests(CREATE).map(({ headers }) => headers["x-modal-token-id"]), [tokenId, tokenId, tokenId]);
  });

  test("a file that cannot be read is told by its line, never by what it says", (t) => {
    for (const line of ["token_secret = canary", 'token_secret = "canary', "canary", "a = [1, 2", "[a", "token_id = 'canary' canary"]) {
      configure(t, `[default]\n${line}\n`);
      refused({}, "INVALID_ARG", /line 2 of the configuration file/);
    }
    process.env.MODAL_CONFIG_PATH = path.dirname(process.env.MODAL_CONFIG_PATH);
    refused({}, "INVALID_ARG", /cannot be read/);
    new ModalSandbox(TOKEN); // with a token by options it is not looked at
  });

  test("they are in no sandbox, and in no message", async (t) => {
    const { engine, sandbox, emulator } = await open(t);
    const { tokenSecret } = emulator.credentials;
    const { output } = await sandbox.shell("env; cat /proc/self/environ");
    assert.ok(!output.includes(tokenSecret));
    const [{ headers }] = engine.requests("TaskExecStart");
    const jwt = headers.authorization.slice(7);
    assert.ok(!Object.values(headers).includes(tokenSecret));
    engine.fault("TaskExecStart", {
      instead: { status: 200, headers: { "grpc-status": "3", "grpc-message": `bad token ${jwt} and ${tokenSecret}` } },
    });
    const { message } = await rejection(sandbox.shell("true"));
    assert.ok(!message.includes(jwt) && !message.includes(tokenSecret), message);
    assert.match(message, /bad token \*\*\*/);
  });
});

describe("options", () => {
  test("what is misspelt or wrong is refused before anything is sent", () => {
    refused({ ...TOKEN, tokenid: "x" }, "INVALID_ARG", /no option `tokenid`/);
    refused({ ...TOKEN, image: "a", imageId: "im-1" }, "INVALID_ARG", /not both/);
    refused({ ...TOKEN, workingDir: "work" }, "INVALID_ARG", /absolute/);
    refused({ ...TOKEN, name: "a b" }, "INVALID_ARG", /`name`/);
    refused({ ...TOKEN, app: "" }, "INVALID_ARG", /`app`/);
    refused({ ...TOKEN, lifetimeSeconds: 86401 }, "INVALID_ARG", /lifetimeSeconds/);
    refused({ ...TOKEN, cpus: 0 }, "INVALID_ARG", /cpus/);
    refused({ ...TOKEN, blockNetwork: true, allowedDomains: ["a.example"] }, "INVALID_ARG", /not both/);
    refused({ ...TOKEN, allowedCidrs: "10.0.0.0/8" }, "INVALID_ARG", /array/);
    refused({ ...TOKEN, imageBuilderVersion: "2020.01" }, "INVALID_ARG", /2025\.06/);
    refused({ ...TOKEN, owned: false }, "INVALID_ARG", /owned/);
    refused({ ...TOKEN, sandboxId: "a/b" }, "INVALID_ARG", /sandboxId/);
    refused({ ...TOKEN, image: `a${"b".repeat(300)}` }, "INVALID_ARG", /image/);
    refused({ ...TOKEN, image: "a\nRUN x" }, "INVALID_ARG", /image/);
  });

  test("what this class has not is ERR_SANDBOX_UNSUPPORTED", () => {
    for (const name of ["gpu", "volumes", "secrets", "encryptedPorts", "pty"]) refused({ ...TOKEN, [name]: 1 }, "UNSUPPORTED", new RegExp(`\`${name}\``));
    for (const network of [{ default: "allow", deniedHosts: ["a.example"] }]) refused({ ...TOKEN, manifest: { network } }, "UNSUPPORTED", /deniedHosts/);
  });

  test("all of them in a create", async (t) => {
    const { sandbox, sent, emulator } = await open(t, {}, {
      app: "an-app", name: "a-name", image: "node:22", imageBuilderVersion: "2024.10", cpus: 0.5, memoryMb: 512, lifetimeSeconds: 600,
      idleTimeoutSeconds: 60, allowedDomains: ["*.example.com"], allowedCidrs: ["192.0.2.0/24"], env: { A: "b", C: "" }, tags: { x: "y" },
    });
    assert.equal((await sandbox.shell("echo $A-$C")).output, "b-\n");
    const [{ definition, tags, secretSources }] = sent(CREATE);
    assert.deepEqual(sent("ImageGetOrCreate")[0].image.dockerfileCommands, ["FROM node:22"]);
    assert.equal(sent("ImageGetOrCreate")[0].builderVersion, "2024.10");
    assert.equal(sent("EnvironmentGetOrCreate").length, 0);
    assert.equal(sent("AppGetOrCreate")[0].appName, "an-app");
    const { memoryMb, milliCpu } = definition.resources;
    assert.deepEqual({ memoryMb, milliCpu }, { memoryMb: 512, milliCpu: 500 });
    const { network, name, timeoutSecs, idleTimeoutSecs } = definition;
    assert.deepEqual({ name, timeoutSecs, idleTimeoutSecs }, { name: "a-name", timeoutSecs: 600, idleTimeoutSecs: 60 });
    assert.deepEqual([network.type, network.cidrs, network.domains], [3, ["192.0.2.0/24"], ["*.example.com"]]);
    assert.deepEqual({ ...secretSources[0].env.contents }, { A: "b", C: "" });
    assert.deepEqual(tags.map((tag) => tag.name), ["x", "cloudsandbox"]);
    const again = emulator.fleet.all()[0];
    assert.equal(again.id, sandbox.sandboxId);
  });

  test("the least of them", async (t) => {
    const { sandbox, sent } = await open(t, {}, { blockNetwork: true });
    await sandbox.start();
    const [{ definition, secretSources }] = sent(CREATE);
    assert.deepEqual([definition.timeoutSecs, definition.network.type, secretSources], [300, 2, []]);
    assert.deepEqual(sent("ImageGetOrCreate")[0].image.dockerfileCommands, ["FROM python:3.12-slim"]);
    assert.equal(sent("ImageGetOrCreate")[0].builderVersion, "2025.06");
  });
});

describe("an existing sandbox", () => {
  for (const v2 of [true, false]) {
    test(`is used, and left alone by close(), ${v2 ? "of the new kind" : "of the old kind"}`, async (t) => {
      const { emulator, fleet, make, engine } = await startEmulator(t, { startMs: 100 });
      const definition = { timeoutSecs: 300 };
      const { id } = fleet.make(v2, { tokenId: emulator.credentials.tokenId, appId: "ap-1", definition, env: {}, tags: [] });
      const sandbox = make({ sandboxId: id });
      assert.equal((await sandbox.shell("echo here")).output, "here\n");
      assert.equal(sandbox.sandboxId, id);
      await sandbox.close();
      assert.equal(fleet.sandboxes.get(id).result, undefined);
      const names = new Set(engine.log.map(({ route }) => route));
      assert.equal(names.has(v2 ? "SandboxGetTaskIdV2" : "SandboxGetTaskId"), true);
      assert.equal(names.has(v2 ? "SandboxGetCommandRouterAccess" : "TaskGetCommandRouterAccess"), true);
      const owned = make({ sandboxId: id, owned: true });
      await owned.start();
      await owned.close();
      assert.equal(fleet.sandboxes.get(id).result.status, 3);
      const error = await rejection(make({ sandboxId: id }).start());
      assert.match(error.message, /terminated/);
    });
  }
});

describe("tools", () => {
  test("four, by their names", async () => {
    const toolkit = new ModalSandboxToolkit(TOKEN);
    assert.deepEqual(toolkit.getTools().map(({ name }) => name), ["run", "shell", "write_file", "read_file"].map((it) => `sandbox_modal_${it}`));
    await toolkit.close();
  });

  test("an agent works in one", async (t) => {
    const { make } = await startEmulator(t);
    const agent = new SandboxAgent({ backend: "remote", remote: make() });
    t.after(() => agent.close());
    await agent.start();
    const { output } = await agent.shell("echo agent");
    assert.equal(output, "agent\n");
  });
});
