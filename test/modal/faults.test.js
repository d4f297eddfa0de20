// The table of faults: what each means, and what is sent again. Nothing that runs or makes something is, unless the service
// has refused it.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { replies } from "../emulators/engine.js";
import { refusal } from "../emulators/modal/grpc.js";
import { rejection } from "../support/wait.js";
import { open } from "./support.js";

const CREATE = "SandboxCreateV2";
const START = "TaskExecStart";
const READ = "TaskExecStdioRead";
const WRITE = "TaskExecStdinWrite";

const status = (code) => ({ instead: refusal(code, "because & so") });

async function fails(promise, code, { mayHaveRun = false, retryable, words = /./ } = {}) {
  const error = await rejection(promise);
  assert.equal(error.code, `ERR_SANDBOX_${code}`, error.message);
  assert.equal(error.mayHaveRun, mayHaveRun, error.message);
  if (retryable !== undefined) assert.equal(error.retryable, retryable, error.message);
  assert.match(error.message, words);
  return error;
}

describe("before the create", { concurrency: 2 }, () => {
  test("what passes is asked again, what does not is not", async (t) => {
    const { engine, sandbox } = await open(t);
    for (const route of ["AppGetOrCreate", "EnvironmentGetOrCreate", "ImageGetOrCreate"]) {
      engine.fault(route, status("UNAVAILABLE"));
      engine.fault(route, { instead: "reset" });
    }
    await sandbox.start();
    for (const route of ["AppGetOrCreate", "EnvironmentGetOrCreate", "ImageGetOrCreate"]) assert.equal(engine.count(route), 3, route);
    assert.equal(engine.count(CREATE), 1);
    const keys = engine.requests("AppGetOrCreate").map(({ headers }) => headers["x-idempotency-key"]);
    assert.equal(new Set(keys).size, 1);
  });

  for (const [code, verdict] of [
    ["INVALID_ARGUMENT", "INVALID_ARG"], ["NOT_FOUND", "NOT_FOUND"], ["PERMISSION_DENIED", "FORBIDDEN"], ["UNAUTHENTICATED", "AUTH"],
    ["UNIMPLEMENTED", "UNSUPPORTED"], ["RESOURCE_EXHAUSTED", "QUOTA"],
  ]) {
    test(`${code} is ${verdict}, and nothing is made`, async (t) => {
      const { engine, sandbox } = await open(t);
      engine.fault("AppGetOrCreate", status(code), { times: Infinity });
      const error = await rejection(sandbox.start());
      if (verdict !== "NOT_FOUND") assert.equal(error.code, `ERR_SANDBOX_${verdict}`, error.message);
      assert.match(error.message, /look for the app: [A-Z_]+: because & so/);
      assert.deepEqual([engine.count("AppGetOrCreate"), engine.count(CREATE)], [1, 0]);
    });
  }

  test("a token that is refused is told where it comes from, and not shown", async (t) => {
    const { engine, make } = await open(t);
    const error = await fails(make({ tokenId: "ak-unknown-canary", tokenSecret: "as-canary-canary" }).start(), "AUTH", {
      words: /AuthTokenGet|get a token.*MODAL_TOKEN_ID.*modal\.toml/,
    });
    assert.doesNotMatch(error.message, /canary/);
    assert.equal(engine.count("AuthTokenGet"), 1);
  });

  test("an image that cannot be built says why", async (t) => {
    const { make, engine } = await open(t, { builds: 2 });
    await fails(make({ image: "no-such-image:1" }).start(), "INVALID_ARG", { words: /build failed: failed to pull image.*name of the image/ });
    assert.deepEqual([engine.count("ImageJoinStreaming"), engine.count(CREATE)], [2, 0]);
  });

  test("a build's log that breaks off is listened to again, from the last entry on", async (t) => {
    const { sandbox, engine, sent } = await open(t, { builds: 2 });
    engine.fault("ImageJoinStreaming", { stop: { after: 30, how: "reset" } });
    await sandbox.start();
    assert.deepEqual(sent("ImageJoinStreaming").map(({ lastEntryId }) => lastEntryId), [undefined, "entry-1"]);
  });
});

