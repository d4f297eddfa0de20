// The vendor's own SDK against our emulator. Where they disagree, the emulator is wrong.
import * as sdk from "@daytonaio/sdk";
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { startDaytona } from "../emulators/daytona/index.js";
import { daytonaReplies } from "../emulators/daytona/replies.js";
import { findShell } from "../emulators/daytona/shell.js";

for (const name of Object.keys(process.env)) if (name.startsWith("DAYTONA_")) delete process.env[name];

const { Daytona } = sdk;

/** One emulator and one client for a suite; every test leaves them without faults and without internal errors. */
function useEmulator(settings, config) {
  const use = {};
  before(async () => {
    use.emulator = await startDaytona(settings);
    use.engine = use.emulator.engine;
    const { apiKey, apiUrl } = use.emulator;
    use.options = { apiKey, apiUrl, target: "us", useDeprecatedPolling: true, ...config };
    use.client = new Daytona(use.options);
  });
  afterEach(() => {
    use.engine.clearFaults();
    use.engine.clearLog();
    assert.deepEqual(use.engine.errors, []);
  });
  after(async () => {
    await use.client[Symbol.asyncDispose]();
    await use.emulator.close();
  });
  return use;
}

/** A suite's emulator with a sandbox that is there. */
function useSandbox(settings, params) {
  const use = useEmulator(settings);
  before(async () => {
    use.sandbox = await use.client.create(params);
    use.engine.clearLog();
  });
  return use;
}

const routes = ({ engine }) => engine.log.map(({ route }) => route);
const bodyOf = (entry) => JSON.parse(entry.body);

