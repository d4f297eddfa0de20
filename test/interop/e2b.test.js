// The vendor's own SDK against our emulator. Where they disagree, the emulator is wrong.
import { Sandbox as InterpreterSandbox } from "@e2b/code-interpreter";
import { Sandbox } from "e2b";
import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { replies } from "../emulators/engine.js";
import { cutAfterStart, startE2B } from "../emulators/e2b/index.js";


for (const name of Object.keys(process.env)) if (name.startsWith("E2B_")) delete process.env[name];

/** One emulator for a suite; every test leaves it without faults and without internal errors. */
function useEmulator(settings) {
  const use = {};
  before(async () => {
    use.emulator = await startE2B({ dialDelaysMs: [], ...settings });
    const { apiKey, apiUrl, sandboxUrl, engine } = use.emulator;
    Object.assign(use, { engine, options: { apiKey, apiUrl, sandboxUrl } });
  });
  afterEach(() => {
    use.engine.clearFaults();
    use.engine.clearLog();
    assert.deepEqual(use.engine.errors, []);
    assert.deepEqual(use.emulator.complaints, []);
  });
  after(() => use.emulator.close());
  return use;
}

/** The message in the first envelope of a logged streaming request. */
const message = ({ body }) => JSON.parse(body.slice(body.indexOf("{")));