describe("the create", { concurrency: 2 }, () => {
  for (const [code, verdict] of [["INVALID_ARGUMENT", "INVALID_ARG"], ["ALREADY_EXISTS", "INVALID_ARG"], ["RESOURCE_EXHAUSTED", "QUOTA"], ["INTERNAL", "PROVIDER"], ["UNAVAILABLE", "PROVIDER"]]) {
    test(`${code} is ${verdict}, sent once`, async (t) => {
      const { engine, sandbox } = await open(t);
      engine.fault(CREATE, status(code), { times: Infinity });
      await fails(sandbox.start(), verdict, { words: new RegExp(`create the sandbox: ${code}: because & so`) });
      assert.equal(engine.count(CREATE), 1);
    });
  }

  test("a wait that is asked for is kept", async (t) => {
    const { engine, sandbox } = await open(t);
    engine.fault(CREATE, { instead: refusal("RESOURCE_EXHAUSTED", "slow down", 0.3) });
    const begun = Date.now();
    await sandbox.start();
    assert.ok(Date.now() - begun >= 300);
    assert.equal(engine.count(CREATE), 2);
  });

  test("one whose answer is lost is found by its tag, and ended", async (t) => {
    const { engine, fleet, sandbox, sent } = await open(t);
    engine.fault(CREATE, { instead: "reset", run: true });
    await fails(sandbox.start(), "NETWORK");
    await sandbox.close();
    const [{ tags }] = sent(CREATE);
    assert.deepEqual(sent("SandboxListV2")[0].tags, tags);
    assert.deepEqual(fleet.all().map(({ result }) => result.status), [3]);
  });

  test("an answer with another address than one of https is not used", async (t) => {
    const { sandbox, emulator } = await open(t);
    emulator.settings.routerUrl = "http://127.0.0.1:1";
    await fails(sandbox.start(), "PROTOCOL", { words: /none of https/ });
  });
});

