// Which sandboxes a list shows, in what order, and page by page.
// @ts-check
import { ApiError } from "./request.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */
/** @typedef {import("./sandbox.js").Sandbox} Sandbox */

const USUAL_LIMIT = 100;
const LARGEST_LIMIT = 200;
const SORTS = /** @type {Record<string, (sandbox: Sandbox) => string | number>} */ ({
  name: ({ name }) => name,
  cpu: ({ spec }) => spec.cpu,
  memoryGib: ({ spec }) => spec.memory,
  diskGib: ({ spec }) => spec.disk,
  createdAt: ({ createdAt }) => createdAt.getTime(),
  lastActivityAt: ({ lastActivityAt }) => lastActivityAt.getTime(),
});

/** @param {string} text */
function readLabels(text) {
  try {
    const labels = JSON.parse(text);
    if (labels === null || typeof labels !== "object" || Array.isArray(labels)) throw new Error("no object");
    return /** @type {Record<string, string>} */ (labels);
  } catch {
    throw new ApiError(400, "Invalid labels JSON format");
  }
}

/** The values of a parameter that may be repeated. @param {URLSearchParams} query @param {string} name */
const many = (query, name) => [...query.getAll(name), ...query.getAll(`${name}[]`)];

/** @param {string} text @param {string | null} prefix */
const startsWith = (text, prefix) => !prefix || text.toLowerCase().startsWith(prefix.toLowerCase());

/**
 * @param {Sandbox[]} sandboxes
 * @param {URLSearchParams} query
 */
function filter(sandboxes, query) {
  const states = many(query, "states");
  if (states.includes("destroyed")) throw new ApiError(400, "each value in states must be a valid state");
  const snapshots = many(query, "snapshots");
  const regions = many(query, "regionIds");
  const labels = Object.entries(readLabels(query.get("labels") || "{}"));
  const isPublic = query.get("isPublic");
  const bound = (/** @type {string} */ name, /** @type {number} */ usual) =>
    query.has(name) ? Number(query.get(name)) : usual;
  return sandboxes.filter(
    ({ id, name, state, spec, labels: own, public: shown }) =>
      startsWith(id, query.get("id")) &&
      startsWith(name, query.get("name")) &&
      (states.length === 0 || states.includes(state)) &&
      (snapshots.length === 0 || snapshots.includes(spec.snapshot ?? "")) &&
      (regions.length === 0 || regions.includes(spec.target)) &&
      (isPublic === null || String(shown) === isPublic) &&
      spec.cpu >= bound("minCpu", 0) &&
      spec.cpu <= bound("maxCpu", Infinity) &&
      labels.every(([key, value]) => own[key] === value),
  );
}

/** @param {URLSearchParams} query @param {string} name @param {number} usual @param {number} largest */
function readCount(query, name, usual, largest) {
  const count = Number(query.get(name) ?? usual);
  if (!Number.isInteger(count) || count < 1) throw new ApiError(400, `${name} must not be less than 1`);
  if (count > largest) throw new ApiError(400, `${name} must not be greater than ${largest}`);
  return count;
}

/**
 * @param {Sandbox[]} sandboxes
 * @param {URLSearchParams} query
 */
function select(sandboxes, query) {
  const sort = query.get("sort") ?? "createdAt";
  if (!Object.hasOwn(SORTS, sort)) throw new ApiError(400, `sort must be one of the following values: ${Object.keys(SORTS)}`);
  const sign = (query.get("order") ?? "desc") === "asc" ? 1 : -1;
  const key = SORTS[sort];
  const compare = (/** @type {Sandbox} */ a, /** @type {Sandbox} */ b) => {
    const [x, y] = [key(a), key(b)];
    return x === y ? 0 : x < y ? -sign : sign;
  };
  // Those made first come first where the order leaves it open, so that pages do not overlap.
  return filter(sandboxes, query).sort(compare);
}

/**
 * A page by cursor.
 * @param {Sandbox[]} sandboxes
 * @param {URLSearchParams} query
 * @param {(sandbox: Sandbox) => unknown} show
 */
export function listByCursor(sandboxes, query, show) {
  const limit = readCount(query, "limit", USUAL_LIMIT, LARGEST_LIMIT);
  const selected = select(sandboxes, query);
  const cursor = query.get("cursor");
  let start = 0;
  if (cursor) {
    start = Number(Buffer.from(cursor, "base64url").toString());
    if (!Number.isInteger(start)) throw new ApiError(400, "Invalid cursor");
  }
  const end = start + limit;
  const nextCursor = end < selected.length ? Buffer.from(String(end)).toString("base64url") : null;
  return { items: selected.slice(start, end).map(show), nextCursor };
}

/**
 * A page by number, as deprecated.
 * @param {Sandbox[]} sandboxes
 * @param {URLSearchParams} query
 * @param {(sandbox: Sandbox) => unknown} show
 */
export function listByPage(sandboxes, query, show) {
  const limit = readCount(query, "limit", USUAL_LIMIT, LARGEST_LIMIT);
  const page = readCount(query, "page", 1, Infinity);
  const selected = select(sandboxes, query);
  return {
    items: selected.slice((page - 1) * limit, page * limit).map(show),
    total: selected.length,
    page,
    totalPages: Math.ceil(selected.length / limit),
  };
}
