// The daemon and the code interpreter against the fact sheet, with a client that reads every byte.
import assert from "node:assert/strict";
import { existsSync, truncateSync, writeFileSync } from "node:fs";
import { before, describe, test } from "node:test";
import { gunzipSync, gzipSync } from "node:zlib";
import { RawConnection } from "../raw.js";
import { ask, create, envelopes } from "./client.js";
import { envelope } from "./connect.js";
import { signature } from "./files.js";
import { isAlive, untilDead, useEmulator } from "./support.js";

const events = ({ frames }) => frames.filter(({ flags }) => flags === 0).map(({ message }) => message.event);
const text = (reply, name) =>
  Buffer.concat(events(reply).map(({ data }) => Buffer.from(data?.[name] ?? "", "base64"))).toString();
const lastFrame = ({ frames }) => frames[frames.length - 1];

describe("Process", () => {
  const use = useEmulator();
  let client;
  before(async () => {
    client = await create(use.emulator, { envVars: { GLOBAL: "g" } });
  });

  test("messages leave out zeros, have stray blanks, come in pieces", async () => {
    const pieces = new Set();
    const texts = [];
    for (let i = 0; i < 10; i += 1) {
      const connection = await RawConnection.open(use.emulator.sandboxUrl);
      const body = envelope(0, JSON.stringify({ process: { cmd: "echo", args: ["hi"] }, stdin: false }));
      const headers = { ...client.headers(), "content-type": "application/connect+json" };
      connection.request("POST /process.Process/Start", headers, body);
      await connection.until(({ chunked }) => chunked.complete);
      pieces.add(connection.body.split(/\r\n[0-9a-f]+\r\n/).length);
      connection.socket.destroy();
      const frames = await envelopes(Buffer.from(connection.chunked.data, "latin1"));
      assert.deepEqual(frames.map(({ flags }) => flags), [0, 0, 0, 2]);
      assert.deepEqual(frames[1].message, { event: { data: { stdout: "aGkK" } } });
      assert.deepEqual(frames[2].message, { event: { end: { exited: true, status: "exit status 0" } } });
      texts.push(frames[2].text);
    }
    assert.ok(pieces.size > 1, "envelopes are cut at different places");
    assert.ok(new Set(texts).size > 1, "blanks vary");
  });

  test("the ends of processes", async () => {
    const end = async (command) => events(await client.run(command)).at(-1).end;
    assert.deepEqual(await end("exit 3"), { exitCode: 3, exited: true, status: "exit status 3", error: "exit status 3" });
    assert.deepEqual(await end("kill -9 $$"), { exitCode: -1, status: "signal: killed", error: "signal: killed" });
    assert.deepEqual((await end("kill -SEGV $$")).status, "signal: segmentation fault");
    const missing = await client.stream("process.Process/Start", [{ process: { cmd: "nosuch", args: [] }, stdin: false }]);
    assert.match(text(missing, "stderr"), /nosuch: not found/);
    assert.equal(events(missing).at(-1).end.exitCode, 127);
    const verbatim = { cmd: "printf", args: ["%s|", "a  b", "$HOME", "", "-n"] };
    assert.equal(text(await client.stream("process.Process/Start", [{ process: verbatim, stdin: false }]), "stdout"), "a  b|$HOME||-n|");
  });

  test("real pipes, /dev/null for input, output at any byte", async () => {
    const reply = await client.run("echo a > /dev/stderr; stat -Lc %F /dev/stdin /dev/stdout; printf '\\0\\377'");
    assert.equal(text(reply, "stderr"), "a\n");
    const out = Buffer.concat(events(reply).map(({ data }) => Buffer.from(data?.stdout ?? "", "base64")));
    assert.equal(out.toString("latin1"), "character special file\nfifo\n\0\xff");
  });

  test("refusals inside a stream", async () => {
    const refused = async (message, headers) => lastFrame(await client.stream("process.Process/Start", message, headers)).message.error;
    const process = { cmd: "true" };
    assert.deepEqual(await refused([{ process: { ...process, cwd: "/nope" } }]), {
      code: "invalid_argument",
      message: "cwd '/nope' does not exist",
    });
    const nobody = { authorization: `Basic ${Buffer.from("nobody:").toString("base64")}` };
    assert.deepEqual(await refused([{ process }], nobody), { code: "unauthenticated", message: "invalid username: 'nobody'" });
    assert.equal((await refused([{ process }], { "connect-timeout-ms": "12345678901" })).code, "invalid_argument");
    assert.equal((await refused([{ process }], { "connect-protocol-version": "2" })).code, "invalid_argument");
    assert.equal((await refused([{ process: { ...process, args: "x" } }])).code, "invalid_argument");
    assert.equal((await refused([])).code, "invalid_argument");
    assert.equal((await refused([{ process, pty: {} }])).code, "unimplemented");
    const health = await client.ask("/health", { headers: nobody });
    assert.deepEqual([health.status, health.json.code], [401, "unauthenticated"]);
  });

  test("the outer form: method, type, token", async () => {
    const start = "/process.Process/Start";
    assert.equal((await client.ask(start)).status, 405);
    const other = await client.call("process.Process/Start", {});
    assert.deepEqual([other.status, other.headers["accept-post"]], [415, "application/connect+json"]);
    const { status, json } = await client.call("process.Process/List", {}, { "x-access-token": "wrong" });
    assert.deepEqual([status, json.code], [401, 401]);
    assert.equal((await client.call("process.Process/None", {})).text, "404 page not found\n");
    const zipped = await client.call("process.Process/List", {}, { "accept-encoding": "gzip" });
    assert.equal(zipped.headers["content-encoding"], "gzip");
    assert.ok(JSON.parse(gunzipSync(zipped.body).toString()));
    const garbage = await client.ask("/process.Process/List", { method: "POST", headers: { "content-type": "application/json" }, body: "{" });
    assert.deepEqual([garbage.status, garbage.json.code], [400, "invalid_argument"]);
  });

  test("input is open unless refused; StreamInput, CloseStdin", async () => {
    const started = client.stream("process.Process/Start", [{ process: { cmd: "cat" }, tag: "reader" }]);
    let listed = [];
    while (!listed.length) listed = (await client.call("process.Process/List", {})).json.processes ?? [];
    const [{ pid, tag, config }] = listed;
    assert.deepEqual([tag, config], ["reader", { cmd: "cat" }]);
    const data = { input: { stdin: Buffer.from("streamed ").toString("base64url") } };
    const sent = await client.stream("process.Process/StreamInput", [{ start: { process: { tag } } }, { keepalive: {} }, { data }]);
    assert.deepEqual(sent.frames.map(({ message }) => message), [{}, {}]);
    await client.call("process.Process/SendInput", { process: { pid }, input: { stdin: Buffer.from("sent").toString("base64") } });
    assert.equal((await client.call("process.Process/CloseStdin", { process: { pid } })).status, 200);
    assert.equal(text(await started, "stdout"), "streamed sent");
    const late = await client.call("process.Process/SendInput", { process: { pid }, input: { stdin: "" } });
    assert.deepEqual([late.status, late.json.code], [404, "not_found"]);
  });

  test("signals: two only, to the leader only", async () => {
    const run = client.run("sleep 61 & echo $! $$ > pids; wait");
    let pids = [];
    while (pids.length < 2) pids = (await client.ask("/files?path=pids")).text.match(/\d+(?=[ \n])/g) ?? [];
    const [child, pid] = pids.map(Number);
    const signal = (name, target = pid) => client.call("process.Process/SendSignal", { process: { pid: target }, signal: name });
    assert.equal((await signal("SIGNAL_SIGHUP")).json.code, "unimplemented");
    assert.equal((await signal(undefined)).status, 501);
    assert.deepEqual((await signal(9, 1)).json, { code: "not_found", message: "process with pid 1 not found" });
    assert.equal((await signal("SIGNAL_SIGTERM")).status, 200);
    const end = { exitCode: -1, status: "signal: terminated", error: "signal: terminated" };
    assert.deepEqual(events(await run).at(-1).end, end);
    assert.ok(isAlive(child));
    const kept = await client.stream("process.Process/Connect", [{ process: { pid } }]);
    assert.deepEqual(events(kept).map((event) => Object.keys(event)[0]), ["start", "end"]);
  });

  test("a deadline ends the stream and the process, also when the client has gone", async () => {
    const reply = await client.run("echo $$; exec sleep 62", { "connect-timeout-ms": "2000" });
    const leader = Number(text(reply, "stdout"));
    assert.deepEqual(lastFrame(reply).message.error, { code: "deadline_exceeded", message: "context deadline exceeded" });
    await untilDead(leader);

    const connection = await RawConnection.open(use.emulator.sandboxUrl);
    const body = envelope(0, JSON.stringify({ process: { cmd: "sleep", args: ["63"] }, stdin: false }));
    const headers = { ...client.headers(), "content-type": "application/connect+json", "connect-timeout-ms": "3000" };
    connection.request("POST /process.Process/Start", headers, body);
    await connection.until(({ chunked }) => chunked.data.includes("}}}"));
    const pid = Number(connection.chunked.data.match(/"pid": ?(\d+)/)[1]);
    connection.socket.destroy();
    assert.ok(isAlive(pid));
    await untilDead(pid);
  });

  test("keepalives while there is nothing to say", async () => {
    const reply = await client.run("sleep 1.3", { "keepalive-ping-interval": "1" });
    assert.deepEqual(events(reply)[1], { keepalive: {} });
  });
});

