// What goes wrong between us and a service, and what the call then says: the verdict table. What creates or runs
// something is sent once, whatever happens.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { describe, test } from "node:test";

import { replies } from "../emulators/engine.js";
import { rejection } from "../support/wait.js";
import { CREATE, DELETE, EXEC, GET, PUT, open, refusal, runs } from "./support.js";

const json = (value, status = 200) => ({
  instead: { status, headers: { "content-type": "application/json" }, body: typeof value === "string" ? value : JSON.stringify(value) },
});
const result = (more) => json({ exit_code: 0, stdout: "", stderr: "", timed_out: false, ...more });
const redirect = (status) => ({ instead: { status, headers: { location: "http://127.0.0.1:1/" } } });

/** name, what becomes of the request; then code, whether a repeat may succeed, whether the command may have run. */
const REFUSED = [
  ["500 without a body", { instead: { status: 500 } }, "PROVIDER", true, true],
  ["500 in words", refusal(500, "internal"), "PROVIDER", true, true],
  ["502 with a page", { instead: replies.html(502) }, "PROVIDER", true, true],
  ["503", refusal(503, "busy"), "PROVIDER", true, true],
  ["504 with a page", { instead: replies.html(504) }, "PROVIDER", true, true],
  ["the connection is closed", { instead: "close" }, "NETWORK", true, true],
  ["the connection is reset", { instead: "reset" }, "NETWORK", true, true],
  ["half of the JSON", { edit: (body) => body.subarray(0, body.length >> 1) }, "PROTOCOL", false, true],
  ["an empty answer", json(""), "PROTOCOL", false, true],
  ["an empty object", json("{}"), "PROTOCOL", false, true],
  ["an array", json("[]"), "PROTOCOL", false, true],
  ["an output that is no text", result({ stdout: 7 }), "PROTOCOL", false, true],
  ["an output without a report", result({ stdout: "hello\n" }), "PROTOCOL", false, true],
  ["an output that was shortened", { edit: (body) => body.toString().replace(/[0-9a-f]{32} end\\n/, "") }, "PROTOCOL", false, true],
  ["the shell was killed", result({ exit_code: 137 }), "PROTOCOL", false, true],
  ["no shell there", result({ exit_code: 127, stderr: "/bin/sh: not found" }), "PROVIDER", true, false],
  ["very deep JSON", json("[".repeat(200_000)), "PROTOCOL", false, true],
  ["a web page with 200", { instead: replies.html(200) }, "PROTOCOL", false, true],
  ["a web page with 404", { instead: replies.html(404) }, "PROTOCOL", false, false],
  ["429", { instead: replies.tooMany(1) }, "RATE_LIMITED", true, false],
  ["401", refusal(401, "unauthorized"), "AUTH", false, false],
  ["403", refusal(403, "forbidden"), "FORBIDDEN", false, false],
  ["400", refusal(400, "invalid_request"), "INVALID_ARG", false, false],
  ["413", refusal(413, "too_large"), "TOO_LARGE", false, false],
  ["301", redirect(301), "PROTOCOL", false, false],
  ["307", redirect(307), "PROTOCOL", false, false],
  ["302, which may come after the work", redirect(302), "PROTOCOL", false, true],
];

