// The life of an isolated sandbox: what it takes to be made, what is said when that cannot be, and that nothing is left.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, test } from "node:test";

import { SandboxAgent, createSandbox } from "cloudsandbox";

import { ROOT } from "../support/node.js";
import { mark } from "../support/processes.js";
import { openDescriptors } from "../support/resources.js";
import { tempDir } from "../support/temp.js";
import { rejection } from "../support/wait.js";
import { nestless, own, startUnder, unavailable } from "./support.js";


describe("isolated: life", { skip: unavailable }, () => {
  test("every layer is told; those that are required are enforced", async (t) => {
    const sandbox = own(t);
    assert.equal(sandbox.isolation, null);
    await sandbox.start();
    const { isolation } = sandbox;
    for (const layer of ["userns", "mounts", "procfs", "netns", "ipcns", "no_new_privs", "capabilities", "seccomp"]) {
      assert.equal(isolation[layer].state, "enforced", layer);
    }
    for (const { state, hint } of Object.values(isolation)) {
      assert.ok(state === "enforced" || state === "off" || hint.length > 10);
    }
  });

  test("a required layer that is missing rejects the start, named, and nothing is left", async (t) => {
    const parent = tempDir(t);
    const sandbox = own(t, { tempDir: parent, require: ["cgroup_memory"] });
    const error = await rejection(sandbox.start());
    assert.equal(error.code, "ERR_SANDBOX_ISOLATION_UNAVAILABLE");
    assert.match(error.message, /Layer cgroup_memory: .*cgroups.*best-effort.*isolation: "none"/);
    await sandbox.close();
    assert.deepEqual(readdirSync(parent), []);
  });

  test("59, 78 each limit of namespaces that is 0 is named, and nothing runs", (t) => {
    if (nestless) return t.skip(nestless);
    for (const [kind, layer] of [["user", "userns"], ["pid", "pidns"], ["mnt", "mounts"], ["net", "netns"], ["ipc", "ipcns"], ["uts", "utsns"], ["cgroup", "cgroupns"]]) {
      const told = startUnder(t, `exec unshare -U --map-root-user sh -c 'echo 0 > /proc/sys/user/max_${kind}_namespaces && exec "$@"' sh "$@"`);
      assert.match(told, new RegExp(`^ERR_SANDBOX_ISOLATION_UNAVAILABLE .*Layer ${layer}: ENOSPC: .*max_${kind}_namespaces`), kind);
    }
  });

  test("58 a masked /proc is named", (t) => {
    if (nestless) return t.skip(nestless);
    const told = startUnder(t, `exec unshare -Urm sh -c 'mount --bind /dev/null /proc/version && exec "$@"' sh "$@"`);
    assert.match(told, /^ERR_SANDBOX_ISOLATION_UNAVAILABLE .*Layer procfs: EPERM: .*accept: \["procfs"\]/);
  });

  test("77 root that can only be one user: of an ordinary user's number it starts", (t) => {
    if (nestless) return t.skip(nestless);
    const told = startUnder(t, 'exec unshare -Ur "$@"', { as: { node: process.execPath, user: {} } });
    if (process.getuid() === 0) assert.match(told, /^ERR_SANDBOX_ISOLATION_UNAVAILABLE .*Layer userns: EPERM: this process is root/);
    else assert.equal(told, "ran");
  });

  test("50, 64 fifty sandboxes leave neither processes nor descriptors", async (t) => {
    const parent = tempDir(t);
    await own(t, { tempDir: parent }).start();
    const before = openDescriptors();
    for (let round = 0; round < 5; round++) {
      const all = Array.from({ length: 10 }, () => own(t, { tempDir: parent }));
      assert.deepEqual(new Set(await Promise.all(all.map(async (s) => (await s.shell("echo hi")).output))), new Set(["hi\n"]));
      await Promise.all(all.map((s) => s.close()));
    }
    assert.equal(readdirSync(parent).length, 1);
    assert.ok(openDescriptors() <= before + 2, `${openDescriptors()} > ${before}`);
  });

  test("54 when the host is killed everything ends, and its directory goes", async (t) => {
    const parent = tempDir(t);
    const tracked = mark();
    const code = `
      import { LocalSandbox } from "cloudsandbox";
      const s = new LocalSandbox({ isolation: "required", tempDir: ${JSON.stringify(parent)}, env: ${JSON.stringify(tracked.env)} });
      await s.shell("(trap '' TERM HUP INT; setsid sleep 600 &) ; echo");
      console.log(s.sandboxId);
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", code], { cwd: ROOT, stdio: ["ignore", "pipe", "inherit"] });
    const [line] = await once(child.stdout, "data");
    const directory = String(line).trim();
    await tracked.started(1);
    child.kill("SIGKILL");
    await once(child, "exit");
    await tracked.gone();
    for (let i = 0; i < 100 && existsSync(directory); i++) await sleep(20);
    // Root's sandbox belongs to another user, who empties the directory, and may not be able to remove its name.
    if (existsSync(directory)) assert.deepEqual(readdirSync(directory), []);
  });

  test("84 nobody but the host holds its end of the socket", async (t) => {
    const sandbox = own(t);
    await sandbox.start();
    const { stdout } = spawnSync("sh", ["-c", "ls -l /proc/$$/fd/"], { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
    assert.doesNotMatch(stdout, / ([3-9]|\d\d+) -> socket:/);
    assert.doesNotMatch((await sandbox.shell("ls -l /proc/self/fd | cat")).output, /socket:/);
  });

  test("the names of the registry and of SandboxAgent lead here", async (t) => {
    const sandbox = createSandbox("isolated-local");
    t.after(() => sandbox.close());
    assert.equal(sandbox.providerId, "isolated-local");
    const agent = new SandboxAgent({ backend: "isolated-local", workspace: { files: [{ path: "a.txt", contents: "x" }], env: { E: "1" } } });
    t.after(() => agent.close());
    await agent.start();
    assert.equal(agent.providerId, "sandbox-agent-isolated-local");
    assert.deepEqual(await agent.shell("cat a.txt; echo $E; id -un"), { output: "x1\nsandbox\n", exitCode: 0 });
    assert.deepEqual((await agent.snapshot()).files.map((file) => file.path), ["a.txt"]);
    await assert.rejects((async () => new SandboxAgent({ backend: "isolated-local", isolated: { isolation: "none" } }))(), /leave it out/);
    await assert.rejects((async () => new SandboxAgent({ backend: "docker", isolated: {} }))(), /isolated-local/);
  });

  test("a file that the host writes is the command's own, also in a new folder", async (t) => {
    const sandbox = own(t);
    await sandbox.writeFile("new/dir/a.txt", "x");
    assert.equal((await sandbox.shell("echo y >> new/dir/a.txt && cat new/dir/a.txt && touch new/b && stat -c %u new")).output, "xy\n1000\n");
  });

  test("what goes with isolation is refused without it, and what makes no sense", async () => {
    const { LocalSandbox } = await import("cloudsandbox");
    for (const options of [
      { isolation: "none", network: "off" },
      { isolation: "required", trusted: true },
      { isolation: "best-effort", require: ["landlock"] },
      { isolation: "required", require: ["walls"] },
      { isolation: "required", readOnlyPaths: ["relative"] },
      { isolation: "required", readOnlyPaths: ["/a/../b"] },
      { isolation: "required", readOnlyPaths: ["/proc/self"] },
      { isolation: "required", network: "maybe" },
      { isolation: "required", processes: 0 },
    ]) {
      assert.throws(() => new LocalSandbox(options), { code: "ERR_SANDBOX_INVALID_ARG" }, JSON.stringify(options));
    }
  });

  test("a limit of memory that cannot be kept is no sandbox, unless what there is shall do", async (t) => {
    // Without a /proc nobody can look at what others have.
    const masked = { readOnlyPaths: [], accept: ["procfs"], memoryMb: 64 };
    const line = `exec unshare -Urm sh -c 'mount --bind /dev/null /proc/version && exec "$@"' sh "$@"`;
    if (nestless) return t.skip(nestless);
    assert.match(startUnder(t, line, masked), /^ERR_SANDBOX_ISOLATION_UNAVAILABLE .*Layer cgroup_memory: /);
    assert.equal(startUnder(t, line, { ...masked, limits: "best-effort" }), "ran");
  });
});
