// What works on this machine: the binary, libcurl, what the kernel has for isolation, engines, keys, services.
//
// Invariant: of a key it is said whether it is there, and nothing else.
import { HttpSandbox } from "../http.js";
import { LocalSandbox } from "../local.js";
import { native } from "../native.js";
import { listSandboxProviders } from "../registry.js";
import { colourful, columns } from "./help.js";

const { existsSync, readFileSync } = process.getBuiltinModule("node:fs");
const http = process.getBuiltinModule("node:http");
const { release, userInfo } = process.getBuiltinModule("node:os");

const WAIT_MS = 5000;
const NO_LISTENER = "http://127.0.0.1:9";

/** What a provider needs of the environment: all of one of the lists. @type {Record<string, string[][]>} */
const NEEDS = {
  e2b: [["E2B_API_KEY"]],
  daytona: [["DAYTONA_API_KEY"], ["DAYTONA_JWT_TOKEN", "DAYTONA_ORGANIZATION_ID"]],
  vercel: [["VERCEL_OIDC_TOKEN"], ["VERCEL_TOKEN", "VERCEL_TEAM_ID", "VERCEL_PROJECT_ID"]],
  modal: [["MODAL_TOKEN_ID", "MODAL_TOKEN_SECRET"]],
  http: [["SANDBOX_HTTP_URL", "SANDBOX_HTTP_TOKEN"]],
};
/** A file that does as well. @type {Record<string, () => string>} */
const FILES = { modal: () => process.env.MODAL_CONFIG_PATH ?? `${process.env.HOME}/.modal.toml` };
/** @type {Record<string, () => string | undefined>} */
const ADDRESSES = {
  e2b: () => process.env.E2B_API_URL ?? `https://api.${process.env.E2B_DOMAIN ?? "e2b.app"}`,
  daytona: () => process.env.DAYTONA_API_URL ?? process.env.DAYTONA_SERVER_URL ?? "https://app.daytona.io/api",
  vercel: () => "https://vercel.com/api",
  modal: () => undefined, // it speaks gRPC alone
  http: () => process.env.SANDBOX_HTTP_URL,
};
/** @type {Record<string, string>} */
const PLACES = { "unix-local": "a folder of this machine, not isolated", docker: "a container of Docker or Podman" };

/** @typedef {{ name: string, state: "ok" | "missing" | "wrong" | "note", text: string }} Finding missing: fine, unless it is wanted */

/** @param {string} provider */
function isSet(provider) {
  return (NEEDS[provider] ?? []).some((names) => names.every((name) => process.env[name])) || (provider in FILES && existsSync(FILES[provider]()));
}

/** @param {string} provider */
function needs(provider) {
  return [...(NEEDS[provider] ?? []).map((names) => names.join(" and ")), ...(provider in FILES ? [FILES[provider]()] : [])].join(", or ");
}

/** @param {Record<string, any>} values */
export async function providers(values) {
  const rows = await Promise.all(listSandboxProviders().map(async (name) => {
    if (name === "unix-local") return { name, ready: true, text: PLACES[name] };
    if (name === "local" || name === "isolated-local") {
      const { state, text } = await isolation();
      return { name, ready: state === "ok", text: `a folder of this machine, isolated: ${text}` };
    }
    if (name === "docker") {
      const { state, text } = await engine();
      return { name, ready: state === "ok", text: `${PLACES.docker}: ${text}` };
    }
    return { name, ready: isSet(name), text: isSet(name) ? `ready: ${needs(name)}` : `needs ${needs(name) || "nothing from the environment"}` };
  }));
  if (values.json) process.stdout.write(`${JSON.stringify({ providers: rows })}\n`);
  else process.stdout.write(columns(rows.map(({ name, ready, text }) => [`${mark(ready ? "ok" : "missing")} ${name}`, text])));
  return 0;
}

