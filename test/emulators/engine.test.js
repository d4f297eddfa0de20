// Each fault really happens on the wire.
import assert from "node:assert/strict";
import http2 from "node:http2";
import { after, afterEach, before, describe, test } from "node:test";
import { makeCertificate } from "./certificate.js";
import { Engine, replies } from "./engine.js";
import { RawConnection } from "./raw.js";

const BODY = "0123456789abcdef";
const open = [];

/** A connection that the test's end closes. */
async function connect(url, options) {
  const connection = await RawConnection.open(url, options);
  open.push(connection.socket);
  return connection;
}

afterEach(() => {
  for (const socket of open.splice(0)) socket.destroy();
});

let handled = [];
async function handler(exchange) {
  const body = (await exchange.body()).toString();
  handled.push(body);
  if (exchange.path === "/broken") throw new Error("EMFILE: too many open files");
  if (exchange.path === "/stream") {
    await exchange.open(200, { "content-type": "text/plain" });
    for (const letter of BODY) await exchange.write(Buffer.from(letter));
    await exchange.end();
  } else await exchange.text(200, BODY);
}

describe("HTTP/1.1", () => {
  let engine;
  let url;
  before(async () => {
    engine = new Engine();
    ({ url } = await engine.listen({ name: "main", handler }));
  });
  afterEach(() => {
    engine.clearFaults();
    engine.clearLog();
    handled = [];
    assert.deepEqual(engine.errors, []);
  });
  after(() => engine.close());

  test("the log, the counters and the connections", async () => {
    const before = engine.accepted;
    const client = await connect(url);
    client.request("POST /a?x=1", { "x-own": "1" }, "first");
    await client.until(({ body }) => body === BODY);
    client.request("GET /a");
    await client.until(({ text }) => text.split("HTTP/1.1 200").length === 3);
    assert.equal(engine.accepted, before + 1);
    assert.equal(engine.connections.main, engine.accepted);
    assert.equal(engine.count("POST /a"), 1);
    const entry = await engine.waitFor("POST /a");
    assert.equal(entry.body, "first");
    assert.equal(entry.path, "/a?x=1");
    assert.equal(entry.headers["x-own"], "1");
    await entry.closed;
    assert.deepEqual([entry.status, entry.sentBytes, entry.outcome], [200, BODY.length, "complete"]);
    assert.equal((await engine.waitFor("GET /a")).connection, entry.connection);
  });

  test("what a handler throws after it has read the request is answered and kept", async () => {
    const reply = await fetch(`${url}/broken`, { method: "POST", body: "some" });
    assert.deepEqual([reply.status, await reply.text()], [500, "emulator: Error: EMFILE: too many open files"]);
    assert.match(String(engine.errors.splice(0)), /EMFILE/);
  });

  test("a reply in place of the handler's, for the n-th call only", async () => {
    const instead = { status: 503, headers: { "x-why": "busy" }, body: "later" };
    engine.fault("GET /a", { instead }, { skip: 1 });
    const statuses = [];
    for (let i = 0; i < 3; i += 1) {
      const reply = await fetch(`${url}/a`);
      statuses.push([reply.status, await reply.text(), reply.headers.get("x-why")]);
    }
    assert.deepEqual(statuses, [[200, BODY, null], [503, "later", "busy"], [200, BODY, null]]);
    assert.equal(handled.length, 2);
  });

  test("on one of every three, without end; a fault counts what the ones before it have let through", async () => {
    engine.fault("GET /a", { instead: { status: 503 } }, { every: 3 });
    engine.fault("GET /a", { instead: { status: 504 } }, { skip: 1, every: 4, times: 2 });
    const statuses = [];
    for (let i = 0; i < 12; i += 1) statuses.push((await fetch(`${url}/a`)).status);
    assert.deepEqual(statuses, [503, 200, 504, 503, 200, 200, 503, 200, 504, 503, 200, 200]);
  });

  test("the faults of a route are taken in order, and only where asked", async () => {
    const where = (exchange) => exchange.header("x-marked") === "yes";
    engine.fault(/^GET/, { instead: { status: 418 } }, { times: 2, where });
    engine.fault("GET /a", { instead: { status: 500 } });
    const get = async (headers) => (await fetch(`${url}/a`, { headers })).status;
    assert.equal(await get({}), 500);
    assert.equal(await get({ "x-marked": "yes" }), 418);
    assert.equal(await get({ "x-marked": "yes" }), 418);
    assert.equal(await get({ "x-marked": "yes" }), 200);
  });

  test("an HTML page, half a JSON text, Retry-After in seconds and as a date", async () => {
    const date = new Date(Date.UTC(2030, 0, 1));
    for (const instead of [replies.html(502), replies.halfJson({ a: "b" }), replies.tooMany(3), replies.tooMany(date)]) {
      engine.fault("GET /a", { instead });
    }
    const page = await fetch(`${url}/a`);
    assert.equal(page.status, 502);
    assert.match(page.headers.get("content-type"), /text\/html/);
    assert.match(await page.text(), /<title>502 Bad Gateway/);
    assert.equal(await (await fetch(`${url}/a`)).text(), '{"a":');
    assert.equal((await fetch(`${url}/a`)).headers.get("retry-after"), "3");
    assert.equal((await fetch(`${url}/a`)).headers.get("retry-after"), "Tue, 01 Jan 2030 00:00:00 GMT");
  });

  test("reset before the reply, the handler not run", async () => {
    engine.fault("POST /a", { instead: "reset" });
    const client = await connect(url);
    await client.request("POST /a", {}, "x").closed();
    assert.deepEqual([client.text, client.ending], ["", "ECONNRESET"]);
    assert.deepEqual(handled, []);
    assert.equal((await engine.waitFor("POST /a")).body, "x");
  });

  test("the handler's work done, its reply lost", async () => {
    engine.fault("POST /a", { instead: "close", run: true });
    engine.fault("POST /a", { instead: replies.html(504), run: true });
    const client = await connect(url);
    await client.request("POST /a", {}, "done").closed();
    assert.deepEqual([client.text, client.ending], ["", "fin"]);
    assert.equal((await fetch(`${url}/a`, { method: "POST", body: "again" })).status, 504);
    assert.deepEqual(handled, ["done", "again"]);
  });

  test("never an answer", async () => {
    engine.fault("GET /a", { instead: "hang" });
    const client = (await connect(url)).request("GET /a");
    const entry = await engine.waitFor("GET /a");
    // A second connection goes through all of the server while the first one waits.
    assert.equal(await (await fetch(`${url}/b`)).text(), BODY);
    assert.deepEqual([client.text, client.ending, entry.outcome], ["", "", "fault: hang"]);
  });

  test("a delay and a gate before the handler", async () => {
    const gate = engine.gate();
    engine.fault("GET /a", { delayMs: 1, before: gate });
    const reply = fetch(`${url}/a`);
    await gate.arrived();
    assert.deepEqual(handled, []);
    gate.open();
    assert.equal(await (await reply).text(), BODY);
  });

  test("a gate between the handler's work and the reply", async () => {
    const gate = engine.gate();
    engine.fault("POST /a", { hold: gate });
    const client = (await connect(url)).request("POST /a", {}, "work");
    await gate.arrived();
    assert.deepEqual([handled, client.text], [["work"], ""]);
    gate.open();
    await client.until(({ body }) => body === BODY);
  });

  test("a stream cut cleanly at a byte", async () => {
    engine.fault("GET /stream", { stop: { after: 5, how: "end" } });
    const client = (await connect(url)).request("GET /stream", { connection: "close" });
    await client.closed();
    assert.deepEqual(client.chunked, { data: BODY.slice(0, 5), complete: true });
    assert.equal(client.ending, "fin");
  });

  test("a stream closed at a byte without its last chunk", async () => {
    engine.fault("GET /stream", { stop: { after: 5, how: "close" } });
    const client = await connect(url);
    await client.request("GET /stream").closed();
    assert.deepEqual(client.chunked, { data: BODY.slice(0, 5), complete: false });
    assert.equal(client.ending, "fin");
  });

  // The gate matters: libuv may report a reset that comes together with data as an orderly end.
  test("a stream reset at every byte", async () => {
    for (let at = 0; at <= BODY.length; at += 1) {
      const gate = engine.gate();
      engine.fault("GET /stream", { stop: { after: at, how: "reset", gate } });
      const client = (await connect(url)).request("GET /stream");
      await client.until(({ text, chunked }) => text.includes("\r\n\r\n") && chunked.data.length === at);
      await gate.arrived();
      assert.equal(client.ending, "");
      gate.open();
      await client.closed();
      assert.deepEqual(client.chunked, { data: BODY.slice(0, at), complete: false });
      assert.equal(client.ending, "ECONNRESET");
    }
  });

  test("a stream that stalls at a byte", async () => {
    engine.fault("GET /stream", { stop: { after: 3, how: "hang" } });
    const client = (await connect(url)).request("GET /stream");
    await client.until(({ chunked }) => chunked.data === BODY.slice(0, 3));
    assert.equal(await (await fetch(`${url}/b`)).text(), BODY);
    assert.deepEqual([client.chunked.data, client.ending], [BODY.slice(0, 3), ""]);
    client.socket.destroy();
  });

  test("fewer bytes than the length says", async () => {
    engine.fault("GET /a", { stop: { after: 4, how: "end", keepLength: true } });
    const client = await connect(url);
    await client.request("GET /a").closed();
    assert.match(client.text, /content-length: 16\r\n/);
    assert.deepEqual([client.body, client.ending], [BODY.slice(0, 4), "fin"]);
  });

  test("a fixed-length reply cut cleanly is a shorter one", async () => {
    engine.fault("GET /a", { stop: { after: 4, how: "end" } });
    const reply = await fetch(`${url}/a`);
    assert.deepEqual([await reply.text(), reply.headers.get("content-length")], [BODY.slice(0, 4), null]);
  });

  test("a reply in small pieces, edited, with other headers", async () => {
    const headers = { "content-length": null, "content-type": "text/html", "x-more": 1 };
    engine.fault("GET /a", { pieceBytes: 3, edit: (body) => body.subarray(0, body.length / 2), headers });
    const client = (await connect(url)).request("GET /a", { connection: "close" });
    await client.closed();
    assert.match(client.text, /content-type: text\/html\r\nx-more: 1\r\n/);
    assert.deepEqual(client.chunked, { data: BODY.slice(0, 8), complete: true });
    assert.match(client.body, /^3\r\n012\r\n3\r\n345\r\n2\r\n67\r\n0\r\n/);
  });

  test("a client that goes away is noticed", async () => {
    const gate = engine.gate();
    engine.fault("GET /a", { hold: gate });
    const client = (await connect(url)).request("GET /a");
    await gate.arrived();
    client.socket.destroy();
    const entry = await engine.waitFor("GET /a");
    await entry.closed;
    assert.equal(entry.outcome, "client closed");
    gate.open();
  });

  test("all connections dropped at once", async () => {
    engine.fault("GET /a", { instead: "hang" }, { times: 2 });
    const clients = await Promise.all([connect(url), connect(url)]);
    for (const client of clients) client.request("GET /a");
    await engine.waitFor("GET /a", 2);
    engine.dropConnections();
    await Promise.all(clients.map((client) => client.closed()));
    assert.deepEqual(clients.map(({ ending }) => ending), ["ECONNRESET", "ECONNRESET"]);
  });

  test("Expect: 100-continue is answered, or never", async () => {
    const silent = await engine.listen({ name: "silent", handler, noContinue: true });
    for (const [target, answer] of [[url, /^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 OK/], [silent.url, /^HTTP\/1.1 200 OK/]]) {
      const client = await connect(target);
      client.write("POST /e HTTP/1.1\r\nhost: 127.0.0.1\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n");
      client.write("ok");
      await client.until(({ text }) => text.includes(BODY));
      assert.match(client.text, answer);
    }
  });
});