describe("control plane", () => {
  const use = useEmulator();

  test("create says what was asked, and waits until it is started", async () => {
    const params = { name: "first", language: "javascript", envVars: { LEVEL: "9" }, labels: { owner: "x" }, autoStopInterval: 5 };
    const sandbox = await use.client.create({ ...params, ephemeral: true });
    assert.equal(sandbox.state, "started");
    assert.equal(sandbox.name, "first");
    assert.deepEqual(sandbox.labels, { owner: "x", "code-toolbox-language": "javascript" });
    assert.deepEqual(sandbox.env, { LEVEL: "9" });
    assert.equal(sandbox.toolboxProxyUrl, use.emulator.toolboxUrl);
    const entry = await use.engine.waitFor("POST /sandbox");
    assert.deepEqual(bodyOf(entry), {
      name: "first",
      env: { LEVEL: "9" },
      labels: { owner: "x", "code-toolbox-language": "javascript" },
      target: "us",
      autoStopInterval: 5,
      autoDeleteInterval: 0,
    });
    assert.equal(entry.headers.authorization, `Bearer ${use.emulator.apiKey}`);
    assert.match(entry.headers["x-daytona-source"], /^sdk-typescript/);
    assert.equal(entry.headers["x-daytona-sdk-version"], "0.218.0");
    assert.equal(use.engine.requests("GET /sandbox/{id}").length > 0, true);
    await sandbox.delete();
    assert.equal(sandbox.state, "destroying");
  });

  test("a sandbox from an image is built first, and its log can be followed", async () => {
    const lines = [];
    const params = { image: "python:3.12-slim", resources: { cpu: 2, memory: 2, disk: 4 } };
    const sandbox = await use.client.create(params, { timeout: 30, onSnapshotCreateLogs: (line) => lines.push(line) });
    assert.deepEqual([sandbox.state, sandbox.cpu, sandbox.memory, sandbox.disk], ["started", 2, 2, 4]);
    assert.deepEqual(bodyOf(await use.engine.waitFor("POST /sandbox")).buildInfo, {
      dockerfileContent: "FROM python:3.12-slim\n",
    });
    assert.match(lines.join("\n"), /FROM python:3\.12-slim[^]*build done/);
    await sandbox.delete();
  });

  test("states on the way are shown in turn, and a failed start says why", async () => {
    use.emulator.script("create", ["creating", "pulling_snapshot", "never_heard_of", "starting", "started"]);
    const slow = await use.client.create();
    assert.equal(slow.state, "started");
    assert.equal(use.engine.count("GET /sandbox/{id}"), 5);
    await slow.delete();
    use.emulator.script("create", ["creating", { state: "error", errorReason: "no room" }]);
    await assert.rejects(use.client.create(), /failed to start with status: error, error reason: no room/);
    use.emulator.script("create", [{ state: "creating", ms: 5 }, { state: "error", errorReason: "no luck" }], { waitMs: 5000 });
    await assert.rejects(use.client.create(), (error) => {
      assert.ok(error instanceof sdk.DaytonaBadRequestError);
      return /^Sandbox failed to start: no luck/.test(error.message);
    });
  });

  test("refusals: snapshot, quota, resources, name, key", async () => {
    const refused = (params, kind, message) =>
      assert.rejects(use.client.create(params), (error) => error instanceof kind && message.test(error.message));
    await refused({ snapshot: "nope" }, sdk.DaytonaBadRequestError, /Snapshot nope not found/);
    await refused({ image: "x", resources: { cpu: 64 } }, sdk.DaytonaBadRequestError, /exceeds maximum allowed per sandbox/);
    const { quota } = use.emulator.settings;
    use.emulator.settings.quota = { ...quota, cpu: 0 };
    await refused({}, sdk.DaytonaBadRequestError, /Total CPU limit exceeded/);
    use.emulator.settings.quota = quota;
    const sandbox = await use.client.create({ name: "taken" });
    await refused({ name: "taken" }, sdk.DaytonaConflictError, /already exists/);
    await sandbox.delete();
    const stranger = new Daytona({ ...use.options, apiKey: "dtn_wrong" });
    await assert.rejects(stranger.create(), sdk.DaytonaAuthenticationError);
  });

  test("get by id and by name; a sandbox that is gone is not found", async () => {
    const made = await use.client.create({ name: "with space/and slash" });
    for (const key of [made.id, made.name]) assert.equal((await use.client.get(key)).id, made.id);
    await made.delete(60, true);
    assert.equal(made.state, "destroyed");
    await assert.rejects(use.client.get(made.id), sdk.DaytonaNotFoundError);
  });

  test("list by label and page by page; labels are replaced as a whole", async () => {
    const made = [];
    for (const group of ["a", "a", "a", "b"]) made.push(await use.client.create({ labels: { group, "k<>&": "v\u2028" } }));
    const ids = async (query) => {
      const found = [];
      for await (const { id } of use.client.list(query)) found.push(id);
      return found.sort();
    };
    const wanted = made.slice(0, 3).map(({ id }) => id);
    assert.deepEqual(await ids({ labels: { group: "a" }, limit: 2 }), wanted.sort());
    assert.equal(use.engine.count("GET /sandbox"), 2);
    assert.equal((await ids({ labels: { "k<>&": "v\u2028" }, states: ["started"] })).length, 4);
    assert.deepEqual(await ids({ labels: { group: "a" }, states: ["stopped"] }), []);
    assert.deepEqual(await made[3].setLabels({ group: "c" }), { group: "c" });
    assert.deepEqual(await ids({ labels: { group: "c" } }), [made[3].id]);
    assert.deepEqual((await use.client.get(made[3].id)).labels, { group: "c" });
    for (const sandbox of made) await sandbox.delete();
  });

  test("stop and start keep the files; an ephemeral sandbox does not outlive its stop", async () => {
    const sandbox = await use.client.create();
    await sandbox.fs.uploadFile(Buffer.from("kept"), "kept.txt");
    await sandbox.stop();
    assert.equal(sandbox.state, "stopped");
    await assert.rejects(sandbox.process.executeCommand("true"), (error) => {
      assert.ok(error instanceof sdk.DaytonaBadRequestError);
      return /Is the Sandbox started\?$/.test(error.message);
    });
    await sandbox.start();
    assert.equal((await sandbox.process.executeCommand("cat kept.txt")).result, "kept");
    await sandbox.delete();
    const fleeting = await use.client.create({ ephemeral: true });
    await fleeting.stop();
    assert.equal(fleeting.state, "destroyed");
    await assert.rejects(fleeting.start(), sdk.DaytonaNotFoundError);
  });

  test("a change under way refuses a delete", async () => {
    const gate = use.engine.gate();
    use.emulator.script("create", [{ state: "creating", gate }, "started"]);
    const creating = use.client.create({ name: "early" });
    const entry = await use.engine.waitFor("GET /sandbox/{id}");
    await entry.closed;
    const early = await use.client.get("early");
    await assert.rejects(early.delete(), sdk.DaytonaConflictError);
    gate.open();
    await (await creating).delete();
  });

  test("intervals, activity, preview link, network", async () => {
    const sandbox = await use.client.create();
    await sandbox.setAutostopInterval(7);
    await sandbox.setAutoArchiveInterval(8);
    await sandbox.setAutoDeleteInterval(9);
    await sandbox.refreshActivity();
    await sandbox.updateNetworkSettings({ networkBlockAll: true });
    await sandbox.refreshData();
    assert.deepEqual(
      [sandbox.autoStopInterval, sandbox.autoArchiveInterval, sandbox.autoDeleteInterval, sandbox.networkBlockAll],
      [7, 8, 9, true],
    );
    const { url, token } = await sandbox.getPreviewLink(3000);
    assert.match(url, new RegExp(`^http://3000-${sandbox.id}\\.`));
    assert.ok(token);
    await sandbox.delete();
  });

  test("a login token needs its organization", async () => {
    const { apiUrl, jwtToken, organizationId } = use.emulator;
    const options = { apiUrl, jwtToken, target: "us", useDeprecatedPolling: true };
    const client = new Daytona({ ...options, organizationId });
    const sandbox = await client.create();
    assert.equal((await sandbox.process.executeCommand("echo hi")).result, "hi\n");
    await sandbox.delete();
    const [entry] = use.engine.requests("toolbox POST /process/execute");
    assert.equal(entry.headers["x-daytona-organization-id"], organizationId);
    const stranger = new Daytona({ ...options, organizationId: "11111111-2222-4333-8444-555555555555" });
    await assert.rejects(stranger.create(), sdk.DaytonaForbiddenError);
  });
});

