// DockerSandbox on the emulator: what a real engine will not do on request.
import assert from "node:assert/strict";
import path from "node:path";
import { describe, test } from "node:test";

import { DockerSandbox, removeStaleDockerSandboxes } from "cloudsandbox";

import { startDocker } from "../emulators/docker/index.js";
import { rejection } from "../support/wait.js";

/** An emulator, and sandboxes on it that are closed with it. */
async function open(t, settings) {
  const emulator = await startDocker(settings);
  const sandboxes = [];
  t.after(async () => {
    emulator.engine.clearFaults();
    await Promise.all(sandboxes.map((sandbox) => sandbox.close().catch(() => {})));
    await emulator.close();
    assert.deepEqual(emulator.engine.errors, []);
  });
  const make = (options) => {
    const workingDir = path.join(emulator.base, `work${sandboxes.length}`);
    const sandbox = new DockerSandbox({ host: emulator.host, workingDir, ...options });
    sandboxes.push(sandbox);
    return sandbox;
  };
  return { emulator, engine: emulator.engine, make };
}

describe("a pull", () => {
  test("its progress is told, and the image is then there", async (t) => {
    const { emulator, make } = await open(t);
    const told = [];
    const sandbox = make({ image: "alpine:3", onProgress: (it) => told.push(it) });
    assert.deepEqual(await sandbox.shell("echo on"), { output: "on\n", exitCode: 0 });
    assert.ok(emulator.settings.images.has("alpine:3"));
    assert.deepEqual(told.find(({ status }) => status === "Downloading"), { status: "Downloading", id: "layer0", current: 1, total: 9 });
    assert.equal(told.at(-1).status, "Status: Downloaded newer image for alpine:3");
  });

  test("a failure in the midst of it, inside a 200, is the start's error, with the engine's reason", async (t) => {
    const { engine, make } = await open(t);
    const error = await rejection(make({ image: "broken" }).start());
    assert.match(error.message, /broken.*unexpected EOF|unexpected EOF.*broken/s);
    assert.equal(error.mayHaveRun, false);
    assert.equal(engine.count("POST /containers/{id}/start"), 0);
  });

  test("an image that nobody has: both engines' ways of saying so", async (t) => {
    for (const kind of ["docker", "podman"]) {
      const { make } = await open(t, { kind });
      const error = await rejection(make({ image: "nosuch:1" }).start());
      assert.match(error.message, /nosuch/);
      assert.match(error.message, /pull access denied|does not exist/);
    }
  });

  test('"never" asks for nothing and names the image; "always" pulls what is there', async (t) => {
    const { emulator, engine, make } = await open(t);
    const error = await rejection(make({ image: "alpine:3", pull: "never" }).start());
    assert.equal(error.code, "ERR_SANDBOX_NOT_FOUND");
    assert.match(error.message, /alpine:3.*`pull` is "never".*docker pull/);
    assert.equal(engine.count("POST /images/create"), 0);
    emulator.settings.images.add("alpine:3");
    await make({ image: "alpine:3", pull: "always" }).start();
    assert.equal(engine.count("POST /images/create"), 1);
  });
});

