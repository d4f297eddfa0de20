// From create to delete: both generations of the control plane, attaching, lifetimes, pauses, and how many
// requests and connections all of it takes.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";

import { onRecord } from "cloudsandbox/records";

import { makeCertificate } from "../emulators/certificate.js";
import { replies } from "../emulators/engine.js";
import { sharesHttp2 } from "../support/libcurl.js";
import { eventually, rejection } from "../support/wait.js";
import { open, withoutVariables } from "./support.js";

withoutVariables();

const CREATE = "POST /v2/sandboxes";
const CREATE_1 = "POST /sandboxes";
const START = "process.Process/Start";
const DELETE = "DELETE /sandboxes/{id}";
const REFRESH = "POST /sandboxes/{id}/refreshes";

describe("requests and connections", { concurrency: 8 }, () => {
  const tls = makeCertificate(["127.0.0.1"]);
  for (const [name, settings] of Object.entries({ "HTTP/1.1": {}, "HTTP/2": { tls } })) {
    test(`${name}: what each call costs`, async (t) => {
      const { engine, make, routes } = await open(t, settings);
      const sandbox = make();
      const costs = async (call, expected) => {
        await call();
        assert.deepEqual(routes().sort(), [...expected].sort());
      };
      await costs(() => sandbox.start(), [CREATE]);
      await costs(() => sandbox.start(), []);
      await costs(() => sandbox.shell("true"), [START]);
      await costs(() => sandbox.run("1"), [START]);
      await costs(() => sandbox.exec({ argv: ["true"] }), [START]);
      await costs(() => sandbox.writeFile("d/f", "x"), ["envd POST /files"]);
      await costs(() => sandbox.readFile("d/f"), ["envd GET /files"]);
      await costs(() => sandbox.readFile("absent"), ["envd GET /files"]);
      await costs(() => sandbox.listFiles(), ["filesystem.Filesystem/ListDir"]);
      await costs(() => sandbox.exec({ argv: ["cat"], stdin: "x" }), ["envd POST /files", START]);
      await costs(() => sandbox.shell(`: ${"x".repeat(200_000)}`), ["envd POST /files", START]);
      const abort = new AbortController();
      await costs(
        () => sandbox.exec({ command: "echo; sleep 300", signal: abort.signal, onStdout: () => abort.abort() }),
        [START, START],
      );
      await costs(() => sandbox.close(), [DELETE]);
      assert.equal(engine.open <= 4, true);
    });

    test(`${name}: one connection to each host is used for everything`, async (t) => {
      const { engine, make } = await open(t, settings);
      const sandbox = make();
      for (let i = 0; i < 10; i++) {
        await sandbox.shell("true");
        await sandbox.writeFile("f", "x");
        await sandbox.readFile("f");
      }
      await sandbox.close();
      assert.deepEqual(engine.connections, { api: 1, sandbox: 1 });
      assert.equal(engine.accepted, 2);
    });
  }

  test("HTTP/2: calls at a time share the connection, also of several sandboxes, where libcurl can", async (t) => {
    const { engine, make } = await open(t, { tls });
    const sandboxes = [make(), make(), make()];
    await Promise.all(sandboxes.map((sandbox) => sandbox.start()));
    await Promise.all(sandboxes.flatMap((sandbox) => Array.from({ length: 5 }, () => sandbox.shell("sleep 0.2"))));
    const shares = sharesHttp2();
    assert.deepEqual(engine.connections, shares ? { api: 1, sandbox: 1 } : { api: 3, sandbox: 15 });
    await Promise.all(sandboxes.flatMap((sandbox) => Array.from({ length: 5 }, () => sandbox.shell("sleep 0.2"))));
    assert.equal(engine.connections.sandbox, shares ? 1 : 15, "they are kept");
  });
});

