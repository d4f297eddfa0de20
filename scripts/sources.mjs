// The source files of one part of the native build. As a program it prints them, for binding.gyp: gyp has no globs.
import { existsSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const root = path.resolve(import.meta.dirname, "..");

/** @param {string} folder @param {string} extension */
function sources(folder, extension) {
  return readdirSync(path.join(root, folder))
    .filter((name) => name.endsWith(extension))
    .sort()
    .map((name) => `${folder}/${name}`);
}

const runner = "src/providers/remote/runner";
const processes = "src/providers/remote/process";
const providers = readdirSync(path.join(root, "src/providers"), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => `src/providers/${name}`);

/** @type {Record<string, string[]>} */
const parts = {
  core: [
    ...["src/core", "src/sandbox", "src/providers", ...providers, runner, processes].flatMap((folder) => sources(folder, ".c")),
    "src/guard/open.c",
    "src/guard/remove.c",
  ],
  // The helper program of the local provider, which shares two files with the library.
  guard: sources("src/guard", ".c"),
  // The shell programs that the build puts into the library.
  programs: sources(runner, ".sh"),
  binding: sources("src/binding", ".cc"),
};

/** The folder of node-addon-api's headers, which the published package has inside. */
export function napiHeaders() {
  const inside = path.join(root, "third_party/node-addon-api");
  return existsSync(inside) ? inside : path.dirname(createRequire(import.meta.url).resolve("node-addon-api/package.json"));
}

/** @param {"core" | "guard" | "programs" | "binding"} part */
export const sourcesOf = (part) => parts[part] ?? [];

if (process.argv[1] === import.meta.filename) {
  const name = process.argv[2] ?? "";
  const part = name === "napi" ? [napiHeaders()] : parts[name];
  if (!part) {
    console.error(`usage: node scripts/sources.mjs ${Object.keys(parts).join("|")}|napi`);
    process.exit(1);
  }
  console.log(part.join("\n"));
}
