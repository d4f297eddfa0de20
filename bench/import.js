// What `import "cloudsandbox"` costs over a bare Node start: whole processes, in turn, medians.
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { bundle } from "../scripts/bundle.mjs";
import { median, mib, ms, row } from "./stats.js";

const root = new URL("..", import.meta.url);
/** Its modules as they are published. */
const published = mkdtempSync(path.join(os.tmpdir(), "cloudsandbox-bench-"));
const manifest = new URL("package.json", root).pathname;
copyFileSync(manifest, path.join(published, "package.json"));
await bundle(JSON.parse(readFileSync(manifest, "utf8")), path.join(published, "lib"));

const report = "process.stdout.write(JSON.stringify({ rss: process.memoryUsage().rss, cpu: process.cpuUsage(), extra: globalThis.extra }))";
const programs = {
  bare: report,
  import: `import "cloudsandbox"; ${report}`,
  published: `import ${JSON.stringify(path.join(published, "lib/index.js"))}; ${report}`,
  binary:
    `const t = performance.now(); const m = { exports: {} }; ` +
    `process.dlopen(m, ${JSON.stringify(new URL("build/Release/cloudsandbox.node", root).pathname)}); ` +
    `globalThis.extra = performance.now() - t; ${report}`,
};

/** @type {Record<string, { wall: number[], cpu: number[], rss: number[], extra: number[] }>} */
const seen = {};
for (let round = 0; round < 41; round++) {
  for (const [name, program] of Object.entries(programs)) {
    const start = performance.now();
    const child = spawnSync(process.execPath, ["--input-type=module", "-e", program], { cwd: root });
    const wall = performance.now() - start;
    const { rss, cpu, extra } = JSON.parse(child.stdout.toString());
    const entry = (seen[name] ??= { wall: [], cpu: [], rss: [], extra: [] });
    if (round === 0) continue;
    entry.wall.push(wall);
    entry.cpu.push((cpu.user + cpu.system) / 1000);
    entry.rss.push(rss);
    entry.extra.push(extra);
  }
}
row("import over a bare start, median", ms(median(seen.import.wall) - median(seen.bare.wall)), "15 ms");
const least = (/** @type {string} */ name) => Math.min(...seen[name].wall.slice(0, 15));
row("import as it is published, over a bare start, least of 15", ms(least("published") - least("bare")), "10 ms");
const cpu = (/** @type {string} */ name) => Math.min(...seen[name].cpu);
row("import as it is published: CPU time over that of a bare start, least of 40", `${ms(cpu("published") - cpu("bare"))} over ${ms(cpu("bare"))}`);
row("RSS as it is published, over a bare start, median", mib(median(seen.published.rss) - median(seen.bare.rss)), "6 MB");
row("loading the native binary, median", ms(median(seen.binary.extra)), "3 ms");
rmSync(published, { recursive: true });
