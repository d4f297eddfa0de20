// What the tests of the isolated sandbox share. Attacks are Python programs that run inside: with ctypes they make the
// system calls themselves, and print what came of each as JSON.
import { spawnSync } from "node:child_process";
import { cpSync } from "node:fs";
import path from "node:path";
import { after } from "node:test";

import { LocalSandbox } from "cloudsandbox";

import { NOBODY, ROOT, copyPackage, nodeForNobody } from "../support/node.js";

const PRELUDE = `
import ctypes, errno, json, os, platform, resource, signal, socket, stat, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
INTEL = platform.machine() == "x86_64"
def name(number): return errno.errorcode.get(number, str(number))
def call(intel, arm, *args):
    """A system call by its two numbers: "ok", or the name of the error."""
    ctypes.set_errno(0)
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    result = libc.syscall(ctypes.c_long(intel if INTEL else arm), *words)
    return "ok" if result >= 0 else name(ctypes.get_errno())
def attempt(do):
    try:
        do()
        return "ok"
    except OSError as e:
        return name(e.errno)
def read(path): return attempt(lambda: open(path, "rb").read(1))
def write(path): return attempt(lambda: os.close(os.open(path, os.O_WRONLY)))
def tell(value): print(json.dumps(value))
`;

/** Why this machine cannot isolate; undefined: it can. */
async function whyNot() {
  const sandbox = new LocalSandbox({ isolation: "required" });
  try {
    await sandbox.start();
    return undefined;
  } catch (error) {
    if (error.code !== "ERR_SANDBOX_ISOLATION_UNAVAILABLE") throw error;
    return `unavailable here: ${error.message}`;
  } finally {
    await sandbox.close();
  }
}

/** As a test's `skip`: false, or why none of them can be run. Never a pass. */
export const unavailable = (await whyNot()) ?? false;

/** A sandbox of one file, closed after its tests. */
export function shared(options) {
  const sandbox = new LocalSandbox({ isolation: "required", ...options });
  after(() => sandbox.close());
  return sandbox;
}

/** A sandbox of one test. */
export function own(t, options) {
  const sandbox = new LocalSandbox({ isolation: "required", ...options });
  t.after(() => sandbox.close());
  return sandbox;
}

/** What the program has told, run with `options` of exec(). */
export async function attack(sandbox, code, options) {
  const result = await sandbox.exec({ code: `${PRELUDE}\n${code}`, language: "python", timeoutSeconds: 30, ...options });
  try {
    return JSON.parse(result.stdout.trim().split("\n").at(-1));
  } catch {
    throw new Error(`the attack told nothing: ${JSON.stringify(result)}`);
  }
}

/** Skips the test when a layer is not there. Returns whether it was. */
export async function lacks(t, sandbox, layer) {
  await sandbox.start();
  const { state, errno } = sandbox.isolation[layer];
  if (state === "enforced") return false;
  t.skip(`unavailable here: ${layer}, ${errno ?? state}`);
  return true;
}

/** The package with these tests, where every user may read them. */
export function readableCopy(t) {
  const copy = copyPackage(t);
  for (const folder of ["isolated", "support"]) cpSync(path.join(ROOT, "test", folder), path.join(copy, "test", folder), { recursive: true });
  spawnSync("chmod", ["-R", "a+rX", path.dirname(copy), copy]);
  return copy;
}

/** How a program is run as an ordinary user, with Node.js where that one may read it. */
export function asOrdinary(t) {
  const isRoot = process.getuid() === 0;
  return { node: isRoot ? nodeForNobody(t) : process.execPath, user: isRoot ? { uid: NOBODY, gid: NOBODY } : {} };
}

/**
 * What a start comes to under a shell line that ends in "$@".
 */
export function startUnder(t, line, { as, ...options } = {}) {
  const { stdout, stderr } = runUnder(t, line, `
    const s = new LocalSandbox({ isolation: "required", ...${JSON.stringify(options)} });
    try { console.log((await s.shell("echo ran")).output); } catch (e) { console.log(e.code, e.message); }
    await s.close();`, as);
  return stdout.trim() || `nothing: ${stderr}`;
}

/**
 * Runs a program under a shell line that ends in "$@". An ordinary user's, unless told otherwise: in a namespace that root has
 * made, its root is the machine's, and refused as such before anything else.
 */
export function runUnder(t, line, code, { node, user } = asOrdinary(t)) {
  const program = `import { LocalSandbox } from "cloudsandbox"; ${code}`;
  return spawnSync("sh", ["-c", line, "sh", node, "--input-type=module", "-e", program], {
    cwd: readableCopy(t), encoding: "utf8", env: { PATH: process.env.PATH, HOME: "/" }, timeout: 60_000, ...user,
  });
}

/** Under it no namespaces can be made; why a machine has no such line. */
export const NO_NAMESPACES = "exec unshare -U --map-root-user sh -c 'echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"' sh \"$@\"";
export const nestless = spawnSync("unshare", ["-Ur", "true"]).status !== 0 && "unavailable here: user namespaces of unshare(1)";
