// The fault table: what each fault of E2B's services is taken for, whether a repeat may help, whether the
// command may have run, and that nothing that runs a command is ever sent twice.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { gzipSync } from "node:zlib";

import { proxyReplies } from "../emulators/e2b/index.js";
import { replies } from "../emulators/engine.js";
import { makeCertificate } from "../emulators/certificate.js";
import { mark } from "../support/processes.js";
import { HANG_MS, eventually, rejection } from "../support/wait.js";
import { END, endOfStream, envelope, event, exited, open, started, stdout, stream, withoutVariables } from "./support.js";

withoutVariables();

const START = "process.Process/Start";
const CONNECT = "process.Process/Connect";
const HEALTH = "envd GET /health";
const DETAIL = "GET /sandboxes/{id}";
const always = { times: Infinity };

const apiError = (code, message, more = {}) => replies.json(code, { code, message, ...more });
const envdError = (code, message) => replies.json(code, { code, message });

/** Answers 404 that are not the control plane's word about a sandbox. */
const strangers = {
  "a 404 page": replies.html(404),
  "a 404 in text": { status: 404, headers: { "content-type": "text/plain" }, body: "default backend - 404" },
  "a gateway's 404": replies.json(404, { message: "no Route matched with those values" }),
  "a 404 about the route": apiError(404, "validation error: no matching operation was found"),
  "an empty 404": { status: 404, headers: {}, body: "" },
};

/** A reply of which the connection stays open. */
const unended = (...parts) => ({
  instead: stream(...parts, Buffer.alloc(1)),
  stop: { after: Buffer.concat(parts).length, how: "hang" },
});

/** The part of an error that the table is about. */
function verdict({ code, retryable, mayHaveRun, status }) {
  return { code: code.replace("ERR_SANDBOX_", ""), retryable, mayHaveRun, ...(status !== undefined && { status }) };
}

describe("create", { concurrency: 8 }, () => {
  const CREATE = "POST /v2/sandboxes";
  const LIST = "GET /v2/sandboxes";
  // [fault, verdict, requests that follow the create]
  const table = {
    "400": [apiError(400, "Timeout must be greater than 0"), { code: "INVALID_ARG", status: 400 }, []],
    "409": [apiError(409, "Sandbox \"x\" is being snapshotted"), { code: "CONFLICT", retryable: true, status: 409 }, []],
    "422": [apiError(422, "no"), { code: "INVALID_ARG", status: 422 }, []],
    "401 unknown key": [apiError(401, "Invalid API key, please visit the dashboard\nno team"), { code: "AUTH", status: 401 }, []],
    "403 blocked": [apiError(403, "team is blocked: unpaid"), { code: "FORBIDDEN", status: 403 }, []],
    "404 template": [apiError(404, "template 'nope' not found"), { code: "NOT_FOUND", status: 404 }, []],
    "429 of the concurrency limit": [
      apiError(429, "you have reached the maximum number of concurrent E2B sandboxes (20)."),
      { code: "QUOTA", status: 429 },
      [],
    ],
    "429 without Retry-After": [replies.tooMany(undefined), { code: "RATE_LIMITED", retryable: true, status: 429 }, []],
    "500": [apiError(500, "Failed to create sandbox: no"), { code: "PROVIDER", retryable: true, status: 500 }, [LIST, LIST]],
    "503 no capacity": [
      apiError(503, "Failed to place sandbox", { error_code: "sandbox_capacity_unavailable" }),
      { code: "PROVIDER", retryable: true, status: 503 },
      [],
    ],
    "504 page of a load balancer": [replies.html(504), { code: "PROVIDER", retryable: true, status: 504 }, [LIST, LIST]],
  };
  for (const [name, [instead, expected, rest]] of Object.entries(table)) {
    test(`C034 ${name}`, async (t) => {
      const { engine, make, existing, routes } = await open(t);
      const sandbox = make();
      engine.fault(CREATE, { instead });
      const error = await rejection(sandbox.shell("true"));
      assert.deepEqual(verdict(error), { retryable: false, mayHaveRun: false, ...expected });
      if (error.status === 401) assert.match(error.message, /`apiKey`.*E2B_API_KEY/);
      assert.ok(error.message.length < 400, error.message);
      await sandbox.close();
      assert.deepEqual(routes(), [CREATE, ...rest]);
      assert.deepEqual(existing(), []);
    });
  }

  for (const [name, retryAfter] of [["seconds", () => 1], ["a date", () => new Date(Date.now() + 4000)]]) {
    test(`C035 429 with Retry-After in ${name}: the create is repeated after that, and one sandbox comes of it`, async (t) => {
      const { engine, make, existing } = await open(t);
      engine.fault(CREATE, { instead: replies.tooMany(retryAfter()) });
      const begin = performance.now();
      assert.deepEqual(await make().shell("echo ok"), { output: "ok\n", exitCode: 0 });
      assert.ok(performance.now() - begin >= 990);
      assert.equal(engine.count(CREATE), 2);
      assert.equal(existing().length, 1);
    });
  }

  test("429 with a Retry-After beyond the start's deadline is not waited for", async (t) => {
    const { engine, make } = await open(t);
    engine.fault(CREATE, { instead: replies.tooMany(3600) }, always);
    const error = await rejection(make().start());
    assert.deepEqual(verdict(error), { code: "RATE_LIMITED", retryable: true, mayHaveRun: false, status: 429 });
    assert.equal(engine.count(CREATE), 1);
  });

  test("C034 nobody listens: tried again a few times, then it says which host and port", async (t) => {
    const { options, make } = await open(t);
    const error = await rejection(make({ baseURL: "http://127.0.0.1:1" }).start());
    assert.deepEqual(verdict(error), { code: "NETWORK", retryable: true, mayHaveRun: false });
    assert.match(error.message, /127\.0\.0\.1:1\b/);
    assert.ok(!error.message.includes(options.apiKey));
  });

  // The sandbox is made, but its answer is of no use.
  const useless = {
    "an empty body": [{ status: 201, headers: { "content-type": "application/json" }, body: "" }, "PROTOCOL"],
    "no JSON": [{ status: 201, headers: {}, body: "created" }, "PROTOCOL"],
    "half JSON": [replies.halfJson({ sandboxID: "iabc", envdVersion: "0.6.13" }, 201), "PROTOCOL"],
    null: [replies.json(201, null), "PROTOCOL"],
    "an array": [replies.json(201, []), "PROTOCOL"],
    "no id": [replies.json(201, { envdVersion: "0.6.13" }), "PROTOCOL"],
    "an id that cannot be one": [replies.json(201, { sandboxID: "../x", envdVersion: "0.6.13" }), "PROTOCOL"],
    "an id of a wrong type": [replies.json(201, { sandboxID: 7, envdVersion: "0.6.13" }), "PROTOCOL"],
    "60000 brackets": [{ status: 201, headers: {}, body: "[".repeat(60_000) }, "PROTOCOL"],
    "a reset": ["reset", "NETWORK"],
    "a closed connection": ["close", "NETWORK"],
  };
  for (const [name, [instead, code]] of Object.entries(useless)) {
    const isCase = code === "PROTOCOL" ? "C040 " : "";
    test(`${isCase}${name} for an answer: the sandbox is found by its tag and deleted`, async (t) => {
      const { engine, make, existing } = await open(t);
      const sandbox = make();
      engine.fault(CREATE, { instead, run: true });
      const error = await rejection(sandbox.start());
      assert.deepEqual([error.code, error.mayHaveRun], [`ERR_SANDBOX_${code}`, false]);
      if (isCase) assert.match(error.message, /unexpected answer/);
      await eventually("the deletion", () => existing().length === 0 && engine.count("DELETE /sandboxes/{id}") === 1);
      assert.deepEqual(await sandbox.shell("echo ok"), { output: "ok\n", exitCode: 0 });
      assert.equal(engine.count(CREATE), 2);
    });
  }

  test("what bears no tag of ours is never deleted, also when the list is not filtered", async (t) => {
    const { engine, make, existing, emulator } = await open(t);
    const other = make();
    await other.start();
    const [id] = existing();
    const list = emulator.fleet.all().map((sandbox) => ({ sandboxID: sandbox.id, metadata: { "cloudsandbox-tag": "another" } }));
    engine.fault(LIST, { instead: replies.json(200, list) }, always);
    engine.fault(CREATE, { instead: "reset" });
    const sandbox = make();
    await rejection(sandbox.start());
    await sandbox.close();
    assert.deepEqual(existing(), [id]);
    assert.equal(engine.count("DELETE /sandboxes/{id}"), 0);
  });

  test("no answer: TIMEOUT in time, and the late sandbox is deleted", async (t) => {
    const { engine, make, existing } = await open(t);
    const sandbox = make({ startTimeoutSeconds: 1 });
    const gate = engine.gate();
    engine.fault(CREATE, { hold: gate });
    const error = await rejection(sandbox.shell("true"));
    assert.deepEqual(verdict(error), { code: "TIMEOUT", retryable: true, mayHaveRun: false });
    await gate.arrived();
    assert.equal(existing().length, 1);
    gate.open();
    await eventually("the deletion", () => existing().length === 0);
    assert.equal(engine.count(CREATE), 1);
    assert.equal(engine.count("DELETE /sandboxes/{id}"), 1);
  });
});

