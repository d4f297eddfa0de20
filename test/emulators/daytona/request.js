// What the control plane accepts in a create request.
// @ts-check

/** @typedef {import("./sandbox.js").Settings} Settings */
/** @typedef {import("./sandbox.js").SandboxSpec} SandboxSpec */

export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {string} message
   * @param {Record<string, string | number>} [headers]
   */
  constructor(status, message, headers = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

const BUILD_RESOURCES = { cpu: 1, memory: 1, disk: 3, gpu: 0 };
const DEFAULT_STOP = 15;
const DEFAULT_ARCHIVE = 7 * 24 * 60;
const LONGEST_ARCHIVE = 30 * 24 * 60;
const LONGEST_LIST = 10;

const isObject = (/** @type {any} */ value) => value !== null && typeof value === "object" && !Array.isArray(value);
const isStringMap = (/** @type {any} */ value) =>
  isObject(value) && Object.values(value).every((item) => typeof item === "string");

/** @type {Record<string, [(value: any) => boolean, string]>} */
const RULES = {
  name: [(value) => typeof value === "string", "must be a string"],
  snapshot: [(value) => typeof value === "string", "must be a string"],
  user: [(value) => typeof value === "string", "must be a string"],
  env: [isStringMap, "must be an object"],
  labels: [isStringMap, "must be an object"],
  public: [(value) => typeof value === "boolean", "must be a boolean value"],
  networkBlockAll: [(value) => typeof value === "boolean", "must be a boolean value"],
  networkAllowList: [(value) => typeof value === "string", "must be a string"],
  domainAllowList: [(value) => typeof value === "string", "must be a string"],
  target: [(value) => typeof value === "string", "must be a string"],
  cpu: [Number.isFinite, "must be a number conforming to the specified constraints"],
  memory: [Number.isFinite, "must be a number conforming to the specified constraints"],
  disk: [Number.isFinite, "must be a number conforming to the specified constraints"],
  gpu: [(value) => value === 0 || value === 1, "must be one of the following values: 0, 1"],
  autoStopInterval: [Number.isFinite, "must be a number conforming to the specified constraints"],
  autoArchiveInterval: [Number.isFinite, "must be a number conforming to the specified constraints"],
  autoDeleteInterval: [Number.isFinite, "must be a number conforming to the specified constraints"],
  ttlMinutes: [Number.isInteger, "must be an integer number"],
  buildInfo: [(value) => isObject(value) && typeof value.dockerfileContent === "string", "must be an object"],
  volumes: [Array.isArray, "must be an array"],
};

/** @param {unknown} body */
function checkTypes(body) {
  if (!isObject(body)) throw new ApiError(400, "Unexpected token in JSON");
  const given = /** @type {Record<string, any>} */ (body);
  const problems = Object.entries(RULES).flatMap(([name, [fits, complaint]]) =>
    given[name] === undefined || given[name] === null || fits(given[name]) ? [] : [`${name} ${complaint}`],
  );
  if (problems.length > 0) throw new ApiError(400, problems.join(", "));
  return given;
}

/** @param {string} list */
export function checkAllowList(list) {
  const entries = list.split(",").map((entry) => entry.trim());
  if (entries.length > LONGEST_LIST) throw new ApiError(400, `networkAllowList cannot have more than ${LONGEST_LIST} networks`);
  for (const entry of entries) {
    const match = entry.match(/^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/);
    const fits = match && match.slice(1, 5).every((octet) => Number(octet) < 256) && Number(match[5]) <= 32;
    if (!fits) throw new ApiError(400, `Invalid network: "${entry}" is not a valid IPv4 CIDR`);
  }
}

/**
 * The resources, which come with the snapshot, or are asked for with a build.
 * @param {Record<string, any>} given
 * @param {Settings} settings
 */
function readResources(given, settings) {
  if (given.buildInfo) {
    if (given.snapshot) throw new ApiError(400, "Cannot specify a snapshot when using a build info entry");
    const asked = Object.entries(BUILD_RESOURCES).map(([name, usual]) => [name, given[name] || usual]);
    return { buildInfo: given.buildInfo, ...Object.fromEntries(asked) };
  }
  if (["cpu", "memory", "disk", "gpu"].some((name) => given[name])) {
    throw new ApiError(400, "Cannot specify Sandbox resources when using a snapshot");
  }
  const snapshot = given.snapshot || settings.defaultSnapshot;
  const found = Object.hasOwn(settings.snapshots, snapshot) ? settings.snapshots[snapshot] : undefined;
  if (!found) {
    throw new ApiError(400, `Snapshot ${snapshot} not found. Did you add it through the Daytona Dashboard?`);
  }
  const { state = "active", ...resources } = found;
  if (state !== "active") throw new ApiError(400, `Snapshot ${snapshot} is ${state}`);
  return { snapshot, ...BUILD_RESOURCES, ...resources };
}

/**
 * @param {unknown} body
 * @param {Settings} settings
 * @returns {SandboxSpec}
 */
export function readCreate(body, settings) {
  const given = checkTypes(body);
  const { autoStopInterval = DEFAULT_STOP, autoArchiveInterval = DEFAULT_ARCHIVE, autoDeleteInterval = -1 } = given;
  if (autoStopInterval < 0) throw new ApiError(400, "Auto-stop interval must be non-negative");
  if (autoArchiveInterval < 0) throw new ApiError(400, "Auto-archive interval must be non-negative");
  if (given.target && !settings.regions.includes(given.target)) throw new ApiError(404, "Region not found");
  if (given.networkAllowList) checkAllowList(given.networkAllowList);
  const user = given.user || "daytona";
  if (!/^[\w.-]+$/.test(user) || /^\.+$/.test(user)) throw new ApiError(400, "user is not valid");
  return {
    ...(given.name ? { name: given.name } : {}),
    user,
    env: given.env ?? {},
    labels: given.labels ?? {},
    public: given.public ?? false,
    networkBlockAll: given.networkBlockAll ?? false,
    ...(given.networkAllowList ? { networkAllowList: given.networkAllowList } : {}),
    ...(given.domainAllowList ? { domainAllowList: given.domainAllowList } : {}),
    target: given.target || settings.regions[0],
    ...readResources(given, settings),
    autoStopInterval,
    autoArchiveInterval: Math.min(autoArchiveInterval || LONGEST_ARCHIVE, LONGEST_ARCHIVE),
    autoDeleteInterval,
    ...(given.ttlMinutes ? { ttlMinutes: given.ttlMinutes } : {}),
    ...(given.volumes ? { volumes: given.volumes } : {}),
  };
}
