// put, get, ls, and the page of a record.
import { SandboxError } from "../errors.js";
import { say, progress, withSandbox } from "./place.js";
import { UsageError } from "./parse.js";

const { open, readFile, readdir, rename, rm, stat } = process.getBuiltinModule("node:fs").promises;
const { basename, join, posix, relative, resolve, sep } = process.getBuiltinModule("node:path");

/** @param {Record<string, any>} values @param {string[]} positionals */
export async function put(values, positionals) {
  const to = /** @type {string} */ (positionals.at(-1));
  const from = positionals.slice(0, -1);
  if (!values.sandbox && !values.keep) throw new UsageError("the sandbox would be deleted with the files in it; say --keep, or --sandbox ID");
  const intoFolder = to.endsWith("/") || to === "." || from.length > 1;
  const files = (await Promise.all(from.map((path) => filesIn(path, intoFolder, to)))).flat();
  return withSandbox(values, async (sandbox, signal) => {
    let bytes = 0;
    for (const [index, { source, target }] of files.entries()) {
      progress(`${index + 1} of ${files.length}: ${target}`);
      const contents = await readFile(source);
      await sandbox.writeFile(target, contents, undefined, { signal });
      bytes += contents.length;
    }
    progress();
    if (values.json) print({ sandboxId: sandbox.sandboxId, files: files.map(({ target }) => target), bytes });
    return 0;
  });
}

/** @param {string} path @param {boolean} intoFolder @param {string} to @returns {Promise<{ source: string, target: string }[]>} */
async function filesIn(path, intoFolder, to) {
  const found = await stat(path);
  const base = resolve(path);
  if (!found.isDirectory()) return [{ source: base, target: intoFolder ? posix.join(to, basename(base)) : to }];
  const entries = await readdir(base, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? /** @type {any} */ (entry).path, entry.name))
    .map((source) => ({ source, target: posix.join(to, basename(base), ...relative(base, source).split(sep)) }));
}

/** @param {Record<string, any>} values @param {string[]} positionals */
export async function get(values, [path, to = basename(path)]) {
  return withSandbox(values, async (sandbox, signal) => {
    progress(`getting ${path}`);
    const bytes = await sandbox.readBytes(path, { signal });
    progress();
    if (bytes === null) throw new SandboxError(`there is no file ${path} in the sandbox; \`cloudsandbox ls\` shows what there is`, { code: "ERR_SANDBOX_NOT_FOUND" });
    if (to === "-") await new Promise((done) => process.stdout.write(bytes, done));
    else await save(await isFolder(to) ? join(to, basename(path)) : to, bytes);
    if (values.json && to !== "-") print({ sandboxId: sandbox.sandboxId, file: to, bytes: bytes.length });
    return 0;
  });
}

/** @param {string} path */
async function isFolder(path) {
  return stat(path).then((found) => found.isDirectory(), () => false);
}

/** A file is whole or as it was. @param {string} path @param {Uint8Array} bytes */
async function save(path, bytes) {
  const part = `${path}.${process.pid}.part`;
  try {
    const file = await open(part, "wx");
    await file.writeFile(bytes).finally(() => file.close());
    await rename(part, path);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}

/** @param {Record<string, any>} values @param {string[]} positionals */
export async function ls(values, [folder = "."]) {
  return withSandbox(values, async (sandbox, signal) => {
    const prefix = posix.join(folder, "/");
    const all = await sandbox.listFiles({ signal, maxEntries: 1_000_000 });
    const files = all
      .filter((/** @type {{ path: string }} */ { path }) => prefix === "./" || path.startsWith(prefix))
      .sort((/** @type {{ path: string }} */ a, /** @type {{ path: string }} */ b) => (a.path < b.path ? -1 : 1));
    if (values.json) return print({ sandboxId: sandbox.sandboxId, files });
    const width = Math.max(1, ...files.map((/** @type {{ size: number }} */ { size }) => String(size).length));
    for (const { path, size } of files) process.stdout.write(`${String(size).padStart(width)}  ${shown(path)}\n`);
    return 0;
  });
}

/** A name cannot draw on the terminal. @param {string} path */
function shown(path) {
  return path.replace(/\p{Cc}/gu, "\u{FFFD}");
}

/** @param {Record<string, any>} values @param {string[]} positionals */
export async function report(values, [file, page]) {
  const { writeReport } = await import("../report.js");
  const made = await writeReport(file, page, values.title === undefined ? {} : { title: values.title });
  if (values.json) return print({ page, ...made });
  say(`${page} has ${made.records} records${made.damaged > 0 ? `; ${made.damaged} could not be read` : ""}`);
  return 0;
}

/** @param {object} value */
function print(value) {
  process.stdout.write(`${JSON.stringify(value)}\n`);
  return 0;
}
