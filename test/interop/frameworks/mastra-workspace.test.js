// Mastra's workspace over our sandbox: its tools in an agent, its process manager, its filesystem.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Agent } from "@mastra/core/agent";
import * as mastra from "@mastra/core/workspace";
import { LocalSandbox } from "cloudsandbox";
import { mastraFilesystem, mastraSandbox } from "cloudsandbox/mastra";
import { Workspace } from "cloudsandbox/workspace";

import { ANSWER, Script } from "../../support/agent-suite.js";
import { mark } from "../../support/processes.js";
import { eventually, rejection } from "../../support/wait.js";
import { scriptedModel } from "./ai-model.js";

function open(t, options) {
  const sandbox = new LocalSandbox({ trusted: true, ...options });
  t.after(() => sandbox.close());
  return sandbox;
}

/** A script whose calls name Mastra's own tools. */
class Tools extends Script {
  next(...args) {
    return super.next(...args).map(({ name, ...call }) => ({ ...call, name: name.replace("sandbox_local_", "mastra_workspace_") }));
  }
}

test("an agent's own workspace tools work in the sandbox", async (t) => {
  const sandbox = open(t);
  const workspace = new mastra.Workspace({ sandbox: mastraSandbox(sandbox, mastra, { instructions: "The cave." }), filesystem: mastraFilesystem(sandbox, mastra) });
  const script = new Tools([
    [["write_file", { path: "/notes/a.txt", content: "one\ntwo\n" }]],
    [["read_file", { path: "notes/a.txt" }]],
    [["edit_file", { path: "/notes/a.txt", old_string: "two", new_string: "2" }]],
    [["list_files", { path: "/" }]],
    [["grep", { pattern: "one", path: "/" }]],
    [["execute_command", { command: "cat notes/a.txt; echo lost >&2; exit 3" }]],
    [["mkdir", { path: "/empty" }]],
    [["file_stat", { path: "/notes/a.txt" }]],
    [["delete", { path: "/notes/a.txt" }]],
    [["read_file", { path: "/notes/a.txt" }]],
  ]);
  const agent = new Agent({ id: "scripted", name: "scripted", instructions: "Go on.", model: scriptedModel(script), workspace });
  const { text } = await agent.generate("Go on.", { maxSteps: 20 });
  assert.equal(text, ANSWER);
  const { texts } = script;
  assert.match(texts[1], /one[^]*two/);
  assert.match(texts[3], /notes[^]*a\.txt/);
  assert.match(texts[4], /notes\/a\.txt[^]*one/);
  assert.match(texts[5], /one\n2\n[^]*lost[^]*3/);
  assert.match(texts[7], /\b6\b/);
  assert.match(texts[9], /not found|ENOENT/i);
  assert.deepEqual((await sandbox.listDirectory()).map(({ name }) => name), ["empty", "notes"]);
  await workspace.destroy();
  assert.equal((await rejection(sandbox.shell("true"))).code, "ERR_SANDBOX_CLOSED");
});

test("processes: output while they run, variables, limits, signals, kill, standard input", async (t) => {
  const { env, started, gone } = mark();
  const box = mastraSandbox(open(t, { env }), mastra, { env: { A: "1", B: "2" } });
  await box.start();
  assert.equal(box.status, "running");
  const chunks = [];
  const result = await box.executeCommand("sh", ["-c", 'echo "$A$B$0 $C"; cat; echo e >&2; exit 3', "a b"], { env: { B: undefined, C: "3" }, onStdout: (text) => chunks.push(text) });
  const { success, exitCode, stdout, stderr } = result;
  assert.deepEqual({ success, exitCode, stdout, stderr }, { success: false, exitCode: 3, stdout: "1a b 3\n", stderr: "e\n" }, "undefined takes one out");
  assert.equal(chunks.join(""), stdout);
  const late = await box.executeCommand("echo begun; sleep 600", [], { timeout: 300, onStdout: () => { throw new Error("the listener's own"); } });
  assert.deepEqual([late.timedOut, late.exitCode, late.stdout], [true, 124, "begun\n"]);

  const handle = await box.processes.spawn("echo begun; sleep 600 & sleep 600");
  await started(2);
  assert.deepEqual(await box.processes.list().then((all) => all.filter(({ running }) => running).map(({ pid }) => pid)), [handle.pid]);
  assert.equal(await box.processes.kill(handle.pid), true);
  await gone();
  const ended = await handle.wait();
  assert.deepEqual([ended.killed, ended.success, ended.stdout], [true, false, "begun\n"]);
  assert.equal(await handle.kill(), false);

  const reading = await box.processes.spawn('while read -r line; do echo "<$line>"; done; exit 3');
  await reading.sendStdin("one\n");
  await eventually("it answers", () => reading.stdout === "<one>\n");
  await reading.closeStdin();
  assert.equal((await reading.wait()).exitCode, 3);
  const deaf = await box.processes.spawn("cat; echo end", { stdinMode: "ignore" });
  assert.equal((await rejection(deaf.sendStdin("x"))).code, "ERR_SANDBOX_UNSUPPORTED");
  await deaf.closeStdin();
  assert.equal((await deaf.wait()).stdout, "end\n");

  const controller = new AbortController();
  const aborted = box.executeCommand("sleep 600", [], { abortSignal: controller.signal });
  await started();
  controller.abort();
  assert.equal((await aborted).killed, true);
  await gone();

  await box.processes.spawn("sleep 600");
  await started();
  await box._stop();
  await gone();
  await box._start();
  assert.equal((await box.executeCommand("echo on")).stdout, "on\n");
  await box._destroy();
  assert.equal(box.status, "destroyed");
});

