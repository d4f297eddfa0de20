// Options, variables of the environment, what a create says, and secrets that never show.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { inspect } from "node:util";

import { HttpSandbox, HttpSandboxToolkit } from "cloudsandbox";

import { rejection } from "../support/wait.js";
import { CREATE, EXEC, open, sent, startEmulator } from "./support.js";

const VARIABLES = ["SANDBOX_HTTP_URL", "SANDBOX_HTTP_TOKEN"];
const baseURL = "http://127.0.0.1:1";

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

  test("no address: the constructor throws, and says what to give", () => {
    for (const Class of [HttpSandbox, HttpSandboxToolkit]) {
      for (const options of [undefined, {}, { token: "t" }]) {
        assert.throws(() => new Class(options), { code: "ERR_SANDBOX_INVALID_ARG", message: /baseURL.*SANDBOX_HTTP_URL/ });
      }
    }
  });

  test("what the environment says, and that options win over it", async (t) => {
    const { emulator, engine, make } = await startEmulator(t);
    process.env.SANDBOX_HTTP_URL = emulator.url;
    process.env.SANDBOX_HTTP_TOKEN = `${emulator.token}\n`;
    await make({ baseURL: undefined, token: undefined }).start();
    process.env.SANDBOX_HTTP_URL = baseURL;
    process.env.SANDBOX_HTTP_TOKEN = "another";
    await make().start();
    assert.equal(engine.count(CREATE), 2);
  });

  test("no token: no Authorization, unless the headers have one", async (t) => {
    const { emulator, engine, make } = await startEmulator(t, { tokens: [] });
    const first = make({ token: undefined });
    await first.start();
    await first.close();
    assert.ok(engine.log.every(({ headers }) => headers.authorization === undefined));
    emulator.settings.tokens.push("mine_0123456789");
    await make({ token: undefined, headers: { AUTHORIZATION: "Bearer mine_0123456789" } }).start();
  });

  test("headers go with every request; the token wins over an Authorization in whatever letters", async (t) => {
    const { emulator, engine, sandbox } = await open(t, {}, { headers: { "X-Team": "blue", AuthoriZation: "Bearer no" } });
    await sandbox.writeFile("f", "x");
    await sandbox.readFile("f");
    await sandbox.shell("true");
    await sandbox.close();
    assert.equal(new Set(engine.log.map(({ route }) => route)).size, 5);
    for (const { headers } of engine.log) {
      assert.deepEqual([headers["x-team"], headers.authorization], ["blue", `Bearer ${emulator.token}`]);
    }
  });

  test("options that are wrong: the constructor throws and names them", () => {
    for (const [options, name] of [
      [{ baseURL: "ftp://x" }, "baseURL"],
      [{ baseURL: "http://user:canary@x" }, "baseURL"],
      [{ baseURL: "http://x?canary" }, "baseURL"],
      [{ token: "canary with blanks" }, "token"],
      [{ token: '"canary"' }, "token"],
      [{ headers: { "Content-Length": "1" } }, "headers"],
      [{ headers: { a: "x\r\ncanary: y" } }, "headers"],
      [{ headers: { a: 1 } }, "headers"],
      [{ workingDir: "work" }, "workingDir"],
      [{ workingDir: "/a/../b" }, "workingDir"],
      [{ workingDir: "/" }, "workingDir"],
      [{ env: { A: 1 } }, "A"],
      [{ network: "none" }, "network"],
      [{ network: true }, "network"],
      [{ allowedHosts: "files.example.org" }, "allowedHosts"],
      [{ allowedHosts: ["https://files.example.org"] }, "allowedHosts\\[0\\]"],
      [{ deniedHosts: ["a", "b:80"] }, "deniedHosts\\[1\\]"],
      [{ cpu: 0 }, "cpu"],
      [{ cpu: "2 cores" }, "cpu"],
      [{ memory: "512mb!" }, "memory"],
      [{ memory: -1 }, "memory"],
      [{ gpu: "yes" }, "gpu"],
      [{ owned: true }, "owned"],
      [{ sandboxId: "s", image: "x" }, "image"],
      [{ sandboxId: "s", network: "allow" }, "network"],
      [{ lifetimeSeconds: 60 }, "lifetimeSeconds"],
      [{ apiKey: "canary" }, "apiKey"],
      [{ verify_tls: false }, "verify_tls"],
      [{ base_url: "x" }, "baseURL"],
      [{ working_dir: "/x" }, "workingDir"],
      [{ max_output_bytes: 1 }, "maxOutputBytes"],
      [{ request_timeout_seconds: 1 }, "startTimeoutSeconds"],
      [{ client: {} }, "client"],
    ]) {
      const refused = (error) =>
        error.code === "ERR_SANDBOX_INVALID_ARG" && new RegExp(`\`?${name}`).test(error.message) && !inspect(error).includes("canary");
      for (const Class of [HttpSandbox, HttpSandboxToolkit]) {
        assert.throws(() => new Class({ baseURL, ...options }), refused, JSON.stringify(options));
      }
    }
  });

  test("a manifest is what the service is asked for", async (t) => {
    const { engine, make } = await startEmulator(t);
    const start = (manifest) => make({ manifest, verifyNetwork: manifest.network?.default === "allow" ? undefined : false }).start();
    await start({ image: "python:3.12-slim", workingDir: "/srv", env: { A: "1" }, network: {}, resources: { cpus: 0.5, memoryMb: 512, gpu: 1 } });
    await start({ network: { allowedHosts: ["*.example.com", "192.0.2.7"] } });
    await start({ network: { default: "allow", deniedHosts: ["a.b"] } });
    const [first, ...others] = engine.requests(CREATE).map(({ body }) => JSON.parse(body).manifest);
    assert.deepEqual(first, {
      image: "python:3.12-slim", working_dir: "/srv", environment: { A: "1" }, network: { default: "deny", allowed_hosts: [], denied_hosts: [] },
      resources: { cpu: "0.5", memory: "512m", gpu: true },
    });
    assert.deepEqual(others.map(({ network }) => network), [
      { default: "deny", allowed_hosts: ["*.example.com", "192.0.2.7"], denied_hosts: [] },
      { default: "allow", allowed_hosts: [], denied_hosts: ["a.b"] },
    ]);
    for (const manifest of [{ network: { allowedHosts: ["192.0.2.0/24"] } }, { resources: { gpu: 2 } }]) {
      assert.throws(() => make({ manifest }), { code: "ERR_SANDBOX_UNSUPPORTED", message: /^http cannot keep/ });
    }
  });

  test("a create says all members always: as they are by themselves, and as they were given", async (t) => {
    const { engine, make } = await startEmulator(t);
    await make().start();
    await make({
      image: "python:3.12-slim", workingDir: "/srv/work/", env: { LANG: "C.UTF-8", EMPTY: "" }, network: "allow",
      allowedHosts: ["Files.Example.org", "*.example.com"], deniedHosts: ["a.b"], cpu: 1.5, memory: "512M", gpu: true,
    }).start();
    await make({ cpu: "2", memory: 1 << 30 }).start();
    const [bare, full, numbers] = engine.requests(CREATE).map(({ body }) => body);
    assert.equal(
      bare,
      '{"manifest":{"image":null,"working_dir":"/workspace","environment":{},' +
        '"network":{"default":"deny","allowed_hosts":[],"denied_hosts":[]},' +
        '"resources":{"cpu":null,"memory":null,"gpu":false}}}',
    );
    assert.deepEqual(JSON.parse(full).manifest, {
      image: "python:3.12-slim",
      working_dir: "/srv/work",
      environment: { LANG: "C.UTF-8", EMPTY: "" },
      network: { default: "allow", allowed_hosts: ["files.example.org", "*.example.com"], denied_hosts: ["a.b"] },
      resources: { cpu: "1.5", memory: "512m", gpu: true },
    });
    assert.deepEqual(JSON.parse(numbers).manifest.resources, { cpu: "2", memory: "1073741824", gpu: false });
  });

  test("the sandbox that replaces a lost one is made like it", async (t) => {
    const { emulator, engine, sandbox } = await open(t, {}, { image: "x", env: { A: "1" } });
    await sandbox.start();
    emulator.lose(sandbox.sandboxId);
    await rejection(sandbox.shell("true"));
    assert.equal((await sandbox.shell("echo $A")).output, "1\n");
    const [first, second] = sent(engine, CREATE);
    assert.deepEqual(first, second);
  });

  test("what a service cannot give is refused before anything is made", async (t) => {
    const { emulator, sandbox } = await open(t, { refuses: ({ resources }) => (resources.gpu ? "there is no GPU here" : undefined) }, { gpu: true });
    const error = await rejection(sandbox.start());
    assert.equal(error.code, "ERR_SANDBOX_UNSUPPORTED");
    assert.match(error.message, /there is no GPU here/);
    assert.deepEqual(emulator.fleet.all(), []);
  });

  test("an existing session: worked in, found where it is, and deleted only when owned", async (t) => {
    const { emulator, engine, make } = await startEmulator(t);
    const first = make({ workingDir: "/srv" });
    await first.writeFile("f", "x");
    const { sandboxId } = first;
    const second = make({ sandboxId });
    assert.equal(await second.readFile("f"), "x");
    assert.equal((await second.shell("cat f")).output, "x");
    assert.equal(sent(engine, EXEC).at(-1).cwd, null);
    await second.close();
    assert.equal(emulator.fleet.all().length, 1);
    await make({ sandboxId, owned: true }).start();
    const third = make({ sandboxId, owned: true });
    await third.start();
    await third.close();
    assert.deepEqual(emulator.fleet.all(), []);
    assert.equal((await rejection(make({ sandboxId, onLost: "reject" }).start())).code, "ERR_SANDBOX_LOST");
    assert.equal(engine.count(CREATE), 1);
  });

  test("secrets are in no message and in no console.log()", async (t) => {
    const { engine, sandbox } = await open(t, {}, { token: "token_that_is_wrong", headers: { "X-Api-Key": "key_0123456789" } });
    const error = await rejection(sandbox.start());
    assert.equal(error.code, "ERR_SANDBOX_AUTH");
    assert.equal(engine.count(CREATE), 1);
    assert.doesNotMatch(inspect([error, sandbox], { depth: 9, showHidden: true }), /token_that|key_0123/);
  });

  test("what it cannot do is not there", () => {
    const sandbox = new HttpSandbox({ baseURL });
    const { lifetime, pause, contexts, local, kill, list, stdin, separateStreams } = sandbox.capabilities;
    assert.deepEqual({ lifetime, pause, contexts, local }, { lifetime: false, pause: false, contexts: false, local: false });
    assert.deepEqual([kill, list, stdin, separateStreams], [true, true, true, true]);
    assert.equal(sandbox.setLifetime, undefined);
  });
});
