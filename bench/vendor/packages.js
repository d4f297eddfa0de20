// What a package weighs: time to import it, how many packages come with it, and their size.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { median } from "../stats.js";

const here = import.meta.dirname;
const root = path.resolve(here, "../..");

/** Milliseconds that importing each takes in a new process, medians. @param {Record<string, string>} modules specifiers by name @param {number} rounds */
export function importTimes(modules, rounds) {
  /** @type {Record<string, number[]>} */
  const times = {};
  for (let i = 0; i < rounds; i++) {
    for (const [name, specifier] of Object.entries(modules)) {
      const program =
        `const start = performance.now(); await import(${JSON.stringify(specifier)}); ` +
        "console.log(performance.now() - start); process.exit();";
      const text = execFileSync(process.execPath, ["--input-type=module", "-e", program], { cwd: here });
      (times[name] ??= []).push(Number(text));
    }
  }
  return Object.fromEntries(Object.entries(times).map(([name, values]) => [name, median(values)]));
}

/** The same for modules of Python's. @param {string} modules @param {number} rounds */
export function pythonImportTime(modules, rounds) {
  const program = `import time; start = time.perf_counter(); import ${modules}; print((time.perf_counter() - start) * 1000)`;
  return median(Array.from({ length: rounds }, () => Number(execFileSync("python3", ["-c", program]))));
}

/** Bytes of all files of a folder, without the packages inside it. @param {string} dir @returns {number} */
function size(dir) {
  let sum = 0;
  for (const entry of readdirSync(dir, { withFileTypes: true })) {
    const file = path.join(dir, entry.name);
    if (entry.isFile()) sum += statSync(file).size;
    else if (entry.isDirectory() && entry.name !== "node_modules") sum += size(file);
  }
  return sum;
}

/** Where a package's import of another leads, by Node's rule. @param {string} from folder @param {string} name */
function resolve(from, name) {
  for (let dir = from; dir.startsWith(here); dir = path.dirname(dir)) {
    const found = path.join(dir, "node_modules", name);
    if (existsSync(path.join(found, "package.json"))) return found;
  }
  return undefined;
}

/** How many packages a vendor's package is installed as, with all that it depends on, and their bytes. @param {string} name */
export function footprint(name) {
  /** @type {Set<string>} */
  const dirs = new Set();
  const visit = (/** @type {string | undefined} */ dir) => {
    if (dir === undefined || dirs.has(dir)) return;
    dirs.add(dir);
    const { dependencies, optionalDependencies } = JSON.parse(readFileSync(path.join(dir, "package.json"), "utf8"));
    for (const next of Object.keys({ ...dependencies, ...optionalDependencies })) visit(resolve(dir, next));
  };
  visit(resolve(here, name));
  return { packages: dirs.size, bytes: [...dirs].reduce((sum, dir) => sum + size(dir), 0) };
}

/** The same for ours: what npm unpacks, the two built files, and what building needs. */
export function ownFootprint() {
  const [{ unpackedSize }] = JSON.parse(
    execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], { cwd: root, stdio: ["ignore", "pipe", "ignore"] }).toString(),
  );
  const built = ["cloudsandbox.node", "sbx_guard"].map((name) => statSync(path.join(root, "build/Release", name)).size);
  const headers = size(fileURLToPath(new URL("../../node_modules/node-addon-api", import.meta.url)));
  return { packages: 2, bytes: unpackedSize + built[0] + built[1] + headers };
}
