// What a call is asked to run: the names of its options, and checks of what they say.
import { meantWord } from "./meant.js";
import { checkItems, checkString, checkWord, invalid, kindOf, shownWord } from "./options.js";

/** @import { NativeSpec } from "./native.js" */

/** Options of run() and shell(). */
export const RUN_OPTIONS = Object.freeze(["language", "timeoutSeconds", "env", "signal"]);
/** What exec() takes. */
export const EXEC_OPTIONS = Object.freeze([
  "command", "code", "language", "context", "argv", "cwd", "env", "stdin", "timeoutSeconds", "maxOutputBytes",
  "truncate", "mergeStreams", "shell", "background", "encoding", "onStdout", "onStderr", "signal",
]);
export const EXEC_ONLY = Object.freeze({ names: EXEC_OPTIONS, words: "exec() takes it" });
/** The same for what is given to a constructor. */
export const CALL_ONLY = Object.freeze({ names: EXEC_OPTIONS, words: "it is given with each call: exec() takes it" });

/** Languages of run(), the default first. */
export const LANGUAGES = Object.freeze(/** @type {const} */ (["python", "node", "shell"]));
const CODE_LANGUAGES = /** @type {const} */ (["python", "node"]);

/** @param {unknown} shell */
export function checkShell(shell) {
  const text = checkString(shell, "shell");
  if (text === "bash" || text === "sh" || (text.startsWith("/") && !text.includes("\0"))) return text;
  throw invalid(`\`shell\` must be "bash", "sh" or an absolute path such as "/bin/zsh", not ${shownWord(text)}`);
}

/**
 * @param {Record<string, any>} spec
 * @returns {NativeSpec}
 */
export function whatToRun({ command, code, language, context, argv }) {
  const given = [command, code, argv].filter((value) => value !== undefined).length;
  if (given !== 1) throw invalid("exec: give one of { command }, { code, language } or { argv }, and only one");
  if (language !== undefined && code === undefined) throw invalid("exec: `language` belongs to `code` only");
  if (context !== undefined) checkContext(context, code);
  if (command !== undefined) return { kind: "shell", text: checkString(command, "command") };
  if (code !== undefined) {
    checkString(code, "code");
    if (meantWord(language, ["shell"])) throw invalid("exec: a command line for the shell is `command`; leave out `code` and `language`");
    return { kind: "code", text: code, language: checkWord(language ?? "python", CODE_LANGUAGES, "language"), context };
  }
  const wanted = 'an array of strings such as ["ls", "-l"], with the program first';
  const checked = checkItems(argv, "argv", wanted, (item) => {
    if (typeof item === "string") return item;
    throw invalid(`\`argv\` must be ${wanted}; one item is ${kindOf(item)}`);
  });
  if (checked.length === 0) throw invalid(`\`argv\` must be ${wanted}; it is empty`);
  return { kind: "argv", argv: checked };
}

/**
 * @param {unknown} context name of an interpreter's context
 * @param {string | undefined} code undefined when it is no code that runs
 */
export function checkContext(context, code) {
  if (checkString(context, "context") === "") throw invalid("`context` must not be empty; leave it out for the default one");
  if (code === undefined) throw invalid("`context` belongs to code only");
}
