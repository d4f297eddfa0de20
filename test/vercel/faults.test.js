// What goes wrong between us and a sandbox while a command runs, and what the call then says: the
// verdict table of docs/vercel.md. A command is sent once, whatever happens.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";

import { replies } from "../emulators/engine.js";
import { vercelReplies } from "../emulators/vercel/errors.js";
import { HANG_MS, eventually, rejection } from "../support/wait.js";
import { COMMAND, CREATE, DELETE, EXTEND, FIND, KILL, LOOK, READ, STOP, WRITE, open, runs, sent } from "./support.js";

const { error: refusal } = vercelReplies;
const lines = (...values) => ({
  instead: {
    status: 200,
    headers: { "content-type": "application/x-ndjson" },
    body: values.map((value) => `${typeof value === "string" ? value : JSON.stringify(value)}\n`).join(""),
  },
});
const BEGUN = { command: { id: "cmd_x", exitCode: null } };
const ended = (exitCode) => ({ command: { id: "cmd_x", exitCode } });

/** name, what becomes of the request, then the verdict: code, whether a repeat may succeed, whether the command may have run. */
const REFUSED = [
  ["500 with an empty body", { instead: { status: 500 } }, "PROVIDER", true, true],
  ["500 in its own words", { instead: refusal(500, "internal_server_error", "oops") }, "PROVIDER", true, true],
  ["502 with a page", { instead: replies.html(502) }, "PROVIDER", true, true],
  ["503", { instead: refusal(503, "unavailable", "busy") }, "PROVIDER", true, true],
  ["504 with a page", { instead: replies.html(504) }, "PROVIDER", true, true],
  ["the connection is closed", { instead: "close" }, "NETWORK", true, true],
  ["the connection is reset", { instead: "reset" }, "NETWORK", true, true],
  ["an empty answer", lines(), "NETWORK", true, true],
  ["only its beginning", lines(BEGUN), "NETWORK", true, true],
  ["an exit code that is no number", lines(BEGUN, ended("0")), "NETWORK", true, true],
  ["an error line", lines(BEGUN, { stream: "error", data: { code: "sandbox_stopped", message: "m" } }), "NETWORK", true, true],
  ["what runs it was killed", lines(BEGUN, ended(137)), "NETWORK", true, true],
  ["an answer without logs", { instead: replies.json(200, BEGUN) }, "NETWORK", true, true],
  ["lines of other kinds, and no report", lines(BEGUN, { stream: "later", data: "x" }, { a: 1 }, ended(0)), "PROTOCOL", false, true],
  ["other output", lines(BEGUN, { stream: "stdout", data: "hello\n" }, ended(0)), "PROTOCOL", false, true],
  ["half a line", lines(BEGUN, '{"stream":"std'), "PROTOCOL", false, true],
  ["half a line at the end", { instead: { ...lines(BEGUN).instead, body: '{"command":{"id":"c","exi' } }, "NETWORK", true, true],
  ["no JSON", lines("hello"), "PROTOCOL", false, true],
  ["very deep JSON", lines("[".repeat(200_000)), "PROTOCOL", false, true],
  ["a web page with 200", { instead: replies.html(200) }, "PROTOCOL", false, true],
  ["307, which is not followed", { instead: { status: 307, headers: { location: "/api/v2/elsewhere" } } }, "PROTOCOL", false, true],
  ["400", { instead: refusal(400, "bad_request", "no") }, "INVALID_ARG", false, false],
  ["401", { instead: refusal(401, "unauthorized", "who?") }, "AUTH", false, false],
  ["402", { instead: refusal(402, "payment_required", "no more") }, "QUOTA", false, false],
  ["403", { instead: refusal(403, "forbidden", "Not authorized") }, "FORBIDDEN", false, false],
  ["429 with a wait", { instead: refusal(429, "rate_limited", "slow down", { "retry-after": 1 }) }, "RATE_LIMITED", true, false],
  ["429 with a long wait", { instead: refusal(429, "rate_limited", "slow down", { "retry-after": 30 }) }, "RATE_LIMITED", true, false],
  ["404 that is not its own", { instead: replies.html(404) }, "PROTOCOL", false, false],
  ["404 of the session, which is there", { instead: refusal(404, "not_found", "session") }, "CONFLICT", true, false],
  ["410 of the session, which is there", { instead: refusal(410, "sandbox_stopped", "gone") }, "CONFLICT", true, false],
  ["422 stopping, which it is not", { instead: refusal(422, "sandbox_stopping", "stopping") }, "CONFLICT", true, false],
  ["422 of another kind", { instead: refusal(422, "unprocessable", "no") }, "INVALID_ARG", false, false],
];

