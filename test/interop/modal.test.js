// The vendor's own clients, in JavaScript and in Python, against our emulator. Where they disagree, the emulator is wrong.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import path from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";

import { makeCertificate } from "../emulators/certificate.js";
import { startModal } from "../emulators/modal/index.js";

const here = import.meta.dirname;
const NOWHERE = path.join(here, "no-such-file.toml");
for (const name of Object.keys(process.env)) if (name.startsWith("MODAL_")) delete process.env[name];

/** What of a sandbox's calls the log has, without those that read outputs. */
const calls = ({ engine }) => engine.log.map(({ route }) => route).filter((route) => route !== "TaskExecStdioRead");
const lastOf = ({ engine }, route) => engine.requests(route).at(-1);
const oddBytes = () => Buffer.concat([Buffer.from(Array.from({ length: 256 }, (_, i) => i)), randomBytes(600_000)]);

describe("npm modal", () => {
  const use = {};
  before(async () => {
    use.emulator = await startModal({ builds: 2 });
    Object.assign(process.env, { MODAL_CONFIG_PATH: NOWHERE, MODAL_SERVER_URL: use.emulator.apiUrl });
    const modal = await import("modal");
    use.modal = modal;
    use.clients = [];
    use.connect = (credentials = use.emulator.credentials) => {
      use.clients.push(new modal.ModalClient({ ...credentials, environment: "main", logLevel: "error" }));
      return use.clients.at(-1);
    };
    use.create = async (options, client = use.connect()) => {
      const app = await client.apps.fromName("interop", { createIfMissing: true });
      return client.sandboxes.create(app, client.images.fromRegistry("python:3.12-slim"), options);
    };
    use.run = async (sandbox, argv, options) => {
      const child = await sandbox.exec(argv, options);
      const [stdout, stderr, code] = await Promise.all([child.stdout.readText(), child.stderr.readText(), child.wait()]);
      return { stdout, stderr, code };
    };
  });
  after(async () => {
    for (const client of use.clients) client.close();
    assert.deepEqual(use.emulator.engine.errors, []);
    await use.emulator.close();
  });

  for (const kind of ["V2", "V1"]) {
    test(`create, commands, files, end: ${kind}`, async () => {
      use.emulator.engine.clearLog();
      if (kind === "V1") process.env.MODAL_SANDBOX_V2 = "0";
      const client = use.connect();
      delete process.env.MODAL_SANDBOX_V2;
      const sandbox = await use.create({ timeoutMs: 600_000, env: { LEVEL: "9" }, blockNetwork: true }, client);
      const made = use.emulator.fleet.sandboxes.get(sandbox.sandboxId);
      assert.equal(made.v2, kind === "V2");
      assert.equal(made.definition.timeoutSecs, 600);
      assert.deepEqual(await use.run(sandbox, ["sh", "-c", "echo out; echo err >&2; exit 7"]), { stdout: "out\n", stderr: "err\n", code: 7 });
      assert.equal((await use.run(sandbox, ["sh", "-c", "echo $LEVEL $MORE; pwd"], { env: { MORE: "x" }, workdir: "/" })).stdout, "9 x\n/\n");
      assert.equal((await use.run(sandbox, ["sh", "-c", "kill -9 $$"])).code, 137);
      const cat = await sandbox.exec(["cat"]);
      await cat.stdin.writeText("grüße\n");
      await cat.closeStdin();
      assert.equal(await cat.stdout.readText(), "grüße\n");
      assert.equal(await cat.wait(), 0);
      const file = path.join(made.home, "deep/er/a b+&ä.bin");
      for (const bytes of [Buffer.alloc(0), oddBytes()]) {
        await sandbox.filesystem.writeBytes(bytes, file);
        assert.ok(bytes.equals(await sandbox.filesystem.readBytes(file)));
      }
      await assert.rejects(sandbox.filesystem.readBytes(path.join(made.home, "missing")), use.modal.SandboxFilesystemNotFoundError);
      await sandbox.terminate();
      assert.ok(made.result);
      assert.ok(calls(use.emulator).includes(kind === "V2" ? "SandboxTerminateV2" : "SandboxTerminate"));
      assert.equal(lastOf(use.emulator, "TaskExecStart").headers["x-modal-token-secret"], undefined);
    });
  }

  test("a command's time limit", async () => {
    const sandbox = await use.create({ timeoutMs: 600_000 });
    const child = await sandbox.exec(["sh", "-c", "sleep 60"], { timeoutMs: 1000 });
    // It reads outputs with the same limit and without a grace.
    const [code, read] = await Promise.allSettled([child.wait(), child.stdout.readText()]);
    assert.ok(code.value === 137 || /deadline/i.test(code.reason?.message), code.reason?.message ?? code.value);
    assert.ok(read.value === "" || /deadline/i.test(read.reason?.message), read.reason?.message);
    await sandbox.terminate();
  });

  test("what it makes of our refusals", async () => {
    const { emulator, modal } = use;
    const wrong = use.connect({ ...emulator.credentials, tokenSecret: "as-wrong" });
    await assert.rejects(wrong.apps.fromName("interop"), /Token validation failed/);
    await assert.rejects(use.connect().apps.fromName("no-such-app"), modal.NotFoundError);
    const sandbox = await use.create({ timeoutMs: 600_000 });
    emulator.lose(sandbox.sandboxId);
    await assert.rejects(sandbox.exec(["true"]), /not found/i);
  });
});

