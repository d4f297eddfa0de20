// The vendor's own SDK against our emulator. Where they disagree, the emulator is wrong.
import { Sandbox } from "@vercel/sandbox";
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { after, afterEach, before, describe, test } from "node:test";

import { replies } from "../emulators/engine.js";
import { vercelReplies } from "../emulators/vercel/errors.js";
import { startVercel } from "../emulators/vercel/index.js";

for (const name of Object.keys(process.env)) if (name.startsWith("VERCEL_")) delete process.env[name];
process.env.VERCEL_TELEMETRY_DISABLED = "1";

/** One emulator for a suite; every test leaves it without sandboxes, faults and internal errors. */
function useEmulator(settings) {
  const use = {};
  before(async () => {
    use.emulator = await startVercel(settings);
    use.engine = use.emulator.engine;
    // The SDK has no option for the address: its requests are led elsewhere.
    const { origin } = new URL(use.emulator.apiUrl);
    use.options = {
      ...use.emulator.credentials,
      fetch: (url, options) => fetch(String(url).replace("https://vercel.com", origin), options),
    };
  });
  afterEach(() => {
    use.engine.clearFaults();
    use.engine.clearLog();
    for (const sandbox of use.emulator.fleet.all()) use.emulator.fleet.remove(sandbox);
    assert.deepEqual(use.engine.errors, []);
  });
  after(() => use.emulator.close());
  use.create = (options) => Sandbox.create({ ...use.options, ...options });
  use.bodies = (route) => use.engine.requests(route).map(({ body }) => (body ? JSON.parse(body) : undefined));
  return use;
}

describe("life", () => {
  const use = useEmulator();

  test("create says what was asked", async () => {
    const sandbox = await use.create({
      name: "first", timeout: 600_000, resources: { vcpus: 4 }, networkPolicy: "deny-all", env: { A: "1" },
      persistent: false, tags: { app: "x" },
    });
    assert.equal(sandbox.name, "first");
    assert.equal(sandbox.status, "running");
    const { projectId } = use.emulator.settings;
    assert.deepEqual(use.bodies("POST /v3/sandboxes"), [
      {
        name: "first", projectId, ports: [], timeout: 600_000, resources: { vcpus: 4 }, persistent: false,
        networkPolicy: { mode: "deny-all" }, env: { A: "1" }, tags: { app: "x" },
      },
    ]);
    const [{ path: asked, headers }] = use.engine.requests("POST /v3/sandboxes");
    assert.match(asked, /\?teamId=team_0123456789$/);
    assert.match(headers["user-agent"], /^vercel\/sandbox\/3\.5\.0 /);
    assert.equal((await sandbox.runCommand("sh", ["-c", "echo $A"]).then((command) => command.stdout())).trim(), "1");
  });

  test("with a runtime it takes the older route", async () => {
    await use.create({ runtime: "node24", timeout: 60_000 });
    assert.equal(use.engine.count("POST /v2/sandboxes"), 1);
    assert.equal(use.engine.count("POST /v3/sandboxes"), 0);
  });

  test("stop and delete; get by name", async () => {
    const sandbox = await use.create({ name: "second" });
    const again = await Sandbox.get({ ...use.options, name: "second" });
    assert.equal(again.name, "second");
    await sandbox.stop();
    assert.equal(use.emulator.fleet.find("second").session.status, "stopped");
    await sandbox.delete();
    assert.equal(use.emulator.fleet.find("second"), undefined);
    await assert.rejects(Sandbox.get({ ...use.options, name: "second" }), /not found/i);
  });

  test("a longer life", async () => {
    const sandbox = await use.create({ name: "third", timeout: 60_000 });
    await sandbox.extendTimeout(120_000);
    assert.equal(use.emulator.fleet.find("third").session.timeout, 180_000);
  });

  test("a network policy that is changed", async () => {
    const sandbox = await use.create({ name: "fourth", networkPolicy: { allow: ["*.example.com"] } });
    await sandbox.updateNetworkPolicy("deny-all");
    assert.deepEqual(use.emulator.fleet.find("fourth").session.networkPolicy, { mode: "deny-all" });
  });

  test("wrong credentials", async () => {
    await assert.rejects(use.create({ token: "other" }), /403|Not authorized/);
    await assert.rejects(use.create({ teamId: "other" }), /403|Not authorized/);
    await assert.rejects(use.create({ projectId: "other" }), /403|Not authorized/);
  });
});

