// An emulator as a program of its own: what such a program does, and how a test starts one.
// @ts-check
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import readline from "node:readline";

/** @typedef {import("./engine.js").Engine} Engine */

/** Options that the program of every emulator has. For `parseArgs()`. */
export const PROGRAM_OPTIONS = /** @type {const} */ ({
  fault: { type: "string", multiple: true },
  "until-stdin-closes": { type: "boolean", default: false },
  help: { type: "boolean", default: false },
});

/** The same, as their users see them. */
export const PROGRAM_USAGE = `\
  --fault=JSON          what engine.fault() is called with: [route, fault, scope]; may be given more than once
  --until-stdin-closes  end when standard input does
`;

/**
 * Tells the emulator's addresses and keys in one line of JSON, and closes it on SIGINT, SIGTERM or SIGHUP, or
 * with standard input when that is asked for. Nobody can look into this process, so it tells by its exit code,
 * and on standard error, whether something was wrong.
 * @param {{ engine: Engine, complaints?: string[], close(): Promise<void> }} emulator
 * @param {Record<string, string>} told
 * @param {{ fault?: string[], "until-stdin-closes": boolean }} values
 */
export function serveProgram(emulator, told, values) {
  const { engine } = emulator;
  for (const text of values.fault ?? []) {
    const [route, fault, scope] = JSON.parse(text);
    engine.fault(route, fault, scope);
  }
  const stop = async () => {
    await emulator.close();
    const wrong = [...engine.errors, ...(emulator.complaints ?? [])];
    for (const what of wrong) console.error(what);
    process.exit(wrong.length > 0 ? 1 : 0);
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, stop);
  if (values["until-stdin-closes"]) process.stdin.on("end", stop).resume();
  process.stdout.write(`${JSON.stringify(told)}\n`);
}

/**
 * Starts the program of an emulator; it ends with this process at the latest.
 * @param {"e2b" | "daytona"} name
 * @param {...string} args
 */
export async function startProgram(name, ...args) {
  const main = path.join(import.meta.dirname, name, "main.js");
  // The emulators are programs of Node.js, whatever the test runs on.
  const { bun, deno } = process.versions;
  const child = spawn(bun || deno ? "node" : process.execPath, [main, "--until-stdin-closes", ...args], { stdio: ["pipe", "pipe", "inherit"] });
  const exited = once(child, "exit");
  const told = once(readline.createInterface(child.stdout), "line");
  const [line] = await Promise.race([
    told,
    exited.then(([code, signal]) => {
      throw new Error(`the emulator's program ended with ${code ?? signal}`);
    }),
  ]);
  return {
    /** What it tells: addresses and keys. @type {Record<string, string>} */
    told: JSON.parse(line),
    child,
    /** Its exit code and signal. */
    exited,
    /** Closes the emulator. */
    async close() {
      child.stdin.end();
      const [code, signal] = await exited;
      if (code !== 0) throw new Error(`the emulator's program ended with ${code ?? signal}`);
    },
  };
}
