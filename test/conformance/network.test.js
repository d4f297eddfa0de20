// How remote sandboxes reach their hosts, and what they make of answers: proxies, authorities, addresses
// where nobody answers, refusals, nonsense.
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { connect, createServer as createTcpServer } from "node:net";
import path from "node:path";
import { describe, test } from "node:test";
import { Worker } from "node:worker_threads";

import * as cloudsandbox from "cloudsandbox";

import { makeCertificate } from "../emulators/certificate.js";
import { replies } from "../emulators/engine.js";
import { runNode } from "../support/node.js";
import { tempDir } from "../support/temp.js";
import { HANG_MS, rejection } from "../support/wait.js";
import { open, program, remotes, withoutVariables } from "./remote.js";

withoutVariables();

const tls = makeCertificate(["127.0.0.1"]);
const otherTls = makeCertificate(["127.0.0.1"]);

/** A proxy that opens tunnels, and remembers for whom. */
async function startProxy(t) {
  const tunnels = [];
  const server = createServer();
  server.on("connect", (request, socket) => {
    tunnels.push({ to: request.url, login: request.headers["proxy-authorization"], headers: request.headers });
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

/** Runs one command and prints its output, or the error's code and message. */
const ONE_COMMAND = `
  try { console.log((await sandbox.shell("echo ok")).output.trim()); }
  catch (error) { console.log(error.code, error.message); }
  await sandbox.close();`;

/** Status of a refusal, and what it becomes. */
const REFUSALS = [
  [400, "INVALID_ARG"],
  [401, "AUTH"],
  [403, "FORBIDDEN"],
  [404, "NOT_FOUND"],
  [409, "CONFLICT"],
  [422, "INVALID_ARG"],
  [429, "RATE_LIMITED"],
  [500, "PROVIDER"],
];

const NONSENSE = ["", "[]", "null", '{"id":', "{}", '{"id":7,"sandboxID":7}', "[".repeat(200_000)];

for (const remote of remotes) {
  const { create, command } = remote.routes;

  describe(`${remote.name}: C036 a proxy`, () => {
    test("as an option: both hosts are reached through a tunnel, which never sees the key", async (t) => {
      const { make, urls } = await open(t, remote, { tls });
      const { tunnels, url } = await startProxy(t);
      const sandbox = make({ proxy: url });
      assert.equal((await sandbox.shell("echo ok")).output, "ok\n");
      await sandbox.close();
      assert.deepEqual([...new Set(tunnels.map(({ to }) => to))], urls.map((text) => new URL(text).host));
      for (const { headers, login } of tunnels) {
        assert.equal(headers[remote.keyHeader], undefined);
        assert.equal(login, `Basic ${Buffer.from("user:secret").toString("base64")}`);
      }
    });

    test("by the usual variables, and what is excepted from it", async (t) => {
      const { options } = await open(t, remote, { tls });
      const { tunnels, url } = await startProxy(t);
      for (const [env, used, more] of [
        [{ HTTPS_PROXY: url }, true],
        [{ HTTPS_PROXY: url, NO_PROXY: "127.0.0.1" }, false],
        [{ HTTP_PROXY: url }, false],
        [{ HTTPS_PROXY: url }, false, { proxy: "" }],
      ]) {
        tunnels.length = 0;
        const { stdout } = await runNode(program(remote, { ...options, ca: tls.cert, ...more }, ONE_COMMAND), { env });
        assert.equal(stdout, "ok\n");
        assert.equal(tunnels.length > 0, used, JSON.stringify(Object.keys(env)));
      }
    });

    test("that nobody listens at is named, without its password", async (t) => {
      const { make } = await open(t, remote, { tls });
      const error = await rejection(make({ proxy: "http://user:secret@127.0.0.1:1" }).start());
      assert.equal(error.code, "ERR_SANDBOX_NETWORK");
      assert.match(error.message, /127\.0\.0\.1 port 1\b/);
      assert.doesNotMatch(error.message, /secret/);
    });

    test("C083 whose URL is none is refused before anything is sent, without its password", async (t) => {
      const { make, options } = await open(t, remote, { tls });
      const bad = ["ftp://user:sk-canary@h", "http://user:sk-can@ary@h", "http://user:sk-canary@h h"];
      for (const proxy of bad) {
        const refused = { code: "ERR_SANDBOX_INVALID_ARG", message: /^(?!.*sk-can).*proxy's URL/ };
        assert.throws(() => make({ proxy }), refused);
        const { stdout } = await runNode(program(remote, { ...options, ca: tls.cert }, ONE_COMMAND), { env: { HTTPS_PROXY: proxy } });
        assert.match(stdout, /^ERR_SANDBOX_INVALID_ARG (?!.*sk-can).*proxy's URL .*HTTPS_PROXY/);
      }
    });
  });

  describe(`${remote.name}: C037 an authority of one's own`, () => {
    test("by option or by variable; without it the error says what it is about", async (t) => {
      const { engine, options } = await open(t, remote, { tls });
      const file = path.join(tempDir(t), "ca.pem");
      writeFileSync(file, tls.cert);
      const run = async (more, env) =>
        (await runNode(program(remote, { ...options, ...more }, ONE_COMMAND), { env })).stdout;
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

  test(`${remote.name}: C184 certificates that one sandbox trusts are trusted by no other`, async (t) => {
    const { engine, make } = await open(t, remote, { tls });
    const bundles = { right: tls.cert, wrong: otherTls.cert };
    const padding = { small: "", large: `${"# padding\n".repeat(4000)}` };
    /** Each sandbox is closed before the next one is made. */
    const use = async (which, size) => {
      const sandbox = make({ ca: padding[size] + bundles[which] });
      const outcome = await sandbox.start().then(() => "started", ({ code }) => code);
      await sandbox.close().catch(() => {});
      return outcome;
    };
    for (const first of ["small", "large"]) {
      for (const second of ["small", "large"]) {
        for (const order of [["right", "wrong"], ["wrong", "right", "wrong"]]) {
          for (const [i, which] of order.entries()) {
            const expected = which === "right" ? "started" : "ERR_SANDBOX_TLS";
            assert.equal(await use(which, i % 2 ? second : first), expected, `${first} ${second} ${order} ${i}`);
            if (which === "wrong") assert.equal(engine.log.length, 0, "something was sent to a server that is not trusted");
            engine.clearLog();
          }
        }
      }
    }
  });

  test(`${remote.name}: C178 a command that ended in time did so, however busy its host was`, async (t) => {
    const { options } = await open(t, remote);
    const busy = `
      await sandbox.start();
      const calls = [["sleep 0.5; seq 1 50000; exit 3", 2], ["sleep 60", 1]].map(([command, timeoutSeconds]) =>
        sandbox.exec({ command, timeoutSeconds }));
      await new Promise((resolve) => setTimeout(resolve, 200));
      const end = performance.now() + 6000;
      while (performance.now() < end);
      for (const { status, exitCode, output } of await Promise.all(calls)) console.log(status, exitCode, output.length);
      await sandbox.close();`;
    const { stdout } = await runNode(program(remote, options, busy));
    assert.equal(stdout, "exited 3 288894\ntimedOut 124 0\n");
  });

  describe(`${remote.name}: requests`, () => {
    test("C038 a large upload asks for no permission first", async (t) => {
      const { engine, make } = await open(t, remote);
      const sandbox = make();
      await sandbox.start();
      for (const size of [4 << 10, 2 << 20]) await sandbox.writeFile("f", "x".repeat(size));
      assert.ok(engine.log.every((entry) => entry.headers.expect === undefined));
    });

    test("C013 C039 nobody there: it says where, and JavaScript goes on meanwhile", async (t) => {
      const { host, end } = await startSilence();
      t.after(end);
      for (const [baseURL, code, message] of [
        ["http://127.0.0.1:1", "NETWORK", /127\.0\.0\.1:1\b/],
        ["http://name.invalid", "NETWORK", /name\.invalid/],
        [`http://${host}`, "TIMEOUT", new RegExp(host)],
      ]) {
        let [worst, last] = [0, performance.now()];
        const ticker = setInterval(() => {
          worst = Math.max(worst, performance.now() - last);
          last = performance.now();
        }, 10);
        const before = performance.now();
        const sandbox = new cloudsandbox[remote.Class]({ ...remote.credentials, baseURL, startTimeoutSeconds: 2 });
        const error = await rejection(sandbox.start());
        clearInterval(ticker);
        assert.equal(error.code, `ERR_SANDBOX_${code}`);
        assert.match(error.message, message);
        assert.ok(performance.now() - before < HANG_MS, baseURL);
        // A look-up or a connect that blocks takes all of the two seconds.
        assert.ok(worst < 1500, `${worst} ms without a tick`);
      }
    });
  });

  describe(`${remote.name}: answers`, { concurrency: 4 }, () => {
    test("C033 a page of some KB with 502: status, operation, one line, and no timeout", async (t) => {
      const { engine, make } = await open(t, remote);
      const sandbox = make();
      engine.fault(create, { instead: replies.html(502) });
      const errors = [await rejection(sandbox.start())];
      await sandbox.start();
      engine.fault(command, { instead: replies.html(502) });
      errors.push(await rejection(sandbox.shell("true")));
      for (const [i, error] of errors.entries()) {
        assert.deepEqual([error.code, error.status], ["ERR_SANDBOX_PROVIDER", 502]);
        assert.match(error.message, [/create/, /command/][i]);
        assert.match(error.message, /HTTP 502/);
        assert.doesNotMatch(error.message, /[\n<]|padding|timed? ?out/i);
        assert.ok(error.message.length < 400, error.message);
      }
    });

    for (const [status, code] of REFUSALS.filter(([status]) => remote.refusal(status, ""))) {
      test(`C034 ${status}: its code, its words, and one request`, async (t) => {
        const { engine, make } = await open(t, remote);
        engine.fault(create, { instead: remote.refusal(status, "template x: because of this") }, { times: 5 });
        const error = await rejection(make().start());
        assert.deepEqual([error.code, error.status], [`ERR_SANDBOX_${code}`, status], error.message);
        assert.match(error.message, /because of this/);
        assert.equal(engine.count(create), 1);
      });
    }

    for (const body of NONSENSE) {
      test(`C040 a create's answer that makes no sense: ${body.slice(0, 20) || "nothing"}`, async (t) => {
        const { emulator, engine, make } = await open(t, remote);
        engine.fault(create, { instead: remote.answer(body), run: true });
        const sandbox = make();
        const error = await rejection(sandbox.start());
        assert.equal(error.code, "ERR_SANDBOX_PROTOCOL", error.message);
        assert.equal(sandbox.sandboxId, null);
        await sandbox.close();
        const left = emulator.fleet.all().filter((one) => !remote.isOver(one));
        if (remote.findsLost) assert.deepEqual(left, [], "what was made is found and deleted");
        else assert.match(error.message, /made all the same cannot be found/);
        assert.ok(engine.log.every((entry) => !entry.path.includes("undefined")));
      });
    }

    test("C041 an answer of brackets on a thread with a small stack", async (t) => {
      const { engine, options } = await open(t, remote);
      engine.fault(create, { instead: remote.answer("[".repeat(200_000)) });
      const source = program(remote, options, `
        const { parentPort } = await import("node:worker_threads");
        parentPort.postMessage(await sandbox.start().then(() => "started", (error) => error.code));
        await sandbox.close();`, import.meta.resolve("cloudsandbox"));
      const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(source)}`), {
        resourceLimits: { stackSizeMb: 1 },
      });
      const exit = once(worker, "exit");
      assert.deepEqual(await once(worker, "message"), ["ERR_SANDBOX_PROTOCOL"]);
      assert.deepEqual(await exit, [0]);
    });
  });
}
