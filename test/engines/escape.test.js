// What code in a container tries to get out, to stay, or to use up the machine; on the real engines.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { engines, keepsLimits, open } from "./support.js";

/** Lines of a command's output. */
async function lines(sandbox, command) {
  const { output, exitCode } = await sandbox.shell(command);
  assert.equal(exitCode, 0, output);
  return output.trim().split("\n");
}

for (const engine of engines) {
  describe(`escapes, ${engine.name}`, { concurrency: 2 }, () => {
    test("who it is: nobody, without capabilities, behind seccomp, and with no way to more", async (t) => {
      const sandbox = open(t, engine).make();
      const status = Object.fromEntries((await lines(sandbox, "cat /proc/self/status")).map((line) => line.split(":").map((it) => it.trim())));
      assert.match(status.Uid, /^65534\b/);
      for (const set of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]) assert.match(status[set], /^0+$/, set);
      assert.deepEqual([status.NoNewPrivs, status.Seccomp], ["1", "2"]);
      // Programs that would make it root do not.
      assert.deepEqual(await sandbox.shell("cp /usr/bin/id ./id && chmod u+s ./id && ./id -u"), { output: "65534\n", exitCode: 0 });
      const tries = ["chroot / true", "nsenter -t 1 -m true", "mknod x b 8 0", "python3 -c 'import os; os.setuid(0)'", "chown 0 id", "cat /etc/shadow"];
      // Podman lets a process have users of its own, in which it may do no more to what is outside.
      for (const line of [...tries, "unshare -r cat /etc/shadow", "unshare -rm touch /usr/x", "unshare -rm sh -c 'cat /dev/mem'"]) {
        assert.notEqual((await sandbox.shell(line)).exitCode, 0, line);
      }
    });

    test("what it sees: none of the machine's processes, disks and sockets, and no engine", async (t) => {
      const sandbox = open(t, engine).make();
      assert.ok((await lines(sandbox, "ls -d /proc/[0-9]*")).length < 16, "processes");
      const mounts = await lines(sandbox, "cut -d' ' -f2 /proc/mounts");
      const strange = mounts.filter((it) => !/^\/($|proc|sys|dev|etc\/(hosts|hostname|resolv\.conf)$|tmp$|workspace$|run\/\.containerenv$|run$|var\/tmp$|run\/secrets)/.test(it));
      assert.deepEqual(strange, []);
      const found = await sandbox.shell("find / -xdev -type s 2>/dev/null; ls /var/run/docker.sock /run/docker.sock /run/podman/podman.sock 2>/dev/null; cat /proc/net/unix | grep -c sock; true");
      assert.doesNotMatch(found.output, /docker|podman/);
      const { output } = await sandbox.shell("cat /etc/shadow; cat /proc/1/environ; cat /dev/mem; cat /proc/kcore | head -c 1; dmesg | head -1; echo 1 > /proc/sys/kernel/core_pattern; echo b > /proc/sysrq-trigger; echo end");
      assert.match(output, /end\n$/);
      assert.doesNotMatch(output, /root:/);
    });

    test("what it can write: its two folders, and nothing of the image", async (t) => {
      const sandbox = open(t, engine).make();
      const { output } = await sandbox.shell("for d in / /usr /etc /var /home /root /opt /srv /usr/local/bin; do touch $d/x 2>/dev/null && echo $d; done; touch a /tmp/a && echo own; echo '#!/bin/sh\necho ran' > p && chmod +x p && ./p");
      assert.equal(output, "own\nran\n");
    });

    test("what can be written is what has a size of its own, whatever an engine mounts by itself; also for user 0", async (t) => {
      const { make } = open(t, engine);
      for (const user of ["65534:65534", "0:0"]) {
        const found = await lines(make({ user }), "for d in $(cut -d' ' -f2 /proc/mounts) /run /var/tmp /var /usr /etc /root; do ( : >$d/probe ) 2>/dev/null && echo $d; done | grep -v ^/dev | sort -u");
        assert.deepEqual(found, ["/tmp", "/workspace"], user);
      }
      // Where such a place is wanted for something else, it is that.
      for (const workingDir of ["/run", "/run/work", "/var/tmp", "/var/tmp/work"]) {
        const sandbox = make({ workingDir, mounts: [{ source: "/usr/share", target: "/run/data" }].filter(() => workingDir !== "/run") });
        await sandbox.writeFile("f", "x\n");
        assert.deepEqual(await sandbox.shell("cat f; pwd"), { output: `x\n${workingDir}\n`, exitCode: 0 });
        assert.equal(await sandbox.readFile("f"), "x\n");
      }
      const writable = make({ readOnlyRoot: false, user: "0:0" });
      assert.equal((await writable.shell("touch /run/x /var/tmp/x && echo on")).output, "on\n");
    });

    test("a folder that was mounted to be read is not written to, also by user 0", async (t) => {
      const { make } = open(t, engine);
      const { mkdtempSync, rmSync, writeFileSync, readdirSync, chmodSync } = await import("node:fs");
      // Not below the folder of the engine's socket; the engine's own folder is refused.
      const dir = mkdtempSync("/tmp/cloudsandbox-mount-");
      t.after(() => rmSync(dir, { recursive: true }));
      chmodSync(dir, 0o777);
      writeFileSync(`${dir}/given`, "read me\n");
      for (const user of ["65534:65534", "0:0"]) {
        const sandbox = make({ user, mounts: [{ source: dir, target: "/data" }] });
        assert.deepEqual(await sandbox.shell("cat /data/given"), { output: "read me\n", exitCode: 0 });
        const { exitCode } = await sandbox.shell("touch /data/x || mount -o remount,rw /data && touch /data/x");
        assert.notEqual(exitCode, 0);
      }
      const writer = make({ mounts: [{ source: dir, target: "/data", readOnly: false }] });
      assert.deepEqual(await writer.shell("echo made > /data/made; cat /data/made"), { output: "made\n", exitCode: 0 });
      assert.deepEqual(readdirSync(dir).sort(), ["given", "made"]);
    });

    test("a fork bomb ends at the limit on processes, and its sandbox is usable after it", { skip: !keepsLimits(engine) }, async (t) => {
      const { make } = open(t, engine);
      const [bombed, neighbour] = [make({ pids: 64, memoryMb: 512 }), make()];
      await neighbour.start();
      const bomb = bombed.exec({ command: "b() { b | b & }; b; sleep 30", timeoutSeconds: 5 });
      assert.deepEqual(await neighbour.shell("echo alive"), { output: "alive\n", exitCode: 0 });
      const { status, output } = await bomb;
      assert.match(output, /fork|Resource temporarily unavailable/i);
      assert.ok(["timedOut", "exited"].includes(status), status);
      assert.deepEqual(await bombed.shell("sleep 1; echo usable", { timeoutSeconds: 60 }), { output: "usable\n", exitCode: 0 });
    });

    test("a memory bomb is killed at the limit, and called so", { skip: !keepsLimits(engine) }, async (t) => {
      const { make } = open(t, engine);
      const sandbox = make({ memoryMb: 128 });
      await sandbox.start();
      const result = await sandbox.exec({ code: "x = b''\nwhile True: x += b'y' * 10_000_000\n", language: "python", timeoutSeconds: 60 });
      assert.deepEqual([result.exitCode, result.oomKilled], [137, true], JSON.stringify(result));
      assert.deepEqual(await sandbox.shell("echo usable"), { output: "usable\n", exitCode: 0 });
      // What is killed by itself is not called so.
      const own = await sandbox.exec({ command: "kill -9 $$" });
      assert.deepEqual([own.exitCode, own.oomKilled], [137, undefined]);
    });

    test("a full disk is the container's own, and of the size that was given", async (t) => {
      const { make } = open(t, engine);
      const sandbox = make({ diskMb: 32 });
      const { output } = await sandbox.shell("head -c 200000000 /dev/zero > big; wc -c < big; head -c 300000000 /dev/zero > /tmp/big; wc -c < /tmp/big; head -c 10 /dev/zero > /dev/shm/x 2>/dev/null; rm -f big /tmp/big; echo small > s; cat s");
      const [first, second] = output.match(/^\d+$/gm).map(Number);
      assert.ok(first <= 32 << 20 && first > 30 << 20, output);
      assert.ok(second <= 65 << 20, output);
      assert.match(output, /No space left on device/);
      assert.match(output, /small\n$/);
    });

    test("with the network off nothing is reached: IPv4, IPv6, names, other containers, the machine", async (t) => {
      const sandbox = open(t, engine).make();
      const code = `
import socket
def tried(name, act):
    try: act(); print(name, "REACHED")
    except OSError as error: print(name, "refused")
socket.setdefaulttimeout(5)
tried("ipv4", lambda: socket.create_connection(("1.1.1.1", 80)))
tried("ipv6", lambda: socket.create_connection(("2606:4700:4700::1111", 80)))
tried("name", lambda: socket.getaddrinfo("example.com", 80))
def dns():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.sendto(b"x", ("8.8.8.8", 53)); s.recv(1)
tried("udp", dns)
tried("gateway", lambda: socket.create_connection(("172.17.0.1", 22)))
tried("metadata", lambda: socket.create_connection(("169.254.169.254", 80)))
tried("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
tried("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3))
print("interfaces", sorted(name for _, name in socket.if_nameindex()))`;
      const { output } = await sandbox.run(code);
      assert.doesNotMatch(output, /REACHED/);
      assert.equal((output.match(/refused/g) ?? []).length, 8, output);
      const names = /interfaces (.*)/.exec(output)[1];
      // The kernel puts devices of tunnels into every network; they are down.
      assert.doesNotMatch(names, /eth|tap|veth/);
    });

    test("a network that was asked for is there", { skip: engine.name === "rootless" }, async (t) => {
      const sandbox = open(t, engine).make({ network: "bridge" });
      const { output } = await sandbox.shell("cat /proc/net/dev");
      assert.match(output, /eth0/);
    });
  });
}
