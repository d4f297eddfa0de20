// The tools whose schemas Anthropic has defined: bash, and memory. Part of "cloudsandbox/anthropic".
//
// Invariant: to a model bash is one shell that goes on. It is a new process each time, so the directory and the exported
// variables are printed at its end, in base64 between marks that no output has, and are set again at the next start. What
// a background process prints amid them makes them void, and is never run.
import { checkNames, invalid } from "../options.js";
import { toolCall } from "../sandbox.js";
import { shortened } from "../tool-extras.js";
import { checkSandbox } from "../toolkit.js";

const { randomUUID } = process.getBuiltinModule("node:crypto");
const { posix } = process.getBuiltinModule("node:path");

/** @import { CloudSandbox } from "../../types/index.js" */
/** @import { AnthropicBashTool, AnthropicMemoryHandlers } from "../../types/adapters/anthropic.js" */

const ROOT = "/memories";
/** Variables that belong to a process and not to a session. */
const OF_PROCESS = /^(declare -x|export) (PWD|OLDPWD|SHLVL|_|RANDOM)(=|$)/;
const DEFAULT_SECONDS = 120;
const MAX_CHARS = 50_000;
/** Files of a folder that are listed: two levels of it. */
const LEVELS = 2;
/** How commands of ours say that there is nothing, or that there is something already. */
const EXIT_ABSENT = 44;
const EXIT_TAKEN = 45;

/**
 * @param {CloudSandbox} sandbox
 * @param {{ timeoutSeconds?: number, maxToolOutputChars?: number }} [options]
 * @returns {AnthropicBashTool}
 */
export function anthropicBashTool(sandbox, options) {
  checkSandbox(sandbox, "anthropicBashTool");
  const { timeoutSeconds = DEFAULT_SECONDS, maxToolOutputChars = MAX_CHARS } = checkNames(options, ["timeoutSeconds", "maxToolOutputChars"], "anthropicBashTool");
  const mark = `cloudsandbox-${randomUUID()}`;
  const end = `trap 'cloudsandbox_code=$?; printf "\\n%s\\n%s\\n%s\\n" ${mark} "$( (pwd; export -p) | base64 | tr -d "\\n")" ${mark}; exit $cloudsandbox_code' EXIT\n`;
  const told = new RegExp(`\\n${mark}\\n([A-Za-z0-9+/=]*)\\n${mark}\\n`);
  let session = "";
  /** Commands of one shell run one after another. @type {Promise<unknown>} */
  let last = Promise.resolve();

  /** @param {string} command @param {AbortSignal | undefined} signal */
  async function execute(command, signal) {
    if (signal?.aborted) throw signal.reason;
    // Of a long output both ends are kept, so the marks are.
    const asked = { timeoutSeconds, ...(signal && { signal }), [toolCall]: {} };
    const result = await sandbox.shell(`${session}${end}${command}`, asked);
    const [state, ended = ""] = told.exec(result.output) ?? [];
    const output = state === undefined ? result.output : result.output.replace(state, () => "");
    if (ended !== "") session = sessionOf(Buffer.from(ended, "base64").toString());
    const note = result.timedOut ? `[stopped after ${timeoutSeconds} s]` : result.exitCode === 0 ? "" : `[exit code ${result.exitCode}]`;
    const lost = result.outputTruncated ? "\n[there was more output]" : "";
    const bounded = shortened(output + lost, "", 0, maxToolOutputChars - note.length - 1, (missing) => `[${missing} left out here; write the output to a file to see them]`);
    return note === "" ? bounded : `${bounded}${bounded === "" || bounded.endsWith("\n") ? "" : "\n"}${note}`;
  }
  return {
    type: "bash_20250124",
    name: "bash",
    parse: (input) => input,
    run({ command, restart } = {}, context) {
      const mine = last.then(() => {
        if (restart) session = "";
        if (typeof command === "string" && command !== "") return execute(command, context?.signal ?? undefined);
        if (restart) return "the shell was started anew: in the first directory, with the first variables; files are as they were";
        throw invalid("bash was not run: give a `command`, or `restart`");
      });
      last = mine.catch(() => {});
      return mine;
    },
  };
}

/** Command lines that bring back a directory and variables. @param {string} told */
function sessionOf(told) {
  const [directory, ...lines] = told.split("\n");
  /** @type {string[]} */
  const kept = [];
  let isOf = false;
  for (const line of lines) {
    // A value may have several lines; a name begins one.
    if (/^(declare -x|export) [A-Za-z_]/.test(line)) isOf = OF_PROCESS.test(line);
    if (!isOf) kept.push(line);
  }
  return `${kept.join("\n")}\ncd -- ${quoted(directory)} || exit\n`;
}

/**
 * What `betaMemoryTool()` of Anthropic's SDK takes: `/memories` is a folder of the sandbox.
 *
 * @param {CloudSandbox} sandbox
 * @param {{ folder?: string }} [options]
 * @returns {AnthropicMemoryHandlers}
 */
