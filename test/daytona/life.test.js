// Creating, waiting, attaching, deleting; and nothing left behind.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { daytonaReplies } from "../emulators/daytona/replies.js";
import { replies } from "../emulators/engine.js";
import { rejection } from "../support/wait.js";
import { CREATE, DELETE, EXECUTE, LOOK, START, living, open, sent, startEmulator } from "./support.js";

const WORK_DIR = "toolbox GET /work-dir";

describe("create", { concurrency: 4 }, () => {
  test("what is said without options", async (t) => {
    const { engine, emulator, sandbox } = await open(t);
    await sandbox.start();
    const [body] = sent(engine, CREATE);
    const { name, labels, ...rest } = body;
    assert.match(name, /^cloudsandbox-[0-9a-f]{32}$/);
    assert.deepEqual(labels, { "code-toolbox-language": "python", cloudsandbox: name.slice(13) });
    assert.deepEqual(rest, { env: {}, autoStopInterval: 5, autoDeleteInterval: 0 });
    const [entry] = engine.log;
    assert.equal(entry.headers.authorization, `Bearer ${emulator.apiKey}`);
    assert.equal(entry.headers["content-type"], "application/json");
    assert.match(entry.headers["x-daytona-sdk-version"], /^0\.\d+\.\d+$/);
    assert.equal(entry.headers["x-daytona-organization-id"], undefined);
    assert.equal(sandbox.sandboxId, living(emulator)[0].id);
  });

  test("what is said with all of them", async (t) => {
    const { engine, sandbox } = await open(t, {}, {
      workspace: "my box",
      image: "debian:12",
      language: "node",
      target: "eu",
      user: "worker",
      env: { LANG: "C", WEIRD: "a\"b\\c\u{1F600}" },
      labels: { owner: "me" },
      cpu: 2,
      memory: 4,
      disk: 5,
      autoStopMinutes: 0,
      autoArchiveMinutes: 60,
      autoDeleteMinutes: 30,
      networkBlockAll: true,
      networkAllowList: ["10.0.0.0/8", "192.168.0.0/16"],
      domainAllowList: "*.example.com",
      public: true,
    });
    await sandbox.start();
    const [{ labels, ...rest }] = sent(engine, CREATE);
    assert.deepEqual(Object.keys(labels).sort(), ["cloudsandbox", "code-toolbox-language", "owner"]);
    assert.equal(labels["code-toolbox-language"], "javascript");
    assert.deepEqual(rest, {
      name: "my box",
      buildInfo: { dockerfileContent: "FROM debian:12\n" },
      target: "eu",
      user: "worker",
      env: { LANG: "C", WEIRD: "a\"b\\c\u{1F600}" },
      cpu: 2,
      memory: 4,
      disk: 5,
      autoStopInterval: 0,
      autoArchiveInterval: 60,
      autoDeleteInterval: 30,
      networkBlockAll: true,
      networkAllowList: "10.0.0.0/8,192.168.0.0/16",
      domainAllowList: "*.example.com",
      public: true,
    });
    assert.equal((await sandbox.shell("printf %s \"$WEIRD\"")).output, "a\"b\\c\u{1F600}");
  });

  test("a JWT goes with the organization", async (t) => {
    const { emulator, engine } = await startEmulator(t);
    const { DaytonaSandbox } = await import("cloudsandbox");
    const { jwtToken, organizationId } = emulator;
    const sandbox = new DaytonaSandbox({ jwtToken, organizationId, baseURL: `${emulator.apiUrl}/` });
    await sandbox.start();
    await sandbox.close();
    assert.ok(engine.log.every(({ headers }) => headers["x-daytona-organization-id"] === organizationId));
    assert.ok(engine.log.every(({ path }) => !path.includes("//")));
  });

  test("a warm sandbox needs no look", async (t) => {
    const { engine, sandbox } = await open(t, { warmPool: true });
    await sandbox.start();
    assert.equal(engine.count(LOOK), 0);
  });

  test("states of the way, and ones that nobody knows, are waited for", async (t) => {
    const { emulator, engine, sandbox } = await open(t);
    emulator.script("create", ["pending_build", "building_snapshot", "dancing", "pulling_snapshot", "starting", "started"]);
    await sandbox.start();
    assert.equal(engine.count(LOOK), 6);
  });

  for (const [state, reason] of [["error", "no space left"], ["build_failed", "step 2 failed"], ["destroyed", ""]]) {
    test(`C049 it ends in ${state}: the start rejects with the reason, and the remains are deleted`, async (t) => {
      const { emulator, engine, sandbox } = await open(t);
      emulator.script("create", ["creating", "creating", { state, errorReason: reason }]);
      const error = await rejection(sandbox.start());
      assert.match(error.code, /PROVIDER|NOT_FOUND/);
      assert.ok(error.message.includes(reason), error.message);
      await sandbox.close();
      assert.deepEqual(living(emulator), []);
      assert.ok(engine.count(DELETE) <= 1);
    });
  }

  test("the create itself says that the start failed: what was made is found and deleted", async (t) => {
    const { emulator, sandbox } = await open(t);
    emulator.script("create", ["creating", { state: "error", errorReason: "no runner" }].map((step) => ({ ms: 5, ...(step.state ? step : { state: step }) })), { waitMs: 5000 });
    const error = await rejection(sandbox.start());
    assert.equal(error.code, "ERR_SANDBOX_PROVIDER");
    assert.match(error.message, /failed to start: no runner/);
    await sandbox.close();
    assert.deepEqual(living(emulator), []);
  });

  test("refusals: nothing was made, so nothing is looked for", async (t) => {
    for (const [fault, code, status] of [
      [daytonaReplies.api(401, "Invalid credentials"), "AUTH", 401],
      [daytonaReplies.api(403, "Organization is suspended"), "FORBIDDEN", 403],
      [daytonaReplies.api(400, "snapshot x is not active"), "INVALID_ARG", 400],
      [daytonaReplies.quota(), "QUOTA", 400],
      [daytonaReplies.api(404, "Region not found"), "NOT_FOUND", 404],
    ]) {
      const { engine, sandbox } = await open(t, {});
      engine.fault(CREATE, { instead: fault });
      const error = await rejection(sandbox.start());
      assert.equal(error.code, `ERR_SANDBOX_${code}`, error.message);
      assert.equal(error.status, status);
      if (status === 401) assert.match(error.message, /`apiKey`.*DAYTONA_API_KEY/);
      await sandbox.close();
      assert.deepEqual(engine.log.map(({ route }) => route), [CREATE]);
    }
  });

  test("a toolbox that cannot be reached: told, and the create is not sent once more", async (t) => {
    const { emulator, engine, sandbox } = await open(t, {}, { toolboxUrl: "http://127.0.0.1:1/toolbox" });
    const error = await rejection(sandbox.start());
    assert.equal(error.code, "ERR_SANDBOX_NETWORK", error.message);
    assert.match(error.message, /working directory: GET 127\.0\.0\.1:1: cannot connect/);
    await sandbox.close();
    assert.equal(engine.count(CREATE), 1);
    assert.deepEqual(living(emulator), []);
  });

  test("a name that is taken: rejected, and the other one's sandbox stays", async (t) => {
    const { emulator, make } = await startEmulator(t);
    const first = make({ workspace: "shared" });
    await first.start();
    const second = make({ workspace: "shared" });
    const error = await rejection(second.start());
    assert.equal(error.code, "ERR_SANDBOX_CONFLICT");
    assert.match(error.message, /already exists/);
    await second.close();
    assert.equal(living(emulator).length, 1);
    assert.equal((await first.shell("echo here")).output, "here\n");
  });

  test("C035 429: waits as long as the limiter's own header says, then makes one", async (t) => {
    const { emulator, engine, sandbox } = await open(t);
    engine.fault(CREATE, { instead: daytonaReplies.tooMany(1) });
    const begun = performance.now();
    await sandbox.start();
    assert.ok(performance.now() - begun >= 990);
    assert.equal(engine.count(CREATE), 2);
    assert.equal(living(emulator).length, 1);
  });

  for (const how of ["close", "reset"]) {
    test(`the answer is lost (${how}): the sandbox is found by its name and deleted`, async (t) => {
      const { emulator, engine, sandbox } = await open(t);
      engine.fault(CREATE, { instead: how, run: true });
      const error = await rejection(sandbox.start());
      assert.equal(error.code, "ERR_SANDBOX_NETWORK");
      await sandbox.close();
      assert.deepEqual(living(emulator), []);
      assert.equal(engine.count(CREATE), 1);
      assert.equal(engine.count(DELETE), 1);
    });
  }

  test("the answer is lost, and the name is somebody else's: that one stays", async (t) => {
    const { emulator, engine, make } = await startEmulator(t);
    const theirs = make({ workspace: "shared" });
    await theirs.start();
    const sandbox = make({ workspace: "shared" });
    engine.fault(CREATE, { instead: "close" });
    await rejection(sandbox.start());
    await sandbox.close();
    assert.equal(living(emulator).length, 1);
    assert.equal(engine.count(DELETE), 0);
  });

  test("no answer in time: the start rejects, and what comes late is deleted", async (t) => {
    const { emulator, engine, sandbox } = await open(t, {}, { startTimeoutSeconds: 0.3 });
    const gate = engine.gate();
    engine.fault(CREATE, { hold: gate });
    const error = await rejection(sandbox.start());
    assert.equal(error.code, "ERR_SANDBOX_TIMEOUT");
    gate.open();
    await sandbox.close();
    assert.deepEqual(living(emulator), []);
  });

  test("looks that fail for a moment are repeated", async (t) => {
    const { engine, sandbox } = await open(t);
    engine.fault(LOOK, { instead: replies.html(502) });
    engine.fault(LOOK, { instead: "reset" });
    engine.fault(WORK_DIR, { instead: daytonaReplies.badGateway() });
    engine.fault(WORK_DIR, { instead: daytonaReplies.notStarted() });
    await sandbox.start();
    assert.equal(engine.count(CREATE), 1);
  });

  for (const body of ['{"state":"started"}', '{"id":7}', '{"id":"../x","state":"started"}']) {
    test(`C040 an id that is none: ${body}`, async (t) => {
      const { emulator, engine, sandbox } = await open(t);
      engine.fault(CREATE, { instead: { status: 200, headers: { "content-type": "application/json" }, body }, run: true });
      const error = await rejection(sandbox.start());
      assert.equal(error.code, "ERR_SANDBOX_PROTOCOL", error.message);
      await sandbox.close();
      assert.deepEqual(living(emulator), []);
    });
  }

  test("C052 more than the organization may have: the server's words", async (t) => {
    const { engine, sandbox } = await open(t, {}, { autoStopMinutes: 99_999 });
    engine.fault(CREATE, { instead: daytonaReplies.api(400, "Auto-stop interval cannot exceed 60 minutes") });
    const error = await rejection(sandbox.start());
    assert.deepEqual([error.code, error.status], ["ERR_SANDBOX_INVALID_ARG", 400]);
    assert.match(error.message, /Auto-stop interval cannot exceed 60 minutes/);
    assert.equal(sent(engine, CREATE)[0].autoStopInterval, 99_999);
  });

  test("a base URL without /api: the hint", async (t) => {
    const { emulator, make } = await startEmulator(t);
    const sandbox = make({ baseURL: emulator.apiUrl.replace(/\/api$/, "") });
    const error = await rejection(sandbox.start());
    assert.equal(error.code, "ERR_SANDBOX_PROTOCOL");
    assert.match(error.message, /"\/api"/);
  });
});

