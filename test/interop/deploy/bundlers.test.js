// A program that uses the package, built by what programs are built with; what was built is moved elsewhere, and runs there.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { test } from "node:test";

import { createPackageWithOptions, extractAll } from "@electron/asar";
import * as esbuild from "esbuild";
import * as vite from "vite";
import webpack from "webpack";

import { tempDir } from "../../support/temp.js";
import { BINARIES, projectWithPackage } from "./package.js";

const MAIN = `import { LocalSandbox } from "cloudsandbox";
const sandbox = new LocalSandbox({ isolation: "none" });
const results = [await sandbox.shell("echo $((6 * 7))"), await sandbox.run("console.log(42)", { language: "node" })];
await sandbox.close();
console.log(results.map(({ output, exitCode }) => output.trim() + "/" + exitCode).join(" "));
`;
const options = { skip: process.platform !== "linux", timeout: 120_000 };

/** A project with the package and a program, and where its files go. */
async function aProject(t) {
  const project = await projectWithPackage(t);
  mkdirSync(path.join(project, "src"));
  writeFileSync(path.join(project, "src/main.mjs"), MAIN);
  writeFileSync(path.join(project, "package.json"), JSON.stringify({ private: true }));
  return { project, out: path.join(project, "out") };
}

/** Runs `program` where only these folders of the project are. */
function runElsewhere(t, project, folders, program, flags = []) {
  const elsewhere = tempDir(t);
  for (const folder of folders) cpSync(path.join(project, folder), path.join(elsewhere, folder), { recursive: true });
  // Where it was built there is nothing any more.
  renameSync(project, `${project}-moved`);
  t.after(() => rmSync(`${project}-moved`, { recursive: true }));
  return spawnSync(process.execPath, [...flags, program], { cwd: elsewhere, encoding: "utf8", env: { PATH: process.env.PATH } });
}

/** That the program has run its commands. */
function ran({ stdout, stderr, status }) {
  assert.equal(stderr, "");
  assert.equal(stdout, "42/0 42/0\n");
  assert.equal(status, 0);
}

/** @param {string} project @param {import("webpack").Configuration} more */
async function buildWithWebpack(project, more) {
  const stats = await new Promise((resolve, reject) =>
    webpack(
      {
        mode: "production",
        target: "node20",
        context: project,
        entry: "./src/main.mjs",
        output: { path: path.join(project, "out"), filename: "main.mjs", module: true, chunkFormat: "module", library: { type: "module" } },
        experiments: { outputModule: true },
        ...more,
      },
      (error, result) => (error ? reject(error) : resolve(result)),
    ),
  );
  const { errors, warnings } = stats.toJson({ errors: true, warnings: true });
  assert.deepEqual([...errors, ...warnings].map(({ message }) => message), []);
}

test("C173 webpack takes the package into its bundle, with the binaries, and nothing has to be said", options, async (t) => {
  const { project } = await aProject(t);
  await buildWithWebpack(project, { optimization: { minimize: false } });
  ran(runElsewhere(t, project, ["out"], "out/main.mjs"));
});

test("C173 webpack leaves the package out when it is told so", options, async (t) => {
  const { project } = await aProject(t);
  await buildWithWebpack(project, { externals: { cloudsandbox: "module cloudsandbox" } });
  ran(runElsewhere(t, project, ["out", "node_modules"], "out/main.mjs"));
});

test("C173 esbuild leaves the package out when it is told so", options, async (t) => {
  const { project, out } = await aProject(t);
  await esbuild.build({ absWorkingDir: project, entryPoints: ["src/main.mjs"], outfile: path.join(out, "main.mjs"), bundle: true, platform: "node", format: "esm", external: ["cloudsandbox"], logLevel: "error" });
  ran(runElsewhere(t, project, ["out", "node_modules"], "out/main.mjs"));
});

/** @param {string} project @param {import("vite").InlineConfig} more */
const buildWithVite = (project, more) => vite.build({ root: project, configFile: false, logLevel: "warn", build: { ssr: "src/main.mjs", outDir: "out", target: "node20" }, ...more });

test("C173 a build of Vite for the server leaves the package out by itself", options, async (t) => {
  const { project } = await aProject(t);
  await buildWithVite(project, {});
  ran(runElsewhere(t, project, ["out", "node_modules"], "out/main.mjs"));
});