describe("a command's start is refused", { concurrency: 8 }, () => {
  // Nothing started; the sandbox lives. [fault, verdict, requests between the start and the next command]
  const table = {
    "502, the service does not listen": [
      proxyReplies.portClosed("i1", 49983),
      { code: "PROVIDER", retryable: true, mayHaveRun: true, status: 502 },
      [HEALTH],
    ],
    "502 page of a proxy": [replies.html(502), { code: "PROVIDER", retryable: true, mayHaveRun: true, status: 502 }, [HEALTH]],
    "429 too many connections": [
      proxyReplies.tooManyConnections("i1"),
      { code: "RATE_LIMITED", retryable: true, mayHaveRun: false, status: 429 },
      [],
    ],
    "503": [replies.html(503), { code: "PROVIDER", retryable: true, mayHaveRun: true, status: 503 }, [HEALTH]],
    "409 in transition": [
      proxyReplies.transitioning("i1"),
      { code: "CONFLICT", retryable: true, mayHaveRun: false, status: 409 },
      [HEALTH],
    ],
    "401 with a numeric code": [
      envdError(401, "unauthorized access, please provide a valid access token"),
      { code: "AUTH", retryable: false, mayHaveRun: false, status: 401 },
      [HEALTH],
    ],
    "200, then unauthenticated": [
      stream(endOfStream({ code: "unauthenticated", message: "invalid username: 'x'" })),
      { code: "AUTH", retryable: false, mayHaveRun: false },
      [HEALTH],
    ],
    "200, then resource_exhausted": [
      stream(endOfStream({ code: "resource_exhausted", message: "no more" })),
      { code: "RATE_LIMITED", retryable: true, mayHaveRun: false },
      [],
    ],
    "200, then internal": [
      stream(endOfStream({ code: "internal", message: "boom" })),
      { code: "PROVIDER", retryable: true, mayHaveRun: true },
      [HEALTH],
    ],
    "404, text of a route that is not there": [
      { status: 404, headers: { "content-type": "text/plain" }, body: "404 page not found\n" },
      { code: "NOT_FOUND", retryable: false, mayHaveRun: false, status: 404 },
      [HEALTH],
    ],
  };
  for (const [name, [instead, expected, rest]] of Object.entries(table)) {
    test(name, async (t) => {
      const { engine, make, existing, routes } = await open(t);
      const sandbox = make();
      await sandbox.start();
      routes();
      engine.fault(START, { instead });
      const error = await rejection(sandbox.shell("echo no"));
      assert.deepEqual(verdict(error), expected);
      assert.match(error.message, expected.mayHaveRun ? /may have run and was not sent again/ : /did not run|not permitted/);
      assert.deepEqual(routes(), [START, ...rest]);
      assert.deepEqual(await sandbox.shell("echo ok"), { output: "ok\n", exitCode: 0 });
      assert.equal(existing().length, 1);
    });
  }

  test("502, no such sandbox: LOST at once, and the next call opens a fresh one", async (t) => {
    const { emulator, make, routes } = await open(t);
    const sandbox = make();
    await sandbox.start();
    emulator.lose(sandbox.sandboxId);
    routes();
    const error = await rejection(sandbox.shell("echo no"));
    assert.deepEqual(verdict(error), { code: "LOST", retryable: false, mayHaveRun: false, status: 502 });
    assert.match(error.message, /did not run/);
    assert.deepEqual(routes(), [START]);
    assert.deepEqual(await sandbox.shell("echo ok"), { output: "ok\n", exitCode: 0 });
  });

  test("502 pages everywhere, and the control plane knows it no more: LOST", async (t) => {
    const { emulator, engine, make, routes } = await open(t);
    const sandbox = make();
    await sandbox.start();
    emulator.lose(sandbox.sandboxId);
    engine.fault(START, { instead: replies.html(502) });
    engine.fault(HEALTH, { instead: proxyReplies.unrouted() });
    routes();
    const error = await rejection(sandbox.shell("echo no"));
    assert.deepEqual(verdict(error), { code: "LOST", retryable: false, mayHaveRun: true, status: 502 });
    assert.deepEqual(routes(), [START, HEALTH, DETAIL]);
  });

  // The frame has said it; how the connection ends takes nothing of that back.
  const refusal = endOfStream({ code: "invalid_argument", message: "cwd '/nope' does not exist" });
  for (const [name, fault] of Object.entries({
    "stays open": unended(refusal),
    "breaks": { instead: stream(refusal, Buffer.alloc(1)), stop: { after: refusal.length, how: "reset" } },
  })) {
    test(`an end frame with an error, and the connection ${name}: the refusal, long before the limit`, async (t) => {
      const { engine, make } = await open(t);
      const sandbox = make();
      await sandbox.start();
      engine.fault(START, fault);
      const begin = performance.now();
      const error = await rejection(sandbox.shell("x", { timeoutSeconds: 60 }));
      assert.deepEqual(verdict(error), { code: "INVALID_ARG", retryable: false, mayHaveRun: false });
      assert.match(error.message, /cwd '\/nope' does not exist/);
      assert.ok(performance.now() - begin < HANG_MS);
      assert.equal(engine.count(START), 1);
    });
  }

  test("the working directory is not there: INVALID_ARG, and nothing ran", async (t) => {
    const { make } = await open(t);
    const error = await rejection(make().exec({ command: "true", cwd: "no/such" }));
    assert.deepEqual(verdict(error), { code: "INVALID_ARG", retryable: false, mayHaveRun: false });
    assert.match(error.message, /no\/such/);
  });
});

