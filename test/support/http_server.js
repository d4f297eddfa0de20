// A server that misbehaves on request, for the tests of the C core's HTTP client. Prints one JSON line with
// where it listens, and ends when its standard input does. Needs the openssl program.
//
//   http, unix     HTTP/1.1                      proxy   CONNECT and plain forwarding
//   https          HTTP/1.1 and HTTP/2           raw     bytes that no HTTP library would send
//   misnamed       https with another's name     h2c     HTTP/2 with prior knowledge
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import http2 from "node:http2";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { gzipSync } from "node:zlib";

import { makeCertificate } from "../emulators/certificate.js";

const directory = mkdtempSync(path.join(os.tmpdir(), "http-server-"));
const unixPath = path.join(directory, "http.sock");

const chunk = (bytes) =>
  Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n0\r\n\r\n")]);

/** Answers that wait. */
const held = [];

/** What the tests ask about with /counts. */
const counts = { connections: {}, requests: {}, expects: 0, tunnels: 0, forwards: 0, proxyAuth: "" };
const bump = (group, key) => (group[key] = (group[key] ?? 0) + 1);

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function readBody(req) {
  const chunks = [];
  for await (const chunk of req) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function sendJson(res, value, status = 200, headers = {}) {
  res.writeHead(status, { "content-type": "application/json", ...headers });
  res.end(JSON.stringify(value));
}

async function echo(req, res, status) {
  const body = await readBody(req);
  sendJson(res, {
    method: req.method,
    url: req.url,
    version: req.httpVersion,
    headers: req.headers,
    length: body.length,
    sha256: createHash("sha256").update(body).digest("hex"),
    text: body.length <= 4096 ? body.toString() : "",
  }, status);
}

async function huge(res, bytes, chunkBytes = 65536) {
  res.writeHead(200, { "content-type": "application/octet-stream" });
  const chunk = Buffer.alloc(chunkBytes, "x");
  const gone = new Promise((resolve) => res.once("close", resolve));
  for (let left = bytes; left > 0 && !res.destroyed; left -= chunkBytes) {
    const more = res.write(left < chunkBytes ? chunk.subarray(0, left) : chunk);
    if (!more) await Promise.race([gone, new Promise((resolve) => res.once("drain", resolve))]);
  }
  res.end();
}

async function drip(res, chunks, ms) {
  res.writeHead(200);
  for (let i = 0; i < chunks && !res.destroyed; i++) {
    res.write(`${i}\n`);
    await pause(ms);
  }
  res.end();
}

/** Not at once: nghttp2 still reads the request, and Node 20.20 would free the stream under it. */
function endStream(req, code) {
  setImmediate(() => req.stream.close(code));
}

/** Everything that a well-behaved library can serve. @returns {unknown} */
function answer(req, res, url, query) {
  switch (url) {
    case "/echo":
      return echo(req, res, Number(query.get("status") ?? 200));
    case "/small":
      return res.end("ok");
    case "/counts":
      return sendJson(res, counts);
    case "/never":
      return req.resume();
    case "/held": /* until somebody asks for the next */
      return held.push(res);
    case "/open":
      for (const other of held.splice(0)) other.end("ok");
      return res.end("ok");
    case "/slow":
      return pause(Number(query.get("ms"))).then(() => res.end("ok"));
    case "/reset":
      return req.socket.resetAndDestroy();
    case "/status":
      res.writeHead(Number(query.get("code")), { "content-type": query.get("type") ?? "text/plain" });
      return res.end(query.get("body") ?? "");
    case "/huge":
      return huge(res, Number(query.get("bytes")));
    case "/huge-error":
      res.statusCode = 500;
      return res.end(Buffer.alloc(1 << 20, "e"));
    case "/drip":
      return drip(res, Number(query.get("chunks")), Number(query.get("ms")));
    case "/coded":
      res.statusCode = Number(query.get("code") ?? 200);
      res.setHeader("content-encoding", query.get("as"));
      return res.end("text");
    case "/transfer-coded": /* gzip of 8 MiB, which libcurl would unpack unasked */
      req.socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n");
      return req.socket.end(chunk(gzipSync(Buffer.alloc(8 << 20))));
    case "/asked-codings":
      return res.end(req.headers["accept-encoding"] ?? "none");
    case "/redirect":
      return sendJson(res, {}, 302, { location: "http://127.0.0.2:1/elsewhere" });
    case "/retry":
      return sendJson(res, {}, 429, { "retry-after": query.get("after") });
    case "/brackets":
      return res.end("[".repeat(200000));
    case "/goaway":
      req.stream.session.goaway(http2.constants.NGHTTP2_ENHANCE_YOUR_CALM);
      return setImmediate(() => req.stream.session?.destroy());
    case "/rst":
      return endStream(req, http2.constants.NGHTTP2_INTERNAL_ERROR);
    case "/refuse-odd":
      if (counts.requests[url] % 2 === 0) return res.end("ok");
      return endStream(req, http2.constants.NGHTTP2_REFUSED_STREAM);
    case "/trailers":
      res.writeHead(200, { trailer: "x-late" });
      res.write("body");
      res.addTrailers({ "x-late": "1" });
      return res.end();
    default:
      return sendJson(res, { message: "no such path" }, 404);
  }
}

function handle(req, res) {
  const url = new URL(req.url, "http://server.invalid");
  bump(counts.requests, url.pathname);
  res.on("error", () => {});
  req.on("error", () => {});
  Promise.resolve(answer(req, res, url.pathname, url.searchParams)).catch(() => req.destroy());
}

/** Never sends "100 Continue": a client that waits for it waits for nothing. */
function expectation(req, res) {
  counts.expects++;
  handle(req, res);
}

// ---- bytes ----

const OK = "HTTP/1.1 200 OK\r\n";
const RAW = {
  "/half": { send: `${OK}Content-Length: 100\r\n\r\n${"h".repeat(50)}`, then: "end" },
  "/half-reset": { send: `${OK}Content-Length: 100\r\n\r\n${"h".repeat(50)}`, then: "reset" },
  "/half-chunk": { send: `${OK}Transfer-Encoding: chunked\r\n\r\n64\r\n${"h".repeat(50)}`, then: "end" },
  "/no-last-chunk": { send: `${OK}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`, then: "end" },
  "/bad-chunk": { send: `${OK}Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n`, then: "end" },
  "/longer": { send: `${OK}Content-Length: 5\r\n\r\nhello and more`, then: "end" },
  "/bad-length": { send: `${OK}Content-Length: abc\r\n\r\nhello`, then: "end" },
  "/until-close": { send: `${OK}\r\nhello`, then: "end" },
  "/half-head": { send: `${OK}Content-Le`, then: "end" },
  "/close": { send: "", then: "end" },
  "/not-http": { send: "SSH-2.0-OpenSSH_9.2\r\n", then: "end" },
  "/http09": { send: "<html>old</html>", then: "end" },
  "/cut": { send: `${OK}Content-Length: 2\r\n\r\nok`, then: "keep" },
  "/leaves": { send: `${OK}Content-Length: 2\r\n\r\nok`, then: "end later" },
  "/early": { send: `HTTP/1.1 103 Early Hints\r\nX-A: 1\r\n\r\n${OK}X-B: 2\r\nContent-Length: 2\r\n\r\nok`, then: "keep" },
  "/fold": { send: `${OK}X-A: 1\r\n  folded\r\nContent-Length: 0\r\n\r\n`, then: "end" },
  "/no-colon": { send: `${OK}what is this\r\nContent-Length: 0\r\n\r\n`, then: "end" },
  "/big-head": { send: `${OK}${"X-A: 0123456789012345678901234567890123456789\r\n".repeat(2500)}\r\n`, then: "end" },
};

function rawConnection(socket) {
  let text = "";
  let served = 0;
  socket.on("error", () => {});
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1");
    if (text.startsWith("PUT /early-413 ")) {
      // Answers at once and reads no further.
      socket.pause();
      return socket.end("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig");
    }
    if (served > 0 && text.startsWith("POST /cut ")) {
      // Closes a kept connection in the middle of what comes.
      text = "";
      bump(counts.requests, "/cut");
      return socket.resetAndDestroy();
    }
    const head = text.indexOf("\r\n\r\n");
    const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
    if (head < 0 || text.length < head + 4 + length) return;
    const url = text.split(" ")[1];
    text = "";
    bump(counts.requests, url);
    served++;
    if (url === "/stale") {
      // Answers the first request of a connection and closes at the second.
      if (served > 1) socket.destroy();
      else socket.write(`${OK}Content-Length: 2\r\n\r\nok`);
      return;
    }
    const script = RAW[url];
    socket.write(script.send, () => {
      if (script.then === "reset") socket.resetAndDestroy();
      if (script.then === "end") socket.end();
      if (script.then === "end later") setTimeout(() => socket.end(), 20);
    });
  });
}

