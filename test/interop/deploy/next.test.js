// A program of Next.js, built to be deployed alone ("standalone"), moved elsewhere, and asked there.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import path from "node:path";
import { test } from "node:test";

import { tempDir } from "../../support/temp.js";
import { projectWithPackage } from "./package.js";

const HANDLER = `import { LocalSandbox } from "cloudsandbox";
export default async function handler(request, response) {
  const sandbox = new LocalSandbox({ isolation: "none" });
  const results = [await sandbox.shell("echo $((6 * 7))"), await sandbox.run("console.log(42)", { language: "node" })];
  await sandbox.close();
  response.json(results.map(({ output, exitCode }) => output.trim() + "/" + exitCode));
}
`;
const root = import.meta.dirname;

/** A port that nothing listens on. Next.js takes 0 for 3000. */
async function freePort() {
  const server = net.createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

test("C173 Next.js, standalone, takes the package along when it is told that it stays outside", { skip: process.platform !== "linux", timeout: 150_000 }, async (t) => {
  // Next.js itself must be in a folder above it, and not by a link.
  mkdirSync(path.join(root, "build"), { recursive: true });
  const project = mkdtempSync(path.join(root, "build/next-"));
  t.after(() => rmSync(project, { recursive: true, force: true }));
  mkdirSync(path.join(project, "pages/api"), { recursive: true });
  writeFileSync(path.join(project, "pages/api/run.js"), HANDLER);
  writeFileSync(path.join(project, "package.json"), JSON.stringify({ private: true }));
  writeFileSync(
    path.join(project, "next.config.mjs"),
    `const root = ${JSON.stringify(root)};
export default { output: "standalone", serverExternalPackages: ["cloudsandbox"], outputFileTracingRoot: root, turbopack: { root } };
`,
  );
  cpSync(path.join(await projectWithPackage(t), "node_modules/cloudsandbox"), path.join(project, "node_modules/cloudsandbox"), { recursive: true });

  const next = path.join(root, "node_modules/next/dist/bin/next");
  const built = spawnSync(process.execPath, [next, "build"], { cwd: project, encoding: "utf8", env: { PATH: process.env.PATH, HOME: project, NEXT_TELEMETRY_DISABLED: "1" } });
  assert.equal(built.status, 0, built.stdout + built.stderr);

  const elsewhere = tempDir(t);
  cpSync(path.join(project, ".next/standalone"), elsewhere, { recursive: true, verbatimSymlinks: true });
  // Where it was built there is nothing any more.
  rmSync(project, { recursive: true });
  const port = await freePort();
  const server = spawn(process.execPath, ["server.js"], {
    cwd: path.join(elsewhere, "build", path.basename(project)),
    env: { PATH: process.env.PATH, PORT: String(port), HOSTNAME: "127.0.0.1", NEXT_TELEMETRY_DISABLED: "1" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  t.after(() => server.kill("SIGKILL"));
  let said = "";
  await new Promise((resolve, reject) => {
    for (const stream of [server.stdout, server.stderr]) {
      stream.on("data", (chunk) => {
        said += chunk;
        if (/Ready/.test(said)) resolve();
      });
    }
    server.once("exit", () => reject(new Error(said)));
  });
  const answer = await fetch(`http://127.0.0.1:${port}/api/run`);
  assert.equal(await answer.text(), '["42/0","42/0"]', said);
});