describe("a command's stream breaks", { concurrency: 8 }, () => {
  const cut = (how) => ({ stop: { after: 60, how } });
  const mayRun = { retryable: true, mayHaveRun: true };
  const protocol = { code: "PROTOCOL", retryable: false, mayHaveRun: true };

  /** The stream cannot be taken up again. */
  const refused = (engine) => engine.fault(CONNECT, { instead: "reset" }, always);
  const TRIES = 4;

  for (const how of ["reset", "close"]) {
    test(`C198 ${how} after the start: taken up again, with the true exit code and the rest of the output`, async (t) => {
      const { engine, make, routes } = await open(t);
      const sandbox = make();
      await sandbox.start();
      routes();
      // The rest is printed when somebody listens again, however late that is.
      const command = "echo out; until [ -e go ]; do sleep 0.02; done; rm go; echo more";
      const takenUp = async () => {
        await eventually("the stream is taken up", () => engine.count(CONNECT) === 1);
        assert.deepEqual(routes(), [START, CONNECT]);
        await sandbox.writeFile("go", "");
        routes();
      };
      engine.fault(START, cut(how));
      const [result] = await Promise.all([sandbox.exec({ command: `${command}; exit 3` }), takenUp()]);
      assert.deepEqual([result.status, result.exitCode, result.stdout], ["exited", 3, "more\n"]);
      assert.equal(result.truncated, true, "what came meanwhile is not known");
      engine.fault(START, cut(how));
      const [again] = await Promise.all([sandbox.shell(command), takenUp()]);
      assert.deepEqual(again, { output: "more\n", exitCode: 0, outputTruncated: true });
    });

    test(`C198 ${how} after the start, and again: also an end that was a moment ago is found`, async (t) => {
      const { engine, make, routes } = await open(t);
      const sandbox = make();
      await sandbox.start();
      routes();
      engine.fault(START, cut(how));
      engine.fault(CONNECT, { instead: "reset" });
      engine.fault(CONNECT, { instead: proxyReplies.unrouted() });
      const result = await sandbox.exec({ command: "exit 7" });
      assert.deepEqual([result.status, result.exitCode, result.truncated], ["exited", 7, true]);
      assert.deepEqual(routes(), [START, CONNECT, CONNECT, CONNECT]);
    });

    test(`C198 ${how} after the start: the limit holds all the same`, async (t) => {
      const { engine, make } = await open(t);
      const tracked = mark();
      engine.fault(START, cut(how));
      const result = await make().exec({ command: "echo out; sleep 60 & sleep 60", env: tracked.env, timeoutSeconds: 1 });
      assert.deepEqual([result.status, result.exitCode, result.termination], ["timedOut", 124, "confirmed"]);
      assert.deepEqual(tracked.alive(), []);
      assert.equal(engine.count(CONNECT), 1);
    });

    test(`C198 ${how}, and it cannot be taken up again: NETWORK, and the tree is ended`, async (t) => {
      const { engine, make, routes } = await open(t);
      const sandbox = make();
      const tracked = mark();
      await sandbox.start();
      routes();
      engine.fault(START, cut(how));
      engine.fault(START, { stop: { after: 0, how: "reset" } }); // the killer is sent again
      refused(engine);
      const error = await rejection(sandbox.shell("echo out; sleep 300 & sleep 300", { env: tracked.env }));
      assert.deepEqual(verdict(error), { code: "NETWORK", ...mayRun });
      assert.match(error.message, /what it had started was ended/);
      assert.deepEqual(tracked.alive(), []);
      assert.deepEqual(routes(), [START, ...Array(TRIES).fill(CONNECT), START, START, HEALTH]);
      assert.deepEqual(await sandbox.shell("echo ok"), { output: "ok\n", exitCode: 0 });
    });

    test(`${how}, and its host says that it is gone: LOST`, async (t) => {
      const { emulator, engine, make, routes } = await open(t);
      const sandbox = make();
      await sandbox.start();
      routes();
      const gate = engine.gate();
      engine.fault(START, { stop: { after: 60, how, gate } });
      const failed = rejection(sandbox.shell("echo out; sleep 300"));
      await gate.arrived();
      emulator.lose(sandbox.sandboxId);
      gate.open();
      assert.deepEqual(verdict(await failed), { code: "LOST", retryable: false, mayHaveRun: true, status: 502 });
      assert.deepEqual(routes(), [START, CONNECT]);
    });
  }

  test("reset, the host does not answer, the control plane says 404: LOST", async (t) => {
    const { engine, make, routes } = await open(t);
    const sandbox = make();
    await sandbox.start();
    routes();
    engine.fault(START, cut("reset"));
    refused(engine);
    engine.fault(HEALTH, { instead: "hang" });
    engine.fault(DETAIL, { instead: apiError(404, "Sandbox \"x\" doesn't exist or you don't have access to it") });
    const error = await rejection(sandbox.shell("echo out; sleep 300"));
    assert.deepEqual(verdict(error), { code: "LOST", retryable: false, mayHaveRun: true });
    assert.deepEqual(routes().slice(-2), [HEALTH, DETAIL]);
  });

  for (const [name, instead] of Object.entries(strangers)) {
    test(`reset, the host does not answer, ${name} in place of the control plane: NETWORK, never LOST`, async (t) => {
      const { engine, make, existing } = await open(t);
      const sandbox = make();
      await sandbox.start();
      const id = sandbox.sandboxId;
      engine.fault(START, cut("reset"));
      refused(engine);
      engine.fault(HEALTH, { instead: "reset" }, always);
      engine.fault(DETAIL, { instead });
      const error = await rejection(sandbox.shell("echo out; sleep 300"));
      assert.deepEqual(verdict(error), { code: "NETWORK", ...mayRun });
      assert.equal(engine.count(DETAIL), 1);
      assert.deepEqual(await sandbox.shell("echo ok"), { output: "ok\n", exitCode: 0 });
      assert.deepEqual([sandbox.sandboxId, ...existing()], [id, id]);
    });
  }

  test("reset, and nobody answers: NETWORK, since nothing says that it is gone", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make();
    await sandbox.start();
    engine.fault(START, cut("reset"));
    refused(engine);
    engine.fault(HEALTH, { instead: "reset" }, always);
    engine.fault(DETAIL, { instead: "reset" }, always);
    assert.deepEqual(verdict(await rejection(sandbox.shell("echo out; sleep 300"))), { code: "NETWORK", ...mayRun });
  });

  const broken = {
    "an end without an end frame": stream(started, stdout("x")),
    "half an envelope": stream(started, stdout("x").subarray(0, 9)),
    "a length of 4 GiB": stream(started, Buffer.from([0, 255, 255, 255, 255, 123])),
    "a flag of compression": stream(started, envelope("{}", 1)),
    "a message that is not JSON": stream(started, envelope("nonsense")),
    "output that is not base64": stream(started, event({ data: { stdout: "***" } })),
    "an end frame without an end": stream(started, END),
    "an end that says nothing": stream(started, event({ end: {} }), END),
    "an exit code out of range": stream(started, event({ end: { exited: true, exitCode: 300 } }), END),
    "an exit code of a wrong type": stream(started, event({ end: { exited: true, exitCode: "x" } }), END),
    "bytes after the end": stream(started, END, envelope("{}")),
    "a page": { ...replies.html(502), status: 200 },
    nothing: stream(),
  };
  for (const [name, instead] of Object.entries(broken)) {
    test(`${name}: PROTOCOL, never exit code 0`, async (t) => {
      const { engine, make, routes } = await open(t);
      const sandbox = make();
      await sandbox.start();
      routes();
      engine.fault(START, { instead });
      const error = await rejection(sandbox.shell("echo no"));
      assert.deepEqual(verdict(error), protocol, error.message);
      const sent = routes();
      const killer = instead.body.includes("start") ? [START] : [];
      const again = ["an end without an end frame", "half an envelope"].includes(name) ? [CONNECT] : [];
      assert.deepEqual(sent, [START, ...again, ...killer, HEALTH]);
      assert.deepEqual(await sandbox.shell("echo ok"), { output: "ok\n", exitCode: 0 });
    });
  }

  test("an end frame that tells no end, and then a connection that stays open: PROTOCOL, before the limit", async (t) => {
    const { engine, make } = await open(t);
    engine.fault(START, unended(started, END));
    const error = await rejection(make().shell("x", { timeoutSeconds: 30 }));
    assert.deepEqual(verdict(error), protocol);
  });

  const kept = {
    "a cut after the end": { instead: stream(started, stdout("x"), exited) },
    "rubbish after the end": { instead: stream(started, stdout("x"), exited, Buffer.from([9, 9, 9, 9, 9, 9])) },
    "an error after the end": { instead: stream(started, stdout("x"), exited, endOfStream({ code: "internal" })) },
    "the end in pieces of one byte": { instead: stream(started, stdout("x"), exited, END), pieceBytes: 1 },
  };
  for (const [name, fault] of Object.entries(kept)) {
    test(`${name}: the result stands`, async (t) => {
      const { engine, make, routes } = await open(t);
      const sandbox = make();
      await sandbox.start();
      routes();
      engine.fault(START, fault);
      assert.deepEqual(await sandbox.shell("x"), { output: "x", exitCode: 0 });
      assert.deepEqual(routes(), [START]);
    });
  }

  test("the end, and then a stream that does not end: the result stands", async (t) => {
    const { engine, make } = await open(t);
    const reply = stream(started, stdout("x"), exited, END);
    const after = reply.body.length - END.length;
    engine.fault(START, { instead: reply, stop: { after, how: "hang" } });
    assert.deepEqual(await make().shell("x"), { output: "x", exitCode: 0 });
  });

  const signals = {
    "signal: killed": ["SIGKILL", 137],
    "signal: segmentation fault (core dumped)": ["SIGSEGV", 139],
    "signal: signal 42": [undefined, 137],
  };
  for (const [status, [signal, exitCode]] of Object.entries(signals)) {
    test(`${status}: a result with its signal`, async (t) => {
      const { engine, make } = await open(t);
      engine.fault(START, { instead: stream(started, event({ end: { exitCode: -1, status, error: status } }), END) });
      const result = await make().exec({ command: "x" });
      assert.deepEqual([result.status, result.signal, result.exitCode], ["signalled", signal, exitCode]);
    });
  }
});

