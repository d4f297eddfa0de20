// An emulator and a sandbox of one test, both closed when it ends. An emulator whose handlers threw, or
// a session that is left behind, fails the test.
import assert from "node:assert/strict";

import { HttpSandbox } from "cloudsandbox";

import { startHttp } from "../emulators/http/index.js";

export const CREATE = "POST /sessions";
export const EXEC = "POST /sessions/{id}/exec";
export const PUT = "PUT /sessions/{id}/files";
export const GET = "GET /sessions/{id}/files";
export const DELETE = "DELETE /sessions/{id}";

/** @param {import("node:test").TestContext} t */
export async function startEmulator(t, settings) {
  const emulator = await startHttp(settings);
  const sandboxes = [];
  t.after(async () => {
    emulator.engine.clearFaults();
    try {
      await Promise.all(sandboxes.map((sandbox) => sandbox.close()));
    } finally {
      await emulator.close();
    }
    assert.deepEqual(emulator.engine.errors, []);
  });
  /** A sandbox of this emulator, closed before it. */
  const make = (options) => {
    const sandbox = new HttpSandbox({ token: emulator.token, baseURL: emulator.url, ...options });
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
export const sent = (engine, route) => engine.requests(route).map(({ body }) => JSON.parse(body));

/** How many requests came that run a command. */
export const runs = (engine) => engine.requests(EXEC).filter(({ body }) => body.includes("mkfifo")).length;

/** A refusal as the protocol proposes it. */
export const refusal = (status, code, message = "because of this") => ({
  instead: {
    status,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ error: { code, message } }),
  },
});
