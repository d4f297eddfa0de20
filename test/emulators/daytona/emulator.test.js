// Control plane, proxy and faults against the fact sheet, with a client that reads every byte.
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";
import { replies } from "../engine.js";
import { findMarked } from "../processes.js";
import { startProgram } from "../program.js";
import { RawConnection } from "../raw.js";
import { SandboxClient, ask, control, create, useEmulator } from "./client.js";
import { daytonaReplies } from "./replies.js";
import { startDaytona } from "./index.js";

const remove = (emulator, id) => control(emulator, `/sandbox/${id}`, undefined, { method: "DELETE" });
const get = async (emulator, id) => (await control(emulator, `/sandbox/${id}`)).json;
/** Resolves when the sandbox has reached the state. */
const reached = async (emulator, id, state) => {
  while (emulator.sandbox(id) && emulator.sandbox(id).state !== state) await once(emulator.fleet, "state");
};

/** Resolves when no process of the sandbox is left: one that was killed may need a moment to end. */
const gone = async (id) => {
  while (findMarked(`DAYTONA_SANDBOX_ID=${id}`).length > 0) await new Promise((resolve) => setTimeout(resolve, 5));
};

describe("control plane", () => {
  const use = useEmulator();

  test("who may ask", async () => {
    const { apiUrl, jwtToken, organizationId, settings } = use.emulator;
    const as = (headers) => ask(`${apiUrl}/sandbox`, { headers });
    assert.deepEqual((await ask(`${apiUrl}/config`)).json.proxyToolboxUrl, use.emulator.toolboxUrl);
    const refused = await as({ authorization: "Bearer nope" });
    assert.equal(refused.status, 401);
    assert.deepEqual(Object.keys(refused.json), ["path", "timestamp", "statusCode", "error", "message"]);
    const { path: where, statusCode, error, message } = refused.json;
    assert.deepEqual([where, statusCode, error, message], ["/api/sandbox", 401, "Unauthorized", "Invalid credentials"]);
    assert.equal(refused.headers["x-daytona-api-version"], settings.apiVersion);
    const jwt = { authorization: `Bearer ${jwtToken}` };
    assert.equal((await as(jwt)).status, 403);
    assert.equal((await as({ ...jwt, "x-daytona-organization-id": organizationId })).status, 200);
    settings.failedAuthLimit = 1;
    const limited = await as({});
    assert.deepEqual([limited.status, limited.headers["retry-after"], limited.headers["retry-after-failed-auth"]], [429, "60", "60"]);
    assert.equal((await control(use.emulator, "/nothing")).json.message, "Cannot GET /api/nothing");
  });

  test("a base address without /api is the dashboard", async () => {
    const base = use.emulator.apiUrl.replace(/\/api$/, "");
    for (const [method, where] of [["GET", "/"], ["GET", "/sandbox/x"], ["POST", "/sandbox"], ["DELETE", "/sandbox/x"]]) {
      const page = await ask(`${base}${where}`, { method });
      assert.equal(page.status, 200);
      assert.match(page.headers["content-type"], /^text\/html/);
      assert.match(page.text, /^<!doctype html>/);
    }
  });

  test("create: a cold one shows what was before its wait, a warm one is there, an image is built", async () => {
    const cold = (await control(use.emulator, "/sandbox", { made_up: 1 })).json;
    assert.deepEqual([cold.state, cold.desiredState, (await get(use.emulator, cold.id)).state], ["creating", "started", "started"]);
    assert.match(cold.id, /^[0-9a-f]{8}-[0-9a-f]{4}-4/);
    assert.equal(cold.name, cold.id);
    assert.deepEqual([cold.autoStopInterval, cold.autoArchiveInterval, cold.autoDeleteInterval], [15, 10080, -1]);
    use.emulator.settings.warmPool = true;
    assert.equal((await control(use.emulator, "/sandbox", { autoArchiveInterval: 0 })).json.state, "started");
    const image = { buildInfo: { dockerfileContent: "FROM x\n" }, memory: 2 };
    const built = (await control(use.emulator, "/sandbox", image)).json;
    assert.deepEqual([built.state, built.cpu, built.memory, built.disk], ["pending_build", 1, 2, 3]);
    await reached(use.emulator, built.id, "started");
    use.emulator.settings.toolboxUrl = "route";
    assert.equal("toolboxProxyUrl" in (await get(use.emulator, cold.id)), false);
    const told = await control(use.emulator, `/sandbox/${cold.id}/toolbox-proxy-url`);
    assert.deepEqual(told.json, { url: `${use.emulator.proxyUrl}/toolbox` });
    use.emulator.settings.toolboxUrl = "none";
    assert.equal((await control(use.emulator, `/sandbox/${cold.id}/toolbox-proxy-url`)).status, 404);
    assert.equal("proxyToolboxUrl" in (await control(use.emulator, "/config")).json, false);
  });

  test("create: what is refused", async () => {
    const refusals = [
      [{ snapshot: "nope" }, 400, /^Snapshot nope not found/],
      [{ snapshot: "still-building" }, 400, /is building$/],
      [{ snapshot: "daytona-small", cpu: 2 }, 400, /^Cannot specify Sandbox resources when using a snapshot$/],
      [{ name: 7, env: [] }, 400, /^name must be a string, env must be an object$/],
      [{ autoStopInterval: -1 }, 400, /non-negative/],
      [{ networkAllowList: "10.0.0.1" }, 400, /IPv4 CIDR/],
      [{ target: "moon" }, 404, /Region/],
      [{ buildInfo: { dockerfileContent: "FROM x" }, memory: 9 }, 400, /exceeds maximum allowed per sandbox/],
    ];
    for (const [request, status, message] of refusals) {
      const reply = await control(use.emulator, "/sandbox", request);
      assert.equal(reply.status, status);
      assert.match(reply.json.message, message);
    }
    const { perSandbox } = use.emulator.settings.quota;
    use.emulator.settings.quota = { cpu: 1, memory: 100, disk: 300, perSandbox };
    const { id } = await create(use.emulator, { name: "only" });
    const over = await control(use.emulator, "/sandbox", {});
    assert.deepEqual([over.status, over.json.error], [400, "Bad Request"]);
    assert.match(over.json.message, /^Total CPU limit exceeded\. Maximum allowed: 1\.\n/);
    use.emulator.settings.quota = { cpu: 9, memory: 100, disk: 300, perSandbox };
    assert.equal((await control(use.emulator, "/sandbox", { name: "only" })).status, 409);
    await remove(use.emulator, id);
    assert.equal((await control(use.emulator, "/sandbox", { name: "only" })).status, 200);
    assert.equal((await control(use.emulator, "/sandbox", undefined, { raw: "{" })).status, 400);
  });

  test("scripted states: by looks, by time, by a gate, to an error", async () => {
    const gate = use.engine.gate();
    use.emulator.script("create", ["creating", { state: "starting", polls: 2 }, { state: "odd_one", gate }, "started"]);
    const { json } = await control(use.emulator, "/sandbox", {});
    const states = [json.state];
    for (let i = 0; i < 5; i += 1) states.push((await get(use.emulator, json.id)).state);
    assert.deepEqual(states, ["creating", "creating", "starting", "starting", "odd_one", "odd_one"]);
    gate.open();
    await reached(use.emulator, json.id, "started");
    const error = { state: "error", errorReason: "no disk", recoverable: true };
    use.emulator.script("create", ["creating", error]);
    const failed = await create(use.emulator);
    await get(use.emulator, failed.id);
    const { state, errorReason, recoverable } = await get(use.emulator, failed.id);
    assert.deepEqual([state, errorReason, recoverable], ["error", "no disk", true]);
    assert.equal((await control(use.emulator, `/sandbox/${failed.id}/start`, {})).json.message, "Sandbox is in an errored state");
    await control(use.emulator, `/sandbox/${failed.id}/recover`, {});
    await reached(use.emulator, failed.id, "started");
    use.emulator.script("create", [{ state: "creating", ms: 1 }, error], { waitMs: 10_000 });
    const reply = await control(use.emulator, "/sandbox", {});
    assert.deepEqual([reply.status, reply.json.message], [400, "Sandbox failed to start: no disk"]);
  });

  test("a change under way refuses another, a build does not refuse its deletion", async () => {
    const gate = use.engine.gate();
    use.emulator.script("create", [{ state: "creating", gate }, "started"]);
    const { id } = await create(use.emulator);
    for (const reply of [await remove(use.emulator, id), await control(use.emulator, `/sandbox/${id}/stop`, {})]) {
      assert.deepEqual([reply.status, reply.json.message], [409, "Sandbox state change in progress"]);
    }
    gate.open();
    await reached(use.emulator, id, "started");
    assert.equal((await remove(use.emulator, id)).status, 200);
    use.emulator.script("create", ["pending_build", "started"]);
    assert.equal((await remove(use.emulator, (await create(use.emulator)).id)).status, 200);
  });

  test("delete: destroying, then unknown; the name is free at once", async () => {
    const { id } = await create(use.emulator, { name: "n" });
    const gate = use.engine.gate();
    use.emulator.script("delete", [{ state: "destroying", gate }, "destroyed"]);
    const reply = await remove(use.emulator, id);
    assert.deepEqual([reply.status, reply.json.state], [200, "destroying"]);
    assert.match(reply.json.name, /^DESTROYED_n_\d+$/);
    assert.equal((await control(use.emulator, "/sandbox/n")).status, 404);
    assert.equal((await get(use.emulator, id)).state, "destroying");
    assert.equal((await remove(use.emulator, id)).status, 409);
    gate.open();
    await once(use.emulator.fleet, "ended");
    const gone = await control(use.emulator, `/sandbox/${id}`);
    assert.deepEqual([gone.status, gone.json.message], [404, `Sandbox with ID or name ${id} not found`]);
    assert.equal((await remove(use.emulator, id)).status, 404);
  });

  test("start, stop, archive: who may, and through which states", async () => {
    const { id } = await create(use.emulator);
    const states = [];
    const sandbox = use.emulator.sandbox(id);
    sandbox.on("state", () => states.push(sandbox.state));
    const to = (operation) => control(use.emulator, `/sandbox/${id}/${operation}`, {});
    assert.equal((await to("start")).json.state, "started");
    const { token } = (await control(use.emulator, `/sandbox/${id}/ports/80/preview-url`)).json;
    assert.equal((await to("archive")).json.message, "Sandbox is not stopped");
    assert.equal((await to("pause")).status, 422);
    await to("stop");
    await reached(use.emulator, id, "stopped");
    assert.equal((await to("stop")).json.message, "Sandbox is not in a stoppable state");
    await to("archive");
    await reached(use.emulator, id, "archived");
    use.emulator.settings.daemonVersion = "0.190.0";
    await to("start");
    await reached(use.emulator, id, "started");
    const passed = states.filter((state, i) => state !== states[i - 1]);
    assert.deepEqual(passed, ["stopping", "stopped", "archiving", "archived", "restoring", "started"]);
    assert.equal((await get(use.emulator, id)).daemonVersion, "v0.190.0");
    const preview = await control(use.emulator, `/sandbox/${id}/ports/80/preview-url`);
    assert.notEqual(preview.json.token, token);
    assert.equal((await control(use.emulator, `/sandbox/${id}/ports/0/preview-url`)).status, 400);
  });

  test("lists: labels, states, order, pages by cursor and by number", async () => {
    for (const n of ["1", "2", "3"]) await create(use.emulator, { name: `Item ${n}`, labels: { n, all: "x&y" } });
    const list = async (query, where = "/sandbox") =>
      (await control(use.emulator, `${where}?${new URLSearchParams(query)}`)).json;
    const names = ({ items }) => items.map(({ name }) => name);
    assert.deepEqual(names(await list({ labels: '{"all":"x&y","n":"2"}' })), ["Item 2"]);
    const first = await list({ limit: 2, sort: "name", order: "asc", name: "item" });
    const second = await list({ limit: 2, sort: "name", order: "asc", name: "item", cursor: first.nextCursor });
    assert.deepEqual([names(first), names(second), second.nextCursor], [["Item 1", "Item 2"], ["Item 3"], null]);
    assert.equal("env" in first.items[0], false);
    const states = new URLSearchParams([["states", "stopped"], ["states", "error"]]);
    assert.deepEqual(names((await control(use.emulator, `/sandbox?${states}`)).json), []);
    const page = await list({ page: 2, limit: 2 }, "/sandbox/paginated");
    assert.deepEqual([page.items.length, page.total, page.page, page.totalPages], [1, 3, 2, 2]);
    assert.equal((await list({ labels: "{" })).message, "Invalid labels JSON format");
    for (const query of [{ limit: 0 }, { limit: 201 }, { states: "destroyed" }]) assert.equal((await list(query)).statusCode, 400);
  });

});

