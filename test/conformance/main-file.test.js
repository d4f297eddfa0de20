// Code that is run behaves as a file that stands in the working directory.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { providers } from "./providers.js";

for (const provider of providers) {
  const skip = !provider.facts.mainFile;
  const languages = provider.facts.languages;

  describe(`main file, ${provider.name}`, { concurrency: 2, skip }, () => {
    for (const method of ["spawn", "forkserver"]) {
      test(`C167 a pool of processes by ${method} prints its results`, async (t) => {
        const sandbox = provider.world(t).make();
        const code = `from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
def double(n): return 2 * n
if __name__ == '__main__':
  with ProcessPoolExecutor(2, mp_context=get_context('${method}')) as pool:
    print(list(pool.map(double, [1, 2, 3])))
`;
        assert.deepStrictEqual(await sandbox.run(code, { language: "python" }), {
          output: "[2, 4, 6]\n",
          exitCode: 0,
        });
      });
    }

    test("C167 a traceback has source lines, and neighbours are imported", async (t) => {
      const sandbox = provider.world(t).make();
      await sandbox.writeFile("sub/neighbour.py", "def f(): raise ValueError('from the neighbour')\n");
      const code = "import os, neighbour\nprint(os.path.dirname(__file__) == os.getcwd())\nneighbour.f()  # here\n";
      const { stdout, stderr, exitCode } = await sandbox.exec({ code, language: "python", cwd: "sub" });
      assert.deepEqual({ stdout, exitCode }, { stdout: "True\n", exitCode: 1 });
      assert.match(stderr, /line 3, in <module>\n +neighbour\.f\(\) {2}# here\n/);
    });

    test("C169 node code is the main module, and starts a worker of itself", { skip: !languages.includes("node") }, async (t) => {
      const sandbox = provider.world(t).make();
      await sandbox.writeFile("sub/neighbour.js", "module.exports = 'neighbour';");
      const code = `const { Worker, isMainThread, parentPort } = require("node:worker_threads");
        if (isMainThread) {
          console.log(require.main === module, __dirname === process.cwd(), require("./neighbour.js"));
          new Worker(__filename).on("message", (text) => console.log(text));
        } else parentPort.postMessage("worker");`;
      assert.deepEqual(
        await sandbox.exec({ code, language: "node", cwd: "sub" }).then((r) => [r.output, r.exitCode]),
        ["true true neighbour\nworker\n", 0],
      );
    });

    test("node code has the built-in modules as variables, and is a file like any other", { skip: !languages.includes("node") }, async (t) => {
      const sandbox = provider.world(t).make();
      const node = async (code, options) => {
        const { stdout, stderr, exitCode } = await sandbox.exec({ code, language: "node", ...options });
        return [stdout, stderr, exitCode];
      };
      const missing = `console.log(require("module").builtinModules.filter((name) => !/^_|\\//.test(name) && !(name in globalThis)).join())`;
      for (const [code, stdout] of [
        ["console.log(path.basename('/a/b'), typeof fs.promises.readFile, crypto.randomBytes(2).length, typeof crypto.subtle)", "b function 2 object\n"],
        ["const fs = require('fs'); let path = 1; var os = 2; function util() {} console.log(typeof fs.readFileSync, path, os, typeof util)", "function 1 2 function\n"],
        ["fs = 'mine'; crypto = 'too'; console.log(fs, crypto, Object.keys(globalThis).includes('path'))", "mine too false\n"],
        ["console.log(process.argv.length, this === module.exports, typeof globalThis.require, typeof globalThis.exports)", "2 true undefined undefined\n"],
        [missing, "\n"],
      ]) assert.deepEqual(await node(code), [stdout, "", 0], code);
      assert.deepEqual(await node("console.log(fs.readFileSync(0, 'utf8'))", { stdin: "given" }), ["given\n", "", 0]);
      const fork = "if (process.argv[2]) console.log('child'); else require('child_process').fork(__filename, ['x']);";
      assert.deepEqual(await node(fork), ["child\n", "", 0]);
      assert.equal((await node("process.exit(7)"))[2], 7);
      const [, trace, code] = await node("\n\nthrow new Error('here');");
      assert.equal(code, 1);
      assert.match(trace, /\.js:3\nthrow new Error\('here'\);\n\^\n\nError: here\n +at .*\.js:3:7\)/);
      const module = await node("import { EOL } from 'node:os'; console.log(EOL === os.EOL, typeof require, await Promise.resolve(path.sep))");
      assert.deepEqual([module[0], module[2]], ["true undefined /\n", 0]);
    });

    test("C169 modules and top-level await work as well", { skip: !languages.includes("node") }, async (t) => {
      const sandbox = provider.world(t).make();
      for (const files of [{}, { "package.json": "{}" }]) {
        for (const [name, text] of Object.entries(files)) await sandbox.writeFile(name, text);
        const code = 'import { sep } from "node:path"; console.log(await Promise.resolve(sep));';
        const { stdout, stderr } = await sandbox.exec({ code, language: "node" });
        assert.equal(stdout, "/\n");
        // Which Node.js a remote sandbox has is not known, so its warning about the missing type stays.
        if (provider.facts.onThisMachine) assert.equal(stderr, "");
      }
    });

    test("C167 nothing of the file is listed or left, whatever becomes of the code", async (t) => {
      const sandbox = provider.world(t).make();
      const left = async () => (await sandbox.shell("ls -A")).output;
      // A home is not empty everywhere.
      const before = await left();
      const files = provider.facts.listsFiles ? await sandbox.listFiles() : [];
      const hold = sandbox.exec({ code: "import time; time.sleep(2)", language: "python" });
      await sandbox.shell("until ls -A | grep -q py; do sleep 0.05; done 2>/dev/null", { timeoutSeconds: 1.5 });
      if (provider.facts.listsFiles) assert.deepEqual(await sandbox.listFiles(), files);
      await hold;
      assert.equal(await left(), before);
      await sandbox.exec({ code: "import os; os.kill(os.getpid(), 9)", language: "python" });
      assert.equal(await left(), before);
      await sandbox.exec({ code: "import time; time.sleep(99)", language: "python", timeoutSeconds: 0.5 });
      assert.equal(await left(), before);
      await sandbox.exec({ code: "import os\nif os.fork() == 0: os.execvp('sleep', ['sleep', '99'])", language: "python" });
      assert.equal(await left(), before);
    });

    test("C167 code of any size has its standard input for itself", async (t) => {
      const sandbox = provider.world(t).make();
      const code = `x = '${"a".repeat(300_000)}'\nprint(len(x), input())`;
      const { stdout } = await sandbox.exec({ code, language: "python", stdin: "given\n" });
      assert.equal(stdout, "300000 given\n");
    });

    test("C167 where no file can be made the code runs all the same", async (t) => {
      const sandbox = provider.world(t).make();
      await sandbox.shell("mkdir -m 500 ro");
      const code = "import os; print(os.path.basename(os.getcwd()))";
      const { stdout, exitCode } = await sandbox.exec({ code, language: "python", cwd: "ro" });
      assert.deepEqual({ stdout, exitCode }, { stdout: "ro\n", exitCode: 0 });
    });
  });
}
