// Which of the machine's folders a container may be given.
//
// Invariant: a forbidden place is refused by each of its names (with "..", through links, as part of a folder
// above it), and what the engine is told is the name that was checked: a link that changes later leads nowhere.
import { checkBoolean, checkItems, checkNames, checkString, invalid } from "./options.js";

const { existsSync, realpathSync, statSync } = process.getBuiltinModule("node:fs");
const { posix: path } = process.getBuiltinModule("node:path");

const MOUNT_OPTIONS = Object.freeze(["source", "target", "readOnly"]);

/** Of the machine itself. What is one of them, lies in one or holds one is refused. */
const SYSTEM = Object.freeze([
  "/etc", "/proc", "/sys", "/dev", "/boot", "/run", "/var/run", "/var/lib/docker", "/var/lib/containers",
  "/var/lib/containerd", "/var/lib/kubelet", "/var/spool/cron", "/private/etc", "/private/var/run",
]);
/** What holds the homes of all users. */
const HOMES = Object.freeze(["/home", "/Users"]);

/** Names that keep credentials wherever they are. */
const SECRET_NAMES = new Set([
  ".ssh", ".aws", ".gnupg", ".kube", ".azure", ".netrc", ".git-credentials", ".password-store", ".pgpass",
]);
/** The same, but below a home only: elsewhere they are names like any other. */
const SECRET_IN_HOME = Object.freeze([
  ".docker", ".config", ".npmrc", ".pypirc", ".cargo/credentials.toml", ".local/share/keyrings", ".local/share/containers", ".mozilla", ".terraform.d",
  "Library",
]);
/** What a folder holds that is a home, or that is as good as one. */
const TELLS = Object.freeze([
  ".ssh", ".aws/credentials", ".gnupg", ".kube/config", ".docker/config.json", ".azure", ".netrc", ".git-credentials", ".config/gcloud",
  ".config/gh", "docker.sock", "podman.sock", "docker/docker.sock", "podman/podman.sock", "containerd/containerd.sock",
]);

/**
 * The mounts as the core takes them, copies.
 *
 * @param {unknown} value
 * @param {string} host where the engine is
 */
export function checkMounts(value, host) {
  const isHere = host.startsWith("unix:");
  const forbidden = forbiddenPlaces(host);
  const targets = new Set();
  return checkItems(value, "mounts", 'an array such as [{ source: "/srv/data", target: "/data" }]', (item, index) => {
    const where = `mounts[${index}]`;
    const { source, target, readOnly = true } = checkNames(item ?? null, MOUNT_OPTIONS, where);
    const checked = {
      source: checkSource(source, `${where}.source`, forbidden, isHere),
      target: checkTarget(target, `${where}.target`),
      readOnly: checkBoolean(readOnly, `${where}.readOnly`),
    };
    if (targets.has(checked.target)) throw invalid(`\`${where}.target\` is that of another mount, too`);
    targets.add(checked.target);
    return checked;
  });
}

/** Each by the name that it is known by, and by its true one. @param {string} host */
function forbiddenPlaces(host) {
  const home = [process.env.HOME || process.getBuiltinModule("node:os").homedir(), "/root"].filter((it) => it?.startsWith("/") && it !== "/");
  const sockets = host.startsWith("unix:") ? [host.slice("unix://".length)] : [];
  const runtime = process.env.XDG_RUNTIME_DIR?.startsWith("/") ? [process.env.XDG_RUNTIME_DIR] : [];
  const places = [...SYSTEM, ...sockets, ...runtime].map((it) => path.resolve(it));
  const homes = /** @type {string[]} */ (home).map((it) => path.resolve(it));
  return { places: withTrueNames(places), homes: withTrueNames(homes) };
}

/** @param {string[]} places */
function withTrueNames(places) {
  return [...new Set(places.flatMap((it) => [it, trueName(it)]))];
}

/**
 * The path without links, as far as it exists.
 *
 * @param {string} place absolute
 */
function trueName(place) {
  let existing = place;
  for (;;) {
    try {
      return path.join(realpathSync.native(existing), path.relative(existing, place));
    } catch {
      if (existing === "/") return place;
      existing = path.dirname(existing);
    }
  }
}

/**
 * @param {unknown} value
 * @param {string} name
 * @param {{ places: string[], homes: string[] }} forbidden
 * @param {boolean} isHere whether the engine's files are this machine's
 */
function checkSource(value, name, forbidden, isHere) {
  const text = checkAbsolute(value, name);
  const plain = path.resolve(text);
  const real = trueName(plain);
  // A link and ".." behind it lead elsewhere than the text says: both places must be allowed.
  const walked = trueName(text);
  for (const place of new Set([plain, real, walked])) refuseForbidden(place, name, forbidden);
  if (isHere) checkKind(walked, name);
  return walked;
}

/** @param {string} place @param {string} name @param {{ places: string[], homes: string[] }} forbidden */
function refuseForbidden(place, name, { places, homes }) {
  const refuse = (/** @type {string} */ why) => invalid(`\`${name}\` is never given to a container: ${why}. Give a folder that holds only what the code may see`);
  const touched = places.find((it) => isInside(it, place) || isInside(place, it));
  if (touched !== undefined) {
    throw refuse(isInside(place, touched) ? `it is, or lies in, ${touched}` : `it holds ${touched}`);
  }
  if (HOMES.includes(place)) throw refuse("it holds the homes of all users");
  if (homes.some((it) => isInside(it, place))) throw refuse("it holds your home, and with it your credentials");
  const names = place.split("/");
  if (names.some((it) => SECRET_NAMES.has(it))) throw refuse("it is a place of credentials");
  if (homesOf(names, homes).some((home) => SECRET_IN_HOME.some((it) => isInside(place, `${home}/${it}`)))) {
    throw refuse("it is a place of credentials and settings in a home");
  }
  const tell = TELLS.find((it) => existsSync(`${place}/${it}`));
  if (tell !== undefined) throw refuse(`there is ${tell} in it`);
}

/** The homes that a path may lie in. @param {string[]} names of the path @param {string[]} homes */
function homesOf(names, homes) {
  return HOMES.includes(`/${names[1]}`) && names.length > 2 ? [...homes, `/${names[1]}/${names[2]}`] : homes;
}

/** Only folders and files: a socket or a device leads out. @param {string} place @param {string} name */
function checkKind(place, name) {
  const found = statSync(place, { throwIfNoEntry: false });
  if (!found) throw invalid(`\`${name}\` is not there: make that folder first`);
  if (found.isDirectory() || found.isFile()) return;
  throw invalid(`\`${name}\` is never given to a container: it is neither a folder nor a file, but leads elsewhere, as a socket or a device does`);
}

/** @param {unknown} value @param {string} name */
function checkTarget(value, name) {
  const target = path.resolve(checkAbsolute(value, name));
  const own = ["/proc", "/sys", "/dev", "/etc"].find((it) => isInside(target, it));
  if (target !== "/" && own === undefined) return target;
  throw invalid(`\`${name}\` must be a folder of its own in the container, such as "/data", and not ${own ?? "its root"}`);
}

/** @param {unknown} value @param {string} name */
function checkAbsolute(value, name) {
  const text = checkString(value, name);
  // eslint-disable-next-line no-control-regex
  if (text.startsWith("/") && !/[\0-\x1f\x7f]/.test(text)) return text;
  throw invalid(`\`${name}\` must be an absolute path: it begins with "/"`);
}

/** Whether `place` is `folder` or lies in it. @param {string} place @param {string} folder */
function isInside(place, folder) {
  return place === folder || place.startsWith(folder === "/" ? "/" : `${folder}/`);
}
