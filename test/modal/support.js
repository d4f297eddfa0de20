// An emulator and a sandbox of one test, both closed when it ends. An emulator whose handlers threw, or
// a sandbox that is left behind, fails the test.
import assert from "node:assert/strict";

import { ModalSandbox } from "cloudsandbox";

import { makeCertificate } from "../emulators/certificate.js";
import { startModal } from "../emulators/modal/index.js";
import { control, router } from "../emulators/modal/messages.js";
import { decode } from "../emulators/modal/proto.js";

const certificate = makeCertificate(["127.0.0.1"]);

/** @param {import("node:test").TestContext} t */
export async function startEmulator(t, settings) {
  const emulator = await startModal({ tls: certificate, ...settings });
  const { engine, fleet } = emulator;
  const sandboxes = [];
  t.after(async () => {
    engine.clearFaults();
    try {
      await Promise.all(sandboxes.map((sandbox) => sandbox.close()));
      assert.deepEqual(fleet.all().filter(({ result }) => !result).map(({ id }) => id), [], "left behind");
    } finally {
      await emulator.close();
    }
    assert.deepEqual(engine.errors, []);
  });
  /** A sandbox of this emulator, closed before it. */
  const make = (options) => {
    const sandbox = new ModalSandbox({ ...emulator.credentials, baseURL: emulator.apiUrl, ca: certificate.cert, ...options });
    sandboxes.push(sandbox);
    return sandbox;
  };
  /** The messages of a call, as they came. */
  const sent = (route) => engine.requests(route).map(({ bytes }) => decode((control[route] ?? router[route])[0], bytes.subarray(5)));
  return { emulator, engine, fleet, make, sent, ca: certificate.cert };
}

/** Starts both. */
export async function open(t, settings, options) {
  const started = await startEmulator(t, settings);
  return { ...started, sandbox: started.make(options) };
}
