// What goes wrong between us and a session while a command runs, and what the call then says: the
// verdict table of docs/agentcore.md. A command is sent once, whatever happens.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { replies } from "../emulators/engine.js";
import { agentCoreReplies } from "../emulators/agentcore/errors.js";
import { event, exception, message, streamError, streamOf } from "../emulators/agentcore/eventstream.js";
import { HANG_MS, eventually, rejection } from "../support/wait.js";
import { GET, INVOKE, LIST, START, STOP, open, runs } from "./support.js";

const { error: refusal, typed } = agentCoreReplies;
const stream = (...messages) => ({ instead: streamOf(...messages) });
const OTHER = event({ content: [], structuredContent: { stdout: "hello\n", stderr: "", exitCode: 0 }, isError: false });
const broken = (bytes, at) => {
  const copy = Buffer.from(bytes);
  copy[at] ^= 1;
  return copy;
};

/** name, what becomes of the request, then the verdict: code, whether a repeat may succeed, whether the command may have run. */
const REFUSED = [
  ["500 with an empty body", { instead: { status: 500 } }, "PROVIDER", true, true],
  ["500 in its own words", { instead: typed(500, "oops") }, "PROVIDER", true, true],
  ["502 with a page", { instead: replies.html(502) }, "PROVIDER", true, true],
  ["503", { instead: typed(503, "busy") }, "PROVIDER", true, true],
  ["the connection is closed", { instead: "close" }, "NETWORK", true, true],
  ["the connection is reset", { instead: "reset" }, "NETWORK", true, true],
  ["an empty answer", stream(), "NETWORK", true, true],
  ["no result", stream(event({}, "initial-response"), message({ ":message-type": "later" })), "NETWORK", true, true],
  ["half a message", stream(OTHER.subarray(0, 40)), "NETWORK", true, true],
  ["a wrong checksum of the lengths", stream(broken(OTHER, 2)), "PROTOCOL", false, true],
  ["a wrong checksum of a message", stream(broken(OTHER, 60)), "PROTOCOL", false, true],
  ["JSON in place of a stream", { instead: replies.json(200, { content: [] }) }, "PROTOCOL", false, true],
  ["a web page with 200", { instead: replies.html(200) }, "PROTOCOL", false, true],
  ["a result that is no JSON", stream(message({ ":message-type": "event", ":event-type": "result" }, "<x>")), "PROTOCOL", false, true],
  ["other output", stream(OTHER), "PROTOCOL", false, true],
  ["307, which is not followed", { instead: { status: 307, headers: { location: "/elsewhere" } } }, "PROTOCOL", false, true],
  ["an exception: throttling", stream(exception("throttlingException", "slow down")), "RATE_LIMITED", true, false],
  ["an exception: no right", stream(exception("accessDeniedException", "no")), "FORBIDDEN", false, false],
  ["an exception: not valid", stream(exception("validationException", "no")), "INVALID_ARG", false, false],
  ["an exception: quota", stream(exception("serviceQuotaExceededException", "no")), "QUOTA", false, false],
  ["an exception: conflict", stream(exception("conflictException", "busy")), "CONFLICT", true, false],
  ["an exception: no session, which is there", stream(exception("resourceNotFoundException", "no")), "CONFLICT", true, true],
  ["an exception: it has failed", stream(exception("internalServerException", "oops")), "PROVIDER", true, true],
  ["an exception that nobody knows", stream(exception("fooException", "oops")), "PROVIDER", true, true],
  ["an error of the stream", stream(streamError("Boom", "oops")), "PROVIDER", true, true],
  ["an exception behind a result", stream(OTHER, exception("throttlingException", "slow down")), "RATE_LIMITED", true, true],
  ["400", { instead: typed(400, "no") }, "INVALID_ARG", false, false],
  ["400 that is a throttle", { instead: refusal(400, "ThrottlingException", "Rate exceeded") }, "RATE_LIMITED", true, false],
  ["400 of a session that is over, which is there", { instead: typed(400, "the session is not active") }, "CONFLICT", true, false],
  ["402", { instead: typed(402, "no more") }, "QUOTA", false, false],
  ["403 without a right", { instead: typed(403, "not authorized") }, "FORBIDDEN", false, false],
  ["403 of a key", { instead: refusal(403, "UnrecognizedClientException", "The security token is invalid") }, "AUTH", false, false],
  ["403 of a signature", { instead: refusal(403, "InvalidSignatureException", "does not match") }, "AUTH", false, false],
  ["403 of a token whose time is over", { instead: refusal(403, "ExpiredTokenException", "expired", {}, "__type") }, "AUTH", false, false],
  ["404 that is not its own", { instead: replies.html(404) }, "PROTOCOL", false, false],
  ["404 without a type", { instead: replies.json(404, { message: "Not Found" }) }, "PROTOCOL", false, false],
  ["404 of the session, which is there", { instead: typed(404, "session") }, "CONFLICT", true, false],
  ["409", { instead: typed(409, "busy") }, "CONFLICT", true, false],
  ["429", { instead: typed(429, "slow down") }, "RATE_LIMITED", true, false],
  ["429 with a long wait", { instead: refusal(429, "ThrottlingException", "slow down", { "retry-after": 30 }, "code") }, "RATE_LIMITED", true, false],
];

