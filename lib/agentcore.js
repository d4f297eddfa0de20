// AgentCoreSandbox: a session of the Code Interpreter of AWS Bedrock AgentCore.
//
// Invariant: credentials come from one source, whole: half of one and half of another would be somebody else. The sources
// and their order are those of AWS's own clients; what needs a request is asked by the core, at the first use.
import { SandboxError } from "./errors.js";
import { withManifest } from "./manifest.js";
import { checkBoolean, checkEnvObject, checkNames, checkString, given, invalid, reading, wholeOrNone } from "./options.js";
import { missingKey, networkOptions, ownedOption, refuseVendorOptions, secretOrEnv, textOrEnv } from "./remote-options.js";
import { COMMON_OPTIONS, NativeSandbox } from "./sandbox.js";
import { CALL_ONLY } from "./spec.js";

const { readFileSync } = process.getBuiltinModule("node:fs");

/** @import { AgentCoreSandboxOptions } from "../types/index.js" */

const AGENTCORE_OPTIONS = Object.freeze([
  ...COMMON_OPTIONS,
  "accessKeyId", "secretAccessKey", "sessionToken", "profile", "lateAuth", "region", "baseURL", "codeInterpreter", "proxy",
  "ca", "sandboxId", "owned", "name", "lifetimeSeconds", "env",
]);
const MAX_LIFETIME_SECONDS = 28800;
const DEFAULT_REGION = "us-west-2";
const REGION = /^[a-z]{2,}(-[a-z]+)+-\d+$/;
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,59}$/;
/** Where a container's credentials may be asked for in the clear. */
const CONTAINER_HOSTS = Object.freeze(["127.0.0.1", "localhost", "[::1]", "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"]);

const NETWORK_ADVICE = "the network is the code interpreter's: make one with the mode you want, and give it as `codeInterpreter`";

/** What AgentCore keeps of a manifest. @type {import("./manifest.js").ManifestTable} */
const MANIFEST = Object.freeze({
  provider: "agentcore",
  existing: "sandboxId",
  network: [],
  anyway: ["env", "network.default"],
  keeps: {
    "network.default": (rule) => (rule === "allow" ? {} : NETWORK_ADVICE),
  },
  advice: { "network.allowedHosts": NETWORK_ADVICE, "network.deniedHosts": NETWORK_ADVICE },
});

/** What the service can be asked for by other clients and this class cannot. */
const UNSUPPORTED = Object.freeze({
  image: "a session runs what its code interpreter has",
  networkMode: NETWORK_ADVICE,
  networkPolicy: NETWORK_ADVICE,
  certificates: "write them into the session with writeFile()",
  filesystemConfigurations: "put files there with writeFile()",
  ports: "none are published; talk to a server inside with a command",
});

/** A session of AgentCore's Code Interpreter. It is stopped by close(), and keeps nothing when it ends. */
export class AgentCoreSandbox extends NativeSandbox {
  /** @param {AgentCoreSandboxOptions} [options] @param {string} [where] what messages call this class */
  constructor(options, where = "AgentCoreSandbox") {
    refuseVendorOptions(options, where);
    refuseUnsupported(options, where);
    const checked = withManifest(checkNames(options, AGENTCORE_OPTIONS, where, CALL_ONLY), MANIFEST);
    super({ provider: "agentcore", providerId: "agentcore", options: checked, own: ownOptions(checked) });
  }
}

/** Before anything is made. @param {any} options @param {string} where */
function refuseUnsupported(options, where) {
  for (const [name, reason] of Object.entries(UNSUPPORTED)) {
    if (reading(`${where}: \`${name}\``, () => options?.[name]) === undefined) continue;
    throw unsupported(`${where}: \`${name}\` is not supported: ${reason}`);
  }
}

/** @param {string} message */
function unsupported(message) {
  return new SandboxError(message, { code: "ERR_SANDBOX_UNSUPPORTED", provider: "agentcore" });
}

/**
 * The options of the core's provider.
 *
 * @param {Record<string, any>} options names checked
 */
function ownOptions(options) {
  const files = sharedFiles(options);
  return {
    ...credentials(options, files),
    region: regionOf(options, files),
    baseURL: textOrEnv(options.baseURL, "baseURL", [
      "AWS_ENDPOINT_URL_BEDROCK_AGENTCORE", "BEDROCK_AGENTCORE_DP_ENDPOINT", "AWS_ENDPOINT_URL",
    ]),
    ...networkOptions(options),
    ...given(options, ["sandboxId", "codeInterpreter"], checkString),
    ...given(options, ["name"], checkName),
    owned: ownedOption(options),
    lifetimeSeconds: wholeOrNone(options.lifetimeSeconds, "lifetimeSeconds", 1, MAX_LIFETIME_SECONDS),
    ...(options.env !== undefined && { env: checkEnvObject(options.env) }),
  };
}

