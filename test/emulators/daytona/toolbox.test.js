// The toolbox daemon against the fact sheet, version by version, with a client that reads every byte.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";
import { findMarked } from "../processes.js";
import { create, useEmulator } from "./client.js";
import { goJson, goText } from "./gojson.js";
import { findShell } from "./shell.js";

const alive = (pid) => {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
};
const until = async (condition) => {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
};
/** A sandbox with a daemon of the given version, and its home directory. */
async function sandboxOf(use, daemonVersion, request) {
  if (daemonVersion) use.emulator.settings.daemonVersion = daemonVersion;
  const sandbox = await create(use.emulator, request);
  return Object.assign(sandbox, { home: use.emulator.sandbox(sandbox.id).home });
}

describe("execute", () => {
  const use = useEmulator();

  test("a shell fed by its input: one output, nothing trimmed, nothing kept", async () => {
    const sandbox = await sandboxOf(use);
    const reply = await sandbox.execute("echo out; echo err >&2; printf ' end '; exit 3");
    assert.deepEqual([reply.status, reply.text], [200, '{"exitCode":3,"result":"out\\nerr\\n end "}']);
    assert.equal(reply.headers["content-type"], "application/json; charset=utf-8");
    assert.equal((await sandbox.execute("cat\necho b")).json.result, "echo b");
    assert.equal((await sandbox.execute("{ :\ncat\necho b\n} </dev/null")).json.result, "b\n");
    await sandbox.execute("cd /; export A=1; B=2");
    assert.equal((await sandbox.execute("pwd; echo $A$B")).json.result, `${sandbox.home}\n\n`);
    assert.equal((await sandbox.execute("echo >/dev/stderr x; [ -p /dev/stdout ] && echo pipe")).json.result, "x\npipe\n");
  });

  test("what the daemon's JSON looks like", async () => {
    const sandbox = await sandboxOf(use);
    const { text } = await sandbox.execute("printf '<a>&\\342\\200\\250\\000\\b\"\\377\\342\\202.'");
    assert.equal(text, '{"exitCode":0,"result":"\\u003ca\\u003e\\u0026\\u2028\\u0000\\b\\"\\ufffd\\ufffd\\ufffd."}');
    const broken = Buffer.from([0xe2, 0x82, 0x41, 0xf0, 0x9f, 0x98, 0x80, 0xc0, 0xaf, 0xed, 0xa0, 0x80, 0xff]);
    assert.equal(JSON.parse(goJson(goText(broken))), "\ufffd\ufffdA😀\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd");
    assert.equal(goJson({ "<": ["\u2029"] }), '{"\\u003c":["\\u2029"]}');
  });

  test("environment and directory", async () => {
    const sandbox = await sandboxOf(use, undefined, { env: { A: "sandbox", B: "b" } });
    const reply = await sandbox.execute('echo "$A $B $DAYTONA_SANDBOX_ID"', { envs: { A: "call" }, env: { B: "ignored" } });
    assert.equal(reply.json.result, `call b ${sandbox.id}\n`);
    mkdirSync(path.join(sandbox.home, "sub"));
    for (const cwd of ["sub", "/home/daytona/sub", path.join(sandbox.home, "sub")]) {
      assert.equal((await sandbox.execute("pwd", { cwd })).json.result, `${sandbox.home}/sub\n`);
    }
    writeFileSync(path.join(sandbox.home, "file"), "");
    const bad = { "/nope": "no such file or directory", file: "not a directory" };
    for (const [cwd, reason] of Object.entries(bad)) {
      const { status, json } = await sandbox.execute("true", { cwd });
      assert.deepEqual([status, json], [200, { exitCode: -1, result: `fork/exec ${findShell(use.emulator.sandbox(sandbox.id))}: ${reason}` }]);
    }
    assert.equal((await sandbox.execute("true", { envs: { "1A": "" } })).json.message, "invalid environment variable name: '1A'");
    use.emulator.settings.shell = "/no/shell";
    assert.deepEqual((await sandbox.execute("true")).json, { exitCode: -1, result: "fork/exec /no/shell: no such file or directory" });
  });

  test("what is no request", async () => {
    const sandbox = await sandboxOf(use);
    const bodies = ['{"command":" \\n"}', "{}", '{"command":7}', '{"command":"x","timeout":-1}', '{"command":"x","timeout":1.5}', "{", ""];
    for (const raw of bodies) {
      const { status, json } = await sandbox.ask("/process/execute", undefined, { raw, method: "POST" });
      assert.deepEqual([status, json.statusCode, json.source], [400, 400, "DAYTONA_DAEMON"], raw);
    }
    assert.equal((await sandbox.execute("true", { timeout: null, made_up: [] })).json.exitCode, 0);
    const unknown = await sandbox.ask("/process/nothing");
    assert.deepEqual([unknown.status, unknown.text, unknown.headers["content-type"]], [404, "404 page not found", "text/plain"]);
  });

  test("a timeout kills the group, throws the output away, and waits for who holds the pipe", async () => {
    const sandbox = await sandboxOf(use);
    const bodies = {
      "0.218.0": ["command execution timeout", "PROCESS_EXECUTION_TIMEOUT"],
      "0.190.0": ["request timeout: command execution timeout", "REQUEST_TIMEOUT"],
    };
    for (const [version, [message, code]] of Object.entries(bodies)) {
      use.emulator.sandbox(sandbox.id).daemonVersion = version;
      const { status, json } = await sandbox.execute("echo early; sleep 600 & echo $! > child; wait", { timeout: 2 });
      assert.deepEqual([status, json.message, json.code], [408, message, code]);
      const child = readFileSync(path.join(sandbox.home, "child"), "utf8").trim();
      await until(() => !alive(child));
    }
    // A child in a group of its own survives and keeps the reply waiting.
    let status = 0;
    const command = "setsid sh -c 'touch away; until [ -e go ]; do sleep 0.02; done' & echo $$ > shell; wait";
    const reply = sandbox.execute(command, { timeout: 2 }).then((late) => (status = late.status));
    const files = ["away", "shell"].map((name) => path.join(sandbox.home, name));
    await until(() => files.every((file) => existsSync(file)) && !alive(readFileSync(files[1], "utf8").trim()));
    assert.equal((await sandbox.ask("/version")).status, 200);
    assert.equal(status, 0);
    use.letGo(sandbox.id);
    assert.equal(await reply, 408);
    // A shell that is through in time has ended well, even if its child has to be killed.
    const left = await sandbox.execute("sleep 600 & echo through", { timeout: 2 });
    assert.deepEqual([left.status, left.json], [200, { exitCode: 0, result: "through\n" }]);
  });

  test("a client that leaves ends nothing", async () => {
    const sandbox = await sandboxOf(use);
    const raw = await use.connect(sandbox.base);
    const command = "echo $$ > pid; until [ -e go ]; do sleep 0.02; done; echo done > done";
    raw.request(`POST /toolbox/${sandbox.id}/process/execute`, sandbox.headers, JSON.stringify({ command }));
    await until(() => existsSync(path.join(sandbox.home, "pid")));
    raw.socket.destroy();
    await (await use.engine.waitFor("toolbox POST /process/execute")).closed;
    use.letGo(sandbox.id);
    await until(() => existsSync(path.join(sandbox.home, "done")));
  });

  test("a background child with the outputs delays the reply, one without does not", async () => {
    const sandbox = await sandboxOf(use);
    assert.equal((await sandbox.execute("sleep 600 >/dev/null 2>&1 & echo at once")).json.result, "at once\n");
    const reply = sandbox.execute("{ touch here; until [ -e go ]; do sleep 0.02; done; echo late; } & echo early");
    await until(() => existsSync(path.join(sandbox.home, "here")));
    use.letGo(sandbox.id);
    assert.equal((await reply).json.result, "early\nlate\n");
  });

  test("older daemons", async () => {
    const old = await sandboxOf(use, "0.154.0", { env: { A: "sandbox" } });
    assert.deepEqual((await old.execute("printf '%s|' a  'b \"c' $A ; echo")).json, { exitCode: 0, result: 'a|b "c|$A|;|echo|' });
    assert.equal((await old.execute("no-such-program x")).json.exitCode, -1);
    const { status, text } = await old.execute("sh -c 'echo $$ > pid; exec sleep 600'", { timeout: 1 });
    assert.deepEqual([status, text], [408, ""]);
    const without = await sandboxOf(use, "0.166.0");
    assert.equal((await without.execute("echo $A", { envs: { A: "x" } })).json.result, "\n");
    assert.deepEqual(await without.execute("").then((reply) => [reply.status, reply.text]), [400, ""]);
    use.emulator.settings.exitField = "code";
    assert.deepEqual((await without.execute("exit 4")).json, { code: 4, result: "" });
    use.emulator.settings.exitField = "none";
    assert.deepEqual((await without.execute("exit 4")).json, { result: "" });
  });
});