describe("a command whose request fails while the session is there", { concurrency: 4 }, () => {
  for (const [name, fault, code, retryable, mayHaveRun] of REFUSED) {
    test(name, async (t) => {
      const { emulator, engine, sandbox } = await open(t, {}, { onLost: "reject" });
      await sandbox.start();
      engine.fault(INVOKE, fault);
      const error = await rejection(sandbox.shell("echo once"));
      assert.equal(error.code, `ERR_SANDBOX_${code}`, error.message);
      assert.equal(error.retryable, retryable);
      assert.equal(error.mayHaveRun, mayHaveRun, error.message);
      assert.equal(error.provider, "agentcore");
      assert.match(error.message, mayHaveRun ? /may have run/ : /did not run|wait|again/i);
      assert.ok(error.message.length < 1200, error.message);
      assert.ok(!error.message.includes(emulator.credentials.secretAccessKey));
      assert.equal(runs(engine), 1, "the command was sent once");
      // Nothing says that the session is gone: it goes on.
      assert.equal((await sandbox.shell("echo on")).output, "on\n");
      await sandbox.close();
      assert.equal(engine.count(STOP), 1);
      assert.deepEqual(emulator.fleet.all(), []);
    });
  }
});

describe("a command that has run, and whose answer breaks: its own result", { concurrency: 4 }, () => {
  const FAULTS = [
    ["502 while it runs", { instead: replies.html(502), run: true }],
    ["the connection is closed after all", { instead: "close", run: true }],
    ["it ends early, as if it was complete", { stop: { after: 200, how: "end" } }],
    ["it is cut off in its first bytes", { stop: { after: 5, how: "close" } }],
    ["a wrong bit", { edit: (bytes) => broken(bytes, bytes.length - 30) }],
    ["it says that it has failed", { instead: streamOf(exception("internalServerException", "oops")), run: true }],
  ];
  for (const [name, fault] of FAULTS) {
    test(name, async (t) => {
      const { engine, sandbox } = await open(t);
      await sandbox.start();
      engine.fault(INVOKE, fault);
      assert.deepEqual(await sandbox.shell("sleep 0.3; echo out; exit 7"), { output: "out\n", exitCode: 7 });
      assert.equal(runs(engine), 1);
    });
  }
  test("in pieces of one byte", async (t) => {
    const { engine, sandbox } = await open(t);
    await sandbox.start();
    engine.fault(INVOKE, { pieceBytes: 1 });
    assert.equal((await sandbox.exec({ argv: ["printf", "caf\\303\\251 \\000 \\377"] })).stdout, "café \u0000 \ufffd");
  });
  test("in two results, with other events between", async (t) => {
    const { engine, sandbox } = await open(t);
    await sandbox.start();
    engine.fault(INVOKE, {
      edit(bytes) {
        const headers = bytes.readUInt32BE(4);
        const { structuredContent } = JSON.parse(bytes.subarray(12 + headers, -4).toString());
        const half = structuredContent.stdout.length >> 1;
        const part = (text, rest) => event({ content: [], structuredContent: { stdout: text, ...rest }, isError: false });
        return Buffer.concat([
          event({}, "initial-response"), part(structuredContent.stdout.slice(0, half)), event({}, "progress"),
          part(structuredContent.stdout.slice(half), { exitCode: 0 }),
        ]);
      },
    });
    assert.deepEqual(await sandbox.shell("echo out; exit 7"), { output: "out\n", exitCode: 7 });
  });
});

