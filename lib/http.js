// HttpSandbox: a sandbox of any service that has the five requests of docs/http-protocol.md.
//
// Invariant: a token is checked here without ever being shown, and then handed to the core alone.
import { hostKind, withManifest } from "./manifest.js";
import { checkBoolean, checkEnvObject, checkItems, checkNames, checkString, checkTexts, checkWord, given, invalid, kindOf } from "./options.js";
import { networkOptions, ownedOption, refuseVendorOptions, secretOrEnv, textOrEnv } from "./remote-options.js";
import { COMMON_OPTIONS, NativeSandbox } from "./sandbox.js";
import { CALL_ONLY } from "./spec.js";

/** @import { HttpSandboxOptions } from "../types/index.js" */

/** What says how a session is made, and nothing of one that exists. */
const CREATION = Object.freeze(["image", "env", "network", "allowedHosts", "deniedHosts", "cpu", "memory", "gpu"]);
const HTTP_OPTIONS = Object.freeze([
  ...COMMON_OPTIONS, ...CREATION, "baseURL", "token", "headers", "proxy", "ca", "sandboxId", "owned", "workingDir",
]);
/** Not HTTP_*: a CGI server sets such variables from headers that anybody may send. */
const URL_VARIABLE = "SANDBOX_HTTP_URL";
const TOKEN_VARIABLE = "SANDBOX_HTTP_TOKEN";

const HOST = /^(\*\.)?([a-z0-9_]([a-z0-9_-]*[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?$/;
const CORES = /^\d{1,4}(\.\d{1,3})?$/;
const MEMORY = /^\d{1,15}([kmg]b?|b)?$/i;

const MANY_GPUS = "it takes one, of whatever kind: give 1";

/** What is passed on of a manifest; a service that cannot keep it refuses. @type {import("./manifest.js").ManifestTable} */
const MANIFEST = Object.freeze({
  provider: "http",
  existing: "sandboxId",
  anyway: ["workingDir"],
  network: ["network", "allowedHosts", "deniedHosts"],
  keeps: {
    image: (image) => ({ image }),
    workingDir: (workingDir) => ({ workingDir }),
    "network.default": (network) => ({ network }),
    "network.allowedHosts": (hosts) => hostList(hosts) ?? { network: "deny", allowedHosts: hosts },
    "network.deniedHosts": (hosts) => hostList(hosts) ?? { network: "allow", deniedHosts: hosts },
    "resources.cpus": (cpu) => ({ cpu }),
    "resources.memoryMb": (size) => ({ memory: `${size}m` }),
    "resources.gpu": (gpu) => (gpu === 1 ? { gpu: true } : MANY_GPUS),
  },
  advice: { "resources.diskMb": "its protocol has no such limit: leave it out" },
});

/** Why such a list cannot be sent. @param {string[]} hosts */
function hostList(hosts) {
  const isPlain = hosts.every((host) => hostKind(host) !== "ipv6" && !host.includes("/"));
  return isPlain ? undefined : "its lists take names and IPv4 addresses, and no ranges";
}

/**
 * A sandbox of a service of one's own. Isolation, images and lifetime are the service's: here it is only said what is
 * wanted, and a service that cannot give it refuses.
 */
export class HttpSandbox extends NativeSandbox {
  /** @param {HttpSandboxOptions} [options] @param {string} [where] what messages call this class */
  constructor(options, where = "HttpSandbox") {
    refuseVendorOptions(options, where);
    const checked = withManifest(checkNames(options, HTTP_OPTIONS, where, CALL_ONLY), MANIFEST);
    super({ provider: "http", providerId: "http", options: checked, own: ownOptions(checked) });
  }
}

/**
 * The options of the core's provider; defaults are the core's.
 *
 * @param {Record<string, any>} options names checked
 */
function ownOptions(options) {
  const baseURL = textOrEnv(options.baseURL, "baseURL", [URL_VARIABLE]);
  if (baseURL === undefined) {
    throw invalid(`http: pass \`baseURL\`, the address of your sandbox service, or set ${URL_VARIABLE}`);
  }
  const made = CREATION.filter((name) => options[name] !== undefined);
  if (options.sandboxId !== undefined && made.length > 0) {
    throw invalid(`\`${made[0]}\` says how a sandbox is made, and \`sandboxId\` names one that exists: give one of the two`);
  }
  const token = secretOrEnv(options.token, "token", [TOKEN_VARIABLE]);
  return {
    baseURL,
    token,
    ...networkOptions(options),
    ...given(options, ["headers"], (headers, name) => withoutToken(checkTexts(headers, name), token)),
    ...given(options, ["sandboxId", "workingDir", "image"], checkString),
    owned: ownedOption(options),
    ...given(options, ["env"], checkEnvObject),
    ...given(options, ["network"], (value, name) => checkWord(value, ["deny", "allow"], name)),
    ...given(options, ["allowedHosts", "deniedHosts"], checkHosts),
    ...given(options, ["cpu"], checkCpu),
    ...given(options, ["memory"], checkMemory),
    ...given(options, ["gpu"], checkBoolean),
  };
}

/** The token wins over a header of its name. @param {Record<string, string>} headers @param {string | undefined} token */
function withoutToken(headers, token) {
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => token === undefined || name.toLowerCase() !== "authorization"),
  );
}

/** @param {unknown} value @param {string} name */
function checkHosts(value, name) {
  return checkItems(value, name, "an array of host names", (item, index) => {
    const host = checkString(item, `${name}[${index}]`).toLowerCase();
    if (HOST.test(host) && host.length <= 255) return host;
    throw invalid(`\`${name}[${index}]\` must be a host name such as "files.example.org" or "*.files.example.org", without scheme, port or path`);
  });
}

/** @param {unknown} value @param {string} name */
function checkCpu(value, name) {
  const text = typeof value === "number" ? String(value) : value;
  if (typeof text === "string" && CORES.test(text) && Number(text) > 0) return text;
  throw invalid(`\`${name}\` must be a number of cores above 0, such as 2 or "0.5", not ${kindOf(value)}`);
}

/** @param {unknown} value @param {string} name */
function checkMemory(value, name) {
  const text = typeof value === "number" && Number.isSafeInteger(value) ? String(value) : value;
  if (typeof text === "string" && MEMORY.test(text) && Number.parseInt(text, 10) > 0) return text.toLowerCase();
  throw invalid(`\`${name}\` must be text such as "512m" or "2g", or a whole number of bytes`);
}
