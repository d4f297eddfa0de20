// The commands of a sandbox agent of the OpenAI Agents SDK: one that takes longer than the model waits for goes on, and has a number.
import { messageOf } from "./shared.js";

/** Characters of one command that wait for the model; the oldest go first. */
const MOST_WAITING = 1024 * 1024;
const MOST_RUNNING = 64;
const CHARACTERS_PER_TOKEN = 4;
const DEFAULT_TOKENS = 12_500;
const INTERRUPT = "\u0003";
const TERMINAL = { columns: 120, rows: 40 };

/**
 * @typedef {object} Running
 * @property {string} waiting what the model has not seen
 * @property {number} lost characters before it
 * @property {boolean} hasEnded
 * @property {string} end how it ended
 * @property {Promise<void>} ended
 * @property {AbortController} controller
 * @property {boolean} terminal
 * @property {Promise<any>} [child] where its input stays open
 */

export class Commands {
  #sandbox;
  #env;
  #mostTokens;
  /** @type {Map<number, Running>} */
  #running = new Map();
  #last = 0;

  /** @param {any} sandbox @param {Record<string, string>} env @param {number} [mostTokens] of one answer, unless the model asks for less */
  constructor(sandbox, env, mostTokens = DEFAULT_TOKENS) {
    this.#sandbox = sandbox;
    this.#env = env;
    this.#mostTokens = mostTokens;
  }

  /**
   * @param {import("../../types/adapters/openai-agents.js").OpenAIAgentsCommand} command
   * @returns {Promise<string>}
   */
  async run({ cmd, workdir, shell, tty = false, yieldTimeMs = 10_000, maxOutputTokens, runAs }) {
    if (runAs !== undefined) return "Error: this sandbox has one user, so runAs is not there. Nothing was run. Call it again without.";
    const terminal = tty && this.#sandbox.capabilities?.tty === true;
    if (tty && !terminal) return "Error: this sandbox has no terminal. Nothing was run. Call it again without tty; its input stays open for write_stdin all the same.";
    if (this.#running.size >= MOST_RUNNING) return `Error: ${MOST_RUNNING} commands run already. Nothing was run. End one of them with write_stdin and "\\u0003" first.`;
    const began = performance.now();
    const what = shell === undefined ? cmd : [shell, "-c", cmd];
    /** @type {Running} */
    const running = { waiting: "", lost: 0, hasEnded: false, end: "", ended: Promise.resolve(), controller: new AbortController(), terminal };
    running.ended = this.#begin(running, what, workdir);
    const id = ++this.#last;
    this.#running.set(id, running);
    return this.#answer(id, began, yieldTimeMs, maxOutputTokens);
  }

  /**
   * @param {{ sessionId: number, chars?: string, yieldTimeMs?: number, maxOutputTokens?: number }} args
   * @returns {Promise<string>}
   */
  async write({ sessionId, chars = "", yieldTimeMs = 250, maxOutputTokens }) {
    const running = this.#running.get(sessionId);
    if (!running) return `Error: no command has the session ID ${sessionId}: it has ended, and its output was shown, or it never was.`;
    const began = performance.now();
    try {
      if (chars !== "") await this.#send(running, chars, yieldTimeMs);
    } catch (error) {
      return `Error: ${messageOf(error)}`;
    }
    return this.#answer(sessionId, began, yieldTimeMs, maxOutputTokens);
  }

  /** Ends all that still run. */
  async end() {
    const all = [...this.#running.values()];
    for (const { controller } of all) controller.abort();
    await Promise.all(all.map(({ ended }) => ended));
  }

  /** @param {Running} running @param {string | string[]} what @param {string | undefined} cwd */
  async #begin(running, what, cwd) {
    const push = (/** @type {string} */ text) => {
      running.waiting += text;
      // Seldom, since each time moves all of it.
      if (running.waiting.length < 2 * MOST_WAITING) return;
      const over = running.waiting.length - MOST_WAITING;
      running.lost += over;
      running.waiting = running.waiting.slice(over);
    };
    const options = {
      cwd, env: this.#env, timeoutSeconds: Infinity, signal: running.controller.signal, onStdout: push, onStderr: push,
      maxOutputBytes: 1, // It is collected here.
      ...(running.terminal && { tty: TERMINAL }),
    };
    try {
      const spawns = this.#sandbox.capabilities?.spawn === true;
      if (spawns) running.child = this.#sandbox.spawn(what, options);
      const { status, exitCode, signal } = await (running.child
        ? (await running.child).wait()
        : this.#sandbox.exec({ ...options, ...(typeof what === "string" ? { command: what } : { argv: what }) }));
      running.end = status === "cancelled" ? "Process was ended" : `Process exited with code ${exitCode}${signal ? ` (${signal})` : ""}`;
    } catch (error) {
      running.end = `Error: ${messageOf(error)}`;
    }
    running.hasEnded = true;
  }

  /** @param {Running} running @param {string} chars @param {number} waitMs */
  async #send(running, chars, waitMs) {
    const { controller } = running;
    const child = await running.child;
    if (chars === INTERRUPT && !running.terminal) return void (child ? await child.kill("SIGINT") : controller.abort());
    if (!child) throw new Error("the input of a command does not stay open in this sandbox, and nothing was written; write what it reads to a file");
    // What the command does not read at once is not waited for; an error shows in how it ends.
    await within(child.write(chars), waitMs);
  }

  /** @param {number} id @param {number} began @param {number} waitMs @param {number | undefined} tokens */
  async #answer(id, began, waitMs, tokens = this.#mostTokens) {
    const running = /** @type {Running} */ (this.#running.get(id));
    await within(running.ended, waitMs);
    if (running.hasEnded) this.#running.delete(id);
    const { waiting, lost } = running;
    running.waiting = "";
    running.lost = 0;
    const most = tokens * CHARACTERS_PER_TOKEN;
    const parts = [
      `Wall time: ${((performance.now() - began) / 1000).toFixed(4)} seconds`,
      running.hasEnded ? running.end : `Process running with session ID ${id}`,
      ...(waiting.length > most ? [`Original token count: ${Math.ceil(waiting.length / CHARACTERS_PER_TOKEN)}`] : []),
      "Output:",
      ...(lost > 0 ? [`[...${lost} characters truncated from process output...]`] : []),
      cut(waiting, most),
    ];
    return parts.join("\n");
  }
}

/** Head and tail. @param {string} text @param {number} most */
function cut(text, most) {
  if (text.length <= most) return text;
  const half = Math.floor(most / 2);
  const missing = Math.ceil((text.length - 2 * half) / CHARACTERS_PER_TOKEN);
  const kept = `${text.slice(0, half)}...${missing} tokens truncated...${text.slice(text.length - half)}`;
  return Buffer.from(kept).toString(); // A cut pair is no text.
}

/** @param {Promise<unknown>} done @param {number} ms */
async function within(done, ms) {
  /** @type {NodeJS.Timeout | undefined} */
  let timer;
  await Promise.race([done, new Promise((resolve) => (timer = setTimeout(resolve, ms)))]);
  clearTimeout(timer);
}