describe("commands", () => {
  test("C016 frames that are cut at every byte", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make();
    await sandbox.start();
    engine.fault("POST /exec/{id}/start", { pieceBytes: 1 }, { times: 1 });
    const result = await sandbox.exec({ command: "echo out; echo err >&2; exit 3" });
    assert.deepEqual([result.stdout, result.stderr, result.exitCode], ["out\n", "err\n", 3]);
  });

  test("C017 whatever the stream is called, and whether it is switched to or just sent, its bytes pass unchanged", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make();
    await sandbox.start();
    for (const type of ["application/vnd.docker.raw-stream", "application/vnd.docker.multiplexed-stream", "text/plain"]) {
      engine.fault("POST /exec/{id}/start", { headers: { "content-type": type } });
      const { stdout, exitCode } = await sandbox.exec({ command: "printf 'a\\000\\001\\377b'", encoding: "buffer" });
      assert.deepEqual([[...stdout], exitCode], [[97, 0, 1, 255, 98], 0], type);
    }
  });

  test("a stream that breaks is never a success: cut after each byte of a short one", async (t) => {
    const { engine, make } = await open(t, { seed: null });
    const sandbox = make();
    await sandbox.shell("true");
    const whole = await sandbox.exec({ command: "echo hi" });
    const total = engine.requests("POST /exec/{id}/start").at(-1).sentBytes;
    assert.equal(whole.stdout, "hi\n");
    for (let after = 0; after < total; after += 3) {
      for (const how of ["end", "reset"]) {
        engine.fault("POST /exec/{id}/start", { stop: { after, how } });
        const [result, error] = await sandbox.exec({ command: "echo hi" }).then((it) => [it], (it) => [undefined, it]);
        if (result) assert.ok(result.truncated || result.stdout === "hi\n", `${after} ${how}: ${JSON.stringify(result)}`);
        else assert.equal(error.mayHaveRun, true, `${after} ${how}: ${error.message}`);
      }
    }
    assert.deepEqual(await sandbox.shell("echo usable"), { output: "usable\n", exitCode: 0 });
  });

  test("a stream without an end: the limit passes, and the answer has what had come", async (t) => {
    const { engine, make } = await open(t, { seed: null });
    const sandbox = make();
    await sandbox.start();
    engine.fault("POST /exec/{id}/start", { stop: { until: /begun/, how: "hang" } });
    const begin = performance.now();
    const result = await sandbox.exec({ command: "echo begun; sleep 300", timeoutSeconds: 1 });
    assert.equal(result.status, "timedOut");
    assert.match(result.stdout, /^begun/);
    assert.ok(performance.now() - begin < 30_000);
  });

  test("an end that is told late, by both engines' words for it", async (t) => {
    for (const kind of ["docker", "podman"]) {
      const { make } = await open(t, { kind, lateRunning: 3 });
      assert.deepEqual(await make().shell("exit 7"), { output: "", exitCode: 7 }, kind);
    }
  });

  test("an exec whose end was cut off and that is said to run for ever: no exit code is made up", async (t) => {
    const { engine, make } = await open(t, { seed: null });
    const sandbox = make();
    await sandbox.start();
    engine.fault("POST /exec/{id}/start", { stop: { after: 0, how: "end" } });
    engine.fault("GET /exec/{id}/json", { edit: (body) => JSON.stringify({ ...JSON.parse(body), Running: true, ExitCode: 0 }) }, { times: Infinity });
    const error = await rejection(sandbox.exec({ command: "echo hi" }));
    assert.equal(error.mayHaveRun, true);
    assert.doesNotMatch(error.code, /INVALID/);
  });

  test("refusals before anything ran: paused, stopped, 500", async (t) => {
    for (const kind of ["docker", "podman"]) {
      const { emulator, engine, make } = await open(t, { kind });
      const sandbox = make();
      await sandbox.start();
      emulator.find(sandbox.sandboxId).pause(true);
      const paused = await rejection(sandbox.shell("true"));
      assert.deepEqual([paused.code, paused.mayHaveRun], ["ERR_SANDBOX_CONFLICT", false], paused.message);
      assert.match(paused.message, /paused.*unpause/s);
      emulator.find(sandbox.sandboxId).pause(false);
      engine.fault("POST /containers/{id}/exec", { instead: { status: 500, body: '{"message":"runtime trouble"}' } });
      const failed = await rejection(sandbox.shell("true"));
      assert.deepEqual([failed.code, failed.mayHaveRun], ["ERR_SANDBOX_PROVIDER", false], failed.message);
      assert.match(failed.message, /runtime trouble/);
      assert.deepEqual(await sandbox.shell("echo on"), { output: "on\n", exitCode: 0 });
    }
  });

  test("a container that was killed for want of memory is lost, and its reason is told", async (t) => {
    const { emulator, make } = await open(t);
    const sandbox = make();
    await sandbox.start();
    const lost = rejection(sandbox.exec({ command: "echo on; sleep 300" }));
    await emulator.engine.waitFor("POST /exec/{id}/start");
    emulator.outOfMemory(sandbox.sandboxId);
    const error = await lost;
    assert.equal(error.code, "ERR_SANDBOX_LOST", error.message);
    assert.deepEqual(await sandbox.shell("echo fresh"), { output: "fresh\n", exitCode: 0 });
  });
});

