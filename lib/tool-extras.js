// What few calls of a tool need, loaded by the first of them: a result that is too long for a model, lists, edits, and
// parts of a file.
//
// Invariant: what is left out of a result is said in one line of it, with how much it is and how to get it; and the
// whole text with that line is never longer than it may be.
import { SandboxError } from "./errors.js";

const { posix } = process.getBuiltinModule("node:path");

/** @import { CloudSandbox, SandboxReadOptions, SandboxRunResult } from "../types/index.js" */
/** @import { KeptParts } from "./results.js" */

/** A cut is moved back to an end of a line, when there is one this near to it. */
const NEAR = 500;
/** Most files that are looked at for a list. */
const MAX_LISTED = 100_000;
/** What a list only counts, unless it is asked for by its path. */
const BULK = /(?:^|\/)(?:\.git|node_modules|\.venv|venv|__pycache__)\//;
/** Most line numbers in a message. */
const MAX_SHOWN_LINES = 5;

/** Edits of one sandbox, one after another: two of one turn would else lose one of each other's. @type {WeakMap<object, Promise<unknown>>} */
const editing = new WeakMap();

/**
 * The JSON of a result whose output is too long.
 *
 * @param {SandboxRunResult} result
 * @param {KeptParts | undefined} parts undefined when no more is known than the result says
 * @param {number} most characters
 */
export function longResult(result, parts, most) {
  const { head, tail, dropped } = parts ?? { head: result.output, tail: "", dropped: 0 };
  const line = (/** @type {string} */ missing) =>
    `[${missing} left out here; to see them, run it again with its output in a file (> out.txt), and print parts of that (sed -n '1,200p' out.txt)]`;
  let room = most;
  for (;;) {
    const output = shortened(head, tail, dropped, room, line);
    const text = JSON.stringify({ ...result, output, outputTruncated: true });
    // Escapes make the JSON longer than the text in it.
    if (text.length <= most || room === 0) return text;
    room = Math.max(0, Math.min(room - 1, Math.floor((room * most) / text.length)));
  }
}

/**
 * Head and tail of a text, with one line between them.
 *
 * @param {string} head all of the text, when nothing was lost
 * @param {string} tail
 * @param {number} dropped bytes that were lost between the two
 * @param {number} room
 * @param {(missing: string) => string} line
 */
export function shortened(head, tail, dropped, room, line) {
  const length = head.length + tail.length;
  // As long as it can get, so that the numbers in it need no second thought.
  const keep = Math.max(0, room - line(`${counted(Number.MAX_SAFE_INTEGER)} characters`).length - 2);
  let first = head;
  let last = tail;
  if (length > keep) {
    const [before, after] = dropped > 0 ? [head, tail] : [head, head];
    const half = Math.floor(keep / 2);
    first = startOf(before, Math.min(before.length, Math.max(half, keep - after.length)));
    last = endOf(after, Math.max(0, Math.min(after.length, keep - first.length)));
  }
  const cut = length - first.length - last.length;
  if (dropped === 0 && cut === 0) return head;
  const lost = dropped > 0 ? dropped + bytesIn(head) + bytesIn(tail) - bytesIn(first) - bytesIn(last) : cut;
  const said = line(`${counted(lost)} ${dropped > 0 ? "bytes" : "characters"}`);
  return `${first}${first === "" || first.endsWith("\n") ? "" : "\n"}${said}\n${last}`;
}

/**
 * The content of a file that is too long, as head and tail.
 *
 * @param {string} content
 * @param {number} most
 * @param {string} name of the tool
 * @param {string | undefined} shell name of the tool that prints parts of it
 */
export function longContent(content, most, name, shell) {
  const how = shell ? `; print parts of the file with ${shell}, as sed -n '1,200p' does` : "";
  const lines = counted(lineCount(content));
  return shortened(content, "", 0, most, (missing) => `[${name}: ${missing} of ${counted(content.length)} (${lines} lines) left out here${how}]`);
}

/**
 * Some lines of a file: as many as may be, from `offset` on.
 *
 * @param {string} content
 * @param {{ offset?: number, limit?: number }} range
 * @param {number} most
 */
export function linesOf(content, { offset = 1, limit = Infinity }, most) {
  const all = lineCount(content);
  if (offset > Math.max(1, all)) return `[the file has ${counted(all)} ${all === 1 ? "line" : "lines"}, and no line ${counted(offset)}]`;
  const start = lineStart(content, 0, offset - 1);
  const wanted = limit === Infinity ? content.length : lineStart(content, start, limit);
  if (start === 0 && wanted === content.length && content.length <= most) return content;
  const note = (/** @type {number} */ last, /** @type {number} */ next) =>
    `[lines ${counted(offset)} to ${counted(last)} of ${counted(all)}; call again with offset ${next} for more]`;
  const room = most - note(all, all).length - 2;
  if (wanted - start <= room) {
    if (wanted === content.length) return content.slice(start);
    const next = offset + limit;
    return `${content.slice(start, wanted)}${note(next - 1, next)}`;
  }
  const end = content.lastIndexOf("\n", start + room - 1) + 1;
  if (end > start) {
    const next = offset + lineCount(content.slice(start, end));
    return `${content.slice(start, end)}${note(next - 1, next)}`;
  }
  // One line alone is too long.
  const stop = lineStart(content, start, 1);
  const line = content.slice(start, stop);
  const more = stop < content.length ? `; call again with offset ${offset + 1} for the next line` : "";
  return shortened(line, "", 0, most, (missing) => `[${missing} of line ${counted(offset)} of ${counted(all)} left out here${more}]`);
}

