// Calls that are made one after the other, in the order in which they were asked for.

export class Turns {
  /** @type {Promise<unknown>} */
  #last = Promise.resolve();

  /**
   * Does the work behind all that was given before, whatever became of that.
   *
   * @template T
   * @param {() => Promise<T>} work
   * @returns {Promise<T>}
   */
  next(work) {
    const done = this.#last.then(work);
    this.#last = done.catch(() => {});
    return done;
  }
}
