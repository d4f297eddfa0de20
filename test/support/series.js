// C069: a long series of commands at a remote provider, a third of which fail, and what it leaves behind in
// the client's process. The provider's emulator is a process of its own, or its memory would count, too.
import assert from "node:assert/strict";

import { startProgram } from "../emulators/program.js";
import { inFlight } from "./calls.js";
import { children } from "./processes.js";
import { openDescriptors, residentBytes } from "./resources.js";
import { eventually } from "./wait.js";

const WIDTH = 4;
const GROWTH_BYTES = 24 << 20; // measured: 3 to 8 MiB, and no more in a series of twice the length

/**
 * Runs `count` (divisible by 6) commands in a sandbox that `make(told)` makes, `told` being what the
 * emulator's program tells. `faults` are those of the emulator, as for its fault(); `expected` counts the
 * error codes that they lead to.
 */
export async function checkSeries(t, { emulator: name, count, make, faults, expected }) {
  const program = await startProgram(name, ...faults.map((fault) => `--fault=${JSON.stringify(fault)}`));
  const sandbox = make(program.told);
  t.after(async () => {
    await sandbox.close();
    await program.close();
  });
  const answers = {};
  const one = async (index) => {
    const answer = await sandbox.shell(`echo ${index}; exit 3`).then(
      ({ output, exitCode }) => (output === `${index}\n` && exitCode === 3 ? "right" : `wrong: ${exitCode} ${output}`),
      (error) => error.code,
    );
    answers[answer] = (answers[answer] ?? 0) + 1;
  };

  await inFlight(WIDTH, count / 3, one);
  const before = { bytes: residentBytes(), descriptors: openDescriptors(), children: children() };
  await inFlight(WIDTH, (count / 3) * 2, one);

  const failed = Object.values(expected).reduce((sum, n) => sum + n, 0);
  assert.deepEqual(answers, { right: count - failed, ...expected });
  const grown = residentBytes() - before.bytes;
  assert.ok(grown < GROWTH_BYTES, `${(grown / 2 ** 20).toFixed(1)} MiB more`);
  // Each call in flight has a connection, or has just lost it.
  await eventually("flat descriptors", () => openDescriptors() <= before.descriptors + WIDTH);
  assert.deepEqual([before.children, children()], [[program.child.pid], [program.child.pid]]);
  t.diagnostic(`${(grown / 2 ** 20).toFixed(1)} MiB more`);
}
