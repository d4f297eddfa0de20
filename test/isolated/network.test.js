// The allowlist of an isolated sandbox, from inside: what it lets through, what it refuses and why, and what there is besides it.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { createServer as createHttp } from "node:http";
import { createServer } from "node:net";
import { test } from "node:test";
import { Worker } from "node:worker_threads";

import { LocalSandbox } from "cloudsandbox";

import { childrenOf, killHelper } from "./processes.js";
import { attack, nestless, own, runUnder, unavailable } from "./support.js";

const options = { skip: unavailable };

/** Asks the proxy as no client does by itself: for this machine. */
const ASK = `
import http.client, urllib.request
proxy = int(os.environ["HTTP_PROXY"].rsplit(":", 1)[1])
def ask(method, url, tunnel=None):
    c = http.client.HTTPConnection("127.0.0.1", proxy, timeout=20)
    if tunnel: c.set_tunnel(*tunnel)
    try:
        c.request(method, url)
        r = c.getresponse()
        return [r.status, r.read().decode()]
    except OSError as e:
        return [0, str(e)]
`;

async function listening(t, server) {
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  return server.address().port;
}

const greeting = (t) => listening(t, createHttp((request, response) => response.end(`hello ${request.url}`)));
const toLoopback = (port) => [`localhost:${port}`, `127.0.0.1:${port}`];

test("61 an allowed host is reached by its name, over a tunnel and without one", options, async (t) => {
  const port = await greeting(t);
  const sandbox = own(t, { allowedHosts: toLoopback(port) });
  const told = await attack(sandbox, `${ASK}
tell([ask("GET", "http://localhost:${port}/plain"), ask("GET", "/tunnel", ("localhost", ${port})), ask("GET", "/address", ("127.0.0.1", ${port}))])`);
  assert.deepEqual(told, [[200, "hello /plain"], [200, "hello /tunnel"], [200, "hello /address"]]);
});

