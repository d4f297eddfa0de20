// A sandbox behind the sandbox features of frameworks, without the frameworks. With them: test/interop/frameworks.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { LocalSandbox, SandboxError, VercelSandbox } from "cloudsandbox";
import { aiSdkSandbox } from "cloudsandbox/ai-sdk";
import { deepAgentsBackend } from "cloudsandbox/deepagents";

import { fakeSandbox } from "../support/fake.js";
import { mark } from "../support/processes.js";
import { rejection } from "../support/wait.js";

const bytes = (text) => new TextEncoder().encode(text);
const textOf = async (stream) => new Response(stream).text();

function open(t, options) {
  const sandbox = new LocalSandbox({ trusted: true, ...options });
  t.after(() => sandbox.close());
  return sandbox;
}

describe("aiSdkSandbox", () => {
  test("refuses what is no sandbox of this package", () => {
    assert.throws(() => aiSdkSandbox({}), { code: "ERR_SANDBOX_INVALID_ARG" });
    assert.throws(() => aiSdkSandbox(fakeSandbox().sandbox), { message: /has no exec\(\), readBytes\(\).*classes of this package/ });
  });

  test("run: both streams, the exit code, folder and variables; a long output says what is missing", async (t) => {
    const session = aiSdkSandbox(open(t));
    await session.writeTextFile({ path: "d/f", content: "x" });
    const command = "pwd | sed 's,.*/,,'; echo $A; echo lost >&2; exit 3";
    assert.deepEqual(await session.run({ command, workingDirectory: "d", env: { A: "1" } }), { exitCode: 3, stdout: "d\n1\n", stderr: "lost\n" });
    const { stdout } = await session.run({ command: "head -c 17000000 /dev/zero | tr '\\0' x" });
    assert.match(stdout.slice(-60), /x\n\[\d+ bytes in the middle of this were left out\]\n$/);
  });

  test("an aborted run rejects with the signal's reason, and its processes are gone", async (t) => {
    const { env, started, gone } = mark();
    const controller = new AbortController();
    const session = aiSdkSandbox(open(t));
    const reasons = [session.run({ command: "sleep 600", env, abortSignal: controller.signal })].map(rejection);
    const child = await session.spawn({ command: "sleep 600", env, abortSignal: controller.signal });
    reasons.push(rejection(child.wait()), rejection(textOf(child.stdout)));
    await started(2);
    const reason = new Error("stopped");
    controller.abort(reason);
    assert.deepEqual(await Promise.all(reasons), [reason, reason, reason]);
    await gone();
    await assert.rejects(session.spawn({ command: "true", abortSignal: controller.signal }), reason);
  });

  test("spawn: streams of bytes while it runs, wait, kill twice", async (t) => {
    const { env, started, gone } = mark();
    const session = aiSdkSandbox(open(t));
    const child = await session.spawn({ command: "printf 'a\\377'; echo b >&2; while [ ! -e go ]; do sleep 0.05; done; exit 4" });
    const reader = child.stdout.getReader();
    assert.deepEqual((await reader.read()).value, new Uint8Array([0x61, 0xff]));
    await session.writeBinaryFile({ path: "go", content: new Uint8Array() });
    assert.deepEqual(await child.wait(), { exitCode: 4 });
    assert.equal((await reader.read()).done, true);
    assert.equal(await textOf(child.stderr), "b\n");
    const long = await session.spawn({ command: "echo begun; sleep 600 & sleep 600", env });
    await long.stderr.cancel();
    await started(2);
    await Promise.all([long.kill(), long.kill()]);
    await gone();
    assert.equal(await textOf(long.stdout), "begun\n");
    assert.notEqual((await long.wait()).exitCode, 0);
    assert.equal("stdin" in child, false);
  });

  test("spawn: standard input that stays open; refused before anything is there where it is not to be had", async (t) => {
    const session = aiSdkSandbox(open(t));
    const child = await session.spawn({ command: "while read -r line; do echo \"<$line>\"; done; exit 3", stdin: true });
    const [writer, reader] = [child.stdin.getWriter(), child.stdout.getReader()];
    await writer.write(new TextEncoder().encode("one\n"));
    assert.equal(Buffer.from((await reader.read()).value).toString(), "<one>\n");
    await writer.close();
    assert.deepEqual(await child.wait(), { exitCode: 3 });
    const controller = new AbortController();
    const reason = new Error("enough");
    const long = await session.spawn({ command: "cat", stdin: true, abortSignal: controller.signal });
    controller.abort(reason);
    await assert.rejects(long.wait(), (error) => error === reason);
    const remote = new VercelSandbox({ token: "t", teamId: "t", projectId: "p", baseURL: "http://127.0.0.1:1" });
    t.after(() => remote.close());
    const refused = aiSdkSandbox(remote).spawn({ command: "touch made", stdin: true });
    await assert.rejects(refused, { code: "ERR_SANDBOX_UNSUPPORTED", message: /nothing was started/ });
  });

  test("files: bytes, streams, text in an encoding and by lines; what is missing is null", async (t) => {
    const session = aiSdkSandbox(open(t));
    await session.writeTextFile({ path: "a/t", content: "\ufeffone\ntwo\nthree" });
    assert.equal(await session.readTextFile({ path: "a/t" }), "\ufeffone\ntwo\nthree");
    assert.equal(await session.readTextFile({ path: "a/t", startLine: 2, endLine: 2 }), "two");
    assert.equal(await session.readTextFile({ path: "a/t", startLine: 9 }), "");
    await session.writeTextFile({ path: "l", content: "é\r\nb", encoding: "latin1" });
    assert.deepEqual([...(await session.readBinaryFile({ path: "l" }))], [0xe9, 13, 10, 98]);
    assert.equal(await session.readTextFile({ path: "l", encoding: "latin1", endLine: 1 }), "é");
    await assert.rejects(session.writeTextFile({ path: "l", content: "", encoding: "koi8-r" }), { code: "ERR_SANDBOX_UNSUPPORTED" });
    const content = new ReadableStream({ start: (controller) => (controller.enqueue(bytes("str")), controller.enqueue(bytes("eam")), controller.close()) });
    await session.writeFile({ path: "s", content });
    assert.equal(await textOf(await session.readFile({ path: "s" })), "stream");
    for (const read of ["readFile", "readBinaryFile", "readTextFile", "stat", "listDirectory"]) assert.equal(await session[read]({ path: "none" }), null, read);
  });

  test("where the provider has no streams, they are made of whole files", async () => {
    const written = [];
    const more = { capabilities: { streams: false }, writeFile: async (...args) => void written.push(args) };
    for (const name of ["exec", "stat", "listDirectory", "deleteFile"]) more[name] = async () => null;
    more.readBytes = async (path) => (path === "f" ? bytes("whole") : null);
    const session = aiSdkSandbox(Object.assign(fakeSandbox().sandbox, more));
    assert.equal(await textOf(await session.readFile({ path: "f" })), "whole");
    assert.equal(await session.readFile({ path: "none" }), null);
    await session.writeFile({ path: "g", content: new Blob(["str", "eam"]).stream() });
    assert.deepEqual(written, [["g", bytes("stream"), undefined, { signal: undefined }]]);
  });

  test("stat, listDirectory and deleteFile", async (t) => {
    const session = aiSdkSandbox(open(t));
    await session.run({ command: "mkdir d; printf abc >f; ln -s f l; ln -s none x" });
    assert.deepEqual(await session.stat({ path: "l" }), { type: "file", size: 3 });
    assert.deepEqual(await session.stat({ path: "d" }), { type: "directory", size: 0 });
    assert.equal(await session.stat({ path: "x" }), null, "it leads nowhere");
    const entries = [["d", "directory"], ["f", "file"], ["l", "symlink"], ["x", "symlink"]];
    assert.deepEqual(await session.listDirectory({ path: "." }), entries.map(([name, type]) => ({ name, type })));
    await assert.rejects(session.listDirectory({ path: "f" }), SandboxError);
    assert.deepEqual([await session.deleteFile({ path: "l" }), await session.deleteFile({ path: "l" })], [true, false]);
    assert.deepEqual(await session.stat({ path: "f" }), { type: "file", size: 3 });
    await assert.rejects(session.deleteFile({ path: "d" }), SandboxError);
  });
});

