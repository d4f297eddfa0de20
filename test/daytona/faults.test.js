// What goes wrong between us and a sandbox while a command runs, and what the call then says: the
// verdict table. A command is sent once, whatever happens.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { daytonaReplies } from "../emulators/daytona/replies.js";
import { replies } from "../emulators/engine.js";
import { HANG_MS, eventually, rejection } from "../support/wait.js";
import { DELETE, EXECUTE, LOOK, START, living, open } from "./support.js";

const json = (body) => ({ instead: { status: 200, headers: { "content-type": "application/json" }, body } });

/** How many requests came that run a command. */
const runs = (engine) => engine.log.filter(({ route, body }) => route === EXECUTE && body.includes("mkfifo")).length;

/**
 * name, what becomes of the request, then the verdict: code, whether a repeat may succeed, whether the
 * command may have run. `state`: what the sandbox is made to be before; `looked`: the sandbox is asked for.
 */
const REFUSED = [
  ["502 with an empty body", { instead: daytonaReplies.badGateway() }, "PROVIDER", true, true],
  ["502 with a page", { instead: replies.html(502) }, "PROVIDER", true, true],
  ["503", { instead: daytonaReplies.toolbox(503, "busy", "UNAVAILABLE") }, "PROVIDER", true, true],
  ["504", { instead: replies.html(504) }, "PROVIDER", true, true],
  ["500 with an empty body", { instead: { status: 500 } }, "PROVIDER", true, true],
  ["the connection is closed", { instead: "close" }, "NETWORK", true, true],
  ["the connection is reset", { instead: "reset" }, "NETWORK", true, true],
  ["half of the JSON", { edit: (body) => body.subarray(0, body.length >> 1) }, "PROTOCOL", false, true],
  ["an empty answer", json(""), "PROTOCOL", false, true],
  ["an empty object", json("{}"), "PROTOCOL", false, true],
  ["an array", json("[]"), "PROTOCOL", false, true],
  ["null", json("null"), "PROTOCOL", false, true],
  ["a result that is no text", json('{"exitCode":0,"result":7}'), "PROTOCOL", false, true],
  ["a result without a report", json('{"exitCode":0,"result":"hello\\n"}'), "PROTOCOL", false, true],
  ["the shell was killed", json('{"exitCode":-1,"result":""}'), "PROTOCOL", false, true],
  [
    "a report that is cut off",
    { edit: (body) => body.toString().replace(/[0-9a-f]{32} end\\n/, "") },
    "PROTOCOL",
    false,
    true,
  ],
  ["very deep JSON", json("[".repeat(200_000)), "PROTOCOL", false, true],
  ["a web page with 200", { instead: replies.html(200) }, "PROTOCOL", false, true],
  ["no shell there", json('{"exitCode":-1,"result":"exec: \\"sh\\": executable file not found in $PATH"}'), "PROVIDER", true, false],
  ["429", { instead: daytonaReplies.tooMany(1, "authenticated") }, "RATE_LIMITED", true, false],
  ["403", { instead: daytonaReplies.toolbox(403, "forbidden") }, "FORBIDDEN", false, false],
  ["400", { instead: daytonaReplies.toolbox(400, "bad request: no") }, "INVALID_ARG", false, false],
  ["401 although the sandbox is there", { instead: daytonaReplies.unauthorized() }, "AUTH", false, false],
  ["no such route", { instead: daytonaReplies.noRoute() }, "NOT_FOUND", false, false],
  ["not started, says the runner alone", { instead: daytonaReplies.notStarted() }, "CONFLICT", true, false],
  ["no container, says the runner alone", { instead: daytonaReplies.noContainer() }, "CONFLICT", true, false],
];

