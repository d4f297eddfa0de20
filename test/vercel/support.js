// An emulator and a sandbox of one test, both closed when it ends. An emulator whose handlers threw, or
// a sandbox that is left behind, fails the test.
import assert from "node:assert/strict";

import { VercelSandbox } from "cloudsandbox";

import { startVercel } from "../emulators/vercel/index.js";
import { removeCommandFolders } from "../support/daytona.js";

export const COMMAND = "POST /cmd";
export const CREATE = "POST /v3/sandboxes";
export const FIND = "GET /sandboxes/{name}";
export const LOOK = "GET /sessions/{id}";
export const STOP = "POST /stop";
export const DELETE = "DELETE /sandboxes/{name}";
export const KILL = "POST /cmd/{id}/kill";
export const WRITE = "POST /fs/write";
export const READ = "POST /fs/read";
export const EXTEND = "POST /extend-timeout";

/** @param {import("node:test").TestContext} t */
export async function startEmulator(t, settings) {
  const emulator = await startVercel(settings);
  const sandboxes = [];
  t.after(async () => {
    try {
      await Promise.all(sandboxes.map((sandbox) => sandbox.close()));
    } finally {
      await emulator.close();
      removeCommandFolders(emulator.engine);
    }
    assert.deepEqual(emulator.engine.errors, []);
  });
  /** A sandbox of this emulator, closed before it. */
  const make = (options) => {
    const sandbox = new VercelSandbox({ ...emulator.credentials, baseURL: emulator.apiUrl, ...options });
    sandboxes.push(sandbox);
    return sandbox;
  };
  return { emulator, engine: emulator.engine, make };
}

/** Starts both. */
export async function open(t, settings, options) {
  const started = await startEmulator(t, settings);
  return { ...started, sandbox: started.make(options) };
}

/** What the requests of a route said in JSON. */
export function sent(engine, route) {
  return engine.log.filter((entry) => entry.route === route).map(({ body }) => (body ? JSON.parse(body) : undefined));
}

/** How many requests came that run a command. */
export const runs = (engine) => engine.log.filter(({ route, body }) => route === COMMAND && body.includes("mkfifo")).length;
