// Calls into the kernel that an isolated command does not have, and what it has of the network.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { describe, test } from "node:test";

import { attack, own, shared, unavailable } from "./support.js";

/** A server on this machine at a socket without a path: Node pads such names. */
async function listenAbstract(t, name) {
  const code = `import socket; s = socket.socket(socket.AF_UNIX); s.bind("\\0${name}"); s.listen(); print("on", flush=True); s.accept()`;
  const server = spawn("python3", ["-c", code], { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => server.kill("SIGKILL"));
  await once(server.stdout, "data");
}

describe("isolated: kernel and network", { skip: unavailable, concurrency: 2 }, () => {
  const sandbox = shared();

  test("10 no keys of the machine's", async () => {
    const told = await attack(sandbox, `
tell([call(248, 217, 0, 0, 0, 0, 0), call(249, 218, 0, 0, 0, 0), call(250, 219, 0, 0, 0, 0, 0), open("/proc/keys").read()])`);
    assert.deepEqual(told, ["EPERM", "EPERM", "EPERM", ""]);
  });

  test("11 no mounts, by whatever call", async () => {
    const told = await attack(sandbox, `
tell([call(165, 40, 0, 0, 0, 0, 0), call(166, 39, 0, 0), call(155, 41, 0, 0), call(161, 51, 0)]
   + [call(n, n, 0, 0, 0, 0, 0) for n in (428, 429, 430, 431, 432, 433, 442, 467)])`);
    assert.deepEqual(new Set(told), new Set(["EPERM"]));
  });

  test("30 nothing of bpf, perf, userfaultfd and io_uring", async () => {
    const told = await attack(sandbox, `
tell([call(321, 280, 0, 0, 0), call(298, 241, 0, 0, 0, 0, 0), call(323, 282, 0)] + [call(n, n, 0, 0, 0, 0) for n in (425, 426, 427)])`);
    assert.deepEqual(new Set(told), new Set(["EPERM"]));
  });

  test("31 nothing of the machine as a whole", async () => {
    const told = await attack(sandbox, `
tell([call(304, 265, 0, 0, 0), call(303, 264, 0, 0, 0, 0, 0), call(246, 104, 0, 0, 0, 0), call(175, 105, 0, 0, 0), call(313, 273, 0, 0, 0),
      call(103, 116, 10, 0, 0), call(169, 142, 0, 0, 0, 0), call(164, 170, 0, 0), call(227, 112, 0, 0), call(170, 161, 0, 0),
      call(167, 224, 0, 0), call(163, 89, 0), call(179, 60, 0, 0, 0, 0)])`);
    assert.deepEqual(new Set(told), new Set(["EPERM"]));
  });

  test("33 nothing can be typed into a terminal, and there is none", async () => {
    const told = await attack(sandbox, `
import fcntl
tell([attempt(lambda: fcntl.ioctl(0, r, b"x")) for r in (0x5412, 0x541C)] + [read("/dev/tty")])`);
    assert.deepEqual(told, ["EPERM", "EPERM", "ENOENT"]);
  });

  test("33 a command with a terminal of its own types nothing into it, and gets at no other one", async () => {
    const code = `
import fcntl, os
for what in (lambda: fcntl.ioctl(0, 0x5412, b"x"), lambda: fcntl.ioctl(0, 0x541C, b"x"), lambda: os.open("/dev/tty", os.O_RDWR),
             lambda: os.open("/dev/ptmx", os.O_RDWR), lambda: os.listdir("/dev/pts")):
    try: print("ok", what())
    except OSError as e: print(e.strerror)
print(os.isatty(0))`;
    const command = await sandbox.spawn(["python3", "-c", code], { tty: { columns: 80, rows: 24 } });
    const { stdout } = await command.wait();
    const no = ["Operation not permitted", "No such file or directory"];
    assert.deepEqual(stdout.trim().split("\r\n"), [no[0], no[0], no[1], no[1], no[1], "True"]);
  });

  test("24, 25, 26 neither this machine nor any other one is reached", async (t) => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    t.after(() => server.close());
    await listenAbstract(t, "sbx-test-abstract");
    const told = await attack(sandbox, `
def dial(family, address):
    s = socket.socket(family); s.settimeout(5)
    return attempt(lambda: s.connect(address))
tell({"abstract": dial(socket.AF_UNIX, b"\\0sbx-test-abstract"), "loopback": dial(socket.AF_INET, ("127.0.0.1", ${server.address().port})),
      "public": dial(socket.AF_INET, ("192.0.2.1", 80)), "cloud": dial(socket.AF_INET, ("169.254.169.254", 80)),
      "six": dial(socket.AF_INET6, ("2001:db8::1", 80)), "links": sorted(n for _, n in socket.if_nameindex())})`);
    assert.match(told.abstract, /^(ECONNREFUSED|EPERM)$/);
    delete told.abstract;
    assert.deepEqual(told, { loopback: "ECONNREFUSED", public: "ENETUNREACH", cloud: "ENETUNREACH", six: "ENETUNREACH", links: ["lo"] });
  });

  test("24 with the network on, sockets without a path are out of reach all the same", async (t) => {
    await listenAbstract(t, "sbx-test-abstract-on");
    const mine = own(t, { network: "on" });
    await mine.start();
    assert.equal(mine.isolation.netns.state, "off");
    if (mine.isolation.landlock.state !== "enforced") {
      t.skip(`unavailable here: landlock, ${mine.isolation.landlock.state}`);
      return;
    }
    const told = await attack(mine, `
s = socket.socket(socket.AF_UNIX)
tell(attempt(lambda: s.connect(b"\\0sbx-test-abstract-on")))`);
    assert.equal(told, "EPERM");
  });

  test("27 its own loopback works", async () => {
    const told = await attack(sandbox, `
l = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(l.getsockname()); a, _ = l.accept()
a.sendall(b"hi"); tell(c.recv(2).decode())`);
    assert.equal(told, "hi");
  });

  test("28, 29 families of sockets that nobody needs are not there, nor raw ones", async () => {
    const told = await attack(sandbox, `
tell([call(41, 198, f, t, p) for f, t, p in ((40, 1, 0), (17, 3, 0), (38, 5, 0), (15, 3, 2), (31, 5, 0), (44, 3, 0), (16, 3, 9))]
   + [call(41, 198, 2, 3, 1), call(41, 198, 16, 3, 0)])`);
    assert.deepEqual(told, [...Array(7).fill("EAFNOSUPPORT"), "EPERM", "ok"]);
  });
});
