// The corrections of the fact sheet, checked with the vendor's client: a test for each of its lines. What that client
// itself makes of the replies stands in test/interop/vercel.test.js.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { gzipSync } from "node:zlib";

import { ask } from "../ask.js";
import { startVercel } from "./index.js";

describe("fact sheet", () => {
  /** @type {import("./index.js").VercelEmulator} */
  let emulator;
  let initial = {};
  before(async () => {
    emulator = await startVercel();
    initial = { ...emulator.settings };
  });
  afterEach(() => {
    for (const sandbox of emulator.fleet.all()) emulator.fleet.remove(sandbox);
    emulator.engine.clearFaults();
    Object.assign(emulator.settings, initial);
    assert.deepEqual(emulator.engine.errors, []);
  });
  after(() => emulator.close());

  const PROJECT = "prj_0123456789";
  const TEAM = "teamId=team_0123456789";

  /** @param {string} route "METHOD /path?query" below /api @param {unknown} [body] JSON, or bytes @param {Record<string, string>} [headers] */
  function call(route, body, headers = {}) {
    const [method, where] = route.split(" ");
    const json = method === "POST" && body !== undefined && !Buffer.isBuffer(body);
    const raw = json ? JSON.stringify(body) : Buffer.isBuffer(body) ? body : undefined;
    const { token } = emulator.credentials;
    const all = { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers };
    return ask(`${emulator.apiUrl}${where}`, { method, headers: all, body: raw });
  }
  const create = async (body = {}) => (await call(`POST /v3/sandboxes?${TEAM}`, { projectId: PROJECT, ...body })).json;
  const inside = (session, route, body, headers) => {
    const [method, where] = route.split(" ");
    const [name, query] = where.split("?");
    return call(`${method} /v2/sandboxes/sessions/${session.id}${name}?${TEAM}${query ? `&${query}` : ""}`, body, headers);
  };
  const run = (session, command, args, more = {}) =>
    inside(session, "POST /cmd", { command, args, env: {}, sudo: false, wait: true, logs: true, ...more });
  const linesOf = ({ text }) => text.trim().split("\n").map((line) => JSON.parse(line));
  const errorOf = ({ status, json }) => [status, json.error.code];

  test("2: the team on every request, the project where one is named, the bearer", async () => {
    const routes = ["POST /v3/sandboxes", "GET /v2/sandboxes/x", "DELETE /v2/sandboxes/x", "GET /v2/sandboxes/sessions/x", "POST /v2/sandboxes/sessions/x/cmd"];
    for (const route of routes) {
      assert.deepEqual(errorOf(await call(route, {})), [400, "bad_request"], route);
      assert.deepEqual(errorOf(await call(`${route}?${TEAM}`, {}, { authorization: "Bearer other" })), [403, "forbidden"]);
      assert.deepEqual(errorOf(await call(`${route}?teamId=other`, {})), [403, "forbidden"]);
    }
    assert.deepEqual(errorOf(await call(`GET /v2/sandboxes/x?${TEAM}`)), [400, "bad_request"]);
    assert.equal((await call(`POST /v3/sandboxes?${TEAM}`, {})).status, 400);
  });

  test("3: /v3 without and /v2 with a runtime, never with an image, too", async () => {
    const ask3 = (version, body) => call(`POST /${version}/sandboxes?${TEAM}`, { projectId: PROJECT, ...body });
    assert.equal((await ask3("v3", {})).status, 200);
    assert.equal((await ask3("v2", { runtime: "node24" })).status, 200);
    assert.equal((await ask3("v2", {})).status, 400);
    assert.equal((await ask3("v3", { runtime: "node24" })).status, 400);
    assert.equal((await ask3("v2", { runtime: "node24", image: "vercel/sandbox/ubuntu" })).status, 400);
    assert.equal((await ask3("v3", { image: "docker.io/library/ubuntu" })).status, 404);
  });

  test("3: what a create's reply has to say, in milliseconds since 1970", async () => {
    const { sandbox, session, routes, resumed } = await create({ name: "n", timeout: 600_000, resources: { vcpus: 4 } });
    for (const name of ["name", "persistent", "createdAt", "updatedAt", "currentSessionId", "status"]) assert.ok(name in sandbox, name);
    for (const name of ["id", "memory", "vcpus", "region", "timeout", "status", "requestedAt", "createdAt", "updatedAt", "cwd"]) {
      assert.ok(name in session, name);
    }
    assert.deepEqual([sandbox.currentSessionId, session.memory, session.timeout, routes, resumed], [session.id, 8192, 600_000, [], false]);
    assert.ok(Math.abs(session.startedAt - Date.now()) < 60_000);
  });

  test("3: the limits of a create: no null, no unknown member, 15 ports, 5 tags, whole milliseconds", async () => {
    for (const body of [
      { timeout: null }, { timeout: 1.5 }, { timeout: "60000" }, { unknown: 1 }, { ports: Array(16).fill(1) }, { env: { A: 1 } },
      { tags: { a: "", b: "", c: "", d: "", e: "", f: "" } }, { networkPolicy: "deny-all" }, { networkPolicy: { mode: "none" } },
    ]) {
      assert.equal((await call(`POST /v3/sandboxes?${TEAM}`, { projectId: PROJECT, ...body })).status, 400, JSON.stringify(body));
    }
  });

  test("3: a reply shows a policy in another shape than the request", async () => {
    const { session } = await create({ networkPolicy: { allow: ["*.example.com"], subnets: { deny: ["10.0.0.0/8"] } } });
    assert.deepEqual(session.networkPolicy, {
      mode: "custom", allowedDomains: ["*.example.com"], allowedCIDRs: [], deniedCIDRs: ["10.0.0.0/8"],
    });
    assert.deepEqual((await create({ networkPolicy: { mode: "deny-all" } })).session.networkPolicy, { mode: "deny-all" });
  });

  test("4.1, 4.2: by session and by name; resume starts a new session, without the files unless persistent", async () => {
    for (const persistent of [false, true]) {
      const name = `p-${persistent}`;
      const { session } = await create({ name, persistent });
      await run(session, "sh", ["-c", "echo x >f"]);
      assert.equal((await inside(session, "GET ")).json.session.status, "running");
      await inside(session, "POST /stop");
      const look = (resume) => call(`GET /v2/sandboxes/${name}?${TEAM}&projectId=${PROJECT}&resume=${resume}`);
      assert.equal((await look("false")).json.session.status, "stopped");
      const again = (await look("true")).json;
      assert.deepEqual([again.resumed, again.session.status], [true, "running"]);
      assert.notEqual(again.session.id, session.id);
      assert.equal((await inside(again.session, "POST /fs/read", { path: "f" })).status, persistent ? 200 : 404);
    }
  });

  test("4.3: a waited command is lines: its beginning, both outputs, its end with a number", async () => {
    const { session } = await create();
    const reply = await run(session, "sh", ["-c", "echo out; sleep 0.2; echo err >&2; exit 3"]);
    assert.equal(reply.headers["content-type"], "application/x-ndjson", "the whole value, without a charset");
    const [first, out, err, last] = linesOf(reply);
    assert.equal(first.command.exitCode, null);
    assert.deepEqual([out, err], [{ stream: "stdout", data: "out\n" }, { stream: "stderr", data: "err\n" }]);
    assert.deepEqual([last.command.id, last.command.exitCode], [first.command.id, 3]);
    assert.ok(last.command.durationMs >= 200);
  });

  test("4.3: no shell; a directory and variables of its own; sudo is root's home", async () => {
    const { session } = await create({ env: { A: "sandbox", B: "sandbox" } });
    const reply = await run(session, "sh", ["-c", "pwd; echo $A $B $HOME"], { cwd: "/", env: { B: "call" }, sudo: true });
    // What was printed by two calls may come as two lines.
    assert.equal(linesOf(reply).map((line) => line.data ?? "").join(""), "/\nsandbox call /root\n");
    assert.equal((await run(session, "echo a; echo b", [])).status, 400);
    assert.equal(linesOf(await run(session, "pwd", []))[1].data, `${session.cwd}\n`);
  });

  test("4.3: detached it answers at once; without logs there are only two lines", async () => {
    const { session } = await create();
    const detached = await inside(session, "POST /cmd", { command: "sleep", args: ["0.2"], env: {}, sudo: false });
    assert.match(detached.headers["content-type"], /^application\/json/);
    assert.equal(detached.json.command.exitCode, null);
    assert.equal(linesOf(await run(session, "echo", ["x"], { logs: false })).length, 2);
  });

  test("4.3: the limit is in milliseconds and kills: 137", async () => {
    const { session } = await create();
    const began = performance.now();
    const lines = linesOf(await run(session, "sleep", ["30"], { timeout: 200 }));
    assert.equal(lines.at(-1).command.exitCode, 137);
    assert.ok(performance.now() - began < 20_000);
  });

  test("4.3: data is text: a letter in two parts is lost, or kept", async () => {
    const letter = ["-c", "printf '\\303'; sleep 0.5; printf '\\251'"];
    for (const [wholeLetters, text] of [[false, "\ufffd\ufffd"], [true, "é"]]) {
      emulator.settings.wholeLetters = wholeLetters;
      const { session } = await create();
      const data = linesOf(await run(session, "sh", letter)).flatMap((line) => line.data ?? []);
      assert.equal(data.join(""), text);
    }
  });

  test("4.3: a session that ends ends the stream with an error line, or without a word", async () => {
    for (const tellsEnd of [true, false]) {
      emulator.settings.tellsEnd = tellsEnd;
      const { sandbox, session } = await create();
      const running = run(session, "sleep", ["30"]);
      const { commands } = emulator.fleet.find(sandbox.name).session;
      while (commands.size === 0) await new Promise((resolve) => setImmediate(resolve));
      emulator.expire(sandbox.name);
      const last = linesOf(await running).at(-1);
      if (tellsEnd) assert.deepEqual([last.stream, last.data.code], ["error", "sandbox_stopped"]);
      else assert.equal(last.command.exitCode, null);
    }
  });

  test("4.4, 4.5, 4.6: a command is looked at, waited for, read from the start, and killed by a number", async () => {
    const { session } = await create();
    const { id } = (await inside(session, "POST /cmd", { command: "sh", args: ["-c", "echo a; sleep 30"], env: {} })).json.command;
    assert.equal((await inside(session, `GET /cmd/${id}`)).json.command.exitCode, null);
    assert.equal((await inside(session, `POST /cmd/${id}/kill`, { signal: "SIGKILL" })).status, 400);
    const waiting = inside(session, `GET /cmd/${id}?wait=true`);
    while (emulator.fleet.session(session.id).commands.get(id).logs.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    await inside(session, `POST /cmd/${id}/kill`, { signal: 9 });
    // The sleep, which is the shell's child, holds the outputs: the kill is the one process's.
    assert.ok(emulator.fleet.session(session.id).commands.get(id).killed);
    emulator.expire(emulator.fleet.session(session.id).sandbox.name);
    await waiting;
    assert.deepEqual(linesOf(await inside(session, `GET /cmd/${id}/logs`))[0], { stream: "stdout", data: "a\n" });
    assert.deepEqual(errorOf(await inside(session, "GET /cmd/none")), [404, "not_found"]);
  });

  test("4.8: a gzip of ustar, relative to x-cwd, with pax for other names; parents are made", async () => {
    const { session } = await create();
    const header = (name, size, type = "0") => {
      const h = Buffer.alloc(512);
      h.write(name, 0);
      h.write("0000644\0", 100);
      h.write(`${size.toString(8).padStart(11, "0")}\0`, 124);
      h.write("        ", 148);
      h.write(type, 156);
      h.write("ustar\x0000", 257);
      h.write(`${h.reduce((sum, byte) => sum + byte, 0).toString(8).padStart(6, "0")}\0`, 148);
      return h;
    };
    const block = (text) => Buffer.concat([Buffer.from(text)], 512);
    const record = "17 path=d/\u00e9.txt\n";
    const parts = [header("PaxHeader", Buffer.byteLength(record), "x"), block(record), header("placeholder", 2), block("hi")];
    const archive = Buffer.concat([...parts, Buffer.alloc(1024)]);
    const send = (body, headers) => inside(session, "POST /fs/write", body, { "content-type": "application/gzip", "x-cwd": session.cwd, ...headers });
    assert.equal((await send(gzipSync(archive))).status, 200);
    assert.equal(readFileSync(path.join(session.cwd, "d/é.txt"), "utf8"), "hi");
    assert.equal(existsSync(path.join(session.cwd, "placeholder")), false);
    assert.equal((await send(archive)).status, 400, "no gzip");
    assert.equal((await send(gzipSync(archive.subarray(0, 1536)))).status, 400, "no end");
    assert.equal((await send(gzipSync(archive), { "content-type": "application/json" })).status, 400);
    archive[0] ^= 1;
    assert.equal((await send(gzipSync(archive))).status, 400, "a wrong checksum");
  });

  test("4.9: a read is a POST: bytes, 404 for a missing file and for a missing session, relative to the directory", async () => {
    const { session } = await create();
    await run(session, "sh", ["-c", "mkdir d; printf '\\000\\377' >d/f"]);
    const reply = await inside(session, "POST /fs/read", { path: "d/f" });
    assert.deepEqual([reply.status, reply.headers["content-type"], [...reply.body]], [200, "application/octet-stream", [0, 255]]);
    assert.deepEqual([...(await inside(session, "POST /fs/read", { path: "f", cwd: "d" })).body], [0, 255]);
    assert.deepEqual(errorOf(await inside(session, "POST /fs/read", { path: "none" })), [404, "not_found"]);
    assert.deepEqual(errorOf(await inside({ id: "none" }, "POST /fs/read", { path: "d/f" })), [404, "not_found"]);
    assert.equal((await inside(session, "POST /fs/read", { path: "d/f", cwd: null })).status, 400);
    assert.equal((await inside(session, "POST /fs/read", { path: "d" })).status, 400);
  });

  test("4.10, 4.11, 5: stopping is 422, stopped 410; a delete of what is not there 404", async () => {
    emulator.settings.stopMs = 100;
    const { session } = await create({ name: "n" });
    assert.equal((await inside(session, "POST /stop")).json.session.status, "stopping");
    assert.deepEqual(errorOf(await run(session, "true", [])), [422, "sandbox_stopping"]);
    while ((await inside(session, "GET ")).json.session.status !== "stopped");
    for (const route of ["POST /cmd", "POST /fs/read", "POST /fs/write", "POST /stop", "POST /extend-timeout"]) {
      assert.deepEqual(errorOf(await inside(session, route, {})), [410, "sandbox_stopped"], route);
    }
    emulator.fleet.find("n").session.status = "snapshotting";
    assert.deepEqual(errorOf(await run(session, "true", [])), [422, "sandbox_snapshotting"]);
    const gone = () => call(`DELETE /v2/sandboxes/n?${TEAM}&projectId=${PROJECT}`);
    assert.equal((await gone()).status, 200);
    assert.deepEqual(errorOf(await gone()), [404, "not_found"]);
  });

  test("4.12, 6: a lifetime ends it, in milliseconds; it can be extended", async () => {
    const { sandbox, session } = await create({ timeout: 1000 });
    await inside(session, "POST /extend-timeout", { duration: 60_000 });
    assert.equal((await inside(session, "GET ")).json.session.timeout, 61_000);
    assert.equal((await inside(session, "POST /extend-timeout", { duration: 24 * 3600 * 1000 })).status, 400);
    const short = await create({ timeout: 1000 });
    while ((await inside(short.session, "GET ")).json.session.status === "running") await new Promise((resolve) => setTimeout(resolve, 50));
    assert.equal((await inside(session, "GET ")).json.session.status, "running");
    assert.ok(emulator.fleet.find(sandbox.name));
  });

  test("5: refusals are an object with code and message; a name that is taken is a conflict", async () => {
    await create({ name: "n" });
    const reply = await call(`POST /v3/sandboxes?${TEAM}`, { projectId: PROJECT, name: "n" });
    assert.deepEqual(errorOf(reply), [409, "conflict"]);
    assert.equal(typeof reply.json.error.message, "string");
    emulator.settings.limit = 1;
    assert.deepEqual(errorOf(await call(`POST /v3/sandboxes?${TEAM}`, { projectId: PROJECT })), [402, "payment_required"]);
  });
});
