// `cloudsandbox mcp` in a process of its own, driven by the client of the SDK.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

import { mark } from "../../support/processes.js";
import { tempDir } from "../../support/temp.js";
import { eventually } from "../../support/wait.js";

const BIN = path.resolve(import.meta.dirname, "../../../lib/cli/main.js");

/** A server in a temporary folder of its own, and a client of it. */
async function connect(t, args = [], env = {}) {
  const dir = tempDir(t);
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [BIN, "mcp", "--provider", "unix-local", ...args],
    env: { PATH: process.env.PATH, TMPDIR: dir, ...env },
    cwd: import.meta.dirname,
    stderr: "pipe",
  });
  let stderr = "";
  transport.stderr.on("data", (text) => (stderr += text));
  const client = new Client({ name: "host", version: "1.0.0" });
  await client.connect(transport);
  t.after(() => client.close());
  const call = async (name, args_, options) => client.callTool({ name: `sandbox_local_${name}`, arguments: args_ }, undefined, options);
  const text = async (...given) => (await call(...given)).content[0].text;
  return { dir, client, transport, call, text, said: () => stderr, left: () => readdirSync(dir) };
}

describe("cloudsandbox mcp", { concurrency: 2 }, () => {
  test("tools with schemas and annotations; --read-only leaves those that read", async (t) => {
    const { client } = await connect(t);
    const { tools } = await client.listTools();
    assert.deepEqual(tools.map(({ name }) => name.replace("sandbox_local_", "")), ["run", "shell", "write_file", "read_file", "list_files", "edit_file"]);
    assert.deepEqual(tools.map(({ annotations }) => annotations.readOnlyHint), [false, false, false, true, true, false]);
    for (const { inputSchema } of tools) assert.equal(inputSchema.type, "object");
    const reader = await connect(t, ["--read-only"]);
    assert.deepEqual((await reader.client.listTools()).tools.map(({ name }) => name), ["sandbox_local_read_file", "sandbox_local_list_files"]);
  });

  test("calls, several at once, invalid arguments, an unknown tool, a long result", async (t) => {
    const { client, call, text, said } = await connect(t, ["--max-chars", "2000"]);
    assert.equal(await text("write_file", { path: "a/b.txt", contents: "x\n" }), "ok");
    assert.equal(await text("edit_file", { path: "a/b.txt", oldText: "x", newText: "y" }), "ok: replaced 1 place (line 1)");
    assert.equal(await text("list_files", {}), "a/b.txt (2 bytes)\n");
    assert.deepEqual(await Promise.all([1, 2, 3].map((n) => text("shell", { command: `echo ${n}` }))), [1, 2, 3].map((n) => `{"output":"${n}\\n","exitCode":0}`));
    const refused = await call("shell", { cmd: "ls" });
    assert.equal(refused.isError, true);
    assert.match(refused.content[0].text, /`command` is missing/);
    await assert.rejects(client.callTool({ name: "other" }), { code: -32602 });
    const long = await text("shell", { command: "seq 1 200000" });
    assert.ok(long.length <= 2000);
    assert.match(long, /bytes left out here/);
    assert.equal(said(), "");
  });

  test("output comes as progress while the command runs, and keeps a call alive", async (t) => {
    const { call } = await connect(t);
    const heard = [];
    const options = { onprogress: ({ progress, message }) => heard.push([progress, message]), timeout: 1500, resetTimeoutOnProgress: true };
    const { content } = await call("shell", { command: "for i in 1 2 3 4 5; do echo $i; sleep 0.5; done" }, options);
    assert.equal(content[0].text, '{"output":"1\\n2\\n3\\n4\\n5\\n","exitCode":0}');
    assert.equal(heard.map(([, message]) => message).join(""), "1\n2\n3\n4\n5\n");
    assert.deepEqual(heard.map(([progress]) => progress), [...heard.map(([progress]) => progress)].sort((a, b) => a - b));
  });

  test("a cancelled call ends its command; the next one works", async (t) => {
    const { env, started, gone } = mark();
    const [[name, value]] = Object.entries(env);
    const { call, text } = await connect(t);
    await text("shell", { command: "true" }); // Request 0 cannot be cancelled.
    const controller = new AbortController();
    const running = call("shell", { command: `export ${name}='${value}'; sleep 600 & sleep 600` }, { signal: controller.signal });
    const rejected = assert.rejects(running);
    await started(2);
    controller.abort();
    await rejected;
    await gone();
    assert.equal(await text("shell", { command: "echo on" }), '{"output":"on\\n","exitCode":0}');
  });

  test("images and other binary files are content of their own; text is text", async (t) => {
    const { call } = await connect(t);
    const png = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0xff]).toString("base64");
    for (const name of ["p.png", "p.dat"]) await call("write_file", { path: name, contents: png, encoding: "base64" });
    assert.deepEqual((await call("read_file", { path: "p.png" })).content, [{ type: "image", data: png, mimeType: "image/png" }]);
    const resource = { uri: "sandbox:///p.dat", mimeType: "application/octet-stream", blob: png };
    assert.deepEqual((await call("read_file", { path: "p.dat" })).content, [{ type: "resource", resource }]);
    assert.deepEqual((await call("read_file", { path: "p.dat", encoding: "base64" })).content, [{ type: "text", text: png }]);
    assert.deepEqual((await call("read_file", { path: "absent.png" })).content, [{ type: "text", text: "[file not found]" }]);
  });

  test("files are resources: a list in pages, text and bytes, a template", async (t) => {
    const { client, call } = await connect(t);
    await call("shell", { command: "mkdir d; for i in $(seq 1000 1599); do echo > d/$i; done; printf '\\377' > 'a b%.bin'" });
    const first = await client.listResources();
    assert.equal(first.resources.length, 500);
    assert.deepEqual(first.resources[0], { uri: "sandbox:///a%20b%25.bin", name: "a b%.bin", size: 1 });
    const second = await client.listResources({ cursor: first.nextCursor });
    assert.deepEqual([second.resources.length, second.nextCursor], [101, undefined]);
    const { contents } = await client.readResource({ uri: "sandbox:///a%20b%25.bin" });
    assert.deepEqual(contents, [{ uri: "sandbox:///a%20b%25.bin", mimeType: "application/octet-stream", blob: "/w==" }]);
    assert.equal((await client.readResource({ uri: "sandbox:///d/1000" })).contents[0].text, "\n");
    await assert.rejects(client.readResource({ uri: "sandbox:///none" }), { code: -32002 });
    await assert.rejects(client.readResource({ uri: "file:///etc/passwd" }), { code: -32002 });
    await assert.rejects(client.listResources({ cursor: "x" }), { code: -32602 });
    assert.equal((await client.listResourceTemplates()).resourceTemplates[0].uriTemplate, "sandbox:///{+path}");
  });

  test("--workspace: a folder of the user's, which stays", async (t) => {
    const box = path.join(tempDir(t), "box");
    mkdirSync(box);
    writeFileSync(path.join(box, "mine"), "x");
    const { client, text } = await connect(t, ["--workspace", box]);
    assert.deepEqual((await client.listResources()).resources.map(({ name }) => name), ["mine"]);
    assert.equal(await text("read_file", { path: "mine" }), "x");
    await client.close();
    assert.deepEqual(readdirSync(box), ["mine"]);
  });

  for (const how of ["EOF", "SIGTERM", "SIGINT"]) {
    test(`${how} ends what runs, deletes the sandbox, and the process exits with 0`, async (t) => {
      const { env, started, gone } = mark();
      const [[name, value]] = Object.entries(env);
      const { call, transport, left } = await connect(t);
      call("shell", { command: `export ${name}='${value}'; sleep 600 & sleep 600` }).catch(() => {});
      await started(2);
      assert.equal(left().length, 1);
      const child = transport._process;
      const exited = once(child, "exit");
      if (how === "EOF") child.stdin.end();
      else child.kill(how);
      assert.deepEqual(await exited, [0, null]);
      await gone();
      await eventually("the sandbox is gone", () => left().length === 0);
    });
  }
});
