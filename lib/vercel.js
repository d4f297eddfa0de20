// VercelSandbox: a sandbox at Vercel.
//
// Invariant: token, team and project come from one source, all three of them: half of one and half of
// another would be a sandbox somewhere else.
import { SandboxError } from "./errors.js";
import { hostKind, withManifest } from "./manifest.js";
import {
  checkBoolean, checkEnvObject, checkInteger, checkItems, checkNames, checkString, checkTexts, given, invalid, kindOf, reading, wholeOrNone,
} from "./options.js";
import { missingKey, networkOptions, ownedOption, refuseVendorOptions, secretOrEnv, textOrEnv } from "./remote-options.js";
import { COMMON_OPTIONS, NativeSandbox, control, siteOf } from "./sandbox.js";
import { signalOf } from "./signals.js";
import { CALL_ONLY } from "./spec.js";

/** @import { SandboxCallOptions, VercelSandboxOptions } from "../types/index.js" */

const VERCEL_OPTIONS = Object.freeze([
  ...COMMON_OPTIONS,
  "token", "teamId", "projectId", "oidcToken", "lateAuth", "baseURL", "proxy", "ca", "sandboxId", "owned", "name",
  "image", "runtime", "vcpus", "lifetimeSeconds", "region", "env", "tags", "networkPolicy",
  "persistent",
]);
const POLICY_OPTIONS = Object.freeze(["allow", "subnets"]);
const SUBNET_OPTIONS = Object.freeze(["allow", "deny"]);
const MODES = Object.freeze(["allow-all", "deny-all"]);
const MAX_LIFETIME_SECONDS = 86400;
const MAX_VCPUS = 1024;
/** The service takes five, and one is ours. */
const MAX_TAGS = 4;

const MB_PER_VCPU = 2048;

/** What Vercel keeps of a manifest. @type {import("./manifest.js").ManifestTable} */
const MANIFEST = Object.freeze({
  provider: "vercel",
  existing: "sandboxId",
  network: ["networkPolicy"],
  keeps: {
    image: (image) => ({ image }),
    "network.default": (rule) => ({ networkPolicy: rule === "deny" ? "deny-all" : "allow-all" }),
    "network.allowedHosts": allowList,
    "resources.cpus": (cpus) => (Number.isInteger(cpus) ? { vcpus: cpus } : "it gives whole processors"),
    "resources.memoryMb": memory,
  },
});

/** @param {string[]} hosts */
function allowList(hosts) {
  if (hosts.some((host) => hostKind(host) === "ipv6")) return "its lists take names and IPv4 addresses";
  const allow = hosts.filter((host) => hostKind(host) === "name");
  const addresses = hosts.filter((host) => hostKind(host) === "ipv4").map((host) => (host.includes("/") ? host : `${host}/32`));
  return { networkPolicy: { ...(allow.length > 0 && { allow }), ...(addresses.length > 0 && { subnets: { allow: addresses } }) } };
}

/** Each processor comes with as much. @param {number} size @param {Record<string, any>} options */
function memory(size, { vcpus = size / MB_PER_VCPU }) {
  if (vcpus * MB_PER_VCPU === size && Number.isInteger(vcpus)) return { vcpus };
  return `each of its processors comes with ${MB_PER_VCPU} MB: give ${Math.ceil(vcpus) * MB_PER_VCPU}, or leave it out`;
}

/** A sandbox at Vercel, by Vercel's own protocol. It keeps nothing when it ends. */
export class VercelSandbox extends NativeSandbox {
  /** @param {VercelSandboxOptions} [options] @param {string} [where] what messages call this class */
  constructor(options, where = "VercelSandbox") {
    refuseVendorOptions(options, where);
    refuseUnsupported(options, where);
    const checked = withManifest(checkNames(options, VERCEL_OPTIONS, where, CALL_ONLY), MANIFEST);
    super({ provider: "vercel", providerId: "vercel", options: checked, own: ownOptions(checked) });
  }

