// Files as a tar: what an engine's archive calls do, by this machine's own tar.
//
// Docker shows a file system of its own where the container's is in memory, and so does Podman when the container does
// not run. Podman takes a path for a pattern, follows a link that it is asked for, says of every path where it leads, and
// gives all files the container's user for an owner.
// @ts-check
import { spawn } from "node:child_process";
import { existsSync, lstatSync, mkdirSync, readdirSync, readlinkSync, statSync } from "node:fs";
import path from "node:path";
import { Refusal, refusal } from "./errors.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */
/** @typedef {import("./container.js").Container} Container */

/** Bits of Go's os.FileMode. */
const MODE_DIR = 0x80000000;
const MODE_LINK = 0x08000000;
const MODE_PIPE = 0x02000000;
const MODE_SOCKET = 0x01000000;
const MODE_DEVICE = 0x04200000;

const LINKS = 40;

/** @param {import("node:fs").Stats} stat */
function goMode(stat) {
  const kind =
    stat.isDirectory() ? MODE_DIR
    : stat.isSymbolicLink() ? MODE_LINK
    : stat.isFIFO() ? MODE_PIPE
    : stat.isSocket() ? MODE_SOCKET
    : stat.isFile() ? 0
    : MODE_DEVICE;
  const besides = (stat.mode & 0o4000 ? 0x800000 : 0) + (stat.mode & 0o2000 ? 0x400000 : 0) + (stat.mode & 0o1000 ? 0x100000 : 0);
  return kind + besides + (stat.mode & 0o777);
}

/** @param {string} place */
const lstat = (place) => lstatSync(place, { throwIfNoEntry: false });

/** The first path that fits a pattern. @param {Container} container @param {string} pattern */
function matched(container, pattern) {
  return pattern.split("/").reduce((dir, part) => {
    if (!/[*?]/.test(part)) return path.posix.join(dir, part);
    const fits = new RegExp(`^${part.replace(/[.+^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*").replaceAll("?", ".")}$`, "su");
    const place = container.seenByArchive(dir);
    const name = existsSync(place) ? readdirSync(place).sort().find((it) => fits.test(it)) : undefined;
    return path.posix.join(dir, name ?? part);
  }, "/");
}

/** Where a path leads, when its last part is a link. @param {Container} container @param {string} wanted */
function behindLinks(container, wanted) {
  for (let i = 0; i < LINKS; i += 1) {
    const place = container.seenByArchive(wanted);
    if (!lstat(place)?.isSymbolicLink()) return wanted;
    wanted = path.posix.resolve(path.posix.dirname(wanted), readlinkSync(place));
  }
  throw new Refusal(500, `copier: stat: error resolving ${JSON.stringify(wanted)}: too many levels of symbolic links`);
}

/** The header that tells of a file. @param {Container} container @param {string} wanted @param {string} target */
function statHeader(container, wanted, target) {
  const place = container.seenByArchive(wanted);
  const stat = lstatSync(place);
  const isPodman = container.docker.settings.kind === "podman";
  const told = {
    name: path.basename(isPodman ? target : wanted),
    size: stat.size,
    mode: goMode(stat),
    mtime: stat.mtime.toISOString(),
    ...(isPodman ? { isDir: Boolean(lstat(container.seenByArchive(target))?.isDirectory()) } : {}),
    linkTarget: isPodman || stat.isSymbolicLink() ? target : "",
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

const FORMAT = ["--format=posix", "--pax-option=delete=atime,delete=ctime,delete=mtime", "--blocking-factor=1", "--numeric-owner"];

/** What both engines ask of a path, which they clean first. @param {Container} container @param {string} wanted */
function look(container, wanted) {
  const { kind } = container.docker.settings;
  const clean = path.posix.resolve("/", wanted);
  const place = container.seenByArchive(clean);
  if (!lstat(place)) {
    const above = lstat(path.dirname(place));
    if (kind === "docker" && above?.isFile()) throw new Refusal(500, `lstat ${place}: not a directory`);
    throw refusal(kind, "noFile", `${wanted} in container ${container.name}`);
  }
  return { clean, target: behindLinks(container, clean) };
}

/** @param {Exchange} exchange @param {Container} container @param {string} wanted */
export async function getArchive(exchange, container, wanted) {
  const { kind } = container.docker.settings;
  const isPodman = kind === "podman";
  const { clean, target } = look(container, wanted);
  const headers = { "content-type": "application/x-tar", ...statHeader(container, clean, target) };
  const place = container.seenByArchive(isPodman ? matched(container, clean) : clean);
  if (isPodman && !existsSync(place)) throw refusal(kind, "noFile");
  if (exchange.method === "HEAD") return exchange.reply(200, headers);
  const [uid = "0", gid = uid] = (container.spec.User || "0").split(":");
  const { child, ended } = tar([
    ...FORMAT, ...(isPodman ? ["--dereference", `--owner=${uid}`, `--group=${gid}`] : []), "-cf", "-", "-C", path.dirname(place), "--", path.basename(place),
  ]);
  await exchange.open(200, headers);
  for await (const chunk of /** @type {AsyncIterable<Buffer>} */ (child.stdout)) await exchange.write(chunk);
  await ended;
  return exchange.end();
}

/** @param {Exchange} exchange @param {Container} container @param {string} wanted */
export async function putArchive(exchange, container, wanted) {
  const { kind } = container.docker.settings;
  const clean = path.posix.resolve("/", wanted);
  const place = container.seenByArchive(clean);
  const bytes = await exchange.body();
  // Docker counts what is in memory as part of the root; Podman writes to it.
  if (container.host.ReadonlyRootfs && kind === "docker") throw new Refusal(500, "container rootfs is marked read-only");
  if (container.host.ReadonlyRootfs && !container.isInMemory(clean)) throw new Refusal(500, "copier: put: read-only file system");
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
