// The file system of the isolated sandbox: what is in it, what can be written, and the way to it from outside.
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";

import { tempDir } from "../support/temp.js";
import { rejection } from "../support/wait.js";
import { attack, own, shared, unavailable } from "./support.js";

describe("isolated: files", { skip: unavailable, concurrency: 2 }, () => {
  const sandbox = shared({ maxFileMb: 8, tempMb: 4 });

  test("15 devices of the machine are not there, 76 those that are work", async () => {
    const told = await attack(sandbox, `
missing = [read("/dev/" + d) for d in ("sda", "vda", "kmsg", "mem", "tty", "vsock", "fuse", "ptmx", "kvm", "net/tun", "loop0")]
open("/dev/null", "w").write("x")
tell([missing, len(open("/dev/urandom", "rb").read(16)), sorted(os.listdir("/dev")), attempt(lambda: open("/dev/x", "w"))])`);
    assert.deepEqual(told, [
      Array(11).fill("ENOENT"), 16,
      ["fd", "full", "null", "random", "shm", "stderr", "stdin", "stdout", "urandom", "zero"], "EROFS",
    ]);
  });

  test("16 no devices can be made", async () => {
    const told = await attack(sandbox, `
tell([attempt(lambda: os.mknod("/workspace/d", m | 0o600, os.makedev(1, 3))) for m in (stat.S_IFCHR, stat.S_IFBLK)]
   + [attempt(lambda: os.mknod("/workspace/p", stat.S_IFIFO | 0o600))])`);
    assert.deepEqual(told, ["EPERM", "EPERM", "ok"]);
  });

  test("17, 18 what is the system's cannot be written", async () => {
    const told = await attack(sandbox, `
made = [attempt(lambda: open(d + "/sbx", "w")) for d in ("", "/usr", "/usr/bin", "/etc", "/lib", "/home", "/run", "/proc/sys/kernel")]
tell([made, [write(f) for f in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/etc/passwd", "/usr/bin/env")]])`);
    for (const came of told.flat()) assert.match(came, /^(EROFS|EACCES|ENOENT|EPERM)$/);
    assert.deepEqual(told[0].slice(0, 4), ["EROFS", "EROFS", "EROFS", "EROFS"]);
  });

  test("19 nothing of the kernel's memory or of its tree", async () => {
    const told = await attack(sandbox, `
kcore = len(open("/proc/kcore", "rb").read(1)) if os.path.exists("/proc/kcore") else 0
tell([kcore, read("/sys/kernel"), open("/proc/kallsyms").read()])`);
    assert.deepEqual(told, [0, "ENOENT", ""]);
  });

  test("20 a file of the machine is not there, 21 nor are homes and what runs", async (t) => {
    const dir = tempDir(t);
    writeFileSync(path.join(dir, "secret"), "x", { mode: 0o644 });
    const told = await attack(sandbox, `
tell([read(${JSON.stringify(path.join(dir, "secret"))}), {d: sorted(os.listdir(d)) if os.path.isdir(d) else [] for d in ("/home", "/var", "/srv", "/mnt", "/sys", "/boot")}])`);
    assert.deepEqual(told, ["ENOENT", { "/home": ["sandbox"], "/var": [], "/srv": [], "/mnt": [], "/sys": [], "/boot": [] }]);
  });

  test("22, 23 neither passwords nor the sockets of services", async () => {
    const told = await attack(sandbox, `
tell([read(f) for f in ("/etc/shadow", "/etc/sudoers", "/root/.ssh/id_rsa")]
   + [attempt(lambda: socket.socket(socket.AF_UNIX).connect(p)) for p in ("/var/run/docker.sock", "/run/docker.sock", "/run/dbus/system_bus_socket")])`);
    for (const came of told) assert.match(came, /^(ENOENT|EACCES)$/);
  });

  test("32 no program makes more of who starts it", async () => {
    const told = await attack(sandbox, `
import shutil
shutil.copy("/usr/bin/id", "/workspace/id")
tell([subprocess.run([p, "-u"], capture_output=True, text=True).stdout for p in ("/workspace/id", "/usr/bin/id")]
   + [attempt(lambda: os.setuid(0)), subprocess.run(["su", "-c", "id -u"], capture_output=True, stdin=subprocess.DEVNULL).returncode != 0])`);
    assert.deepEqual(told, ["1000\n", "1000\n", "EINVAL", true]);
  });

  test("32 no file of the workspace can be marked to run as its owner, which the machine would do", async () => {
    const told = await attack(sandbox, `
marked = b"/workspace/marked"; here = ctypes.c_char_p(marked); other = "/workspace/made"; at = -100
os.close(os.open(marked, os.O_CREAT | os.O_WRONLY, 0o644))
ways = {
    "chmod": lambda mode: attempt(lambda: os.chmod(marked, mode)),
    "fchmod": lambda mode: attempt(lambda: os.fchmod(os.open(marked, os.O_RDONLY), mode)),
    "fchmodat": lambda mode: call(268, 53, at, here, mode),
    "fchmodat2": lambda mode: call(452, 452, at, here, mode, 0),
    "open": lambda mode: attempt(lambda: os.close(os.open(other, os.O_CREAT | os.O_WRONLY, mode))),
    "temporary": lambda mode: attempt(lambda: os.close(os.open("/workspace", os.O_TMPFILE | os.O_WRONLY, mode))),
    "mknod": lambda mode: attempt(lambda: os.mknod(other, stat.S_IFREG | mode)),
    "creat": lambda mode: call(85, -1, ctypes.c_char_p(other.encode()), mode) if INTEL else "EPERM",
}
refused = {way: [do(mode) for mode in (0o4755, 0o2755, 0o6755)] for way, do in ways.items()}
os.chmod(marked, 0o1755); os.mkdir("/workspace/folder", 0o6755)
tell([refused, call(437, 437, at, here, ctypes.c_char_p(bytes(24)), 24),
    oct(os.stat(marked).st_mode), oct(os.stat("/workspace/folder").st_mode & 0o6000), os.path.exists(other)])`);
    for (const [way, outcomes] of Object.entries(told[0])) assert.deepEqual(outcomes, ["EPERM", "EPERM", "EPERM"], way);
    assert.deepEqual(told.slice(1), ["ENOSYS", "0o101755", "0o0", false]);
  });

  test("34 a command has three descriptors, and none is a directory or a file of the machine", async () => {
    const told = await attack(sandbox, `
fds = [int(f) for f in os.listdir("/proc/self/fd")]
tell([sorted(f for f in fds if os.path.exists("/proc/self/fd/%d" % f)), [stat.S_IFMT(os.fstat(f).st_mode) for f in (0, 1, 2)]])`);
    assert.deepEqual(told[0], [0, 1, 2]);
    for (const type of told[1]) assert.ok([0o010000, 0o020000, 0o140000].includes(type), String(type));
  });

  test("35 the environment is what it was given, and no more", async (t) => {
    process.env.SBX_SECRET_TOKEN = "x";
    t.after(() => delete process.env.SBX_SECRET_TOKEN);
    const { stdout } = await own(t, { env: { MINE: "1" } }).exec({ argv: ["env"] });
    const told = stdout.trim().split("\n").map((line) => line.split("=")[0]);
    assert.deepEqual(told.filter((name) => name !== "TZ").sort(), ["HOME", "LANG", "MINE", "PATH", "TERM"]);
  });

  test("36, 37, 38 links lead nowhere out of the workspace", async (t) => {
    const mine = own(t);
    const dir = tempDir(t);
    await mine.shell(`ln -s /etc/passwd a; ln -s ../../etc/passwd b; ln -s /proc/self/root c; ln -s ${dir}/new d; ln -s /workspace/in e; echo in > in`);
    for (const name of ["a", "b", "c/etc/passwd", "../x", "/etc/passwd", "d"]) {
      const error = await rejection(mine.readFile(name));
      assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG", name);
    }
    assert.equal((await rejection(mine.writeFile("d", "x"))).code, "ERR_SANDBOX_INVALID_ARG");
    assert.equal(await mine.readFile("e"), "in\n");
    assert.equal(await mine.readFile("/workspace/in"), "in\n");
  });

  test("39 nothing of the system's gets a name in the workspace", async () => {
    const told = await attack(sandbox, `
tell([attempt(lambda: os.link("/usr/bin/env", "/workspace/env")), attempt(lambda: os.rename("/workspace", "/tmp/w"))])`);
    for (const came of told) assert.match(came, /^(EXDEV|EPERM|EACCES|EBUSY|EROFS)$/);
  });

  test("40 what is no plain file is refused at once, and size is looked at first", async (t) => {
    const mine = own(t);
    await mine.shell("mkfifo p; mkdir d; truncate -s 1T big");
    for (const name of ["p", "d", "big"]) assert.ok(await rejection(mine.readFile(name)), name);
  });

  test("44 temporary space and its files are limited", async () => {
    const told = await attack(sandbox, `
def fill(d):
    with open(d + "/fill", "wb") as f:
        for i in range(64): f.write(b"x" * 2**20); f.flush()
def many(d):
    for i in range(100000): open(d + "/n%d" % i, "w").close()
result = [attempt(lambda: fill(d)) for d in ("/tmp", "/dev/shm")]
for d in ("/tmp", "/dev/shm"): os.remove(d + "/fill")
result.append(attempt(lambda: many("/dev/shm")))
for n in os.listdir("/dev/shm"): os.remove("/dev/shm/" + n)
tell(result)`);
    assert.match(told[0], /ENOSPC|EFBIG/);
    assert.deepEqual(told, ["ENOSPC", "ENOSPC", "ENOSPC"]);
  });

  test("45 a file has a largest size, one in memory too", async () => {
    const told = await attack(sandbox, `
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
def fill(f):
    for i in range(16): os.write(f, b"x" * 2**20)
tell([attempt(lambda: fill(os.open("/workspace/big", os.O_WRONLY | os.O_CREAT))), attempt(lambda: fill(os.memfd_create("m")))])`);
    assert.deepEqual(told, ["EFBIG", "EFBIG"]);
  });

  test("56 the root cannot be left", async () => {
    const told = await attack(sandbox, `
for i in range(20): os.chdir("..")
tell([sorted(os.listdir(".")) == sorted(os.listdir("/")), attempt(lambda: os.chroot("/tmp")), os.path.exists("/proc/self/root/workspace")])`);
    assert.deepEqual(told, [true, "EPERM", true]);
  });

  test("C177 the home is not the workspace, and can be written", async (t) => {
    const mine = own(t);
    assert.equal((await mine.shell("echo $HOME; mkdir -p ~/.cache && echo x > ~/.cache/x && cat ~/.cache/x; ls -A")).output, "/home/sandbox\nx\n");
  });

  test("further paths can be read at their places, and not written", async (t) => {
    const dir = mkdtempSync("/var/tmp/sbx-test-");
    t.after(() => rmSync(dir, { recursive: true }));
    writeFileSync(path.join(dir, "data"), "x");
    const mine = own(t, { readOnlyPaths: [dir] });
    if (process.getuid() === 0) assert.equal((await mine.shell(`stat -c %a ${dir}`)).output, "700\n");
    else assert.equal((await mine.shell(`cat ${dir}/data; echo y > ${dir}/data`)).exitCode, 1);
    assert.match((await mine.shell(`touch ${dir}/new 2>&1`)).output, /Permission denied|Read-only/);
  });

  test("further paths that are not there are named, before anything is made", async (t) => {
    const dir = mkdtempSync("/var/tmp/sbx-test-");
    t.after(() => rmSync(dir, { recursive: true }));
    for (const missing of [`${dir}/later`, "/usr/not-there"]) {
      const mine = own(t, { readOnlyPaths: ["/var/tmp", missing], tempDir: dir });
      for (let i = 0; i < 2; i++) {
        const error = await rejection(mine.shell("true"));
        assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG");
        assert.match(error.message, /readOnlyPaths: "(.*)" cannot be shown in the sandbox: .*; create it before the start, or leave it out/);
        assert.ok(error.message.includes(`"${missing}"`), error.message);
        assert.deepEqual(readdirSync(dir), []);
      }
    }
    const mine = own(t, { readOnlyPaths: [`${dir}/later`] });
    writeFileSync(`${dir}/later`, "");
    assert.equal((await mine.shell(`ls ${dir}`)).output, "later\n");
  });
});