describe("code-run", () => {
  const use = useEmulator();

  test("three languages; arguments are shell text; input is at its end", async () => {
    const sandbox = await sandboxOf(use);
    const run = async (request) => (await sandbox.ask("/process/code-run", request)).json;
    const python = { language: "python", code: "import sys\nprint(sys.argv, sys.stdin.read() == '')\nsys.exit(3)" };
    assert.deepEqual(await run({ ...python, argv: ["a b", "$((1+1))"] }), { exitCode: 3, result: "['-', 'a', 'b', '2'] True\n" });
    const javascript = { language: "javascript", code: "console.log(process.argv.slice(1).join()); process.exit(4)" };
    assert.deepEqual(await run({ ...javascript, argv: ["x"] }), { exitCode: 4, result: "x\n" });
    const typescript = { language: "typescript", code: "let n: number = 5;\nconsole.log(n as number);\nprocess.exit(n)" };
    assert.deepEqual(await run(typescript), { exitCode: 5, result: "5\n" });
    assert.match((await run({ language: "python", code: "1/0" })).result, /File "<stdin>", line 1/);
  });

  test("artifacts are taken out of the output", async () => {
    const sandbox = await sandboxOf(use);
    const code = `print("a"); print('dtn_artifact_k39fd2:{"type":"chart","value":{"title":"t"}}'); print("dtn_artifact_k39fd2:junk"); print("b")`;
    const { json } = await sandbox.ask("/process/code-run", { code, language: "python" });
    assert.deepEqual(json, { exitCode: 0, result: "a\nb\n", artifacts: { charts: [{ type: "unknown", elements: [], title: "t" }] } });
  });

  test("refused, or not there", async () => {
    const sandbox = await sandboxOf(use);
    const request = { code: "1", language: "ruby" };
    assert.equal((await sandbox.ask("/process/code-run", request)).json.message, "unsupported language: ruby");
    assert.equal((await sandbox.ask("/process/code-run", { language: "python" })).status, 400);
    assert.equal((await sandbox.ask("/process/code-run", { ...request, language: "python", timeout: 1, code: "while 1: pass" })).status, 408);
    use.emulator.settings.codeRun = false;
    assert.equal((await sandbox.ask("/process/code-run", request)).text, "404 page not found");
    use.emulator.settings.codeRun = true;
    const old = await sandboxOf(use, "0.166.0");
    assert.equal((await old.ask("/process/code-run", request)).text, "404 page not found");
  });
});

