// Builds the native addon from source. Runs as npm's install script and by `npm run build`.
//
// node-gyp downloads Node's headers when it is not told where they are; they usually stand beside
// the node binary already, so that folder is passed and the build needs no network.
//
// What was linked besides the C and C++ libraries is copied beside the binary, which looks there first: so the
// package runs where it is copied to, also in an image where nobody has installed cJSON.
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, readdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const root = path.resolve(import.meta.dirname, "..");

/** @returns {string | undefined} */
function findNodeGyp() {
  const fromNpm = process.env.npm_config_node_gyp;
  if (fromNpm && existsSync(fromNpm)) return fromNpm;
  const prefix = path.resolve(process.execPath, "..", "..");
  const bundled = path.join(prefix, "lib/node_modules/npm/node_modules/node-gyp/bin/node-gyp.js");
  if (existsSync(bundled)) return bundled;
  try {
    return createRequire(import.meta.url).resolve("node-gyp/bin/node-gyp.js");
  } catch {
    return undefined;
  }
}

/**
 * @param {string} message
 * @returns {never}
 */
function fail(message) {
  console.error(`cloudsandbox: ${message}`);
  process.exit(1);
}

/** The libraries that every image with Node.js has, by the names of glibc and of musl. */
const EVERYWHERE = /^(libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s|ld-.*|ld-linux.*|linux-vdso|libc\.musl-.*)\.so/;

/** Copies what the binary needs of others into its folder. */
function copyLibraries() {
  const folder = path.join(root, "build/Release");
  for (const name of readdirSync(folder)) if (/\.so(\.|$)/.test(name)) rmSync(path.join(folder, name));
  const listed = spawnSync("ldd", [path.join(folder, "cloudsandbox.node")], { encoding: "utf8", env: { ...process.env, LC_ALL: "C" } });
  for (const [, name, file] of (listed.stdout ?? "").matchAll(/^\s*(\S+) => (\/\S+)/gm)) {
    if (!EVERYWHERE.test(name)) copyFileSync(file, path.join(folder, name));
  }
}

const nodeGyp =
  findNodeGyp() ?? fail("node-gyp was not found; it comes with npm. Run `npm run build` with npm installed.");

const prefix = path.resolve(process.execPath, "..", "..");
const options = ["--loglevel=error"];
if (existsSync(path.join(prefix, "include", "node", "node_api.h"))) options.push(`--nodedir=${prefix}`);
const verbose = process.env.npm_config_loglevel === "verbose";

// Not "rebuild": what has not changed is not built again. The output is shown when it is asked for, or
// when it is needed.
let result;
for (const command of ["configure", "build"]) {
  const defines = command === "configure" && process.env.CLOUDSANDBOX_TEST_PROVIDERS ? ["--", "-Dtest_providers=1"] : [];
  result = spawnSync(process.execPath, [nodeGyp, command, ...options, ...defines], {
    cwd: root,
    stdio: verbose ? "inherit" : ["ignore", "pipe", "pipe"],
    maxBuffer: 1 << 26,
    env: { ...process.env, JOBS: process.env.JOBS ?? "max" },
  });
  if (result.status !== 0) break;
}
if (result?.status !== 0) {
  process.stderr.write(result?.stdout ?? "");
  process.stderr.write(result?.stderr ?? "");
  fail(
    "the native part could not be built. It needs a C17/C++17 compiler, make, python3 and the " +
      "headers of libcurl and cJSON:\n" +
      "  Debian, Ubuntu  apt-get install build-essential python3 pkg-config libcurl4-openssl-dev libcjson-dev\n" +
      "  Fedora          dnf install gcc gcc-c++ make python3 pkgconf libcurl-devel cjson-devel\n" +
      "  Alpine          apk add build-base python3 pkgconf curl-dev cjson-dev linux-headers\n" +
      "  macOS           xcode-select --install && brew install pkgconf cjson\n" +
      "then run npm install again",
  );
}
if (process.platform === "linux") copyLibraries();
