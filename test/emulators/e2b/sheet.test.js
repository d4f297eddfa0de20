// The corrections of the fact sheet's section 10, measured on the real daemon and proxies: a test for each line.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { before, describe, test } from "node:test";
import { findMarked } from "../processes.js";
import { RawConnection } from "../raw.js";
import { ask, control, create } from "./client.js";
import { envelope } from "./connect.js";
import { cutAfterStart } from "./index.js";
import { isAlive, untilDead, useEmulator } from "./support.js";

const events = ({ frames }) => frames.filter(({ flags }) => flags === 0).map(({ message }) => message.event);
const output = (reply, name = "stdout") =>
  Buffer.concat(events(reply).map(({ data }) => Buffer.from(data?.[name] ?? "", "base64"))).toString();
const START = "process.Process/Start";
const FORM = { "content-type": "multipart/form-data; boundary=cut" };
const RAW = { "content-type": "application/octet-stream" };
const part = (data) =>
  `--cut\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n${data}\r\n--cut--\r\n`;

describe("fact sheet, section 10", () => {
  const use = useEmulator({ diskFreeBytes: Infinity, pauseMs: 0 });
  let client;
  let home;
  before(async () => {
    client = await create(use.emulator);
    home = use.emulator.sandbox(client.id).homes.user;
  });
  const post = (id, path, body = {}) => control(use.emulator, `/sandboxes/${id}/${path}`, body);
  const state = async (id) => (await control(use.emulator, `/sandboxes/${id}`)).json.state;
  const upload = (name, headers, body) =>
    client.ask(`/files?path=${encodeURIComponent(name)}`, { method: "POST", headers, body });
  const refusedStart = async (process) => {
    const { frames } = await client.stream(START, [{ process, stdin: false }]);
    return frames.at(-1).message.error;
  };

  /** Starts a command in a stream that breaks after its first event; the process's id. */
  async function startCut(command) {
    use.engine.fault(START, { stop: cutAfterStart });
    const connection = await RawConnection.open(use.emulator.sandboxUrl);
    const body = envelope(0, JSON.stringify({ process: { cmd: "/bin/bash", args: ["-c", command] }, stdin: false }));
    connection.request(`POST /${START}`, { ...client.headers(), "content-type": "application/connect+json" }, body);
    await connection.closed();
    assert.deepEqual([connection.chunked.complete, connection.ending], [false, "fin"]);
    const [, text, more] = connection.chunked.data.split(/(?=\{"event)/);
    assert.equal(more, undefined);
    return JSON.parse(text ?? connection.chunked.data.slice(5)).event.start.pid;
  }

  test("sheet 10.1: a wrong method is a 404 like an unknown path, in other words", async () => {
    const method = await control(use.emulator, "/sandboxes", undefined, { method: "PUT" });
    assert.deepEqual([method.status, method.json], [404, { code: 404, message: "validation error: method not allowed" }]);
    const path = await control(use.emulator, "/nothing");
    assert.deepEqual([path.status, path.json.message], [404, "validation error: no matching operation was found"]);
  });

  test("sheet 10.2: why a pause is refused", async () => {
    const { id } = await create(use.emulator);
    use.emulator.settings.pauseMs = 300;
    const first = post(id, "pause");
    while ((await state(id)) !== "paused") await use.engine.sleep(5);
    const second = await post(id, "pause");
    assert.deepEqual([second.status, second.json.message], [409, `Sandbox '${id}' cannot be paused while in 'pausing' state`]);
    assert.equal((await first).status, 204);
    const third = await post(id, "pause");
    assert.deepEqual([third.status, third.json.message], [409, `Error pausing sandbox - sandbox '${id}' is already paused`]);
  });

  test("sheet 10.3: while a pause is in flight the sandbox has left the routing, its streams are cut, and it counts as paused", async () => {
    for (const autoResume of [false, true]) {
      const paused = await create(use.emulator, { autoPause: true, autoResume: { enabled: autoResume } });
      const connection = await RawConnection.open(use.emulator.sandboxUrl);
      const body = envelope(0, JSON.stringify({ process: { cmd: "sleep", args: ["60"] }, stdin: false }));
      connection.request(`POST /${START}`, { ...paused.headers(), "content-type": "application/connect+json" }, body);
      await connection.until(({ chunked }) => chunked.data.includes("}}}"));
      use.emulator.settings.pauseMs = 500;
      const pause = post(paused.id, "pause");
      await connection.closed();
      assert.equal(connection.chunked.complete, false);
      const gone = { sandboxId: paused.id, message: "The sandbox was not found", code: 502 };
      for (const path of ["/health", "/files?path=x"]) assert.deepEqual((await paused.ask(path)).json, gone);
      assert.equal(await state(paused.id), "paused");
      assert.equal((await post(paused.id, "timeout", { timeout: 9 })).status, 409);
      const woken = post(paused.id, "connect", { timeout: 60 });
      assert.equal((await pause).status, 204);
      assert.equal((await woken).status, 201);
      assert.equal((await paused.ask("/health")).status, 204);
    }
  });

  test("sheet 10.4: what the edge says to reserved paths, to a host without a sandbox, and of a port that is none", async () => {
    const reserved = await client.ask("/init", { method: "POST", body: "{}" });
    assert.equal(reserved.status, 404);
    assert.match(reserved.json.message, / is not reachable through the sandbox URL$/);
    const nowhere = await ask(`${use.emulator.sandboxUrl}/health`);
    assert.deepEqual([nowhere.status, nowhere.text], [400, "Invalid host"]);
    const far = await client.ask("/", { port: 99_999 });
    assert.deepEqual([far.status, far.json.port], [502, 99_999]);
  });

  test("sheet 10.5: a large raw upload that is refused loses its reason; as a form it keeps it", async () => {
    const large = "x".repeat(300_000);
    const shut = { sandboxId: client.id, message: "The sandbox is running but port is not open", port: 49983, code: 502 };
    await upload("file", RAW, "x");
    const refusals = { ".": [400, /is a directory/], "file/below": [500, /path is a file/], [`${"n".repeat(300)}`]: [500, /name too long/] };
    for (const [name, [status, message]] of Object.entries(refusals)) {
      for (const headers of [RAW, { ...RAW, "transfer-encoding": "chunked" }]) {
        const lost = await upload(name, headers, large);
        assert.deepEqual([lost.status, lost.json], [502, shut], name);
      }
      for (const [headers, body] of [[RAW, "x".repeat(30_000)], [FORM, part(large)], [FORM, part("x")]]) {
        const told = await upload(name, headers, body);
        assert.equal(told.status, status, name);
        assert.match(told.json.message, message);
      }
    }
    use.emulator.settings.diskFreeBytes = 100_000;
    assert.deepEqual((await upload("full", RAW, large)).json, shut);
    assert.equal((await upload("full", FORM, part(large))).status, 507);
    use.emulator.settings.diskFreeBytes = Infinity;
    const statuses = new Set();
    for (let i = 0; i < 20; i += 1) {
      statuses.add((await upload("u", { ...FORM, "x-access-token": "wrong" }, part(large))).status);
    }
    assert.deepEqual([...statuses].sort(), [401, 502]);
    assert.equal((await upload("u", FORM, part(large))).json[0].path, `${home}/u`);
    assert.equal((await client.ask("/files?path=u")).text, large);
  });

  test("sheet 10.6: files that are none: /proc, names too long, a full disk, FIFOs", async () => {
    const proc = await client.ask("/files?path=/proc/version");
    assert.deepEqual([proc.status, proc.text.trim()], [500, "seeker can't seek"]);
    const long = await client.ask(`/files?path=${"n".repeat(300)}`);
    assert.equal(long.status, 500);
    assert.match(long.json.message, /^error getting file info: stat .*: file name too long$/);
    use.emulator.settings.diskFreeBytes = 3;
    const full = await upload("full", RAW, "1234");
    assert.deepEqual([full.status, full.json.message], [507, "not enough disk space available"]);
    await client.run("mkfifo fifo");
    for (const request of [["GET /files?path=fifo", {}], ["POST /files?path=fifo", RAW, "x"]]) {
      const [line, headers, body] = request;
      const connection = await RawConnection.open(use.emulator.sandboxUrl);
      connection.request(line, { ...client.headers(), ...headers }, body);
      await use.engine.sleep(150);
      assert.equal(connection.text, "");
      connection.socket.destroy();
    }
  });

  test("sheet 10.7: why a process cannot start", async () => {
    await client.run("touch plain; mkdir shut; chmod 0 shut");
    const start = (cwd, args = ["-l", "-c", "echo ': fork/exec /x'"]) => refusedStart({ cmd: "/bin/bash", args, cwd });
    const command = "/bin/bash -l -c echo ': fork/exec /x'";
    const because = (reason) => ({
      code: "invalid_argument",
      message: `error starting process '${command}': fork/exec /bin/sh: ${reason}`,
    });
    assert.deepEqual(await start("plain"), because("not a directory"));
    assert.deepEqual(await start("plain/below"), because("not a directory"));
    assert.deepEqual(await start("/root"), because("permission denied"));
    assert.deepEqual(await start("shut"), because("permission denied"));
    assert.deepEqual(await start("/nope"), { code: "invalid_argument", message: "cwd '/nope' does not exist" });
    const { message } = await start("", ["-c", `: ${"x".repeat(200_000)}`]);
    assert.match(message, /^error starting process '\/bin\/bash -c : x{200000}': fork\/exec \/bin\/sh: argument list too long$/);
    const asRoot = await client.stream(START, [{ process: { cmd: "pwd", cwd: "/root" }, stdin: false }], {
      authorization: `Basic ${Buffer.from("root:").toString("base64")}`,
    });
    assert.equal(output(asRoot).trim(), use.emulator.sandbox(client.id).homes.root);
  });

  test("sheet 10.8: one name that is not UTF-8 hides its whole directory; Stat below a file is an internal error", async () => {
    await client.run("mkdir -p names/deep && touch names/good names/deep/$'bad\\377'");
    const list = (path, depth) => client.call("filesystem.Filesystem/ListDir", { path, depth });
    assert.equal((await list("names", 1)).status, 200);
    for (const [path, depth] of [["names/deep", 1], ["names", 2]]) {
      const { status, json } = await list(path, depth);
      const message = "marshal message: proto: field filesystem.EntryInfo.name contains invalid UTF-8";
      assert.deepEqual([status, json], [500, { code: "internal", message }]);
    }
    const { status, json } = await client.call("filesystem.Filesystem/Stat", { path: "names/good/below" });
    assert.deepEqual([status, json.code], [500, "internal"]);
  });

  test("sheet 10.10: a daemon that was started again knows neither token nor user nor variables", async () => {
    const old = await create(use.emulator, { envVars: { OWN: "set" } });
    const before = await old.run("echo $USER $OWN; pwd");
    assert.match(output(before), /^user set\n.*\/home\/user\n$/);
    use.emulator.restartDaemon(old.id);
    old.token = undefined;
    const after = await old.run("echo $USER $OWN; pwd");
    assert.match(output(after), /^root\n.*\/root\n$/);
    assert.equal((await control(use.emulator, `/sandboxes/${old.id}`)).json.state, "running");
    use.emulator.sandbox(old.id).initDaemon();
    assert.equal((await old.call("process.Process/List", {})).status, 401);
  });

  test("sheet 10.11: a stream cut after its start: Connect goes on with a running process, or tells how it ended", async () => {
    const pid = await startCut("until [ -e go ]; do sleep 0.02; done; echo rest; exit 7");
    const running = client.stream("process.Process/Connect", [{ process: { pid } }]);
    await use.engine.waitFor("process.Process/Connect");
    await client.run("touch go");
    const reply = await running;
    assert.deepEqual(events(reply)[0], { start: { pid } });
    assert.equal(output(reply), "rest\n");
    assert.equal(events(reply).at(-1).end.exitCode, 7);

    const short = await startCut("echo lost; exit 8");
    await untilDead(short);
    const ended = await client.stream("process.Process/Connect", [{ process: { pid: short } }]);
    assert.deepEqual(events(ended).map((event) => Object.keys(event)[0]), ["start", "end"]);
    assert.equal(events(ended).at(-1).end.exitCode, 8);
  });

  test("sheet 10.12: who has cleared its environment is found by its parent only, and goes with the sandbox all the same", async () => {
    const doomed = await create(use.emulator);
    const marker = `E2B_SANDBOX_ID=${doomed.id}`;
    const run = doomed.run("env -i setsid sleep 73 < /dev/null > /dev/null 2>&1 & echo $! > pid; until [ -e go ]; do sleep 0.02; done");
    let pid = 0;
    while (!(pid > 0)) pid = Number((await doomed.ask("/files?path=pid")).text);
    while (readFileSync(`/proc/${pid}/environ`, "latin1") !== "") await use.engine.sleep(5);
    const parent = Number(readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1].split(" ")[1]);
    assert.ok(readFileSync(`/proc/${parent}/environ`, "latin1").includes(marker));
    assert.ok(findMarked(marker).includes(pid));
    await doomed.run("touch go");
    await run;
    await untilDead(parent);
    assert.ok(!findMarked(marker).includes(pid));
    assert.ok(isAlive(pid));
    await control(use.emulator, `/sandboxes/${doomed.id}`, undefined, { method: "DELETE" });
    await untilDead(pid);
  });

  test("a fresh home holds what the image's skeleton gives", async () => {
    const fresh = await create(use.emulator);
    const { homes } = use.emulator.sandbox(fresh.id);
    assert.deepEqual(readdirSync(homes.user).sort(), [".bash_logout", ".bashrc", ".profile"]);
    assert.ok(statSync(`${homes.root}/.profile`).isFile());
    const login = await fresh.stream(START, [{ process: { cmd: "/bin/bash", args: ["-l", "-c", "echo $BASH_VERSION $0"] }, stdin: false }]);
    assert.equal(output(login), execFileSync("/bin/bash", ["-c", "echo $BASH_VERSION /bin/bash"]).toString());
    assert.equal(output(login, "stderr"), "");
  });
});

describe("fact sheet, section 10: code interpreter", () => {
  const use = useEmulator();
  let client;
  before(async () => {
    client = await create(use.emulator, { templateID: "code-interpreter-v1" });
  });
  const send = (path, body) =>
    client.ask(path, { method: "POST", port: 49999, headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  const execute = async (request) => (await send("/execute", request)).text.split("\n").slice(0, -1).map((line) => JSON.parse(line));

  test("sheet 10.9: a context is made with any directory; in one that is none, code runs at home", async () => {
    const { user: home } = use.emulator.sandbox(client.id).homes;
    await client.run("touch plain; mkdir real \"it's\"");
    for (const cwd of ["/nope", `${home}/plain`, `${home}/it's`]) {
      const made = await send("/contexts", { cwd });
      assert.deepEqual([made.status, made.json.cwd], [200, cwd]);
      const lines = await execute({ code: "import os; print(os.getcwd())", context_id: made.json.id });
      assert.deepEqual(lines.filter(({ type }) => type === "stdout").map(({ text }) => text), [`${home}\n`]);
    }
    const { json } = await send("/contexts", { cwd: "/home/user/real" });
    assert.equal(json.cwd, "/home/user/real");
    const lines = await execute({ code: "import os; os.getcwd()", context_id: json.id });
    assert.equal(lines.find(({ type }) => type === "result").text, `${home}/real`);
  });

  test("sheet 10.13: a child in a session of its own survives the restart of the kernel, one of its group does not", async () => {
    const { json } = await send("/contexts", {});
    const code = "import subprocess\n[subprocess.Popen(['sleep', '74'], start_new_session=own).pid for own in (True, False)]";
    const lines = await execute({ code, context_id: json.id });
    const [apart, near] = JSON.parse(lines.find(({ type }) => type === "result").text);
    assert.equal((await send(`/contexts/${json.id}/restart`, {})).status, 200);
    await untilDead(near);
    assert.ok(isAlive(apart) && existsSync(`/proc/${apart}`));
    assert.equal((await execute({ code: "1", context_id: json.id })).at(-1).type, "end_of_execution");
  });
});