describe("intervals", () => {
  const use = useEmulator({ minuteMs: 20, jobMs: 10 });

  test("an idle sandbox stops, a stopped one is deleted, an old one is destroyed whatever it does", async () => {
    const idle = await create(use.emulator, { autoStopInterval: 1, autoDeleteInterval: 1 });
    await reached(use.emulator, idle.id, "stopped");
    await reached(use.emulator, idle.id, "destroyed");
    const old = await create(use.emulator, { autoStopInterval: 0, ttlMinutes: 1 });
    await reached(use.emulator, old.id, "destroyed");
    assert.equal((await control(use.emulator, `/sandbox/${old.id}`)).status, 404);
  });

  test("a call under way is activity; an ephemeral sandbox does not outlive its stop", async () => {
    const sandbox = await create(use.emulator, { autoStopInterval: 0, autoDeleteInterval: 0 });
    const running = sandbox.execute("touch here; until [ -e go ]; do sleep 0.01; done; echo done");
    while (!existsSync(path.join(use.emulator.sandbox(sandbox.id).home, "here"))) await use.engine.sleep(5);
    await control(use.emulator, `/sandbox/${sandbox.id}/autostop/1`, {});
    await use.engine.sleep(300);
    use.letGo(sandbox.id);
    const { result, exitCode } = (await running).json;
    assert.deepEqual([result, exitCode], ["done\n", 0]);
    await reached(use.emulator, sandbox.id, "destroyed");
  });
});

