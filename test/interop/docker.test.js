// dockerode against our emulator of an engine. Where they disagree, the emulator is wrong.
import Dockerode from "dockerode";
import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { after, afterEach, before, describe, test } from "node:test";
import { startDocker } from "../emulators/docker/index.js";

for (const kind of ["docker", "podman"]) {
  describe(`dockerode, ${kind}`, () => {
    let emulator;
    let docker;
    before(async () => {
      emulator = await startDocker({ kind });
      docker = new Dockerode({ socketPath: emulator.host.slice("unix://".length) });
    });
    afterEach(() => {
      emulator.engine.clearFaults();
      assert.deepEqual(emulator.engine.errors, []);
    });
    after(() => emulator.close());

    /** A container that runs, gone when the test has ended. */
    async function running(t, options) {
      const container = await docker.createContainer({ Image: "busybox", Entrypoint: ["/bin/sh"], Cmd: ["-c", "sleep 1000"], ...options });
      t.after(() => container.remove({ force: true }).catch(() => {}));
      await container.start();
      return container;
    }

    /** A command's streams and exit code, as dockerode has them. */
    async function command(container, Cmd, options, input) {
      const exec = await container.exec({ Cmd, AttachStdout: true, AttachStderr: true, AttachStdin: input !== undefined, ...options });
      const stream = await exec.start({ hijack: true, stdin: input !== undefined });
      const [out, err] = [new PassThrough(), new PassThrough()];
      docker.modem.demuxStream(stream, out, err);
      stream.on("end", () => [out, err].forEach((side) => side.end()));
      if (input !== undefined) stream.end(input);
      const [stdout, stderr] = await Promise.all([text(out), text(err)]);
      return { stdout, stderr, ...(await exec.inspect()) };
    }

    test("what it is", async () => {
      assert.equal((await docker.ping()).toString(), "OK");
      assert.equal((await docker.version()).ApiVersion, "1.41");
      assert.equal((await docker.info()).OSType, "linux");
    });

    test("a container's life", async (t) => {
      const container = await running(t, { Labels: { a: "b" }, name: `life-${kind}` });
      assert.equal((await container.inspect()).State.Running, true);
      const [listed] = await docker.listContainers({ filters: { label: ["a=b"] } });
      assert.deepEqual([listed.Id, listed.Names], [container.id, [`/life-${kind}`]]);
      assert.deepEqual(await docker.listContainers({ filters: { label: ["a=c"] } }), []);
      await container.pause();
      assert.equal((await container.inspect()).State.Status, "paused");
      await container.unpause();
      await container.kill();
      assert.equal((await container.inspect()).State.ExitCode, 137);
      await assert.rejects(container.kill(), ({ statusCode }) => statusCode === (kind === "docker" ? 409 : 500));
      await container.remove();
      await assert.rejects(container.inspect(), { statusCode: 404 });
    });

    test("commands: streams, exit codes, input, folder, variables", async (t) => {
      const container = await running(t);
      const { stdout, stderr, ExitCode, Running } = await command(container, ["sh", "-c", "echo out; echo err >&2; exit 3"]);
      assert.deepEqual([stdout, stderr, ExitCode, Running], ["out\n", "err\n", 3, false]);
      assert.equal((await command(container, ["cat"], {}, "given")).stdout, "given");
      assert.equal((await command(container, ["sh", "-c", "pwd; echo $A"], { WorkingDir: "/tmp", Env: ["A=1"] })).stdout, "/tmp\n1\n");
      const missing = await command(container, ["no-such-program"]);
      assert.match(missing.stdout + missing.stderr, /executable file not found/);
      assert.equal(missing.ExitCode, kind === "docker" ? 126 : 127);
      const large = await command(container, ["head", "-c", "3000000", "/dev/zero"]);
      assert.equal(large.stdout.length, 3_000_000);
    });

    test("files as archives", async (t) => {
      const container = await running(t, { WorkingDir: "/data" });
      const { execFileSync } = await import("node:child_process");
      const { mkdtempSync, rmSync, writeFileSync } = await import("node:fs");
      const dir = mkdtempSync("/tmp/interop-");
      t.after(() => rmSync(dir, { recursive: true }));
      writeFileSync(`${dir}/f`, "content\n");
      await container.putArchive(execFileSync("tar", ["-cf", "-", "-C", dir, "f"]), { path: "/data" });
      assert.equal((await command(container, ["cat", "f"])).stdout, "content\n");
      const bytes = await new Promise((resolve, reject) => container.getArchive({ path: "/data/f" }).then(async (stream) => resolve(Buffer.concat(await stream.toArray())), reject));
      assert.equal(execFileSync("tar", ["-xOf", "-"], { input: bytes }).toString(), "content\n");
      await assert.rejects(container.getArchive({ path: "/data/none" }), { statusCode: 404 });
    });

    test("pulls: progress, and a failure inside the answer", async () => {
      const pull = (name) =>
        new Promise((resolve, reject) => {
          docker.pull(name, (error, stream) => (error ? reject(error) : docker.modem.followProgress(stream, (failed, steps) => (failed ? reject(failed) : resolve(steps)))));
        });
      const steps = await pull("alpine:3");
      assert.ok(steps.some(({ status }) => status === "Downloading"));
      assert.equal(steps.at(-1).status, "Status: Downloaded newer image for alpine:3");
      // dockerode leaves it to its user to look for this.
      assert.match((await pull("broken:latest")).at(-1).error, /unexpected EOF/);
      const none = await pull("none:1").then((all) => all.at(-1).error, (error) => error.message);
      assert.match(none, /pull access denied/);
    });

    test("refusals", async (t) => {
      await assert.rejects(docker.createContainer({ Image: "none", Cmd: ["true"] }), { statusCode: 404 });
      const container = await running(t, { name: `taken-${kind}` });
      await assert.rejects(docker.createContainer({ Image: "busybox", Cmd: ["true"], name: `taken-${kind}` }), ({ statusCode }) => statusCode === (kind === "docker" ? 409 : 500));
      await container.stop();
      await assert.rejects(container.exec({ Cmd: ["true"] }), ({ statusCode }) => statusCode === (kind === "docker" ? 409 : 500));
    });
  });
}
