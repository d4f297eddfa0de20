// Files by an engine's archive calls, on the emulator: when they are asked, and that nothing they say is believed that
// a command would not have said. What they answer on real engines: test/engines/files.test.js.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { describe, test } from "node:test";

import { DockerSandbox } from "cloudsandbox";

import { startDocker } from "../emulators/docker/index.js";
import { rejection } from "../support/wait.js";

const GET = "GET /containers/{id}/archive";
const HEAD = "HEAD /containers/{id}/archive";
const EXEC = "POST /containers/{id}/exec";

/** An emulator and a sandbox on it, with a file in it. */
async function open(t, settings, options) {
  const emulator = await startDocker({ kind: "podman", ...settings });
  const dir = path.join(emulator.base, "work");
  const sandbox = new DockerSandbox({ host: emulator.host, workingDir: dir, ...options });
  t.after(async () => {
    emulator.engine.clearFaults();
    await sandbox.close().catch(() => {});
    await emulator.close();
    assert.deepEqual(emulator.engine.errors, []);
  });
  await sandbox.writeFile("f", "content\n");
  const { engine } = emulator;
  const asked = () => ({ archives: engine.count(GET), execs: engine.count(EXEC) });
  let before = asked();
  /** How often each way was gone since the last call. */
  const ways = () => {
    const [last, now] = [before, (before = asked())];
    return { archives: now.archives - last.archives, execs: now.execs - last.execs };
  };
  return { emulator, engine, sandbox, dir, ways };
}

const BY_ARCHIVE = { archives: 1, execs: 0 };

const ofFile = (/** @type {any} */ exchange) => exchange.query.get("path").endsWith("/f");

/** The stat that a reply tells of, with some of it changed. */
const statHeader = (changes) => {
  const stat = { name: "f", size: 8, mode: 0o644, mtime: "2026-01-02T03:04:05Z", isDir: false, linkTarget: "", ...changes };
  return { "x-docker-container-path-stat": Buffer.from(JSON.stringify(stat)).toString("base64") };
};

