// Attempts of a further kind: what a filter may overlook, races, the ends of our own processes, and a control, that the
// attacks reach the machine where nothing is in their way.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import path from "node:path";
import { describe, test } from "node:test";

import { LocalSandbox } from "cloudsandbox";

import { tempDir } from "../support/temp.js";
import { eventually } from "../support/wait.js";
import { attack, own, shared, startUnder, unavailable } from "./support.js";

/** Processes of this machine, but those that have ended. */
function processes() {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name)).flatMap((pid) => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
      const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      const line = readFileSync(`/proc/${pid}/cmdline`, "latin1");
      return state === "Z" ? [] : [{ pid: Number(pid), parent: Number(parent), line }];
    } catch {
      return [];
    }
  });
}

/** Without this an attack that fails for a reason of its own would pass for a wall. */
test("without isolation the attacks reach the machine", async (t) => {
  const sandbox = new LocalSandbox({ isolation: "none" });
  t.after(() => sandbox.close());
  const file = path.join(tempDir(t), "file");
  writeFileSync(file, "canary");
  const server = createServer((socket) => socket.destroy());
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const told = await attack(sandbox, `
tell([read(${JSON.stringify(file)}), attempt(lambda: os.kill(${process.pid}, 0)), os.path.exists("/proc/${process.pid}/stat"),
      attempt(lambda: socket.create_connection(("127.0.0.1", ${server.address().port}))), call(39, 172)])`);
  assert.deepEqual(told, ["ok", "ok", true, "ok", "ok"]);
});