/** @param {unknown} value @param {string} name */
function checkName(value, name) {
  if (NAME.test(checkString(value, name))) return value;
  throw invalid(`\`${name}\` must have 1 to 60 letters, digits, \`-\` or \`_\`, the first a letter or a digit; a random end is added to it`);
}

/** It becomes a part of a host's name. @param {Record<string, any>} options @param {SharedFiles} files */
function regionOf(options, files) {
  const region = textOrEnv(options.region, "region", ["AWS_REGION", "AWS_DEFAULT_REGION"]) ?? files.profile()?.region ?? DEFAULT_REGION;
  if (REGION.test(region)) return region;
  throw invalid('`region` (or AWS_REGION, or the profile\'s) must be one of AWS\'s, such as "us-west-2"');
}

// ---- credentials ---------------------------------------------------------------------------------

/** @param {Record<string, any>} options @param {SharedFiles} files @returns {Record<string, string | undefined>} */
function credentials(options, files) {
  const late = checkBoolean(options.lateAuth ?? false, "lateAuth");
  const found = fromOptions(options) ?? (options.profile === undefined && fromVariables()) ?? undefined;
  const known = found || (files.keys() ?? fromWebIdentity() ?? fromContainer() ?? fromInstance());
  if (known) return known;
  if (late) return {};
  throw missingKey(
    "agentcore",
    "no AWS credentials: pass `accessKeyId` and `secretAccessKey`, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or " +
      "AWS_PROFILE. Pass lateAuth: true to be told at the first use only.",
  );
}

/** @param {Record<string, any>} options */
function fromOptions({ accessKeyId, secretAccessKey, sessionToken, profile }) {
  const pair = [accessKeyId, secretAccessKey];
  if (pair.every((value) => value === undefined)) {
    if (sessionToken === undefined) return undefined;
    throw invalid("`sessionToken` goes with `accessKeyId` and `secretAccessKey`: give all three");
  }
  if (pair.includes(undefined)) throw invalid("give `accessKeyId` and `secretAccessKey` together: one says whose the other one is");
  if (profile !== undefined) throw invalid("give `profile`, or `accessKeyId` and `secretAccessKey`, not both");
  return wholePair({
    accessKeyId: secretOrEnv(accessKeyId, "accessKeyId", []),
    secretAccessKey: secretOrEnv(secretAccessKey, "secretAccessKey", []),
    sessionToken: secretOrEnv(sessionToken, "sessionToken", []),
  });
}

function fromVariables() {
  const { AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret } = process.env;
  if (!id && !secret) return undefined;
  if (!id || !secret) throw invalid(`${id ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID"} is missing beside ${id ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY"}`);
  return wholePair({
    accessKeyId: secretOrEnv(undefined, "accessKeyId", ["AWS_ACCESS_KEY_ID"]),
    secretAccessKey: secretOrEnv(undefined, "secretAccessKey", ["AWS_SECRET_ACCESS_KEY"]),
    sessionToken: secretOrEnv(undefined, "sessionToken", ["AWS_SESSION_TOKEN"]),
  });
}

/** @param {{ accessKeyId?: string | undefined, secretAccessKey?: string | undefined, sessionToken?: string | undefined }} keys */
function wholePair(keys) {
  return keys.accessKeyId && keys.secretAccessKey ? keys : undefined;
}

/** Rather than as the machine that it runs on, which may do other things. */
function fromWebIdentity() {
  if (!process.env.AWS_WEB_IDENTITY_TOKEN_FILE) return undefined;
  throw unsupported(`agentcore: a web identity (AWS_WEB_IDENTITY_TOKEN_FILE) is not taken: ${EXPORT}`);
}

const EXPORT =
  "get temporary credentials with `aws configure export-credentials --format env`, and set the variables that it prints";

