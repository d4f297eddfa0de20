// Options of remote providers: credentials and addresses, from options or the environment.
//
// Invariant: a credential goes from here to the native core and nowhere else; no message shows one.
import { SandboxError } from "./errors.js";
import { bytesOf, checkBoolean, checkString, invalid, kindOf, reading } from "./options.js";

/** Options of every remote provider besides the common ones. */
export const REMOTE_OPTIONS = Object.freeze(["apiKey", "baseURL", "proxy", "ca", "lateAuth"]);

/**
 * The option, else the first of the environment's variables that is set and not empty.
 *
 * @param {unknown} value
 * @param {string} name of the option
 * @param {readonly string[]} variables
 * @returns {string | undefined}
 */
export function textOrEnv(value, name, variables) {
  if (value !== undefined) return unquoted(checkString(value, name), `\`${name}\``);
  const variable = variables.find((it) => process.env[it]);
  return variable && unquoted(/** @type {string} */ (process.env[variable]), `the environment variable ${variable}`);
}

/**
 * Refuses the quotes that a file of variables has around a value, and that not every reader takes away:
 * sent along, they would only make a key that nobody knows.
 *
 * @param {string} text
 * @param {string} what it is, in words
 */
function unquoted(text, what) {
  if (!/^\s*["'`]|["'`]\s*$/.test(text)) return text;
  throw invalid(`${what} begins or ends with a quote, which is no part of it: take the quotes away; its value is not shown here`);
}

/**
 * The same for a secret: the line end that a file leaves behind a key is taken away, and an empty one
 * counts as none.
 *
 * @param {unknown} value
 * @param {string} name
 * @param {readonly string[]} variables
 * @returns {string | undefined}
 */
export function secretOrEnv(value, name, variables) {
  const secret = textOrEnv(value, name, variables)?.trim();
  if (!secret) return undefined;
  if (/^[\x21-\x7e]+$/.test(secret)) return secret;
  throw invalid(`\`${name}\` has blanks or other characters that no key has; its value is not shown here`);
}

/**
 * @param {string} provider id
 * @param {string} text what to give, and by which variable
 */
export function missingKey(provider, text) {
  return new SandboxError(`${provider}: missing API key: ${text}`, {
    code: "ERR_SANDBOX_MISSING_KEY",
    provider,
  });
}

/**
 * `owned`, which says something of an existing sandbox only.
 *
 * @param {Record<string, any>} options
 * @returns {boolean | undefined}
 */
export function ownedOption({ owned, sandboxId }) {
  if (owned === undefined) return undefined;
  checkBoolean(owned, "owned");
  if (sandboxId !== undefined) return owned;
  throw invalid(
    "`owned` goes with `sandboxId`, an existing sandbox that close() is to delete: give both, or leave `owned` out. " +
      "A sandbox that is created here is always deleted by close()",
  );
}

/** What the core's remote providers look at. */
const NETWORK_VARIABLES = Object.freeze([
  "https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY", "SSL_CERT_FILE",
  "NODE_EXTRA_CA_CERTS", "SBX_LIBCURL",
]);

/**
 * These of the thread's own variables, as far as they are set. The core reads none by itself: another
 * thread may be changing them.
 *
 * @param {readonly string[]} names
 * @returns {Record<string, string>}
 */
export function readEnvironment(names) {
  /** @type {Record<string, string>} */
  const found = {};
  for (const name of names) {
    const value = process.env[name];
    if (value !== undefined) found[name] = value;
  }
  return found;
}

/**
 * `proxy`, `ca` and what the environment says, in the core's spelling.
 *
 * @param {Record<string, any>} options
 */
export function networkOptions({ proxy, ca }) {
  return {
    environment: readEnvironment(NETWORK_VARIABLES),
    ...(proxy !== undefined && { proxy: proxy === null ? "" : unquoted(checkString(proxy, "proxy"), "`proxy`") }),
    ...(ca !== undefined && { ca: pemText(ca) }),
  };
}

/** @param {unknown} value */
function pemText(value) {
  const bytes = bytesOf(value);
  const text = typeof value === "string" ? value : bytes && Buffer.from(bytes).toString("latin1");
  if (text === undefined) throw invalid(`\`ca\` must be PEM text or its bytes, not ${kindOf(value)}`);
  if (text.includes("-----BEGIN ")) return text;
  throw invalid("`ca` must hold certificates in PEM (-----BEGIN CERTIFICATE-----), not the path of a file");
}

/**
 * Options of vendor SDKs' injection: refused in words, since ignoring them would send requests elsewhere.
 *
 * @param {any} options
 * @param {string} where
 */
export function refuseVendorOptions(options, where) {
  for (const name of ["sdk", "client"]) {
    if (reading(`${where}: \`${name}\``, () => options?.[name]) === undefined) continue;
    throw invalid(
      `${where}: \`${name}\` is not used here: this package speaks the provider's protocol itself. ` +
        "Give `baseURL` to reach another server.",
    );
  }
}
