// Our client beside the vendor's own: the same work on the same server, in one run. Each is measured in
// processes of its own, the two in turn, so that a drift of the machine's speed meets both.
// argv: the server's program, then the services, all when left out.
import { fork, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { median, mib, ms } from "../stats.js";
import { FILE_BYTES, SANDBOXES } from "./measures.js";
import { footprint, importTimes, ownFootprint } from "./packages.js";

const SDKS = { e2b: "e2b", daytona: "@daytonaio/sdk" };
const ROUNDS = 3;
const COMMANDS = 1500;

/** @typedef {keyof typeof SDKS} Service */
/** @typedef {"ours" | "sdk"} Side */

/** One client in a process of its own. @param {string} client @param {string} url */
function startClient(client, url) {
  return fork(new URL("child.js", import.meta.url), [client, url], { execArgv: ["--expose-gc"] });
}

/** What a client says next. @param {import("node:child_process").ChildProcess} child */
async function message(child) {
  const [value] = await Promise.race([once(child, "message"), once(child, "exit")]);
  if (typeof value === "object") return value;
  throw new Error(`${child.spawnargs.slice(2).join(" ")} ended with ${value}`);
}

/** The first line of the server. @param {import("node:child_process").ChildProcessByStdio<any, import("node:stream").Readable, null>} server */
async function address(server) {
  const [value] = await Promise.race([once(server.stdout, "data"), once(server, "error"), once(server, "exit")]);
  if (Buffer.isBuffer(value)) return value.toString().trim();
  throw new Error(`the server did not start: ${value}`);
}

/** The first and the last core that this process may use. */
const CORES = (readFileSync("/proc/self/status", "latin1").match(/^Cpus_allowed_list:\s*(\S+)/m)?.[1] ?? "0").split(/[-,]/);

/** @param {import("node:child_process").ChildProcess} child @param {string} core */
function keepOn(child, core) {
  const { status, stderr } = spawnSync("taskset", ["-acp", core, String(child.pid)], { encoding: "utf8" });
  if (status !== 0) throw new Error(`taskset: ${stderr}`);
}

/** One measurement of one client, in a new process. @param {string} client @param {string} url @param {string} measure @param {number} count */
async function measureOnce(client, url, measure, count) {
  const child = startClient(client, url);
  // Between two short messages each side sleeps. To wake another core costs a virtual machine more than a
  // quick client's whole work, and would hide it; a file keeps two cores awake.
  const short = measure === "shell" || measure === "flight";
  keepOn(server, CORES[0]);
  keepOn(child, short ? CORES[0] : CORES[CORES.length - 1]);
  child.send({ measure, count });
  const { result } = await message(child);
  child.disconnect();
  await once(child, "exit");
  return result;
}

/** The same by both, in turn. @param {Service} service @param {string} url @param {string} measure @param {number} count
 * @returns {Promise<Record<Side, any[]>>} */
async function measureBoth(service, url, measure, count) {
  /** @type {Record<Side, any[]>} */
  const results = { ours: [], sdk: [] };
  for (let i = 0; i < ROUNDS; i++) {
    results.ours.push(await measureOnce(`${service}/ours`, url, measure, count));
    results.sdk.push(await measureOnce(`${service}/sdk`, url, measure, count));
  }
  return results;
}

const us = (/** @type {number} */ value) => `${value.toFixed(0)} µs`;
const whole = (/** @type {number} */ value) => value.toFixed(0);
const share = (/** @type {number} */ ours, /** @type {number} */ sdk) => `${(ours / sdk).toPrecision(2)}x`;
const faster = (/** @type {number} */ ours, /** @type {number} */ sdk) => `${(sdk / ours).toFixed(1)}x faster`;

/** @param {string} figure @param {number} ours @param {number} sdk @param {(value: number) => string} show
 * @param {string} [bound] @param {(ours: number, sdk: number) => string} [compare] */
function row(figure, ours, sdk, show, bound = "", compare = share) {
  console.log(`| ${figure} | ${show(ours)} | ${show(sdk)} | ${compare(ours, sdk)} | ${bound} |`);
}

/** @param {Service} service @param {string} url @param {{ cpu: string, latency: string, rate: string }} bounds */
async function commands(service, url, bounds) {
  const results = await measureBoth(service, url, "shell", COMMANDS);
  for (const [state, words] of /** @type {const} */ ([["first", `first ${COMMANDS / 10} commands`], ["warm", "warm"]])) {
    const pick = (/** @type {Side} */ side, /** @type {string} */ key) => median(results[side].map((result) => result[state][key]));
    row(`\`shell("true")\`, ${words}: CPU of the client`, pick("ours", "cpu"), pick("sdk", "cpu"), us, bounds.cpu);
    row(`\`shell("true")\`, ${words}: p50`, pick("ours", "p50"), pick("sdk", "p50"), us, bounds.latency);
    row(`\`shell("true")\`, ${words}: p99`, pick("ours", "p99"), pick("sdk", "p99"), us);
  }
  const { ours, sdk } = await measureBoth(service, url, "flight", 4000);
  row("commands per second, 64 in flight", median(ours), median(sdk), whole, bounds.rate);
}

/** @param {string} url */
async function files(url) {
  const times = await measureBoth("e2b", url, "files", 15);
  const pick = (/** @type {Side} */ side, /** @type {string} */ key) => median(times[side].flatMap((result) => result[key]));
  row("64 MiB file, read", pick("ours", "read"), pick("sdk", "read"), ms, "8x faster", faster);
  row("64 MiB file, write", pick("ours", "write"), pick("sdk", "write"), ms, "8x faster", faster);
  const peak = await measureBoth("e2b", url, "peak", 1);
  const show = (/** @type {number} */ bytes) => `${mib(bytes)}, ${(bytes / FILE_BYTES).toFixed(2)}x the file`;
  row("64 MiB file, read: RSS growth at most", median(peak.ours), median(peak.sdk), show, "2.2x the file");
  const idle = await measureOnce("e2b/ours", url, "idle", SANDBOXES);
  console.log(`| ${SANDBOXES} open idle sandboxes: RSS growth | ${mib(idle)} | | | 4 MiB |`);
}

/** @param {Service} service @param {string} [bound] */
function weight(service, bound) {
  const times = importTimes({ ours: "../../lib/index.js", sdk: SDKS[service] }, 5);
  row("import", times.ours, times.sdk, ms, bound);
  const own = ownFootprint();
  const theirs = footprint(SDKS[service]);
  row("packages installed", own.packages, theirs.packages, whole);
  row("size installed", own.bytes, theirs.bytes, mib);
}

/** @type {Record<Service, (url: string) => Promise<void>>} */
const services = {
  async e2b(url) {
    await commands("e2b", url, { cpu: "0.10x", latency: "0.25x", rate: "6x" });
    await files(url);
    weight("e2b");
  },
  async daytona(url) {
    await commands("daytona", url, { cpu: "0.15x", latency: "0.3x", rate: "5x" });
    weight("daytona", "0.025x");
  },
};

const [program, ...named] = process.argv.slice(2);
const wanted = /** @type {Service[]} */ (named.length > 0 ? named : Object.keys(services));
const server = spawn(program, { stdio: ["pipe", "pipe", "inherit"] });
const url = await address(server);
for (const name of wanted) {
  console.log(`\n| ${name} | ours | ${SDKS[name]} | ratio | bound |\n| --- | --- | --- | --- | --- |`);
  await services[name](url);
}
server.stdin.end();
