// Manifests: what a sandbox is to be made of and what it may do, in the same words for every provider.
//
// Each provider has a table of the settings that it really applies, beside its class; here are the words, and what becomes
// of a setting that is in no table.
//
// Invariant: a setting is kept or refused, never dropped; and refused before anything is created.
import { SandboxError } from "./errors.js";
import {
  checkEnvObject, checkInteger, checkItems, checkNames, checkNumber, checkString, checkTimeoutSeconds, checkWord, invalid, kindOf,
} from "./options.js";

/** @import { SandboxManifest } from "../types/index.js" */

/** What says `manifest`, and how far its network is believed; an option of every class. */
export const POLICY_OPTIONS = Object.freeze(/** @type {const} */ (["manifest", "verifyNetwork"]));

const MEMBERS = ["image", "workingDir", "network", "env", "resources", "mounts", "lifecycle"];
const NETWORK_MEMBERS = ["default", "allowedHosts", "deniedHosts"];
const RESOURCES = ["cpus", "memoryMb", "diskMb", "gpu", "timeoutSeconds"];
const ELSEWHERE = {
  names: ["files", "gitClones"],
  words: "what is put into a sandbox is SandboxAgent's `workspace`, and a manifest says what the sandbox is",
};

/**
 * A setting in a class's own options; or, as text, why this value of it cannot be kept.
 *
 * @typedef {(value: any, options: Record<string, any>) => Record<string, unknown> | string} Setting
 */
/**
 * @typedef {object} ManifestTable
 * @property {string} provider its id
 * @property {string} [existing] the option that names a sandbox which exists already
 * @property {readonly string[]} network the class's own options that say the same as a manifest's `network`
 * @property {Readonly<Record<string, Setting>>} keeps
 * @property {readonly string[]} [anyway] settings that an existing sandbox takes, too
 * @property {Readonly<Record<string, string>>} [advice] what to do where a setting is not kept, when there is more to say than `ADVICE` does
 * @property {string} [otherwise] the same for all others
 */

/** What every provider keeps. @type {Record<string, Setting>} */
const EVERYWHERE = {
  env: (env) => ({ env }),
  "resources.timeoutSeconds": (seconds) => ({ defaultTimeoutSeconds: seconds }),
};

/** What to do where a setting is not kept. @type {Record<string, string>} */
const ADVICE = {
  image: "leave it out, or use a provider whose sandboxes are made of images, such as docker",
  workingDir: "leave it out, and give `cwd` with exec(), or begin a command with cd",
  "network.default": "use a provider that can turn it off, such as an isolated LocalSandbox, docker, e2b or daytona",
  "network.allowedHosts": "turn the network off as a whole, or use a provider that has such a list, such as an isolated LocalSandbox, e2b or daytona",
  "network.deniedHosts": "turn the network off, and give `allowedHosts` where the provider has such a list",
  "resources.cpus": "leave it out, or use a provider that has such a limit, such as docker",
  "resources.memoryMb": "leave it out, or use a provider that has such a limit, such as docker",
  "resources.diskMb": "leave it out, or use a provider that has such a limit, such as docker",
  "resources.gpu": "leave it out, or use a service of your own that has one (http)",
  mounts: "leave it out, and write the files into the sandbox; docker has mounts",
};

/**
 * The options with what their manifest says; as `manifest` a checked copy of it. Throws for what the provider does not keep.
 *
 * @param {Record<string, any>} options of the class, names checked
 * @param {ManifestTable} table
 * @returns {Record<string, any>}
 */
export function withManifest(options, table) {
  if (options.manifest === undefined) {
    if (options.verifyNetwork === undefined) return options;
    throw invalid('`verifyNetwork` goes with a manifest whose network is off: manifest: { network: { default: "deny" } }');
  }
  const manifest = checkManifest(options.manifest);
  /** @type {Record<string, any>} */
  const merged = { ...options, manifest };
  if (manifest.network) refuseOwn(options, table.network, "network");
  for (const [setting, value] of settingsOf(manifest)) {
    const keep = table.keeps[setting] ?? EVERYWHERE[setting];
    const kept = keep ? keep(value, merged) : (table.advice?.[setting] ?? table.otherwise ?? ADVICE[setting]);
    if (typeof kept === "string") throw cannotKeep(table, setting, value, kept);
    refuseExisting(setting, options, table);
    refuseOwn(options, Object.keys(kept), setting);
    Object.assign(merged, kept);
  }
  checkCleanup(manifest, options, table);
  return merged;
}