describe("limits that the service keeps, or does not", { concurrency: 8 }, () => {
  test("deadline_exceeded: timed out, and the rest of the tree is ended", async (t) => {
    const { engine, make, routes } = await open(t);
    const sandbox = make();
    await sandbox.start();
    routes();
    engine.fault(START, { instead: stream(started, stdout("so far"), endOfStream({ code: "deadline_exceeded" })) });
    const result = await sandbox.exec({ command: "x", timeoutSeconds: 5 });
    assert.deepEqual(
      [result.status, result.exitCode, result.stdout, result.termination],
      ["timedOut", 124, "so far", "confirmed"],
    );
    assert.deepEqual(routes(), [START, START]);
  });

  test("only signs of life, for ever: our clock ends it, by the mark", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make();
    engine.fault(START, { stop: { after: 60, how: "hang" } });
    const begin = performance.now();
    const result = await sandbox.exec({ command: "echo out; sleep 300", timeoutSeconds: 2 });
    assert.deepEqual([result.status, result.exitCode, result.termination], ["timedOut", 124, "confirmed"]);
    assert.ok(performance.now() - begin < HANG_MS);
    assert.equal(engine.count("process.Process/SendSignal"), 0);
  });

  test("the kill is refused: timed out all the same, and it says that the end is not known", async (t) => {
    const { engine, make } = await open(t);
    engine.fault(START, { instead: replies.html(503) }, { skip: 1, times: Infinity });
    const result = await make().exec({ command: "sleep 300", timeoutSeconds: 0.5 });
    assert.deepEqual([result.status, result.exitCode], ["timedOut", 124]);
    assert.ok(["requested", "unknown"].includes(result.termination), result.termination);
    const signal = await engine.waitFor("process.Process/SendSignal");
    await signal.closed;
    assert.match(signal.body, /"SIGNAL_SIGKILL"/);
  });

  test("a service that never answers: a result in time when the sandbox is there", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make();
    await sandbox.start();
    engine.fault(START, { instead: "hang" }, always);
    const begin = performance.now();
    assert.deepEqual(await sandbox.shell("true", { timeoutSeconds: 1 }), { output: "", exitCode: 124, timedOut: true });
    assert.ok(performance.now() - begin < HANG_MS);
    assert.equal(engine.count(START), 2, "the command once, and the kill");
  });

  test("a service that never answers, in a sandbox that is gone: LOST", async (t) => {
    const { emulator, engine, make } = await open(t);
    const sandbox = make();
    await sandbox.start();
    engine.fault(START, { instead: "hang" }, always);
    emulator.lose(sandbox.sandboxId);
    const error = await rejection(sandbox.shell("true", { timeoutSeconds: 1 }));
    assert.equal(error.code, "ERR_SANDBOX_LOST");
    assert.equal(error.mayHaveRun, true);
  });
});

