// What records cost a command: when nobody listens, when one function does, and when a file is written.
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { LocalSandbox } from "cloudsandbox";
import { onRecord, recordTo } from "cloudsandbox/records";
import { isRecorded } from "../lib/recording.js";
import { median, row } from "./stats.js";

const CHECKS = 1_000_000;
const rounds = Array.from({ length: 9 }, () => {
  const start = performance.now();
  for (let i = 0; i < CHECKS; i++) isRecorded();
  return performance.now() - start;
});
row("records, nobody listens: the check that is all a call does, median", `${((median(rounds) / CHECKS) * 1e6).toFixed(0)} ns`, "1000 ns");

const sandbox = new LocalSandbox({ isolation: "none" });
await sandbox.start();
const file = path.join(tmpdir(), `cloudsandbox-bench-${process.pid}.jsonl`);
const listeners = {
  none: () => () => {},
  function: () => onRecord(() => {}),
  file: () => {
    const recording = recordTo(file);
    return () => recording.stop();
  },
};
/** @type {Record<string, number[]>} */
const times = { none: [], function: [], file: [] };
for (let round = -20; round < 400; round++) {
  for (const [name, listen] of Object.entries(listeners)) {
    const stop = listen();
    const start = performance.now();
    await sandbox.writeFile("f", "x");
    if (round >= 0) times[name].push(performance.now() - start);
    stop();
  }
}
const plain = median(times.none);
for (const name of ["function", "file"]) {
  row(`records, to a ${name}: more time for a write of a local file, median`, `${((median(times[name]) - plain) * 1000).toFixed(0)} µs`);
}
await sandbox.close();
rmSync(file, { force: true });
