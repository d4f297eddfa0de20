// A remote sandbox whose service is another process: what a runtime's event loop has to do for it. All else about
// remote sandboxes is the core's, and in the conformance suite.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { E2BSandbox } from "../../lib/index.js";
import { startProgram } from "../emulators/program.js";
import { rejection } from "../support/wait.js";

describe("remote", () => {
  let emulator;
  let sandbox;
  before(async () => {
    emulator = await startProgram("e2b");
    const { apiUrl: baseURL, sandboxUrl, apiKey } = emulator.told;
    sandbox = new E2BSandbox({ apiKey, baseURL, sandboxUrl });
  });
  after(async () => {
    await sandbox.close();
    await emulator.close();
  });

  test("commands, files and a stream", async () => {
    await sandbox.writeFile("f", "text");
    assert.equal(await sandbox.readFile("f"), "text");
    const seen = [];
    const { status, exitCode } = await sandbox.exec({ command: "cat f; echo more; exit 3", onStdout: (text) => seen.push(text) });
    assert.deepEqual([status, exitCode, seen.join("")], ["exited", 3, "textmore\n"]);
  });

  test("fifty commands at once", async () => {
    const results = await Promise.all(Array.from({ length: 50 }, (_, i) => sandbox.shell(`echo ${i}`)));
    assert.deepEqual(results.map(({ output }) => output.trim()), results.map((_, i) => String(i)));
  });

  test("a timeout, a cancel and a service that is not there", async () => {
    assert.equal((await sandbox.shell("sleep 30", { timeoutSeconds: 0.3 })).timedOut, true);
    const aborter = new AbortController();
    const call = sandbox.shell("echo begun; sleep 30", { signal: aborter.signal });
    setTimeout(() => aborter.abort(new Error("mine")), 100);
    assert.equal((await rejection(call)).message, "mine");
    const nowhere = new E2BSandbox({ apiKey: "k", baseURL: "http://127.0.0.1:1" });
    assert.equal((await rejection(nowhere.shell("true"))).mayHaveRun, false);
  });

  test("megabytes do not hold up the program", async () => {
    let ticks = 0;
    const timer = setInterval(() => (ticks += 1), 1);
    const bytes = new Uint8Array(8 << 20).fill(7);
    await sandbox.writeFile("big", bytes);
    const { output } = await sandbox.shell("wc -c < big; cat big | tail -c 500000 | base64");
    clearInterval(timer);
    assert.equal(output.split("\n")[0].trim(), String(bytes.length));
    assert.ok(ticks > 0);
  });
});
