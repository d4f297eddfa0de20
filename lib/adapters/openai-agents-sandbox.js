// Sandboxes behind the sandbox agents of the OpenAI Agents SDK. Part of "cloudsandbox/openai-agents".
//
// Invariant: what the model asks for is answered with text, whatever becomes of it: that SDK gives a model no word of an error.
import { SandboxError } from "../errors.js";
import { checkFunction, checkInteger, checkNames, invalid } from "../options.js";
import { Commands } from "./openai-agents-commands.js";
import { checkNative, unsupported } from "./seam.js";
import { messageOf } from "./shared.js";

const { readFile } = process.getBuiltinModule("node:fs").promises;
const { posix } = process.getBuiltinModule("node:path");

/** @import { OpenAIAgentsModules, OpenAIAgentsSandboxClient, OpenAIAgentsSandboxSession } from "../../types/adapters/openai-agents.js" */

/** What that SDK takes for a manifest's root when none is named. */
const DEFAULT_ROOT = "/workspace";
const MOST_IMAGE_BYTES = 10 * 1024 * 1024;
const UNSUPPORTED_LISTS = ["users", "groups", "extraPathGrants"];

/** By their first bytes. @type {[type: string, at: number, magic: string][]} */
const IMAGES = [
  ["image/png", 0, "\x89PNG\r\n\x1a\n"], ["image/jpeg", 0, "\xff\xd8\xff"], ["image/gif", 0, "GIF8"], ["image/webp", 8, "WEBP"],
];

/**
 * @param {OpenAIAgentsModules} modules
 * @param {(options: any) => any} make a new sandbox for each create()
 * @param {{ maxOutputTokens?: number | undefined }} [options]
 * @returns {OpenAIAgentsSandboxClient}
 */
export function openAIAgentsSandboxClient(modules, make, options) {
  const { Manifest, applyDiff } = checkNames(modules, ["Manifest", "applyDiff"], "openAIAgentsSandboxClient: modules");
  checkFunction(Manifest, "Manifest");
  checkFunction(applyDiff, "applyDiff");
  checkFunction(make, "make");
  const { maxOutputTokens } = checkNames(options, ["maxOutputTokens"], "openAIAgentsSandboxClient");
  if (maxOutputTokens !== undefined) checkInteger(maxOutputTokens, "maxOutputTokens", 1, Number.MAX_SAFE_INTEGER);
  /** @param {any} manifest @param {string} root */
  const at = ({ version, entries, environment }, root) => new Manifest({ version, entries, environment, root });
  let lastRoot = DEFAULT_ROOT;
  return {
    backendId: "cloudsandbox",
    // A sandbox that this process has made is not found by another one: a run that is taken up there begins in a new one.
    serializedSessionStateRequiresFreshCreation: true,
    serializeSessionState: async () => ({}),
    // Compared with what the interrupted session has, its root among it; not told is which one. Most providers have one root for all.
    resolveTrustedManifestForResume: (manifest) => at(manifest, lastRoot),
    async create(given, more) {
      const { manifest = new Manifest(), options: wanted = more } = given instanceof Manifest ? { manifest: given } : given ?? {};
      const asked = manifest instanceof Manifest ? manifest : new Manifest(manifest);
      checkManifest(asked);
      const environment = await asked.resolveEnvironment();
      const sandbox = checkNative(await make(wanted ?? {}), "openAIAgentsSandboxClient: what `make` gave", "mkdir", "moveFile");
      try {
        lastRoot = await rootOf(sandbox, asked.root);
        const state = { manifest: at(asked, lastRoot), environment, workspaceReady: true };
        const session = sessionOf(sandbox, state, applyDiff, maxOutputTokens);
        await session.applyManifest(state.manifest);
        return session;
      } catch (error) {
        await sandbox.close().catch(() => {});
        throw error;
      }
    },
  };
}

/** Where its commands begin: what the model is told, and what its absolute paths begin with. @param {any} sandbox @param {string} asked */
async function rootOf(sandbox, asked) {
  const { stdout } = await sandbox.exec({ argv: ["pwd"] });
  const root = stdout.replace(/\n$/, "");
  if (asked === DEFAULT_ROOT || asked === root) return root;
  throw unsupported(`manifest.root: the commands of this sandbox begin in ${root}; leave root out, or set the directory where the sandbox is made`);
}

/** @param {any} manifest */
function checkManifest(manifest) {
  const list = UNSUPPORTED_LISTS.find((name) => manifest[name].length > 0);
  if (list) throw unsupported(`manifest.${list}: a sandbox of this package has one user, and no path of the host; nothing was made`);
  checkEntries(manifest.entries, "");
}

/** @param {Record<string, any>} entries @param {string} folder */
function checkEntries(entries, folder) {
  for (const [name, entry] of Object.entries(entries)) {
    const where = `manifest.entries[${JSON.stringify(folder + name)}]`;
    if (!["file", "dir", "local_file"].includes(entry.type)) {
      throw unsupported(`${where}: "${entry.type}" is not written by this client, "file", "dir" and "local_file" are; nothing was made`);
    }
    if (entry.group !== undefined) throw unsupported(`${where}.group: a sandbox of this package has one user; nothing was made`);
    if (entry.children) checkEntries(entry.children, `${folder}${name}/`);
  }
}

/**
 * @param {any} sandbox
 * @param {string} where
 * @param {any} entry
 * @param {boolean} readsHost entries that the agent's author has written may name a file of the host
 */
