// The page in headless Chromium. The browser's own log says what the page's policy has kept away.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFileSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import path from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

// This folder belongs to no package that could be asked for by its name.
import { DockerSandbox, LocalSandbox } from "../../../lib/index.js";
import { recordTo } from "../../../lib/records.js";
import { reportOf, writeReport } from "../../../lib/report.js";

import { tempDir } from "../../support/temp.js";

const run = promisify(execFile);

/** The browser's standard output. */
async function chromium(dir, ...args) {
  const options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", `--user-data-dir=${path.join(dir, "profile")}`];
  const { stdout } = await run("chromium", [...options, ...args], { timeout: 120_000, maxBuffer: 64 * 1024 * 1024 });
  return stdout;
}

/** The title that a page ends up with, and its whole tree. */
async function opened(dir, file) {
  const dom = await chromium(dir, "--virtual-time-budget=3000", "--dump-dom", `file://${file}`);
  return { dom, title: /<title>(.*?)<\/title>/s.exec(dom)[1] };
}

function picture(t, dir, file, name, size) {
  const output = path.join(dir, name);
  return chromium(dir, `--window-size=${size}`, `--screenshot=${output}`, `file://${file}`).then(() => {
    if (process.env.REPORT_PICTURES) copyFileSync(output, path.join(process.env.REPORT_PICTURES, name));
    return statSync(output).size;
  });
}

test("a session is readable, wide and narrow", async (t) => {
  const dir = tempDir(t);
  const [file, page] = [path.join(dir, "session.jsonl"), path.join(dir, "session.html")];
  const recording = recordTo(file, { commandBytes: 500, outputBytes: 2000 });
  const sandboxes = [new LocalSandbox({ isolation: "none", budget: { commands: 4 } }), new LocalSandbox({ isolation: "none" })];
  await Promise.all(
    sandboxes.map(async (sandbox, index) => {
      await sandbox.shell("seq 100");
      await sandbox.writeFile("src/main.py", "print('hello')\n".repeat(100));
      await sandbox.exec({ argv: ["python3", "src/main.py"] });
      await sandbox.shell("exit 3");
      await sandbox.exec({ command: "sleep 9", timeoutSeconds: 0.3 + index });
      await sandbox.shell("true").catch(() => {});
      await sandbox.close();
    }),
  );
  await new DockerSandbox({ host: "unix:///nowhere.sock", startTimeoutSeconds: 1 }).start().catch(() => {});
  recording.stop();
  await writeReport(file, page);
  const { dom, title } = await opened(dir, page);
  assert.equal(title, "session.jsonl");
  for (const part of ["seq 100", "exit 3", "timed out", "refused: commands", "start failed"]) assert.ok(dom.includes(part), part);
  // Less than this is an empty page.
  assert.ok((await picture(t, dir, page, "wide.png", "1280,1100")) > 50_000);
  assert.ok((await picture(t, dir, page, "narrow.png", "420,1100")) > 30_000);
});

test("records that mean ill run nothing and fetch nothing", async (t) => {
  const asked = [];
  const server = createServer((request, response) => {
    asked.push(request.url);
    response.end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const url = `http://127.0.0.1:${server.address().port}`;
  const evil = `</pre></code></style><script>document.title="owned"</script><img src="${url}/img" onerror="document.title='owned'">` +
    `<link rel=stylesheet href="${url}/css"><svg onload="document.title='owned'"><meta http-equiv=refresh content="0;url=${url}/go"><style>@import "${url}/import";</style>`;
  const about = { instanceId: evil, provider: evil, sandboxId: evil, callId: 1 };
  const records = [
    { type: "started", at: 1e12, ...about, durationMs: evil },
    { type: "exec", phase: "begin", at: 1e12, ...about, kind: evil, command: evil, tool: evil },
    { type: "exec", phase: "end", at: 1e12 + 10, ...about, status: evil, exitCode: evil, signal: evil, output: evil, error: { code: evil, [evil]: evil }, [evil]: evil },
    { type: "file", at: 1e12 + 20, ...about, operation: evil, path: evil },
    { type: evil, at: 1e12 + 30, ...about },
  ];
  const dir = tempDir(t);
  const page = path.join(dir, "evil.html");
  writeFileSync(page, reportOf(records, { title: "Mine" }));
  assert.ok(!readFileSync(page, "utf8").includes("<script"));
  const { dom, title } = await opened(dir, page);
  assert.equal(title, "Mine");
  assert.doesNotMatch(dom, /<(script|img|svg|link)/);
  assert.deepEqual(asked, []);

  // The policy alone would hold them, too: the same as markup.
  writeFileSync(page, reportOf([], { title: "Mine" }).replace("<main>", `<main>${evil.replace(/<meta.*?>/, "")}`));
  assert.equal((await opened(dir, page)).title, "Mine");
  assert.deepEqual(asked, []);
});
