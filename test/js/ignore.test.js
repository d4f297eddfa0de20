// Patterns of what is left out, against git itself.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";

import { ignoring } from "../../lib/workspaces/ignore.js";
import { tempDir } from "../support/temp.js";

const plain = (it) => it.replace(/\/$/, "");

/** Those of `paths`, which end in "/" where they are folders, that git leaves out. */
function byGit(directory, patterns, paths, ignoreCase) {
  writeFileSync(path.join(directory, ".git/info/exclude"), patterns.map((pattern) => `${pattern}\n`).join(""));
  const args = ["-c", `core.ignoreCase=${ignoreCase}`, "-c", "core.excludesFile=/dev/null", "check-ignore", "--no-index", "-z", "--stdin"];
  const { stdout, status, stderr } = spawnSync("git", args, { cwd: directory, input: paths.map(plain).join("\0"), encoding: "utf8" });
  assert.ok(status === 0 || status === 1, stderr);
  const out = new Set(stdout.split("\0"));
  return paths.filter((it) => out.has(plain(it))).sort();
}

function byUs(patterns, paths, ignoreCase) {
  const leftOutBy = ignoring(patterns, { ignoreCase });
  return paths.filter((it) => leftOutBy(plain(it), it.endsWith("/")) !== undefined).sort();
}

/** A directory in which git knows which of the paths are folders. */
function repository(t, paths) {
  const directory = tempDir(t);
  execFileSync("git", ["init", "-q", directory]);
  for (const it of paths.filter((one) => one.endsWith("/"))) mkdirSync(path.join(directory, it), { recursive: true });
  mkdirSync(path.join(directory, ".git/info"), { recursive: true });
  return directory;
}

const PATHS = [
  "a", "b", "a.txt", "b.log", "A.TXT", "-", "]", "[", "a]", "a-b", "ab", "abc", "a b", "a ", "#x", "!x", "*", "**", "x**y", "xay",
  "x\\y", "\\", "^", "é", "{a}", "a+", "(a)", "a$", ".env", ".env.local", ".ENV", "id_rsa", "key.pem", "secrets/", "secrets/k", "d/",
  "d/a", "d/a.txt", "d/e/", "d/e/a", "d/e/f/", "d/e/f/a", "d/e/f/a.txt", "d/secrets/", "d/secrets/k", "d/e/secrets", "foo/", "foo/bar",
  "foo/baz/", "foo/baz/bar", "foo/baz/keep", "build/", "build/out", "src/", "src/build/", "src/build/out", "src/x.o", "1", "5", "ab5", "dir/", "dir/b",
];

const CASES = [
  ["*.txt"], ["/a.txt"], ["d/"], ["d"], ["/d/e"], ["d/e"], ["e/f"], ["**/f"], ["d/**"], ["d/**/a"], ["d/**/f/a.txt"], ["**"], ["/**"], ["**/"],
  ["*"], ["*", "!a"], ["*", "!*/", "!*.txt"], ["foo/*", "!foo/baz"], ["foo/*", "!foo/baz/", "foo/baz/*", "!foo/baz/keep"], ["foo/", "!foo/bar"],
  ["secrets/"], ["/secrets/"], ["secrets"], [".env", ".env.*", "id_*", "*.pem"], [".env*", "!.env.local"], ["#x"], ["\\#x"], ["!x"], ["\\!x"],
  ["a "], ["a\\ "], ["a   "], ["  a"], ["", "   "], ["[ab]"], ["[!ab]"], ["[^ab]"], ["[a-c]b"], ["[]]"], ["[!]]"], ["[]-]"], ["[a-]"], ["[-a]"], ["[\\]]"],
  ["[\\-]"], ["[a"], ["[[:digit:]]"], ["a[[:alpha:]]*"], ["[[:nope:]]"], ["[[:digit:]a-b]*"], ["[b-a]"], ["[a-\\c]"], ["a\\"], ["\\\\"], ["\\*"], ["\\*\\*"], ["\\[", "\\]"],
  ["x**y"], ["x***y"], ["**a"], ["a**"], ["d/*/a"], ["d/*"], ["d/?"], ["?"], ["??"], ["/*"], ["/*/"], ["*/"], ["/"], ["//"], ["d//e"], ["./a"], ["d/./e"], ["{a}"], ["a+"], ["(a)"], ["a$"], ["^"],
  ["d/e/"], ["d/e/**/"], ["**/e/**"], ["**/build"], ["/build", "!/build"], ["build/", "!src/build/"], ["!a"], ["a", "!a", "a"], ["[/]"], ["d[/]a"], ["d[!x]a"], ["d?a"], ["d*a"], ["d**a"],
  ["d/***"], ["***/a"], ["d/**e"], ["x\\y"], ["x\\\\y"], ["[\\\\]"], ["[[]"], ["[a[]"], ["[^-]"], ["[0-9]"], ["[!0-9]"], ["*[0-9]"], ["[]a]"], ["[]"], ["[!]"], ["\\a"], ["\\!x", "!\\!x"], ["!!x"],
];

describe("patterns", () => {
  for (const ignoreCase of [false, true]) {
    test(`each leaves out what git leaves out${ignoreCase ? ", in letters of either case" : ""}`, (t) => {
      const directory = repository(t, PATHS);
      for (const patterns of CASES) {
        const paths = PATHS.filter((it) => it !== "é");
        assert.deepEqual(byUs(patterns, paths, ignoreCase), byGit(directory, patterns, paths, ignoreCase), JSON.stringify(patterns));
      }
    });
  }

  test("made up ones, too", (t) => {
    const directory = repository(t, PATHS);
    const paths = PATHS.filter((it) => it !== "é");
    // The same ones at every run.
    let seed = 7;
    const below = (bound) => (seed = (seed * 48271) % 2147483647) % bound;
    const parts = ["a", "b", "d", "e", "foo", "*", "**", "?", "/", "/", "!", "[ab]", "[!a]", "[a-e]", ".txt", "\\", " ", "-", "]"];
    for (let round = 0; round < 150; round += 1) {
      const patterns = Array.from({ length: 1 + below(3) }, () => Array.from({ length: 1 + below(6) }, () => parts[below(parts.length)]).join(""));
      // Of two stars behind a name and before a slash git 2.39 says what its memory happens to hold.
      if (patterns.some((pattern) => /[^*/]\*\*+(\/|$)/.test(pattern))) continue;
      assert.deepEqual(byUs(patterns, paths, false), byGit(directory, patterns, paths, false), JSON.stringify(patterns));
    }
  });

  test("a character of two bytes is one", () => {
    assert.equal(ignoring(["?"])("é"), "?");
    assert.equal(ignoring(["[é]"])("é"), "[é]");
  });

  test("stars behind a name are one star, as git's manual has it", () => {
    const leftOutBy = ignoring(["d**/a"]);
    assert.deepEqual([leftOutBy("dx/a"), leftOutBy("d/e/a")], ["d**/a", undefined]);
  });

  test("the pattern that decides is told", () => {
    const leftOutBy = ignoring(["*.log", "node_modules/", "!keep.log"]);
    assert.equal(leftOutBy("a.log"), "*.log");
    assert.equal(leftOutBy("d/node_modules/x/keep.log"), "node_modules/");
    assert.equal(leftOutBy("keep.log"), undefined);
    assert.equal(leftOutBy("a.txt"), undefined);
  });
});
