// The ways in which the SDK finds a sandbox: by domain over TLS, in debug mode on fixed ports, by the
// environment.
import { Sandbox } from "@e2b/code-interpreter";
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { makeCertificate } from "../emulators/certificate.js";
import { startE2B } from "../emulators/e2b/index.js";

const run = promisify(execFile);

for (const name of Object.keys(process.env)) if (name.startsWith("E2B_")) delete process.env[name];

test("by domain: HTTP/2 for control plane and daemon, a host per port, the traffic token", async () => {
  const certificate = makeCertificate(["*.e2b.test"]);
  const directory = mkdtempSync(path.join(os.tmpdir(), "interop-"));
  const emulator = await startE2B({ tls: certificate });
  try {
    const file = path.join(directory, "cert.pem");
    writeFileSync(file, certificate.cert);
    const domain = `e2b.test:${emulator.apiPort}`;
    const env = { PATH: process.env.PATH, NODE_EXTRA_CA_CERTS: file, E2B_DOMAIN: domain, E2B_API_KEY: emulator.apiKey };
    const script = path.join(import.meta.dirname, "e2b-domain.js");
    const { stdout } = await run(process.execPath, [script], { env, timeout: 30_000 });
    const { sandboxId, ...seen } = JSON.parse(stdout);
    assert.deepEqual(seen, {
      stdout: "by domain\n",
      read: "a",
      host: `3999-${sandboxId}.${domain}`,
      text: "run by domain",
      killed: true,
      hasToken: true,
      withoutToken: 403,
    });
    const protocols = Object.fromEntries(emulator.engine.log.map(({ route, protocol }) => [route, protocol]));
    assert.deepEqual(protocols, {
      "POST /v2/sandboxes": "2.0",
      "process.Process/Start": "2.0",
      "envd POST /files": "2.0",
      "envd GET /files": "2.0",
      "interpreter POST /execute": "1.1",
      "interpreter GET /health": "1.1",
      "DELETE /sandboxes/{id}": "2.0",
    });
    const execute = emulator.engine.requests("interpreter POST /execute")[0];
    assert.match(execute.headers["e2b-traffic-access-token"], /^[0-9a-f]{64}$/);
    const start = emulator.engine.requests("process.Process/Start")[0];
    assert.equal(start.headers[":authority"], `49983-${sandboxId}.${domain}`);
    assert.deepEqual(emulator.engine.errors, []);
  } finally {
    await emulator.close();
    rmSync(directory, { recursive: true });
  }
});

/** Whether a port can be bound. */
const free = (port) =>
  new Promise((resolve) => {
    const server = net.createServer().on("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });

test("debug mode: one sandbox on fixed local ports, nothing created", async (t) => {
  const ports = await Promise.all([3000, 49983, 49999].map(free));
  if (ports.includes(false)) {
    t.skip("a fixed port is taken");
    return;
  }
  const emulator = await startE2B({ debug: true });
  try {
    const sandbox = await Sandbox.create({ apiKey: emulator.apiKey, debug: true });
    assert.equal(sandbox.sandboxId, "debug_sandbox_id");
    assert.equal((await sandbox.commands.run("echo local")).stdout, "local\n");
    await sandbox.files.write("d.txt", "d");
    assert.equal((await sandbox.runCode("open('d.txt').read()")).text, "d");
    assert.equal(await sandbox.kill(), true);
    assert.equal(emulator.engine.connections.api, 0);
    assert.deepEqual(emulator.engine.errors, []);
  } finally {
    await emulator.close();
  }
});

test("by environment variables", async () => {
  const emulator = await startE2B();
  const { apiUrl, sandboxUrl, apiKey } = emulator;
  Object.assign(process.env, { E2B_API_URL: apiUrl, E2B_SANDBOX_URL: sandboxUrl, E2B_API_KEY: apiKey });
  try {
    const sandbox = await Sandbox.create("base");
    assert.equal((await sandbox.commands.run("echo env")).stdout, "env\n");
    assert.equal(await sandbox.kill(), true);
  } finally {
    for (const name of ["E2B_API_URL", "E2B_SANDBOX_URL", "E2B_API_KEY"]) delete process.env[name];
    await emulator.close();
  }
});
