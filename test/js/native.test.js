// The addon itself: what it links to, what it exports, and that no misuse of its objects crashes.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";

import { guardPath, native, ownFile } from "../../lib/native.js";
import { ROOT, SANITIZER_ENV, copyPackage, runNode } from "../support/node.js";
import { tempDir } from "../support/temp.js";
import { rejection } from "../support/wait.js";

const BINARY = path.join(ROOT, "build/Release/cloudsandbox.node");
const OPTIONS = JSON.stringify({ guardPath: guardPath(), nodePath: process.execPath });
/** Reads ELF files; a build with sanitizers has further symbols. */
const linuxOnly = { skip: process.platform !== "linux" || "LD_PRELOAD" in SANITIZER_ENV };
const quiet = `process.on("warning", () => {});`;

const make = () => new (native().Sandbox)("local", OPTIONS);

describe("linking", linuxOnly, () => {
  const symbols = (kind) =>
    execFileSync("nm", ["-D", kind, BINARY], { encoding: "utf8" })
      .trim()
      .split("\n")
      .map((line) => line.trim().split(/\s+/).at(-1));

  test("exports the two entry points of Node-API and nothing else", () => {
    assert.deepEqual(symbols("--defined-only").sort(), [
      "napi_register_module_v1",
      "node_api_module_get_api_version_v1",
    ]);
  });

  test("takes only Node-API, libuv, cJSON and the C and C++ libraries from outside", () => {
    const allowed = [
      /^(napi|node_api|uv|cJSON)_/,
      /@(GLIBC|GLIBCXX|CXXABI|GCC)_/,
      /^(_ITM_(de)?registerTMCloneTable|__gmon_start__|__cxa_finalize)$/,
    ];
    const wanted = symbols("--undefined-only");
    const musl = !wanted.some((name) => name.includes("@GLIBC_"));
    if (musl) return;
    assert.deepEqual(
      wanted.filter((name) => !allowed.some((rule) => rule.test(name))),
      [],
    );
  });

  test("C187 does not look at the environment: another thread may be changing it", () => {
    const readers = /^(secure_)?getenv@|^_*environ@/;
    assert.deepEqual(symbols("--undefined-only").filter((name) => readers.test(name)), []);
  });

  test("needs no libcurl, no TLS and no second libuv to be loaded", () => {
    const needed = execFileSync("readelf", ["-d", BINARY], { encoding: "utf8" })
      .match(/NEEDED.*\[(.*)\]/g)
      .join(" ");
    assert.doesNotMatch(needed, /curl|ssl|crypto|gnutls|libuv|nghttp/);
  });
});