describe("deepAgentsBackend", () => {
  /** What is used of the framework's class. */
  class BaseSandbox {
    read(path, ...rest) {
      return [path, ...rest];
    }
  }

  test("execute: both streams in order, a limit, and a failure as text", async (t) => {
    const sandbox = open(t);
    const backend = deepAgentsBackend(sandbox, BaseSandbox, { timeoutSeconds: 3 });
    assert.ok(backend instanceof BaseSandbox);
    assert.match(backend.id, /^unix-local-./);
    assert.deepEqual(await backend.execute("echo a; echo b >&2; exit 2"), { output: "a\nb\n", exitCode: 2, truncated: false });
    assert.deepEqual(await backend.execute("echo a; sleep 60"), { output: "a\n\n[stopped after 3 s]", exitCode: 124, truncated: false });
    await sandbox.close();
    const { output, exitCode } = await backend.execute("true");
    assert.match(output, /closed/);
    assert.equal(exitCode, null);
  });

  test("files: one answer for each path; its overflow is in the sandbox, for reading too", async (t) => {
    const backend = deepAgentsBackend(open(t), BaseSandbox);
    const files = [["a", bytes("1")], ["/large_tool_results/x.txt", bytes("2")], ["../out", bytes("3")], ["/etc/x", bytes("4")]];
    assert.deepEqual((await backend.uploadFiles(files)).map(({ error }) => error), [null, null, "invalid_path", "invalid_path"]);
    await backend.execute("mkdir d");
    const read = await backend.downloadFiles(["a", "/large_tool_results/x.txt", "none", "d", "../out"]);
    assert.deepEqual(read.map(({ content, error }) => error ?? Buffer.from(content).toString()), ["1", "2", "file_not_found", "is_directory", "invalid_path"]);
    assert.equal((await backend.execute("cat large_tool_results/x.txt")).output, "2");
    assert.deepEqual(backend.read("/large_tool_results/x.txt", 0, 10), ["large_tool_results/x.txt", 0, 10]);
    assert.deepEqual(backend.read("/etc/x"), ["/etc/x"]);
  });

  test("the signal that it is given ends the command", async (t) => {
    const { env, started, gone } = mark();
    const controller = new AbortController();
    const backend = deepAgentsBackend(open(t, { env }), BaseSandbox, { signal: () => controller.signal });
    const rejected = rejection(backend.execute("sleep 600"));
    await started();
    const reason = new Error("stopped");
    controller.abort(reason);
    assert.equal(await rejected, reason);
    await gone();
  });
});
