// Commands that run: spawn(), with a standard input that stays open, and signals.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { event, eventually, rejection } from "../support/wait.js";
import { providers } from "./providers.js";

const codeOf = async (promise) => (await rejection(promise)).code;

/** A command of `sandbox` that has said `word`. */
async function saying(sandbox, word, command, options) {
  const { happened, fire } = event();
  let text = "";
  const process = await sandbox.spawn(command, {
    ...options,
    onStdout(part) {
      text += part;
      if (text.includes(word)) fire();
    },
  });
  await Promise.race([happened, process.wait().then(() => assert.fail(`never said: ${word}`))]);
  return process;
}

for (const provider of providers) {
  if (!provider.facts.spawns) {
    test(`spawn, ${provider.name}: is refused before anything is created`, async (t) => {
      const world = provider.world(t);
      const sandbox = world.make();
      assert.equal(sandbox.capabilities.spawn, false);
      const error = await rejection(sandbox.spawn("cat"));
      assert.equal(error.code, "ERR_SANDBOX_UNSUPPORTED");
      assert.match(error.message, /redirect from it/);
      assert.equal(sandbox.capabilities.tty, false);
      assert.deepEqual([sandbox.sandboxId, world.existing()], [null, []]);
    });
    continue;
  }

  describe(`spawn, ${provider.name}`, { concurrency: 4 }, () => {
    test("a conversation: what is written is answered, and the end ends it", async (t) => {
      const sandbox = provider.world(t).make();
      assert.equal(sandbox.capabilities.spawn, true);
      await sandbox.writeFile("d/x", "");
      let answered = event();
      const process = await sandbox.spawn('while read -r line; do echo "got $line $WHO"; done; echo over >&2; ls; exit 3', {
        env: { WHO: "me" },
        cwd: "d",
        onStdout: () => answered.fire(),
      });
      await process.write("one\n");
      await answered.happened;
      answered = event();
      await process.write(new TextEncoder().encode("zwö\n"));
      await answered.happened;
      await Promise.all([process.write("thr"), process.end("ee\n")]);
      const result = await process.wait();
      assert.deepEqual([result.status, result.exitCode, result.stderr], ["exited", 3, "over\n"]);
      assert.equal(result.stdout, "got one me\ngot zwö me\ngot three me\nx\n");
    });

    test("a program with arguments, bytes, and more than any pipe holds", async (t) => {
      const sandbox = provider.world(t).make();
      const process = await sandbox.spawn(["wc", "-c"], { encoding: "buffer" });
      const bytes = new Uint8Array(3_000_000).fill(255);
      await process.write(bytes);
      await process.write("");
      await process.end();
      await process.end();
      assert.equal(Number(Buffer.from((await process.wait()).stdout)), bytes.length);
    });

    test("stdin is a web stream, too", async (t) => {
      const process = await provider.world(t).make().spawn("cat; echo end");
      await new Blob(["a".repeat(100_000), "b"]).stream().pipeTo(process.stdin);
      const { stdout } = await process.wait();
      assert.equal(stdout, `${"a".repeat(100_000)}bend\n`);
    });

    test("a write waits for a reader, and ends with the command when none comes", async (t) => {
      const process = await saying(provider.world(t).make(), "ready", "echo ready; exec sleep 1000");
      let taken = false;
      const write = process.write(new Uint8Array(20_000_000)).then(() => (taken = true));
      const failure = rejection(write);
      assert.equal(await process.kill(), true);
      const { status, signal } = await process.wait();
      assert.deepEqual([status, signal], ["signalled", "SIGTERM"]);
      assert.deepEqual([(await failure).code, taken], ["ERR_SANDBOX_CLOSED", false]);
    });

    test("writing to what is over: an input that was ended, closed by the command, or whose command has ended", async (t) => {
      const sandbox = provider.world(t).make();
      const ended = await sandbox.spawn("cat");
      await ended.end();
      assert.equal(await codeOf(ended.write("x")), "ERR_SANDBOX_CLOSED");
      await ended.wait();
      assert.equal(await codeOf(ended.write("x")), "ERR_SANDBOX_CLOSED");
      assert.deepEqual([await ended.kill(), await ended.end()], [false, undefined]);
      const closed = await saying(sandbox, "shut", "exec 0<&-; echo shut; exec sleep 1000");
      assert.equal(await codeOf(closed.write(new Uint8Array(1_000_000))), "ERR_SANDBOX_CLOSED");
      await closed.kill("SIGKILL");
      assert.equal((await closed.wait()).signal, "SIGKILL");
      assert.equal(await codeOf(closed.write(42)), "ERR_SANDBOX_INVALID_ARG");
      assert.equal((await sandbox.shell("echo alive")).output, "alive\n");
    });

    test("signals reach the command, and its own answer to one counts", async (t) => {
      const sandbox = provider.world(t).make();
      const process = await saying(sandbox, "ready", "trap 'echo int; exit 7' INT; echo ready; while :; do read -r line; done");
      assert.equal(await codeOf(process.kill("SIGNONE")), "ERR_SANDBOX_INVALID_ARG");
      assert.equal(await process.kill("SIGINT"), true);
      const { exitCode, stdout } = await process.wait();
      assert.deepEqual([exitCode, stdout], [7, "ready\nint\n"]);
    });

    test("a signal at once is kept until the command runs", async (t) => {
      const process = await provider.world(t).make().spawn(["sleep", "1000"]);
      assert.equal(await process.kill("SIGTERM"), true);
      assert.equal((await process.wait()).signal, "SIGTERM");
    });

    test("SIGKILL, the limit, an abort and await using end the whole tree", async (t) => {
      const sandbox = provider.world(t).make();
      await sandbox.start();
      const tree = "mkdir -p left; (setsid sh -c 'echo $$ >left/NAME.new; mv left/NAME.new left/NAME; exec sleep 1000' &); until [ -e left/NAME ]; do sleep 0.01; done; echo ready; read -r line";
      const start = (name, options) => saying(sandbox, "ready", tree.replaceAll("NAME", name), options);
      const gone = async (name) => {
        const pid = (await sandbox.readFile(`left/${name}`)).trim();
        await eventually(`${name} is gone`, async () => (await sandbox.shell(`kill -0 ${pid} 2>/dev/null || echo gone`)).output === "gone\n");
      };
      const killed = await start("killed");
      await killed.kill("SIGKILL");
      assert.equal((await killed.wait()).signal, "SIGKILL");
      const limited = await start("limited", { timeoutSeconds: 1 });
      assert.equal((await limited.wait()).status, "timedOut");
      const controller = new AbortController();
      const aborted = await start("aborted", { signal: controller.signal });
      controller.abort();
      assert.equal((await aborted.wait()).status, "cancelled");
      const disposed = await start("disposed");
      await disposed[Symbol.asyncDispose ?? Symbol.for("nodejs.asyncDispose")]();
      for (const name of ["killed", "limited", "aborted", "disposed"]) await gone(name);
    });

    test("close() ends it, and what is written meanwhile is told", async (t) => {
      const sandbox = provider.world(t).make();
      const process = await saying(sandbox, "ready", "echo ready; exec sleep 1000");
      const write = rejection(process.write(new Uint8Array(5_000_000)));
      const ended = rejection(process.wait());
      await sandbox.close();
      assert.deepEqual([(await ended).code, (await write).code], ["ERR_SANDBOX_CLOSED", "ERR_SANDBOX_CLOSED"]);
      assert.equal(await codeOf(sandbox.spawn("cat")), "ERR_SANDBOX_CLOSED");
    });

    test("what cannot be is refused by spawn() itself", async (t) => {
      const world = provider.world(t);
      const sandbox = world.make();
      assert.equal(await codeOf(sandbox.spawn("cat", { cwd: "~other" })), "ERR_SANDBOX_INVALID_ARG");
      assert.equal(await codeOf(sandbox.spawn([])), "ERR_SANDBOX_INVALID_ARG");
      assert.equal(await codeOf(sandbox.spawn("cat", { stdin: "x" })), "ERR_SANDBOX_INVALID_ARG");
      assert.equal(await rejection(sandbox.spawn("cat", { signal: AbortSignal.abort("why") })), "why");
      assert.deepEqual(world.existing(), []);
      const mend = world.breakCreation();
      await rejection(sandbox.spawn("cat"));
      mend();
      const missing = await sandbox.spawn("cat", { cwd: "no/such" });
      assert.equal(await codeOf(missing.wait()), "ERR_SANDBOX_INVALID_ARG");
    });

    test("a terminal: its size, what is typed, Ctrl-C and Ctrl-D", async (t) => {
      const sandbox = provider.world(t).make();
      assert.equal(sandbox.capabilities.tty, true);
      const tty = { columns: 91, rows: 17 };
      const command = 'test -t 0 && test -t 1 && test -t 2 && stty size && echo "$TERM" >&2; trap "stty size; exit 7" WINCH; echo ready; while :; do sleep 0.02; done';
      const sized = await saying(sandbox, "ready", command, { tty });
      assert.equal(await sized.resize({ columns: 40, rows: 5 }), true);
      const { stdout, stderr, output, exitCode } = await sized.wait();
      assert.deepEqual([stdout, stderr, exitCode], ["17 91\r\nxterm-256color\r\nready\r\n5 40\r\n", "", 7]);
      assert.equal(output, stdout);
      assert.equal(await sized.resize(tty), false, "it has ended");

      const reading = await saying(sandbox, "ready", "stty -echo; echo ready; cat; echo over", { tty, env: { TERM: "dumb" } });
      await reading.end("typed\n");
      assert.equal((await reading.wait()).stdout, "ready\r\ntyped\r\nover\r\n");

      const interrupted = await saying(sandbox, "ready", "echo ready; exec sleep 1000", { tty });
      await interrupted.write("\u0003");
      const end = await interrupted.wait();
      assert.deepEqual([end.status, end.signal], ["signalled", "SIGINT"]);
    });

    test("a terminal: a program that is talked to, much output, and the end of all", async (t) => {
      const sandbox = provider.world(t).make();
      const tty = { columns: 80, rows: 24 };
      let text = "";
      const shell = await sandbox.spawn(["bash", "--norc", "--noprofile", "-i"], { tty, env: { PS1: "$ " }, onStdout: (part) => (text += part) });
      await shell.write("echo sum $((6 * 7)); sleep 1000 &\n");
      await eventually("the shell has answered", () => text.includes("sum 42"));
      await shell.write("jobs\n");
      await eventually("the shell has job control", () => /\[1\]\+ {2}Running/.test(text));
      await shell.end();
      const { status, exitCode } = await shell.wait();
      assert.deepEqual([status, exitCode], ["exited", 0]);

      const much = await sandbox.spawn("seq 1 50000", { tty });
      const { stdout } = await much.wait();
      assert.equal(stdout, Array.from({ length: 50_000 }, (_, index) => `${index + 1}\r\n`).join(""));
    });

    test("a terminal of no size is refused, and there is none to resize without one", async (t) => {
      const sandbox = provider.world(t).make();
      for (const tty of [{ columns: 0, rows: 1 }, { columns: 80 }, { columns: 80, rows: 70_000 }, "80x24"]) {
        assert.equal(await codeOf(sandbox.spawn("true", { tty })), "ERR_SANDBOX_INVALID_ARG");
      }
      const process = await saying(sandbox, "ready", "echo ready; cat");
      assert.match((await rejection(process.resize({ columns: 1, rows: 1 }))).message, /has no terminal/);
      await process.end();
      assert.equal((await process.wait()).exitCode, 0);
    });
  });
}
