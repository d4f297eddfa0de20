// Files as a tar: what an engine's archive calls do, by this machine's own tar.
// @ts-check
import { spawn } from "node:child_process";
import { existsSync, lstatSync, mkdirSync, readlinkSync, statSync } from "node:fs";
import path from "node:path";
import { refusal } from "./errors.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */
/** @typedef {import("./container.js").Container} Container */

/** Bits of Go's os.FileMode. */
const MODE_DIR = 0x80000000;
const MODE_LINK = 0x08000000;

/** The header that tells of a file. @param {string} place */
function statHeader(place) {
  const stat = lstatSync(place);
  const kind = stat.isDirectory() ? MODE_DIR : stat.isSymbolicLink() ? MODE_LINK : 0;
  const told = {
    name: path.basename(place),
    size: stat.size,
    mode: kind + (stat.mode & 0o777),
    mtime: stat.mtime.toISOString(),
    linkTarget: stat.isSymbolicLink() ? readlinkSync(place) : "",
  };
  return { "x-docker-container-path-stat": Buffer.from(JSON.stringify(told)).toString("base64") };
}

/** @param {string[]} args @param {AsyncIterable<Buffer>} [input] */
function tar(args, input) {
  const child = spawn("tar", args, { stdio: [input ? "pipe" : "ignore", "pipe", "pipe"] });
  const ended = new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  return { child, ended };
}

/** @param {Exchange} exchange @param {Container} container @param {string} wanted */
export async function getArchive(exchange, container, wanted) {
  const { kind } = container.docker.settings;
  const place = container.real(wanted);
  if (!existsSync(place)) throw refusal(kind, "noFile", `${wanted} in container ${container.name}`);
  const headers = { "content-type": "application/x-tar", ...statHeader(place) };
  if (exchange.method === "HEAD") return exchange.reply(200, headers);
  const { child, ended } = tar(["--format=posix", "--numeric-owner", "-cf", "-", "-C", path.dirname(place), path.basename(place)]);
  await exchange.open(200, headers);
  for await (const chunk of /** @type {AsyncIterable<Buffer>} */ (child.stdout)) await exchange.write(chunk);
  await ended;
  return exchange.end();
}

/** @param {Exchange} exchange @param {Container} container @param {string} wanted */
export async function putArchive(exchange, container, wanted) {
  const { kind } = container.docker.settings;
  const place = container.real(wanted);
  const bytes = await exchange.body();
  if (!existsSync(place)) {
    if (kind === "docker") throw refusal(kind, "noFile", `${wanted} in container ${container.name}`);
    mkdirSync(place, { recursive: true });
  }
  if (!statSync(place).isDirectory()) throw refusal(kind, "noFolder", wanted);
  const { child, ended } = tar(["-xpf", "-", "-C", place], exchange.chunks());
  child.stdin?.on("error", () => {});
  child.stdin?.end(bytes);
  const code = await ended;
  return code === 0 || bytes.length === 0 ? exchange.reply(200) : exchange.json(500, { message: "unexpected EOF" });
}
