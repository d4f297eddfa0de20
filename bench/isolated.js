// The isolated local sandbox: what a start costs beside bubblewrap, a command beside a trusted one, and how long what
// means ill takes to end. Installs nothing: without bubblewrap (or `make build/bench_bwrap`) that part says so.
//
// node bench/isolated.js [bwrap | trusted | idle | daemons | bomb | hundred | host]...
import { fork, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { LocalSandbox } from "cloudsandbox";
import { inTurn, median, ms, quantile, row } from "./stats.js";

const TRUE = { argv: ["/usr/bin/true"] };
const isolated = (/** @type {object} */ options = {}) => new LocalSandbox({ isolation: "required", ...options });

/** @param {number | string} pid @returns {number[]} */
function childrenOf(pid) {
  try {
    const tasks = readdirSync(`/proc/${pid}/task`);
    return tasks.flatMap((task) => readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").split(" ").filter(Boolean).map(Number));
  } catch {
    return [];
  }
}

/** @param {number} pid @returns {number[]} */
const descendantsOf = (pid) => childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)]);

/** Whether it runs: a zombie does not. @param {number} pid */
function lives(pid) {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

async function oneRun() {
  const sandbox = isolated();
  await sandbox.exec(TRUE);
  await sandbox.close();
}

/** What bwrap does as much as ours, as far as it can. */
const BWRAP = [
  ..."--unshare-all --unshare-user --uid 1000 --gid 1000 --hostname sandbox --die-with-parent --new-session --cap-drop ALL".split(" "),
  ..."--ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/sbin /sbin --symlink usr/lib /lib --symlink usr/lib64 /lib64".split(" "),
  ...(
    "passwd group hosts nsswitch.conf ssl pki ca-certificates crypto-policies alternatives ld.so.conf ld.so.conf.d ld.so.cache " +
    "localtime mime.types services protocols terminfo fonts gai.conf"
  ).split(" ").flatMap((name) => ["--ro-bind-try", `/etc/${name}`, `/etc/${name}`]),
  ..."--proc /proc --dev /dev --tmpfs /dev/shm --tmpfs /tmp --tmpfs /home --dir /home/sandbox --remount-ro /".split(" "),
  ..."--chdir /workspace --clearenv --setenv PATH /usr/bin:/bin --setenv HOME /home/sandbox /usr/bin/true".split(" "),
];

async function besideBwrap() {
  const program = path.join(import.meta.dirname, "../build/bench_bwrap");
  const missing = spawnSync("bwrap", ["--version"]).error ? "bwrap is not installed" : !existsSync(program) ? "make build/bench_bwrap" : "";
  if (missing) return row("start, `true`, close: ours / bwrap, p50", `not measured: ${missing}`, "0.9x");
  const runner = spawn(program, BWRAP, { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: runner.stdout })[Symbol.asyncIterator]();
  /** @type {number[]} */
  const theirs = [];
  const { ours } = await inTurn(200, oneRun, async () => {
    runner.stdin.write("\n");
    theirs.push(Number((await lines.next()).value) / 1000);
  });
  runner.stdin.end();
  const wall = theirs.slice(-ours.length);
  row(
    "start, `true`, close: ours / bwrap, p50 (p99)",
    `${ms(median(ours))} (${ms(quantile(ours, 0.99))}) / ${ms(median(wall))} (${ms(quantile(wall, 0.99))}) = ${(median(ours) / median(wall)).toFixed(2)}x`,
    "0.9x",
  );
}

async function besideTrusted() {
  const [one, other] = [isolated(), new LocalSandbox({ isolation: "none" })];
  const { ours, theirs } = await inTurn(400, () => one.exec(TRUE), () => other.exec(TRUE));
  row("`true` in a started sandbox: isolated / trusted, p50", `${ms(median(ours))} / ${ms(median(theirs))} = ${(median(ours) / median(theirs)).toFixed(2)}x`, "1.3x");
  await Promise.all([one.close(), other.close()]);
}

async function idleClose() {
  /** @type {Record<string, number[]>} */
  const times = { start: [], close: [] };
  for (let i = 0; i < 200; i++) {
    const sandbox = isolated();
    const began = performance.now();
    await sandbox.start();
    const started = performance.now();
    await sandbox.close();
    times.start.push(started - began);
    times.close.push(performance.now() - started);
  }
  row("start, p50 (p99)", `${ms(median(times.start))} (${ms(quantile(times.start, 0.99))})`);
  row("close of an idle sandbox, p50 (p99)", `${ms(median(times.close))} (${ms(quantile(times.close, 0.99))})`, "1 ms");
}

const DAEMONS = `
import os, signal, sys, time
for i in range(20):
    if os.fork() == 0:
        if os.fork(): os._exit(0)
        os.setsid()
        for number in range(1, 65):
            try: signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError): pass
        os.execve("/usr/bin/sleep", ["sleep", "300"], {})
    os.wait()
print("up", flush=True)
time.sleep(300)`;

const BOMB = `
import os
for i in range(20):
    try: os.fork()
    except OSError: break
os.write(1, b"up")
while True:
    try: os.fork()
    except OSError: pass`;

/** A command that has said that it is ready, and what ends it. @param {LocalSandbox} sandbox @param {string} code */
async function rampant(sandbox, code) {
  const controller = new AbortController();
  /** @type {Promise<unknown>} */
  let ended = Promise.resolve();
  await new Promise((resolve) => {
    ended = sandbox.exec({ code, language: "python", timeoutSeconds: 60, signal: controller.signal, onStdout: resolve });
  });
  return { ended, end: () => controller.abort() };
}

/** Processes of a program that are there. @param {LocalSandbox} sandbox @param {string} name */
const countInside = async (sandbox, name) => Number((await sandbox.shell(`cat /proc/[0-9]*/comm 2>/dev/null | grep -c ^${name}`)).output);

async function daemons() {
  const sandbox = isolated({ killGraceSeconds: 0 });
  const times = [];
  for (let i = 0; i < 100; i++) {
    const { ended, end } = await rampant(sandbox, DAEMONS);
    const began = performance.now();
    end();
    await ended;
    times.push(performance.now() - began);
  }
  const left = await countInside(sandbox, "sleep");
  await sandbox.close();
  row("kill of 20 daemons that ignore all signals, p50 (p99)", `${ms(median(times))} (${ms(quantile(times, 0.99))})`, "20 ms p99");
  row("the same: what is left after 100 times", `${left} processes`, "0");
}

/** Until the kernel has ended a namespace whose first process it was told to kill. @param {LocalSandbox} sandbox */
async function kernelKills(sandbox) {
  const known = new Set(childrenOf(process.pid));
  await sandbox.start();
  const monitor = childrenOf(process.pid).find((pid) => !known.has(pid)) ?? 0;
  const [first] = childrenOf(monitor);
  const { ended } = await rampant(sandbox, BOMB);
  await sleep(100);
  const began = performance.now();
  const gone = ended.catch(() => {});
  process.kill(first, "SIGKILL");
  while (existsSync(`/proc/${first}`)) await sleep(1);
  const took = performance.now() - began;
  await gone;
  await sandbox.close().catch(() => {});
  return took;
}

/** @param {LocalSandbox} sandbox */
async function weKill(sandbox) {
  const { ended, end } = await rampant(sandbox, BOMB);
  await sleep(100);
  const began = performance.now();
  end();
  await ended;
  const took = performance.now() - began;
  survivors += await countInside(sandbox, "python");
  await sandbox.close();
  return took;
}
let survivors = 0;

async function bomb() {
  const options = { processes: 200, killGraceSeconds: 0 };
  /** @type {number[]} */
  const ours = [];
  /** @type {number[]} */
  const kernel = [];
  for (let i = 0; i < 20; i++) {
    ours.push(await weKill(isolated(options)));
    kernel.push(await kernelKills(isolated(options)));
  }
  row(
    "kill of a fork bomb of 200 that retries / of its namespace by the kernel, p50",
    `${ms(median(ours))} / ${ms(median(kernel))} = ${(median(ours) / median(kernel)).toFixed(2)}x`,
    "3x",
  );
  row("the same: survivors of 20", `${survivors}`, "0");
}

const openFiles = () => readdirSync("/proc/self/fd").length;

async function hundred() {
  const warm = isolated();
  await warm.exec(TRUE);
  await warm.close();
  const [files, processes] = [openFiles(), descendantsOf(process.pid).length];
  const all = Array.from({ length: 100 }, () => isolated());
  const began = performance.now();
  await Promise.all(all.map((sandbox) => sandbox.start()));
  const started = performance.now();
  await Promise.all(all.map((sandbox) => sandbox.exec(TRUE)));
  const done = performance.now();
  await Promise.all(all.map((sandbox) => sandbox.close()));
  const closed = performance.now();
  const left = [openFiles() - files, descendantsOf(process.pid).length - processes];
  row("100 sandboxes at once: starts, 100 commands, closes", [started - began, done - started, closed - done].map(ms).join(", "));
  row("the same: what is left", `${left[0]} descriptors, ${left[1]} processes`, "0, 0");
}

/** The host that is killed: five sandboxes full of what means ill. */
async function victim() {
  await Promise.all(Array.from({ length: 5 }, () => rampant(isolated(), DAEMONS)));
  process.send?.("up");
}

async function killedHost() {
  /** @type {number[]} */
  const times = [];
  let count = 0;
  for (let i = 0; i < 10; i++) {
    const child = fork(import.meta.filename, ["--victim"]);
    await once(child, "message");
    const all = descendantsOf(/** @type {number} */ (child.pid));
    count = all.length;
    const began = performance.now();
    child.kill("SIGKILL");
    while (all.some(lives) && performance.now() - began < 5000) await sleep(1);
    times.push(performance.now() - began);
  }
  row(`SIGKILL of a host with 5 sandboxes, ${count} processes: until none is left, p50 (longest)`, `${ms(median(times))} (${ms(Math.max(...times))})`, "100 ms");
}

/** By the names that pick some of them. @type {Record<string, () => Promise<void>>} */
const PARTS = { bwrap: besideBwrap, trusted: besideTrusted, idle: idleClose, daemons, bomb, hundred, host: killedHost };

const names = process.argv.slice(2);
if (names[0] === "--victim") await victim();
else for (const name of names.length > 0 ? names : Object.keys(PARTS)) await PARTS[name]();
