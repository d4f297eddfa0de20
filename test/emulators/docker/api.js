// The engine's routes.
// @ts-check
import { getArchive, putArchive } from "./archive.js";
import { Container, Exec, newId } from "./container.js";
import { Refusal, errorBody, refusal } from "./errors.js";

/** @typedef {import("./index.js").Docker} Docker */
/** @typedef {import("../exchange.js").Exchange} Exchange */
/** @typedef {{ docker: Docker, exchange: Exchange, id: string }} Call */

const VERSIONED = /^\/v(\d+)\.(\d+)(?=\/)/;
const RAW = "application/vnd.docker.raw-stream";
const NAME = /^[a-zA-Z0-9][a-zA-Z0-9_.-]+$/;
const SIX_MEBIBYTES = 6 * 1024 * 1024;

/** "POST /containers/{id}/exec" and the like. @param {Exchange} exchange */
export function routeOf({ method, path }) {
  return `${method} ${plainPath(path).replace(/^(\/(?:containers|exec))\/(?!json$|create$|prune$)[^/]+/, "$1/{id}").replace(/^\/images\/(?!create$|json$).+\/json$/, "/images/{name}/json")}`;
}

/** @param {string} path */
const plainPath = (path) => path.replace(VERSIONED, "");

/** @param {Docker} docker */
export function handle(docker) {
  return async (/** @type {Exchange} */ exchange) => {
    const { kind } = docker.settings;
    exchange.res.sendDate = false;
    try {
      checkVersion(docker, exchange.path);
      const id = decodeURIComponent(/^\/(?:containers|exec|images)\/([^/]+)/.exec(plainPath(exchange.path))?.[1] ?? "");
      const route = ROUTES[routeOf(exchange).replace(/^HEAD /, "GET ")];
      if (!route) throw new Refusal(404, "page not found");
      await route({ docker, exchange, id });
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      await exchange.json(error.status, errorBody(kind, error.status, error.message), { "content-type": "application/json" });
    }
  };
}

/** @param {Docker} docker @param {string} path */
function checkVersion({ settings }, path) {
  const version = VERSIONED.exec(path);
  if (!version || settings.kind === "podman") return;
  const number = (/** @type {string} */ text) => Number(text.split(".")[0]) * 1000 + Number(text.split(".")[1]);
  const [asked, shown] = [number(`${version[1]}.${version[2]}`), `${version[1]}.${version[2]}`];
  if (asked > number(settings.apiVersion)) throw new Refusal(400, `client version ${shown} is too new. Maximum supported API version is ${settings.apiVersion}`);
  if (asked < number(settings.minApiVersion)) throw new Refusal(400, `client version ${shown} is too old. Minimum supported API version is ${settings.minApiVersion}, please upgrade your client to a newer version`);
}

/** @param {Call} call */
async function json({ exchange }) {
  const text = (await exchange.body()).toString() || "{}";
  try {
    return JSON.parse(text);
  } catch {
    throw new Refusal(400, "invalid character 'b' looking for beginning of object key string");
  }
}

/** @param {Call} call */
function containerOf({ docker, id }) {
  const container = docker.find(id);
  if (!container) throw refusal(docker.settings.kind, "noContainer", id);
  return container;
}

/** An image's name as it is kept: with a tag, without what is meant anyway. @param {string} name */
const tagged = (name) => {
  const familiar = name.replace(/^docker\.io\/(library\/)?/, "");
  return /[:@][^/]*$/.test(familiar) ? familiar : `${familiar}:latest`;
};

// ---- the engine itself ---------------------------------------------------------------------------

/** @param {Call} call */
function ping({ docker: { settings }, exchange }) {
  return exchange.reply(200, {
    "api-version": settings.apiVersion, ostype: "linux", "docker-experimental": "false", "content-type": "text/plain; charset=utf-8",
    ...(settings.kind === "podman" ? { server: "Libpod/4.3.1 (linux)", "libpod-api-version": "4.3.1" } : { server: "Docker/20.10.24 (linux)" }),
  }, "OK");
}

