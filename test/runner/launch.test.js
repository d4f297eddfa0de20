// launch_shell.sh and launch_code.sh: which shell, what becomes the command, and in which session.
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, openSync, closeSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";

import { tempDir } from "../support/temp.js";
import { everyShell, runText, text, which } from "./support.js";

const launches = { shell: text("launch_shell"), code: text("launch_code") };

/** @param {any} shell @param {string[]} words @param {any} [options] */
async function run(shell, words, options) {
  const { code, stdout, stderr } = await runText(shell, `${launches[/python|node/.test(words[0]) ? "code" : "shell"]}launch "$@"`, ["launch", ...words], options);
  return { code, stdout: stdout.toString(), stderr };
}

everyShell("C161 bash where there is one", async (t, shell) => {
  const line = "mkdir -p p/{a,b} && ls p && echo $'a\\tb'; echo err &> log; cat log";
  const cwd = tempDir(t);
  assert.deepEqual(await run(shell, ["shell", "", line], { cwd }), { code: 0, stdout: "a\nb\na\tb\nerr\n", stderr: "" });
  const { stderr, code } = await run(shell, ["shell", "", "absent-program"]);
  assert.deepEqual({ stderr, code }, { stderr: "bash: line 1: absent-program: command not found\n", code: 127 });
});

everyShell("named shells", async (t, shell) => {
  assert.equal((await run(shell, ["shell", "sh", 'echo "$0"'])).stdout, "/bin/sh\n");
  assert.equal((await run(shell, ["shell", "bash", 'echo "${BASH_VERSION:+bash}"'])).stdout, "bash\n");
  const own = path.join(tempDir(t), "my shell");
  symlinkSync("/bin/sh", own);
  assert.equal((await run(shell, ["shell", own, 'echo "$0"'])).stdout, `${own}\n`);
  assert.equal((await run(shell, ["shell", "/absent/shell", "true"])).code, 127);
});

everyShell("a bash that is not in the PATH is found, and one that is first in it is taken", async (t, shell) => {
  const line = 'echo "${BASH_VERSION:+bash}"';
  assert.equal((await run(shell, ["shell", "", line], { env: { PATH: "/absent" } })).stdout, "bash\n");
  const folder = path.join(tempDir(t), "bin");
  mkdirSync(folder);
  writeFileSync(path.join(folder, "bash"), "#!/bin/sh\necho mine\n");
  chmodSync(path.join(folder, "bash"), 0o755);
  assert.equal((await run(shell, ["shell", "", line], { env: { PATH: `${folder}:/usr/bin:/bin` } })).stdout, "mine\n");
});

everyShell("texts that look like options, are empty, or are in a file", async (t, shell) => {
  assert.equal((await run(shell, ["shell", "sh", "-x; echo ok"])).stdout, "ok\n");
  assert.equal((await run(shell, ["shell", "", "+x; echo ok"])).stdout, "ok\n");
  assert.deepEqual(await run(shell, ["shell", "", ""]), { code: 0, stdout: "", stderr: "" });
  const file = path.join(tempDir(t), "long");
  writeFileSync(file, `exec 9<&-; echo "$(ls /proc/$$/fd | grep -c '^9$')"\n: ${"x".repeat(300_000)}\nfalse`);
  for (const name of ["", "sh"]) {
    const fd = openSync(file, "r");
    const stdio = ["ignore", "pipe", "pipe", ...Array(6).fill("ignore"), fd];
    const { code, stdout } = await run(shell, ["script", name], { stdio });
    closeSync(fd);
    assert.deepEqual({ code, stdout }, { code: 1, stdout: "0\n" });
  }
});

everyShell("code, and words", async (t, shell) => {
  const cwd = tempDir(t);
  const main = path.join(cwd, "main.py");
  writeFileSync(main, "import sys; print(__file__, sys.stdin.read())");
  assert.equal((await run(shell, ["python", main, ""], { input: "in" })).stdout, `${main} in\n`);
  assert.equal((await run(shell, ["python", "", "print(7)"])).stdout, "7\n");
  assert.equal((await run(shell, ["python", "", ""], { input: "print(8)" })).stdout, "8\n");
  writeFileSync(path.join(cwd, "main.js"), "console.log(require.main === module, __dirname)");
  assert.equal((await run(shell, ["node", path.join(cwd, "main.js"), ""])).stdout, `true ${cwd}\n`);
  writeFileSync(path.join(cwd, "main.js"), "console.log(path.sep, typeof fs.statSync, process.argv.length, process.execArgv.length)");
  assert.equal((await run(shell, ["node", path.join(cwd, "main.js"), ""])).stdout, "/ function 2 0\n");
  assert.equal((await run(shell, ["node", "", "/x/.test('x') && console.log(path.sep)"])).stdout, "/\n");
  assert.equal((await run(shell, ["node", "", "-7; console.log(7)"])).stdout, "7\n");
  assert.equal((await run(shell, ["node", "", ""], { input: "console.log(8)" })).stdout, "8\n");
  assert.equal((await run(shell, ["argv", "printf", "%s.", "a b", "", "*"])).stdout, "a b..*.");
});

everyShell("the command leads a session, and its variables are its own", async (t, shell) => {
  const line = 'read -r pid name state parent group session rest </proc/self/stat; [ "$pid" = "$session" ]; echo $?; set';
  const { stdout } = await run(shell, ["shell", "sh", line], { env: { PATH: process.env.PATH } });
  assert.equal(stdout.split("\n")[0], "0");
  assert.doesNotMatch(stdout, /\b__[a-z]/);
  assert.ok(which("setsid"));
});