describe("control plane with events", () => {
  const use = useEmulator({ stepMs: 30 }, { useDeprecatedPolling: false });

  test("the SDK learns of states by the event stream", async () => {
    const sandbox = await use.client.create();
    assert.equal(sandbox.state, "started");
    await use.engine.waitFor("GET /socket.io/");
    await sandbox.stop();
    await sandbox.start();
    await sandbox.delete(60, true);
    assert.equal(sandbox.state, "destroyed");
    assert.equal((await use.engine.waitFor("GET /socket.io/")).status, 101);
  });
});

describe("commands", () => {
  const use = useSandbox({}, { envVars: { OF_SANDBOX: "s" } });
  const run = (...args) => use.sandbox.process.executeCommand(...args);

  test("exit code, both outputs in one, environment, directory", async () => {
    const reply = await run("echo out; echo err >&2; exit 3");
    assert.deepEqual([reply.exitCode, reply.result, reply.artifacts.stdout], [3, "out\nerr\n", "out\nerr\n"]);
    const entry = await use.engine.waitFor("toolbox POST /process/execute");
    assert.deepEqual(bodyOf(entry), { command: "echo out; echo err >&2; exit 3" });
    assert.equal(entry.path, `/toolbox/${use.sandbox.id}/process/execute`);
    const env = { OF_CALL: "it's \"so\" $HOME\nnew" };
    assert.equal((await run("echo $OF_SANDBOX $LANG; echo \"$OF_CALL\"", undefined, env)).result, `s C.UTF-8\n${env.OF_CALL}\n`);
    const home = await use.sandbox.getUserHomeDir();
    assert.equal(await use.sandbox.getWorkDir(), home);
    assert.equal((await run("pwd; cd /; pwd")).result, `${home}\n/\n`);
    assert.equal((await run("pwd", "/")).result, "/\n");
    assert.deepEqual(await run("true", "/nope").then(({ exitCode, result }) => [exitCode, result]), [
      -1,
      `fork/exec ${findShell(use.emulator.sandbox(use.sandbox.id))}: no such file or directory`,
    ]);
  });

  test("a shell killed, a child killed, a command not found", async () => {
    assert.equal((await run("kill -9 $$")).exitCode, -1);
    assert.equal((await run("sh -c 'kill -9 $$'; exit $?")).exitCode, 137);
    assert.equal((await run("no-such-command-here")).exitCode, 127);
  });

  test("a timeout is an error of its own and takes the output with it", async () => {
    await assert.rejects(run("echo early; sleep 60", undefined, undefined, 1), (error) => {
      assert.ok(error instanceof sdk.DaytonaProcessExecutionTimeoutError);
      assert.deepEqual([error.statusCode, error.code, error.message], [408, "PROCESS_EXECUTION_TIMEOUT", "command execution timeout"]);
      return true;
    });
  });

  test("refused: blank commands, bad names, bad timeouts", async () => {
    await assert.rejects(run("  \n"), /command cannot be empty or whitespace-only/);
    await assert.rejects(run("true", undefined, { "a-b": "c" }), /invalid environment variable name: 'a-b'/);
    for (const timeout of [-1, 1.5]) await assert.rejects(run("true", undefined, undefined, timeout), sdk.DaytonaBadRequestError);
  });

  test("text that JSON escapes, and bytes that are no text", async () => {
    assert.equal((await run("printf 'a<b>&\\342\\200\\250\\000\\001z'")).result, "a<b>&\u2028\0\u0001z");
    assert.equal((await run("printf 'x\\377\\342\\202y'")).result, "x\ufffd\ufffd\ufffdy");
  });

  test("code in three languages, with arguments, environment and charts", async () => {
    const python = await use.sandbox.process.codeRun("import sys, os; print(sys.argv[1:], os.environ['K']); sys.exit(4)", {
      argv: ["a", "b"],
      env: { K: "v" },
    });
    assert.deepEqual([python.exitCode, python.result], [4, "['a', 'b'] v\n"]);
    const entry = await use.engine.waitFor("toolbox POST /process/code-run");
    assert.deepEqual(Object.keys(bodyOf(entry)), ["code", "language", "argv", "envs"]);
    const chart = '{"type":"chart","value":{"type":"line","title":"t","elements":[]}}';
    const drawn = await use.sandbox.process.codeRun(`print("dtn_artifact_k39fd2:" + '''${chart}'''); print("shown")`);
    assert.deepEqual([drawn.result, drawn.artifacts.charts.map(({ title }) => title)], ["shown\n", ["t"]]);
    const codes = {
      javascript: "console.log(process.argv.length, 'js'); process.exitCode = 5",
      typescript: "enum E { A = 7 }\nconst n: number = E.A; console.log(process.argv.length, n); process.exitCode = 5",
    };
    for (const [language, code] of Object.entries(codes)) {
      const sandbox = await use.client.create({ language });
      const { exitCode, result } = await sandbox.process.codeRun(code, { argv: ["one"] });
      assert.deepEqual([exitCode, result], [5, language === "javascript" ? "2 js\n" : "2 7\n"]);
      await sandbox.delete();
    }
    await assert.rejects(use.sandbox.process.codeRun("while True: pass", {}, 1), sdk.DaytonaProcessExecutionTimeoutError);
  });
});

