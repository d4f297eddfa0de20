// How the engine is reached: sockets, ports, TLS with certificates on both sides, variables, and what is wrong with each.
import assert from "node:assert/strict";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import path from "node:path";
import { after, describe, test } from "node:test";

import { DockerSandbox } from "cloudsandbox";

import { makeCertificate } from "../emulators/certificate.js";
import { startDocker } from "../emulators/docker/index.js";
import { runNode } from "../support/node.js";
import { tempDir } from "../support/temp.js";
import { rejection } from "../support/wait.js";

const NAMES = ["DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "DOCKER_API_VERSION", "XDG_RUNTIME_DIR", "HOME"];
const saved = NAMES.map((name) => [name, process.env[name]]);
const restore = () => {
  for (const [name, value] of saved) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
};
for (const name of NAMES.slice(0, 5)) delete process.env[name];
after(restore);

async function start(t, settings) {
  const emulator = await startDocker(settings);
  t.after(() => emulator.close());
  return emulator;
}

/** Runs a command by these options, and gives back the sandbox's place. */
async function says(t, emulator, options) {
  const sandbox = new DockerSandbox({ workingDir: `${emulator.base}/w`, ...options });
  t.after(() => sandbox.close().catch(() => {}));
  assert.deepEqual(await sandbox.shell("echo on"), { output: "on\n", exitCode: 0 });
  await sandbox.close();
}

/** The folder of a client's certificates. */
function certificates(t, ca, own) {
  const dir = tempDir(t);
  for (const [name, text] of [["ca.pem", ca.cert], ["cert.pem", own.cert], ["key.pem", own.key]]) writeFileSync(path.join(dir, name), text);
  return dir;
}

describe("where the engine is", () => {
  test("a socket and a port, by option and by DOCKER_HOST", async (t) => {
    const [socket, port] = [await start(t), await start(t, { tcp: true })];
    await says(t, socket, { host: socket.host });
    await says(t, port, { host: port.host });
    await says(t, port, { host: port.host.replace("tcp://", "") });
    await says(t, port, { host: port.url });
    process.env.DOCKER_HOST = port.host;
    await says(t, port, {});
    await says(t, socket, { host: socket.host });
    delete process.env.DOCKER_HOST;
  });

  test("the usual sockets: Docker Desktop's, then the user's own Podman's", { concurrency: false }, async (t) => {
    const emulator = await start(t);
    const home = tempDir(t);
    process.env.HOME = home;
    process.env.XDG_RUNTIME_DIR = path.join(home, "run");
    t.after(restore);
    mkdirSync(path.join(home, ".docker/run"), { recursive: true });
    symlinkSync(emulator.host.slice("unix://".length), path.join(home, ".docker/run/docker.sock"));
    await says(t, emulator, {});
    rmSync(path.join(home, ".docker"), { recursive: true });
    mkdirSync(path.join(home, "run/podman"), { recursive: true });
    symlinkSync(emulator.host.slice("unix://".length), path.join(home, "run/podman/podman.sock"));
    const { existsSync } = await import("node:fs");
    if (!existsSync("/var/run/docker.sock")) await says(t, emulator, {});
  });

  test("DOCKER_API_VERSION is spoken", async (t) => {
    const emulator = await start(t, { apiVersion: "1.47" });
    process.env.DOCKER_API_VERSION = "1.44";
    await says(t, emulator, { host: emulator.host });
    delete process.env.DOCKER_API_VERSION;
    assert.match(emulator.engine.requests("POST /containers/create")[0].path, /^\/v1\.44\//);
  });
});

describe("TLS", () => {
  test("with certificates on both sides, by option and by the variables", async (t) => {
    const own = makeCertificate(["127.0.0.1"]);
    const emulator = await start(t, { tls: { ...own, ca: own.cert } });
    const dir = certificates(t, own, own);
    await says(t, emulator, { host: emulator.host, certPath: dir });
    Object.assign(process.env, { DOCKER_HOST: emulator.host, DOCKER_TLS_VERIFY: "1", DOCKER_CERT_PATH: dir });
    t.after(restore);
    await says(t, emulator, {});
    for (const name of NAMES.slice(0, 3)) delete process.env[name];
  });

  test("an authority that nobody knows, a client that nobody knows, files that are not there", async (t) => {
    const own = makeCertificate(["127.0.0.1"]);
    const other = makeCertificate(["127.0.0.1"]);
    const emulator = await start(t, { tls: { ...own, ca: own.cert } });
    for (const [certPath, words] of [
      [certificates(t, other, own), /certificate/i],
      [certificates(t, own, other), /./],
      [path.join(tempDir(t), "none"), /ca\.pem|cert/i],
    ]) {
      const sandbox = new DockerSandbox({ host: emulator.host, certPath });
      const error = await rejection(sandbox.start());
      assert.match(error.code, /ERR_SANDBOX_(TLS|NETWORK|INVALID_ARG)/, error.message);
      assert.match(error.message, words);
      assert.equal(error.mayHaveRun, false);
      assert.doesNotMatch(error.message, /PRIVATE KEY/);
      await sandbox.close();
    }
    assert.equal(emulator.engine.count("POST /containers/create"), 0);
  });
});

describe("no engine: three sentences, each with the next step", () => {
  const wrong = async (host, code, words) => {
    const sandbox = new DockerSandbox({ host });
    const error = await rejection(sandbox.start());
    await sandbox.close();
    assert.equal(error.mayHaveRun, false);
    assert.match(error.message, words);
    if (code) assert.equal(error.code, code, error.message);
  };

  test("nothing is installed, or it has another socket", async (t) => {
    await wrong(`unix://${tempDir(t)}/none.sock`, undefined, /no container engine: there is no socket at .*none\.sock\. Install Docker or Podman/);
  });

  test("a socket that somebody has left behind", async (t) => {
    const file = path.join(tempDir(t), "old.sock");
    // One that is renamed is not removed by its server's end.
    const server = createServer().listen(file);
    await new Promise((resolve) => server.once("listening", resolve));
    const { renameSync } = await import("node:fs");
    renameSync(file, `${file}.left`);
    await new Promise((resolve) => server.close(resolve));
    await wrong(`unix://${file}.left`, "ERR_SANDBOX_NETWORK", /does not run.*nobody listens.*Start it/s);
  });

  test("no right to use it", { skip: process.getuid?.() !== 0 }, async (t) => {
    const emulator = await start(t);
    const { chmodSync } = await import("node:fs");
    chmodSync(emulator.base, 0o755);
    chmodSync(emulator.host.slice("unix://".length), 0o600);
    const { stdout } = await runNode(
      `import { DockerSandbox } from "cloudsandbox";
       const sandbox = new DockerSandbox({ host: ${JSON.stringify(emulator.host)} });
       process.setgroups([]); process.setgid(65534); process.setuid(65534);
       await sandbox.start().catch(({ code, message }) => console.log(code, message));
       await sandbox.close();`,
    );
    assert.match(stdout, /^ERR_SANDBOX_FORBIDDEN .*no right to use the container engine.*group.*rootless/s);
  });

  test("nothing listens at a port", async () => {
    await wrong("tcp://127.0.0.1:1", "ERR_SANDBOX_NETWORK", /nothing listens at http:\/\/127\.0\.0\.1:1/);
  });

  test("what answers is no engine", async (t) => {
    const server = createServer((socket) => {
      // Its client keeps the connection, and this process must not wait for it.
      socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi", () => socket.unref()));
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    t.after(() => server.close());
    await wrong(`tcp://127.0.0.1:${server.address().port}`, "ERR_SANDBOX_PROTOCOL", /is no container engine/);
  });
});
