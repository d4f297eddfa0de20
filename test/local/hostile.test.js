// Commands that do all they can to outlive their limit and their sandbox.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";

import { LocalSandbox } from "cloudsandbox";

import { copyPackage, nodeForNobody, startNode } from "../support/node.js";
import { mark } from "../support/processes.js";
import { tempDir } from "../support/temp.js";
import { HANG_MS } from "../support/wait.js";

// A user that nobody else is: its limit of processes is the bomb's alone.
const UNUSED_UID = 64_000 + (process.pid % 1000);

const has = (program) => spawnSync(program, ["--version"]).status === 0;

function processesOf(uid) {
  const { stdout } = spawnSync("ps", ["-o", "pid=", "-U", String(uid)], { encoding: "utf8" });
  return stdout.split("\n").filter((line) => line.trim() !== "");
}

const BOMB = `import os
while True:
  try:
    if os.fork() == 0: os.setsid()
  except OSError: pass
`;

const RUN_BOMB = `
  import { LocalSandbox } from "cloudsandbox";
  const sandbox = new LocalSandbox({ isolation: "none", tempDir: process.env.DIR, killGraceSeconds: 0 });
  await sandbox.writeFile("b.py", process.env.BOMB);
  const first = await sandbox.exec({ command: process.env.LINE, timeoutSeconds: Number(process.env.LIMIT ?? 1) })
    .catch((error) => ({ status: error.code }));
  console.log(first.status, first.termination);
  if (process.env.AGAIN) {
    sandbox.exec({ command: "python3 b.py", timeoutSeconds: Infinity }).catch((error) => console.log(error.code));
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
  await sandbox.close({ graceSeconds: 0 });
  console.log("closed");
`;

async function runBomb(t, env) {
  const dir = tempDir(t);
  spawnSync("chmod", ["777", dir]);
  const copy = copyPackage(t);
  spawnSync("chmod", ["-R", "a+rX", path.dirname(copy), copy]);
  const source = path.join(copy, "bomb.mjs");
  writeFileSync(source, RUN_BOMB);
  const { child, ended } = startNode(
    `import { spawnSync } from "node:child_process";
     const { stdout, stderr } = spawnSync("prlimit", ["--nproc=150", process.execPath, ${JSON.stringify(source)}],
       { encoding: "utf8", timeout: ${HANG_MS}, killSignal: "SIGKILL" });
     process.stdout.write(stdout); process.stderr.write(stderr);`,
    { cwd: copy, uid: UNUSED_UID, execPath: nodeForNobody(t), env: { DIR: dir, BOMB, LINE: "python3 b.py", ...env } },
  );
  t.after(() => {
    child.kill("SIGKILL");
    for (let i = 0; i < 50 && processesOf(UNUSED_UID).length > 0; i++)
      {spawnSync("kill", ["-9", ...processesOf(UNUSED_UID)]);}
  });
  return { dir, ...(await ended) };
}

const bombs = process.getuid() === 0 && has("prlimit") ? false : "needs root and prlimit";

describe("C206 a bomb that forks for ever", { skip: bombs }, () => {
  test("C206 is gone after its limit, and that was seen", async (t) => {
    const { stdout, stderr, dir } = await runBomb(t, {});
    assert.equal(stderr, "");
    assert.equal(stdout, "timedOut confirmed\nclosed\n");
    assert.deepEqual(processesOf(UNUSED_UID), []);
    assert.deepEqual(readDir(dir), []);
  });

  test("C206 is gone after a close in the middle of it", async (t) => {
    const { stdout, dir } = await runBomb(t, { LINE: "true", AGAIN: "1" });
    assert.equal(stdout, "exited none\nERR_SANDBOX_CLOSED\nclosed\n");
    assert.deepEqual(processesOf(UNUSED_UID), []);
    assert.deepEqual(readDir(dir), []);
  });

  test("C206 is gone after the close when it was left in the background", async (t) => {
    const { stdout, dir } = await runBomb(t, { LINE: "python3 b.py >/dev/null 2>&1 & sleep 0.5", LIMIT: "60" });
    assert.equal(stdout, "exited none\nclosed\n");
    assert.deepEqual(processesOf(UNUSED_UID), []);
    assert.deepEqual(readDir(dir), []);
  });

  test("C206 is gone although it has killed its guard", async (t) => {
    const { stdout, dir } = await runBomb(t, {
      // All that needs a fork is started before the bomb: in the midst of it the shell gets none, and kills nobody.
      LINE: "sleep 0.2 & pause=$!; python3 b.py & wait $pause; kill -9 $PPID; wait",
      LIMIT: "20",
    });
    assert.equal(stdout, "ERR_SANDBOX_PROTOCOL undefined\nclosed\n");
    assert.deepEqual(processesOf(UNUSED_UID), []);
    assert.deepEqual(readDir(dir), []);
  });
});

function readDir(dir) {
  return spawnSync("ls", ["-A", dir], { encoding: "utf8" }).stdout.split("\n").filter(Boolean);
}

const HELPER = `import os, signal, sys, time
g = os.getppid(); h = int(open('/proc/%d/stat' % g).read().split()[3])
def daemon():
  if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
      os.closerange(0, 1000); time.sleep(300)
    os._exit(0)
`;