describe("sessions", () => {
  const use = useSandbox({ frameBytes: 4 });
  before(() => use.sandbox.process.createSession("s"));
  const exec = (command, more) => use.sandbox.process.executeSessionCommand("s", { command, ...more });

  test("a shell that remembers, and keeps the outputs apart", async () => {
    const first = await exec("export KEPT=yes; cd /; echo out; echo err >&2; printf no-newline");
    assert.deepEqual([first.exitCode, first.stdout, first.stderr], [0, "out\nno-newline\n", "err\n"]);
    assert.ok(first.output.includes("\u0001\u0001\u0001out\n"));
    const second = await exec("echo $KEPT; pwd; (exit 9)");
    assert.deepEqual([second.exitCode, second.stdout], [9, "yes\n/\n"]);
    const { commands } = await use.sandbox.process.getSession("s");
    assert.deepEqual(commands.map(({ exitCode }) => exitCode), [0, 9]);
    assert.deepEqual((await use.sandbox.process.listSessions()).map(({ sessionId }) => sessionId), ["s"]);
    const entry = await use.engine.waitFor("toolbox POST /process/session/{session}/exec");
    assert.deepEqual(Object.keys(bodyOf(entry)), ["command"]);
  });

  test("sync commands see no input, and here-documents work", async () => {
    assert.equal((await exec("cat; echo over")).stdout, "over\n");
    assert.equal((await exec("cat <<'EOF'\n$HOME 'q'\nEOF")).stdout, "$HOME 'q'\n");
  });

  test("async: logs followed live, input, status", async () => {
    const { cmdId, exitCode } = await exec("echo ready; read line; echo got $line; echo bad >&2; exit_code() { return 6; }; exit_code", {
      runAsync: true,
    });
    assert.equal(exitCode, null);
    const output = { stdout: "", stderr: "" };
    let sent = false;
    await use.sandbox.process.getSessionCommandLogs(
      "s",
      cmdId,
      (text) => {
        output.stdout += text;
        // The SDK holds back a lone last byte, so the newline may come only with what follows.
        if (sent || !output.stdout.includes("ready")) return;
        sent = true;
        void use.sandbox.process.sendSessionCommandInput("s", cmdId, "a word");
      },
      (text) => (output.stderr += text),
    );
    assert.deepEqual(output, { stdout: "ready\na word\ngot a word\n", stderr: "bad\n" });
    assert.equal((await use.sandbox.process.getSessionCommand("s", cmdId)).exitCode, 6);
    const logs = await use.sandbox.process.getSessionCommandLogs("s", cmdId);
    assert.deepEqual([logs.stdout, logs.stderr], [output.stdout, output.stderr]);
    await assert.rejects(use.sandbox.process.sendSessionCommandInput("s", cmdId, "x"), sdk.DaytonaCommandAlreadyCompletedError);
    const entry = await use.engine.waitFor("toolbox GET /process/session/{session}/command/{command}/logs");
    assert.deepEqual([entry.headers.upgrade, entry.status], ["websocket", 101]);
  });

  test("deleting kills what runs", async () => {
    await use.sandbox.process.createSession("doomed");
    const run = { command: "echo $$; sleep 600", runAsync: true };
    const { cmdId } = await use.sandbox.process.executeSessionCommand("doomed", run);
    let pid = "";
    let deleted;
    await use.sandbox.process.getSessionCommandLogs(
      "doomed",
      cmdId,
      (text) => {
        pid += text;
        deleted ??= use.sandbox.process.deleteSession("doomed");
      },
      () => {},
    );
    await deleted;
    const isThere = () => {
      try {
        return process.kill(Number(pid), 0);
      } catch {
        return false;
      }
    };
    // What was killed may need a moment to end.
    while (isThere()) await new Promise((resolve) => setTimeout(resolve, 5));
    await assert.rejects(use.sandbox.process.getSession("doomed"), sdk.DaytonaProcessNotFoundError);
  });

  test("a command that ends the shell gets no answer until the session is deleted", async () => {
    await use.sandbox.process.createSession("brittle");
    const stuck = use.sandbox.process.executeSessionCommand("brittle", { command: "exit 3" });
    stuck.catch(() => {});
    await use.engine.waitFor("toolbox POST /process/session/{session}/exec");
    // It is over when the next command is refused.
    for (;;) {
      const next = use.sandbox.process.executeSessionCommand("brittle", { command: "true", runAsync: true });
      const refusal = await next.then(() => undefined, (error) => error);
      if (!refusal) continue;
      assert.ok(refusal instanceof sdk.DaytonaSessionEndedError);
      break;
    }
    await use.sandbox.process.deleteSession("brittle");
    await assert.rejects(stuck, /session cancelled/);
  });

  test("names that exist, or do not", async () => {
    await assert.rejects(use.sandbox.process.createSession("s"), sdk.DaytonaConflictError);
    await assert.rejects(use.sandbox.process.getSessionCommand("s", "nope"), sdk.DaytonaProcessNotFoundError);
    await assert.rejects(use.sandbox.process.deleteSession("nope"), sdk.DaytonaProcessNotFoundError);
  });
});

