// What a request must look like. Each check gives the words of the refusal, or undefined.
// @ts-check

/** @param {unknown} value @returns {value is Record<string, any>} */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
/** @param {unknown} value */
const isText = (value) => typeof value === "string";
/** @param {unknown} value */
const isTextOrNull = (value) => value === null || isText(value);
/** @param {unknown} value */
const isTexts = (value) => Array.isArray(value) && value.every(isText);
/** @param {unknown} value */
const isMap = (value) => isObject(value) && Object.values(value).every(isText);
/** @param {unknown} value */
const isAbsolute = (value) => typeof value === "string" && value.startsWith("/") && !value.split("/").includes("..");
/** @param {unknown} value */
const isLimit = (value) => value === null || (Number.isInteger(value) && Number(value) > 0);

/** @typedef {(value: any) => boolean} Check */

/** @type {Record<string, Check>} */
const MANIFEST = {
  image: isTextOrNull,
  working_dir: isAbsolute,
  environment: (value) => isMap(value) && Object.keys(value).every((name) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name)),
  network: isObject,
  "network.default": (value) => value === "deny" || value === "allow",
  "network.allowed_hosts": isTexts,
  "network.denied_hosts": isTexts,
  resources: isObject,
  "resources.cpu": isTextOrNull,
  "resources.memory": isTextOrNull,
  "resources.gpu": (value) => typeof value === "boolean",
};

/** @param {any} body */
export function complaintAboutCreate(body) {
  if (!isObject(body) || !isObject(body.manifest)) return "the body must be an object with a manifest";
  for (const [name, check] of Object.entries(MANIFEST)) {
    const value = name.split(".").reduce((/** @type {any} */ part, key) => part?.[key], body.manifest);
    if (value === undefined) return `manifest.${name} is missing`;
    if (!check(value)) return `manifest.${name} is not what it should be`;
  }
  return undefined;
}

/** @type {Record<string, Check>} */
const COMMAND = { cwd: (value) => value === null || isAbsolute(value), env: isMap, timeout_seconds: isLimit, stdin: isTextOrNull };

/** @param {any} body */
export function complaintAboutExec(body) {
  if (!isObject(body)) return "the body must be an object";
  if (!isTexts(body.command) || body.command.length === 0 || body.command[0] === "") return "command must be an array of strings, at least one";
  for (const [name, check] of Object.entries(COMMAND)) {
    if (body[name] !== undefined && !check(body[name])) return `${name} is not what it should be`;
  }
  return undefined;
}