/** @param {Record<string, any>} values */
export async function doctor(values) {
  const { landlock, ...isolated } = await isolation();
  const findings = [
    { name: "Node.js", state: /** @type {const} */ ("ok"), text: `${process.version}, ${process.platform} ${release()}, ${process.arch}` },
    binary(),
    await curl(),
    await local(),
    isolated,
    ...kernel(landlock),
    await engine(),
    ...(await Promise.all(Object.keys(NEEDS).map((name) => service(name, values.offline === true)))),
  ];
  if (values.json) process.stdout.write(`${JSON.stringify({ findings })}\n`);
  else process.stdout.write(columns(findings.map(({ name, state, text }) => [`${mark(state)} ${name}`, text])));
  return findings.some(({ state }) => state === "wrong") ? 1 : 0;
}

/** @param {Finding["state"]} state */
function mark(state) {
  const [sign, colour] = { ok: ["ok", 32], missing: ["--", 33], wrong: ["!!", 31], note: ["  ", 0] }[state];
  return colourful(process.stdout) ? `\x1b[${colour}m${sign}\x1b[39m` : `${sign}`;
}

/** @returns {Finding} */
function binary() {
  try {
    return { name: "native part", state: "ok", text: `version ${native().version}` };
  } catch (error) {
    return { name: "native part", state: "wrong", text: oneLine(error) };
  }
}

/** Whether libcurl can be loaded is seen by a request that goes nowhere. @returns {Promise<Finding>} */
async function curl() {
  const sandbox = new HttpSandbox({ baseURL: NO_LISTENER, token: "none", startTimeoutSeconds: 2 });
  const error = await sandbox.start().catch((reason) => reason);
  await sandbox.close({ graceSeconds: 0 }).catch(() => {});
  if (error?.code === "ERR_SANDBOX_MISSING_LIBRARY" || error?.code === "ERR_SANDBOX_MISSING_BINARY") {
    return { name: "libcurl", state: "wrong", text: oneLine(error) };
  }
  const { sharedObjects } = /** @type {any} */ (process.report.getReport());
  const named = (/** @type {RegExp} */ name) => sharedObjects.find((/** @type {string} */ file) => name.test(file));
  const file = named(/libcurl/) ?? "loaded";
  // Another library may bring a second one of these.
  const [tls] = [["GnuTLS", /gnutls/, file], ["OpenSSL", /libssl/, named(/libssl/)], ["mbed TLS", /libmbedtls/, named(/libmbedtls/)], ["wolfSSL", /libwolfssl/, named(/libwolfssl/)]]
    .filter(([, name, where]) => where && name.test(where));
  return { name: "libcurl", state: "ok", text: `${file}${tls ? `, ${tls[0]}` : ""}` };
}

/** @returns {Promise<Finding & { landlock?: boolean }>} landlock: whether it held, where that was tried */
async function isolation() {
  const name = "isolation";
  try {
    const sandbox = new LocalSandbox({ isolation: "required" });
    try {
      await sandbox.start();
      const landlock = ["enforced", "partial"].includes(String(sandbox.isolation?.landlock.state));
      return { name, state: /** @type {const} */ ("ok"), text: "this machine can isolate local commands", landlock };
    } finally {
      await sandbox.close();
    }
  } catch (error) {
    return { name, state: /** @type {const} */ ("missing"), text: oneLine(error) };
  }
}

/** @returns {Promise<Finding>} */
async function local() {
  const sandbox = new LocalSandbox({ isolation: "none" });
  try {
    const { output, exitCode } = await sandbox.shell("echo done", { timeoutSeconds: 10 });
    const isWell = exitCode === 0 && output === "done\n";
    return { name: "local sandbox", state: isWell ? "ok" : "wrong", text: isWell ? "starts, runs a command" : `a command ended with ${exitCode}` };
  } catch (error) {
    return { name: "local sandbox", state: "wrong", text: oneLine(error) };
  } finally {
    await sandbox.close({ graceSeconds: 0 }).catch(() => {});
  }
}