describe("two generations of the control plane", { concurrency: 8 }, () => {
  for (const v2 of [404, 405]) {
    test(`${v2}: the first one is used, securely, and remembered for that host`, async (t) => {
      const { engine, emulator, make } = await open(t, { v2 });
      const sandbox = make({ lifetimeSeconds: 60 });
      assert.equal((await sandbox.shell("echo ok")).output, "ok\n");
      assert.deepEqual([engine.count(CREATE), engine.count(CREATE_1)], [1, 1]);
      const { secure, timeout, templateID } = JSON.parse(engine.requests(CREATE_1)[0].body);
      assert.deepEqual({ secure, timeout, templateID }, { secure: true, timeout: 60, templateID: "base" });
      assert.ok(emulator.sandbox(sandbox.sandboxId).envdAccessToken);
      await make().start();
      assert.deepEqual([engine.count(CREATE), engine.count(CREATE_1)], [1, 2]);
    });
  }

  test("a 404 about the template is not taken for it", async (t) => {
    const { engine, make } = await open(t);
    for (const template of ["nope", "base:v9"]) {
      const error = await rejection(make({ template }).start());
      assert.equal(error.code, "ERR_SANDBOX_NOT_FOUND");
      assert.match(error.message, /template/);
    }
    assert.equal(engine.count(CREATE_1), 0);
  });

  test("a lost create is found in the first one, too", async (t) => {
    const { engine, make, existing } = await open(t, { v2: 404 });
    const sandbox = make();
    engine.fault(CREATE_1, { instead: "reset", run: true });
    engine.fault("GET /v2/sandboxes", { instead: replies.json(404, { code: 404, message: "validation error" }) });
    await rejection(sandbox.start());
    await sandbox.close();
    assert.deepEqual(existing(), []);
  });

  test("attaching falls back as well", async (t) => {
    const { emulator, make } = await open(t, { v2: 404 });
    const owner = make();
    await owner.start();
    const guest = make({ sandboxId: owner.sandboxId });
    assert.equal((await guest.shell("echo ok")).output, "ok\n");
    assert.equal(emulator.engine.count("POST /sandboxes/{id}/connect"), 1);
  });
});

describe("an existing sandbox", { concurrency: 8 }, () => {
  test("C189 an answer about another one is not used: nothing runs in that, nothing of it is deleted", async (t) => {
    const { engine, make, existing } = await open(t);
    const [mine, other] = [make(), make()];
    await Promise.all([mine.start(), other.start()]);
    const swap = { edit: (body) => body.toString().replaceAll(mine.sandboxId, other.sandboxId) };
    engine.fault("POST /v2/sandboxes/{id}/connect", swap, { times: Infinity });
    const guest = make({ sandboxId: mine.sandboxId, owned: true });
    for (const call of [() => guest.shell("touch was-here"), () => mine.resume()]) {
      const error = await rejection(call());
      assert.equal(error.code, "ERR_SANDBOX_PROTOCOL", error.message);
      assert.match(error.message, /about another sandbox/);
    }
    await guest.close();
    assert.equal(await other.readFile("was-here"), null);
    assert.equal((await mine.shell("echo ours")).output, "ours\n");
    assert.ok(existing().includes(other.sandboxId));
  });

  test("is used, and left alone by close()", async (t) => {
    const { engine, make, existing } = await open(t);
    const owner = make();
    await owner.writeFile("f", "of the owner");
    const guest = make({ sandboxId: owner.sandboxId });
    assert.equal(await guest.readFile("f"), "of the owner");
    assert.equal(guest.sandboxId, owner.sandboxId);
    assert.equal(engine.count(CREATE), 1);
    await guest.close();
    assert.deepEqual(existing(), [owner.sandboxId]);
    assert.equal(engine.count(DELETE), 0);
  });

  test("is deleted when `owned`", async (t) => {
    const { make, existing } = await open(t);
    const owner = make();
    await owner.start();
    const guest = make({ sandboxId: `${owner.sandboxId}-6532622b`, owned: true });
    await guest.start();
    await guest.close();
    assert.deepEqual(existing(), []);
  });

  test("that is not there: NOT_FOUND, and nothing is created", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make({ sandboxId: "inosuchsandbox" });
    const error = await rejection(sandbox.shell("true"));
    assert.deepEqual([error.code, error.status], ["ERR_SANDBOX_NOT_FOUND", 404]);
    await sandbox.close();
    assert.deepEqual([engine.count(CREATE), engine.count(DELETE)], [0, 0]);
  });

  test("that gets lost is not replaced", async (t) => {
    const { emulator, make, existing } = await open(t);
    const owner = make();
    await owner.start();
    const guest = make({ sandboxId: owner.sandboxId });
    await guest.start();
    emulator.lose(owner.sandboxId);
    for (const _ of [1, 2]) assert.equal((await rejection(guest.shell("true"))).code, "ERR_SANDBOX_LOST");
    assert.deepEqual(existing(), []);
  });

  test("that is paused goes on", async (t) => {
    const { emulator, make } = await open(t);
    const owner = make();
    await owner.writeFile("f", "kept");
    await owner.pause();
    assert.equal(await make({ sandboxId: owner.sandboxId }).readFile("f"), "kept");
    assert.equal(emulator.sandbox(owner.sandboxId).state, "running");
  });
});