describe("files", () => {
  const use = useEmulator({ envdVersion: "0.6.13" });
  let client;
  before(async () => {
    client = await create(use.emulator);
  });
  const put = (name, body, headers = {}) =>
    client.ask(`/files?path=${encodeURIComponent(name)}`, {
      method: "POST",
      headers: { "content-type": "application/octet-stream", ...headers },
      body,
    });
  const get = (name, headers) => client.ask(`/files?path=${encodeURIComponent(name)}`, { headers });

  test("signatures", async () => {
    const vector = { path: "/home/user/a.txt", operation: "read", user: "", token: "tok" };
    assert.equal(signature(vector), "v1_Zkbb3914oLJLvMBzCAHQhm2ydBLxbSx2eQUR/kLdvIY");
    const second = { path: "a.txt", operation: "write", user: "root", token: "tok", expiration: "1700000000" };
    assert.equal(signature(second), "v1_xb/mfSAOsY4YpZgv+XwNldKoTJiskHiYOF/Gz/ZxxU4");
    const bare = (query, headers) =>
      ask(`${use.emulator.sandboxUrl}/files?${query}`, {
        headers: { "e2b-sandbox-id": client.id, "e2b-sandbox-port": "49983", ...headers },
      });
    assert.equal((await bare("path=a")).json.message, "missing signature query parameter");
    assert.equal((await bare("path=a&signature=v1_x")).json.message, "invalid signature");
    const wrong = await bare("path=a", { "x-access-token": "x" });
    assert.equal(wrong.json.message, "access token present in header but does not match");
  });

  test("down: plain, ranges, conditions, encodings", async () => {
    const written = await put("a.bin", "0123456789");
    assert.equal(written.headers["content-type"], "text/plain; charset=utf-8");
    assert.deepEqual(written.json.map(({ name, type }) => [name, type]), [["a.bin", "file"]]);
    const plain = await get("a.bin");
    assert.deepEqual([plain.status, plain.headers["content-length"], plain.text], [200, "10", "0123456789"]);
    const part = await get("a.bin", { range: "bytes=2-4" });
    assert.deepEqual([part.status, part.headers["content-range"], part.text], [206, "bytes 2-4/10", "234"]);
    assert.equal((await get("a.bin", { range: "bytes=-3" })).text, "789");
    assert.equal((await get("a.bin", { range: "bytes=10-" })).status, 416);
    assert.equal((await get("a.bin", { "if-modified-since": plain.headers["last-modified"] })).status, 304);
    const zipped = await get("a.bin", { "accept-encoding": "gzip" });
    assert.deepEqual([zipped.headers["content-encoding"], zipped.headers["content-length"]], ["gzip", undefined]);
    assert.equal(gunzipSync(zipped.body).toString(), "0123456789");
    assert.equal((await get("a.bin", { "accept-encoding": "identity;q=0" })).status, 406);
    await put("empty", "");
    assert.equal((await get("empty")).headers["content-length"], "0");
  });

  test("a file that becomes shorter while it is sent ends the connection", async () => {
    await put("shrinks", "0123456789");
    const gate = use.engine.gate();
    use.engine.fault("envd GET /files", { hold: gate });
    const reply = get("shrinks");
    await gate.arrived(1);
    truncateSync(`${use.emulator.sandbox(client.id).homes.user}/shrinks`, 3);
    gate.open();
    const { headers, text: sent } = await reply;
    assert.deepEqual([headers["content-length"], sent], ["10", "012"]);
  });

  test("errors and their statuses", async () => {
    await put("f", "x");
    const home = use.emulator.sandbox(client.id).homes.user;
    assert.deepEqual((await get("none")).json, { code: 404, message: `path '${home}/none' does not exist` });
    assert.equal((await get(".")).status, 400);
    assert.equal((await get("~other/x")).status, 400);
    assert.equal((await get("f/child")).status, 500);
    assert.equal((await put("f/child", "x")).status, 500);
    assert.equal((await put(".", "x")).status, 400);
    assert.equal((await put("", "x")).status, 400);
    assert.equal((await put("t", "x", { "content-type": "text/plain" })).json.message, "unsupported content type: text/plain");
    const unknown = await client.ask("/files?path=f&username=nobody");
    assert.deepEqual([unknown.status, unknown.json.code], [401, 401]);
    assert.equal((await put("z", gzipSync("zip"), { "content-encoding": "gzip" })).status, 200);
    assert.equal((await get("z")).text, "zip");
  });

  test("multipart: names, several parts, none", async () => {
    const type = { "content-type": 'multipart/form-data; boundary="B B"' };
    const part = (name, filename, data) =>
      `--B B\r\nContent-Disposition: form-data; name="${name}"; filename="${filename}"\r\n\r\n${data}\r\n`;
    const post = (query, body) => client.ask(`/files${query}`, { method: "POST", headers: type, body });
    const two = await post("", `${part("file", "m/1", "one\r\n--B")}${part("file", 'q\\"2', "two")}--B B--\r\n`);
    assert.deepEqual(two.json.map(({ name }) => name), ["1", 'q"2']);
    assert.equal((await get("m/1")).text, "one\r\n--B");
    assert.deepEqual((await post("", `${part("other", "x", "1")}--B B--\r\n`)).json, []);
    assert.equal((await post("?path=same", `${part("file", "a", "1")}${part("file", "b", "2")}--B B--\r\n`)).status, 400);
    assert.equal((await post("", part("file", "cut", "1"))).status, 500);
  });

  test("an older daemon knows multipart only", async () => {
    use.emulator.settings.envdVersion = "0.5.6";
    const old = await create(use.emulator);
    const headers = { "content-type": "application/octet-stream" };
    const reply = await old.ask("/files?path=a", { method: "POST", headers, body: "x" });
    assert.equal(reply.status, 500);
    assert.match(reply.json.message, /^error parsing multipart form/);
    use.emulator.settings.envdVersion = "0.5.1";
    const older = await create(use.emulator);
    assert.equal((await older.call("process.Process/CloseStdin", { process: { pid: 1 } })).status, 404);
  });

  test("the Filesystem service", async () => {
    await put("s/file", "12345");
    const stat = (await client.call("filesystem.Filesystem/Stat", { path: "s/file" })).json.entry;
    assert.deepEqual([stat.size, stat.mode, stat.type], ["5", 420, "FILE_TYPE_FILE"]);
    await put("s/none", "");
    assert.equal((await client.call("filesystem.Filesystem/Stat", { path: "s/none" })).json.entry.size, undefined);
    const code = async (method, message) => {
      const { status, json } = await client.call(`filesystem.Filesystem/${method}`, message);
      return [status, json.code];
    };
    assert.deepEqual(await code("Stat", { path: "absent" }), [404, "not_found"]);
    assert.deepEqual(await code("MakeDir", { path: "s" }), [409, "already_exists"]);
    assert.deepEqual(await code("MakeDir", { path: "s/file" }), [400, "invalid_argument"]);
    assert.deepEqual(await code("ListDir", { path: "s/file" }), [400, "invalid_argument"]);
    assert.deepEqual(await code("Remove", { path: "absent" }), [200, undefined]);
    assert.deepEqual(await code("Stat", { path: 1 }), [400, "invalid_argument"]);
    await client.run("ln -s loop s/loop");
    assert.deepEqual(await code("ListDir", { path: "s/loop" }), [400, "failed_precondition"]);
  });
});