describe("control plane", () => {
  const use = useEmulator({ concurrencyLimit: 8 });
  const create = (options, template) => Sandbox.create(template ?? "base", { ...use.options, ...options });

  test("create says what was asked, in whole seconds; getInfo gives it back", async () => {
    const metadata = { job: "42", "a b": "c&d" };
    const sandbox = await create({ metadata, envs: { LANG: "C.UTF-8" }, timeoutMs: 9500, allowInternetAccess: false });
    assert.match(sandbox.sandboxId, /^i[a-z0-9]{20}$/);
    const { body, headers } = await use.engine.waitFor("POST /v2/sandboxes");
    const expected = { templateID: "base", timeout: 10, metadata, envVars: { LANG: "C.UTF-8" }, allow_internet_access: false };
    assert.deepEqual(JSON.parse(body), expected);
    assert.equal(headers["x-api-key"], use.options.apiKey);
    const info = await sandbox.getInfo();
    assert.deepEqual(info.metadata, metadata);
    assert.equal(info.state, "running");
    assert.equal(info.allowInternetAccess, false);
    assert.equal(info.lifecycle.onTimeout, "kill");
    assert.equal(info.envdVersion, "0.6.13");
    assert.ok(info.endAt - info.startedAt <= 10_100);
    await sandbox.kill();
  });

  test("list by metadata, state and page", async () => {
    const made = [];
    for (const group of ["x", "x", "y"]) made.push(await create({ metadata: { "a b": "c&d", group } }));
    const all = async (query, limit) => {
      const pages = Sandbox.list({ ...use.options, query, limit, order: "asc" });
      const ids = [];
      while (pages.hasNext) ids.push((await pages.nextItems()).map(({ sandboxId }) => sandboxId));
      return ids;
    };
    const ids = made.map(({ sandboxId }) => sandboxId);
    assert.deepEqual(new Set((await all({ metadata: { "a b": "c&d" } })).flat()), new Set(ids));
    assert.deepEqual((await all({ metadata: { group: "y" } })).flat(), [ids[2]]);
    const pages = await all({ metadata: { "a b": "c&d" } }, 2);
    assert.deepEqual(pages.map(({ length }) => length), [2, 1]);
    assert.deepEqual(new Set(pages.flat()), new Set(ids));
    await made[0].pause();
    assert.deepEqual((await all({ state: ["paused"] })).flat(), [ids[0]]);
    await Promise.all(made.map((sandbox) => sandbox.kill()));
    assert.deepEqual((await all({ metadata: { "a b": "c&d" } })).flat(), []);
  });

  test("setTimeout, isRunning, kill", async () => {
    const sandbox = await create();
    await sandbox.setTimeout(600_000);
    const { endAt } = await sandbox.getInfo();
    assert.ok(endAt - Date.now() > 500_000);
    assert.equal(await sandbox.isRunning(), true);
    assert.equal(await sandbox.kill(), true);
    assert.equal(await sandbox.kill(), false);
    assert.equal(await sandbox.isRunning(), false);
    await assert.rejects(sandbox.getInfo(), { name: "SandboxNotFoundError" });
    await assert.rejects(sandbox.setTimeout(1000), { name: "SandboxNotFoundError" });
  });

  test("refusals keep their class and their text", async () => {
    await assert.rejects(create({}, "nope"), { name: "SandboxError", message: "404: template 'nope' not found" });
    await assert.rejects(create({ timeoutMs: 25 * 3_600_000 }), { message: "400: Timeout cannot be greater than 24 hours" });
    await assert.rejects(create({ apiKey: "e2b_00" }), { name: "AuthenticationError", message: /Invalid API key/ });
    await assert.rejects(create({ apiKey: "sk-1" }), { name: "AuthenticationError", message: /header is malformed/ });
  });

  test("the concurrency limit is not retried, a rate limit with Retry-After is", async () => {
    const many = await Promise.all(Array.from({ length: 8 }, () => create()));
    await assert.rejects(create(), { name: "RateLimitError", message: /maximum number of concurrent/ });
    assert.equal(use.engine.count("POST /v2/sandboxes"), 9);
    await Promise.all(many.map((sandbox) => sandbox.kill()));
    use.engine.clearLog();
    use.engine.fault("POST /v2/sandboxes", { instead: replies.tooMany(0) }, { times: 2 });
    await (await create()).kill();
    assert.equal(use.engine.count("POST /v2/sandboxes"), 3);
    use.engine.fault("POST /v2/sandboxes", { instead: replies.tooMany(new Date()) });
    await assert.rejects(create(), { name: "RateLimitError" });
    assert.equal(use.engine.count("POST /v2/sandboxes"), 4);
  });

  test("busy, broken and foreign answers", async () => {
    const route = "POST /v2/sandboxes";
    const busy = { code: 503, error_code: "sandbox_capacity_unavailable", message: "Failed to place sandbox" };
    use.engine.fault(route, { instead: replies.json(503, busy) });
    await assert.rejects(create(), { name: "ServiceBusyError", message: /Failed to place/ });
    use.engine.fault(route, { instead: replies.html(504) });
    await assert.rejects(create(), { name: "SandboxError", message: /504/ });
    use.engine.fault(route, { instead: replies.halfJson({ sandboxID: "i0" }, 201) });
    await assert.rejects(create(), SyntaxError);
    use.engine.fault(route, { instead: "reset" });
    await assert.rejects(create(), { message: "fetch failed" });
    use.engine.fault(route, { instead: "hang" });
    await assert.rejects(create({ requestTimeoutMs: 300 }), { name: "TimeoutError" });
  });

  test("pause keeps files and processes, connect brings them back", async () => {
    const sandbox = await create();
    await sandbox.files.write("kept.txt", "kept");
    const counting = await sandbox.commands.run("for i in $(seq 1000); do echo $i > n; sleep 0.05; done", { background: true });
    await sandbox.files.read("kept.txt");
    assert.equal(await sandbox.pause(), true);
    assert.equal(await sandbox.pause(), false);
    assert.equal(await sandbox.isRunning(), false);
    await assert.rejects(sandbox.commands.run("true"), { name: "SandboxNotFoundError" });
    await assert.rejects(counting.wait(), { name: /Error/ });
    const again = await Sandbox.connect(sandbox.sandboxId, { ...use.options, timeoutMs: 60_000 });
    assert.equal(await again.files.read("kept.txt"), "kept");
    const [{ pid }] = await again.commands.list();
    assert.equal(pid, counting.pid);
    assert.equal(await again.commands.kill(pid), true);
    await again.connect({ timeoutMs: 1000 });
    assert.equal(use.engine.requests("POST /v2/sandboxes/{id}/connect").length, 2);
    await again.kill();
    await assert.rejects(Sandbox.connect(sandbox.sandboxId, use.options), { name: "SandboxNotFoundError" });
  });

  test("a sandbox pauses at its end of life and wakes up by traffic, when so asked", async () => {
    const lifecycle = { onTimeout: { action: "pause" }, autoResume: true };
    const sandbox = await create({ timeoutMs: 1000, lifecycle });
    await sandbox.files.write("f", "1");
    if (use.emulator.sandbox(sandbox.sandboxId).state !== "paused") {
      await new Promise((resolve) => use.emulator.fleet.once("paused", resolve));
    }
    assert.equal(await sandbox.files.read("f"), "1");
    await sandbox.kill();
  });
});

