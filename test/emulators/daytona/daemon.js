// The toolbox daemon inside a sandbox: which of its services answers a path.
// @ts-check
import { DaemonError, badBody, daemonError, pageNotFound } from "./errors.js";
import { codeRun, execute } from "./execute.js";
import * as files from "./files.js";
import { goJson, goText, goUnmarshal } from "./gojson.js";
import { outputForm, serveLog, splitLog } from "./logs.js";
import { decodeName } from "./paths.js";
import { findInFiles, replaceInFiles, searchFiles } from "./search.js";
import { Session } from "./session.js";
import * as transfer from "./transfer.js";
import { toldVersion } from "./versions.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */
/** @typedef {import("../exchange.js").Reply} Reply */
/** @typedef {import("./sandbox.js").Sandbox} Sandbox */
/** @typedef {(exchange: Exchange, sandbox: Sandbox, names: string[]) => Promise<Reply | undefined>} Service */

const ENTRYPOINT = "entrypoint";

/** @param {number} status @param {unknown} value @returns {Reply} */
const json = (status, value) => ({
  status,
  headers: { "content-type": "application/json; charset=utf-8" },
  body: goJson(value),
});

/** @param {Sandbox} sandbox @param {string} id */
function findSession(sandbox, id) {
  const session = sandbox.sessions.get(id);
  if (!session) throw new DaemonError(404, "session not found", { code: "PROCESS_NOT_FOUND" });
  return session;
}

/** @param {Sandbox} sandbox @param {string[]} names */
function findCommand(sandbox, [sessionId, commandId]) {
  const command = findSession(sandbox, sessionId).commands.get(commandId);
  if (!command) throw new DaemonError(404, "command not found", { code: "PROCESS_NOT_FOUND" });
  return command;
}

/** @type {Service} */
async function createSession(exchange, sandbox) {
  const request = goUnmarshal(await exchange.body(), "CreateSessionRequest", { sessionId: "string" });
  if (typeof request === "string") throw badBody(request);
  const { sessionId } = request;
  if (!sessionId) throw badBody("sessionId is required");
  if (sessionId === ENTRYPOINT) throw new DaemonError(400, `session ID '${ENTRYPOINT}' is reserved`);
  const { sessions, openingSessions } = sandbox;
  if (sessions.has(sessionId) || openingSessions.has(sessionId)) throw new DaemonError(409, "session already exists");
  openingSessions.add(sessionId);
  try {
    sessions.set(sessionId, await Session.open(sandbox, sessionId));
  } finally {
    openingSessions.delete(sessionId);
  }
  return { status: 201 };
}

/** @type {Service} */
async function executeInSession(exchange, sandbox, [sessionId]) {
  const fields = { command: "string", runAsync: "bool", async: "bool", suppressInputEcho: "bool" };
  const request = goUnmarshal(await exchange.body(), "SessionExecuteRequest", fields);
  if (typeof request === "string") throw badBody(request, { careless: true });
  const text = (request.command ?? "").trim();
  if (!text) throw new DaemonError(400, "command cannot be empty", { careless: true });
  const session = findSession(sandbox, sessionId);
  if (session.exited) {
    if (sandbox.daemonAtLeast("0.191.0")) {
      throw new DaemonError(410, "session process has exited", { code: "SESSION_ENDED" });
    }
    throw new DaemonError(400, "failed to write command: write |1: broken pipe");
  }
  const runAsync = Boolean(request.runAsync || request.async);
  const command = await session.execute(text, { keepsInput: runAsync, echo: !request.suppressInputEcho });
  const reply = { cmdId: command.id, output: null, stdout: null, stderr: null, exitCode: null };
  if (runAsync) return json(202, reply);
  const exitCode = await Promise.race([command.done, session.cancelled]);
  if (exitCode === undefined) throw new DaemonError(400, "session cancelled");
  return json(200, { ...reply, exitCode, ...outputFields(command.log, outputForm(exchange, sandbox)) });
}

/**
 * @param {Buffer} log
 * @param {"plain" | "marked" | "fields"} form
 */
function outputFields(log, form) {
  const { stdout, stderr, both } = splitLog(log);
  if (form === "plain") return { output: goText(both) };
  if (form === "marked") return { output: goText(log) };
  return { output: goText(log), stdout: goText(stdout), stderr: goText(stderr) };
}

/** @type {Service} */
async function sendInput(exchange, sandbox, names) {
  if (!sandbox.daemonAtLeast("0.138.0")) return pageNotFound();
  const request = goUnmarshal(await exchange.body(), "SessionSendInputRequest", { data: "string" });
  if (typeof request === "string") throw badBody(request);
  const session = findSession(sandbox, names[0]);
  if (session.exited) throw new DaemonError(410, "session process has exited", { code: "SESSION_ENDED" });
  const command = findCommand(sandbox, names);
  if (command.exitCode !== undefined) {
    const message = `command has already completed with exit code ${command.exitCode}`;
    throw new DaemonError(410, message, { code: "COMMAND_ALREADY_COMPLETED" });
  }
  await command.input(request.data ?? "");
  return { status: 204 };
}

