// LocalSandbox: its options, its warning, and what it lets through.
import assert from "node:assert/strict";
import { readdirSync, statSync } from "node:fs";
import { describe, test } from "node:test";
import { inspect } from "node:util";

import { LocalSandbox, SandboxError } from "cloudsandbox";

import { tempDir } from "../support/temp.js";
import { rejection } from "../support/wait.js";

/** Asserts that the constructor throws INVALID_ARG with all `parts` in its message. */
function refused(options, ...parts) {
  assert.throws(
    () => new LocalSandbox(options),
    (error) => {
      assert.ok(error instanceof SandboxError, String(error));
      assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG");
      for (const part of parts) assert.ok(error.message.includes(part), `${part} in: ${error.message}`);
      return true;
    },
    inspect(options),
  );
}

describe("LocalSandbox", () => {
  test("options are checked by the constructor", () => {
    refused(null, "options");
    refused("x", "options");
    refused({ timeout: 3 }, "`timeout`");
    refused({ workspac: "/x" }, "did you mean `workspace`");
    refused({ workspace: "relative" }, "`workspace`", "absolute");
    refused({ workspace: "/a\0b" }, "`workspace`");
    refused({ workspace: 1 }, "`workspace`");
    refused({ tempDir: "tmp" }, "`tempDir`", "absolute");
    refused({ nodePath: "node" }, "`nodePath`", "absolute");
    refused({ env: { A: 1 } }, "`env.A`");
    refused({ env: { "A=B": "1" } }, "`env`");
    refused({ inheritEnv: "HOME" }, "`inheritEnv`");
    refused({ killGraceSeconds: 4 }, "`killGraceSeconds`", "from 0 to 3");
    refused({ defaultTimeoutSeconds: 0 }, "`defaultTimeoutSeconds`", "3600");
    refused({ startTimeoutSeconds: NaN }, "`startTimeoutSeconds`", "3600");
    refused({ maxOutputBytes: 0 }, "`maxOutputBytes`", "16777216");
    refused({ onLost: "ignore" }, "`onLost`", '"recreate", "reject"');
    refused({ isolation: "strict" }, "`isolation`", '"required"');
    refused({ trusted: "yes" }, "`trusted`");
  });

  test("undefined counts as left out", () => {
    const names = [
      "workspace",
      "tempDir",
      "env",
      "inheritEnv",
      "defaultTimeoutSeconds",
      "maxOutputBytes",
      "startTimeoutSeconds",
      "killGraceSeconds",
      "nodePath",
      "onLost",
      "isolation",
    ];
    const sandbox = new LocalSandbox({
      trusted: true,
      ...Object.fromEntries(names.map((name) => [name, undefined])),
    });
    assert.equal(sandbox.providerId, "unix-local");
    assert.equal(sandbox.sandboxId, null);
  });

  test("isolated unless it is said that it need not be", () => {
    for (const [options, providerId] of [
      [undefined, "isolated-local"], [{}, "isolated-local"], [{ trusted: false }, "isolated-local"], [{ isolation: "required" }, "isolated-local"],
      [{ isolation: "none" }, "unix-local"], [{ trusted: true }, "unix-local"],
      // Until it is known.
      [{ isolation: "best-effort" }, "unix-local"], [{ isolation: "best-effort", trusted: true }, "unix-local"],
    ]) {
      const sandbox = new LocalSandbox(options);
      assert.equal(sandbox.providerId, providerId, inspect(options));
      assert.equal(sandbox.isolation, null);
    }
  });

  test("not on Windows", (t) => {
    const platform = Object.getOwnPropertyDescriptor(process, "platform");
    t.after(() => Object.defineProperty(process, "platform", platform));
    Object.defineProperty(process, "platform", { ...platform, value: "win32" });
    assert.throws(() => new LocalSandbox({ isolation: "none" }), { code: "ERR_SANDBOX_UNSUPPORTED" });
  });

  test("constructing makes nothing; a start makes the directory, a close removes it", async (t) => {
    const dir = tempDir(t);
    const sandbox = new LocalSandbox({ isolation: "none", tempDir: dir });
    assert.deepEqual(readdirSync(dir), []);
    await sandbox.start();
    assert.equal(readdirSync(dir).length, 1);
    assert.ok(readdirSync(dir)[0].startsWith("cloudsandbox-"));
    assert.ok(sandbox.sandboxId.startsWith(dir));
    assert.equal(statSync(sandbox.sandboxId).mode & 0o777, 0o700);
    await sandbox.close();
    assert.deepEqual(readdirSync(dir), []);
  });

  test("a given workspace is used and kept", async (t) => {
    const workspace = tempDir(t);
    const sandbox = new LocalSandbox({ isolation: "none", workspace });
    assert.deepStrictEqual(await sandbox.shell("echo x > made; pwd -P"), {
      output: `${workspace}\n`,
      exitCode: 0,
    });
    assert.equal(sandbox.sandboxId, workspace);
    await sandbox.close();
    assert.deepEqual(readdirSync(workspace), ["made"]);
  });

  test("capabilities", () => {
    const { capabilities } = new LocalSandbox({ isolation: "none" });
    assert.ok(Object.isFrozen(capabilities));
    assert.equal(capabilities.local, true);
    assert.equal(capabilities.kill, true);
    assert.equal(capabilities.stdin, true);
  });

  test("no value of `env` shows up in errors, inspection or listings", async (t) => {
    const canary = "sk-canary-5f1d";
    const sandbox = new LocalSandbox({ isolation: "none", tempDir: tempDir(t), env: { API_KEY: canary } });
    t.after(() => sandbox.close());
    assert.equal((await sandbox.shell('test "$API_KEY" && echo set')).output, "set\n");
    const errors = await Promise.all([
      rejection(sandbox.shell("true", { env: { "BAD NAME": canary } })),
      rejection(sandbox.shell("true", { env: { NAME: `${canary}\0` } })),
      rejection(sandbox.exec({ argv: [`/nonexistent/${"x"}`], env: { SECRET: canary }, cwd: "nowhere" })),
      rejection(sandbox.readFile("../outside")),
      rejection(sandbox.writeFile("f", `${canary}!`, "base64")),
    ]);
    const texts = [...errors, sandbox].flatMap((value) => [
      inspect(value, { depth: 9, showHidden: true, getters: true }),
      JSON.stringify(value),
      String(value),
      String(value.stack),
    ]);
    for (const text of texts) assert.ok(!String(text).includes(canary), text);
    assert.deepEqual(Reflect.ownKeys(sandbox), []);
  });
});
