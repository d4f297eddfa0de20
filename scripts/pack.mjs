// npm run pack [-- FOLDER]: the package as it is published, into FOLDER (build): with the binaries of npm run prebuilds, its
// modules bundled, and nothing to run at installation. Checks what goes in, and says what would be published.
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { brotliCompressSync } from "node:zlib";

import { faults } from "./binaries.mjs";
import { bundle } from "./bundle.mjs";
import { napiHeaders } from "./sources.mjs";

const root = path.resolve(import.meta.dirname, "..");
const stage = path.join(root, "build/package");
const TARGETS = ["linux-x64-glibc", "linux-arm64-glibc", "linux-x64-musl", "linux-arm64-musl"];
const SOURCE = "source.tar.br";
const MOST_PACKED = 2 << 20;
const MOST_INSTALLED = 5 << 20;

/** @param {string} message @returns {never} */
function fail(message) {
  console.error(`pack: ${message}`);
  process.exit(1);
}

const manifest = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));
rmSync(stage, { recursive: true, force: true });
mkdirSync(stage, { recursive: true });

for (const target of TARGETS) {
  const folder = path.join(root, "build/prebuilds", target);
  if (!existsSync(folder)) fail(`there are no binaries for ${target}; run: npm run prebuilds`);
  const wrong = ["cloudsandbox.node", "sbx_guard"].flatMap((name) => faults(path.join(folder, name), target));
  if (wrong.length > 0) fail(wrong.join("\n"));
  // Those of yesterday's sources would run as if they were today's.
  const made = statSync(path.join(folder, "cloudsandbox.node")).mtimeMs;
  const newer = readdirSync(path.join(root, "src"), { recursive: true }).find((name) => statSync(path.join(root, "src", String(name))).mtimeMs > made && /\.\w+$/.test(String(name)));
  if (newer) fail(`the binaries for ${target} are older than src/${newer}; run: npm run prebuilds`);
  cpSync(folder, path.join(stage, "prebuilds", target), { recursive: true });
}

await bundle(manifest, path.join(stage, "lib"));
// The examples import each other and the emulators of the repository. What only a build by hand reads is one archive,
// which build.mjs unpacks: it would be half of what an installation writes, and few need it.
const source = path.join(root, "build/package-source");
const inSource = ["src", "binding.gyp", "scripts/embed.sh", "scripts/sources.mjs"];
const left = manifest.files.filter((/** @type {string} */ name) => !["lib", "examples", ...inSource].includes(name));
for (const name of left) cpSync(path.join(root, name), path.join(stage, name), { recursive: true });
rmSync(source, { recursive: true, force: true });
for (const name of inSource) cpSync(path.join(root, name), path.join(source, name), { recursive: true });
// The headers of the one package that it needs: so there are no dependencies to install.
for (const name of ["napi.h", "napi-inl.h", "napi-inl.deprecated.h"]) cpSync(path.join(napiHeaders(), name), path.join(source, "third_party/node-addon-api", name));
const tar = spawnSync("tar", ["-cf", "-", "--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "-C", source, "."], { maxBuffer: 64 << 20 });
if (tar.status !== 0) fail(`tar: ${tar.stderr}`);
// A quarter less than gzip makes of it, and Node.js can read it wherever it runs.
writeFileSync(path.join(stage, SOURCE), brotliCompressSync(tar.stdout));

/** The licenses of what is inside, from where it came; THIRD_PARTY.md lists it. */
const made = path.join(root, "build/prebuild");
const licenses = {
  "cJSON.txt": path.join(made, "others/cjson/LICENSE"),
  "libc++.txt": path.join(made, "zig/ziglang/lib/libcxx/LICENSE.TXT"),
  "musl.txt": path.join(made, "zig/ziglang/lib/libc/musl/COPYRIGHT"),
  "zig.txt": path.join(made, "zig/ziglang/LICENSE"),
  "node-addon-api.txt": path.join(napiHeaders(), "LICENSE.md"),
  "ignore.txt": path.join(root, "node_modules/ignore/LICENSE-MIT"),
};
for (const [name, file] of Object.entries(licenses)) cpSync(file, path.join(stage, "third_party/licenses", name));

const { private: _here, dependencies: _inside, devDependencies: _tools, scripts: _scripts, ...published } = manifest;
Object.assign(published, { files: ["lib", "prebuilds", SOURCE, "third_party", ...left], scripts: { build: manifest.scripts.build } });
writeFileSync(path.join(stage, "package.json"), `${JSON.stringify(published, null, 2)}\n`);

const folder = path.resolve(process.argv[2] ?? path.join(root, "build"));
const packed = spawnSync("npm", ["pack", "--json", "--pack-destination", folder], { cwd: stage, encoding: "utf8" });
if (packed.status !== 0) fail(packed.stderr);
const described = JSON.parse(packed.stdout);
const [info] = Array.isArray(described) ? described : Object.values(described);
/** @param {number} bytes */
const mib = (bytes) => `${(bytes / (1 << 20)).toFixed(2)} MiB`;
if (info.size > MOST_PACKED) fail(`the package is ${mib(info.size)}; it may have ${mib(MOST_PACKED)}`);
if (info.unpackedSize > MOST_INSTALLED) fail(`the package installs ${mib(info.unpackedSize)}; it may have ${mib(MOST_INSTALLED)}`);
console.log(`${path.join(folder, info.filename)}: ${info.entryCount} files, ${mib(info.size)}, installed ${mib(info.unpackedSize)}`);
