// run.sh and the programs beside it, under each shell that may be a sandbox's /bin/sh.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { randomBytes } from "node:crypto";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { tempDir } from "../support/temp.js";
import { eventually } from "../support/wait.js";
import { ask, forget, run } from "./command.js";
import { asSh, canMount, everyShell, newTag, which, within } from "./support.js";

const folder = (tag) => `/tmp/.cloudsandbox-${tag}`;

/** Runs it and takes its folder away when the test ends. */
function runner(t, shell) {
  const tags = [];
  t.after(() => forget(shell, ...tags));
  return (command, options) => {
    const tag = newTag();
    tags.push(tag);
    return run(shell, { tag, ...command }, options);
  };
}

everyShell("outputs, exit code, and what is left in its folder", async (t, shell) => {
  const go = runner(t, shell);
  const result = await go({ text: "echo out; echo err >&2; exit 3" });
  assert.deepEqual([result.end, result.code, result.stdout, result.stderr], ["ran", 3, "out\n", "err\n"]);
  assert.deepEqual([result.sizes, result.lost, result.background], [[4, 4], [0, 0], 0]);
  const again = await ask(shell, "ask", result.tag, [100, 0]);
  assert.deepEqual([again.end, again.code, again.stdout, again.stderr], ["ran", 3, "out\n", "err\n"]);
  await forget(shell, result.tag);
  await eventually("the folder's end", () => !existsSync(folder(result.tag)));
  assert.equal((await ask(shell, "ask", result.tag, [100, 0])).end, "absent");
});

everyShell("exact bytes of outputs and input, joined outputs, a signal", async (t, shell) => {
  const go = runner(t, shell);
  const input = Buffer.concat([Buffer.from([0, 255, 10, 13]), randomBytes(70_000)]);
  assert.deepEqual((await go({ text: "cat", input })).out, input);
  const joined = await go({ text: "for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done", letters: "j" });
  assert.equal(joined.stdout, "o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\n");
  assert.equal((await go({ text: "kill -9 $$" })).code, 137);
  assert.equal((await go({ text: "cat; echo empty" })).stdout, "empty\n");
});

everyShell("a command that is quicker than its timer leaves none behind", async (t, shell) => {
  const go = runner(t, shell);
  const limit = `3${randomBytes(2).readUInt16LE()}.5`;
  // At once, so that timers come late.
  await Promise.all(Array.from({ length: 40 }, () => go({ text: "true", limit })));
  const timers = () =>
    readdirSync("/proc").filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "latin1").includes(`sleep\0${limit}`);
      } catch {
        return false;
      }
    });
  await eventually("no timer is left", () => timers().length === 0);
});

everyShell("a text that ends in line ends, in a backslash, is empty, or has a long here-document", async (t, shell) => {
  const go = runner(t, shell);
  assert.equal((await go({ text: "printf '%s.' a\n\n\n" })).stdout, "a.");
  assert.equal((await go({ text: "" })).code, 0);
  assert.equal((await go({ text: `cat <<'E'\n${"x".repeat(40_000)}\nE` })).sizes[0], 40_001);
  assert.equal((await go({ text: "exit 7 # 'quote" })).code, 7);
});

everyShell("a head, a tail, and the size of all", async (t, shell) => {
  const go = runner(t, shell);
  const cut = await go({ text: "seq 100000; seq 1000 >&2", head: 10, tail: 7 });
  assert.equal(cut.stdout, "1\n2\n3\n4\n5\n100000\n");
  assert.deepEqual(cut.sizes, [588_895, 3_893]);
  const large = await go({ text: "head -c 30000000 /dev/zero; echo end", head: 5, tail: 4 });
  assert.deepEqual([large.stdout, large.sizes[0]], ["\0\0\0\0\0end\n", 30_000_004]);
});

everyShell("limits: the tree is ended, and what was printed is there", async (t, shell) => {
  const go = runner(t, shell);
  const begin = performance.now();
  const late = await go({ text: "echo before; (env -i setsid sleep 71) & sleep 72; echo after", limit: 1.5 });
  assert.ok(performance.now() - begin < 20_000);
  assert.deepEqual([late.end, late.gone, late.stdout], ["late", true, "before\n"]);
  const early = await go({ text: "echo quick", limit: 30 });
  assert.deepEqual([early.end, early.stdout], ["ran", "quick\n"]);
});

