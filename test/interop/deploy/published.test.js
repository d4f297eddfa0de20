// What the tools that look at packages say of this one, as it is published: publint, and "Are the types wrong?".
// Both know one thing better than Node.js 20.19 does: that require() cannot load an ES module. See CONTRIBUTING.md.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, openSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { publint } from "publint";

import { bundle } from "../../../scripts/bundle.mjs";
import { ROOT } from "../../support/node.js";
import { tempDir } from "../../support/temp.js";

const manifest = JSON.parse(readFileSync(path.join(ROOT, "package.json"), "utf8"));
/** Every entry but package.json. */
const ENTRIES = Object.keys(manifest.exports).filter((name) => !name.endsWith(".json"));

test("publint and attw say of the package, as it is published, only that a module that is required is an ES module", async (t) => {
  const folder = tempDir(t);
  for (const name of ["package.json", "types", "README.md", "LICENSE"]) cpSync(path.join(ROOT, name), path.join(folder, name), { recursive: true });
  await bundle(manifest, path.join(folder, "lib"));

  const { messages } = await publint({ pkgDir: folder, pack: false, level: "warning" });
  const seen = messages.map(({ code, path: at }) => `${code} ${at.join(" ")}`);
  assert.deepEqual(seen, ["EXPORTS_TYPES_INVALID_FORMAT exports . require types"]);

  const packed = spawnSync("npm", ["pack", "--silent", "--ignore-scripts"], { cwd: folder, encoding: "utf8" });
  assert.equal(packed.status, 0, packed.stderr);
  const attw = path.join(import.meta.dirname, "node_modules/@arethetypeswrong/cli/dist/index.js");
  // It ends before a pipe has taken all of its answer; a file takes it at once.
  const answer = path.join(folder, "attw.json");
  const { stderr } = spawnSync(process.execPath, [attw, packed.stdout.trim(), "--format", "json"], { cwd: folder, encoding: "utf8", stdio: ["ignore", openSync(answer, "w"), "pipe"] });
  assert.equal(stderr, "");
  const { problems, entrypoints } = JSON.parse(readFileSync(answer, "utf8")).analysis;
  assert.deepEqual(Object.keys(entrypoints).filter((name) => !name.endsWith(".json")), ENTRIES);
  assert.deepEqual([...new Set(problems.map(({ kind }) => kind))], ["CJSResolvesToESM", "FalseCJS"]);
});

test("an import of the package, as it is published, opens two of its files", async (t) => {
  const lib = path.join(tempDir(t), "lib");
  await bundle(manifest, lib);
  const opened = new Set(["index.js"]);
  for (const name of opened) {
    for (const [, other] of readFileSync(path.join(lib, name), "utf8").matchAll(/^(?:import|.* from) "(\.[^"]*)";$/gm)) {
      opened.add(path.join(path.dirname(name), other));
    }
  }
  assert.deepEqual([...opened], ["index.js", "core.js"]);
});
