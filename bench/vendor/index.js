// Our client beside the vendor's own, and beside plain libcurl in C that sends the same requests: the same
// work on the same server, in one run. Each is measured in processes of its own, in turn, so that a drift of
// the machine's speed meets all.
// argv: the programs of the server and of plain libcurl, then the services, all when left out.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { median, mib, ms } from "../stats.js";
import { FILE_BYTES, SANDBOXES } from "./measures.js";
import { footprint, importTimes, ownFootprint, pythonImportTime } from "./packages.js";
import { measureClient, measureProgram, recordRequest, startServer } from "./run.js";

const SDKS = { e2b: "e2b", daytona: "@daytonaio/sdk", http: "omnicoreagent", vercel: "@vercel/sandbox", agentcore: "@aws-sdk/client-bedrock-agentcore", modal: "modal" };
/** Of those that are Python: a program that measures it. */
const PROGRAMS = { http: path.join(import.meta.dirname, "http_client.py") };
const ROUNDS = 3;
const COMMANDS = 1500;
const OPEN = [1, 100, 1000, 10_000];
/** The call that runs a command, of those that plain libcurl sends, too. @type {Partial<Record<Service, string>>} */
const CALLS = { e2b: "/process.Process/Start", daytona: "/process/execute", http: "/exec", vercel: "/cmd\\?\\S*", agentcore: "/tools/invoke" };

/** @typedef {keyof typeof SDKS} Service */
/** @typedef {"ours" | "sdk" | "curl"} Side */

/** The same by all, in turn. @param {Service} service @param {"shell" | "flight" | "files" | "peak"} measure @param {number} count
 * @returns {Promise<Record<Side, any[]>>} */
async function measureAll(service, measure, count) {
  /** @type {Record<Side, any[]>} */
  const results = { ours: [], sdk: [], curl: [] };
  for (let i = 0; i < ROUNDS; i++) {
    const at = service === "modal" ? await modalServer() : server;
    results.ours.push(await measureClient(at, `${service}/ours`, measure, count));
    results.sdk.push(
      service in PROGRAMS
        ? await measureProgram(server, PROGRAMS[/** @type {"http"} */ (service)], measure, count)
        : await measureClient(at, `${service}/sdk`, measure, count),
    );
    if (measure !== "peak" && service in CALLS) results.curl.push(await measureProgram(server, curlProgram, measure, count, requests[service]));
  }
  return results;
}

const us = (/** @type {number} */ value) => `${value.toFixed(0)} µs`;
const whole = (/** @type {number} */ value) => value.toFixed(0);
const share = (/** @type {number} */ ours, /** @type {number} */ sdk) => `${(ours / sdk).toPrecision(2)}x`;
const faster = (/** @type {number} */ ours, /** @type {number} */ sdk) => `${(sdk / ours).toFixed(1)}x faster`;

/** @type {import("./run.js").Server | undefined} */
let modal;
/** HTTP/2 with TLS, which the program does not speak. */
async function modalServer() {
  process.env.BENCH_CA = path.join(directory, "ca.pem");
  return (modal ??= await startServer(process.execPath, [path.join(import.meta.dirname, "modal-server.js"), process.env.BENCH_CA]));
}

/** @param {string} figure @param {Record<Side, number> | Record<"ours" | "sdk", number>} values @param {(value: number) => string} show
 * @param {string} [bound] @param {(ours: number, sdk: number) => string} [compare] */
function row(figure, values, show, bound = "", compare = share) {
  const limit = "curl" in values ? `${show(values.curl)} | ${share(values.ours, values.curl)}` : " |";
  const { ours, sdk } = values;
  console.log(`| ${figure} | ${show(ours)} | ${show(sdk)} | ${compare(ours, sdk)} | ${limit} | ${bound} |`);
}

/** The medians of all sides. @param {Record<Side, any[]>} results @param {(result: any) => number[]} pick
 * @returns {Record<Side, number> | Record<"ours" | "sdk", number>} */
function medians(results, pick) {
  const { ours, sdk, curl } = results;
  const values = { ours: median(ours.flatMap(pick)), sdk: median(sdk.flatMap(pick)) };
  return curl.length > 0 ? { ...values, curl: median(curl.flatMap(pick)) } : values;
}

/** @param {Service} service @param {{ cpu: string, latency: string, rate?: string }} bounds */
async function commands(service, bounds) {
  const results = await measureAll(service, "shell", COMMANDS);
  for (const [state, words] of /** @type {const} */ ([["first", `first ${COMMANDS / 10} commands`], ["warm", "warm"]])) {
    const values = (/** @type {string} */ key) => medians(results, (result) => [result[state][key]]);
    const cpu = state === "warm" && service in CALLS ? `${bounds.cpu}, 2x of libcurl` : bounds.cpu;
    row(`\`shell("true")\`, ${words}: CPU of the client`, values("cpu"), us, cpu);
    row(`\`shell("true")\`, ${words}: p50`, values("p50"), us, bounds.latency);
    row(`\`shell("true")\`, ${words}: p99`, values("p99"), us);
  }
  if (bounds.rate === undefined) return;
  const flight = await measureAll(service, "flight", 4000);
  row("commands per second, 64 in flight", medians(flight, (rate) => [rate]), whole, bounds.rate);
}

