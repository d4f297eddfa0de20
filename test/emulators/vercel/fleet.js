// The sandboxes that there are, by their names, and the sessions of all of them.
// @ts-check
import { mkdirSync, mkdtempSync, realpathSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { randomUUID } from "node:crypto";

import { PipeMaker } from "../fifo.js";
import { Reaper, removeFolder } from "../processes.js";
import { Session } from "./session.js";

/** @typedef {import("./index.js").Settings} Settings */

/**
 * What a create says, checked.
 * @typedef {object} SandboxSpec
 * @property {string} name
 * @property {number} timeout
 * @property {number} vcpus
 * @property {string} region
 * @property {boolean} persistent
 * @property {Record<string, string>} env
 * @property {Record<string, string>} tags
 * @property {string} [image]
 * @property {string} [runtime]
 * @property {any} [networkPolicy]
 */

export class Sandbox {
  createdAt = Date.now();
  /** @type {Session[]} */
  sessions = [];

  /** @param {SandboxSpec} spec @param {string} token whose it is @param {Fleet} fleet */
  constructor(spec, token, fleet) {
    this.spec = spec;
    this.name = spec.name;
    this.token = token;
    this.pipes = fleet.pipes;
    this.directory = path.join(fleet.directory, randomUUID());
    this.#fleet = fleet;
  }

  #fleet;

  get session() {
    return this.sessions[this.sessions.length - 1];
  }

  /** A machine of its own: with the files of the last one only when it is persistent. */
  newSession() {
    const root = path.join(this.directory, this.spec.persistent ? "kept" : `session-${this.sessions.length}`);
    const session = new Session(this, root, this.#fleet.settings);
    this.sessions.push(session);
    this.#fleet.watch(session);
    return session;
  }

  view() {
    const { name, createdAt, session, spec } = this;
    const { persistent, tags, region, timeout, image, runtime } = spec;
    const made = runtime ? { runtime } : { image: image ?? "vercel/sandbox/universal:latest" };
    const times = { createdAt, updatedAt: session.updatedAt };
    return { name, persistent, ...times, currentSessionId: session.id, status: session.status, ...made, tags, region, timeout };
  }
}

export class Fleet {
  /** @type {Map<string, Sandbox>} */
  #sandboxes = new Map();
  #reaper;

  /** @param {Settings} settings */
  constructor(settings) {
    this.settings = settings;
    this.directory = realpathSync(mkdtempSync(path.join(os.tmpdir(), "vercel-emulator-")));
    const pipes = path.join(this.directory, "pipes");
    mkdirSync(pipes);
    this.pipes = new PipeMaker(pipes);
    this.#reaper = new Reaper(this.directory);
  }

  all() {
    return [...this.#sandboxes.values()];
  }

  /** @param {string} name */
  find(name) {
    return this.#sandboxes.get(name);
  }

  /** @param {string} id */
  session(id) {
    return this.all().flatMap(({ sessions }) => sessions).find((session) => session.id === id);
  }

  /** @param {Session} session */
  watch(session) {
    this.#reaper.watch(session.marker);
  }

  /** @param {SandboxSpec} spec @param {string} token */
  make(spec, token) {
    const sandbox = new Sandbox(spec, token, this);
    this.#sandboxes.set(spec.name, sandbox);
    sandbox.newSession();
    return sandbox;
  }

  /** Nothing more is known of it. @param {Sandbox} sandbox */
  remove(sandbox) {
    this.#sandboxes.delete(sandbox.name);
    for (const session of sandbox.sessions) {
      session.end("stopped");
      this.#reaper.forget(session.marker);
    }
    removeFolder(sandbox.directory);
  }

  close() {
    for (const sandbox of this.all()) this.remove(sandbox);
    this.#reaper.dismiss();
    removeFolder(this.directory);
  }
}
