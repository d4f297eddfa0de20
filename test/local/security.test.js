// The local backend says what it is: not isolated, and never chosen by itself.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";

import { LocalSandbox, SandboxAgent } from "cloudsandbox";

import { ROOT, runNode } from "../support/node.js";
import { rejection } from "../support/wait.js";

describe("C085 what is isolated and what is not is said, and nothing weaker is taken by itself", { concurrency: 4 }, () => {
  test("C085 documents and types say so", () => {
    for (const file of ["README.md", "docs/api.md", "types/index.d.ts"]) {
      assert.match(readFileSync(path.join(ROOT, file), "utf8"), /not isolat(ed|ion)/i, file);
    }
  });

  test("C085 no warning where the caller says that the code is trusted, or nothing else was wanted than what there is", async () => {
    const lines = 'new LocalSandbox({ isolation: "none" }); new LocalSandbox({ trusted: true }); new LocalSandbox(); new LocalSandbox({ isolation: "best-effort" });';
    const { stderr } = await runNode(`import { LocalSandbox } from "cloudsandbox"; ${lines}`);
    assert.equal(stderr, "");
  });

  test("C085 who asks for isolation gets it or an error with the way out; nothing weaker is taken instead", async (t) => {
    assert.throws(() => new LocalSandbox({ isolation: "required", trusted: true }), {
      code: "ERR_SANDBOX_INVALID_ARG",
      message: /leave one of them out/,
    });
    const sandbox = new LocalSandbox();
    t.after(() => sandbox.close());
    assert.equal(sandbox.providerId, "isolated-local");
    try {
      assert.match((await sandbox.shell("cat /proc/self/status")).output, /^NoNewPrivs:\t1$/m);
    } catch (error) {
      assert.equal(error.code, "ERR_SANDBOX_ISOLATION_UNAVAILABLE");
      assert.match(error.message, /Layer \w+: .*isolation: "none"/);
    }
    assert.throws(() => new LocalSandbox({ isolation: "yes" }), {
      code: "ERR_SANDBOX_INVALID_ARG",
    });
  });

  test("C085 no backend is chosen by default or as a fallback", async () => {
    for (const config of [
      undefined,
      {},
      { backend: undefined },
      { backend: "remote" },
      { backend: "isolated" },
    ]) {
      const started = (async () => new SandboxAgent(config).start())();
      assert.match(
        (await rejection(started)).message,
        /Unsupported|requires `remote`|must be an object/,
      );
    }
  });

  test("C085 the id does not suggest isolation, and the capabilities say that it is this machine", async () => {
    const sandbox = new LocalSandbox({ isolation: "none" });
    assert.equal(sandbox.providerId, "unix-local");
    assert.equal(sandbox.capabilities.local, true);
    await sandbox.close();
  });
});