everyShell("directory, variables, and none of ours", async (t, shell) => {
  const go = runner(t, shell);
  const cwd = path.join(tempDir(t), "a b'c");
  mkdirSync(cwd);
  const line = 'pwd; echo "$A.$n.$PATH"; env | grep -c "^__[a-z]"';
  const env = { A: "from outside", n: "theirs", PATH: process.env.PATH, IFS: "x", HOME: cwd };
  const { stdout } = await go({ text: line, cwd, env: "export A='it'\\''s'\n" }, { env });
  assert.equal(stdout, `${cwd}\nit's.theirs.${process.env.PATH}\n0\n`);
  assert.equal((await go({ text: "pwd", cwd: "~" }, { env })).stdout, `${cwd}\n`);
  assert.equal((await go({ text: "pwd", cwd: path.join(cwd, "absent") })).end, "nodir");
  assert.equal((await go({ text: "pwd", cwd: "/etc/passwd" })).end, "nodir");
});

everyShell("an environment that would change what the program does", async (t, shell) => {
  const go = runner(t, shell);
  const cwd = tempDir(t);
  const hook = path.join(cwd, "hook");
  writeFileSync(hook, "cd /; echo hooked");
  const env = { PATH: "/absent", BASH_ENV: hook, ENV: hook, SHELLOPTS: "nounset:noclobber:noglob", GREP_OPTIONS: "-v" };
  const { stdout, code } = await go({ text: "pwd; echo $PATH", shell: "sh" }, { env, cwd });
  assert.deepEqual({ stdout, code }, { stdout: `${cwd}\n/absent\n`, code: 0 });
  // Nothing in the environment at all.
  assert.equal((await go({ text: "echo here" }, { env: {}, cwd })).stdout, "here\n");
});

everyShell("C167 C169 code has a main file, of which nothing is left", async (t, shell) => {
  const go = runner(t, shell);
  const cwd = tempDir(t);
  writeFileSync(path.join(cwd, "neighbour.py"), "value = 6");
  const pool = `
import os, sys, neighbour
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
def double(x): return 2 * x
if __name__ == '__main__':
    with ProcessPoolExecutor(2, mp_context=get_context('spawn')) as pool:
        print(list(pool.map(double, [1, 2, neighbour.value])), os.path.dirname(__file__) == os.getcwd(), sys.argv[1:])
`;
  const python = await go({ kind: "python", text: pool, cwd });
  assert.deepEqual([python.stdout, python.stderr, python.code], ["[2, 4, 12] True []\n", "", 0]);
  const node = "if (require.main === module) console.log('main', __dirname === process.cwd(), process.argv.length)";
  assert.equal((await go({ kind: "node", text: node, cwd })).stdout, "main true 2\n");
  const failing = await go({ kind: "python", text: "x = 1\nraise ValueError('no')", cwd });
  assert.match(failing.stderr, /line 2, in <module>\n +raise ValueError\('no'\)/);
  assert.equal((await go({ kind: "python", text: "print(input())", input: "given\n", cwd })).stdout, "given\n");
  assert.equal((await go({ kind: "python", text: "import time; time.sleep(73)", cwd, limit: 1 })).end, "late");
  assert.deepEqual(readdirSync(cwd).filter((name) => name.startsWith(".")), []);
});

everyShell("C163 what is left in the background lives on, and may print", async (t, shell) => {
  const go = runner(t, shell);
  const file = path.join(tempDir(t), "ticks");
  const line = `(for i in $(seq 200); do echo tick; echo $i >${file}; sleep 0.1; done) & echo started`;
  const first = await go({ text: line });
  assert.deepEqual([first.stdout.replaceAll("tick\n", ""), first.background, first.end], ["started\n", 1, "ran"]);
  const seen = Number(readFileSync(file, "utf8"));
  await forget(shell, first.tag);
  await eventually("more ticks", () => Number(readFileSync(file, "utf8")) > seen + 5);
  const stopped = await ask(shell, "stop", first.tag);
  assert.deepEqual([stopped.end, stopped.gone], ["stopped", true]);
  const quiet = await go({ text: "setsid sleep 74 >/dev/null 2>&1 & echo up" });
  assert.deepEqual([quiet.stdout, quiet.background], ["up\n", 1]);
  assert.equal((await ask(shell, "stop", quiet.tag)).gone, true);
  const ended = await go({ text: "sleep 75 & echo up", letters: "e" });
  assert.deepEqual([ended.stdout, ended.background], ["up\n", 2]);
});

