// Attempts on what keeps a sandbox together: its guards and its helper, the host's own habits, and machines that have less.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { once } from "node:events";
import path from "node:path";
import { describe, test } from "node:test";
import { Worker } from "node:worker_threads";

import { ROOT } from "../support/node.js";
import { mark } from "../support/processes.js";
import { rejection } from "../support/wait.js";
import { childrenOf } from "./processes.js";
import { attack, nestless, own, readableCopy, shared, startUnder, unavailable } from "./support.js";

const nests = spawnSync("unshare", ["-Uc", "true"]).status === 0;

/** What Docker's filter does about namespaces, before the program. Numbers of x86_64. */
const LIKE_DOCKER = `
import ctypes, os, struct, sys
code = lambda c, t, f, k: struct.pack("HBBI", c, t, f, k)
fail = lambda error: code(6, 0, 0, 0x50000 | error)
rules = [code(32, 0, 0, 0), code(21, 0, 1, 435), fail(38), code(21, 0, 1, 272), fail(1), code(21, 0, 3, 56),
    code(32, 0, 0, 16), code(69, 0, 1, 0x7E020000), fail(1), code(6, 0, 0, 0x7FFF0000)]
text = ctypes.create_string_buffer(b"".join(rules))
libc = ctypes.CDLL(None)
libc.prctl(38, 1, 0, 0, 0)
assert libc.prctl(22, 2, struct.pack("HxxxxxxQ", len(rules), ctypes.addressof(text)), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])`;

/** Runs a program that uses an isolated sandbox, with the variables of a mark in it; until it ends. */
async function hostEnds(tracked, program) {
  const code = `
    import { LocalSandbox } from "cloudsandbox";
    const s = new LocalSandbox({ isolation: "required", env: ${JSON.stringify(tracked.env)} });
    const command = "(trap '' TERM HUP INT; setsid sleep 600 &) ; echo up; sleep 600";
    const up = new Promise((resolve) => s.exec({ command, timeoutSeconds: 600, onStdout: resolve }).catch(() => {}));
    await up;
    ${program}`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], { cwd: ROOT, stdio: ["ignore", "inherit", "inherit"] });
  return once(child, "exit");
}

