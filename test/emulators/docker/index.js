// An engine of containers as its clients see it: Docker 20.10, or Podman 4.3 that speaks Docker's API. It is for what a
// real engine does not do on request; what it is like otherwise was measured on real ones.
// @ts-check
import { chmodSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { Engine } from "../engine.js";
import { PipeMaker } from "../fifo.js";
import { Reaper } from "../processes.js";
import { handle, routeOf } from "./api.js";

/** @typedef {import("./container.js").Container} Container */
/** @typedef {import("./container.js").Exec} Exec */

/**
 * @typedef {object} Settings
 * @property {"docker" | "podman"} kind
 * @property {string} apiVersion the newest that it speaks
 * @property {string} minApiVersion the oldest
 * @property {Set<string>} images that it has, with tags
 * @property {Map<string, { layers?: number, fails?: string }>} registry images that can be pulled; `fails`: in the midst
 *   of it, with that reason
 * @property {Set<string>} networks
 * @property {Set<string>} runtimes
 * @property {string} cgroupVersion
 * @property {boolean} rootless
 * @property {number | null} seed how frames are cut; null: not at all
 * @property {number} lateRunning how often a process that has ended is said to run
 */

/**
 * @typedef {object} Options
 * @property {"docker" | "podman"} [kind]
 * @property {string} [apiVersion]
 * @property {string} [minApiVersion]
 * @property {number | null} [seed]
 * @property {number} [lateRunning]
 * @property {boolean} [rootless]
 * @property {boolean} [tcp] listens at a port, and not at a socket
 * @property {{ key: string, cert: string, ca?: string }} [tls] the same, with TLS; `ca`: for clients with a certificate
 */

export class Docker {
  engine = new Engine();
  /** @type {Map<string, Container>} */
  containers = new Map();
  /** @type {Map<string, Exec>} */
  execs = new Map();

  /** @param {Settings} settings */
  constructor(settings) {
    this.settings = settings;
    // Short: a socket's path may have 107 bytes.
    this.base = realpathSync(mkdtempSync(path.join(os.tmpdir(), "docker-")));
    // As the directories of a container are: open to all.
    chmodSync(this.base, 0o755);
    this.reaper = new Reaper(this.base);
    this.pipes = new PipeMaker(this.base);
  }

  /** Id, the beginning of one, or a name. @param {string} wanted */
  find(wanted) {
    const all = [...this.containers.values()];
    return this.containers.get(wanted) ?? all.find(({ name }) => name === wanted) ?? all.find(({ id }) => wanted.length >= 4 && id.startsWith(wanted));
  }

  /** The container vanishes with all that is in it. @param {string} id */
  lose(id) {
    this.find(id)?.remove();
  }

  /** The kernel ends a container that has used up its memory. @param {string} id */
  outOfMemory(id) {
    const container = this.find(id);
    if (!container) return;
    container.oomKilled = true;
    container.signal("SIGKILL");
  }

  async close() {
    for (const container of [...this.containers.values()]) container.remove();
    await this.engine.close();
    rmSync(this.base, { recursive: true, force: true });
    this.reaper.dismiss();
  }
}

/** @param {Options} [options] */
export async function startDocker(options = {}) {
  const { kind = "docker", tcp = false, tls } = options;
  const docker = new Docker({
    kind,
    apiVersion: options.apiVersion ?? "1.41",
    minApiVersion: options.minApiVersion ?? (kind === "docker" ? "1.12" : "1.24"),
    images: new Set(["python:3.12-slim", "busybox:latest"]),
    registry: new Map([["alpine:3", { layers: 2 }], ["broken:latest", { fails: "unexpected EOF" }]]),
    networks: new Set(["default", "none", "bridge", "host"]),
    runtimes: new Set(["runc"]),
    cgroupVersion: "2",
    rootless: options.rootless ?? false,
    seed: options.seed === undefined ? 1 : options.seed,
    lateRunning: options.lateRunning ?? 0,
  });
  const listener = { name: "engine", handler: handle(docker), route: routeOf, upgrades: true, http1: true };
  const socketPath = path.join(docker.base, "e.sock");
  const { url } = await docker.engine.listen({ ...listener, ...(tls ? { tls } : tcp ? {} : { socketPath }) });
  return Object.assign(docker, { host: url.replace(/^https?:/, "tcp:"), url });
}