everyShell("a stop while it runs, and before it begins", async (t, shell) => {
  const go = runner(t, shell);
  const tag = newTag();
  const running = go({ tag, text: "echo before; sleep 76; echo after" });
  await eventually("its start", () => existsSync(`${folder(tag)}/root`));
  await sleep(200);
  assert.equal((await ask(shell, "stop", tag)).gone, true);
  const { end, gone, stdout } = await running;
  assert.deepEqual({ end, gone, stdout }, { end: "stopped", gone: true, stdout: "before\n" });
  const other = newTag();
  await ask(shell, "stop", other);
  assert.equal((await go({ tag: other, text: "echo never" })).end, "stopped");
  await forget(shell, tag, other);
  await eventually("the files' end", () => !existsSync(`${folder(other)}.stop`) && !existsSync(folder(tag)));
});

everyShell("the same request twice runs once", async (t, shell) => {
  const go = runner(t, shell);
  const file = path.join(tempDir(t), "count");
  const tag = newTag();
  const line = `echo once >>${file}`;
  await go({ tag, text: line });
  assert.equal((await go({ tag, text: line })).end, "again");
  assert.equal(readFileSync(file, "utf8"), "once\n");
});

everyShell("output is fetched while the command runs, and after it", async (t, shell) => {
  const go = runner(t, shell);
  const tag = newTag();
  const running = go({ tag, text: "echo one; sleep 1; echo two; echo err >&2", letters: "k", head: 2 });
  await eventually("its start", () => existsSync(`${folder(tag)}/root`));
  const first = await ask(shell, "fetch", tag, [0, 0, 100, 0]);
  assert.deepEqual([first.stdout, first.stderr], ["one\n", ""]);
  assert.equal((await ask(shell, "ask", tag, [100, 0])).stdout, "one\ntwo\n");
  const { stdout, sizes } = await running;
  assert.deepEqual([stdout, sizes], ["on", [8, 4]]);
  const rest = await ask(shell, "fetch", tag, [3, 2, 3, 1]);
  assert.deepEqual([rest.stdout, rest.stderr], ["\ntw", "r\n"]);
});

everyShell("C201 a command that takes our folder away", async (t, shell) => {
  const go = runner(t, shell);
  const begin = performance.now();
  // Not by a pattern: the folders of others stand beside it here.
  const text = 'rm -rf "/tmp/.cloudsandbox-$CLOUDSANDBOX_RUN"*; echo x; echo y >&2; exit 3';
  const result = await go({ text, limit: 55 });
  assert.deepEqual([result.end, result.code, result.stdout, result.stderr, result.lost], ["ran", 3, "x\n", "y\n", [0, 0]]);
  assert.ok(performance.now() - begin < 50_000, "it does not wait for the limit");
  assert.equal((await ask(shell, "ask", result.tag, [100, 0])).stdout, "x\n");
});

everyShell("another place is taken where /tmp cannot be written, and said when there is none", { skip: !canMount }, async (t, shell) => {
  // Where none of what is mounted below hides it.
  const beside = /^\/(tmp|var\/tmp|dev\/shm)\//.test(`${process.cwd()}/`) ? os.homedir() : path.resolve("build");
  const home = mkdtempSync(path.join(beside, "home-"));
  t.after(() => rmSync(home, { recursive: true }));
  const readOnly = "mount -t tmpfs -o ro none /tmp";
  const env = { PATH: process.env.PATH, HOME: home };
  const spare = await run(within(shell, readOnly), { text: "cat; echo err >&2", input: "x".repeat(30_000) }, { env, cwd: "/" });
  assert.deepEqual([spare.end, spare.sizes, spare.stderr], ["ran", [30_000, 4], "err\n"]);
  await eventually("the input's end", () => !existsSync(`/var/tmp/.cloudsandbox-${spare.tag}/input`));
  assert.ok(existsSync(`/var/tmp/.cloudsandbox-${spare.tag}/end`));
  await forget(shell, spare.tag);
  const nowhere = `${readOnly}; mount -t tmpfs -o ro none /var/tmp; mount -t tmpfs -o ro none /dev/shm`;
  const atHome = await run(within(shell, nowhere), { text: "echo here" }, { env, cwd: "/proc" });
  assert.equal(atHome.stdout, "here\n");
  assert.deepEqual(readdirSync(home), [`.cloudsandbox-${atHome.tag}`]);
  const none = await run(within(shell, nowhere), { text: "echo here" }, { env: { PATH: process.env.PATH }, cwd: "/proc" });
  assert.equal(none.end, "unstored");
  // Code there is standard input.
  const code = await run(within(shell, readOnly), { kind: "python", text: "print(len('x'))" }, { env, cwd: "/proc" });
  assert.equal(code.stdout, "1\n");
  await forget(shell, code.tag);
});

