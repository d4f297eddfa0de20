// The files of a sandbox, by the port alone: what is there, and how many of them get there. So it works with every
// provider, and with a user's own sandbox.
//
// Invariant: no name stands in the text of a command that is longer than its files' list; lists go as files, and names in
// commands are quoted. What it puts there for itself is gone after the call.
import { SandboxError, detailsOf } from "../errors.js";
import { unlessAborted } from "../signals.js";

const { randomBytes } = process.getBuiltinModule("node:crypto");

/** @import { CloudSandbox } from "../../types/index.js" */
/**
 * @typedef {CloudSandbox & {
 *   readBytes?: (path: string, options?: object) => Promise<Uint8Array | null>,
 *   listFiles?: (options?: object) => Promise<{ path: string, size: number }[]>,
 *   exec?: (spec: any) => Promise<any>,
 *   setLifetime?: (seconds: number, options?: object) => Promise<void>,
 *   extendLifetime?: (seconds: number, options?: object) => Promise<void>,
 *   sandboxId?: string | null, capabilities?: any, networkIsolation?: any }} Port
 * @typedef {{ hash: string | undefined, isProgram: boolean }} Seen
 */

/** What the names of our own files begin with. */
export const OWN_FILES = ".cloudsandbox-";
/** Names that one command looks at: their lines must fit into the output that any sandbox keeps. */
const LOOK_BYTES = 700_000;
const LOOK_LINE_BYTES = 100;
/** Text of a command for modes and links. */
const COMMAND_BYTES = 30_000;
const LIMIT = { timeoutSeconds: 600 };
/** Names that are in one listing. */
const MOST_LISTED = 200_000;
/** Files that are on their way at a time. */
const AT_ONCE = 8;

/**
 * Does something for each item, a few at a time. The first failure ends it.
 *
 * @template T
 * @param {Iterable<T>} items
 * @param {(item: T) => Promise<void>} work
 */
export async function fewAtATime(items, work) {
  const next = items[Symbol.iterator]();
  let failed = false;
  const worker = async () => {
    for (let item = next.next(); !item.done && !failed; item = next.next()) {
      await work(item.value).catch((error) => {
        failed = true;
        throw error;
      });
    }
  };
  const workers = await Promise.allSettled(Array.from({ length: AT_ONCE }, worker));
  for (const outcome of workers) if (outcome.status === "rejected") throw outcome.reason;
}

/** @param {Port} port @param {string} path @param {Uint8Array} bytes @param {AbortSignal} [signal] */
export function put(port, path, bytes, signal) {
  if (port.readBytes) return unlessAborted(port.writeFile(path, /** @type {any} */ (bytes), undefined, { signal }), signal);
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  return unlessAborted(port.writeFile(path, buffer.toString("base64"), "base64", { signal }), signal);
}

/**
 * @param {Port} port
 * @param {string} path
 * @param {number} maxBytes
 * @param {AbortSignal} [signal]
 * @returns {Promise<Uint8Array | null>}
 */
export async function get(port, path, maxBytes, signal) {
  if (port.readBytes) return unlessAborted(port.readBytes(path, { maxBytes, signal }), signal);
  const text = await unlessAborted(port.readFile(path, "base64", { signal }), signal);
  return text === null ? null : Buffer.from(text, "base64");
}

/**
 * Its regular files, but our own.
 *
 * @param {Port} port
 * @param {AbortSignal} [signal]
 */
export async function listed(port, signal) {
  if (!port.listFiles) throw unlisted(port);
  const files = await unlessAborted(port.listFiles({ maxEntries: MOST_LISTED, signal }), signal);
  return files.filter(({ path }) => !path.slice(path.lastIndexOf("/") + 1).startsWith(OWN_FILES));
}

/** @param {Port} port */
export function unlisted(port) {
  return new SandboxError(`${port.providerId} has no listFiles(), so nothing can be brought back from it: read what you need with readFile()`, {
    code: "ERR_SANDBOX_UNSUPPORTED",
    provider: port.providerId,
  });
}

/**
 * What is there of these files, and whether there is a tar.
 *
 * @param {Port} port
 * @param {readonly string[]} paths without control characters
 * @param {AbortSignal} [signal]
 * @returns {Promise<{ files: Map<string, Seen>, hasTar: boolean }>}
 */
