// The corrections at the end of the fact sheet, measured on the real daemon of three versions: a test for each line.
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";
import { findMarked } from "../processes.js";
import { control, create, useEmulator } from "./client.js";
import { takeArtifacts } from "./execute.js";

describe("fact sheet, corrections", () => {
  const use = useEmulator();

  /** A sandbox with a daemon of the given version, and its home directory. */
  async function sandboxOf(daemonVersion = "0.190.0", settings = {}) {
    Object.assign(use.emulator.settings, { daemonVersion, shell: "/bin/bash", ...settings });
    const sandbox = await create(use.emulator);
    return Object.assign(sandbox, { home: use.emulator.sandbox(sandbox.id).home });
  }
  const raw = (sandbox, body) => sandbox.ask("/process/execute", undefined, { raw: body, method: "POST" });
  const query = (name) => `?path=${encodeURIComponent(name)}`;

  test("corrections 1: a process that cannot start says why from 0.177 on, and before that nothing", async () => {
    for (const version of ["0.218.0", "0.177.0", "0.176.0", "0.190.0", "0.167.0", "0.140.0"]) {
      const sandbox = await sandboxOf(version);
      await sandbox.execute("touch file");
      await sandbox.execute("mkdir -m 0 shut");
      const said = version < "0.177" ? () => "" : (reason) => `fork/exec /bin/bash: ${reason}`;
      const tries = [
        ["no such file or directory", { cwd: "/nope" }],
        ["not a directory", { cwd: "file" }],
        ["permission denied", { cwd: "shut" }],
        ["file name too long", { cwd: "n".repeat(300) }],
      ];
      if (version >= "0.167") tries.push(["argument list too long", { envs: { A: "x".repeat(140_000) } }]);
      for (const [reason, options] of tries) {
        const { status, json } = await sandbox.execute("true", options);
        const result = version === "0.140.0" ? "" : said(reason);
        assert.deepEqual([status, json], [200, { exitCode: -1, result }], `${version} ${reason}`);
      }
      rmSync(sandbox.home, { recursive: true });
      const { json } = await sandbox.execute("true");
      assert.deepEqual(json, { exitCode: -1, result: said("no such file or directory") });
    }
  });

  test("corrections 2: versions carry a v in front, and may carry a commit", async () => {
    for (const [version, told] of [["0.190.0", "v0.190.0"], ["v0.201.0-b24aa9b", "v0.201.0-b24aa9b"]]) {
      const sandbox = await sandboxOf(version);
      assert.equal((await sandbox.ask("/version")).json.version, told);
      assert.equal(use.emulator.sandbox(sandbox.id).daemonAtLeast("0.190.0"), true);
    }
  });

  test("corrections 3: files that are none", async () => {
    const sandbox = await sandboxOf();
    const download = (name) => sandbox.ask(`/files/download${query(name)}`);
    const proc = await download("/proc/version");
    assert.deepEqual([proc.status, proc.headers["content-length"], proc.text], [200, "0", ""]);
    const [sys] = readdirSync("/sys/kernel", { withFileTypes: true }).filter((entry) => entry.isFile());
    const short = await download(`/sys/kernel/${sys.name}`);
    assert.deepEqual([short.headers["content-length"], short.complete], ["4096", false]);
    const many = await sandbox.ask("/files/bulk-download", { paths: ["/proc/version"] });
    assert.match(many.text, /Content-Length: 0\r\n\r\nLinux version/);

    await sandbox.execute("mkfifo fifo");
    const connection = await use.connect(sandbox.base);
    connection.request(`GET /toolbox/${sandbox.id}/files/download?path=fifo`, sandbox.headers);
    await use.engine.sleep(150);
    assert.equal(connection.text, "");
    connection.socket.destroy();

    writeFileSync(path.join(sandbox.home, "secret"), "x", { mode: 0 });
    const refused = await download("secret");
    assert.deepEqual([refused.status, refused.text.trim()], [403, "403 Forbidden"]);

    const body = '--cut\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nx\r\n--cut--\r\n';
    const headers = { "content-type": "multipart/form-data; boundary=cut" };
    const made = await sandbox.ask(`/files/upload${query("new/dir/f")}`, undefined, { raw: body, headers });
    assert.deepEqual([made.status, readFileSync(path.join(sandbox.home, "new/dir/f"), "utf8")], [200, "x"]);
    const failed = await sandbox.upload([[sandbox.home, "x"]]);
    assert.deepEqual([failed.status, failed.json.files, failed.json.errors.length], [400, null, 1]);
  });

  test("corrections 4: the type, the code and the text of errors", async () => {
    const shape = async (sandbox, body) => {
      const { status, text, headers } = await raw(sandbox, body);
      const { statusCode, code, message } = text ? JSON.parse(text) : {};
      return { status, type: headers["content-type"], statusCode, code, message: message?.replace(/(body: ).*/, "$1...") };
    };
    const json = "application/json";
    const plain = "text/plain; charset=utf-8";
    const newest = await sandboxOf("0.190.0");
    const bad = "bad request: invalid request body: ...";
    assert.deepEqual(await shape(newest, "{"), { status: 400, type: json, statusCode: 400, code: "BAD_REQUEST", message: bad });
    assert.equal((await newest.execute("true")).headers["content-type"], "application/json; charset=utf-8");

    const middle = await sandboxOf("0.167.0");
    assert.deepEqual((await raw(middle, '{"command":" "}')).text, "");

    const oldest = await sandboxOf("0.140.0");
    const blank = await shape(oldest, '{"command":" "}');
    assert.deepEqual([blank.status, blank.type, blank.statusCode], [400, plain, 500]);
    const late = await shape(oldest, '{"command":"sleep 60","timeout":1}');
    assert.deepEqual([late.status, late.type, late.statusCode], [408, plain, 500]);
  });

  test("corrections 5: numbers, NULs, broken characters, unknown programs", async () => {
    const sandbox = await sandboxOf();
    for (const timeout of ["1e0", "1.0", "-0"]) {
      const { status, json } = await raw(sandbox, `{"command":"true","timeout":${timeout}}`);
      assert.equal(status, 400);
      assert.match(json.message, /cannot unmarshal number .* into Go struct field ExecuteRequest.timeout of type uint32$/);
    }
    assert.equal((await raw(sandbox, '{"command":"true","timeout": 7}')).status, 200);
    for (const options of [{ envs: { A: "a\0b" } }, { cwd: "a\0b" }]) {
      const { json } = await sandbox.execute("true", options);
      assert.deepEqual(json, { exitCode: -1, result: "exec: environment variable contains NUL" });
    }
    const { text } = await sandbox.execute("printf '\\377\\357\\277\\275\\\\udfff'");
    assert.equal(text, '{"exitCode":0,"result":"\\ufffd\ufffd\\\\udfff"}');
    const old = await sandboxOf("0.140.0");
    assert.deepEqual((await old.execute("no-such-program x")).json, { exitCode: -1, result: "" });
  });

  test("corrections 6: lists, paths of errors, a snapshot with a build", async () => {
    const sandbox = await sandboxOf();
    const api = (where, body) => control(use.emulator, where, body);
    const [item] = (await api("/sandbox")).json.items;
    for (const name of ["networkBlockAll", "networkAllowList", "domainAllowList"]) assert.ok(!(name in item), name);
    assert.equal((await api(`/sandbox/${sandbox.id}`)).json.networkBlockAll, false);
    assert.equal((await api("/sandbox?labels=x")).json.path, "/api/sandbox?labels=x");
    const both = await api("/sandbox", { snapshot: "s", buildInfo: { dockerfileContent: "FROM x" } });
    assert.deepEqual([both.status, both.json.message], [400, "Cannot specify a snapshot when using a build info entry"]);
  });

  test("corrections 7: a fresh sandbox is not empty, and something runs in it", async () => {
    const sandbox = await sandboxOf();
    assert.ok(existsSync(path.join(sandbox.home, ".daytona")));
    const lines = findMarked(`DAYTONA_SANDBOX_ID=${sandbox.id}`).map((pid) => readFileSync(`/proc/${pid}/cmdline`, "latin1"));
    assert.equal(lines.length, 1);
    assert.match(lines[0], /daytona_repl_worker\.py/);
  });

  test("corrections 8: the proxy sends a small request once more when its connection to the daemon breaks", async () => {
    const sandbox = await sandboxOf();
    const command = "echo x >> runs; until [ -e go ]; do sleep 0.02; done; cat runs";
    const lines = () => (existsSync(path.join(sandbox.home, "runs")) ? readFileSync(path.join(sandbox.home, "runs"), "utf8") : "");
    const until = async (text) => {
      while (lines() !== text) await use.engine.sleep(5);
    };
    const reply = sandbox.execute(command);
    await until("x\n");
    assert.equal(use.emulator.cut(sandbox.id, "replay"), 1);
    await until("x\nx\n");
    use.letGo(sandbox.id);
    assert.deepEqual([(await reply).status, (await reply).json], [200, { exitCode: 0, result: "x\nx\n" }]);
    assert.equal(use.engine.count("toolbox POST /process/execute"), 1);

    rmSync(path.join(sandbox.home, "runs"));
    rmSync(path.join(sandbox.home, "go"));
    const large = sandbox.execute(`${command} # ${"x".repeat(300_000)}`);
    await until("x\n");
    use.emulator.cut(sandbox.id, "replay");
    assert.deepEqual([(await large).status, (await large).text, lines()], [502, "", "x\n"]);
    use.letGo(sandbox.id);
  });

  test("corrections 9: the outer bash reads its script by itself, and BASH_ENV before it", async () => {
    const sandbox = await sandboxOf();
    writeFileSync(path.join(sandbox.home, "rc"), "cd /\n");
    const envs = { BASH_ENV: path.join(sandbox.home, "rc") };
    assert.equal((await sandbox.execute("pwd", { envs })).json.result, "/\n");
    const text = "line of text\n".repeat(20_000);
    const { json } = await sandbox.execute(`wc -c <<'END'\n${text}END\n`);
    assert.equal(json.result.trim(), String(text.length));
  });

  test("corrections 10: a chart has a type and elements; times have nanoseconds", async () => {
    const { charts } = takeArtifacts('dtn_artifact_k39fd2:{"type":"chart","value":{"title":"t"}}\n');
    assert.deepEqual(charts, [{ type: "unknown", elements: [], title: "t" }]);
    const sandbox = await sandboxOf();
    await sandbox.execute("touch -d '2026-01-02T03:04:05.123456789Z' f; touch -d '2026-01-02T03:04:05Z' g");
    const time = async (name) => (await sandbox.ask(`/files/info${query(name)}`)).json.modifiedAt;
    assert.equal(await time("f"), "2026-01-02T03:04:05.123456789Z");
    assert.equal(await time("g"), "2026-01-02T03:04:05Z");
  });
});