describe("commands", () => {
  const use = useEmulator();
  let sandbox;
  before(async () => {
    sandbox = await Sandbox.create("base", { ...use.options, envs: { GLOBAL: "g", E2B_SANDBOX_ID: "mine" } });
  });

  test("streams apart, exit codes, a missing program", async () => {
    const result = await sandbox.commands.run("echo out; echo err >&2; echo more > /dev/stderr");
    assert.deepEqual([result.stdout, result.stderr, result.exitCode], ["out\n", "err\nmore\n", 0]);
    await assert.rejects(sandbox.commands.run("echo a; echo b >&2; exit 3"), {
      name: "CommandExitError",
      exitCode: 3,
      stdout: "a\n",
      stderr: "b\n",
    });
    await assert.rejects(sandbox.commands.run("nosuchcmd_zz"), { exitCode: 127, stderr: /not found/ });
    await assert.rejects(sandbox.commands.run("kill -9 $$"), { exitCode: -1, message: "signal: killed" });
    await assert.rejects(sandbox.commands.run("sh -c 'kill -9 $$'; exit $?"), { exitCode: 137 });
  });

  test("the request on the wire", async () => {
    await sandbox.files.makeDir("work", { user: "root" });
    await sandbox.commands.run("true", { envs: { X: "1" }, cwd: "work", user: "root", timeoutMs: 5000 });
    const entry = await use.engine.waitFor("process.Process/Start");
    assert.deepEqual(message(entry), {
      process: { cmd: "/bin/bash", args: ["-l", "-c", "true"], envs: { X: "1" }, cwd: "work" },
      stdin: false,
    });
    assert.equal(entry.headers.authorization, "Basic cm9vdDo=");
    assert.equal(entry.headers["connect-timeout-ms"], "5000");
    assert.equal(entry.headers["keepalive-ping-interval"], "50");
    assert.equal(entry.headers["e2b-sandbox-id"], sandbox.sandboxId);
    assert.equal(entry.headers["e2b-sandbox-port"], "49983");
  });

  test("environment, directory and user", async () => {
    const show = "echo $GLOBAL $X $USER $HOME $E2B_SANDBOX $E2B_SANDBOX_ID; pwd";
    const home = (await sandbox.commands.run("echo $HOME")).stdout.trim();
    const mine = await sandbox.commands.run(show, { envs: { X: "a  b" } });
    assert.equal(mine.stdout, `g a b user ${home} true ${sandbox.sandboxId}\n${home}\n`);
    const root = await sandbox.commands.run("echo $USER", { user: "root" });
    assert.equal(root.stdout, "root\n");
    assert.equal((await sandbox.commands.run("pwd", { cwd: "/home/user" })).stdout, `${home}\n`);
    await assert.rejects(sandbox.commands.run("true", { cwd: "/nope" }), {
      name: "InvalidArgumentError",
      message: "[invalid_argument] cwd '/nope' does not exist",
    });
    await assert.rejects(sandbox.commands.run("true", { user: "nobody" }), { name: "AuthenticationError" });
  });

  test("output arrives while the command runs, split characters come out whole", async () => {
    const chunks = [];
    const seen = new Promise((resolve) => {
      sandbox.commands
        .run("printf 'one\\n'; while [ ! -e go ]; do sleep 0.02; done; printf '\\360\\237'; sleep 0.1; printf '\\230\\200'", {
          onStdout: async (text) => {
            if (!chunks.length) await sandbox.files.write("go", "");
            chunks.push(text);
          },
        })
        .then(resolve);
    });
    const result = await seen;
    assert.equal(chunks[0], "one\n");
    assert.equal(result.stdout, "one\n\u{1F600}");
  });

  test("five megabytes, to the byte", async () => {
    const { stdout } = await sandbox.commands.run("head -c 5000000 /dev/zero | tr '\\0' a; echo end");
    assert.equal(stdout.length, 5_000_004);
    assert.ok(stdout.endsWith("aend\n"));
  });

  test("in the background: list, kill, wait, connect", async () => {
    let said;
    const begun = new Promise((resolve) => (said = resolve));
    const handle = await sandbox.commands.run("echo started; sleep 60", { background: true, onStdout: said });
    await begun;
    const [listed] = (await sandbox.commands.list()).filter(({ pid }) => pid === handle.pid);
    assert.deepEqual([listed.cmd, listed.args], ["/bin/bash", ["-l", "-c", "echo started; sleep 60"]]);
    const other = await sandbox.commands.connect(handle.pid);
    assert.equal(await handle.kill(), true);
    await assert.rejects(handle.wait(), { name: "CommandExitError", exitCode: -1, stdout: "started\n" });
    await assert.rejects(other.wait(), { exitCode: -1 });
    assert.equal(await handle.kill(), false);
    const late = await sandbox.commands.connect(handle.pid);
    await assert.rejects(late.wait(), { exitCode: -1 });
    await assert.rejects(sandbox.commands.connect(1), { name: "NotFoundError" });
  });

  test("standard input: sent, closed, or empty", async () => {
    const handle = await sandbox.commands.run("read line; echo got=$line; cat; echo end", { background: true, stdin: true });
    await sandbox.commands.sendStdin(handle.pid, "first\n");
    await sandbox.commands.sendStdin(handle.pid, "rest");
    await sandbox.commands.closeStdin(handle.pid);
    assert.equal((await handle.wait()).stdout, "got=first\nrestend\n");
    assert.equal((await sandbox.commands.run("cat")).stdout, "");
    const deaf = await sandbox.commands.run("sleep 60", { background: true });
    await assert.rejects(sandbox.commands.sendStdin(deaf.pid, "x"), { name: "SandboxError", message: /stdin not enabled/ });
    await deaf.kill();
  });

  test("a deadline ends the leader only", async () => {
    const run = sandbox.commands.run("echo before; sleep 37 & echo $! > child; wait", { timeoutMs: 3000 });
    await assert.rejects(run, { name: "TimeoutError", message: /\[deadline_exceeded\]/ });
    const { stdout } = await sandbox.commands.run("kill -0 $(cat child) && echo alive; kill $(cat child)");
    assert.equal(stdout, "alive\n");
  });

  test("a stream that goes away leaves its process", async () => {
    const handle = await sandbox.commands.run("sleep 60", { background: true, timeoutMs: 0 });
    const { headers, closed } = await use.engine.waitFor("process.Process/Start");
    assert.equal(headers["connect-timeout-ms"], undefined);
    await handle.disconnect();
    await closed;
    assert.ok((await sandbox.commands.list()).some(({ pid }) => pid === handle.pid));
    await sandbox.commands.kill(handle.pid);
  });

  test("a background child that holds the pipe holds the stream", async () => {
    const { stdout } = await sandbox.commands.run("(sleep 0.2; echo late) & echo first");
    assert.equal(stdout, "first\nlate\n");
  });
});

