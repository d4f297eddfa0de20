// Control plane and edge against the fact sheet; what is left when things end.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { before, describe, test } from "node:test";
import { replies } from "../engine.js";
import { findMarked } from "../processes.js";
import { startProgram } from "../program.js";
import { RawConnection } from "../raw.js";
import { ask, control, create } from "./client.js";
import { envelope } from "./connect.js";
import { proxyReplies, startE2B } from "./index.js";
import { untilDead, useEmulator } from "./support.js";

describe("control plane", () => {
  const use = useEmulator({ v2: true, concurrencyLimit: 100 });

  test("keys", async () => {
    const tries = { "": "authorization header is missing", sk_1: "authorization header is malformed", e2b_1: /^Invalid API key/ };
    for (const [key, message] of Object.entries(tries)) {
      const { status, json } = await control(use.emulator, "/sandboxes", undefined, { headers: { "x-api-key": key } });
      assert.deepEqual([status, json.code], [401, 401]);
      assert.match(json.message, new RegExp(message));
    }
  });

  test("two generations of create", async () => {
    const first = await control(use.emulator, "/sandboxes", { templateID: "base" });
    assert.equal(first.status, 201);
    assert.equal(first.json.envdAccessToken, undefined);
    assert.deepEqual([first.json.domain, first.json.clientID], [null, "6532622b"]);
    const lifetime = async (id) => {
      const { startedAt, endAt } = (await control(use.emulator, `/sandboxes/${id}`)).json;
      return Math.round((Date.parse(endAt) - Date.parse(startedAt)) / 1000);
    };
    assert.equal(await lifetime(first.json.sandboxID), 15);
    const secure = await control(use.emulator, "/sandboxes", { templateID: "base", secure: true, timeout: 60 });
    assert.match(secure.json.envdAccessToken, /./);
    const second = await control(use.emulator, "/v2/sandboxes", { templateID: "base" });
    assert.match(second.json.envdAccessToken, /./);
    assert.equal(await lifetime(second.json.sandboxID), 300);
    for (const status of [404, 405]) {
      use.emulator.settings.v2 = status;
      const absent = await control(use.emulator, "/v2/sandboxes", { templateID: "base" });
      assert.equal(absent.status, status);
      assert.doesNotMatch(absent.json.message, /template/);
      assert.equal((await control(use.emulator, `/v2/sandboxes/${second.json.sandboxID}/connect`, {})).status, status);
      assert.equal((await control(use.emulator, "/v2/sandboxes")).status, 200);
    }
  });

  test("what a create may not say", async () => {
    const bad = [
      [{ templateID: "nope" }, 404, "template 'nope' not found"],
      [{ templateID: "base:tag" }, 404, "tag 'tag' does not exist for template 'base'"],
      [{ templateID: undefined }, 400, /templateID/],
      [{ timeout: 0 }, 400, "Timeout must be greater than 0"],
      [{ timeout: 90_000 }, 400, "Timeout cannot be greater than 24 hours"],
      [{ timeout: 1.5 }, 400, /validation error/],
      [{ metadata: null }, 400, /validation error/],
      [{ metadata: { a: 1 } }, 400, /validation error/],
      [{ network: { denyOut: ["example.com"] } }, 400, /invalid denied CIDR example.com/],
      [{ autoPauseMemory: false }, 400, /autoPauseMemory/],
    ];
    for (const [request, status, message] of bad) {
      const reply = await control(use.emulator, "/v2/sandboxes", { templateID: "base", ...request });
      assert.equal(reply.status, status, JSON.stringify(request));
      assert.match(reply.json.message, new RegExp(message));
      assert.match(reply.headers["x-e2b-trace-id"], /./);
    }
    const broken = await ask(`${use.emulator.apiUrl}/v2/sandboxes`, {
      method: "POST",
      headers: { "x-api-key": use.emulator.apiKey, "content-type": "application/json" },
      body: "{",
    });
    assert.match(broken.json.message, /^Error when parsing request/);
    assert.equal((await control(use.emulator, "/nothing")).status, 404);
  });

  test("lifetimes: shortened, prolonged, clamped, over", async () => {
    const { id } = await create(use.emulator, { timeout: 100 });
    const left = async () => {
      const { json } = await control(use.emulator, `/sandboxes/${id}-6532622b`);
      return Math.round((Date.parse(json.endAt) - Date.now()) / 1000);
    };
    const post = (path, body) => control(use.emulator, `/sandboxes/${id}/${path}`, body);
    assert.equal((await post("refreshes", { duration: 1 })).status, 204);
    assert.ok((await left()) > 90);
    assert.equal((await post("timeout", { timeout: 5 })).status, 204);
    assert.ok((await left()) <= 5);
    assert.equal((await post("refreshes", { duration: 1 })).status, 204);
    assert.ok((await left()) > 10);
    assert.equal((await post("connect", {})).status, 400);
    assert.equal((await post("connect", { timeout: 60 })).status, 200);
    assert.ok((await left()) > 50);
    assert.equal((await post("timeout", { timeout: 1e9 })).status, 204);
    assert.ok((await left()) <= 86_400);
    assert.equal((await post("timeout", {})).status, 400);
    assert.equal((await post("timeout", { timeout: -1 })).status, 204);
    assert.equal(await use.emulator.ended(id), "expired");
    assert.equal((await post("timeout", { timeout: 1 })).status, 404);
    assert.equal((await control(use.emulator, `/sandboxes/${id}`, undefined, { method: "DELETE" })).status, 404);
    const strange = await control(use.emulator, "/sandboxes/no_such");
    assert.deepEqual([strange.status, strange.json.message], [400, "Invalid sandbox ID"]);
  });

  test("paused: not found from outside, woken by connect or resume", async () => {
    const client = await create(use.emulator);
    const post = (path, body) => control(use.emulator, `/sandboxes/${client.id}/${path}`, body);
    assert.equal((await post("pause", {})).status, 204);
    assert.equal((await post("pause", {})).status, 409);
    assert.equal((await client.ask("/health")).status, 502);
    assert.equal((await control(use.emulator, `/sandboxes/${client.id}`)).json.state, "paused");
    assert.equal((await post("timeout", { timeout: 5 })).status, 404);
    assert.equal((await post("resume", {})).status, 201);
    assert.equal((await post("resume", {})).status, 409);
    assert.equal((await client.ask("/health")).status, 204);
  });

  test("a create whose answer is lost leaves a sandbox that its metadata finds", async () => {
    const metadata = { owner: "lost and found" };
    const query = "/v2/sandboxes?metadata=owner%3Dlost%252520and%252520found";
    for (const fault of [{ instead: "reset", run: true }, { instead: replies.html(504), run: true }]) {
      use.engine.fault("POST /v2/sandboxes", fault);
      await create(use.emulator, { metadata }).catch(() => {});
    }
    const found = (await control(use.emulator, query)).json;
    assert.equal(found.length, 2);
    for (const { sandboxID } of found) await control(use.emulator, `/sandboxes/${sandboxID}`, undefined, { method: "DELETE" });
    assert.deepEqual((await control(use.emulator, query)).json, []);
  });
});

