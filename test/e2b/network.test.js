// How E2BSandbox reaches its hosts: proxies, authorities, addresses where nobody answers.
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { connect, createServer as createTcpServer } from "node:net";
import path from "node:path";
import { describe, test } from "node:test";
import { Worker } from "node:worker_threads";

import { E2BSandbox } from "cloudsandbox";

import { makeCertificate } from "../emulators/certificate.js";
import { runNode } from "../support/node.js";
import { tempDir } from "../support/temp.js";
import { rejection } from "../support/wait.js";
import { open, withoutVariables } from "./support.js";

withoutVariables();

const tls = makeCertificate(["127.0.0.1"]);

/** A proxy that opens tunnels, and remembers for whom. */
async function startProxy(t) {
  const tunnels = [];
  const server = createServer();
  server.on("connect", (request, socket) => {
    const { "user-agent": agent, "x-api-key": key } = request.headers;
    tunnels.push({ to: request.url, login: request.headers["proxy-authorization"], agent, key });
    const [host, port] = request.url.split(":");
    const upstream = connect(Number(port), host, () => {
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      socket.pipe(upstream).pipe(socket);
    });
    socket.on("error", () => upstream.destroy());
    upstream.on("error", () => socket.destroy());
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => server.closeAllConnections() ?? server.close());
  return { tunnels, url: `http://user:secret@127.0.0.1:${server.address().port}` };
}

/** A server that takes connections and says nothing. */
async function startSilence() {
  const sockets = new Set();
  const server = createTcpServer((socket) => sockets.add(socket.on("error", () => {})));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const end = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return { host: `127.0.0.1:${server.address().port}`, end };
}

/** A program that runs one command and prints its output, or the error's code and message. */
const program = (options) => `
  import { E2BSandbox } from "cloudsandbox";
  const sandbox = new E2BSandbox(${JSON.stringify(options)});
  try { console.log((await sandbox.shell("echo ok")).output.trim()); }
  catch (error) { console.log(error.code, error.message); }
  await sandbox.close();`;

describe("C036 a proxy", () => {
  test("as an option: both hosts are reached through a tunnel, which never sees the key", async (t) => {
    const { make, emulator } = await open(t, { tls });
    const { tunnels, url } = await startProxy(t);
    const sandbox = make({ proxy: url });
    assert.equal((await sandbox.shell("echo ok")).output, "ok\n");
    await sandbox.close();
    const hosts = [emulator.apiUrl, emulator.sandboxUrl].map((url) => new URL(url).host);
    assert.deepEqual(tunnels.map((tunnel) => tunnel.to), hosts);
    for (const tunnel of tunnels) {
      assert.equal(tunnel.key, undefined);
      assert.equal(tunnel.login, `Basic ${Buffer.from("user:secret").toString("base64")}`);
    }
  });

  test("by the usual variables, and what is excepted from it", async (t) => {
    const { options } = await open(t, { tls });
    const { tunnels, url } = await startProxy(t);
    const source = program({ ...options, ca: tls.cert });
    const variables = [
      [{ HTTPS_PROXY: url }, true],
      [{ HTTPS_PROXY: url, NO_PROXY: "127.0.0.1" }, false],
      [{ HTTP_PROXY: url }, false],
    ];
    for (const [env, used] of variables) {
      tunnels.length = 0;
      const { stdout } = await runNode(source, { env });
      assert.equal(stdout, "ok\n");
      assert.equal(tunnels.length > 0, used, JSON.stringify(Object.keys(env)));
    }
    tunnels.length = 0;
    const { stdout } = await runNode(program({ ...options, ca: tls.cert, proxy: "" }), { env: { HTTPS_PROXY: url } });
    assert.equal(stdout, "ok\n");
    assert.deepEqual(tunnels, []);
  });

  test("that nobody listens at is named, without its password", async (t) => {
    const { make } = await open(t, { tls });
    const error = await rejection(make({ proxy: "http://user:secret@127.0.0.1:1" }).start());
    assert.equal(error.code, "ERR_SANDBOX_NETWORK");
    assert.match(error.message, /127\.0\.0\.1 port 1\b/);
    assert.doesNotMatch(error.message, /secret/);
  });
});

describe("C037 an authority of one's own", () => {
  test("by option or by variable; without it the error says what it is about", async (t) => {
    const { engine, options } = await open(t, { tls });
    const file = path.join(tempDir(t), "ca.pem");
    writeFileSync(file, tls.cert);
    const run = async (more, env) => (await runNode(program({ ...options, ...more }), { env })).stdout;
    assert.equal(await run({ ca: tls.cert }), "ok\n");
    assert.equal(await run({}, { NODE_EXTRA_CA_CERTS: file }), "ok\n");
    assert.equal(await run({}, { SSL_CERT_FILE: file }), "ok\n");
    engine.clearLog();
    for (const env of [{}, { NODE_TLS_REJECT_UNAUTHORIZED: "0" }]) {
      assert.match(await run({}, env), /^ERR_SANDBOX_TLS .*certificate/i);
    }
    assert.equal(engine.log.length, 0);
  });
});

describe("requests", () => {
  test("C038 a large upload asks for no permission first", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make();
    await sandbox.start();
    for (const size of [4 << 10, 2 << 20]) {
      const before = performance.now();
      await sandbox.writeFile("f", "x".repeat(size));
      assert.ok(performance.now() - before < 900);
    }
    assert.ok(engine.log.every((entry) => entry.headers.expect === undefined));
  });

  test("C013 C039 nobody there: it says where, and JavaScript goes on meanwhile", async (t) => {
    const { host, end } = await startSilence();
    t.after(end);
    const addresses = [
      ["http://127.0.0.1:1", "NETWORK", /127\.0\.0\.1:1\b/],
      ["http://name.invalid", "NETWORK", /name\.invalid/],
      [`http://${host}`, "TIMEOUT", new RegExp(host)],
    ];
    for (const [baseURL, code, message] of addresses) {
      let [worst, last] = [0, performance.now()];
      const ticker = setInterval(() => {
        worst = Math.max(worst, performance.now() - last);
        last = performance.now();
      }, 10);
      const before = performance.now();
      const error = await rejection(new E2BSandbox({ apiKey: "k", baseURL, startTimeoutSeconds: 2 }).start());
      clearInterval(ticker);
      assert.equal(error.code, `ERR_SANDBOX_${code}`);
      assert.match(error.message, message);
      assert.ok(performance.now() - before < 4000, baseURL);
      assert.ok(worst < 500, `${worst} ms without a tick`);
    }
  });

  test("C041 an answer of brackets on a thread with a small stack", async (t) => {
    const { engine, options } = await open(t);
    engine.fault("POST /v2/sandboxes", { instead: { status: 201, headers: {}, body: "[".repeat(200_000) } });
    const source = `
      import { parentPort } from "node:worker_threads";
      const { E2BSandbox } = await import(${JSON.stringify(import.meta.resolve("cloudsandbox"))});
      const sandbox = new E2BSandbox(${JSON.stringify(options)});
      parentPort.postMessage(await sandbox.start().then(() => "started", (error) => error.code));
      await sandbox.close();`;
    const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(source)}`), {
      resourceLimits: { stackSizeMb: 1 },
    });
    const exit = once(worker, "exit");
    assert.deepEqual(await once(worker, "message"), ["ERR_SANDBOX_PROTOCOL"]);
    assert.deepEqual(await exit, [0]);
  });
});