describe("Podman", () => {
  test("a file that anybody may read comes without a process, byte for byte", async (t) => {
    const { sandbox, dir, ways } = await open(t);
    mkdirSync(path.join(dir, "a/b"), { recursive: true });
    const long = "n".repeat(180);
    const files = { f: "content\n", "a/b/x": "deep", "ümläut %&#+ ": "named", [long]: "long" };
    for (const [name, text] of Object.entries(files)) writeFileSync(path.join(dir, name), text);
    for (const [name, text] of Object.entries(files)) {
      assert.equal(await sandbox.readFile(name), text);
      assert.deepEqual(ways(), BY_ARCHIVE, name);
    }
    for (const name of ["./f", ".//f", `${dir}/f`, "~/f", `//${dir}/./f`]) {
      assert.equal(await sandbox.readFile(name), "content\n");
      assert.deepEqual(ways(), BY_ARCHIVE, name);
    }
    for (const length of [1, 511, 512, 513, 3_000_000]) {
      const bytes = Buffer.from(Uint8Array.from({ length }, (_, index) => (index * 7919) >> 3));
      writeFileSync(path.join(dir, "bytes"), bytes);
      assert.deepEqual(Buffer.from(await sandbox.readBytes("bytes")), bytes);
      assert.deepEqual(ways(), BY_ARCHIVE, String(length));
    }
  });

  test("`~` is HOME as it was given, and where the engine looks for it a process says what it is", async (t) => {
    const given = await open(t, {}, { env: { HOME: "/etc" } });
    assert.match(await given.sandbox.readFile("~/passwd"), /^root:/);
    assert.deepEqual(given.ways(), BY_ARCHIVE);
    const empty = await open(t, {}, { env: { HOME: "" } });
    await empty.sandbox.readFile("~/passwd");
    assert.equal(empty.ways().archives, 0);
  });

  test("C031 what is no plain file that anybody may read is a process's to read: links, rights, kinds, the kernel's files", async (t) => {
    const { sandbox, dir, ways } = await open(t);
    const at = (name) => path.join(dir, name);
    symlinkSync("f", at("link"));
    symlinkSync("/etc/passwd", at("away"));
    symlinkSync(dir, at("dirlink"));
    symlinkSync("nowhere", at("dangling"));
    symlinkSync("loop", at("loop"));
    mkdirSync(at("closed"));
    writeFileSync(at("closed/x"), "closed");
    chmodSync(at("closed"), 0o700);
    writeFileSync(at("private"), "private");
    chmodSync(at("private"), 0o600);
    writeFileSync(at("empty"), "");
    mkdirSync(at("dir"));
    mkdirSync(at("1/2/3/4/5/6/7/8"), { recursive: true });
    writeFileSync(at("1/2/3/4/5/6/7/8/x"), "far");
    execFileSync("mkfifo", [at("pipe")]);
    // Podman takes these for patterns.
    for (const name of ["aa", "a?"]) {
      mkdirSync(at(name));
      writeFileSync(at(`${name}/x`), name);
    }
    writeFileSync(at("[1]"), "one");
    const INVALID = "ERR_SANDBOX_INVALID_ARG";
    const passwd = await sandbox.readFile("/etc/passwd");
    ways();
    const cases = {
      link: "content\n", away: passwd, "dirlink/f": "content\n", dangling: null, loop: null, "closed/x": "closed", private: "private", empty: "",
      dir: INVALID, pipe: INVALID, "f/": INVALID, "f/.": INVALID, "f/x": INVALID, none: null, "dir/../f": "content\n", "1/2/3/4/5/6/7/8/x": "far",
      "a?/x": "a?", "[1]": "one", "*": null,
    };
    for (const [name, expected] of Object.entries(cases)) {
      const got = await sandbox.readFile(name).catch(({ code }) => code);
      assert.equal(got, expected, name);
      assert.deepEqual(ways(), { archives: 0, execs: 1 }, name);
    }
    assert.match(await sandbox.readFile("/proc/self/status"), /^Name:/);
    assert.deepEqual(ways(), { archives: 0, execs: 1 });
  });

  test("what is too large is not waited for, and nothing else is asked", async (t) => {
    const { engine, sandbox, ways } = await open(t);
    assert.equal((await rejection(sandbox.readBytes("f", { maxBytes: 7 }))).code, "ERR_SANDBOX_TOO_LARGE");
    assert.deepEqual(ways(), { archives: 0, execs: 0 });
    assert.equal(await sandbox.readFile("f", "utf8", { maxBytes: 8 }), "content\n");
    ways();
    // One that grows, first behind the look, then behind its own stat.
    engine.fault(HEAD, { headers: statHeader({ size: 3 }) }, { where: ofFile });
    assert.equal((await rejection(sandbox.readBytes("f", { maxBytes: 7 }))).code, "ERR_SANDBOX_TOO_LARGE");
    assert.deepEqual(ways(), BY_ARCHIVE);
    engine.fault(HEAD, { headers: statHeader({ size: 3 }) }, { where: ofFile });
    engine.fault(GET, { headers: statHeader({ size: 3 }) });
    const error = await rejection(sandbox.readBytes("f", { maxBytes: 7 }));
    assert.equal(error.code, "ERR_SANDBOX_TOO_LARGE");
    assert.match(error.message, /more than 7 bytes; the path was f;/);
    assert.deepEqual(ways(), BY_ARCHIVE);
  });

  test("an archive that is broken off at any place, or is none, is not believed", async (t) => {
    const { engine, sandbox, ways } = await open(t);
    const zeros = (/** @type {number} */ count) => Buffer.alloc(count);
    for (const after of [0, 1, 511, 512, 515, 520, 1023, 1024, 1536, 2047]) {
      for (const how of /** @type {const} */ (["end", "close", "reset"])) {
        engine.fault(GET, { stop: { after, how } });
        assert.equal(await sandbox.readFile("f"), "content\n");
        assert.deepEqual(ways(), { archives: 1, execs: 1 }, `${after} ${how}`);
      }
    }
    const instead = (/** @type {string | Buffer} */ body, headers = statHeader({}), status = 200) => ({ instead: { status, headers, body } });
    const wrong = [
      instead(""), instead("content\n"), instead(zeros(1024)), instead(zeros(512)), instead("<html>a page</html>"),
      instead("no", {}), instead("no", statHeader({}), 500), instead("no", statHeader({}), 204), instead("no", statHeader({}), 404),
      "close", "reset",
    ];
    for (const fault of wrong) {
      engine.fault(GET, typeof fault === "string" ? { instead: fault } : fault, { times: fault === "close" || fault === "reset" ? 2 : 1 });
      assert.equal(await sandbox.readFile("f"), "content\n");
      assert.equal(ways().execs, 1, JSON.stringify(fault));
      engine.clearFaults();
    }
  });

  test("an archive of something else is not believed: another name, kind, right, two entries, a size that lies", async (t) => {
    const { engine, sandbox, dir, ways } = await open(t);
    const made = path.join(dir, "made");
    mkdirSync(made);
    const tar = (...args) => execFileSync("tar", ["--format=ustar", "-cf", "-", "-C", made, ...args]);
    const headers = statHeader({ size: 5 });
    writeFileSync(path.join(made, "f"), "other");
    writeFileSync(path.join(made, "g"), "other");
    symlinkSync("f", path.join(made, "link"));
    const whole = tar("f");
    const edited = (/** @type {number} */ at, /** @type {string} */ text) => {
      const copy = Buffer.from(whole);
      copy.write(text, at, "latin1");
      copy.write("        ", 148);
      const sum = copy.subarray(0, 512).reduce((a, b) => a + b, 0);
      copy.write(sum.toString(8).padStart(6, "0"), 148);
      return copy;
    };
    const bodies = [
      tar("g"), tar("f", "g"), tar("--transform=s/link/f/", "link"), tar("--mode=600", "f"), tar("--transform=s,f,f/f,", "f"),
      edited(124, "00000000777"), edited(124, "-0000000001"), edited(124, "\x80\0\0\0\0\0\0\0\0\0\0\x7f"), edited(124, "\xff".repeat(12)), edited(156, "S"),
      Buffer.concat([whole.subarray(0, 512), whole]),
    ];
    for (const [index, body] of bodies.entries()) {
      engine.fault(GET, { instead: { status: 200, headers, body } });
      assert.equal(await sandbox.readFile("f"), "content\n", String(index));
      assert.deepEqual(ways(), { archives: 1, execs: 1 }, String(index));
    }
    engine.fault(GET, { instead: { status: 200, headers, body: whole } });
    assert.equal(await sandbox.readFile("f"), "other", "the frame of this test");
  });

  test("a stat that makes no sense, or is of something else, is not believed, of a directory as of the file", async (t) => {
    const { engine, sandbox, dir, ways } = await open(t);
    const stats = [
      { "x-docker-container-path-stat": null }, { "x-docker-container-path-stat": "%%%" }, { "x-docker-container-path-stat": "bm8=" },
      { "x-docker-container-path-stat": "W10=" }, { "x-docker-container-path-stat": "A".repeat(40_000) },
      statHeader({ mode: "420" }), statHeader({ mode: -1 }), statHeader({ mode: 1e30 }), statHeader({ mode: undefined }), statHeader({ mode: 0o044 }),
      statHeader({ mode: 0x8000000 + 0o777 }), statHeader({ mode: 0x2000000 + 0o644 }), statHeader({ mode: 0x4200000 + 0o666 }), statHeader({ mode: 0x80000 + 0o644 }),
      statHeader({ size: -1 }), statHeader({ size: 0 }), statHeader({ size: "8" }), statHeader({ linkTarget: "/etc/passwd" }),
    ];
    for (const headers of [...stats, statHeader({ mode: 0x80000000 + 0o755 })]) {
      engine.fault(HEAD, { headers }, { where: ofFile });
      assert.equal(await sandbox.readFile("f"), "content\n");
      assert.deepEqual(ways(), { archives: 0, execs: 1 }, JSON.stringify(headers));
      engine.fault(GET, { headers });
      assert.equal(await sandbox.readFile("f"), "content\n");
      assert.deepEqual(ways(), { archives: 1, execs: 1 }, JSON.stringify(headers));
    }
    for (const headers of [...stats, statHeader({}), statHeader({ mode: 0x80000000 + 0o766 })]) {
      engine.fault(HEAD, { headers }, { where: (exchange) => exchange.query.get("path") === dir });
      assert.equal(await sandbox.readFile("f"), "content\n");
      assert.deepEqual(ways(), { archives: 0, execs: 1 }, JSON.stringify(headers));
    }
  });

  test("a container that is paused shows what its file systems in memory hide: that is not read", async (t) => {
    const { emulator, engine, sandbox, dir, ways } = await open(t);
    const container = [...emulator.containers.values()][0];
    const below = path.join(container.below, dir);
    mkdirSync(below, { recursive: true });
    writeFileSync(path.join(below, "f"), "of the image\n");
    container.pause(true);
    assert.equal((await rejection(sandbox.readFile("f"))).code, "ERR_SANDBOX_CONFLICT");
    assert.equal(ways().archives, 1);
    container.pause(false);
    assert.equal(await sandbox.readFile("f"), "content\n");
    assert.deepEqual(ways(), BY_ARCHIVE);
    engine.fault("GET /containers/{id}/json", { instead: { status: 500, body: "{}" } }, { times: 5 });
    assert.equal(await sandbox.readFile("f"), "content\n");
    assert.deepEqual(ways(), { archives: 1, execs: 1 });
  });

  test("a container that is gone is lost, whoever finds out", async (t) => {
    const { emulator, sandbox } = await open(t);
    emulator.lose(sandbox.sandboxId);
    assert.equal((await rejection(sandbox.readFile("f"))).code, "ERR_SANDBOX_LOST");
  });

  test("close() does not wait for an archive that hangs", async (t) => {
    const { engine, sandbox } = await open(t);
    engine.fault(GET, { stop: { after: 515, how: "hang" } });
    const reading = rejection(sandbox.readFile("f"));
    await engine.waitFor(GET);
    await sandbox.close({ graceSeconds: 0 });
    assert.equal((await reading).code, "ERR_SANDBOX_CLOSED");
  });
});

