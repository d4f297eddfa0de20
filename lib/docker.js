// DockerSandbox: a container of Docker or Podman, on this machine or on one that its engine is reached at.
//
// Invariant: what would lead out of the container (the engine's socket, the machine's own folders, its
// network, its users' names) is refused here, before anything is created; the core checks shapes only.
import { captureSite, errorFromNative, isNativeError } from "./errors.js";
import { withManifest } from "./manifest.js";
import { native } from "./native.js";
import {
  checkBoolean, checkEnvObject, checkFunction, checkInteger, checkItems, checkNames, checkSignal, checkString, checkTexts, checkWord, given,
  invalid, kindOf, wholeOrNone,
} from "./options.js";
import { networkOptions } from "./remote-options.js";
import { checkMounts } from "./mounts.js";
import { COMMON_OPTIONS, NativeSandbox } from "./sandbox.js";
import { unlessAborted } from "./signals.js";
import { CALL_ONLY } from "./spec.js";

/** @import { DockerConnectionOptions, DockerSandboxOptions, SandboxCallOptions } from "../types/index.js" */

const { existsSync } = process.getBuiltinModule("node:fs");

const CONNECTION = Object.freeze(["host", "certPath", "ca", "apiVersion"]);
/** What says how a container is made, and nothing of one that exists. */
const CREATION = Object.freeze([
  "image", "pull", "onProgress", "workingDir", "env", "network", "memoryMb", "cpus", "pids", "diskMb", "readOnlyRoot", "capabilities",
  "noNewPrivileges", "runtime", "platform", "mounts", "labels", "lifetimeSeconds",
]);
const DOCKER_OPTIONS = Object.freeze([
  ...COMMON_OPTIONS, ...CONNECTION, ...CREATION, "user", "containerId", "owned",
]);

const STALE_OPTIONS = Object.freeze([...CONNECTION, "signal"]);

/** A socket's address has room for as many bytes. */
const MAX_SOCKET_PATH = 107;
const DEFAULT_SOCKET = "/var/run/docker.sock";
const HTTP_PORT = 2375;
const HTTPS_PORT = 2376;

const MAX_ID = 2147483647;
const MAX_MEGABYTES = 1048576;
/** Below it no engine starts a container, or nothing but the sandbox's own programs finds room in it. */
const MIN_MEMORY_MB = 16;
const MIN_PIDS = 16;
const MAX_PIDS = 4194304;
const MAX_CPUS = 1024;
const MAX_LIFETIME_SECONDS = 2592000;

/** Each of them gives the machine away, or what the other limits keep. */
const REFUSED_CAPABILITIES = new Set([
  "ALL", "SYS_ADMIN", "SYS_MODULE", "SYS_RAWIO", "SYS_BOOT", "SYS_TIME", "SYS_PTRACE", "SYS_RESOURCE", "DAC_READ_SEARCH", "BPF",
  "PERFMON", "SYSLOG", "MAC_ADMIN", "MAC_OVERRIDE",
]);
const NAME = /^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/;
const RESERVED_LABEL = /^cloudsandbox(\.|$)/;
const OTHER_NETWORKS =
  'use "none", "bridge", or the name of a network that you have made for such containers';

/** What an engine keeps of a manifest. @type {import("./manifest.js").ManifestTable} */
const MANIFEST = Object.freeze({
  provider: "docker",
  existing: "containerId",
  network: ["network"],
  keeps: {
    image: (image) => ({ image }),
    workingDir: (workingDir) => ({ workingDir }),
    "network.default": (rule) => ({ network: rule === "deny" ? "none" : "bridge" }),
    "resources.cpus": (cpus) => ({ cpus }),
    "resources.memoryMb": (memoryMb) => ({ memoryMb }),
    "resources.diskMb": (diskMb) => ({ diskMb }),
    mounts: (mounts) => ({ mounts }),
  },
  advice: {
    "network.allowedHosts": "an engine's networks have no such list: turn the network off, or use e2b or daytona",
  },
});

/**
 * A container that is made for this object: without network, with a read-only root, without capabilities, as a user
 * who is nobody, and with limits on memory and processes, unless the options say otherwise. It ends by itself after
 * its lifetime, also when this process was killed.
 */