test("an engine closes with requests in every state, and says what a handler threw", async () => {
  const engine = new Engine();
  const gate = engine.gate();
  const { url } = await engine.listen({
    name: "main",
    handler: (exchange) => {
      if (exchange.path === "/bug") throw new Error("a bug");
      return gate.wait();
    },
  });
  engine.fault("GET /hang", { instead: "hang" });
  engine.fault("GET /slow", { delayMs: 1e6 });
  const paths = ["/hang", "/slow", "/gate"];
  const clients = await Promise.all(paths.map(async (path) => (await connect(url)).request(`GET ${path}`)));
  await Promise.all(paths.map((path) => engine.waitFor(`GET ${path}`)));
  const bug = await fetch(`${url}/bug`);
  assert.equal(bug.status, 500);
  assert.match(String(engine.errors), /a bug/);
  await engine.close();
  await Promise.all(clients.map((client) => client.closed()));
  assert.equal(engine.open, 0);
});

describe("another protocol after an upgrade", () => {
  const ASK = { connection: "Upgrade", upgrade: "shout" };
  let engine;
  let url;
  before(async () => {
    engine = new Engine();
    const shouting = async (exchange) => {
      if (exchange.path !== "/shout") return exchange.text(404, "no such thing");
      const socket = await exchange.upgrade({ upgrade: "shout" });
      for await (const chunk of socket ?? []) {
        await exchange.write(Buffer.from(chunk.toString().toUpperCase()));
        if (chunk.includes("bye")) break;
      }
      return exchange.end();
    };
    ({ url } = await engine.listen({ name: "main", handler: shouting, upgrades: true }));
  });
  afterEach(() => {
    engine.clearFaults();
    engine.clearLog();
    assert.deepEqual(engine.errors, []);
  });
  after(() => engine.close());

  test("accepted: bytes go both ways, and the end is orderly", async () => {
    const client = await connect(url);
    client.request("GET /shout", ASK).write("hello");
    await client.until(({ body }) => body === "HELLO");
    assert.match(client.text, /^HTTP\/1\.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: shout\r\n\r\n/);
    client.write("bye");
    await client.closed();
    const entry = await engine.waitFor("GET /shout");
    await entry.closed;
    assert.deepEqual([client.body, client.ending, entry.status, entry.sentBytes], ["HELLOBYE", "fin", 101, 8]);
    assert.equal(entry.outcome, "complete");
  });

  test("refused by the handler and by a fault, each the last reply on its connection", async () => {
    engine.fault("GET /shout", { instead: replies.html(502) });
    for (const [path, status] of [["/other", 404], ["/shout", 502]]) {
      const client = await connect(url);
      await client.request(`GET ${path}`, ASK).closed();
      assert.match(client.text, new RegExp(`^HTTP/1.1 ${status} .*connection: close`, "is"));
      const entry = await engine.waitFor(`GET ${path}`);
      await entry.closed;
      assert.equal(entry.outcome, "complete");
    }
  });

  test("cut at a byte: closed, reset, or silent", async () => {
    for (const [how, ending] of [["close", "fin"], ["reset", "ECONNRESET"]]) {
      const gate = engine.gate();
      engine.fault("GET /shout", { stop: { after: 3, how, gate } });
      const client = await connect(url);
      client.request("GET /shout", ASK).write("hello");
      await client.until(({ body }) => body === "HEL");
      await gate.arrived();
      gate.open();
      await client.closed();
      assert.deepEqual([client.body, client.ending], ["HEL", ending]);
    }
    engine.fault("GET /shout", { stop: { after: 0, how: "hang" } });
    const client = await connect(url);
    client.request("GET /shout", ASK).write("hello");
    const entry = await engine.waitFor("GET /shout", 3);
    await client.until(({ text }) => text.includes("101"));
    assert.equal((await fetch(`${url}/other`)).status, 404);
    assert.deepEqual([client.body, client.ending, entry.outcome], ["", "", "fault: hang"]);
  });

  test("a client that resets its connection is noticed", async () => {
    const client = await connect(url);
    client.request("GET /shout", ASK).write("hello");
    await client.until(({ body }) => body === "HELLO");
    client.socket.resetAndDestroy();
    const entry = await engine.waitFor("GET /shout");
    await entry.closed;
    assert.equal(entry.outcome, "client closed");
  });
});

