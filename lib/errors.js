// Errors of this package. What comes out of the native core is a plain object without a JavaScript
// stack; errorFromNative() gives it the stack of the call that caused it.
//
// Invariant: an error holds no option, no environment value and no header, so that it may be logged.

/** @import { SandboxErrorCode } from "../types/index.js" */

/**
 * Every `code` that a SandboxError can have.
 *
 * @type {readonly SandboxErrorCode[]}
 */
export const SANDBOX_ERROR_CODES = Object.freeze(
  /** @type {const} */ ([
    "INVALID_ARG", "MISSING_KEY", "MISSING_LIBRARY", "MISSING_BINARY", "AUTH", "FORBIDDEN", "NOT_FOUND",
    "CONFLICT", "RATE_LIMITED", "QUOTA", "TIMEOUT", "LOST", "NETWORK", "TLS", "PROTOCOL", "TOO_LARGE",
    "PROVIDER", "UNSUPPORTED", "NOT_READY", "CLOSED", "ISOLATION_UNAVAILABLE", "OUT_OF_MEMORY",
  ]).map((name) => /** @type {const} */ (`ERR_SANDBOX_${name}`)),
);

/**
 * @typedef {object} SandboxErrorDetails
 * @property {SandboxErrorCode} code
 * @property {string | undefined} [provider] id of the provider that failed
 * @property {number | undefined} [status] HTTP status, where there was one
 * @property {boolean | undefined} [retryable] the same call may succeed later
 * @property {boolean | undefined} [mayHaveRun] the command may have started before it went wrong
 * @property {unknown} [cause]
 */

/** The one class of errors of this package; `code` tells them apart. */
export class SandboxError extends Error {
  /**
   * @param {string} message what happened and what to do next
   * @param {SandboxErrorDetails} details
   */
  constructor(message, details) {
    if (!SANDBOX_ERROR_CODES.includes(details?.code)) {
      throw new SandboxError(
        'SandboxError: the second argument must be an object with a `code` of SANDBOX_ERROR_CODES, such as { code: "ERR_SANDBOX_PROVIDER" }',
        { code: "ERR_SANDBOX_INVALID_ARG" },
      );
    }
    super(message, "cause" in details ? { cause: details.cause } : undefined);
    this.code = details.code;
    if (details.provider !== undefined) {
      /** @type {string | undefined} */
      this.provider = details.provider;
    }
    if (details.status !== undefined) {
      /** @type {number | undefined} */
      this.status = details.status;
    }
    /** Whether the same call may succeed later without a change. */
    this.retryable = details.retryable ?? false;
    /** Whether the command may have started before this went wrong. */
    this.mayHaveRun = details.mayHaveRun ?? false;
  }
}
hideName(SandboxError, "SandboxError");

/** A path that leaves the workspace, or that no workspace can have. */
export class PathSecurityError extends SandboxError {}
hideName(PathSecurityError, "PathSecurityError");

/**
 * The call sites above `method`, to be put into an error that comes later.
 *
 * @param {Function} method
 * @returns {{ stack?: string }}
 */
export function captureSite(method) {
  const site = {};
  Error.captureStackTrace(site, method);
  return site;
}

/**
 * @typedef {object} NativeError what the addon's Promises reject with
 * @property {string} name short name in the core, such as "EPATH"
 * @property {SandboxErrorCode | "ERR_SANDBOX_CANCELED"} code the last one stands for an AbortSignal's reason
 * @property {string} message
 * @property {number} status 0 when there was none
 * @property {string | null} provider
 * @property {boolean} retryable
 * @property {boolean} mayHaveRun
 */

/**
 * @param {NativeError} plain
 * @param {{ stack?: string }} [site] from captureSite()
 * @returns {SandboxError}
 */
export function errorFromNative(plain, site) {
  const Class = plain.name === "EPATH" ? PathSecurityError : SandboxError;
  const { retryable, mayHaveRun } = plain;
  const code = /** @type {SandboxErrorCode} */ (plain.code);
  const provider = plain.provider ?? undefined;
  const status = plain.status || undefined;
  return atSite(new Class(plain.message, { code, provider, status, retryable, mayHaveRun }), site);
}

