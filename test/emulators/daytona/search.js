// The daemon's search in names and contents, and replacement of text.
// @ts-check
import { readFile, readdir, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { badBody } from "./errors.js";
import { fileError, fileRefusal, givenPath } from "./files.js";
import { goJson, goUnmarshal } from "./gojson.js";
import { locate } from "./paths.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */
/** @typedef {import("../exchange.js").Reply} Reply */
/** @typedef {import("./sandbox.js").Sandbox} Sandbox */

const LONGEST_LINE = 64 << 10;

/** @param {unknown} value @returns {Reply} */
const ok = (value) => ({
  status: 200,
  headers: { "content-type": "application/json; charset=utf-8" },
  body: goJson(value),
});

/** Everything below, in order. @param {string} root @returns {AsyncGenerator<string>} */
async function* walk(root) {
  const stats = await stat(root).catch(() => undefined);
  if (!stats) return;
  yield root;
  if (!stats.isDirectory()) return;
  for (const name of (await readdir(root).catch(() => /** @type {string[]} */ ([]))).sort()) {
    yield* walk(path.join(root, name));
  }
}

/**
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 */
async function readSearch(exchange, sandbox) {
  const name = givenPath(exchange);
  const pattern = exchange.query.get("pattern");
  if (!pattern) throw fileRefusal("path and pattern are required");
  const root = locate(sandbox, name);
  await stat(root).catch((error) => {
    throw fileError(error, "stat", name);
  });
  return { root, pattern };
}

/**
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 */
export async function findInFiles(exchange, sandbox) {
  const { root, pattern } = await readSearch(exchange, sandbox);
  const found = [];
  for await (const file of walk(root)) {
    const bytes = await readFile(file).catch(() => undefined);
    if (!bytes || bytes.subarray(0, 512).includes(0)) continue;
    for (const [i, line] of bytes.toString().split("\n").entries()) {
      if (line.length > LONGEST_LINE) break;
      if (line.includes(pattern)) found.push({ file, line: i + 1, content: line });
    }
  }
  return ok(found);
}

/** A shell pattern on a name. @param {string} glob */
function globToPattern(glob) {
  const text = glob.replace(/[.+^${}()|\\]/g, "\\$&").replace(/\*/g, ".*").replace(/\?/g, ".");
  return new RegExp(`^${text}$`, "s");
}

/**
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 */
export async function searchFiles(exchange, sandbox) {
  const { root, pattern } = await readSearch(exchange, sandbox);
  const matcher = globToPattern(pattern);
  const files = [];
  for await (const file of walk(root)) if (matcher.test(path.basename(file))) files.push(file);
  return ok({ files });
}

/**
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 */
export async function replaceInFiles(exchange, sandbox) {
  const fields = { files: "[]string", pattern: "string", newValue: "string" };
  const request = goUnmarshal(await exchange.body(), "ReplaceRequest", fields);
  if (typeof request === "string") throw badBody(request, { careless: true });
  const results = [];
  for (const file of request.files ?? []) {
    const full = locate(sandbox, file);
    try {
      const text = await readFile(full, "utf8");
      await writeFile(full, text.replaceAll(request.pattern ?? "", () => request.newValue ?? ""));
      results.push({ file, success: true });
    } catch (error) {
      results.push({ file, success: false, error: fileError(error, "open", file).message });
    }
  }
  return ok(results);
}