describe("a command whose request fails while the sandbox is there", { concurrency: 4 }, () => {
  for (const [name, fault, code, retryable, mayHaveRun] of REFUSED) {
    test(name, async (t) => {
      const { emulator, engine, sandbox } = await open(t, {}, { onLost: "reject" });
      await sandbox.start();
      engine.fault(EXECUTE, fault);
      const error = await rejection(sandbox.shell("echo once"));
      assert.equal(error.code, `ERR_SANDBOX_${code}`, error.message);
      assert.equal(error.retryable, retryable);
      assert.equal(error.mayHaveRun, mayHaveRun);
      assert.equal(error.provider, "daytona");
      assert.match(error.message, mayHaveRun ? /may have run/ : /did not run|wait|again|forbidden|no/i);
      assert.ok(error.message.length < 1000);
      assert.ok(!error.message.includes(emulator.apiKey));
      assert.equal(runs(engine), 1, "the command was sent once");
      // Nothing says that the sandbox is gone: it goes on.
      assert.equal((await sandbox.shell("echo on")).output, "on\n");
      await sandbox.close();
      assert.equal(engine.count(DELETE), 1);
      assert.deepEqual(living(emulator), []);
    });
  }
});

/** How a sandbox goes away, and what its requests then get. */
const GONE = [
  ["destroyed: the runner has no container", {}, (emulator, id) => emulator.lose(id)],
  ["destroyed: the proxy knows the key no more", { proxyCacheMs: 0 }, (emulator, id) => emulator.lose(id)],
  ["destroyed: no runner is known", { proxyCacheMs: 0, goneStatus: 400 }, (emulator, id) => emulator.lose(id)],
  ["in error: it is removed, too", {}, (emulator, id) => emulator.lose(id, "error")],
  ["stopped, which ends an ephemeral one", {}, (emulator, id) => emulator.lose(id, "stopped")],
  ["stopping, which is the moment of an auto-stop", {}, (emulator, id) => emulator.lose(id, "stopping")],
];

/** Answers with 404 that are not the API's word on a sandbox. */
const FOREIGN = [
  ["a page", replies.html(404)],
  ["nothing", { status: 404 }],
  ["a gateway's JSON", { status: 404, headers: { "content-type": "application/json" }, body: '{"message":"no Route matched"}' }],
  ["a toolbox's JSON", daytonaReplies.toolbox(404, "not found: not found", "NOT_FOUND")],
  ["an unknown route", daytonaReplies.api(404, "Cannot GET /api/v9/sandbox/x")],
];

describe("a command whose sandbox is gone", { concurrency: 4 }, () => {
  for (const [name, settings, lose] of GONE) {
    test(name, async (t) => {
      const { emulator, engine, sandbox } = await open(t, settings);
      await sandbox.start();
      const { sandboxId } = sandbox;
      lose(emulator, sandboxId);
      const looks = engine.count(LOOK);
      const error = await rejection(sandbox.shell("echo never"));
      assert.equal(error.code, "ERR_SANDBOX_LOST", error.message);
      assert.equal(error.mayHaveRun, false, error.message);
      assert.match(error.message, /gone/);
      assert.equal(engine.count(EXECUTE), 1);
      assert.equal(engine.count(LOOK), looks + 1);
      assert.deepEqual(living(emulator).filter(({ state }) => state !== "stopped" && state !== "stopping"), []);
      // The next call has a sandbox of its own.
      assert.equal((await sandbox.shell("echo new")).output, "new\n");
      assert.notEqual(sandbox.sandboxId, sandboxId);
    });

    test(`${name}: with onLost "reject" the object is of no use any more`, async (t) => {
      const { emulator, engine, sandbox } = await open(t, settings, { onLost: "reject" });
      await sandbox.start();
      lose(emulator, sandbox.sandboxId);
      await rejection(sandbox.readFile("f"));
      assert.equal((await rejection(sandbox.shell("echo no"))).code, "ERR_SANDBOX_LOST");
      assert.equal(engine.count("POST /sandbox"), 1);
    });
  }

  for (const breakAs of ["502", "eof", "reset"]) {
    test(`C053 in the middle of a command, seen as ${breakAs}: lost, and nothing is repeated`, async (t) => {
      const { emulator, engine, sandbox } = await open(t, { breakAs });
      await sandbox.start();
      const running = rejection(sandbox.shell("sleep 20"));
      await engine.waitFor(EXECUTE);
      const { inside } = emulator.sandbox(sandbox.sandboxId);
      while (inside.size === 0) await new Promise((resolve) => setImmediate(resolve));
      emulator.lose(sandbox.sandboxId);
      const error = await running;
      assert.equal(error.code, "ERR_SANDBOX_LOST", error.message);
      assert.equal(error.mayHaveRun, true);
      assert.equal(runs(engine), 1);
    });
  }
});

