// The page of a session: what it shows, and that nothing in a record becomes markup. test/interop/report looks at it in a browser.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";

import { reportOf, writeReport } from "cloudsandbox/report";

import { ROOT } from "../support/node.js";
import { tempDir } from "../support/temp.js";

const about = { instanceId: "p-1", provider: "unix-local", sandboxId: "/tmp/one" };
/** A command that began after `at` ms and took `ms`. */
function command(callId, at, ms, begin = {}, end = {}) {
  return [
    { type: "exec", phase: "begin", at, ...about, callId, kind: "command", commandBytes: 4, ...begin },
    { type: "exec", phase: "end", at: at + ms, ...about, callId, status: "exited", exitCode: 0, durationMs: ms, totalMs: ms, outputBytes: 2048, ...end },
  ];
}
const T = Date.UTC(2026, 0, 2, 3, 4, 5);
const text = (html) => html.replace(/<style>.*<\/style>/s, "").replace(/<[^>]*>/g, " ").replace(/\s+/g, " ");

describe("a page", () => {
  test("shows what ran, for how long, how it ended, and what it printed", () => {
    const html = reportOf(
      [
        { type: "recording", at: T, format: 1, pid: 1 },
        { type: "created", at: T + 20, ...about },
        { type: "started", at: T + 20, ...about, durationMs: 20 },
        ...command(1, T + 100, 400, { command: "make test", tool: "sandbox_local_shell" }, { exitCode: 2, output: "2 failed\n", outputCut: true }),
        ...command(2, T + 1000, 8000, {}, { status: "timedOut", exitCode: 124 }),
        { type: "file", at: T + 9100, ...about, callId: 3, operation: "write", path: "a/b.txt", bytes: 3072, durationMs: 5 },
        { type: "exec", phase: "begin", at: T + 9200, ...about, callId: 4, kind: "code", language: "python", commandBytes: 10 },
        { type: "lost", at: T + 10_000, ...about },
      ],
      { title: "Mine", damaged: 1 },
    );
    const words = text(html);
    for (const part of ["Mine", "2026-01-02 03:04:05 UTC · 10 s", "3 3 not with exit code 0", "make test", "exit 2", "2 failed", "the output goes on",
      "timed out", "8 s", "write a/b.txt 3.0 KiB", "python code 10 B", "no end seen", "sandbox lost with its files", "1 line was cut short"]) {
      assert.ok(words.includes(part), `${part} in ${words}`);
    }
    // 400 of 10000 milliseconds, after 100.
    assert.match(html, /<b class="bad" style="left:1\.000%;width:4\.000%">/);
    assert.doesNotMatch(words, /Not deleted/);
  });

  test("says which sandboxes are left", () => {
    const words = text(reportOf([{ type: "created", at: T, ...about }, { type: "started", at: T, ...about, durationMs: 1 }]));
    assert.match(words, /Not deleted as far as this recording goes: \/tmp\/one/);
    const attached = text(reportOf([{ type: "started", at: T, ...about, durationMs: 1, attached: true }]));
    assert.doesNotMatch(attached, /Not deleted/);
  });

  test("of nothing, of one record, of too many", () => {
    assert.match(text(reportOf([])), /Nothing was recorded/);
    assert.match(text(reportOf(command(1, T, 0))), /exit 0/);
    const many = Array.from({ length: 5100 }, (_, i) => command(i, T + i, 1)).flat();
    assert.match(text(reportOf(many)), /Of 5100 events the first 5000 are shown/);
  });

  test("needs nothing from elsewhere, and runs nothing", () => {
    const html = reportOf(command(1, T, 1, { command: "curl https://example.com/x.js" }));
    assert.match(html, /content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"/);
    assert.doesNotMatch(html, /<(script|link|img|iframe|object|embed|form|base)|@import|url\(|javascript:/i);
    assert.doesNotMatch(html, /(src|href)="(?!#s\d)/);
  });

  test("whatever a record holds is text", () => {
    const evil = `</pre></style><script>alert(1)</script><img src=x onerror="alert(1)">'"\`&amp;\x1b[31mred\x1b[0m\0\u202eabc`;
    const shapes = [evil, { toString: null, evil }, [evil], null, Infinity, NaN, -5, true];
    const names = ["type", "phase", "at", "instanceId", "provider", "sandboxId", "callId", "kind", "language", "commandBytes", "command", "output", "status",
      "exitCode", "signal", "durationMs", "totalMs", "outputBytes", "operation", "path", "bytes", "what", "error", "tool", "toolCallId", "reason", "spent", "seconds", "entries",
      "files", "action", evil];
    const records = [];
    for (const type of ["exec", "file", "started", "created", "failed", "seeded", "control", "refused", "lost", "deleted", "timedOut", "killed", evil]) {
      for (const name of names) {
        for (const value of shapes) {
          const one = { type, at: T, ...about, callId: 1, phase: "begin", status: "failed", error: { code: evil, [evil]: evil }, [name]: value };
          records.push(one, { ...one, phase: "end", [name]: value });
        }
      }
    }
    for (let i = 0; i < records.length; i += 500) {
      const html = reportOf(records.slice(i, i + 500), { title: evil });
      const tags = new Set([...html.replace(/<style>.*<\/style>/s, "").matchAll(/<\/?([a-z!0-9]+)/gi)].map(([, tag]) => tag.toLowerCase()));
      const own = "!doctype html meta title style header h1 h2 p dl div dt dd small ul li main section a span i b time code pre details summary br footer".split(" ");
      assert.deepEqual([...tags].filter((tag) => !own.includes(tag)), []);
      // eslint-disable-next-line no-control-regex
      assert.doesNotMatch(html, /[\0\x1b\u202e]|<[^>]*\son\w+=/);
    }
  });
});

describe("writeReport", () => {
  test("from a file to a file, which is its owner's alone", async (t) => {
    const dir = tempDir(t);
    const [file, output] = [path.join(dir, "s.jsonl"), path.join(dir, "s.html")];
    writeFileSync(file, [...command(1, T, 5)].map((record) => JSON.stringify(record)).join("\n") + '\n{"type":"ex');
    assert.deepEqual(await writeReport(file, output), { records: 2, damaged: 1 });
    assert.equal(statSync(output).mode & 0o777, 0o600);
    assert.match(readFileSync(output, "utf8"), /<title>s\.jsonl<\/title>/);
    await assert.rejects(writeReport(path.join(dir, "none"), output), { code: "ENOENT" });
    await assert.rejects(writeReport(file, 1), { code: "ERR_SANDBOX_INVALID_ARG" });
    await assert.rejects(writeReport(file, output, { titel: "x" }), /did you mean `title`/);
  });

  test("the example records a session and writes its page", (t) => {
    const cwd = tempDir(t);
    const run = spawnSync(process.execPath, [path.join(ROOT, "examples/recorded-session.js")], { cwd, encoding: "utf8" });
    assert.equal(run.status, 0, run.stderr);
    assert.match(run.stdout, /\d+ records; open session\.html\n$/);
    const words = text(readFileSync(path.join(cwd, "session.html"), "utf8"));
    for (const part of ["A recorded session", "python3 test_primes.py", "exit 1", "this one fails", "timed out", "not found", "step 3"]) assert.ok(words.includes(part), part);
  });
});
