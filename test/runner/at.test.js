// What is at a path, with whatever tools a sandbox has.
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import path from "node:path";

import { tempDir } from "../support/temp.js";
import { everyShell, newTag, runText, text } from "./support.js";

const WHOLE = text("at");
/** Where find has no -printf; and where there is no stat either. */
const TOOLS = {
  "find that prints": WHOLE,
  "stat alone": WHOLE.replace("find / -maxdepth 0 -printf x", "false"),
  neither: WHOLE.replace("find / -maxdepth 0 -printf x", "false").replaceAll(/\bstat \$/g, "false $"),
};
const base64 = (it) => Buffer.from(it).toString("base64");

/** The first line's word and exit code, and what came as stdout. */
async function ask(shell, program, cwd, verb, file, to) {
  const tag = newTag();
  const words = ["sh", tag, base64(file), "65536", verb, ...(to === undefined ? [] : [base64(to)])];
  const { stdout, stderr } = await runText(shell, program, words, { cwd });
  assert.equal(stderr, "");
  const lines = stdout.toString().split("\n");
  const first = lines.findIndex((line) => line.startsWith(tag));
  assert.equal(lines[first + 5], `${tag} end`, stdout.toString());
  const [, word, code] = lines[first].split(" ");
  return { word, code: Number(code), said: Buffer.from(lines[first + 1], "base64").toString() };
}

function makeFiles(t) {
  const cwd = tempDir(t);
  mkdirSync(path.join(cwd, "d/in"), { recursive: true });
  for (const name of ["f", "d/.a", "d/..b", "d/- c", "d/x\ny"]) writeFileSync(path.join(cwd, name), "12345");
  chmodSync(path.join(cwd, "f"), 0o640);
  utimesSync(path.join(cwd, "f"), 7, 7);
  symlinkSync("f", path.join(cwd, "link"));
  symlinkSync("nowhere", path.join(cwd, "lost"));
  symlinkSync("d", path.join(cwd, "d/way"));
  return cwd;
}

for (const [tools, program] of Object.entries(TOOLS)) {
  everyShell(`what is at a path, ${tools}`, async (t, shell) => {
    const cwd = makeFiles(t);
    const file = { "find that prints": /^(f 5 7\.0* 640|=81a0 5 7 -) \0$/, "stat alone": /^=81a0 5 7 - \0$/, neither: /^f 5 - - \0$/ }[tools];
    for (const name of ["f", "link"]) assert.match((await ask(shell, program, cwd, "stat", name)).said, file);
    assert.match((await ask(shell, program, cwd, "stat", "d")).said, /^(d |=4)/);
    assert.match((await ask(shell, program, cwd, "stat", "lost")).said, /^(l |=a)/);
    assert.equal((await ask(shell, program, cwd, "stat", "absent/x")).word, "absent");
    assert.equal((await ask(shell, program, cwd, "stat", "f/x")).code, 1);
    const { said } = await ask(shell, program, cwd, "list", "d");
    const entries = said.split("\0").slice(0, -1).map((line) => /^(\S+ ){4}([^]*)$/.exec(line)?.[2]);
    assert.deepEqual(entries.sort(), ["- c", "..b", ".a", "in", "way", "x\ny"]);
    assert.equal((await ask(shell, program, cwd, "list", "d/in")).said, "");
    assert.equal((await ask(shell, program, cwd, "list", "f")).code, 1);
    assert.equal((await ask(shell, program, cwd, "list", "absent")).word, "absent");
  });
}

everyShell("changes of names", async (t, shell) => {
  const cwd = makeFiles(t);
  const done = async (...args) => {
    const { word, code } = await ask(shell, WHOLE, cwd, ...args);
    return word === "ran" ? code : word;
  };
  assert.equal(await done("remove", "d"), 2);
  assert.equal(await done("remove", "absent"), "absent");
  assert.equal(await done("move", "f", "new/f"), 0);
  assert.equal(readFileSync(path.join(cwd, "new/f"), "utf8"), "12345");
  assert.equal(await done("move", "f", "x/y"), "absent");
  assert.equal(await done("move", "new/f", "d"), 2);
  assert.equal(await done("move", "new", "new/a/b"), 5);
  assert.equal(await done("move", "new/f", "new/f"), 0);
  assert.equal(await done("move", "d/.a", "new/f/below"), 1);
  assert.equal(await done("make", "m/n"), 0);
  assert.equal(await done("make", "m/n"), 0);
  assert.equal(await done("make", "new/f"), 1);
  assert.equal(await done("make", "new/f/x"), 1);
  assert.equal(await done("make", `m/${"n".repeat(300)}`), 4);
  assert.equal(await done("clear", "d/way"), 0);
  assert.equal(await done("clear", "d"), 0);
  assert.equal(await done("stat", "d"), "absent");
});
