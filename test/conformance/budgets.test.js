// What a hostile service may cost: a program with one sandbox is answered by this process with replies that
// are long, packed, dense or without an end. The outcome is an error in time, and memory stays small.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { describe, test } from "node:test";
import { gzipSync } from "node:zlib";

import { crc32, event, message } from "../emulators/agentcore/eventstream.js";
import { makeCertificate } from "../emulators/certificate.js";
import { frame } from "../emulators/modal/grpc.js";
import { startModal } from "../emulators/modal/index.js";
import { router } from "../emulators/modal/messages.js";
import { encode } from "../emulators/modal/proto.js";
import { runNode } from "../support/node.js";
import { withoutVariables } from "./remote.js";

withoutVariables();

const MIB = 1 << 20;
/** Of the program's own, beside what it is answered. */
const MOST_MIB = 48;
const LIMIT_MS = 15_000;

/** One envelope of the Connect protocol. */
function envelope(payload) {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(payload.length, 1);
  return Buffer.concat([head, payload]);
}

const json = (value) => Buffer.from(JSON.stringify(value));
const ALIVE = envelope(json({ event: { keepalive: {} } }));
const OUTPUT = envelope(json({ event: { data: { stdout: Buffer.from("x").toString("base64") } } }));

/** About `bytes` of "0,0,0,...", the most values that so many bytes can hold. */
const zeros = (bytes) => Buffer.alloc(bytes, "0,");
const entry = (i) => ({ name: `f${i}`, type: "FILE_TYPE_FILE", path: `/home/user/f${i}`, size: "1" });

/** Replies: type, coding, and the body's parts; the last part is sent again and again when `endless`. */
const dense = { type: "application/json", parts: [Buffer.from('{"entries":['), zeros(80 * MIB), Buffer.from("0]}")] };
const packed = { type: "application/json", coding: "gzip", parts: [gzipSync(Buffer.alloc(16 * MIB, "0,"))] };
const twice = {
  type: "application/connect+json",
  coding: "gzip, gzip",
  parts: [gzipSync(gzipSync(Buffer.concat(Array.from({ length: 1e6 }, () => ALIVE))))],
};
const flood = (event) => ({
  type: "application/connect+json",
  endless: true,
  parts: [envelope(json({ event: { start: { pid: 7 } } })), Buffer.concat(Array.from({ length: 2000 }, () => event))],
});
const longEvent = {
  type: "application/connect+json",
  parts: [envelope(Buffer.concat([Buffer.from('{"event":{"x":['), zeros(4 * MIB), Buffer.from("0]}}")]))],
};
const denseEvent = {
  type: "application/connect+json",
  endless: true,
  parts: [envelope(Buffer.concat([Buffer.from('{"event":{"x":['), zeros(200_000), Buffer.from("0]}}")]))],
};
const entries = {
  type: "application/json",
  endless: true,
  parts: [Buffer.concat([Buffer.from('{"entries":['), json(entry(0))]),
    Buffer.concat(Array.from({ length: 2000 }, (_, i) => Buffer.concat([Buffer.from(","), json(entry(i + 1))])))],
};

async function send(response, { type, coding, parts, endless }, status = 200) {
  response.writeHead(status, { "content-type": type, ...(coding && { "content-encoding": coding }) });
  let open = true;
  response.on("close", () => (open = false));
  for (let i = 0; open && (endless || i < parts.length); i++) {
    const part = parts[Math.min(i, parts.length - 1)];
    if (!response.write(part)) await Promise.race([once(response, "drain"), once(response, "close")]);
  }
  response.end();
}

