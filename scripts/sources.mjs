// Prints the source files of one part of the native build, for binding.gyp: gyp has no globs.
import { readdirSync } from "node:fs";
import path from "node:path";

const root = path.resolve(import.meta.dirname, "..");

/** @param {string} folder @param {string} extension */
function sources(folder, extension) {
  return readdirSync(path.join(root, folder))
    .filter((name) => name.endsWith(extension))
    .sort()
    .map((name) => `${folder}/${name}`);
}

/** @type {Record<string, () => string[]>} */
const parts = {
  // guard.c is a program of its own.
  core: () =>
    [...sources("src/core", ".c"), ...sources("src/providers", ".c"), ...sources("src", ".c")].filter(
      (name) => name !== "src/guard.c",
    ),
  binding: () => sources("src/binding", ".cc"),
};

const part = parts[process.argv[2] ?? ""];
if (!part) {
  console.error(`usage: node scripts/sources.mjs ${Object.keys(parts).join("|")}`);
  process.exit(1);
}
console.log(part().join("\n"));
