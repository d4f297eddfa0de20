// Options, variables of the environment, the language, and secrets that never show.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { inspect } from "node:util";

import { DaytonaSandbox, DaytonaSandboxToolkit } from "cloudsandbox";

import { daytonaReplies } from "../emulators/daytona/replies.js";
import { rejection } from "../support/wait.js";
import { CREATE, open, sent, startEmulator } from "./support.js";

const VARIABLES = [
  "DAYTONA_API_KEY", "DAYTONA_JWT_TOKEN", "DAYTONA_ORGANIZATION_ID", "DAYTONA_API_URL", "DAYTONA_SERVER_URL",
  "DAYTONA_TARGET",
];

describe("options", () => {
  let before;

  beforeEach(() => {
    before = VARIABLES.map((name) => [name, process.env[name]]);
    for (const name of VARIABLES) delete process.env[name];
  });
  afterEach(() => {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  });

  test("C075 no key, an empty one, a JWT without its organization: the constructor throws", () => {
    for (const options of [undefined, {}, { apiKey: "" }, { apiKey: " \n" }, { jwtToken: "j" }]) {
      for (const Class of [DaytonaSandbox, DaytonaSandboxToolkit]) {
        assert.throws(
          () => new Class(options),
          (error) => error.code === "ERR_SANDBOX_MISSING_KEY" && /missing API key/.test(error.message),
        );
      }
    }
  });

  test("C075 a line end behind the key is taken away; other characters are refused without being shown", async (t) => {
    const { emulator, make } = await startEmulator(t);
    await make({ apiKey: `${emulator.apiKey}\n` }).start();
    assert.throws(
      () => new DaytonaSandbox({ apiKey: "canary with blanks" }),
      (error) => error.code === "ERR_SANDBOX_INVALID_ARG" && !inspect(error).includes("canary"),
    );
  });

  test("lateAuth: told at the first use", async (t) => {
    const { engine, sandbox } = await open(t, {}, { apiKey: undefined, lateAuth: true });
    const error = await rejection(sandbox.shell("true"));
    assert.equal(error.code, "ERR_SANDBOX_MISSING_KEY");
    assert.match(error.message, /missing API key/);
    assert.deepEqual(engine.log, []);
  });

  test("a manifest: its image, sizes, variables and network are what is asked for", async (t) => {
    const { engine, make } = await startEmulator(t, { quota: { cpu: 1e3, memory: 1e3, disk: 1e3, perSandbox: { cpu: 4, memory: 8, disk: 10 } } });
    const start = (manifest) => make({ manifest, verifyNetwork: manifest.network?.default === "allow" ? undefined : false }).start();
    await start({ image: "python:3.12-slim", resources: { cpus: 2, memoryMb: 4096, diskMb: 3072 }, env: { A: "1" }, network: {} });
    await start({ network: { allowedHosts: ["192.0.2.7", "198.51.100.0/24"] } });
    await start({ network: { allowedHosts: ["*.example.com", "files.example.org"] } });
    await start({ network: { default: "allow" } });
    const [first, ...others] = sent(engine, CREATE);
    const { buildInfo, cpu, memory, disk, env, networkBlockAll } = first;
    assert.deepEqual([buildInfo.dockerfileContent, cpu, memory, disk, env.A, networkBlockAll], ["FROM python:3.12-slim\n", 2, 4, 3, "1", true]);
    assert.deepEqual(
      others.map(({ networkBlockAll: all, networkAllowList, domainAllowList }) => [all, networkAllowList, domainAllowList]),
      [[undefined, "192.0.2.7/32,198.51.100.0/24", undefined], [undefined, undefined, "*.example.com,files.example.org"], [false, undefined, undefined]],
    );
  });

  test("what the environment says, and that options win over it", async (t) => {
    const { emulator, engine, make } = await startEmulator(t);
    process.env.DAYTONA_API_KEY = emulator.apiKey;
    process.env.DAYTONA_SERVER_URL = emulator.apiUrl;
    process.env.DAYTONA_TARGET = "eu";
    await make({ apiKey: undefined, baseURL: undefined }).start();
    process.env.DAYTONA_SERVER_URL = "http://127.0.0.1:1/api";
    process.env.DAYTONA_API_URL = emulator.apiUrl;
    await make({ apiKey: undefined, baseURL: undefined, target: "us" }).start();
    delete process.env.DAYTONA_API_KEY;
    process.env.DAYTONA_JWT_TOKEN = emulator.jwtToken;
    process.env.DAYTONA_ORGANIZATION_ID = emulator.organizationId;
    await make({ apiKey: undefined, baseURL: undefined }).start();
    assert.deepEqual(sent(engine, CREATE).map(({ target }) => target), ["eu", "us", "eu"]);
  });

  test("options that are wrong: the constructor throws and names them", () => {
    for (const [options, name] of [
      [{ language: "ruby" }, "language"],
      [{ language: "shell" }, "language"],
      [{ baseURL: "ftp://x/api" }, "baseURL"],
      [{ baseURL: "http://user:canary@x/api" }, "baseURL"],
      [{ baseURL: "http://x/api?key=canary" }, "baseURL"],
      [{ toolboxUrl: "canary" }, "toolboxUrl"],
      [{ toolboxUrl: "http://canary" }, "toolboxUrl"],
      [{ workspace: "" }, "workspace"],
      [{ snapshot: "a", image: "b" }, "snapshot"],
      [{ cpu: 2 }, "cpu"],
      [{ image: "a", cpu: 0 }, "cpu"],
      [{ image: "a", memory: 1.5 }, "memory"],
      [{ autoStopMinutes: -1 }, "autoStopMinutes"],
      [{ autoDeleteMinutes: -2 }, "autoDeleteMinutes"],
      [{ ephemeral: true, autoDeleteMinutes: 5 }, "ephemeral"],
      [{ env: { "A-B": "canary" } }, "env"],
      [{ env: { A: 7 } }, "env"],
      [{ labels: { a: 7 } }, "labels"],
      [{ networkAllowList: [7] }, "networkAllowList"],
      [{ networkBlockAll: "yes" }, "networkBlockAll"],
      [{ owned: false }, "`owned` goes with `sandboxId`"],
      [{ owned: true }, "`owned` goes with `sandboxId`"],
      [{ autoStopInterval: 5 }, "`autoStopMinutes`?"],
      [{ autoArchiveInterval: 5 }, "`autoArchiveMinutes`?"],
      [{ autoDeleteInterval: 5 }, "`autoDeleteMinutes`?"],
      [{ envVars: {} }, "`env`?"],
      [{ apiUrl: "canary" }, "`baseURL`?"],
      [{ serverUrl: "canary" }, "`baseURL`?"],
      [{ resources: {} }, "`cpu`, `memory` or `disk`?"],
      [{ name: "canary" }, "`workspace`?"],
      [{ osUser: "canary" }, "`user`?"],
      [{ template: "canary" }, "`snapshot` or `image`?"],
      [{ id: "canary" }, "`sandboxId`?"],
      [{ key: "canary" }, "`apiKey`?"],
      [{ timeout: 5 }, "`defaultTimeoutSeconds`?"],
      [{ requestTimeoutMs: 5 }, "`startTimeoutSeconds`? It counts seconds"],
      [{ cwd: "canary" }, "`cwd`; it is given with each call: exec() takes it"],
      [{ workdir: "canary" }, "exec() takes it, as `cwd`"],
      [{ language: "js" }, '"node"?'],
      [{ ca: "/etc/ca.pem" }, "ca"],
      [{ apikey: "canary" }, "apiKey"],
      [{ sdk: {} }, "sdk"],
      [{ client: {} }, "client"],
    ]) {
      assert.throws(
        () => new DaytonaSandbox({ apiKey: "k", ...options }),
        (error) => {
          assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG", `${name}: ${error.message}`);
          assert.ok(error.message.includes(name), `${name}: ${error.message}`);
          assert.ok(!inspect(error).includes("canary"), error.message);
          return true;
        },
      );
    }
  });

  test("K9 the language is fixed at creation: another one rejects before the wire", async (t) => {
    for (const [language, other, code] of [["python", "node", "print(1)"], ["node", "python", "console.log(1)"]]) {
      const { engine, sandbox } = await open(t, {}, { language });
      for (const call of [sandbox.run("x", { language: other }), sandbox.exec({ code: "x", language: other })]) {
        const error = await rejection(call);
        assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG");
        assert.match(error.message, /Unsupported.*fixed at creation/);
        assert.match(error.message, new RegExp(`Write the code in ${language}, or run it by a command such as .${other}`));
      }
      assert.deepEqual(engine.log, []);
      assert.equal((await sandbox.run(code)).output, "1\n");
      assert.equal((await sandbox.exec({ code })).stdout, "1\n");
      assert.equal((await sandbox.run("echo 2", { language: "shell" })).output, "2\n");
    }
  });

  test("allowAnyLanguage", async (t) => {
    const { sandbox } = await open(t, {}, { allowAnyLanguage: true });
    assert.equal((await sandbox.run("print(1)")).output, "1\n");
    assert.equal((await sandbox.run("console.log(2)", { language: "node" })).output, "2\n");
  });

  test("C083 the key never shows: in errors, in objects, in addresses", async (t) => {
    const apiKey = "dtn_canary";
    const { engine, sandbox, emulator } = await open(t, { apiKeys: ["dtn_canary"] }, { env: { TOKEN: "canary2" } });
    const shown = [inspect(sandbox, { depth: 9, showHidden: true }), JSON.stringify(sandbox)];
    await sandbox.start();
    for (const fault of [
      { instead: daytonaReplies.unauthorized() },
      { instead: "reset" },
      { instead: { status: 200, body: "{" } },
      { instead: daytonaReplies.toolbox(403, `forbidden for ${apiKey}`) },
    ]) {
      engine.fault(/^toolbox/, fault);
      const error = await rejection(sandbox.shell("true"));
      shown.push(inspect(error, { depth: 9, showHidden: true }), JSON.stringify(error), error.stack);
    }
    const denied = await rejection(
      new DaytonaSandbox({ apiKey: "dtn_canary3", baseURL: emulator.apiUrl }).start(),
    );
    assert.equal(denied.code, "ERR_SANDBOX_AUTH");
    shown.push(inspect(denied), ...engine.log.map(({ path }) => path));
    for (const text of shown) assert.ok(!text?.includes("canary"), text);
    assert.ok(engine.log.some(({ headers }) => headers.authorization === `Bearer ${apiKey}`));
  });

  test("C074 the toolkit: names, its own sandbox, nothing sent before it is used", async (t) => {
    const { emulator, engine } = await startEmulator(t);
    const toolkit = new DaytonaSandboxToolkit({ apiKey: emulator.apiKey, baseURL: emulator.apiUrl });
    const tools = toolkit.getTools();
    assert.equal(toolkit.name, "sandbox-daytona");
    assert.deepEqual(tools.map(({ name }) => name), [
      "sandbox_daytona_run", "sandbox_daytona_shell", "sandbox_daytona_write_file", "sandbox_daytona_read_file",
    ]);
    assert.ok(toolkit.getSandbox() instanceof DaytonaSandbox);
    assert.deepEqual(engine.log, []);
    const [run, shell, write, read] = tools;
    assert.equal(await write.execute({ path: "input.csv", contents: "1,2" }), "ok");
    assert.equal(await read.execute({ path: "input.csv" }), "1,2");
    assert.equal(await read.execute({ path: "absent" }), "[file not found]");
    assert.deepEqual(JSON.parse(await run.execute({ code: "print(open('input.csv').read())" })), {
      output: "1,2\n",
      exitCode: 0,
    });
    assert.deepEqual(JSON.parse(await shell.execute({ command: "exit 7" })), { output: "", exitCode: 7 });
    await toolkit.close();
    assert.equal(engine.count(CREATE), 1);
  });
});