export class DockerSandbox extends NativeSandbox {
  /** @param {DockerSandboxOptions} [options] @param {string} [where] what messages call this class */
  constructor(options, where = "DockerSandbox") {
    const checked = withManifest(checkNames(options, DOCKER_OPTIONS, where, CALL_ONLY), MANIFEST);
    const own = ownOptions(checked);
    super({ provider: "docker", providerId: "docker", options: checked, own, onProgress: checked.onProgress });
  }
}

/**
 * Removes the containers of this package whose lifetime is over, or whose process on this machine is dead. Nothing else is
 * touched: not those of processes that live, not those of other machines, not those of others.
 *
 * @param {DockerConnectionOptions & SandboxCallOptions} [options]
 * @returns {Promise<{ removed: string[] }>}
 */
export async function removeStaleDockerSandboxes(options) {
  const site = captureSite(removeStaleDockerSandboxes);
  const { signal, ...rest } = checkNames(options, STALE_OPTIONS, "removeStaleDockerSandboxes");
  if (checkSignal(signal)?.aborted) throw signal.reason;
  const swept = native().sweep("docker", JSON.stringify(engineOptions(rest)));
  try {
    return { removed: await unlessAborted(swept, signal) };
  } catch (error) {
    throw isNativeError(error) ? errorFromNative(error, site) : error;
  }
}

/**
 * The options of the core's provider; defaults are the core's.
 *
 * @param {Record<string, any>} options names checked
 */
function ownOptions(options) {
  const engine = engineOptions(options);
  checkAttached(options);
  const { env, labels, mounts, workingDir } = options;
  return {
    ...engine,
    ...given(options, ["image"], checkImage),
    ...given(options, ["pull"], (value) => checkWord(value, ["missing", "always", "never"], "pull")),
    ...given(options, ["user"], checkUser),
    ...given(options, ["network"], checkNetwork),
    ...given(options, ["memoryMb"], (value) => wholeOrNone(value, "memoryMb", MIN_MEMORY_MB, MAX_MEGABYTES)),
    ...given(options, ["cpus"], checkCpus),
    ...given(options, ["pids"], (value) => wholeOrNone(value, "pids", MIN_PIDS, MAX_PIDS)),
    ...given(options, ["diskMb"], (value) => wholeOrNone(value, "diskMb", 1, MAX_MEGABYTES)),
    ...given(options, ["readOnlyRoot", "noNewPrivileges", "owned"], checkBoolean),
    ...given(options, ["capabilities"], checkCapabilities),
    ...given(options, ["runtime", "containerId"], checkName),
    ...given(options, ["platform"], checkPlatform),
    ...given(options, ["lifetimeSeconds"], (value) => wholeOrNone(value, "lifetimeSeconds", 1, MAX_LIFETIME_SECONDS)),
    ...(workingDir !== undefined && { workingDir: checkFolder(workingDir, "workingDir") }),
    ...(mounts !== undefined && { mounts: checkMounts(mounts, engine.host) }),
    ...(env !== undefined && { env: checkEnvObject(env) }),
    ...(labels !== undefined && { labels: checkLabels(labels) }),
  };
}

/** What is said of a new container says nothing of one that is there. @param {Record<string, any>} options */
function checkAttached(options) {
  if (options.onProgress !== undefined) checkFunction(options.onProgress, "onProgress");
  if (options.containerId === undefined) {
    if (options.owned === undefined) return;
    throw invalid(
      "`owned` goes with `containerId`, an existing container that close() is to remove: give both, or leave `owned` out. " +
        "A container that is made here is always removed by close()",
    );
  }
  const made = CREATION.find((name) => options[name] !== undefined);
  if (made === undefined) return;
  throw invalid(`\`${made}\` says how a container is made, and \`containerId\` names one that exists: give one of the two`);
}

// ---- where the engine is -------------------------------------------------------------------------

/**
 * The engine's address and what is needed to speak to it: from the options, else from what the environment says now.
 *
 * @param {Record<string, any>} options names checked
 */
