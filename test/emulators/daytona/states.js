// How a sandbox gets from one state to another: a script of steps, of which each lasts for a time, for a
// number of looks at the sandbox, or until a gate opens. The last one stays.
// @ts-check

/** @typedef {import("./sandbox.js").Sandbox} Sandbox */

/**
 * A mere string, unless it is the last step, lasts until it has been seen once.
 * @typedef {string | Step} ScriptStep
 */

/**
 * @typedef {object} Step
 * @property {string} state
 * @property {number} [ms] how long it lasts
 * @property {number} [polls] how many times it is shown
 * @property {{ wait: () => Promise<void> }} [gate] what ends it
 * @property {string} [errorReason]
 * @property {boolean} [recoverable]
 */

export class Transition {
  #sandbox;
  #steps;
  #polls = 0;
  /** @type {NodeJS.Timeout | undefined} */
  #timer;
  #finish = () => {};
  #cancelled = false;
  finished = false;
  /** Resolves when the last step is reached, or the transition given up. @type {Promise<void>} */
  done;

  /**
   * @param {Sandbox} sandbox
   * @param {ScriptStep[]} steps
   */
  constructor(sandbox, steps) {
    this.#sandbox = sandbox;
    this.#steps = steps.map((step) => (typeof step === "string" ? { state: step } : step));
    this.done = new Promise((resolve) => (this.#finish = resolve));
  }

  start() {
    this.#enter();
    return this;
  }

  /** The sandbox has been shown to somebody. */
  seen() {
    if (this.finished || this.#polls === 0) return;
    this.#polls -= 1;
    if (this.#polls === 0) this.#next();
  }

  cancel() {
    this.#cancelled = true;
    this.finished = true;
    clearTimeout(this.#timer);
    this.#finish();
  }

  #next() {
    if (this.#cancelled) return;
    this.#steps.shift();
    this.#enter();
  }

  #enter() {
    const [step] = this.#steps;
    this.finished = this.#steps.length === 1;
    this.#sandbox.enter(step);
    if (this.finished) {
      this.#finish();
      return;
    }
    this.#polls = 0;
    if (step.gate) void step.gate.wait().then(() => this.#next());
    else if (step.ms !== undefined) this.#timer = setTimeout(() => this.#next(), step.ms);
    else this.#polls = step.polls ?? 1;
  }
}
