// Limits: what they accept, what a passed one gives, and that nothing outlives it.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { SandboxToolkit } from "cloudsandbox";

import { callTool, toolsByRole } from "../support/host.js";
import { mark } from "../support/processes.js";
import { slow } from "../support/slow.js";
import { HANG_MS, rejection } from "../support/wait.js";
import { providers } from "./providers.js";

// Long enough for a command to print first, on a machine that has other things to do.
const LIMIT_S = 10;

// All providers at once, and beside what follows: commands that are let alone, but for the ends of a few.
const long = () => {
  for (const provider of providers) {
    describe(`long commands, ${provider.name}`, { concurrency: true }, () => {
      test(`C010 a long command under a longer limit ends by itself (${slow ? "70 s" : "2 s"})`, async (t) => {
        const [seconds, timeoutSeconds] = slow ? [70, 120] : [2, 60];
        const sandbox = provider.world(t).make();
        assert.deepStrictEqual(await sandbox.shell(`sleep ${seconds}; echo ok`, { timeoutSeconds }), {
          output: "ok\n",
          exitCode: 0,
        });
      });

      test(`C014 the default limit (${slow ? "the built-in 30 s" : "given to the constructor"})`, async (t) => {
        const [options, within, beyond] = slow
          ? [{}, 20, 40]
          : [{ defaultTimeoutSeconds: 8 }, 0.5, 300];
        const sandbox = provider.world(t).make(options);
        const [ends, limited] = await Promise.all([
          sandbox.shell(`sleep ${within}; echo ok`),
          sandbox.shell(`sleep ${beyond}; echo late`),
        ]);
        assert.deepStrictEqual(ends, { output: "ok\n", exitCode: 0 });
        assert.deepStrictEqual(limited, { output: "", exitCode: 124, timedOut: true });
      });
    });
  }
};

// Not all at once: the ends of limits look at all processes, and would come late.
const limits = () => {
  for (const provider of providers) {
    const { facts } = provider;

    describe(`timeouts, ${provider.name}`, { concurrency: 4 }, () => {
      test("C009 a passed limit is a result: 124, the output so far, and no process left", async (t) => {
        const sandbox = provider.world(t).make();
        const tracked = mark();
        const begin = performance.now();
        const result = await sandbox.shell("echo before; sleep 300", {
          timeoutSeconds: LIMIT_S,
          env: tracked.env,
        });
        assert.deepStrictEqual(result, { output: "before\n", exitCode: 124, timedOut: true });
        assert.ok(performance.now() - begin < HANG_MS);
        if (facts.onThisMachine) assert.deepEqual(tracked.alive(), []);
        assert.deepStrictEqual(await sandbox.shell("echo next"), { output: "next\n", exitCode: 0 });
      });

      test("C009 run() keeps the limit too, and exec() tells how the end came", async (t) => {
        const sandbox = provider.world(t).make();
        const code = "import time\nprint('before')\ntime.sleep(300)";
        assert.deepStrictEqual(await sandbox.run(code, { timeoutSeconds: LIMIT_S }), {
          output: "before\n",
          exitCode: 124,
          timedOut: true,
        });
        const result = await sandbox.exec({ command: "sleep 300", timeoutSeconds: 1 });
        assert.equal(result.status, "timedOut");
        assert.equal(result.exitCode, 124);
        if (facts.onThisMachine) assert.equal(result.termination, "confirmed");
      });

      test("C011 a limit that is none is refused, and nothing is created", async (t) => {
        const world = provider.world(t);
        const sandbox = world.make();
        for (const timeoutSeconds of [0, -1, NaN, Infinity, 1e12, 3600.5, "5", null]) {
          for (const name of ["shell", "run"]) {
            let call;
            assert.doesNotThrow(
              () => (call = sandbox[name]("true", { timeoutSeconds })),
              `${name} ${timeoutSeconds}`,
            );
            const error = await rejection(call);
            assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG");
            assert.match(error.message, /timeoutSeconds/);
            assert.match(error.message, /3600/);
            assert.equal(/exec\(\) takes up to 86400/.test(error.message), timeoutSeconds > 3600, String(timeoutSeconds));
          }
        }
        for (const timeoutSeconds of [0, -1, NaN, 86401, 1e12]) {
          const error = await rejection(sandbox.exec({ command: "true", timeoutSeconds }));
          assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG");
          assert.match(error.message, /timeoutSeconds/);
          assert.match(error.message, /86400/);
        }
        assert.deepEqual(world.existing(), []);
      });

      test("C011 the largest limits are limits, not an immediate end", async (t) => {
        const sandbox = provider.world(t).make();
        assert.deepStrictEqual(await sandbox.shell("sleep 0.3; echo ok", { timeoutSeconds: 3600 }), {
          output: "ok\n",
          exitCode: 0,
        });
        for (const timeoutSeconds of [86400, Infinity]) {
          const { status, stdout } = await sandbox.exec({
            command: "sleep 0.3; echo ok",
            timeoutSeconds,
          });
          assert.deepEqual({ status, stdout }, { status: "exited", stdout: "ok\n" });
        }
      });

      test("C011 the constructor refuses such a default", async (t) => {
        const world = provider.world(t);
        for (const defaultTimeoutSeconds of [0, -1, NaN, Infinity, 3601]) {
          assert.throws(
            () => world.make({ defaultTimeoutSeconds }),
            (error) =>
              error.code === "ERR_SANDBOX_INVALID_ARG" &&
              /[tT]imeoutSeconds/.test(error.message) &&
              /3600/.test(error.message),
          );
        }
        for (const maxOutputBytes of [0, -1, 1.5, NaN, 16_777_217]) {
          assert.throws(
            () => world.make({ maxOutputBytes }),
            (error) => /maxOutputBytes/.test(error.message) && /16777216/.test(error.message),
          );
        }
      });

      test("C012 half a second is a limit", async (t) => {
        const result = await provider.world(t).make().shell("sleep 300", { timeoutSeconds: 0.5 });
        assert.deepStrictEqual(result, { output: "", exitCode: 124, timedOut: true });
      });

      test("C014 the sandbox's default is the tools' default, and a call's own limit wins", async (t) => {
        const sandbox = provider.world(t).make({ defaultTimeoutSeconds: 1 });
        const { shell } = toolsByRole(new SandboxToolkit(sandbox, { name: "any" }));
        const [limited, ends] = await Promise.all([
          callTool(shell, { command: "sleep 300" }),
          callTool(shell, { command: "sleep 2; echo ok", timeoutSeconds: 60 }),
        ]);
        assert.deepStrictEqual(JSON.parse(limited), { output: "", exitCode: 124, timedOut: true });
        assert.deepStrictEqual(JSON.parse(ends), { output: "ok\n", exitCode: 0 });
      });
    });
  }
};

describe("timeouts", { concurrency: 2 }, () => {
  describe("long commands", { concurrency: true }, long);
  describe("limits", { concurrency: 2 }, limits);
});