function engineOptions({ host, certPath, apiVersion, ca }) {
  const { DOCKER_HOST, DOCKER_TLS_VERIFY, DOCKER_CERT_PATH, DOCKER_API_VERSION, HOME } = process.env;
  const folder = certPath === undefined ? DOCKER_CERT_PATH : checkFolder(certPath, "certPath");
  const withTls = certPath !== undefined || Boolean(DOCKER_TLS_VERIFY);
  const address = host === undefined ? DOCKER_HOST : checkString(host, "host");
  const what = host === undefined ? "the environment variable DOCKER_HOST" : "`host`";
  const engine = address || host !== undefined ? engineAddress(address ?? "", what, withTls) : usualHost();
  const version = apiVersion === undefined ? DOCKER_API_VERSION : checkString(apiVersion, "apiVersion");
  if (version && !/^1\.\d\d$/.test(version)) {
    throw invalid(`${apiVersion === undefined ? "the environment variable DOCKER_API_VERSION" : "`apiVersion`"} must be a version such as 1.41`);
  }
  // Where Docker's own client keeps them.
  const certificates = folder || (DOCKER_TLS_VERIFY && HOME?.startsWith("/") ? `${HOME}/.docker` : undefined);
  return {
    host: engine,
    ...networkOptions({ ca }),
    ...(version && { apiVersion: version }),
    ...(engine.startsWith("https:") && certificates && { certPath: certificates }),
  };
}

/**
 * The first of the sockets where engines listen that is there: that of Docker Desktop, the system's, that of the user's
 * own Podman, and that of the system's Podman. When there is none, the one that most people mean.
 */
function usualHost() {
  const { HOME, XDG_RUNTIME_DIR } = process.env;
  const sockets = [
    ...(HOME?.startsWith("/") ? [`${HOME}/.docker/run/docker.sock`] : []),
    DEFAULT_SOCKET,
    ...(XDG_RUNTIME_DIR?.startsWith("/") ? [`${XDG_RUNTIME_DIR}/podman/podman.sock`] : []),
    "/run/podman/podman.sock",
  ];
  return `unix://${sockets.find((path) => Buffer.byteLength(path) <= MAX_SOCKET_PATH && existsSync(path)) ?? DEFAULT_SOCKET}`;
}

/**
 * An address as the core takes it: "unix:///path", "http://host:port" or "https://host:port".
 *
 * @param {string} address
 * @param {string} what it is, in words
 * @param {boolean} withTls
 */