describe("a command whose request fails while the sandbox is there", { concurrency: 4 }, () => {
  for (const [name, fault, code, retryable, mayHaveRun] of REFUSED) {
    test(name, async (t) => {
      const { emulator, engine, sandbox } = await open(t, {}, { onLost: "reject" });
      await sandbox.start();
      engine.fault(EXEC, fault);
      const error = await rejection(sandbox.shell("echo once"));
      assert.equal(error.code, `ERR_SANDBOX_${code}`, error.message);
      assert.equal(error.retryable, retryable);
      assert.equal(error.mayHaveRun, mayHaveRun, error.message);
      assert.equal(error.provider, "http");
      assert.ok(error.message.length < 1000);
      assert.ok(!error.message.includes(emulator.token));
      assert.equal(runs(engine), 1, "the command was sent once");
      assert.equal((await sandbox.shell("echo on")).output, "on\n");
      await sandbox.close();
      assert.equal(engine.count(DELETE), 1);
      assert.deepEqual(emulator.fleet.all(), []);
    });
  }

  for (const [name, fault] of [
    ["504 while it runs on", { ...refusal(504, "slow"), run: true }],
    ["the answer is lost", { instead: "close", run: true }],
    ["the answer breaks off", { stop: { after: 20, how: "reset" } }],
  ]) {
    test(`${name}: its report is asked for, and it has run once`, async (t) => {
      const { engine, sandbox } = await open(t);
      await sandbox.start();
      engine.fault(EXEC, fault);
      const { output, exitCode } = await sandbox.shell("echo x >>ran; cat ran; exit 3");
      assert.deepEqual([output, exitCode], ["x\n", 3]);
      assert.equal(runs(engine), 1);
    });
  }

  test("the service's own limit is a timeout, too", async (t) => {
    const { engine, sandbox } = await open(t);
    await sandbox.start();
    engine.fault(EXEC, result({ exit_code: 137, timed_out: true }));
    assert.deepEqual(await sandbox.shell("true"), { output: "", exitCode: 124, timedOut: true });
  });

  test("a service that never answers: 124, and the sandbox is asked for", async (t) => {
    const { engine, sandbox } = await open(t);
    await sandbox.start();
    engine.fault(EXEC, { instead: "hang" }, { where: ({ record }) => record.seq > 2, times: 2 });
    const { exitCode, timedOut } = await sandbox.shell("true", { timeoutSeconds: 1 });
    assert.deepEqual([exitCode, timedOut], [124, true]);
  });
});

describe("a sandbox that is gone", { concurrency: 4 }, () => {
  for (const settings of [
    { words: "code", lostStatus: 404 }, { words: "code", lostStatus: 410 }, { words: "detail", lostStatus: 404 },
    { words: "none", lostStatus: 404 }, { words: "none", lostStatus: 410 },
  ]) {
    const name = `told by ${settings.lostStatus}, words: ${settings.words}`;
    test(`a command, ${name}`, async (t) => {
      const { emulator, engine, sandbox } = await open(t, settings);
      await sandbox.start();
      const { sandboxId } = sandbox;
      emulator.lose(sandboxId);
      const error = await rejection(sandbox.shell("echo never"));
      assert.deepEqual([error.code, error.mayHaveRun], ["ERR_SANDBOX_LOST", false], error.message);
      assert.equal(engine.count(DELETE), 0);
      assert.equal((await sandbox.shell("echo new")).output, "new\n");
      assert.notEqual(sandbox.sandboxId, sandboxId);
    });

    for (const call of ["readFile", "writeFile"]) {
      test(`${call}, ${name}`, async (t) => {
        const { emulator, sandbox } = await open(t, settings);
        await sandbox.start();
        emulator.lose(sandbox.sandboxId);
        assert.equal((await rejection(call === "readFile" ? sandbox.readFile("f") : sandbox.writeFile("f", "x"))).code, "ERR_SANDBOX_LOST");
      });
    }

    test(`close, ${name}`, async (t) => {
      const { emulator, sandbox } = await open(t, settings);
      await sandbox.start();
      emulator.lose(sandbox.sandboxId);
      await sandbox.close();
    });
  }

  for (const code of ["session_not_found", "session_gone", "sandbox_lost"]) {
    test(`the word ${code} counts on every status`, async (t) => {
      const { engine, sandbox } = await open(t, {}, { onLost: "reject" });
      await sandbox.start();
      engine.fault(EXEC, refusal(409, code));
      assert.equal((await rejection(sandbox.shell("true"))).code, "ERR_SANDBOX_LOST");
    });
  }

  test("in the middle of a command: lost, it may have run, and nothing is repeated", async (t) => {
    const { emulator, engine, sandbox } = await open(t);
    await sandbox.start();
    const running = rejection(sandbox.shell("sleep 20"));
    await engine.waitFor(EXEC, 2);
    await new Promise((resolve) => setTimeout(resolve, 300));
    emulator.lose(sandbox.sandboxId);
    const error = await running;
    assert.equal(error.code, "ERR_SANDBOX_LOST", error.message);
    assert.equal(runs(engine), 1);
  });
});