describe("the way into a sandbox", () => {
  const use = useEmulator();

  test("who may come in", async () => {
    const sandbox = await create(use.emulator);
    const url = `${sandbox.base}/version`;
    const missing = await ask(url);
    assert.deepEqual([missing.status, missing.json.code], [401, "UNAUTHORIZED"]);
    assert.match(missing.json.message, /^unauthorized: missing authentication: /);
    const wrong = await ask(url, { headers: { authorization: "Bearer nope" } });
    assert.equal(wrong.json.message, "unauthorized: authentication failed: Bearer token is invalid");
    assert.deepEqual(Object.keys(wrong.json), ["statusCode", "message", "code", "timestamp", "path", "method"]);
    assert.match(wrong.json.timestamp, /\.\d{9}Z$/);
    const unknown = new SandboxClient(use.emulator, "00000000-0000-4000-8000-000000000000");
    assert.equal((await unknown.ask("/version")).status, 401);
    const { previewToken: token } = use.emulator.sandbox(sandbox.id);
    for (const headers of [{ "x-daytona-preview-token": token }, { cookie: `a=b; daytona-sandbox-auth-${sandbox.id}=${token}` }]) {
      assert.equal((await ask(url, { headers })).status, 200);
    }
    assert.equal((await ask(`${url}?DAYTONA_SANDBOX_AUTH_KEY=${token}`)).status, 200);
    const { status, json } = await ask(`${use.emulator.proxyUrl}/other`, { headers: sandbox.headers });
    assert.deepEqual([status, json.code, json.message], [404, "NOT_FOUND", "not found: not found"]);
  });

  test("what is said of a sandbox that is not there for it", async () => {
    const sandbox = await create(use.emulator);
    const said = async () => {
      const { status, text } = await sandbox.execute("true");
      return [status, text && JSON.parse(text).message.slice(0, 40)];
    };
    const states = {
      creating: [400, "bad request: failed to get runner info: "],
      archived: [400, "bad request: failed to get runner info: "],
      stopped: [400, "bad request: failed to resolve container"],
      starting: [400, "bad request: failed to resolve container"],
      error: [404, "not found: sandbox container not found: "],
      destroying: [404, "not found: sandbox container not found: "],
    };
    for (const [state, expected] of Object.entries(states)) {
      use.emulator.lose(sandbox.id, state);
      assert.deepEqual(await said(), expected);
    }
    assert.match((await sandbox.execute("true")).json.code, /NOT_FOUND/);
    use.emulator.lose(sandbox.id, "stopped");
    assert.match((await sandbox.execute("true")).json.message, /Is the Sandbox started\?$/);
    use.emulator.sandbox(sandbox.id).jump("started");
    assert.equal((await sandbox.execute("true")).status, 200);
    use.emulator.lose(sandbox.id, "started");
    assert.deepEqual(await said(), [404, "not found: sandbox container not found: "]);
    assert.equal((await get(use.emulator, sandbox.id)).state, "started");
  });

  test("after a delete: missed by the runner first, later by the proxy", async () => {
    const sandbox = await create(use.emulator);
    await sandbox.execute("true");
    use.emulator.lose(sandbox.id);
    assert.equal((await control(use.emulator, `/sandbox/${sandbox.id}`)).status, 404);
    assert.equal((await sandbox.execute("true")).status, 404);
    use.emulator.settings.proxyCacheMs = 0;
    const later = await sandbox.execute("true");
    assert.deepEqual([later.status, later.json.code], [401, "UNAUTHORIZED"]);
    use.emulator.settings.goneStatus = 400;
    assert.match((await sandbox.execute("true")).json.message, /failed to get runner info/);
  });

  test("a command under way when its sandbox goes: 502 without a body, end of file, reset", async () => {
    for (const [breakAs, status, ending] of [["502", 502, "fin"], ["eof", 0, "fin"], ["reset", 0, "ECONNRESET"]]) {
      use.emulator.settings.breakAs = breakAs;
      const sandbox = await create(use.emulator);
      const raw = await use.connect(sandbox.base);
      const body = JSON.stringify({ command: "echo $$ > pid; sleep 600" });
      const headers = { ...sandbox.headers, connection: "close" };
      raw.request(`POST /toolbox/${sandbox.id}/process/execute`, headers, body);
      const { home } = use.emulator.sandbox(sandbox.id);
      while (!existsSync(path.join(home, "pid"))) await use.engine.sleep(5);
      await remove(use.emulator, sandbox.id);
      await raw.closed();
      assert.equal(raw.text.slice(9, 12), status ? String(status) : "");
      if (status) assert.match(raw.text, /content-length: 0\r\n[^]*\r\n\r\n$/);
      assert.equal(raw.ending, ending);
      await gone(sandbox.id);
      use.engine.clearLog();
    }
  });

  test("a command under way whose request is cut goes on", async () => {
    const sandbox = await create(use.emulator);
    const { home } = use.emulator.sandbox(sandbox.id);
    for (const [how, status, ending] of [["504", 504, "fin"], ["502", 502, "fin"], ["eof", 0, "fin"], ["reset", 0, "ECONNRESET"]]) {
      const raw = await use.connect(sandbox.base);
      const body = JSON.stringify({ command: `touch begun-${how}; until [ -e go-${how} ]; do sleep 0.01; done; touch ended-${how}` });
      const headers = { ...sandbox.headers, connection: "close" };
      raw.request(`POST /toolbox/${sandbox.id}/process/execute`, headers, body);
      while (!existsSync(path.join(home, `begun-${how}`))) await use.engine.sleep(5);
      assert.equal(use.emulator.cut(sandbox.id, how), 1);
      await raw.closed();
      assert.equal(raw.text.slice(9, 12), status ? String(status) : "");
      assert.equal(raw.ending, ending);
      assert.equal((await sandbox.execute(`touch go-${how}`)).status, 200);
      while (!existsSync(path.join(home, `ended-${how}`))) await use.engine.sleep(5);
    }
  });

  test("a stop waits a moment for what is under way, and refuses what comes; a forced one does not wait", async () => {
    use.emulator.settings.drainMs = 60_000;
    const sandbox = await create(use.emulator);
    const running = sandbox.execute("touch here; until [ -e go ]; do sleep 0.01; done; echo finished");
    while (!existsSync(path.join(use.emulator.sandbox(sandbox.id).home, "here"))) await use.engine.sleep(5);
    await control(use.emulator, `/sandbox/${sandbox.id}/stop`, {});
    const refused = await sandbox.execute("true");
    assert.deepEqual([refused.status, refused.text], [502, ""]);
    await use.letGo(sandbox.id);
    assert.equal((await running).json.result, "finished\n");
    await reached(use.emulator, sandbox.id, "stopped");
    await control(use.emulator, `/sandbox/${sandbox.id}/start`, {});
    await reached(use.emulator, sandbox.id, "started");
    const doomed = sandbox.execute("touch there; sleep 600");
    while (!existsSync(path.join(use.emulator.sandbox(sandbox.id).home, "there"))) await use.engine.sleep(5);
    await control(use.emulator, `/sandbox/${sandbox.id}/stop?force=true`, {});
    assert.equal((await doomed).status, 502);
  });

  test("the old way through the control plane", async () => {
    const { id } = await create(use.emulator);
    const sandbox = new SandboxClient(use.emulator, id, `${use.emulator.apiUrl}/toolbox/${id}/toolbox`);
    assert.deepEqual((await sandbox.execute("echo hi")).json, { exitCode: 0, result: "hi\n" });
    assert.deepEqual((await use.engine.waitFor("toolbox POST /process/execute")).listener, "api");
    use.emulator.lose(id, "stopped");
    const stopped = await sandbox.execute("true");
    assert.deepEqual([stopped.status, stopped.json.message, stopped.json.error], [400, "Sandbox is not running", "Bad Request"]);
    use.emulator.settings.legacyRoute = false;
    assert.match((await sandbox.execute("true")).json.message, /^Cannot POST /);
  });

  test("what counts as activity", async () => {
    const sandbox = await create(use.emulator);
    const state = use.emulator.sandbox(sandbox.id);
    const long = (state.lastActivityAt = new Date(0));
    await sandbox.ask("/version", undefined, { headers: { "x-daytona-skip-last-activity-update": "true" } });
    assert.equal(state.lastActivityAt, long);
    await sandbox.ask("/version");
    assert.notEqual(state.lastActivityAt, long);
    state.lastActivityAt = long;
    assert.equal((await control(use.emulator, `/sandbox/${sandbox.id}/last-activity`, {})).status, 201);
    assert.notEqual(state.lastActivityAt, long);
  });
});