describe("isolated: further attempts", { skip: unavailable }, () => {
  const sandbox = shared();

  test("28, 33 the halves of an argument that the kernel does not look at change nothing", async () => {
    const told = await attack(sandbox, `
high = 1 << 32
tell([call(41, 198, high | 17, 3, 0), call(41, 198, 16, 3, high | 9), call(53, 199, high | 40, 1, 0, 0),
      call(16, 29, 0, high | 0x5412, 0), call(16, 29, 0, high | 0x541C, 0), call(435, 435, 0, 0)])`);
    assert.deepEqual(told, ["EAFNOSUPPORT", "EAFNOSUPPORT", "EAFNOSUPPORT", "EPERM", "EPERM", "ENOSYS"]);
  });

  test("12 each kind of namespace, by both calls", async () => {
    const told = await attack(sandbox, `
kinds = (0x10000000, 0x20000, 0x20000000, 0x40000000, 0x8000000, 0x4000000, 0x2000000, 0x80)
tell([call(272, 97, k) for k in kinds] + [call(56, 220, k | 17, 0, 0, 0, 0) for k in kinds])`);
    assert.deepEqual(told, Array(16).fill("EPERM"));
  });

  test("26 datagrams reach no other machine either", async () => {
    const told = await attack(sandbox, `
def send(family, address):
    return attempt(lambda: socket.socket(family, socket.SOCK_DGRAM).sendto(b"x", address))
tell([send(socket.AF_INET, (a, 53)) for a in ("192.0.2.1", "169.254.169.254", "255.255.255.255")]
   + [send(socket.AF_INET6, ("2001:db8::1", 53))])`);
    for (const came of told) assert.match(came, /^(ENETUNREACH|EACCES|EADDRNOTAVAIL)$/);
  });

  test("32 ids are the sandbox's own, and nothing of the machine's stays behind them", async () => {
    const { stdout } = await sandbox.exec({ command: "grep -E '^(Uid|Gid|Cap...):' /proc/self/status" });
    for (const line of stdout.trim().split("\n")) {
      assert.match(line, line.startsWith("Cap") ? /^Cap\w+:\t0+$/ : /^.id:\t1000\t1000\t1000\t1000$/);
    }
  });

  test("37 a folder that is swapped for a link while the host reads from it", async (t) => {
    const mine = own(t);
    await mine.shell("mkdir d; echo inside > d/passwd; ln -s /etc l");
    const swapping = mine.exec({
      code: `
import os, time
end = time.time() + 3
while time.time() < end:
    os.rename("d", "x"); os.rename("l", "d"); os.rename("d", "l"); os.rename("x", "d")`,
    });
    let swapped = false;
    let reads = 0;
    const watching = swapping.then(() => (swapped = true));
    while (!swapped) {
      const content = await mine.readFile("d/passwd").catch((error) => error);
      assert.ok(content === null || content === "inside\n" || content.code?.startsWith("ERR_SANDBOX_"), String(content));
      reads++;
    }
    await watching;
    assert.equal((await swapping).exitCode, 0);
    assert.ok(reads > 10, String(reads));
  });

  test("42 zombies stop at the limit", async (t) => {
    const mine = own(t, { processes: 50 });
    const told = await attack(mine, `
count = 0
def flood():
    global count
    while True:
        if os.fork() == 0: os._exit(0)
        count += 1
came = attempt(flood)
tell([came, count])`);
    assert.equal(told[0], "EAGAIN");
    assert.ok(told[1] < 50, String(told[1]));
    assert.equal((await mine.shell("echo alive")).output, "alive\n");
  });

  test("43 one process does not get more memory than all may have", async (t) => {
    const mine = own(t, { memoryMb: 256, limits: "best-effort" });
    const result = await mine.exec({ code: "b = bytearray(1 << 30); print(len(b))" });
    assert.notEqual(result.exitCode, 0);
    assert.equal(result.stdout, "");
    assert.equal((await mine.shell("echo alive")).output, "alive\n");
  });

  test("43 many processes do not either: the command that has most is ended, and says so; others live on", async (t) => {
    const mine = own(t, { memoryMb: 256 });
    await mine.start();
    assert.equal(mine.isolation.cgroup_memory.state, "partial");
    const bomb = `
import os, time
for i in range(50):
    if os.fork() == 0:
        block = bytearray(100_000_000); time.sleep(60); os._exit(0)
print("full", flush=True); time.sleep(60)`;
    const bystander = mine.exec({ command: "read line; echo $line", stdin: "lives\n" });
    const ended = await mine.exec({ code: bomb, language: "python", timeoutSeconds: 50 });
    assert.deepEqual([ended.status, ended.signal, ended.oomKilled], ["signalled", "SIGKILL", true]);
    assert.equal((await bystander).stdout, "lives\n");
    const short = await mine.run(bomb, { timeoutSeconds: 50 });
    assert.deepEqual([short.exitCode, short.oomKilled], [137, true]);
    assert.equal((await mine.shell("cat /proc/[0-9]*/comm 2>/dev/null | grep -c python")).output, "0\n");
    // What children share with their parent counts once.
    const shared = `
import os, time
block = bytearray(120_000_000)
for i in range(6):
    if os.fork() == 0: time.sleep(0.5); os._exit(0)
for i in range(6): os.wait()
print("fine")`;
    assert.equal((await mine.exec({ code: shared, language: "python" })).stdout, "fine\n");
  });

  test("43 memory that no process has: System V's segments and sets are small, and there are no queues", async (t) => {
    const told = await attack(own(t), `
def come(made): return "ok" if made >= 0 else name(ctypes.get_errno())
tell([come(libc.shmget(0, ctypes.c_size_t(size), 0o1600)) for size in (56, 16384, 16385, 1 << 32)]
    + [come(libc.semget(0, sems, 0o1600)) for sems in (17, 32, 33)] + [come(libc.msgget(0, 0o1600))])`);
    assert.deepEqual(told, ["ok", "ok", "ENOSPC", "ENOSPC", "ok", "ok", "ENOSPC", "ENOSPC"]);
  });

  test("46 what the kernel counts for the user, who is on the machine too: signals that wait, and watches of files", async (t) => {
    const mine = own(t);
    const told = await attack(mine, `
import signal
number = signal.SIGRTMIN + 3
signal.pthread_sigmask(signal.SIG_BLOCK, [number])
waiting = 0
while waiting < 5000 and libc.sigqueue(os.getpid(), number, ctypes.c_void_p(0)) == 0: waiting += 1
watching = 0
while watching < 200 and libc.inotify_init1(0) >= 0: watching += 1
tell([waiting, watching])`);
    assert.ok(told[0] <= 1024, `${told[0]} signals`);
    assert.equal(told[1], 16);
    const other = own(t);
    assert.equal(await attack(other, "tell(libc.inotify_init1(0) >= 0)"), true);
  });

  test("39 a lease on a file, or signals when a folder changes: neither holds up the machine, nor tells of it", async (t) => {
    const mine = own(t);
    const told = await attack(mine, `
import fcntl
own = os.open("file", os.O_RDONLY | os.O_CREAT, 0o600)
folder = os.open("/usr", os.O_RDONLY)
tell([attempt(lambda: fcntl.fcntl(own, 1024, fcntl.F_RDLCK)), attempt(lambda: fcntl.fcntl(folder, 1026, 1)), attempt(lambda: fcntl.flock(own, fcntl.LOCK_EX))])`);
    assert.deepEqual(told, ["EPERM", "EPERM", "ok"]);
  });

  for (const [who, depth] of [["the helper outside", 1], ["the first process", 2]]) {
    test(`54 nothing outlives ${who}`, async (t) => {
      const before = new Set(processes().map(({ pid }) => pid));
      const mine = own(t, { onLost: "reject" });
      const mark = `3${process.pid}.${depth}`;
      const daemon = `(trap '' TERM INT HUP; setsid sleep ${mark} &)`;
      const command = mine.shell(`${daemon}; ${daemon}; sleep ${mark}`, { timeoutSeconds: 600 }).catch((error) => error);
      const alive = () => processes().filter(({ line }) => line.startsWith(`sleep\0${mark}\0`));
      await eventually("all run", () => alive().length === 3);
      const all = processes();
      let victim = all.find(({ pid, parent, line }) => parent === process.pid && !before.has(pid) && line.includes("sbx_guard"));
      if (depth === 2) victim = all.find(({ parent }) => parent === victim?.pid);
      assert.ok(victim);
      process.kill(victim.pid, "SIGKILL");
      await eventually("nothing is left", () => alive().length === 0);
      const outcome = await command;
      assert.ok(outcome instanceof Error || outcome.exitCode !== 0, JSON.stringify(outcome));
    });
  }

  test("54 close() right behind the helper's end waits for the kernel to end the rest", async (t) => {
    for (let i = 0; i < 5; i++) {
      const before = new Set(processes().map(({ pid }) => pid));
      const mine = own(t);
      const { stdout } = await mine.exec({ command: "for i in $(seq 100); do sleep 300 & done; echo up" });
      assert.equal(stdout, "up\n");
      const of = (parents) => processes().filter(({ pid, parent }) => parents.has(parent) && !before.has(pid));
      const helpers = of(new Set([process.pid]));
      assert.equal(helpers.length, 1);
      const firsts = new Set(of(new Set([helpers[0].pid])).map(({ pid }) => pid));
      process.kill(helpers[0].pid, "SIGKILL");
      await mine.close();
      assert.deepEqual(processes().filter(({ pid }) => firsts.has(pid)), []);
    }
  });
});

/** What a start comes to where /proc was made as `cover` says. */
function startWith(t, cover, options) {
  return startUnder(t, `exec unshare -Urmpf --mount-proc sh -c '${cover} && exec "$@"' sh "$@"`, options);
}

describe("isolated: a /proc of the machine that hides something", { skip: unavailable }, () => {
  for (const [what, cover] of [
    ["a folder under a file system in memory", "mount -t tmpfs none /proc/irq"],
    ["/proc/sys read-only, as Docker has it", "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys"],
  ]) {
    test(`58 ${what}: named, and what accept is for`, (t) => {
      if (spawnSync("unshare", ["-Ur", "true"]).status !== 0) return t.skip("unavailable here: user namespaces of unshare(1)");
      assert.match(startWith(t, cover), /^ERR_SANDBOX_ISOLATION_UNAVAILABLE .*Layer procfs: EPERM: /);
      assert.equal(startWith(t, cover, { accept: ["procfs"] }), "ran");
    });
  }
});