test("61 what is not allowed is refused, with the reason and what to do", options, async (t) => {
  const port = await greeting(t);
  const sandbox = own(t, { allowedHosts: [`localhost:${port}`, "*.example.com", "example.org:8443"] });
  const told = await attack(sandbox, `${ASK}
tell([ask("GET", "http://other.example/"), ask("GET", "/", ("other.example", 443)), ask("GET", "http://example.com/"),
      ask("GET", "http://169.254.169.254/latest/meta-data/"), ask("GET", "http://127.0.0.1:${port}/"),
      ask("GET", "http://example.org/"), ask("GET", "http://localhost:${port}/")])`);
  const reasons = [
    [403, /^other\.example:80 is not in allowedHosts of this sandbox; nothing was sent\..* can add this one there/],
    [0, /^Tunnel connection failed: 403 other\.example:443 is not in allowedHosts of this sandbox$/],
    [403, /^example\.com:80 is not in allowedHosts/],
    [403, /^169\.254\.169\.254:80 is an address and not in allowedHosts; .* by its name/],
    [403, /^127\.0\.0\.1:\d+ is an address and not in allowedHosts/],
    [403, /^example\.org:80 is in allowedHosts with other ports only/],
    [403, /^localhost:\d+ leads to (127\.0\.0\.1|::1), a loopback address; .* in the sandbox's allowedHosts itself/],
  ];
  for (const [index, [status, reason]] of reasons.entries()) {
    assert.equal(told[index][0], status);
    assert.match(told[index][1], reason);
  }
});

test("61 a TLS client that names another host than it has asked for is cut off before the host hears of it", options, async (t) => {
  let heard = 0;
  const port = await listening(t, createServer((socket) => socket.on("data", (bytes) => (heard += bytes.length)).on("error", () => {})));
  const sandbox = own(t, { allowedHosts: toLoopback(port) });
  const told = await attack(sandbox, `${ASK}
import ssl
def hello(name):
    out = ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    try: tls.do_handshake()
    except ssl.SSLWantReadError: pass
    return out.read()
def said(name):
    s = socket.create_connection(("127.0.0.1", proxy), 20)
    s.sendall(b"CONNECT localhost:${port} HTTP/1.1\\r\\nHost: localhost:${port}\\r\\n\\r\\n")
    answer = s.recv(1000)
    s.sendall(hello(name))
    rest = b""
    try:
        while True:
            more = s.recv(1000)
            if not more: break
            rest += more
    except OSError: pass
    return [answer.decode().split("\\r\\n")[0], rest.hex()]
tell(said("other.example"))`);
  // The alert "unrecognized_name", fatal.
  assert.match(told[0], /^HTTP\/1\.[01] 200 /);
  assert.match(told[1], /^1503..00020270$/);
  assert.equal(heard, 0);
});

test("61 connections without a word are bounded on the host, and end with the command", options, async (t) => {
  const port = await greeting(t);
  const sandbox = own(t, { allowedHosts: toLoopback(port) });
  await sandbox.start();
  const before = readdirSync("/proc/self/fd").length;
  const attempt = attack(sandbox, `${ASK}
idle = [socket.create_connection(("127.0.0.1", proxy), 20) for _ in range(600)]
open("/workspace/ready", "w").close()
while not os.path.exists("/workspace/seen"): time.sleep(0.01)
for s in idle: s.close()
tell(ask("GET", "http://localhost:${port}/after"))`);
  while (!(await sandbox.readBytes("ready"))) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.ok(readdirSync("/proc/self/fd").length - before < 300);
  await sandbox.writeFile("seen", "");
  assert.deepEqual(await attempt, [200, "hello /after"]);
});

test("61 the variables of a command lead programs to the proxy; the user's own count more, and this machine's do not", options, async (t) => {
  const port = await greeting(t);
  process.env.HTTP_PROXY = "http://proxy.example:3128";
  t.after(() => delete process.env.HTTP_PROXY);
  const sandbox = own(t, { allowedHosts: toLoopback(port), inheritEnv: ["HTTP_PROXY"], env: { NO_PROXY: "", no_proxy: "" } });
  const told = await attack(sandbox, `
import urllib.request
names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"]
tell([len(set(os.environ[n] for n in names)), os.environ["HTTP_PROXY"].startswith("http://127.0.0.1:"),
      urllib.request.urlopen("http://localhost:${port}/by-itself").read().decode()])`);
  assert.deepEqual(told, [1, true, "hello /by-itself"]);
  const { stdout } = await sandbox.exec({ command: "printenv HTTP_PROXY", env: { HTTP_PROXY: "http://own.example" } });
  assert.equal(stdout, "http://own.example\n");
});

test("61 past the proxy there is nothing: no address, no name, not this machine", options, async (t) => {
  const port = await greeting(t);
  const sandbox = own(t, { allowedHosts: [...toLoopback(port), "example.com"] });
  const told = await attack(sandbox, `
def tcp(host, at): return attempt(lambda: socket.create_connection((host, at), 5))
def udp(host): return attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", (host, 53)))
def find(name):
    try: return str(socket.getaddrinfo(name, 80))
    except socket.gaierror as e: return "not found"
tell([tcp("127.0.0.1", ${port}), tcp("1.1.1.1", 443), tcp("169.254.169.254", 80), tcp("2606:4700:4700::1111", 443),
      udp("8.8.8.8"), find("example.com")])`);
  assert.deepEqual(told, ["ECONNREFUSED", "ENETUNREACH", "ENETUNREACH", "ENETUNREACH", "ENETUNREACH", "not found"]);
  const bare = await sandbox.exec({ argv: ["env", "-i", "/usr/bin/env"] });
  assert.equal(bare.stdout, "");
  assert.equal(sandbox.isolation.netns.state, "enforced");
});

test("61 close() ends a tunnel that is open, and a worker's end too", options, async (t) => {
  const sockets = [];
  let arrived;
  const port = await listening(t, createServer((socket) => {
    sockets.push(socket.on("error", () => {}));
    socket.ended = new Promise((resolve) => socket.once("close", resolve));
    arrived();
  }));
  const next = () => new Promise((resolve) => (arrived = resolve));
  const tunnel = `exec 3<>/dev/tcp/127.0.0.1/\${HTTP_PROXY##*:}; printf 'CONNECT localhost:${port} HTTP/1.1\\r\\nHost: localhost:${port}\\r\\n\\r\\n' >&3; sleep 60`;

  const sandbox = own(t, { allowedHosts: toLoopback(port) });
  let connected = next();
  const running = sandbox.shell(tunnel).then(() => {}, () => {});
  await connected;
  await sandbox.close();
  await Promise.all([sockets[0].ended, running]);

  connected = next();
  const worker = new Worker(
    `const { workerData } = require("node:worker_threads");
     import(workerData.module).then(({ LocalSandbox }) => new LocalSandbox({ isolation: "required", allowedHosts: workerData.hosts }).shell(workerData.tunnel));`,
    { eval: true, workerData: { module: import.meta.resolve("cloudsandbox"), hosts: toLoopback(port), tunnel } },
  );
  await connected;
  await worker.terminate();
  await sockets[1].ended;
});

test("61 a helper that takes the place of one that was killed leads to the allowed hosts, too", options, async (t) => {
  const port = await greeting(t);
  const before = childrenOf(process.pid);
  const sandbox = own(t, { allowedHosts: toLoopback(port) });
  const look = `${ASK}
tell([proxy, ask("GET", "http://localhost:${port}/again")])`;
  const first = await attack(sandbox, look);
  for (let i = 0; i < 2; i++) {
    await killHelper(childrenOf(process.pid).find((pid) => !before.includes(pid)));
    // Several at once: one of them starts it, all wait for it.
    for (const told of await Promise.all([attack(sandbox, look), attack(sandbox, look), attack(sandbox, look)])) {
      assert.deepEqual(told, [first[0], [200, "hello /again"]]);
    }
  }
});

test("61 when no other helper can be made the command says why, was not run, and the next one tries again", { skip: unavailable || nestless }, (t) => {
  const { stdout, stderr } = runUnder(t, "exec unshare -Ur \"$@\"", `
    import { readFileSync, writeFileSync } from "node:fs";
    import { childrenOf, killHelper } from "./test/isolated/processes.js";
    const limit = "/proc/sys/user/max_user_namespaces", usual = readFileSync(limit, "utf8");
    const s = new LocalSandbox({ isolation: "required", allowedHosts: ["example.com"] });
    await s.start();
    writeFileSync(limit, "0");
    await killHelper(childrenOf(process.pid)[0]);
    const told = await Promise.allSettled([s.shell("touch ran"), s.shell("touch ran")]);
    writeFileSync(limit, usual);
    const { output } = await s.shell("ls; echo again");
    await s.close();
    console.log(JSON.stringify({ told: told.map(({ reason }) => [reason?.code, reason?.message]), output }));`);
  assert.ok(stdout, stderr);
  const { told, output } = JSON.parse(stdout);
  for (const [code, message] of told) {
    assert.equal(code, "ERR_SANDBOX_ISOLATION_UNAVAILABLE");
    assert.match(message, /Layer userns: ENOSPC: /);
  }
  assert.equal(output.trim(), "again");
});

test("61 a manifest's list of hosts is kept, and its network is still looked at", options, async (t) => {
  const sandbox = own(t, { manifest: { network: { allowedHosts: ["*.example.com", "192.0.2.0/24", "example.org"] } } });
  const told = await attack(sandbox, `${ASK}
tell([ask("GET", "http://example.com/"), ask("GET", "http://example.org:81/")])`);
  assert.match(told[0][1], /^example\.com:80 is not in allowedHosts/);
  assert.match(told[1][1], /^example\.org:81 is in allowedHosts with other ports only/);
  assert.equal(sandbox.networkIsolation.verdict, "isolated");
  assert.throws(
    () => new LocalSandbox({ isolation: "required", allowedHosts: ["example.com"], manifest: { network: { default: "deny" } } }),
    { code: "ERR_SANDBOX_INVALID_ARG", message: /`manifest\.network` and the option `allowedHosts` are about the same thing/ },
  );
});

const mistakes = [
  ["a list that is none", { allowedHosts: "example.com" }, /`allowedHosts` must be an array of hosts, such as .*, not a string/],
  ["an address of a page", { allowedHosts: ["https://example.com/"] }, /allowedHosts: "https:\/\/example\.com\/" is no host; write "example\.com"/],
  ["something that is no text", { allowedHosts: [443] }, /`allowedHosts\[0\]` must be a .*string/],
  ["a network that is on", { allowedHosts: ["example.com"], network: "on" }, /leave them out, or leave out network: "on"/],
  ["a network that need not be its own", { allowedHosts: ["example.com"], accept: ["netns"] }, /take it out of `accept`/],
  ["a list where a word is", { network: { allow: ["example.com"] } }, /go into `allowedHosts`/],
  ["no isolation", { allowedHosts: ["example.com"], isolation: "none" }, /`allowedHosts` is an option of the isolated sandbox/],
];
for (const [what, given, message] of mistakes) {
  test(`allowedHosts with ${what} is refused, and the message says what to write`, () => {
    assert.throws(() => new LocalSandbox({ isolation: "required", ...given }), { code: "ERR_SANDBOX_INVALID_ARG", message });
  });
}

test("an empty allowedHosts is no way out, and no variables either", options, async (t) => {
  const { stdout } = await own(t, { allowedHosts: [] }).exec({ command: "env" });
  assert.doesNotMatch(stdout, /proxy/i);
});
