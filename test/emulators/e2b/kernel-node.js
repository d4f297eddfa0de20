// A small persistent JavaScript kernel: runs cells that arrive as JSON lines on standard input and reports
// on descriptor 3. Cells run in V8's REPL mode: bindings stay, may be declared again, and await works.
// @ts-check
import { writeSync } from "node:fs";
import inspector from "node:inspector";
import { createRequire } from "node:module";
import path from "node:path";
import readline from "node:readline";
import util from "node:util";

/** @type {Record<string, string>} */
const MIME = {
  "text/plain": "text",
  "text/html": "html",
  "text/markdown": "markdown",
  "image/svg+xml": "svg",
  "image/png": "png",
  "image/jpeg": "jpeg",
  "application/pdf": "pdf",
  "text/latex": "latex",
  "application/json": "json",
  "application/javascript": "javascript",
};
const EVENTS = 3;
const show = Symbol.for("Jupyter.display");

/**
 * @param {string} type
 * @param {Record<string, unknown>} [fields]
 */
function emit(type, fields = {}) {
  let bytes = Buffer.from(`${JSON.stringify({ type, ...fields })}\n`);
  while (bytes.length) bytes = bytes.subarray(writeSync(EVENTS, bytes));
}

for (const name of /** @type {const} */ (["stdout", "stderr"])) {
  process[name].write = (/** @type {any} */ chunk, /** @type {any[]} */ ...rest) => {
    emit(name, { text: typeof chunk === "string" ? chunk : Buffer.from(chunk).toString() });
    const done = rest.find((argument) => typeof argument === "function");
    if (done) process.nextTick(done);
    return true;
  };
}

const scope = /** @type {Record<string, any>} */ (globalThis);
scope.require = createRequire(path.join(process.cwd(), "cell.js"));
const session = new inspector.Session();
session.connect();

/**
 * @param {string} method
 * @param {Record<string, unknown>} parameters
 * @returns {Promise<any>}
 */
function post(method, parameters) {
  return new Promise((resolve, reject) => {
    session.post(method, parameters, (error, result) => (error ? reject(error) : resolve(result)));
  });
}

/**
 * The value behind an inspector's description of it.
 * @param {any} remote
 */
async function valueOf(remote) {
  if (remote.unserializableValue !== undefined) {
    const text = remote.unserializableValue;
    return text.endsWith("n") ? BigInt(text.slice(0, -1)) : Number(text);
  }
  const { objectId } = remote;
  if (objectId === undefined) return remote.value;
  let value;
  scope.__take = (/** @type {unknown} */ taken) => {
    value = taken;
  };
  const functionDeclaration = "function (value) { globalThis.__take(value); }";
  await post("Runtime.callFunctionOn", { functionDeclaration, objectId, arguments: [{ objectId }] });
  delete scope.__take;
  return value;
}

/** @param {any} value */
function bundle(value) {
  /** @type {Record<string, unknown>} */
  const data = { text: util.inspect(value) };
  if (typeof value?.[show] !== "function") return data;
  for (const [mime, content] of Object.entries(value[show]())) {
    if (MIME[mime]) data[MIME[mime]] = content;
  }
  return data;
}

/** @param {string} expression */
async function run(expression) {
  const { result, exceptionDetails } = await post("Runtime.evaluate", {
    expression,
    replMode: true,
    awaitPromise: true,
  });
  if (exceptionDetails) {
    const thrown = await valueOf(exceptionDetails.exception);
    const name = String(thrown?.name ?? "Error");
    const value = String(thrown?.message ?? util.inspect(thrown));
    emit("error", { name, value, traceback: String(thrown?.stack ?? value) });
    return;
  }
  const value = await valueOf(result);
  if (value !== undefined) emit("result", { data: bundle(value), main: true });
}

process.on("unhandledRejection", (error) => {
  process.stderr.write(`${util.inspect(error)}\n`);
});
for await (const line of readline.createInterface({ input: process.stdin })) {
  await run(JSON.parse(line).code);
  emit("done");
}
process.exit(0);
