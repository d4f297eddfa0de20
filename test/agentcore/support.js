// An emulator and a sandbox of one test, both closed when it ends. An emulator whose handlers threw, or
// a session that is left behind, fails the test.
import assert from "node:assert/strict";

import { AgentCoreSandbox } from "cloudsandbox";

import { startAgentCore } from "../emulators/agentcore/index.js";

export const START = "PUT /sessions/start";
export const GET = "GET /sessions/get";
export const LIST = "POST /sessions/list";
export const STOP = "PUT /sessions/stop";
export const INVOKE = "POST /tools/invoke";

/** @param {import("node:test").TestContext} t */
export async function startEmulator(t, settings) {
  const emulator = await startAgentCore(settings);
  const sandboxes = [];
  t.after(async () => {
    try {
      await Promise.all(sandboxes.map((sandbox) => sandbox.close()));
    } finally {
      await emulator.close();
    }
    assert.deepEqual(emulator.engine.errors, []);
  });
  /** Closed before the emulator. */
  const track = (sandbox) => {
    sandboxes.push(sandbox);
    return sandbox;
  };
  const make = (options) => track(new AgentCoreSandbox({ ...emulator.credentials, baseURL: emulator.url, ...options }));
  return { emulator, engine: emulator.engine, make, track };
}

/** Starts both. */
export async function open(t, settings, options) {
  const started = await startEmulator(t, settings);
  return { ...started, sandbox: started.make(options) };
}

/** What the requests of a route said in JSON. */
export function sent(engine, route) {
  return engine.requests(route).map(({ body }) => (body ? JSON.parse(body) : undefined));
}

/** How many requests came that run a command. */
export const runs = (engine) => engine.log.filter(({ route, body }) => route === INVOKE && body.includes("mkfifo")).length;

/** Takes variables away, and sets some, until the test ends. */
export function useVariables(t, variables) {
  const saved = { ...process.env };
  for (const name of Object.keys(process.env)) if (/^(AWS|BEDROCK_AGENTCORE)_/.test(name)) delete process.env[name];
  Object.assign(process.env, variables);
  t.after(() => {
    for (const name of Object.keys(process.env)) if (!(name in saved)) delete process.env[name];
    Object.assign(process.env, saved);
  });
}