/** Modal's client for Python in a process of its own; calls are one after the other. */
function startPython(env) {
  const PYTHONPATH = process.env.INTEROP_PYTHONPATH ?? path.join(here, "build/python");
  const child = spawn(process.env.INTEROP_PYTHON ?? "python3", [path.join(here, "modal-driver.py")], {
    env: { PATH: process.env.PATH, HOME: here, PYTHONPATH, NO_PROXY: "127.0.0.1", MODAL_CONFIG_PATH: NOWHERE, ...env },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async call(call, args) {
      child.stdin.write(`${JSON.stringify({ call, args })}\n`);
      const { value: line, done } = await lines.next();
      assert.ok(!done, "the client has ended");
      const { value, error, message } = JSON.parse(line);
      if (error) throw Object.assign(new Error(message), { name: error });
      return value;
    },
    end: () => new Promise((resolve) => child.once("close", resolve).stdin.end()),
  };
}

describe("PyPI modal", () => {
  const use = {};
  before(async () => {
    use.emulator = await startModal();
    // Its control plane is plain, and its command router is over TLS, without a protocol offered.
    use.emulator.settings.routerUrl = await use.emulator.front(makeCertificate(["127.0.0.1"]));
    const { tokenId, tokenSecret } = use.emulator.credentials;
    use.client = startPython({ MODAL_SERVER_URL: use.emulator.apiUrl, MODAL_TOKEN_ID: tokenId, MODAL_TOKEN_SECRET: tokenSecret });
  });
  after(async () => {
    await use.client.end();
    assert.deepEqual(use.emulator.engine.errors, []);
    await use.emulator.close();
  });

  test("create, commands, files, end", async () => {
    const { client, emulator } = use;
    const { id } = await client.call("create", { image: "python:3.12-slim", timeout: 600, env: { LEVEL: "9" } });
    const made = emulator.fleet.sandboxes.get(id);
    assert.equal(made.v2, true);
    const run = (argv, more) => client.call("execute", { argv, ...more });
    assert.deepEqual(await run(["sh", "-c", "echo out; echo err >&2; exit 7"]), { code: 7, stdout: "out\n", stderr: "err\n" });
    assert.equal((await run(["sh", "-c", "echo $LEVEL; pwd"], { workdir: "/" })).stdout, "9\n/\n");
    assert.equal((await run(["cat"], { stdin: "grüße\n" })).stdout, "grüße\n");
    assert.ok([-1, 137].includes((await run(["sleep", "60"], { timeout: 1 })).code));
    const file = path.join(made.home, "deep/er/a b+&ä.bin");
    for (const bytes of [Buffer.alloc(0), oddBytes()]) {
      const content = bytes.toString("base64");
      await client.call("write", { path: file, content });
      assert.equal(await client.call("read", { path: file }), content);
    }
    await assert.rejects(client.call("read", { path: path.join(made.home, "missing") }), { name: /NotFound/ });
    await client.call("terminate");
    assert.ok(made.result);
    assert.equal(lastOf(emulator, "TaskExecStart").headers["x-modal-token-secret"], undefined);
  });
});
