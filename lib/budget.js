// What a sandbox or an agent may use: a number of commands, and seconds in which a sandbox exists. Loaded with
// the first call of an object that has a `budget`.
//
// Invariant: what is refused was not begun: nothing was sent, and nothing is counted.
import { SandboxError } from "./errors.js";
import { record } from "./recording.js";

/** @import { SandboxBudget } from "../types/index.js" */

export class Budget {
  #limits;
  #commands = 0;
  #pastMs = 0;
  /** Since when each sandbox exists. @type {Map<string, number>} */
  #since = new Map();

  /** @param {SandboxBudget} limits checked */
  constructor(limits) {
    this.#limits = limits;
  }

  /** @param {string} id */
  exists(id) {
    if (!this.#since.has(id)) this.#since.set(id, performance.now());
  }

  /** Also one that never was. @param {string} id */
  isGone(id) {
    const since = this.#since.get(id);
    if (since !== undefined) this.#pastMs += performance.now() - since;
    this.#since.delete(id);
  }

  get #seconds() {
    const now = performance.now();
    let ms = this.#pastMs;
    for (const since of this.#since.values()) ms += now - since;
    return ms / 1000;
  }

  /**
   * Counts one command; throws when there is none left, or no time.
   *
   * @param {{ providerId: string }} instance for the record of a refusal
   * @returns {() => void} takes it back: it certainly did not run
   */
  take(instance) {
    const { commands = Infinity } = this.#limits;
    if (this.#commands >= commands) {
      throw refused(instance, "commands", `${this.#commands} of ${commands} commands have run, and nothing was sent. Files can still be read`);
    }
    this.checkTime(instance);
    this.#commands += 1;
    return () => {
      this.#commands -= 1;
    };
  }

  /** Throws when no time is left. @param {{ providerId: string }} instance */
  checkTime(instance) {
    const { sandboxSeconds = Infinity } = this.#limits;
    const seconds = this.#seconds;
    if (seconds < sandboxSeconds) return;
    throw refused(instance, "sandboxSeconds", `${Math.floor(seconds)} of ${sandboxSeconds} sandbox seconds have passed, and nothing was sent`);
  }
}

/** @param {{ providerId: string }} instance @param {"commands" | "sandboxSeconds"} spent @param {string} words */
function refused(instance, spent, words) {
  void record("refused", instance, { reason: "budget", spent });
  return new SandboxError(`the budget is spent: ${words}; for more, make a new one with a larger \`budget.${spent}\`, and close() this one`, {
    code: "ERR_SANDBOX_QUOTA",
    provider: instance.providerId,
  });
}