describe("another sandbox than ours", { concurrency: 4 }, () => {
  /** A sandbox of somebody else, and what an answer says when it is about that one. */
  async function withOther(t, settings) {
    const started = await startEmulator(t, settings);
    const other = started.make({ apiKey: started.emulator.apiKey });
    await other.start();
    const about = (pick = () => true) => ({
      edit: (body) => (pick(body) ? JSON.stringify(started.emulator.api.view(started.emulator.sandbox(other.sandboxId))) : body),
    });
    return { ...started, other, about };
  }

  async function refused(t, { emulator, engine, other, sandbox, mine }) {
    const error = await rejection(sandbox.shell("touch was-here"));
    assert.equal(error.code, "ERR_SANDBOX_PROTOCOL", error.message);
    assert.match(error.message, /about another sandbox/);
    assert.equal(error.retryable, false);
    await sandbox.close();
    assert.deepEqual(engine.log.filter(({ method, path }) => method === "DELETE" && path.includes(other.sandboxId)), []);
    assert.deepEqual(living(emulator).map(({ id }) => id), [other.sandboxId, ...(mine ? [mine] : [])]);
    assert.equal(await other.readFile("was-here"), null);
  }

  test("C189 a look while it starts is answered with it: nothing runs in it, ours is deleted", async (t) => {
    const world = await withOther(t);
    world.engine.fault(LOOK, world.about());
    await refused(t, { ...world, sandbox: world.make() });
  });

  test("C189 the create is answered with it: ours is found by its tag and deleted", async (t) => {
    const world = await withOther(t);
    world.engine.fault(CREATE, world.about());
    await refused(t, { ...world, sandbox: world.make() });
  });

  test("C189 attaching is answered with it", async (t) => {
    const world = await withOther(t);
    const maker = world.make();
    await maker.start();
    world.engine.fault(LOOK, world.about());
    await refused(t, { ...world, sandbox: world.make({ sandboxId: maker.sandboxId, owned: true }), mine: maker.sandboxId });
  });

  test("C189 a probe is answered with it: that says nothing about ours", async (t) => {
    const world = await withOther(t);
    const sandbox = world.make({ onLost: "reject" });
    await sandbox.start();
    world.engine.fault(EXECUTE, { instead: daytonaReplies.badGateway() }, { times: Infinity });
    world.engine.fault(LOOK, { edit: (body) => world.about().edit(body).replace('"started"', '"error"') }, { times: Infinity });
    const error = await rejection(sandbox.shell("true"));
    assert.notEqual(error.code, "ERR_SANDBOX_LOST", error.message);
    assert.equal(world.engine.count(DELETE), 0);
  });
});

