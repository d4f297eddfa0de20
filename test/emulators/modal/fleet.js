// Apps, images and sandboxes: what would be a machine is a directory and the processes started in it.
// @ts-check
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, realpathSync } from "node:fs";
import os from "node:os";
import path from "node:path";

import { PipeMaker } from "../fifo.js";
import { Reaper, removeFolder } from "../processes.js";
import { endProcesses, Exec } from "./exec.js";

/** @typedef {import("./index.js").Settings} Settings */

export const RESULT = /** @type {const} */ ({ success: 1, failure: 2, terminated: 3, timeout: 4, initFailure: 5, internal: 6, idle: 7, memory: 8 });

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/** @param {string} prefix @param {number} length */
export function makeId(prefix, length) {
  return `${prefix}-${Array.from(randomBytes(length), (byte) => LETTERS[byte % LETTERS.length]).join("")}`;
}

/** A JWT that nobody checks, but for its time. @param {number} seconds */
export function makeJwt(seconds, claims = {}) {
  const part = (/** @type {unknown} */ value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const exp = Math.floor(Date.now() / 1000) + seconds;
  return `${part({ alg: "none" })}.${part({ ...claims, exp, nonce: randomBytes(6).toString("hex") })}.${randomBytes(12).toString("base64url")}`;
}

export class Sandbox {
  createdAt = Date.now() / 1000;
  /** @type {Map<string, Exec>} */
  execs = new Map();
  /** How it has ended. @type {{ status: number, exception?: string } | undefined} */
  result;
  /** Tokens of the router that are good. @type {Set<string>} */
  jwts = new Set();
  readyAt;
  /** @type {NodeJS.Timeout | undefined} */
  #timer;

  /**
   * @param {Fleet} fleet
   * @param {boolean} v2
   * @param {{ tokenId: string, appId: string, definition: any, env: Record<string, string>, tags: { name: string, value: string }[] }} spec
   */
  constructor(fleet, v2, { tokenId, appId, definition, env, tags }) {
    this.fleet = fleet;
    this.settings = fleet.settings;
    this.pipes = fleet.pipes;
    this.v2 = v2;
    this.id = v2 ? `${makeId("sb", 25)}V` : makeId("sb", 22);
    this.taskId = v2 ? `${makeId("ta", 25)}V` : makeId("ta", 22);
    this.tokenId = tokenId;
    this.appId = appId;
    this.definition = definition;
    this.env = env;
    this.tags = tags;
    this.name = definition.name ?? "";
    this.directory = path.join(fleet.directory, this.id);
    this.home = path.join(this.directory, "root");
    this.workdir = definition.workdir ?? path.join(this.directory, "work");
    this.marker = `MODAL_EMULATOR_SANDBOX=${this.id}`;
    this.readyAt = Date.now() + this.settings.startMs;
    for (const folder of [this.home, this.workdir]) mkdirSync(folder, { recursive: true });
    this.#timer = setTimeout(() => this.end(RESULT.timeout), definition.timeoutSecs * this.settings.secondMs);
    this.#timer.unref();
  }

  /** @param {Record<string, string>} env @returns {Record<string, string>} */
  environment(env) {
    const [name, value] = this.marker.split("=");
    return { PATH: process.env.PATH ?? "", LANG: "C.UTF-8", HOME: this.home, ...this.env, ...env, [name]: value };
  }

  /** A token for its commands. */
  access() {
    const jwt = makeJwt(this.settings.jwtSeconds, { task_id: this.taskId });
    this.jwts.add(jwt);
    return { jwt, url: this.settings.routerUrl };
  }

  /** @param {import("./exec.js").ExecSpec} spec @param {string} id */
  async run(spec, id) {
    const exec = new Exec(this, spec);
    this.execs.set(id, exec);
    try {
      await exec.start();
    } catch (error) {
      this.execs.delete(id);
      throw error;
    }
    if (this.result) exec.breakOff();
  }

  /** Over, with all that runs in it. @param {number} status @param {string} [exception] */
  end(status, exception) {
    if (this.result) return;
    clearTimeout(this.#timer);
    this.result = { status, ...(exception && { exception }) };
    for (const exec of this.execs.values()) exec.breakOff();
    endProcesses(this);
  }
}

export class Fleet {
  /** @type {Map<string, Sandbox>} */
  sandboxes = new Map();
  /** Ids by name. @type {Map<string, string>} */
  apps = new Map();
  /** By recipe. @type {Map<string, { id: string, builds: number, fails?: string }>} */
  images = new Map();
  /** @type {Map<string, Record<string, string>>} */
  secrets = new Map();
  #reaper;

  /** @param {Settings} settings */
  constructor(settings) {
    this.settings = settings;
    this.directory = realpathSync(mkdtempSync(path.join(os.tmpdir(), "modal-emulator-")));
    const pipes = path.join(this.directory, "pipes");
    mkdirSync(pipes);
    this.pipes = new PipeMaker(pipes);
    this.#reaper = new Reaper(this.directory);
  }

  all() {
    return [...this.sandboxes.values()];
  }

  /** @param {boolean} v2 @param {any} spec */
  make(v2, spec) {
    const sandbox = new Sandbox(this, v2, spec);
    this.sandboxes.set(sandbox.id, sandbox);
    this.#reaper.watch(sandbox.marker);
    return sandbox;
  }

  /** @param {string} taskId */
  byTask(taskId) {
    return this.all().find((sandbox) => sandbox.taskId === taskId);
  }

  /** Nothing more is known of it. @param {Sandbox} sandbox */
  remove(sandbox) {
    this.sandboxes.delete(sandbox.id);
    sandbox.end(RESULT.terminated);
    this.#reaper.forget(sandbox.marker);
    removeFolder(sandbox.directory);
  }

  close() {
    for (const sandbox of this.all()) this.remove(sandbox);
    this.#reaper.dismiss();
    removeFolder(this.directory);
  }
}
