// The modules as they are published, bundled: the same package in fewer files.
import assert from "node:assert/strict";
import { copyFileSync, existsSync, readFileSync, readdirSync } from "node:fs";
import { SourceMap } from "node:module";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { build } from "esbuild";

import { bundle, linesOnly } from "../../scripts/bundle.mjs";
import { ROOT, runNode } from "../support/node.js";
import { tempDir } from "../support/temp.js";

const manifest = JSON.parse(readFileSync(path.join(ROOT, "package.json"), "utf8"));
const files = (folder) => readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".js"));

describe("the package bundled", () => {
  const root = tempDir({ after: (remove) => after(remove) });
  const lib = path.join(root, "lib");
  before(async () => {
    copyFileSync(path.join(ROOT, "package.json"), path.join(root, "package.json"));
    await bundle(manifest, lib);
  });

  test("every entry has the names that it has in the repository, and the same classes behind them", async () => {
    const { stdout, stderr } = await runNode(
      `const { exports } = JSON.parse(process.getBuiltinModule("node:fs").readFileSync("package.json", "utf8"));
       const owners = new Map();
       const names = {};
       for (const [entry, { default: file }] of Object.entries(exports)) {
         if (!file || entry === "./otel") continue;
         const module = await import("cloudsandbox" + entry.slice(1));
         names[file] = Object.keys(module);
         for (const [name, value] of Object.entries(module)) {
           if (typeof value !== "function") continue;
           if (value.name !== name && value.name !== "default") console.error(name + " is called " + value.name);
           if (owners.has(name) && owners.get(name) !== value) console.error("two of " + name);
           owners.set(name, value);
         }
       }
       console.log(JSON.stringify(names));`,
      { cwd: root },
    );
    assert.equal(stderr, "");
    for (const [file, names] of Object.entries(JSON.parse(stdout))) assert.deepEqual(names, Object.keys(await import(path.join(ROOT, file))), file);
  });

  test("an import opens a few files", async () => {
    const { stdout } = await runNode(
      `const fs = process.getBuiltinModule("node:fs");
       const seen = new Set();
       for (const name of ["readFileSync", "openSync", "open"]) {
         const real = fs[name];
         fs[name] = (...args) => (seen.add(String(args[0]?.pathname ?? args[0])), real(...args));
       }
       const { promises } = fs;
       const { readFile } = promises;
       promises.readFile = (...args) => (seen.add(String(args[0]?.pathname ?? args[0])), readFile(...args));
       process.getBuiltinModule("node:module").syncBuiltinESMExports();
       await import("cloudsandbox");
       console.log([...seen].filter((file) => file.endsWith(".js")).length);`,
      { cwd: root },
    );
    assert.ok(Number(stdout) <= 3, stdout);
  });

  test("what is loaded late has the name by which it is asked for once more", () => {
    const asked = files(path.join(ROOT, "lib")).flatMap((name) => [...readFileSync(path.join(ROOT, "lib", name), "utf8").matchAll(/\blazily\("([^"]+)"/g)]);
    assert.ok(asked.length > 3);
    for (const [, name] of asked) assert.ok(existsSync(path.join(lib, name)), name);
    assert.ok(existsSync(path.join(lib, "node-globals.cjs")));
  });

  test("each file has its map, which leads a stack trace to the repository's lines", async () => {
    for (const name of files(lib)) assert.ok(existsSync(path.join(lib, `${name}.map`)), name);
    const { stdout } = await runNode(
      `import { LocalSandbox } from "cloudsandbox";
       try { new LocalSandbox({ nonsense: 1 }); } catch (error) { console.log(error.stack); }`,
      { cwd: root, flags: ["--enable-source-maps"] },
    );
    const [, name, line] = /lib\/(options\.js):(\d+):/.exec(stdout) ?? [];
    assert.ok(name, stdout);
    assert.match(readFileSync(path.join(ROOT, "lib", name), "utf8").split("\n")[Number(line) - 1], /SandboxError|throw/);
  });

  test("a map of lines leads from everywhere to the line that the whole map leads to, and is a third as large", async () => {
    const { outputFiles } = await build({
      entryPoints: [path.join(ROOT, "lib/index.js")], outfile: path.join(root, "one.js"),
      bundle: true, platform: "node", format: "esm", sourcemap: "external", sourcesContent: false, external: ["@opentelemetry/api"], write: false,
    });
    const [whole, code] = ["one.js.map", "one.js"].map((name) => outputFiles.find((file) => file.path.endsWith(name)).text);
    const lines = linesOnly(whole);
    assert.ok(lines.length < whole.length / 3, `${lines.length} of ${whole.length}`);
    const [from, to] = [whole, lines].map((text) => new SourceMap(JSON.parse(text)));
    let seen = 0;
    for (const [line, { length }] of code.split("\n").entries()) {
      for (let column = 0; column < length; column++) {
        const { generatedLine, originalSource, originalLine } = from.findEntry(line, column);
        if (generatedLine !== line) continue;
        const found = to.findEntry(line, column);
        if (found.originalSource !== originalSource || found.originalLine !== originalLine) assert.fail(`${line}:${column} leads to ${found.originalSource}:${found.originalLine}`);
        seen++;
      }
    }
    assert.ok(seen > 100_000, String(seen));
  });
});
