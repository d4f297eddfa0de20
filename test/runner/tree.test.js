// kill.sh and tree.sh: the whole tree of a command, by its mark and by parentage.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { eventually } from "../support/wait.js";
import { asSh, everyShell, newTag, runText, shells, text, which } from "./support.js";

const kill = text("kill");

/** All processes that have not ended; one whose first thread has looks as if it had. */
function processes() {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name)).flatMap((pid) => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      const line = readFileSync(`/proc/${pid}/cmdline`, "latin1");
      return fields[0] === "Z" && Number(fields[17]) < 2 ? [] : [{ pid: Number(pid), session: Number(fields[3]), line }];
    } catch {
      return [];
    }
  });
}

/** Of one command: by a word in their arguments, or its session. @param {{ tag: string, child: { pid?: number } }} command */
const living = ({ tag, child }) =>
  processes().filter(({ line, session }) => line.includes(tag) || session === child.pid);

/** A command line in a session of its own, with a mark. @param {any} t @param {string} line */
async function start(t, line) {
  const tag = newTag();
  const mark = `CLOUDSANDBOX_RUN=${tag}`;
  const child = spawn("/bin/bash", ["-c", line, "bash", tag], {
    detached: true,
    stdio: ["ignore", "pipe", "ignore"],
    env: { ...process.env, CLOUDSANDBOX_RUN: tag, WORD: tag },
  });
  t.after(() => {
    for (const { pid } of living({ tag, child })) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // Gone meanwhile.
      }
    }
    child.stdout.destroy();
  });
  await new Promise((resolve) => child.stdout.once("data", resolve));
  return { child, tag, mark, root: `${child.pid}:` };
}

// Each starts processes whose command lines hold $WORD, and says so when they are there.
const TREES = {
  "children, and a session of its own": 'sleep 60 & setsid bash -c "sleep 61; : $WORD" & echo up; wait; : $WORD',
  "no environment, and a session of its own": 'env -i setsid bash -c "sleep 62; : $WORD" & echo up; sleep 60; : $WORD',
  "no environment, and no parents, in the command's session": 'bash -c "env -i bash -c \\"sleep 63; : $WORD\\" &"; echo up; sleep 60; : $WORD',
  "mark, but no parents and another session": 'bash -c "setsid bash -c \\"sleep 64; : $WORD\\" &"; echo up; sleep 60; : $WORD',
  "a name with blanks, line ends and parentheses":
    `python3 -c 'import ctypes, sys, time
ctypes.CDLL(None).prctl(15, b"x) R 1\\n7 (y")
print("up", flush=True); time.sleep(60)' $WORD; : $WORD`,
  "the first thread has ended":
    `python3 -c 'import threading, ctypes, time
print("up", flush=True)
threading.Thread(target=time.sleep, args=(60,)).start(); ctypes.CDLL(None).pthread_exit(None)' $WORD; : $WORD`,
  "an environment of 3,000 lines": 'export BIG="$(seq 3000)"; setsid bash -c "sleep 65; : $WORD" & echo up; wait; : $WORD',
  "signals that are ignored": 'trap "" TERM HUP INT; setsid bash -c "trap \\"\\" TERM; echo up; sleep 66; : $WORD" & wait; : $WORD',
};

for (const [name, line] of Object.entries(TREES)) {
  everyShell(`C194 ends a tree: ${name}`, async (t, shell) => {
    const command = await start(t, line);
    const { mark, root } = command;
    assert.ok(living(command).length > 0);
    const bystander = spawn("sleep", ["50"], { stdio: "ignore", detached: true });
    t.after(() => bystander.kill("SIGKILL"));
    const { code, stdout, stderr } = await runText(shell, kill, ["kill", mark, root]);
    assert.deepEqual({ code, stdout: stdout.toString(), stderr }, { code: 0, stdout: "", stderr: "" });
    assert.deepEqual(living(command), []);
    assert.equal(bystander.exitCode ?? bystander.signalCode, null);
  });
}

everyShell("a tree whose first process is not known, or has ended", async (t, shell) => {
  const one = await start(t, 'setsid bash -c "sleep 67; : $WORD" & echo up; wait; : $WORD');
  assert.equal((await runText(shell, kill, ["kill", one.mark, ""])).code, 0);
  assert.deepEqual(living(one), []);
  const two = await start(t, 'env -i bash -c "sleep 68; : $WORD" & echo up');
  await eventually("its end", () => two.child.exitCode === 0);
  assert.equal((await runText(shell, kill, ["kill", two.mark, two.root])).code, 0);
  assert.deepEqual(living(two), []);
});

/** The program, as it is built, where a process has neither variables nor arguments when it is looked at for the first times. */
const whileUnborn = (program, pid, times) =>
  `_cs_late=0\n${program
    .replace("variables() {", `$&\n  if [ "$1" = ${pid} ] && [ $_cs_late -lt ${times} ]; then _cs_late=$((_cs_late + 1)) __l=''; return 1; fi`)
    .replace("unborn() {", `$&\n  if [ "$1" = ${pid} ] && [ $_cs_late -lt ${times} ]; then return 0; fi`)}`;

/** A process of a command, found by nothing but its mark, which goes on when what it has started is ended. */
async function startMarked(t) {
  const command = await start(t, 'bash -c "setsid bash -c \\"while :; do sleep 64; done; : $WORD\\" &"; echo up; sleep 60; : $WORD');
  const inner = () => living(command).filter(({ line, session, pid }) => line.startsWith("bash\0-c\0while") && session === pid);
  await eventually("it runs", () => inner().length === 1);
  return { command, pid: inner()[0].pid };
}

