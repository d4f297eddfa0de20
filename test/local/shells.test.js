// Shells that last, and what of them stays in a workspace.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";

import { LocalSandbox } from "cloudsandbox";
import { tempDir } from "../support/temp.js";

test("a sandbox that is closed takes its shells' state out of a workspace of the user's", async (t) => {
  for (const graceSeconds of [0, 5]) {
    const workspace = tempDir(t);
    const sandbox = new LocalSandbox({ isolation: "none", workspace });
    const shell = await sandbox.openShell();
    await shell.run("export SECRET=1");
    const other = await sandbox.openShell();
    let late;
    if (graceSeconds > 0) {
      const begun = new Promise((resolve) => {
        late = other.run("echo begun; until [ -e go ]; do :; done; v=1", { onStdout: resolve });
      });
      await begun;
    }
    assert.equal(readdirSync(workspace).filter((name) => name.endsWith(".state")).length, 2);
    const writing = graceSeconds > 0 ? sandbox.shell("sleep 0.1; touch go") : undefined;
    await sandbox.close({ graceSeconds });
    await Promise.allSettled([late, writing]);
    assert.deepEqual(readdirSync(workspace).filter((name) => name !== "go"), []);
    await shell.close();
  }
});
