// The runner's programs alone, without a provider, under each shell that may be a sandbox's /bin/sh.
// With CLOUDSANDBOX_ALL_SHELLS=1 one that is not installed is a failure; else its tests are skipped.
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import path from "node:path";
import { test } from "node:test";

export const folder = path.resolve(import.meta.dirname, "../../src/providers/remote/runner");
const embed = path.resolve(import.meta.dirname, "../../scripts/embed.sh");

/** Where a program is, or undefined. @param {string} name */
export function which(name) {
  try {
    return execFileSync("/bin/sh", ["-c", 'command -v "$1"', "sh", name], { encoding: "utf8" }).trim();
  } catch {
    return undefined;
  }
}

/** The whole text of a program, as the build puts it together. @param {string} name */
export const text = (name) => execFileSync("sh", [embed, "-p", path.join(folder, `${name}.sh`)], { encoding: "utf8" });

// All of them called "sh", which is what makes them behave as that.
export const shells = [
  { name: "dash", file: "dash", words: [] },
  { name: "bash", file: "bash", words: [] },
  { name: "zsh", file: "zsh", words: [] },
  { name: "busybox", file: "busybox", words: ["sh"] },
].map((shell) => ({ ...shell, path: which(shell.file) }));

/**
 * One test per shell.
 * @param {string} title
 * @param {any} optionsOrBody
 * @param {(t: any, shell: any) => any} [body]
 */
export function everyShell(title, optionsOrBody, body = optionsOrBody) {
  const options = body === optionsOrBody ? {} : optionsOrBody;
  for (const shell of shells) {
    test(`${title} [${shell.name}]`, { timeout: 60_000, ...options }, async (t) => {
      if (!shell.path) {
        assert.ok(!process.env.CLOUDSANDBOX_ALL_SHELLS, `${shell.name} is not installed`);
        t.skip("not installed");
        return;
      }
      await body(t, shell);
    });
  }
}

/** The words that start it behind another program, which calls it by its own name. @param {any} shell */
export const asSh = ({ name, path: file, words }) => [file, ...(name === "zsh" ? ["--emulate", "sh"] : words)];

// A mount namespace of its own, with another /tmp.
export const canMount = spawnSync("unshare", ["--mount", "mount", "-t", "tmpfs", "none", "/tmp"]).status === 0;

/** A shell whose /tmp, and whatever else is named, is made by these commands first. @param {any} shell @param {string} mounts */
export const within = (shell, mounts) => ({
  file: "unshare",
  path: which("unshare"),
  words: ["--mount", "/bin/sh", "-c", `${mounts}; exec "$@"`, "sh", ...asSh(shell)],
});

/**
 * Runs a text with a shell as sandboxes do.
 * @param {any} shell
 * @param {string} script
 * @param {string[]} words its arguments, $0 first
 * @param {import("node:child_process").SpawnOptions & { input?: string | Buffer }} [options]
 * @returns {Promise<{ code: number | null, signal: string | null, stdout: Buffer, stderr: string }>}
 */
export function runText(shell, script, words, { input, ...options } = {}) {
  // zsh and bash behave as sh when they are called that.
  const argv0 = shell.words.length > 0 ? shell.file : "sh";
  const child = spawn(shell.path, [...shell.words, "-c", script, ...words], { argv0, ...options });
  /** @type {Buffer[][]} */
  const parts = [[], []];
  child.stdout?.on("data", (bytes) => parts[0].push(bytes));
  child.stderr?.on("data", (bytes) => parts[1].push(bytes));
  child.stdin?.on("error", () => {});
  child.stdin?.end(input ?? "");
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) =>
      resolve({ code, signal, stdout: Buffer.concat(parts[0]), stderr: Buffer.concat(parts[1]).toString() }));
  });
}

export const newTag = () => randomBytes(16).toString("hex");