describe("TLS with HTTP/2", () => {
  const certificate = makeCertificate(["127.0.0.1", "localhost"]);
  const ca = certificate.cert;
  let engine;
  let url;
  const sessions = [];
  before(async () => {
    engine = new Engine();
    ({ url } = await engine.listen({ name: "tls", handler, tls: certificate }));
  });
  afterEach(() => {
    for (const session of sessions.splice(0)) session.destroy();
    engine.clearFaults();
    engine.clearLog();
    handled = [];
    assert.deepEqual(engine.errors, []);
  });
  after(() => engine.close());

  function session() {
    const made = http2.connect(url, { ca });
    made.on("error", () => {});
    sessions.push(made);
    return made;
  }

  /** One request: its status, its body, and the code of its end. */
  function ask(client, path) {
    return new Promise((resolve) => {
      const stream = client.request({ ":path": path });
      const result = { status: 0, body: "", code: 0, error: "" };
      stream.setEncoding("utf8");
      stream.on("response", (headers) => (result.status = headers[":status"]));
      stream.on("data", (text) => (result.body += text));
      stream.on("error", (error) => (result.error = error.code));
      stream.on("close", () => resolve({ ...result, code: stream.rstCode }));
      stream.end();
    });
  }

  test("one connection carries parallel requests", async () => {
    const before = engine.accepted;
    const client = session();
    const answers = await Promise.all([ask(client, "/a"), ask(client, "/stream")]);
    assert.deepEqual(answers, Array(2).fill({ status: 200, body: BODY, code: 0, error: "" }));
    assert.equal(engine.accepted, before + 1);
    assert.equal((await engine.waitFor("GET /a")).protocol, "2.0");
  });

  test("HTTP/1.1 for clients that want it", async () => {
    const client = (await connect(url, { ca })).request("GET /a");
    await client.until(({ body }) => body === BODY);
    assert.equal((await engine.waitFor("GET /a")).protocol, "1.1");
  });

  test("RST_STREAM before the reply and at a byte of it, with any code", async () => {
    const { NGHTTP2_REFUSED_STREAM, NGHTTP2_ENHANCE_YOUR_CALM } = http2.constants;
    const client = session();
    engine.fault("GET /a", { instead: { rst: NGHTTP2_REFUSED_STREAM } });
    assert.deepEqual((await ask(client, "/a")).code, NGHTTP2_REFUSED_STREAM);
    for (const at of [0, 5, BODY.length]) {
      engine.fault("GET /stream", { stop: { after: at, how: { rst: NGHTTP2_ENHANCE_YOUR_CALM } } });
      const { status, body, code } = await ask(client, "/stream");
      assert.deepEqual([status, body, code], [200, BODY.slice(0, at), NGHTTP2_ENHANCE_YOUR_CALM]);
    }
    assert.equal((await ask(client, "/a")).body, BODY);
  });

  test("a reset is a stream's, a drop is the connection's", async () => {
    const before = engine.accepted;
    const client = session();
    engine.fault("GET /stream", { stop: { after: 5, how: "reset" } });
    assert.equal((await ask(client, "/stream")).code, http2.constants.NGHTTP2_INTERNAL_ERROR);
    assert.equal((await ask(client, "/a")).status, 200);
    assert.equal(engine.accepted, before + 1);
    engine.fault("GET /stream", { stop: { after: 5, how: "drop" } });
    const closed = new Promise((resolve) => client.on("close", resolve));
    // A reset connection is, to Node's client, a cancelled stream, from version 24 on an internal error; and a
    // session without an error.
    const { NGHTTP2_CANCEL, NGHTTP2_INTERNAL_ERROR } = http2.constants;
    assert.ok([NGHTTP2_CANCEL, NGHTTP2_INTERNAL_ERROR].includes((await ask(client, "/stream")).code));
    await closed;
  });

  test("a drop under TLS and HTTP/1.1", async () => {
    const gate = engine.gate();
    engine.fault("GET /stream", { stop: { after: 5, how: "drop", gate } });
    const client = (await connect(url, { ca })).request("GET /stream");
    await client.until(({ chunked }) => chunked.data.length === 5);
    gate.open();
    await client.closed();
    assert.equal(client.ending, "ECONNRESET");
    assert.deepEqual(client.chunked, { data: BODY.slice(0, 5), complete: false });
  });

  test("GOAWAY lets the stream end, or refuses it", async () => {
    const goaway = (client) => new Promise((resolve) => client.on("goaway", (code, last) => resolve([code, last])));
    const first = session();
    engine.fault("GET /a", { goaway: {} });
    const seen = goaway(first);
    assert.equal((await ask(first, "/a")).body, BODY);
    assert.deepEqual(await seen, [0, 1]);

    const second = session();
    await ask(second, "/b");
    engine.fault("GET /a", { goaway: { code: 0, refuse: true } });
    const refused = goaway(second);
    const { code, status } = await ask(second, "/a");
    assert.deepEqual(await refused, [0, 1]);
    assert.equal(status, 0);
    assert.equal(code, http2.constants.NGHTTP2_REFUSED_STREAM);
    assert.equal(handled.length, 2);
  });

  test("a clean cut, and fewer bytes than the length says", async () => {
    const client = session();
    engine.fault("GET /stream", { stop: { after: 5, how: "end" } });
    const clean = await ask(client, "/stream");
    assert.deepEqual([clean.body, clean.code, clean.error], [BODY.slice(0, 5), 0, ""]);
    engine.fault("GET /a", { stop: { after: 5, how: "end", keepLength: true } });
    const short = await ask(client, "/a");
    assert.equal(short.code, http2.constants.NGHTTP2_PROTOCOL_ERROR);
  });
});
