// A time to live: it is counted from the start, a warning comes before its end, and only who asks makes it longer.

/** Most seconds that may be left. */
export const MOST_SECONDS = 604_800;

export class Clock {
  /** By the clock that nobody sets; undefined before the start. @type {number | undefined} */
  #end;
  /** @type {NodeJS.Timeout[]} */
  #timers = [];
  #isOver = false;

  /**
   * @param {number} seconds may be Infinity
   * @param {number} warnSeconds before the end
   * @param {{ warn: () => void, end: () => void }} calls
   */
  constructor(seconds, warnSeconds, calls) {
    this.seconds = seconds;
    this.warnSeconds = warnSeconds;
    this.calls = calls;
  }

  /** Starts counting, the first time. */
  begin() {
    if (this.#end !== undefined) return;
    this.#end = performance.now() + this.seconds * 1000;
    this.#arm();
  }

  /** Seconds that are left; all of them before the start. */
  get left() {
    return this.#end === undefined ? this.seconds : (this.#end - performance.now()) / 1000;
  }

  /** Timers may be late: a machine sleeps, a loop is busy. */
  get isOver() {
    if (!this.#isOver && this.left <= 0) this.#finish();
    return this.#isOver;
  }

  /** @param {number} seconds */
  extend(seconds) {
    this.seconds += seconds;
    if (this.#end === undefined) return;
    this.#end += seconds * 1000;
    this.#arm();
  }

  stop() {
    for (const timer of this.#timers.splice(0)) clearTimeout(timer);
  }

  #arm() {
    this.stop();
    if (this.left === Infinity) return;
    const toWarn = this.left - this.warnSeconds;
    // None for what is inside it already: who extends it so briefly knows.
    if (toWarn > 0) this.#after(toWarn, () => this.calls.warn());
    this.#after(this.left, () => this.#finish());
  }

  /** @param {number} seconds @param {() => void} call */
  #after(seconds, call) {
    this.#timers.push(setTimeout(call, Math.max(0, Math.ceil(seconds * 1000))).unref());
  }

  #finish() {
    if (this.#isOver) return;
    this.#isOver = true;
    this.stop();
    this.calls.end();
  }
}