describe("where they are not asked", () => {
  test("Docker, whose archives do not show what is in memory; and the emulator does not either", async (t) => {
    const { emulator, engine, sandbox, dir, ways } = await open(t, { kind: "docker" });
    assert.equal(await sandbox.readFile("f"), "content\n");
    assert.deepEqual(ways(), { archives: 0, execs: 1 });
    assert.equal(engine.count(HEAD), 0);
    const ask = (method, wanted) =>
      new Promise((resolve, reject) => {
        const socketPath = emulator.host.replace("unix://", "");
        const request = http.request({ socketPath, method, path: `/containers/${sandbox.sandboxId}/archive?path=${encodeURIComponent(wanted)}` }, (reply) => {
          reply.resume().on("end", () => resolve(reply.statusCode));
        });
        request.on("error", reject).end();
      });
    assert.equal(await ask("HEAD", `${dir}/f`), 404);
    assert.equal(await ask("HEAD", dir), 200);
    assert.equal(await ask("PUT", dir), 500);
  });

  test("a container with mounts, which may have what only root may read, and one of somebody else's", async (t) => {
    const mounted = await open(t, {}, { mounts: [{ source: "/usr/share", target: "/data" }] });
    assert.equal(await mounted.sandbox.readFile("f"), "content\n");
    assert.deepEqual(mounted.ways(), { archives: 0, execs: 1 });
    const { emulator, sandbox, dir, ways } = await open(t);
    const attached = new DockerSandbox({ host: emulator.host, containerId: sandbox.sandboxId });
    t.after(() => attached.close());
    assert.equal(await attached.readFile(`${dir}/f`), "content\n");
    assert.deepEqual(ways(), { archives: 0, execs: 1 });
  });

  test("nothing is written by them", async (t) => {
    const { engine, sandbox } = await open(t);
    await sandbox.writeFile("new/f", "x");
    await sandbox.writeFile("f", "x");
    assert.equal(engine.count("PUT /containers/{id}/archive"), 0);
  });
});
