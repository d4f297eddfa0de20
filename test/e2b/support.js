// One emulator per test file, one sandbox world per test, and what a request log is asked for.
import assert from "node:assert/strict";
import { after } from "node:test";

import { E2BSandbox } from "cloudsandbox";

import { startE2B } from "../emulators/e2b/index.js";

/** An emulator for one test; at the test's end nothing may be left in it, and it has seen no misuse. */
export async function open(t, settings = {}) {
  const emulator = await startE2B(settings);
  const sandboxes = [];
  const { engine, apiUrl: baseURL, sandboxUrl, apiKey } = emulator;
  t.after(async () => {
    engine.clearFaults();
    await Promise.all(sandboxes.map((sandbox) => sandbox.close()));
    await emulator.close();
    assert.deepEqual(engine.errors, []);
    assert.deepEqual(emulator.complaints, []);
  });
  return {
    emulator,
    engine,
    options: { apiKey, baseURL, sandboxUrl },
    make(options) {
      const sandbox = new E2BSandbox({ apiKey, baseURL, sandboxUrl, ca: settings.tls?.cert, ...options });
      sandboxes.push(sandbox);
      return sandbox;
    },
    existing: () => emulator.fleet.all().map((sandbox) => sandbox.id),
    /** Routes of all requests since the last call, in order. */
    routes() {
      const routes = engine.log.map((entry) => entry.route);
      engine.clearLog();
      return routes;
    },
  };
}

/** Variables of this machine's user must not decide a test. */
export function withoutVariables() {
  const names = ["E2B_API_KEY", "E2B_DOMAIN", "E2B_API_URL", "E2B_SANDBOX_URL", "E2B_DEBUG"];
  const saved = names.map((name) => process.env[name]);
  for (const name of names) delete process.env[name];
  after(() => names.forEach((name, i) => saved[i] !== undefined && (process.env[name] = saved[i])));
}

/** One envelope of a Connect stream. */
export function envelope(message, flags = 0) {
  const payload = Buffer.from(typeof message === "string" ? message : JSON.stringify(message));
  const head = Buffer.alloc(5);
  head[0] = flags;
  head.writeUInt32BE(payload.length, 1);
  return Buffer.concat([head, payload]);
}

export const END = envelope({}, 2);
export const endOfStream = (error) => envelope({ error }, 2);
export const event = (what) => envelope({ event: what });
export const started = event({ start: { pid: 4242 } });
export const exited = event({ end: { exited: true, status: "exit status 0" } });
export const stdout = (text) => event({ data: { stdout: Buffer.from(text).toString("base64") } });

/** A reply of the process service made of these envelopes. */
export const stream = (...parts) => ({
  status: 200,
  headers: { "content-type": "application/connect+json" },
  body: Buffer.concat(parts),
});