  /**
   * The sandbox lives that many seconds longer. It must have started.
   *
   * @param {number} seconds whole, 1 to 86400
   * @param {SandboxCallOptions} [options]
   * @returns {Promise<void>}
   */
  async extendLifetime(seconds, options) {
    const site = siteOf(this, VercelSandbox.prototype.extendLifetime);
    checkInteger(seconds, "seconds", 1, MAX_LIFETIME_SECONDS);
    return this[control]("extend", seconds, signalOf(options, "extendLifetime"), site);
  }
}

/**
 * What Vercel's own client can be asked for and this class cannot: it is refused before anything is made.
 *
 * @param {any} options
 * @param {string} where
 */
function refuseUnsupported(options, where) {
  const reasons = {
    persistent: "a sandbox of this class is deleted by close(), and keeps nothing when its time is over",
    source: "it starts from an image; put files there with writeFile(), or clone with a command",
    ports: "none are published; talk to a server inside with a command",
    mounts: "put files there with writeFile()",
    snapshotExpiration: "no snapshots are made",
    keepLastSnapshots: "no snapshots are made",
    failoverRegions: "give one `region`",
    networkId: "use `networkPolicy`",
    memory: "give `vcpus`: each comes with 2 GiB",
  };
  for (const [name, reason] of Object.entries(reasons)) {
    const value = reading(`${where}: \`${name}\``, () => options?.[name]);
    if (value === undefined || (name === "persistent" && value === false)) continue;
    throw new SandboxError(`${where}: \`${name}\` is not supported: ${reason}`, {
      code: "ERR_SANDBOX_UNSUPPORTED",
      provider: "vercel",
    });
  }
}

/**
 * The options of the core's provider.
 *
 * @param {Record<string, any>} options names checked
 */
function ownOptions(options) {
  const lifetime = wholeOrNone(options.lifetimeSeconds, "lifetimeSeconds", 1, MAX_LIFETIME_SECONDS);
  if (options.image !== undefined && options.runtime !== undefined) {
    throw invalid("give `image` or `runtime`, not both; `runtime` is the older one");
  }
  return {
    ...credentials(options),
    ...networkOptions(options),
    ...given(options, ["baseURL", "sandboxId", "name", "image", "runtime", "region"], checkString),
    owned: ownedOption(options),
    vcpus: wholeOrNone(options.vcpus, "vcpus", 1, MAX_VCPUS),
    ...(lifetime !== undefined && { lifetimeMs: lifetime * 1000 }),
    ...(options.env !== undefined && { env: checkEnvObject(options.env) }),
    ...(options.tags !== undefined && { tags: checkTags(options.tags) }),
    ...(options.networkPolicy !== undefined && { networkPolicy: checkPolicy(options.networkPolicy) }),
  };
}

/** @param {unknown} value */
function checkTags(value) {
  const tags = checkTexts(value, "tags");
  if (Object.keys(tags).length <= MAX_TAGS) return tags;
  throw invalid(`\`tags\` must be at most ${MAX_TAGS}: Vercel takes five, and one of them is this package's`);
}

// ---- credentials ---------------------------------------------------------------------------------

/** @typedef {{ token?: string | undefined, teamId?: string | undefined, projectId?: string | undefined }} Triple */

const TRIPLE = /** @type {const} */ (["token", "teamId", "projectId"]);

/** @param {Record<string, any>} options @returns {Triple & { lateAuth?: boolean }} */
function credentials(options) {
  const late = checkBoolean(options.lateAuth ?? false, "lateAuth");
  const named = TRIPLE.some((name) => options[name] !== undefined);
  if (named && options.oidcToken !== undefined) {
    throw invalid("give `oidcToken` or `token`, `teamId` and `projectId`: an OIDC token names its team and project itself");
  }
  if (!named) {
    const oidc = secretOrEnv(options.oidcToken, "oidcToken", process.env.VERCEL_TOKEN ? [] : ["VERCEL_OIDC_TOKEN"]);
    if (oidc !== undefined) return fromOidc(oidc);
  }
  const triple = {
    token: secretOrEnv(options.token, "token", ["VERCEL_TOKEN"]),
    teamId: textOrEnv(options.teamId, "teamId", ["VERCEL_TEAM_ID"]),
    projectId: textOrEnv(options.projectId, "projectId", ["VERCEL_PROJECT_ID"]),
  };
  const missing = TRIPLE.filter((name) => !triple[name]);
  if (missing.length === 0) return triple;
  if (late) return { lateAuth: true };
  const known = triple.token === undefined ? "" : `; missing: ${missing.map((name) => `\`${name}\``).join(" and ")}`;
  throw missingKey(
    "vercel",
    "pass `token`, `teamId` and `projectId` (or set VERCEL_TOKEN, VERCEL_TEAM_ID and VERCEL_PROJECT_ID), or set " +
      `VERCEL_OIDC_TOKEN, which \`vercel env pull\` writes${known}. Pass lateAuth: true to be told at the first use only.`,
  );
}