describe("a command whose request fails while the sandbox is there", { concurrency: 4 }, () => {
  for (const [name, fault, code, retryable, mayHaveRun] of REFUSED) {
    test(name, async (t) => {
      const { emulator, engine, sandbox } = await open(t, {}, { onLost: "reject" });
      await sandbox.start();
      engine.fault(COMMAND, fault);
      const error = await rejection(sandbox.shell("echo once"));
      assert.equal(error.code, `ERR_SANDBOX_${code}`, error.message);
      assert.equal(error.retryable, retryable);
      assert.equal(error.mayHaveRun, mayHaveRun);
      assert.equal(error.provider, "vercel");
      assert.match(error.message, mayHaveRun ? /may have run/ : /did not run|wait|again/i);
      assert.ok(error.message.length < 1000);
      assert.ok(!error.message.includes(emulator.credentials.token));
      assert.equal(runs(engine), 1, "the command was sent once");
      assert.equal(engine.requests(FIND).length, 0, "no session is resumed");
      // Nothing says that the sandbox is gone: it goes on.
      assert.equal((await sandbox.shell("echo on")).output, "on\n");
      await sandbox.close();
      assert.equal(engine.count(DELETE), 1);
      assert.deepEqual(emulator.fleet.all(), []);
    });
  }
});

describe("a command that has begun, and whose answer breaks: its own result", { concurrency: 4 }, () => {
  const FAULTS = [
    ["502 while it runs", { instead: replies.html(502), run: true }],
    ["the connection is closed after all", { instead: "close", run: true }],
    ["it ends early, as if it was complete", { stop: { until: /"exitCode":null/, how: "end" } }],
    ["it is cut off in its first line", { stop: { after: 10, how: "close" } }],
    ["it is cut off before its last line", { stop: { until: /"stdout"/, how: "reset" } }],
  ];
  for (const [name, fault] of FAULTS) {
    test(name, async (t) => {
      const { engine, sandbox } = await open(t);
      await sandbox.start();
      engine.fault(COMMAND, fault);
      assert.deepEqual(await sandbox.shell("sleep 0.3; echo out; exit 7"), { output: "out\n", exitCode: 7 });
      assert.equal(runs(engine), 1);
    });
  }
  test("it is cut off in its first line, long before the command begins", async (t) => {
    let commands = Infinity;
    const { engine, sandbox } = await open(t, { lateCommand: () => commands++ === 0 });
    await sandbox.start();
    commands = 0;
    engine.fault(COMMAND, { stop: { after: 10, how: "close" } });
    assert.deepEqual(await sandbox.shell("echo out; exit 7"), { output: "out\n", exitCode: 7 });
    assert.equal(runs(engine), 1);
  });
  test("in pieces of one byte", async (t) => {
    const { engine, sandbox } = await open(t);
    await sandbox.start();
    engine.fault(COMMAND, { pieceBytes: 1 });
    assert.equal((await sandbox.exec({ argv: ["printf", "caf\\303\\251 \\000 \\377"] })).stdout, "café \u0000 \ufffd");
  });
});

describe("a command whose sandbox is gone", { concurrency: 4 }, () => {
  const GONE = [
    ["deleted", {}, (emulator, name) => emulator.lose(name)],
    ["its time is over", {}, (emulator, name) => emulator.expire(name)],
    ["it is being stopped", {}, (emulator, name) => emulator.fleet.find(name).session.enter("stopping")],
    ["it is being saved", {}, (emulator, name) => emulator.fleet.find(name).session.enter("snapshotting")],
    ["it has failed", {}, (emulator, name) => emulator.fleet.find(name).session.end("failed")],
  ];
  for (const [name, settings, lose] of GONE) {
    test(`${name}: lost, not resumed, and the next call has a fresh one`, async (t) => {
      const { emulator, engine, sandbox } = await open(t, settings);
      await sandbox.start();
      const { sandboxId } = sandbox;
      lose(emulator, sandboxId);
      const error = await rejection(sandbox.shell("echo never"));
      assert.equal(error.code, "ERR_SANDBOX_LOST", error.message);
      assert.equal(error.mayHaveRun, false, error.message);
      assert.equal(engine.count(COMMAND), 1);
      assert.equal(engine.count(LOOK), 1);
      assert.equal(emulator.fleet.find(sandboxId), undefined, "what is left of it is removed");
      assert.equal((await sandbox.shell("echo new")).output, "new\n");
      assert.notEqual(sandbox.sandboxId, sandboxId);
      assert.equal(engine.requests(FIND).length, 0);
    });
  }
  for (const tellsEnd of [true, false]) {
    test(`in the middle of a command, ${tellsEnd ? "with an error line" : "without a word"}: lost, and nothing is repeated`, async (t) => {
      const { emulator, engine, sandbox } = await open(t, { tellsEnd });
      await sandbox.start();
      const running = rejection(sandbox.shell("sleep 20"));
      await engine.waitFor(COMMAND);
      const { commands } = emulator.fleet.find(sandbox.sandboxId).session;
      await eventually("the command has begun", () => commands.size === 1);
      emulator.expire(sandbox.sandboxId);
      const error = await running;
      assert.equal(error.code, "ERR_SANDBOX_LOST", error.message);
      assert.equal(error.mayHaveRun, true);
      assert.equal(runs(engine), 1);
    });
  }
  test("a file of it: lost, and not a missing file", async (t) => {
    const { emulator, sandbox } = await open(t, {}, { onLost: "reject" });
    await sandbox.start();
    emulator.lose(sandbox.sandboxId);
    assert.equal((await rejection(sandbox.readFile("f"))).code, "ERR_SANDBOX_LOST");
    assert.equal((await rejection(sandbox.writeFile("f", "x"))).code, "ERR_SANDBOX_LOST");
  });
});

