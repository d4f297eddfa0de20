// What a binary that is published may ask of a machine: read from the binary itself.
import { spawnSync } from "node:child_process";
import { readdirSync, statSync } from "node:fs";
import path from "node:path";

/** The newest glibc that may be needed, and the libraries, which every system with Node.js has. */
const GLIBC = "2.28";
const LIBRARIES = /^(libc\.so\.6|libpthread\.so\.0|libdl\.so\.2|libm\.so\.6|ld-linux-x86-64\.so\.2|ld-linux-aarch64\.so\.1|libc\.so)$/;
const EXPORTS = ["napi_register_module_v1", "node_api_module_get_api_version_v1"];
const MOST_BYTES = 1_500_000;

/** @param {string[]} args */
function readelf(...args) {
  const { status, stdout, error } = spawnSync("readelf", ["--wide", ...args], { encoding: "utf8", env: { ...process.env, LC_ALL: "C" } });
  if (error || status !== 0) throw new Error(`readelf, of binutils, is needed: ${error?.message ?? `it ended with ${status}`}`);
  return stdout;
}

/** @param {string} file */
function read(file) {
  const dynamic = readelf("--dynamic", file);
  const symbols = readelf("--dyn-syms", file).split("\n").map((line) => line.trim().split(/\s+/));
  const versions = [...readelf("--version-info", file).matchAll(/Name: GLIBC_(\d+)\.(\d+)/g)].map(([, major, minor]) => Number(major) * 1000 + Number(minor));
  const newest = Math.max(0, ...versions);
  return {
    machine: /Machine:\s+(.*)/.exec(readelf("--file-header", file))?.[1] ?? "",
    needed: [...dynamic.matchAll(/\(NEEDED\).*\[(.*)\]/g)].map(([, name]) => String(name)),
    exported: symbols.filter(([, , , , , , section, name]) => name && section && /^\d+$/.test(section)).map((symbol) => String(symbol[7])),
    // The C library's, Node's own, and what every linker looks for, whether it is there or not.
    strange: symbols.filter(([, , , , bind, , section, name]) => section === "UND" && bind === "GLOBAL" && name && /^(_Z|__cxa_(?!finalize|atexit)|__gxx|_Unwind)/.test(name)).map((symbol) => String(symbol[7])),
    glibc: newest > 0 ? `${Math.floor(newest / 1000)}.${newest % 1000}` : "",
    stripped: !/\.symtab|\.debug_/.test(readelf("--sections", file)),
    relative: !/RPATH|RUNPATH/.test(dynamic),
    bytes: statSync(file).size,
  };
}

/** @param {string} glibc */
const rank = (glibc) => glibc.split(".").reduce((sum, part) => sum * 1000 + Number(part), 0);

/**
 * What is wrong with a binary of a Linux target; empty: nothing.
 *
 * @param {string} file
 * @param {string} target
 */
export function faults(file, target) {
  const binary = read(file);
  const isModule = file.endsWith(".node");
  const machine = target.includes("arm64") ? "AArch64" : "Advanced Micro Devices X86-64";
  const found = [
    binary.machine !== machine && `is for ${binary.machine}`,
    ...binary.needed.filter((name) => !LIBRARIES.test(name)).map((name) => `needs ${name}`),
    ...binary.exported.filter((name) => !isModule || !EXPORTS.includes(name)).map((name) => `exports ${name}`),
    ...binary.strange.map((name) => `needs ${name}, of a C++ library`),
    isModule && !binary.exported.includes("napi_register_module_v1") && "does not export its entry",
    rank(binary.glibc) > rank(GLIBC) && `needs glibc ${binary.glibc}`,
    target.endsWith("musl") && binary.glibc && "needs glibc",
    !binary.stripped && "is not stripped",
    !binary.relative && "has a path to libraries",
    binary.bytes > MOST_BYTES && `has ${binary.bytes} bytes`,
  ];
  return found.filter(Boolean).map((fault) => `${target}: ${path.basename(file)} ${fault}`);
}

/** The files of a target in a few words. @param {string} folder */
export function report(folder) {
  return readdirSync(folder).map((name) => `${name} ${Math.round(statSync(path.join(folder, name)).size / 1024)} KiB`).join(", ");
}
