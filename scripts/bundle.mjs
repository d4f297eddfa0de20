// The package's modules as they are published. All that an import of the package loads is one file, core.js; the other
// entries, and each module that is loaded late, are a file each that takes the rest from there. So an import opens two
// files, not thirty. The text stays readable, with a map; the repository runs unbundled.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

import { build } from "esbuild";

const root = path.resolve(import.meta.dirname, "..");
const lib = path.join(root, "lib");
const CORE = "cloudsandbox-core";

/** @type {import("esbuild").BuildOptions} */
const OPTIONS = {
  // A class that speaks of itself would get another name, and errors are shown by theirs.
  keepNames: true,
  absWorkingDir: root, outbase: lib, bundle: true, platform: "node", format: "esm", target: "node20", external: ["@opentelemetry/api"], metafile: true, write: false, logLevel: "error",
};

/** The modules that the package's exports and commands name. @param {Record<string, any>} manifest */
function entriesOf({ exports, bin = {} }) {
  const exported = Object.values(exports).flatMap((entry) => (typeof entry === "string" ? [] : [entry.default]));
  return [...exported, ...Object.values(bin)].map((file) => path.resolve(root, file));
}

/**
 * What each module of ours imports, by how. @param {string[]} entryPoints
 * @returns {Promise<Map<string, { path: string, kind: string }[]>>}
 */
async function importsOf(entryPoints) {
  const { metafile } = await build({ ...OPTIONS, entryPoints, outdir: lib, splitting: true });
  const modules = Object.entries(metafile?.inputs ?? {}).map(([file, { imports }]) => /** @type {const} */ ([path.join(root, file), imports.map((one) => ({ ...one, path: path.join(root, one.path) }))]));
  return new Map(modules.filter(([file]) => file.startsWith(`${lib}/`)));
}

/** A module that exports all that these do. @param {string[]} modules */
async function joined(modules) {
  /** @type {Map<string, string>} */
  const owners = new Map();
  for (const file of modules) {
    for (const [name, value] of Object.entries(await import(file))) {
      const other = owners.get(name);
      if (other && (await import(other))[name] !== value) throw new Error(`${name} is exported by ${other} and by ${file}, which go into one file`);
      if (!other) owners.set(name, file);
    }
  }
  return [...owners].map(([name, file]) => `export { ${name} } from ${JSON.stringify(file)};`).join("\n");
}

/**
 * Without the calls that give a function the name which it has: of keepNames only those are needed whose function had to
 * be called something else. There are hundreds, and each is run at the import. Lines stay where they were, for the map.
 *
 * @param {string} text
 */
const withoutIdleNames = (text) => text.replace(/^[ ]*__name\((\w+), "\1"\);$/gm, "");

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** The numbers of one segment of a source map. @param {string} text */
function numbersOf(text) {
  const numbers = [];
  for (let at = 0; at < text.length; ) {
    let [value, shift] = [0, 0];
    /** @type {number} */
    let digit;
    do {
      digit = DIGITS.indexOf(text.charAt(at++));
      value += (digit & 31) << shift;
      shift += 5;
    } while (digit & 32);
    numbers.push(value & 1 ? -(value >> 1) : value >> 1);
  }
  return numbers;
}

/** A segment of these numbers. @param {number[]} numbers */
function segmentOf(numbers) {
  let text = "";
  for (const number of numbers) {
    let rest = number < 0 ? (-number << 1) | 1 : number << 1;
    do {
      const more = rest > 31 ? 32 : 0;
      text += DIGITS[(rest & 31) | more];
      rest >>= 5;
    } while (rest > 0);
  }
  return text;
}

/**
 * A source map that leads to lines, and no more to the words in them: a third of its size. The maps are what is largest
 * in the package after its binaries, and a stack trace needs a line.
 *
 * @param {string} text
 */