describe("C033 a page of 3 KB with 502 in place of an answer", { concurrency: 8 }, () => {
  const SEEN = /HTTP 502: 502 Bad Gateway/;
  // [route, call, what the message names]
  const calls = {
    shell: [START, (sandbox) => sandbox.shell("true"), /command/],
    writeFile: ["envd POST /files", (sandbox) => sandbox.writeFile("f", "x"), /write/],
    readFile: ["envd GET /files", (sandbox) => sandbox.readFile("f"), /read/],
    listFiles: ["filesystem.Filesystem/ListDir", (sandbox) => sandbox.listFiles(), /list/],
    setLifetime: ["POST /sandboxes/{id}/timeout", (sandbox) => sandbox.setLifetime(60), /lifetime/],
    pause: ["POST /sandboxes/{id}/pause", (sandbox) => sandbox.pause(), /pause/],
    close: ["DELETE /sandboxes/{id}", (sandbox) => sandbox.close(), /delete/],
    start: ["POST /v2/sandboxes", (_, make) => make().start(), /create/],
  };
  for (const [name, [route, call, operation]] of Object.entries(calls)) {
    test(name, async (t) => {
      const { engine, make } = await open(t);
      const sandbox = make();
      await sandbox.start();
      engine.fault(route, { instead: replies.html(502) }, always);
      const { code, status, message } = await rejection(call(sandbox, make));
      assert.deepEqual([code, status], ["ERR_SANDBOX_PROVIDER", 502]);
      assert.match(message, SEEN);
      assert.match(message, operation);
      assert.ok(message.length < 400 && !/[<\n]/.test(message), message);
    });
  }
});

