// Files on the real engines: what is read, by whichever way, is what a command in the container reads.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import net from "node:net";
import path from "node:path";
import { describe, test } from "node:test";

import { rejection } from "../support/wait.js";
import { ask, engines, open, removeContainer } from "./support.js";

const INVALID = "ERR_SANDBOX_INVALID_ARG";

/** A socket before the engine's, that tells which requests go through it. */
async function listener(t, engine) {
  const dir = mkdtempSync("/tmp/cloudsandbox-listener-");
  const seen = [];
  const sockets = new Set();
  const server = net.createServer({ allowHalfOpen: true }, (client) => {
    const upstream = net.connect({ path: engine.socket, allowHalfOpen: true });
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => {}).on("close", () => sockets.delete(socket));
    }
    client.on("data", (chunk) => {
      const line = /^[A-Z]+ \S+(?= HTTP\/1\.1)/.exec(chunk.toString("latin1"))?.[0];
      if (line) seen.push(line.replace(/\/v[\d.]+/, "").replace(/\/[0-9a-f]{64}/, "/{id}"));
    });
    client.pipe(upstream).pipe(client);
  });
  const socketPath = path.join(dir, "s");
  await new Promise((resolve) => server.listen(socketPath, () => resolve(undefined)));
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
    rmSync(dir, { recursive: true });
  });
  /** How often each way was gone since the last call. */
  const ways = () => {
    const lines = seen.splice(0);
    const count = (pattern) => lines.filter((line) => pattern.test(line)).length;
    return { archives: count(/^GET .*\/archive\?/), execs: count(/^POST .*\{id\}\/exec$/), puts: count(/^PUT /) };
  };
  return { host: `unix://${socketPath}`, ways };
}

const BY_ARCHIVE = { archives: 1, execs: 0, puts: 0 };
const BY_PROCESS = { archives: 0, execs: 1, puts: 0 };