describe("files", () => {
  const use = useEmulator();
  let sandbox;
  let home;
  before(async () => {
    sandbox = await Sandbox.create("base", use.options);
    home = (await sandbox.commands.run("pwd")).stdout.trim();
  });

  test("text and bytes, up and down", async () => {
    const info = await sandbox.files.write("a/b/c.txt", "h\u00e9llo");
    assert.deepEqual([info.name, info.path, info.type], ["c.txt", `${home}/a/b/c.txt`, "file"]);
    assert.equal(await sandbox.files.read("a/b/c.txt"), "h\u00e9llo");
    assert.equal(await sandbox.files.read("/home/user/a/b/c.txt"), "h\u00e9llo");
    assert.equal((await sandbox.commands.run("cat a/b/c.txt")).stdout, "h\u00e9llo");
    const bytes = new Uint8Array(102_400).map((_, i) => i);
    await sandbox.files.write("bytes", bytes.buffer);
    assert.deepEqual(await sandbox.files.read("bytes", { format: "bytes" }), bytes);
    await sandbox.files.write("empty", "");
    assert.equal(await sandbox.files.read("empty"), "");
    assert.equal((await sandbox.files.read("empty", { format: "bytes" })).length, 0);
  });

  test("octet streams, gzip, several files, metadata", async () => {
    const options = { useOctetStream: true, gzip: true, metadata: { origin: "test" } };
    const info = await sandbox.files.write("z.txt", "zipped".repeat(1000), options);
    assert.deepEqual(info.metadata, { origin: "test" });
    const { headers } = await use.engine.waitFor("envd POST /files");
    assert.equal(headers["content-type"], "application/octet-stream");
    assert.equal(headers["content-encoding"], "gzip");
    assert.equal(await sandbox.files.read("z.txt", { gzip: true }), "zipped".repeat(1000));
    assert.deepEqual((await sandbox.files.getInfo("z.txt")).metadata, { origin: "test" });
    const written = await sandbox.files.write([
      { path: "m1", data: "1" },
      { path: "sub/m2", data: "2" },
    ]);
    assert.deepEqual(written.map(({ path }) => path), [`${home}/m1`, `${home}/sub/m2`]);
    const stream = await sandbox.files.read("sub/m2", { format: "stream" });
    assert.equal(await new Response(stream).text(), "2");
  });

  test("odd names", async () => {
    for (const name of ["a b", "q'u\"o", "$(touch pwned)", "-rf", "*", "a+b%20c", "\u{1F600} e\u0301"]) {
      await sandbox.files.write(`odd/${name}`, name);
      assert.equal(await sandbox.files.read(`odd/${name}`), name);
    }
    const names = (await sandbox.files.list("odd")).map(({ name }) => name);
    assert.equal(names.length, 7);
    assert.ok(names.includes("q'u\"o"));
  });

  test("list, exists, makeDir, rename, remove", async () => {
    assert.equal(await sandbox.files.makeDir("d/e"), true);
    assert.equal(await sandbox.files.makeDir("d/e"), false);
    await sandbox.files.write("d/e/f", "12345");
    await sandbox.commands.run("ln -s f d/e/link; ln -s nowhere d/e/broken");
    const deep = await sandbox.files.list("d", { depth: 2 });
    assert.deepEqual(deep.map(({ name, type }) => `${name} ${type}`), ["e dir", "f file", "link file"]);
    assert.equal(deep[1].size, 5);
    assert.equal(deep[1].permissions, "-rw-r--r--");
    assert.equal(deep[2].symlinkTarget, `${home}/d/e/f`);
    const moved = await sandbox.files.rename("d/e/f", "d/g");
    assert.deepEqual([moved.name, moved.path, moved.size], ["g", `${home}/d/g`, 5]);
    assert.equal(await sandbox.files.exists("d/g"), true);
    assert.equal(await sandbox.files.exists("d/e/f"), false);
    await sandbox.files.remove("d");
    await sandbox.files.remove("d");
    assert.equal(await sandbox.files.exists("d"), false);
  });

  test("what cannot be done", async () => {
    const missing = { name: "FileNotFoundError" };
    await assert.rejects(sandbox.files.read("absent"), missing);
    await assert.rejects(sandbox.files.list("absent"), missing);
    await assert.rejects(sandbox.files.rename("absent", "x"), missing);
    await assert.rejects(sandbox.files.getInfo("absent"), missing);
    await assert.rejects(sandbox.files.read("."), { name: "InvalidArgumentError", message: /is a directory/ });
    await assert.rejects(sandbox.files.write(".", "x"), { name: "InvalidArgumentError" });
    await sandbox.files.write("file", "x");
    await assert.rejects(sandbox.files.write("file/child", "x"), { name: "SandboxError", message: /^500: .*path is a file/ });
    await assert.rejects(sandbox.files.read("file/child"), { name: "SandboxError", message: /^500: / });
    await assert.rejects(sandbox.files.list("file"), { name: "InvalidArgumentError" });
    use.engine.fault("envd POST /files", { instead: replies.json(507, { code: 507, message: "not enough disk space available" }) });
    await assert.rejects(sandbox.files.write("full", "x"), { name: "NotEnoughSpaceError" });
  });

  test("signed addresses", async () => {
    const fetchSigned = async (url, options) => {
      const headers = { "e2b-sandbox-id": sandbox.sandboxId, "e2b-sandbox-port": "49983" };
      return fetch(url, { headers, ...options });
    };
    await sandbox.files.write("signed.txt", "signed");
    const url = await sandbox.downloadUrl("signed.txt", { useSignatureExpiration: 60 });
    assert.equal(await (await fetchSigned(url)).text(), "signed");
    assert.equal((await fetchSigned(url.replace("signed.txt", "other.txt"))).status, 401);
    const expired = await sandbox.downloadUrl("signed.txt", { useSignatureExpiration: -10 });
    assert.match(await (await fetchSigned(expired)).text(), /signature is already expired/);
    const body = new FormData();
    body.append("file", new Blob(["up"]), "up.txt");
    assert.equal((await fetchSigned(await sandbox.uploadUrl("up.txt"), { method: "POST", body })).status, 200);
    assert.equal(await sandbox.files.read("up.txt"), "up");
  });

  test("a watched directory", async () => {
    await sandbox.files.makeDir("watched");
    let watch;
    const created = new Promise((resolve) => {
      watch = sandbox.files.watchDir("watched", (event) => event.type === "create" && resolve(event.name));
    });
    const handle = await watch;
    await sandbox.files.write("watched/new", "x");
    assert.equal(await created, "new");
    await handle.stop();
    await assert.rejects(sandbox.files.watchDir("absent", () => {}), { name: "FileNotFoundError" });
  });
});

