// How many requests things take, and over how many connections. In a file of its own: the connections of
// all sandboxes in a process share one pool.
import assert from "node:assert/strict";
import { test } from "node:test";

import { COMMAND, CREATE, DELETE, LOOK, READ, STOP, WRITE, open, runs, sent } from "./support.js";

const routes = (engine) => engine.log.map(({ route }) => route);

test("requests of a start, a command and the end; one connection", async (t) => {
  const { emulator, engine, sandbox } = await open(t);
  for (let i = 0; i < 20; i += 1) await sandbox.shell("true");
  await sandbox.close();
  assert.deepEqual(routes(engine).filter((route) => route !== COMMAND), [CREATE, STOP, DELETE]);
  assert.equal(engine.count(COMMAND), 20);
  assert.equal(engine.accepted, 1);
  assert.deepEqual(emulator.fleet.all(), []);
});

test("a session that is pending is looked at", async (t) => {
  const { engine, sandbox } = await open(t, { startMs: 100 });
  await sandbox.start();
  assert.deepEqual(routes(engine), [CREATE, LOOK]);
});

test("a file: one request to write it, one to read it, two when there is none", async (t) => {
  const { engine, sandbox } = await open(t);
  await sandbox.start();
  engine.clearLog();
  await sandbox.writeFile("a/b", "x");
  await sandbox.readFile("a/b");
  await sandbox.readFile("absent");
  assert.deepEqual(routes(engine), [WRITE, READ, READ, COMMAND]);
});

test("an archive has the one file, by its way from the root", async (t) => {
  const { engine, sandbox } = await open(t);
  await sandbox.writeFile("a//./b/../f", "x");
  const [{ headers }] = engine.requests(WRITE);
  assert.deepEqual([headers["content-type"], headers["x-cwd"]], ["application/gzip", "/"]);
  assert.equal((await sandbox.shell("find . -type f")).output, "./a/f\n");
});

test("long text, input and code are uploaded, and the line stays short", async (t) => {
  const { engine, sandbox } = await open(t);
  const long = "x".repeat(200_000);
  const { stdout } = await sandbox.exec({ command: `# ${long}\ncat | wc -c`, stdin: long });
  assert.equal(Number(stdout), 200_000);
  assert.equal(engine.count(WRITE), 2);
  assert.equal(runs(engine), 1);
  assert.ok(engine.requests(COMMAND).every(({ bodyBytes }) => bodyBytes < 20_000));
});

test("variables go with the request, and not in its line", async (t) => {
  const { engine, sandbox } = await open(t);
  await sandbox.shell("echo $A", { env: { A: "canary" } });
  const [body] = sent(engine, COMMAND);
  assert.deepEqual(body.env, { A: "canary" });
  assert.ok(!body.args[1].includes("canary"));
  assert.deepEqual([body.command, body.args[0], body.cwd, body.wait, body.logs], ["/bin/sh", "-c", "/", true, true]);
});

test("fifty commands at once: all answers, no more than one request each", async (t) => {
  const { engine, sandbox } = await open(t);
  const outputs = await Promise.all(Array.from({ length: 50 }, (_, i) => sandbox.shell(`echo ${i}`).then(({ output }) => output)));
  assert.deepEqual(outputs, Array.from({ length: 50 }, (_, i) => `${i}\n`));
  assert.equal(engine.count(COMMAND), 50);
  assert.equal(engine.count(CREATE), 1);
});
