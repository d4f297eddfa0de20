// The programs as files: what shellcheck says of them, and what the build makes of them.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { folder, text, which } from "./support.js";

const names = readdirSync(folder).filter((name) => name.endsWith(".sh")).map((name) => name.slice(0, -3));
const programs = names.filter((name) => /^# program/m.test(readFileSync(path.join(folder, `${name}.sh`), "utf8")));
const embed = path.resolve(import.meta.dirname, "../../scripts/embed.sh");

for (const name of programs) {
  test(`shellcheck has nothing to say of ${name}`, (t) => {
    if (!which("shellcheck")) {
      assert.ok(!process.env.CLOUDSANDBOX_ALL_SHELLS, "shellcheck is not installed");
      t.skip("not installed");
      return;
    }
    // A part may have functions that one program does not use, or that are called by their names in a word.
    const { stdout } = spawnSync("shellcheck", ["-s", "sh", "-e", "SC2317", "-"], { input: text(name), encoding: "utf8" });
    assert.equal(stdout, "");
  });
}

test("every file is a program or part of one", () => {
  const used = programs.map(text).join("\n");
  for (const name of names) {
    const lines = readFileSync(path.join(folder, `${name}.sh`), "utf8").split("\n").filter((line) => line && !line.startsWith("#"));
    assert.ok(used.includes(lines.at(-1).replaceAll("_cs_", "__")), name);
  }
});

test("the header holds each program twice: as it is, and quoted inside a JSON string", () => {
  const header = execFileSync("sh", [embed, folder], { encoding: "utf8" });
  for (const name of programs) {
    const [plain, quoted] = ["plain", "quoted"].map((way) => {
      const [lines] = header.split(`static const char ${way}_${name}[] =\n`)[1].split('\n    "";\n');
      return lines.split("\n").map((line) => JSON.parse(line)).join("");
    });
    const stripped = text(name).split("\n").map((line) => line.trim()).filter((line) => line && !line.startsWith("#"));
    assert.equal(plain, stripped.map((line) => `${line}\n`).join(""), name);
    const said = execFileSync("sh", ["-c", `printf %s '${JSON.parse(`"${quoted}"`)}.'`], { encoding: "utf8" });
    assert.equal(said, `${plain}.`, name);
  }
});