describe("edge", () => {
  const use = useEmulator({ dialDelaysMs: [] });
  let client;
  before(async () => {
    client = await create(use.emulator);
  });

  test("by header, and by host name", async () => {
    const health = (headers) => ask(`${use.emulator.sandboxUrl}/health`, { headers });
    const id = { "e2b-sandbox-id": client.id };
    const port = { "e2b-sandbox-port": "49983" };
    assert.equal((await health({ ...id, ...port })).status, 204);
    assert.equal((await health({ ...id, ...port, host: "sandbox.e2b.test" })).status, 204);
    assert.deepEqual([(await health(id)).status, (await health(id)).text], [400, "missing header"]);
    assert.equal((await health(port)).text, "missing header");
    assert.equal((await health({ ...port, "e2b-sandbox-id": `${client.id}-6532622b` })).text, "Invalid sandbox ID");
    assert.equal((await health({ ...id, "e2b-sandbox-port": "x" })).status, 500);
    assert.equal((await health({ host: `49983-${client.id}.e2b.test` })).status, 204);
    assert.equal((await health({ host: `49983-${client.id}-6532622b.e2b.test` })).status, 204);
    assert.equal((await health({ ...id, ...port, host: "49983-inone.e2b.test" })).status, 502);
    assert.equal((await health({ ...id, ...port, host: "other.e2b.test" })).text, "Invalid host");
    const api = await ask(`${use.emulator.sandboxUrl}/health`, { headers: { host: "api.e2b.test" } });
    assert.equal(api.status, 200);
  });

  test("the meanings of 502, and pages for browsers", async () => {
    const gone = await client.ask("/health", { headers: { "e2b-sandbox-id": "inone" } });
    assert.deepEqual(gone.json, { sandboxId: "inone", message: "The sandbox was not found", code: 502 });
    const shut = await client.ask("/health", { port: 49999 });
    const message = "The sandbox is running but port is not open";
    assert.deepEqual(shut.json, { sandboxId: client.id, message, port: 49999, code: 502 });
    const browser = { "user-agent": "Knowledge/1.0", "e2b-sandbox-id": "inone" };
    const page = await client.ask("/health", { headers: browser });
    assert.match(page.headers["content-type"], /text\/html/);
    const json = await client.ask("/health", { headers: { ...browser, accept: "application/json" } });
    assert.equal(json.json.code, 502);
    for (const instead of [proxyReplies.gone("inone"), proxyReplies.portClosed(client.id, 49999)]) {
      use.engine.fault("envd GET /health", { instead });
      const scripted = await client.ask("/health");
      assert.deepEqual(scripted.json, "port" in scripted.json ? shut.json : gone.json);
    }
    const reserved = await client.ask("/init", { method: "POST", body: "{}" });
    assert.deepEqual([reserved.status, reserved.json.path], [404, "/init"]);
  });

  test("a server of the user's", async () => {
    const script = "import http.server,sys; s=http.server.HTTPServer(('127.0.0.1',0),http.server.SimpleHTTPRequestHandler); print(s.server_port, flush=True); s.serve_forever()";
    await client.ask("/files?path=page.txt", { method: "POST", headers: { "content-type": "application/octet-stream" }, body: "served" });
    await client.run(`python3 -c "${script}" > port 2>/dev/null < /dev/null & until [ -s port ]; do sleep 0.02; done`);
    const port = (await client.ask("/files?path=port")).text.trim();
    const page = await ask(`${use.emulator.sandboxUrl}/page.txt`, { headers: { host: `${port}-${client.id}.e2b.test` } });
    assert.deepEqual([page.status, page.text], [200, "served"]);
  });

  test("streams end without a last chunk when the sandbox does", async () => {
    const doomed = await create(use.emulator);
    const connection = await RawConnection.open(use.emulator.sandboxUrl);
    const body = envelope(0, JSON.stringify({ process: { cmd: "sleep", args: ["60"] }, stdin: false }));
    const headers = { ...doomed.headers(), "content-type": "application/connect+json" };
    connection.request("POST /process.Process/Start", headers, body);
    await connection.until(({ chunked }) => chunked.data.includes("}}}"));
    use.emulator.lose(doomed.id);
    await connection.closed();
    assert.deepEqual([connection.chunked.complete, connection.ending], [false, "fin"]);
    assert.equal((await doomed.ask("/health")).status, 502);
  });

  test("bad manners are noted", async () => {
    const { complaints } = use.emulator;
    complaints.length = 0;
    await client.ask("/health", { headers: { "user-agent": "tests", "x-api-key": "k" } });
    await ask(`${use.emulator.apiUrl}/health`, { headers: { "x-access-token": "t", expect: "100-continue" } });
    await client.call("process.Process/List", {}, { "user-agent": "my-edge/1" });
    assert.deepEqual(complaints.splice(0), [
      "envd GET /health: the API key sent into a sandbox",
      "GET /health: no User-Agent",
      "GET /health: an Expect header",
      "GET /health: a sandbox's token sent to the control plane",
      "process.Process/List: a User-Agent that gets HTML errors",
      "process.Process/List: no Connect-Protocol-Version: 1",
    ]);
  });
});