describe("a command whose session is gone", { concurrency: 4 }, () => {
  const GONE = [
    ["nothing is known of it", {}, (emulator, id) => emulator.lose(id)],
    ["its time is over, and it is not found", {}, (emulator, id) => emulator.expire(id)],
    ["its time is over, and it is not active", { overStatus: 400 }, (emulator, id) => emulator.expire(id)],
  ];
  for (const [name, settings, lose] of GONE) {
    test(`${name}: lost, and the next call has a fresh one`, async (t) => {
      const { emulator, engine, sandbox } = await open(t, settings);
      await sandbox.start();
      const { sandboxId } = sandbox;
      lose(emulator, sandboxId);
      engine.clearLog();
      const error = await rejection(sandbox.shell("echo never"));
      assert.equal(error.code, "ERR_SANDBOX_LOST", error.message);
      assert.equal(error.mayHaveRun, false, error.message);
      assert.equal(engine.count(INVOKE), 1);
      assert.equal(engine.count(GET), 1);
      assert.equal((await sandbox.shell("echo new")).output, "new\n");
      assert.notEqual(sandbox.sandboxId, sandboxId);
    });
  }
  test("in the middle of a command: lost, and nothing is repeated", async (t) => {
    const { emulator, engine, sandbox } = await open(t);
    await sandbox.start();
    const running = rejection(sandbox.shell("sleep 20"));
    await eventually("the command has begun", () => emulator.session(sandbox.sandboxId).busy === 1);
    emulator.expire(sandbox.sandboxId);
    const error = await running;
    assert.equal(error.code, "ERR_SANDBOX_LOST", error.message);
    assert.equal(error.mayHaveRun, true);
    assert.equal(runs(engine), 1);
  });
  test("a file of it: lost, and not a missing file", async (t) => {
    const { emulator, sandbox } = await open(t, {}, { onLost: "reject" });
    await sandbox.start();
    emulator.lose(sandbox.sandboxId);
    assert.equal((await rejection(sandbox.readFile("f"))).code, "ERR_SANDBOX_LOST");
    assert.equal((await rejection(sandbox.writeFile("f", "x"))).code, "ERR_SANDBOX_LOST");
  });
  test("its own time passes", async (t) => {
    const { emulator, sandbox } = await open(t, { secondMs: 20 }, { lifetimeSeconds: 20, onLost: "reject" });
    await sandbox.start();
    await eventually("it is over", () => emulator.fleet.all().length === 0);
    assert.equal((await rejection(sandbox.shell("true"))).code, "ERR_SANDBOX_LOST");
  });
});

describe("a session that runs one tool at a time", { concurrency: 4 }, () => {
  test("a limit is kept all the same: what runs in the session keeps it", async (t) => {
    const { engine, sandbox } = await open(t, { serial: true });
    const { status, exitCode, output } = await sandbox.exec({ command: "echo begun; sleep 30", timeoutSeconds: 0.5 });
    assert.deepEqual([status, exitCode, output], ["timedOut", 124, "begun\n"]);
    assert.equal(runs(engine), 1);
    assert.equal((await sandbox.shell("echo on")).output, "on\n");
  });
  test("a second command is refused: it did not run", async (t) => {
    const { emulator, sandbox } = await open(t, { serial: true });
    await sandbox.start();
    const first = sandbox.shell("sleep 1; echo first");
    await eventually("the first one runs", () => emulator.session(sandbox.sandboxId).busy === 1);
    const error = await rejection(sandbox.shell("echo second"));
    assert.deepEqual([error.code, error.mayHaveRun, error.retryable], ["ERR_SANDBOX_CONFLICT", false, true], error.message);
    assert.equal((await first).output, "first\n");
  });
});

