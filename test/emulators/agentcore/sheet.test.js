// The protocol's facts, one test per line of them, looked at from outside: requests are signed here, by AWS's rules, and
// streams are taken apart byte by byte.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, test } from "node:test";

import { crc32, event, message } from "./eventstream.js";
import { startAgentCore } from "./index.js";
import { canonicalRequest, signatureOf } from "./signature.js";

const ID = "aws.codeinterpreter.v1";
const SESSION = "x-amzn-code-interpreter-session-id";

/** @param {import("node:test").TestContext} t */
async function start(t, settings) {
  const emulator = await startAgentCore(settings);
  t.after(async () => {
    await emulator.close();
    assert.deepEqual(emulator.engine.errors, []);
  });
  return emulator;
}

/** A signed request; `with` changes what is sent, behind the signature's back. */
async function ask(emulator, method, path, body, { headers = {}, at = Date.now(), keys = emulator.settings.keys[0], region = emulator.settings.region, after = {}, identifier = ID, raw } = {}) {
  const { host } = new URL(emulator.url);
  const stamp = new Date(at).toISOString().replace(/[-:]|\.\d+/g, "");
  const text = raw ?? (body === undefined ? "" : JSON.stringify(body));
  const all = {
    host, "x-amz-date": stamp, ...(text && { "content-type": "application/json" }),
    ...(keys.token && { "x-amz-security-token": keys.token }), ...headers,
  };
  const signed = Object.keys(all).sort();
  const target = `/code-interpreters/${encodeURIComponent(identifier)}/${path}`;
  const canonical = canonicalRequest({ method, target, headers: all, signed, body: Buffer.from(text) });
  const signature = signatureOf(canonical, { secret: keys.secret, stamp, region, service: "bedrock-agentcore" });
  const authorization = `AWS4-HMAC-SHA256 Credential=${keys.id}/${stamp.slice(0, 8)}/${region}/bedrock-agentcore/aws4_request, SignedHeaders=${signed.join(";")}, Signature=${signature}`;
  const { host: _, ...sent } = all;
  const response = await fetch(emulator.url + target, { method, headers: { ...sent, authorization, ...after }, ...(text && { body: text }) });
  const bytes = Buffer.from(await response.arrayBuffer());
  const isJson = response.headers.get("content-type")?.startsWith("application/json");
  return { status: response.status, headers: response.headers, bytes, json: isJson ? JSON.parse(bytes.toString()) : undefined };
}

/** The messages of a stream, checked. */
function messagesOf(bytes) {
  const messages = [];
  while (bytes.length > 0) {
    const [total, size] = [bytes.readUInt32BE(0), bytes.readUInt32BE(4)];
    assert.equal(crc32(bytes.subarray(0, 8)), bytes.readUInt32BE(8));
    assert.equal(crc32(bytes.subarray(0, total - 4)), bytes.readUInt32BE(total - 4));
    const headers = {};
    for (let at = 12; at < 12 + size; ) {
      const name = bytes.subarray(at + 1, at + 1 + bytes[at]).toString();
      at += 1 + bytes[at];
      assert.equal(bytes[at], 7);
      const length = bytes.readUInt16BE(at + 1);
      headers[name] = bytes.subarray(at + 3, at + 3 + length).toString();
      at += 3 + length;
    }
    messages.push({ headers, payload: JSON.parse(bytes.subarray(12 + size, total - 4).toString()) });
    bytes = bytes.subarray(total);
  }
  return messages;
}

const begin = async (emulator, body = {}) => (await ask(emulator, "PUT", "sessions/start", body)).json.sessionId;
const invoke = (emulator, id, name, args, more) => ask(emulator, "POST", "tools/invoke", { name, arguments: args }, { ...more, headers: { [SESSION]: id } });
async function result(emulator, id, name, args) {
  const { status, bytes } = await invoke(emulator, id, name, args);
  assert.equal(status, 200);
  const [{ payload }] = messagesOf(bytes);
  return payload;
}
const typeOf = ({ headers }) => headers.get("x-amzn-errortype")?.split(":")[0];

