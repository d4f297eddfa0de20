// The files of a sandbox on their way into a folder of this machine.
//
// Invariant: names and contents come from code that nobody vouches for. A name is judged before anything is asked for or made.
import { badName, bytesOfFile, putFile } from "./folder.js";
import { fewAtATime, get, isTooLarge, listed, look } from "./place.js";
import { hashOf, otherWork, within } from "./up.js";

const { lstat } = process.getBuiltinModule("node:fs").promises;
const path = process.getBuiltinModule("node:path");

/** @import { Skip } from "./folder.js" */
/** @import { Seen } from "./place.js" */
/** @import { Known, Way } from "./up.js" */
/** @import { WorkspaceTransfer } from "../../types/workspace.js" */

/** Names that are judged in one turn of the event loop. */
const FILES_PER_TURN = 1000;

/**
 * Brings what is not in the folder yet, and replaces what is there.
 *
 * @param {Way} way
 */
export function bringAll(way) {
  return bring(way, async () => undefined);
}

/**
 * What is in the sandbox, and not from here: its image's own files in the home, say.
 *
 * @param {Way} way
 * @returns {Promise<Map<string, string | undefined>>} hashes of files
 */
export async function ownOf(way) {
  const { port, known, signal } = way;
  const all = await wanted(await listed(port, signal), way, []);
  const others = all.map((entry) => entry.path).filter((file) => !known.has(file));
  if (others.length === 0) return new Map();
  const { files } = await look(port, others, signal);
  return new Map([...files].map(([file, { hash }]) => [file, hash]));
}

/**
 * Brings what the sandbox has made or changed since both sides were last alike. What has been changed here, too, stays.
 *
 * @param {Way} way
 */
export function bringChanges(way) {
  return bring(way, async (file, here) => {
    if (here === undefined || here === way.known.get(file)?.hash) return undefined;
    return "it was changed on both sides";
  });
}

/**
 * @param {Way} way
 * @param {(file: string, here: string | undefined) => Promise<string | undefined>} refusal why a file is not to be replaced; `here` is
 *   the hash of what stands there
 * @returns {Promise<WorkspaceTransfer>}
 */
async function bring(way, refusal) {
  const began = performance.now();
  const { port, root, known, signal } = way;
  /** @type {WorkspaceTransfer} */
  const result = { files: 0, bytes: 0, unchanged: 0, skipped: [], durationMs: 0 };
  const all = sorted(await listed(port, signal));
  const named = await wanted(all, way, result.skipped);
  const seen = named.length === 0 ? new Map() : (await look(port, named.map((entry) => entry.path), signal)).files;
  const changed = [];
  for (const entry of named) {
    const state = seen.get(entry.path);
    const last = known.get(entry.path);
    if (state?.hash !== undefined && way.before?.get(entry.path) === state.hash) continue;
    const here = last !== undefined && last.hash === state?.hash ? last.hash : await hashHere(root, entry.path);
    if (state?.hash !== undefined && state.hash === here && isSameProgram(last, state)) result.unchanged += 1;
    else changed.push({ ...entry, here });
  }
  const taken = within(changed, way.limits, result.skipped);
  let left = way.limits?.maxBytes ?? Infinity;
  await fewAtATime(taken, async ({ path: file, here }) => {
    const reason = (await refusal(file, here)) ?? (await fetch(file));
    if (reason !== undefined) result.skipped.push({ path: file, reason });
  });

  /** @param {string} file @returns {Promise<string | undefined>} */
  async function fetch(file) {
    const most = Math.min(way.limits?.maxFileBytes ?? Infinity, left, 2 ** 31 - 1);
    /** @type {Uint8Array | null} */
    let bytes;
    try {
      bytes = await get(port, file, Math.max(most, 1), signal);
    } catch (error) {
      if (!isTooLarge(error)) throw error;
      return "it has grown beyond the limit meanwhile";
    }
    if (bytes === null) return "it is gone";
    // It may have grown since it was listed, and others beside it.
    if (bytes.length > left) return "all together have more bytes than the limit";
    left -= bytes.length;
    const isProgram = seen.get(file)?.isProgram ?? false;
    const refused = await putFile(root, file, bytes, isProgram);
    if (refused !== undefined) return refused;
    const info = await lstat(path.join(root, file)).catch(() => undefined);
    if (info) known.set(file, { hash: await hashOf(bytes), isProgram, size: info.size, mtimeMs: info.mtimeMs });
    result.files += 1;
    result.bytes += bytes.length;
    return undefined;
  }

  result.skipped.sort(byPath);
  result.durationMs = Math.round(performance.now() - began);
  return result;
}

/**
 * The files that may come. Of the others it is told why, of a folder that is left out as a whole once. There may be very many.
 *
 * @template {{ path: string }} T
 * @param {T[]} all
 * @param {Way} way
 * @param {Skip[]} skipped
 */
async function wanted(all, { leftOutBy }, skipped) {
  const kept = [];
  /** @type {Map<string, string>} */
  const leftOut = new Map();
  for (const [index, entry] of all.entries()) {
    if (index % FILES_PER_TURN === FILES_PER_TURN - 1) await otherWork();
    const file = entry.path;
    const bad = badName(file);
    const pattern = bad === undefined ? leftOutBy(file) : undefined;
    if (bad !== undefined) skipped.push({ path: file, reason: bad });
    else if (pattern === undefined) kept.push(entry);
    else leftOut.set(topOf(file, leftOutBy), pattern);
  }
  for (const [name, pattern] of leftOut) skipped.push({ path: name, reason: `left out by the pattern ${pattern}` });
  return kept;
}

/** The uppermost folder of a file that is left out; else the file. @param {string} file @param {Way["leftOutBy"]} leftOutBy */
function topOf(file, leftOutBy) {
  for (let slash = file.indexOf("/"); slash >= 0; slash = file.indexOf("/", slash + 1)) {
    const folder = file.slice(0, slash);
    if (leftOutBy(folder, true) !== undefined) return folder;
  }
  return file;
}

/** @param {string} root @param {string} file */
async function hashHere(root, file) {
  const bytes = await bytesOfFile(root, file);
  return typeof bytes === "string" ? undefined : await hashOf(bytes);
}

/** @param {Known | undefined} last @param {Seen} seen */
function isSameProgram(last, seen) {
  return last === undefined || last.isProgram === seen.isProgram;
}

/** @param {{ path: string }} a @param {{ path: string }} b */
function byPath(a, b) {
  return a.path < b.path ? -1 : Number(a.path > b.path);
}

/** @template {{ path: string }} T @param {T[]} entries */
function sorted(entries) {
  return entries.sort(byPath);
}
