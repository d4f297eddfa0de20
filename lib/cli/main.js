#!/usr/bin/env node
// The command `cloudsandbox`. Nothing of this folder is imported by the package itself.
//
// Invariant: standard output has what was asked for and nothing else; all that is said about it goes to standard error,
// an error as one sentence with what to do.
import { SandboxError } from "../errors.js";
import { meantName } from "../meant.js";
import { COMMANDS, helpFor, helpForAll } from "./help.js";
import { UsageError, parse } from "./parse.js";

const { readFileSync } = process.getBuiltinModule("node:fs");

/** Wrong use, as most programs have it; and what failed before or around the command, as with containers. */
const EXIT_USAGE = 2;
const EXIT_FAILED = 125;
/** 128 and SIGPIPE. */
const EXIT_PIPE = 141;

process.stdout.on("error", (error) => {
  // Who reads has had enough, as `head` has.
  process.exit(/** @type {NodeJS.ErrnoException} */ (error).code === "EPIPE" ? EXIT_PIPE : EXIT_FAILED);
});
process.exitCode = await main(process.argv.slice(2));

/** @param {string[]} args @returns {Promise<number>} the exit code */
async function main([name, ...args]) {
  if (name === undefined || name === "help" || name === "--help" || name === "-h") return print(args[0] && args[0] in COMMANDS ? helpFor(args[0]) : helpForAll());
  if (name === "--version" || name === "version") return print(`${JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")).version}\n`);
  try {
    const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
    if (!command) {
      const meant = meantName(name, Object.keys(COMMANDS));
      throw new UsageError(`there is no command "${name.slice(0, 60)}"${meant ? `; did you mean ${meant}` : ""}`);
    }
    if (wantsHelp(name, args)) return print(helpFor(name));
    const { values, positionals } = parse(name, command, args);
    return await (await command.load())(values, positionals);
  } catch (error) {
    return report(error, name);
  }
}

/** @param {string} name @param {string[]} args */
function wantsHelp(name, args) {
  const own = name === "shell" ? args.slice(0, 1) : args;
  return own.includes("--help") || own.includes("-h");
}

/** @param {string} text */
function print(text) {
  process.stdout.write(text);
  return 0;
}

/** @param {any} error @param {string} name */
function report(error, name) {
  if (error instanceof UsageError) {
    process.stderr.write(`cloudsandbox: ${error.message}${/[.?]$/.test(error.message) ? "" : "."} See \`cloudsandbox ${name in COMMANDS ? `${name} ` : ""}--help\`.\n`);
    return EXIT_USAGE;
  }
  const isOwn = error instanceof SandboxError || typeof error?.syscall === "string";
  const here = error?.code === "ERR_SANDBOX_ISOLATION_UNAVAILABLE" && error.provider === "isolated-local" ? " (here: --provider unix-local)" : "";
  process.stderr.write(`cloudsandbox: ${isOwn ? error.message + here : (error?.stack ?? String(error))}\n`);
  return error?.code === "ERR_SANDBOX_INVALID_ARG" ? EXIT_USAGE : EXIT_FAILED;
}