describe("files", { concurrency: 4 }, () => {
  const LARGE = Buffer.from(Array.from({ length: 200_000 }, (_, i) => (i * 7 + (i >> 8)) & 255));
  const tools = (engine) => engine.requests(INVOKE).map(({ body }) => /"name":"(\w+)"/.exec(body)[1]);

  test("a large one goes in one request, exact to the byte; elsewhere it goes by commands", async (t) => {
    const { engine, sandbox } = await open(t);
    await sandbox.start();
    engine.clearLog();
    await sandbox.writeFile("a/b/large.bin", LARGE);
    assert.deepEqual(tools(engine), ["writeFiles"]);
    assert.ok(Buffer.from(await sandbox.readFile("a/b/large.bin", "base64"), "base64").equals(LARGE));
    engine.clearLog();
    await sandbox.writeFile("/tmp/../tmp/cloudsandbox-agentcore-test.bin", LARGE);
    assert.ok(!tools(engine).includes("writeFiles"));
    await sandbox.shell("rm /tmp/cloudsandbox-agentcore-test.bin");
  });

  test("what the service refuses of it, a command does, or says why not", async (t) => {
    const { engine, sandbox } = await open(t);
    await sandbox.shell("mkdir d; echo x >f");
    for (const [path, words] of [["d", /directory/], ["f/x", /lies below a file/]]) {
      const error = await rejection(sandbox.writeFile(path, LARGE));
      assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG", error.message);
      assert.match(error.message, words);
    }
    engine.fault(INVOKE, { instead: typed(400, "too large") });
    await sandbox.writeFile("g", LARGE);
    assert.ok(Buffer.from(await sandbox.readFile("g", "base64"), "base64").equals(LARGE));
  });

  test("other refusals of it stand", async (t) => {
    const { engine, sandbox } = await open(t);
    await sandbox.start();
    for (const [fault, code, times] of [
      [{ instead: typed(403, "no") }, "FORBIDDEN", 1],
      [{ instead: replies.html(502) }, "PROVIDER", 1],
      [{ instead: "reset" }, "NETWORK", 4],
      [{ instead: replies.html(404) }, "PROTOCOL", 1],
    ]) {
      engine.fault(INVOKE, fault, { times });
      const error = await rejection(sandbox.writeFile("f", LARGE));
      assert.equal(error.code, `ERR_SANDBOX_${code}`, error.message);
      engine.clearFaults();
    }
  });
});

