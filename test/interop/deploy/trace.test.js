// What @vercel/nft finds of a program that imports the package, copied elsewhere, must run.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { nodeFileTrace } from "@vercel/nft";

import { ROOT, copyPackage } from "../../support/node.js";
import { tempDir } from "../../support/temp.js";
import { projectWithPackage } from "./package.js";

const body = `
  const sandbox = new LocalSandbox({ isolation: "none" });
  const results = [sandbox.shell("echo $((6 * 7))"), sandbox.run("print(42)"), sandbox.run("console.log(42)", { language: "node" })];
  Promise.all(results).then(async (all) => {
    await sandbox.close();
    console.log(all.map(({ output, exitCode }) => output.trim() + "/" + exitCode).join(" "));
  });`;
const ENTRIES = {
  "main.mjs": `import { LocalSandbox } from "cloudsandbox";${body}`,
  "main.cjs": `const { LocalSandbox } = require("cloudsandbox");${body}`,
  "toolkits.mjs": `import { LocalSandbox } from "cloudsandbox/toolkits";${body}`,
};

for (const [name, source] of Object.entries(ENTRIES)) {
  test(`C156 traced and copied, it runs: ${name}`, async (t) => {
    const project = tempDir(t);
    mkdirSync(path.join(project, "node_modules"));
    cpSync(copyPackage(t), path.join(project, "node_modules/cloudsandbox"), { recursive: true });
    cpSync(path.join(ROOT, "node_modules/ignore"), path.join(project, "node_modules/ignore"), { recursive: true });
    writeFileSync(path.join(project, name), source);
    const { fileList, warnings } = await nodeFileTrace([path.join(project, name)], { base: project, processCwd: project });
    // It looks into every file without an extension for imports.
    assert.deepEqual([...warnings].filter(({ message }) => !/^Failed to parse \S+\/sbx_guard /.test(message)), []);
    const own = [...fileList].filter((file) => file.startsWith("node_modules/cloudsandbox/build/"));
    for (const needed of ["cloudsandbox.node", "sbx_guard"]) {
      assert.ok(own.includes(`node_modules/cloudsandbox/build/Release/${needed}`), `${needed} in ${own}`);
    }
    const copy = tempDir(t);
    for (const file of fileList) cpSync(path.join(project, file), path.join(copy, file));
    const run = spawnSync(process.execPath, [name], { cwd: copy, encoding: "utf8" });
    assert.equal(run.stderr, "");
    assert.equal(run.stdout, "42/0 42/0 42/0\n");
    const listed = spawnSync("ldd", [path.join(copy, "node_modules/cloudsandbox/build/Release/cloudsandbox.node")], { encoding: "utf8" });
    assert.match(listed.stdout, new RegExp(`libcjson\\S* => ${copy}`), "the traced library is the one that is used");
  });
}

test("C156 the package as it is published, bundled and with its binaries, is traced, too", { skip: process.platform !== "linux" }, async (t) => {
  const project = await projectWithPackage(t);
  writeFileSync(path.join(project, "main.mjs"), ENTRIES["main.mjs"]);
  const { fileList } = await nodeFileTrace([path.join(project, "main.mjs")], { base: project, processCwd: project });
  const copy = tempDir(t);
  for (const file of fileList) cpSync(path.join(project, file), path.join(copy, file));
  const run = spawnSync(process.execPath, ["main.mjs"], { cwd: copy, encoding: "utf8" });
  assert.equal(run.stderr, "");
  assert.equal(run.stdout, "42/0 42/0 42/0\n");
});
