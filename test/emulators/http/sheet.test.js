// The emulator against the fact sheet: a test for each line of its list for test servers, and for the client's
// requests as they were seen.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { after, afterEach, before, describe, test } from "node:test";
import { ask } from "../ask.js";
import { replies } from "../engine.js";
import { findMarked } from "../processes.js";
import { startHttp } from "./index.js";

const MANIFEST = {
  image: "python:3.12-slim",
  working_dir: "/workspace",
  environment: { LANG: "C.UTF-8" },
  network: { default: "deny", allowed_hosts: [], denied_hosts: [] },
  resources: { cpu: "1.5", memory: "512m", gpu: false },
};

describe("fact sheet", () => {
  let emulator;
  before(async () => (emulator = await startHttp()));
  after(() => emulator.close());
  afterEach(() => {
    emulator.engine.clearFaults();
    Object.assign(emulator.settings, { lostStatus: 404, words: "code", makesFolders: true, stopsOnLeave: false });
    assert.deepEqual(emulator.engine.errors, []);
  });

  const headers = () => ({ authorization: `Bearer ${emulator.token}` });
  const send = (path, { body, ...options } = {}) =>
    ask(emulator.url + path, { headers: headers(), method: "POST", body: typeof body === "object" && !Buffer.isBuffer(body) ? JSON.stringify(body) : body, ...options });
  const create = async (changes = {}) => (await send("/sessions", { body: { manifest: { ...MANIFEST, ...changes } } })).json.session_id;
  const run = async (id, more) => (await send(`/sessions/${id}/exec`, { body: { cwd: "/workspace", env: {}, timeout_seconds: null, stdin: null, ...more } })).json;
  const file = (id, name, method = "GET", body) => send(`/sessions/${id}/files?path=${name}`, { method, body });

  test("sheet 2, 10.1: the exact Authorization, on all five requests; a path prefix", async () => {
    const id = await create();
    const five = [["POST", ""], ["POST", `/${id}/exec`], ["PUT", `/${id}/files?path=/workspace/f`], ["GET", `/${id}/files?path=/workspace/f`], ["DELETE", `/${id}`]];
    for (const authorization of [undefined, "Bearer wrong", emulator.token, `Bearer ${emulator.token} `.trimEnd().toLowerCase()]) {
      for (const [method, path] of five) {
        const reply = await ask(`${emulator.url}/sessions${path}`, { method, headers: authorization === undefined ? {} : { authorization } });
        assert.deepEqual([reply.status, reply.json.error.code], [401, "unauthorized"]);
      }
    }
    assert.equal((await ask(`${emulator.origin}/sessions`, { method: "POST", headers: headers() })).status, 404);
  });

  test("sheet 3.1, 10.2: the manifest has all members, and each its type: cpu and memory are text", async () => {
    assert.match(await create(), /^[A-Za-z0-9._~-]+$/);
    assert.ok(await create({ image: null, resources: { cpu: null, memory: null, gpu: true } }));
    const wrong = [
      { image: 7 }, { image: undefined }, { working_dir: "work" }, { working_dir: "/a/../b" }, { environment: { "a-b": "x" } }, { environment: { A: 1 } },
      { network: { ...MANIFEST.network, default: "off" } }, { network: { default: "deny" } }, { resources: { ...MANIFEST.resources, cpu: 1.5 } },
      { resources: { ...MANIFEST.resources, memory: 512 } }, { resources: { ...MANIFEST.resources, gpu: "no" } }, { resources: undefined },
    ];
    for (const changes of wrong) {
      const reply = await send("/sessions", { body: { manifest: { ...MANIFEST, ...changes } } });
      assert.deepEqual([reply.status, reply.json.error.code], [400, "invalid_request"], JSON.stringify(changes));
    }
    assert.equal((await send("/sessions", { body: "{" })).status, 400);
  });

  test("sheet 3.2, 10.3: an argv without a shell, in the session's directory, whose name working_dir stands for", async () => {
    const id = await create();
    const { directory } = emulator.session(id);
    const plain = await run(id, { command: ["printf", "%s|", "a b", "$HOME", "x\ny"] });
    assert.deepEqual(plain, { exit_code: 0, stdout: "a b|$HOME|x\ny|", stderr: "", timed_out: false });
    assert.equal((await run(id, { command: ["pwd"] })).stdout, `${directory}\n`);
    assert.equal((await run(id, { command: ["pwd"], cwd: null })).stdout, `${directory}\n`);
    await run(id, { command: ["mkdir", "sub"] });
    assert.equal((await run(id, { command: ["pwd"], cwd: "/workspace/sub" })).stdout, `${directory}/sub\n`);
    const both = await run(id, { command: ["sh", "-c", "cat; echo $LANG $MORE >&2; exit 7"], env: { MORE: "1" }, stdin: "in" });
    assert.deepEqual(both, { exit_code: 7, stdout: "in", stderr: "C.UTF-8 1\n", timed_out: false });
    assert.equal((await run(id, { command: ["cat"] })).stdout, "", "standard input is empty");
    assert.equal((await run(id, { command: ["no-such-program"] })).exit_code, 127);
    for (const command of [[], "true", [""], [1], undefined]) {
      assert.equal((await send(`/sessions/${id}/exec`, { body: { command } })).status, 400);
    }
    for (const more of [{ timeout_seconds: 0 }, { timeout_seconds: 1.5 }, { cwd: "sub" }, { stdin: 7 }, { env: { A: 1 } }]) {
      assert.equal((await send(`/sessions/${id}/exec`, { body: { command: ["true"], ...more } })).status, 400, JSON.stringify(more));
    }
  });

  test("sheet 10.4: a limit ends the process group, and is a 200", async () => {
    const id = await create();
    const started = performance.now();
    const result = await run(id, { command: ["sh", "-c", "echo before; sleep 300 & sleep 300"], timeout_seconds: 1 });
    assert.deepEqual(result, { exit_code: 124, stdout: "before\n", stderr: "", timed_out: true });
    assert.ok(performance.now() - started < 20_000);
    assert.deepEqual(findMarked(emulator.session(id).marker), []);
  });

  test("sheet 3.3, 3.4, 10.5: bytes are exact; folders are made on the way; a blank is %20 or +", async () => {
    const id = await create();
    const every = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
    for (const bytes of [Buffer.alloc(0), every, Buffer.alloc(5 << 20, every)]) {
      assert.equal((await file(id, "/workspace/a/b", "PUT", bytes)).status, 204);
      const { status, body } = await file(id, "/workspace/a/b");
      assert.deepEqual([status, body.equals(bytes)], [200, true]);
    }
    await file(id, "%2Fworkspace%2Fa+b%2B%26", "PUT", "x");
    assert.equal(readFileSync(`${emulator.session(id).directory}/a b+&`, "utf8"), "x");
    assert.equal((await file(id, "/workspace/a%20b%2B%26")).text, "x");
    const missing = await file(id, "/workspace/none");
    assert.deepEqual([missing.status, missing.json.error.code], [404, "file_not_found"]);
    assert.equal((await file(id, "/workspace/a")).json.error.code, "is_directory");
    assert.equal((await file(id, "a/b")).json.error.code, "invalid_request");
    for (const name of ["/etc/hostname", "/workspace/../x", "/workspacex"]) assert.equal((await file(id, name)).status, 403, name);
    emulator.settings.makesFolders = false;
    assert.equal((await file(id, "/workspace/new/f", "PUT", "x")).status, 404);
  });

  test("sheet 10.6: bytes that are no UTF-8 become U+FFFD", async () => {
    const id = await create();
    assert.equal((await run(id, { command: ["printf", "a\\377b\\0c"] })).stdout, "a\ufffdb\0c");
  });

  test("sheet 3.5, 6: the end takes all along; then, and of an unknown id, it is told by 404 or 410, in words or none", async () => {
    const id = await create();
    const { directory, marker } = emulator.session(id);
    await run(id, { command: ["sh", "-c", "setsid sleep 300 >/dev/null 2>&1 & true"] });
    assert.notDeepEqual(findMarked(marker), []);
    assert.equal((await send(`/sessions/${id}`, { method: "DELETE" })).status, 204);
    assert.deepEqual([findMarked(marker), existsSync(directory)], [[], false]);
    for (const [settings, status, body] of [
      [{}, 404, /"code":"session_not_found"/], [{ lostStatus: 410 }, 410, /"code":"session_gone"/], [{ words: "detail", lostStatus: 404 }, 404, /^\{"detail":/], [{ words: "none" }, 404, /^$/],
    ]) {
      Object.assign(emulator.settings, settings);
      for (const [method, path] of [["POST", "/exec"], ["GET", "/files?path=/workspace/f"], ["DELETE", ""]]) {
        const reply = await send(`/sessions/${id}${path}`, { method, body: method === "POST" ? { command: ["true"] } : undefined });
        assert.equal(reply.status, status);
        assert.match(reply.text, body);
      }
    }
  });

  test("sheet 5: a client that leaves ends nothing, or its command", async () => {
    const id = await create();
    for (const [stopsOnLeave, there] of [[false, true], [true, false]]) {
      emulator.settings.stopsOnLeave = stopsOnLeave;
      const leave = new AbortController();
      const left = fetch(`${emulator.url}/sessions/${id}/exec`, {
        method: "POST", headers: headers(), signal: leave.signal, body: JSON.stringify({ command: ["sh", "-c", "sleep 1; touch done"] }),
      }).catch(() => {});
      const { length } = emulator.engine.log;
      while (emulator.engine.log.length === length && findMarked(emulator.session(id).marker).length === 0) await emulator.engine.sleep(10);
      leave.abort();
      await left;
      while (findMarked(emulator.session(id).marker).length > 0) await emulator.engine.sleep(20);
      assert.equal(existsSync(`${emulator.session(id).directory}/done`), there);
      await run(id, { command: ["rm", "-f", "done"] });
    }
  });

  test("sheet 10.7: scripted faults: a drop in the middle, 500 once, no JSON, no session_id, a redirect", async () => {
    const { engine } = emulator;
    const id = await create();
    engine.fault("GET /sessions/{id}/files", { stop: { after: 2, how: "close", keepLength: true } });
    await file(id, "/workspace/f", "PUT", "12345");
    assert.equal((await file(id, "/workspace/f")).complete, false);
    engine.fault("POST /sessions", { instead: { status: 500 } });
    assert.equal((await send("/sessions", { body: { manifest: MANIFEST } })).status, 500);
    assert.ok(await create());
    engine.fault("POST /sessions", { instead: replies.json(201, {}), run: true });
    const { length } = emulator.fleet.all();
    assert.equal(await create(), undefined);
    assert.equal(emulator.fleet.all().length, length + 1);
    engine.fault("POST /sessions", { instead: { status: 307, headers: { location: "http://127.0.0.1:1/" } } });
    assert.equal((await send("/sessions", { body: { manifest: MANIFEST } })).status, 307);
  });

  test("sheet 10.8: every request is in the log, by its route", async () => {
    const { engine } = emulator;
    engine.clearLog();
    const id = await create();
    await run(id, { command: ["true"] });
    await file(id, "/workspace/f", "PUT", "x");
    await file(id, "/workspace/f");
    await send(`/sessions/${id}`, { method: "DELETE" });
    await send("/sessions/x/other");
    assert.deepEqual(engine.log.map(({ route }) => route), [
      "POST /sessions", "POST /sessions/{id}/exec", "PUT /sessions/{id}/files", "GET /sessions/{id}/files", "DELETE /sessions/{id}", "POST /api/sessions/x/other",
    ]);
    assert.equal(engine.count("DELETE /sessions/{id}"), 1);
  });
});