/** @param {Call} call */
function version({ docker: { settings }, exchange }) {
  return exchange.json(200, { Version: "20.10.24", ApiVersion: settings.apiVersion, MinAPIVersion: settings.minApiVersion, Os: "linux", Arch: "amd64" });
}

/** @param {Call} call */
function info({ docker: { settings }, exchange }) {
  const { cgroupVersion, rootless } = settings;
  return exchange.json(200, {
    ID: "emulator", OSType: "linux", Architecture: "x86_64", CgroupVersion: rootless ? "1" : cgroupVersion, CgroupDriver: "cgroupfs",
    MemoryLimit: true, SwapLimit: true, CpuCfsQuota: true, PidsLimit: true, Rootless: rootless, DefaultRuntime: "runc",
    Runtimes: Object.fromEntries([...settings.runtimes].map((name) => [name, { path: name }])),
    SecurityOptions: ["name=seccomp,profile=default", ...(rootless ? ["name=rootless"] : [])],
  });
}

// ---- images --------------------------------------------------------------------------------------

/** @param {Call} call */
function inspectImage({ docker: { settings }, exchange }) {
  const name = decodeURIComponent(plainPath(exchange.path).replace(/^\/images\//, "").replace(/\/json$/, ""));
  if (!settings.images.has(tagged(name))) throw refusal(settings.kind, "noImage", tagged(name));
  return exchange.json(200, { Id: `sha256:${"0".repeat(64)}`, RepoTags: [tagged(name)], Os: "linux", Architecture: "amd64", Config: {} });
}

/** @param {Call} call */
async function pull({ docker: { settings }, exchange }) {
  const from = exchange.query.get("fromImage") ?? "";
  const tag = exchange.query.get("tag");
  await exchange.body();
  if (!tag && !from.includes("@")) throw new Refusal(400, "emulator: all tags of an image would be pulled");
  const name = tagged(tag ? `${from}:${tag}` : from);
  const entry = settings.registry.get(name);
  const words = `pull access denied for ${from}, repository does not exist or may require 'docker login'`;
  if (!entry && settings.kind === "docker") throw new Refusal(404, words);
  await exchange.open(200, { "content-type": "application/json" });
  const say = (/** @type {unknown} */ value) => exchange.write(Buffer.from(`${JSON.stringify(value)}\r\n`));
  await say({ status: `Pulling from ${from}`, id: tag ?? "" });
  for (let layer = 0; entry && layer < (entry.layers ?? 1); layer += 1) {
    await say({ status: "Downloading", progressDetail: { current: 1, total: 9 }, progress: "[=>  ]", id: `layer${layer}` });
    await say({ status: "Pull complete", progressDetail: {}, id: `layer${layer}` });
  }
  const why = entry ? entry.fails : words;
  if (why) await say({ errorDetail: { message: why }, error: why });
  else {
    settings.images.add(name);
    await say({ status: `Status: Downloaded newer image for ${name}` });
  }
  return exchange.end();
}

// ---- containers ----------------------------------------------------------------------------------

/** @param {Call} call */
async function create(call) {
  const { docker, exchange } = call;
  const { settings } = docker;
  const spec = await json(call);
  const name = exchange.query.get("name") ?? newId().slice(0, 12);
  const platform = exchange.query.get("platform");
  const host = spec.HostConfig ?? {};
  const refuse = (/** @type {any} */ why, /** @type {string} */ what) => refusal(settings.kind, why, what);
  if (!NAME.test(name)) throw new Refusal(400, `Invalid container name (${name}), only [a-zA-Z0-9][a-zA-Z0-9_.-] are allowed`);
  if (!settings.images.has(tagged(spec.Image ?? ""))) throw refuse("noImage", tagged(spec.Image ?? ""));
  if (platform && platform !== "linux/amd64") throw refuse("noPlatform", `${spec.Image} was found but does not match the specified platform: wanted ${platform}`);
  if (![...(spec.Entrypoint ?? []), ...(spec.Cmd ?? [])].length) throw new Refusal(400, "No command specified");
  if (host.Runtime && !settings.runtimes.has(host.Runtime)) throw refuse("noRuntime", host.Runtime);
  if (host.Memory && host.Memory < SIX_MEBIBYTES) throw new Refusal(400, "Minimum memory limit allowed is 6MB");
  if (docker.find(name)) throw refuse("nameTaken", name);
  if (settings.kind === "podman") checkPodman(docker, host);
  const container = new Container(docker, name, spec);
  docker.containers.set(container.id, container);
  return exchange.json(201, { Id: container.id, Warnings: [] });
}

/** What Podman finds out at once. @param {Docker} docker @param {Record<string, any>} host */
function checkPodman({ settings }, host) {
  if (Object.values(host.Tmpfs ?? {}).some((text) => /(^|,)[ug]id=/.test(text))) throw new Refusal(500, 'container create: unknown mount option "uid=65534": invalid mount option');
  if (host.Init) throw new Refusal(500, "container create: container-init binary not found on the host: stat /usr/libexec/podman/catatonit: no such file or directory");
  if (host.NetworkMode && !settings.networks.has(host.NetworkMode)) throw refusal("podman", "noNetwork", host.NetworkMode);
}

/** @param {Call} call */
async function start(call) {
  const { docker, exchange } = call;
  const container = containerOf(call);
  await exchange.body();
  if (container.isRunning) return exchange.reply(304);
  const network = container.host.NetworkMode;
  if (network && !docker.settings.networks.has(network)) throw refusal(docker.settings.kind, "noNetwork", network);
  container.start();
  return exchange.reply(204);
}

/** @param {Call} call */
async function stop(call) {
  const container = containerOf(call);
  if (!container.isRunning) return call.exchange.reply(304);
  container.signal("SIGKILL");
  await container.ended;
  return call.exchange.reply(204);
}

/** @param {Call} call */
async function kill(call) {
  const container = containerOf(call);
  if (!container.isRunning) throw refusal(call.docker.settings.kind, "killStopped", container.id);
  const signal = /** @type {NodeJS.Signals} */ (call.exchange.query.get("signal") ?? "SIGKILL");
  container.signal(signal);
  if (signal === "SIGKILL") await container.ended;
  return call.exchange.reply(204);
}

/** @param {Call} call */
async function wait(call) {
  const container = containerOf(call);
  await container.ended;
  return call.exchange.json(200, { StatusCode: container.exitCode });
}

/** @param {boolean} paused */
function pausing(paused) {
  return (/** @type {Call} */ call) => {
    const container = containerOf(call);
    if (container.status !== (paused ? "running" : "paused")) throw new Refusal(409, `Container ${container.id} is ${paused ? "not running" : "not paused"}`);
    container.pause(paused);
    return call.exchange.reply(204);
  };
}

/** @param {Call} call */
async function remove(call) {
  const container = containerOf(call);
  if (container.isRunning && !/^(1|true)$/i.test(call.exchange.query.get("force") ?? "")) {
    throw new Refusal(409, `You cannot remove a running container ${container.id}. Stop the container before attempting removal or force remove`);
  }
  container.remove();
  return call.exchange.reply(204);
}

/** @param {Call} call */
function list({ docker, exchange }) {
  const filters = JSON.parse(exchange.query.get("filters") ?? "{}");
  const all = /^(1|true)$/i.test(exchange.query.get("all") ?? "");
  // Either an array, or an object whose names are the values.
  const values = (/** @type {string} */ key) => (Array.isArray(filters[key]) ? filters[key] : Object.keys(filters[key] ?? {}));
  const fits = (/** @type {Container} */ container) => {
    const labels = container.spec.Labels ?? {};
    const byLabel = values("label").every((/** @type {string} */ wanted) => {
      const at = wanted.indexOf("=");
      return at < 0 ? wanted in labels : labels[wanted.slice(0, at)] === wanted.slice(at + 1);
    });
    return byLabel && (!filters.id || values("id").some((/** @type {string} */ it) => container.id.startsWith(it))) && (all || container.isRunning);
  };
  return exchange.json(200, [...docker.containers.values()].filter(fits).map((container) => container.summary()));
}

/** @param {Call} call */
function archive(call) {
  const container = containerOf(call);
  const path = call.exchange.query.get("path");
  if (!path) throw new Refusal(400, call.docker.settings.kind === "docker" ? "bad parameter: pathcannot be empty" : "missing `path` parameter");
  return call.exchange.method === "PUT" ? putArchive(call.exchange, container, path) : getArchive(call.exchange, container, path);
}

// ---- processes in containers ---------------------------------------------------------------------

/** @param {Call} call */
async function createExec(call) {
  const { docker, exchange } = call;
  const { kind } = docker.settings;
  const spec = await json(call);
  const container = containerOf(call);
  if (!spec.Cmd?.length) throw refusal(kind, "noCommand");
  if (container.status === "paused") throw refusal(kind, "paused", container.name);
  if (!container.isRunning) throw refusal(kind, "notRunning", container.id);
  const exec = new Exec(container, spec);
  container.execs.set(exec.id, exec);
  docker.execs.set(exec.id, exec);
  return exchange.json(201, { Id: exec.id });
}

/** @param {Call} call */
function execOf({ docker, id }) {
  const exec = docker.execs.get(id);
  if (!exec) throw refusal(docker.settings.kind, "noExec", id);
  return exec;
}

/** @param {Call} call */
async function startExec(call) {
  const { exchange, docker } = call;
  const { kind } = docker.settings;
  const exec = execOf(call);
  const { container } = exec;
  if (!container.isRunning) throw kind === "docker" ? refusal(kind, "notRunning", container.id) : new Refusal(409, `container ${container.id} is not running: container state improper`);
  if (kind === "podman" && exec.state !== "made") {
    throw new Refusal(500, `can only start created exec sessions, while container ${container.id} session ${exec.id} state is ${JSON.stringify(exec.state)}: exec session state improper`);
  }
  if (exchange.header("upgrade")) {
    const socket = await exchange.upgrade({ "content-type": RAW, upgrade: "tcp" }, "UPGRADED");
    if (!socket) return undefined;
    await bytesOf(socket, Number(exchange.header("content-length") ?? 0));
    return exec.state === "made" ? exec.attach(exchange, socket) : exec.refuseAgain(exchange);
  }
  const { Detach: detach } = await json(call);
  if (detach) {
    void exec.run(async () => {});
    return exchange.reply(200);
  }
  // The body ends with the connection.
  exchange.res.removeHeader("transfer-encoding");
  exchange.res.shouldKeepAlive = false;
  await exchange.open(200, { "content-type": RAW });
  return exec.state === "made" ? exec.attach(exchange) : exec.refuseAgain(exchange);
}

/** So many bytes of a connection; what is behind them stays. @param {import("node:net").Socket} socket @param {number} count */
async function bytesOf(socket, count) {
  while (count > 0) {
    const chunk = socket.read(Math.min(count, socket.readableLength || count));
    if (chunk) count -= chunk.length;
    else if (socket.destroyed || socket.readableEnded) return;
    else {
      await new Promise((resolve) => {
        for (const event of ["readable", "end", "close"]) socket.once(event, resolve);
      });
    }
  }
}

/** @type {Record<string, (call: Call) => unknown>} */
const ROUTES = {
  "GET /_ping": ping,
  "GET /version": version,
  "GET /info": info,
  "POST /images/create": pull,
  "GET /images/{name}/json": inspectImage,
  "GET /containers/json": list,
  "POST /containers/create": create,
  "GET /containers/{id}/json": (call) => call.exchange.json(200, containerOf(call).inspect()),
  "POST /containers/{id}/start": start,
  "POST /containers/{id}/stop": stop,
  "POST /containers/{id}/kill": kill,
  "POST /containers/{id}/pause": pausing(true),
  "POST /containers/{id}/unpause": pausing(false),
  "POST /containers/{id}/wait": wait,
  "POST /containers/{id}/exec": createExec,
  "DELETE /containers/{id}": remove,
  "GET /containers/{id}/archive": archive,
  "PUT /containers/{id}/archive": archive,
  "POST /exec/{id}/start": startExec,
  "GET /exec/{id}/json": (call) => call.exchange.json(200, execOf(call).inspect()),
};
