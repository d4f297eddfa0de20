// A service of the five requests (docs/http-protocol.md) that really runs commands, on this machine and as this user.
// @ts-check
import { mkdirSync, mkdtempSync, realpathSync } from "node:fs";
import { open, readFile, stat, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { Engine } from "../engine.js";
import { removeFolder } from "../processes.js";
import { complaintAboutCreate, complaintAboutExec } from "./check.js";
import { Session } from "./session.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */

/**
 * @typedef {object} Settings
 * @property {string[]} tokens each owns its sessions; empty: no token is asked for
 * @property {"code" | "detail" | "none"} words how a refusal is worded: as the protocol proposes, as frameworks do, or
 *   not at all
 * @property {404 | 410} lostStatus of a session that has gone
 * @property {boolean} makesFolders a PUT makes the folders on its way
 * @property {boolean} stopsOnLeave a client that leaves ends its command
 * @property {(manifest: import("./session.js").Manifest) => string | undefined} refuses why a manifest cannot be honoured
 * @property {string} prefix before every path
 */

const SESSION = /^\/sessions(?:\/([^/]+)(?:\/(exec|files))?)?$/;

/** @param {Partial<Settings> & { tls?: { key: string | Buffer, cert: string | Buffer }, port?: number }} [options] */
export async function startHttp({ tls, port, ...options } = {}) {
  /** @type {Settings} */
  const settings = {
    tokens: ["token_0123456789abcdef"], words: "code", lostStatus: 404, makesFolders: true, stopsOnLeave: false,
    refuses: () => undefined, prefix: "/api", ...options,
  };
  const base = realpathSync(mkdtempSync(path.join(os.tmpdir(), "http-emulator-")));
  const engine = new Engine();
  /** @type {Map<string, Session>} */
  const sessions = new Map();

  /** @param {Exchange} exchange @param {number} status @param {string} code @param {string} message */
  function refuse(exchange, status, code, message) {
    if (settings.words === "none") return exchange.reply(status);
    return exchange.json(status, settings.words === "code" ? { error: { code, message } } : { detail: message });
  }

  /** @param {Exchange} exchange */
  const invalid = (exchange, /** @type {string} */ message) => refuse(exchange, 400, "invalid_request", message);

  /** Who asks; undefined: nobody that is known. @param {Exchange} exchange */
  function ownerOf(exchange) {
    const [, token = ""] = /^Bearer (.+)$/.exec(exchange.header("authorization") ?? "") ?? [];
    return settings.tokens.length === 0 || settings.tokens.includes(token) ? token : undefined;
  }

  /** @param {Exchange} exchange */
  async function json(exchange) {
    try {
      return JSON.parse((await exchange.body()).toString());
    } catch {
      return undefined;
    }
  }

  /** @param {Exchange} exchange @param {string} owner */
  async function create(exchange, owner) {
    const body = await json(exchange);
    const complaint = complaintAboutCreate(body);
    if (complaint !== undefined) return invalid(exchange, complaint);
    const reason = settings.refuses(body.manifest);
    if (reason !== undefined) return refuse(exchange, 422, "unsupported_manifest", reason);
    const session = new Session(owner, body.manifest, base);
    sessions.set(session.id, session);
    return exchange.json(201, { session_id: session.id });
  }

  /** @param {Exchange} exchange @param {Session} session */
  async function exec(exchange, session) {
    const body = await json(exchange);
    const complaint = complaintAboutExec(body);
    if (complaint !== undefined) return invalid(exchange, complaint);
    const result = await session.run(body, settings.stopsOnLeave ? exchange.signal : undefined);
    return session.state === "running" ? exchange.json(200, result) : gone(exchange);
  }

  /** @param {Exchange} exchange */
  const gone = (exchange) =>
    settings.lostStatus === 410
      ? refuse(exchange, 410, "session_gone", "the session has ended")
      : refuse(exchange, 404, "session_not_found", "there is no such session");

  /** A pipe keeps whoever opens it until its other end is opened, or the session ends. @param {Exchange} exchange @param {string} name */
  async function waitAtPipe(exchange, name) {
    const isPipe = await stat(name).then((it) => it.isFIFO(), () => false);
    if (isPipe) await exchange.halt("hang", "waits at a pipe");
    return isPipe;
  }

  /** @param {Exchange} exchange @param {string} name */
  async function put(exchange, name) {
    const bytes = await exchange.body();
    if (await waitAtPipe(exchange, name)) return;
    if (settings.makesFolders) mkdirSync(path.dirname(name), { recursive: true });
    await writeFile(name, bytes);
    await exchange.reply(204);
  }

  /** @param {Exchange} exchange @param {string} name */
  async function get(exchange, name) {
    if (await waitAtPipe(exchange, name)) return;
    const file = await open(name);
    try {
      await exchange.reply(200, { "content-type": "application/octet-stream" }, await readFile(file));
    } finally {
      await file.close();
    }
  }

  /** @param {Exchange} exchange @param {Session} session */
  async function files(exchange, session) {
    const asked = exchange.query.get("path");
    if (!asked?.startsWith("/")) return invalid(exchange, "path must be absolute");
    const name = session.below(asked);
    if (name === undefined) return refuse(exchange, 403, "forbidden", "the path leaves the working directory");
    try {
      return await (exchange.method === "PUT" ? put : get)(exchange, name);
    } catch (error) {
      const { code, message } = /** @type {NodeJS.ErrnoException} */ (error);
      if (code === "ENOENT") return refuse(exchange, 404, "file_not_found", "there is no such file");
      if (code === "EISDIR") return refuse(exchange, 409, "is_directory", "it is a directory");
      if (code?.startsWith("E")) return refuse(exchange, 500, "file_error", message);
      throw error;
    }
  }

  /** @param {Exchange} exchange */
  function match({ path: asked, method }) {
    const [, id, part] = (asked.startsWith(settings.prefix) && SESSION.exec(asked.slice(settings.prefix.length))) || [];
    const methods = part === "exec" ? ["POST"] : part === "files" ? ["GET", "PUT"] : id ? ["DELETE"] : ["POST"];
    const known = asked === `${settings.prefix}/sessions` || id !== undefined;
    return known && methods.includes(method) ? { id: id && decodeURIComponent(id), part } : undefined;
  }

  /** @param {Exchange} exchange */
  async function handle(exchange) {
    const found = match(exchange);
    if (exchange.path === "/health") return exchange.json(200, { status: "healthy" });
    if (!found) return refuse(exchange, 404, "not_found", "there is no such route");
    const owner = ownerOf(exchange);
    if (owner === undefined) return refuse(exchange, 401, "unauthorized", "the token is missing or wrong");
    if (found.id === undefined) return create(exchange, owner);
    const session = sessions.get(found.id);
    if (session === undefined || session.owner !== owner) return gone(exchange);
    if (found.part === "exec") return exec(exchange, session);
    if (found.part === "files") return files(exchange, session);
    end(session);
    return exchange.reply(204);
  }

  /** @param {Session} session */
  function end(session) {
    sessions.delete(session.id);
    session.end();
  }

  /** @param {Exchange} exchange */
  function route(exchange) {
    const found = match(exchange);
    const part = found?.part ? `/${found.part}` : "";
    return found ? `${exchange.method} /sessions${found.id === undefined ? "" : "/{id}"}${part}` : `${exchange.method} ${exchange.path}`;
  }

  const { url } = await engine.listen({ name: "http", handler: handle, route, tls, port });
  return {
    engine,
    settings,
    token: settings.tokens[0],
    url: url + settings.prefix,
    origin: url,
    fleet: { all: () => [...sessions.values()] },
    /** Ids of somebody's sessions. @param {string} owner */
    existing: (owner) => [...sessions.values()].flatMap((session) => (session.owner === owner ? [session.id] : [])),
    /** @param {string} id */
    session: (id) => sessions.get(id),
    /** The service forgets it, with all that is in it. @param {string} id */
    lose(id) {
      const session = sessions.get(id);
      if (session) end(session);
    },
    async close() {
      for (const session of [...sessions.values()]) end(session);
      await engine.close();
      removeFolder(base);
    },
  };
}