describe("a 404 that is not the API's own", { concurrency: 4 }, () => {
  for (const [name, instead] of FOREIGN) {
    test(`${name}, to the look: the sandbox is not lost, and close() deletes it`, async (t) => {
      const { emulator, engine, sandbox } = await open(t);
      await sandbox.start();
      engine.fault(EXECUTE, { instead: daytonaReplies.badGateway() });
      engine.fault(LOOK, { instead });
      assert.equal((await rejection(sandbox.shell("true"))).code, "ERR_SANDBOX_PROVIDER");
      assert.equal((await sandbox.shell("echo on")).output, "on\n");
      await sandbox.close();
      assert.equal(engine.count("POST /sandbox"), 1);
      assert.deepEqual(living(emulator), []);
    });

    test(`${name}, to the delete: close() rejects, and a second one tries again`, async (t) => {
      const { emulator, engine, sandbox } = await open(t);
      await sandbox.start();
      engine.fault(DELETE, { instead }, { times: 20 });
      const error = await rejection(sandbox.close());
      assert.equal(error.code, "ERR_SANDBOX_PROTOCOL", error.message);
      assert.match(error.message, /may still exist/);
      engine.clearFaults();
      await sandbox.close();
      assert.deepEqual(living(emulator), []);
    });
  }

  test("to the search for what a lost create has made: close() rejects, and a second one finds it", async (t) => {
    const { emulator, engine, sandbox } = await open(t);
    engine.fault("POST /sandbox", { instead: "close", run: true });
    engine.fault(LOOK, { instead: replies.html(404) }, { times: 20 });
    await rejection(sandbox.start());
    assert.match((await rejection(sandbox.close())).message, /may still exist/);
    engine.clearFaults();
    await sandbox.close();
    assert.deepEqual(living(emulator), []);
  });

  test("while it starts: it is looked at again", async (t) => {
    const { engine, sandbox } = await open(t);
    engine.fault(LOOK, { instead: replies.html(404) });
    assert.equal((await sandbox.shell("echo on")).output, "on\n");
    assert.equal(engine.count("POST /sandbox"), 1);
  });
});

/** Stopped by its own clock, a file `f` in it. */
async function openStopped(t) {
  const opened = await open(t, { jobMs: 20 }, { autoStopMinutes: 1, autoDeleteMinutes: -1 });
  await opened.sandbox.writeFile("f", "kept");
  const { sandboxId } = opened.sandbox;
  const { settings } = opened.emulator;
  const { minuteMs } = settings;
  settings.minuteMs = 1;
  await eventually("an auto-stop", () => opened.emulator.sandbox(sandboxId).state === "stopped");
  settings.minuteMs = minuteMs;
  return { ...opened, sandboxId };
}

