// Finds and loads the native addon, at the first construction of a sandbox and never at import.
import { SandboxError, tooManyFiles } from "./errors.js";

const { accessSync, chmodSync, closeSync, constants, existsSync, openSync, readFileSync, readSync } = process.getBuiltinModule("node:fs");
const { fileURLToPath } = process.getBuiltinModule("node:url");

/**
 * @typedef {object} NativeKept what was kept of one output
 * @property {Buffer} bytes
 * @property {number} dropped bytes that were not kept
 * @property {number} tailAt where in `bytes` the gap is
 */
/**
 * @typedef {object} NativeResult
 * @property {"exited" | "signalled" | "timedOut" | "cancelled"} outcome
 * @property {number} exitCode
 * @property {number} durationMs
 * @property {string} [signal]
 * @property {"confirmed" | "requested" | "unknown"} [termination] left out: nothing had to be ended
 * @property {true} [backgroundKilled]
 * @property {true} [backgroundRunning]
 * @property {true} [outputLost] some output did not come; how much is not known
 * @property {true} [oomKilled] the system has ended it for want of memory
 * @property {true} [outputExceeded] it was ended because it had written more than it may
 * @property {number} [cpuMicroseconds] with `peakBytes`
 * @property {number} [peakBytes] left out where it is not known
 * @property {NativeKept} [output] left out when there was none
 * @property {NativeKept} [stdout] left out when there was none
 * @property {NativeKept} [stderr] left out when there was none
 * @property {string} [details] JSON of what an interpreter gave besides its output
 */
/**
 * @typedef {object} NativeSpec
 * @property {"shell" | "code" | "argv"} kind
 * @property {string | undefined} [text]
 * @property {"python" | "node" | undefined} [language]
 * @property {string | undefined} [context] name of an interpreter's context
 * @property {string[] | undefined} [argv]
 * @property {string | undefined} [cwd]
 * @property {string[] | undefined} [env] name, value, name, value, ...
 * @property {Uint8Array | undefined} [stdin]
 * @property {number | undefined} [timeoutMs] 0: the sandbox's default; Infinity: none
 * @property {number | undefined} [maxOutputBytes]
 * @property {"head" | "middle" | undefined} [truncate]
 * @property {boolean | undefined} [mergeStreams]
 * @property {string | undefined} [shell]
 * @property {boolean | undefined} [endBackground]
 * @property {boolean} [openStdin]
 * @property {number} [ttyColumns]
 * @property {number} [ttyRows]
 */
/** @typedef {{ names: string, sizes: Float64Array }} NativeListing each name ends with U+0000 */
/**
 * Each name ends with U+0000; of each: kind (0 file, 1 directory, 2 link, 3 other), size, time of change in ms (NaN: unknown)
 * and mode (-1: unknown).
 *
 * @typedef {{ names: string, numbers: Float64Array }} NativeStats
 */
/** @typedef {{ bytes: Buffer, size: number, last: boolean, stamp: string }} NativePart size: of the whole file, 0 where it has none */
/** @typedef {(stream: 0 | 1, bytes: Buffer) => void} NativeListener */
/**
 * @typedef {object} NativeHandle
 * @property {(id: number) => Promise<void>} start
 * @property {(id: number, spec: NativeSpec, onOutput?: NativeListener) => Promise<NativeResult>} exec
 * @property {(id: number, running: number, bytes: Uint8Array) => Promise<void>} feed the standard input of a command
 * @property {(id: number, running: number) => Promise<void>} endInput
 * @property {(id: number, running: number, name: string) => Promise<void>} signal
 * @property {(id: number, running: number, columns: number, rows: number) => Promise<void>} resize
 * @property {(id: number, path: string, bytes: Uint8Array) => Promise<void>} write
 * @property {(id: number, path: string, maxBytes: number) => Promise<Buffer | null>} read
 * @property {(id: number, maxEntries: number) => Promise<NativeListing>} list
 * @property {(id: number, path: string) => Promise<NativeStats | null>} stat
 * @property {(id: number, path: string, maxEntries: number) => Promise<NativeStats>} listDir
 * @property {(id: number, path: string, recursive: 0 | 1) => Promise<boolean>} remove
 * @property {(id: number, from: string, to: string) => Promise<void>} move
 * @property {(id: number, path: string) => Promise<void>} makeDir
 * @property {(id: number, path: string, offset: number, maxBytes: number, stamp: string) => Promise<NativePart | null>} readPart
 * @property {(id: number, path: string, token: string, offset: number, bytes: Uint8Array, step: 0 | 1 | 2) => Promise<void>} writePart
 *   0: more is to come, 1: it is the last one, 2: what was written is removed
 * @property {(id: number, what: "lifetime" | "extend" | "pause" | "resume", seconds: number) => Promise<void>} control
 * @property {(graceMs: number) => Promise<void>} close
 * @property {(id: number) => void} cancel
 * @property {string | null} id
 * @property {number} capabilities
 * @property {string} isolation JSON, or ""
 * @property {(json: string) => void} [onProgress] set by us: told how far a long start is
 * @property {(json: string) => void} [onLife] set by us: told what has become of a sandbox
 */