describe("processes end with", { skip: !existsSync("/proc/self/environ") && "needs /proc" }, () => {
  const detached = "setsid sleep 71 < /dev/null > /dev/null 2>&1 & sleep 72 & echo $!; wait";

  /** A command with a child in a session of its own, both running. */
  async function busy(client) {
    const run = client.run(`echo go; ${detached}`).catch(() => {});
    let pids = [];
    const marker = `E2B_SANDBOX_ID=${client.id}`;
    while (pids.length < 3) {
      pids = findMarked(marker);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return { run, pids };
  }

  test("their sandbox", async () => {
    const emulator = await startE2B();
    const client = await create(emulator);
    const { run, pids } = await busy(client);
    assert.equal((await control(emulator, `/sandboxes/${client.id}`, undefined, { method: "DELETE" })).status, 204);
    await run;
    await Promise.all(pids.map(untilDead));
    assert.equal(existsSync(path.join(emulator.fleet.directory, client.id)), false);
    await emulator.close();
    assert.equal(existsSync(emulator.fleet.directory), false);
  });

  for (const signal of ["SIGTERM", "SIGKILL"]) {
    test(`the program that serves them, by ${signal}`, async () => {
      const { child, exited, told: emulator } = await startProgram("e2b");
      assert.deepEqual(Object.keys(emulator), ["apiUrl", "sandboxUrl", "apiKey"]);
      const client = await create(emulator);
      const { pids } = await busy(client);
      const home = readFileSync(`/proc/${pids[0]}/environ`, "latin1").match(/(?:^|\0)HOME=([^\0]*)/)[1];
      child.kill(signal);
      await exited;
      await Promise.all(pids.map(untilDead));
      const directory = path.join(os.tmpdir(), path.relative(os.tmpdir(), home).split(path.sep)[0]);
      while (existsSync(directory)) await new Promise((resolve) => setTimeout(resolve, 10));
    });
  }
});