async function files() {
  const times = await measureAll("e2b", "files", 15);
  row("64 MiB file, read", medians(times, ({ read }) => read), ms, "8x faster, or 2x of libcurl", faster);
  row("64 MiB file, write", medians(times, ({ write }) => write), ms, "8x faster, or 2x of libcurl", faster);
  const { ours, sdk } = await measureAll("e2b", "peak", 1);
  const show = (/** @type {number} */ bytes) => `${mib(bytes)}, ${(bytes / FILE_BYTES).toFixed(2)}x the file`;
  row("64 MiB file, read: RSS growth at most", { ours: median(ours), sdk: median(sdk) }, show, "2.2x the file");
  const idle = await measureClient(server, "e2b/ours", "idle", SANDBOXES);
  console.log(`| ${SANDBOXES} open idle sandboxes: RSS growth | ${mib(idle)} | | | | | 4 MiB |`);
}

/** What a call costs with so many sandboxes open, beside one. @param {Service} service */
async function open(service) {
  /** @type {Record<number, any[]>} */
  const results = {};
  for (let i = 0; i < ROUNDS; i++) {
    for (const count of OPEN) (results[count] ??= []).push(await measureClient(server, `${service}/ours`, "open", count));
  }
  console.log("\n| open sandboxes | CPU per call | p50 | CPU: ratio to one | bound |\n| --- | --- | --- | --- | --- |");
  const cpu = (/** @type {number} */ count) => median(results[count].map((result) => result.cpu));
  for (const count of OPEN) {
    const p50 = median(results[count].map((result) => result.p50));
    console.log(`| ${count} | ${us(cpu(count))} | ${us(p50)} | ${share(cpu(count), cpu(OPEN[0]))} | 1.3x |`);
  }
}

/** @param {Service} service @param {string} [bound] */
function weight(service, bound) {
  const times = importTimes({ ours: "../../lib/index.js", sdk: SDKS[service] }, 5);
  row("import", { ours: times.ours, sdk: times.sdk }, ms, bound);
  const own = ownFootprint();
  const theirs = footprint(SDKS[service]);
  row("packages installed", { ours: own.packages, sdk: theirs.packages }, whole);
  row("size installed", { ours: own.bytes, sdk: theirs.bytes }, mib);
}

/** The same for a package of Python's. @param {string} module that is imported @param {string} bound */
function pythonWeight(module, bound) {
  const { ours } = importTimes({ ours: "../../lib/index.js" }, 5);
  row("import", { ours, sdk: pythonImportTime(module, 5) }, ms, bound);
}

/** @type {Record<Service, () => Promise<void>>} */
const services = {
  async e2b() {
    await commands("e2b", { cpu: "0.09x", latency: "0.25x", rate: "6x" });
    await files();
    weight("e2b");
    await open("e2b");
  },
  async daytona() {
    await commands("daytona", { cpu: "0.15x", latency: "0.3x", rate: "5x" });
    weight("daytona", "0.025x");
  },
  async http() {
    await commands("http", { cpu: "0.1x", latency: "" });
    pythonWeight("omnicoreagent.sandbox.http_sandbox, httpx", "0.1x");
  },
  async vercel() {
    await commands("vercel", { cpu: "0.06x", latency: "" });
    weight("vercel", "0.1x");
  },
  async agentcore() {
    await commands("agentcore", { cpu: "0.1x", latency: "" });
    weight("agentcore", "0.1x");
  },
  async modal() {
    await commands("modal", { cpu: "0.1x", latency: "" });
    weight("modal", "0.1x");
  },
};

const [program, curlProgram, ...named] = process.argv.slice(2);
const wanted = /** @type {Service[]} */ (named.length > 0 ? named : Object.keys(services));
const server = await startServer(program);
const directory = mkdtempSync(path.join(os.tmpdir(), "cloudsandbox-bench-"));
/** What ours sends for a command, for plain libcurl to send it again. @type {Record<Service, string>} */
const requests = Object.fromEntries(Object.keys(SDKS).map((name) => [name, path.join(directory, name)]));
for (const name of wanted) {
  const call = CALLS[name];
  if (call) writeFileSync(requests[name], await recordRequest(server, `${name}/ours`, call));
  console.log(`\n| ${name} | ours | ${SDKS[name]} | ratio | libcurl in C | ours / libcurl | bound |`);
  console.log("| --- | --- | --- | --- | --- | --- | --- |");
  await services[name]();
}
server.process.stdin.end();
modal?.process.stdin.end();
rmSync(directory, { recursive: true });
