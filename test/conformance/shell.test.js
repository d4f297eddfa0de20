// Which shell reads a command line: bash where there is one, else sh, or the one that is named.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { rejection } from "../support/wait.js";
import { providers } from "./providers.js";

for (const provider of providers) {
  const skip = !provider.facts.choosesShell;

  describe(`shell, ${provider.name}`, { concurrency: 2, skip }, () => {
    test("C161 what models write in bash means what it means there", async (t) => {
      const sandbox = provider.world(t).make();
      for (const [command, output] of [
        ["mkdir -p p/{a,b} && ls p", "a\nb\n"],
        ["echo $'a\\tb'", "a\tb\n"],
        ["echo both &> log; cat log", "both\n"],
        ["[[ abc == a* ]] && echo yes", "yes\n"],
        ["x=(1 2 3); echo ${#x[@]}", "3\n"],
      ]) {
        assert.deepStrictEqual(await sandbox.shell(command), { output, exitCode: 0 });
      }
    });

    test("C161 a call names its shell, or the sandbox does", async (t) => {
      const world = provider.world(t);
      const sandbox = world.make({ shell: "sh" });
      const which = 'test -n "$BASH_VERSION" && echo bash || echo other';
      const stdout = async (spec) => (await sandbox.exec(spec)).stdout;
      assert.equal(await stdout({ command: which, shell: "bash" }), "bash\n");
      assert.equal(await stdout({ command: which, shell: "/bin/bash" }), "bash\n");
      // Where sh is bash, it says so.
      assert.equal(await stdout({ command: which }), await stdout({ command: which, shell: "/bin/sh" }));
      assert.equal(await stdout({ command: "-x; echo on", shell: "bash" }), "on\n");
      assert.equal(await stdout({ command: "+x; echo on", shell: "sh" }), "on\n");
    });

    test("C161 a shell that is not there is refused in words, and nothing runs", async (t) => {
      const sandbox = provider.world(t).make();
      const error = await rejection(sandbox.exec({ command: "touch ran", shell: "/no/such/shell" }));
      assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG");
      assert.equal(error.mayHaveRun, false);
      assert.match(error.message, /\/no\/such\/shell/);
      assert.equal(await sandbox.readFile("ran"), null);
    });

    test("C161 a command line that is longer than an argument may be, in both shells", async (t) => {
      const sandbox = provider.world(t).make();
      for (const shell of ["bash", "sh"]) {
        const command = `x='${"a".repeat(300_000)}'\necho \${#x}; read y; echo "[$y]"; exit 7`;
        const { stdout, exitCode } = await sandbox.exec({ command, shell, stdin: "in\n" });
        assert.deepEqual({ stdout, exitCode }, { stdout: "300000\n[in]\n", exitCode: 7 });
      }
    });
  });
}