describe("code interpreter", () => {
  const use = useEmulator({ executeKeepaliveMs: 50 });
  let client;
  const start = async (envVars) => create(use.emulator, { templateID: "code-interpreter-v1", envVars });
  const execute = async (target, request) => {
    const headers = { "content-type": "application/json" };
    const reply = await target.ask("/execute", { method: "POST", port: 49999, headers, body: JSON.stringify(request) });
    const lines = reply.status === 200 ? reply.text.split("\n").slice(0, -1).map((line) => JSON.parse(line)) : [];
    return { ...reply, lines: lines.filter(({ type }) => type !== "keepalive"), all: lines };
  };
  before(async () => {
    client = await start();
  });

  test("the lines of a run", async () => {
    const { lines, headers, text: body, all } = await execute(client, { code: "import time; time.sleep(0.2)\nprint('\u00e9\u{1F600}')\n{'a': 1}" });
    assert.equal(headers["content-type"], undefined);
    assert.match(body, /^[\x20-\x7e\n]*$/);
    assert.match(body, /\\u00e9\\ud83d\\ude00/);
    assert.deepEqual(lines.map(({ type }) => type), ["number_of_executions", "stdout", "result", "end_of_execution"]);
    assert.deepEqual(lines[2], { type: "result", text: "{'a': 1}", extra: {}, is_main_result: true });
    assert.ok(all.some(({ type }) => type === "keepalive"));
    assert.equal((await client.ask("/health", { port: 49999 })).text, '"OK"');
  });

  test("requests it refuses", async () => {
    const refused = async (request) => {
      const { status, text: body } = await execute(client, request);
      return [status, body];
    };
    const contexts = (await client.ask("/contexts", { port: 49999 })).json;
    assert.deepEqual(contexts.map(({ language }) => language), ["python", "javascript"]);
    const both = { code: "1", language: "python", context_id: contexts[0].id };
    assert.deepEqual(await refused(both), [400, "Only one of context_id or language can be provided"]);
    assert.deepEqual(await refused({ code: "1", context_id: "none" }), [404, "Context none not found"]);
    assert.match((await refused({ code: "1", language: "cobol" }))[1], /^Failed to create context/);
    assert.equal((await refused({ code: 1 }))[0], 422);
    assert.match((await refused({}))[1], /"loc":\["body","code"\]/);
  });

  test("a quote in the sandbox's environment breaks the first cell, as it does there", async () => {
    const quoted = await start({ NAME: "it's" });
    const types = ({ lines }) => lines.map(({ type }) => type);
    assert.deepEqual(types(await execute(quoted, { code: "1" })), ["number_of_executions", "error", "end_of_execution"]);
    assert.deepEqual(types(await execute(quoted, { code: "1" })), ["number_of_executions", "result", "end_of_execution"]);
  });

  test("runs in one context wait for each other", async () => {
    const home = use.emulator.sandbox(client.id).homes.user;
    const code = `import os, time\nopen('${home}/begun', 'w').close()\nwhile not os.path.exists('${home}/go'): time.sleep(0.02)\norder = ['first']; 1`;
    const first = execute(client, { code });
    while (!existsSync(`${home}/begun`)) await use.engine.sleep(5);
    const second = execute(client, { code: "order.append('second'); order" });
    await use.engine.waitFor("interpreter POST /execute", 2);
    writeFileSync(`${home}/go`, "");
    assert.equal((await first).lines.at(-1).type, "end_of_execution");
    assert.equal((await second).lines.find(({ type }) => type === "result").text, "['first', 'second']");
  });
});
