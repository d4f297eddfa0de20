// What the emulator's test files share.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, afterEach, before } from "node:test";
import { startE2B } from "./index.js";

/** One emulator for a suite; every test leaves it without faults and without internal errors. */
export function useEmulator(settings) {
  const use = {};
  before(async () => {
    use.emulator = await startE2B({ dialDelaysMs: [], ...settings });
    use.engine = use.emulator.engine;
  });
  afterEach(() => {
    use.engine.clearFaults();
    use.engine.clearLog();
    Object.assign(use.emulator.settings, settings);
    assert.deepEqual(use.engine.errors, []);
  });
  after(() => use.emulator.close());
  return use;
}

/** @param {number} pid */
export function isAlive(pid) {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

/** @param {number} pid */
export async function untilDead(pid) {
  while (isAlive(pid)) await new Promise((resolve) => setTimeout(resolve, 10));
}
