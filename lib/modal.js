// ModalSandbox: a sandbox at Modal.
//
// Invariant: id and secret of the token come from one source, both of them: half of one and half of another is no token.
import { SandboxError } from "./errors.js";
import { hostKind, withManifest } from "./manifest.js";
import {
  checkBoolean, checkEnvObject, checkItems, checkNames, checkNumber, checkString, checkTexts, given, invalid, reading, wholeOrNone,
} from "./options.js";
import { missingKey, networkOptions, ownedOption, refuseVendorOptions, secretOrEnv, textOrEnv } from "./remote-options.js";
import { COMMON_OPTIONS, NativeSandbox } from "./sandbox.js";
import { CALL_ONLY } from "./spec.js";

/** @import { ModalSandboxOptions } from "../types/index.js" */

const MODAL_OPTIONS = Object.freeze([
  ...COMMON_OPTIONS,
  "tokenId", "tokenSecret", "profile", "lateAuth", "baseURL", "proxy", "ca", "environment", "app", "sandboxId", "owned", "name",
  "image", "imageId", "imageBuilderVersion", "workingDir", "cpus", "memoryMb", "lifetimeSeconds", "idleTimeoutSeconds",
  "blockNetwork", "allowedDomains", "allowedCidrs", "env", "tags",
]);
const MAX_LIFETIME_SECONDS = 86400;
const MAX_CPUS = 1024;
const MAX_MEMORY_MB = 1024 * 1024;
const NAME = /^[a-zA-Z0-9._-]{1,64}$/;
const BUILDERS = Object.freeze(["2023.12", "2024.04", "2024.10", "2025.06", "PREVIEW"]);

/** What Modal keeps of a manifest. @type {import("./manifest.js").ManifestTable} */
const MANIFEST = Object.freeze({
  provider: "modal",
  existing: "sandboxId",
  network: ["blockNetwork", "allowedDomains", "allowedCidrs"],
  keeps: {
    image: (image) => ({ image }),
    workingDir: (workingDir) => ({ workingDir }),
    "network.default": (rule) => ({ blockNetwork: rule === "deny" }),
    "network.allowedHosts": allowList,
    "resources.cpus": (cpus) => ({ cpus }),
    "resources.memoryMb": (memoryMb) => ({ memoryMb }),
  },
});

/** @param {string[]} hosts */
function allowList(hosts) {
  if (hosts.some((host) => hostKind(host) === "ipv6")) return "its lists take names and IPv4 addresses";
  const allowedDomains = hosts.filter((host) => hostKind(host) === "name");
  const allowedCidrs = hosts.filter((host) => hostKind(host) === "ipv4").map((host) => (host.includes("/") ? host : `${host}/32`));
  return { ...(allowedDomains.length > 0 && { allowedDomains }), ...(allowedCidrs.length > 0 && { allowedCidrs }) };
}

/** A sandbox at Modal, by Modal's own protocol. It keeps nothing when it ends. */
export class ModalSandbox extends NativeSandbox {
  /** @param {ModalSandboxOptions} [options] @param {string} [where] what messages call this class */
  constructor(options, where = "ModalSandbox") {
    refuseVendorOptions(options, where);
    refuseUnsupported(options, where);
    const checked = withManifest(checkNames(options, MODAL_OPTIONS, where, CALL_ONLY), MANIFEST);
    super({ provider: "modal", providerId: "modal", options: checked, own: ownOptions(checked) });
  }
}

/**
 * What Modal's own client can be asked for and this class cannot: it is refused before anything is made.
 *
 * @param {any} options
 * @param {string} where
 */