export async function look(port, paths, signal) {
  /** @type {Map<string, Seen>} */
  const files = new Map();
  let hasTar = false;
  for (const part of parts(paths)) {
    const list = ownName();
    await put(port, list, Buffer.from(part.map((path) => `${path}\n`).join("")), signal);
    const { output } = await unlessAborted(port.shell(lookScript(list), { ...LIMIT, signal }), signal);
    const lines = output.split("\n");
    hasTar ||= lines.includes("cloudsandbox tar");
    for (const line of lines) hear(line, part, files);
  }
  return { files, hasTar };
}

/** @param {readonly string[]} paths at least one part, since it also tells of tar */
function parts(paths) {
  /** @type {string[][]} */
  const all = [[]];
  let size = 0;
  for (const path of paths) {
    const bytes = Buffer.byteLength(path) + LOOK_LINE_BYTES;
    if (size + bytes > LOOK_BYTES && size > 0) {
      all.push([]);
      size = 0;
    }
    size += bytes;
    all[all.length - 1].push(path);
  }
  return all;
}

/**
 * A line for each file that is there, with its number in the list: the shell does the tests, and one program all
 * the sums. With "./" no name is an option.
 *
 * @param {string} list
 */
function lookScript(list) {
  // Tar first: with less output kept than there is, only sums are missing.
  return `if command -v tar >/dev/null 2>&1; then echo 'cloudsandbox tar'; fi
n=0
while IFS= read -r f; do
  n=$((n+1))
  if [ -f "./$f" ] && [ ! -L "./$f" ]; then
    printf '%s\\0' "./$f" >&3
    if [ -x "./$f" ]; then echo "cloudsandbox x $n"; else echo "cloudsandbox - $n"; fi
  fi
done <${list} 3>${list}.0
if command -v sha256sum >/dev/null 2>&1; then xargs -0 sha256sum <${list}.0 2>/dev/null
elif command -v shasum >/dev/null 2>&1; then xargs -0 shasum -a 256 <${list}.0 2>/dev/null; fi
rm -f ${list} ${list}.0`;
}

/** @param {string} line @param {string[]} part @param {Map<string, Seen>} files */
function hear(line, part, files) {
  const mode = /^cloudsandbox ([x-]) (\d+)$/.exec(line);
  if (mode) {
    const path = part[Number(mode[2]) - 1];
    if (path !== undefined) files.set(path, { hash: undefined, isProgram: mode[1] === "x" });
    return;
  }
  // GNU's writes a backslash before a sum whose name has one, and two for one in the name.
  const sum = /^(\\?)([0-9a-f]{64}) [ *]\.\/(.*)$/.exec(line);
  const seen = sum && files.get(sum[1] ? sum[3].replaceAll("\\\\", "\\") : sum[3]);
  if (sum && seen) seen.hash = sum[2];
}

/**
 * Unpacks an archive.
 *
 * @param {Port} port
 * @param {Uint8Array} archive
 * @param {AbortSignal} [signal]
 */
export async function unpack(port, archive, signal) {
  const name = ownName();
  await put(port, name, archive, signal);
  const command = `tar xpof ${name} 2>&1; s=$?; rm -f ${name}; exit $s`;
  await succeed(port, command, "tar could not unpack the workspace's files", signal);
}

/**
 * Makes folders and links, and sets modes, where no tar does it.
 *
 * @param {Port} port
 * @param {readonly string[]} commands each complete
 * @param {AbortSignal} [signal]
 */
export async function inShell(port, commands, signal) {
  let text = "";
  for (const [index, command] of commands.entries()) {
    text += `${command} || exit 1\n`;
    if (text.length < COMMAND_BYTES && index + 1 < commands.length) continue;
    await succeed(port, text, "the modes and links of the workspace's files could not be set", signal);
    text = "";
  }
}

/** @param {Port} port @param {string} command @param {string} words @param {AbortSignal} [signal] */
async function succeed(port, command, words, signal) {
  const result = await unlessAborted(port.shell(command, { ...LIMIT, signal }), signal);
  if (result.exitCode === 0) return;
  const code = result.timedOut ? "ERR_SANDBOX_TIMEOUT" : "ERR_SANDBOX_PROVIDER";
  const why = result.timedOut ? "in 600 seconds" : result.output.trim().slice(0, 300);
  throw new SandboxError(`${words}: ${why}`, { code, provider: port.providerId });
}

/** A word of a command for the shell. @param {string} text */
export function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function ownName() {
  return `${OWN_FILES}${randomBytes(8).toString("hex")}`;
}

/** Whether a file was larger than was allowed. @param {unknown} error */
export function isTooLarge(error) {
  return detailsOf(error)?.code === "ERR_SANDBOX_TOO_LARGE";
}