/**
 * @typedef {object} NativeModule
 * @property {new (provider: string, optionsJson: string) => NativeHandle} Sandbox
 * @property {(provider: string, optionsJson: string) => Promise<string[]>} sweep deletes what other processes have left
 * @property {string} version
 * @property {() => void} abandon ends every sandbox of this thread at once
 * @property {() => void} useDriver before the first sandbox: the core brings its own event loop
 */

/** @type {NativeModule | undefined} */
let loaded;

/**
 * The addon.
 *
 * @returns {NativeModule}
 * @throws {SandboxError} ERR_SANDBOX_MISSING_BINARY, ERR_SANDBOX_UNSUPPORTED, ERR_SANDBOX_PROVIDER
 */
export function native() {
  loaded ??= load();
  return loaded;
}

/**
 * The binaries that come with the published package: of each target the addon and the helper program. Tracers of
 * imports find a file by its literal path only, as the argument of a call, so there is one line for each.
 *
 * @type {Record<string, () => string[]>}
 */
const PREBUILT = {
  "linux-x64-glibc": () => [
    ownFile(import.meta.url && new URL("../prebuilds/linux-x64-glibc/cloudsandbox.node", import.meta.url)),
    ownFile(import.meta.url && new URL("../prebuilds/linux-x64-glibc/sbx_guard", import.meta.url)),
  ],
  "linux-x64-musl": () => [
    ownFile(import.meta.url && new URL("../prebuilds/linux-x64-musl/cloudsandbox.node", import.meta.url)),
    ownFile(import.meta.url && new URL("../prebuilds/linux-x64-musl/sbx_guard", import.meta.url)),
  ],
  "linux-arm64-glibc": () => [
    ownFile(import.meta.url && new URL("../prebuilds/linux-arm64-glibc/cloudsandbox.node", import.meta.url)),
    ownFile(import.meta.url && new URL("../prebuilds/linux-arm64-glibc/sbx_guard", import.meta.url)),
  ],
  "linux-arm64-musl": () => [
    ownFile(import.meta.url && new URL("../prebuilds/linux-arm64-musl/cloudsandbox.node", import.meta.url)),
    ownFile(import.meta.url && new URL("../prebuilds/linux-arm64-musl/sbx_guard", import.meta.url)),
  ],
};

/** What scripts/build.mjs makes. The published package is without, and webpack would miss it. */
const built = () => [
  ownFile(import.meta.url && new URL(/* webpackIgnore: true */ "../build/Release/cloudsandbox.node", import.meta.url)),
  ownFile(import.meta.url && new URL(/* webpackIgnore: true */ "../build/Release/sbx_guard", import.meta.url)),
];

/** @type {string | undefined} */
let guard;
let isGuardChecked = false;

/**
 * Path of the helper program that the local provider starts its commands with.
 *
 * @throws {SandboxError} ERR_SANDBOX_MISSING_BINARY
 */
export function guardPath() {
  // First what is missing everywhere, then what is missing for this provider. It is of one build with the addon.
  native();
  const file = /** @type {string} */ (guard);
  if (!isGuardChecked) executable(file);
  isGuardChecked = true;
  return file;
}

/**
 * Path of a file of this package. Its URL is made where it is asked for, of a literal path, since tracers
 * of imports understand no more; in a bundle of CommonJS there is none.
 *
 * @param {URL | "" | undefined} url
 * @throws {SandboxError} ERR_SANDBOX_MISSING_BINARY
 */
export function ownFile(url) {
  if (url) {
    // Next.js bundles for a server as if its files were a browser's.
    if (url.protocol !== "file:") throw missingBinary(new Error(`a bundler has given the package's own files an address that is none of a file (${url.href}); see 2.`));
    const file = fileURLToPath(url);
    // Electron shows an archive as if it were a folder, but to JavaScript only: what the system opens stands beside it.
    return process.versions.electron ? file.replace(/\.asar(?=[\\/])/, ".asar.unpacked") : file;
  }
  throw missingBinary(new Error("this is a bundle in one CommonJS file, which does not know where the package's own files are; see 2."));
}

/**
 * The program, which may have lost its execute bit on its way here: archives and bundlers copy without.
 *
 * @param {string} file
 */
function executable(file) {
  try {
    accessSync(file, constants.X_OK);
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === "ENOENT") {
      throw missingBinary(new Error(`the helper program ${file} is not there`));
    }
    try {
      chmodSync(file, 0o755);
      accessSync(file, constants.X_OK);
    } catch (cause) {
      throw new SandboxError(
        `cloudsandbox: its helper program may not be executed. Run: chmod +x ${file}   (a file system that is mounted noexec does not allow it either)`,
        { code: "ERR_SANDBOX_MISSING_BINARY", cause },
      );
    }
  }
  return file;
}