/**
 * What the manifest asks for, one setting after another. A list of hosts stands for the default that it is an exception of.
 *
 * @param {SandboxManifest} manifest
 * @returns {[string, unknown][]}
 */
function settingsOf({ image, workingDir, network, env, resources = {}, mounts }) {
  const rule = network && (network.allowedHosts ? "allowedHosts" : network.deniedHosts ? "deniedHosts" : "default");
  /** @type {[string, unknown][]} */
  const all = [
    ["image", image],
    ["workingDir", workingDir],
    [`network.${rule}`, rule && network?.[rule]],
    ["env", env],
    .../** @type {[string, unknown][]} */ (Object.entries(resources).map(([name, value]) => [`resources.${name}`, value])),
    ["mounts", mounts],
  ];
  return all.filter(([, value]) => value !== undefined);
}

/**
 * Two words for one thing: nobody can tell which one was meant.
 *
 * @param {Record<string, any>} options
 * @param {readonly string[]} names
 * @param {string} setting
 */
function refuseOwn(options, names, setting) {
  const name = names.find((it) => options[it] !== undefined);
  if (name === undefined) return;
  throw invalid(`\`manifest.${setting}\` and the option \`${name}\` are about the same thing: give one of the two`);
}

/** @param {string} setting @param {Record<string, any>} options @param {ManifestTable} table */
function refuseExisting(setting, options, { existing, anyway }) {
  if (existing === undefined || options[existing] === undefined) return;
  if (setting === "resources.timeoutSeconds" || anyway?.includes(setting)) return;
  throw invalid(`\`manifest.${setting}\` says how a sandbox is made, and \`${existing}\` names one that exists: give one of the two`);
}

/**
 * close() deletes what this package has made, and leaves alone what it was given.
 *
 * @param {SandboxManifest} manifest
 * @param {Record<string, any>} options
 * @param {ManifestTable} table
 */
function checkCleanup({ lifecycle }, options, table) {
  const isGiven = table.existing !== undefined && options[table.existing] !== undefined && options.owned !== true;
  const cleanup = lifecycle?.cleanup;
  if (cleanup === undefined || cleanup === (isGiven ? "never" : "always")) return;
  const advice = isGiven
    ? `what \`${table.existing}\` names is left alone by close(): say "never"`
    : "close() deletes what was made here, however the commands ended: say \"always\", and take what has to remain out of it before";
  throw cannotKeep(table, "lifecycle.cleanup", cleanup, advice);
}

/** @param {ManifestTable} table @param {string} setting @param {unknown} value @param {string} advice */
function cannotKeep({ provider }, setting, value, advice) {
  const shown = setting === "network.default" || setting === "lifecycle.cleanup" ? ` (${JSON.stringify(value)})` : "";
  return new SandboxError(`${provider} cannot keep \`manifest.${setting}\`${shown}, so nothing was created: ${advice}`, {
    code: "ERR_SANDBOX_UNSUPPORTED",
    provider,
  });
}

// ---- the words ------------------------------------------------------------------------------------

/**
 * A copy that nobody can change any more. What asks for nothing is left out of it.
 *
 * @param {unknown} value
 * @returns {SandboxManifest}
 */
export function checkManifest(value) {
  const { image, workingDir, network, env, resources, mounts, lifecycle } = checkNames(value, MEMBERS, "manifest", ELSEWHERE);
  /** @type {Record<string, any>} */
  const manifest = {};
  if (image !== undefined) manifest.image = checkString(image, "manifest.image");
  if (workingDir !== undefined) manifest.workingDir = checkFolder(workingDir);
  if (network !== undefined) manifest.network = checkNetwork(network);
  if (env !== undefined) manifest.env = Object.freeze(checkEnvObject(env, "manifest.env"));
  if (resources !== undefined) manifest.resources = checkResources(resources);
  if (mounts !== undefined) {
    const copies = checkItems(mounts, "manifest.mounts", "an array of { source, target, readOnly }", (mount, index) =>
      Object.freeze(checkNames(mount, ["source", "target", "readOnly"], `manifest.mounts[${index}]`)));
    if (copies.length > 0) manifest.mounts = Object.freeze(copies);
  }
  if (lifecycle !== undefined) manifest.lifecycle = checkLifecycle(lifecycle);
  return Object.freeze(manifest);
}