describe("loading", () => {
  test("the binary knows the package's version", () => {
    assert.equal(native().version, JSON.parse(readFileSync(path.join(ROOT, "package.json"), "utf8")).version);
    assert.equal(native(), native());
  });

  const load = `import { LocalSandbox } from "cloudsandbox";
    try { new LocalSandbox({ isolation: "none" }); } catch (error) { console.log(error.code); console.log(error.message); }`;

  test("a file that is no addon gives an error with the reason", async (t) => {
    const cwd = copyPackage(t, { native: false });
    mkdirSync(path.join(cwd, "build/Release"), { recursive: true });
    writeFileSync(path.join(cwd, "build/Release/cloudsandbox.node"), "not an ELF file");
    const { stdout } = await runNode(load, { cwd });
    assert.match(stdout, /^ERR_SANDBOX_MISSING_BINARY\ncloudsandbox: the native part cannot be loaded /);
    assert.match(stdout, /\nReason: .*cloudsandbox\.node/);
    assert.match(stdout, /Build it here, which needs no install script: {3}node \S+\/scripts\/build\.mjs\n/);
  });

  /** Where a published package has its binaries for this process, and for the other C library. */
  const { glibcVersionRuntime } = process.report.getReport().header;
  const libc = process.platform === "linux" ? (glibcVersionRuntime ? ["glibc", "musl"] : ["musl", "glibc"]) : [];
  const [own, other] = libc.map((name) => `prebuilds/linux-${process.arch}-${name}`);
  const use = `import { LocalSandbox } from "cloudsandbox";
    const sandbox = new LocalSandbox({ isolation: "none" });
    console.log((await sandbox.shell("echo ran")).output);
    await sandbox.close();
    console.log(process.report.getReport().sharedObjects.filter((file) => file.endsWith("cloudsandbox.node")).join());`;

  test("C139 the binaries of the published package: those of this process's C library, whatever else is there", { skip: !own }, async (t) => {
    const cwd = copyPackage(t);
    mkdirSync(path.join(cwd, path.dirname(own)));
    renameSync(path.join(cwd, "build/Release"), path.join(cwd, own));
    mkdirSync(path.join(cwd, other));
    for (const name of ["cloudsandbox.node", "sbx_guard"]) writeFileSync(path.join(cwd, other, name), "of the other C library");
    assert.equal((await runNode(use, { cwd })).stdout, `ran\n\n${path.join(cwd, own, "cloudsandbox.node")}\n`);
  });

  test("one that does not fit gives way to a build from source; the reason is told where there is none", { skip: !own }, async (t) => {
    const cwd = copyPackage(t);
    mkdirSync(path.join(cwd, own), { recursive: true });
    writeFileSync(path.join(cwd, own, "cloudsandbox.node"), "for a newer C library");
    assert.equal((await runNode(use, { cwd })).stdout, `ran\n\n${path.join(cwd, "build/Release/cloudsandbox.node")}\n`);
    rmSync(path.join(cwd, "build"), { recursive: true });
    assert.match((await runNode(load, { cwd })).stdout, new RegExp(`^ERR_SANDBOX_MISSING_BINARY\n.* cannot be loaded .*\nReason: \\S*${own}/cloudsandbox\\.node: `));
  });

  test("without any, the message names the command that builds, where it stands", async (t) => {
    const cwd = copyPackage(t, { native: false });
    cpSync(path.join(ROOT, "scripts/build.mjs"), path.join(cwd, "scripts/build.mjs"));
    const { stdout } = await runNode(load, { cwd });
    assert.match(stdout, /^ERR_SANDBOX_MISSING_BINARY\ncloudsandbox: the native part is missing \(/);
    assert.ok(stdout.includes(`   node ${path.join(cwd, "scripts/build.mjs")}\n`), stdout);
  });

  test("C173 a bundler's address that is none of a file is refused with what to configure", () => {
    assert.throws(() => ownFile(new URL("https://example.com/_next/static/media/sbx_guard")), (error) => {
      assert.equal(error.code, "ERR_SANDBOX_MISSING_BINARY");
      assert.match(error.message, /\(https:\/\/example\.com\/_next\/static\/media\/sbx_guard\); see 2\.\n/);
      assert.match(error.message, /\n2\. With a bundler, mark cloudsandbox as external/);
      return true;
    });
  });

  test("a binary of another version is refused", async (t) => {
    const cwd = copyPackage(t);
    const file = path.join(cwd, "package.json");
    writeFileSync(file, readFileSync(file, "utf8").replace(/"version": "[^"]*"/, '"version": "99.0.0"'));
    const { stdout } = await runNode(load, { cwd });
    assert.match(stdout, /^ERR_SANDBOX_MISSING_BINARY\n/);
    assert.match(stdout, /the package 99\.0\.0/);
  });

  // As on Bun and Deno, whose own tests are scripts/test-runtimes.
  test("where there is no libuv the core brings its own event loop: commands, files, workers and every kind of end", async () => {
    const pretend = 'Object.defineProperty(process, "versions", { value: { ...process.versions, bun: "1.0.0" } });';
    const program = (end) => `${pretend}
      const { Worker, isMainThread } = await import("node:worker_threads");
      const { LocalSandbox } = await import("cloudsandbox");
      const sandbox = new LocalSandbox({ trusted: true });
      const { timedOut } = await sandbox.shell("sleep 30", { timeoutSeconds: 0.2 });
      await sandbox.writeFile("f", "text");
      const all = await Promise.all(Array.from({ length: 20 }, (_, i) => sandbox.shell("cat f; echo " + i)));
      console.log(timedOut, all.map(({ output }) => output).join("") === all.map((_, i) => "text" + i + "\\n").join(""));
      ${end}`;
    const ends = [
      "await sandbox.close();",
      "",
      'sandbox.shell("sleep 30").catch(() => {}); process.exit();',
      `const inWorker = ${JSON.stringify(`${pretend} import("cloudsandbox").then(async ({ LocalSandbox }) => {
         const sandbox = new LocalSandbox({ trusted: true });
         await sandbox.shell("true");
         sandbox.shell("sleep 30").catch(() => {});
         setTimeout(() => process.exit(), 50);
       })`)};
       for (let i = 0; i < 2; i++) new Worker(inWorker, { eval: true });
       const terminated = new Worker(inWorker.replace("process.exit()", "0"), { eval: true });
       setTimeout(() => terminated.terminate(), 400);`,
    ];
    const results = await Promise.all(ends.map((end) => runNode(program(end))));
    for (const result of results) assert.deepEqual({ ...result, signal: null }, { code: 0, hung: false, signal: null, stderr: "", stdout: "true true\n" });
  });
});

describe("misuse", () => {
  const { Sandbox } = native();

  test("a wrong receiver throws a TypeError", () => {
    const sandbox = make();
    const receivers = [
      {},
      undefined,
      null,
      1,
      "x",
      Symbol("s"),
      [],
      () => {},
      Sandbox,
      Sandbox.prototype,
      Object.create(sandbox),
      Object.create(Sandbox.prototype),
      new Proxy(sandbox, {}),
      new Map(),
      Buffer.alloc(1),
    ];
    const methods = ["start", "exec", "write", "read", "list", "close", "cancel"];
    for (const receiver of receivers) {
      for (const method of methods) {
        assert.throws(() => Sandbox.prototype[method].call(receiver, 1), TypeError);
      }
      for (const name of ["id", "capabilities"]) {
        const { get } = Object.getOwnPropertyDescriptor(Sandbox.prototype, name);
        assert.throws(() => get.call(receiver), TypeError);
      }
    }
  });

  test("the constructor throws, also for a subclass", () => {
    assert.throws(() => Sandbox("local", "{}"), TypeError);
    for (const args of [
      [],
      [1, "{}"],
      ["local"],
      ["local", {}],
      ["local", null],
      ["local\0x", OPTIONS],
      [{}, "{}"],
    ]) {
      assert.throws(() => new Sandbox(...args), TypeError);
    }
    class Sub extends Sandbox {}
    assert.throws(
      () => new Sub("local", "["),
      (error) => error.sbx?.code === "ERR_SANDBOX_INVALID_ARG",
    );
    const sub = new Sub("local", OPTIONS);
    assert.equal(sub.id, null);
    const other = Reflect.construct(Sandbox, ["local", OPTIONS], Map);
    assert.ok(other instanceof Map);
  });

  test("bad options throw an Error with the plain object", () => {
    assert.throws(
      () => new Sandbox("nope", "{}"),
      ({ message, sbx }) => {
        assert.ok(message.includes("nope"));
        assert.deepEqual(sbx, {
          name: "EUNSUPPORTED",
          code: "ERR_SANDBOX_UNSUPPORTED",
          message,
          status: 0,
          provider: null,
          retryable: false,
          mayHaveRun: false,
        });
        return true;
      },
    );
  });

  test("wrong arguments throw a TypeError that names the argument", () => {
    const sandbox = make();
    const ok = { kind: "shell", text: "true" };
    const cases = [
      [() => sandbox.start("1"), "callId"],
      [() => sandbox.start(-1), "callId"],
      [() => sandbox.start(1.5), "callId"],
      [() => sandbox.start(NaN), "callId"],
      [() => sandbox.exec(1), "spec"],
      [() => sandbox.exec(1, null), "spec"],
      [() => sandbox.exec(1, {}), "spec.kind"],
      [() => sandbox.exec(1, { kind: "other" }), "spec.kind"],
      [() => sandbox.exec(1, { ...ok, text: 1 }), "spec.text"],
      [() => sandbox.exec(1, { kind: "code", text: "1" }), "spec.language"],
      [() => sandbox.exec(1, { kind: "argv", argv: "ls" }), "spec.argv"],
      [() => sandbox.exec(1, { kind: "argv", argv: ["ls", 1] }), "spec.argv"],
      [() => sandbox.exec(1, { kind: "argv", argv: new Array(2 ** 32 - 1) }), "spec.argv"],
      [() => sandbox.exec(1, { ...ok, cwd: {} }), "spec.cwd"],
      [() => sandbox.exec(1, { ...ok, env: {} }), "spec.env"],
      [() => sandbox.exec(1, { ...ok, env: ["A"] }), "spec.env"],
      [() => sandbox.exec(1, { ...ok, stdin: "text" }), "spec.stdin"],
      [() => sandbox.exec(1, { ...ok, stdin: new Uint16Array(1) }), "spec.stdin"],
      [() => sandbox.exec(1, { ...ok, stdin: new ArrayBuffer(1) }), "spec.stdin"],
      [() => sandbox.exec(1, { ...ok, timeoutMs: -1 }), "spec.timeoutMs"],
      [() => sandbox.exec(1, { ...ok, timeoutMs: NaN }), "spec.timeoutMs"],
      [() => sandbox.exec(1, { ...ok, timeoutMs: "1" }), "spec.timeoutMs"],
      [() => sandbox.exec(1, { ...ok, maxOutputBytes: Infinity }), "spec.maxOutputBytes"],
      [() => sandbox.exec(1, { ...ok, truncate: "tail" }), "spec.truncate"],
      [() => sandbox.exec(1, { ...ok, mergeStreams: 1 }), "spec.mergeStreams"],
      [() => sandbox.exec(1, ok, {}), "onOutput"],
      [() => sandbox.write(1, 2, new Uint8Array(1)), "path"],
      [() => sandbox.write(1, "f", [1]), "bytes"],
      [() => sandbox.read(1, "f"), "maxBytes"],
      [() => sandbox.list(1, 2 ** 53), "maxEntries"],
      [() => sandbox.cancel({}), "callId"],
    ];
    for (const [call, name] of cases) {
      assert.throws(call, (error) => error instanceof TypeError && error.message.includes(name), name);
    }
    assert.equal(sandbox.cancel(12345), undefined, "an unknown call is no mistake");
    assert.equal(sandbox.id, null, "nothing was started");
  });

  test("what a getter or a proxy throws comes out", () => {
    const sandbox = make();
    const boom = new Error("boom");
    const thrower = () => {
      throw boom;
    };
    for (const name of [
      "kind",
      "text",
      "language",
      "argv",
      "cwd",
      "env",
      "stdin",
      "timeoutMs",
      "maxOutputBytes",
      "truncate",
      "mergeStreams",
    ]) {
      const spec = Object.defineProperty({ kind: "shell", text: "true" }, name, { get: thrower });
      assert.throws(
        () => sandbox.exec(1, spec),
        (error) => error === boom,
        name,
      );
    }
    assert.throws(
      () => sandbox.exec(1, new Proxy({}, { get: thrower })),
      (error) => error === boom,
    );
    const argv = Object.defineProperty(["ls"], 0, { get: thrower });
    assert.throws(
      () => sandbox.exec(1, { kind: "argv", argv }),
      (error) => error === boom,
    );
  });

  test("input is read once everything else was: a getter that detaches it does no harm", async () => {
    const sandbox = make();
    const stdin = new Uint8Array(1 << 16).fill(65);
    const spec = {
      kind: "shell",
      stdin,
      get text() {
        structuredClone(stdin.buffer, { transfer: [stdin.buffer] });
        return "wc -c";
      },
    };
    const { output } = await sandbox.exec(1, spec);
    assert.equal(output.bytes.toString().trim(), "0");
    await sandbox.close(5000);
  });

  test("input is copied: later changes are not seen", async () => {
    const sandbox = make();
    const bytes = new Uint8Array(1 << 16).fill(65);
    const shared = new Uint8Array(new SharedArrayBuffer(4)).fill(66);
    const run = sandbox.exec(1, { kind: "shell", text: "sleep 0.1; tr -d A | wc -c", stdin: bytes });
    const write = sandbox.write(2, "f", bytes);
    const fromShared = sandbox.write(3, "g", shared);
    bytes.fill(0);
    structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
    assert.equal((await run).output.bytes.toString().trim(), "0");
    await Promise.all([write, fromShared]);
    assert.equal((await sandbox.read(4, "f", 0)).toString("latin1"), "A".repeat(1 << 16));
    assert.equal((await sandbox.read(5, "g", 0)).toString("latin1"), "BBBB");
    await sandbox.close(5000);
  });

  test("strings go over by length: U+0000 reaches the core, which refuses it in words", async () => {
    const sandbox = make();
    for (const call of [
      () => sandbox.exec(1, { kind: "shell", text: "echo a\0; echo b" }),
      () => sandbox.exec(1, { kind: "argv", argv: ["echo", "a\0b"] }),
      () => sandbox.exec(1, { kind: "shell", text: "true", env: ["A", "x\0y"] }),
      () => sandbox.exec(1, { kind: "shell", text: "true", cwd: "a\0b" }),
      () => sandbox.write(1, "a\0b", new Uint8Array(1)),
      () => sandbox.read(1, "a\0b", 0),
    ]) {
      const error = await rejection(call());
      assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG");
      assert.ok(!(error instanceof Error), "a plain object");
      assert.ok(error.message.length > 10);
    }
  });

  test("text of any size", async () => {
    const sandbox = make();
    const { exitCode, output } = await sandbox.exec(1, {
      kind: "code",
      language: "python",
      text: `x = '${"é".repeat(4_000_000)}'\nprint(len(x))`,
    });
    assert.deepEqual([exitCode, output.bytes.toString()], [0, "4000000\n"]);
    await sandbox.close(5000);
  });

  test("a dropped object frees what it has; a call in flight keeps it", async (t) => {
    const go = path.join(tempDir(t), "go");
    const { stdout, stderr, code } = await runNode(
      `${quiet}
       import { writeFileSync } from "node:fs";
       import { native, guardPath } from "./lib/native.js";
       const options = JSON.stringify({ guardPath: guardPath(), nodePath: process.execPath });
       const registry = new FinalizationRegistry(() => freed++);
       let freed = 0;
       const { Sandbox } = native();
       const pending = (() => {
         const busy = new Sandbox("local", options);
         registry.register(busy);
         return busy.exec(1, { kind: "shell", text: "while [ ! -e ${go} ]; do sleep 0.01; done; echo kept" });
       })();
       for (let i = 0; i < 200; i++) registry.register(new Sandbox("local", options));
       while (freed <= 100) {
         await new Promise((resolve) => setTimeout(resolve, 10));
         gc();
       }
       const before = freed;
       writeFileSync(${JSON.stringify(go)}, "");
       console.log(before < 201, (await pending).output.bytes.toString().trim());`,
      { flags: ["--expose-gc"] },
    );
    assert.deepEqual({ stdout, stderr, code }, { stdout: "true kept\n", stderr: "", code: 0 });
  });
});

describe("callbacks", () => {
  test("what onOutput throws is an uncaught exception, and the result still comes", async () => {
    const { stdout, stderr, code } = await runNode(
      `import { native, guardPath } from "./lib/native.js";
       process.on("uncaughtException", (error) => console.log("uncaught", error.message));
       const sandbox = new (native().Sandbox)("local", JSON.stringify({ guardPath: guardPath(), nodePath: process.execPath }));
       const result = await sandbox.exec(1, { kind: "shell", text: "echo x" }, () => { throw new Error("mine"); });
       console.log(result.outcome, result.output.bytes.toString().trim());`,
    );
    assert.deepEqual({ stdout, stderr, code }, { stdout: "uncaught mine\nexited x\n", stderr: "", code: 0 });
  });

  test("without a handler it ends the process as any uncaught exception does", async () => {
    const { stderr, code } = await runNode(
      `import { native, guardPath } from "./lib/native.js";
       const sandbox = new (native().Sandbox)("local", JSON.stringify({ guardPath: guardPath(), nodePath: process.execPath }));
       await sandbox.exec(1, { kind: "shell", text: "echo x; sleep 20" }, () => { throw new Error("mine"); });`,
    );
    assert.equal(code, 1);
    assert.match(stderr, /Error: mine/);
  });

  test("reactions of promises and nextTick callbacks run at once, in order", async () => {
    const sandbox = make();
    const order = [];
    await sandbox
      .exec(1, { kind: "shell", text: "echo x" }, () => {
        order.push("output");
        process.nextTick(() => order.push("tick"));
        queueMicrotask(() => order.push("microtask"));
      })
      .then(() => order.push("result"));
    assert.deepEqual(
      order.filter((item) => item !== "result"),
      ["output", "tick", "microtask"],
    );
    assert.ok(order.includes("result"));
    await sandbox.close(5000);
  });

  test("the library may be called from onOutput", async () => {
    const sandbox = make();
    let inner;
    const outer = sandbox.exec(7, { kind: "shell", text: "echo go; sleep 20" }, () => {
      inner ??= sandbox.exec(8, { kind: "shell", text: "echo inner" });
      sandbox.cancel(7);
      sandbox.cancel(7);
    });
    assert.equal((await outer).outcome, "cancelled");
    assert.equal((await inner).output.bytes.toString(), "inner\n");
    await sandbox.close(5000);
  });

  test("calls with one number: cancel ends one of them, the rest go on", async () => {
    const sandbox = make();
    const both = [1, 2].map(() => sandbox.exec(5, { kind: "shell", text: "sleep 0.5; echo end" }));
    await sandbox.start(6);
    sandbox.cancel(5);
    const outcomes = (await Promise.all(both)).map(({ outcome }) => outcome).sort();
    assert.deepEqual(outcomes, ["cancelled", "exited"]);
    await sandbox.close(5000);
  });
});
