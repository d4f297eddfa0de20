// What an isolated LocalSandbox tells the core: limits, layers, and where the programs are that code runs with.
import { ownFile } from "./native.js";
import { checkInteger, checkItems, checkString, checkWord, invalid } from "./options.js";

const { accessSync, constants, realpathSync, statSync } = process.getBuiltinModule("node:fs");
const path = process.getBuiltinModule("node:path");

/** Options that only an isolated sandbox takes. */
export const ISOLATED_OPTIONS = Object.freeze([
  "require", "accept", "network", "allowedHosts", "readOnlyPaths", "limits", "memoryMb", "processes", "cpuSeconds", "maxFileMb", "maxOutputMb", "tempMb", "openFiles",
]);

/** Layers of isolation, by the names that `require` and `accept` take. */
export const LAYERS = Object.freeze([
  "userns", "mounts", "pidns", "procfs", "netns", "ipcns", "utsns", "cgroupns", "no_new_privs", "capabilities", "seccomp",
  "landlock", "session", "keyring", "rlimits", "cgroup_memory", "cgroup_pids", "cgroup_cpu", "cgroup_kill", "disk_quota",
]);

/** What the system has for everybody: it is in the view anyway. */
const SYSTEM = Object.freeze(["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"]);
/** Where the sandbox finds what belongs to this package. */
const OWN = "/run/cloudsandbox";
const GLOBALS = `${OWN}/node-globals.cjs`;

/** @param {string} file @param {readonly string[]} folders */
const isBelow = (file, folders) => folders.some((folder) => file === folder || file.startsWith(`${folder}/`));

/**
 * The core's `isolation`, and the variables and arguments that go with it.
 *
 * @param {Record<string, any>} options the user's, names checked
 * @param {{ nodePath: string, nodeArgs: string[], environment: Record<string, any> }} own
 */
export function isolated(options, own) {
  const { network = "off", allowedHosts = [], readOnlyPaths = [] } = options;
  // Else a single limit that cannot be kept would leave nothing of the isolation.
  const { limits = options.isolation === "best-effort" ? "best-effort" : "required" } = options;
  if (typeof network === "object") throw invalid('`network` must be "off" or "on"; hosts that may be reached go into `allowedHosts`, as in ["api.github.com"]');
  checkWord(network, ["off", "on"], "network");
  const hosts = checkItems(allowedHosts, "allowedHosts", 'an array of hosts, such as ["api.github.com", "*.example.com", "example.com:8443"]', checkHost);
  if (hosts.length > 0 && network === "on") {
    throw invalid('`allowedHosts` are what a sandbox without a network reaches all the same: leave them out, or leave out network: "on"');
  }
  checkWord(limits, ["required", "best-effort"], "limits");
  const require = checkLayers(options.require, "require");
  const accept = checkLayers(options.accept, "accept");
  if (hosts.length > 0 && accept.includes("netns")) {
    throw invalid('`allowedHosts` need a network of the sandbox\'s own, the layer "netns": take it out of `accept`');
  }
  if (options.memoryMb !== undefined && limits === "required") require.push("cgroup_memory");
  const wanted = checkItems(readOnlyPaths, "readOnlyPaths", "an array of paths", (item, index) => checkFolder(item, `readOnlyPaths[${index}]`));
  const found = [...pythonFolders(own.environment.PATH), ...nodeFolders(own.nodePath)];
  const folders = outermost([...wanted, ...found]);
  const globals = ownFile(import.meta.url && new URL("./node-globals.cjs", import.meta.url));
  return {
    nodeArgs: ["--require", GLOBALS],
    environment: { ...own.environment, PATH: visiblePath(own.environment.PATH, folders) },
    isolation: {
      network,
      ...(hosts.length > 0 && { allowedHosts: hosts }),
      require,
      accept,
      needed: wanted,
      mounts: [[globals, GLOBALS], ...folders.map((folder) => [folder, folder])],
      ...limit(options, "processes", "processes", 1),
      ...limit(options, "openFiles", "openFiles", 1),
      ...limit(options, "cpuSeconds", "cpuSeconds", 1),
      ...limit(options, "memoryMb", "memoryBytes", 2 ** 20),
      ...limit(options, "maxFileMb", "fileBytes", 2 ** 20),
      ...limit(options, "maxOutputMb", "outputBytes", 2 ** 20),
      ...limit(options, "tempMb", "tempBytes", 2 ** 20),
    },
  };
}

/** @param {Record<string, any>} options @param {string} name @param {string} own @param {number} unit */
function limit(options, name, own, unit) {
  return options[name] === undefined ? undefined : { [own]: checkInteger(options[name], name, 1, 2 ** 30) * unit };
}

/** What a host may be is said by the core. @param {unknown} value @param {number} index */
function checkHost(value, index) {
  return checkString(value, `allowedHosts[${index}]`);
}

/** @param {unknown} value @param {string} name @returns {string[]} */
function checkLayers(value, name) {
  if (value === undefined) return [];
  return checkItems(value, name, "an array of layers", (layer, index) => checkWord(layer, LAYERS, `${name}[${index}]`));
}

/** @param {string} value @param {string} name */
function checkFolder(value, name) {
  const folder = checkString(value, name);
  if (!folder.startsWith("/") || folder.includes("\0") || path.posix.normalize(folder) !== folder || folder.endsWith("/")) {
    throw invalid(`\`${name}\` must be an absolute path without "." and "..", and without a "/" at its end`);
  }
  return folder;
}

/** Without what is in another one of them, or in the view anyway. @param {string[]} folders */
function outermost(folders) {
  const all = [...new Set(folders)].filter((folder) => !isBelow(folder, SYSTEM));
  return all.filter((folder) => !all.some((other) => other !== folder && isBelow(folder, [other])));
}

/** Of the host's PATH what leads somewhere in the sandbox. @param {unknown} value @param {string[]} folders */
function visiblePath(value, folders) {
  const parts = typeof value === "string" ? value.split(":").filter((part) => isBelow(part, [...SYSTEM, ...folders])) : [];
  return (parts.length > 0 ? parts : ["/usr/local/bin", "/usr/bin", "/bin"]).join(":");
}

/** homedir() reads the process's own HOME, which another thread may be changing. */
function home() {
  return process.env.HOME || process.getBuiltinModule("node:os").homedir();
}

/** What is not there costs no error: most folders of a PATH have no python. @param {string} file */
function canRun(file) {
  try {
    if (!statSync(file, { throwIfNoEntry: false })?.isFile()) return false;
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * The folder that a program outside of the system's is installed in, and that of what it is a link to. None
 * that has more in it than that: a home, or one of the system's.
 *
 * @param {string} file
 */
function prefixes(file) {
  const folders = [];
  for (const name of [file, realpathSync.native(file)]) {
    if (isBelow(name, SYSTEM)) continue;
    const folder = path.dirname(path.dirname(name));
    const isWide = folder === "/" || isBelow(home(), [folder]) || path.dirname(folder) === "/";
    folders.push(isWide ? name : folder);
  }
  return folders;
}

/** @param {unknown} value the host's PATH */
function pythonFolders(value) {
  const parts = typeof value === "string" ? value.split(":") : [];
  for (const part of parts) {
    const file = part.startsWith("/") ? path.join(part, "python3") : "";
    if (file && canRun(file)) return prefixes(file);
  }
  return [];
}

/** @param {string} file */
function nodeFolders(file) {
  return file.startsWith("/") && canRun(file) ? prefixes(file) : [];
}
