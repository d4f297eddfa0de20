// Lets Node.js 20 run the TypeScript examples: esbuild takes the types off. Newer versions of Node.js
// do that by themselves.
import { readFile } from "node:fs/promises";
import { register } from "node:module";
import { fileURLToPath } from "node:url";
import { isMainThread } from "node:worker_threads";

if (isMainThread) {
  try {
    import.meta.resolve("esbuild");
  } catch {
    console.error("cloudsandbox: the examples need what `npm run quickstart` sets up; run it once, then this again.");
    process.exit(1);
  }
  register(import.meta.url);
}

/**
 * @param {string} url
 * @param {object} context
 * @param {(url: string, context: object) => Promise<{ format: string, source?: string, shortCircuit?: boolean }>} next
 */
export async function load(url, context, next) {
  if (!url.endsWith(".ts")) return next(url, context);
  const { transform } = await import("esbuild");
  const { code } = await transform(await readFile(fileURLToPath(url), "utf8"), { loader: "ts" });
  return { format: "module", source: code, shortCircuit: true };
}
