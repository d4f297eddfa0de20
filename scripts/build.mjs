// Builds the native addon from source: `npm run build`, npm's install script in a package without binaries, and
// `node node_modules/cloudsandbox/scripts/build.mjs` where the published package has none for the system.
//
// What it lacks it says first, each lack in a line: what gyp and the compiler say of it is long.
//
// node-gyp downloads Node's headers when it is not told where they are; they usually stand beside
// the node binary already, so that folder is passed and the build needs no network.
//
// What was linked besides the C and C++ libraries is copied beside the binary, which looks there first: so the
// package runs where it is copied to, also in an image where nobody has installed cJSON.
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { brotliDecompressSync } from "node:zlib";

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

const HINT =
  "Install what is needed, then run this again:\n" +
  "  Debian, Ubuntu  apt-get install build-essential python3 pkg-config libcurl4-openssl-dev libcjson-dev\n" +
  "  Fedora          dnf install gcc gcc-c++ make python3 pkgconf libcurl-devel cjson-devel\n" +
  "  Alpine          apk add build-base python3 pkgconf curl-dev cjson-dev linux-headers\n" +
  "  macOS           xcode-select --install && brew install pkgconf cjson";

/** @param {string} program @param {string[]} [args] @param {string} [input] */
function works(program, args = ["--version"], input = "") {
  const [name, ...first] = program.split(/\s+/);
  return spawnSync(String(name), [...first, ...args], { input, stdio: ["pipe", "ignore", "ignore"] }).status === 0;
}

/** What the build needs and this machine has not, each in a line. */
function lacks() {
  const { CC = "cc", CXX = "c++", MAKE = "make" } = process.env;
  const python = [process.env.npm_config_python, process.env.PYTHON, "python3", "python"].filter(Boolean);
  const cjson = spawnSync("pkg-config", ["--cflags", "libcjson"], { encoding: "utf8" }).stdout ?? "";
  /** @param {string} language @param {string} standard @param {string} header */
  const compiles = (language, standard, header) => {
    const args = [`-std=${standard}`, ...cjson.split(/\s+/).filter(Boolean), "-fsyntax-only", "-x", language, "-"];
    return works(language === "c" ? CC : CXX, args, `#include <${header}>\nint main(void) { return 0; }\n`);
  };
  const hasC = compiles("c", "c17", "stdlib.h");
  return [
    !hasC && `a C17 compiler (${CC} does not compile a program of one line; CC names another)`,
    !compiles("c++", "c++17", "string") && `a C++17 compiler (${CXX} does not compile a program of one line; CXX names another)`,
    !works(MAKE) && `make (${MAKE})`,
    !python.some((name) => works(String(name))) && "python3, which node-gyp runs on",
    hasC && !compiles("c", "c17", "curl/curl.h") && "libcurl's headers (curl/curl.h)",
    hasC && !compiles("c", "c17", "cjson/cJSON.h") && "cJSON's headers (cjson/cJSON.h)",
  ].filter(Boolean);
}

const lacking = lacks();
if (lacking.length > 0) fail(`the native part cannot be built here. It lacks:\n${lacking.map((lack) => `  ${lack}\n`).join("")}${HINT}`);

// The published package has what is built as an archive.
if (!existsSync(path.join(root, "src"))) {
  const input = brotliDecompressSync(readFileSync(path.join(root, "source.tar.br")));
  const { status, error, stderr } = spawnSync("tar", ["-xf", "-"], { cwd: root, input });
  if (status !== 0) fail(`source.tar.br could not be unpacked: ${error?.message ?? String(stderr).trim()}`);
}

const nodeGyp =
  findNodeGyp() ?? fail("node-gyp was not found; it comes with npm, and with `npm install --global node-gyp`.");

const prefix = path.resolve(process.execPath, "..", "..");
const options = ["--loglevel=error"];
const hasHeaders = existsSync(path.join(prefix, "include", "node", "node_api.h"));
if (hasHeaders) options.push(`--nodedir=${prefix}`);
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
  const headers = "Node.js's headers do not stand beside it, and node-gyp could perhaps not download them: npm_config_nodedir=FOLDER names a Node.js that has them.\n";
  fail(`the native part could not be built; what was said is above.\n${hasHeaders || process.env.npm_config_nodedir ? "" : headers}${HINT}`);
}
if (process.platform === "linux") copyLibraries();