describe("where the toolbox is", { concurrency: 4 }, () => {
  for (const toolboxUrl of ["sandbox", "route", "config", "none"]) {
    test(`told by: ${toolboxUrl}`, async (t) => {
      const { sandbox } = await open(t, { toolboxUrl });
      assert.equal((await sandbox.shell("echo there")).output, "there\n");
    });
  }

  test("the option wins, and an id that was told is not part of it", async (t) => {
    const { emulator, make } = await startEmulator(t, { answerToolboxUrl: "http://proxy.invalid:4000/toolbox/" });
    const sandbox = make({ toolboxUrl: `${emulator.proxyUrl}/toolbox/` });
    assert.equal((await sandbox.shell("echo there")).output, "there\n");
  });
});

describe("attach", { concurrency: 4 }, () => {
  test("by id and by name; it is not deleted", async (t) => {
    const { emulator, engine, make } = await startEmulator(t);
    const owner = make({ workspace: "the box" });
    await owner.writeFile("f", "x");
    for (const sandboxId of [owner.sandboxId, "the box"]) {
      const guest = make({ sandboxId });
      assert.equal(await guest.readFile("f"), "x");
      assert.equal(guest.sandboxId, owner.sandboxId);
      await guest.close();
    }
    assert.equal(engine.count(CREATE), 1);
    assert.equal(engine.count(DELETE), 0);
    assert.equal(living(emulator).length, 1);
  });

  test("owned: it is deleted", async (t) => {
    const { emulator, make } = await startEmulator(t);
    const maker = make({ ephemeral: false });
    await maker.start();
    const owner = make({ sandboxId: maker.sandboxId, owned: true });
    await owner.start();
    await owner.close();
    assert.deepEqual(living(emulator), []);
  });

  test("a stopped one is started, with its files", async (t) => {
    const { emulator, engine, make } = await startEmulator(t);
    const maker = make({ ephemeral: false });
    await maker.writeFile("f", "kept");
    const { sandboxId } = maker;
    await emulator.fleet.stop(emulator.sandbox(sandboxId), false).done;
    const guest = make({ sandboxId });
    assert.equal(await guest.readFile("f"), "kept");
    assert.equal(engine.count(START), 1);
  });

  test("409 to the start, since it is still changing: asked again", async (t) => {
    const { emulator, engine, make } = await startEmulator(t);
    const maker = make({ ephemeral: false });
    await maker.writeFile("f", "kept");
    await emulator.fleet.stop(emulator.sandbox(maker.sandboxId), false).done;
    engine.fault(START, { instead: daytonaReplies.conflict() }, { times: 2 });
    assert.equal(await make({ sandboxId: maker.sandboxId }).readFile("f"), "kept");
    assert.equal(engine.count(START), 3);
  });

  test("it takes long to stop, and the first look after the start comes from a cache", async (t) => {
    const { emulator, engine, make } = await startEmulator(t);
    const maker = make({ ephemeral: false });
    await maker.writeFile("f", "kept");
    await emulator.fleet.stop(emulator.sandbox(maker.sandboxId), false).done;
    const says = (state) => ({ edit: (body) => JSON.stringify({ ...JSON.parse(body), state }) });
    engine.fault(LOOK, says("stopping"), { times: 55 });
    engine.fault(LOOK, says("stopped"), { times: 2 });
    assert.equal(await make({ sandboxId: maker.sandboxId }).readFile("f"), "kept");
    assert.equal(engine.count(START), 1);
  });

  test("there is none: rejected", async (t) => {
    const { make } = await startEmulator(t);
    const error = await rejection(make({ sandboxId: "nope" }).start());
    assert.equal(error.code, "ERR_SANDBOX_NOT_FOUND");
    assert.match(error.message, /nope/);
  });

  test("a lost one is not replaced", async (t) => {
    const { emulator, engine, make } = await startEmulator(t);
    const maker = make();
    await maker.start();
    const guest = make({ sandboxId: maker.sandboxId });
    await guest.start();
    emulator.lose(maker.sandboxId);
    for (let i = 0; i < 2; i += 1) {
      assert.equal((await rejection(guest.shell("true"))).code, "ERR_SANDBOX_LOST");
    }
    assert.equal(engine.count(CREATE), 1);
  });
});