describe("code interpreter", () => {
  // After a refused run the SDK leaves a timer of this length behind, and the process waits for it.
  const brief = { requestTimeoutMs: 1000 };
  const use = useEmulator({ executeKeepaliveMs: 100 });
  let sandbox;
  before(async () => {
    sandbox = await InterpreterSandbox.create({ ...use.options, envs: { GLOBAL: "g" } });
  });

  test("the default template, state, results, logs and errors", async () => {
    assert.equal((await sandbox.getInfo()).name, "code-interpreter-v1");
    await sandbox.runCode("x = 20");
    const streamed = [];
    const run = await sandbox.runCode("import sys\nprint('h\u00e9')\nprint('no', file=sys.stderr)\nx + 1", {
      onStdout: ({ line }) => streamed.push(line),
    });
    assert.equal(run.text, "21");
    assert.deepEqual([run.logs.stdout.join(""), run.logs.stderr.join("")], ["h\u00e9\n", "no\n"]);
    assert.equal(streamed.join(""), "h\u00e9\n");
    assert.equal(run.executionCount, 2);
    const failed = await sandbox.runCode("print('a')\n1/0");
    assert.deepEqual([failed.error.name, failed.error.value], ["ZeroDivisionError", "division by zero"]);
    assert.match(failed.error.traceback, /line 2/);
    assert.equal(failed.logs.stdout.join(""), "a\n");
    assert.equal((await sandbox.runCode("2***2")).error.name, "SyntaxError");
    assert.equal((await sandbox.runCode("'quoted'")).text, "quoted");
    assert.equal((await sandbox.runCode("input()")).error.name, "StdinNotImplementedError");
    assert.equal((await sandbox.runCode("import asyncio; await asyncio.sleep(0, 'awaited')")).text, "awaited");
  });

  test("rich results", async () => {
    const code = `
class Rich:
    def _repr_html_(self): return "<b>x</b>"
    def _repr_png_(self): return b"\\x89PNG"
    def _repr_json_(self): return {"k": [1]}
display(Rich())
Rich()`;
    const { results } = await sandbox.runCode(code);
    assert.deepEqual(results.map(({ isMainResult }) => Boolean(isMainResult)), [false, true]);
    assert.equal(results[1].html, "<b>x</b>");
    assert.equal(results[1].png, Buffer.from("\x89PNG", "latin1").toString("base64"));
    assert.deepEqual(results[1].json, { k: [1] });
  });

  test("environment of a run, of the sandbox, of the context", async () => {
    const show = "import os; (os.environ.get('GLOBAL'), os.environ.get('ONCE'))";
    assert.equal((await sandbox.runCode(show, { envs: { ONCE: "1", GLOBAL: "over" } })).text, "('over', '1')");
    assert.equal((await sandbox.runCode(show)).text, "('g', None)");
  });

  test("JavaScript keeps its bindings and awaits", async () => {
    const first = await sandbox.runCode("const list = [1, 2]; console.log('yo'); await Promise.resolve(list)", { language: "js" });
    assert.deepEqual([first.text, first.logs.stdout.join("")], ["[ 1, 2 ]", "yo\n"]);
    assert.equal((await sandbox.runCode("const list = 'again'; list", { language: "javascript" })).text, "again");
    const failed = await sandbox.runCode("null.x", { language: "javascript" });
    assert.equal(failed.error.name, "TypeError");
    await assert.rejects(sandbox.runCode("1", { ...brief, language: "cobol" }), { message: /500/ });
  });

  test("contexts are apart, listed, restarted and removed", async () => {
    await sandbox.files.makeDir("ctx");
    const context = await sandbox.createCodeContext({ language: "python", cwd: "/home/user/ctx" });
    await sandbox.runCode("y = 1", { context });
    assert.match((await sandbox.runCode("import os; os.getcwd()", { context })).text, /\/ctx$/);
    assert.equal((await sandbox.runCode("y")).error.name, "NameError");
    assert.ok((await sandbox.listCodeContexts()).some(({ id }) => id === context.id));
    await sandbox.restartCodeContext(context);
    assert.equal((await sandbox.runCode("y", { context })).error.name, "NameError");
    await sandbox.removeCodeContext(context);
    await assert.rejects(sandbox.runCode("1", { ...brief, context }), { message: /not found/ });
  });

  test("files, commands and cells see the same directory", async () => {
    await sandbox.files.write("shared.txt", "s");
    assert.equal((await sandbox.runCode("open('shared.txt').read()")).text, "s");
  });

  test("a kernel that dies is started again", async () => {
    const died = await sandbox.runCode("import os; os._exit(1)");
    assert.equal(died.error.name, "ContextRestarting");
    assert.equal((await sandbox.runCode("'back'")).text, "back");
  });

  test("a run out of time is interrupted, and the context is usable again", async () => {
    await assert.rejects(sandbox.runCode("import time\nwhile True: time.sleep(0.01)", { timeoutMs: 300 }), { name: "TimeoutError" });
    assert.equal((await sandbox.runCode("'free'")).text, "free");
  });

  test("lines the SDK has to bear: half a line, no end, an unknown type", async () => {
    const line = (value) => `${JSON.stringify(value)}\n`;
    const body = line({ type: "stdout", text: "a" }) + line({ type: "novelty" });
    use.engine.fault("interpreter POST /execute", { instead: { status: 200, body } });
    assert.deepEqual((await sandbox.runCode("1")).logs.stdout, ["a"]);
    use.engine.fault("interpreter POST /execute", { instead: { status: 200, body: `${body}{"type":"std` } });
    await assert.rejects(sandbox.runCode("1"), SyntaxError);
  });

  test("a template without the service: the port is closed", async () => {
    const plain = await InterpreterSandbox.create("base", use.options);
    await assert.rejects(plain.runCode("1", brief), { name: "TimeoutError", message: /port is not open/ });
    await plain.kill();
  });
});

