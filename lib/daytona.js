// DaytonaSandbox: a sandbox at Daytona, hosted or on a server of one's own.
//
// Invariant: the language of run() is settled here, before the wire; what the core is told is checked
// by it again.
import { hostKind, withManifest } from "./manifest.js";
import { checkBoolean, checkEnvObject, checkItems, checkNames, checkString, checkTexts, checkWord, given, invalid, wholeOrNone } from "./options.js";
import { REMOTE_OPTIONS, missingKey, networkOptions, ownedOption, refuseVendorOptions, secretOrEnv, textOrEnv } from "./remote-options.js";
import { COMMON_OPTIONS, NativeSandbox, checkSelf, toolCall, toolCallIn } from "./sandbox.js";
import { CALL_ONLY, EXEC_ONLY, EXEC_OPTIONS, RUN_OPTIONS } from "./spec.js";

/** @import { DaytonaSandboxOptions, ExecResult, SandboxRunOptions } from "../types/index.js" */

const DAYTONA_OPTIONS = Object.freeze([
  ...COMMON_OPTIONS, ...REMOTE_OPTIONS,
  "jwtToken", "organizationId", "target", "toolboxUrl", "workspace", "sandboxId", "owned", "language",
  "allowAnyLanguage", "snapshot", "image", "user", "env", "labels", "cpu", "memory", "disk", "autoStopMinutes",
  "autoArchiveMinutes", "autoDeleteMinutes", "ephemeral", "networkBlockAll", "networkAllowList",
  "domainAllowList", "public",
]);

/** Minutes in a year: more than any server takes. */
const MAX_MINUTES = 525600;
const MAX_RESOURCE = 1024;
const MB_PER_GB = 1024;
const LONGEST_LIST = 10;

/** What Daytona keeps of a manifest. @type {import("./manifest.js").ManifestTable} */
const MANIFEST = Object.freeze({
  provider: "daytona",
  existing: "sandboxId",
  network: ["networkBlockAll", "networkAllowList", "domainAllowList"],
  keeps: {
    image: (image) => ({ image }),
    "network.default": (rule) => ({ networkBlockAll: rule === "deny" }),
    "network.allowedHosts": allowList,
    "resources.cpus": (cpus, options) => (Number.isInteger(cpus) ? ofImage({ cpu: cpus }, options) : "it gives whole processors"),
    "resources.memoryMb": (size, options) => gigabytes("memory", size, options),
    "resources.diskMb": (size, options) => gigabytes("disk", size, options),
  },
});

/**
 * A sandbox at Daytona. It is created at the first use and deleted by close(); a process that ends
 * without close() leaves it to the server, which stops and so deletes it after `autoStopMinutes`
 * without use. One that is not ephemeral is started again by the next call.
 */
export class DaytonaSandbox extends NativeSandbox {
  /** @type {"python" | "node"} */
  #language;
  #anyLanguage;

  /** @param {DaytonaSandboxOptions} [options] @param {string} [where] what messages call this class */
  constructor(options, where = "DaytonaSandbox") {
    refuseVendorOptions(options, where);
    const own = withManifest(checkNames(options, DAYTONA_OPTIONS, where, CALL_ONLY), MANIFEST);
    const language = checkWord(own.language ?? "python", ["python", "node"], "language");
    const anyLanguage = checkBoolean(own.allowAnyLanguage ?? false, "allowAnyLanguage");
    const other = language === "python" ? "node" : "python";
    super({
      provider: "daytona",
      providerId: "daytona",
      options: own,
      own: ownOptions(own, language),
      languages: anyLanguage ? [language, other, "shell"] : [language, "shell"],
    });
    this.#language = language;
    this.#anyLanguage = anyLanguage;
  }

  /**
   * Runs source text. A non-zero exit and a timeout are results.
   *
   * @param {string} code
   * @param {SandboxRunOptions} [options] language: the one that the sandbox was made for, or "shell"
   */
  async run(code, options) {
    checkSelf(this, "run");
    const checked = checkNames(options, RUN_OPTIONS, "run", EXEC_ONLY);
    this.#checkLanguage(checked.language);
    const tool = toolCallIn(options);
    return super.run(code, tool ? { ...checked, [toolCall]: tool } : checked);
  }