test("the filesystem: every method, and the errors of its own module", async (t) => {
  const sandbox = open(t);
  const files = mastraFilesystem(sandbox, mastra);
  await files.init();
  const data = Buffer.from([0, 255, 10]);
  await files.writeFile("/d/bin", data);
  assert.deepEqual(await files.readFile("d/bin"), data);
  assert.equal(await files.readFile("d/bin", { encoding: "hex" }), "00ff0a");
  await files.appendFile("/log", "a");
  await files.appendFile("/log", "b");
  assert.equal(await files.readFile("/log", { encoding: "utf-8" }), "ab");
  await sandbox.shell("chmod 755 log; ln -s d link; ln -s none x");
  await files.copyFile("/log", "/new/copy");
  assert.equal((await sandbox.stat("new/copy")).mode & 0o777, 0o755);
  await files.copyFile("/d", "/d2", { recursive: true });
  assert.deepEqual(await files.readFile("/d2/bin"), data);
  await files.moveFile("/new/copy", "/new/moved.png");
  const { name, path, type, size, mimeType, modifiedAt } = await files.stat("/new/moved.png");
  assert.deepEqual({ name, path, type, size, mimeType }, { name: "moved.png", path: "/new/moved.png", type: "file", size: 2, mimeType: "image/png" });
  assert.ok(modifiedAt.getTime() > 0);
  const shown = (entries) => entries.map((entry) => `${entry.name}${entry.isSymlink ? "@" : ""}:${entry.type}`);
  assert.deepEqual(shown(await files.readdir("/")), ["d:directory", "d2:directory", "link@:directory", "log:file", "new:directory", "x@:file"]);
  assert.deepEqual(shown(await files.readdir("/", { recursive: true, extension: ".png" })).filter((one) => one.includes("/")), ["new/moved.png:file"]);
  assert.deepEqual(shown(await files.readdir("/", { recursive: true, maxDepth: 1 })).filter((one) => one.includes("/")), []);
  assert.deepEqual([await files.exists("/d"), await files.exists("/none")], [true, false]);
  await files.mkdir("/deep/er");
  await files.rmdir("/deep/er");
  await files.rmdir("/none", { force: true });
  await files.deleteFile("/none", { force: true });

  const seen = (await files.stat("/log")).modifiedAt;
  await files.writeFile("/log", "newer", { expectedMtime: seen });
  for (const [kind, call] of [
    ["FileNotFoundError", () => files.readFile("/none")], ["IsDirectoryError", () => files.readFile("/d")], ["IsDirectoryError", () => files.writeFile("/d", "")],
    ["FileExistsError", () => files.writeFile("/log", "", { overwrite: false })], ["StaleFileError", () => files.writeFile("/log", "", { expectedMtime: new Date(1) })],
    ["FileNotFoundError", () => files.stat("/none")], ["FileNotFoundError", () => files.deleteFile("/none")], ["IsDirectoryError", () => files.deleteFile("/d")],
    ["FileNotFoundError", () => files.moveFile("/none", "/y")], ["FileExistsError", () => files.moveFile("/log", "/d/bin", { overwrite: false })],
    ["IsDirectoryError", () => files.copyFile("/d", "/y")], ["FileExistsError", () => files.mkdir("/log")], ["DirectoryNotFoundError", () => files.mkdir("/p/q", { recursive: false })],
    ["DirectoryNotFoundError", () => files.rmdir("/none")], ["NotDirectoryError", () => files.rmdir("/log")], ["DirectoryNotEmptyError", () => files.rmdir("/d")],
    ["DirectoryNotFoundError", () => files.readdir("/none")], ["NotDirectoryError", () => files.readdir("/log")],
  ]) {
    const error = await rejection(call());
    assert.ok(error instanceof mastra[kind], `${kind}: ${error}`);
  }
  for (const call of [() => files.readFile("../out"), () => files.copyFile("/log", "/../out"), () => files.appendFile("/../out", "")]) {
    assert.equal((await rejection(call())).name, "PathSecurityError");
  }
  await files.rmdir("/d", { recursive: true });
  assert.equal(await files.exists("/d/bin"), false);
});

test("a read-only guest of our workspace is a read-only filesystem", async (t) => {
  const place = new Workspace({ backend: "local", backendOptions: { isolation: "none" } });
  t.after(() => place.close());
  await place.attach().writeFile("f", "text");
  const filesystem = mastraFilesystem(place.attach({ mode: "read-only" }), mastra);
  assert.equal(filesystem.readOnly, true);
  assert.equal(await filesystem.readFile("/f", { encoding: "utf8" }), "text");
  const tools = await mastra.createWorkspaceTools(new mastra.Workspace({ filesystem }));
  assert.ok(tools.mastra_workspace_read_file);
  assert.ok(!tools.mastra_workspace_write_file);
  assert.equal((await rejection(filesystem.writeFile("/g", ""))).code, "ERR_SANDBOX_FORBIDDEN");
});