describe("commands", () => {
  const use = useEmulator();

  test("waited for: exit code, both outputs, directory, variables", async () => {
    const sandbox = await use.create({});
    const done = await sandbox.runCommand({
      cmd: "sh", args: ["-c", "pwd; echo $B; echo err >&2; exit 3"], cwd: "/", env: { B: "b" },
    });
    assert.equal(done.exitCode, 3);
    assert.equal(await done.stdout(), "/\nb\n");
    assert.equal(await done.stderr(), "err\n");
    const [body] = use.bodies("POST /cmd");
    assert.deepEqual(body, {
      command: "sh", args: ["-c", "pwd; echo $B; echo err >&2; exit 3"], cwd: "/", env: { B: "b" }, sudo: false,
      wait: true, logs: true,
    });
  });

  test("detached: its log lines as they come, its end, a kill", async () => {
    const sandbox = await use.create({});
    const command = await sandbox.runCommand({ cmd: "sh", args: ["-c", "echo one; sleep 0.2; echo two"], detached: true });
    const lines = [];
    for await (const log of command.logs()) lines.push(`${log.stream}:${log.data}`);
    assert.equal(lines.join(""), "stdout:one\nstdout:two\n");
    assert.equal((await command.wait()).exitCode, 0);
    const sleeper = await sandbox.runCommand({ cmd: "sleep", args: ["60"], detached: true });
    await sleeper.kill("SIGKILL");
    assert.equal((await sleeper.wait()).exitCode, 137);
    assert.deepEqual(use.bodies("POST /cmd/{id}/kill"), [{ signal: 9 }]);
  });

  test("a limit ends it by SIGKILL", async () => {
    const sandbox = await use.create({});
    const done = await sandbox.runCommand({ cmd: "sleep", args: ["60"], timeoutMs: 200 });
    assert.equal(done.exitCode, 137);
  });

  test("sudo", async () => {
    const sandbox = await use.create({});
    const done = await sandbox.runCommand({ cmd: "sh", args: ["-c", "echo $HOME"], sudo: true });
    assert.equal(await done.stdout(), "/root\n");
  });

  test("a program that is not there", async () => {
    const sandbox = await use.create({});
    await assert.rejects(sandbox.runCommand("no-such-program"), /400/);
  });
});

describe("files", () => {
  const use = useEmulator();

  test("write and read: relative, absolute, long and other names, modes, no content", async () => {
    const sandbox = await use.create({ name: "files" });
    const { cwd } = use.emulator.fleet.find("files").session;
    const long = `${"d".repeat(90)}/${"e".repeat(90)}/f.txt`;
    const files = [
      { path: "a/b.txt", content: Buffer.from("relative") },
      { path: path.join(cwd, "c.txt"), content: Buffer.from("absolute") },
      { path: "café.txt", content: Buffer.from([0, 255, 128]) },
      { path: long, content: Buffer.from("long") },
      { path: "empty", content: Buffer.alloc(0) },
      { path: "run.sh", content: Buffer.from("#!/bin/sh\n"), mode: 0o755 },
    ];
    await sandbox.writeFiles(files);
    for (const { path: name, content } of files) {
      assert.deepEqual(readFileSync(path.resolve(cwd, name)), content, name);
      assert.deepEqual(await sandbox.readFileToBuffer({ path: name }), content, name);
    }
    assert.equal((await sandbox.runCommand("./run.sh")).exitCode, 0);
    assert.equal(use.engine.requests("POST /fs/write")[0].headers["x-cwd"], "/");
  });

  test("a missing file is null, a folder an error", async () => {
    const sandbox = await use.create({ name: "files" });
    assert.equal(await sandbox.readFileToBuffer({ path: "none" }), null);
    await sandbox.mkDir("made");
    assert.ok(existsSync(path.join(use.emulator.fleet.find("files").session.cwd, "made")));
    await assert.rejects(sandbox.readFileToBuffer({ path: "made" }), /400/);
  });
});

describe("faults, as the SDK takes them", () => {
  const use = useEmulator();

  test("ours never does this: a command whose answer breaks is sent three times", async () => {
    const sandbox = await use.create({});
    use.engine.fault("POST /cmd", { instead: vercelReplies.error(500, "internal_server_error", "oops"), run: true }, { times: 3 });
    await assert.rejects(sandbox.runCommand("true"), /500/);
    assert.equal(use.engine.count("POST /cmd"), 3);
  });

  test("nor this: a session that is over is resumed, and the command sent once more", async () => {
    const sandbox = await use.create({ name: "over" });
    use.emulator.expire("over");
    assert.equal((await sandbox.runCommand("true")).exitCode, 0);
    assert.deepEqual(
      use.engine.log.map(({ route }) => route),
      ["POST /v3/sandboxes", "POST /cmd", "GET /sandboxes/{name}", "POST /cmd"],
    );
    assert.match(use.engine.requests("GET /sandboxes/{name}")[0].path, /resume=true/);
  });

  test("an answer that ends early, an error line, a page", async () => {
    const sandbox = await use.create({ name: "early" });
    use.engine.fault("POST /cmd", { stop: { until: /"exitCode":null.*\n/, how: "end" } });
    await assert.rejects(sandbox.runCommand("true"), /ended|early/i);
    use.engine.fault("POST /cmd", { instead: replies.html(404) });
    await assert.rejects(sandbox.runCommand("true"));
    const running = sandbox.runCommand("sleep", ["60"]);
    const { commands } = use.emulator.fleet.find("early").session;
    while (![...commands.values()].some(({ spec }) => spec.command === "sleep")) await new Promise((resolve) => setTimeout(resolve, 10));
    use.emulator.expire("early");
    await assert.rejects(running, /stopped|stream/i);
  });

  test("429 is waited for", async () => {
    const sandbox = await use.create({});
    use.engine.fault("POST /cmd", { instead: vercelReplies.error(429, "rate_limited", "slow down", { "retry-after": 1 }) });
    assert.equal((await sandbox.runCommand("true")).exitCode, 0);
    assert.equal(use.engine.count("POST /cmd"), 2);
  });
});