describe("a kill", { concurrency: 4 }, () => {
  /** Begins a command that sleeps; `end` aborts it once it runs, and gives its process in the emulator. */
  async function begin({ emulator, engine, sandbox }, nth = 1) {
    const abort = new AbortController();
    const running = sandbox.exec({ command: "echo begun; sleep 600", signal: abort.signal });
    await engine.waitFor(COMMAND, nth);
    const { commands } = emulator.fleet.find(sandbox.sandboxId).session;
    const folder = await eventually("the command runs", () => {
      const tag = engine.requests(COMMAND)[nth - 1].body.match(/(?<=' sh )[0-9a-f]{32}/)?.[0];
      return existsSync(`/tmp/.cloudsandbox-${tag}/root`) && `/tmp/.cloudsandbox-${tag}`;
    });
    const root = Number(readFileSync(`${folder}/root`, "utf8").split(":")[0]);
    const end = async () => {
      abort.abort();
      assert.equal((await running).status, "cancelled");
      return { root, command: [...commands.values()].find(({ spec }) => spec.args[1].includes(path.basename(folder).slice(-32))) };
    };
    return { end };
  }
  const gone = ({ root }) => eventually("nothing of it is left", () => !existsSync(`/proc/${root}`));

  test("is a line of root, which ends everything", async (t) => {
    const opened = await open(t);
    const { end } = await begin(opened);
    await gone(await end());
    const [run, stop] = sent(opened.engine, COMMAND);
    assert.deepEqual([run.sudo, stop.sudo], [false, true]);
    assert.equal(opened.engine.requests(KILL).length, 0);
  });

  test("where there is no sudo it is the command's user's, and that is asked once", async (t) => {
    const opened = await open(t, { sudo: false });
    await gone(await (await begin(opened, 1)).end());
    await gone(await (await begin(opened, 4)).end());
    assert.deepEqual(sent(opened.engine, COMMAND).map(({ sudo }) => sudo), [false, true, false, false, false]);
  });

  test("when no line can be run any more, the service's own kill ends what runs the command", async (t) => {
    const opened = await open(t);
    const { end } = await begin(opened);
    // Its name is in the first line of the answer, which has come by now.
    await eventually("the answer has begun", () => opened.engine.requests(COMMAND)[0].sentBytes > 0);
    await (await fetch(opened.emulator.apiUrl)).text();
    opened.engine.fault(COMMAND, { instead: refusal(400, "bad_request", "no more processes") }, { times: 2 });
    const { command } = await end();
    assert.deepEqual(sent(opened.engine, KILL), [{ signal: 9 }]);
    await eventually("it was killed", () => command.killed);
  });

  test("a passed limit is a result, and the limit is sent along", async (t) => {
    const { engine, sandbox } = await open(t);
    const { status, exitCode } = await sandbox.exec({ command: "sleep 30", timeoutSeconds: 0.5 });
    assert.deepEqual([status, exitCode], ["timedOut", 124]);
    assert.equal(sent(engine, COMMAND)[0].timeout, 16_000);
    assert.equal(runs(engine), 1);
  });
});

describe("files", { concurrency: 4 }, () => {
  test("a write that is refused about its path goes by a command, which says why, or does it", async (t) => {
    const { engine, sandbox } = await open(t);
    await sandbox.shell("mkdir d; echo x >f");
    for (const [path, words] of [["d", /directory/], ["f/x", /lies below a file/]]) {
      const error = await rejection(sandbox.writeFile(path, "x"));
      assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG");
      assert.match(error.message, words);
      assert.ok(error.message.includes(path), error.message);
    }
    engine.fault(WRITE, { instead: refusal(500, "internal_server_error", "tar: ?") });
    await sandbox.writeFile("g", "by a command");
    assert.equal(await sandbox.readFile("g"), "by a command");
  });

  test("other refusals of a write stand", async (t) => {
    const { engine, sandbox } = await open(t);
    await sandbox.start();
    for (const [fault, code] of [
      [{ instead: refusal(403, "forbidden", "no") }, "FORBIDDEN"],
      [{ instead: replies.html(502) }, "PROVIDER"],
      [{ instead: "reset" }, "NETWORK"],
      [{ instead: replies.html(404) }, "PROTOCOL"],
    ]) {
      engine.fault(WRITE, fault, { times: code === "NETWORK" ? 4 : 1 });
      const error = await rejection(sandbox.writeFile("f", "x"));
      assert.equal(error.code, `ERR_SANDBOX_${code}`, error.message);
      engine.clearFaults();
    }
    assert.equal(runs(engine), 0);
  });

  test("a read: JSON in place of bytes, a foreign 404, and a session that lives behind a 404", async (t) => {
    const { engine, sandbox } = await open(t);
    await sandbox.writeFile("f", "x");
    engine.fault(READ, { instead: replies.json(200, { data: "x" }) });
    assert.equal((await rejection(sandbox.readFile("f"))).code, "ERR_SANDBOX_PROTOCOL");
    engine.fault(READ, { instead: replies.html(404) });
    assert.equal((await rejection(sandbox.readFile("f"))).code, "ERR_SANDBOX_PROTOCOL");
    // The service's word is not taken for it: a command looks.
    engine.fault(READ, { instead: refusal(404, "not_found", "File not found") });
    assert.equal(await sandbox.readFile("f"), "x");
    assert.equal(await sandbox.readFile("none"), null);
  });

  test("a pipe: refused in words, written and read", async (t) => {
    const { sandbox } = await open(t);
    await sandbox.shell("mkfifo pipe");
    for (const call of [() => sandbox.readFile("pipe"), () => sandbox.writeFile("pipe", "x")]) {
      const error = await rejection(call());
      assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG", error.message);
      assert.match(error.message, /no regular file/);
    }
  });
});

describe("extendLifetime", { concurrency: 4 }, () => {
  test("is sent once, whatever comes of it", async (t) => {
    const { engine, sandbox } = await open(t);
    await sandbox.start();
    for (const [fault, code] of [
      [{ instead: refusal(500, "internal_server_error", "oops") }, "PROVIDER"],
      [{ instead: "reset" }, "NETWORK"],
      [{ instead: refusal(400, "bad_request", "too long for your plan") }, "INVALID_ARG"],
    ]) {
      engine.clearLog();
      engine.fault(EXTEND, fault);
      assert.equal((await rejection(sandbox.extendLifetime(60))).code, `ERR_SANDBOX_${code}`);
      assert.equal(engine.count(EXTEND), 1);
    }
  });
});

describe("creation", { concurrency: 4 }, () => {
  const LOST = [
    ["500 and it was made", { instead: refusal(500, "internal_server_error", "oops"), run: true }],
    ["the connection is closed after all", { instead: "close", run: true }],
    ["half an answer", { edit: (body) => body.subarray(0, body.length >> 1) }],
    ["another session than its current one", { edit: (body) => body.toString().replace(/"id":"sess_[^"]+"/, '"id":"../x"') }],
    ["no working directory", { edit: (body) => body.toString().replace(/"cwd":"[^"]+"/, '"cwd":"here"') }],
  ];
  for (const [name, fault] of LOST) {
    test(`${name}: it is found by its name and deleted`, async (t) => {
      const { emulator, engine, sandbox } = await open(t);
      engine.fault(CREATE, fault);
      await rejection(sandbox.start());
      await sandbox.close();
      assert.equal(engine.count(CREATE), 1);
      assert.deepEqual(emulator.fleet.all(), []);
    });
  }

  test("an answer about another sandbox: nothing is run in it, or deleted of it", async (t) => {
    const { emulator, engine, make } = await open(t);
    const other = make();
    await other.start();
    const sandbox = make();
    engine.fault(CREATE, { edit: (body) => body.toString().replace(/"name":"[^"]+"/, `"name":"${other.sandboxId}"`) });
    assert.equal((await rejection(sandbox.start())).code, "ERR_SANDBOX_PROTOCOL");
    await sandbox.close();
    assert.equal(engine.count(COMMAND), 0);
    assert.deepEqual(emulator.fleet.all().map(({ name }) => name), [other.sandboxId]);
  });

  test("a lost answer with a name that is somebody else's: his is left alone", async (t) => {
    const { emulator, engine, make } = await open(t);
    const his = make({ name: "taken" });
    await his.start();
    const mine = make({ name: "taken" });
    engine.fault(CREATE, { instead: "close" });
    await rejection(mine.start());
    await mine.close();
    assert.deepEqual(emulator.fleet.all().map(({ name }) => name), ["taken"]);
    const again = make({ name: "taken" });
    assert.equal((await rejection(again.start())).code, "ERR_SANDBOX_CONFLICT");
  });

  test("429 is waited for, 402 and 400 are not", async (t) => {
    const { engine, make } = await open(t);
    engine.fault(CREATE, { instead: refusal(429, "rate_limited", "slow down", { "retry-after": 1 }) });
    const began = performance.now();
    await make().start();
    assert.ok(performance.now() - began > 900);
    engine.fault(CREATE, { instead: refusal(402, "payment_required", "no more") });
    assert.equal((await rejection(make().start())).code, "ERR_SANDBOX_QUOTA");
    engine.fault(CREATE, { instead: refusal(400, "bad_request", "no") });
    assert.equal((await rejection(make().start())).code, "ERR_SANDBOX_INVALID_ARG");
  });

  test("a session that does not start", async (t) => {
    const { emulator, sandbox } = await open(t, { startMs: 300, startsAs: "failed" });
    const error = await rejection(sandbox.start());
    assert.equal(error.code, "ERR_SANDBOX_PROVIDER");
    assert.match(error.message, /its state is failed/);
    await sandbox.close();
    assert.deepEqual(emulator.fleet.all(), []);
  });

  test("looks that fail while it is pending are tried again", async (t) => {
    const { engine, sandbox } = await open(t, { startMs: 600 });
    engine.fault(LOOK, { instead: replies.html(502) }, { times: 2 });
    await sandbox.start();
    assert.equal(engine.count(CREATE), 1);
    assert.ok(engine.count(LOOK) > 2);
  });
});

describe("deletion", { concurrency: 4 }, () => {
  for (const [name, route, fault, times] of [
    ["a delete that fails is tried again", DELETE, { instead: replies.html(502) }, 2],
    ["while it is stopping, too", DELETE, { instead: refusal(422, "sandbox_stopping", "wait") }, 2],
    ["a stop that fails does not matter", STOP, { instead: replies.html(502) }, 1],
    ["nor one of what is over", STOP, { instead: refusal(410, "sandbox_stopped", "gone") }, 1],
  ]) {
    test(name, async (t) => {
      const { emulator, engine, sandbox } = await open(t);
      await sandbox.start();
      engine.fault(route, fault, { times });
      await sandbox.close();
      assert.deepEqual(emulator.fleet.all(), []);
      assert.ok(engine.count(DELETE) >= (route === DELETE ? times + 1 : 1));
    });
  }
  for (const status of [404, 410]) {
    test(`${status} is success`, async (t) => {
      const { engine, sandbox } = await open(t);
      await sandbox.start();
      engine.fault(DELETE, { instead: refusal(status, "not_found", "gone") });
      await sandbox.close();
      assert.equal(engine.count(DELETE), 1);
    });
  }
  test("a 404 that is not its own rejects, and a second close() tries again", async (t) => {
    const { emulator, engine, sandbox } = await open(t);
    await sandbox.start();
    engine.fault(DELETE, { instead: replies.html(404) });
    assert.equal((await rejection(sandbox.close())).code, "ERR_SANDBOX_PROTOCOL");
    await sandbox.close();
    assert.deepEqual(emulator.fleet.all(), []);
  });
});

test("no answer at all: a result, and the sandbox is looked at", { timeout: HANG_MS }, async (t) => {
  const { engine, sandbox } = await open(t);
  await sandbox.start();
  engine.fault(COMMAND, { instead: "hang" }, { times: Infinity });
  const { exitCode, timedOut } = await sandbox.shell("echo never", { timeoutSeconds: 0.5 });
  assert.deepEqual([exitCode, timedOut], [124, true]);
  assert.equal(runs(engine), 1);
  assert.ok(engine.count(LOOK) >= 1);
  engine.clearFaults();
});
