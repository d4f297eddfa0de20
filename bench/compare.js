// This checkout beside another one, both built: the figures of docs/benchmarks.md in one run, each side measured in
// turn in new processes, and the ratio of the medians. Prints what is worse by more than a twentieth.
//
// node bench/compare.js OTHER_CHECKOUT [ROUNDS]; both need `npm run build` and `make build/bench_server` first.
import { execFileSync } from "node:child_process";
import path from "node:path";
import { median, ms } from "./stats.js";
import { measureClient, startServer } from "./vendor/run.js";

const [other, rounds = "5"] = process.argv.slice(2);
if (!other) throw new Error("name the other checkout: node bench/compare.js OTHER_CHECKOUT [ROUNDS]");
const WORSE = 1.05;
const checkouts = [path.resolve(import.meta.dirname, ".."), path.resolve(other)];
// Each side with its own server: what a client sends and expects changes between versions.
const servers = await Promise.all(checkouts.map((checkout) => startServer(path.join(checkout, "build/bench_server"))));

const us = (/** @type {number} */ value) => `${value.toFixed(0)} µs`;
const whole = (/** @type {number} */ value) => value.toFixed(0);
const mebibytes = (/** @type {number} */ value) => `${(value / 2 ** 20).toFixed(1)} MiB`;

/**
 * @typedef {object} Row
 * @property {string} figure
 * @property {(result: any) => number | number[]} pick
 * @property {(value: number) => string} show
 * @property {boolean} [rate] more is better
 */

/** @param {string} name @returns {Row[]} */
const commandRows = (name) =>
  /** @type {const} */ (["first", "warm"]).flatMap((state) => [
    { figure: `${name}, ${state} commands: CPU`, pick: (result) => result[state].cpu, show: us },
    { figure: `${name}, ${state} commands: p50`, pick: (result) => result[state].p50, show: us },
  ]);

/** @type {[client: string, measure: string, count: number, rows: Row[]][]} */
const MEASURES = [
  [
    "local/ours",
    "local",
    200,
    [
      { figure: "local `/bin/true`: p50", pick: ({ program }) => program, show: ms },
      { figure: "local `sh -c true`: p50", pick: ({ shell }) => shell, show: ms },
    ],
  ],
  ...["e2b", "daytona"].flatMap((name) => /** @type {[string, string, number, Row[]][]} */ ([
    [`${name}/ours`, "shell", 1500, commandRows(name)],
    [`${name}/ours`, "flight", 4000, [{ figure: `${name}, commands per second, 64 in flight`, pick: (rate) => rate, show: whole, rate: true }]],
    [`${name}/ours`, "crowd", 4000, [{ figure: `${name}, commands per second, 1,000 in flight`, pick: (rate) => rate, show: whole, rate: true }]],
  ])),
  [
    "e2b/ours",
    "files",
    9,
    [
      { figure: "e2b, 64 MiB read", pick: ({ read }) => read, show: ms },
      { figure: "e2b, 64 MiB written", pick: ({ write }) => write, show: ms },
    ],
  ],
  ["e2b/ours", "peak", 1, [{ figure: "e2b, 64 MiB read: RSS growth at most", pick: (bytes) => bytes, show: mebibytes }]],
  ["e2b/ours", "idle", 1000, [{ figure: "e2b, 1000 idle sandboxes: RSS growth", pick: (bytes) => bytes, show: mebibytes }]],
];

let worse = 0;
/** @param {Row} row @param {number} own @param {number} theirs */
function print({ figure, show, rate = false }, own, theirs) {
  const ratio = rate ? theirs / own : own / theirs;
  if (ratio > WORSE) worse += 1;
  console.log(`| ${figure} | ${show(own)} | ${show(theirs)} | ${ratio.toFixed(2)}x${ratio > WORSE ? ", worse" : ""} |`);
}

/** @param {string} checkout */
function importTime(checkout) {
  const program = 'const start = performance.now(); await import("cloudsandbox"); console.log(performance.now() - start)';
  return Number(execFileSync(process.execPath, ["--input-type=module", "-e", program], { cwd: checkout }));
}

console.log("| figure | this | other | this / other |\n| --- | --- | --- | --- |");
const imports = checkouts.map(() => /** @type {number[]} */ ([]));
for (let i = 0; i < 4 * Number(rounds); i++) checkouts.forEach((checkout, side) => imports[side].push(importTime(checkout)));
print({ figure: "import", pick: Number, show: ms }, median(imports[0]), median(imports[1]));
for (const [client, measure, count, rows] of MEASURES) {
  /** @type {any[][]} */
  const results = checkouts.map(() => []);
  for (let i = 0; i < Number(rounds); i++) {
    for (const [side, checkout] of checkouts.entries()) {
      results[side].push(await measureClient(servers[side], client, measure, count, checkout));
    }
  }
  for (const row of rows) {
    const [own, theirs] = results.map((side) => median(side.flatMap(row.pick)));
    print(row, own, theirs);
  }
}
for (const { process: server } of servers) server.stdin.end();
console.log(`\n${worse} worse by more than ${Math.round((WORSE - 1) * 100)} %`);