/** @type {Service} */
async function deleteSession(_exchange, sandbox, [sessionId]) {
  await findSession(sandbox, sessionId).delete();
  return { status: 204 };
}

/** @type {Service} */
async function changeEnvironment(exchange, sandbox) {
  if (!sandbox.daemonAtLeast("0.191.0")) return pageNotFound();
  const fields = { set: "map[string]string", unset: "[]string", unsetValuePrefix: "string" };
  const request = goUnmarshal(await exchange.body(), "UpdateEnvRequest", fields);
  if (typeof request === "string") throw badBody(request);
  for (const name of request.unset ?? []) delete sandbox.env[name];
  Object.assign(sandbox.env, request.set);
  return { status: 204 };
}

const entrypoint = { sessionId: ENTRYPOINT, commands: [] };

/** A route's pattern: a name in braces stands for one segment. @type {[string, Service][]} */
const SERVICES = [
  ["GET /version", async (_, sandbox) => json(200, { version: toldVersion(sandbox.daemonVersion) })],
  ["GET /work-dir", async (_, sandbox) => json(200, { dir: sandbox.workDir })],
  ["GET /user-home-dir", async (_, sandbox) => json(200, { dir: sandbox.home })],
  ["GET /project-dir", async (_, sandbox) => json(200, { dir: sandbox.home })],
  ["POST /env", changeEnvironment],
  ["POST /process/execute", execute],
  ["POST /process/code-run", codeRun],
  ["POST /process/session", createSession],
  [
    "GET /process/session",
    async (_, { sessions }) => json(200, [...sessions.values()].map(({ description }) => description)),
  ],
  [`GET /process/session/${ENTRYPOINT}`, async () => json(200, entrypoint)],
  ["GET /process/session/{session}", async (_, sandbox, [id]) => json(200, findSession(sandbox, id).description)],
  ["DELETE /process/session/{session}", deleteSession],
  ["POST /process/session/{session}/exec", executeInSession],
  [
    "GET /process/session/{session}/command/{command}",
    async (_, sandbox, names) => json(200, findCommand(sandbox, names).description),
  ],
  [
    "GET /process/session/{session}/command/{command}/logs",
    async (exchange, sandbox, names) => serveLog(exchange, sandbox, findCommand(sandbox, names)),
  ],
  ["POST /process/session/{session}/command/{command}/input", sendInput],
  ["GET /files", files.list],
  ["GET /files/", files.list],
  ["GET /files/info", files.info],
  ["DELETE /files", files.remove],
  ["DELETE /files/", files.remove],
  ["POST /files/folder", files.makeFolder],
  ["POST /files/move", files.move],
  ["POST /files/permissions", files.setPermissions],
  ["GET /files/find", findInFiles],
  ["GET /files/search", searchFiles],
  ["POST /files/replace", replaceInFiles],
  ["GET /files/download", transfer.download],
  ["POST /files/bulk-download", transfer.downloadMany],
  ["POST /files/upload", transfer.upload],
  ["POST /files/upload-v2", transfer.uploadAny],
  ["POST /files/bulk-upload", transfer.uploadMany],
];

const ROUTES = SERVICES.map(([route, service]) => ({
  route,
  service,
  pattern: new RegExp(`^${route.replace(/\{\w+\}/g, "([^/]+)")}$`),
}));

/** @param {string} method @param {string} path */
function findService(method, path) {
  for (const { route, service, pattern } of ROUTES) {
    const match = `${method} ${path}`.match(pattern);
    if (match) return { route, service, names: match.slice(1).map(decodeName) };
  }
  return undefined;
}

/** The name of a call, names in its path replaced. @param {string} method @param {string} path */
export function daemonRoute(method, path) {
  return `toolbox ${findService(method, path)?.route ?? `${method} ${path}`}`;
}

/**
 * The reply, unless it has been given already.
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 * @param {string} path within the toolbox
 * @returns {Promise<Reply | undefined>}
 */
export async function serveDaemon(exchange, sandbox, path) {
  const found = findService(exchange.method, path);
  if (!found) return pageNotFound();
  try {
    return await found.service(exchange, sandbox, found.names);
  } catch (error) {
    if (!(error instanceof DaemonError)) throw error;
    const atLeast = (/** @type {string} */ version) => sandbox.daemonAtLeast(version);
    return daemonError(error, atLeast, { path, method: exchange.method });
  }
}
