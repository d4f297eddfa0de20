// What a local command finds around it: variables, programs, terminal.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";
import { promisify } from "node:util";

import { LocalSandbox } from "cloudsandbox";

import { NOT_NODE, runNode } from "../support/node.js";
import { mark } from "../support/processes.js";
import { tempDir } from "../support/temp.js";

function open(t, options) {
  const sandbox = new LocalSandbox({ isolation: "none", tempDir: tempDir(t), ...options });
  t.after(() => sandbox.close());
  return sandbox;
}

/** The variables of a command as an object. */
async function variables(sandbox, options) {
  const { output } = await sandbox.shell("env -0", options);
  return Object.fromEntries(
    output
      .split("\0")
      .filter(Boolean)
      .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
  );
}

describe("environment", { concurrency: 4 }, () => {
  test("C182 `inheritEnv` leaves out names that a shell cannot hold, and says nothing", async () => {
    const { stdout, stderr } = await runNode(
      `import { LocalSandbox } from "cloudsandbox";
       const sandbox = new LocalSandbox({ isolation: "none", inheritEnv: Object.keys(process.env) });
       const { output } = await sandbox.shell("env | grep -E '^(PLAIN_X|BASH_FUNC_x|my)'");
       console.log(output);
       await sandbox.close();`,
      { env: { "BASH_FUNC_x%%": "() { :; }", "my.var": "1", PLAIN_X: "plain" } },
    );
    assert.equal(stderr, "");
    assert.equal(stdout.trim(), "PLAIN_X=plain");
  });

  test("C055 the host's variables stay with the host, unless they are named", async () => {
    const { stdout, stderr } = await runNode(
      `import { LocalSandbox } from "cloudsandbox";
       const show = async (options) => {
         const sandbox = new LocalSandbox({ isolation: "none", ...options });
         console.log(JSON.stringify((await sandbox.shell("env")).output.split("\\n").filter((line) => /SECRET|E2B|PLAIN|OPTIONS/.test(line)).sort()));
         await sandbox.close();
       };
       await show({});
       await show({ inheritEnv: ["PLAIN_X", "NOT_SET_ANYWHERE"] });
       await show({ inheritEnv: ["SECRET_X"], env: { E2B_API_KEY: "given" } });`,
      {
        env: {
          SECRET_X: "1",
          E2B_API_KEY: "k",
          PLAIN_X: "plain",
          NODE_OPTIONS: "--no-deprecation",
        },
      },
    );
    assert.equal(stderr, "");
    assert.deepEqual(
      stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line)),
      [[], ["PLAIN_X=plain"], ["E2B_API_KEY=given", "SECRET_X=1"]],
    );
  });

  test("C055 a variable that is no UTF-8 is passed on byte for byte", { skip: process.versions.deno && "Deno cannot read one" }, async () => {
    const code = `import { LocalSandbox } from "cloudsandbox";
      const sandbox = new LocalSandbox({ isolation: "none", inheritEnv: ["RAW_X"] });
      console.log((await sandbox.shell("printf %s $RAW_X | od -An -tx1")).output.trim());
      await sandbox.close();`;
    const command = 'RAW_X=$(printf "a\\377b") exec "$0" --input-type=module -e "$1"';
    const { stdout } = await promisify(execFile)("/bin/sh", ["-c", command, process.execPath, code], { cwd: import.meta.dirname });
    assert.equal(stdout, "61 ff 62\n");
  });

  test("C055 the whole environment is the search path, the sandbox's variables and the call's", async (t) => {
    const sandbox = open(t, { env: { A: "sandbox", B: "sandbox" } });
    const found = await variables(sandbox, { env: { B: "call", C: "call" } });
    for (const [name, value] of Object.entries({
      PATH: process.env.PATH,
      A: "sandbox",
      B: "call",
      C: "call",
    })) {
      assert.equal(found[name], value, name);
    }
    const ours = ["PATH", "HOME", "LANG", "TERM", "A", "B", "C"];
    const theShells = ["PWD", "OLDPWD", "SHLVL", "_"];
    assert.deepEqual(
      Object.keys(found).filter((name) => !ours.includes(name) && !theShells.includes(name)),
      [],
    );
  });

  test("C056 programs are found, text is UTF-8, and no stray folder appears", async (t) => {
    const sandbox = open(t);
    const found = await sandbox.shell('python3 --version && command -v sh && echo "home=$HOME"');
    assert.equal(found.exitCode, 0, found.output);
    assert.match(found.output, /^Python 3\.\d+/);
    const home = /^home=(.*)$/m.exec(found.output)[1];
    assert.ok(home === "" || home === sandbox.sandboxId, home);
    assert.deepStrictEqual(await sandbox.run("print('h\u00e9 \u{1F600}')"), {
      output: "h\u00e9 \u{1F600}\n",
      exitCode: 0,
    });
    assert.deepStrictEqual(await sandbox.shell("ls -A"), { output: "", exitCode: 0 });
  });

  test("C060 no terminal, no password prompt", async (t) => {
    const sandbox = open(t, { defaultTimeoutSeconds: 20 });
    const tty = await sandbox.shell("cat /dev/tty");
    assert.notEqual(tty.exitCode, 0);
    assert.equal(tty.timedOut, undefined);
    const git = await sandbox.shell("git clone https://user@localhost:1/x.git");
    assert.notEqual(git.exitCode, 0);
    assert.equal(git.timedOut, undefined);
    const sudo = await sandbox.shell("sudo -k true");
    assert.equal(sudo.timedOut, undefined);
    assert.deepStrictEqual(await sandbox.shell("test -t 0 || test -t 1 || echo none"), {
      output: "none\n",
      exitCode: 0,
    });
  });

  test("C061 no python3 on the search path: 127, and the output names it", async (t) => {
    const bin = tempDir(t);
    for (const name of ["sh", "cat"]) symlinkSync(`/bin/${name}`, path.join(bin, name));
    const { stdout, stderr } = await runNode(
      `import { LocalSandbox } from "cloudsandbox";
       process.env.PATH = ${JSON.stringify(bin)};
       const sandbox = new LocalSandbox({ isolation: "none" });
       console.log(JSON.stringify(await sandbox.run("print(1)")));
       console.log(JSON.stringify(await sandbox.exec({ argv: ["no-such-program"] })));
       await sandbox.close();`,
    );
    assert.equal(stderr, "");
    const [run, argv] = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    assert.equal(run.exitCode, 127);
    assert.match(run.output, /python3/);
    assert.equal(argv.exitCode, 127);
    assert.match(argv.output, /no-such-program/);
  });

  test("C061 a search path of the call is the one that counts", async (t) => {
    const sandbox = open(t);
    const result = await sandbox.run("print(1)", { env: { PATH: "/nowhere" } });
    assert.equal(result.exitCode, 127);
    assert.match(result.output, /python3/);
  });

  test("K12 node is the program that runs this test, unless another one is given", { skip: NOT_NODE }, async (t) => {
    const { output } = await open(t).run("console.log(process.execPath)", { language: "node" });
    assert.equal(output.trim(), process.execPath);
    const dir = tempDir(t);
    const link = path.join(dir, "other-node");
    symlinkSync(process.execPath, link);
    const other = await open(t, { nodePath: link }).run("console.log(process.argv0)", {
      language: "node",
    });
    assert.match(other.output, /other-node/);
  });

  test("node code has the built-in modules as variables, as `node -e` has", async (t) => {
    const sandbox = open(t);
    const node = (code, options) => sandbox.exec({ code, language: "node", ...options });
    const missing = `console.log(require("module").builtinModules.filter((name) => !/^_|\\//.test(name) && !(name in globalThis)).join())`;
    for (const stdin of [undefined, "given"]) {
      for (const [code, stdout] of [
        ["console.log(path.basename('/a/b'), os.EOL === '\\n', typeof fs.promises.readFile, crypto.randomBytes(2).length)", "b true function 2\n"],
        ["console.log(typeof crypto.subtle, typeof process.pid, typeof require, JSON.stringify(Object.keys(globalThis).includes('fs')))", "object number function false\n"],
        ["const fs = require('fs'); let path = 1; var os = 2; function util() {} console.log(typeof fs.readFileSync, path, os, typeof util)", "function 1 2 function\n"],
        ["fs = 'mine'; console.log(fs)", "mine\n"],
        ["import { EOL } from 'node:os'; console.log(EOL === os.EOL, typeof require, await Promise.resolve(path.sep))", "true undefined /\n"],
        [missing, "\n"],
      ]) {
        const result = await node(code, { stdin });
        assert.deepEqual([result.stdout, result.stderr, result.exitCode], [stdout, "", 0], code);
      }
    }
  });

  test("I34 descriptors of the host do not leak into a command", async (t) => {
    const tracked = mark();
    const { output } = await open(t).shell("ls /proc/self/fd", { env: tracked.env });
    // 0, 1, 2 and the one that lists the folder.
    assert.deepEqual(output.trim().split("\n"), ["0", "1", "2", "3"]);
  });
});

