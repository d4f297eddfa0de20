// Running a Node program of a few lines in a process of its own: for exits, crashes, other users
// and hostile surroundings.
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, chownSync, copyFileSync, cpSync, mkdirSync, readdirSync } from "node:fs";
import path from "node:path";

import { tempDir } from "./temp.js";
import { HANG_MS } from "./wait.js";

/** The package's folder. */
export const ROOT = path.resolve(import.meta.dirname, "../..");

export const NOBODY = 65534;

/** Why a test is skipped that is about Node.js itself; false there. */
export const NOT_NODE = process.versions.bun || process.versions.deno ? "this is not Node.js" : false;

/** The arguments for a program of a few lines. */
function programArgs(source, type = "module") {
  if (process.versions.deno) return ["eval", `--ext=${type === "module" ? "mjs" : "cjs"}`, source];
  return [`--input-type=${type}`, "-e", source];
}

/** What a process needs that loads an addon built with sanitizers; empty otherwise. */
export const SANITIZER_ENV = Object.fromEntries(
  Object.entries(process.env).filter(([name]) =>
    /^(LD_PRELOAD|ASAN_OPTIONS|UBSAN_OPTIONS)$/.test(name),
  ),
);

/**
 * Starts `source` (an ES module; `commonjs: true` for a script) with `cwd` inside the package, so
 * that `import "cloudsandbox"` finds it. The environment is PATH and what `env` adds.
 *
 * Returns `{ child, ended }`; `ended` resolves with `{ code, signal, stdout, stderr, hung }` when
 * the process has exited and its output is complete. A process that hangs is killed.
 */
export function startNode(
  source,
  { cwd = ROOT, env = {}, execPath = process.execPath, flags = [], commonjs = false, uid } = {},
) {
  const type = commonjs ? "commonjs" : "module";
  const child = spawn(execPath, [...flags, ...programArgs(source, type)], {
    cwd,
    env: { PATH: process.env.PATH, ...(NOT_NODE && { NO_COLOR: "1" }), ...SANITIZER_ENV, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  const ended = new Promise((resolve, reject) => {
    const result = { stdout: "", stderr: "", hung: false };
    child.stdout.setEncoding("utf8").on("data", (text) => (result.stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text) => (result.stderr += text));
    const timer = setTimeout(() => {
      result.hung = true;
      child.kill("SIGKILL");
    }, 2 * HANG_MS);
    child.on("error", reject);
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      resolve({ ...result, code, signal });
    });
  });
  return { child, ended };
}

/** Runs `source` to its end; see startNode(). */
export function runNode(source, options) {
  return startNode(source, options).ended;
}

/**
 * A copy of what the package needs at run time, in a folder that everybody can read. `native:
 * false` leaves the binaries out.
 */
export function copyPackage(t, { native = true } = {}) {
  const copy = path.join(tempDir(t), "cloudsandbox");
  mkdirSync(copy);
  copyFileSync(path.join(ROOT, "package.json"), path.join(copy, "package.json"));
  cpSync(path.join(ROOT, "lib"), path.join(copy, "lib"), { recursive: true });
  if (native) {
    mkdirSync(path.join(copy, "build/Release"), { recursive: true });
    for (const name of readdirSync(path.join(ROOT, "build/Release"))) {
      if (!/^sbx_guard$|\.node$|\.so(\.|$)/.test(name)) continue;
      copyFileSync(path.join(ROOT, "build/Release", name), path.join(copy, "build/Release", name));
    }
  }
  chmodSync(path.dirname(copy), 0o755);
  return copy;
}

/**
 * Runs `source` as a user without rights, for whom file modes count: as "nobody" when this process
 * is root, else as this user. `process.env.TMPDIR` is a directory of its own for it.
 */
export function runUnprivileged(t, source, { env = {}, ...options } = {}) {
  const home = tempDir(t);
  if (process.getuid() !== 0) return runNode(source, { ...options, env: { ...env, TMPDIR: home } });
  chownSync(home, NOBODY, NOBODY);
  return runNode(source, {
    ...options,
    cwd: copyPackage(t),
    env: { ...env, TMPDIR: home },
    execPath: nodeForNobody(t),
    uid: NOBODY,
  });
}

/** A node binary that "nobody" may execute: ours, or a copy where ours lies in a private folder. */
export function nodeForNobody(t) {
  const probe = spawnSync(process.execPath, ["-e", ""], { uid: NOBODY, gid: NOBODY });
  if (probe.status === 0) return process.execPath;
  const dir = tempDir(t);
  chmodSync(dir, 0o755);
  // Under its own name: Deno takes other arguments when it is called "node".
  const copy = path.join(dir, path.basename(process.execPath));
  copyFileSync(process.execPath, copy);
  chmodSync(copy, 0o755);
  return copy;
}