describe("lifetime", { concurrency: 8 }, () => {
  test("a sandbox whose time is up is lost, and replaced by the next call", async (t) => {
    const { emulator, make } = await open(t);
    const sandbox = make({ lifetimeSeconds: 5 });
    await sandbox.writeFile("f", "x");
    await emulator.ended(sandbox.sandboxId);
    assert.equal((await rejection(sandbox.readFile("f"))).code, "ERR_SANDBOX_LOST");
    assert.equal(await sandbox.readFile("f"), null);
  });

  test("a command that may take longer keeps it alive, and no longer than that", async (t) => {
    const { engine, emulator, make } = await open(t);
    const sandbox = make({ lifetimeSeconds: 6 });
    const result = await sandbox.shell("sleep 7; echo done", { timeoutSeconds: 60 });
    assert.deepEqual(result, { output: "done\n", exitCode: 0 });
    assert.ok(engine.count(REFRESH) >= 1);
    assert.deepEqual(JSON.parse(engine.requests(REFRESH)[0].body), { duration: 15 });
    const before = engine.count(REFRESH);
    const { endAt } = emulator.sandbox(sandbox.sandboxId);
    assert.ok(endAt - Date.now() <= 15_000);
    assert.equal(engine.count(REFRESH), before);
  });

  test("a command that ends before the lifetime does costs nothing", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make();
    await sandbox.shell("true", { timeoutSeconds: 200 });
    assert.equal(engine.count(REFRESH), 0);
    await sandbox.exec({ command: "true", timeoutSeconds: 3600 });
    assert.equal(engine.count(REFRESH), 0, "it had ended before the time came");
  });

  test("keeping it alive fails once: it is tried again", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make({ lifetimeSeconds: 8 });
    await sandbox.start();
    engine.fault(REFRESH, { instead: replies.html(503) });
    const running = sandbox.exec({ command: "sleep 300", timeoutSeconds: 10 });
    await eventually("the second try", () => engine.count(REFRESH) === 2);
    assert.equal((await running).status, "timedOut");
  });

  test("keeping it alive is refused: it is not asked for again", async (t) => {
    const { engine, make } = await open(t);
    // It is asked for after 4 s; what is tried again would be so a second later.
    const sandbox = make({ lifetimeSeconds: 8 });
    await sandbox.start();
    engine.fault(REFRESH, { instead: replies.json(403, { code: 403, message: "team is blocked" }) }, { times: Infinity });
    assert.equal((await sandbox.shell("sleep 5.2; echo done", { timeoutSeconds: 60 })).output, "done\n");
    await sandbox.shell("true", { timeoutSeconds: 60 });
    assert.equal(engine.count(REFRESH), 1);
  });

  test("keeping it alive is answered with Retry-After: that is waited for", async (t) => {
    const { engine, make } = await open(t);
    // Without a word from the service it would be tried again after 1 s.
    const sandbox = make({ lifetimeSeconds: 8 });
    await sandbox.start();
    engine.fault(REFRESH, { instead: replies.tooMany(2) });
    const running = sandbox.shell("sleep 9; echo done", { timeoutSeconds: 60 });
    await engine.waitFor(REFRESH);
    const begin = performance.now();
    await eventually("the second try", () => engine.count(REFRESH) === 2);
    assert.ok(performance.now() - begin >= 1900);
    assert.equal((await running).output, "done\n");
  });

  test("set while commands run: it is prolonged in time, also for one that fitted before", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make();
    await sandbox.start();
    const running = [10, 3600].map((timeoutSeconds) =>
      sandbox.exec({ command: "sleep 7; echo done", timeoutSeconds }),
    );
    await eventually("the start of both", () => engine.count(START) === 2);
    await sandbox.setLifetime(6);
    for (const { status, stdout } of await Promise.all(running)) assert.deepEqual([status, stdout], ["exited", "done\n"]);
    assert.deepEqual(engine.requests(REFRESH).map((entry) => JSON.parse(entry.body)), [{ duration: 15 }]);
  });

  test("set while one command runs that fits into it: nothing is asked for", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make({ lifetimeSeconds: 5 });
    await sandbox.start();
    const running = sandbox.exec({ command: "sleep 4; echo done", timeoutSeconds: 20 });
    await eventually("the start", () => engine.count(START) === 1);
    await sandbox.setLifetime(600);
    assert.equal((await running).stdout, "done\n");
    assert.equal(engine.count(REFRESH), 0);
  });

  test("can be set", async (t) => {
    const { emulator, make } = await open(t);
    const sandbox = make();
    await sandbox.start();
    await sandbox.setLifetime(1000);
    const { endAt } = emulator.sandbox(sandbox.sandboxId);
    assert.ok(endAt - Date.now() > 990_000 && endAt - Date.now() <= 1_000_000);
    for (const seconds of [0, -1, 1.5, 86401, "5"]) {
      assert.match((await rejection(sandbox.setLifetime(seconds))).message, /seconds/);
    }
  });

  test("C052 more than the plan allows: the provider's words", async (t) => {
    const { make } = await open(t, { maxHours: 1 });
    const error = await rejection(make({ lifetimeSeconds: 7200 }).start());
    assert.deepEqual([error.code, error.status], ["ERR_SANDBOX_INVALID_ARG", 400]);
    assert.match(error.message, /Timeout cannot be greater than 1 hours/);
  });

  test("before a start there is nothing to change", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make();
    for (const call of [() => sandbox.setLifetime(5), () => sandbox.pause(), () => sandbox.resume()]) {
      assert.equal((await rejection(call())).code, "ERR_SANDBOX_NOT_READY");
    }
    assert.equal(engine.log.length, 0);
  });
});