describe("C048 a sandbox that has stopped and keeps its files", { concurrency: 4 }, () => {
  test("the command that finds it so has it started, and runs once", async (t) => {
    const { engine, sandbox, sandboxId } = await openStopped(t);
    assert.equal((await sandbox.shell("echo x >>ran; cat f ran")).output, "keptx\n");
    assert.equal(sandbox.sandboxId, sandboxId);
    assert.equal(engine.count(START), 1);
    assert.equal(engine.count(EXECUTE), 2, "the one that was refused, and the one that ran");
    assert.equal(engine.count("POST /sandbox"), 1);
  });

  for (const [name, call] of [
    ["a read", async (sandbox) => assert.equal(await sandbox.readFile("f"), "kept")],
    ["a write", (sandbox) => sandbox.writeFile("g", "new")],
    ["a list", async (sandbox) => assert.ok((await sandbox.listFiles()).some(({ path }) => path === "f"))],
    ["a command with callbacks", async (sandbox) => {
      let seen = "";
      await sandbox.exec({ command: "cat f", stdin: "in", onStdout: (bytes) => (seen += Buffer.from(bytes)) });
      assert.equal(seen, "kept");
    }],
  ]) {
    test(name, async (t) => {
      const { engine, sandbox } = await openStopped(t);
      await call(sandbox);
      assert.equal(engine.count(START), 1);
      assert.equal(await sandbox.readFile("f"), "kept");
    });
  }

  test("twenty calls at once: one start", async (t) => {
    const { engine, sandbox } = await openStopped(t);
    const outputs = await Promise.all(Array.from({ length: 20 }, (_, i) => sandbox.shell(`echo ${i}`)));
    assert.deepEqual(outputs.map(({ output }) => output), Array.from({ length: 20 }, (_, i) => `${i}\n`));
    assert.equal(engine.count(START), 1);
  });

  test("it is stopping still: waited for", async (t) => {
    const { emulator, engine, sandbox } = await open(t, {}, { ephemeral: false });
    await sandbox.writeFile("f", "kept");
    emulator.script("stop", [{ state: "stopping", ms: 300 }, "stopped"]);
    emulator.fleet.stop(emulator.sandbox(sandbox.sandboxId), false);
    assert.equal((await sandbox.shell("cat f")).output, "kept");
    assert.equal(engine.count(START), 1);
  });

  test("in the middle of a command: not repeated, and the next one has it started", async (t) => {
    const { emulator, engine, sandbox } = await open(t, {}, { ephemeral: false });
    await sandbox.start();
    const running = rejection(sandbox.shell("echo x >>ran; sleep 20"));
    await eventually("the command", () => sandbox.readFile("ran"));
    emulator.lose(sandbox.sandboxId, "stopped");
    const error = await running;
    assert.match(error.code, /PROVIDER|NETWORK/);
    assert.equal(error.mayHaveRun, true);
    assert.match(error.message, /has stopped and keeps its files, and the next call starts it again/);
    assert.equal((await sandbox.shell("cat ran")).output, "x\n");
    assert.equal(engine.count(START), 1);
  });

  test("it cannot be started: a clear error, nothing is deleted, and a later call tries again", async (t) => {
    const { emulator, engine, sandbox } = await openStopped(t);
    engine.fault(START, { instead: daytonaReplies.quota() });
    const error = await rejection(sandbox.shell("true"));
    assert.equal(error.code, "ERR_SANDBOX_QUOTA");
    assert.match(error.message, /has stopped and could not be started again: .*its files are kept/s);
    assert.equal(error.mayHaveRun, false);
    assert.equal((await sandbox.shell("cat f")).output, "kept");
    await sandbox.close();
    assert.deepEqual(living(emulator), []);
  });

  test("it is deleted meanwhile: lost", async (t) => {
    const { emulator, engine, sandbox, sandboxId } = await openStopped(t);
    engine.fault(START, { instead: daytonaReplies.api(404, `Sandbox with ID or name ${sandboxId} not found`) });
    const error = await rejection(sandbox.shell("true"));
    assert.equal(error.code, "ERR_SANDBOX_LOST");
    assert.equal(error.mayHaveRun, false);
    assert.equal((await sandbox.shell("ls")).output, "");
    emulator.sandbox(sandboxId).jump("destroyed");
  });

  test("attached: started, too, and not deleted", async (t) => {
    const { emulator, engine, make, sandboxId } = await openStopped(t);
    const guest = make({ sandboxId });
    assert.equal(await guest.readFile("f"), "kept");
    emulator.lose(sandboxId, "stopped");
    assert.equal(await guest.readFile("f"), "kept");
    await guest.close();
    assert.equal(engine.count(START), 2);
    assert.equal(engine.count(DELETE), 0);
  });
});

