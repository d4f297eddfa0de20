// What goes over the wire, and how often.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { CREATE, DELETE, EXEC, GET, PUT, open, runs, sent } from "./support.js";

describe("requests", { concurrency: 4 }, () => {
  test("a life: create, where it is, one request for each command, delete", async (t) => {
    const { engine, sandbox } = await open(t);
    await sandbox.shell("echo 1");
    await sandbox.run("print(2)");
    await sandbox.close();
    assert.deepEqual(engine.log.map(({ route }) => route), [CREATE, EXEC, EXEC, EXEC, DELETE]);
    assert.equal(engine.accepted, 1, "over one connection");
  });

  test("an exec: an argv of /bin/sh, and all members", async (t) => {
    const { engine, sandbox } = await open(t);
    await sandbox.exec({ command: "true", env: { NAME: "wörth\n" }, timeoutSeconds: 7.5 });
    await sandbox.exec({ command: "true", timeoutSeconds: Infinity });
    const [, first, second] = sent(engine, EXEC);
    assert.deepEqual(Object.keys(first), ["cwd", "env", "timeout_seconds", "stdin", "command"]);
    const { cwd, env, timeout_seconds: limit, stdin, command } = first;
    assert.deepEqual({ cwd, env, limit, stdin }, { cwd: "/workspace", env: { NAME: "wörth\n" }, limit: 23, stdin: null });
    assert.deepEqual([command.length, ...command.slice(0, 2)], [3, "/bin/sh", "-c"]);
    assert.deepEqual([second.env, second.timeout_seconds], [{}, null]);
    const { headers } = engine.requests(EXEC)[1];
    assert.equal(headers["content-type"], "application/json");
    assert.equal(headers["accept-encoding"], undefined);
  });

  test("files below the working directory by their routes, all others by commands", async (t) => {
    const { engine, sandbox } = await open(t, {}, { workingDir: "/srv/work" });
    const names = ["f", "a b/c+d&ä%.txt", "/srv/work/g", "~x", "a~b"];
    for (const name of names.filter((it) => it !== "~x")) await sandbox.writeFile(name, name);
    await sandbox.writeFile("./~x", "~x");
    const paths = engine.requests(PUT).map(({ path }) => path.split("?")[1]);
    assert.deepEqual(paths, [
      "path=%2Fsrv%2Fwork%2Ff", "path=%2Fsrv%2Fwork%2Fa%20b%2Fc%2Bd%26%C3%A4%25.txt", "path=%2Fsrv%2Fwork%2Fg",
      "path=%2Fsrv%2Fwork%2Fa~b",
    ]);
    assert.equal(engine.requests(PUT)[0].headers["content-type"], "application/octet-stream");
    const before = engine.count(EXEC);
    for (const name of ["~/h", "a/../i", ".//j", `/tmp/../tmp/cloudsandbox-${process.pid}.txt`]) {
      await sandbox.writeFile(name, name);
      assert.equal(await sandbox.readFile(name), name);
    }
    assert.equal(engine.count(PUT), 4);
    assert.equal(engine.count(GET), 0);
    assert.ok(engine.count(EXEC) > before);
    const listed = await sandbox.shell(`rm /tmp/cloudsandbox-${process.pid}.txt; cat "a b/c+d&ä%.txt" ~/h i j ./~x`);
    assert.equal(listed.output, `a b/c+d&ä%.txt~/ha/../i.//j~x`);
  });

  test("a service that shows the working directory elsewhere: its name and the real one are the same place", async (t) => {
    const { sandbox } = await open(t, {}, { workingDir: "/srv/work" });
    const { output } = await sandbox.shell("mkdir sub; pwd");
    const real = output.trim();
    assert.notEqual(real, "/srv/work");
    assert.equal((await sandbox.exec({ command: "pwd", cwd: "/srv/work/sub" })).output, `${real}/sub\n`);
    assert.equal((await sandbox.exec({ command: "pwd", cwd: "/srv/work" })).output, output);
    await sandbox.writeFile(`${real}/f`, "x");
    assert.equal(await sandbox.readFile("/srv/work/f"), "x");
  });

  test("input and texts that are larger than an argument go in pieces, none of them a file of the service's", async (t) => {
    const { engine, sandbox } = await open(t);
    const stdin = "0123456789abcdef".repeat(20_000);
    const { stdout } = await sandbox.exec({ command: `wc -c; : ${"x".repeat(200_000)}`, stdin });
    assert.equal(stdout.trim(), String(stdin.length));
    assert.equal(engine.count(PUT), 0);
    assert.equal(runs(engine), 1);
    const longest = Math.max(...sent(engine, EXEC).map(({ command }) => Buffer.byteLength(command[2])));
    assert.ok(longest <= 120 * 1024, `${longest} bytes`);
  });
});
