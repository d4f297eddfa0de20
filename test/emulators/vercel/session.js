// One session: what would be a machine is a directory and the processes started in it.
// @ts-check
import { randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import path from "node:path";

import { signalMarked } from "../processes.js";
import { Command } from "./command.js";
import { ApiError } from "./errors.js";

/** @typedef {import("./index.js").Settings} Settings */
/** @typedef {import("./fleet.js").Sandbox} Sandbox */
/** @typedef {"pending" | "running" | "stopping" | "stopped" | "failed" | "aborted" | "snapshotting"} Status */

export class Session {
  id = `sess_${randomBytes(10).toString("hex")}`;
  /** @type {Status} */
  status = "pending";
  requestedAt = Date.now();
  createdAt = this.requestedAt;
  updatedAt = this.requestedAt;
  /** @type {number | undefined} */
  startedAt;
  /** @type {number | undefined} */
  stoppedAt;
  /** @type {Map<string, Command>} */
  commands = new Map();
  /** @type {NodeJS.Timeout | undefined} */
  #timer;

  /** @param {Sandbox} sandbox @param {string} root @param {Settings} settings */
  constructor(sandbox, root, settings) {
    this.sandbox = sandbox;
    this.settings = settings;
    this.pipes = sandbox.pipes;
    this.root = root;
    this.cwd = path.join(root, "vercel", "sandbox");
    this.home = path.join(root, "home", "ubuntu");
    this.timeout = sandbox.spec.timeout;
    this.networkPolicy = sandbox.spec.networkPolicy;
    this.marker = `VERCEL_EMULATOR_SESSION=${this.id}`;
    mkdirSync(this.cwd, { recursive: true });
    mkdirSync(this.home, { recursive: true });
  }

  view() {
    const { id, timeout, status, requestedAt, startedAt, stoppedAt, createdAt, updatedAt, cwd } = this;
    const { vcpus } = this.sandbox.spec;
    const shape = { id, memory: 2048 * vcpus, vcpus, region: this.sandbox.spec.region, timeout, status, requestedAt };
    return { ...shape, startedAt, stoppedAt, createdAt, updatedAt, cwd, networkPolicy: this.#policy() };
  }

  /** Replies have another shape than requests. */
  #policy() {
    const policy = this.networkPolicy;
    if (policy === undefined || policy.mode !== undefined) return policy;
    const { allow = [], subnets = {} } = policy;
    const allowedDomains = Array.isArray(allow) ? allow : Object.keys(allow);
    return { mode: "custom", allowedDomains, allowedCIDRs: subnets.allow ?? [], deniedCIDRs: subnets.deny ?? [] };
  }

  /** @param {Status} status */
  enter(status) {
    this.status = status;
    this.updatedAt = Date.now();
    if (status === "running") {
      this.startedAt = this.updatedAt;
      this.#arm();
    }
  }

  #arm() {
    clearTimeout(this.#timer);
    const left = (this.startedAt ?? 0) + this.timeout * (this.settings.secondMs / 1000) - Date.now();
    this.#timer = setTimeout(() => this.end("stopped"), Math.max(left, 0));
    this.#timer.unref();
  }

  /** @param {number} ms */
  extend(ms) {
    this.timeout += ms;
    this.#arm();
  }

  /** Over, with all that runs in it. @param {Status} status */
  end(status) {
    if (["stopped", "failed", "aborted"].includes(this.status)) return;
    clearTimeout(this.#timer);
    this.enter(status);
    this.stoppedAt = this.updatedAt;
    for (const command of this.commands.values()) command.breakOff(this.settings.tellsEnd);
    signalMarked(this.marker, "SIGKILL", this.root);
  }

  /** Refuses what cannot be done any more. */
  check() {
    if (this.status === "stopping") throw new ApiError(422, "sandbox_stopping", "Sandbox is stopping");
    if (this.status === "snapshotting") throw new ApiError(422, "sandbox_snapshotting", "Sandbox is creating a snapshot");
    if (this.status === "pending") throw new ApiError(400, "bad_request", "Sandbox is not running yet");
    if (this.status !== "running") throw new ApiError(410, "sandbox_stopped", "Sandbox has stopped execution and is no longer available");
  }

  /**
   * @param {Record<string, string>} env
   * @param {boolean} sudo
   * @returns {Record<string, string>}
   */
  environment(env, sudo) {
    const home = sudo ? "/root" : this.home;
    return {
      PATH: process.env.PATH ?? "", LANG: "C.UTF-8", HOME: home, ...this.sandbox.spec.env, ...env,
      VERCEL_EMULATOR_SESSION: this.id,
    };
  }

  /** @param {string} name as a request has it */
  resolve(name) {
    return path.resolve(this.cwd, name);
  }

  /** @param {import("./command.js").CommandSpec} spec */
  async run(spec) {
    const command = new Command(this, spec);
    await command.start();
    this.commands.set(command.id, command);
    if (this.status !== "running") command.breakOff(this.settings.tellsEnd);
    return command;
  }
}