/**
 * The files of a folder and below it, as lines of text; of a folder with too many, what is in the folder itself.
 *
 * @param {any} sandbox
 * @param {{ path?: string }} args
 * @param {{ signal: AbortSignal | undefined, most: number, shell: string | undefined }} how
 */
export async function listOf(sandbox, { path = "" }, { signal, most, shell }) {
  const folder = folderOf(path, sandbox.sandboxId);
  const files = await filesOf(sandbox, signal);
  if (files === null) return levelOf(sandbox, folder, { signal, most, shell });
  const inside = folder === "" ? files : files.filter((file) => file.path.startsWith(folder) || `${file.path}/` === folder);
  if (inside.length === 0) return folder === "" ? "[no files]" : `[no files in ${path}]`;
  const told = inside.filter((file) => !BULK.test(file.path.slice(folder.length)));
  const lines = told.sort((a, b) => (a.path < b.path ? -1 : 1)).map((file) => lineOf(file.path, file.size));
  const bulk = inside.length - told.length;
  return listing(lines, most, bulk === 0 ? "" : `[${counted(bulk)} files in .git, node_modules and the like left out here; list such a folder with \`path\`]`);
}

/** @param {string} path @param {number} size */
function lineOf(path, size) {
  return `${path} (${counted(size)} bytes)\n`;
}

/**
 * As many of the lines as there is room for, what is left out, and `last`.
 *
 * @param {string[]} lines
 * @param {number} most
 * @param {string} last
 */
function listing(lines, most, last) {
  let length = lines.reduce((sum, line) => sum + line.length, last.length);
  if (length <= most) return lines.join("") + last;
  const note = (/** @type {number} */ left) => `[${counted(left)} more files left out here; list a folder with \`path\`]`;
  const room = most - note(lines.length).length - 1;
  let kept = lines.length;
  while (kept > 0 && length > room) length -= lines[--kept].length;
  return lines.slice(0, kept).join("") + note(lines.length - kept) + (last && `\n${last}`);
}

/** Null when there are too many. @param {any} sandbox @param {AbortSignal | undefined} signal @returns {Promise<{ path: string, size: number }[] | null>} */
async function filesOf(sandbox, signal) {
  try {
    return await sandbox.listFiles({ maxEntries: MAX_LISTED, ...(signal && { signal }) });
  } catch (error) {
    if (error instanceof SandboxError && error.code === "ERR_SANDBOX_TOO_LARGE") return null;
    throw error;
  }
}

/**
 * @param {any} sandbox
 * @param {string} folder
 * @param {{ signal: AbortSignal | undefined, most: number, shell: string | undefined }} how
 */
async function levelOf(sandbox, folder, { signal, most, shell }) {
  const many = `there are more than ${counted(MAX_LISTED)} files`;
  if (typeof sandbox.listDirectory !== "function") {
    const how = shell ? `; look at one folder with ${shell}, as \`ls\` and \`find . -maxdepth 2\` do` : "";
    throw failure(`${many}${how}`, "ERR_SANDBOX_TOO_LARGE");
  }
  /** @type {{ name: string, type: string, size: number }[]} */
  const entries = await sandbox.listDirectory(folder || ".", { maxEntries: MAX_LISTED, ...(signal && { signal }) });
  const lines = entries.map(({ name, type, size }) => (type === "file" ? lineOf(folder + name, size) : `${folder}${name}${type === "directory" ? "/" : ` (${type})`}\n`));
  return listing(lines, most, `[${many} in all, so this is one folder without what is below it; list those below with \`path\`]`);
}

/** What the names of the files in a folder begin with. @param {string} path @param {string | null | undefined} root */
function folderOf(path, root) {
  const inside = root && (path === root || path.startsWith(`${root}/`)) ? path.slice(root.length + 1) : path;
  const plain = posix.normalize(inside || ".");
  if (plain === "." || plain === "./") return "";
  return plain.endsWith("/") ? plain : `${plain}/`;
}

/**
 * Replaces text in a file.
 *
 * @param {CloudSandbox} sandbox
 * @param {{ path: string, oldText: string, newText: string, replaceAll?: boolean }} args
 * @param {AbortSignal | undefined} signal
 * @param {SandboxReadOptions | undefined} readOptions
 * @returns {Promise<string>}
 */
export async function edit(sandbox, args, signal, readOptions) {
  const before = editing.get(sandbox) ?? Promise.resolve();
  const mine = before.then(() => editNow(sandbox, args, signal, readOptions));
  editing.set(sandbox, mine.catch(() => {}));
  return mine;
}