describe("files", { concurrency: 8 }, () => {
  const GET = "envd GET /files";
  const POST = "envd POST /files";
  const reads = {
    "404 of the daemon": [envdError(404, "path '/home/user/f' does not exist"), null],
    "K7 403 is no missing file": [
      replies.json(403, { sandboxId: "i1", message: "Sandbox is secured with traffic access token", code: 403 }),
      { code: "FORBIDDEN", status: 403 },
    ],
    "404 of a proxy": [replies.json(404, { message: "This endpoint is reserved", path: "/files", code: 404 }), { code: "PROTOCOL", status: 404 }],
    "404 in text": [{ status: 404, headers: {}, body: "404 page not found\n" }, { code: "PROTOCOL", status: 404 }],
    "400 a directory": [envdError(400, "path '/home/user/f' is a directory"), { code: "INVALID_ARG", status: 400 }],
    "401": [envdError(401, "access token present in header but does not match"), { code: "AUTH", status: 401 }],
    "429": [proxyReplies.tooManyConnections("i1"), { code: "RATE_LIMITED", retryable: true, status: 429 }],
    "500": [envdError(500, "error opening file"), { code: "PROVIDER", retryable: true, status: 500 }],
    "502, the service does not listen": [proxyReplies.portClosed("i1", 49983), { code: "PROVIDER", retryable: true, status: 502 }],
    "206": [{ status: 206, headers: {}, body: "part" }, { code: "PROTOCOL", status: 206 }],
    "0 bytes": [{ status: 200, headers: {}, body: "" }, ""],
    "C185 gzip that was not asked for": [
      { status: 200, headers: { "content-encoding": "gzip" }, body: gzipSync("unzipped") },
      { code: "PROTOCOL" },
    ],
    "fewer bytes than promised": [
      { status: 200, headers: { "content-length": 10_000 }, body: "x".repeat(10_000) },
      { code: "NETWORK", retryable: true },
    ],
    "a reset": ["reset", { code: "NETWORK", retryable: true }],
  };
  for (const [name, [instead, expected]] of Object.entries(reads)) {
    test(`read: ${name}`, async (t) => {
      const { engine, make } = await open(t);
      const sandbox = make();
      await sandbox.start();
      const fault = instead.headers?.["content-length"] ? { instead, stop: { after: 5000, how: "close", keepLength: true } } : { instead };
      // What a download shows as empty is read once more, by a command.
      if (expected === "") await sandbox.writeFile("f", "");
      engine.fault(GET, fault);
      if (expected === null || typeof expected === "string") {
        assert.equal(await sandbox.readFile("f"), expected);
        return;
      }
      const error = await rejection(sandbox.readFile("f"));
      assert.deepEqual(verdict(error), { retryable: false, mayHaveRun: false, ...expected }, error.message);
      assert.equal(engine.count(GET), 1);
      assert.equal(await sandbox.readFile("absent"), null);
    });
  }

  test("C202 files of the kernel have their text, whatever the daemon answers", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make();
    const { output } = await sandbox.shell("ln -s /proc/version link; ln -s link again; cat /proc/version");
    assert.equal(await sandbox.readFile("/proc/version"), output);
    assert.equal(engine.count(GET), 0);
    for (const instead of [
      envdError(500, "seeker can't seek"),
      { status: 200, headers: {}, body: "" },
    ]) {
      engine.fault(GET, { instead });
      assert.equal(await sandbox.readFile("link"), output);
    }
    // One of /sys promises a page, and has less.
    engine.fault(GET, { instead: { status: 200, headers: { "content-length": 4096 }, body: "Linux".padEnd(4096) }, stop: { after: 5, how: "close", keepLength: true } });
    assert.equal(await sandbox.readFile("again"), output);
    assert.equal(await sandbox.readFile("/proc/no/such"), null);
    assert.match((await rejection(sandbox.readFile("/proc/self"))).message, /it is no regular file.*; the path was \/proc\/self/);
    assert.equal((await rejection(sandbox.readBytes("/proc/kallsyms", { maxBytes: 100 }))).code, "ERR_SANDBOX_TOO_LARGE");
  });

  test("C202 a part of a kernel's file that was lost on the way is an error, and no shorter file", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make();
    await sandbox.start();
    engine.fault(START, { stop: { after: 60, how: "drop" } });
    const error = await rejection(sandbox.readFile("/proc/version"));
    assert.deepEqual([error.code, error.retryable], ["ERR_SANDBOX_NETWORK", true], error.message);
    assert.match(await sandbox.readFile("/proc/version"), /^Linux version .+\n$/);
  });

  test("C202 a pipe is refused in words, also for a write, and a file that is only slow is not", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make();
    await sandbox.shell("mkfifo pipe; echo text > slow");
    for (const error of await Promise.all([rejection(sandbox.readFile("pipe")), rejection(sandbox.writeFile("pipe", "x"))])) {
      assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG");
      assert.match(error.message, /it is no regular file, but a pipe.*; the path was pipe$/);
    }
    engine.fault(GET, { delayMs: 2500 });
    assert.equal(await sandbox.readFile("slow"), "text\n");
    assert.equal(engine.count("filesystem.Filesystem/Stat"), 3);
  });

  const writes = {
    "507": [envdError(507, "not enough disk space available"), { code: "QUOTA", status: 507 }],
    "400 a directory": [envdError(400, "path is a directory: /home/user/f"), { code: "INVALID_ARG", status: 400 }],
    "500 a file in the way": [envdError(500, "error ensuring directories: path is a file: /home"), { code: "INVALID_ARG", status: 500 }],
    "C202 500 a folder that is not there": [envdError(500, "error ensuring directories: mkdir /proc/x: no such file or directory"), { code: "INVALID_ARG", status: 500 }],
    "C202 500 a name that is too long": [envdError(500, "error getting file info: stat /home/user/a: file name too long"), { code: "INVALID_ARG", status: 500 }],
    "C196 500 no rights": [envdError(500, "error opening file: open /mnt/f: permission denied"), { code: "FORBIDDEN", status: 500 }],
    "C196 500 a read-only place": [envdError(500, "error opening file: open /mnt/f: read-only file system"), { code: "FORBIDDEN", status: 500 }],
    "C196 500 the disk is full": [envdError(500, "error writing file: write /f: no space left on device"), { code: "QUOTA", status: 500 }],
    "nothing was written": [replies.json(200, []), { code: "PROTOCOL" }],
    "an answer that is no list": [{ status: 200, headers: {}, body: "ok" }, { code: "PROTOCOL" }],
    "a reset": ["reset", { code: "NETWORK", retryable: true }],
  };
  for (const [name, [instead, expected]] of Object.entries(writes)) {
    test(`write: ${name}`, async (t) => {
      const { engine, make } = await open(t);
      const sandbox = make();
      await sandbox.start();
      engine.fault(POST, { instead });
      const error = await rejection(sandbox.writeFile("f", "x"));
      assert.deepEqual(verdict(error), { retryable: false, mayHaveRun: false, ...expected }, error.message);
      await sandbox.writeFile("f", "y");
      assert.equal(await sandbox.readFile("f"), "y");
    });
  }

  for (const [name, [refusal, code]] of Object.entries({
    "no rights": [envdError(500, "error opening file: open /mnt/f: permission denied"), "FORBIDDEN"],
    "disk full": [envdError(507, "not enough disk space available"), "QUOTA"],
    "wrong token": [envdError(401, "access token present in header but does not match"), "AUTH"],
  })) {
    test(`C196 3 MB that are refused: ${name}, and not what the proxies make of a body without a frame`, async (t) => {
      const { engine, make } = await open(t);
      const sandbox = make();
      await sandbox.start();
      const isRaw = (exchange) => exchange.header("content-type") === "application/octet-stream";
      engine.fault(POST, { instead: proxyReplies.portClosed(sandbox.sandboxId, 49983) }, { where: isRaw });
      engine.fault(POST, { instead: refusal });
      const error = await rejection(sandbox.writeFile("f", new Uint8Array(3 << 20)));
      assert.equal(error.code, `ERR_SANDBOX_${code}`, error.message);
      assert.doesNotMatch(error.message, /port is not open/);
    });
  }

  test("a sandbox that is gone is no missing file", async (t) => {
    const { emulator, make } = await open(t);
    const sandbox = make();
    await sandbox.start();
    emulator.lose(sandbox.sandboxId);
    assert.deepEqual(verdict(await rejection(sandbox.readFile("f"))), {
      code: "LOST", retryable: false, mayHaveRun: false, status: 502,
    });
  });
});

