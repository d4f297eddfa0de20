// Finds and loads the native addon, at the first construction of a sandbox and never at import.
import { SandboxError, tooManyFiles } from "./errors.js";

const { accessSync, chmodSync, constants } = process.getBuiltinModule("node:fs");
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
 */
/** @typedef {{ names: string, sizes: Float64Array }} NativeListing each name ends with U+0000 */
/** @typedef {(stream: 0 | 1, bytes: Buffer) => void} NativeListener */
/**
 * @typedef {object} NativeHandle
 * @property {(id: number) => Promise<void>} start
 * @property {(id: number, spec: NativeSpec, onOutput?: NativeListener) => Promise<NativeResult>} exec
 * @property {(id: number, path: string, bytes: Uint8Array) => Promise<void>} write
 * @property {(id: number, path: string, maxBytes: number) => Promise<Buffer | null>} read
 * @property {(id: number, maxEntries: number) => Promise<NativeListing>} list
 * @property {(id: number, what: "lifetime" | "extend" | "pause" | "resume", seconds: number) => Promise<void>} control
 * @property {(graceMs: number) => Promise<void>} close
 * @property {(id: number) => void} cancel
 * @property {string | null} id
 * @property {number} capabilities
 * @property {(json: string) => void} [onProgress] set by us: told how far a long start is
 * @property {(json: string) => void} [onLife] set by us: told what has become of a sandbox
 */
/**
 * @typedef {object} NativeModule
 * @property {new (provider: string, optionsJson: string) => NativeHandle} Sandbox
 * @property {(provider: string, optionsJson: string) => Promise<string[]>} sweep deletes what other processes have left
 * @property {string} version
 * @property {() => void} abandon ends every sandbox of this thread at once
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

/** @type {string | undefined} */
let guard;

/**
 * Path of the helper program that the local provider starts its commands with.
 *
 * @throws {SandboxError} ERR_SANDBOX_MISSING_BINARY
 */
export function guardPath() {
  // First what is missing everywhere, then what is missing for this provider.
  native();
  guard ??= executable(ownFile(import.meta.url && new URL("../build/Release/sbx_guard", import.meta.url)));
  return guard;
}

/**
 * Path of a file of this package. Its URL is made where it is asked for, of a literal path, since tracers
 * of imports understand no more; in a bundle of CommonJS there is none.
 *
 * @param {URL | "" | undefined} url
 * @throws {SandboxError} ERR_SANDBOX_MISSING_BINARY
 */
export function ownFile(url) {
  if (url) return fileURLToPath(url);
  throw missingBinary(new Error("this is a bundle in one CommonJS file, which does not know where the package's own files are; see 3."));
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
  checkRuntime();
  /** @type {NativeModule} */
  let module;
  /** @type {string} */
  let version;
  const binary = ownFile(import.meta.url && new URL("../build/Release/cloudsandbox.node", import.meta.url));
  try {
    const require = process.getBuiltinModule("node:module").createRequire(import.meta.url);
    ({ version } = require("../package.json"));
    module = require(binary);
  } catch (error) {
    throw tooManyFiles(error) ?? missingBinary(/** @type {NodeJS.ErrnoException} */ (error));
  }
  if (module.version !== version) {
    throw missingBinary(new Error(`the binary is of version ${module.version}, the package ${version}`));
  }
  // Node does not run an addon's cleanup hooks in the main thread at process.exit().
  process.once("exit", module.abandon);
  return module;
}

/** Bun aborts the whole process when libuv is used, Deno hangs: say so instead. */
function checkRuntime() {
  const { bun, deno } = process.versions;
  if (!bun && !deno) return;
  throw new SandboxError(
    `cloudsandbox needs Node.js: its core runs on Node's event loop, which ${bun ? "Bun" : "Deno"} does not have. ` +
      "Run this program with `node`.",
    { code: "ERR_SANDBOX_UNSUPPORTED" },
  );
}

/** @param {NodeJS.ErrnoException} cause */
function missingBinary(cause) {
  const found = cause.code !== "MODULE_NOT_FOUND";
  const target = [`${process.platform}-${process.arch}`, libc(), `Node.js ${process.version}`].filter(Boolean);
  return new SandboxError(
    `cloudsandbox: the native part ${found ? "cannot be loaded" : "is missing"} (${target.join(", ")}).\n` +
      (found ? `Reason: ${cause.message}\n` : "") +
      "What to do:\n" +
      "1. Install what building takes:\n" +
      "   Debian, Ubuntu  apt-get install build-essential python3 pkg-config libcurl4-openssl-dev libcjson-dev\n" +
      "   Fedora          dnf install gcc gcc-c++ make python3 pkgconf libcurl-devel cjson-devel\n" +
      "   Alpine          apk add build-base python3 pkgconf curl-dev cjson-dev linux-headers\n" +
      "   macOS           xcode-select --install && brew install pkgconf cjson\n" +
      "2. Run: npm rebuild cloudsandbox   (in a clone of its repository: npm ci)\n" +
      "   If npm was told to ignore install scripts, add --ignore-scripts=false.\n" +
      "3. With a bundler, mark cloudsandbox as external (esbuild: --external:cloudsandbox), and deploy it with its\n" +
      "   folder in node_modules, so that its files stay together.",
    { code: "ERR_SANDBOX_MISSING_BINARY", cause },
  );
}

/** Name and version of the C library on Linux. */
function libc() {
  if (process.platform !== "linux" || !process.report) return "";
  // Without this a report looks up the names of the peers of all sockets.
  Object.assign(process.report, { excludeNetwork: true });
  const { header } = /** @type {{ header: { glibcVersionRuntime?: string } }} */ (process.report.getReport());
  return header.glibcVersionRuntime ? `glibc ${header.glibcVersionRuntime}` : "musl";
}