/** @type {typeof edit} */
async function editNow(sandbox, { path, oldText, newText, replaceAll = false }, signal, readOptions) {
  if (signal?.aborted) throw signal.reason;
  if (oldText === "") throw failure("`oldText` is empty; give the text that is to be replaced, or write the whole file");
  if (oldText === newText) throw failure("`oldText` and `newText` are the same");
  const base64 = await sandbox.readFile(path, "base64", ...(readOptions ? [readOptions] : []));
  if (base64 === null) throw failure(`there is no file ${path}`, "ERR_SANDBOX_NOT_FOUND");
  const content = textIn(Buffer.from(base64, "base64"), path);
  const lines = placesOf(content, oldText);
  if (lines.length === 0) throw failure(`\`oldText\` is not in ${path}${resemblance(content, oldText)}`);
  if (lines.length > 1 && !replaceAll) {
    const shown = lines.slice(0, MAX_SHOWN_LINES).map(counted).join(", ") + (lines.length > MAX_SHOWN_LINES ? ", ..." : "");
    throw failure(
      `\`oldText\` is in ${path} ${counted(lines.length)} times (at lines ${shown}); ` +
        "give more of the text around it, so that it is there once, or set `replaceAll`",
    );
  }
  const changed = content.split(oldText).join(newText);
  await sandbox.writeFile(path, changed, "utf8", ...(signal ? [{ signal }] : []));
  return `ok: replaced ${lines.length === 1 ? "1 place" : `${counted(lines.length)} places`} (line ${lines.slice(0, MAX_SHOWN_LINES).map(counted).join(", ")})`;
}

/** @param {Buffer} bytes @param {string} path */
function textIn(bytes, path) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw failure(`${path} is no UTF-8 text, and an edit would change its other bytes`);
  }
}

/** The line of each place where a text stands, without overlaps. @param {string} content @param {string} text */
function placesOf(content, text) {
  const lines = [];
  let line = 1;
  let from = 0;
  for (let at = content.indexOf(text); at !== -1; at = content.indexOf(text, at + text.length)) {
    for (let end = content.indexOf("\n", from); end !== -1 && end < at; end = content.indexOf("\n", from)) {
      line += 1;
      from = end + 1;
    }
    lines.push(line);
  }
  return lines;
}

/** Where almost the same stands, since a model that sees no difference writes the same again. @param {string} content @param {string} text */
function resemblance(content, text) {
  if (content.includes("\r\n") && content.replaceAll("\r\n", "\n").includes(text.replaceAll("\r\n", "\n"))) {
    return "; its lines end with \\r\\n, and so must those of `oldText`";
  }
  const wanted = linesWithoutSpace(text);
  while (wanted[0] === "") wanted.shift();
  while (wanted.at(-1) === "") wanted.pop();
  if (wanted.length === 0) return "";
  const have = linesWithoutSpace(content);
  const index = have.findIndex((_, at) => wanted.every((line, more) => have[at + more] === line));
  return index === -1 ? "; read the file again" : `; line ${counted(index + 1)} differs from it in spaces only`;
}

/** @param {string} text */
function linesWithoutSpace(text) {
  return text.split("\n").map((line) => line.replace(/\s+/g, ""));
}

/** @param {string} message @param {import("../types/index.js").SandboxErrorCode} [code] */
function failure(message, code = "ERR_SANDBOX_INVALID_ARG") {
  return new SandboxError(message, { code });
}

/** @param {string} text @param {number} length */
function startOf(text, length) {
  if (length >= text.length) return text;
  const end = isLowSurrogate(text, length) ? length - 1 : length;
  const line = text.lastIndexOf("\n", end - 1) + 1;
  return text.slice(0, line > 0 && end - line <= NEAR && line > end / 2 ? line : end);
}

/** @param {string} text @param {number} length */
function endOf(text, length) {
  if (length >= text.length) return text;
  const cut = text.length - length;
  const start = isLowSurrogate(text, cut) ? cut + 1 : cut;
  const line = text.indexOf("\n", start) + 1;
  return text.slice(line > 0 && line - start <= NEAR && text.length - line > length / 2 ? line : start);
}

/** @param {string} text @param {number} at */
function isLowSurrogate(text, at) {
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff;
}

/** How many lines; what is behind the last line end counts, when it is not empty. @param {string} text */
function lineCount(text) {
  let count = 0;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) count += 1;
  return text === "" || text.endsWith("\n") ? count : count + 1;
}

/** Where a line begins, some lines further on. @param {string} text @param {number} at @param {number} lines */
function lineStart(text, at, lines) {
  for (let left = lines; left > 0; left--) {
    const end = text.indexOf("\n", at);
    if (end === -1) return text.length;
    at = end + 1;
  }
  return at;
}

/** @param {string} text */
function bytesIn(text) {
  return Buffer.byteLength(text);
}

/** @param {number} number */
function counted(number) {
  return number.toLocaleString("en-US");
}