describe("a toolbox that does not answer", { concurrency: 4 }, () => {
  test("C013 the sandbox is there: timed out, in time", async (t) => {
    const { engine, sandbox } = await open(t);
    await sandbox.start();
    engine.fault(EXECUTE, { instead: "hang" }, { times: Infinity });
    const begun = performance.now();
    const result = await sandbox.exec({ command: "echo x", timeoutSeconds: 0.2 });
    assert.ok(performance.now() - begun < HANG_MS);
    assert.equal(result.status, "timedOut");
    assert.equal(result.exitCode, 124);
    assert.equal(result.termination, "unknown");
    engine.clearFaults();
    assert.equal((await sandbox.shell("echo on")).output, "on\n");
  });

  test("C013 the sandbox is gone: lost", async (t) => {
    const { emulator, engine, sandbox } = await open(t);
    await sandbox.start();
    engine.fault(EXECUTE, { instead: "hang" }, { times: Infinity });
    emulator.lose(sandbox.sandboxId);
    const error = await rejection(sandbox.shell("echo x", { timeoutSeconds: 0.2 }));
    assert.equal(error.code, "ERR_SANDBOX_LOST");
  });

  test("the toolbox's own limit came first: timed out", async (t) => {
    const { engine, sandbox } = await open(t);
    engine.fault(EXECUTE, { instead: daytonaReplies.toolbox(408, "command execution timeout", "REQUEST_TIMEOUT") });
    assert.deepEqual(await sandbox.shell("echo x"), { output: "", exitCode: 124, timedOut: true });
    assert.equal(engine.count(EXECUTE), 1);
  });
});

describe("the proxy delivers a request twice, as it may when its own connection breaks", () => {
  test("the command runs once", async (t) => {
    const { emulator, engine, sandbox } = await open(t);
    const running = sandbox.shell("echo x >>ran.txt; while [ ! -e go ]; do sleep 0.05; done");
    const { path, body } = await eventually("the request", () => engine.log.find(({ route, body }) => route === EXECUTE && body));
    await eventually("the command", () => sandbox.readFile("ran.txt"));
    const headers = { authorization: `Bearer ${emulator.apiKey}`, "content-type": "application/json" };
    const second = await fetch(`${emulator.proxyUrl}${path}`, { method: "POST", headers, body });
    assert.match((await second.json()).result, / again /);
    await sandbox.writeFile("go", "");
    assert.deepEqual(await running, { output: "", exitCode: 0 });
    assert.equal(await sandbox.readFile("ran.txt"), "x\n");
  });

  test("the second delivery's answer comes back: the first one's report is asked for", async (t) => {
    const { engine, sandbox } = await open(t);
    engine.fault(EXECUTE, { edit: (body) => body.toString().replace(" ran 3 ", " again 0 ") });
    assert.deepEqual(await sandbox.shell("echo x | tee -a ran.txt; exit 3"), { output: "x\n", exitCode: 3 });
    assert.equal(await sandbox.readFile("ran.txt"), "x\n");
    assert.equal(runs(engine), 1);
  });
});

/** The command that is under way writes this file first, and waits for the other one. */
const WAITS = "echo x >>ran.txt; while [ ! -e go ]; do sleep 0.02; done; ";

/** Cuts the request of the command when it has begun. */
async function cutOff({ emulator, sandbox }, how) {
  await eventually("the command", () => sandbox.readFile("ran.txt"));
  assert.equal(emulator.cut(sandbox.sandboxId, how), 1);
}

/** That it ran once, and that the way went on from there. */
async function assertOnce({ engine, sandbox }) {
  assert.equal(await sandbox.readFile("ran.txt"), "x\n");
  assert.equal(runs(engine), 1);
}

