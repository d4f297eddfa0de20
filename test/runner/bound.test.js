// bound.sh, load.sh, save.sh and live.sh: what a container's processes run.
import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { spawn } from "node:child_process";
import path from "node:path";

import { tempDir } from "../support/temp.js";
import { eventually } from "../support/wait.js";
import { everyShell, newTag, runText, text } from "./support.js";

const programs = Object.fromEntries(["bound_shell", "bound_code", "load", "save", "live"].map((name) => [name, text(name)]));

/** Processes whose environment has the mark. @param {string} token */
function marked(token) {
  return readdirSync("/proc").filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      const [, state] = /^\d+ \(.*\) (\S)/s.exec(readFileSync(`/proc/${name}/stat`, "latin1")) ?? [];
      return state !== "Z" && readFileSync(`/proc/${name}/environ`, "latin1").includes(`CLOUDSANDBOX_CALL=${token}`);
    } catch {
      return false;
    }
  });
}

/**
 * @param {any} shell
 * @param {{ limit?: string, dir?: string, how?: string, join?: string, stdin?: string, file?: string, env?: any, input?: string | Buffer,
 *   detached?: boolean }} how
 * @param {string[]} words
 */
async function bound(shell, { limit = "", dir = "", how = "", join = "", stdin = "", file = "", env, input, detached = false }, words) {
  const token = newTag();
  const { stdout, stderr } = await runText(
    shell, /^(python|node)$/.test(words[0]) ? programs.bound_code : programs.bound_shell, ["sh", limit, dir, how, join, stdin, file, "", ...words],
    { env: { PATH: process.env.PATH, HOME: "/", ...env, CLOUDSANDBOX_CALL: token }, input, detached },
  );
  const line = new RegExp(`\u001e${token} (\\d+)(?: (\\d+))?\n$`);
  const [, code, number] = line.exec(stdout.toString()) ?? [];
  assert.equal(line.exec(stderr)?.[1], code, "the line stands in both");
  return {
    token, code: Number(code), number: number && Number(number),
    stdout: stdout.toString().replace(line, ""), stderr: stderr.replace(line, ""),
  };
}

everyShell("outputs apart and joined, exit codes, directories", async (t, shell) => {
  const dir = tempDir(t);
  const first = await bound(shell, { dir }, ["shell", "sh", "pwd; echo err >&2; exit 3"]);
  assert.deepEqual([first.stdout, first.stderr, first.code], [`${dir}\n`, "err\n", 3]);
  const joined = await bound(shell, { join: "j" }, ["shell", "sh", "echo a; echo b >&2; echo c"]);
  assert.deepEqual([joined.stdout, joined.stderr, joined.code], ["a\nb\nc\n", "", 0]);
  mkdirSync(path.join(dir, "home/in it"), { recursive: true });
  const home = await bound(shell, { dir: "~/in it", env: { HOME: path.join(dir, "home") } }, ["argv", "pwd"]);
  assert.equal(home.stdout, `${path.join(dir, "home/in it")}\n`);
  assert.equal((await bound(shell, { dir: "/absent" }, ["argv", "pwd"])).code, 998);
  assert.equal((await bound(shell, {}, ["shell", "absent-shell", "pwd"])).code, 999);
  assert.equal((await bound(shell, {}, ["argv", "absent-program"])).code, 127);
});

everyShell("a shell that nobody named is no login shell: the image's PATH holds", async (t, shell) => {
  const { stdout } = await bound(shell, { env: { PATH: `/usr/local/own:${process.env.PATH}` } }, ["shell", "", 'echo "$PATH"']);
  assert.match(stdout, /^\/usr\/local\/own:/);
});

everyShell("input: the one that is here, a file, none", async (t, shell) => {
  const input = Buffer.alloc(300_000, "x");
  assert.equal((await bound(shell, { stdin: "-", input }, ["argv", "wc", "-c"])).stdout.trim(), "300000");
  assert.equal((await bound(shell, { input }, ["argv", "wc", "-c"])).stdout.trim(), "0");
  const file = path.join(tempDir(t), "input");
  writeFileSync(file, "from a file");
  assert.equal((await bound(shell, { stdin: file, input }, ["argv", "cat"])).stdout, "from a file");
  assert.ok(!existsSync(file));
});

everyShell("the limit ends the whole tree, also what hides from its mark, and nothing of its file is left", async (t, shell) => {
  const dir = tempDir(t);
  const line = "env -i sleep 97 & setsid sleep 97 & (sleep 97 &); sleep 97";
  const late = await bound(shell, { dir, limit: "0.300" }, ["shell", "sh", line]);
  assert.equal(late.code, 997);
  assert.deepEqual(marked(late.token), []);
  const code = await bound(shell, { dir, limit: "4.000" }, ["python", "import time; print('begun', flush=True); time.sleep(97)"]);
  assert.deepEqual([code.code, code.stdout], [997, "begun\n"]);
  assert.deepEqual(readdirSync(dir), []);
});

everyShell("a command that is quick leaves no timer behind", async (t, shell) => {
  const { token, code } = await bound(shell, { limit: "60.000" }, ["shell", "sh", "exit 0"]);
  assert.equal(code, 0);
  await eventually("no process of it", () => marked(token).length === 0);
});

everyShell("the background goes on, or is ended with the command and told", async (t, shell) => {
  const line = "sleep 97 >/dev/null 2>&1 & echo on";
  const on = await bound(shell, {}, ["shell", "sh", line]);
  assert.deepEqual([on.stdout, on.number], ["on\n", undefined]);
  assert.equal(marked(on.token).length, 1);
  for (const pid of marked(on.token)) process.kill(Number(pid), "SIGKILL");
  const ended = await bound(shell, { how: "e" }, ["shell", "sh", line]);
  assert.deepEqual([ended.stdout, ended.code, ended.number], ["on\n", 0, 1]);
  assert.deepEqual(marked(ended.token), []);
  assert.equal((await bound(shell, { how: "e" }, ["argv", "true"])).number, undefined);
});

