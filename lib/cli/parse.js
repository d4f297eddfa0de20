// Arguments of a command.
const { parseArgs } = process.getBuiltinModule("node:util");

/** @import { Command } from "./help.js" */

/** Wrong use of the command line. */
export class UsageError extends Error {}

/**
 * @param {string} name
 * @param {Command} command
 * @param {string[]} args
 * @returns {{ values: Record<string, any>, positionals: string[] }}
 */
export function parse(name, { options, takes, rest = false }, args) {
  const config = Object.fromEntries(Object.entries(options).map(([option, { type, short, multiple = false }]) => [option, { type, multiple, ...(short && { short }) }]));
  let own = args;
  let tail = /** @type {string[]} */ ([]);
  if (rest) {
    // What begins with the first word that is no option is the command's, options and all.
    const { tokens } = parseArgs({ args, options: config, strict: false, allowPositionals: true, tokens: true });
    const first = tokens.find((token) => token.kind === "positional" || token.kind === "option-terminator");
    if (first) {
      own = args.slice(0, first.index);
      tail = args.slice(first.kind === "positional" ? first.index : first.index + 1);
    }
  }
  let parsed;
  try {
    parsed = parseArgs({ args: own, options: config, strict: true, allowPositionals: true });
  } catch (error) {
    throw new UsageError(/** @type {Error} */ (error).message.split(". ")[0]);
  }
  const positionals = [...parsed.positionals, ...tail];
  const [least, most] = takes;
  if (positionals.length < least) throw new UsageError(`${name} needs ${least === 1 ? "an argument" : `${least} arguments`}`);
  if (positionals.length > most) throw new UsageError(`${name} takes ${most === 0 ? "no argument" : `at most ${most === 1 ? "one argument" : `${most} arguments`}`}, and "${positionals[most].slice(0, 60)}" is one too many`);
  return { values: parsed.values, positionals };
}

/** @param {string | undefined} text @param {string} option @returns {number | undefined} */
export function seconds(text, option) {
  if (text === undefined) return undefined;
  const number = Number(text);
  if (text.trim() !== "" && number > 0) return number;
  throw new UsageError(`--${option} must be a number of seconds above 0`);
}