/** Answers as the services do, but for what `hostile` says: by a part of the path, or of what was posted. */
async function serve(t, hostile) {
  let name;
  const server = createServer((request, response) => {
    let sent = "";
    request.on("data", (bytes) => (sent += bytes));
    request.on("end", () => {
      if (request.method === "POST" && request.url === "/api/sandbox") ({ name } = JSON.parse(sent));
      const isMeant = (part) => (part.startsWith("POST ") ? sent.includes(part.slice(5)) : request.url.includes(part));
      const found = Object.keys(hostile).find((part) => isMeant(part) && request.method !== "DELETE");
      const answer = (status, value) => {
        response.writeHead(status, { "content-type": "application/json" });
        response.end(value && JSON.stringify(value));
      };
      if (found) send(response, hostile[found], found === "/sandboxes" ? 201 : 200).catch(() => {});
      else if (request.url.startsWith("/vercel/v3/")) {
        const { name: asked } = JSON.parse(sent);
        answer(200, { sandbox: { name: asked, currentSessionId: "s", status: "running" }, session: { id: "s", cwd: "/d", status: "running" } });
      } else if (request.url.startsWith("/vercel/")) answer(200, { session: { id: "s", cwd: "/d", status: "running" } });
      else if (request.url.endsWith("/sessions/start")) answer(200, { sessionId: "s" });
      else if (request.url.endsWith("/tools/invoke")) response.end(event({ structuredContent: { stdout: "/d\n" } }));
      else if (request.method === "POST" && request.url === "/sessions") answer(201, { session_id: "mine" });
      else if (sent.includes("pwd -P")) answer(200, { exit_code: 0, stdout: "/workspace\n", stderr: "", timed_out: false });
      else if (request.method === "DELETE" || request.url.startsWith("/health")) answer(204);
      else if (request.url.includes("work-dir")) answer(200, { dir: "/home/daytona" });
      else if (request.url.includes("/api/sandbox")) answer(200, { id: "mine", name, state: "started", toolboxProxyUrl: `${url}/toolbox` });
      else answer(201, { sandboxID: "abc123", envdVersion: "0.5.7", envdAccessToken: "token_0123456789" });
    });
    response.on("error", () => {}).setMaxListeners(0);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const url = `http://127.0.0.1:${server.address().port}`;
  t.after(() => server.closeAllConnections() ?? server.close());
  return url;
}

/** Runs `call` of a sandbox in a program; its outcome, and what it cost there. */
async function cost(Class, options, call) {
  const { stdout } = await runNode(`
    const { ${Class} } = await import("cloudsandbox");
    const { readFileSync } = await import("node:fs");
    const peak = () => Number(/VmHWM:\\s+(\\d+)/.exec(readFileSync("/proc/self/status", "utf8"))[1]) / 1024;
    const sandbox = new ${Class}(${JSON.stringify(options)});
    let last = performance.now(), worst = 0;
    const timer = setInterval(() => { worst = Math.max(worst, performance.now() - last); last = performance.now(); }, 5);
    const before = peak(), start = performance.now();
    const outcome = await (${call})(sandbox).then((value) => value?.exitCode ?? "ok", ({ code, message }) => code + " " + message);
    const ms = performance.now() - start;
    console.log(JSON.stringify({ outcome, ms, worst, mib: peak() - before }));
    process.exit(0);`);
  return JSON.parse(stdout);
}

const SHELL = '(sandbox) => sandbox.shell("true", { timeoutSeconds: 1 })';
const MANY = `(sandbox) => Promise.all(Array.from({ length: 30 }, () =>
  sandbox.shell("true", { timeoutSeconds: 1 }))).then(([result]) => result)`;
const LIST = "(sandbox) => sandbox.listFiles()";
const START = "(sandbox) => sandbox.start()";

describe("C185 C186 e2b: what a hostile service costs", () => {
  /** @type {[string, any, string, RegExp][]} */
  const cases = [
    ["a create's answer that is packed", { "/sandboxes": packed }, START, /^ERR_SANDBOX_PROTOCOL .*compressed/],
    ["a create's answer that is dense", { "/sandboxes": dense }, START, /^ERR_SANDBOX_PROTOCOL .*more than \d+ bytes/],
    ["a stream that is packed twice", { Start: twice }, SHELL, /^ERR_SANDBOX_PROTOCOL .*compressed/],
    ["an event that is too long", { Start: longEvent }, SHELL, /^ERR_SANDBOX_PROTOCOL .*too long/],
    ["events that are dense", { Start: denseEvent }, SHELL, /^ERR_SANDBOX_PROTOCOL .*not JSON/],
    ["signs of life without an end", { Start: flood(ALIVE) }, SHELL, /^124$/],
    ["output without an end, byte by byte", { Start: flood(OUTPUT) }, SHELL, /^124$/],
    ["thirty of them at once", { Start: flood(OUTPUT) }, MANY, /^124$/],
    ["a list that is dense", { ListDir: dense }, LIST, /^ERR_SANDBOX_PROTOCOL .*list/],
    ["a list without an end", { ListDir: entries }, LIST, /^ERR_SANDBOX_TOO_LARGE .*more than \d+ files/],
  ];
  for (const [name, hostile, call, expected] of cases) {
    test(name, async (t) => {
      const url = await serve(t, hostile);
      const { outcome, ms, mib } = await cost("E2BSandbox", { apiKey: "e2b_0123456789", baseURL: url, sandboxUrl: url }, call);
      assert.match(String(outcome), expected);
      assert.ok(mib < MOST_MIB, `${mib} MiB`);
      assert.ok(ms < LIMIT_MS, `${ms} ms`);
    });
  }
});

describe("C185 C186 daytona: what a hostile service costs", () => {
  /** @type {[string, any, string, RegExp][]} */
  const cases = [
    ["a create's answer that is packed", { "/api/sandbox": packed }, START, /^ERR_SANDBOX_PROTOCOL .*compressed/],
    ["a create's answer that is dense", { "/api/sandbox": dense }, START, /^ERR_SANDBOX_(PROTOCOL|TOO_LARGE) .*more than \d+ bytes/],
    ["a command's answer that is packed", { execute: packed }, SHELL, /^ERR_SANDBOX_PROTOCOL .*compressed/],
    ["a list that is dense", { execute: dense }, LIST, /^ERR_SANDBOX_/],
  ];
  for (const [name, hostile, call, expected] of cases) {
    test(name, async (t) => {
      const url = await serve(t, hostile);
      const { outcome, ms, mib } = await cost("DaytonaSandbox", { apiKey: "dtn_0123456789", baseURL: `${url}/api` }, call);
      assert.match(String(outcome), expected);
      assert.ok(mib < MOST_MIB, `${mib} MiB`);
      assert.ok(ms < LIMIT_MS, `${ms} ms`);
    });
  }
});

describe("C185 C186 http: what a hostile service costs", () => {
  const text = (...parts) => ({ type: "application/json", parts: [Buffer.from('{"exit_code":0,"stdout":"'), ...parts] });
  const long = { ...text(Buffer.alloc(1 << 20, "0123456789abcdef")), endless: true };
  /** @type {[string, any, string, RegExp][]} */
  const cases = [
    ["a create's answer that is packed", { "/sessions": packed }, START, /^ERR_SANDBOX_PROTOCOL .*compressed/],
    ["a create's answer that is dense", { "/sessions": dense }, START, /^ERR_SANDBOX_(PROTOCOL|TOO_LARGE) .*more than \d+ bytes/],
    ["a command's answer that is packed", { "POST mkfifo": packed }, SHELL, /^ERR_SANDBOX_PROTOCOL .*compressed/],
    ["a command's answer without an end", { "POST mkfifo": long }, SHELL, /^ERR_SANDBOX_/],
    ["a list that is dense", { "POST find": dense }, LIST, /^ERR_SANDBOX_/],
    ["a file without an end", { "/files": { type: "text/plain", endless: true, parts: [Buffer.alloc(1 << 20)] } },
      '(sandbox) => sandbox.readFile("f", "utf8", { maxBytes: 1 << 20 })', /^ERR_SANDBOX_TOO_LARGE/],
  ];
  for (const [name, hostile, call, expected] of cases) {
    test(name, async (t) => {
      const url = await serve(t, hostile);
      const { outcome, ms, mib } = await cost("HttpSandbox", { token: "token_0123456789", baseURL: url }, call);
      assert.match(String(outcome), expected);
      assert.ok(mib < MOST_MIB, `${mib} MiB`);
      assert.ok(ms < LIMIT_MS, `${ms} ms`);
    });
  }
});

describe("C185 C186 vercel: what a hostile service costs", () => {
  const lines = (...parts) => ({ type: "application/x-ndjson", parts: [Buffer.from('{"command":{"id":"c","exitCode":null}}\n'), ...parts] });
  const log = Buffer.from(`${JSON.stringify({ stream: "stdout", data: "0123456789abcdef" })}\n`.repeat(20_000));
  /** @type {[string, any, string, RegExp][]} */
  const cases = [
    ["a create's answer that is packed", { "/v3/sandboxes": packed }, START, /^ERR_SANDBOX_PROTOCOL .*compressed/],
    ["a create's answer that is dense", { "/v3/sandboxes": dense }, START, /^ERR_SANDBOX_(PROTOCOL|TOO_LARGE) .*more than \d+ bytes/],
    ["a command's answer that is packed", { "POST mkfifo": packed }, SHELL, /^ERR_SANDBOX_PROTOCOL .*compressed/],
    ["a command's answer that is dense", { "POST mkfifo": dense }, SHELL, /^ERR_SANDBOX_/],
    ["lines without an end", { "POST mkfifo": { ...lines(log), endless: true } }, SHELL, /^ERR_SANDBOX_/],
    ["a line without an end", { "POST mkfifo": { ...lines(Buffer.alloc(MIB, "x")), endless: true } }, SHELL, /^ERR_SANDBOX_/],
    ["a list that is dense", { "POST find": dense }, LIST, /^ERR_SANDBOX_/],
    ["a file without an end", { "/fs/read": { type: "application/octet-stream", endless: true, parts: [Buffer.alloc(MIB)] } },
      '(sandbox) => sandbox.readFile("f", "utf8", { maxBytes: 1 << 20 })', /^ERR_SANDBOX_TOO_LARGE/],
  ];
  for (const [name, hostile, call, expected] of cases) {
    test(name, async (t) => {
      const url = await serve(t, hostile);
      const options = { token: "token_0123456789", teamId: "t", projectId: "p", baseURL: `${url}/vercel` };
      const { outcome, ms, mib } = await cost("VercelSandbox", options, call);
      assert.match(String(outcome), expected);
      assert.ok(mib < MOST_MIB, `${mib} MiB`);
      assert.ok(ms < LIMIT_MS, `${ms} ms`);
    });
  }
});

describe("C185 C186 agentcore: what a hostile service costs", () => {
  const stream = (...parts) => ({ type: "application/vnd.amazon.eventstream", parts });
  const small = Buffer.concat(Array.from({ length: 10_000 }, () => message({ ":message-type": "event", ":event-type": "later" })));
  const result = event({ structuredContent: { stdout: "0123456789abcdef".repeat(10_000) } });
  const many = event({ content: Array.from({ length: 20_000 }, () => ({ type: "text", text: "x" })) });
  /** It says that it has 4 GiB. */
  const huge = Buffer.from(message({ ":message-type": "event" }));
  huge.writeUInt32BE(0xffffffff);
  huge.writeUInt32BE(crc32(huge.subarray(0, 8)), 8);
  /** @type {[string, any, string, RegExp][]} */
  const cases = [
    ["a create's answer that is packed", { "/sessions/start": packed }, START, /^ERR_SANDBOX_PROTOCOL .*compressed/],
    ["a create's answer that is dense", { "/sessions/start": dense }, START, /^ERR_SANDBOX_(PROTOCOL|TOO_LARGE) .*more than \d+ bytes/],
    ["a command's answer that is packed", { "POST mkfifo": packed }, SHELL, /^ERR_SANDBOX_PROTOCOL .*compressed/],
    ["a command's answer that is dense", { "POST mkfifo": dense }, SHELL, /^ERR_SANDBOX_/],
    ["messages without an end", { "POST mkfifo": { ...stream(small), endless: true } }, SHELL, /^ERR_SANDBOX_/],
    ["results without an end", { "POST mkfifo": { ...stream(result), endless: true } }, SHELL, /^ERR_SANDBOX_/],
    ["a result of many values", { "POST mkfifo": stream(many) }, SHELL, /^ERR_SANDBOX_/],
    ["a message that says it is huge", { "POST mkfifo": { ...stream(huge, Buffer.alloc(MIB)), endless: true } }, SHELL, /^ERR_SANDBOX_/],
    ["a list that is dense", { "POST find": dense }, LIST, /^ERR_SANDBOX_/],
  ];
  for (const [name, hostile, call, expected] of cases) {
    test(name, async (t) => {
      const url = await serve(t, hostile);
      const options = { accessKeyId: "AKID", secretAccessKey: "secret", region: "us-west-2", baseURL: url };
      const { outcome, ms, mib } = await cost("AgentCoreSandbox", options, call);
      assert.match(String(outcome), expected);
      assert.ok(mib < MOST_MIB, `${mib} MiB`);
      assert.ok(ms < LIMIT_MS, `${ms} ms`);
    });
  }
});

describe("C185 C186 modal: what a hostile service costs", () => {
  const certificate = makeCertificate(["127.0.0.1"]);
  const trailers = { "grpc-status": "0" };
  const grpc = (body, headers = {}) => ({ instead: { status: 200, headers: { "content-type": "application/grpc", ...headers, ...trailers }, body } });
  /** It says that it has 4 GiB. */
  const huge = Buffer.alloc(MIB);
  huge.writeUInt32BE(0xffffffff, 1);
  /** Fields that nobody knows, as many as go into the bytes. */
  const dense = frame(Buffer.alloc(32 * MIB, Buffer.from([0xf8, 0x07, 0x00])));
  const small = Buffer.concat(Array.from({ length: 1e6 }, () => frame(Buffer.alloc(0))));
  const output = frame(encode(router.TaskExecStdioRead[1], { data: Buffer.alloc(MIB, "0123456789abcdef") }));
  /** @type {[string, string, any, string, RegExp][]} */
  const cases = [
    ["a create's answer that is packed", "SandboxCreateV2", grpc(gzipSync(Buffer.alloc(16 * MIB)), { "content-encoding": "gzip" }), START, /^ERR_SANDBOX_/],
    ["a create's answer that is dense", "SandboxCreateV2", grpc(dense), START, /^ERR_SANDBOX_/],
    ["a create's answer that says it is huge", "SandboxCreateV2", grpc(huge), START, /^ERR_SANDBOX_/],
    ["a create's answer of many messages", "SandboxCreateV2", grpc(small), START, /^ERR_SANDBOX_/],
    ["outputs that say they are huge", "TaskExecStdioRead", grpc(huge), SHELL, /^ERR_SANDBOX_/],
    ["outputs of nothing", "TaskExecStdioRead", grpc(small), SHELL, /^0$/],
    ["outputs without measure", "TaskExecStdioRead", { ...grpc(Buffer.concat(Array.from({ length: 64 }, () => output))), times: 1 }, SHELL, /^(0|124)$/],
  ];
  for (const [name, route, { instead, times = Infinity }, call, expected] of cases) {
    test(name, async (t) => {
      const emulator = await startModal({ tls: certificate });
      t.after(() => emulator.close());
      emulator.engine.fault(route, { instead }, { times });
      const options = { ...emulator.credentials, baseURL: emulator.apiUrl, ca: certificate.cert };
      const { outcome, ms, mib } = await cost("ModalSandbox", options, call);
      assert.match(String(outcome), expected);
      assert.ok(mib < MOST_MIB, `${mib} MiB`);
      assert.ok(ms < LIMIT_MS, `${ms} ms`);
    });
  }
});
