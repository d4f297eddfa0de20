// What an isolated command can use up, and how it is ended.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, test } from "node:test";

import { mark } from "../support/processes.js";
import { attack, own, unavailable } from "./support.js";

/** Processes of commands, as a program inside counts them, itself included. */
const COUNT = "import os; print(len([p for p in os.listdir('/proc') if p.isdigit() and int(p) >= 300]))";
const LIMIT = { background: "end" };

describe("isolated: limits and ends", { skip: unavailable, concurrency: 2 }, () => {
  test("41, 72 a fork bomb that never gives up is ended at its limit, again and again, and a server lives on", async (t) => {
    const sandbox = own(t, { processes: 100, killGraceSeconds: 0 });
    await sandbox.shell("python3 -m http.server -b 127.0.0.1 8099 >/dev/null 2>&1 &");
    for (let i = 0; i < 4; i++) {
      const { status, termination } = await sandbox.exec({
        code: "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass", language: "python", timeoutSeconds: 0.5,
      });
      assert.deepEqual([status, termination], ["timedOut", "confirmed"]);
    }
    const fetch = 'import urllib.request; print(urllib.request.urlopen("http://127.0.0.1:8099/").status)';
    assert.equal((await sandbox.run(fetch)).output, "200\n");
  });

  test("46 open files, raised limits, priorities, locked memory", async (t) => {
    const told = await attack(own(t, { openFiles: 64 }), `
import mmap
files = []
def flood():
    while True: files.append(os.open("/dev/null", 0))
def lock():
    m = mmap.mmap(-1, 2**20)
    ctypes.set_errno(0)
    if libc.mlock(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(m))), ctypes.c_size_t(2**20)) != 0: raise OSError(ctypes.get_errno(), "mlock")
result = [attempt(flood)]
for f in files: os.close(f)
def raise_limit():
    try: resource.setrlimit(resource.RLIMIT_NOFILE, (9999, 9999))
    except ValueError as e: raise OSError(1, str(e))
tell(result + [attempt(raise_limit), attempt(lambda: os.nice(-20)), attempt(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))), attempt(lock)])`);
    assert.deepEqual(told.slice(0, 4), ["EMFILE", "EPERM", "EPERM", "EPERM"]);
    assert.match(told[4], /^(ENOMEM|EPERM|EAGAIN)$/);
  });

  test("47, 48 a flood of output, one endless line: kept up to the limit, and ended in time", async (t) => {
    const sandbox = own(t, { maxOutputMb: 2 ** 20 });
    const { status, stdout, droppedBytes } = await sandbox.exec({ command: "cat /dev/zero", timeoutSeconds: 1, maxOutputBytes: 65536 });
    assert.equal(status, "timedOut");
    assert.ok(stdout.length === 65536 && droppedBytes.stdout > 0);
  });

  test("47, 48 a flood of output ends the command at a limit of its own", async (t) => {
    const flooded = own(t, { maxOutputMb: 8, processes: 50 });
    for (const options of [{}, { onStdout() {} }, { mergeStreams: true }]) {
      const { status, signal, outputExceeded, droppedBytes, truncated } = await flooded.exec({ command: "cat /dev/zero", timeoutSeconds: 50, maxOutputBytes: 65536, ...options });
      assert.deepEqual([status, signal, outputExceeded, truncated], ["signalled", "SIGKILL", true, true]);
      assert.ok(droppedBytes.output > 7e6 && droppedBytes.output < 60e6, String(droppedBytes.output));
    }
    const { exitCode, outputExceeded } = await flooded.exec({ command: "head -c 8000000 /dev/zero", maxOutputBytes: 65536 });
    assert.deepEqual([exitCode, outputExceeded], [0, undefined]);
    // Without the option there is a usual limit.
    assert.equal((await own(t).exec({ command: "cat /dev/zero", timeoutSeconds: 50 })).outputExceeded, true);
  });

  test("49, 50 output that was closed, and output that is held open", async (t) => {
    const sandbox = own(t);
    assert.equal((await sandbox.exec({ command: "exec >&- 2>&-; sleep 0.3; exit 5" })).exitCode, 5);
    const { durationMs, backgroundKilled } = await sandbox.exec({ command: "sleep 60 & echo hi", ...LIMIT });
    assert.ok(durationMs < 5000 && backgroundKilled);
  });

  test("51 twenty daemons that ignore all signals and have no environment are gone with their call", async (t) => {
    const sandbox = own(t);
    const { backgroundKilled } = await sandbox.exec({ language: "python", ...LIMIT, code: `
import os, signal, time
for i in range(20):
    if os.fork() == 0:
        os.setsid()
        if os.fork() > 0: os._exit(0)
        for s in range(1, 32):
            if s not in (9, 19): signal.signal(s, signal.SIG_IGN) if s != 32 else 0
        os.execve("/bin/sleep", ["sleep", "600"], {})
` });
    assert.ok(backgroundKilled);
    assert.equal((await sandbox.run(COUNT)).output, "1\n");
  });

  test("52, 53 who ignores the request to end, or stops itself, is killed", async (t) => {
    const sandbox = own(t, { killGraceSeconds: 0.2 });
    for (const command of ["trap '' TERM INT HUP; while :; do sleep 0.1; done", "kill -STOP $$", "kill -STOP 0"]) {
      const { status, exitCode, durationMs } = await sandbox.exec({ command, timeoutSeconds: 0.5 });
      assert.deepEqual([status, exitCode], ["timedOut", 124], command);
      assert.ok(durationMs < 5000);
    }
  });

  test("55 the input is at its end", async (t) => {
    assert.equal((await own(t).shell("wc -c")).output.trim(), "0");
  });

  test("73 chains of processes that fork and end are ended", async (t) => {
    const sandbox = own(t, { killGraceSeconds: 0 });
    const code = "import os\nfor i in range(3): os.fork()\nwhile True:\n  os.setsid() if os.fork() == 0 and os.getsid(0) != os.getpid() else os._exit(0)";
    await sandbox.exec({ code, language: "python", timeoutSeconds: 1, ...LIMIT });
    assert.equal((await sandbox.run(COUNT)).output, "1\n");
  });

  test("79 a close in the middle of a fork bomb leaves nothing", async (t) => {
    const sandbox = own(t, { processes: 100 });
    const { env, alive, started } = mark();
    const running = sandbox.exec({ command: "b() { while :; do b & b; done; }; b", env, timeoutSeconds: 60 }).catch((error) => error);
    await started(5);
    await sandbox.close({ graceSeconds: 0 });
    await running;
    assert.deepEqual(alive(), []);
  });

  test("80 a sandbox that is full runs a further command all the same", async (t) => {
    const sandbox = own(t, { processes: 60, killGraceSeconds: 0 });
    const controller = new AbortController();
    const filler = sandbox.exec({ code: "import os, time\nwhile True:\n  try:\n    if os.fork() == 0: time.sleep(60)\n  except OSError: time.sleep(60)", language: "python", signal: controller.signal, timeoutSeconds: 60 });
    await sleep(1000);
    assert.equal((await sandbox.exec({ argv: ["echo", "hi"] })).stdout, "hi\n");
    controller.abort();
    assert.equal((await filler).status, "cancelled");
    assert.equal((await sandbox.run(COUNT)).output, "1\n");
  });

  test("83 hundreds of commands at once are served; more than there are numbers for are refused", async (t) => {
    const sandbox = own(t, { processes: 2000 });
    const all = await Promise.allSettled(Array.from({ length: 310 }, () => sandbox.exec({ argv: ["sleep", "3"], timeoutSeconds: 60 })));
    const refused = all.filter(({ status }) => status === "rejected");
    for (const { reason } of refused) assert.match(reason.message, /at most 298 commands at once/);
    assert.ok(all.length - refused.length >= 290, String(refused.length));
    assert.equal((await sandbox.shell("echo ok")).output, "ok\n");
  });

  test("what a command has used is told, and the signal that ended it", async (t) => {
    const sandbox = own(t);
    const { usage } = await sandbox.exec({ code: "x = bytearray(50_000_000)\nfor i in range(2_000_000): pass", language: "python" });
    assert.ok(usage.cpuSeconds > 0.01 && usage.peakMemoryBytes > 50_000_000, JSON.stringify(usage));
    const { status, signal, exitCode } = await sandbox.exec({ command: "kill -SEGV $$" });
    assert.deepEqual([status, signal, exitCode], ["signalled", "SIGSEGV", 139]);
  });
});
