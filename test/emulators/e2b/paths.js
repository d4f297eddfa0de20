// Users and paths inside a sandbox. Absolute paths are the machine's own, except that the home directories
// of the two users stand for directories of the sandbox; what is reported are real paths, those which
// commands inside see.
// @ts-check
import path from "node:path";

/** @typedef {import("./sandbox.js").Sandbox} Sandbox */

export class UserError extends Error {}
export class PathError extends Error {}

/**
 * The user a request runs as.
 * @param {Sandbox} sandbox
 * @param {string | undefined} name
 * @returns {{ name: string, home: string }}
 */
export function findUser(sandbox, name) {
  if (!name) {
    if (!sandbox.atLeast("0.4.0")) throw new UserError("no user specified");
    const { user } = sandbox.daemon;
    return { name: user, home: sandbox.homes[user] };
  }
  if (!Object.hasOwn(sandbox.homes, name)) throw new UserError(`invalid username: '${name}'`);
  return { name, home: sandbox.homes[name] };
}

/**
 * @param {Sandbox} sandbox
 * @param {string} home of the user who asks
 * @param {string} given
 */
export function resolvePath(sandbox, home, given) {
  if (given.includes("\0")) throw new PathError("path contains a NUL byte");
  if (given === "" || given === "~") return home;
  if (given.startsWith("~/")) return path.join(home, given.slice(2));
  if (given.startsWith("~")) throw new PathError("cannot expand user-specific home dir");
  if (!path.isAbsolute(given)) return path.join(home, given);
  const clean = path.normalize(given).replace(/(?<=.)\/+$/, "");
  for (const [prefix, directory] of [
    ["/home/user", sandbox.homes.user],
    ["/root", sandbox.homes.root],
  ]) {
    if (clean === prefix) return directory;
    if (clean.startsWith(`${prefix}/`)) return path.join(directory, clean.slice(prefix.length));
  }
  return clean;
}