/**
 * The error with the call sites of `site` for its own.
 *
 * @param {SandboxError} error
 * @param {{ stack?: string }} [site] from captureSite()
 */
export function atSite(error, site) {
  if (typeof site?.stack === "string") {
    const frames = site.stack.indexOf("\n    at ");
    error.stack = `${error.name}: ${error.message}${frames < 0 ? "" : site.stack.slice(frames)}`;
  }
  return error;
}

/**
 * Whether `value` is an error object of the addon.
 *
 * @param {any} value
 * @returns {value is NativeError}
 */
export function isNativeError(value) {
  return typeof value?.code === "string" && typeof value.mayHaveRun === "boolean" && !(value instanceof Error);
}

/**
 * What an error says, whatever was thrown.
 *
 * @param {any} error
 */
export function wordsOf(error) {
  try {
    return String(error?.message ?? error);
  } catch {
    return "an error that says nothing";
  }
}

/**
 * Puts other words into an error's message, and into its stack, which shows it.
 *
 * @param {SandboxError} error made for one call
 * @param {string} words
 * @param {string} others
 */
export function reword(error, words, others) {
  const message = error.message.replace(words, others);
  error.stack = String(error.stack).replace(error.message, () => message);
  error.message = message;
}

/**
 * The members of an error that has this package's; of whose class it is does not matter.
 *
 * @param {any} error
 * @returns {SandboxErrorDetails | undefined}
 */
export function detailsOf(error) {
  try {
    const { code, provider, status, retryable, mayHaveRun } = error;
    const known = typeof mayHaveRun === "boolean" && SANDBOX_ERROR_CODES.includes(code);
    return known ? { code, provider, status, retryable, mayHaveRun } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The error to throw when `error` says that no more files can be opened, which passes; else undefined.
 *
 * @param {unknown} error
 */
export function tooManyFiles(error) {
  if (!/\b(EMFILE|ENFILE)\b|too many open files/i.test(wordsOf(error))) return undefined;
  return new SandboxError(
    "cloudsandbox cannot load a part of itself: too many open files; " +
      "close sandboxes and files that are not needed, or raise the limit (ulimit -n), and try again",
    { code: "ERR_SANDBOX_PROVIDER", retryable: true, cause: error },
  );
}

/**
 * A module of this folder that is loaded at its first use. Node keeps a failed import for good: when files
 * could not be opened, the next use asks for the module under another address.
 *
 * @template T
 * @param {string} name
 * @param {() => Promise<T>} load with a literal path, so that bundlers see it
 * @returns {() => Promise<T>}
 */
export function lazily(name, load) {
  let failures = 0;
  return async () => {
    try {
      return await load();
    } catch (error) {
      const passing = tooManyFiles(error);
      if (!passing) throw error;
      failures += 1;
      const address = again(name, failures);
      load = () => import(/* webpackIgnore: true */ address);
      throw passing;
    }
  };
}

/**
 * A function, because tracers of imports take a literal address for a file of that name.
 *
 * @param {string} name of a module of this folder
 * @param {number} times
 */
function again(name, times) {
  return new URL(/* webpackIgnore: true */ `${name}?${times}`, import.meta.url).href;
}

/**
 * The error of a path that leads out of a workspace.
 *
 * @param {string} target
 */
export function pathTraversal(target) {
  return new PathSecurityError(
    `path traversal: ${JSON.stringify(target.slice(0, 200))} does not stay inside the workspace; give a path inside it, such as "dir/file"`,
    { code: "ERR_SANDBOX_INVALID_ARG" },
  );
}

/**
 * `name` on the prototype and not enumerable, as in the built-in errors.
 *
 * @param {Function} constructor
 * @param {string} name
 */
function hideName(constructor, name) {
  Object.defineProperty(constructor.prototype, "name", { value: name, configurable: true, writable: true });
}
