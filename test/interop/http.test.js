// OmniCoreAgent's own http provider against our emulator, and against the service of examples/. Where they disagree,
// ours is wrong. `run` installs its packages into build/.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import path from "node:path";
import { createInterface } from "node:readline";
import { after, afterEach, before, describe, test } from "node:test";
import { HttpSandbox } from "../../lib/index.js";
import { startService } from "../../examples/http-service.js";
import { replies } from "../emulators/engine.js";
import { startHttp } from "../emulators/http/index.js";

const here = import.meta.dirname;

/** Its client in a process of its own; calls are one after the other. */
function startClient(options) {
  const env = { PATH: process.env.PATH, PYTHONPATH: path.join(here, "build/python"), NO_PROXY: "127.0.0.1" };
  const child = spawn(process.env.INTEROP_PYTHON ?? "python3", [path.join(here, "http-driver.py")], {
    env, stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const send = (value) => child.stdin.write(`${JSON.stringify(value)}\n`);
  send(options);
  return {
    async call(name, args) {
      send([name, args]);
      const { value, done } = await lines.next();
      assert.ok(!done, "the client has ended");
      const { result, error, message } = JSON.parse(value);
      if (error) throw Object.assign(new Error(message), { name: error });
      return result;
    },
    end: () => new Promise((resolve) => child.once("close", resolve).stdin.end()),
  };
}

const MANIFEST = { environment: { plain: { LEVEL: "9" } }, network_policy: { default: "allow" } };
const b64 = (bytes) => Buffer.from(bytes).toString("base64");

/** What it does with any service. */
async function useAll({ call }) {
  const { session, remote } = await call("create", { manifest: MANIFEST });
  assert.match(remote, /^[A-Za-z0-9._~-]+$/);
  const run = (more) => call("execute", { session, ...more });
  assert.deepEqual(await run({ command: ["sh", "-c", "echo out; echo err >&2; exit 7"] }), {
    exit_code: 7, stdout: "out\n", stderr: "err\n", timed_out: false,
  });
  assert.equal((await run({ command: ["cat"], stdin: "grüße\n" })).stdout, "grüße\n");
  assert.equal((await run({ command: ["sh", "-c", "echo $LEVEL $MORE"], environment: { MORE: "x" } })).stdout, "9 x\n");
  assert.equal((await run({ command: ["printf", "%s|", "a b", "$HOME"] })).stdout, "a b|$HOME|");
  const late = await run({ command: ["sh", "-c", "echo begun; sleep 60"], timeout_seconds: 1 });
  assert.deepEqual([late.timed_out, late.stdout], [true, "begun\n"]);
  for (const bytes of [Buffer.alloc(0), randomBytes(100_000), Buffer.from(Array.from({ length: 256 }, (_, i) => i))]) {
    await call("write", { session, path: "deep/er/a b+&ä.bin", content: b64(bytes) });
    assert.equal(await call("read", { session, path: "/workspace/deep/er/a b+&ä.bin" }), b64(bytes));
  }
  assert.equal((await run({ command: ["ls", "deep/er"] })).stdout, "a b+&ä.bin\n");
  assert.equal((await run({ command: ["pwd"], cwd: "/workspace/deep" })).stdout.split("/").at(-1), "deep\n");
  await assert.rejects(call("read", { session, path: "missing" }), { name: "SandboxUnsupportedError", message: /404/ });
  await assert.rejects(call("read", { session, path: "../x" }), { name: "PermissionError" });
  await call("terminate", { session });
  await call("terminate", { session });
  return remote;
}

describe("OmniCoreAgent and our emulator", () => {
  let emulator, client;
  before(async () => {
    emulator = await startHttp();
    client = startClient({ base_url: `${emulator.url}/`, token: emulator.token, headers: { "X-Team": "blue" } });
  });
  afterEach(() => {
    emulator.engine.clearFaults();
    emulator.engine.clearLog();
    assert.deepEqual(emulator.engine.errors, []);
  });
  after(async () => {
    await client.end();
    await emulator.close();
  });

  test("all five requests", async () => {
    const remote = await useAll(client);
    const { log } = emulator.engine;
    assert.equal(emulator.session(remote), undefined);
    assert.equal(emulator.engine.count("DELETE /sessions/{id}"), 1);
    assert.ok(log.every(({ headers }) => headers.authorization === `Bearer ${emulator.token}` && headers["x-team"] === "blue"));
  });

  test("what it sends is what ours sends: the same members, of the same types", async (t) => {
    const { session } = await client.call("create", { manifest: MANIFEST });
    await client.call("execute", { session, command: ["true"], timeout_seconds: 45, environment: { A: "b" } });
    await client.call("write", { session, path: "f", content: b64("x") });
    await client.call("read", { session, path: "f" });
    await client.call("terminate", { session });
    const theirs = [...emulator.engine.log];
    emulator.engine.clearLog();
    const sandbox = new HttpSandbox({ baseURL: emulator.url, token: emulator.token, env: { LEVEL: "9" }, network: "allow" });
    t.after(() => sandbox.close());
    await sandbox.exec({ command: "true", env: { A: "b" }, timeoutSeconds: 30 });
    await sandbox.writeFile("f", "x");
    await sandbox.readFile("f");
    await sandbox.close();
    const ours = emulator.engine.log.filter((_, i) => i !== 1); // but for the question where it is
    assert.deepEqual(ours.map(({ route }) => route), theirs.map(({ route }) => route));
    const plain = (entry) => [entry.method, entry.path.replace(/\/sessions\/[^/]+/, "/sessions/ID")];
    assert.deepEqual(ours.map(plain), theirs.map(plain));
    assert.deepEqual(JSON.parse(ours[0].body), JSON.parse(theirs[0].body), "the manifest");
    const [exec, other] = [ours, theirs].map((log) => JSON.parse(log[1].body));
    assert.deepEqual({ ...exec, command: other.command }, other);
  });

  test("it takes refusals and broken answers as the fact sheet says, and sends nothing twice", async () => {
    for (const [fault, expected] of [
      [{ instead: { status: 500 } }, { name: "SandboxUnsupportedError", message: /500/ }],
      [{ instead: { status: 302, headers: { location: "http://127.0.0.1:1/" } } }, { name: "SandboxUnsupportedError", message: /302/ }],
      [{ instead: "close" }, { name: "SandboxUnsupportedError", message: /could not be reached/ }],
      [{ instead: replies.json(200, []) }, { name: "AttributeError" }],
    ]) {
      emulator.engine.clearLog();
      emulator.engine.fault("POST /sessions", fault);
      await assert.rejects(client.call("create", { manifest: MANIFEST }), expected);
      assert.equal(emulator.engine.count("POST /sessions"), 1);
    }
    emulator.engine.fault("POST /sessions", { instead: replies.json(200, {}) });
    assert.match((await client.call("create", { manifest: {} })).remote, /^sandbox_[0-9a-f]{32}$/);
  });
});

test("OmniCoreAgent and the service of examples/", async (t) => {
  const service = await startService({ token: "secret" });
  const client = startClient({ base_url: service.url, token: "secret" });
  t.after(async () => {
    await client.end();
    await service.close();
  });
  await useAll(client);
  await assert.rejects(client.call("create", { manifest: {} }), { name: "SandboxUnsupportedError", message: /422/ });
});
