// What has to be put into a sandbox before anything runs in it, and again into the one that takes its place.
//
// Invariant: no call runs in what is not seeded; who waits for seeding shares one attempt.
import { SandboxError, detailsOf, reword } from "./errors.js";
import { checkSignal } from "./options.js";
import { isRecorded, record } from "./recording.js";
import { unlessAborted } from "./signals.js";

/** @import { CloudSandbox } from "../types/index.js" */

/** What the core says of the call after a loss; and what is so where a workspace is set up again first. */
const EMPTY_SANDBOX = "the next call starts a new, empty sandbox";
const SEEDED_SANDBOX = "the next call starts a new one and sets up the workspace in it as at its start";

export class Seeded {
  /** @type {Promise<void> | undefined} */
  #seeding;

  /** Starts the sandbox and puts everything into it. @returns {Promise<void>} */
  async seed() {}

  /**
   * What it works in, once it is seeded.
   *
   * @returns {CloudSandbox | undefined}
   */
  get sandbox() {
    return undefined;
  }

  /** For the record. @returns {{ files: number, bytes: number, clones?: number | undefined }} */
  get seededWith() {
    return { files: 0, bytes: 0 };
  }

  /** Resolves when everything is in place. */
  seeded() {
    if (!this.#seeding) {
      const seeding = this.#seed();
      this.#seeding = seeding;
      seeding.catch(() => this.#forget(seeding));
    }
    return this.#seeding;
  }

  /**
   * Runs a call in what is seeded. When the call finds that the sandbox is lost, the next one
   * seeds again; a loss that is reported late, by a call to an earlier sandbox, changes nothing.
   *
   * @template T
   * @param {AbortSignal | undefined} signal
   * @param {() => Promise<T>} call
   * @returns {Promise<T>}
   */
  async use(signal, call) {
    if (checkSignal(signal)?.aborted) throw signal?.reason;
    const seeding = this.seeded();
    await unlessAborted(seeding, signal);
    try {
      return await call();
    } catch (error) {
      if (detailsOf(error)?.code === "ERR_SANDBOX_LOST") {
        this.#forget(seeding);
        if (error instanceof SandboxError) reword(error, EMPTY_SANDBOX, SEEDED_SANDBOX);
      }
      throw error;
    }
  }

  /** The sandbox is known to be lost: the next call seeds again. */
  seedAgain() {
    this.#seeding = undefined;
  }

  async #seed() {
    const began = performance.now();
    await this.seed();
    if (!this.sandbox || !isRecorded()) return;
    const durationMs = Math.round(performance.now() - began);
    await record("seeded", this.sandbox, { ...this.seededWith, durationMs });
  }

  /** @param {Promise<void>} seeding */
  #forget(seeding) {
    if (this.#seeding === seeding) this.#seeding = undefined;
  }
}