describe("files", () => {
  const use = useSandbox();
  const BYTES = Buffer.from(Array.from({ length: 70_000 }, (_, i) => (i * 7 + (i >> 8)) & 255));
  const local = mkdtempSync(path.join(os.tmpdir(), "interop-"));
  after(() => rmSync(local, { recursive: true, force: true }));

  test("up and down: text, binary, empty, odd names", async () => {
    const names = ["plain.txt", "deep/er/ünï cödé + %41 & #1.bin", "日本.txt", 'quo"te.txt'];
    for (const name of names) {
      for (const data of [Buffer.from("héllo\n"), BYTES, Buffer.alloc(0)]) {
        await use.sandbox.fs.uploadFile(data, name);
        assert.deepEqual((await use.sandbox.fs.downloadFile(name)) ?? Buffer.alloc(0), data, name);
      }
    }
    assert.deepEqual([...new Set(routes(use))], ["toolbox POST /files/bulk-upload", "toolbox POST /files/bulk-download"]);
  });

  test("a file with the download's boundary in it", async () => {
    const data = Buffer.from("a\r\n--DAYTONA-FILE-BOUNDARY-not\r\nb");
    await use.sandbox.fs.uploadFile(data, "boundary");
    assert.equal((await use.sandbox.process.executeCommand("wc -c < boundary")).result.trim(), String(data.length));
  });

  test("many at once, from and to local files", async () => {
    const source = path.join(local, "source");
    writeFileSync(source, BYTES);
    await use.sandbox.fs.uploadFiles([
      { source, destination: "many/one" },
      { source: Buffer.from("two"), destination: "many/two" },
    ]);
    const destination = path.join(local, "copy");
    const replies = await use.sandbox.fs.downloadFiles([
      { source: "many/one", destination },
      { source: "many/two" },
      { source: "many/three" },
    ]);
    assert.deepEqual(readFileSync(destination), BYTES);
    assert.equal(replies[1].result.toString(), "two");
    assert.equal(replies[2].errorDetails.code, "FILE_NOT_FOUND");
  });

  test("streams up and down", async () => {
    await use.sandbox.fs.uploadFileStream(BYTES, "stream/up.bin");
    const chunks = [];
    let total = 0;
    const onProgress = ({ totalBytes }) => (total = totalBytes);
    for await (const chunk of await use.sandbox.fs.downloadFileStream("stream/up.bin", { onProgress })) chunks.push(chunk);
    assert.deepEqual([Buffer.concat(chunks).equals(BYTES), total], [true, BYTES.length]);
  });

  test("list, details, folders, move, permissions, delete", async () => {
    const { fs } = use.sandbox;
    await fs.createFolder("dir/sub", "0750");
    await fs.uploadFile(Buffer.from("abc"), "dir/b.txt");
    const listed = await fs.listFiles("dir");
    assert.deepEqual(listed.map(({ name, isDir, size }) => [name, isDir, isDir ? 0 : size]), [["b.txt", false, 3], ["sub", true, 0]]);
    await fs.setFilePermissions("dir/b.txt", { mode: "600" });
    const details = await fs.getFileDetails("dir/b.txt");
    assert.deepEqual([details.mode, details.permissions, details.size], ["-rw-------", "0600", 3]);
    assert.equal((await fs.getFileDetails("dir/sub")).permissions, "0750");
    await fs.moveFiles("dir/b.txt", "dir/c.txt");
    await assert.rejects(fs.moveFiles("dir/c.txt", "dir/sub"), sdk.DaytonaConflictError);
    await assert.rejects(fs.deleteFile("dir"), sdk.DaytonaBadRequestError);
    await fs.deleteFile("dir/c.txt");
    await fs.deleteFile("dir", true);
    for (const call of [() => fs.getFileDetails("dir"), () => fs.listFiles("dir"), () => fs.deleteFile("dir"), () => fs.downloadFile("dir")]) {
      await assert.rejects(call(), sdk.DaytonaFileNotFoundError);
    }
  });

  test("search in names and contents, replace", async () => {
    const { fs } = use.sandbox;
    await fs.uploadFiles([
      { source: Buffer.from("one\ntwo needle\n"), destination: "find/a.txt" },
      { source: Buffer.from("needle\0"), destination: "find/b.bin" },
    ]);
    const found = await fs.findFiles("find", "needle");
    assert.deepEqual(found.map(({ file, line, content }) => [path.basename(file), line, content]), [["a.txt", 2, "two needle"]]);
    assert.deepEqual((await fs.searchFiles("find", "*.bin")).files.map((name) => path.basename(name)), ["b.bin"]);
    const [replaced] = await fs.replaceInFiles(["find/a.txt"], "needle", "$& pin");
    assert.equal(replaced.success, true);
    assert.equal((await fs.downloadFile("find/a.txt")).toString(), "one\ntwo $& pin\n");
  });

  test("what cannot be written or read says so", async () => {
    const { fs } = use.sandbox;
    await fs.uploadFile(Buffer.from("x"), "file");
    await assert.rejects(fs.uploadFile(Buffer.from("y"), "file/below"), sdk.DaytonaBadRequestError);
    await assert.rejects(fs.uploadFile(Buffer.from("y"), "."), sdk.DaytonaBadRequestError);
    await assert.rejects(fs.downloadFile("."), sdk.DaytonaInvalidFilePathError);
    await assert.rejects(fs.downloadFile("file/below"), sdk.DaytonaBadRequestError);
  });
});

