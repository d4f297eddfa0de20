// E2BSandbox: a sandbox at E2B.
//
// Invariant: a key is checked here without ever being shown, and then handed to the core alone.
import { hostKind, withManifest } from "./manifest.js";
import {
  checkBoolean, checkEnvObject, checkInteger, checkItems, checkNames, checkString, checkTexts, given, invalid, kindOf, reading, wholeOrNone,
} from "./options.js";
import { REMOTE_OPTIONS, missingKey, networkOptions, ownedOption, refuseVendorOptions, secretOrEnv, textOrEnv } from "./remote-options.js";
import { COMMON_OPTIONS, NativeSandbox, control, siteOf } from "./sandbox.js";
import { signalOf } from "./signals.js";
import { CALL_ONLY, RUN_OPTIONS } from "./spec.js";

/** @import { E2BNetwork, E2BSandboxOptions, SandboxCallOptions } from "../types/index.js" */

const FLAGS = Object.freeze(["secure", "allowInternetAccess", "autoPause", "autoResume", "interpreter"]);
const MAPS = Object.freeze(["metadata", "headers"]);
/** Addresses, and the variables that stand for them when they are left out. */
const ADDRESSES = Object.freeze(
  /** @type {const} */ ([
    ["domain", "E2B_DOMAIN"],
    ["baseURL", "E2B_API_URL"],
    ["sandboxUrl", "E2B_SANDBOX_URL"],
  ]),
);
const E2B_OPTIONS = Object.freeze([
  ...COMMON_OPTIONS, ...REMOTE_OPTIONS, ...FLAGS, ...MAPS, "domain", "sandboxUrl", "debug", "template", "sandboxId", "owned",
  "lifetimeSeconds", "env", "network",
]);
const NETWORK_OPTIONS = Object.freeze([
  "allowOut", "denyOut", "allowPublicTraffic", "maskRequestHost", "httpsPorts", "egressProxy", "rules",
]);
const PROXY_OPTIONS = Object.freeze(["address", "username", "password"]);
const MAX_PORT = 65535;
const E2B_RUN_OPTIONS = Object.freeze([...RUN_OPTIONS, "context"]);
const RESUME_OPTIONS = Object.freeze(["lifetimeSeconds", "signal"]);
const MAX_LIFETIME_SECONDS = 86400;

const ALL_ADDRESSES = "0.0.0.0/0";

/** What E2B keeps of a manifest. @type {import("./manifest.js").ManifestTable} */
const MANIFEST = Object.freeze({
  provider: "e2b",
  existing: "sandboxId",
  network: ["allowInternetAccess", "network"],
  keeps: {
    image: (template) => ({ template }),
    "network.default": (rule) => ({ allowInternetAccess: rule === "allow" }),
    "network.allowedHosts": (hosts) =>
      hosts.some((/** @type {string} */ host) => hostKind(host) === "ipv6")
        ? "its list takes names and IPv4 addresses"
        : { network: { allowOut: [...hosts], denyOut: [ALL_ADDRESSES] } },
    "network.deniedHosts": (hosts) =>
      hosts.every((/** @type {string} */ host) => hostKind(host) === "ipv4")
        ? { network: { denyOut: [...hosts] } }
        : "its list takes IPv4 addresses; for names turn the network off, and give `allowedHosts`",
  },
  advice: {
    "resources.cpus": "processors and memory are its template's: build one, and give its name as `image`",
    "resources.memoryMb": "processors and memory are its template's: build one, and give its name as `image`",
    "resources.diskMb": "the disk is its template's: leave it out",
  },
});

/** A sandbox at E2B, by E2B's own protocol. */
export class E2BSandbox extends NativeSandbox {
  /** @param {E2BSandboxOptions} [options] @param {string} [where] what messages call this class */
  constructor(options, where = "E2BSandbox") {
    refuseVendorOptions(options, where);
    const checked = withManifest(checkNames(options, E2B_OPTIONS, where, CALL_ONLY), MANIFEST);
    super({ provider: "e2b", providerId: "e2b", options: checked, own: ownOptions(checked), runOptions: E2B_RUN_OPTIONS });
  }

  /**
   * The sandbox now ends that many seconds from now.
   *
   * @param {number} seconds whole, 1 to 86400
   * @param {SandboxCallOptions} [options]
   * @returns {Promise<void>}
   */
  async setLifetime(seconds, options) {
    const site = siteOf(this, E2BSandbox.prototype.setLifetime);
    checkInteger(seconds, "seconds", 1, MAX_LIFETIME_SECONDS);
    return this[control]("lifetime", seconds, signalOf(options, "setLifetime"), site);
  }

