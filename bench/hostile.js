// A service that means ill: how late the event loop gets, whatever it sends, and that the call ends. The service is a
// process of its own on loopback; each stream is sent as fast as it is taken.
import { fork } from "node:child_process";
import { once } from "node:events";
import http from "node:http";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { row } from "./stats.js";

const TIMEOUT_SECONDS = 3;

/** @param {string | Buffer} json */
function envelope(json) {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(json.length, 1);
  return Buffer.concat([head, Buffer.from(json)]);
}

const zeros = (/** @type {number} */ count) => `[${"0,".repeat(count)}0]`;
const data = (/** @type {number} */ bytes) => JSON.stringify({ event: { data: { stdout: Buffer.alloc(bytes, "x").toString("base64") } } });

/** What the service answers to a call, without end or once. @type {Record<string, { call: string, type: string, bytes: () => Buffer, endless?: boolean }>} */
const KINDS = {
  "a stream of keepalives": {
    call: "shell",
    type: "application/connect+json",
    bytes: () => Buffer.concat(Array(40_000).fill(envelope('{"event":{"keepalive":{}}}'))),
    endless: true,
  },
  "a stream of large messages, 100,000 numbers each": {
    call: "shell",
    type: "application/connect+json",
    bytes: () => envelope(`{"event":{"keepalive":${zeros(100_000)}}}`),
    endless: true,
  },
  "a stream of output": {
    call: "shell",
    type: "application/connect+json",
    bytes: () => Buffer.concat([envelope('{"event":{"start":{"pid":7}}}'), ...Array(40).fill(envelope(data(30_000)))]),
    endless: true,
  },
  "a list of 8,000,000 numbers": { call: "listFiles", type: "application/json", bytes: () => Buffer.from(`{"entries":${zeros(8_000_000)}}`) },
  "a create's answer of 8,000,000 numbers": { call: "start", type: "application/json", bytes: () => Buffer.from(`{"x":${zeros(8_000_000)}}`) },
};

/** The service's process. @param {string} name */
function serve(name) {
  const { call, type, bytes, endless } = KINDS[name];
  const body = bytes();
  const server = http.createServer(async (request, response) => {
    request.resume();
    const json = { "content-type": "application/json" };
    if (request.method === "DELETE") response.writeHead(204).end();
    else if (request.url?.includes("/health")) response.writeHead(204).end();
    else if (request.url?.includes("sandboxes") && call !== "start") {
      response.writeHead(201, json).end('{"sandboxID":"ihostile0000000000001","envdVersion":"0.6.13","envdAccessToken":"t"}');
    } else if (request.url?.includes("SendSignal")) response.writeHead(200, json).end("{}");
    else {
      response.writeHead(200, { "content-type": type }).on("error", () => {});
      const closed = new Promise((resolve) => response.once("close", resolve));
      do {
        if (!response.write(body)) await Promise.race([new Promise((resolve) => response.once("drain", resolve)), closed]);
      } while (endless && !response.destroyed);
      response.end();
    }
  });
  server.listen(0, "127.0.0.1", () => process.send?.(/** @type {import("node:net").AddressInfo} */ (server.address()).port));
  process.on("disconnect", () => process.exit());
}

/** @param {string} name */
async function measure(name) {
  const { E2BSandbox } = await import("cloudsandbox");
  const service = fork(import.meta.filename, [name]);
  const [port] = await once(service, "message");
  const url = `http://127.0.0.1:${port}`;
  const limits = { defaultTimeoutSeconds: TIMEOUT_SECONDS, startTimeoutSeconds: TIMEOUT_SECONDS };
  const sandbox = new E2BSandbox({ apiKey: "e2b_bench", baseURL: url, sandboxUrl: url, ...limits });
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const began = performance.now();
  const { call } = KINDS[name];
  const calls = { shell: () => sandbox.shell("true"), listFiles: () => sandbox.listFiles(), start: () => sandbox.start() };
  const how = await calls[/** @type {keyof typeof calls} */ (call)]().then(
    () => "ended",
    (/** @type {any} */ error) => error.code,
  );
  const seconds = (performance.now() - began) / 1000;
  delay.disable();
  await sandbox.close().catch(() => {});
  service.kill();
  row(`${name}: longest loop delay`, `${(delay.max / 1e6).toFixed(1)} ms, ${how} after ${seconds.toFixed(1)} s`, "50 ms");
}

const [name] = process.argv.slice(2);
if (name) serve(name);
else for (const kind of Object.keys(KINDS)) await measure(kind);
