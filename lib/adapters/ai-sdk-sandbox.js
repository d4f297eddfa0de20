// A sandbox as the sandbox session of AI SDK 7. Part of "cloudsandbox/ai-sdk".
import { SandboxError } from "../errors.js";
import { checkNames } from "../options.js";
import { MAX_OUTPUT, checkNative, running, unsupported, whole } from "./seam.js";

/** @import { AiSdkSandbox } from "../../types/adapters/ai-sdk.js" */

/** What a string may be written as; read are all that TextDecoder knows. @type {Record<string, BufferEncoding>} */
const ENCODINGS = { "utf-8": "utf8", utf8: "utf8", "utf-16le": "utf16le", utf16le: "utf16le", latin1: "latin1", ascii: "ascii" };

/**
 * @param {any} sandbox
 * @param {{ description?: string | undefined }} [options]
 * @returns {AiSdkSandbox}
 */
export function aiSdkSandbox(sandbox, options) {
  checkNative(sandbox, "aiSdkSandbox");
  const { description = `A ${sandbox.providerId} sandbox. Paths are relative to the working directory of the commands.` } = checkNames(options, ["description"], "aiSdkSandbox");
  const bytesOf = (/** @type {any} */ { path, abortSignal: signal }) => sandbox.readBytes(path, { signal });
  return {
    description,
    async run({ command, workingDirectory: cwd, env, abortSignal: signal }) {
      const result = await sandbox.exec({ command, cwd, env, signal, timeoutSeconds: Infinity, maxOutputBytes: MAX_OUTPUT, truncate: "middle" });
      if (result.status === "cancelled") throw signal?.reason;
      return { exitCode: result.exitCode, stdout: whole(result, "stdout"), stderr: whole(result, "stderr") };
    },
    async spawn({ command, workingDirectory: cwd, env, stdin, abortSignal: signal }) {
      if (stdin && !sandbox.capabilities?.spawn) {
        throw unsupported("spawn: standard input that stays open is not there in this sandbox; nothing was started. Write what the command reads to a file");
      }
      signal?.throwIfAborted();
      await sandbox.start({ signal });
      const { settled, stdin: input, ...child } = await running(sandbox, { command, cwd, env, signal, stdin });
      return { ...child, ...(input && { stdin: input }), wait: async () => ({ exitCode: (await settled).exitCode }) };
    },
    async readFile(file) {
      if (sandbox.capabilities?.streams) return sandbox.readStream(file.path, { signal: file.abortSignal });
      const bytes = await bytesOf(file);
      return bytes && new Blob([bytes]).stream();
    },
    readBinaryFile: bytesOf,
    async readTextFile({ encoding = "utf-8", startLine = 1, endLine = Infinity, ...file }) {
      const decoder = new TextDecoder(encoding, { ignoreBOM: true });
      const bytes = await bytesOf(file);
      if (bytes === null) return null;
      const text = decoder.decode(bytes);
      if (startLine === 1 && endLine === Infinity) return text;
      const end = text.includes("\r\n") ? "\r\n" : "\n";
      return text.split(end).slice(startLine - 1, endLine).join(end);
    },
    async writeFile({ path, content, abortSignal: signal }) {
      if (sandbox.capabilities?.streams) await content.pipeTo(await sandbox.writeStream(path, { signal }), signal && { signal });
      else await sandbox.writeFile(path, new Uint8Array(await new Response(content).arrayBuffer()), undefined, { signal });
    },
    writeBinaryFile: ({ path, content, abortSignal: signal }) => sandbox.writeFile(path, content, undefined, { signal }),
    async writeTextFile({ path, content, encoding = "utf-8", abortSignal: signal }) {
      const name = ENCODINGS[encoding.toLowerCase()];
      if (!name) throw unsupported(`writeTextFile: the encoding "${encoding}" is none of ${Object.keys(ENCODINGS).join(", ")}; nothing was written`);
      await sandbox.writeFile(path, name === "utf8" ? content : Buffer.from(content, name), undefined, { signal });
    },
    async stat({ path, abortSignal: signal }) {
      const found = await sandbox.stat(path, { signal });
      // It follows links: one that is still there leads nowhere.
      if (found === null || found.type === "link") return null;
      return { type: found.type, size: found.size };
    },
    async listDirectory({ path, abortSignal: signal }) {
      try {
        const entries = await sandbox.listDirectory(path, { signal });
        return entries.map((/** @type {any} */ { name, type }) => ({ name, type: type === "link" ? "symlink" : type }));
      } catch (error) {
        if (error instanceof SandboxError && error.code === "ERR_SANDBOX_NOT_FOUND") return null;
        throw error;
      }
    },
    deleteFile: ({ path, abortSignal: signal }) => sandbox.deleteFile(path, { signal }),
  };
}