describe("event streams", () => {
  test("the two test vectors", () => {
    assert.equal(
      message({ ":message-type": "event" }).toString("hex"),
      "0000002600000016df77b09c0d3a6d6573736167652d747970650700056576656e740807c704",
    );
    assert.equal(
      event({ content: [] }).toString("hex"),
      "0000006a0000004cc9cabd3e0d3a6d6573736167652d747970650700056576656e740b3a6576656e742d74797065070006726573756c740d3a636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e7b22636f6e74656e74223a5b5d7d4716bd4f",
    );
  });
  test("a result is one event of JSON, with status 200", async (t) => {
    const emulator = await start(t);
    const id = await begin(emulator);
    const { status, headers, bytes } = await invoke(emulator, id, "executeCommand", { command: "echo out; echo err >&2; exit 3" });
    assert.deepEqual([status, headers.get("content-type"), headers.get(SESSION)], [200, "application/vnd.amazon.eventstream", id]);
    const [{ headers: said, payload }, ...rest] = messagesOf(bytes);
    assert.deepEqual(rest, []);
    assert.deepEqual(said, { ":message-type": "event", ":event-type": "result", ":content-type": "application/json" });
    const { executionTime, ...content } = payload.structuredContent;
    assert.deepEqual(content, { stdout: "out\n", stderr: "err\n", exitCode: 3 });
    assert.equal(typeof executionTime, "number");
    assert.equal(payload.isError, true);
    assert.deepEqual(payload.content, [{ type: "text", text: "out\n" }]);
  });
  test("a session that ends while a tool runs: an exception", async (t) => {
    const emulator = await start(t);
    const id = await begin(emulator);
    const running = invoke(emulator, id, "executeCommand", { command: "sleep 20" });
    while (emulator.session(id).busy === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    emulator.expire(id);
    const [{ headers, payload }] = messagesOf((await running).bytes);
    assert.equal(headers[":message-type"], "exception");
    assert.equal(headers[":exception-type"], "resourceNotFoundException");
    assert.equal(typeof payload.message, "string");
  });
});

describe("signatures", () => {
  test("the two test vectors of the region", () => {
    const secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
    const how = { secret, stamp: "20260102T030405Z", region: "us-west-2", service: "bedrock-agentcore" };
    const common = { host: "bedrock-agentcore.us-west-2.amazonaws.com", "x-amz-date": how.stamp, "content-type": "application/json" };
    const of = (method, path, body, more) => {
      const headers = { ...common, ...more };
      const target = `/code-interpreters/${ID}/${path}`;
      return signatureOf(canonicalRequest({ method, target, headers, signed: Object.keys(headers).sort(), body: Buffer.from(body) }), how);
    };
    assert.equal(of("PUT", "sessions/start", '{"name":"s","sessionTimeoutSeconds":900}'), "bdaa066c3fb6a6d24e1a02099fa5b73535f17397abdbb026726720b87ce3e426");
    assert.equal(
      of("POST", "tools/invoke", '{"arguments":{"command":"id"},"name":"executeCommand"}', {
        accept: "application/vnd.amazon.eventstream", "x-amz-security-token": "TOKEN/1==", [SESSION]: "01TEST",
      }),
      "bcf03bb2db07f841ceecfa10ae78567f6875cac0426532168a07684aa9161f3c",
    );
  });
  const REFUSED = [
    ["none", { after: { authorization: "" } }, "MissingAuthenticationTokenException"],
    ["half of one", { after: { authorization: "AWS4-HMAC-SHA256 Credential=x" } }, "IncompleteSignatureException"],
    ["an unknown key", { keys: { id: "NOBODY", secret: "x" } }, "UnrecognizedClientException"],
    ["a token that is not the key's", { headers: { "x-amz-security-token": "x" } }, "UnrecognizedClientException"],
    ["a wrong secret", { keys: { id: "AKIDEMULATOR00000001", secret: "x" } }, "InvalidSignatureException"],
    ["another region", { region: "us-east-1" }, "InvalidSignatureException"],
    ["six minutes late", { at: Date.now() - 6 * 60_000 }, "InvalidSignatureException"],
    ["six minutes early", { at: Date.now() + 6 * 60_000 }, "InvalidSignatureException"],
    ["a header of AWS's that is not signed", { after: { "x-amz-later": "1" } }, "InvalidSignatureException"],
    ["a header that was changed", { headers: { "x-amz-one": "1" }, after: { "x-amz-one": "2" } }, "InvalidSignatureException"],
    ["a hash of the body that is another's", { headers: { "x-amz-content-sha256": createHash("sha256").update("x").digest("hex") } }, "InvalidSignatureException"],
  ];
  for (const [name, how, type] of REFUSED) {
    test(`refused: ${name}`, async (t) => {
      const emulator = await start(t);
      const reply = await ask(emulator, "PUT", "sessions/start", {}, how);
      assert.deepEqual([reply.status, typeOf(reply)], [403, type]);
      assert.equal(typeof reply.json.message, "string");
      assert.deepEqual(emulator.fleet.all(), []);
    });
  }
  test("taken: four minutes late, a hash of the body, a token, an ARN, an agent's name that is not signed", async (t) => {
    const identifier = "arn:aws:bedrock-agentcore:us-west-2:123456789012:code-interpreter/x-1";
    const emulator = await start(t, { keys: [{ id: "A", secret: "b", token: "c" }], interpreters: [identifier] });
    const hash = createHash("sha256").update("{}").digest("hex");
    const reply = await ask(emulator, "PUT", "sessions/start", {}, {
      at: Date.now() - 4 * 60_000, headers: { "x-amz-content-sha256": hash }, after: { "user-agent": "any" }, identifier,
    });
    assert.equal(reply.status, 200);
    assert.equal(reply.json.codeInterpreterIdentifier, identifier);
  });
  test("the clock of the service stands in the header date", async (t) => {
    const emulator = await start(t, { skewMs: 3600_000 });
    const { status, headers } = await ask(emulator, "PUT", "sessions/start", {});
    assert.equal(status, 403);
    assert.ok(Math.abs(Date.parse(headers.get("date")) - Date.now() - 3600_000) < 5000);
    assert.equal((await ask(emulator, "PUT", "sessions/start", {}, { at: Date.now() + 3600_000 })).status, 200);
  });
});

describe("sessions", () => {
  test("start: what it answers, and its defaults", async (t) => {
    const emulator = await start(t);
    const { status, json } = await ask(emulator, "PUT", "sessions/start", { name: "x" });
    assert.equal(status, 200);
    assert.deepEqual(Object.keys(json).sort(), ["codeInterpreterIdentifier", "createdAt", "sessionId"]);
    assert.match(json.sessionId, /^[0-9A-Z]{26}$/);
    assert.match(json.createdAt, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    const view = (await ask(emulator, "GET", `sessions/get?sessionId=${json.sessionId}`)).json;
    assert.deepEqual([view.name, view.sessionTimeoutSeconds, view.status], ["x", 900, "READY"]);
  });
  test("start: what is refused with 400", async (t) => {
    const emulator = await start(t);
    for (const body of [{ sessionTimeoutSeconds: 28801 }, { sessionTimeoutSeconds: 0 }, { name: "" }, { clientToken: "short" }, { other: 1 }, []]) {
      const reply = await ask(emulator, "PUT", "sessions/start", body);
      assert.deepEqual([reply.status, typeOf(reply)], [400, "ValidationException"], JSON.stringify(body));
    }
    assert.equal((await ask(emulator, "PUT", "sessions/start", undefined, { raw: "{" })).status, 400);
    assert.equal((await ask(emulator, "PUT", "sessions/start", {}, { identifier: "none" })).status, 404);
  });
  test("start: the same token is the same session", async (t) => {
    const emulator = await start(t);
    const clientToken = "6f1c2a50-0000-4000-8000-000000000001";
    assert.equal(await begin(emulator, { clientToken }), await begin(emulator, { clientToken }));
  });
  test("start: too many are 402", async (t) => {
    const emulator = await start(t, { limit: 1 });
    await begin(emulator);
    const reply = await ask(emulator, "PUT", "sessions/start", {});
    assert.deepEqual([reply.status, typeOf(reply)], [402, "ServiceQuotaExceededException"]);
  });
  test("stop: the id in the query; then it is TERMINATED, and stopped once more without a word", async (t) => {
    const emulator = await start(t);
    const id = await begin(emulator);
    for (let i = 0; i < 2; i++) {
      const { status, json } = await ask(emulator, "PUT", `sessions/stop?sessionId=${id}`, { clientToken: "x" });
      assert.deepEqual([status, json.sessionId], [200, id]);
      assert.ok(json.lastUpdatedAt);
    }
    assert.equal((await ask(emulator, "GET", `sessions/get?sessionId=${id}`)).json.status, "TERMINATED");
  });
  test("list: pages, by status", async (t) => {
    const emulator = await start(t);
    const ids = [await begin(emulator, { name: "a" }), await begin(emulator), await begin(emulator)];
    emulator.expire(ids[1]);
    const first = (await ask(emulator, "POST", "sessions/list", { maxResults: 1, status: "READY" })).json;
    const second = (await ask(emulator, "POST", "sessions/list", { maxResults: 1, status: "READY", nextToken: first.nextToken })).json;
    assert.deepEqual([first.items[0].sessionId, second.items[0].sessionId, second.nextToken], [ids[0], ids[2], undefined]);
    assert.equal(first.items[0].name, "a");
    assert.equal((await ask(emulator, "POST", "sessions/list", {})).json.items.length, 3);
    assert.equal((await ask(emulator, "POST", "sessions/list", { maxResults: 101 })).status, 400);
  });
  test("a lifetime is hard: what runs in it does not matter", async (t) => {
    const emulator = await start(t, { secondMs: 10 });
    const id = await begin(emulator, { sessionTimeoutSeconds: 20 });
    assert.equal(messagesOf((await invoke(emulator, id, "executeCommand", { command: "sleep 20" })).bytes)[0].headers[":message-type"], "exception");
  });
  test("somebody else's, and what is not there, are 404; no other method is known", async (t) => {
    const keys = [{ id: "A", secret: "a" }, { id: "B", secret: "b" }];
    const emulator = await start(t, { keys });
    const id = await begin(emulator);
    for (const [sessionId, who] of [[id, keys[1]], ["none", keys[0]], ["", keys[0]]]) {
      const reply = await ask(emulator, "GET", `sessions/get?sessionId=${sessionId}`, undefined, { keys: who });
      assert.deepEqual([reply.status, typeOf(reply)], [404, "ResourceNotFoundException"]);
    }
    assert.equal((await ask(emulator, "POST", "sessions/start", {})).status, 404);
  });
  test("the type of a refusal: in a header, or in __type or code of the body", async (t) => {
    const emulator = await start(t);
    const refused = () => ask(emulator, "GET", "sessions/get?sessionId=none");
    assert.match((await refused()).headers.get("x-amzn-errortype"), /^ResourceNotFoundException:http/);
    for (const place of ["__type", "code"]) {
      emulator.settings.typeIn = place;
      const { headers, json } = await refused();
      assert.equal(headers.get("x-amzn-errortype"), null);
      assert.match(json[place], /#ResourceNotFoundException$/);
    }
  });
});

describe("tools", () => {
  test("no limit, variables or directory can be asked for; no other tool is known", async (t) => {
    const emulator = await start(t);
    const id = await begin(emulator);
    for (const [name, args] of [["executeCommand", { command: "true", timeout: 1 }], ["executeCommand", {}], ["executeCommand", { command: "" }], ["other", {}], ["constructor", {}], ["executeCode", { code: "1", language: "ruby" }], ["readFiles", { paths: "x" }]]) {
      const reply = await invoke(emulator, id, name, args);
      assert.deepEqual([reply.status, typeOf(reply)], [400, "ValidationException"], name);
    }
    assert.equal((await ask(emulator, "POST", "tools/invoke", { name: "executeCommand", arguments: { command: "true" } })).status, 404);
  });
  test("a command begins in the session's directory, with its home, and reads nothing", async (t) => {
    const emulator = await start(t);
    const id = await begin(emulator);
    const { directory } = emulator.session(id);
    assert.equal((await result(emulator, id, "executeCommand", { command: "pwd; echo $HOME; cat" })).structuredContent.stdout, `${directory}\n${directory}\n`);
  });
  test("outputs are text: what is no UTF-8 is lost", async (t) => {
    const emulator = await start(t);
    const id = await begin(emulator);
    assert.equal((await result(emulator, id, "executeCommand", { command: "printf 'a\\377b'" })).structuredContent.stdout, "a\ufffdb");
  });
  test("an answer waits for all who can print; signals are 128 and their number", async (t) => {
    const emulator = await start(t);
    const id = await begin(emulator);
    const { structuredContent } = await result(emulator, id, "executeCommand", { command: "(sleep 0.3; echo late) & kill -9 $$" });
    assert.deepEqual([structuredContent.stdout, structuredContent.exitCode], ["late\n", 137]);
  });
  test("several at once; or one at a time", async (t) => {
    const emulator = await start(t);
    const id = await begin(emulator);
    const first = invoke(emulator, id, "executeCommand", { command: "sleep 0.5" });
    while (emulator.session(id).busy === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.equal((await invoke(emulator, id, "executeCommand", { command: "true" })).status, 200);
    emulator.settings.serial = true;
    const reply = await invoke(emulator, id, "executeCommand", { command: "true" });
    assert.deepEqual([reply.status, typeOf(reply)], [409, "ConflictException"]);
    await first;
  });
  test("tasks: begun, looked at, stopped", async (t) => {
    const emulator = await start(t);
    const id = await begin(emulator);
    const { structuredContent: { taskId, taskStatus } } = await result(emulator, id, "startCommandExecution", { command: "echo a; exit 3" });
    assert.equal(taskStatus, "working");
    let look;
    do look = (await result(emulator, id, "getTask", { taskId })).structuredContent;
    while (look.taskStatus === "working");
    assert.deepEqual([look.taskStatus, look.stdout, look.exitCode], ["failed", "a\n", 3]);
    const second = (await result(emulator, id, "startCommandExecution", { command: "sleep 60" })).structuredContent.taskId;
    assert.equal((await result(emulator, id, "stopTask", { taskId: second })).structuredContent.taskStatus, "canceled");
    assert.equal((await result(emulator, id, "getTask", { taskId: "none" })).isError, true);
  });
  test("files: text or bytes, as it likes; relative paths only; all or nothing", async (t) => {
    const emulator = await start(t);
    const id = await begin(emulator);
    const content = [{ path: "a/t.txt", text: "é" }, { path: "b.bin", blob: Buffer.from([0, 255]).toString("base64") }];
    assert.equal((await result(emulator, id, "writeFiles", { content })).isError, false);
    const read = await result(emulator, id, "readFiles", { paths: ["a/t.txt", "b.bin"] });
    assert.deepEqual(read.content.map(({ resource }) => [resource.uri, resource.type, resource.text ?? resource.blob]), [
      ["file:///a/t.txt", "text", "é"], ["file:///b.bin", "blob", "AP8="],
    ]);
    for (const path of ["/etc/x", "../x", ""]) {
      const refused = await result(emulator, id, "writeFiles", { content: [{ path: "new", text: "x" }, { path, text: "x" }] });
      assert.equal(refused.isError, true);
    }
    const missing = await result(emulator, id, "readFiles", { paths: ["new"] });
    assert.ok(missing.isError && missing.content.every(({ type }) => type === "text"));
    assert.deepEqual((await result(emulator, id, "listFiles", { path: "" })).content.map(({ name }) => name).sort(), ["a", "b.bin"]);
    assert.equal((await result(emulator, id, "removeFiles", { paths: ["a"] })).isError, false);
    assert.equal((await result(emulator, id, "removeFiles", { paths: ["a"] })).isError, true);
  });
  test("a session that is over: 404, or 400, as it is set", async (t) => {
    const emulator = await start(t);
    const id = await begin(emulator);
    emulator.expire(id);
    assert.equal(typeOf(await invoke(emulator, id, "executeCommand", { command: "true" })), "ResourceNotFoundException");
    emulator.settings.overStatus = 400;
    const reply = await invoke(emulator, id, "executeCommand", { command: "true" });
    assert.deepEqual([reply.status, typeOf(reply)], [400, "ValidationException"]);
    assert.match(reply.json.message, /not active/);
  });
});
