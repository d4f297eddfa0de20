// Providers by name, so that a program can be told by a setting where its code runs; the built-in ones, and a user's own.
import { AgentCoreSandbox } from "./agentcore.js";
import { DaytonaSandbox } from "./daytona.js";
import { DockerSandbox } from "./docker.js";
import { E2BSandbox } from "./e2b.js";
import { HttpSandbox } from "./http.js";
import { LocalSandbox } from "./local.js";
import { ModalSandbox } from "./modal.js";
import { meantName } from "./meant.js";
import { checkFunction, checkString, invalid, reading } from "./options.js";
import { checkSandbox } from "./toolkit.js";
import { VercelSandbox } from "./vercel.js";

/** @import { CloudSandbox } from "../types/index.js" */
/** @typedef {(options: any) => CloudSandbox} Factory */

/** @type {Map<string, Factory>} */
const factories = new Map([
  ["local", (options) => new LocalSandbox(options)],
  ["unix-local", local("unix-local", "none")],
  ["isolated-local", local("isolated-local", "required")],
  ["e2b", (options) => new E2BSandbox(options)],
  ["daytona", (options) => new DaytonaSandbox(options)],
  ["docker", (options) => new DockerSandbox(options)],
  ["http", (options) => new HttpSandbox(options)],
  ["vercel", (options) => new VercelSandbox(options)],
  ["agentcore", (options) => new AgentCoreSandbox(options)],
  ["modal", (options) => new ModalSandbox(options)],
]);
const NAME = /^[a-z0-9][a-z0-9_-]{0,44}$/;

/**
 * The name is a promise, which no option takes back.
 *
 * @param {string} name
 * @param {"none" | "required"} isolation
 * @returns {Factory}
 */
function local(name, isolation) {
  return (options) => {
    const other = options?.isolation;
    if (other !== undefined && other !== isolation) {
      throw invalid(`createSandbox: "${name}" says \`isolation: "${isolation}"\` already: leave \`isolation\` out, or take the provider "local"`);
    }
    return new LocalSandbox({ ...options, isolation });
  };
}

/**
 * Makes a name known to createSandbox().
 *
 * @param {string} name
 * @param {Factory} factory makes a sandbox of the options; not called before createSandbox() is
 */
export function registerSandboxProvider(name, factory) {
  if (!NAME.test(checkString(name, "name"))) {
    throw invalid("registerSandboxProvider: `name` must have 1 to 45 characters a-z, 0-9, `_` or `-`, the first a letter or a digit");
  }
  if (factories.has(name)) {
    throw invalid(`registerSandboxProvider: there is a provider "${name}" already, which is not replaced; give yours another name`);
  }
  checkFunction(factory, "factory");
  factories.set(name, factory);
}

/**
 * A new sandbox of the provider with this name.
 *
 * @param {string} name
 * @param {any} [options] of that provider; its own checks hold
 * @returns {any}
 */
export function createSandbox(name, options) {
  const factory = factories.get(checkString(name, "name"));
  if (!factory) {
    const meant = meantName(name, listSandboxProviders());
    throw invalid(
      `createSandbox: there is no provider ${JSON.stringify(name.slice(0, 60))}${meant ? `; did you mean ${meant}` : ""}; ` +
        `there are ${listSandboxProviders().join(", ")}, and what registerSandboxProvider() adds`,
    );
  }
  const sandbox = factory(options);
  const where = `createSandbox: what the factory of "${name}" returned`;
  if (reading(where, () => typeof (/** @type {any} */ (sandbox)?.then) === "function")) {
    throw invalid(`${where} is a promise; a factory returns the sandbox at once, and what takes time is its start()`);
  }
  return checkSandbox(sandbox, where);
}

/** The names that createSandbox() takes, in the order of their registration. */
export function listSandboxProviders() {
  return [...factories.keys()];
}