describe("sessions", () => {
  const use = useEmulator();
  const withSession = async (version, id = "s") => {
    const sandbox = await sandboxOf(use, version);
    const made = await sandbox.ask("/process/session", { sessionId: id });
    assert.deepEqual([made.status, made.text], [201, ""]);
    return sandbox;
  };
  const MARKED = "\x01\x01\x01out\n\x02\x02\x02err\n";

  test("replies by the version that the client tells", async () => {
    const sandbox = await withSession();
    const forms = [
      [{ "x-daytona-sdk-version": "0.218.0" }, { output: MARKED, stdout: "out\n", stderr: "err\n" }, /^application\/json/],
      [{ "x-daytona-sdk-version": "0.166.0" }, { output: MARKED, stdout: null, stderr: null }, /^text\/plain/],
      [{ "x-daytona-sdk-version": "0.26.9" }, { output: "out\nerr\n", stdout: null, stderr: null }, /^text\/plain/],
      [{ "x-daytona-sdk-version": "" }, { output: "out\nerr\n", stdout: null, stderr: null }, /^text\/plain/],
      [{ "x-daytona-sdk-version": "", "x-daytona-split-output": "true" }, { output: MARKED, stdout: null, stderr: null }, /^text/],
    ];
    for (const [headers, expected, type] of forms) {
      const reply = await sandbox.exec("s", "echo out; sleep 0.05; echo err >&2", {}, { headers });
      const { cmdId, ...rest } = reply.json;
      assert.deepEqual([reply.status, rest], [200, { exitCode: 0, ...expected }]);
      const logs = await sandbox.ask(`/process/session/s/command/${cmdId}/logs`, undefined, { headers });
      assert.match(logs.headers["content-type"], type);
      if (type.source.includes("json")) assert.deepEqual(logs.json, expected);
      else assert.equal(logs.text, expected.output);
    }
  });

  test("lines, not bytes: a missing newline is added, NUL is dropped", async () => {
    const sandbox = await withSession();
    const { json } = await sandbox.exec("s", "printf 'a\\000b\\n\\nlast'; printf '\\377' >&2");
    assert.deepEqual([json.stdout, json.stderr], ["ab\n\nlast\n", "\ufffd\n"]);
  });

  test("async: at once, status, input with and without its echo", async () => {
    const sandbox = await withSession();
    for (const suppressInputEcho of [false, true]) {
      const started = await sandbox.exec("s", "read a; echo got $a; exit_with() { return $1; }; exit_with 5", { async: true, suppressInputEcho });
      assert.deepEqual([started.status, started.text.replace(/"cmdId":"[-0-9a-f]+",/, "")], [202, '{"output":null,"stdout":null,"stderr":null,"exitCode":null}']);
      const command = `/process/session/s/command/${started.json.cmdId}`;
      assert.equal("exitCode" in (await sandbox.ask(command)).json, false);
      const sent = await sandbox.ask(`${command}/input`, { data: "it" });
      assert.deepEqual([sent.status, sent.text], [204, ""]);
      for (let reply = {}; reply.exitCode === undefined; reply = (await sandbox.ask(command)).json);
      const { json } = await sandbox.ask(`${command}/logs`);
      assert.equal(json.stdout, suppressInputEcho ? "got it\n" : "it\ngot it\n");
      const late = await sandbox.ask(`${command}/input`, { data: "x" });
      assert.deepEqual([late.status, late.json.code], [410, "COMMAND_ALREADY_COMPLETED"]);
    }
  });

  test("names: taken, reserved, unknown; old ways to say so", async () => {
    const sandbox = await withSession();
    const post = (sessionId) => sandbox.ask("/process/session", { sessionId });
    assert.deepEqual([(await post("s")).status, (await post("entrypoint")).status, (await post("")).status], [409, 400, 400]);
    assert.equal((await sandbox.ask("/process/session/entrypoint")).json.sessionId, "entrypoint");
    const missing = ["/process/session/x", "/process/session/s/command/x", "/process/session/s/command/x/logs"];
    for (const where of missing) assert.equal((await sandbox.ask(where)).json.code, "PROCESS_NOT_FOUND");
    use.emulator.sandbox(sandbox.id).daemonVersion = "0.190.0";
    const { status, json } = await sandbox.ask(missing[0]);
    assert.deepEqual([status, json.code, json.message, json.source], [404, "NOT_FOUND", "not found: session not found", undefined]);
    assert.equal((await post("s")).json.message, "conflict: session already exists");
    const blank = await sandbox.exec("s", " ");
    assert.deepEqual([blank.status, blank.text], [400, ""]);
    use.emulator.sandbox(sandbox.id).daemonVersion = "0.137.0";
    assert.equal((await sandbox.ask("/process/session/s/command/x/input", { data: "" })).text, "404 page not found");
  });

  test("a log followed over a WebSocket: marked, in pieces of any size, to its end", async () => {
    use.emulator.settings.frameBytes = 2;
    const sandbox = await withSession();
    const run = "echo out; sleep 0.05; echo err >&2; sleep 0.05; printf rest";
    const { cmdId } = (await sandbox.exec("s", run, { runAsync: true })).json;
    const where = `/process/session/s/command/${cmdId}/logs`;
    const socket = await (await sandbox.socket(`${where}?follow=true`)).finished();
    assert.match(socket.connection.text, /^HTTP\/1\.1 101 [^]*sec-websocket-accept: ICX\+Yqv66kxgM0FcWaLWlFLwTAI=\r\n/);
    assert.equal(socket.data.toString("latin1"), `${MARKED}\x01\x01\x01rest\n`);
    assert.deepEqual([socket.code, socket.connection.ending], [1000, "fin"]);
    assert.ok(socket.frames.every(({ opcode, payload }) => opcode === 8 || (opcode === 2 && payload.length <= 2)));
    const protocol = "X-Daytona-SDK-Version~0.20.0";
    const plain = await sandbox.socket(where, { "x-daytona-sdk-version": "", "sec-websocket-protocol": `x, ${protocol}` });
    await plain.finished();
    assert.ok(plain.connection.text.includes(`sec-websocket-protocol: ${protocol}\r\n`));
    assert.equal(plain.data.toString(), "out\nerr\nrest\n");
    const refused = await sandbox.socket(`/process/session/s/command/x/logs?follow=true`);
    await refused.connection.closed();
    assert.match(refused.connection.text, /^HTTP\/1\.1 404 /);
  });

  test("a log followed over plain HTTP, if a runner is there", async () => {
    const sandbox = await withSession();
    const { cmdId } = (await sandbox.exec("s", "echo out; sleep 0.05; echo err >&2", { runAsync: true })).json;
    const where = `/process/session/s/command/${cmdId}/logs?follow=true`;
    const reply = await sandbox.ask(where);
    assert.deepEqual([reply.headers["content-type"], reply.headers["transfer-encoding"], reply.text], ["application/octet-stream", "chunked", "out\nerr\n"]);
    use.emulator.settings.runner = false;
    assert.equal((await sandbox.ask(where)).json.stdout, "out\n");
  });

  test("a client that stops following ends nothing", async () => {
    const sandbox = await withSession();
    const { cmdId } = (await sandbox.exec("s", "echo here; until [ -e go ]; do sleep 0.02; done; echo end", { runAsync: true })).json;
    const where = `/process/session/s/command/${cmdId}`;
    const socket = await sandbox.socket(`${where}/logs?follow=true`);
    await socket.connection.until(() => socket.data.includes("here"));
    socket.connection.write(Buffer.from([0x88, 0x80, 0, 0, 0, 0]));
    await socket.connection.closed();
    use.letGo(sandbox.id);
    for (let reply = {}; reply.exitCode === undefined; reply = (await sandbox.ask(where)).json);
    assert.equal((await sandbox.ask(`${where}/logs`)).json.stdout, "here\nend\n");
  });

  test("`exit` in a command: no answer, no exit code, and nothing more from this session", async () => {
    for (const [version, status, code] of [["0.218.0", 410, "SESSION_ENDED"], ["0.190.0", 400, "BAD_REQUEST"]]) {
      const sandbox = await withSession(version);
      const stuck = sandbox.exec("s", "echo before; exit 3");
      await until(() => use.emulator.sandbox(sandbox.id).sessions.get("s").exited);
      const { commands } = (await sandbox.ask("/process/session/s")).json;
      assert.deepEqual(commands.map(({ exitCode }) => exitCode), [undefined]);
      assert.equal((await sandbox.ask(`/process/session/s/command/${commands[0].id}/logs`)).json.stdout, "before\n");
      const next = await sandbox.exec("s", "true");
      assert.deepEqual([next.status, next.json.code], [status, code]);
      await sandbox.ask("/process/session/s", undefined, { method: "DELETE" });
      const answer = await stuck;
      assert.deepEqual([answer.status, /session cancelled$/.test(answer.json.message)], [400, true]);
    }
  });

  test("delete asks, then kills, all that belongs to it", async () => {
    use.emulator.settings.sessionGraceMs = 100;
    const sandbox = await withSession();
    const run = "sh -c 'trap \"\" TERM; echo $$ > deaf; while :; do sleep 0.05; done' & sleep 600 & echo $! > child; wait";
    await sandbox.exec("s", run, { runAsync: true });
    const files = ["deaf", "child"].map((name) => path.join(sandbox.home, name));
    await until(() => files.every((file) => existsSync(file) && readFileSync(file, "utf8").endsWith("\n")));
    const reply = await sandbox.ask("/process/session/s", undefined, { method: "DELETE" });
    assert.deepEqual([reply.status, reply.text], [204, ""]);
    await until(() => files.every((file) => !alive(readFileSync(file, "utf8").trim())));
    assert.equal(existsSync(path.join(sandbox.home, ".daytona/sessions/s")), false);
    assert.deepEqual((await sandbox.ask("/process/session")).json, []);
    // The daemon's own worker is left.
    await until(() => findMarked(`DAYTONA_SANDBOX_ID=${sandbox.id}`).length === 1);
  });

  test("names with anything in them; commands of one session come one after the other", async () => {
    const sandbox = await sandboxOf(use);
    const id = "a/b c";
    await sandbox.ask("/process/session", { sessionId: id });
    const name = encodeURIComponent(id);
    const first = sandbox.exec(name, "until [ -e go ]; do sleep 0.02; done; X=1; echo first");
    await until(() => use.emulator.sandbox(sandbox.id).sessions.get(id).commands.size === 1);
    const second = sandbox.exec(name, "echo $X second");
    use.letGo(sandbox.id);
    assert.deepEqual([(await first).json.stdout, (await second).json.stdout], ["first\n", "1 second\n"]);
  });
});

