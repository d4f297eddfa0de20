// What a SandboxAgent with the backend "docker" or "isolated-local" works in: a sandbox of its own, seeded as every
// workspace is.
//
// A repository is cloned in the sandbox where that has a network and git. Else it is cloned on this machine, by
// nobody's credentials but those in the address, and copied in without them.
import { MISSING_PROGRAM, checkRef, cloneName, gitClone } from "./clone.js";
import { DockerSandbox } from "./docker.js";
import { SandboxError } from "./errors.js";
import { LocalSandbox } from "./local.js";
import { execWithin } from "./sandbox.js";
import { snapshotOf } from "./snapshot.js";
import { RemoteWorkspace } from "./workspace.js";

/** @import { DockerSandboxOptions, LocalSandboxOptions } from "../types/index.js" */
/** @import { Clone } from "./clone.js" */
/** @import { Manifest } from "./workspace.js" */

const BOUNDS = { timeoutSeconds: 3600, endless: false, outputBytes: 1024 * 1024 };
/** Most bytes of a clone that is copied in. */
const COPY_BYTES = 256 * 1024 * 1024;
const COPY_SECONDS = 60;
/** What leads git through this machine's network, and no credentials. */
const NETWORK_VARIABLES = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE", "GIT_SSL_CAINFO"];
/** The address is not to be read in the clone's log either. */
const QUIET = ["-c", "core.logAllRefUpdates=false"];

/** Unpacks a clone into "$PLACE" as git makes one: into a folder that is not there, or empty. */
const UNPACK = `
if [ -e "$PLACE" ] && [ -n "$(ls -A "$PLACE")" ]; then
  echo "destination path '$PLACE' already exists and is not an empty directory" >&2
  exit 2
fi
command -v tar >/dev/null || exit 127
mkdir -p "$PLACE" && tar -xof - -C "$PLACE"`;

/** Whether it was said once that a clone comes from this machine. */
let told = false;

/**
 * @typedef {object} Place what messages say
 * @property {string} provider
 * @property {string} into "the container"
 * @property {string} bare why git cannot be run there
 */

/** Base of both. */
class OwnWorkspace extends RemoteWorkspace {
  #sandbox;
  #hasNetwork;
  #place;
  #stopped = new AbortController();

  /** @param {DockerSandbox | LocalSandbox} sandbox @param {boolean} hasNetwork @param {Manifest} manifest @param {Place} place */
  constructor(sandbox, hasNetwork, manifest, place) {
    super(sandbox, manifest);
    this.#sandbox = sandbox;
    this.#hasNetwork = hasNetwork;
    this.#place = place;
  }

  /** @override */
  async seed() {
    const { gitClones } = this.manifest;
    for (const { ref } of gitClones) checkRef(ref);
    await super.seed();
    for (const [index, clone] of gitClones.entries()) await this.#clone(clone, index);
  }

  /** @override */
  stop() {
    this.#stopped.abort(new SandboxError("SandboxAgent is closed", { code: "ERR_SANDBOX_CLOSED" }));
    // What comes of it is told to who calls close(), which joins this one.
    this.#sandbox.close({ graceSeconds: 0 }).catch(() => {});
  }

