// Patterns as in a .gitignore file. What git itself says of the same patterns and paths is the oracle of the
// tests; one difference is meant: `?` and `[...]` stand for a character here, and for a byte there.
//
// Invariant: what lies in a folder that is left out is left out, whatever later patterns say, as in git.

/**
 * @typedef {object} Rule
 * @property {string} source as it was given
 * @property {boolean} negated it takes back in
 * @property {boolean} folderOnly
 * @property {boolean} anchored it is about the whole path; else about a name anywhere
 * @property {RegExp} expression
 */

/** Classes of characters that have a name in brackets. */
const CLASSES = new Map([
  ["alnum", "a-zA-Z0-9"], ["alpha", "a-zA-Z"], ["blank", " \\t"], ["cntrl", "\\x00-\\x1f\\x7f"], ["digit", "0-9"],
  ["graph", "\\x21-\\x7e"], ["lower", "a-z"], ["print", "\\x20-\\x7e"], ["punct", "!-\\/:-@\\[-`{-~"], ["space", "\\s"],
  ["upper", "A-Z"], ["xdigit", "0-9a-fA-F"],
]);

/**
 * What says which pattern leaves a path out; undefined when none does.
 *
 * @param {readonly string[]} patterns the last one that fits a path decides
 * @param {{ ignoreCase?: boolean }} [options]
 * @returns {(path: string, isFolder?: boolean) => string | undefined} of a path with "/", relative to where the patterns belong
 */
export function ignoring(patterns, { ignoreCase = false } = {}) {
  const rules = patterns.flatMap((pattern) => ruleOf(pattern, ignoreCase ? "iu" : "u") ?? []);
  /** What has been found of folders, which have many files each. @type {Map<string, string | undefined>} */
  const folders = new Map();

  /** @param {string} path @param {boolean} [isFolder] @returns {string | undefined} */
  const leftOutBy = (path, isFolder = false) => {
    if (isFolder && folders.has(path)) return folders.get(path);
    const slash = path.lastIndexOf("/");
    const above = slash < 0 ? undefined : leftOutBy(path.slice(0, slash), true);
    const found = above ?? decided(rules, path, path.slice(slash + 1), isFolder);
    if (isFolder) folders.set(path, found);
    return found;
  };
  return leftOutBy;
}

/** @param {Rule[]} rules @param {string} path @param {string} name @param {boolean} isFolder */
function decided(rules, path, name, isFolder) {
  const rule = rules.findLast(({ folderOnly, anchored, expression }) => {
    return (isFolder || !folderOnly) && expression.test(anchored ? path : name);
  });
  return rule && !rule.negated ? rule.source : undefined;
}

/** @param {string} source @param {string} flags @returns {Rule | undefined} */
function ruleOf(source, flags) {
  let pattern = withoutTrailingSpaces(source);
  if (pattern === "" || pattern.startsWith("#")) return undefined;
  const negated = pattern.startsWith("!");
  if (negated) pattern = pattern.slice(1);
  const folderOnly = pattern.endsWith("/");
  if (folderOnly) pattern = pattern.slice(0, -1);
  const anchored = pattern.includes("/");
  if (pattern.startsWith("/")) pattern = pattern.slice(1);
  const expression = pattern === "" ? undefined : expressionOf(pattern);
  if (expression === undefined) return undefined;
  return { source, negated, folderOnly, anchored, expression: new RegExp(`^${expression}$`, flags) };
}

/** Those that a backslash stands before are kept. @param {string} pattern */
function withoutTrailingSpaces(pattern) {
  let end = pattern.length;
  while (end > 0 && pattern[end - 1] === " " && !isEscaped(pattern, end - 1)) end -= 1;
  return pattern.slice(0, end);
}

/** @param {string} text @param {number} at */
function isEscaped(text, at) {
  let backslashes = 0;
  while (text[at - 1 - backslashes] === "\\") backslashes += 1;
  return backslashes % 2 === 1;
}

/**
 * A pattern as the source of a regular expression.
 *
 * @param {string} pattern
 * @returns {string | undefined} undefined for one that fits nothing, such as one with an open bracket
 */
function expressionOf(pattern) {
  const characters = [...pattern];
  let expression = "";
  for (let at = 0; at < characters.length; at += 1) {
    const character = characters[at];
    if (character === "*") {
      const stars = starsOf(characters, at);
      expression += stars.expression;
      at = stars.last;
    } else if (character === "[") {
      const bracket = bracketOf(characters, at);
      if (!bracket) return undefined;
      expression += bracket.expression;
      at = bracket.last;
    } else if (character === "\\") {
      at += 1;
      if (at === characters.length) return undefined;
      expression += literal(characters[at]);
    } else {
      expression += character === "?" ? "[^/]" : literal(character);
    }
  }
  return expression;
}

/**
 * One star stays in a name; two that stand alone between slashes go through folders.
 *
 * @param {string[]} characters
 * @param {number} first
 */
function starsOf(characters, first) {
  let end = first;
  while (characters[end] === "*") end += 1;
  const last = end - 1;
  const isAlone = (first === 0 || characters[first - 1] === "/") && (end === characters.length || characters[end] === "/");
  if (last === first || !isAlone) return { expression: "[^/]*", last };
  // With the slash behind it, it may stand for no folder at all.
  if (end === characters.length) return { expression: ".*", last };
  return { expression: "(?:.*/)?", last: end };
}

/**
 * @param {string[]} characters
 * @param {number} open
 * @returns {{ expression: string, last: number } | undefined}
 */
function bracketOf(characters, open) {
  let at = open + 1;
  const negated = characters[at] === "!" || characters[at] === "^";
  if (negated) at += 1;
  let members = "";
  let before = "";
  // The first one is a member, even "]".
  for (let isFirst = true; isFirst || characters[at] !== "]"; isFirst = false, at += 1) {
    let character = characters[at];
    if (character === undefined) return undefined;
    if (character === "[" && characters[at + 1] === ":") {
      const named = classOf(characters, at);
      if (!named) return undefined;
      members += named.members;
      at = named.last;
      before = "";
      continue;
    }
    const next = characters[at + 1];
    if (character === "-" && before !== "" && next !== undefined && next !== "]") {
      at += next === "\\" ? 2 : 1;
      character = characters[at];
      if (character === undefined) return undefined;
      // One from a greater to a lesser has no member but its first.
      if (before <= character) members += `-${inBracket(character)}`;
      before = "";
      continue;
    }
    if (character === "\\") {
      at += 1;
      character = characters[at];
      if (character === undefined) return undefined;
    }
    members += inBracket(character);
    before = character;
  }
  // Never a slash; and a class without members fits nothing.
  return { expression: negated ? `[^/${members}]` : `(?!/)[${members}]`, last: at };
}

/** @param {string[]} characters @param {number} open */
function classOf(characters, open) {
  const close = characters.indexOf("]", open + 2);
  if (close < 0 || characters[close - 1] !== ":") return undefined;
  const members = CLASSES.get(characters.slice(open + 2, close - 1).join(""));
  return members === undefined ? undefined : { members, last: close };
}

/** @param {string} character */
function inBracket(character) {
  return /[\\\]^[-]/.test(character) ? `\\${character}` : character;
}

/** @param {string} character */
function literal(character) {
  return /[\\^$.|?+*()[\]{}/]/.test(character) ? `\\${character}` : character;
}