/** @param {unknown} value */
function checkFolder(value) {
  const path = checkString(value, "manifest.workingDir");
  if (path.startsWith("/") && !path.includes("\0")) return path;
  throw invalid('`manifest.workingDir` must be an absolute path: it begins with "/"');
}

/** Off, unless it says otherwise. @param {unknown} value */
function checkNetwork(value) {
  const { default: rule = "deny", allowedHosts, deniedHosts } = checkNames(value, NETWORK_MEMBERS, "manifest.network");
  checkWord(rule, ["deny", "allow"], "manifest.network.default");
  const allowed = hostsOf(allowedHosts, "manifest.network.allowedHosts");
  const denied = hostsOf(deniedHosts, "manifest.network.deniedHosts");
  if (allowed && rule === "allow") throw invalid('`manifest.network.allowedHosts` are exceptions of default: "deny"; leave out one of the two');
  if (denied && rule === "deny") throw invalid('`manifest.network.deniedHosts` are exceptions of default: "allow", which has to be said');
  return Object.freeze({ default: rule, ...(allowed && { allowedHosts: allowed }), ...(denied && { deniedHosts: denied }) });
}

/** @param {unknown} value @param {string} name */
function hostsOf(value, name) {
  if (value === undefined) return undefined;
  const hosts = checkItems(value, name, 'an array of hosts, such as ["files.example.org", "*.example.com", "192.0.2.0/24"]', (item, index) => {
    const host = checkString(item, `${name}[${index}]`);
    if (hostKind(host)) return host;
    throw invalid(`\`${name}[${index}]\` must be a name, an address or a range of addresses, without scheme, port or path, as in "files.example.org", "*.example.com" or "192.0.2.0/24"`);
  });
  return hosts.length > 0 ? Object.freeze(hosts) : undefined;
}

/**
 * What a host of a list is.
 *
 * @param {string} host
 * @returns {"name" | "ipv4" | "ipv6" | undefined}
 */
export function hostKind(host) {
  const [, address, , prefix] = /^([^/]*)(\/(\d{1,3}))?$/.exec(host) ?? [];
  if (address === undefined || address.length > 253) return undefined;
  const isV4 = /^\d+\.\d+\.\d+\.\d+$/.test(address) && address.split(".").every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) < 256);
  if (isV4) return Number(prefix ?? 0) <= 32 ? "ipv4" : undefined;
  if (/^[0-9a-f:.]*:[0-9a-f:.]*$/i.test(address)) return URL.canParse(`http://[${address}]`) && Number(prefix ?? 0) <= 128 ? "ipv6" : undefined;
  // A last part of digits would be an address that is none.
  const isName = /^(\*\.)?([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/i.test(address);
  return isName && prefix === undefined ? "name" : undefined;
}

/** @param {unknown} value */
function checkResources(value) {
  const given = checkNames(value, RESOURCES, "manifest.resources");
  const { cpus, memoryMb, diskMb, gpu, timeoutSeconds } = given;
  if (cpus !== undefined) checkNumber(cpus, "manifest.resources.cpus", 0.01, 1024);
  if (memoryMb !== undefined) checkInteger(memoryMb, "manifest.resources.memoryMb", 1, 2 ** 30);
  if (diskMb !== undefined) checkInteger(diskMb, "manifest.resources.diskMb", 1, 2 ** 30);
  if (timeoutSeconds !== undefined) checkTimeoutSeconds(timeoutSeconds, "manifest.resources.timeoutSeconds");
  if (gpu === 0) delete given.gpu;
  else if (gpu !== undefined && typeof gpu !== "string") {
    if (!Number.isInteger(gpu)) throw invalid(`\`manifest.resources.gpu\` must be how many, or the name of a kind, not ${kindOf(gpu)}`);
    checkInteger(gpu, "manifest.resources.gpu", 0, 64);
  }
  return Object.freeze(given);
}

/** @param {unknown} value */
function checkLifecycle(value) {
  const { cleanup } = checkNames(value, ["cleanup"], "manifest.lifecycle");
  return Object.freeze(cleanup === undefined ? {} : { cleanup: checkWord(cleanup, ["always", "onSuccess", "never"], "manifest.lifecycle.cleanup") });
}