test("C173 a bundle without the binaries says how the package is left out, and names the command as it is", options, async (t) => {
  const { project } = await aProject(t);
  await buildWithVite(project, { ssr: { noExternal: true } });
  const { status, stderr } = runElsewhere(t, project, ["out"], "out/main.mjs");
  assert.equal(status, 1);
  assert.match(stderr, /ERR_SANDBOX_MISSING_BINARY/);
  assert.match(stderr, /mark cloudsandbox as external/);
  assert.match(stderr, /node node_modules\/cloudsandbox\/scripts\/build\.mjs\n/);
});

test("C173 Nitro for AWS Lambda takes the package along, and nothing has to be said", options, async (t) => {
  const { build, createNitro, prepare } = await import("nitropack/core");
  const { project } = await aProject(t);
  mkdirSync(path.join(project, "routes"));
  writeFileSync(
    path.join(project, "routes/index.mjs"),
    `import { eventHandler } from "h3";
     import { LocalSandbox } from "cloudsandbox";
     export default eventHandler(async () => {
       const sandbox = new LocalSandbox({ isolation: "none" });
       const { output } = await sandbox.shell("echo $((6 * 7))");
       await sandbox.close();
       return output;
     });`,
  );
  const nitro = await createNitro({ rootDir: project, preset: "aws-lambda", compatibilityDate: "2026-01-01", logLevel: 1 });
  await prepare(nitro);
  await build(nitro);
  await nitro.close();
  writeFileSync(
    path.join(project, ".output/call.mjs"),
    `const { handler } = await import("./server/index.mjs");
     const { statusCode, body } = await handler({ rawPath: "/", headers: {}, requestContext: { http: { method: "GET" } } }, {});
     console.log(statusCode, body.trim());`,
  );
  const { stdout, stderr } = runElsewhere(t, project, [".output"], ".output/call.mjs");
  assert.equal(stderr, "");
  assert.equal(stdout, "200 42\n");
});

test("C173 under Yarn's Plug'n'Play the package is unplugged by itself", options, async (t) => {
  const { project } = await aProject(t);
  const packed = spawnSync("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", project], { cwd: path.join(project, "node_modules/cloudsandbox"), encoding: "utf8" });
  assert.equal(packed.status, 0, packed.stderr);
  rmSync(path.join(project, "node_modules"), { recursive: true });
  writeFileSync(path.join(project, "package.json"), JSON.stringify({ private: true, dependencies: { cloudsandbox: `file:./${packed.stdout.trim()}` } }));
  writeFileSync(path.join(project, "yarn.lock"), "");
  writeFileSync(path.join(project, ".yarnrc.yml"), "nodeLinker: pnp\nenableTelemetry: false\nenableGlobalCache: false\nenableNetwork: false\n");
  const yarn = createRequire(import.meta.url).resolve("@yarnpkg/cli-dist/bin/yarn.js");
  const env = { PATH: process.env.PATH, HOME: project, YARN_IGNORE_PATH: "1" };
  const installed = spawnSync(process.execPath, [yarn, "install"], { cwd: project, encoding: "utf8", env });
  assert.equal(installed.status, 0, installed.stdout);
  assert.equal(existsSync(path.join(project, "node_modules")), false);
  ran(spawnSync(process.execPath, [yarn, "node", "src/main.mjs"], { cwd: project, encoding: "utf8", env }));
});

// Electron cannot be installed where this is tested. In its place: the archive by its own tool, then unpacked to a folder of the
// archive's name, which is what Electron shows to JavaScript, without what only the system opens.
test("C173 in an archive of Electron, what is started comes from beside it", options, async (t) => {
  const { project } = await aProject(t);
  const resources = tempDir(t);
  const archive = path.join(resources, "app.asar");
  await createPackageWithOptions(project, archive, { unpackDir: "node_modules/cloudsandbox" });
  const unpacked = path.join(resources, "app.asar.unpacked/node_modules/cloudsandbox");
  assert.ok(statSync(path.join(unpacked, BINARIES, "sbx_guard")).mode & 0o100, "its execute bit is kept");
  const shown = path.join(resources, "shown");
  extractAll(archive, shown);
  rmSync(archive);
  renameSync(shown, archive);
  rmSync(path.join(archive, "node_modules/cloudsandbox/prebuilds"), { recursive: true });
  rmSync(path.join(archive, "node_modules/cloudsandbox/lib/node-globals.cjs"));
  const electron = 'data:text/javascript,Object.defineProperty(process.versions, "electron", { value: "40.0.0" });';
  ran(spawnSync(process.execPath, ["--import", electron, path.join(archive, "src/main.mjs")], { encoding: "utf8", env: { PATH: process.env.PATH } }));
});
