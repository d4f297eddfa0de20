// Waiting for something that another process does. A test never sleeps for a guessed time: it asks
// again until the answer is the wanted one, and only a hang runs into the (generous) deadline.
import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";

/** Longest wait for anything that is not a hang; far above what a loaded machine needs. */
export const HANG_MS = 45_000;

/**
 * Asks `probe` until it gives something truthy, and returns that. `what` names it when it never
 * does.
 */
export async function eventually(what, probe, { withinMs = HANG_MS } = {}) {
  const end = performance.now() + withinMs;
  for (;;) {
    const answer = await probe();
    if (answer) return answer;
    if (performance.now() > end) assert.fail(`never happened: ${what}`);
    await delay(10);
  }
}

/** The error that `promise` rejects with; a promise that resolves fails the test. */
export async function rejection(promise) {
  let value;
  try {
    value = await promise;
  } catch (error) {
    return error;
  }
  assert.fail(`should have rejected, but resolved with ${JSON.stringify(value)?.slice(0, 200)}`);
}

/** A promise `happened`, and the function `fire` that resolves it: for what a callback reports. */
export function event() {
  let fire;
  const happened = new Promise((resolve) => {
    fire = resolve;
  });
  return { happened, fire };
}