  /** @override @param {AbortSignal} [signal] @param {string[]} [exclude] */
  snapshotFiles(signal, exclude = []) {
    return this.use(signal, () => snapshotOf(() => this.#sandbox, exclude, signal));
  }

  /** @param {Clone} clone @param {number} index */
  async #clone(clone, index) {
    const git = this.#hasNetwork ? await this.#exec({ argv: ["git", "--version"] }) : undefined;
    if (git && git.exitCode !== MISSING_PROGRAM) {
      const { cwd, directory } = placeOf(clone.path);
      const run = (/** @type {Record<string, any>} */ spec) => this.#exec({ cwd, ...spec });
      await gitClone(run, clone, { index, directory, provider: this.#place.provider });
      return;
    }
    tellOnce(cloneName(clone, index), this.#place.into, git ? this.#place.bare : "which has no network");
    await this.#copy(await this.#cloneHere(clone, index), clone, index);
  }

  /** A clone that was made on this machine, as the bytes of a tar. @param {Clone} clone @param {number} index */
  async #cloneHere(clone, index) {
    const here = new LocalSandbox({ isolation: "none", inheritEnv: NETWORK_VARIABLES });
    const signal = this.#stopped.signal;
    try {
      const run = (/** @type {Record<string, any>} */ spec) => here[execWithin]({ ...spec, signal }, BOUNDS);
      await gitClone(run, clone, { index, directory: "clone", provider: this.#place.provider, options: QUIET });
      const plain = withoutCredentials(clone.repo);
      if (plain !== clone.repo) await run({ argv: ["git", "-C", "clone", "remote", "set-url", "origin", plain] });
      const packed = await run({ argv: ["tar", "-cf", "clone.tar", "-C", "clone", "."], timeoutSeconds: COPY_SECONDS });
      const bytes = packed.exitCode === 0 ? await here.readBytes("clone.tar", { maxBytes: COPY_BYTES, signal }) : null;
      if (bytes) return bytes;
      throw copyFailed(clone, index, packed.output, this.#place);
    } finally {
      await here.close({ graceSeconds: 0 });
    }
  }

  /** @param {Uint8Array} bytes @param {Clone} clone @param {number} index */
  async #copy(bytes, clone, index) {
    const { cwd, directory } = placeOf(clone.path);
    const { exitCode, output } = await this.#exec({
      command: UNPACK, cwd, env: { PLACE: directory }, stdin: bytes, timeoutSeconds: COPY_SECONDS, maxOutputBytes: 65536,
    });
    if (exitCode === 0) return;
    const words = exitCode === MISSING_PROGRAM ? "the image has no tar to unpack it with; use one that has, or clone with shell()" : output;
    throw copyFailed(clone, index, words, this.#place);
  }

  /** @param {Record<string, any>} spec */
  #exec(spec) {
    return this.#sandbox[execWithin]({ ...spec, env: { ...this.manifest.env, ...spec.env }, signal: this.#stopped.signal }, BOUNDS);
  }
}

export class DockerWorkspace extends OwnWorkspace {
  /** @param {DockerSandboxOptions} options @param {Manifest} manifest */
  constructor(options, manifest) {
    const { network } = options;
    const hasNetwork = (network !== undefined && network !== "none") || options.manifest?.network?.default === "allow";
    super(new DockerSandbox(options, "SandboxAgent: `docker`"), hasNetwork, manifest, {
      provider: "docker", into: "the container", bare: "whose image has no git",
    });
  }
}

export class IsolatedWorkspace extends OwnWorkspace {
  /** @param {LocalSandboxOptions} options @param {Manifest} manifest */
  constructor(options, manifest) {
    const hasNetwork = options.network === "on" || options.manifest?.network?.default === "allow";
    super(new LocalSandbox({ ...options, isolation: "required" }, "SandboxAgent: `isolated`"), hasNetwork, manifest, {
      provider: "isolated-local", into: "the sandbox", bare: "which finds no git",
    });
  }
}

/** A path with "~" in its two parts, of which only the first is the sandbox's to understand. @param {string} path */
function placeOf(path) {
  const home = /^~(?:\/(.*))?$/s.exec(path);
  const place = home ? home[1] || "." : path;
  // Else a program would take it for an option.
  const directory = place.startsWith("-") ? `./${place}` : place;
  return home ? { cwd: "~", directory } : { directory };
}

/** The address without what stands before its "@", as far as it is an URL. @param {string} repo */
function withoutCredentials(repo) {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(repo)) return repo;
  try {
    const url = new URL(repo);
    if (!url.username && !url.password) return repo;
    url.username = "";
    url.password = "";
    return url.href;
  } catch {
    // No URL to Node, though git could clone from it: nothing of it is to be seen.
    return "";
  }
}

/** @param {Clone} clone @param {number} index @param {string} words @param {Place} place */
function copyFailed(clone, index, words, { provider, into }) {
  const text = `git clone of ${cloneName(clone, index)} could not be copied into ${into}: ${words.trim().slice(-1000)}`;
  return new SandboxError(text, { code: "ERR_SANDBOX_PROVIDER", provider });
}

/** @param {string} name @param {string} into @param {string} why */
function tellOnce(name, into, why) {
  if (told) return;
  told = true;
  process.emitWarning(`SandboxAgent: ${name} is cloned on this machine and copied into ${into}, ${why}`, {
    type: "SandboxWarning",
    code: "CLOUDSANDBOX_CLONED_HERE",
  });
}
