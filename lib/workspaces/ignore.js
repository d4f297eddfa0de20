// Patterns as in a .gitignore file. The package that knows them loads with this module, which nobody loads before
// there are patterns. What git itself says of the same patterns and paths is the oracle of the tests.
//
// Invariant: what lies in a folder that is left out is left out, whatever later patterns say, as in git.
import ignore from "ignore";

/** Paths such as "../a" are refused by those who take them, each in its own words. */
const ANY_PATH = { allowRelativePaths: true };

/**
 * What says which pattern leaves a path out; undefined when none does.
 *
 * @param {readonly string[]} patterns the last one that fits a path decides
 * @param {{ ignoreCase?: boolean }} [options]
 * @returns {(path: string, isFolder?: boolean) => string | undefined} of a path with "/", relative to where the patterns belong
 */
export function ignoring(patterns, { ignoreCase = false } = {}) {
  const rules = ignore({ ...ANY_PATH, ignorecase: ignoreCase }).add(patterns);
  return (path, isFolder = false) => {
    const { ignored, rule } = rules.test(isFolder ? `${path}/` : path);
    return ignored ? rule?.pattern : undefined;
  };
}