describe("a command", { concurrency: 2 }, () => {
  /** A sandbox that runs, and a counter. */
  async function ready(t, settings) {
    const all = await open(t, settings);
    await all.sandbox.start();
    const file = `ran-${Math.random()}`;
    return { ...all, command: `echo x >>${file}`, times: async () => ((await all.sandbox.readFile(file)) ?? "").length / 2 };
  }

  for (const [code, verdict, mayHaveRun] of [
    ["INVALID_ARGUMENT", "INVALID_ARG", false], ["NOT_FOUND", "CONFLICT", false], ["FAILED_PRECONDITION", "CONFLICT", false],
    ["RESOURCE_EXHAUSTED", "QUOTA", false], ["PERMISSION_DENIED", "FORBIDDEN", false], ["UNAVAILABLE", "PROVIDER", true],
    ["INTERNAL", "PROVIDER", true], ["UNKNOWN", "PROVIDER", true],
  ]) {
    test(`${code} at its start is ${verdict}, sent once`, async (t) => {
      const { engine, sandbox, command, times } = await ready(t);
      engine.fault(START, status(code));
      await fails(sandbox.shell(command), verdict, { mayHaveRun });
      assert.equal(await times(), 0);
      assert.ok(engine.count(START) <= 3); // a kill, and the file
    });
  }

  test("a start whose answer is lost is not sent again", async (t) => {
    const { engine, sandbox, command, times } = await ready(t);
    engine.fault(START, { instead: "reset", run: true });
    await fails(sandbox.shell(command), "NETWORK", { mayHaveRun: true });
    assert.ok((await times()) <= 1);
  });

  test("a token that is refused is renewed once, and the command runs once", async (t) => {
    const { emulator, engine, sandbox, command, times } = await ready(t);
    emulator.revoke();
    assert.equal((await sandbox.shell(command)).exitCode, 0);
    assert.equal(engine.count("SandboxGetCommandRouterAccess"), 1);
    assert.equal(await times(), 1);
  });

  test("a token that is about to end is renewed before the command", async (t) => {
    const { engine, sandbox, command, times } = await ready(t, { jwtSeconds: 20 });
    await sandbox.shell(command);
    assert.ok(engine.requests("SandboxGetCommandRouterAccess").length > 0);
    const routes = engine.log.map(({ route }) => route);
    assert.ok(routes.indexOf("SandboxGetCommandRouterAccess") < routes.indexOf(START));
    assert.equal(await times(), 1);
  });

  test("a token that is refused again and again is an error", async (t) => {
    const { engine, sandbox } = await ready(t);
    engine.fault(START, status("UNAUTHENTICATED"), { times: Infinity });
    await fails(sandbox.shell("true"), "AUTH");
    assert.equal(engine.count(START), 2);
  });

  test("an output that breaks off is read on from the byte behind the last", async (t) => {
    const { engine, sandbox, sent } = await ready(t);
    for (const after of [3, 5, 7, 150_000]) engine.fault(READ, { stop: { after, how: "reset" } }, { where: () => true });
    const { stdout } = await sandbox.exec({ command: "seq 1 40000; sleep 0.3; seq 1 40000" });
    const all = Array.from({ length: 40_000 }, (_, index) => `${index + 1}\n`).join("");
    assert.ok(stdout === all + all);
    assert.ok(sent(READ).some(({ offset }) => offset > 100_000));
    assert.equal(engine.count(START), 1);
  });

  for (const code of ["UNAVAILABLE", "CANCELLED", "INTERNAL", "UNKNOWN", "DEADLINE_EXCEEDED"]) {
    test(`${code} of an output is tried again`, async (t) => {
      const { engine, sandbox } = await ready(t);
      engine.fault(READ, status(code), { times: 4 });
      assert.equal((await sandbox.shell("echo out")).output, "out\n");
    });
  }

  test("an output that cannot be had is an error, and its command is ended", async (t) => {
    const { engine, sandbox } = await ready(t);
    engine.fault(READ, status("PERMISSION_DENIED"));
    await fails(sandbox.shell("sleep 60"), "FORBIDDEN", { mayHaveRun: true, words: /what it had started was ended/ });
  });

  test("in pieces of one byte", async (t) => {
    const { engine, sandbox } = await ready(t);
    engine.fault(READ, { pieceBytes: 1 }, { times: 2 });
    const { stdout, stderr, exitCode } = await sandbox.exec({ command: "echo out; echo err >&2; exit 5" });
    assert.deepEqual({ stdout, stderr, exitCode }, { stdout: "out\n", stderr: "err\n", exitCode: 5 });
  });

  test("compressed messages, answers without a status and with too many messages are refused", async (t) => {
    const { engine, sandbox } = await ready(t);
    engine.fault(READ, { edit: (bytes) => bytes, headers: { "content-type": "application/grpc" }, instead: { status: 200, headers: { "grpc-status": "0" }, body: Buffer.from([1, 0, 0, 0, 0]) } });
    await fails(sandbox.shell("true"), "PROTOCOL", { mayHaveRun: true, words: /flags 0x01/ });
    engine.fault(START, { instead: { status: 200, headers: { "grpc-status": "0" }, body: Buffer.alloc(10) } });
    await fails(sandbox.shell("true"), "PROTOCOL", { mayHaveRun: true, words: /more than one message/ });
    engine.fault(START, { instead: { status: 200, headers: {}, body: Buffer.alloc(5) } });
    await fails(sandbox.shell("true"), "NETWORK", { mayHaveRun: true, words: /without a status/ });
    engine.fault(START, { instead: replies.html(503) });
    await fails(sandbox.shell("true"), "PROVIDER", { mayHaveRun: true });
    engine.fault(START, { instead: replies.html(404) });
    await fails(sandbox.shell("true"), "PROTOCOL", { words: /address of Modal's API/ });
  });

  test("input that breaks off is sent again where it belongs", async (t) => {
    const { engine, sandbox, sent } = await ready(t);
    const stdin = "0123456789".repeat(100_000);
    engine.fault(WRITE, { instead: "reset", run: true }, { skip: 1 });
    engine.fault(WRITE, status("UNAVAILABLE"), { skip: 1 });
    const { stdout } = await sandbox.exec({ command: "cat" , stdin, maxOutputBytes: 2_000_000 });
    assert.ok(stdout === stdin);
    const offsets = sent(WRITE).map(({ offset = 0 }) => offset);
    assert.ok(new Set(offsets).size < offsets.length);
  });

  test("one that does not read its input ends as it would", async (t) => {
    const { sandbox } = await ready(t);
    assert.equal((await sandbox.exec({ command: "exit 4", stdin: "x".repeat(3_000_000) })).exitCode, 4);
  });

  test("GOAWAY: the next command has a new connection", async (t) => {
    const { engine, sandbox } = await ready(t);
    engine.fault(READ, { goaway: {} });
    assert.equal((await sandbox.shell("echo one")).output, "one\n");
    assert.equal((await sandbox.shell("echo two")).output, "two\n");
    assert.ok(engine.accepted >= 2);
  });

  for (const how of ["timeout", "idle", "memory", "terminated"]) {
    test(`a sandbox that is over (${how}) is lost, and the next call has another one`, async (t) => {
      const { emulator, sandbox } = await ready(t);
      const { sandboxId } = sandbox;
      const running = rejection(sandbox.shell("sleep 60"));
      await emulator.engine.waitFor(READ, 2);
      emulator.expire(sandboxId, how);
      const error = await running;
      assert.equal(error.code, "ERR_SANDBOX_LOST", error.message);
      assert.equal((await sandbox.shell("echo again")).output, "again\n");
      assert.notEqual(sandbox.sandboxId, sandboxId);
    });
  }
});

describe("close", { concurrency: 2 }, () => {
  test("NOT_FOUND is success; what passes is repeated", async (t) => {
    const { engine, sandbox } = await open(t);
    await sandbox.start();
    engine.fault("SandboxTerminateV2", status("UNAVAILABLE"));
    engine.fault("SandboxTerminateV2", { instead: "reset" });
    await sandbox.close();
    assert.equal(engine.count("SandboxTerminateV2"), 3);
    const again = await open(t);
    await again.sandbox.start();
    again.emulator.lose(again.sandbox.sandboxId);
    await again.sandbox.close();
  });

  test("a token that has passed its half is renewed first", async (t) => {
    const { engine, sandbox } = await open(t, { authSeconds: 1 });
    await sandbox.start();
    await new Promise((resolve) => setTimeout(resolve, 1100));
    await sandbox.close();
    assert.ok(engine.count("AuthTokenGet") >= 2);
  });
});