describe("loss", () => {
  const use = useEmulator();

  test("a sandbox deleted under a command", async () => {
    const sandbox = await use.client.create();
    const running = sandbox.process.executeCommand("touch here; sleep 600");
    running.catch(() => {});
    const { home } = use.emulator.sandbox(sandbox.id);
    while (!existsSync(path.join(home, "here"))) await new Promise((resolve) => setTimeout(resolve, 5));
    await (await use.client.get(sandbox.id)).delete();
    await assert.rejects(running, sdk.DaytonaBadGatewayError);
    await assert.rejects(sandbox.process.executeCommand("true"), (error) => {
      assert.ok(error instanceof sdk.DaytonaNotFoundError);
      return /sandbox container not found/.test(error.message);
    });
    use.emulator.settings.proxyCacheMs = 0;
    const { fleet } = use.emulator;
    while (fleet.get(sandbox.id)) await new Promise((resolve) => setTimeout(resolve, 5));
    await assert.rejects(sandbox.process.executeCommand("true"), sdk.DaytonaAuthenticationError);
  });

  test("scripted: too many requests, no gateway, no route", async () => {
    use.engine.fault("POST /sandbox", { instead: daytonaReplies.tooMany(7) });
    await assert.rejects(use.client.create(), (error) => {
      assert.ok(error instanceof sdk.DaytonaRateLimitError);
      return String(error.headers["retry-after-sandbox-create"]) === "7";
    });
    const sandbox = await use.client.create();
    use.engine.fault("toolbox POST /process/execute", { instead: daytonaReplies.badGateway() });
    await assert.rejects(sandbox.process.executeCommand("true"), sdk.DaytonaBadGatewayError);
    use.engine.fault("toolbox POST /process/code-run", { instead: daytonaReplies.noRoute() });
    await assert.rejects(sandbox.process.codeRun("1"), sdk.DaytonaNotFoundError);
    use.engine.fault("toolbox POST /files/bulk-upload", { instead: daytonaReplies.uploadRefused() });
    await assert.rejects(sandbox.fs.uploadFile(Buffer.from("x"), "x"), sdk.DaytonaBadRequestError);
    await sandbox.delete();
  });

  test("a page in place of the API", async () => {
    const client = new Daytona({ ...use.options, apiUrl: use.options.apiUrl.replace(/\/api$/, "") });
    await assert.rejects(client.get("anything"));
    assert.equal((await use.engine.waitFor("page GET /sandbox/anything")).status, 200);
  });
});

describe("older daemons", () => {
  const use = useEmulator({ daemonVersion: "0.190.0" });

  test("0.190: coarse codes, and file errors without a body", async () => {
    const sandbox = await use.client.create();
    assert.equal(sandbox.daemonVersion, "v0.190.0");
    await assert.rejects(sandbox.process.executeCommand("sleep 60", undefined, undefined, 1), (error) => {
      assert.ok(error instanceof sdk.DaytonaTimeoutError);
      return error.message === "request timeout: command execution timeout" && error.code === "REQUEST_TIMEOUT";
    });
    await assert.rejects(sandbox.fs.getFileDetails("nope"), (error) => error instanceof sdk.DaytonaNotFoundError);
    const [entry] = use.engine.requests("toolbox GET /files/info");
    assert.deepEqual([entry.status, entry.sentBytes], [404, 0]);
    await sandbox.delete();
  });

  test("a server that tells the toolbox's address only when asked", async () => {
    use.emulator.settings.toolboxUrl = "route";
    const sandbox = await use.client.create();
    assert.equal(use.engine.count("GET /sandbox/{id}/toolbox-proxy-url"), 1);
    assert.equal((await sandbox.process.executeCommand("echo hi")).result, "hi\n");
    await sandbox.delete();
  });
});
