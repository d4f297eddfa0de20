// run and shell: output as it comes, the exit code of what ran.
import { pairs, withSandbox } from "./place.js";
import { UsageError, seconds } from "./parse.js";

const { readFile } = process.getBuiltinModule("node:fs").promises;
const { basename, extname } = process.getBuiltinModule("node:path");

/** @type {Record<string, string>} */
const LANGUAGES = { ".py": "python", ".js": "node", ".mjs": "node", ".cjs": "node", ".sh": "shell", ".bash": "shell" };

/** @param {Record<string, any>} values @param {string[]} positionals */
export async function run(values, [file = "-"]) {
  const fromInput = file === "-";
  if (fromInput && values.stdin) throw new UsageError("the code is on standard input already; leave out --stdin, or give a file");
  const language = values.language ?? LANGUAGES[extname(file)] ?? (fromInput ? "python" : undefined);
  if (!["python", "node", "shell"].includes(language)) {
    throw new UsageError(
      values.language === undefined
        ? `the name of ${basename(file)} does not tell its language; say --language python, node or shell`
        : `--language must be python, node or shell`,
    );
  }
  const code = fromInput ? (await allInput()).toString() : await textOf(file);
  return execute(values, language === "shell" ? { command: code } : { code, language });
}

/** @param {string} file */
async function textOf(file) {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== "ENOENT") throw error;
    throw new UsageError(`there is no file ${file} on this machine; give the path of one, or - for standard input`);
  }
}

/** @param {Record<string, any>} values @param {string[]} words */
export function shell(values, words) {
  return execute(values, { command: words.join(" ") });
}

/** @param {Record<string, any>} values @param {Record<string, any>} what */
async function execute(values, what) {
  const timeoutSeconds = seconds(values.timeout, "timeout") ?? Infinity;
  const env = pairs(values.env, "env");
  const stdin = values.stdin ? await allInput() : undefined;
  const { cwd, json } = values;
  return withSandbox(values, async (sandbox, signal) => {
    const spec = { ...what, env, timeoutSeconds, signal, ...(stdin && { stdin }), ...(cwd !== undefined && { cwd }) };
    if (json) {
      const result = await sandbox.exec(spec);
      process.stdout.write(`${JSON.stringify({ sandboxId: sandbox.sandboxId, provider: sandbox.providerId, ...result })}\n`);
      return result.exitCode;
    }
    const result = await sandbox.exec({ ...spec, encoding: "buffer", maxOutputBytes: 1, onStdout: to(process.stdout), onStderr: to(process.stderr) });
    if (result.status === "timedOut") process.stderr.write(`cloudsandbox: it was ended after ${timeoutSeconds} s (--timeout).\n`);
    return result.exitCode;
  });
}

/** Writes to a stream; the call's end waits until all is out. @param {NodeJS.WriteStream} stream */
function to(stream) {
  return (/** @type {Uint8Array} */ bytes) => new Promise((resolve) => {
    stream.write(bytes.slice(), () => resolve(undefined));
  });
}

async function allInput() {
  const parts = [];
  for await (const part of process.stdin) parts.push(part);
  return Buffer.concat(parts);
}
