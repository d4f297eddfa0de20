// A local command from call to result, beside child_process.execFile of the same command, in a small
// process and in one with 1 GiB resident; and how long each blocks the event loop.
import { execFile } from "node:child_process";
import { LocalSandbox } from "cloudsandbox";
import { inTurn, median, ms, quantile, row } from "./stats.js";

const sandbox = new LocalSandbox({ isolation: "none" });
await sandbox.start();

const ours = () => sandbox.exec({ argv: ["/bin/true"] });
// The shell that execFile gets here: bash would start later.
const oursShell = () => sandbox.exec({ command: "true", shell: "sh" });
const theirs = () => new Promise((resolve) => execFile("/bin/true", resolve));
const theirsShell = () => new Promise((resolve) => execFile("/bin/sh", ["-c", "true"], resolve));

/** Time inside the synchronous part of each call. */
async function blocked(/** @type {() => Promise<unknown>} */ call, rounds = 60) {
  const times = [];
  for (let i = 0; i < rounds; i++) {
    const start = performance.now();
    const pending = call();
    times.push(performance.now() - start);
    await pending;
  }
  return times;
}

async function compare(/** @type {string} */ where, /** @type {string} */ bound, /** @type {string} */ blockBound) {
  const plain = await inTurn(200, ours, theirs);
  row(
    `\`/bin/true\`, ${where}: ours / execFile, p50`,
    `${ms(median(plain.ours))} / ${ms(median(plain.theirs))} = ${(median(plain.ours) / median(plain.theirs)).toFixed(2)}x`,
    bound,
  );
  const shell = await inTurn(200, oursShell, theirsShell);
  row(
    `\`sh -c true\`, ${where}: ours / execFile, p50`,
    `${ms(median(shell.ours))} / ${ms(median(shell.theirs))} = ${(median(shell.ours) / median(shell.theirs)).toFixed(2)}x`,
    bound,
  );
  const block = await blocked(ours);
  const theirBlock = await blocked(theirs);
  row(
    `loop blocked per spawn, ${where}: ours p50 (p90) / execFile p50`,
    `${ms(median(block))} (${ms(quantile(block, 0.9))}) / ${ms(median(theirBlock))}`,
    blockBound,
  );
}

await compare("small process", "1x", "1 ms");
const ballast = Buffer.alloc(2 ** 30, 1);
await compare("1 GiB process", "0.33x", "1 ms");
ballast[0] = 0;
await sandbox.close();