describe("pause and resume", { concurrency: 8 }, () => {
  test("R8 a pause costs no sandbox seconds, and is recorded", async (t) => {
    const { make } = await open(t);
    const sandbox = make({ budget: { sandboxSeconds: 5 } });
    const records = [];
    t.after(onRecord((record) => record.type === "control" && record.sandboxId === sandbox.sandboxId && records.push(record)));
    await sandbox.start();
    await sandbox.setLifetime(200);
    await sandbox.pause();
    await delay(5200);
    const refused = await rejection(sandbox.shell("true"));
    assert.equal(refused.code, "ERR_SANDBOX_CONFLICT");
    await sandbox.resume({ lifetimeSeconds: 100 });
    assert.equal((await sandbox.shell("echo on")).output, "on\n");
    assert.deepEqual(
      records.map(({ action, seconds, error }) => [action, seconds, error]),
      [["lifetime", 200, undefined], ["pause", undefined, undefined], ["resume", 100, undefined]],
    );
    await eventually("the seconds after it count", async () => {
      const { code } = await sandbox.shell("true").catch((error) => error);
      return code === "ERR_SANDBOX_QUOTA";
    });
  });

  test("files stay; calls in between are refused and say why", async (t) => {
    const { emulator, make } = await open(t);
    const sandbox = make();
    await sandbox.writeFile("f", "kept");
    await sandbox.pause();
    await sandbox.pause();
    assert.equal(emulator.sandbox(sandbox.sandboxId).state, "paused");
    for (const call of [() => sandbox.shell("true"), () => sandbox.readFile("f"), () => sandbox.writeFile("f", "x")]) {
      const error = await rejection(call());
      assert.equal(error.code, "ERR_SANDBOX_CONFLICT");
      assert.match(error.message, /paused.*resume/);
    }
    await sandbox.resume({ lifetimeSeconds: 500 });
    assert.equal(await sandbox.readFile("f"), "kept");
    const { endAt } = emulator.sandbox(sandbox.sandboxId);
    assert.ok(endAt - Date.now() > 490_000);
  });

  test("C053 autoPause: at the end of its lifetime it is paused, not lost", async (t) => {
    const { emulator, engine, make } = await open(t);
    const sandbox = make({ lifetimeSeconds: 5, autoPause: true });
    await sandbox.writeFile("f", "kept");
    const { sandboxId } = sandbox;
    await eventually("the pause", () => emulator.sandbox(sandboxId).state === "paused");
    assert.equal((await rejection(sandbox.readFile("f"))).code, "ERR_SANDBOX_CONFLICT");
    await sandbox.resume({ lifetimeSeconds: 100 });
    assert.equal(await sandbox.readFile("f"), "kept");
    assert.deepEqual(JSON.parse(engine.requests("POST /v2/sandboxes/{id}/connect")[0].body), { timeout: 100 });
  });

  test("a paused sandbox is deleted by close()", async (t) => {
    const { make, existing } = await open(t);
    const sandbox = make();
    await sandbox.start();
    await sandbox.pause();
    await sandbox.close();
    assert.deepEqual(existing(), []);
  });

  test("C192 a call during a pause is refused, nothing is lost, and nothing new is made", async (t) => {
    const { engine, existing, make } = await open(t);
    const sandbox = make();
    await sandbox.writeFile("f", "kept");
    const { sandboxId } = sandbox;
    let said;
    const heard = new Promise((resolve) => (said = resolve));
    const running = rejection(sandbox.exec({ command: "echo a; sleep 300", onStdout: said }));
    await heard;
    const hold = engine.gate();
    engine.fault("POST /sandboxes/{id}/pause", { hold });
    const paused = sandbox.pause();
    await hold.arrived();
    const errors = await Promise.all([
      running,
      ...[() => sandbox.shell("true"), () => sandbox.readFile("f"), () => sandbox.writeFile("f", "x")].map((call) => rejection(call())),
    ]);
    for (const error of errors) {
      assert.equal(error.code, "ERR_SANDBOX_CONFLICT");
      assert.match(error.message, /paus.*resume/);
    }
    assert.deepEqual(errors.map((error) => error.mayHaveRun), [true, false, false, false]);
    hold.open();
    await paused;
    assert.equal((await rejection(sandbox.shell("true"))).code, "ERR_SANDBOX_CONFLICT");
    await sandbox.resume();
    assert.equal(await sandbox.readFile("f"), "kept");
    assert.equal(sandbox.sandboxId, sandboxId);
    assert.deepEqual(existing(), [sandboxId]);
  });

  test("a command that runs at the pause is told as that, not as lost", async (t) => {
    const { make } = await open(t);
    const sandbox = make();
    await sandbox.start();
    let said;
    const heard = new Promise((resolve) => (said = resolve));
    const failed = rejection(sandbox.exec({ command: "echo a; sleep 300", onStdout: said }));
    await heard;
    await sandbox.pause();
    const error = await failed;
    assert.deepEqual([error.code, error.mayHaveRun], ["ERR_SANDBOX_CONFLICT", true]);
  });

  test("a pause can be aborted before it is sent", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make();
    await sandbox.start();
    const reason = new Error("no");
    assert.equal(await rejection(sandbox.pause({ signal: AbortSignal.abort(reason) })), reason);
    assert.equal(engine.count("POST /sandboxes/{id}/pause"), 0);
  });
});

describe("older daemons", { concurrency: 8 }, () => {
  for (const envdVersion of ["0.2.0", "0.3.9", "0.4.0", "0.5.6", "0.5.7", "0.5.14", "1.0.0"]) {
    test(`C054 ${envdVersion}: commands, files and no waiting for input`, async (t) => {
      const { engine, make } = await open(t, { envdVersion });
      const sandbox = make();
      const bytes = Uint8Array.from({ length: 1000 }, (_, i) => i & 255);
      await sandbox.writeFile("a b/f", bytes);
      assert.deepEqual(await sandbox.readBytes("a b/f"), bytes);
      assert.deepEqual(await sandbox.shell("cat; echo ok"), { output: "ok\n", exitCode: 0 });
      const [{ headers }] = engine.requests("envd POST /files");
      assert.equal(headers["content-type"].split(";")[0], "multipart/form-data");
      const user = ["0.2.0", "0.3.9"].includes(envdVersion) ? "Basic dXNlcjo=" : undefined;
      assert.equal(engine.requests(START)[0].headers.authorization, user);
    });
  }
});