  /**
   * Runs one command and tells everything about it.
   *
   * @param {Record<string, any>} spec
   * @returns {Promise<ExecResult<any>>}
   */
  async exec(spec) {
    checkSelf(this, "exec");
    if (typeof spec !== "object") return super.exec(spec);
    const checked = checkNames(spec, EXEC_OPTIONS, "exec");
    if (checked.code === undefined) return super.exec(checked);
    this.#checkLanguage(checked.language);
    return super.exec({ ...checked, language: checked.language ?? this.#language });
  }

  /** @param {unknown} language */
  #checkLanguage(language) {
    const other = this.#language === "python" ? "node" : "python";
    if (this.#anyLanguage || language !== other) return;
    const command = other === "node" ? "node main.js" : "python3 main.py";
    throw invalid(
      `Unsupported \`language\`: a Daytona sandbox's language is fixed at creation, and this one is for ` +
        `"${this.#language}" (and "shell"). Write the code in ${this.#language}, or run it by a command such as ` +
        `\`${command}\`. Who makes the sandbox can allow it: language: "${other}", or allowAnyLanguage: true.`,
    );
  }
}

/**
 * The options of the core's provider.
 *
 * @param {Record<string, any>} options names checked
 * @param {"python" | "node"} language
 */
function ownOptions(options, language) {
  return {
    ...credentials(options),
    ...networkOptions(options),
    baseURL: textOrEnv(options.baseURL, "baseURL", ["DAYTONA_API_URL", "DAYTONA_SERVER_URL"]),
    target: textOrEnv(options.target, "target", ["DAYTONA_TARGET"]),
    language: language === "node" ? "javascript" : "python",
    ...given(options, ["toolboxUrl", "workspace", "sandboxId", "snapshot", "image", "user"], checkString),
    ...given(options, ["networkBlockAll", "public"], checkBoolean),
    owned: ownedOption(options),
    ...(options.env !== undefined && { env: checkEnvObject(options.env) }),
    labels: options.labels === undefined ? undefined : checkTexts(options.labels, "labels"),
    cpu: wholeOrNone(options.cpu, "cpu", 1, MAX_RESOURCE),
    memory: wholeOrNone(options.memory, "memory", 1, MAX_RESOURCE),
    disk: wholeOrNone(options.disk, "disk", 1, MAX_RESOURCE),
    autoStopMinutes: wholeOrNone(options.autoStopMinutes, "autoStopMinutes", 0, MAX_MINUTES),
    autoArchiveMinutes: wholeOrNone(options.autoArchiveMinutes, "autoArchiveMinutes", 0, MAX_MINUTES),
    autoDeleteMinutes: deleteMinutes(options),
    networkAllowList: list(options.networkAllowList, "networkAllowList"),
    domainAllowList: list(options.domainAllowList, "domainAllowList"),
  };
}

/** @param {Record<string, any>} options */
function credentials({ apiKey, jwtToken, organizationId, lateAuth = false }) {
  const key = secretOrEnv(apiKey, "apiKey", jwtToken === undefined ? ["DAYTONA_API_KEY"] : []);
  const jwt = secretOrEnv(jwtToken, "jwtToken", ["DAYTONA_JWT_TOKEN"]);
  const organization = textOrEnv(organizationId, "organizationId", ["DAYTONA_ORGANIZATION_ID"]);
  if (key) return { apiKey: key };
  if (jwt && organization) return { jwtToken: jwt, organizationId: organization };
  if (checkBoolean(lateAuth, "lateAuth")) return { lateAuth };
  if (jwt) {
    throw missingKey(
      "daytona",
      "`jwtToken` needs `organizationId` too (or the environment variable DAYTONA_ORGANIZATION_ID)",
    );
  }
  throw missingKey(
    "daytona",
    "pass `apiKey` or set DAYTONA_API_KEY; or `jwtToken` (DAYTONA_JWT_TOKEN) with `organizationId`. " +
      "Pass lateAuth: true to be told at the first use only.",
  );
}

/** `ephemeral` is a word for: deleted as soon as it stops. @param {Record<string, any>} options */
function deleteMinutes({ ephemeral, autoDeleteMinutes }) {
  const minutes = wholeOrNone(autoDeleteMinutes, "autoDeleteMinutes", -1, MAX_MINUTES);
  if (ephemeral === undefined) return minutes;
  if (!checkBoolean(ephemeral, "ephemeral")) return minutes ?? -1;
  if (minutes !== undefined && minutes !== 0) {
    throw invalid("`ephemeral` means `autoDeleteMinutes: 0`; give one of the two");
  }
  return 0;
}

/**
 * Hosts of a manifest. How a list of addresses and one of names count together is not said anywhere.
 *
 * @param {string[]} hosts
 */
function allowList(hosts) {
  const kinds = new Set(hosts.map(hostKind));
  if (hosts.length > LONGEST_LIST) return `its list takes at most ${LONGEST_LIST}, and these are ${hosts.length}`;
  if (kinds.has("ipv6")) return "its list takes names or IPv4 addresses";
  if (kinds.size > 1) return "its list takes names or addresses, and not both: give one kind";
  if (kinds.has("name")) return { domainAllowList: hosts.join(",") };
  return { networkAllowList: hosts.map((host) => (host.includes("/") ? host : `${host}/32`)).join(",") };
}

/** @param {string} name @param {number} size in megabytes @param {Record<string, any>} options */
function gigabytes(name, size, options) {
  if (size % MB_PER_GB === 0) return ofImage({ [name]: size / MB_PER_GB }, options);
  return `it counts in whole gigabytes: give ${Math.ceil(size / MB_PER_GB) * MB_PER_GB}`;
}

/** A snapshot has its own. @param {Record<string, unknown>} resource @param {Record<string, any>} options */
function ofImage(resource, { image }) {
  return image === undefined ? "it gives them to a sandbox of an image only: give `image`, too" : resource;
}

/** Addresses or domains: an array, or text with commas. @param {unknown} value @param {string} name */
function list(value, name) {
  if (value === undefined || typeof value === "string") return value;
  const wanted = "an array of strings, or one string with commas";
  const items = checkItems(value, name, wanted, (item, index) => checkString(item, `${name}[${index}]`));
  if (items.length > 0) return items.join(",");
  throw invalid(`\`${name}\` must be ${wanted}; it is empty`);
}
