// Arguments of a command.
import { meantName } from "../meant.js";

const { parseArgs } = process.getBuiltinModule("node:util");

/** @import { Command } from "./help.js" */

/** Wrong use of the command line. */
export class UsageError extends Error {}

/** @param {Command} command */
function configOf({ options }) {
  return Object.fromEntries(Object.entries(options).map(([option, { type, short, multiple = false }]) => [option, { type, multiple, ...(short && { short }) }]));
}

/**
 * The arguments that are this program's: where a command line follows, what begins with the first word that is no option is not.
 *
 * @param {Command} command
 * @param {string[]} args
 */
export function ownArguments(command, args) {
  return split(command, args).own;
}

/** @param {Command} command @param {string[]} args */
function split(command, args) {
  if (!command.rest) return { own: args, tail: [] };
  const { tokens } = parseArgs({ args, options: configOf(command), strict: false, allowPositionals: true, tokens: true });
  const first = tokens.find((token) => token.kind === "positional" || token.kind === "option-terminator");
  if (!first) return { own: args, tail: [] };
  return { own: args.slice(0, first.index), tail: args.slice(first.kind === "positional" ? first.index : first.index + 1) };
}

/**
 * @param {string} name
 * @param {Command} command
 * @param {string[]} args
 * @returns {{ values: Record<string, any>, positionals: string[] }}
 */
export function parse(name, command, args) {
  const { own, tail } = split(command, args);
  let parsed;
  try {
    parsed = parseArgs({ args: own, options: configOf(command), strict: true, allowPositionals: true });
  } catch (error) {
    throw new UsageError(`${/** @type {Error} */ (error).message.split(". ")[0]}${meantOption(error, command)}`);
  }
  const positionals = [...parsed.positionals, ...tail];
  const [least, most] = command.takes;
  if (positionals.length < least) throw new UsageError(`${name} needs ${least === 1 ? "an argument" : `${least} arguments`}`);
  if (positionals.length > most) {
    const much = most === 0 ? "no argument" : `at most ${most === 1 ? "one argument" : `${most} arguments`}`;
    throw new UsageError(`${name} takes ${much}, and "${positionals[most].slice(0, 60)}" is one too many${command.tooMany ? `; ${command.tooMany}` : ""}`);
  }
  return { values: parsed.values, positionals };
}

/** @param {unknown} error of parseArgs @param {Command} command */
function meantOption(error, { options }) {
  const { code, message } = /** @type {NodeJS.ErrnoException} */ (error);
  const [, wrong] = (code === "ERR_PARSE_ARGS_UNKNOWN_OPTION" && /^Unknown option '--([^']*)'/.exec(message)) || [];
  const meant = wrong && meantName(wrong, Object.keys(options));
  return meant ? `; did you mean ${meant.replaceAll("`", "").replace(/^|(?<= or |, )/g, "--")}` : "";
}

/** @param {string | undefined} text @param {string} option @returns {number | undefined} */
export function seconds(text, option) {
  if (text === undefined) return undefined;
  const number = Number(text);
  if (text.trim() !== "" && number > 0) return number;
  throw new UsageError(`--${option} must be a number of seconds above 0`);
}