describe("loss and broken streams", () => {
  const use = useEmulator();
  const start = (options) => Sandbox.create("base", { ...use.options, ...options });
  const route = "process.Process/Start";

  test("an expired sandbox", async () => {
    const sandbox = await start({ timeoutMs: 1000 });
    assert.equal(await use.emulator.ended(sandbox.sandboxId), "expired");
    await assert.rejects(sandbox.commands.run("true"), { name: "SandboxNotFoundError", message: /not running anymore/ });
    await assert.rejects(sandbox.files.read("x"), { name: "TimeoutError", message: /The sandbox was not found/ });
    await assert.rejects(sandbox.commands.list(), { name: "TimeoutError" });
    assert.equal(await sandbox.isRunning(), false);
    assert.equal(await sandbox.kill(), false);
  });

  test("a sandbox lost while a command runs", async () => {
    const sandbox = await start();
    const run = sandbox.commands.run("echo begun; sleep 60", { onStdout: () => use.emulator.lose(sandbox.sandboxId) });
    await assert.rejects(run, { name: "TimeoutError", message: /killed or reached its end of life/ });
    assert.equal(use.engine.count("envd GET /health"), 1);
  });

  test("a connection lost while the sandbox lives", async () => {
    const sandbox = await start();
    use.engine.fault(route, { stop: { after: 40, how: "close" } });
    await assert.rejects(sandbox.commands.run("echo x; sleep 1"), { name: "SandboxError", message: /terminated/ });
    await sandbox.kill();
  });

  test("a stream without its end frame, half an envelope, garbage", async () => {
    const sandbox = await start();
    const stream = (body) => ({ instead: { status: 200, headers: { "content-type": "application/connect+json" }, body } });
    const frame = (text, flags = 0) => {
      const head = Buffer.from([flags, 0, 0, 0, 0]);
      head.writeUInt32BE(Buffer.byteLength(text), 1);
      return Buffer.concat([head, Buffer.from(text)]);
    };
    const begun = [frame('{"event":{"start":{"pid":7}}}'), frame('{"event":{"data":{"stdout":"YQ=="}}}')];
    const broken = [
      [Buffer.alloc(0), { name: "SandboxError", message: /missing EndStreamResponse/ }],
      [Buffer.from([0, 0, 0]), { message: /incomplete envelope/ }],
      [frame("{garbage"), { message: /cannot decode/ }],
      [Buffer.from([0, 255, 255, 255, 255, 1]), { message: /envelope/ }],
    ];
    for (const [tail, error] of broken) {
      use.engine.fault(route, stream(Buffer.concat([...begun, tail])));
      await assert.rejects(sandbox.commands.run("true"), error);
    }
    const end = frame('{"event":{"end":{"exited":true,"status":"exit status 0"}}}');
    use.engine.fault(route, stream(Buffer.concat([...begun, end, frame("{}", 2)])));
    assert.deepEqual((await sandbox.commands.run("true")).stdout, "a");
    const error = '{"error":{"code":"deadline_exceeded","message":"context deadline exceeded"}}';
    use.engine.fault(route, stream(Buffer.concat([...begun, frame(error, 2)])));
    await assert.rejects(sandbox.commands.run("true"), { name: "TimeoutError" });
    await sandbox.kill();
  });

  test("429 and 503 before the first event are called a lost sandbox by the SDK", async () => {
    const sandbox = await start();
    for (const instead of [replies.tooMany(1), replies.html(503), replies.html(502)]) {
      use.engine.fault(route, { instead });
      await assert.rejects(sandbox.commands.run("true"), { name: "SandboxNotFoundError" });
    }
    assert.equal(use.engine.count(route), 3);
    await sandbox.kill();
  });

  test("a wrong access token", async () => {
    const sandbox = await start();
    use.emulator.sandbox(sandbox.sandboxId).daemon.token = "another";
    await assert.rejects(sandbox.commands.run("true"), { name: "AuthenticationError" });
    await assert.rejects(sandbox.files.read("x"), { name: "AuthenticationError" });
    assert.equal(await sandbox.isRunning(), true);
    await sandbox.kill();
  });
});