function fromContainer() {
  const relative = process.env.AWS_CONTAINER_CREDENTIALS_RELATIVE_URI;
  const full = process.env.AWS_CONTAINER_CREDENTIALS_FULL_URI;
  if (!relative && !full) return undefined;
  const text = relative ? `http://169.254.170.2${relative}` : String(full);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const safe = url?.protocol === "https:" || (url?.protocol === "http:" && CONTAINER_HOSTS.includes(url.hostname));
  if (!safe) throw invalid("AWS_CONTAINER_CREDENTIALS_FULL_URI must be an https address, or one of this machine or of AWS's agents");
  return { containerUrl: text, containerPass: containerPass() };
}

function containerPass() {
  const file = process.env.AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE;
  if (!file) return secretLine(process.env.AWS_CONTAINER_AUTHORIZATION_TOKEN);
  const text = readIfThere(file);
  if (text === undefined) throw invalid("the file of AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE cannot be read");
  return secretLine(text);
}

/** @param {string | undefined} text */
function secretLine(text) {
  const line = text?.trim();
  return line === "" ? undefined : line;
}

/** The last one to ask: only a request can tell whether this is an instance at all. */
function fromInstance() {
  if (process.env.AWS_EC2_METADATA_DISABLED?.toLowerCase() === "true") return undefined;
  return { instanceUrl: process.env.AWS_EC2_METADATA_SERVICE_ENDPOINT || "http://169.254.169.254" };
}

// ---- shared files --------------------------------------------------------------------------------

/** @typedef {Record<string, string>} Section */
/** @typedef {{ profile: () => Section | undefined, keys: () => Record<string, string | undefined> | undefined }} SharedFiles */

/** What a profile has in place of keys. */
const ELSEWHERE = Object.freeze(["role_arn", "credential_process", "sso_session", "sso_start_url", "web_identity_token_file", "login_session"]);

/** The profile's settings; the files are read when they are first asked for. @param {Record<string, any>} options @returns {SharedFiles} */
function sharedFiles(options) {
  const named = textOrEnv(options.profile, "profile", ["AWS_PROFILE", "AWS_DEFAULT_PROFILE"]);
  const name = named ?? "default";
  /** @type {Section | null | undefined} */
  let found;
  const profile = () => {
    if (found === undefined) found = readProfile(name) ?? null;
    return found ?? undefined;
  };
  const keys = () => {
    const section = profile();
    if (!section) {
      if (named === undefined) return undefined;
      throw invalid(`there is no profile ${JSON.stringify(name.slice(0, 60))} in AWS's shared files (~/.aws/credentials and ~/.aws/config)`);
    }
    const pair = wholePair({
      accessKeyId: section.aws_access_key_id,
      secretAccessKey: section.aws_secret_access_key,
      sessionToken: section.aws_session_token,
    });
    if (pair) return pair;
    const other = ELSEWHERE.find((key) => section[key] !== undefined);
    if (other) throw unsupported(`agentcore: the profile ${JSON.stringify(name)} has no keys but \`${other}\`, which is not followed: ${EXPORT}`);
    if (named === undefined) return undefined;
    throw invalid(`the profile ${JSON.stringify(name)} has no aws_access_key_id and aws_secret_access_key`);
  };
  return { profile, keys };
}

/** @param {string} name @returns {Section | undefined} */
function readProfile(name) {
  const home = process.env.HOME ?? "";
  const config = sectionsOf(readIfThere(process.env.AWS_CONFIG_FILE || `${home}/.aws/config`));
  const secrets = sectionsOf(readIfThere(process.env.AWS_SHARED_CREDENTIALS_FILE || `${home}/.aws/credentials`));
  const parts = [config.get(`profile ${name}`) ?? (name === "default" ? config.get(name) : undefined), secrets.get(name)];
  return parts.some(Boolean) ? Object.assign({}, ...parts) : undefined;
}

/** @param {string} file */
function readIfThere(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

/** An INI file: sections, `key = value`, comments; what is indented belongs to the key before it. @param {string | undefined} text */
function sectionsOf(text) {
  /** @type {Map<string, Section>} */
  const sections = new Map();
  /** @type {Section | undefined} */
  let section;
  for (const line of (text ?? "").split(/\r?\n/)) {
    const [, title] = /^\[\s*(.+?)\s*\]/.exec(line) ?? [];
    const [, key, value] = /^([^\s#;=[][^=]*?)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    if (title !== undefined) {
      const words = title.replace(/\s+/g, " ").replace(/^profile "(.*)"$/, "profile $1");
      section = sections.get(words) ?? {};
      sections.set(words, section);
    } else if (section && key !== undefined && value) {
      section[key.toLowerCase()] = value.replace(/\s+[#;].*$/, "");
    }
  }
  return sections;
}