everyShell("C194 a process in the midst of its exec, of which nothing can be read yet, is looked at again", async (t, shell) => {
  for (const times of [1, 2, 5]) {
    const { command, pid } = await startMarked(t);
    const { code } = await runText(shell, whileUnborn(kill, pid, times), ["kill", command.mark, command.root]);
    assert.equal(code, 0);
    assert.deepEqual(living(command), [], `${times}`);
  }
});

everyShell("C194 one that could not be read, and is in no list the next time, is looked at again", async (t, shell) => {
  const { command, pid } = await startMarked(t);
  const missing = whileUnborn(kill, pid, 7).replace("look() {", `$&\n  if [ "$__p" = ${pid} ] && [ $_cs_late = 6 ]; then _cs_late=7; return 1; fi`);
  const { code } = await runText(shell, missing, ["kill", command.mark, command.root]);
  assert.equal(code, 0);
  assert.deepEqual(living(command), []);
});

everyShell("processes without variables, and those of the kernel, cost no more looks", async (t, shell) => {
  const { mark, root } = await start(t, "echo up; exec sleep 60");
  const idle = spawn("sleep", ["50"], { stdio: "ignore", detached: true, env: {} });
  t.after(() => idle.kill("SIGKILL"));
  const counting = kill.replaceAll(/^ +pass .*$/gm, "$&\n    echo pass");
  const { code, stdout } = await runText(shell, counting, ["kill", mark, root]);
  assert.equal(code, 0);
  const passes = stdout.toString().split("\n").filter((line) => line === "pass").length;
  assert.ok(passes >= 2 && passes <= 5, `${passes}`);
});

everyShell("of a tree it is known how old it is at most: what is older is not looked at, and the number may be another's", async (t, shell) => {
  const older = await start(t, 'echo up; sleep 60; : $WORD');
  await sleep(1100);
  const one = await start(t, 'setsid bash -c "sleep 69; : $WORD" & echo up; wait; : $WORD');
  assert.equal((await runText(shell, kill, ["kill", one.mark, `${older.child.pid}:~60`])).code, 0);
  assert.deepEqual(living(one), []);
  assert.equal((await runText(shell, kill, ["kill", older.mark, `${process.pid}:~0`])).code, 0);
  assert.ok(living(older).length > 0, "it began before");
  const [two, three] = [await start(t, TREES["no environment, and a session of its own"]), await start(t, 'env -i bash -c "sleep 70; : $WORD" & echo up')];
  await eventually("its end", () => three.child.exitCode === 0);
  for (const { mark, root } of [two, three]) assert.equal((await runText(shell, kill, ["kill", mark, `${root}~60`])).code, 0);
  assert.deepEqual([...living(two), ...living(three)], []);
});

everyShell("nothing is there: a success, and the files that are named go", async (t, shell) => {
  assert.equal((await runText(shell, kill, ["kill", `CLOUDSANDBOX_RUN=${newTag()}`, "", "/nothing/there"])).code, 0);
});

// For ever: a child, which leaves the session and goes on as its parent does. What cannot be forked is passed
// over. By a limit of its own the user's processes are at most 150.
const BOMB = `
import os, resource, time
end = time.monotonic() + 25
while time.monotonic() < end:
    try:
        if os.fork() == 0: os.setsid()
    except OSError: pass
`;

for (const shell of shells) {
  const unusable = shell.path ? !which("setpriv") || process.getuid() !== 0 : "not installed";
  test(`C206 ends a fork bomb that tries again [${shell.name}]`, { timeout: 60_000, skip: unusable || false }, async (t) => {
    // A user of its own, so that the limit counts nobody else's.
    const uid = 64_000 + (process.pid % 1000) * 4 + shells.indexOf(shell);
    const own = () => processes().filter(({ pid }) => {
      try {
        return readFileSync(`/proc/${pid}/status`, "latin1").includes(`\nUid:\t${uid}\t`);
      } catch {
        return false;
      }
    });
    t.after(async () => {
      for (let i = 0; i < 200 && own().length > 0; i += 1) {
        for (const { pid } of own()) {
          try {
            process.kill(pid, "SIGKILL");
          } catch {
            // Gone meanwhile.
          }
        }
        await sleep(5);
      }
    });
    const as = ["setpriv", `--reuid=${uid}`, "--clear-groups", "prlimit", "--nproc=150", "--"];
    const tag = newTag();
    const bomb = spawn(as[0], [...as.slice(1), "python3", "-c", BOMB], {
      detached: true,
      stdio: "ignore",
      cwd: "/",
      env: { ...process.env, CLOUDSANDBOX_RUN: tag },
    });
    await eventually("the bomb", () => own().length > 140);
    // As the same user, who may have no process more: the killer was started before, as the runner is.
    const killer = [...asSh(shell), "-c", kill, "kill", `CLOUDSANDBOX_RUN=${tag}`, `${bomb.pid}:`];
    const child = spawn("setpriv", [`--reuid=${uid}`, "--clear-groups", ...killer], { stdio: "ignore", cwd: "/" });
    const code = await new Promise((resolve) => child.once("close", resolve));
    assert.equal(code, 0);
    assert.deepEqual(own(), []);
  });
}