describe("scripted faults", () => {
  const use = useEmulator();

  test("429 tells the wait in a header of the limiter's", async () => {
    use.engine.fault("POST /sandbox", { instead: daytonaReplies.tooMany(3) });
    use.engine.fault("POST /sandbox", { instead: daytonaReplies.tooMany(4, "failed-auth") });
    const [first, second] = [await control(use.emulator, "/sandbox", {}), await control(use.emulator, "/sandbox", {})];
    assert.deepEqual([first.status, first.headers["retry-after-sandbox-create"], first.headers["retry-after"]], [429, "3", undefined]);
    assert.deepEqual([second.headers["retry-after-failed-auth"], second.headers["retry-after"]], ["4", "4"]);
    assert.equal(first.headers["x-ratelimit-remaining-sandbox-create"], "0");
    assert.equal(use.emulator.fleet.all().length, 0);
  });

  test("a create whose reply is lost has made a sandbox, which its name finds", async () => {
    use.engine.fault("POST /sandbox", { instead: "close", run: true });
    await assert.rejects(control(use.emulator, "/sandbox", { name: "lost" }));
    assert.equal((await control(use.emulator, "/sandbox/lost")).json.state, "started");
    assert.equal((await remove(use.emulator, "lost")).status, 200);
  });

  test("each reply of the toolbox that a client must tell apart", async () => {
    const sandbox = await create(use.emulator);
    const { badGateway, notStarted, noContainer, unauthorized, noRoute, uploadRefused, quota, conflict } = daytonaReplies;
    const expected = [
      [badGateway(), 502, ""],
      [notStarted(), 400, /Is the Sandbox started\?","code":"BAD_REQUEST"/],
      [noContainer(), 404, /not found: sandbox container not found/],
      [unauthorized(), 401, /"code":"UNAUTHORIZED"/],
      [noRoute(), 404, "404 page not found"],
      [uploadRefused(), 400, /^\{"errors":\[".+"\],"files":\[\]\}$/],
      [replies.html(503), 503, /<title>503 Service Unavailable/],
      [replies.halfJson({ exitCode: 0, result: "x" }), 200, '{"exitCode":0,'],
    ];
    for (const [instead, status, text] of expected) {
      use.engine.fault("toolbox POST /process/execute", { instead });
      const reply = await sandbox.execute("true");
      assert.equal(reply.status, status);
      if (typeof text === "string") assert.equal(reply.text, text);
      else assert.match(reply.text, text);
    }
    for (const [instead, status] of [[quota(), 400], [conflict(), 409]]) {
      use.engine.fault("DELETE /sandbox/{id}", { instead });
      assert.equal((await remove(use.emulator, sandbox.id)).status, status);
    }
    assert.equal((await remove(use.emulator, sandbox.id)).status, 200);
  });

  test("a reply that ends early, never comes, or comes when the command has run", async () => {
    const sandbox = await create(use.emulator);
    const line = `POST /toolbox/${sandbox.id}/process/execute`;
    const send = async (command) => {
      const raw = await use.connect(sandbox.base);
      return raw.request(line, sandbox.headers, JSON.stringify({ command }));
    };
    use.engine.fault("toolbox POST /process/execute", { stop: { after: 5, how: "close", keepLength: true } });
    const cut = await (await send("echo x")).closed();
    assert.deepEqual([cut.body, cut.ending], ['{"exi', "fin"]);
    use.engine.fault("toolbox POST /process/execute", { instead: "reset", run: true });
    const lost = await (await send("echo ran > ran")).closed();
    assert.deepEqual([lost.text, lost.ending], ["", "ECONNRESET"]);
    use.engine.fault("toolbox POST /process/execute", { instead: "hang" });
    const silent = await send("true");
    await use.engine.waitFor("toolbox POST /process/execute", 3);
    assert.equal((await sandbox.execute("cat ran")).json.result, "ran\n");
    assert.equal(silent.text, "");
  });

  test("a download and a followed log cut at a byte", async () => {
    const sandbox = await create(use.emulator);
    await sandbox.upload([["f", "0123456789"]]);
    use.engine.fault("toolbox GET /files/download", { stop: { after: 4, how: "close", keepLength: true } });
    const file = await sandbox.ask("/files/download?path=f");
    assert.deepEqual([file.status, file.text, file.complete, file.headers["content-length"]], [200, "0123", false, "10"]);
    await sandbox.ask("/process/session", { sessionId: "s" });
    const { cmdId } = (await sandbox.exec("s", "echo 0123456789", { runAsync: true })).json;
    use.engine.fault(/logs$/, { stop: { after: 9, how: "reset" } });
    const socket = await sandbox.socket(`/process/session/s/command/${cmdId}/logs?follow=true`);
    await socket.connection.closed();
    assert.equal(socket.connection.body.length, 9);
    assert.equal(socket.code, undefined);
  });
});

describe("the program", () => {
  test("prints its addresses and ends when told", async () => {
    for (const end of [({ child }) => child.kill("SIGTERM"), ({ child }) => child.stdin.end()]) {
      const program = await startProgram("daytona", "--api-key=k", "--warm");
      const { told } = program;
      assert.deepEqual(Object.keys(told), ["apiUrl", "toolboxUrl", "apiKey", "jwtToken", "organizationId"]);
      const headers = { authorization: "Bearer k" };
      const { json } = await ask(`${told.apiUrl}/sandbox`, { method: "POST", headers, body: "{}" });
      assert.deepEqual([json.state, json.toolboxProxyUrl], ["started", told.toolboxUrl]);
      end(program);
      assert.deepEqual(await program.exited, [0, null]);
    }
  });

  test("leaves nothing behind when it is killed", async () => {
    const { child, told } = await startProgram("daytona", "--api-key=k", "--warm");
    const headers = { authorization: "Bearer k" };
    const { id } = (await ask(`${told.apiUrl}/sandbox`, { method: "POST", headers, body: "{}" })).json;
    const call = (where, body) => ask(`${told.toolboxUrl}/${id}${where}`, { method: "POST", headers, body: JSON.stringify(body) });
    await call("/process/execute", { command: "setsid sleep 600 </dev/null >/dev/null 2>&1 &" });
    const { dir } = (await ask(`${told.toolboxUrl}/${id}/work-dir`, { headers })).json;
    assert.equal(findMarked(`DAYTONA_SANDBOX_ID=${id}`).length > 0, true);
    child.kill("SIGKILL");
    while (findMarked(`DAYTONA_SANDBOX_ID=${id}`).length > 0 || existsSync(dir)) await new Promise((resolve) => setTimeout(resolve, 20));
  });

  test("an emulator closes with work of every kind under way", async () => {
    const emulator = await startDaytona();
    const sandbox = await create(emulator);
    await sandbox.ask("/process/session", { sessionId: "s" });
    const { cmdId } = (await sandbox.exec("s", "sleep 600", { runAsync: true })).json;
    const connections = [sandbox.execute("sleep 600"), sandbox.exec("s", "true")].map((call) => call.catch(() => "cut"));
    const socket = await sandbox.socket(`/process/session/s/command/${cmdId}/logs?follow=true`);
    await emulator.engine.waitFor(/logs$/);
    await emulator.close();
    for (const connection of connections) assert.ok(["cut", 502].includes((await connection).status ?? "cut"));
    await socket.connection.closed();
    assert.deepEqual([emulator.engine.errors, emulator.engine.open], [[], 0]);
    await gone(sandbox.id);
    assert.ok(await RawConnection.open(emulator.apiUrl).catch(({ code }) => code === "ECONNREFUSED"));
  });
});
