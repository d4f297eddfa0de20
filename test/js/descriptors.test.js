// A process that has no descriptor left: every call ends with words that say so, and once there are some
// again everything works and nothing is left behind.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { describe, test } from "node:test";

import { startNode } from "../support/node.js";
import { tempDir } from "../support/temp.js";

const LIMIT = 200;

/** What every program has: `eat(room)` leaves `room` descriptors, `free()` gives all back. */
const PROLOGUE = `
  import { closeSync, openSync, readdirSync } from "node:fs";
  import { E2BSandbox, LocalSandbox, SandboxAgent } from "cloudsandbox";
  let eaten = [];
  const eat = (room) => {
    try {
      for (;;) eaten.push(openSync("/dev/null"));
    } catch {}
    for (const fd of eaten.splice(0, room)) closeSync(fd);
  };
  const free = () => {
    for (const fd of eaten.splice(0)) closeSync(fd);
  };
  const settled = (call) =>
    Promise.resolve().then(call).then(
      (value) => value?.output ?? "done",
      ({ code, retryable, message }) => ({ code, retryable, message }),
    );
`;

/** Runs `body`, which sets \`told\`, with at most LIMIT descriptors; resolves with that. */
async function run(body) {
  const { ended } = startNode(`${PROLOGUE} let told; ${body} console.log(JSON.stringify(told));`, {
    execPath: "/bin/sh",
    flags: ["-c", `ulimit -n ${LIMIT}; exec "$0" "$@"`, process.execPath],
  });
  const { code, stdout, stderr, hung } = await ended;
  assert.deepEqual([code, hung], [0, false], stderr);
  return JSON.parse(stdout);
}

/** Asserts that `error` says what is the matter and that it passes. */
function saysSo(error, code) {
  assert.deepEqual([error.code, error.retryable], [`ERR_SANDBOX_${code}`, true], error.message);
  assert.match(error.message, /too many open files.*ulimit -n/);
}

describe("without descriptors", { concurrency: 2 }, () => {
  test("the native part and SandboxAgent are loaded by the next attempt", async () => {
    const [constructed, started, again, closed, sandbox] = await run(`
      const agent = new SandboxAgent({ backend: "unix-local" });
      eat(0);
      told = [await settled(() => new LocalSandbox({ isolation: "none" })), await settled(() => agent.start())];
      free();
      told.push(await settled(() => agent.start()), await settled(() => agent.close()));
      told.push(await settled(() => new LocalSandbox({ isolation: "none" }).close()));
    `);
    saysSo(constructed, "PROVIDER");
    saysSo(started, "PROVIDER");
    assert.deepEqual([again, closed, sandbox], ["done", "done", "done"]);
  });

  test("libcurl is loaded by the next attempt, and a socket's lack is told", async () => {
    const [loading, connecting, refused] = await run(`
      const make = () => new E2BSandbox({ apiKey: "e2b_x", baseURL: "http://127.0.0.1:1", startTimeoutSeconds: 1 });
      const [first, second, third] = [make(), make(), make()];
      eat(0);
      told = [await settled(() => first.start())];
      free();
      await settled(() => third.start());
      eat(0);
      told.push(await settled(() => second.start()));
      free();
      told.push(await settled(() => third.start()));
    `);
    saysSo(loading, "NETWORK");
    assert.match(loading.message, /libcurl/);
    saysSo(connecting, "NETWORK");
    assert.equal(refused.code, "ERR_SANDBOX_NETWORK");
    assert.match(refused.message, /cannot connect/);
  });

  test("a local sandbox loses nothing, however few are left", async (t) => {
    const parent = tempDir(t);
    const { errors, outputs, before, after } = await run(`
      const make = () => new LocalSandbox({ isolation: "none", tempDir: ${JSON.stringify(parent)} });
      const count = () => readdirSync("/proc/self/fd").length;
      const outputs = [], errors = [];
      await make().close();
      const before = count();
      for (let room = 0; room < 16; room += 1) {
        const sandbox = make();
        const calls = [
          () => sandbox.start(),
          () => sandbox.shell("true"),
          () => sandbox.writeFile("a/b", "eA=="),
          () => sandbox.readFile("a/b"),
          () => sandbox.listFiles(),
        ];
        eat(room);
        for (const call of calls) errors.push(await settled(call));
        free();
        outputs.push(await settled(() => sandbox.shell("echo again")));
        eat(room);
        errors.push(await settled(() => sandbox.close()));
        free();
        outputs.push(await settled(() => sandbox.close()));
      }
      told = { errors: errors.filter(({ code }) => code), outputs, before, after: count() };
    `);
    assert.ok(errors.length > 10);
    for (const error of errors) saysSo(error, "PROVIDER");
    assert.deepEqual([...new Set(outputs)], ["again\n", "done"]);
    // The event loop keeps what it has opened for itself.
    assert.ok(after <= before + 4, `${before} descriptors before, ${after} after`);
    assert.deepEqual(readdirSync(parent), []);
  });
});