/** @param {boolean} [hasLandlock] where it was tried; the file is not there in every container @returns {Finding[]} */
function kernel(hasLandlock) {
  if (process.platform !== "linux") return [];
  const read = (/** @type {string} */ file) => {
    try {
      return readFileSync(file, "utf8").trim();
    } catch {
      return "";
    }
  };
  const namespaces = Number(read("/proc/sys/user/max_user_namespaces")) > 0 && read("/proc/sys/kernel/unprivileged_userns_clone") !== "0";
  const landlock = hasLandlock ?? read("/sys/kernel/security/lsm").split(",").includes("landlock");
  const seccomp = /^Seccomp:/m.test(read("/proc/self/status"));
  const cgroups = existsSync("/sys/fs/cgroup/cgroup.controllers");
  const rows = /** @type {[string, boolean, string, string][]} */ ([
    ["user namespaces", namespaces, "allowed", "not allowed (user.max_user_namespaces, kernel.unprivileged_userns_clone)"],
    ["Landlock", landlock, "in the kernel", "not in the kernel, or not shown (/sys/kernel/security/lsm)"],
    ["seccomp", seccomp, "in the kernel", "not in the kernel"],
    ["cgroups v2", cgroups, "mounted", "not mounted"],
  ]);
  return [
    ...rows.map(([name, has, yes, no]) => ({ name, state: /** @type {Finding["state"]} */ (has ? "ok" : "missing"), text: has ? yes : no })),
    { name: "user", state: "note", text: userInfo().uid === 0 ? "root: local commands that are not isolated are root, too" : "not root" },
  ];
}

/** @returns {Promise<Finding>} */
async function engine() {
  const { DOCKER_HOST, HOME, XDG_RUNTIME_DIR } = process.env;
  const name = "container engine";
  if (DOCKER_HOST && !DOCKER_HOST.startsWith("unix://")) return { name, state: "note", text: `DOCKER_HOST is set; \`cloudsandbox shell -p docker true\` shows whether it works` };
  const sockets = DOCKER_HOST
    ? [DOCKER_HOST.slice("unix://".length)]
    : [`${HOME}/.docker/run/docker.sock`, "/var/run/docker.sock", `${XDG_RUNTIME_DIR}/podman/podman.sock`, "/run/podman/podman.sock"];
  const socketPath = sockets.find((path) => existsSync(path));
  if (!socketPath) return { name, state: "missing", text: DOCKER_HOST ? `there is no socket ${sockets[0]} (DOCKER_HOST)` : "no socket of Docker or Podman was found" };
  return new Promise((resolve) => {
    const end = (/** @type {Finding["state"]} */ state, /** @type {string} */ text) => resolve({ name, state, text: `${socketPath}: ${text}` });
    const request = http.get({ socketPath, path: "/_ping", timeout: WAIT_MS }, (answer) => {
      answer.resume();
      end(answer.statusCode === 200 ? "ok" : "wrong", answer.statusCode === 200 ? "answers" : `answered ${answer.statusCode}`);
    });
    request.on("timeout", () => request.destroy(new Error("no answer within 5 s")));
    request.on("error", (error) => end("wrong", oneLine(error)));
  });
}

/** @param {string} provider @param {boolean} isOffline @returns {Promise<Finding>} */
async function service(provider, isOffline) {
  if (!isSet(provider)) return { name: provider, state: "missing", text: `not set up; needs ${needs(provider)}` };
  const address = ADDRESSES[provider]();
  if (isOffline || !address) return { name: provider, state: "ok", text: "set up; not asked" };
  const { host } = new URL(address);
  try {
    const answer = await fetch(address, { method: "HEAD", redirect: "manual", signal: AbortSignal.timeout(WAIT_MS) });
    return { name: provider, state: "ok", text: `set up; ${host} answers (${answer.status})` };
  } catch (error) {
    return { name: provider, state: "wrong", text: `set up, but ${host} does not answer: ${oneLine(/** @type {any} */ (error).cause ?? error)}` };
  }
}

/** @param {any} error */
function oneLine(error) {
  return String(error?.message || error?.code || error).split("\n")[0];
}