describe("delete", { concurrency: 8 }, () => {
  const DELETE = "DELETE /sandboxes/{id}";

  for (const [name, instead] of Object.entries({
    "404": apiError(404, "Sandbox \"x\" doesn't exist"),
    "409 being killed": apiError(409, "Sandbox \"x\" is being killed"),
  })) {
    test(`C045 ${name} is as good as deleted`, async (t) => {
      const { engine, make } = await open(t);
      const sandbox = make();
      await sandbox.start();
      engine.fault(DELETE, { instead, run: true });
      await sandbox.close();
      assert.equal(engine.count(DELETE), 1);
    });
  }

  for (const [name, [instead, expected]] of Object.entries({
    "401": [apiError(401, "Invalid API key"), { code: "AUTH", retryable: false, mayHaveRun: false, status: 401 }],
    "400": [apiError(400, "Invalid sandbox ID"), { code: "INVALID_ARG", retryable: false, mayHaveRun: false, status: 400 }],
    "429 for an hour": [replies.tooMany(3600), { code: "RATE_LIMITED", retryable: true, mayHaveRun: false, status: 429 }],
  })) {
    test(`${name}: close() rejects at once, and the next one tries again`, async (t) => {
      const { engine, make, existing } = await open(t);
      const sandbox = make();
      await sandbox.start();
      engine.fault(DELETE, { instead });
      const error = await rejection(sandbox.close());
      assert.deepEqual(verdict(error), expected);
      assert.match(error.message, /may still exist/);
      assert.deepEqual([engine.count(DELETE), existing().length], [1, 1]);
      await sandbox.close();
      assert.deepEqual([engine.count(DELETE), existing().length], [2, 0]);
    });
  }

  for (const [name, instead] of Object.entries({
    "409 being paused": apiError(409, "Sandbox \"x\" is being paused"),
    "429": replies.tooMany(undefined),
    "500": apiError(500, "Error killing sandbox: no"),
    "503": replies.html(503),
    "a closed connection": "close",
    "a reset": "reset",
    ...strangers,
  })) {
    test(`${name}, twice: the delete is repeated until it is done`, async (t) => {
      const { engine, make, existing } = await open(t);
      const sandbox = make();
      await sandbox.start();
      engine.fault(DELETE, { instead }, { times: 2 });
      await sandbox.close();
      assert.deepEqual(existing(), []);
      assert.ok(engine.count(DELETE) >= 3);
    });
  }

  test("429 with Retry-After: the delete waits for that long", async (t) => {
    const { engine, make, existing } = await open(t);
    const sandbox = make();
    await sandbox.start();
    engine.fault(DELETE, { instead: replies.tooMany(1) });
    const begin = performance.now();
    await sandbox.close();
    assert.ok(performance.now() - begin >= 990);
    assert.deepEqual([engine.count(DELETE), existing().length], [2, 0]);
  });

  for (const [name, instead, code, status] of [
    ["500", apiError(500, "Error killing sandbox: no"), "PROVIDER", 500],
    ["429", replies.tooMany(undefined), "RATE_LIMITED", 429],
    ...Object.entries(strangers).map(([name, stranger]) => [name, stranger, "PROVIDER", 404]),
  ]) {
    test(`${name} for good: both closes reject, and the third one deletes`, async (t) => {
      const { engine, make, existing } = await open(t);
      const sandbox = make();
      await sandbox.start();
      engine.fault(DELETE, { instead }, always);
      for (const _ of [1, 2]) {
        const error = await rejection(sandbox.close());
        assert.deepEqual(verdict(error), { code, retryable: true, mayHaveRun: false, status });
        assert.match(error.message, /may still exist/);
      }
      assert.equal(existing().length, 1);
      const before = engine.count(DELETE);
      engine.clearFaults();
      await sandbox.close();
      assert.deepEqual(existing(), []);
      assert.equal(engine.count(DELETE), before + 1);
    });
  }

  test("the search for what a lost create has made meets only 404 pages: close() rejects, the next one finds it", async (t) => {
    const { engine, make, existing } = await open(t);
    const sandbox = make();
    const lists = [/^GET \/v2\/sandboxes$/, /^GET \/sandboxes$/];
    for (const list of lists) engine.fault(list, { instead: replies.html(404) }, always);
    engine.fault("POST /v2/sandboxes", { instead: "reset", run: true });
    await rejection(sandbox.start());
    const error = await rejection(sandbox.close());
    assert.deepEqual(verdict(error), { code: "PROVIDER", retryable: true, mayHaveRun: false, status: 404 });
    assert.equal(existing().length, 1);
    engine.clearFaults();
    await sandbox.close();
    assert.deepEqual(existing(), []);
  });
});