/** What becomes of the create; code, whether a repeat may succeed, requests, and whether the error says that nobody can find it. */
const CREATES = [
  ["500", { ...refusal(500, "internal"), run: true }, "PROVIDER", true],
  ["the answer is lost", { instead: "close", run: true }, "NETWORK", true],
  ["an empty answer", { ...json("", 201), run: true }, "PROTOCOL", true],
  ["no session_id", { ...json({ id: "x", sessionId: "y" }, 201), run: true }, "PROTOCOL", true],
  ["an empty session_id", json({ session_id: "" }, 201), "PROTOCOL", true],
  ["a session_id with a way out", json({ session_id: "../sessions" }, 201), "PROTOCOL", true],
  ["a web page", { instead: replies.html(200) }, "PROTOCOL", true],
  ["a redirect", redirect(308), "PROTOCOL", false],
  ["422 without a word", { instead: { status: 422 } }, "INVALID_ARG", false],
  ["422 unsupported_manifest", refusal(422, "unsupported_manifest", "no gpu here"), "UNSUPPORTED", false],
  ["401", refusal(401, "unauthorized"), "AUTH", false],
  ["404: not the address of a service", { instead: { status: 404 } }, "NOT_FOUND", false],
];

describe("a create that fails", { concurrency: 4 }, () => {
  for (const [name, fault, code, unknown] of CREATES) {
    test(name, async (t) => {
      const { engine, sandbox } = await open(t);
      engine.fault(CREATE, fault);
      const error = await rejection(sandbox.start());
      assert.equal(error.code, `ERR_SANDBOX_${code}`, error.message);
      assert.equal(/cannot be found by this protocol/.test(error.message), unknown, error.message);
      assert.equal(sandbox.sandboxId, null);
      assert.equal(engine.count(CREATE), 1);
      await sandbox.start();
      assert.equal((await sandbox.shell("echo on")).output, "on\n");
    });
  }

  test("429: waited for as long as it says", async (t) => {
    const { engine, sandbox } = await open(t);
    engine.fault(CREATE, { instead: replies.tooMany(1) });
    await sandbox.start();
    assert.equal(engine.count(CREATE), 2);
  });

  test("one that is answered too late is deleted", async (t) => {
    const { emulator, engine, sandbox } = await open(t, {}, { startTimeoutSeconds: 0.5 });
    const hold = engine.gate();
    engine.fault(CREATE, { hold });
    assert.equal((await rejection(sandbox.start())).code, "ERR_SANDBOX_TIMEOUT");
    hold.open();
    await (await engine.waitFor(DELETE)).closed;
    assert.deepEqual(emulator.fleet.all(), []);
  });

  test("a session in which nothing runs is deleted", async (t) => {
    const { emulator, engine, sandbox } = await open(t);
    engine.fault(EXEC, result({ exit_code: 127, stderr: "no such file: /bin/sh" }));
    const error = await rejection(sandbox.start());
    assert.equal(error.code, "ERR_SANDBOX_PROVIDER");
    assert.match(error.message, /no command runs in it.*no such file: \/bin\/sh/);
    await (await engine.waitFor(DELETE)).closed;
    assert.deepEqual(emulator.fleet.all(), []);
  });

  test("a number as id, and other members, are taken", async (t) => {
    const { engine, sandbox } = await open(t);
    engine.fault(CREATE, json({ session_id: 17, more: [] }));
    engine.fault(EXEC, result({ stdout: "/work\n" }));
    await sandbox.start();
    assert.equal(sandbox.sandboxId, "17");
    assert.match(engine.requests(EXEC)[0].path, /\/sessions\/17\/exec$/);
  });
});