for (const engine of engines) {
  const plain = engine.name === "docker" ? BY_PROCESS : BY_ARCHIVE;

  describe(`files, ${engine.name}`, { concurrency: 2 }, () => {
    for (const readOnlyRoot of [true, false]) {
      test(`C031 every kind of path, readOnlyRoot: ${readOnlyRoot}`, async (t) => {
        const { make } = open(t, engine);
        const { host, ways } = await listener(t, engine);
        const sandbox = make({ host, readOnlyRoot });
        const long = "n".repeat(200);
        await sandbox.writeFile("f", "content\n");
        await sandbox.writeFile("deep/er/x", "deep");
        await sandbox.shell(
          "ln -s f link; ln -s /etc away; ln -s deep dirlink; ln -s none dangling; ln -s loop loop; ln f hard; : >empty; mkfifo pipe; " +
            `mkdir -m 700 closed; echo c >closed/x; echo p >private; chmod 600 private; printf l >${long}; printf 'n' >'ümläut %&#+ '; ` +
            "mkdir aa 'a?'; echo aa >aa/x; echo pattern >'a?/x'; echo 1 >'[1]'; echo b >'b\\c'; printf raw >\"$(printf 'a\\377b')\"; printf tmp >/tmp/t; [ ! -w /var/tmp ] || printf v >/var/tmp/v",
        );
        const passwd = (await sandbox.shell("cat /etc/passwd")).output;
        assert.equal(ways().puts, 0);
        const simple = { f: "content\n", "./f": "content\n", "~/f": "content\n", "/workspace//f": "content\n", "deep/er/x": "deep", hard: "content\n",
          [long]: "l", "ümläut %&#+ ": "n", "/tmp/t": "tmp", "/etc/passwd": passwd };
        for (const [name, expected] of Object.entries(simple)) {
          assert.equal(await sandbox.readFile(name), expected, name);
          assert.deepEqual(ways(), plain, name);
        }
        const others = { link: "content\n", "away/passwd": passwd, "dirlink/er/x": "deep", dangling: null, loop: null, empty: "", pipe: INVALID,
          "a?/x": "pattern\n", "[1]": "1\n", "b\\c": "b\n", "[a]a/x": null, "closed/x": "c\n", private: "p\n", deep: INVALID, "f/": INVALID, "f/x": INVALID, none: null, "none/x": null, "deep/../f": "content\n" };
        for (const [name, expected] of Object.entries(others)) {
          assert.equal(await sandbox.readFile(name).catch(({ code }) => code), expected, name);
          assert.deepEqual(ways(), BY_PROCESS, name);
        }
        assert.match(await sandbox.readFile("/proc/self/status"), /^Name:/);
        assert.deepEqual(ways(), BY_PROCESS);
        if (!readOnlyRoot) assert.equal(await sandbox.readFile("/var/tmp/v"), "v");
      });
    }

    test("what only root may read is not read for a user who may not", async (t) => {
      const sandbox = open(t, engine).make({ user: "1000:1000" });
      await sandbox.start();
      const hidden = (await sandbox.shell("find /etc /var /root -type f ! -readable 2>/dev/null | head -n 1; ls -d /root/.* >/dev/null 2>&1 || echo closed")).output;
      const [name] = hidden.split("\n");
      if (!name.startsWith("/")) return t.skip("the image has no such file");
      assert.equal((await rejection(sandbox.readFile(name))).code, INVALID);
    });

    test("bytes of every kind and of many sizes, and more than may be read", async (t) => {
      const { make } = open(t, engine);
      const { host, ways } = await listener(t, engine);
      const sandbox = make({ host });
      for (const length of [1, 511, 512, 513, 65_537, 5_000_000]) {
        const bytes = Uint8Array.from({ length }, (_, index) => (index * 7919) >> 3);
        await sandbox.writeFile("bytes", bytes);
        ways();
        assert.deepEqual(await sandbox.readBytes("bytes"), bytes);
        assert.deepEqual(ways(), plain, String(length));
      }
      assert.equal((await rejection(sandbox.readBytes("bytes", { maxBytes: 4_999_999 }))).code, "ERR_SANDBOX_TOO_LARGE");
      await Promise.all(Array.from({ length: 12 }, async (_, index) => {
        await sandbox.writeFile(`many${index}`, `${index}`.repeat(1000));
        assert.equal(await sandbox.readFile(`many${index}`), `${index}`.repeat(1000));
      }));
    });

    test("a file that grows, or begins anew, while it is read: what comes is a part of what was there", async (t) => {
      const sandbox = open(t, engine).make();
      const writer = "import time\nn = 0\nwith open('log', 'w') as f:\n  while n < 4000000:\n    f.write(''.join('%07d\\n' % i for i in range(n, n + 20000)))\n    f.flush()\n    n += 20000\n    time.sleep(0.005)\n";
      await sandbox.writeFile("writer.py", writer);
      await sandbox.shell("python3 writer.py >/dev/null 2>&1 & sleep 0.3");
      let last = 0;
      for (let i = 0; i < 6; i += 1) {
        const text = await sandbox.readFile("log");
        const count = Math.floor(text.length / 8);
        assert.ok(count >= last);
        last = count;
        for (let line = 0; line < count; line += 997) assert.equal(Number(text.slice(line * 8, line * 8 + 7)), line);
      }
    });

    test("a container that is paused, or gone, does not show what its file systems in memory hide", async (t) => {
      const sandbox = open(t, engine).make({ workingDir: "/var/lib/dpkg", user: "0:0" });
      await sandbox.writeFile("status", "changed\n");
      assert.equal(await sandbox.readFile("status"), "changed\n");
      ask(engine, "POST", `/containers/${sandbox.sandboxId}/pause`);
      const got = await sandbox.readFile("status").catch(({ code }) => code);
      // Without rights over control groups an engine only says that it pauses.
      assert.equal(got, engine.name === "rootless" && got === "changed\n" ? got : "ERR_SANDBOX_CONFLICT");
      ask(engine, "POST", `/containers/${sandbox.sandboxId}/unpause`);
      assert.equal(await sandbox.readFile("status"), "changed\n");
      removeContainer(engine, sandbox.sandboxId);
      assert.equal((await rejection(sandbox.readFile("status"))).code, "ERR_SANDBOX_LOST");
    });
  });
}
