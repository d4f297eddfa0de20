// A command through the runner's programs alone: what a provider's wire does with them, in JavaScript.
import assert from "node:assert/strict";

import { newTag, runText, text } from "./support.js";

const programs = Object.fromEntries(
  ["run_shell", "run_code", "ask", "fetch", "forget", "stop", "store", "list"].map((name) => [name, text(name)]),
);

/** @param {string | Buffer} bytes */
const base64 = (bytes) => Buffer.from(bytes).toString("base64");

/** Reads a report. @param {Buffer} printed @param {string} tag */
export function readReport(printed, tag) {
  const lines = printed.toString("latin1").split("\n");
  const at = lines.findIndex((line) => line.startsWith(`${tag} `));
  assert.ok(at >= 0, `no report: ${printed.toString().slice(0, 300)}`);
  assert.equal(lines[at + 5], `${tag} end`);
  const [, end, code, gone, outSize, errSize, background, lostOut, lostErr] = lines[at].split(" ");
  const [outHead, outTail, errHead, errTail] = lines.slice(at + 1, at + 5).map((line) => Buffer.from(line, "base64"));
  return {
    end,
    code: Number(code),
    gone: gone === "1",
    sizes: [Number(outSize), Number(errSize)],
    background: Number(background),
    lost: [Number(lostOut), Number(lostErr)],
    out: Buffer.concat([outHead, outTail]),
    err: Buffer.concat([errHead, errTail]),
    stdout: Buffer.concat([outHead, outTail]).toString(),
    stderr: Buffer.concat([errHead, errTail]).toString(),
  };
}

/**
 * @param {any} shell
 * @param {keyof typeof programs} name
 * @param {string} tag
 * @param {(string | number)[]} [words]
 * @param {any} [options]
 */
export async function ask(shell, name, tag, words = [], options = {}) {
  const { stdout } = await runText(shell, programs[name], ["sh", tag, ...words.map(String)], options);
  return readReport(stdout, tag);
}

/** @param {any} shell @param {string[]} tags */
export const forget = (shell, ...tags) => ask(shell, "forget", newTag(), tags);

/**
 * @param {any} shell
 * @param {any} command { text, kind, shell, input, env, cwd, limit, head, tail, letters, tag, forget }
 * @param {any} [options] of the process that runs the line
 */
export async function run(shell, command, options = {}) {
  const { tag = newTag(), kind = "shell", limit = 0, head = 1 << 20, tail = 0, letters = "" } = command;
  const source = command.source ?? base64(command.text);
  const input = command.inputSource ?? (command.input === undefined ? "" : base64(command.input));
  const program = kind === "shell" ? "run_shell" : "run_code";
  const words = [
    command.cwd ?? "", limit, head, tail, letters, kind, command.shell ?? "", source, input,
    command.envSource ?? (command.env === undefined ? "" : base64(command.env)), ...(command.forget ?? []),
  ];
  return { tag, ...(await ask(shell, program, tag, words, options)) };
}
