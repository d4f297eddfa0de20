// The package in the form in which it is published: its modules bundled, its binaries (those of the build here) where
// the loader looks first.
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";

import { bundle } from "../../../scripts/bundle.mjs";
import { ROOT, copyPackage } from "../../support/node.js";
import { tempDir } from "../../support/temp.js";

export const manifest = JSON.parse(readFileSync(path.join(ROOT, "package.json"), "utf8"));

const { glibcVersionRuntime } = process.report.getReport().header;
/** Where the published package has the binaries for this machine. */
export const BINARIES = `prebuilds/linux-${process.arch}-${glibcVersionRuntime ? "glibc" : "musl"}`;

/** A project that has nothing but the package in its node_modules. */
export async function projectWithPackage(t) {
  const project = tempDir(t);
  const installed = path.join(project, "node_modules/cloudsandbox");
  mkdirSync(path.dirname(installed));
  cpSync(copyPackage(t), installed, { recursive: true });
  rmSync(path.join(installed, "lib"), { recursive: true });
  await bundle(manifest, path.join(installed, "lib"));
  const { dependencies: _inside, devDependencies: _tools, scripts: _scripts, ...published } = manifest;
  writeFileSync(path.join(installed, "package.json"), JSON.stringify({ ...published, files: [...published.files, "prebuilds"] }));
  mkdirSync(path.join(installed, "prebuilds"));
  renameSync(path.join(installed, "build/Release"), path.join(installed, BINARIES));
  rmSync(path.join(installed, "build"), { recursive: true });
  // Those of other machines are not run here, and are not built yet where this is tested.
  for (const target of ["linux-x64-glibc", "linux-arm64-glibc", "linux-x64-musl", "linux-arm64-musl"]) {
    const folder = path.join(installed, "prebuilds", target);
    if (existsSync(folder)) continue;
    mkdirSync(folder);
    for (const name of ["cloudsandbox.node", "sbx_guard"]) writeFileSync(path.join(folder, name), target);
  }
  return project;
}