describe("HTTP/2", { concurrency: 8 }, () => {
  const tls = makeCertificate(["127.0.0.1"]);

  for (const [name, fault] of Object.entries({
    "the stream is reset": { stop: { after: 60, how: { rst: 2 } } },
    "the connection breaks": { stop: { after: 60, how: "drop" } },
  })) {
    test(`${name}: NETWORK, and nothing is sent again`, async (t) => {
      const { engine, make } = await open(t, { tls });
      const sandbox = make();
      await sandbox.start();
      engine.fault(START, fault);
      engine.fault(CONNECT, { instead: "reset" }, always);
      const error = await rejection(sandbox.shell("echo out; sleep 300"));
      assert.deepEqual(verdict(error), { code: "NETWORK", retryable: true, mayHaveRun: true }, error.message);
      assert.equal(engine.count(START), 2, "the command once, and the kill");
      assert.deepEqual(await sandbox.shell("echo ok"), { output: "ok\n", exitCode: 0 });
    });
  }

  test("GOAWAY that lets the stream end: the result stands, and the next command has a new connection", async (t) => {
    const { engine, make } = await open(t, { tls });
    const sandbox = make();
    await sandbox.start();
    engine.fault(START, { goaway: {} });
    assert.deepEqual(await sandbox.shell("echo one"), { output: "one\n", exitCode: 0 });
    assert.deepEqual(await sandbox.shell("echo two"), { output: "two\n", exitCode: 0 });
    assert.equal(engine.count(START), 2);
  });

  test("GOAWAY that refuses the stream: NETWORK, and the command is not sent again", async (t) => {
    const { engine, make } = await open(t, { tls });
    const sandbox = make();
    await sandbox.writeFile("f", "x");
    engine.fault(START, { goaway: { refuse: true } });
    const error = await rejection(sandbox.shell("echo no"));
    assert.equal(error.code, "ERR_SANDBOX_NETWORK");
    assert.equal(engine.count(START), 2, "the command once, and the kill");
    assert.deepEqual(await sandbox.shell("echo ok"), { output: "ok\n", exitCode: 0 });
  });

  test("C034 an authority that is not trusted: TLS, and nothing was sent", async (t) => {
    const { engine, make } = await open(t, { tls });
    const error = await rejection(make({ ca: makeCertificate(["127.0.0.1"]).cert }).start());
    assert.equal(error.code, "ERR_SANDBOX_TLS");
    assert.equal(engine.log.length, 0);
  });
});
