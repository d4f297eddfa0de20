// A sandbox service in one file: what docs/http-protocol.md asks for, to try it and to begin your own with.
//
//   TOKEN=secret PORT=8080 node examples/http-service.js
//
// IT ISOLATES NOTHING: commands run as you, on this machine. So it refuses whoever asks for more (a network that is
// off, an image, limits): HttpSandbox must say `network: "allow"`. A real service makes a container or a machine in
// newSession(), and runs commands there in run(); the rest can stay as it is.
import { spawn } from "node:child_process";
import { randomBytes, timingSafeEqual } from "node:crypto";
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import http from "node:http";
import os from "node:os";
import path from "node:path";

const IDLE_MS = 15 * 60_000;
const MAX_BODY = 64 << 20;
const MAX_OUTPUT = 64 << 20;

class Refusal extends Error {
  constructor(status, code, message) {
    super(message);
    Object.assign(this, { status, code });
  }
}

const invalid = (message) => new Refusal(400, "invalid_request", message);

// ---- a session: replace these three with your isolation -------------------------------------------

async function newSession(manifest) {
  const { image, network, resources } = manifest;
  if (network.default !== "allow" || network.allowed_hosts.length + network.denied_hosts.length > 0) {
    throw new Refusal(422, "unsupported_manifest", 'this example isolates nothing, so it cannot keep the network off: ask for network: "allow"');
  }
  if (image !== null || resources.cpu !== null || resources.memory !== null || resources.gpu) {
    throw new Refusal(422, "unsupported_manifest", "this example has no images and no limits: leave image, cpu, memory and gpu out");
  }
  const directory = await realpath(await mkdtemp(path.join(os.tmpdir(), "http-service-")));
  return { id: randomBytes(16).toString("hex"), manifest, directory, running: new Set() };
}

