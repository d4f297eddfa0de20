// An emulator and a sandbox of one test, both closed when it ends. An emulator whose handlers threw, or
// a sandbox that is left behind, fails the test.
import assert from "node:assert/strict";

import { DaytonaSandbox } from "cloudsandbox";

import { startDaytona } from "../emulators/daytona/index.js";
import { removeCommandFolders } from "../support/daytona.js";

export const EXECUTE = "toolbox POST /process/execute";
export const CREATE = "POST /sandbox";
export const LOOK = "GET /sandbox/{id}";
export const START = "POST /sandbox/{id}/start";
export const DELETE = "DELETE /sandbox/{id}";

/** @param {import("node:test").TestContext} t */
export async function startEmulator(t, settings) {
  const emulator = await startDaytona(settings);
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
    const sandbox = new DaytonaSandbox({ apiKey: emulator.apiKey, baseURL: emulator.apiUrl, ...options });
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

/** The sandboxes that exist and are not being deleted. */
export function living(emulator) {
  return emulator.fleet.all().filter(({ state }) => state !== "destroying" && state !== "destroyed");
}