export function linesOnly(text) {
  const map = JSON.parse(text);
  // Where the last segment that was read and the last one that was kept lead to: source, line, column.
  let [at, kept] = [[0, 0, 0], [0, 0, 0]];
  const lines = map.mappings.split(";").map((/** @type {string} */ line) => {
    /** @type {string[]} */
    const segments = [];
    let [column, keptColumn] = [0, 0];
    for (const segment of line ? line.split(",") : []) {
      const [step = 0, ...moves] = numbersOf(segment);
      column += step;
      if (moves.length < 3) continue;
      at = at.map((value, index) => value + (moves[index] ?? 0));
      if (segments.length > 0 && at[0] === kept[0] && at[1] === kept[1]) continue;
      segments.push(segmentOf([column - keptColumn, ...at.map((value, index) => value - (kept[index] ?? 0))]));
      [kept, keptColumn] = [at, column];
    }
    return segments.join(",");
  });
  return JSON.stringify({ ...map, names: [], mappings: lines.join(";") });
}

/**
 * @param {Record<string, any>} manifest
 * @param {string} folder where the files go
 */
export async function bundle(manifest, folder) {
  const entries = entriesOf(manifest);
  const imports = await importsOf(entries);
  const late = [...imports.values()].flat().filter(({ kind, path: file }) => kind === "dynamic-import" && imports.has(file)).map((one) => one.path);
  const mains = ["index.js", "toolkits.js"].map((name) => path.join(lib, name));
  const core = new Set(mains);
  for (const file of core) for (const one of imports.get(file) ?? []) if (one.kind === "import-statement" && imports.has(one.path)) core.add(one.path);
  for (const file of mains) core.delete(file);
  /** @type {import("esbuild").Plugin} */
  const fromCore = {
    name: "core",
    setup({ onResolve }) {
      onResolve({ filter: /^\./ }, ({ path: name, resolveDir, kind }) => {
        const file = path.resolve(resolveDir, name);
        return kind === "import-statement" && core.has(file) ? { path: CORE, external: true, sideEffects: false } : undefined;
      });
    },
  };
  /** @type {import("esbuild").Plugin} */
  const lateOnes = {
    name: "late",
    setup({ onResolve }) {
      onResolve({ filter: /^\./ }, ({ path: name, resolveDir, kind }) =>
        kind === "dynamic-import" ? { path: `./${path.relative(lib, path.resolve(resolveDir, name))}`, external: true } : undefined,
      );
    },
  };
  // The maps give a stack trace the names and lines of the repository; with its text in them they would be as large as the rest.
  const written = { ...OPTIONS, sourcemap: /** @type {const} */ ("linked"), sourcesContent: false, legalComments: /** @type {const} */ ("inline") };
  const middle = await build({ ...written, stdin: { contents: await joined([...core]), resolveDir: lib, sourcefile: "core" }, outfile: path.join(folder, "core.js"), plugins: [lateOnes] });
  const outer = await build({ ...written, entryPoints: [...new Set([...entries, ...late])], outdir: folder, splitting: true, chunkNames: "shared-[hash]", plugins: [fromCore] });
  // Without any module of ours it has esbuild's own helpers. A file that uses none of them would open it for nothing.
  const helpers = Object.entries(outer.metafile?.outputs ?? {}).filter(([, { inputs }]) => Object.keys(inputs).length === 0);
  const idle = helpers.map(([name]) => new RegExp(`^import "[./]*/${path.basename(name)}";$`, "m"));
  for (const { metafile, outputFiles } of [middle, outer]) {
    for (const [output, { inputs }] of Object.entries(metafile?.outputs ?? {})) {
      // Files of the package are found from where a module stands, so it stays in its folder.
      const place = path.relative(folder, path.dirname(path.resolve(root, output)));
      const moved = Object.keys(inputs).filter((file) => file.startsWith("lib/") && path.relative("lib", path.dirname(file)) !== place);
      const lost = moved.find((file) => /import\.meta\.url/.test(readFileSync(path.join(root, file), "utf8")));
      if (lost) throw new Error(`${lost} looks for files from where it stands, and would stand in ${output}`);
    }
    for (const file of outputFiles ?? []) {
      const place = path.dirname(file.path);
      mkdirSync(place, { recursive: true });
      const text = idle.reduce((/** @type {string} */ left, one) => left.replace(one, ""), file.text);
      writeFileSync(file.path, file.path.endsWith(".js") ? withoutIdleNames(text).replaceAll(`"${CORE}"`, `"${path.relative(place, folder) || "."}/core.js"`) : linesOnly(file.text));
    }
  }
  copyFileSync(path.join(lib, "node-globals.cjs"), path.join(folder, "node-globals.cjs"));
}