describe("fact sheet, section 10, as the SDK meets it", () => {
  const use = useEmulator();
  const start = (options) => Sandbox.create("base", { ...use.options, ...options });
  test("sheet 10.5: its uploads are forms, and a refusal of a large one keeps its reason", async () => {
    const sandbox = await start();
    await assert.rejects(sandbox.files.write(".", "x".repeat(1 << 20)), (error) => {
      assert.equal(error.name, "InvalidArgumentError");
      return /path is a directory/.test(error.message);
    });
    const [entry] = use.engine.requests("envd POST /files");
    assert.match(entry.headers["content-type"], /^multipart\/form-data/);
    await sandbox.kill();
  });

  test("sheet 10.11: a stream that breaks after its start is an unknown error; the process can be connected to", async () => {
    const sandbox = await start();
    use.engine.fault("process.Process/Start", { stop: cutAfterStart });
    await assert.rejects(sandbox.commands.run("until [ -e go ]; do sleep 0.02; done; echo rest"), /\[unknown\] terminated/);
    const [{ pid }] = await sandbox.commands.list();
    const handle = await sandbox.commands.connect(pid);
    await sandbox.files.write("go", "");
    assert.equal((await handle.wait()).stdout, "rest\n");
    await sandbox.kill();
  });

  test("sheet 10.3: while a pause is in flight the sandbox is not there for it", async () => {
    const sandbox = await start();
    use.emulator.settings.pauseMs = 500;
    const paused = sandbox.pause();
    await use.engine.waitFor("POST /sandboxes/{id}/pause");
    while ((await sandbox.getInfo()).state !== "paused") await use.engine.sleep(5);
    await assert.rejects(sandbox.commands.run("true"), /not running|timeout/i);
    await paused;
    use.emulator.settings.pauseMs = 0;
    await sandbox.kill();
  });
});

describe("older daemons", () => {
  test("before 0.4 the user is always named, before 0.5.7 uploads are multipart", async () => {
    const emulator = await startE2B({ envdVersion: "0.3.4" });
    try {
      const { apiKey, apiUrl, sandboxUrl, engine } = emulator;
      const sandbox = await Sandbox.create({ apiKey, apiUrl, sandboxUrl });
      assert.equal((await sandbox.commands.run("echo $USER")).stdout, "user\n");
      assert.equal((await engine.waitFor("process.Process/Start")).headers.authorization, "Basic dXNlcjo=");
      await sandbox.files.write("f", "x", { useOctetStream: true });
      const { headers, path } = await engine.waitFor("envd POST /files");
      assert.match(headers["content-type"], /^multipart\/form-data/);
      assert.match(path, /username=user/);
      await assert.rejects(sandbox.commands.closeStdin(1), { name: "SandboxError" });
    } finally {
      await emulator.close();
    }
  });
});