describe("a command whose request is cut off, and that runs on", { concurrency: 4 }, () => {
  for (const how of ["504", "502", "eof", "reset"]) {
    test(`seen as ${how}: it ends later`, async (t) => {
      const use = await open(t);
      const running = use.sandbox.exec({ command: `${WAITS}echo out; echo err >&2; exit 7` });
      await cutOff(use, how);
      await use.engine.waitFor(EXECUTE, 2);
      await use.sandbox.writeFile("go", "");
      const { stdout, stderr, exitCode, status } = await running;
      assert.deepEqual({ stdout, stderr, exitCode, status }, { stdout: "out\n", stderr: "err\n", exitCode: 7, status: "exited" });
      await assertOnce(use);
    });

    test(`seen as ${how}: it ends at once`, async (t) => {
      const use = await open(t);
      const running = use.sandbox.shell(`${WAITS}echo out; exit 7`);
      await use.sandbox.writeFile("go", "");
      await cutOff(use, how).catch(() => {});
      assert.deepEqual(await running, { output: "out\n", exitCode: 7 });
      await assertOnce(use);
    });
  }

  for (const [name, fault] of [
    ["502 in place of the report", { instead: daytonaReplies.badGateway(), run: true }],
    ["504 in place of the report", { instead: replies.html(504), run: true }],
    ["closed in place of the report", { instead: "close", run: true }],
    ["the report breaks off", { stop: { after: 20, how: "drop", keepLength: true } }],
  ]) {
    test(`${name}: it has ended before`, async (t) => {
      const use = await open(t);
      use.engine.fault(EXECUTE, fault);
      assert.deepEqual(await use.sandbox.shell("echo x | tee -a ran.txt; exit 7"), { output: "x\n", exitCode: 7 });
      await assertOnce(use);
    });
  }

  test("both outputs in one, exact bytes, in order", async (t) => {
    const use = await open(t);
    const running = use.sandbox.shell(`${WAITS}echo 1; echo 2 >&2; printf '\\000\\377'; echo 3 >&2`);
    await cutOff(use);
    await use.sandbox.writeFile("go", "");
    assert.deepEqual(await running, { output: "1\n2\n\0\ufffd3\n", exitCode: 0 });
    await assertOnce(use);
  });

  for (const truncate of ["head", "middle"]) {
    test(`much output, of which the wanted part comes: ${truncate}`, async (t) => {
      const use = await open(t);
      const size = 38_888_896; // of seq 1 5000000
      const running = use.sandbox.exec({
        command: `${WAITS}seq 1 5000000; echo e >&2`,
        maxOutputBytes: 1000,
        truncate,
        timeoutSeconds: 120,
      });
      await cutOff(use);
      await use.sandbox.writeFile("go", "");
      const { stdout, stderr, droppedBytes, exitCode } = await running;
      assert.ok(stdout.startsWith("1\n2\n"));
      assert.equal(stdout.endsWith("\n5000000\n"), truncate === "middle");
      assert.equal(stderr, "e\n");
      assert.equal(droppedBytes.stdout, size - 1000);
      assert.equal(exitCode, 0);
      await assertOnce(use);
    });
  }

  test("callbacks go on hearing, and all of it", async (t) => {
    const use = await open(t);
    const heard = { out: "", err: "" };
    const running = use.sandbox.exec({
      command: `${WAITS}seq 1 300000; echo e >&2; while [ ! -e end ]; do sleep 0.02; done; echo last; exit 7`,
      onStdout: (text) => (heard.out += text),
      onStderr: (text) => (heard.err += text),
      maxOutputBytes: 100,
    });
    await eventually("the command", () => use.sandbox.readFile("ran.txt"));
    await eventually("a fetch", () => use.engine.count(EXECUTE) >= 2);
    // The fetch that is under way is cut, too.
    use.emulator.cut(use.sandbox.sandboxId, "reset");
    await use.sandbox.writeFile("go", "");
    await eventually("what came after the cut", () => heard.out.length === 1988895 && heard.err === "e\n");
    await use.sandbox.writeFile("end", "");
    assert.equal((await running).exitCode, 7);
    assert.ok(heard.out.endsWith("\n300000\nlast\n"));
    assert.equal(heard.out.length, 1988895 + 5);
    await assertOnce(use);
  });

  test("a limit that passes meanwhile is kept, with the output so far", async (t) => {
    const use = await open(t);
    const running = use.sandbox.exec({ command: `echo out; ${WAITS}`, timeoutSeconds: 5 });
    await cutOff(use);
    const { stdout, status, exitCode, termination } = await running;
    assert.deepEqual({ stdout, status, exitCode, termination }, { stdout: "out\n", status: "timedOut", exitCode: 124, termination: "confirmed" });
    await assertOnce(use);
  });

  test("an abort ends it", async (t) => {
    const use = await open(t);
    const controller = new AbortController();
    const running = use.sandbox.exec({ command: `echo out; ${WAITS}`, signal: controller.signal, timeoutSeconds: Infinity });
    await cutOff(use);
    await use.engine.waitFor(EXECUTE, 2);
    controller.abort();
    const { stdout, status, termination } = await running;
    assert.deepEqual({ stdout, status, termination }, { stdout: "out\n", status: "cancelled", termination: "confirmed" });
    await assertOnce(use);
  });

  test("further requests that are cut or refused are sent again", async (t) => {
    const use = await open(t);
    const running = use.sandbox.shell(`${WAITS}exit 7`);
    await eventually("the command", () => use.sandbox.readFile("ran.txt"));
    use.engine.fault(EXECUTE, { instead: daytonaReplies.badGateway() });
    use.engine.fault(EXECUTE, { instead: daytonaReplies.tooMany(1, "authenticated") });
    use.engine.fault(EXECUTE, { instead: "reset" });
    use.emulator.cut(use.sandbox.sandboxId);
    await use.engine.waitFor(EXECUTE, 5);
    await use.sandbox.writeFile("go", "");
    assert.deepEqual(await running, { output: "", exitCode: 7 });
    await assertOnce(use);
  });

  test("the end of much output is fetched again when that breaks off", async (t) => {
    const use = await open(t);
    use.engine.fault(EXECUTE, { instead: daytonaReplies.badGateway(), run: true }, { every: 3 });
    let heard = "";
    const { exitCode } = await use.sandbox.exec({
      command: "echo x >>ran.txt; seq 1 1000000; exit 7",
      onStdout: (text) => (heard += text),
      timeoutSeconds: 120,
    });
    assert.equal(exitCode, 7);
    assert.equal(heard.length, 6888896);
    assert.ok(heard.endsWith("\n1000000\n"));
    use.engine.clearFaults();
    await assertOnce(use);
  });

  test("what ran it is killed: it may have run", async (t) => {
    const use = await open(t);
    const running = rejection(use.sandbox.shell(`cat /tmp/.cloudsandbox-$CLOUDSANDBOX_RUN/pid >pid; ${WAITS}`));
    await cutOff(use, "eof");
    await use.engine.waitFor(EXECUTE, 2);
    process.kill(Number(await use.sandbox.readFile("pid")), "SIGKILL");
    const error = await running;
    assert.equal(error.code, "ERR_SANDBOX_NETWORK", error.message);
    assert.match(error.message, /killed.*may have run/);
    assert.equal(error.mayHaveRun, true);
    await use.sandbox.writeFile("go", "");
    await assertOnce(use);
  });

  for (const [name, state] of [["destroyed"], ["in error", "error"]]) {
    test(`the sandbox is ${name} soon after: lost`, async (t) => {
      const use = await open(t, {}, { onLost: "reject" });
      const running = rejection(use.sandbox.shell(WAITS));
      await cutOff(use);
      await use.engine.waitFor(EXECUTE, 2);
      use.emulator.lose(use.sandbox.sandboxId, state);
      const error = await running;
      assert.equal(error.code, "ERR_SANDBOX_LOST", error.message);
      assert.equal(error.mayHaveRun, true);
      assert.equal(runs(use.engine), 1);
    });
  }

  test("nobody can be asked: the first error, after some attempts", async (t) => {
    const use = await open(t);
    const running = rejection(use.sandbox.shell(WAITS));
    await eventually("the command", () => use.sandbox.readFile("ran.txt"));
    use.engine.fault(EXECUTE, { instead: daytonaReplies.badGateway() }, { times: Infinity });
    use.emulator.cut(use.sandbox.sandboxId);
    const error = await running;
    assert.equal(error.code, "ERR_SANDBOX_PROVIDER", error.message);
    assert.equal(error.status, 504);
    assert.equal(error.mayHaveRun, true);
    use.engine.clearFaults();
    await use.sandbox.writeFile("go", "");
    await assertOnce(use);
  });
});

test("callbacks hear again after fetches that fail", async (t) => {
  const { engine, sandbox } = await open(t);
  let heard = "";
  engine.fault(EXECUTE, { instead: daytonaReplies.badGateway() }, { skip: 1, times: 2 });
  const running = sandbox.exec({
    command: "echo one; while [ ! -e go ]; do sleep 0.02; done; echo two",
    onStdout: (text) => (heard += text),
  });
  await eventually("the output", () => heard === "one\n");
  await sandbox.writeFile("go", "");
  assert.equal((await running).stdout, "one\ntwo\n");
  assert.equal(heard, "one\ntwo\n");
  assert.equal(runs(engine), 1);
});
