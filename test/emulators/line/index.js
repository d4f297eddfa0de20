// A service whose only verb is "run this line with sh, and give me what it prints". It knows nothing of
// commands, limits, outputs or files.
//
//   PUT /{id}     makes a sandbox, a directory here, with the variables of the body; the answer is its path
//   GET /{id}     200 or 404
//   POST /{id}    runs the body with `sh -c`; the answer is what it has printed when nobody can print any more
//   DELETE /{id}  removes it, with all that runs in it
//
// Sandboxes belong to who has made them, by the header authorization.
// @ts-check
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";

import { removeFolder, signalMarked } from "../processes.js";

/** @typedef {{ id: string, owner: string, dir: string, env: Record<string, string>, tags: Set<string> }} Sandbox */

export async function startLine() {
  const base = realpathSync(mkdtempSync(path.join(os.tmpdir(), "line-emulator-")));
  /** @type {Map<string, Sandbox>} */
  const sandboxes = new Map();
  /** @type {Set<string>} */
  const refused = new Set();

  /** @param {Sandbox} sandbox */
  function remove(sandbox) {
    sandboxes.delete(sandbox.id);
    signalMarked(`LINE_SANDBOX=${sandbox.id}`, "SIGKILL", sandbox.dir);
    removeFolder(sandbox.dir);
    // A real one takes its /tmp along.
    for (const tag of sandbox.tags) {
      for (const end of ["", ".stop", ".text", ".input", ".env"]) rmSync(`/tmp/.cloudsandbox-${tag}${end}`, { recursive: true, force: true });
    }
  }

  /** @param {Sandbox} sandbox @param {string} line @returns {Promise<Buffer>} */
  function run(sandbox, line) {
    for (const tag of line.match(/(?<=' sh )[0-9a-f]{32}/g) ?? []) sandbox.tags.add(tag);
    const child = spawn("/bin/sh", ["-c", line], {
      cwd: sandbox.dir,
      env: { PATH: process.env.PATH, HOME: sandbox.dir, ...sandbox.env, LINE_SANDBOX: sandbox.id },
      stdio: ["ignore", "pipe", "ignore"],
      detached: true,
    });
    /** @type {Buffer[]} */
    const parts = [];
    child.stdout.on("data", (bytes) => parts.push(bytes));
    return new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("close", () => resolve(Buffer.concat(parts)));
    });
  }

  /** @param {http.IncomingMessage} request @param {Buffer} body @returns {Promise<[number, string | Buffer]>} */
  async function answer({ method, url = "/", headers }, body) {
    const id = url.slice(1);
    const owner = headers.authorization ?? "";
    const sandbox = sandboxes.get(id);
    if (method === "PUT") {
      if (refused.has(owner)) return [403, "no sandbox for you"];
      const dir = path.join(base, id);
      mkdirSync(dir, { recursive: true });
      if (!sandbox) sandboxes.set(id, { id, owner, dir, env: JSON.parse(body.toString()), tags: new Set() });
      return [200, dir];
    }
    if (sandbox?.owner !== owner) return [404, "no such sandbox"];
    if (method === "POST") return [200, await run(sandbox, body.toString())];
    if (method === "DELETE") remove(sandbox);
    return [200, ""];
  }

  const server = http.createServer(async (request, response) => {
    const parts = [];
    try {
      for await (const part of request) parts.push(part);
      const [status, text] = await answer(request, Buffer.concat(parts));
      response.writeHead(status).end(text);
    } catch (error) {
      response.writeHead(500).end(String(error));
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return {
    url: `http://127.0.0.1:${port}`,
    /** Ids of somebody's sandboxes. @param {string} owner */
    existing: (owner) => [...sandboxes.values()].flatMap((sandbox) => (sandbox.owner === owner ? [sandbox.id] : [])),
    /** @param {string} id */
    lose(id) {
      const sandbox = sandboxes.get(id);
      if (sandbox) remove(sandbox);
    },
    /** Who may make none. */
    refused,
    async close() {
      for (const sandbox of [...sandboxes.values()]) remove(sandbox);
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      removeFolder(base);
    },
  };
}