describe("start", { concurrency: 4 }, () => {
  const LOST = [
    ["500 and it was started", { instead: typed(500, "oops"), run: true }],
    ["the connection is closed after all", { instead: "close", run: true }],
    ["half an answer", { edit: (body) => body.subarray(0, body.length >> 1) }],
    ["an id that is none", { edit: (body) => body.toString().replace(/"sessionId":"[^"]+"/, '"sessionId":"../x"') }],
  ];
  for (const [name, fault] of LOST) {
    test(`${name}: it is found by its name and stopped`, async (t) => {
      const { emulator, engine, sandbox } = await open(t, {}, { name: "mine" });
      engine.fault(START, fault);
      await rejection(sandbox.start());
      await sandbox.close();
      assert.equal(engine.count(START), 1);
      assert.ok(engine.count(LIST) >= 1);
      assert.deepEqual(emulator.fleet.all(), []);
    });
  }

  test("it is found on the last page; others stay", async (t) => {
    const { emulator, engine, make } = await open(t);
    const others = Array.from({ length: 3 }, () => make({ name: "mine" }));
    for (const other of others) await other.start();
    const sandbox = make({ name: "mine" });
    engine.fault(START, { instead: "close", run: true });
    await rejection(sandbox.start());
    // One on each page.
    emulator.settings.pageMost = 1;
    await sandbox.close();
    assert.equal(engine.count(LIST), 4);
    assert.deepEqual(emulator.existing(emulator.credentials.accessKeyId).sort(), others.map(({ sandboxId }) => sandboxId).sort());
  });

  test("one that was never made: looked for twice, and that is all", async (t) => {
    const { engine, sandbox } = await open(t);
    engine.fault(START, { instead: "close" });
    await rejection(sandbox.start());
    await sandbox.close();
    assert.equal(engine.count(LIST), 2);
    assert.equal(engine.count(STOP), 0);
  });

  test("429 is waited for; 402, 400 and 404 are not", async (t) => {
    const { engine, make } = await open(t);
    engine.fault(START, { instead: refusal(429, "ThrottlingException", "slow down", { "retry-after": 1 }) });
    const began = performance.now();
    await make().start();
    assert.ok(performance.now() - began > 900);
    for (const [status, code] of [[402, "QUOTA"], [400, "INVALID_ARG"], [404, "NOT_FOUND"]]) {
      engine.fault(START, { instead: typed(status, "no") });
      const error = await rejection(make().start());
      assert.equal(error.code, `ERR_SANDBOX_${code}`, error.message);
    }
  });

  test("no command runs in it: said, and stopped", async (t) => {
    const { emulator, engine, sandbox } = await open(t);
    engine.fault(INVOKE, stream(event({ content: [], structuredContent: { stdout: "", stderr: "sh: not found", exitCode: 127 }, isError: true })));
    const error = await rejection(sandbox.start());
    assert.equal(error.code, "ERR_SANDBOX_PROVIDER", error.message);
    assert.match(error.message, /sh: not found/);
    await sandbox.close();
    assert.deepEqual(emulator.fleet.all(), []);
  });

  test("an existing session: used, and left alone; stopped when it is owned", async (t) => {
    const { emulator, engine, make } = await open(t);
    const first = make();
    await first.start();
    const { sandboxId } = first;
    const second = make({ sandboxId });
    await first.writeFile("f", "x");
    assert.equal(await second.readFile("f"), "x");
    await second.close();
    assert.equal(emulator.fleet.all().length, 1);
    const third = make({ sandboxId, owned: true });
    await third.start();
    await third.close();
    assert.equal(emulator.fleet.all().length, 0);
    const error = await rejection(make({ sandboxId }).start());
    assert.match(error.message, /has ended/);
    assert.equal((await rejection(make({ sandboxId: "none" }).start())).code, error.code);
    assert.equal(engine.count(START), 1);
  });
});

describe("stop", { concurrency: 4 }, () => {
  for (const [name, fault, times] of [
    ["a stop that fails is tried again", { instead: replies.html(502) }, 2],
    ["a conflict, too", { instead: typed(409, "busy") }, 2],
    ["and a throttle", { instead: typed(429, "slow down") }, 1],
  ]) {
    test(name, async (t) => {
      const { emulator, engine, sandbox } = await open(t);
      await sandbox.start();
      engine.fault(STOP, fault, { times });
      await sandbox.close();
      assert.deepEqual(emulator.fleet.all(), []);
      assert.equal(engine.count(STOP), times + 1);
    });
  }
  for (const [name, reply] of [["404", typed(404, "gone")], ["400 that says it", typed(400, "the session is not active")]]) {
    test(`${name} is success`, async (t) => {
      const { engine, sandbox } = await open(t);
      await sandbox.start();
      engine.fault(STOP, { instead: reply });
      await sandbox.close();
      assert.equal(engine.count(STOP), 1);
    });
  }
  test("a 404 that is not its own rejects, and a second close() tries again", async (t) => {
    const { emulator, engine, sandbox } = await open(t);
    await sandbox.start();
    engine.fault(STOP, { instead: replies.html(404) });
    assert.equal((await rejection(sandbox.close())).code, "ERR_SANDBOX_PROTOCOL");
    await sandbox.close();
    assert.deepEqual(emulator.fleet.all(), []);
  });
});

test("no answer at all: a result, and the session is looked at", { timeout: HANG_MS }, async (t) => {
  const { engine, sandbox } = await open(t);
  await sandbox.start();
  engine.fault(INVOKE, { instead: "hang" }, { times: Infinity });
  const { exitCode, timedOut } = await sandbox.shell("echo never", { timeoutSeconds: 0.5 });
  assert.deepEqual([exitCode, timedOut], [124, true]);
  assert.equal(runs(engine), 1);
  assert.ok(engine.count(GET) >= 1);
  engine.clearFaults();
});
