// The isolated sandbox's own processes, as commands see them and cannot touch them. The number in front of a title is
// the attempt's in docs/isolation.md.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { attack, lacks, own, shared, unavailable } from "./support.js";

describe("isolated: processes", { skip: unavailable, concurrency: 2 }, () => {
  const sandbox = shared();

  test("1, 2 what the first process has in memory, open and around it is closed", async () => {
    const told = await attack(sandbox, `
tell({**{f: read("/proc/1/" + f) for f in ("environ", "mem", "maps", "auxv")},
      **{d: attempt(lambda: os.listdir("/proc/1/" + d)) for d in ("fd", "root", "cwd", "map_files")}})`);
    for (const [what, came] of Object.entries(told)) assert.match(came, /^(EACCES|EPERM)$/, what);
  });

  test("3 arguments of our processes hold neither options nor paths of the machine", async () => {
    const told = await attack(sandbox, `
tell({p: open("/proc/%s/cmdline" % p).read() for p in os.listdir("/proc") if p.isdigit() and int(p) < 300})`);
    assert.ok(Object.keys(told).length >= 2);
    for (const text of Object.values(told)) assert.equal(text, "sbx_guard\0--isolated\0");
  });

  test("4, 5 processes of the machine are not there", async () => {
    const told = await attack(sandbox, `
own = [int(p) for p in os.listdir("/proc") if p.isdigit()]
tell({"host": os.path.exists("/proc/${process.pid}/stat") and ${process.pid} not in own, "count": len(own),
      "kill": attempt(lambda: os.kill(4000000, 0))})`);
    assert.deepEqual([told.host, told.kill], [false, "ESRCH"]);
    assert.ok(told.count < 40, String(told.count));
  });

  test("6 no signal reaches the first process", async () => {
    const told = await attack(sandbox, `
import fcntl
a, b = socket.socketpair()
owner = attempt(lambda: fcntl.fcntl(a.fileno(), fcntl.F_SETOWN, 1))
tell([attempt(lambda: os.kill(1, s)) for s in (9, 15, 19)] + [owner])`);
    assert.deepEqual(told, ["EPERM", "EPERM", "EPERM", "EPERM"]);
    assert.equal((await sandbox.shell("echo still here")).output, "still here\n");
  });

  test("7 kill(-1) is refused, and others live on", async (t) => {
    const mine = own(t);
    const other = mine.exec({ command: "sleep 1; echo done" });
    assert.equal(await attack(mine, "tell(attempt(lambda: os.kill(-1, 9)))"), "EPERM");
    assert.equal((await other).stdout, "done\n");
  });

  test("8, 9 ptrace and what else opens another process", async () => {
    const told = await attack(sandbox, `
tell([call(101, 117, 16, 1, 0, 0), call(101, 117, 0, 0, 0, 0), call(310, 270, os.getpid(), 0, 0, 0, 0, 0),
      call(311, 271, os.getpid(), 0, 0, 0, 0, 0), call(438, 438, 0, 0, 0), call(312, 272, 1, 1, 0, 0, 0), call(440, 440, 0, 0, 0, 0, 0)])`);
    assert.deepEqual(new Set(told), new Set(["EPERM"]));
  });

  test("12, 57 no new namespace, by whatever call", async () => {
    const told = await attack(sandbox, `
tell([call(272, 97, f) for f in (0x10000000, 0x20000, 0x20000000, 0x40000000, 0x80)]
   + [call(56, 220, f | 17, 0, 0, 0, 0) for f in (0x10000000, 0x20000, 0x40000000)] + [call(308, 268, 0, 0)])`);
    assert.deepEqual(new Set(told), new Set(["EPERM"]));
  });

  test("13 clone3 is not there; threads and forks are", async () => {
    const told = await attack(sandbox, `
import threading
seen = []
t = threading.Thread(target=lambda: seen.append(1)); t.start(); t.join()
pid = os.fork()
if pid == 0: os._exit(7)
tell([call(435, 435, 0, 0), seen, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])])`);
    assert.deepEqual(told, ["ENOSYS", [1], 7]);
  });

  test("14 calls of another kind: x32 is not there, 32 bits end the process", { skip: process.arch !== "x64" }, async () => {
    const told = await attack(sandbox, `
import mmap
page = mmap.mmap(-1, 4096, prot=7)
page.write(b"\\xb8\\x14\\x00\\x00\\x00\\xcd\\x80\\xc3") # mov eax, 20; int 0x80; ret
pid = os.fork()
if pid == 0:
    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
    os._exit(0)
tell([call(0x40000000 + 39, 0), os.WTERMSIG(os.waitpid(pid, 0)[1])])`);
    assert.deepEqual(told, ["ENOSYS", 31]);
  });

  test("65 the memory's layout stays random", async () => {
    assert.deepEqual(await attack(sandbox, "tell([call(135, 92, 0x40000), call(135, 92, 0xffffffff)])"), ["EPERM", "ok"]);
  });

  test("67, 68 what one command has started another one can use, and end", async (t) => {
    const mine = own(t);
    const { stdout } = await mine.exec({ command: "python3 -m http.server -b 127.0.0.1 8099 >/dev/null 2>&1 & echo $!" });
    const fetch = 'import urllib.request; print(urllib.request.urlopen("http://127.0.0.1:8099/").status)';
    const wait = "for i in $(seq 100); do (: </dev/tcp/127.0.0.1/8099) 2>/dev/null && break; sleep 0.05; done";
    await mine.shell(wait);
    assert.equal((await mine.run(fetch)).output, "200\n");
    await mine.shell(`kill ${stdout.trim()}; while kill -0 ${stdout.trim()} 2>/dev/null; do sleep 0.01; done`);
    assert.match((await mine.run(fetch)).output, /Connection refused/);
  });

  test("69 a guard cannot be signalled, and its limit holds", async (t) => {
    const mine = own(t);
    if (await lacks(t, mine, "pidns")) return;
    const told = await attack(mine, `
import fcntl
guard = os.getppid()
a, b = socket.socketpair()
class Ex(ctypes.Structure): _fields_ = [("type", ctypes.c_int), ("pid", ctypes.c_int)]
tell([guard < 300] + [attempt(lambda: os.kill(guard, s)) for s in (9, 19, 15)] + [
  call(200, 130, guard, 9), call(234, 131, guard, guard, 9), call(129, 138, guard, 9, 0), call(297, 240, guard, guard, 9, 0),
  call(434, 434, guard, 0), call(424, 424, 0, 9, 0, 0), attempt(lambda: fcntl.fcntl(a.fileno(), 8, guard)),
  attempt(lambda: fcntl.fcntl(a.fileno(), 8, -guard)), attempt(lambda: fcntl.fcntl(a.fileno(), 15, bytes(Ex(1, guard))))] +
  [attempt(lambda: fcntl.ioctl(a.fileno(), by, ctypes.c_int(whom))) for by in (0x8901, 0x8902) for whom in (guard, -guard, os.getpid())])`);
    assert.equal(told.shift(), true);
    assert.equal(told.splice(8, 1)[0], "ENOSYS");
    assert.deepEqual(new Set(told), new Set(["EPERM"]));
    const stubborn = "import os, time\nwhile True:\n  try: os.kill(os.getppid(), 19)\n  except OSError: time.sleep(0.0005)";
    const { status, durationMs } = await mine.exec({ code: stubborn, language: "python", timeoutSeconds: 1 });
    assert.equal(status, "timedOut");
    assert.ok(durationMs < 5000, String(durationMs));
  });

  test("70 limits and priorities of others cannot be set, one's own can be lowered", async () => {
    const told = await attack(sandbox, `
limits = (ctypes.c_ulong * 2)(0, 0)
def forbidden(pid):
    return [call(302, 261, pid, 7, ctypes.byref(limits), 0), call(203, 122, pid, 8, ctypes.byref(ctypes.c_ulong(1))),
            attempt(lambda: os.setpriority(os.PRIO_PROCESS, pid, 19)), write("/proc/%d/oom_score_adj" % pid)]
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
tell(forbidden(1) + forbidden(os.getppid()))`);
    for (const came of told) assert.match(came, /^(EPERM|EACCES)$/);
  });

  test("74 what cannot be read is ended like everything else", async (t) => {
    const mine = own(t);
    const { output } = await mine.exec({ background: "end", timeoutSeconds: 20, code: `
import ctypes, os, time
if os.fork() == 0:
    os.setsid(); ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
    time.sleep(600)
print("left")`, language: "python" });
    assert.equal(output, "left\n");
    const count = "import os; print(len([p for p in os.listdir('/proc') if p.isdigit() and int(p) >= 300]))";
    assert.equal((await mine.run(count)).output, "1\n");
  });

  test("81 guards have small numbers and commands never, after many forks too", async (t) => {
    const mine = own(t);
    if (await lacks(t, mine, "pidns")) return;
    await mine.exec({ code: "import os\nfor i in range(34000):\n  p = os.posix_spawn('/bin/true', ['true'], {}) if i % 50 == 0 else os.fork()\n  if p == 0: os._exit(0)\n  os.waitpid(p, 0)", language: "python", timeoutSeconds: 120 });
    const told = await attack(mine, "tell([os.getpid(), os.getppid()])");
    assert.ok(told[0] >= 300 && told[1] < 300, String(told));
  });
});
