// `cloudsandbox mcp`: a server of the Model Context Protocol on standard input and output, over one sandbox.
//
// Invariant: standard output has the protocol and nothing else; the sandbox is deleted when the client hangs up, by
// whatever it says so: the end of input, SIGTERM, SIGINT, SIGHUP.
import { mcpTools } from "../adapters/mcp.js";
import { SandboxToolkit } from "../toolkit.js";
import { UsageError } from "./parse.js";
import { sandboxOf } from "./place.js";

const { readFileSync } = process.getBuiltinModule("node:fs");
const { createRequire } = process.getBuiltinModule("node:module");
const { pathToFileURL } = process.getBuiltinModule("node:url");
const { extname, join } = process.getBuiltinModule("node:path");

const SDK = "@modelcontextprotocol/sdk";
const INVALID_PARAMS = -32602;
const RESOURCE_NOT_FOUND = -32002;
const SCHEME = "sandbox:///";
/** Resources of one page of a list. */
const PAGE = 500;
/** Largest file that goes to a client as a whole. */
const MAX_RESOURCE_BYTES = 10 * 1024 * 1024;
const CLOSE = { graceSeconds: 1 };

/** @type {Record<string, string>} */
const IMAGES = { ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp" };
/** @type {Record<string, string>} */
const TYPES = {
  ...IMAGES, ".svg": "image/svg+xml", ".pdf": "application/pdf", ".json": "application/json", ".html": "text/html", ".css": "text/css",
  ".csv": "text/csv", ".md": "text/markdown", ".js": "text/javascript", ".mjs": "text/javascript", ".py": "text/x-python", ".txt": "text/plain",
  ".xml": "application/xml", ".zip": "application/zip", ".gz": "application/gzip", ".wav": "audio/wav", ".mp3": "audio/mpeg",
};

/** @param {Record<string, any>} values @returns {Promise<number>} */
export async function mcp(values) {
  const most = values["max-chars"] === undefined ? undefined : Number(values["max-chars"]);
  const sandbox = await sandboxOf(values);
  const isReadOnly = values["read-only"] === true;
  const toolkit = new SandboxToolkit(sandbox, {
    ...(most !== undefined && { maxToolOutputChars: most }),
    ...(isReadOnly ? { readOnly: true } : { tools: { list_files: true, edit_file: true, read_file: { range: true } } }),
  });
  const sdk = await loadSdk();
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  const server = new sdk.Server({ name: "cloudsandbox", version }, { capabilities: { tools: {}, resources: {} } });
  const { listTools, callTool } = mcpTools(toolkit.getTools());
  const reader = `${toolkit.name.replaceAll("-", "_")}_read_file`;
  const files = resources(sandbox);
  server.setRequestHandler(sdk.ListToolsRequestSchema, listTools);
  server.setRequestHandler(sdk.CallToolRequestSchema, async (/** @type {any} */ request, /** @type {any} */ extra) => {
    const shown = request.params.name === reader ? await files.shown(request.params.arguments, extra.signal) : undefined;
    return shown ?? callTool(request, extra);
  });
  server.setRequestHandler(sdk.ListResourcesRequestSchema, files.list);
  server.setRequestHandler(sdk.ReadResourceRequestSchema, files.read);
  server.setRequestHandler(sdk.ListResourceTemplatesRequestSchema, async () => ({
    resourceTemplates: [{ uriTemplate: `${SCHEME}{+path}`, name: "file", description: "A file of the sandbox, by its path" }],
  }));
  return serve(server, new sdk.StdioServerTransport(), sandbox);
}

/** @param {any} server @param {any} transport @param {any} sandbox @returns {Promise<number>} */
async function serve(server, transport, sandbox) {
  const ended = new Promise((resolve) => {
    for (const event of ["end", "close", "error"]) process.stdin.once(event, resolve);
    for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(name, resolve);
    server.onclose = resolve;
  });
  await server.connect(transport);
  await ended;
  await server.close().catch(() => {});
  await sandbox.close(CLOSE);
  process.stdin.destroy();
  return 0;
}

/**
 * The SDK that is installed beside this package, or in the folder where the command was called.
 *
 * @returns {Promise<any>}
 */
async function loadSdk() {
  const parts = ["server/index.js", "server/stdio.js", "types.js"];
  const here = createRequire(join(process.cwd(), "package.json"));
  try {
    const modules = await Promise.all(parts.map((part) => import(`${SDK}/${part}`)))
      .catch(() => Promise.all(parts.map((part) => import(pathToFileURL(here.resolve(`${SDK}/${part}`)).href))));
    return Object.assign({}, ...modules);
  } catch {
    throw new UsageError(
      `mcp needs the package ${SDK}, which is not installed: run \`npm install ${SDK}\`, or start with \`npx -y -p cloudsandbox -p ${SDK} cloudsandbox mcp\``,
    );
  }
}

/** Files of the sandbox, as resources. @param {any} sandbox */
function resources(sandbox) {
  /** @param {string} path @param {AbortSignal} signal @returns {Promise<Uint8Array | null>} */
  const bytesOf = (path, signal) => sandbox.readBytes(path, { maxBytes: MAX_RESOURCE_BYTES, signal });
  return {
    async list(/** @type {any} */ { params }, /** @type {any} */ { signal }) {
      const from = Number(params?.cursor ?? 0);
      if (!Number.isSafeInteger(from) || from < 0) throw failure("the cursor is none of this server's", INVALID_PARAMS);
      // A client lists before it needs anything; a sandbox that costs money is not made for that.
      if (sandbox.sandboxId === null && !sandbox.capabilities.local) return { resources: [] };
      const all = await sandbox.listFiles({ signal, maxEntries: 100_000 });
      all.sort((/** @type {any} */ a, /** @type {any} */ b) => (a.path < b.path ? -1 : 1));
      const page = all.slice(from, from + PAGE).map((/** @type {{ path: string, size: number }} */ { path, size }) => {
        return { uri: uriOf(path), name: path, size, mimeType: typeOf(path) };
      });
      return { resources: page, ...(from + PAGE < all.length && { nextCursor: String(from + PAGE) }) };
    },

    async read(/** @type {any} */ { params: { uri } }, /** @type {any} */ { signal }) {
      const path = pathOf(uri);
      const bytes = await bytesOf(path, signal);
      if (bytes === null) throw failure(`there is no file ${path} in the sandbox`, RESOURCE_NOT_FOUND);
      return { contents: [contentOf(path, bytes)] };
    },

    /** What read_file gives of a file that is no text: an image, or the file itself. @param {any} args @param {AbortSignal} signal */
    async shown(args, signal) {
      const { path, encoding, offset, limit } = args ?? {};
      if (typeof path !== "string" || encoding != null || offset != null || limit != null) return undefined;
      // What is wrong here, the tool itself says in words.
      const bytes = await bytesOf(path, signal).catch(() => null);
      if (signal.aborted) throw signal.reason;
      if (bytes === null || textOf(bytes) !== undefined) return undefined;
      const image = IMAGES[extname(path).toLowerCase()];
      if (image) return { content: [{ type: "image", data: Buffer.from(bytes).toString("base64"), mimeType: image }] };
      return { content: [{ type: "resource", resource: contentOf(path, bytes) }] };
    },
  };
}

/** @param {string} path @param {Uint8Array} bytes */
function contentOf(path, bytes) {
  const text = textOf(bytes);
  const uri = uriOf(path);
  if (text !== undefined) return { uri, mimeType: typeOf(path) ?? "text/plain", text };
  return { uri, mimeType: typeOf(path) ?? "application/octet-stream", blob: Buffer.from(bytes).toString("base64") };
}

/** @param {Uint8Array} bytes */
function textOf(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** @param {string} path */
function typeOf(path) {
  return TYPES[extname(path).toLowerCase()];
}

/** @param {string} path */
function uriOf(path) {
  return SCHEME + path.split("/").map(encodeURIComponent).join("/");
}

/** @param {string} uri */
function pathOf(uri) {
  if (!uri.startsWith(SCHEME)) throw failure(`resources of this server begin with ${SCHEME}`, RESOURCE_NOT_FOUND);
  try {
    return decodeURIComponent(uri.slice(SCHEME.length));
  } catch {
    throw failure("the address is no percent-encoded UTF-8", INVALID_PARAMS);
  }
}

/** @param {string} message @param {number} code of JSON-RPC */
function failure(message, code) {
  return Object.assign(new Error(message), { code });
}
