// Built in one image and copied to another one: a file system with Node.js, the C library and Python only.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, realpathSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { copyPackage } from "../../support/node.js";
import { tempDir } from "../../support/temp.js";

/** The files of the libraries that a program or library is linked with, and of its loader. */
function libraries(file) {
  const { stdout } = spawnSync("ldd", [file], { encoding: "utf8" });
  return [...stdout.matchAll(/(?:=> )?(\/\S+) \(0x/g)].map(([, library]) => library);
}

/** Copies a file, links followed, to where it stands here. */
function place(root, file, source = file) {
  mkdirSync(path.join(root, path.dirname(file)), { recursive: true });
  cpSync(realpathSync(source), path.join(root, file), { recursive: true });
}

const skip = process.getuid() !== 0 && "needs root, for chroot";

test("C160 with Node.js, glibc and python3 only, a local sandbox works", { skip, timeout: 120_000 }, (t) => {
  const root = tempDir(t);
  const { stdout } = spawnSync("python3", ["-c", "import sys, sysconfig; print(sys.executable, sysconfig.get_path('stdlib'))"], { encoding: "utf8" });
  const [python, modules] = stdout.trim().split(" ");
  place(root, "/usr/bin/node", process.execPath);
  place(root, "/usr/bin/python3", python);
  mkdirSync(path.join(root, path.dirname(modules)), { recursive: true });
  assert.equal(spawnSync("cp", ["-a", modules, path.join(root, modules)]).status, 0);
  for (const file of [process.execPath, python]) for (const library of libraries(file)) place(root, library);
  // The C++ library belongs to what the package asks for; a node that is linked with it has brought it already.
  const copy = copyPackage(t);
  for (const library of libraries(path.join(copy, "build/Release/cloudsandbox.node"))) {
    if (/\/(libstdc\+\+|libgcc_s|libc|libm|ld-linux[^/]*)\.so/.test(library)) place(root, library);
  }
  for (const folder of ["dev", "tmp", "proc", "app/node_modules"]) mkdirSync(path.join(root, folder), { recursive: true });
  cpSync(copy, path.join(root, "app/node_modules/cloudsandbox"), { recursive: true });
  spawnSync("mknod", ["-m", "666", path.join(root, "dev/null"), "c", "1", "3"]);
  writeFileSync(
    path.join(root, "app/main.mjs"),
    `import { LocalSandbox } from "cloudsandbox";
     const sandbox = new LocalSandbox({ isolation: "none" });
     const results = [await sandbox.run("print(6 * 7)"), await sandbox.run("console.log(6 * 7)", { language: "node" }), await sandbox.exec({ argv: ["node", "-p", "42"] })];
     await sandbox.writeFile("f", "text");
     console.log(JSON.stringify([...results.map(({ output, exitCode }) => [output, exitCode]), await sandbox.readFile("f")]));
     await sandbox.close();`,
  );
  const run = spawnSync("chroot", [root, "/usr/bin/node", "/app/main.mjs"], { encoding: "utf8", env: { PATH: process.env.PATH } });
  assert.equal(run.stderr, "");
  assert.deepEqual(JSON.parse(run.stdout), [["42\n", 0], ["42\n", 0], ["42\n", 0], "text"]);
});
