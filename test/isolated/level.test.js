// Which level a LocalSandbox has: what is the default, and what is taken where a machine cannot isolate.
import assert from "node:assert/strict";
import { chownSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";

import { LocalSandbox, SandboxToolkit } from "cloudsandbox";

import { LAYERS } from "../../lib/isolated.js";
import { NOBODY, startNode } from "../support/node.js";
import { tempDir } from "../support/temp.js";
import { rejection } from "../support/wait.js";
import { NO_NAMESPACES, nestless, own, runUnder, unavailable } from "./support.js";

/** Does it, with the warnings that come of it, and prints that as JSON. */
const telling = (body) => `
  const warnings = [];
  process.on("warning", ({ name, code, message }) => warnings.push({ name, code, message }));
  const told = await (async () => { ${body} })();
  await new Promise(setImmediate);
  console.log(JSON.stringify({ told, warnings }));`;

function under(t, body) {
  const { stdout, stderr } = runUnder(t, NO_NAMESPACES, telling(body));
  assert.match(stdout, /^\{/, stderr);
  return JSON.parse(stdout);
}

const IDS = `const ids = [s.providerId]; const results = await Promise.all([s.shell("echo a"), s.run("print('b')"), s.writeFile("f", "c"), s.listFiles()]);`;

describe("isolated: level", { skip: unavailable }, () => {
  test("a LocalSandbox is isolated when nothing is said", async (t) => {
    const sandbox = new LocalSandbox();
    t.after(() => sandbox.close());
    assert.match((await sandbox.shell("cat /proc/self/status")).output, /^NoNewPrivs:\t1$/m);
    assert.equal(sandbox.isolation.userns.state, "enforced");
  });

  test("best-effort is isolated where that can be had, without a warning", async () => {
    const { stdout } = await startNode(`import { LocalSandbox } from "cloudsandbox"; ${telling(`
      const s = new LocalSandbox({ isolation: "best-effort", memoryMb: 512 });
      ${IDS} await s.close();
      return [...ids, s.providerId, results[0].output, results[1].output];`)}`).ended;
    assert.deepEqual(JSON.parse(stdout), { told: ["unix-local", "isolated-local", "a\n", "b\n"], warnings: [] });
  });

  test("tools say where they run: not isolated, as long as it is not known", async (t) => {
    const sandbox = new LocalSandbox({ isolation: "best-effort" });
    t.after(() => sandbox.close());
    const words = () => new SandboxToolkit(sandbox).getTools()[0];
    assert.match(words().description, /not isolated/);
    await sandbox.start();
    assert.doesNotMatch(words().description, /not isolated/);
    assert.equal(words().name, "sandbox_local_run");
  });
});

describe("isolated: a workspace that is given", { skip: unavailable }, () => {
  const isRoot = process.getuid() === 0;

  test("commands work in it as its owner, and it is kept", async (t) => {
    const workspace = tempDir(t);
    if (isRoot) chownSync(workspace, NOBODY, NOBODY);
    const sandbox = own(t, { workspace });
    assert.equal((await sandbox.shell("id -u; echo made > f; stat -c %u f")).output, "1000\n1000\n");
    await sandbox.close();
    assert.equal(readFileSync(path.join(workspace, "f"), "utf8"), "made\n");
    assert.equal(statSync(path.join(workspace, "f")).uid, isRoot ? NOBODY : process.getuid());
  });

  test("one of root's is none of theirs: refused with what to do; best-effort is not isolated there", { skip: !isRoot && "this is not root" }, async (t) => {
    const workspace = tempDir(t);
    const error = await rejection(own(t, { workspace }).start());
    assert.equal(error.code, "ERR_SANDBOX_ISOLATION_UNAVAILABLE");
    assert.match(error.message, /belongs to root, .*chown.*isolation: "none"/);
    const sandbox = new LocalSandbox({ workspace, isolation: "best-effort", trusted: true });
    t.after(() => sandbox.close());
    assert.equal((await sandbox.shell("id -u")).output, "0\n");
    assert.equal(sandbox.isolation.userns.state, "off");
  });
});

describe("where a machine cannot isolate", { skip: unavailable || nestless, concurrency: 2 }, () => {
  test("best-effort takes what there is: one warning with the reason, and the sandbox says so", (t) => {
    const { told, warnings } = under(t, `
      const s = new LocalSandbox({ isolation: "best-effort", processes: 64, env: { WORD: "w" } });
      ${IDS} const { output } = await s.shell("echo $WORD; cat f; pwd");
      const other = new LocalSandbox({ isolation: "best-effort" });
      await other.start();
      const [, , , files] = results; const { isolation, sandboxId } = s;
      await s.close(); await other.close();
      return { ids: [...ids, s.providerId, other.providerId], outputs: [results[0].output, results[1].output, output], files, isolation, sandboxId,
        left: (await import("node:fs")).existsSync(sandboxId) };`);
    assert.deepEqual(told.ids, ["unix-local", "unix-local", "unix-local"]);
    assert.deepEqual(told.outputs, ["a\n", "b\n", `w\nc${told.sandboxId}\n`]);
    assert.equal(told.left, false);
    assert.deepEqual(Object.keys(told.isolation), LAYERS);
    for (const { state, hint } of Object.values(told.isolation)) {
      assert.equal(state, "off");
      assert.match(hint, /Layer userns: ENOSPC: .*max_user_namespaces/);
    }
    assert.deepEqual(warnings.map(({ name, code }) => [name, code]), [["SecurityWarning", "CLOUDSANDBOX_NOT_ISOLATED"]]);
    assert.match(warnings[0].message, /without isolation, with the privileges of this process\. .*Layer userns: ENOSPC/);
  });

  test("best-effort of who says that the code is trusted is quiet", (t) => {
    const { told, warnings } = under(t, `
      const s = new LocalSandbox({ isolation: "best-effort", trusted: true });
      const { output } = await s.shell("echo ran"); await s.close(); return output;`);
    assert.deepEqual([told, warnings], ["ran\n", []]);
  });

  test("a call that is aborted, and a close, meanwhile", (t) => {
    const { told } = under(t, `
      const options = { isolation: "best-effort" };
      const s = new LocalSandbox(options);
      const aborted = await s.shell("echo no", { signal: AbortSignal.abort("enough") }).catch((e) => e);
      const controller = new AbortController();
      const later = s.shell("echo no", { signal: controller.signal }).catch((e) => e);
      controller.abort("later");
      const after = (await s.shell("echo after")).output;
      const closed = new LocalSandbox(options);
      const pending = closed.shell("echo no").catch((e) => e.code);
      await closed.close();
      const said = [aborted, await later, after, await pending, await closed.shell("echo no").catch((e) => e.code)];
      await s.close();
      return said;`);
    assert.deepEqual(told, ["enough", "later", "after\n", "ERR_SANDBOX_CLOSED", "ERR_SANDBOX_CLOSED"]);
  });

  test("the default takes nothing weaker, at every call and each time", (t) => {
    const { told, warnings } = under(t, `
      const s = new LocalSandbox();
      const codes = [];
      for (const call of [() => s.start(), () => s.shell("echo ran"), () => s.writeFile("f", ""), () => s.run("1")]) {
        codes.push(await call().then(() => "ran", ({ code, message, mayHaveRun }) => [code, mayHaveRun, message.includes('isolation: "none"')]));
      }
      await s.close();
      return codes;`);
    assert.deepEqual(told, Array(4).fill(["ERR_SANDBOX_ISOLATION_UNAVAILABLE", false, true]));
    assert.deepEqual(warnings, []);
  });
});