describe("creation and removal", () => {
  test("a create whose answer was lost is found by its label, and removed", async (t) => {
    const { emulator, engine, make } = await open(t);
    for (const how of ["reset", "close"]) {
      engine.fault("POST /containers/create", { instead: how, run: true });
      const sandbox = make();
      await rejection(sandbox.start());
      await sandbox.close();
      assert.equal(emulator.containers.size, 0, how);
    }
  });

  test("a removal that is in progress, and one that comes too late, are successes", async (t) => {
    const { engine, make } = await open(t);
    const sandbox = make();
    await sandbox.start();
    const body = JSON.stringify({ message: `removal of container ${sandbox.sandboxId} is already in progress` });
    engine.fault("DELETE /containers/{id}", { instead: { status: 409, body }, run: true });
    await sandbox.close();
  });

  test("a manifest is told the engine in its own words", async (t) => {
    const { engine, emulator, make } = await open(t);
    const created = () => engine.requests("POST /containers/create").at(-1);
    const resources = { cpus: 0.5, memoryMb: 64, diskMb: 32, timeoutSeconds: 7 };
    const workingDir = path.join(emulator.base, "elsewhere");
    await make({ workingDir: undefined, verifyNetwork: false, manifest: { image: "alpine:3", workingDir, env: { A: "1" }, resources, network: {} } }).start();
    const { HostConfig: host, ...spec } = JSON.parse(created().body);
    assert.deepEqual([spec.Image, spec.WorkingDir, spec.Env.includes("A=1")], ["alpine:3", workingDir, true]);
    assert.deepEqual([host.NetworkMode, host.Memory, host.NanoCpus], ["none", 64 << 20, 5e8]);
    await make({ manifest: { network: { default: "allow" } } }).start();
    assert.equal(JSON.parse(created().body).HostConfig.NetworkMode, "bridge");
  });

  test("the version that both know is spoken; an engine that is too old is named as such", async (t) => {
    const { engine, make } = await open(t, { apiVersion: "1.47", minApiVersion: "1.44" });
    await make().start();
    assert.match(engine.requests("POST /containers/create")[0].path, /^\/v1\.47\//);
    const old = await open(t, { apiVersion: "1.38" });
    const error = await rejection(old.make().start());
    assert.equal(error.code, "ERR_SANDBOX_UNSUPPORTED", error.message);
    assert.match(error.message, /1\.38.*1\.41/);
    const fixed = await open(t, { apiVersion: "1.47" });
    await fixed.make({ apiVersion: "1.43" }).start();
    assert.match(fixed.engine.requests("POST /containers/create")[0].path, /^\/v1\.43\//);
  });

  test("what the options say is what the engine is told", async (t) => {
    const { engine, emulator, make } = await open(t);
    const source = path.join(emulator.base, "shared");
    await make({
      user: 1000, network: "bridge", memoryMb: 64, cpus: 0.5, pids: 32, capabilities: ["cap_net_raw"], readOnlyRoot: false,
      mounts: [], env: { A: "1" }, labels: { team: "x" }, noNewPrivileges: true, lifetimeSeconds: 77,
    }).start();
    const { HostConfig: host, ...spec } = JSON.parse(engine.requests("POST /containers/create")[0].body);
    assert.deepEqual([spec.User, spec.Labels.team, spec.Cmd.at(-1)], ["1000:1000", "x", "77"]);
    assert.ok(spec.Env.includes("A=1"));
    assert.deepEqual(
      [host.NetworkMode, host.Memory, host.MemorySwap, host.NanoCpus, host.PidsLimit, host.CapAdd, host.CapDrop, host.ReadonlyRootfs, host.SecurityOpt, host.AutoRemove],
      ["bridge", 64 << 20, 64 << 20, 5e8, 32, ["NET_RAW"], ["ALL"], false, ["no-new-privileges"], true],
    );
    assert.ok(source);
    await make().start();
    const plain = JSON.parse(engine.requests("POST /containers/create")[1].body);
    assert.deepEqual(
      [plain.User, plain.HostConfig.NetworkMode, plain.HostConfig.PidsLimit, plain.HostConfig.ReadonlyRootfs, plain.HostConfig.CapAdd, plain.Image],
      ["65534:65534", "none", 256, true, [], "python:3.12-slim"],
    );
  });

  test("a platform, a runtime and a network that the engine does not have, before anything runs", async (t) => {
    for (const kind of ["docker", "podman"]) {
      const { emulator, make } = await open(t, { kind });
      for (const options of [{ platform: "linux/arm64" }, { runtime: "runsc" }, { network: "nosuch" }]) {
        const sandbox = make({ pull: "never", ...options });
        const error = await rejection(sandbox.start());
        assert.match(error.message, /arm64|runsc|nosuch/);
        assert.equal(error.mayHaveRun, false);
        await sandbox.close();
      }
      assert.equal(emulator.containers.size, 0);
    }
  });
});

describe("what others have left", () => {
  test("only containers of ours whose lease is over, or whose process is dead", async (t) => {
    const { emulator, make } = await open(t);
    const mine = make();
    await mine.start();
    const labels = emulator.find(mine.sandboxId).spec.Labels;
    const { Container } = await import("../emulators/docker/container.js");
    const add = (name, more) => {
      const container = new Container(emulator, name, { Image: "busybox", Cmd: ["sleep", "100"], Labels: more, HostConfig: {} });
      emulator.containers.set(container.id, container);
      container.start();
      return container.id;
    };
    const past = String(Math.floor(Date.now() / 1000) - 100);
    const over = add("over", { ...labels, "cloudsandbox.host": "another machine", "cloudsandbox.lease": past });
    const dead = add("dead", { ...labels, "cloudsandbox.process": "999999 1" });
    add("other-machine", { ...labels, "cloudsandbox.host": "another machine" });
    add("others", { team: "x" });
    const { removed } = await removeStaleDockerSandboxes({ host: emulator.host });
    assert.deepEqual([...removed].sort(), [over, dead].sort());
    assert.deepEqual(await removeStaleDockerSandboxes({ host: emulator.host }), { removed: [] });
    assert.deepEqual(await mine.shell("echo mine"), { output: "mine\n", exitCode: 0 });
  });

  test("wrong options, an engine that is not there, a signal", async (t) => {
    const { emulator } = await open(t);
    await assert.rejects(removeStaleDockerSandboxes({ image: "x" }), { code: "ERR_SANDBOX_INVALID_ARG", message: /removeStaleDockerSandboxes: there is no option `image`/ });
    const error = await rejection(removeStaleDockerSandboxes({ host: `unix://${emulator.base}/none.sock` }));
    assert.match(error.message, /no container engine/);
    assert.match(error.stack, /engine\.test\.js/);
    const reason = new Error("enough");
    assert.equal(await rejection(removeStaleDockerSandboxes({ host: emulator.host, signal: AbortSignal.abort(reason) })), reason);
  });
});
