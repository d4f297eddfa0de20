// Starts what is measured, each in a process of its own: the server of canned replies, a client in a process of
// Node's, a program. And records a request of a client's.
import { fork, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import net from "node:net";
import path from "node:path";

/** @typedef {import("node:child_process").ChildProcess} ChildProcess */
/** @typedef {{ url: string, process: import("node:child_process").ChildProcessByStdio<any, import("node:stream").Readable, null> }} Server */

/** The first and the last core that this process may use. */
const CORES = (readFileSync("/proc/self/status", "latin1").match(/^Cpus_allowed_list:\s*(\S+)/m)?.[1] ?? "0").split(/[-,]/);

/** @param {string} program @param {string[]} [args] @returns {Promise<Server>} */
export async function startServer(program, args = []) {
  const server = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
  const [value] = await Promise.race([once(server.stdout, "data"), once(server, "error"), once(server, "exit")]);
  if (!Buffer.isBuffer(value)) throw new Error(`the server did not start: ${value}`);
  return { url: value.toString().trim(), process: server };
}

/** One client in a process of its own. @param {string} client @param {string} url @param {string} [checkout] whose library */
function startClient(client, url, checkout) {
  const oneShell = checkout && !readFileSync(path.join(checkout, "types/index.d.ts"), "utf8").includes("shell?:");
  const other = { CLOUDSANDBOX_CHECKOUT: checkout, ...(oneShell ? { CLOUDSANDBOX_ONE_SHELL: "1" } : {}) };
  const env = checkout ? { ...process.env, ...other } : process.env;
  return fork(new URL("child.js", import.meta.url), [client, url], { execArgv: ["--expose-gc"], env });
}

/** What a client says next. @param {ChildProcess} child */
async function message(child) {
  const [value] = await Promise.race([once(child, "message"), once(child, "exit")]);
  if (typeof value === "object") return value;
  throw new Error(`${child.spawnargs.slice(2).join(" ")} ended with ${value}`);
}

/** @param {ChildProcess} child @param {string} core */
function keepOn(child, core) {
  const { status, stderr } = spawnSync("taskset", ["-acp", core, String(child.pid)], { encoding: "utf8" });
  if (status !== 0) throw new Error(`taskset: ${stderr}`);
}

/**
 * Between two short messages each side sleeps. To wake another core costs a virtual machine more than a quick
 * client's whole work, and would hide it; a file keeps two cores awake, and so does a crowd.
 * @param {Server} server @param {ChildProcess} child @param {string} measure
 */
function place(server, child, measure) {
  if (measure === "local") return;
  const short = !["files", "peak", "idle", "crowd"].includes(measure);
  keepOn(server.process, CORES[0]);
  keepOn(child, short ? CORES[0] : CORES[CORES.length - 1]);
}

/** One measurement of one client, in a new process. @param {Server} server @param {string} client @param {string} measure
 * @param {number} count @param {string} [checkout] */
export async function measureClient(server, client, measure, count, checkout) {
  const child = startClient(client, server.url, checkout);
  place(server, child, measure);
  child.send({ measure, count });
  const { result } = await message(child);
  child.disconnect();
  await once(child, "exit");
  return result;
}

/** The same of a service that is there, wherever the system places both. @param {string} url @param {string} client @param {string} measure
 * @param {number} count */
export async function runClient(url, client, measure, count) {
  const child = startClient(client, url);
  child.send({ measure, count });
  const { result } = await message(child);
  child.disconnect();
  await once(child, "exit");
  return result;
}

/** The same by a program that prints its result. @param {Server} server @param {string} program @param {string} measure
 * @param {number} count @param {string} [request] a file */
export async function measureProgram(server, program, measure, count, request = "") {
  const child = spawn(program, [server.url, measure, String(count), request], { stdio: ["ignore", "pipe", "inherit"] });
  place(server, child, measure);
  /** @type {Buffer[]} */
  const parts = [];
  child.stdout.on("data", (part) => parts.push(part));
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`${program} ended with ${code}`);
  return JSON.parse(Buffer.concat(parts).toString());
}

/** The request that a command of a client's is: its line, its headers, an empty line, its body. @param {Server} server
 * @param {string} client @param {string} call the end of its path */
export async function recordRequest(server, client, call) {
  /** @type {Buffer[]} */
  const parts = [];
  const { port } = new URL(server.url);
  let own = "";
  const proxy = net.createServer((socket) => {
    const far = net.connect(Number(port), "127.0.0.1");
    socket.on("data", (part) => parts.push(part)).pipe(far);
    // The service tells where its sandboxes are. Both ports have as many digits.
    far.on("data", (part) => socket.write(part.toString("latin1").replaceAll(`127.0.0.1:${port}`, `127.0.0.1:${own}`), "latin1"));
    for (const end of [socket, far]) end.on("error", () => {});
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  own = String(/** @type {import("node:net").AddressInfo} */ (proxy.address()).port);
  const child = startClient(client, `http://127.0.0.1:${own}`);
  child.send({ measure: "once", count: 1 });
  await message(child);
  child.disconnect();
  proxy.close();
  const bytes = Buffer.concat(parts).toString("latin1");
  // The last: a sandbox may be asked something before.
  const at = [...bytes.matchAll(new RegExp(`POST \\S*${call.replaceAll(".", "\\.")} `, "g"))].at(-1)?.index ?? -1;
  const [head] = bytes.slice(at).split("\r\n\r\n", 1);
  const length = Number(head.match(/^content-length: (\d+)/im)?.[1]);
  if (at < 0 || !(length > 0)) throw new Error(`no ${call} was recorded`);
  const lines = head.split("\r\n").filter((line) => !/^(host|content-length):/i.test(line));
  lines[0] = lines[0].replace(/ HTTP.*/, "");
  const body = bytes.slice(at + head.length + 4, at + head.length + 4 + length);
  return Buffer.from(`${lines.join("\n")}\n\n${body}`, "latin1");
}