async function endSession(session) {
  for (const child of session.running) kill(child);
  await rm(session.directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
}

function run(session, { command, cwd, env = {}, timeout_seconds: limit, stdin }) {
  const child = spawn(command[0], command.slice(1), {
    cwd: cwd ? place(session, cwd) : session.directory,
    env: { PATH: process.env.PATH, HOME: session.directory, ...session.manifest.environment, ...env },
    stdio: [typeof stdin === "string" ? "pipe" : "ignore", "pipe", "pipe"],
    detached: true, // a process group, so that the limit ends its children, too
  });
  session.running.add(child);
  const output = { stdout: [], stderr: [] };
  let size = 0;
  let timedOut = false;
  for (const name of ["stdout", "stderr"]) {
    child[name].on("data", (bytes) => {
      size += bytes.length;
      if (size > MAX_OUTPUT) kill(child);
      else output[name].push(bytes);
    });
  }
  child.stdin?.on("error", () => {}); // it does not read
  child.stdin?.end(stdin);
  const timer = limit ? setTimeout(() => ((timedOut = true), kill(child)), limit * 1000) : undefined;
  return new Promise((resolve) => {
    const end = (exit_code, more = "") => {
      clearTimeout(timer);
      session.running.delete(child);
      const text = (name) => Buffer.concat(output[name]).toString(); // what is no UTF-8 becomes U+FFFD
      resolve({ exit_code: timedOut ? 124 : exit_code, stdout: text("stdout"), stderr: text("stderr") + more, timed_out: timedOut });
    };
    child.on("error", (error) => end(127, error.message));
    child.on("close", (code, signal) => end(code ?? 128 + os.constants.signals[signal]));
  });
}

function kill(child) {
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

/** The session's folder stands for the manifest's working directory; commands see its real name. */
function place(session, name) {
  for (const top of [session.manifest.working_dir, session.directory]) {
    const below = path.posix.relative(top, name);
    if (below !== ".." && !below.startsWith("../")) return path.join(session.directory, below);
  }
  throw new Refusal(403, "forbidden", `the path leaves the working directory: ${name}`);
}

// ---- the five requests -----------------------------------------------------------------------------

const isText = (value) => typeof value === "string";

async function answer(service, request, url) {
  const [, id, part] = /^\/sessions(?:\/([^/]+)(?:\/(exec|files))?)?$/.exec(url.pathname) ?? [];
  const verb = `${request.method} ${id === undefined ? url.pathname : `/sessions/{id}${part ? `/${part}` : ""}`}`;
  const { sessions } = service;
  if (verb === "POST /sessions") {
    const { manifest } = await readJson(request);
    if (!manifest?.network || !manifest.resources || !manifest.working_dir?.startsWith("/")) throw invalid("the manifest is not whole");
    const session = await newSession(manifest);
    sessions.set(session.id, session);
    touch(service, session);
    return [201, { session_id: session.id }];
  }
  const session = sessions.get(id);
  if (id !== undefined && !session) throw new Refusal(404, "session_not_found", "there is no such session, or it has ended");
  if (session) touch(service, session);
  switch (verb) {
    case "POST /sessions/{id}/exec": {
      const body = await readJson(request);
      const { command } = body;
      if (!Array.isArray(command) || !command[0] || !command.every(isText)) throw invalid("command must be an array of strings, at least one");
      return [200, await run(session, body)];
    }
    case "PUT /sessions/{id}/files": {
      const name = place(session, url.searchParams.get("path") ?? "");
      const bytes = await read(request);
      await mkdir(path.dirname(name), { recursive: true });
      await writeFile(name, bytes);
      return [204];
    }
    case "GET /sessions/{id}/files":
      return [200, await readFile(place(session, url.searchParams.get("path") ?? ""))];
    case "DELETE /sessions/{id}":
      sessions.delete(id);
      clearTimeout(session.idle);
      await endSession(session);
      return [204];
    default:
      throw new Refusal(404, "not_found", "there is no such route");
  }
}

/** A session that nobody uses is ended: its user may be gone. */
function touch({ sessions }, session) {
  clearTimeout(session.idle);
  session.idle = setTimeout(() => {
    if (session.running.size > 0) return touch({ sessions }, session);
    sessions.delete(session.id);
    return endSession(session);
  }, IDLE_MS);
  session.idle.unref();
}

async function read(request) {
  const parts = [];
  let size = 0;
  for await (const part of request) {
    size += part.length;
    if (size > MAX_BODY) throw new Refusal(413, "file_too_large", `at most ${MAX_BODY} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

async function readJson(request) {
  try {
    const value = JSON.parse((await read(request)).toString());
    if (typeof value === "object" && value !== null) return value;
  } catch (error) {
    if (error instanceof Refusal) throw error;
  }
  throw invalid("the body must be a JSON object");
}

function mayAsk(request, token) {
  const [given, wanted] = [request.headers.authorization ?? "", `Bearer ${token}`].map((text) => Buffer.from(text));
  return !token || (given.length === wanted.length && timingSafeEqual(given, wanted));
}

/** What a failed file call means. */
function refusalOf(error) {
  if (error instanceof Refusal) return error;
  if (error.code === "ENOENT") return new Refusal(404, "file_not_found", "there is no such file");
  if (error.code === "EISDIR") return new Refusal(409, "is_directory", "it is a directory");
  if (error.code === "ENOTDIR" || error.code === "EEXIST") return new Refusal(409, "not_a_directory", "a part of the path is a file");
  return new Refusal(500, "internal", error.message);
}

export async function startService({ port = 0, token } = {}) {
  const service = { sessions: new Map() };
  const server = http.createServer(async (request, response) => {
    let reply;
    try {
      if (!mayAsk(request, token)) throw new Refusal(401, "unauthorized", "the token is missing or wrong");
      reply = await answer(service, request, new URL(request.url, "http://service.invalid"));
    } catch (error) {
      const { status, code, message } = refusalOf(error);
      reply = [status, { error: { code, message } }];
    }
    const [status, body] = reply;
    const type = Buffer.isBuffer(body) ? "application/octet-stream" : "application/json";
    response.writeHead(status, body === undefined ? {} : { "content-type": type });
    response.end(body === undefined || Buffer.isBuffer(body) ? body : JSON.stringify(body));
  });
  server.requestTimeout = 0; // commands may take their time
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    async close() {
      server.close();
      server.closeAllConnections();
      await Promise.all([...service.sessions.values()].map(endSession));
    },
  };
}

if (process.argv[1] === import.meta.filename) {
  const { url } = await startService({ port: Number(process.env.PORT ?? 8080), token: process.env.TOKEN });
  console.log(`listening at ${url}${process.env.TOKEN ? "" : ", without a token"}`);
}