// ---- proxy ----

function tunnel(req, socket) {
  counts.tunnels++;
  counts.proxyAuth = req.headers["proxy-authorization"] ?? "";
  const [host, port] = req.url.split(":");
  if (host === "refused.test") return socket.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
  const upstream = net.connect(Number(port), host === "tunnel.test" ? "127.0.0.1" : host, () => {
    socket.write("HTTP/1.1 200 Connection established\r\nX-Tunnel: secret\r\n\r\n");
    upstream.pipe(socket).pipe(upstream);
  });
  upstream.on("error", () => socket.destroy());
  socket.on("error", () => upstream.destroy());
}

function forward(req, res) {
  counts.forwards++;
  req.url = new URL(req.url).pathname;
  handle(req, res);
}

// ---- connections that are given over ----

/** What has come behind the request's head, without its body. */
async function* rest(req, socket, head) {
  let body = Number(req.headers["content-length"] ?? 0);
  yield* cut(head);
  for await (const bytes of socket.iterator({ destroyOnReturn: false })) yield* cut(bytes);
  function* cut(bytes) {
    const skipped = Math.min(body, bytes.length);
    body -= skipped;
    if (skipped < bytes.length) yield bytes.subarray(skipped);
  }
}

const SWITCH = "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n";

/** @type {Record<string, (socket: net.Socket, query: URLSearchParams, input: AsyncIterable<Buffer>) => unknown>} */
const takers = {
  // What comes, in capitals; the end when it ends, or after `bytes`.
  async echo(socket, query, input) {
    let left = Number(query.get("bytes") ?? Infinity);
    socket.write(SWITCH);
    for await (const bytes of input) {
      socket.write(bytes.toString("latin1").toUpperCase(), "latin1");
      left -= bytes.length;
      if (left <= 0) break;
    }
    socket.end("<end>");
  },
  async count(socket, query, input) {
    let size = 0;
    socket.write(SWITCH);
    for await (const bytes of input) size += bytes.length;
    socket.end(String(size));
  },
  plain: (socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Type: x/raw\r\n\r\nraw bytes"),
  async drip(socket) {
    socket.setNoDelay(true);
    for (const byte of `HTTP/1.1 100 Continue\r\n\r\n${SWITCH}drip`) {
      socket.write(byte);
      await pause(1);
    }
    socket.end();
  },
  refuse: (socket) =>
    socket.write('HTTP/1.1 409 Conflict\r\nContent-Length: 21\r\n\r\n{"message":"no, sir"} and something'),
  chunked: (socket) => socket.write("HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
  unlimited: (socket) => socket.end(`HTTP/1.1 500 No\r\n\r\n${"e".repeat(1 << 20)}`),
  async flood(socket, query) {
    socket.write(SWITCH);
    const chunk = Buffer.alloc(65536, "x");
    for (let left = Number(query.get("bytes")); left > 0 && !socket.destroyed; left -= chunk.length) {
      const more = socket.write(chunk.subarray(0, left));
      if (!more) await new Promise((resolve) => socket.once("drain", resolve).once("close", resolve));
    }
    socket.end();
  },
  early: (socket) => socket.end(`${SWITCH}bye`),
  silent: () => {},
  open: (socket) => socket.write(`${SWITCH}first`),
  cut: (socket) => socket.end("HTTP/1.1 101 UPG"),
  heads: (socket) => socket.end(`HTTP/1.1 101 UPGRADED\r\n${"X: y\r\n".repeat(100000)}`),
  nonsense: (socket) => socket.end("no such protocol\r\n\r\n"),
  break: (socket) => socket.write(`${SWITCH}some`, () => socket.resetAndDestroy?.() ?? socket.destroy()),
};

function takeOver(req, socket, head) {
  const { pathname, searchParams } = new URL(req.url, "http://server");
  socket.on("error", () => {});
  const name = pathname.slice("/take/".length);
  if (name !== "echo" && name !== "count") socket.resume();
  takers[name](socket, searchParams, rest(req, socket, head));
}

// ---- start ----

async function listen(name, server, where = { port: 0, host: "127.0.0.1" }) {
  counts.connections[name] = 0;
  server.on("connection", () => bump(counts.connections, name));
  if (name !== "proxy") server.on("upgrade", takeOver);
  await new Promise((resolve) => server.listen(where, resolve));
  return server.address().port;
}

const withExpectation = (server) => server.on("checkContinue", expectation);

const certificate = makeCertificate(["localhost", "127.0.0.1", "tunnel.test", "refused.test"]);
const other = makeCertificate(["elsewhere.test"]);
const ca = path.join(directory, "ca.pem");
const otherCa = path.join(directory, "other.pem");
writeFileSync(ca, certificate.cert);
writeFileSync(otherCa, other.cert);

const places = {
  http: await listen("http", withExpectation(http.createServer(handle))),
  https: await listen("https", http2.createSecureServer({ ...certificate, allowHTTP1: true }, handle)),
  misnamed: await listen("misnamed", http2.createSecureServer({ ...other, allowHTTP1: true }, handle)),
  h2c: await listen("h2c", http2.createServer(handle)),
  raw: await listen("raw", net.createServer(rawConnection)),
  proxy: await listen("proxy", http.createServer(forward).on("connect", tunnel)),
  unix: unixPath,
  ca,
  otherCa,
};
await listen("unix", http.createServer(handle), { path: unixPath });

process.stdin.resume().on("end", () => {
  rmSync(directory, { recursive: true, force: true });
  process.exit(0);
});
console.log(JSON.stringify(places));
