// What is looked at before the package is published: npm run release:check.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { contentFaults, versionFaults } from "../../scripts/release-check.mjs";
import { ROOT } from "../support/node.js";

const lockOf = (version) => ({ version, packages: { "": { version } } });

test("a release has one version, and says first what that changes", () => {
  const manifest = { version: "1.2.3" };
  for (const title of ["1.2.3", "[1.2.3] - 2026-12-01", "v1.2.3"]) {
    assert.deepEqual(versionFaults({ manifest, lock: lockOf("1.2.3"), changelog: `# Changes\n\n## ${title}\n\n- A change.\n\n## 1.2.2\n` }), [], title);
  }
  for (const title of ["Unreleased", "1.2.2", "1.2.30", "1.2.3-rc.1", "11.2.3", "1x2.3"]) {
    const faults = versionFaults({ manifest, lock: lockOf("1.2.3"), changelog: `# Changes\n\n## ${title}\n\n## 1.2.3\n` });
    assert.match(faults.join("\n"), /^CHANGELOG\.md: its first section is [^\n]*$/, title);
  }
  const changelog = "## 1.2.3\n";
  assert.match(versionFaults({ manifest, lock: lockOf("1.2.2"), changelog }).join("\n"), /^package-lock\.json is of 1\.2\.2/);
  assert.match(versionFaults({ manifest, lock: { version: "1.2.3" }, changelog }).join("\n"), /^package-lock\.json/);
  assert.match(versionFaults({ manifest: { version: "1.2" }, lock: lockOf("1.2"), changelog: "## 1.2\n" }).join("\n"), /is no version$/);
});

test("a package has what its manifest names, and nothing that runs at an installation", () => {
  const { private: _here, dependencies: _inside, devDependencies: _tools, ...all } = JSON.parse(readFileSync(path.join(ROOT, "package.json"), "utf8"));
  const manifest = { ...all, scripts: { build: "node scripts/build.mjs" } };
  const named = JSON.stringify([manifest.exports, manifest.bin, manifest.typesVersions]).match(/\.?\/?(?:lib|types)\/[^"]+/g).map((name) => name.replace(/^\.\//, ""));
  const files = [
    ...new Set([
      ...named, ...named.filter((name) => name.endsWith(".js")).map((name) => `${name}.map`), "package.json", "docs/api.md", "prebuilds/linux-x64-glibc/sbx_guard", "scripts/build.mjs",
      "source.tar.br", "third_party/licenses/zig.txt", "CHANGELOG.md", "LICENSE", "README.md", "SECURITY.md", "THIRD_PARTY.md",
    ]),
  ];
  assert.deepEqual(contentFaults(files, manifest), []);
  const without = (name) => files.filter((file) => file !== name);
  assert.deepEqual(contentFaults(without("lib/index.js"), manifest), ["package.json names lib/index.js, which is missing"]);
  assert.deepEqual(contentFaults(without("lib/index.js.map"), manifest), ["lib/index.js has no map"]);
  assert.deepEqual(contentFaults(without("source.tar.br"), manifest), ["source.tar.br is missing"]);
  assert.deepEqual(contentFaults([...files, "node-v20.cpuprofile"], manifest), ["node-v20.cpuprofile does not belong into the package"]);
  const more = { ...manifest, private: true, dependencies: {}, scripts: { ...manifest.scripts, postinstall: "node steal.js" } };
  assert.deepEqual(contentFaults(files, more), ['package.json runs something at "postinstall"', "package.json has dependencies", "package.json is private"]);
});