/** @returns {NativeModule} */
function load() {
  /** @type {NodeJS.ErrnoException | undefined} */
  let failure;
  for (const place of [PREBUILT[target()], built]) {
    if (!place) continue;
    const [binary, helper] = place();
    try {
      const module = loadFrom(/** @type {string} */ (binary));
      guard = helper;
      // These have no libuv that watches descriptors; Bun's ends the process when it is asked to.
      if (process.versions.bun || process.versions.deno) module.useDriver();
      // Node does not run an addon's cleanup hooks in the main thread at process.exit().
      process.once("exit", module.abandon);
      return module;
    } catch (cause) {
      const error = /** @type {NodeJS.ErrnoException} */ (cause);
      // A file that is there and does not fit says more than one that is not there.
      if (!failure || failure.code === "MODULE_NOT_FOUND") failure = error;
    }
  }
  throw tooManyFiles(failure) ?? missingBinary(/** @type {NodeJS.ErrnoException} */ (failure));
}

/** @param {string} binary @returns {NativeModule} */
function loadFrom(binary) {
  const require = process.getBuiltinModule("node:module").createRequire(import.meta.url);
  const { version } = JSON.parse(readFileSync(ownFile(import.meta.url && new URL("../package.json", import.meta.url)), "utf8"));
  const module = require(binary);
  if (module.version !== version) throw new Error(`the binary is of version ${module.version}, the package ${version}`);
  return module;
}

/** What the binary must be for: "linux-x64-glibc". */
function target() {
  const { platform, arch } = process;
  return platform === "linux" ? `linux-${arch}-${isMusl() ? "musl" : "glibc"}` : `${platform}-${arch}`;
}

/**
 * Whether the C library of this process is musl, by the loader that its program names. Which files a system has says
 * nothing: many have both libraries. Where the program cannot be read the process report tells, which takes longer.
 */
function isMusl() {
  const interpreter = programInterpreter();
  return interpreter ? /(^|\/)ld-musl-/.test(interpreter) : libc() === "musl";
}

/** The interpreter in the header of the ELF file that runs, or "": it has none, or cannot be read. */
function programInterpreter() {
  const head = Buffer.alloc(4096);
  try {
    const fd = openSync(process.execPath, "r");
    try {
      readSync(fd, head, 0, head.length, 0);
    } finally {
      closeSync(fd);
    }
    // 64 bits, little-endian, as all that we have binaries for. Program headers: where, how large, how many.
    if (head.readUInt32BE(0) !== 0x7f454c46 || head[4] !== 2 || head[5] !== 1) return "";
    const [first, size, count] = [Number(head.readBigUInt64LE(32)), head.readUInt16LE(54), head.readUInt16LE(56)];
    for (let at = first; at < first + size * count; at += size) {
      if (head.readUInt32LE(at) !== 3) continue;
      const start = Number(head.readBigUInt64LE(at + 8));
      return head.toString("latin1", start, start + Number(head.readBigUInt64LE(at + 32)) - 1);
    }
  } catch {
    // Not readable, or not as it should be.
  }
  return "";
}

/** @param {NodeJS.ErrnoException} cause */
function missingBinary(cause) {
  const found = cause.code !== "MODULE_NOT_FOUND";
  const words = [`${process.platform}-${process.arch}`, libc(), `Node.js ${process.version}`].filter(Boolean);
  return new SandboxError(
    `cloudsandbox: the native part ${found ? "cannot be loaded" : "is missing"} (${words.join(", ")}).\n` +
      (found ? `Reason: ${cause.message}\n` : "") +
      "What to do:\n" +
      `1. Build it here, which needs no install script:   node ${buildScript()}\n` +
      "   It says first what it lacks of compiler, headers and libraries, and how that is installed.\n" +
      "2. With a bundler, mark cloudsandbox as external (esbuild: --external:cloudsandbox), and deploy it with its\n" +
      "   folder in node_modules, so that its files stay together.",
    { code: "ERR_SANDBOX_MISSING_BINARY", cause },
  );
}

/** The build command's file as it can be given to node, wherever the package manager has put the package. */
export function buildScript() {
  const usual = "node_modules/cloudsandbox/scripts/build.mjs";
  const own = import.meta.url && fileURLToPath(import.meta.url).replace(/[^/]*\/[^/]*$/, "scripts/build.mjs");
  // In a bundle the package's folder is not known.
  const file = own && existsSync(own) ? own : usual;
  // Yarn's Plug'n'Play runs packages out of their archives, where nothing can be built.
  return /\.zip\//.test(file) ? `${usual}   (after: yarn unplug cloudsandbox)` : file;
}

/** Name and version of the C library on Linux. */
function libc() {
  if (process.platform !== "linux" || !process.report) return "";
  // Without this a report looks up the names of the peers of all sockets.
  Object.assign(process.report, { excludeNetwork: true });
  const { header } = /** @type {{ header: { glibcVersionRuntime?: string } }} */ (process.report.getReport());
  return header.glibcVersionRuntime ? `glibc ${header.glibcVersionRuntime}` : "musl";
}
