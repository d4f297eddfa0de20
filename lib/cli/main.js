#!/usr/bin/env node
// The command `cloudsandbox`. Nothing of this folder is imported by the package itself.
//
// Invariant: standard output has what was asked for and nothing else; all that is said about it goes to standard error,
// an error as one sentence with what to do.
import { SandboxError } from "../errors.js";
import { meantName } from "../meant.js";
import { COMMANDS, helpFor, helpForAll } from "./help.js";
import { UsageError, ownArguments, parse } from "./parse.js";

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
    const { code, told } = explain(error, name);
    process.stderr.write(`cloudsandbox: ${told}\n`);
    if (wantsJson(name, args)) await new Promise((done) => process.stdout.write(`${JSON.stringify({ error: failure(error, told) })}\n`, done));
    return code;
  }
}

/** @param {string} name @param {string[]} args */
function wantsHelp(name, args) {
  const own = name === "shell" ? args.slice(0, 1) : args;
  return own.includes("--help") || own.includes("-h");
}

/** A wrong command line cannot be parsed; what is behind the first word of shell's is another program's. @param {string} name @param {string[]} args */
function wantsJson(name, args) {
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  return command !== undefined && "json" in command.options && ownArguments(command, args).includes("--json");
}

/** @param {string} text */
function print(text) {
  process.stdout.write(text);
  return 0;
}

/** @param {any} error @param {string} name @returns {{ code: number, told: string }} the exit code, and the sentence */
function explain(error, name) {
  if (error instanceof UsageError) {
    const told = `${error.message}${/[.?]$/.test(error.message) ? "" : "."} See \`cloudsandbox ${name in COMMANDS ? `${name} ` : ""}--help\`.`;
    return { code: EXIT_USAGE, told };
  }
  const isOwn = error instanceof SandboxError || typeof error?.syscall === "string";
  const here = error?.code === "ERR_SANDBOX_ISOLATION_UNAVAILABLE" && error.provider === "isolated-local" ? " (here: --provider unix-local)" : "";
  return {
    code: error?.code === "ERR_SANDBOX_INVALID_ARG" ? EXIT_USAGE : EXIT_FAILED,
    told: isOwn ? error.message + here : (error?.stack ?? String(error)),
  };
}

/** As JSON: what a program can act on. @param {any} error @param {string} message */
function failure(error, message) {
  if (error instanceof UsageError) return { code: "ERR_SANDBOX_INVALID_ARG", message, mayHaveRun: false };
  const { code, mayHaveRun = false, provider } = error ?? {};
  return { code: code ?? "ERR_UNEXPECTED", message, mayHaveRun, ...(provider !== undefined && { provider }) };
}