describe("files", () => {
  const use = useEmulator();

  test("bulk upload: the path comes first, parents are made, the good ones are written", async () => {
    const sandbox = await sandboxOf(use);
    const read = (name) => readFileSync(path.join(sandbox.home, name), "latin1");
    const reply = await sandbox.upload([["a/b/c.bin", Buffer.from([0, 255, 13, 10])], [" spaced.txt ", ""]]);
    assert.deepEqual(reply.json, { files: [{ path: "a/b/c.bin", bytes: 4 }, { path: "spaced.txt", bytes: 0 }] });
    assert.equal(read("a/b/c.bin"), "\0\xff\r\n");
    const mode = (name) => (statSync(path.join(sandbox.home, name)).mode & 0o777).toString(8);
    assert.deepEqual([mode("a/b/c.bin"), mode("a/b")], ["644", "755"]);
    await sandbox.ask("/files/permissions?path=a/b/c.bin&mode=0751", undefined, { method: "POST" });
    const mixed = await sandbox.upload([["a/b/c.bin", "new"], ["a", "x"], ["a/b/c.bin/d", "x"]]);
    assert.equal(mixed.status, 400);
    assert.deepEqual(Object.keys(mixed.json), ["errors", "files"]);
    assert.match(mixed.json.errors[0], /^a: create: open a: is a directory$/);
    assert.match(mixed.json.errors[1], /^a\/b\/c\.bin\/d: mkdir .*: not a directory$/);
    assert.deepEqual(mixed.json.files, [{ path: "a/b/c.bin", bytes: 3 }]);
    assert.deepEqual([read("a/b/c.bin"), mode("a/b/c.bin")], ["new", "751"]);
    const reversed = await sandbox.uploadParts([["files[0].file", '; filename="x"', "x"], ["files[0].path", "", "x"]]);
    assert.deepEqual(reversed.json, { errors: ["file[0]: missing .path metadata"], files: null });
    const none = await sandbox.ask("/files/bulk-upload", {});
    assert.deepEqual([none.status, none.json], [400, { errors: ["invalid multipart form"] }]);
    const old = await sandboxOf(use, "0.175.0");
    assert.deepEqual(await old.upload([["x", "x"]]).then(({ status, text }) => [status, text]), [200, ""]);
    assert.deepEqual((await old.upload([[".", "x"]])).json.files, undefined);
  });

  test("an upload that breaks off leaves what has arrived", async () => {
    const sandbox = await sandboxOf(use);
    const raw = await use.connect(sandbox.base);
    const headers = { ...sandbox.headers, "content-length": 10_000, "content-type": "multipart/form-data; boundary=cut" };
    const part = (name, data) => `--cut\r\nContent-Disposition: form-data; name="files[0].${name}"\r\n\r\n${data}`;
    raw.request(`POST /toolbox/${sandbox.id}/files/bulk-upload`, headers, `${part("path", "f\r\n")}${part("file", "x".repeat(500))}`);
    const file = path.join(sandbox.home, "f");
    await until(() => existsSync(file) && statSync(file).size > 400);
    raw.socket.destroy();
    await (await use.engine.waitFor("toolbox POST /files/bulk-upload")).closed;
    assert.match(readFileSync(file, "utf8"), /^x{401,500}$/);
  });

  test("download: bytes, ranges, and what is none", async () => {
    const sandbox = await sandboxOf(use);
    await sandbox.upload([["f", "0123456789"], ["empty", ""]]);
    const get = (name, headers) => sandbox.ask(`/files/download?path=${encodeURIComponent(name)}`, undefined, { headers });
    const whole = await get("f");
    assert.deepEqual([whole.text, whole.headers["content-type"], whole.headers["content-length"]], ["0123456789", "application/octet-stream", "10"]);
    assert.equal((await get("empty")).headers["content-length"], "0");
    const part = await get("f", { range: "bytes=2-4" });
    assert.deepEqual([part.status, part.text, part.headers["content-range"]], [206, "234", "bytes 2-4/10"]);
    assert.equal((await get("f", { range: "bytes=-3" })).text, "789");
    assert.equal((await get("f", { range: "bytes=10-" })).status, 416);
    symlinkSync("f", path.join(sandbox.home, "link"));
    assert.equal((await get("/home/daytona/link")).text, "0123456789");
    const statuses = [];
    for (const name of [".", "nope", "f/x", ""]) statuses.push((await get(name)).status);
    assert.deepEqual(statuses, [400, 404, 400, 400]);
  });

  test("a missing file, as each version says it", async () => {
    const ask = async (version) => {
      const sandbox = await sandboxOf(use, version);
      const { status, headers, text } = await sandbox.ask("/files/download?path=nope");
      return { status, type: headers["content-type"], text };
    };
    const newest = await ask("0.218.0");
    const { code, message, source, statusCode } = JSON.parse(newest.text);
    assert.deepEqual([code, message, source, statusCode], ["FILE_NOT_FOUND", "stat nope: no such file or directory", "DAYTONA_DAEMON", 404]);
    for (const version of ["0.190.0", "0.148.0"]) assert.deepEqual(await ask(version), { status: 404, type: undefined, text: "" });
    for (const [version, number] of [["0.147.0", 500], ["0.136.0", 500], ["0.135.0", 404]]) {
      const { status, type, text } = await ask(version);
      assert.deepEqual([status, type, JSON.parse(text).statusCode], [404, "text/plain; charset=utf-8", number]);
    }
  });

  test("bulk download: a part for each, with its length, or with its error", async () => {
    const bulk = async (version, paths) => {
      const sandbox = await sandboxOf(use, version);
      const content = "a\r\n--DAYTONA-FILE-BOUNDARY--\r\nb";
      await sandbox.upload([["日 \"x\".txt", content], ["d/e", ""]]);
      const { status, headers, body } = await sandbox.ask("/files/bulk-download", { paths });
      assert.deepEqual([status, headers["content-type"]], [200, "multipart/form-data; boundary=DAYTONA-FILE-BOUNDARY"]);
      return body.toString();
    };
    const paths = ["日 \"x\".txt", "nope", "d", "d/e"];
    const text = await bulk("0.218.0", paths);
    assert.ok(text.includes(`name="file"; filename="_ \\"x\\".txt"; filename*=utf-8''%E6%97%A5%20%22x%22.txt\r\n`));
    assert.ok(text.includes("Content-Length: 31\r\n\r\na\r\n--DAYTONA-FILE-BOUNDARY--\r\nb\r\n--"));
    assert.match(text, /name="error"; filename="nope"[^]*?"code":"FILE_NOT_FOUND"[^]*?\r\n--/);
    assert.match(text, /name="error"; filename="d"[^]*?"code":"INVALID_FILE_PATH"[^]*?\r\n--/);
    assert.match(text, /Content-Length: 0\r\n\r\n\r\n--DAYTONA-FILE-BOUNDARY--\r\n$/);
    const old = await bulk("0.162.0", ["nope", "d/e"]);
    assert.match(old, /text\/plain; charset=utf-8\r\n\r\nstat nope: no such file or directory\r\n/);
    assert.doesNotMatch(old, /Content-Length/);
    const sandbox = await sandboxOf(use);
    assert.deepEqual((await sandbox.ask("/files/bulk-download", { paths: [] })).json, { error: 'request body must be {"paths": [ ... ]} and non-empty' });
  });

  test("single uploads, old and new", async () => {
    const sandbox = await sandboxOf(use);
    const form = [["file", '; filename="x"', "by form"]];
    await sandbox.upload([["file", ""]]);
    const old = await sandbox.uploadParts(form, "/files/upload?path=one");
    assert.deepEqual([old.status, old.text], [200, ""]);
    assert.equal((await sandbox.uploadParts(form, "/files/upload?path=file/below")).status, 400);
    assert.equal((await sandbox.uploadParts([["other", "", ""]], "/files/upload?path=one")).status, 400);
    const raw = { raw: Buffer.from([1, 2, 3]), headers: { "content-type": "application/octet-stream" } };
    const made = await sandbox.ask("/files/upload-v2?path=new/dir/f", undefined, raw);
    assert.deepEqual(made.json, { name: "f", path: `${sandbox.home}/new/dir/f`, type: "file" });
    assert.equal((await sandbox.uploadParts(form, "/files/upload-v2?path=new/f")).status, 200);
    assert.equal(readFileSync(`${sandbox.home}/new/f`, "utf8"), "by form");
    const before = await sandboxOf(use, "0.190.0");
    assert.equal((await before.ask("/files/upload-v2?path=f", undefined, raw)).text, "404 page not found");
  });

  test("info, list, folder, move, delete", async () => {
    const sandbox = await sandboxOf(use);
    const post = (where) => sandbox.ask(where, undefined, { method: "POST" });
    const drop = (where) => sandbox.ask(where, undefined, { method: "DELETE" });
    assert.deepEqual(await post("/files/folder?path=d/e&mode=0700").then(({ status, text }) => [status, text]), [201, ""]);
    assert.equal((await post("/files/folder?path=d/e")).status, 201);
    assert.equal((await post("/files/folder?path=x&mode=9")).status, 400);
    await sandbox.upload([["d/f", "abc"]]);
    const { json } = await sandbox.ask("/files/info?path=d/f");
    const { name, size, mode, isDir, owner, permissions, modifiedAt } = json;
    assert.deepEqual([name, size, mode, isDir, owner, permissions], ["f", 3, "-rw-r--r--", false, String(process.getuid()), "0644"]);
    assert.match(modifiedAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/);
    const names = async (query) => (await sandbox.ask(`/files${query}`)).json.map((file) => file.name);
    assert.deepEqual(await names("?path=d"), ["e", "f"]);
    assert.deepEqual(await names("?depth=2"), [".daytona", "daytona_repl_worker.py", "d", "e", "f"]);
    assert.deepEqual([(await post("/files/move?source=d/f&destination=d/e")).status, (await post("/files/move?source=d/f")).status], [409, 400]);
    assert.deepEqual([(await post("/files/move?source=no&destination=x")).status, (await post("/files/move?source=d/f&destination=no/x")).status], [404, 404]);
    assert.equal((await post("/files/move?source=d/f&destination=g")).status, 200);
    assert.deepEqual([(await drop("/files?path=d")).status, (await drop("/files/?path=g")).status], [400, 204]);
    assert.deepEqual([(await drop("/files?path=d&recursive=true")).status, (await drop("/files?path=d")).status], [204, 404]);
    assert.equal((await sandbox.ask("/files?path=d")).status, 404);
  });

  test("where the daemon is, and what it is", async () => {
    use.emulator.settings.workDir = "work";
    const sandbox = await sandboxOf(use, undefined, { user: "someone" });
    const dir = async (where) => (await sandbox.ask(where)).json.dir;
    assert.match(sandbox.home, /\/home\/someone$/);
    assert.deepEqual([await dir("/work-dir"), await dir("/user-home-dir"), await dir("/project-dir")], [`${sandbox.home}/work`, sandbox.home, sandbox.home]);
    assert.equal((await sandbox.execute("pwd; echo $HOME $USER")).json.result, `${sandbox.home}/work\n${sandbox.home} someone\n`);
    await sandbox.upload([["relative", ""]]);
    assert.ok(existsSync(`${sandbox.home}/work/relative`));
    assert.deepEqual((await sandbox.ask("/version")).json, { version: "v0.218.0" });
    assert.equal((await sandbox.ask("/env", { set: { NEW: "1" }, unset: ["X"] })).status, 204);
    assert.equal((await sandbox.execute("echo $NEW")).json.result, "1\n");
  });
});