  /**
   * Keeps files and memory, and ends the calls in flight. Until resume() every call rejects.
   *
   * @param {SandboxCallOptions} [options]
   * @returns {Promise<void>}
   */
  async pause(options) {
    const site = siteOf(this, E2BSandbox.prototype.pause);
    return this[control]("pause", 0, signalOf(options, "pause"), site);
  }

  /**
   * Goes on after a pause.
   *
   * @param {{ lifetimeSeconds?: number, signal?: AbortSignal }} [options] lifetimeSeconds: as in the
   *   constructor when left out
   * @returns {Promise<void>}
   */
  async resume(options) {
    const site = siteOf(this, E2BSandbox.prototype.resume);
    const { lifetimeSeconds, signal } = checkNames(options, RESUME_OPTIONS, "resume");
    const seconds = wholeOrNone(lifetimeSeconds, "lifetimeSeconds", 1, MAX_LIFETIME_SECONDS) ?? 0;
    return this[control]("resume", seconds, signalOf({ signal }, "resume"), site);
  }
}

/**
 * The options of the core's E2B provider.
 *
 * @param {Record<string, any>} options names checked
 */
function ownOptions(options) {
  const { lateAuth = false, env, network } = options;
  const debug = options.debug === undefined ? process.env.E2B_DEBUG?.toLowerCase() === "true" : options.debug;
  const apiKey = secretOrEnv(options.apiKey, "apiKey", ["E2B_API_KEY"]);
  if (apiKey === undefined && !checkBoolean(lateAuth, "lateAuth") && !checkBoolean(debug, "debug")) {
    throw missingKey(
      "e2b",
      "set E2B_API_KEY or pass `apiKey`; keys are made at https://e2b.dev/dashboard?tab=keys. " +
        "Pass lateAuth: true to be told at the first use only.",
    );
  }
  return {
    debug: checkBoolean(debug, "debug"),
    lateAuth,
    apiKey,
    ...networkOptions(options),
    ...Object.fromEntries(ADDRESSES.map(([name, variable]) => [name, textOrEnv(options[name], name, [variable])])),
    lifetimeSeconds: wholeOrNone(options.lifetimeSeconds, "lifetimeSeconds", 1, MAX_LIFETIME_SECONDS),
    ...given(options, ["template", "sandboxId"], checkString),
    ...given(options, FLAGS, checkBoolean),
    owned: ownedOption(options),
    ...given(options, MAPS, checkTexts),
    env: env === undefined ? undefined : checkEnvObject(env),
    network: network === undefined ? undefined : checkNetwork(network),
  };
}

/**
 * E2B's rules, a copy. A misspelt one is refused: left out, it would leave open what it was to close.
 *
 * @param {unknown} value
 * @returns {E2BNetwork}
 */
function checkNetwork(value) {
  const network = checkNames(value, NETWORK_OPTIONS, "network");
  /** @param {string[]} names @param {(value: any, name: string) => unknown} check */
  const checked = (names, check) => given(network, names, (item, name) => check(item, `network.${name}`));
  return {
    ...checked(["allowOut", "denyOut"], checkAddresses),
    ...checked(["allowPublicTraffic"], checkBoolean),
    ...checked(["maskRequestHost"], checkString),
    ...checked(["httpsPorts"], checkPorts),
    ...checked(["egressProxy"], checkProxy),
    ...checked(["rules"], checkRules),
  };
}

/** @param {unknown} value @param {string} name */
function checkAddresses(value, name) {
  return checkItems(value, name, "an array of strings", (item, index) => checkString(item, `${name}[${index}]`));
}

/** @param {unknown} value @param {string} name */
function checkPorts(value, name) {
  return checkItems(value, name, "an array of ports", (item, index) => checkInteger(item, `${name}[${index}]`, 1, MAX_PORT));
}

/** @param {unknown} value @param {string} name */
function checkProxy(value, name) {
  const { address, ...rest } = checkNames(value, PROXY_OPTIONS, name);
  return {
    address: checkString(address, `${name}.address`),
    ...given(rest, ["username", "password"], (text, key) => checkString(text, `${name}.${key}`)),
  };
}

/** Lists of transformations by domain. @param {any} value @param {string} name */
function checkRules(value, name) {
  if (kindOf(value) !== "an object") throw invalid(`\`${name}\` must be an object of arrays, not ${kindOf(value)}`);
  const entries = reading(`\`${name}\``, () => Object.entries(value));
  return Object.fromEntries(
    entries.map(([domain, rules]) => [domain, checkItems(rules, `${name}.${domain}`, "an array of rules", checkRule)]),
  );
}

/** @param {unknown} value */
function checkRule(value) {
  const { transform } = checkNames(value, ["transform"], "network.rules");
  if (transform === undefined) return {};
  const { headers } = checkNames(transform, ["headers"], "network.rules: transform");
  return { transform: headers === undefined ? {} : { headers: checkTexts(headers, "network.rules: headers") } };
}
