// Models write Markdown, and some put code that goes into a tool's argument into a fence as well. A shell
// takes such a fence for a command substitution, and runs the *output* of what is inside.

/** What the word behind a fence stands for. */
const LANGUAGES = new Map(
  Object.entries({
    python: "python py python3 py3 ipython",
    node: "node nodejs js javascript mjs cjs",
    shell: "sh bash shell zsh dash ksh",
  }).flatMap(([language, words]) => words.split(" ").map((word) => [word, /** @type {"python" | "node" | "shell"} */ (language)])),
);

/** A line that opens or closes a fence: indent, marks, and the words behind them. */
const MARKS = /^([ \t]*)(`{3,}|~{3,})(.*)$/s;

/**
 * What is inside when all of `text` is one fence, and the language that its word names; else `text`.
 *
 * @param {string} text
 * @returns {{ text: string, language?: "python" | "node" | "shell" }}
 */
export function unfenced(text) {
  if (!/^\s*(```|~~~)/.test(text)) return { text };
  const lines = text.replace(/^(?:[ \t]*\r?\n)+/, "").trimEnd().split("\n");
  const [, indent, marks, info] = MARKS.exec(lines[0]) ?? [];
  // Words with a backtick: this is code in a line, as in ```ls```.
  if (marks === undefined || info.includes("`")) return { text };
  const closing = lines.findIndex((line, index) => index > 0 && closes(line, marks));
  if (closing < 0 || closing !== lines.length - 1) return { text };
  const inside = lines.slice(1, -1).map((line) => (indent && line.startsWith(indent) ? line.slice(indent.length) : line));
  const language = LANGUAGES.get(info.trim().split(/[\s{]/, 1)[0].toLowerCase());
  return { text: inside.map((line) => `${line}\n`).join(""), ...(language && { language }) };
}

/** @param {string} line @param {string} marks that opened the fence */
function closes(line, marks) {
  const [, , own, words] = MARKS.exec(line) ?? [];
  return words?.trim() === "" && own[0] === marks[0] && own.length >= marks.length;
}
