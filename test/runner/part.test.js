// Files in parts, with whatever tools a sandbox has.
import assert from "node:assert/strict";
import { linkSync, lstatSync, mkdirSync, readFileSync, readdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";

import { tempDir } from "../support/temp.js";
import { canMount, everyShell, newTag, runText, text, within } from "./support.js";

const WHOLE = text("part");
/** Where find has no -printf; and where there is no stat either. */
const TOOLS = {
  "find that prints": WHOLE,
  "stat alone": WHOLE.replaceAll("find -L", "false"),
  neither: WHOLE.replaceAll("find -L", "false").replaceAll("stat -L", "false"),
};
const base64 = (it) => Buffer.from(it).toString("base64");
const decoded = (line) => Buffer.from(line, "base64").toString();

/** The first line's word and exit code, what came as stdout, and the stamps of before and after. */
async function ask(shell, program, cwd, verb, file, from, length, to = "") {
  const tag = newTag();
  const words = ["sh", tag, base64(file), "65536", verb, String(from), String(length), base64(to)];
  const { stdout, stderr } = await runText(shell, program, words, { cwd });
  assert.equal(stderr, "");
  const lines = stdout.toString().split("\n");
  const first = lines.findIndex((line) => line.startsWith(tag));
  assert.equal(lines[first + 5], `${tag} end`, stdout.toString());
  const [, word, code] = lines[first].split(" ");
  return { end: word === "ran" ? Number(code) : word, said: decoded(lines[first + 1]), before: decoded(lines[first + 3]), after: decoded(lines[first + 4]) };
}

for (const [tools, program] of Object.entries(TOOLS)) {
  everyShell(`parts of a file, ${tools}`, async (t, shell) => {
    const cwd = tempDir(t);
    mkdirSync(path.join(cwd, "d"));
    writeFileSync(path.join(cwd, "- f"), "0123456789");
    writeFileSync(path.join(cwd, "empty"), "");
    symlinkSync("- f", path.join(cwd, "link"));
    const cut = async (file, from, length) => ask(shell, program, cwd, "cut", file, from, length);
    // Where it begins at a multiple of its length, and where it does not.
    for (const [from, length, said] of [[0, 4, "0123"], [4, 4, "4567"], [8, 4, "89"], [12, 4, ""], [3, 4, "3456"], [9, 4, "9"]]) {
      const answer = await cut("link", from, length);
      assert.deepEqual([answer.end, answer.said], [0, said]);
      assert.match(answer.before, tools === "neither" ? /^10 0 0$/ : /^10 \d+ [\d.]+$/);
      assert.equal(answer.after, answer.before);
    }
    assert.deepEqual(await cut("empty", 0, 4), { end: 0, said: "", before: "0", after: "0" });
    assert.equal((await cut("d", 0, 4)).end, 2);
    assert.equal((await cut("- f/below", 0, 4)).end, 1);
    assert.equal((await cut("absent/f", 0, 4)).end, "absent");
  });

  everyShell(`a file is made of parts, ${tools}`, async (t, shell) => {
    const cwd = tempDir(t);
    const file = (name) => path.join(cwd, name);
    const put = (name, contents) => writeFileSync(file(name), contents);
    const end = async (...args) => (await ask(shell, program, cwd, ...args)).end;
    put("all", "one");
    put("piece", "four");
    assert.equal(await end("join", "piece", 3, 4, "all"), 0);
    assert.equal(await end("join", "piece", 3, 4, "all"), 0, "it may come twice");
    assert.deepEqual([readFileSync(file("all"), "utf8"), readdirSync(cwd)], ["onefour", ["all"]]);
    put("piece", "two");
    assert.equal(await end("join", "piece", 3, 3, "all"), 0, "a part that came before, in part or with other bytes, is written over");
    assert.equal(readFileSync(file("all"), "utf8"), "onetwo");
    put("piece", "x");
    assert.equal(await end("join", "piece", 7, 1, "all"), 6, "something is missing before it");
    assert.equal(await end("join", "piece", 6, 2, "all"), 6, "it is not whole");
    assert.equal(await end("join", "absent", 6, 1, "all"), 6);
    assert.equal(await end("join", "piece", 0, 1, "absent"), 6);
    mkdirSync(file("d"));
    assert.equal(await end("take", "all", 0, 0, "d"), 2);
    assert.equal(await end("take", "all", 0, 0, "d/- new"), 0);
    assert.equal(await end("take", "all", 0, 0, "d/- new"), 6);
    assert.equal(readFileSync(file("d/- new"), "utf8"), "onetwo");
    writeFileSync(file("old"), "old", { mode: 0o750 });
    symlinkSync("old", file("link"));
    assert.equal(await end("take", "piece", 0, 0, "link"), 0);
    assert.deepEqual([readFileSync(file("old"), "utf8"), statSync(file("old")).mode & 0o777], ["x", 0o750]);
    assert.deepEqual(readdirSync(cwd), ["d", "link", "old"]);
  });

  everyShell(`a file of two names stays whole where its successor has no room, ${tools}`, { skip: !canMount }, async (t, shell) => {
    const cwd = tempDir(t);
    const file = (name) => path.join(cwd, name);
    const take = async (filling) =>
      (await ask(within(shell, `mount -t tmpfs -o size=64k none d; cp old d/; ln d/old d/twin; cp new d/all; ${filling}; "$@"; cp -r d/. kept; exit`), program, cwd, "take", "d/all", 0, 0, "d/old")).end;
    mkdirSync(file("d"));
    mkdirSync(file("kept"));
    for (const [was, comes] of [[1, 2000], [2000, 1], [40, 40], [0, 10], [10, 0]]) {
      writeFileSync(file("old"), "o".repeat(was));
      writeFileSync(file("new"), "n".repeat(comes));
      assert.equal(await take("true"), 0);
      assert.equal(readFileSync(file("kept/old"), "utf8"), "n".repeat(comes));
    }
    writeFileSync(file("old"), "o".repeat(5000));
    writeFileSync(file("new"), "n".repeat(30_000));
    assert.equal(await take("head -c 60000 /dev/zero >d/more 2>/dev/null"), 4);
    assert.equal(readFileSync(file("kept/old"), "utf8"), "o".repeat(5000));
    assert.equal(readFileSync(file("kept/all"), "utf8"), "n".repeat(30_000));
  });

  everyShell(`a file that is replaced is the old one or the new one, ${tools}`, async (t, shell) => {
    const cwd = tempDir(t);
    const file = (name) => path.join(cwd, name);
    const read = (name) => readFileSync(file(name), "utf8");
    // No file grows beyond 512 or 1024 bytes: a disk that is full.
    const full = (text) => `trap '' XFSZ; ulimit -f 1; ${text}`;
    const take = async (text, to) => (await ask(shell, text, cwd, "take", ".part", 0, 0, to)).end;
    const fresh = "new ".repeat(1000);
    mkdirSync(file("d"));
    writeFileSync(file("old"), "old", { mode: 0o640 });
    linkSync(file("old"), file("twin"));
    symlinkSync("../old", file("d/link"));
    writeFileSync(file(".part"), fresh);
    // The file has two names, so it is written over in its place.
    assert.equal(await take(full(program), "d/link"), 4);
    assert.deepEqual([read("old"), read(".part"), readdirSync(file("d"))], ["old", fresh, ["link"]]);
    const broken = program.replace('cat "$__s" 1<>', 'false 1<>');
    assert.notEqual(broken, program);
    assert.equal(await take(broken, "old"), 7);
    assert.deepEqual([read(".part.whole"), readdirSync(cwd)], [fresh, [".part.whole", "d", "old", "twin"]]);
    for (const content of [fresh, "short", ""]) {
      writeFileSync(file(".part"), content);
      assert.equal(await take(program, "d/link"), 0);
      assert.deepEqual([read("twin"), statSync(file("old")).mode & 0o777, statSync(file("old")).nlink], [content, 0o640, 2]);
    }
    // It has one: the new one takes its name.
    writeFileSync(file("one"), "old", { mode: 0o640 });
    symlinkSync("../one", file("d/other"));
    symlinkSync("none", file("d/dangling"));
    const before = statSync(file("one")).ino;
    writeFileSync(file(".part"), fresh);
    if (tools !== "neither") assert.equal(await take(full(program), "d/other"), 0);
    else assert.equal(await take(program, "d/other"), 0);
    assert.deepEqual([read("one"), statSync(file("one")).mode & 0o777, lstatSync(file("d/other")).isSymbolicLink()], [fresh, 0o640, true]);
    assert.equal(statSync(file("one")).ino === before, tools === "neither");
    writeFileSync(file(".part"), fresh);
    assert.equal(await take(full(program), "d/dangling"), 0);
    assert.deepEqual([read("d/none"), readdirSync(cwd), readdirSync(file("d"))],
      [fresh, [".part.whole", "d", "old", "one", "twin"], ["dangling", "link", "none", "other"]]);
  });
}
