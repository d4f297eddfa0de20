// How many requests things take, and over how many connections. In a file of its own: the connections of
// all sandboxes in a process share one pool.
import assert from "node:assert/strict";
import { test } from "node:test";

import { CREATE, DELETE, EXECUTE, LOOK, living, open } from "./support.js";

const WORK_DIR = "toolbox GET /work-dir";

test("requests of a start, a command and the end; one connection to each address", async (t) => {
  const { emulator, engine, sandbox } = await open(t);
  await sandbox.shell("true");
  for (let i = 0; i < 20; i += 1) await sandbox.shell("true");
  await sandbox.close();
  assert.deepEqual(
    engine.log.map(({ route }) => route).filter((route) => route !== EXECUTE),
    [CREATE, LOOK, WORK_DIR, DELETE],
  );
  assert.equal(engine.count(EXECUTE), 21);
  assert.equal(engine.accepted, 2);
  assert.deepEqual(living(emulator), []);
});

test("a file: one request to write it, one to read it", async (t) => {
  const { engine, sandbox } = await open(t);
  await sandbox.start();
  engine.clearLog();
  await sandbox.writeFile("a/b", "x");
  await sandbox.readFile("a/b");
  await sandbox.readFile("absent");
  assert.deepEqual(
    engine.log.map(({ route }) => route),
    ["toolbox POST /files/bulk-upload", "toolbox GET /files/download", "toolbox GET /files/download"],
  );
});

test("fifty commands at once: all answers, no more than one request each", async (t) => {
  const { engine, sandbox } = await open(t);
  const outputs = await Promise.all(
    Array.from({ length: 50 }, (_, i) => sandbox.shell(`echo ${i}`).then(({ output }) => output)),
  );
  assert.deepEqual(outputs, Array.from({ length: 50 }, (_, i) => `${i}\n`));
  assert.equal(engine.count(EXECUTE), 50);
  assert.equal(engine.count(CREATE), 1);
});