const AGAINST = {
  "a helper that was stopped": `daemon(); os.kill(h, signal.SIGSTOP); time.sleep(100)`,
  "a helper that was stopped and a guard that was killed": `daemon()
time.sleep(0.1); os.kill(h, signal.SIGSTOP); os.kill(g, signal.SIGKILL); time.sleep(100)`,
  "a guard that was stopped": `daemon(); os.kill(g, signal.SIGSTOP); time.sleep(100)`,
  "a guard that was killed": `daemon(); time.sleep(0.1); os.kill(g, signal.SIGKILL); time.sleep(100)`,
  "a helper that is stopped again and again": `daemon()
if os.fork() == 0:
  os.setsid()
  while True: os.kill(h, signal.SIGSTOP)
time.sleep(100)`,
  "chains that fork and exit": `
for i in range(20):
  if os.fork() == 0:
    os.setsid()
    while True:
      if os.fork(): os._exit(0)
time.sleep(100)`,
};

describe("C191 a command against its helper", { concurrency: 2 }, () => {
  for (const [name, code] of Object.entries(AGAINST)) {
    test(`C191 ${name}: nothing survives the close`, async (t) => {
      const sandbox = new LocalSandbox({ isolation: "none", tempDir: tempDir(t), killGraceSeconds: 0 });
      const tracked = mark();
      await sandbox
        .exec({ argv: ["python3", "-c", HELPER + code], env: tracked.env, timeoutSeconds: 1 })
        .catch((error) => assert.equal(error.code, "ERR_SANDBOX_PROTOCOL"));
      const id = sandbox.sandboxId;
      assert.equal((await sandbox.shell("echo ok")).output, "ok\n");
      await sandbox.close();
      assert.deepEqual(tracked.alive(), []);
      assert.equal(existsSync(id), false);
    });
  }

  test("C191 helper and guard both killed: close rejects once, and ends what it finds", async (t) => {
    const sandbox = new LocalSandbox({ isolation: "none", tempDir: tempDir(t) });
    const tracked = mark();
    const code = `${HELPER}daemon()
time.sleep(0.1); os.kill(h, signal.SIGKILL); os.kill(g, signal.SIGKILL); time.sleep(100)`;
    await assert.rejects(
      sandbox.exec({ argv: ["python3", "-c", code], env: tracked.env, timeoutSeconds: 5 }),
      { code: "ERR_SANDBOX_PROTOCOL" },
    );
    const id = sandbox.sandboxId;
    await assert.rejects(sandbox.close(), (error) => {
      assert.equal(error.code, "ERR_SANDBOX_PROVIDER");
      assert.match(error.message, /may live on.*close\(\) may be called again/);
      return true;
    });
    assert.deepEqual(tracked.alive(), []);
    assert.equal(existsSync(id), false);
    await sandbox.close();
  });
});

const WRITER = `${HELPER}
for k in range(3):
  if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
      i = 0
      while True:
        i += 1
        try: os.makedirs('k%d/%d/%d' % (k, i % 50, i))
        except FileNotFoundError: time.sleep(0.0005)
        except OSError: pass
    os._exit(0)
time.sleep(.3); os.kill(h, 9); os.kill(g, 9); time.sleep(100)`;

test("C190 writers that have escaped: close settles, and files of the host are read meanwhile", async (t) => {
  const tracked = mark();
  const dir = tempDir(t);
  const sandboxes = Array.from(
    { length: 4 },
    () => new LocalSandbox({ isolation: "none", tempDir: dir }),
  );
  await Promise.all(
    sandboxes.map((sandbox) =>
      sandbox
        .exec({ argv: ["python3", "-c", WRITER], env: tracked.env, timeoutSeconds: 9 })
        .catch(() => {}),
    ),
  );
  const closing = Promise.allSettled(sandboxes.map((sandbox) => sandbox.close()));
  const begin = performance.now();
  await readFile("/proc/self/stat");
  assert.ok(performance.now() - begin < 10_000);
  for (const { status, reason } of await closing)
    {assert.equal(reason?.code, "ERR_SANDBOX_PROVIDER", status);}
  assert.deepEqual(tracked.alive(), []);
  await Promise.all(sandboxes.map((sandbox) => sandbox.close()));
  assert.deepEqual(readDir(dir), []);
});

test("C190 a tree that is very deep is removed in short turns", async (t) => {
  // In memory: a disk that others keep busy would be measured otherwise.
  const memory = existsSync("/dev/shm") ? "/dev/shm" : undefined;
  const sandbox = new LocalSandbox({ isolation: "none", tempDir: memory ?? tempDir(t) });
  const code = "import os\nfor i in range(60000):\n  os.mkdir('d'); os.chdir('d')\n";
  assert.equal((await sandbox.run(code, { timeoutSeconds: 120 })).exitCode, 0);
  const id = sandbox.sandboxId;
  let longest = 0;
  let last = performance.now();
  const closing = sandbox.close();
  let open = true;
  void closing.finally(() => (open = false));
  while (open) {
    await readFile("/proc/self/stat");
    longest = Math.max(longest, performance.now() - last);
    last = performance.now();
  }
  await closing;
  assert.equal(existsSync(id), false);
  assert.ok(longest < 10_000, `${longest} ms`);
});
