// What the classes of remote providers share: credentials and addresses from options or environment,
// and the way to the network.
//
// Invariant: a credential goes from here to the native core and nowhere else; no message shows one.
import { SandboxError } from "./errors.js";
import { bytesOf, checkNumber, checkString, invalid, kindOf, reading } from "./options.js";

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
  if (value !== undefined) return checkString(value, name);
  return variables.map((variable) => process.env[variable]).find(Boolean);
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
 * `proxy` and `ca` in the core's spelling.
 *
 * @param {Record<string, any>} options
 */
export function networkOptions({ proxy, ca }) {
  return {
    ...(proxy !== undefined && { proxy: proxy === null ? "" : checkString(proxy, "proxy") }),
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
 * An object of strings.
 *
 * @param {any} value
 * @param {string} name
 * @returns {Record<string, string>}
 */
export function checkTexts(value, name) {
  if (kindOf(value) !== "an object") throw invalid(`\`${name}\` must be an object of strings, not ${kindOf(value)}`);
  const entries = reading(`\`${name}\``, () => Object.entries(value));
  for (const [key, text] of entries) checkString(text, `${name}.${key}`);
  return Object.fromEntries(entries);
}

/**
 * Those of the options that were given, checked.
 *
 * @param {Record<string, any>} options
 * @param {readonly string[]} names
 * @param {(value: any, name: string) => unknown} check
 */
export function given(options, names, check) {
  return Object.fromEntries(
    names.filter((name) => options[name] !== undefined).map((name) => [name, check(options[name], name)]),
  );
}

/**
 * A whole number or undefined.
 *
 * @param {unknown} value
 * @param {string} name
 * @param {number} min
 * @param {number} max
 */
export function wholeOrNone(value, name, min, max) {
  if (value === undefined) return undefined;
  if (Number.isInteger(value)) return checkNumber(value, name, min, max);
  throw invalid(`\`${name}\` must be a whole number from ${min} to ${max}, not ${kindOf(value)}`);
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
