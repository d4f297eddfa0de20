// POST /process/execute and POST /process/code-run.
// @ts-check
import { DaemonError, badBody, pageNotFound } from "./errors.js";
import { goJson, goText, goUnmarshal } from "./gojson.js";
import { findShell, runCommand } from "./shell.js";

/** @typedef {import("./sandbox.js").Sandbox} Sandbox */
/** @typedef {import("./shell.js").Outcome} Outcome */
/** @typedef {import("../exchange.js").Exchange} Exchange */
/** @typedef {import("../exchange.js").Reply} Reply */

const OLD_DEFAULT_SECONDS = 360;
const ARTIFACT = "dtn_artifact_k39fd2:";
const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** @param {Record<string, string>} [envs] */
function checkEnvs(envs = {}) {
  const bad = Object.keys(envs).find((name) => !ENV_NAME.test(name));
  if (bad !== undefined) throw new DaemonError(400, `invalid environment variable name: '${bad}'`);
}

/** @param {unknown} value @returns {Reply} */
const ok = (value) => ({
  status: 200,
  headers: { "content-type": "application/json; charset=utf-8" },
  body: goJson(value),
});

/** A command line cut in words as daemons did that used no shell: quotes, but no escapes. @param {string} command */
export function splitCommand(command) {
  const words = [];
  let word = "";
  let quote = "";
  for (const character of command) {
    if (quote ? character === quote : character === '"' || character === "'") quote = quote ? "" : character;
    else if (character === " " && !quote) {
      if (word) words.push(word);
      word = "";
    } else word += character;
  }
  if (word) words.push(word);
  return words;
}

/** @param {Sandbox} sandbox @param {Outcome | string} outcome @returns {Outcome} */
function settle(sandbox, outcome) {
  if (typeof outcome === "string") {
    const reason = sandbox.daemonAtLeast("0.177.0") ? outcome : "";
    return { exitCode: -1, output: Buffer.from(reason), timedOut: false };
  }
  if (outcome.timedOut) {
    const careless = !sandbox.daemonAtLeast("0.155.0");
    throw new DaemonError(408, "command execution timeout", { code: "PROCESS_EXECUTION_TIMEOUT", careless });
  }
  return outcome;
}

/** @param {Sandbox} sandbox @param {number} exitCode */
function exitField(sandbox, exitCode) {
  const { exitField: name } = sandbox.settings;
  return name === "none" ? {} : { [name]: exitCode };
}

/**
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 * @returns {Promise<Reply>}
 */
export async function execute(exchange, sandbox) {
  const fields = { command: "string", cwd: "string", timeout: "uint32" };
  const withEnvs = sandbox.daemonAtLeast("0.167.0") ? { ...fields, envs: "map[string]string" } : fields;
  const request = goUnmarshal(await exchange.body(), "ExecuteRequest", withEnvs);
  if (typeof request === "string") throw badBody(request);
  const { command = "", cwd, timeout, envs } = request;
  if (!command.trim()) {
    const careless = !sandbox.daemonAtLeast("0.177.0");
    throw new DaemonError(400, "command cannot be empty or whitespace-only", { careless });
  }
  checkEnvs(envs);
  const fed = sandbox.daemonAtLeast("0.156.0");
  const seconds = timeout || (sandbox.daemonAtLeast("0.155.0") ? 0 : OLD_DEFAULT_SECONDS);
  const outcome = await runCommand(sandbox, {
    argv: fed ? [findShell(sandbox)] : splitCommand(command),
    ...(fed ? { script: command } : {}),
    cwd: (sandbox.daemonAtLeast("0.101.0") && cwd) || sandbox.workDir,
    env: sandbox.environment(envs),
    timeoutMs: seconds * 1000,
    group: sandbox.daemonAtLeast("0.155.0"),
  });
  const { exitCode, output } = settle(sandbox, outcome);
  return ok({ ...exitField(sandbox, exitCode), result: goText(output) });
}

const base64 = (/** @type {string} */ text) => Buffer.from(text).toString("base64");

/** TypeScript needs a compiler; the repository's own one serves. @param {string} code */
async function toJavaScript(code) {
  try {
    const { default: typescript } = await import("typescript");
    const { ModuleKind, ScriptTarget } = typescript;
    const compilerOptions = { module: ModuleKind.CommonJS, target: ScriptTarget.ES2022 };
    return typescript.transpileModule(code, { compilerOptions }).outputText;
  } catch {
    return code;
  }
}

/** What the shell is fed with for a piece of code. @type {Record<string, (code: string, argv: string) => Promise<string>>} */
const LANGUAGES = {
  python: async (code, argv) => `printf '%s' '${base64(code)}' | base64 -d | python3 -u - ${argv}`,
  javascript: async (code, argv) =>
    `printf '%s' '${base64(`process.argv.splice(1, 1);\n${code}`)}' | base64 -d | node - ${argv}`,
  typescript: async (code, argv) => {
    const compiled = `process.argv.splice(1, 1);\n${await toJavaScript(code)}`;
    const file = '"${TMPDIR:-/tmp}/dtn_$$.cjs"';
    return `printf '%s' '${base64(compiled)}' | base64 -d > ${file}\nnode ${file} ${argv}\nended=$?\nrm -f ${file}\nexit $ended\n`;
  },
};

/**
 * Takes the lines out that carry artifacts.
 * @param {string} text
 */
export function takeArtifacts(text) {
  /** @type {unknown[]} */
  const charts = [];
  const kept = text.split(/(?<=\n)/).filter((line) => {
    if (!line.startsWith(ARTIFACT)) return true;
    try {
      const { type, value } = JSON.parse(line.slice(ARTIFACT.length));
      if (type === "chart") charts.push({ type: "unknown", elements: [], ...value });
    } catch {
      // A broken artifact is dropped like any other line with the marker.
    }
    return false;
  });
  return { result: kept.join(""), charts };
}

/**
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 * @returns {Promise<Reply>}
 */
export async function codeRun(exchange, sandbox) {
  if (!sandbox.settings.codeRun || !sandbox.daemonAtLeast("0.167.0")) return pageNotFound();
  const fields = { code: "string", language: "string", argv: "[]string", envs: "map[string]string", timeout: "uint32" };
  const request = goUnmarshal(await exchange.body(), "CodeRunRequest", fields);
  if (typeof request === "string") throw badBody(request);
  const { code, language, argv = [], envs, timeout = 0 } = request;
  if (code === undefined || language === undefined) throw badBody("a required field is missing");
  if (!Object.hasOwn(LANGUAGES, language)) throw new DaemonError(400, `unsupported language: ${language}`);
  checkEnvs(envs);
  const outcome = await runCommand(sandbox, {
    argv: [findShell(sandbox)],
    script: await LANGUAGES[language](code, argv.join(" ")),
    cwd: sandbox.workDir,
    env: sandbox.environment(envs),
    timeoutMs: timeout * 1000,
  });
  const { exitCode, output } = settle(sandbox, outcome);
  const { result, charts } = takeArtifacts(goText(output));
  const artifacts = charts.length > 0 ? { artifacts: { charts } } : {};
  return ok({ ...exitField(sandbox, exitCode), result, ...artifacts });
}
