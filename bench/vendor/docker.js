// Our client beside dockerode on the same engine, in one run, each in processes of its own and in turn. The engine is a
// real one, and dominates all but the client's own CPU.
// argv: the engine's address.
import { median, ms } from "../stats.js";
import { footprint, importTimes, ownFootprint } from "./packages.js";
import { runClient } from "./run.js";

const ROUNDS = 5;
const COMMANDS = 100;

const [host] = process.argv.slice(2);
/** @type {Record<"ours" | "sdk", { cpu: number, p50: number, p99: number, rate: number }[]>} */
const results = { ours: [], sdk: [] };
for (let i = 0; i < ROUNDS; i++) {
  for (const side of /** @type {const} */ (["ours", "sdk"])) results[side].push(await runClient(host, `docker/${side}`, "engine", COMMANDS));
}

const of = (/** @type {"ours" | "sdk"} */ side, /** @type {"cpu" | "p50" | "p99" | "rate"} */ key) => median(results[side].map((it) => it[key]));
/** @param {string} figure @param {number} ours @param {number} sdk @param {(value: number) => string} show @param {string} [bound] */
const row = (figure, ours, sdk, show, bound = "") => console.log(`| ${figure} | ${show(ours)} | ${show(sdk)} | ${(ours / sdk).toPrecision(2)}x | ${bound} |`);
const us = (/** @type {number} */ value) => `${value.toFixed(0)} µs`;
const whole = (/** @type {number} */ value) => value.toFixed(0);

console.log("\n| docker | ours | dockerode | ratio | bound |\n| --- | --- | --- | --- | --- |");
row('`shell("true")`: CPU of the client', of("ours", "cpu"), of("sdk", "cpu"), us, "0.2x");
row('`shell("true")`: p50', of("ours", "p50") / 1000, of("sdk", "p50") / 1000, ms, "1.0x");
row('`shell("true")`: p99', of("ours", "p99") / 1000, of("sdk", "p99") / 1000, ms);
row("commands per second, 32 in flight", of("ours", "rate"), of("sdk", "rate"), (value) => value.toFixed(1), "1.5x");
const times = importTimes({ ours: "../../lib/index.js", sdk: "dockerode" }, 5);
row("import", times.ours, times.sdk, ms, "0.125x");
const [own, theirs] = [ownFootprint(), footprint("dockerode")];
row("packages installed", own.packages, theirs.packages, whole);
