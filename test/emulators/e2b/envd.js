// envd, the daemon on port 49983 of every sandbox: who may ask, and which service answers.
// @ts-check
import os from "node:os";
import { ConnectError, streaming, unary } from "./connect.js";
import { downloadFile, uploadFiles } from "./files.js";
import * as filesystem from "./filesystem.js";
import { UserError, findUser } from "./paths.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */
/** @typedef {import("./sandbox.js").Sandbox} Sandbox */

const NO_TOKEN = "unauthorized access, please provide a valid access token or method signing if supported";
const EXEMPT = new Set(["GET /health", "GET /files", "POST /files", "POST /init"]);

/**
 * @param {Exchange} exchange
 * @param {number} status
 * @param {string} message
 * @param {number | string} [code]
 */
export function envdError(exchange, status, message, code = status) {
  const headers = { "content-type": "application/json; charset=utf-8" };
  return exchange.reply(status, headers, `${JSON.stringify({ code, message })}\n`);
}

/**
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 */
export async function serveEnvd(exchange, sandbox) {
  const call = `${exchange.method} ${exchange.path}`;
  const token = exchange.header("x-access-token");
  if (sandbox.daemon.token && !EXEMPT.has(call) && token !== sandbox.daemon.token) {
    await envdError(exchange, 401, NO_TOKEN);
    return;
  }
  const basic = basicUser(exchange);
  if (basic !== undefined && !Object.hasOwn(sandbox.homes, basic)) {
    await rejectUser(exchange, basic);
    return;
  }
  const rpc = exchange.path.match(/^\/(process\.Process|filesystem\.Filesystem)\/(\w+)$/);
  if (rpc) await serveRpc(exchange, sandbox, basic, `${rpc[1]}/${rpc[2]}`);
  else if (call === "GET /health") await exchange.reply(204, { "cache-control": "no-store" });
  else if (call === "GET /envs") await exchange.json(200, sandbox.environment);
  else if (call === "GET /metrics") await exchange.json(200, metrics());
  else if (call === "GET /files") await downloadFile(exchange, sandbox);
  else if (call === "POST /files") await uploadFiles(exchange, sandbox);
  else await notFound(exchange);
}

/** @param {Exchange} exchange */
function notFound(exchange) {
  return exchange.reply(404, { "content-type": "text/plain; charset=utf-8" }, "404 page not found\n");
}

/** The user named by "Authorization: Basic"; its password is ignored. @param {Exchange} exchange */
function basicUser(exchange) {
  const match = exchange.header("authorization")?.match(/^Basic ([A-Za-z0-9+/=]+)$/i);
  if (!match) return undefined;
  return Buffer.from(match[1], "base64").toString().split(":")[0];
}

/**
 * @param {Exchange} exchange
 * @param {string} name
 */
async function rejectUser(exchange, name) {
  const error = new ConnectError("unauthenticated", `invalid username: '${name}'`);
  if ((exchange.header("content-type") ?? "").startsWith("application/connect+")) {
    await streaming(exchange, () => 0, () => {
      throw error;
    });
  } else await envdError(exchange, 401, error.message, error.code);
}

/**
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 * @param {string | undefined} basic
 * @param {string} method
 */
async function serveRpc(exchange, sandbox, basic, method) {
  const user = () => {
    try {
      return findUser(sandbox, basic);
    } catch (error) {
      if (error instanceof UserError) throw new ConnectError("unauthenticated", error.message);
      throw error;
    }
  };
  const { processes, random } = sandbox;
  /** @param {(message: any) => unknown} handler */
  const one = (handler) => unary(exchange, random, handler);
  /** @param {Parameters<typeof streaming>[2]} handler */
  const many = (handler) => streaming(exchange, random, handler);
  switch (method) {
    case "process.Process/Start":
      return many((messages, stream) => processes.start(exchange, user(), messages, stream));
    case "process.Process/Connect":
      return many((messages, stream) => processes.connect(exchange, messages, stream));
    case "process.Process/StreamInput":
      return many(async (messages, stream) => stream.send(await processes.streamInput(messages)));
    case "process.Process/List":
      return one(() => processes.list());
    case "process.Process/SendInput":
      return one((message) => processes.sendInput(message));
    case "process.Process/SendSignal":
      return one((message) => processes.sendSignal(message));
    case "process.Process/CloseStdin":
      return sandbox.atLeast("0.5.2") ? one((message) => processes.closeStdin(message)) : notFound(exchange);
    case "process.Process/Update":
      return one((message) => processes.update(message));
    case "filesystem.Filesystem/Stat":
      return one((message) => filesystem.stat(sandbox, user(), message));
    case "filesystem.Filesystem/MakeDir":
      return one((message) => filesystem.makeDir(sandbox, user(), message));
    case "filesystem.Filesystem/Move":
      return one((message) => filesystem.move(sandbox, user(), message));
    case "filesystem.Filesystem/ListDir":
      return one((message) => filesystem.listDir(sandbox, user(), message));
    case "filesystem.Filesystem/Remove":
      return one((message) => filesystem.remove(sandbox, user(), message));
    case "filesystem.Filesystem/WatchDir":
      return many((messages, stream) => filesystem.watchDir(exchange, sandbox, user(), messages, stream));
    default:
      return notFound(exchange);
  }
}

function metrics() {
  const used = os.totalmem() - os.freemem();
  return {
    ts: Math.floor(Date.now() / 1000),
    cpu_count: os.cpus().length,
    cpu_used_pct: 0,
    mem_total: os.totalmem(),
    mem_used: used,
    mem_cache: 0,
    mem_total_mib: os.totalmem() >> 20,
    mem_used_mib: used >> 20,
    disk_used: 0,
    disk_total: 0,
  };
}