function refuseUnsupported(options, where) {
  const reasons = {
    gpu: "Modal has none in sandboxes of this kind",
    volumes: "put files there with writeFile()",
    cloudBucketMounts: "put files there with writeFile()",
    secrets: "give `env`",
    encryptedPorts: "no ports are published; talk to a server inside with a command",
    unencryptedPorts: "no ports are published; talk to a server inside with a command",
    h2Ports: "no ports are published; talk to a server inside with a command",
    pty: "commands have no terminal",
    proxyId: "`proxy` is the one that this machine uses",
  };
  for (const [name, reason] of Object.entries(reasons)) {
    if (reading(`${where}: \`${name}\``, () => options?.[name]) === undefined) continue;
    throw new SandboxError(`${where}: \`${name}\` is not supported: ${reason}`, { code: "ERR_SANDBOX_UNSUPPORTED", provider: "modal" });
  }
}

/**
 * The options of the core's provider.
 *
 * @param {Record<string, any>} options names checked
 */
function ownOptions(options) {
  const { cpus, workingDir, env, tags, allowedDomains, allowedCidrs, imageBuilderVersion } = options;
  const profile = profileFor(options);
  if (options.image !== undefined && options.imageId !== undefined) throw invalid("give `image` or `imageId`, not both");
  if (workingDir !== undefined && !checkString(workingDir, "workingDir").startsWith("/")) {
    throw invalid("`workingDir` must be an absolute path: it begins with /");
  }
  const builder = textOrEnv(imageBuilderVersion, "imageBuilderVersion", ["MODAL_IMAGE_BUILDER_VERSION"]) ?? profile.image_builder_version;
  if (builder !== undefined && !BUILDERS.includes(builder)) {
    throw invalid(`\`imageBuilderVersion\` must be one of ${BUILDERS.join(", ")}`);
  }
  const url = textOrEnv(options.baseURL, "baseURL", ["MODAL_SERVER_URL"]) ?? profile.server_url;
  const environment = textOrEnv(options.environment, "environment", ["MODAL_ENVIRONMENT"]) ?? profile.environment;
  return {
    ...credentials(options, profile),
    ...networkOptions({ ...options, ...(url !== undefined && { baseURL: url }) }),
    ...given(options, ["sandboxId", "image", "imageId"], checkString),
    ...given(options, ["name", "app"], checkName),
    owned: ownedOption(options),
    ...(url !== undefined && { baseURL: url }),
    ...(environment !== undefined && { environmentName: environment }),
    ...(builder !== undefined && { imageBuilderVersion: builder }),
    ...(workingDir !== undefined && { workdir: workingDir }),
    ...(cpus !== undefined && { milliCpus: Math.max(1, Math.round(checkNumber(cpus, "cpus", 0.001, MAX_CPUS) * 1000)) }),
    memoryMb: wholeOrNone(options.memoryMb, "memoryMb", 1, MAX_MEMORY_MB),
    lifetimeSeconds: wholeOrNone(options.lifetimeSeconds, "lifetimeSeconds", 1, MAX_LIFETIME_SECONDS),
    idleTimeoutSeconds: wholeOrNone(options.idleTimeoutSeconds, "idleTimeoutSeconds", 1, MAX_LIFETIME_SECONDS),
    ...given(options, ["blockNetwork"], checkBoolean),
    ...(allowedDomains !== undefined && { domainAllowlist: checkList(allowedDomains, "allowedDomains") }),
    ...(allowedCidrs !== undefined && { cidrAllowlist: checkList(allowedCidrs, "allowedCidrs") }),
    ...(env !== undefined && { env: checkEnvObject(env) }),
    ...(tags !== undefined && { tags: checkTexts(tags, "tags") }),
  };
}

/** @param {unknown} value @param {string} name */
function checkName(value, name) {
  if (NAME.test(checkString(value, name))) return value;
  throw invalid(`\`${name}\` must have 1 to 64 letters, digits, "-", "_" or "."`);
}

/** @param {unknown} value @param {string} name */
function checkList(value, name) {
  return checkItems(value, name, "an array of strings", (item, index) => checkString(item, `${name}[${index}]`));
}

// ---- credentials ---------------------------------------------------------------------------------