/**
 * An OIDC token says itself for which team and project it is. Only the service can tell whether it is genuine.
 *
 * @param {string} token
 * @returns {Triple}
 */
function fromOidc(token) {
  const claims = claimsOf(token);
  const { owner_id: teamId, project_id: projectId, exp } = claims ?? {};
  if (typeof teamId !== "string" || typeof projectId !== "string" || !teamId || !projectId) {
    throw invalid(
      "the OIDC token (`oidcToken` or VERCEL_OIDC_TOKEN) is none of Vercel's: it names no owner_id and project_id; " +
        "its value is not shown here",
    );
  }
  if (typeof exp === "number" && exp * 1000 <= Date.now()) {
    throw new SandboxError(
      `vercel: the OIDC token expired at ${new Date(exp * 1000).toISOString()}: get a new one with \`vercel env pull\`, or use ` +
        "`token`, `teamId` and `projectId`",
      { code: "ERR_SANDBOX_AUTH", provider: "vercel" },
    );
  }
  return { token, teamId, projectId };
}

/** The middle part of a JWT. @param {string} token @returns {Record<string, unknown> | undefined} */
function claimsOf(token) {
  const parts = token.split(".");
  if (parts.length !== 3) return undefined;
  try {
    const claims = JSON.parse(Buffer.from(parts[1], "base64url").toString());
    return kindOf(claims) === "an object" ? claims : undefined;
  } catch {
    return undefined;
  }
}

// ---- network -------------------------------------------------------------------------------------

/**
 * As it is sent. A misspelt rule is refused: left out, it would leave open what it was to close.
 *
 * @param {any} value
 */
function checkPolicy(value) {
  if (typeof value === "string") {
    if (MODES.includes(value)) return { mode: value };
    throw invalid('`networkPolicy` must be "allow-all", "deny-all" or an object with `allow` and `subnets`');
  }
  const { allow, subnets } = checkNames(value, POLICY_OPTIONS, "networkPolicy");
  if (allow === undefined && subnets === undefined) {
    throw invalid('`networkPolicy` says nothing: give `allow` or `subnets`, or "allow-all" or "deny-all" in place of the object');
  }
  return {
    ...(allow !== undefined && { allow: checkDomains(allow) }),
    ...(subnets !== undefined && {
      subnets: given(checkNames(subnets, SUBNET_OPTIONS, "networkPolicy.subnets"), SUBNET_OPTIONS, (list, name) =>
        checkList(list, `networkPolicy.subnets.${name}`),
      ),
    }),
  };
}

/** A list of domains, or an object of lists of rules by domain. @param {any} value */
function checkDomains(value) {
  if (kindOf(value) !== "an object") return checkList(value, "networkPolicy.allow");
  const entries = reading("`networkPolicy.allow`", () => Object.entries(value));
  return Object.fromEntries(
    entries.map(([domain, rules]) => [
      domain,
      checkItems(rules, `networkPolicy.allow.${domain}`, "an array of rules", (rule) => checkRule(rule, domain)),
    ]),
  );
}

/** Vercel's own words, which are its business; only that it is JSON is checked. @param {unknown} rule @param {string} domain */
function checkRule(rule, domain) {
  const text = kindOf(rule) === "an object" && reading(`\`networkPolicy.allow.${domain}\``, () => JSON.stringify(rule));
  if (text) return JSON.parse(text);
  throw invalid(`\`networkPolicy.allow.${domain}\` must be an array of objects`);
}

/** @param {unknown} value @param {string} name */
function checkList(value, name) {
  return checkItems(value, name, "an array of strings", (item, index) => checkString(item, `${name}[${index}]`));
}