test("Bun and Deno run JavaScript code by the node of the command's PATH", { skip: !NOT_NODE }, async (t) => {
  const sandbox = new LocalSandbox({ trusted: true });
  t.after(() => sandbox.close());
  const { output } = await sandbox.run("console.log(Object.keys(process.versions).filter((name) => /^(node|bun|deno)$/.test(name)).join())", { language: "node" });
  assert.equal(output, "node\n");
});

describe("C158 a host that is no Node.js itself", { skip: NOT_NODE }, () => {
  /** A program that starts an app, unless it is told to be Node.js. */
  function app(t) {
    const file = path.join(tempDir(t), "app");
    writeFileSync(file, `#!/bin/sh\nif [ "$ELECTRON_RUN_AS_NODE" = 1 ]; then exec ${process.execPath} "$@"; fi\necho the app was started\n`, { mode: 0o755 });
    return file;
  }
  const program = (execPath, version) => `
    Object.defineProperty(process, "execPath", { value: ${JSON.stringify(execPath)} });
    Object.defineProperty(process, "versions", { value: { ...process.versions, ${version} } });
    const { LocalSandbox } = await import("cloudsandbox");
    const sandbox = new LocalSandbox({ isolation: "none" });
    const results = [await sandbox.run("console.log(6 * 7)", { language: "node" }), await sandbox.exec({ code: "console.log(1)", language: "node" }),
      await sandbox.shell("echo \${ELECTRON_RUN_AS_NODE-none}"), await sandbox.run("import os; print('ELECTRON_RUN_AS_NODE' in os.environ)")];
    console.log(JSON.stringify(results.map(({ output, exitCode }) => [output, exitCode])));
    await sandbox.close();`;

  test("C158 Electron: code runs, told so by a variable that no other command gets", async (t) => {
    const { stdout, stderr } = await runNode(program(app(t), 'electron: "41.0.0"'));
    assert.equal(stderr, "");
    assert.deepEqual(JSON.parse(stdout), [["42\n", 0], ["1\n", 0], ["none\n", 0], ["False\n", 0]]);
  });

  test("C158 another one: the node of the command's PATH", async (t) => {
    const { stdout, stderr } = await runNode(program(app(t), 'nw: "0.100.0"'));
    assert.equal(stderr, "");
    assert.deepEqual(JSON.parse(stdout).slice(0, 2), [["42\n", 0], ["1\n", 0]]);
    const without = await runNode(program(app(t), 'nw: "0.100.0"').replace('isolation: "none"', 'isolation: "none", env: { PATH: "/nowhere" }'));
    const [[output, exitCode]] = JSON.parse(without.stdout);
    assert.deepEqual([exitCode, /node/.test(output)], [127, true]);
  });

  test("C158 a `nodePath` of the user's counts everywhere", async (t) => {
    const source = program(app(t), 'electron: "41.0.0"').replace('isolation: "none"', `isolation: "none", nodePath: ${JSON.stringify(process.execPath)}`);
    assert.deepEqual(JSON.parse((await runNode(source)).stdout)[0], ["42\n", 0]);
  });
});