function engineAddress(address, what, withTls) {
  const socket = /^unix:\/\/(.*)$/s.exec(address)?.[1];
  if (socket !== undefined) return socketAddress(socket || DEFAULT_SOCKET, what);
  if (address.startsWith("/")) throw invalid(`${what} names a file: write "unix://" before the path of a socket`);
  const scheme = /^([a-z][a-z0-9+]*):\/\//i.exec(address)?.[1].toLowerCase() ?? "tcp";
  if (scheme === "ssh") {
    throw invalid(`${what} is an ssh address, which is not spoken here: forward the socket with ` +
      "`ssh -nNT -L /tmp/docker.sock:/var/run/docker.sock user@host`, and use unix:///tmp/docker.sock");
  }
  if (!["tcp", "http", "https"].includes(scheme)) {
    throw invalid(`${what} must be unix:///path/of/the/socket, tcp://host:port, http://host:port or https://host:port`);
  }
  return networkAddress(address.replace(/^[a-z]+:\/\//i, ""), scheme, what, withTls);
}

/** @param {string} path @param {string} what it is, in words */
function socketAddress(path, what) {
  if (!path.startsWith("/") || path.includes("\0")) throw invalid(`${what} must name the socket by an absolute path, as in unix:///var/run/docker.sock`);
  if (Buffer.byteLength(path) <= MAX_SOCKET_PATH) return `unix://${path}`;
  throw invalid(`${what} names a socket whose path has more than ${MAX_SOCKET_PATH} bytes, which no program can connect to: make a shorter link to it`);
}

/**
 * @param {string} rest of the address, behind its scheme
 * @param {string} scheme
 * @param {string} what it is, in words
 * @param {boolean} withTls
 */
function networkAddress(rest, scheme, what, withTls) {
  let url;
  try {
    url = new URL(`http://${rest}`);
  } catch {
    throw invalid(`${what} must be a host and a port, as in tcp://10.0.0.5:2376`);
  }
  if (url.username || url.password || url.search || url.hash || url.pathname !== "/") {
    throw invalid(`${what} must be a host and a port only, as in tcp://10.0.0.5:2376; the rest of it is not shown here`);
  }
  // The scheme above has 80 for its own port, which "host:80" leaves out.
  const port = Number(url.port || (/:80$/.test(rest.replace(/\/$/, "")) ? 80 : 0));
  const secure = scheme === "https" || (scheme === "tcp" && (withTls || port === HTTPS_PORT));
  return `${secure ? "https" : "http"}://${url.hostname}:${port || (secure ? HTTPS_PORT : HTTP_PORT)}`;
}

// ---- single options ------------------------------------------------------------------------------

/** @param {unknown} value @param {string} name */
function checkFolder(value, name) {
  const path = checkString(value, name);
  if (path.startsWith("/") && !path.includes("\0")) return path.replace(/(.)\/+$/, "$1");
  throw invalid(`\`${name}\` must be an absolute path: it begins with "/"`);
}

/** @param {unknown} value @param {string} name */
function checkImage(value, name) {
  const image = checkString(value, name);
  if (/^[a-zA-Z0-9][\w.\-/:@]{0,511}$/.test(image)) return image;
  throw invalid(`\`${name}\` must be the name of an image, as in "python:3.12-slim" or "registry.example.com/team/image:tag"`);
}

/** Names would be looked up in the image's own list of users, and a root might hide there. @param {unknown} value */
function checkUser(value) {
  const ids = /^(\d{1,10})(?::(\d{1,10}))?$/.exec(typeof value === "number" ? String(value) : checkString(value, "user"));
  if (!ids) {
    throw invalid('`user` must be numbers, "1000" or "1000:1000" for user and group: what a name means is up to the image');
  }
  const [user, group] = [ids[1], ids[2] ?? ids[1]].map((id) => checkInteger(Number(id), "user", 0, MAX_ID));
  return `${user}:${group}`;
}

/** @param {unknown} value */
function checkNetwork(value) {
  const network = checkString(value, "network");
  if (network === "host") throw invalid(`\`network\`: "host" is this machine's own network, with all that listens there; ${OTHER_NETWORKS}`);
  if (NAME.test(network)) return network;
  throw invalid(`\`network\` must be the name of a network, and not that of another container; ${OTHER_NETWORKS}`);
}

/** @param {unknown} value */
function checkCpus(value) {
  if (typeof value === "number" && value >= 0.01 && value <= MAX_CPUS) return value;
  throw invalid(`\`cpus\` must be a number from 0.01 to ${MAX_CPUS}, such as 0.5 for half a core, not ${typeof value === "number" ? value : kindOf(value)}`);
}

/** @param {unknown} value */
function checkCapabilities(value) {
  const wanted = 'an array of capabilities, such as ["NET_BIND_SERVICE"]';
  return checkItems(value, "capabilities", wanted, (item, index) => {
    const name = checkString(item, `capabilities[${index}]`).toUpperCase().replace(/^CAP_/, "");
    if (!/^[A-Z_]{2,40}$/.test(name)) throw invalid(`\`capabilities\` must be ${wanted}`);
    if (!REFUSED_CAPABILITIES.has(name)) return name;
    throw invalid(`\`capabilities\`: ${name} lets code out of its container, and is never given`);
  });
}

/** @param {unknown} value @param {string} name */
function checkName(value, name) {
  const text = checkString(value, name);
  if (NAME.test(text)) return text;
  const what = name === "runtime" ? "a runtime that the engine knows, such as \"runsc\"" : "the id or the name of a container";
  throw invalid(`\`${name}\` must be ${what}: letters, digits, "_", "." and "-"`);
}

/** @param {unknown} value @param {string} name */
function checkPlatform(value, name) {
  const platform = checkString(value, name);
  if (/^[a-z0-9]+(\/[a-z0-9_]+){0,2}$/.test(platform)) return platform;
  throw invalid(`\`${name}\` must be a platform such as "linux/amd64"`);
}

/** @param {unknown} value */
function checkLabels(value) {
  const labels = checkTexts(value, "labels");
  for (const name of Object.keys(labels)) {
    if (name === "" || name.includes("\0")) throw invalid("`labels` has a name that is empty or holds U+0000");
    if (RESERVED_LABEL.test(name)) throw invalid('`labels`: names that begin with "cloudsandbox" are this package\'s own, by which it finds its containers again');
  }
  return labels;
}
