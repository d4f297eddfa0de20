// Docker's own client against the emulator and against the real engines: where it sees another thing, the emulator is
// wrong.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { describe, test } from "node:test";

import { startDocker } from "../emulators/docker/index.js";
import { engines } from "./support.js";

/** What the client says, and its exit code. */
function docker(host, args, input = "") {
  return new Promise((resolve) => {
    const child = execFile("docker", args, { env: { ...process.env, DOCKER_HOST: host }, timeout: 60_000 }, (error, stdout, stderr) => {
      resolve({ code: error ? error.code : 0, stdout, stderr });
    });
    child.stdin.end(input);
  });
}

/** What is the same on all of them. */
async function session(host, image, name) {
  const said = async (...args) => {
    const { code, stdout, stderr } = await docker(host, args);
    return [code, stdout, stderr.replace(/^Error response from daemon: /, "").trim()];
  };
  const seen = [];
  await said("rm", "-f", name);
  seen.push((await said("create", "--name", name, "--network", "none", "--entrypoint", "/bin/sh", image, "-c", "sleep 1000"))[0]);
  seen.push(await said("start", name));
  seen.push(await said("exec", name, "sh", "-c", "echo out; echo err >&2; exit 3"));
  seen.push((await docker(host, ["exec", "-i", name, "cat"], "given")).stdout);
  seen.push(await said("exec", "-w", "/tmp", "-e", "A=1", name, "sh", "-c", "pwd; echo $A"));
  seen.push((await said("exec", name, "no-such-program"))[0]);
  seen.push((await said("exec", "-w", "/no-such-folder", name, "true"))[0]);
  seen.push((await said("pause", name))[0], (await said("exec", name, "true"))[0], (await said("unpause", name))[0]);
  seen.push((await said("ps", "-q", "--filter", `name=^${name}$`))[1].trim().length);
  seen.push(await said("kill", name));
  seen.push((await said("exec", name, "true"))[0]);
  seen.push(await said("rm", name));
  seen.push((await said("inspect", name))[0]);
  return seen;
}

describe("Docker's own client", { concurrency: 1 }, () => {
  for (const engine of engines.filter(({ name }) => name !== "rootless")) {
    test(`sees the same of the emulator and of ${engine.name}`, { timeout: 180_000 }, async (t) => {
      const emulator = await startDocker({ kind: engine.name });
      t.after(() => emulator.close());
      const name = `cli-${process.pid}`;
      const real = await session(engine.host, "cloudsandbox/busybox", name);
      assert.deepEqual(await session(emulator.host, "busybox", name), real);
      assert.deepEqual(emulator.engine.errors, []);
    });
  }
});