describe("isolated: ends", { skip: unavailable }, () => {
  const sandbox = shared();

  test("40 a socket in the workspace is no file to read", async () => {
    await attack(sandbox, 'socket.socket(socket.AF_UNIX).bind("/workspace/socket"); tell(1)');
    assert.match((await rejection(sandbox.readFile("socket"))).code, /^ERR_SANDBOX_/);
  });

  test("66 a socket that the host has put into the workspace can be reached, until the kernel can refuse it", async (t) => {
    const file = path.join(sandbox.sandboxId, "planted");
    const server = createServer((socket) => socket.on("error", () => {}).end()).listen(file);
    t.after(() => server.close());
    await once(server, "listening");
    chmodSync(file, 0o777);
    const outcome = await attack(sandbox, 'tell(attempt(lambda: socket.socket(socket.AF_UNIX).connect("/workspace/planted")))');
    assert.ok(["ok", "EACCES"].includes(outcome), outcome);
    t.diagnostic(`66: ${outcome}`);
  });

  test("71 when a guard is killed all commands end and say why; the next one runs", async (t) => {
    const mine = own(t);
    const before = new Set(childrenOf(process.pid));
    await mine.start();
    const monitor = childrenOf(process.pid).find((pid) => !before.has(pid));
    const up = [];
    // What it takes the kernel longest to end is memory.
    const command = `exec python3 -c 'import time; all = b"x" * (400 << 20); print("up", flush=True); time.sleep(600)'`;
    const running = [1, 2].map(() =>
      rejection(new Promise((resolve, reject) => {
        up.push(new Promise((told) => mine.exec({ command, timeoutSeconds: 600, onStdout: told }).then(resolve, reject)));
      })),
    );
    await Promise.all(up);
    const [first] = childrenOf(monitor);
    const [guard] = childrenOf(first);
    process.kill(guard, "SIGKILL");
    for (const error of await Promise.all(running)) {
      assert.match(error.message, /the process that watched the command in its sandbox was killed, .* all commands of the sandbox were ended/);
      assert.equal(error.mayHaveRun, true);
    }
    assert.equal((await mine.shell("cat /proc/[0-9]*/comm 2>/dev/null | grep -c python")).output, "0\n");
  });

  test("60 without its helper program, with one that everybody may change, or one of another kind, nothing runs", (t) => {
    const copy = readableCopy(t);
    const helper = path.join(copy, "build/Release/sbx_guard");
    const code = `
      import { LocalSandbox } from "cloudsandbox";
      try { console.log((await new LocalSandbox({ isolation: "required" }).shell("echo ran")).output); } catch (e) { console.log(e.code, e.message); }
      process.exit();`;
    const start = () => spawnSync(process.execPath, ["--input-type=module", "-e", code], { cwd: copy, encoding: "utf8" }).stdout;
    chmodSync(helper, 0o757);
    assert.match(start(), /^ERR_SANDBOX_MISSING_BINARY .*every user of this machine may write to the helper program .*sbx_guard, .* nothing was run\..*chmod o-w/);
    rmSync(helper);
    assert.match(start(), /^ERR_SANDBOX_\w+ /);
    // No program of this machine's.
    spawnSync("sh", ["-c", `printf '\\177ELF\\002\\001\\001\\000\\000\\000\\000\\000\\000\\000\\000\\000\\002\\000\\377\\000' > "$1"; head -c 44 /dev/zero >> "$1"; chmod 755 "$1"`, "sh", helper]);
    assert.match(start(), /^ERR_SANDBOX_\w+ /);
  });

  test("63 a host that ignores the end of its children gets results all the same", (t) => {
    assert.equal(startUnder(t, `trap '' CHLD; exec "$@"`), "ran");
  });

  test("64 a host that exits in the middle of a command leaves nothing", async () => {
    const tracked = mark();
    await hostEnds(tracked, "process.exit(0);");
    await tracked.gone();
  });

  test("64 a worker that is ended in the middle of a command leaves nothing", async () => {
    const tracked = mark();
    const code = `import("cloudsandbox").then(({ LocalSandbox }) => {
      const s = new LocalSandbox({ isolation: "required", env: JSON.parse(process.env.MARK) });
      const command = "(trap '' TERM HUP INT; setsid sleep 600 &) ; echo up; sleep 600";
      const onStdout = () => require("node:worker_threads").parentPort.postMessage("up");
      s.exec({ command, timeoutSeconds: 600, onStdout }).catch(() => {});
    })`;
    const worker = new Worker(code, { eval: true, env: { ...process.env, MARK: JSON.stringify(tracked.env) } });
    await once(worker, "message");
    await worker.terminate();
    await tracked.gone();
  });

  test("78 a filter as Docker's is named", (t) => {
    if (process.arch !== "x64" || spawnSync("/usr/bin/python3", ["-c", "1"]).status !== 0) return t.skip("unavailable here: /usr/bin/python3 on x86_64");
    assert.match(startUnder(t, `exec /usr/bin/python3 -c '${LIKE_DOCKER}' "$@"`), /^ERR_SANDBOX_ISOLATION_UNAVAILABLE .*Layer userns: EPERM: a container's filter/);
  });

  test("78 a chroot is named", (t) => {
    if (nestless) return t.skip(nestless);
    const line = `exec unshare -Urm sh -c 'mount --rbind / /mnt && exec /usr/sbin/chroot /mnt sh -c "cd \\"\\$0\\" && exec \\"\\$@\\"" "$0" "$@"' "$PWD" "$@"`;
    assert.match(startUnder(t, line), /^ERR_SANDBOX_ISOLATION_UNAVAILABLE .*Layer userns: EPERM: .*a chroot/);
  });

  test("78 too deep in namespaces of users is named", (t) => {
    if (!nests) return t.skip("unavailable here: user namespaces of unshare(1)");
    assert.match(startUnder(t, `exec ${"unshare -Uc ".repeat(33)} "$@"`), /^ERR_SANDBOX_ISOLATION_UNAVAILABLE .*Layer userns: ENOSPC: .*32 deep/);
  });
});