everyShell("the outputs are kept open for the background, as long as there is one", async (t, shell) => {
  const begin = performance.now();
  const kept = await bound(shell, { how: "k" }, ["shell", "sh", "(sleep 1.2) >/dev/null 2>&1 & echo on"]);
  assert.equal(kept.stdout, "on\n");
  assert.ok(performance.now() - begin > 1000);
  await eventually("its end", () => marked(kept.token).length === 0);
});

everyShell("the outputs are not kept open for the program itself, which an engine makes the leader of its group", async (t, shell) => {
  const { token, code } = await bound(shell, { how: "k", limit: "60.000", detached: true }, ["shell", "sh", "exit 3"]);
  assert.equal(code, 3);
  await eventually("its end", () => marked(token).length === 0);
});

everyShell("a command that was killed: how often memory was wanting is told, and is nothing here", async (t, shell) => {
  const { code, number } = await bound(shell, {}, ["shell", "sh", "kill -9 $$"]);
  assert.equal(code, 137);
  assert.equal(number, 0);
});

/** @param {any} shell @param {string} file @param {number} most */
async function load(shell, file, most = 1e9, options = {}) {
  const { stdout, stderr } = await runText(shell, programs.load, ["sh", file, String(most)], options);
  return [stdout, stderr.trim()];
}

everyShell("load: exact, missing, wrong, large, of the kernel", async (t, shell) => {
  const dir = tempDir(t);
  const bytes = Buffer.from(Array.from({ length: 256 * 300 }, (_, i) => i % 256));
  const file = path.join(dir, "a b\n-c");
  writeFileSync(file, bytes);
  assert.deepEqual(await load(shell, file), [bytes, "whole"]);
  assert.deepEqual(await load(shell, "a b\n-c", 1e9, { cwd: dir }), [bytes, "whole"]);
  assert.deepEqual(await load(shell, file, bytes.length), [bytes, "whole"]);
  assert.deepEqual(await load(shell, file, bytes.length - 1), [Buffer.alloc(0), "large"]);
  assert.deepEqual(await load(shell, "~/a b\n-c", 1e9, { env: { ...process.env, HOME: dir } }), [bytes, "whole"]);
  writeFileSync(path.join(dir, "-n"), "");
  assert.deepEqual(await load(shell, "-n", 5, { cwd: dir }), [Buffer.alloc(0), "whole"]);
  assert.deepEqual(await load(shell, path.join(dir, "absent/too")), [Buffer.alloc(0), "absent"]);
  assert.deepEqual(await load(shell, dir), [Buffer.alloc(0), "nodir"]);
  assert.deepEqual(await load(shell, `${file}/below`), [Buffer.alloc(0), "nodir"]);
  assert.deepEqual(await load(shell, "/dev/null"), [Buffer.alloc(0), "nodir"]);
  assert.match(String((await load(shell, "/proc/self/status"))[0]), /^Name:/);
});

/** @param {any} shell @param {string} file @param {Buffer | string} input @param {number} size */
async function save(shell, file, input, size = Buffer.byteLength(input), options = {}) {
  const { stdout } = await runText(shell, programs.save, ["sh", file, String(size)], { input, ...options });
  return stdout.toString().trim();
}

everyShell("save: exact, with its folders, in place; short and wrong", async (t, shell) => {
  const dir = tempDir(t);
  const bytes = Buffer.from(Array.from({ length: 256 * 300 }, (_, i) => i % 256));
  const file = path.join(dir, "new folder/-x/f");
  assert.equal(await save(shell, file, bytes), "whole");
  assert.deepEqual(readFileSync(file), bytes);
  chmodSync(file, 0o600);
  symlinkSync(file, path.join(dir, "link"));
  assert.equal(await save(shell, path.join(dir, "link"), "shorter"), "whole");
  assert.deepEqual([readFileSync(file, "utf8"), statSync(file).mode & 0o777], ["shorter", 0o600]);
  assert.equal(await save(shell, "-n", "", 0, { cwd: dir }), "whole");
  assert.equal(await save(shell, "~/at home", "x", 1, { env: { ...process.env, HOME: dir } }), "whole");
  assert.equal(readFileSync(path.join(dir, "at home"), "utf8"), "x");
  // The end of the input need not come: so many bytes are read, and no more.
  assert.equal(await save(shell, path.join(dir, "part"), "abcdef", 3), "whole");
  assert.equal(readFileSync(path.join(dir, "part"), "utf8"), "abc");
  assert.equal(await save(shell, path.join(dir, "part"), "ab", 3), "short");
  assert.equal(await save(shell, dir, "x"), "nodir");
  assert.equal(await save(shell, path.join(file, "below"), "x"), "nodir");
  assert.equal(await save(shell, "/dev/full", "x"), "nodir");
});

everyShell("live: ends by itself, and what it waits with may be killed", async (t, shell) => {
  const child = spawn(shell.path, [...shell.words, "-c", programs.live, "sh", "2"], { stdio: "ignore" });
  const begin = performance.now();
  const ended = new Promise((resolve) => child.once("exit", resolve));
  // Whatever it has just started: what tells the time, or its sleep.
  for (const end = begin + 700; performance.now() < end; await new Promise((resolve) => setTimeout(resolve, 20))) {
    for (const pid of readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8").split(" ").filter(Boolean)) {
      try {
        process.kill(Number(pid), "SIGKILL");
      } catch {
        // It has ended by itself.
      }
    }
  }
  assert.equal(await ended, 0);
  assert.ok(performance.now() - begin > 900);
});
