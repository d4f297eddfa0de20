// The routes of Vercel's API that are about sandboxes.
// @ts-check
import { randomBytes } from "node:crypto";

import { ApiError, bad, missing, vercelReplies } from "./errors.js";
import { makeDirectory, read, write } from "./files.js";
import { flagField, isObject, jsonBody, listField, textField, textsField, wholeField } from "./request.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */
/** @typedef {import("./fleet.js").Fleet} Fleet */
/** @typedef {import("./fleet.js").Sandbox} Sandbox */
/** @typedef {import("./session.js").Session} Session */
/** @typedef {import("./command.js").Command} Command */

const CREATE = [
  "projectId", "name", "timeout", "resources", "runtime", "image", "networkPolicy", "env", "persistent", "ports",
  "source", "region", "failoverRegions", "networkId", "tags", "mounts", "snapshotExpiration", "keepLastSnapshots",
];
const COMMAND = ["command", "args", "cwd", "env", "sudo", "wait", "logs", "timeout"];
const IMAGES = /^vercel\/sandbox\/(universal|node:(22|24|26)|python:3\.14|ubuntu|arch)(:[\w.-]+)?$|^own\//;
const NDJSON = { "content-type": "application/x-ndjson" };

/** The path behind "/api", and its parts. @param {Exchange} exchange */
function target(exchange) {
  if (!exchange.path.startsWith("/api/")) return undefined;
  const [version, root, ...rest] = exchange.path.slice(5).split("/").map(decodeURIComponent);
  if (root !== "sandboxes" || (version !== "v2" && version !== "v3")) return undefined;
  return { version, rest };
}

/** What a request is called in the log and in faults. @param {Exchange} exchange */
export function routeOf(exchange) {
  const { method } = exchange;
  const found = target(exchange);
  if (!found) return `${method} ${exchange.path}`;
  const { version, rest } = found;
  if (rest.length === 0) return `${method} /${version}/sandboxes`;
  if (rest[0] !== "sessions") return `${method} /sandboxes/{name}`;
  const [, , ...inside] = rest;
  if (inside.length === 0) return `${method} /sessions/{id}`;
  if (inside[0] === "cmd" && inside.length > 1) return `${method} ${["/cmd/{id}", ...inside.slice(2)].join("/")}`;
  return `${method} /${inside.join("/")}`;
}

/** @param {any} policy */
function checkPolicy(policy) {
  if (policy === undefined) return;
  if (!isObject(policy)) throw bad("Invalid request: `networkPolicy` should be object");
  if (policy.mode !== undefined) {
    if (policy.mode !== "allow-all" && policy.mode !== "deny-all") throw bad("Invalid request: `networkPolicy.mode`");
    return;
  }
  if (!isObject(policy.allow)) listField(policy, "allow");
  if (policy.subnets !== undefined) {
    listField(policy.subnets, "allow");
    listField(policy.subnets, "deny");
  }
}

export class Api {
  /** @param {Fleet} fleet */
  constructor(fleet) {
    this.fleet = fleet;
    this.settings = fleet.settings;
  }

  /** @param {Exchange} exchange */
  async serve(exchange) {
    try {
      await this.#dispatch(exchange);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const { status, headers, body } = vercelReplies.error(error.status, error.code, error.message);
      await exchange.reply(status, headers, body);
    }
  }