/** @param {Record<string, any>} options @param {Record<string, string>} profile */
function credentials(options, profile) {
  const late = checkBoolean(options.lateAuth ?? false, "lateAuth");
  const named = options.tokenId !== undefined || options.tokenSecret !== undefined;
  const found = {
    tokenId: secretOrEnv(options.tokenId, "tokenId", named ? [] : ["MODAL_TOKEN_ID"]),
    tokenSecret: secretOrEnv(options.tokenSecret, "tokenSecret", named ? [] : ["MODAL_TOKEN_SECRET"]),
  };
  const { tokenId, tokenSecret } = found;
  if (tokenId && tokenSecret) return found;
  if (!tokenId && !tokenSecret && profile.token_id && profile.token_secret) {
    return { tokenId: profile.token_id, tokenSecret: profile.token_secret };
  }
  if (late && !named) return { lateAuth: true };
  const known = tokenId || tokenSecret ? `; missing: \`${tokenId ? "tokenSecret" : "tokenId"}\`` : "";
  throw missingKey(
    "modal",
    "pass `tokenId` and `tokenSecret` (or set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET), or write a profile with `modal token new`" +
      `${known}. Pass lateAuth: true to be told at the first use only.`,
  );
}

/**
 * The profile of Modal's own configuration file that counts; nothing when there is no such file. With a token by options it
 * is not looked at, unless it is named.
 *
 * @param {Record<string, any>} options
 * @returns {Record<string, string>}
 */
function profileFor({ profile, tokenId }) {
  const name = textOrEnv(profile, "profile", ["MODAL_PROFILE"]);
  if (name === undefined && tokenId !== undefined) return {};
  const { MODAL_CONFIG_PATH, HOME } = process.env;
  const file = MODAL_CONFIG_PATH || (HOME && `${HOME}/.modal.toml`);
  const tables = file ? readTables(file) : undefined;
  if (name !== undefined) {
    const found = tables?.get(name);
    if (found) return found;
    if (profile !== undefined) throw invalid(`there is no profile of that name (\`profile\`) in ${file ?? "a configuration file of Modal"}`);
  }
  const active = [...(tables ?? [])].find(([, table]) => table.active === "true");
  return active?.[1] ?? tables?.get("default") ?? {};
}

/** @param {string} file @returns {Map<string, Record<string, string>> | undefined} */
function readTables(file) {
  let text;
  try {
    text = process.getBuiltinModule("node:fs").readFileSync(file, "utf8");
  } catch (cause) {
    if (/** @type {NodeJS.ErrnoException} */ (cause).code === "ENOENT") return undefined;
    throw new SandboxError(`modal: the configuration file ${file} cannot be read; \`cause\` says why`, {
      code: "ERR_SANDBOX_INVALID_ARG",
      cause,
    });
  }
  return parseTables(text, file);
}

/**
 * Tables of texts and true or false, which is all of TOML that Modal's file has. What it shows of a line that is wrong is
 * its number: the line may have a secret.
 *
 * @param {string} text
 * @param {string} file for messages
 */
export function parseTables(text, file) {
  /** @type {Map<string, Record<string, string>>} */
  const tables = new Map();
  /** @type {Record<string, string>} */
  let table = {};
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const found = /^\s*(?:\[\s*(?:"([^"]*)"|'([^']*)'|([\w.-]+))\s*\]|([\w-]+)\s*=\s*(.*?))?\s*(?:#.*)?$/.exec(line);
    const name = found?.[1] ?? found?.[2] ?? found?.[3];
    if (name !== undefined) tables.set(name, (table = {}));
    if (found?.[4] !== undefined) table[found[4]] = textOf(found[5]) ?? refuse();
    else if (!found) refuse();

    /** @returns {never} */
    function refuse() {
      throw invalid(`modal: line ${index + 1} of the configuration file ${file} cannot be read: only names with texts, true or false are expected`);
    }
  }
  return tables;
}

/** @param {string} value as TOML writes it */
function textOf(value) {
  if (/^'[^']*'$/.test(value)) return value.slice(1, -1);
  if (/^(true|false|[\d.+-]+)$/.test(value)) return value;
  try {
    const text = JSON.parse(value);
    return typeof text === "string" ? text : undefined;
  } catch {
    return undefined;
  }
}
