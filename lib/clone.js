// A git clone for a workspace, by the commands of whatever place it is to be made in.
//
// Invariant: no message shows what may be a secret in a repository's address, and git never asks for a password.
import { SandboxError } from "./errors.js";
import { invalid } from "./options.js";
import { repositoryWords } from "./repository.js";

/** @import { ExecResult } from "../types/index.js" */
/** @typedef {{ repo: string, path: string, ref?: string }} Clone */

const CLONE_SECONDS = 30;
/** Exit code when the program is not there. */
export const MISSING_PROGRAM = 127;

/** @param {string} [ref] */
export function checkRef(ref) {
  if (ref === undefined || !/^(-|$)/.test(ref)) return;
  throw invalid('`workspace.gitClones`: `ref` must name a branch, tag or commit and cannot begin with "-"');
}

/** How messages call a clone: its number, and its address as far as it is no secret. @param {Clone} clone @param {number} index */
export function cloneName({ repo }, index) {
  const { shown } = repositoryWords(repo);
  return `gitClones[${index}]${shown && ` (${shown})`}`;
}

/**
 * Clones into `directory` and goes to the commit that `ref` names.
 *
 * @param {(spec: Record<string, any>) => Promise<ExecResult<any>>} run
 * @param {Clone} clone
 * @param {{ index: number, directory: string, provider: string, options?: string[] }} how options: of git itself
 */
export async function gitClone(run, clone, { index, directory, provider, options = [] }) {
  const { repo, ref } = clone;
  const { hide } = repositoryWords(repo);
  const name = cloneName(clone, index);
  await git(run, provider, `clone of ${name}`, [...options, "clone", "--", repo, directory], hide);
  if (ref === undefined) return;
  const commit = await commitOf(run, directory, ref);
  if (!commit) {
    const text = `there is no branch, tag or commit ${JSON.stringify(ref)} in ${name}`;
    throw new SandboxError(text, { code: "ERR_SANDBOX_NOT_FOUND", provider });
  }
  await git(run, provider, `checkout in ${name}`, ["-C", directory, "checkout", "--detach", commit], hide);
}

/**
 * The commit that `ref` names in a fresh clone, where branches are those of the origin; "" when none.
 *
 * @param {(spec: Record<string, any>) => Promise<ExecResult<any>>} run
 * @param {string} directory
 * @param {string} ref
 */
async function commitOf(run, directory, ref) {
  for (const name of [`refs/remotes/origin/${ref}`, ref]) {
    const argv = ["git", "-C", directory, "rev-parse", "--verify", "--quiet", `${name}^{commit}`];
    const { exitCode, stdout } = await run({ argv, timeoutSeconds: CLONE_SECONDS });
    if (exitCode === 0) return stdout.trim();
  }
  return "";
}

/**
 * @param {(spec: Record<string, any>) => Promise<ExecResult<any>>} run
 * @param {string} provider
 * @param {string} what
 * @param {string[]} args
 * @param {(text: string) => string} hide
 */
async function git(run, provider, what, args, hide) {
  const result = await run({
    argv: ["git", ...args],
    // Never ask for a password: nobody is there to answer.
    env: { GIT_TERMINAL_PROMPT: "0" },
    timeoutSeconds: CLONE_SECONDS,
    mergeStreams: true,
    truncate: "middle",
    maxOutputBytes: 65536,
  });
  if (result.status === "exited" && result.exitCode === 0) return;
  if (result.exitCode === MISSING_PROGRAM) {
    const text = `git ${what} failed: there is no program git on the PATH; install git, or leave out \`gitClones\``;
    throw new SandboxError(text, { code: "ERR_SANDBOX_UNSUPPORTED", provider });
  }
  const late = result.status === "timedOut";
  const how = late ? `took longer than ${CLONE_SECONDS} seconds` : `failed with exit code ${result.exitCode}`;
  const lastLines = hide(result.output).trim().split("\n").slice(-5).join("\n");
  throw new SandboxError(`git ${what} ${how}: ${lastLines.slice(-1000)}`, {
    code: late ? "ERR_SANDBOX_TIMEOUT" : "ERR_SANDBOX_PROVIDER",
    provider,
    // Of another failure only git's words tell whether it can pass.
    retryable: late,
  });
}