export function anthropicMemory(sandbox, options) {
  checkSandbox(sandbox, "anthropicMemory");
  const { folder = "memories" } = checkNames(options, ["folder"], "anthropicMemory");
  /** @param {string} path as a model has it */
  const within = (path) => {
    const plain = typeof path === "string" && !path.includes("\0") ? posix.normalize(path).replace(/(.)\/$/, "$1") : "";
    if (plain !== ROOT && !plain.startsWith(`${ROOT}/`)) throw new Error(`${path} is outside ${ROOT}: every path begins with ${ROOT}/`);
    return folder + plain.slice(ROOT.length);
  };
  /** @param {string} path */
  const below = (path) => {
    const inside = within(path);
    if (inside === folder) throw new Error(`${ROOT} itself stays as it is: name what is in it`);
    return inside;
  };
  /** @param {string} path */
  const content = async (path) => {
    const text = await sandbox.readFile(within(path), "utf8");
    if (text === null) throw absent(path);
    return text;
  };
  /** @param {string} line @param {string} path @param {string} [taken] */
  const command = async (line, path, taken = "") => {
    const { exitCode, output } = await sandbox.shell(line, {});
    if (exitCode === EXIT_ABSENT) throw absent(path);
    if (exitCode === EXIT_TAKEN) throw new Error(`there is something at ${taken} already; nothing was changed`);
    if (exitCode !== 0) throw new Error(output.trim().slice(0, 500) || `exit code ${exitCode}`);
    return output;
  };
  return {
    async view({ path, view_range: range }) {
      const inside = within(path);
      const place = quoted(inside);
      const list = `find . -mindepth 1 -maxdepth ${LEVELS} \\( -name '.*' -o -name node_modules \\) -prune -o -mindepth 1 -type d -exec printf '%s/\\n' {} \\; -o -mindepth 1 -print`;
      const kind = await command(`${inside === folder ? `mkdir -p ${place}; ` : ""}if [ -d ${place} ]; then echo folder; cd ${place} && ${list}; elif [ -e ${place} ]; then echo file; else exit ${EXIT_ABSENT}; fi`, path);
      if (kind.startsWith("folder\n")) {
        const names = kind.split("\n").slice(1, -1).map((name) => `${path.replace(/\/$/, "")}/${name.slice(2)}`).sort();
        return `${path} has, in two levels:\n${names.length > 0 ? names.join("\n") : "(nothing)"}`;
      }
      const lines = (await content(path)).replace(/\n$/, "").split("\n");
      const [from, to] = Array.isArray(range) ? [range[0], range[1] === -1 ? lines.length : range[1]] : [1, lines.length];
      if (!(from >= 1 && to >= from && from <= lines.length)) throw new Error(`\`view_range\` must be within lines 1 to ${lines.length}`);
      return `${path}, lines ${from} to ${Math.min(to, lines.length)} of ${lines.length}:\n${lines.slice(from - 1, to).map((line, index) => `${String(from + index).padStart(6)}\t${line}`).join("\n")}`;
    },
    async create({ path, file_text: text }) {
      const inside = below(path);
      if ((await sandbox.readFile(inside, "utf8")) !== null) throw new Error(`there is a file ${path} already; change it with str_replace or insert, or delete it first`);
      await sandbox.writeFile(inside, text, "utf8");
      return `created ${path}`;
    },
    async str_replace({ path, old_str: old, new_str: replacement }) {
      const text = await content(path);
      const count = old === "" ? 0 : text.split(old).length - 1;
      if (count !== 1) throw new Error(`\`old_str\` is in ${path} ${count} times, and must be there once; nothing was changed`);
      await sandbox.writeFile(below(path), text.split(old).join(replacement), "utf8");
      return `changed ${path}`;
    },
    async insert({ path, insert_line: line, insert_text: added }) {
      const text = await content(path);
      const lines = text === "" ? [] : text.replace(/\n$/, "").split("\n");
      if (!Number.isInteger(line) || line < 0 || line > lines.length) throw new Error(`\`insert_line\` must be 0 to ${lines.length}; nothing was changed`);
      lines.splice(line, 0, added.replace(/\n$/, ""));
      await sandbox.writeFile(below(path), `${lines.join("\n")}\n`, "utf8");
      return `changed ${path}`;
    },
    async delete({ path }) {
      const place = quoted(below(path));
      await command(`[ -e ${place} ] || [ -L ${place} ] || exit ${EXIT_ABSENT}; rm -r -- ${place}`, path);
      return `deleted ${path}`;
    },
    async rename({ old_path: from, new_path: to }) {
      const [old, place] = [quoted(below(from)), quoted(below(to))];
      const parent = quoted(posix.dirname(below(to)));
      await command(`[ -e ${old} ] || exit ${EXIT_ABSENT}; [ ! -e ${place} ] || exit ${EXIT_TAKEN}; mkdir -p -- ${parent} && mv -- ${old} ${place}`, from, to);
      return `renamed ${from} to ${to}`;
    },
  };
}

/** @param {string} path */
function absent(path) {
  return new Error(`there is no ${path}; view ${ROOT} shows what there is`);
}

/** One word of a command line. @param {string} text */
function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
