// What of a workspace is the same whatever is below it: options, names, sandboxes of another's making, files at the edges.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";
import { inspect } from "node:util";

import { DaytonaSandbox, DockerSandbox, E2BSandbox, LocalSandbox, SandboxAgent, VercelSandbox, registerSandboxProvider } from "cloudsandbox";
import { onRecord } from "cloudsandbox/records";
import { DEFAULT_SEED_EXCLUDES, Workspace, workspaceIdForRun } from "cloudsandbox/workspace";

import { contentsOf, putFile } from "../../lib/workspaces/folder.js";
import { Archive } from "../../lib/workspaces/tar.js";
import { tempDir } from "../support/temp.js";
import { rejection } from "../support/wait.js";

const local = (options) => new LocalSandbox({ isolation: "none", ...options });

function open(t, options) {
  const workspace = new Workspace(options);
  t.after(() => workspace.close());
  return workspace;
}

/** A sandbox with the seven members and nothing else, as a user writes one. */
function plain(t, options) {
  const inner = local(options);
  t.after(() => inner.close());
  const calls = [];
  const told = (name, args) => void calls.push([name, ...args]);
  const port = {
    providerId: "mine",
    start: () => inner.start(),
    run: (code, given) => inner.run(code, given),
    shell: (command, given) => (told("shell", [command]), inner.shell(command, given)),
    writeFile: (...args) => (told("writeFile", args), inner.writeFile(...args)),
    readFile: (file, encoding) => inner.readFile(file, encoding),
    close: () => inner.close(),
  };
  return { port, calls };
}

/** A PATH on which there is all but some programs. */
function pathWithout(t, ...names) {
  const folder = tempDir(t);
  for (const directory of ["/bin", "/usr/bin"]) {
    for (const name of readdirSync(directory)) {
      if (!names.includes(name) && !existsSync(path.join(folder, name))) symlinkSync(path.join(directory, name), path.join(folder, name));
    }
  }
  return folder;
}