async function materialize(sandbox, where, entry, readsHost) {
  if (entry.type === "dir") {
    await sandbox.mkdir(where);
    for (const [name, child] of Object.entries(entry.children ?? {})) await materialize(sandbox, posix.join(where, name), child, readsHost);
    return;
  }
  if (entry.type === "local_file" && !readsHost) throw unsupported("an entry of the host's files comes with the manifest only");
  await sandbox.writeFile(where, entry.type === "file" ? entry.content : await readFile(entry.src));
}

/**
 * @param {any} sandbox
 * @param {any} state
 * @param {OpenAIAgentsModules["applyDiff"]} applyDiff
 * @param {number | undefined} maxOutputTokens
 * @returns {OpenAIAgentsSandboxSession}
 */
function sessionOf(sandbox, state, applyDiff, maxOutputTokens) {
  const commands = new Commands(sandbox, state.environment, maxOutputTokens);
  let isOpen = true;
  /** @param {string} where */
  const typeOf = async (where) => (await sandbox.stat(where))?.type;
  const shut = async () => {
    isOpen = false;
    await Promise.all([commands.end(), sandbox.close()]);
  };
  return {
    state,
    running: async () => isOpen,
    start: () => sandbox.start(),
    supportsPty: () => true, // Else a model could not look at a command again. Who asks for a terminal where there is none is told so.
    execCommand: (args) => commands.run(args),
    writeStdin: (args) => commands.write(args),
    createEditor: (runAs) => editorOf(sandbox, applyDiff, runAs),
    async viewImage({ path: where, runAs }) {
      checkUser(runAs);
      const info = await sandbox.stat(where);
      if (!info) throw notFound(where);
      if (info.type !== "file") throw invalid(`${where} is not a file`);
      if (info.size > MOST_IMAGE_BYTES) throw invalid(`${where} exceeds the 10 MB limit`);
      const bytes = Buffer.from((await sandbox.readBytes(where)) ?? []);
      const [mediaType] = IMAGES.find(([, at, magic]) => bytes.toString("latin1", at, at + magic.length) === magic) ?? [];
      if (!mediaType) throw invalid(`${where}: unsupported image format`);
      return { type: "image", image: { data: bytes.toString("base64"), mediaType } };
    },
    async readFile({ path: where, maxBytes, runAs }) {
      checkUser(runAs);
      const bytes = await sandbox.readBytes(where, maxBytes === undefined ? undefined : { maxBytes });
      if (bytes === null) throw notFound(where);
      return bytes;
    },
    async listDir({ path: where, runAs }) {
      checkUser(runAs);
      /** @type {any[]} */
      const entries = await sandbox.listDirectory(where);
      return entries.map(({ name, type }) => {
        return { name, path: posix.join(where, name), type: type === "directory" ? "dir" : type === "file" ? "file" : "other" };
      });
    },
    async pathExists(where, runAs) {
      checkUser(runAs);
      return (await typeOf(where)) !== undefined;
    },
    async directoryExists(where, runAs) {
      checkUser(runAs);
      return (await typeOf(where)) === "directory";
    },
    async materializeEntry({ path: where, entry, runAs }) {
      checkUser(runAs);
      checkEntries({ [where]: entry }, "");
      await materialize(sandbox, where, entry, false);
    },
    async applyManifest(manifest, runAs) {
      checkUser(runAs);
      checkManifest(manifest);
      for (const [name, entry] of Object.entries(manifest.entries)) await materialize(sandbox, name, entry, true);
    },
    stop: () => commands.end(),
    delete: shut,
    close: shut,
  };
}

/** @param {string | undefined} runAs */
function checkUser(runAs) {
  if (runAs !== undefined) throw unsupported(`runAs: a sandbox of this package has one user; nothing was done`);
}

/** @param {string} where */
function notFound(where) {
  return new SandboxError(`${where} was not found`, { code: "ERR_SANDBOX_NOT_FOUND" });
}

/**
 * @param {any} sandbox
 * @param {OpenAIAgentsModules["applyDiff"]} applyDiff
 * @param {string | undefined} runAs
 */
function editorOf(sandbox, applyDiff, runAs) {
  /** @param {() => Promise<string>} work */
  const told = async (work) => {
    try {
      checkUser(runAs);
      return { status: /** @type {const} */ ("completed"), output: await work() };
    } catch (error) {
      return { status: /** @type {const} */ ("failed"), output: `Error: ${messageOf(error)}` };
    }
  };
  return {
    /** @param {{ path: string, diff: string }} operation */
    createFile: ({ path: where, diff }) => told(async () => {
      if (await sandbox.stat(where)) throw invalid(`${where} exists already; update it instead. Nothing was written`);
      await sandbox.writeFile(where, applyDiff("", diff, "create"));
      return `${where} was made`;
    }),
    /** @param {{ path: string, diff: string, moveTo?: string }} operation */
    updateFile: ({ path: where, diff, moveTo }) => told(async () => {
      const text = await sandbox.readFile(where);
      if (text === null) throw notFound(where);
      if (moveTo !== undefined && (await sandbox.stat(moveTo))) throw invalid(`${moveTo} exists already. Nothing was written`);
      await sandbox.writeFile(where, applyDiff(text, diff));
      if (moveTo === undefined) return `${where} was changed`;
      await sandbox.moveFile(where, moveTo);
      return `${where} was changed, and is now ${moveTo}`;
    }),
    /** @param {{ path: string }} operation */
    deleteFile: ({ path: where }) => told(async () => {
      if (!(await sandbox.stat(where))) throw notFound(where);
      await sandbox.deleteFile(where);
      return `${where} was deleted`;
    }),
  };
}