everyShell("C203 a disk that is full: how much is missing is said, and the other output is whole", { skip: !canMount }, async (t, shell) => {
  const small = within(shell, "mount -t tmpfs -o size=16m none /tmp");
  // A busy machine may keep the first line from being stored before the disk is full.
  const text = "echo first >&2; until grep -qs first /tmp/.cloudsandbox-*/err; do sleep 0.01; done; head -c 40000000 /dev/zero; sleep 0.2; echo last >&2; exit 5";
  const result = await run(small, { text, letters: "k", head: 10 });
  assert.deepEqual([result.end, result.code, result.stderr, result.lost[1]], ["ran", 5, "first\nlast\n".slice(0, 10), 0]);
  assert.equal(result.sizes[1], 11);
  const known = result.sizes[0] + result.lost[0];
  assert.ok(known > 40_000_000 - 65_536 && known <= 40_000_001, `${known}`);
  const full = within(shell, "mount -t tmpfs -o size=16m none /tmp; head -c 20000000 /dev/zero >/tmp/full 2>/dev/null");
  const other = await run(full, { text: "echo elsewhere", input: "x".repeat(1000) });
  assert.equal(other.stdout, "elsewhere\n");
  await forget(shell, other.tag);
});

everyShell("C206 a fork bomb ends at its limit", { skip: process.getuid() !== 0 || !which("setpriv") }, async (t, shell) => {
  const uid = 65_000 + (process.pid % 500) * 4 + ["dash", "bash", "zsh", "busybox"].indexOf(shell.name);
  const as = [`--reuid=${uid}`, "--clear-groups", "prlimit", "--nproc=100", "--"];
  const user = { file: "setpriv", path: which("setpriv"), words: [...as, ...asSh(shell)] };
  const bomb = `
import os, time
end = time.monotonic() + 40
while time.monotonic() < end:
    try:
        if os.fork() == 0: os.setsid()
    except OSError: pass
`;
  const result = await run(user, { kind: "python", text: bomb, limit: 1 }, { cwd: "/" });
  assert.deepEqual([result.end, result.gone], ["late", true]);
  await forget(shell, result.tag);
});

everyShell("10 MB of input and of text that were stored before", async (t, shell) => {
  const go = runner(t, shell);
  const tag = newTag();
  const input = randomBytes(10_000_000);
  const stored = { input, text: `cat; echo $A\n: '${"x".repeat(10_000_000)}'\nexit 4`, env: "export A=a\n" };
  for (const [name, bytes] of Object.entries(stored)) writeFileSync(`${folder(tag)}.${name}`, bytes);
  const words = { tag, source: "@", inputSource: "@", envSource: "@", head: 20_000_000 };
  const result = await go(words);
  assert.equal(result.code, 4);
  assert.deepEqual(result.out, Buffer.concat([input, Buffer.from("a\n")]));
  await eventually("the files' end", () => !Object.keys(stored).some((name) => existsSync(`${folder(tag)}.${name}`)));
  await eventually("the input's end", () => !existsSync(`${folder(tag)}/input`));
  assert.equal((await go(words)).end, "again");
  assert.equal((await go({ ...words, tag: newTag() })).end, "unstored");
});

everyShell("a file that is stored in pieces", async (t, shell) => {
  const tag = newTag();
  const store = (piece, at) => ask(shell, "store", tag, [Buffer.from(piece).toString("base64"), "input", at]);
  t.after(() => forget(shell, tag));
  for (const [piece, at] of [["one ", 0], ["two ", 4], ["two ", 4], ["three", 8]]) assert.equal((await store(piece, at)).end, "ran");
  assert.equal(readFileSync(`${folder(tag)}.input`, "utf8"), "one two three");
  assert.equal((await store("x", 99)).end, "unstored");
});