describe("workspace: options", () => {
  test("an id for a run is stable, readable, a name everywhere, and no other run's", () => {
    const id = workspaceIdForRun("Run 42: Ünïcode / and so on, for long");
    assert.equal(id, workspaceIdForRun("Run 42: Ünïcode / and so on, for long"));
    assert.match(id, /^ws-run-42-/);
    const texts = ["a", "A", "a ", "-", "..", "é", "x".repeat(5000), "a/b", "a-b", "0", "\u{1F600}", "a\nb"];
    const ids = texts.map(workspaceIdForRun);
    for (const one of ids) assert.match(one, /^[a-z][a-z0-9-]{0,38}[a-z0-9]$/);
    assert.equal(new Set(ids).size, texts.length);
    for (const workspaceId of ids) {
      new Workspace({ backend: local(), workspaceId });
      new DaytonaSandbox({ apiKey: "k", workspace: workspaceId, labels: { workspaceId } });
      new DockerSandbox({ labels: { workspaceId } });
      new E2BSandbox({ apiKey: "k", metadata: { workspaceId } });
      new VercelSandbox({ token: "k", teamId: "t", projectId: "p", name: workspaceId, tags: { workspaceId } });
    }
    assert.throws(() => workspaceIdForRun(""), { code: "ERR_SANDBOX_INVALID_ARG" });
    assert.throws(() => workspaceIdForRun(7), { code: "ERR_SANDBOX_INVALID_ARG" });
  });

  test("what is wrong is said by the constructor, and nothing is made", () => {
    let built = 0;
    const backend = { buildForSession: () => ((built += 1), local()) };
    for (const [options, words] of [
      [undefined, /give a `backend`/],
      [{ backend: {} }, /`backend`.*providerId/],
      [{ backend: "nowhere" }, /no provider "nowhere"/],
      [{ backend: local(), backendOptions: {} }, /provider's name/],
      [{ backend: "local", backendOptions: { trustd: true } }, /trusted/],
      [{ backend: { buildForSession: async () => local() } }, /providerId/],
      [{ backend, workspaceId: "Big" }, /workspaceIdForRun/],
      [{ backend, workspaceId: "x".repeat(41) }, /1 to 40/],
      [{ backend, ttlSeconds: 0 }, /`ttlSeconds`/],
      [{ backend, ttlSeconds: 604_801 }, /`ttlSeconds`/],
      [{ backend, ttl: 5 }, /ttlSeconds/],
      [{ backend, seedFrom: "" }, /`seedFrom`/],
      [{ backend, seedExcludes: "dist/" }, /`seedExcludes`.*gitignore/],
      [{ backend, seedExcludes: ["a\nb"] }, /`seedExcludes`/],
      [{ backend, onSeedProgress: 1 }, /`onSeedProgress`/],
      [{ backend, sync: { up: true } }, /needs `seedFrom`/],
      [{ backend, seedFrom: "/tmp", sync: {} }, /`up: true`/],
      [{ backend, seedFrom: "/tmp", sync: { up: true, maxFiles: 1.5 } }, /`maxFiles`/],
    ]) {
      assert.throws(() => new Workspace(options), (error) => error.code === "ERR_SANDBOX_INVALID_ARG" && words.test(error.message), String(words));
    }
    assert.equal(built, 0);
    const workspace = new Workspace({ backend });
    assert.throws(() => workspace.attach({ mode: "admin" }), /`mode`/);
    assert.throws(() => workspace.attach("read-only"), { code: "ERR_SANDBOX_INVALID_ARG" });
  });

  test("a template makes a sandbox for each workspace; a name makes one of a provider", async (t) => {
    const ids = [];
    const template = { buildForSession: (id) => (ids.push(id), local()) };
    const [one, two] = [open(t, { backend: template, workspaceId: "one" }), open(t, { backend: template, workspaceId: "two" })];
    assert.deepEqual(ids, ["one", "two"]);
    assert.notEqual(one.sandbox, two.sandbox);
    registerSandboxProvider("mine-for-workspaces", (options) => local(options));
    const named = open(t, { backend: "mine-for-workspaces", backendOptions: { env: { WORD: "w" } } });
    assert.equal((await named.attach().shell("echo $WORD")).output, "w\n");
  });

  test("a folder that is not there is said by the first call, and may come later", async (t) => {
    const seedFrom = path.join(tempDir(t), "later");
    const workspace = open(t, { backend: local(), seedFrom });
    const error = await rejection(workspace.start());
    assert.match(error.message, /`seedFrom`: there is no folder/);
    mkdirSync(seedFrom);
    writeFileSync(path.join(seedFrom, "f"), "x");
    assert.equal(await workspace.attach().readFile("f"), "x");
  });

  test("detach ends a guest's streams, and the file of one that was written stays as it was", async (t) => {
    const workspace = open(t, { backend: local() });
    const [one, other] = [workspace.attach(), workspace.attach()];
    await other.writeFile("large", "x".repeat(8 * 1024 * 1024));
    await other.writeFile("kept", "old");
    const reader = (await one.readStream("large")).getReader();
    assert.ok((await reader.read()).value.length > 0);
    const writer = (await one.writeStream("kept")).getWriter();
    await writer.write("new");
    const aborted = new AbortController();
    const stopped = (await other.writeStream("kept", { signal: aborted.signal })).getWriter();
    await one.detach();
    const toEnd = async () => {
      while (!(await reader.read()).done);
    };
    const ended = await Promise.all([toEnd(), writer.closed, writer.write("more"), one.stat("kept")].map(rejection));
    for (const { code } of ended) assert.equal(code, "ERR_SANDBOX_CLOSED");
    const reason = new Error("enough");
    aborted.abort(reason);
    assert.equal(await rejection(stopped.closed), reason);
    const whole = (await other.readStream("large")).getReader();
    await whole.cancel();
    assert.equal(await other.readFile("kept"), "old");
    assert.deepEqual((await other.listDirectory()).map(({ name }) => name), ["kept", "large"]);
  });

  test("what the workspace has there for a moment is in no guest's list", async (t) => {
    const workspace = open(t, { backend: local() });
    const guest = workspace.attach();
    await guest.shell("mkdir -p d; touch d/.cloudsandbox-x d/y");
    assert.deepEqual((await guest.listDirectory("d")).map(({ name }) => name), ["y"]);
    assert.deepEqual((await guest.listFiles()).map((file) => file.path), ["d/y"]);
  });

  test("nothing that can be listed or shown holds an option", () => {
    const workspace = new Workspace({ backend: "local", backendOptions: { isolation: "none", env: { KEY: "secret-value" } } });
    const guest = workspace.attach({ mode: "read-only" });
    const text = inspect(workspace, { depth: 9 }) + inspect(guest, { depth: 9 }) + JSON.stringify(guest);
    assert.ok(!text.includes("secret-value"), text);
    assert.match(inspect(guest), /Guest.*read-only/s);
  });

  test("a method that was taken off its object, and options that are none, are told so", async (t) => {
    const workspace = open(t, { backend: local() });
    const guest = workspace.attach();
    for (const method of ["start", "run", "shell", "exec", "writeFile", "readFile", "readBytes", "readStream", "writeStream", "listFiles", "stat", "listDirectory", "deleteFile", "moveFile", "mkdir", "detach", "close"]) {
      const error = await rejection((0, guest[method])("x"));
      assert.deepEqual([error.code, error.message.includes(`guest.${method}(`)], ["ERR_SANDBOX_INVALID_ARG", true], error.message);
    }
    for (const method of ["start", "extend", "exportTo", "close"]) {
      assert.match((await rejection((0, workspace[method])("x"))).message, new RegExp(`workspace\\.${method}\\(`));
    }
    for (const method of [guest.getTools, workspace.attach]) assert.throws(() => method(), { code: "ERR_SANDBOX_INVALID_ARG" });
    const hostile = { get timeoutSeconds() { throw new Error("never"); } };
    for (const call of [
      () => guest.shell("true", hostile), () => guest.shell("true", "5"), () => guest.shell("true", { timeout: 5 }), () => guest.exec("ls"), () => guest.exec(),
      () => guest.readFile("f", "utf8", { signal: 1 }), () => guest.run("1", Promise.resolve({})), () => workspace.start({ signl: 1 }),
    ]) {
      const error = await rejection(call());
      assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG", error.message);
    }
  });

  test("the secrets that everybody has are left out", () => {
    for (const one of [".env", ".env.*", "*.pem", "*.key", "id_*", "credentials.json", "secrets/", ".git/", "node_modules/", ".venv/"]) {
      assert.ok(DEFAULT_SEED_EXCLUDES.includes(one), one);
    }
    assert.ok(Object.isFrozen(DEFAULT_SEED_EXCLUDES));
  });
});

describe("workspace: sandboxes of another's making, and images with little in them", () => {
  const FILES = { "a/f": "1", "run.sh": "#!/bin/sh\necho ran\n", "q'u": "2" };
  function project(t) {
    const folder = tempDir(t);
    mkdirSync(path.join(folder, "a/empty"), { recursive: true });
    for (const [name, text] of Object.entries(FILES)) writeFileSync(path.join(folder, name), text, { mode: name === "run.sh" ? 0o755 : 0o644 });
    symlinkSync("../run.sh", path.join(folder, "a/link"));
    return folder;
  }
  const LOOK = "./run.sh; a/link; cat a/f \"q'u\"; ls -d a/empty; readlink a/link";
  const SEEN = "ran\nran\n12a/empty\n../run.sh\n";

  test("the seven members are enough", async (t) => {
    const { port, calls } = plain(t);
    const workspace = open(t, { backend: port, seedFrom: project(t) });
    const guest = workspace.attach();
    assert.equal((await guest.shell(LOOK)).output, SEEN);
    assert.deepEqual(calls.filter(([name]) => name === "writeFile").map(([, , , encoding]) => encoding), ["base64", "base64"], "a list and an archive");
    for (const call of [() => guest.exec({ command: "x" }), () => guest.readBytes("x"), () => guest.listFiles()]) {
      assert.equal((await rejection(call())).code, "ERR_SANDBOX_UNSUPPORTED");
    }
    assert.equal((await rejection(workspace.exportTo(tempDir(t)))).code, "ERR_SANDBOX_UNSUPPORTED");
    assert.deepEqual(workspace.attach({ mode: "read-only" }).getTools().map(({ name }) => name), ["sandbox_workspace_read_file"]);
    assert.throws(() => new Workspace({ backend: port, seedFrom: "/tmp", sync: { down: true } }), { code: "ERR_SANDBOX_UNSUPPORTED" });
  });

  test("without a tar each file goes by itself, with the same outcome", async (t) => {
    const PATH = pathWithout(t, "tar", "busybox");
    for (const backend of [local({ env: { PATH } }), plain(t, { env: { PATH } }).port]) {
      const progress = [];
      const workspace = open(t, { backend, seedFrom: project(t), onSeedProgress: (told) => progress.push(told) });
      assert.equal((await workspace.attach().shell(LOOK)).output, SEEN);
      assert.deepEqual([workspace.seedResult.files, progress.at(-1).files, progress.at(-1).totalFiles], [3, 3, 3]);
    }
  });

  for (const shell of ["dash", "zsh", "busybox"]) {
    const program = `/usr/bin/${shell}`;
    test(`with ${shell}${shell === "busybox" ? " and its programs alone" : ""}`, { skip: !existsSync(program) }, async (t) => {
      const bin = tempDir(t);
      if (shell === "busybox") {
        for (const applet of execFileSync(program, ["--list"], { encoding: "utf8" }).split("\n").filter(Boolean)) symlinkSync(program, path.join(bin, applet));
      }
      const sandbox = local(shell === "busybox" ? { shell: path.join(bin, "sh"), env: { PATH: bin } } : { shell: program });
      const seedFrom = project(t);
      await new Workspace({ backend: sandbox, seedFrom }).start();
      const again = open(t, { backend: sandbox, seedFrom });
      const guest = again.attach();
      assert.equal((await guest.shell(LOOK)).output, SEEN);
      assert.deepEqual([again.seedResult.files, again.seedResult.unchanged], [0, 3]);
      const folder = path.join(tempDir(t), "out");
      assert.equal((await again.exportTo(folder)).files, 3);
      assert.equal(statSync(path.join(folder, "run.sh")).mode & 0o111, 0o111);
      assert.equal((await guest.shell("ls -A")).output, "a\nq'u\nrun.sh\n");
    });
  }

  test("where little output is kept, files are sent again, and as an archive", async (t) => {
    const sandbox = local({ maxOutputBytes: 30 });
    const seedFrom = project(t);
    await new Workspace({ backend: sandbox, seedFrom }).start();
    const again = open(t, { backend: sandbox, seedFrom });
    await again.start();
    assert.deepEqual([again.seedResult.files, again.seedResult.unchanged], [3, 0]);
  });

  test("without sums all is sent again, and nothing is taken for the same", async (t) => {
    const sandbox = local({ env: { PATH: pathWithout(t, "sha256sum", "shasum", "busybox") } });
    const seedFrom = project(t);
    await new Workspace({ backend: sandbox, seedFrom }).start();
    const again = open(t, { backend: sandbox, seedFrom });
    await again.start();
    assert.deepEqual([again.seedResult.files, again.seedResult.unchanged], [3, 0]);
  });

  test("several archives, one file larger than each, and the progress after each", async (t) => {
    const seedFrom = tempDir(t);
    const big = Buffer.alloc(9 * 1024 * 1024, "0123456789abcdef!");
    writeFileSync(path.join(seedFrom, "b-big"), big);
    for (const name of ["a", "c", "d"]) writeFileSync(path.join(seedFrom, name), big.subarray(0, 3 * 1024 * 1024));
    const progress = [];
    const workspace = open(t, { backend: local(), seedFrom, onSeedProgress: (told) => progress.push(told.files) });
    await workspace.start();
    const { output } = await workspace.attach().shell("sha256sum b-big | cut -c1-64; ls | wc -l");
    assert.equal(output.replaceAll(" ", ""), `${createHash("sha256").update(big).digest("hex")}\n4\n`);
    assert.ok(progress.length >= 2 && progress.at(-1) === 4, String(progress));
  });

  test("a program that unpacks and fails is an error that says why", async (t) => {
    const bin = mkdtempSync(path.join(tempDir(t), "bin-"));
    writeFileSync(path.join(bin, "tar"), "#!/bin/sh\necho 'no space left' >&2\nexit 2\n", { mode: 0o755 });
    const workspace = open(t, { backend: local({ env: { PATH: `${bin}:/usr/bin:/bin` } }), seedFrom: project(t) });
    const error = await rejection(workspace.start());
    assert.deepEqual([error.code, /no space left/.test(error.message)], ["ERR_SANDBOX_PROVIDER", true], error.message);
  });

  test("a record of what was seeded, of the commands that it took, and of who called", async (t) => {
    const records = [];
    t.after(onRecord((record) => records.push(record)));
    const workspace = open(t, { backend: local(), seedFrom: project(t) });
    const tools = workspace.attach().getTools();
    await tools.find(({ name }) => name === "sandbox_workspace_shell").execute({ command: "true" }, { toolCallId: "call-7" });
    const seeded = records.find(({ type }) => type === "seeded");
    assert.deepEqual([seeded.files, seeded.bytes, seeded.provider, seeded.sandboxId], [3, 21, "unix-local", workspace.sandbox.sandboxId]);
    const begun = records.filter(({ type, phase }) => type === "exec" && phase === "begin");
    assert.equal(begun.length, 3, "to look, to unpack, and the command");
    assert.deepEqual([begun[2].tool, begun[2].toolCallId], ["sandbox_workspace_shell", "call-7"]);
    assert.ok(records.indexOf(seeded) < records.indexOf(begun[2]));
  });

  test("a read-only guest's list says what there is, and only counts what is there in bulk", async (t) => {
    const workspace = open(t, { backend: local() });
    await workspace.attach().shell("mkdir -p a/node_modules/m b many; echo 1 >a/f; echo 22 >a/node_modules/m/i.js; echo 3 >top; cd many; touch $(seq 600)");
    const [read, list] = workspace.attach({ mode: "read-only" }).getTools({ name: "reviewer" });
    assert.deepEqual([read.name, list.name], ["sandbox_reviewer_read_file", "sandbox_reviewer_list_files"]);
    const told = async (folder) => (await list.execute({ path: folder })).trimEnd().split("\n");
    assert.deepEqual(await told("a/"), ["a/f (2 bytes)", "[1 files in .git, node_modules and the like left out here; list such a folder with `path`]"]);
    assert.deepEqual(await told("./a/node_modules"), ["a/node_modules/m/i.js (3 bytes)"]);
    assert.deepEqual(await told("b"), ["[no files in b]"]);
    assert.deepEqual(await told("top"), ["top (2 bytes)"]);
    assert.equal((await told(".")).length, 603);
    const [, few] = workspace.attach({ mode: "read-only" }).getTools({ maxToolOutputChars: 1000 });
    const all = (await few.execute({})).split("\n");
    assert.match(all.at(-2), /^\[\d+ more files left out here; list a folder with `path`\]$/);
    assert.match(all.at(-1), /^\[1 files in .git, node_modules/);
    assert.equal(all.length - 2 + Number(/\d+/.exec(all.at(-2))[0]), 602);
    assert.ok(all.join("\n").length <= 1000);
  });

  test("an agent's workspace can have guests, too", async (t) => {
    const workspace = open(t, { backend: new SandboxAgent({ backend: "unix-local", workspace: { files: [{ path: "m", contents: "1" }] } }), seedFrom: project(t) });
    assert.equal((await workspace.attach().shell("cat m a/f")).output, "11");
  });
});

describe("workspace: life", () => {
  test("close() during the seeding ends it; a closed one refuses everything, in words", async (t) => {
    const seedFrom = tempDir(t);
    writeFileSync(path.join(seedFrom, "f"), Buffer.alloc(6 * 1024 * 1024));
    const workspace = new Workspace({ backend: local(), seedFrom });
    const guest = workspace.attach();
    const pending = rejection(guest.shell("true"));
    await workspace.close();
    assert.equal((await pending).code, "ERR_SANDBOX_CLOSED");
    for (const call of [() => guest.shell("true"), () => workspace.start(), () => workspace.exportTo(tempDir(t)), () => workspace.extend(1)]) {
      const error = await rejection(call());
      assert.equal(error.code, "ERR_SANDBOX_CLOSED", error.message);
    }
    assert.throws(() => workspace.attach(), { code: "ERR_SANDBOX_CLOSED" });
    await workspace.close();
  });

  test("a time that is over is over, also when its timer is late; extend() has a bound", async (t) => {
    const workspace = open(t, { backend: local(), ttlSeconds: 0.2 });
    await workspace.start();
    assert.match((await rejection(workspace.extend(604_800))).message, /604800/);
    const end = performance.now() + 400;
    while (performance.now() < end);
    assert.throws(() => workspace.attach(), /time to live of 0\.2 seconds has passed/);
  });

  test("no timer keeps a process alive", () => {
    const program = 'import { Workspace } from "cloudsandbox/workspace"; const w = new Workspace({ backend: "local", backendOptions: { isolation: "none" } }); await w.start(); console.log("started")';
    const out = execFileSync(process.execPath, ["--input-type=module", "-e", program], { cwd: import.meta.dirname, encoding: "utf8", timeout: 40_000 });
    assert.equal(out, "started\n");
  });

  test("a signal of the call ends the call alone", async (t) => {
    const guest = open(t, { backend: local() }).attach();
    await guest.start();
    const controller = new AbortController();
    const pending = rejection(guest.shell("sleep 30", { signal: controller.signal }));
    const exec = guest.exec({ command: "sleep 30", signal: controller.signal });
    setTimeout(() => controller.abort(new Error("enough")), 300);
    assert.equal((await pending).message, "enough");
    assert.equal((await exec).status, "cancelled");
    assert.equal((await guest.shell("echo on")).output, "on\n");
  });

  test("a failure on the way back does not cost the command's result", async (t) => {
    const folder = tempDir(t);
    const workspace = open(t, { backend: local(), sync: { folder, down: true } });
    const guest = workspace.attach();
    await guest.start();
    rmSync(folder, { recursive: true });
    const result = await guest.shell("echo done");
    assert.equal(result.output, "done\n");
    assert.match(workspace.lastSync.error.message, /`sync.folder`: there is no folder/);
    mkdirSync(folder);
  });
});

describe("workspace: files at the edges", () => {
  test("what is on this machine and cannot go is told, and the rest goes", async (t) => {
    const base = realpathSync(tempDir(t));
    const folder = path.join(base, "project");
    mkdirSync(folder);
    writeFileSync(path.join(base, "x"), "outside");
    execFileSync("mkfifo", [path.join(folder, "pipe")]);
    writeFileSync(Buffer.concat([Buffer.from(`${folder}/bad`), Buffer.from([0xff])]), "x");
    writeFileSync(path.join(folder, "new\nline"), "x");
    writeFileSync(path.join(folder, "good"), "x");
    mkdirSync(path.join(folder, "sub"));
    symlinkSync("../../../etc/passwd", path.join(folder, "sub/up"));
    symlinkSync(`../../${path.basename(folder)}/good`, path.join(folder, "sub/round"));
    symlinkSync("..", path.join(folder, "sub/root"));
    // Inside by its words, and outside in truth.
    symlinkSync("sub/root/../x", path.join(folder, "sly"));
    const found = await contentsOf(folder, () => undefined);
    assert.deepEqual(found.files.map((file) => file.path), ["good"]);
    assert.deepEqual(found.links.map(({ path: at, target }) => [at, target]), [["sub/root", ".."], ["sub/round", "../good"]]);
    const why = Object.fromEntries(found.skipped.map((it) => [it.path, it.reason]));
    assert.match(why.pipe, /neither a file/);
    assert.match(why["new\nline"], /control characters/);
    assert.match(why["bad\uFFFD"], /UTF-8/);
    assert.match(why["sub/up"], /out of the folder/);
    assert.match(why.sly, /out of the folder/);
  });

  test("a file is written in the folder or not at all", async (t) => {
    const base = realpathSync(tempDir(t));
    const root = path.join(base, "root");
    mkdirSync(path.join(base, "other"));
    mkdirSync(path.join(root, "folder"), { recursive: true });
    symlinkSync("../other", path.join(root, "link"));
    symlinkSync("../other/made", path.join(root, "file-link"));
    writeFileSync(path.join(root, "file"), "old");
    const bytes = Buffer.from("new");
    assert.match(await putFile(root, "link/f", bytes, false), /a link stands/);
    assert.match(await putFile(root, "link/deep/f", bytes, false), /a link stands/);
    assert.match(await putFile(root, "file-link", bytes, false), /a link stands/);
    assert.match(await putFile(root, "folder", bytes, false), /something else/);
    assert.match(await putFile(root, "file/f", bytes, false), /cannot be made/);
    assert.equal(await putFile(root, "file", bytes, false), undefined);
    assert.equal(readFileSync(path.join(root, "file"), "utf8"), "new");
    assert.deepEqual(readdirSync(path.join(base, "other")), []);
    assert.deepEqual(readdirSync(root).sort(), ["file", "file-link", "folder", "link"]);
  });

  test("hostile names from a sandbox write nothing outside", async (t) => {
    const base = tempDir(t);
    const { port } = plain(t);
    const names = ["../out", "/etc/x", "a/../../out", "a//b", "./x", "", "x\0y", ".git/config", "d/.GIT/hooks/p", ".g\u200cit/config", "..", "good"];
    port.listFiles = async () => names.map((name) => ({ path: name, size: 1 }));
    port.readFile = async () => Buffer.from("x").toString("base64");
    const workspace = open(t, { backend: port });
    const folder = path.join(base, "in/side");
    const result = await workspace.exportTo(folder);
    assert.deepEqual([result.files, result.skipped.length, readdirSync(folder), readdirSync(path.join(base, "in"))], [1, names.length - 1, ["good"], ["side"]]);
  });

  test("a sandbox that lies about sizes is held to the limits", async (t) => {
    const { port } = plain(t);
    port.listFiles = async () => ["a", "b", "c"].map((name) => ({ path: name, size: 1 }));
    port.readFile = async () => Buffer.alloc(60).toString("base64");
    const result = await open(t, { backend: port }).exportTo(tempDir(t), { maxBytes: 100 });
    assert.deepEqual([result.files, result.bytes], [1, 60]);
  });

  test("archives: what tar reads is what was put in", (t) => {
    const archive = new Archive();
    archive.folder({ path: "d", mode: 0o555, mtimeMs: 1e12 });
    archive.file({ path: `d/${"x".repeat(200)}`, mode: 0o640, mtimeMs: 1e12 }, Buffer.from("1"));
    archive.link({ path: "l", target: `d/${"x".repeat(200)}`, mtimeMs: 1e12 });
    for (const program of [["tar"], ["busybox", "tar"]]) {
      const cwd = tempDir(t);
      try {
        execFileSync(program[0], [...program.slice(1), "xpof", "-"], { cwd, input: archive.end() });
      } catch (error) {
        if (error.code === "ENOENT") continue;
        throw error;
      }
      assert.equal(readFileSync(path.join(cwd, "l"), "utf8"), "1");
      assert.equal(execFileSync("stat", ["-c", "%a", "d", `d/${"x".repeat(200)}`], { cwd, encoding: "utf8" }), "755\n640\n");
    }
  });
});

describe("inheritEnv: true", () => {
  test("hands on all variables, but those that a sandbox has of its own, and warns once", () => {
    const program = `
      import { LocalSandbox } from "cloudsandbox";
      import { Workspace } from "cloudsandbox/workspace";
      const warnings = [];
      process.on("warning", (warning) => warnings.push(warning.code));
      process.env.MY_TOKEN = "t";
      const make = () => new Workspace({ backend: "local", backendOptions: { isolation: "none", inheritEnv: true } });
      const [one, two] = [make(), make()];
      const { output } = await one.attach().shell("echo $MY_TOKEN; [ \\"$HOME\\" = \\"$PWD\\" ] && echo own");
      await one.close();
      await two.close();
      console.log(JSON.stringify({ output, warnings }));`;
    const out = execFileSync(process.execPath, ["--input-type=module", "-e", program], {
      cwd: import.meta.dirname, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"],
    });
    assert.deepEqual(JSON.parse(out), { output: "t\nown\n", warnings: ["CLOUDSANDBOX_INHERITS_ENV"] });
  });
});

describe("examples", () => {
  const example = (name) => execFileSync(process.execPath, [path.join(import.meta.dirname, "../../examples", name)], { encoding: "utf8" });

  test("a coder and a read-only reviewer", () => {
    const out = example("shared-workspace.js");
    assert.match(out, /"output":"passed\\n","exitCode":0/);
    assert.match(out, /reviewer: shell .*\n {2}Error: there is no such tool\n/);
    assert.match(out, /ERR_SANDBOX_FORBIDDEN: .*read-only/);
    assert.match(out, /the coder goes on: .*mean\.py/);
  });

  test("a seeded repository", () => {
    const out = example("seeded-repository.js");
    assert.match(out, /not sent: \.env: left out by the pattern \.env\n/);
    assert.ok(out.includes("\n.env.example\ngreet.sh\nhello\n") && /came back: 2 files, 27 bytes; 1 unchanged/.test(out), out);
  });
});
