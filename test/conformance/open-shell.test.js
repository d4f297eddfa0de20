// A shell whose state lasts: openShell.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { rejection } from "../support/wait.js";
import { providers } from "./providers.js";

/** A function that runs a command and gives its output and exit code. */
const runner = (shell) => async (command, options) => {
  const { stdout, stderr, exitCode } = await shell.run(command, options);
  return [stdout, exitCode, ...(stderr === "" ? [] : [stderr])];
};

for (const provider of providers) {
  describe(`a shell that lasts, ${provider.name}`, { concurrency: 3 }, () => {
    test("directory, variables, functions, aliases and options last; each command has its own exit code", async (t) => {
      const sandbox = provider.world(t).make();
      await sandbox.shell("mkdir -p 'a b'");
      const shell = await sandbox.openShell({ cwd: "a b", env: { GIVEN: "it's" } });
      const run = runner(shell);
      const set = [
        "export E=$'two\\nlines' N=1; x='a  b'; y=(1 '2 3'); declare -A m=([k]='v w'); declare -i n=4; readonly R=r; unset GIVEN",
        "f() { echo \"$x|${y[1]}|${m[k]}|$1\"; }; export -f f; alias ll='echo alias'",
        "shopt -s expand_aliases extglob; set -o pipefail; umask 027; mkdir c; cd c; IFS=,",
      ].join("\n");
      assert.deepEqual(await run("echo $GIVEN; pwd | tail -c 5"), ["it's\n/a b\n", 0]);
      assert.deepEqual(await run(set), ["", 0]);
      assert.deepEqual(await run("pwd | tail -c 7; f 1; bash -c 'f 2; echo \"$E$N\"'; n+=1; echo $n$R ${GIVEN-none}"), ["/a b/c\na  b|2 3|v w|1\n|||2\ntwo\nlines1\n5r none\n", 0]);
      assert.deepEqual(await run("ll; umask; false | true; echo $?; [[ ab == @(ab|c) ]] && exit 7"), ["alias\n0027\n1\n", 7]);
      assert.deepEqual(await run("printf '<%s>' $(echo 1,2) 'single '\\''quoted'\\'; cd - >/dev/null; pwd | tail -c 5; set -eu"), ["<1><2><single 'quoted'>/a b\n", 0]);
      const [out, code, error] = await run("echo $-$undefined; echo never");
      assert.deepEqual([out, code], ["", 1]);
      assert.match(error, /undefined: unbound/);
      assert.deepEqual(await run("false; echo never"), ["", 1]);
      const broken = await run("set +eu; if then");
      assert.equal(broken[1], 2);
      assert.match(broken[2], /syntax error/);
      assert.deepEqual(await run("echo on; trap 'echo bye' EXIT; z=5"), ["on\nbye\n", 0]);
      assert.deepEqual(await run("echo $z; cat", { stdin: "in" }), ["5\nin", 0]);
      await shell.close();
      await shell.close();
      assert.equal((await rejection(shell.run(":"))).code, "ERR_SANDBOX_CLOSED");
      if (sandbox.capabilities.local) assert.doesNotMatch((await sandbox.shell("ls -A ~")).output, /cloudsandbox/);
    });

    test("a trap of a command's own runs at its end, and a variable that no program can be given lasts", async (t) => {
      const shell = await provider.world(t).make().openShell();
      const run = runner(shell);
      assert.deepEqual(await run("trap 'echo tidied' EXIT; x=1; echo body"), ["body\ntidied\n", 0]);
      assert.deepEqual(await run("echo $x"), ["1\n", 0], "the trap was that command's");
      assert.deepEqual(await run("printf -v D %0200000d 0; export D; y=2"), ["", 0]);
      assert.deepEqual(await run("echo ${#D} $y"), ["200000 2\n", 0]);
    });

    test("a command that is ended changes nothing of it; two at a time run one after the other", async (t) => {
      const sandbox = provider.world(t).make();
      const shell = await sandbox.openShell();
      const run = runner(shell);
      await shell.run("v=before; mkdir -p d; cd d");
      const late = await shell.run("cd /; v=after; echo began; sleep 60", { timeoutSeconds: 1 });
      assert.equal(late.status, "timedOut");
      assert.deepEqual(await run("echo $v; pwd | tail -c 3"), ["before\n/d\n", 0]);
      const controller = new AbortController();
      let cancelled;
      if (sandbox.capabilities.kill) {
        cancelled = await shell.run("v=after; echo now; sleep 60", { signal: controller.signal, onStdout: () => controller.abort(), timeoutSeconds: 5 });
        assert.ok(["cancelled", "timedOut"].includes(cancelled.status), cancelled.status);
      }
      await shell.run("v=after; kill -9 $$");
      assert.deepEqual(await run("echo $v"), ["before\n", 0]);
      const both = await Promise.all([shell.run("v=$v-one; sleep 0.1"), shell.run("v=$v-two; echo $v")]);
      assert.equal(both[1].stdout, "before-one-two\n");
      const other = await sandbox.openShell();
      assert.equal((await other.run("echo ${v-none}")).stdout, "none\n", "another shell has a state of its own");
      await other.close();
    });

    test("a lost sandbox takes the shell with it; a closed one, too", async (t) => {
      const world = provider.world(t);
      const sandbox = world.make();
      const shell = await sandbox.openShell();
      await shell.run("v=1");
      await world.lose(sandbox);
      for (let i = 0; i < 2; i++) assert.equal((await rejection(shell.run("echo $v"))).code, "ERR_SANDBOX_LOST");
      await shell.close();
      const other = await sandbox.openShell();
      assert.equal((await other.run("echo ${v-none}")).stdout, "none\n");
      await sandbox.close();
      assert.equal((await rejection(other.run(":"))).code, "ERR_SANDBOX_CLOSED");
      await other.close();
      assert.equal((await rejection(sandbox.openShell())).code, "ERR_SANDBOX_CLOSED");
    });

    test("what is gone is said, and nothing runs in its place", async (t) => {
      const sandbox = provider.world(t).make();
      const shell = await sandbox.openShell();
      const run = runner(shell);
      await shell.run("mkdir gone; cd gone; rmdir ../gone");
      const [out, code, error] = await run("echo ran");
      assert.deepEqual([out, code], ["", 125]);
      assert.match(error, /gone is gone, and the command was not run/);
      assert.deepEqual(await run("echo ran"), ["ran\n", 0]);
      if (sandbox.capabilities.local) {
        await sandbox.shell("rm -f ~/.cloudsandbox-*.state");
        const lost = await run("echo ran");
        assert.deepEqual(lost.slice(0, 2), ["", 125]);
        assert.match(lost[2], /state of this shell is gone/);
      }
      for (const wrong of [undefined, 1]) assert.equal((await rejection(shell.run(wrong))).code, "ERR_SANDBOX_INVALID_ARG");
      assert.equal((await rejection(shell.run("a\0b"))).code, "ERR_SANDBOX_INVALID_ARG");
      assert.equal((await rejection(shell.run(":", { cwd: "/" }))).code, "ERR_SANDBOX_INVALID_ARG");
      assert.equal((await rejection(sandbox.openShell({ shell: "zsh" }))).code, "ERR_SANDBOX_INVALID_ARG");
      assert.equal((await rejection(sandbox.openShell({ cwd: "absent" }))).code, "ERR_SANDBOX_INVALID_ARG");
    });
  });
}