describe("delete", { concurrency: 4 }, () => {
  for (const [name, fault, times] of [
    ["409 twice", { instead: daytonaReplies.conflict() }, 2],
    ["502 twice", { instead: daytonaReplies.badGateway() }, 2],
    ["a reset", { instead: "reset" }, 1],
    ["an answer that is lost", { instead: "close", run: true }, 1],
  ]) {
    test(`${name}: repeated until it is done`, async (t) => {
      const { emulator, engine, sandbox } = await open(t);
      await sandbox.start();
      engine.fault(DELETE, fault, { times });
      await sandbox.close();
      assert.deepEqual(living(emulator), []);
      // One that is at work already may be asked once more, until it is gone.
      assert.ok(engine.count(DELETE) > times);
    });
  }

  test("C045 404: it is gone, which is what was wanted", async (t) => {
    const { emulator, engine, sandbox } = await open(t);
    await sandbox.start();
    emulator.lose(sandbox.sandboxId);
    await sandbox.close();
    assert.equal(engine.count(DELETE), 1);
  });

  test("K11 refused: close() rejects, and a second one tries again", async (t) => {
    const { emulator, engine, sandbox } = await open(t);
    await sandbox.start();
    engine.fault(DELETE, { instead: daytonaReplies.api(403, "no") });
    const error = await rejection(sandbox.close());
    assert.equal(error.code, "ERR_SANDBOX_FORBIDDEN");
    assert.match(error.message, /may still exist/);
    await sandbox.close();
    assert.deepEqual(living(emulator), []);
  });
});