  /** @param {Exchange} exchange */
  async #dispatch(exchange) {
    const found = target(exchange);
    if (!found) throw missing(`The requested path was not found: ${exchange.path}`);
    const token = this.#authenticate(exchange);
    const { version, rest } = found;
    const { method } = exchange;
    if (rest.length === 0 && method === "POST") return this.#create(exchange, version, token);
    if (version !== "v2") throw missing("The requested path was not found");
    if (rest.length === 0 && method === "GET") return this.#list(exchange, token);
    if (rest[0] === "sessions" && rest[1]) {
      const session = this.fleet.session(rest[1]);
      if (session?.sandbox.token !== token) throw missing("Sandbox session not found");
      return this.#inside(exchange, session, rest.slice(2));
    }
    return this.#byName(exchange, rest[0], token);
  }

  /** @param {Exchange} exchange */
  #authenticate(exchange) {
    const token = exchange.header("authorization")?.match(/^Bearer (.+)$/)?.[1];
    if (token === undefined) throw new ApiError(401, "unauthorized", "The request requires authentication");
    if (!this.settings.tokens.includes(token)) throw new ApiError(403, "forbidden", "Not authorized");
    const team = exchange.query.get("teamId");
    if (!team) throw bad("Missing required query parameter: teamId");
    if (team !== this.settings.teamId) throw new ApiError(403, "forbidden", "Not authorized: no member of this team");
    return token;
  }

  /** @param {string | null | undefined} project */
  #checkProject(project) {
    if (!project) throw bad("Missing required parameter: projectId");
    if (project !== this.settings.projectId) throw new ApiError(403, "forbidden", "Not authorized: no such project");
  }

  /** @param {Exchange} exchange @param {string} version @param {string} token */
  async #create(exchange, version, token) {
    const body = await jsonBody(exchange, CREATE);
    this.#checkProject(body.projectId);
    if ((body.runtime !== undefined) !== (version === "v2")) throw bad("`runtime` and the version of the route do not fit");
    if (body.runtime !== undefined && body.image !== undefined) throw bad("`runtime` and `image` exclude each other");
    if (body.image !== undefined && !IMAGES.test(textField(body, "image"))) throw missing(`Image not found: ${body.image}`);
    if (body.ports !== undefined && !(Array.isArray(body.ports) && body.ports.length <= 15)) throw bad("Invalid request: `ports`");
    checkPolicy(body.networkPolicy);
    const tags = textsField(body, "tags");
    if (Object.keys(tags).length > 5) throw bad("Invalid request: `tags` should NOT have more than 5 properties");
    const spec = {
      name: body.name === undefined ? `sb-${randomBytes(8).toString("hex")}` : textField(body, "name"),
      timeout: wholeField(body, "timeout", 300_000, 1000, this.settings.maxTimeout),
      vcpus: wholeField(body.resources ?? {}, "vcpus", 2, 1, this.settings.maxVcpus),
      region: body.region === undefined ? "iad1" : textField(body, "region"),
      persistent: flagField(body, "persistent"),
      env: textsField(body, "env"),
      tags,
      ...(body.image === undefined ? {} : { image: body.image }),
      ...(body.runtime === undefined ? {} : { runtime: textField(body, "runtime") }),
      networkPolicy: body.networkPolicy,
    };
    if (this.fleet.find(spec.name)) throw new ApiError(409, "conflict", `A sandbox named "${spec.name}" exists already`);
    const own = this.fleet.all().filter((sandbox) => sandbox.token === token && sandbox.session.status === "running");
    if (own.length >= this.settings.limit) throw new ApiError(402, "payment_required", "Too many sandboxes for your plan");
    const sandbox = this.fleet.make(spec, token);
    await this.#start(sandbox.session);
    await this.#reply(exchange, sandbox, false);
  }

  /** It runs at once, or is shown as pending for a while. @param {Session} session */
  async #start(session) {
    const { startMs, startsAs } = this.settings;
    if (startMs === 0) session.enter(startsAs);
    else setTimeout(() => session.status === "pending" && session.enter(startsAs), startMs).unref();
  }

  /** @param {Exchange} exchange @param {Sandbox} sandbox @param {boolean} resumed */
  #reply(exchange, sandbox, resumed) {
    return exchange.json(200, { sandbox: sandbox.view(), session: sandbox.session.view(), routes: [], resumed });
  }

  /** @param {Exchange} exchange @param {string} token */
  async #list(exchange, token) {
    this.#checkProject(exchange.query.get("project"));
    const sandboxes = this.fleet.all().filter((sandbox) => sandbox.token === token);
    await exchange.json(200, {
      sandboxes: sandboxes.map((sandbox) => sandbox.view()),
      pagination: { count: sandboxes.length, next: null },
    });
  }

  /** @param {Exchange} exchange @param {string} name @param {string} token */
  async #byName(exchange, name, token) {
    this.#checkProject(exchange.query.get("projectId"));
    const sandbox = this.fleet.find(name);
    if (sandbox?.token !== token) throw missing(`Sandbox not found: ${name}`);
    if (exchange.method === "DELETE") {
      this.fleet.remove(sandbox);
      await exchange.json(200, { sandbox: sandbox.view() });
      return;
    }
    if (exchange.method !== "GET") throw missing("The requested path was not found");
    const over = !["pending", "running"].includes(sandbox.session.status);
    const resumed = over && exchange.query.get("resume") === "true";
    if (resumed) await this.#start(sandbox.newSession());
    await this.#reply(exchange, sandbox, resumed);
  }

  /** @param {Exchange} exchange @param {Session} session @param {string[]} rest */
  async #inside(exchange, session, rest) {
    const [what, id, more] = rest;
    const route = `${exchange.method} ${rest.length > 1 && what === "cmd" ? ["cmd", "id", more].filter(Boolean).join("/") : rest.join("/")}`;
    const reply = () => exchange.json(200, { session: session.view(), routes: [] });
    if (route === "GET ") return reply();
    if (route === "POST stop") return this.#stop(exchange, session);
    const command = what === "cmd" && id !== undefined ? session.commands.get(id) : undefined;
    if (route !== "POST cmd" && what === "cmd" && !command) throw missing("Command not found");
    if (command && route === "GET cmd/id") return this.#look(exchange, command);
    if (command && route === "GET cmd/id/logs") return this.#logs(exchange, command);
    session.check();
    if (route === "POST cmd") return this.#run(exchange, session);
    if (command && route === "POST cmd/id/kill") {
      const body = await jsonBody(exchange, ["signal"]);
      command.signal(wholeField(body, "signal", 15, 1, 64));
      return exchange.json(200, { command: command.view() });
    }
    if (route === "POST fs/write") return write(exchange, session);
    if (route === "POST fs/read") return read(exchange, session);
    if (route === "POST fs/mkdir") return makeDirectory(exchange, session);
    if (route === "POST extend-timeout") {
      const body = await jsonBody(exchange, ["duration"]);
      session.extend(wholeField(body, "duration", 0, 1, this.settings.maxTimeout - session.timeout));
      return reply();
    }
    if (route === "POST network-policy") {
      const policy = JSON.parse(String(await exchange.body()));
      checkPolicy(policy);
      session.networkPolicy = policy;
      return reply();
    }
    throw missing("The requested path was not found");
  }

  /** @param {Exchange} exchange @param {Session} session */
  async #stop(exchange, session) {
    session.check();
    if (this.settings.stopMs === 0) session.end("stopped");
    else {
      session.enter("stopping");
      setTimeout(() => session.end("stopped"), this.settings.stopMs).unref();
    }
    await exchange.json(200, { session: session.view(), sandbox: session.sandbox.view() });
  }

  /** @param {Exchange} exchange @param {Session} session */
  async #run(exchange, session) {
    const body = await jsonBody(exchange, COMMAND);
    const timeout = body.timeout === undefined ? {} : { timeout: wholeField(body, "timeout", 0, 1, this.settings.maxTimeout) };
    const sudo = flagField(body, "sudo");
    if (sudo && !this.settings.sudo) throw bad("sudo is not available in this image");
    const wait = flagField(body, "wait");
    const logs = flagField(body, "logs");
    const command = await session.run({
      command: textField(body, "command"),
      args: listField(body, "args"),
      cwd: body.cwd === undefined ? session.cwd : session.resolve(textField(body, "cwd")),
      env: textsField(body, "env"),
      sudo,
      ...timeout,
    });
    if (!wait) {
      await exchange.json(200, { command: { ...command.view(), exitCode: null } });
      return;
    }
    await exchange.open(200, NDJSON);
    await this.#line(exchange, { command: { ...command.view(), exitCode: null } });
    if (logs) await this.#follow(exchange, command);
    else await command.end(exchange.signal);
    if (command.exitCode !== null) await this.#line(exchange, { command: command.view() });
    await exchange.end();
  }

  /** @param {Exchange} exchange @param {unknown} value */
  #line(exchange, value) {
    return exchange.write(Buffer.from(`${JSON.stringify(value)}\n`));
  }

  /** @param {Exchange} exchange @param {Command} command */
  async #follow(exchange, command) {
    for await (const log of command.follow(exchange.signal)) await this.#line(exchange, log);
  }

  /** @param {Exchange} exchange @param {Command} command */
  async #look(exchange, command) {
    if (exchange.query.get("wait") === "true") await command.end(exchange.signal);
    await exchange.json(200, { command: command.view() });
  }

  /** @param {Exchange} exchange @param {Command} command */
  async #logs(exchange, command) {
    await exchange.open(200, NDJSON);
    await this.#follow(exchange, command);
    await exchange.end();
  }
}