describe("a close", { concurrency: 4 }, () => {
  for (const [name, fault, times] of [
    ["500 at first", refusal(500, "internal"), 2], ["closed at first", { instead: "close" }, 2], ["already gone", refusal(404, "session_not_found"), 1],
    ["gone by its limit", { instead: { status: 410 } }, 1],
  ]) {
    test(`${name}: ${times} requests`, async (t) => {
      const { engine, sandbox } = await open(t);
      await sandbox.start();
      engine.fault(DELETE, fault);
      await sandbox.close();
      assert.equal(engine.count(DELETE), times);
    });
  }

  test("a page as 404 is not the service's word: it rejects, and a second one tries again", async (t) => {
    const { emulator, engine, sandbox } = await open(t);
    await sandbox.start();
    engine.fault(DELETE, { instead: replies.html(404) }, { times: 20 });
    assert.equal((await rejection(sandbox.close())).code, "ERR_SANDBOX_PROTOCOL");
    engine.clearFaults();
    await sandbox.close();
    assert.deepEqual(emulator.fleet.all(), []);
  });
});

describe("files", { concurrency: 4 }, () => {
  for (const [name, fault] of [
    ["400", refusal(400, "invalid_request")], ["403", refusal(403, "forbidden")], ["404 without a word", { instead: { status: 404 } }],
    ["405", { instead: { status: 405 } }], ["a page", { instead: replies.html(404) }], ["500", refusal(500, "internal")],
  ]) {
    test(`what the routes refuse goes by a command: ${name}`, async (t) => {
      const { engine, sandbox } = await open(t);
      engine.fault(PUT, fault);
      engine.fault(GET, fault, { times: 2 });
      await sandbox.writeFile("a/b", "x");
      assert.equal(await sandbox.readFile("a/b"), "x");
      assert.equal(await sandbox.readFile("a/c"), null);
    });
  }

  for (const [status, code] of [[401, "AUTH"], [413, "TOO_LARGE"], [429, "RATE_LIMITED"]]) {
    test(`${status} is final`, async (t) => {
      const { engine, sandbox } = await open(t);
      await sandbox.start();
      for (const [route, call] of [[PUT, () => sandbox.writeFile("f", "x")], [GET, () => sandbox.readFile("f")]]) {
        engine.fault(route, refusal(status, "so"));
        const error = await rejection(call());
        assert.equal(error.code, `ERR_SANDBOX_${code}`, error.message);
        assert.match(error.message, /the path was f\b/);
      }
      assert.ok(engine.requests(EXEC).every(({ body }) => !body.includes("base64")), "no command was tried");
    });
  }

  test("a missing file is null by the service's word, without a command", async (t) => {
    const { engine, sandbox } = await open(t);
    await sandbox.start();
    const commands = engine.count(EXEC);
    assert.equal(await sandbox.readFile("missing"), null);
    assert.equal(engine.count(EXEC), commands);
  });

  test("what breaks off is an error, never a shorter file", async (t) => {
    const { engine, sandbox } = await open(t);
    await sandbox.writeFile("f", "x".repeat(100_000));
    engine.fault(GET, { stop: { after: 50_000, how: "close", keepLength: true } });
    assert.equal((await rejection(sandbox.readFile("f"))).code, "ERR_SANDBOX_NETWORK");
  });
});

test("redirects are not followed: another host never sees the token", async (t) => {
  const seen = [];
  const other = createServer((request, response) => {
    seen.push(request.headers);
    response.end();
  });
  await new Promise((resolve) => other.listen(0, "127.0.0.1", resolve));
  t.after(() => other.close());
  const { engine, sandbox } = await open(t);
  await sandbox.start();
  for (const status of [301, 302, 303, 307, 308]) {
    const location = `http://127.0.0.1:${other.address().port}/`;
    for (const route of [EXEC, PUT, GET]) engine.fault(route, { instead: { status, headers: { location } } });
    await sandbox.shell("true").catch(() => {});
    await sandbox.writeFile("f", "x").catch(() => {});
    await sandbox.readFile("f").catch(() => {});
  }
  assert.deepEqual(seen, []);
});
