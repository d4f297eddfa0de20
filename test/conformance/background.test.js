// What a command leaves in the background: it lives on until the sandbox is closed.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { mark } from "../support/processes.js";
import { HANG_MS } from "../support/wait.js";
import { providers } from "./providers.js";

/** A port that nobody uses, as far as can be known. */
const somePort = () => 20_000 + Math.floor(Math.random() * 12_000);

const ask = (port) => `import sys, time, urllib.request
for i in range(100):
  try:
    print(urllib.request.urlopen("http://127.0.0.1:${port}/f.txt").read().decode(), end="")
    sys.exit(0)
  except OSError: time.sleep(0.1)
sys.exit("no answer")`;

for (const provider of providers) {
  const skip = !provider.facts.background;
  const alive = (tracked) => (provider.facts.onThisMachine ? tracked.alive().length : undefined);

  describe(`background, ${provider.name}`, { concurrency: 2, skip }, () => {
    for (const [name, line] of [
      ["in a session of its own", (port) => `setsid nohup python3 -m http.server ${port} >/dev/null 2>&1 & echo started`],
      ["unredirected", (port) => `python3 -m http.server ${port} & echo started`],
    ]) {
      test(`C163 a server ${name} answers in the next two calls, and is gone after close`, async (t) => {
        const sandbox = provider.world(t).make();
        const tracked = mark();
        const port = somePort();
        await sandbox.writeFile("f.txt", "served\n");
        const begin = performance.now();
        const first = await sandbox.shell(line(port), { env: tracked.env });
        assert.ok(performance.now() - begin < HANG_MS);
        assert.match(first.output, /^(Serving.*\n)?started\n/);
        for (let i = 0; i < 2; i++) {
          const { output, exitCode } = await sandbox.run(ask(port), { language: "python" });
          assert.deepEqual({ output, exitCode }, { output: "served\n", exitCode: 0 });
        }
        if (provider.facts.onThisMachine) assert.ok(alive(tracked) > 0);
        await sandbox.close();
        if (provider.facts.onThisMachine) assert.equal(alive(tracked), 0);
      });
    }

    test("C163 a later call that times out or is cancelled ends its own tree only", async (t) => {
      const sandbox = provider.world(t).make();
      await sandbox.shell("(while :; do date +%s%N > next; mv next tick; sleep 0.05; done) >/dev/null 2>&1 & echo on");
      const late = await sandbox.exec({ command: "sleep 300 & sleep 300", timeoutSeconds: 0.5 });
      assert.equal(late.status, "timedOut");
      const abort = new AbortController();
      setTimeout(() => abort.abort(), 300);
      assert.equal((await sandbox.exec({ command: "sleep 300", signal: abort.signal })).status, "cancelled");
      const ticks = await sandbox.shell("cat tick; sleep 0.5; cat tick");
      const [first, second] = ticks.output.trim().split("\n");
      assert.notEqual(first, second);
    });

    test("C163 what a limit ends, it ends with its background", async (t) => {
      const sandbox = provider.world(t).make();
      const { status } = await sandbox.exec({
        command: "(while :; do date +%s%N > next; mv next tick; sleep 0.05; done) >/dev/null 2>&1 & sleep 300",
        timeoutSeconds: 1,
      });
      assert.equal(status, "timedOut");
      const ticks = await sandbox.shell("cat tick; sleep 0.5; cat tick");
      const [first, second] = ticks.output.trim().split("\n");
      assert.equal(first, second);
    });

    test('C163 background: "end" ends it with its command', async (t) => {
      const sandbox = provider.world(t).make();
      const result = await sandbox.exec({
        command: "(while :; do date +%s%N > next; mv next tick; sleep 0.05; done) >/dev/null 2>&1 & sleep 0.2; echo done",
        background: "end",
      });
      assert.equal(result.stdout, "done\n");
      const ticks = await sandbox.shell("cat tick; sleep 0.5; cat tick");
      const [first, second] = ticks.output.trim().split("\n");
      assert.equal(first, second);
    });

    test("C163 it prints for ever without being stopped or killed for it", async (t) => {
      const sandbox = provider.world(t).make();
      const first = await sandbox.exec({
        command: "(sleep 1; head -c 3000000 /dev/zero; echo $? > wrote; sleep 300) & echo started",
      });
      assert.equal(first.stdout, "started\n");
      const { output } = await sandbox.shell("until [ -s wrote ]; do sleep 0.05; done; cat wrote");
      assert.equal(output, "0\n");
    });
  });
}
