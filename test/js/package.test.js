// The package from outside: entry points, import and require, what importing does, bundling, types.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { describe, test } from "node:test";

import * as root from "cloudsandbox";
import * as toolkits from "cloudsandbox/toolkits";
import { build } from "esbuild";

import { ROOT, copyPackage, runNode } from "../support/node.js";
import { tempDir } from "../support/temp.js";

const manifest = JSON.parse(readFileSync(path.join(ROOT, "package.json"), "utf8"));

const ROOT_NAMES = [
  "AgentCoreSandbox", "AgentCoreSandboxToolkit",
  "DaytonaSandbox", "DaytonaSandboxToolkit", "DockerSandbox", "DockerSandboxToolkit", "E2BSandbox", "E2BSandboxToolkit", "HttpSandbox", "HttpSandboxToolkit",
  "LocalSandbox", "LocalSandboxToolkit", "ModalSandbox", "ModalSandboxToolkit", "PathSecurityError", "SANDBOX_ERROR_CODES", "SandboxAgent", "SandboxError", "SandboxToolkit", "Toolkit",
  "VercelSandbox", "VercelSandboxToolkit", "collectToolkitTools", "createSandbox", "defineTool", "describeToolLibrary", "listSandboxProviders",
  "registerSandboxProvider", "removeStaleDockerSandboxes",
];
const TOOLKIT_NAMES = [
  "AgentCoreSandbox", "AgentCoreSandboxToolkit",
  "DaytonaSandbox", "DaytonaSandboxToolkit", "DockerSandbox", "DockerSandboxToolkit", "E2BSandbox", "E2BSandboxToolkit", "HttpSandbox", "HttpSandboxToolkit",
  "LocalSandbox", "LocalSandboxToolkit", "ModalSandbox", "ModalSandboxToolkit", "SandboxAgent", "SandboxToolkit", "Toolkit",
  "VercelSandbox", "VercelSandboxToolkit", "collectToolkitTools", "describeToolLibrary",
];

describe("examples", { concurrency: 2 }, () => {
  for (const name of ["e2b-agent.ts", "daytona-agent.ts", "two-providers.js", "http-agent.js", "vercel-agent.ts", "agentcore-agent.ts", "modal-agent.ts"]) {
    test(`${name} without a key shows the way without one`, () => {
      const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => !/^(E2B|DAYTONA|SANDBOX_HTTP|VERCEL|AWS|MODAL)_/.test(key)));
      const args = ["--import", "./scripts/ts-loader.mjs", `examples/${name}`];
      const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: ROOT, env, encoding: "utf8" });
      assert.deepEqual([status, stdout], [1, ""], stderr);
      assert.match(stderr, new RegExp(`_(API_KEY|URL|TOKEN|KEY_ID|TOKEN_ID) is not set\\..* npm run example examples/${name} -- --emulator\n$`));
    });
  }
});

describe("entry points", () => {
  test("the names of both, and the same objects behind them", () => {
    assert.deepEqual(Object.keys(root), ROOT_NAMES);
    assert.deepEqual(Object.keys(toolkits), TOOLKIT_NAMES);
    for (const name of TOOLKIT_NAMES) assert.equal(toolkits[name], root[name], name);
  });

  test("require() gives what import gives", () => {
    const require = createRequire(import.meta.url);
    for (const name of ROOT_NAMES) assert.equal(require("cloudsandbox")[name], root[name], name);
    for (const name of TOOLKIT_NAMES) assert.equal(require("cloudsandbox/toolkits")[name], root[name], name);
    assert.equal(require("cloudsandbox/package.json").name, "cloudsandbox");
  });

  test("every declared file exists, and what is not declared cannot be reached", async () => {
    const { exports, files, main, types } = manifest;
    const filesOf = (entry) => (typeof entry === "string" ? [entry] : Object.values(entry).flatMap(filesOf));
    const declared = [main, types, ...filesOf(exports)];
    for (const file of [...declared, ...files]) assert.ok(existsSync(path.join(ROOT, file)), file);
    await assert.rejects(import("cloudsandbox/lib/sandbox.js"), { code: "ERR_PACKAGE_PATH_NOT_EXPORTED" });
    const dependencies = Object.keys(manifest.dependencies);
    assert.deepEqual(dependencies, ["ignore", "node-addon-api"], "patterns of files, and headers for the build");
  });
});

describe("the scripts of the repository", () => {
  /** Runs `npm run quickstart` where there is nothing but these programs; what it says, when it fails. */
  function quickstart(t, programs) {
    const bin = tempDir(t);
    for (const name of programs) {
      const found = spawnSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).stdout.trim();
      symlinkSync(found, path.join(bin, name));
    }
    const [program, ...args] = manifest.scripts.quickstart.split(" ");
    const options = { cwd: ROOT, env: { PATH: bin }, encoding: "utf8" };
    const run = spawnSync(path.join(bin, program), args, options);
    assert.equal(run.status, 1, run.stderr);
    assert.equal(run.stdout, "");
    return run.stderr;
  }

  test("on a system without apt-get they name what is missing, once, and how it is installed elsewhere", (t) => {
    const said = quickstart(t, ["sh", "bash", "node", "npm", "dirname", "id", "cat"]);
    assert.match(said, /^cloudsandbox: missing here: build-essential python3 git /);
    for (const system of ["Debian", "Fedora", "Alpine", "macOS"]) assert.match(said, new RegExp(`^  ${system}`, "m"));
  });

  test("an example before the set-up says what is missing, in one line", (t) => {
    const dir = tempDir(t);
    copyFileSync(path.join(ROOT, "scripts/ts-loader.mjs"), path.join(dir, "ts-loader.mjs"));
    const run = spawnSync(process.execPath, ["--import", "./ts-loader.mjs", "any.ts"], { cwd: dir, encoding: "utf8" });
    assert.equal(run.status, 1);
    assert.match(run.stderr, /^cloudsandbox: the examples need what `npm run quickstart` sets up.*\n$/);
  });

  test("without bash, or without Node.js, they say that", (t) => {
    assert.match(quickstart(t, ["sh"]), /^cloudsandbox: bash is needed .*apk add bash/);
    assert.match(quickstart(t, ["sh", "bash", "dirname"]), /^cloudsandbox: Node\.js 20\.19 or newer is needed/);
  });
});

describe("importing", () => {
  test("touches no file but its own, starts nothing, connects nowhere, loads no binary", async () => {
    const { stdout, stderr } = await runNode(
      `import { createRequire, syncBuiltinESMExports } from "node:module";
       const require = createRequire(import.meta.url);
       const seen = [];
       const descriptors = new Set();
       const own = ${JSON.stringify(ROOT)};
       function watch(object, label) {
         for (const [name, value] of Object.entries(object)) {
           if (typeof value !== "function" || /^[A-Z_]/.test(name)) continue;
           object[name] = (...args) => {
             const file = String(args[0]?.pathname ?? args[0]);
             const isOwn = file.startsWith(own + "/lib/") || file.startsWith(own + "/package.json") || descriptors.has(args[0]);
             if (!isOwn) seen.push(label + "." + name + " " + file);
             const result = value.apply(object, args);
             // Newer versions of Node's loader open a module's file, and read from the descriptor.
             if (isOwn && name === "openSync") descriptors.add(result);
             if (name === "closeSync") descriptors.delete(args[0]);
             return result;
           };
         }
       }
       for (const name of ["fs", "fs/promises", "child_process", "net", "tls", "dns", "http", "https", "worker_threads"]) watch(require(name), name);
       const dlopen = process.dlopen;
       process.dlopen = (...args) => (seen.push("dlopen"), dlopen.apply(process, args));
       syncBuiltinESMExports();
       // Reading the modules' files may still be ending; what stood open before is the program's.
       const resources = () => process.getActiveResourcesInfo().filter((name) => !/^(CloseReq|FSReq)/.test(name));
       const before = resources().length;
       const { SandboxAgent, SandboxToolkit, defineTool } = await import("cloudsandbox");
       await import("cloudsandbox/toolkits");
       const none = async () => {};
       const fake = { providerId: "own", start: none, run: none, shell: none, writeFile: none, readFile: none, close: none };
       new SandboxToolkit(fake).getTools();
       new SandboxAgent({ backend: "unix-local" });
       console.log(JSON.stringify([seen, resources().slice(before)]));`,
    );
    assert.equal(stderr, "");
    assert.deepEqual(JSON.parse(stdout), [[], []]);
  });
});

describe("bundling", () => {
  const source = `import { SandboxToolkit, LocalSandbox } from "cloudsandbox";
    const none = async () => {};
    const own = { providerId: "own", start: none, run: none, shell: none, writeFile: none, readFile: none, close: none };
    console.log(new SandboxToolkit(own).getTools()[0].name);
    try { console.log(new LocalSandbox({ isolation: "none" }).providerId); } catch (error) { console.log(error.code, /external/.test(error.message)); }`;

  /** Bundles `source` in a project of its own that has the package installed, and runs the bundle. */
  async function bundleAndRun(t, options) {
    const project = tempDir(t);
    mkdirSync(path.join(project, "node_modules"));
    symlinkSync(ROOT, path.join(project, "node_modules/cloudsandbox"));
    writeFileSync(path.join(project, "package.json"), '{ "type": "module" }');
    writeFileSync(path.join(project, "main.js"), source);
    const outfile = path.join(project, "out/bundle.js");
    const { warnings } = await build({
      absWorkingDir: project, entryPoints: ["main.js"], outfile, bundle: true, platform: "node", format: "esm", logLevel: "silent", ...options,
    });
    assert.deepEqual(warnings, []);
    const run = spawnSync(process.execPath, [outfile], { encoding: "utf8" });
    assert.equal(run.stderr, "");
    return run.stdout;
  }

  test("C068 with the package external everything works", async (t) => {
    assert.equal(await bundleAndRun(t, { external: ["cloudsandbox"] }), "sandbox_own_run\nunix-local\n");
  });

  test("bundled in, all but the native part works, and the error says what to do", async (t) => {
    assert.equal(await bundleAndRun(t, {}), "sandbox_own_run\nERR_SANDBOX_MISSING_BINARY true\n");
  });
});

describe("C173 bundled into one CommonJS file", () => {
  const source = `import { E2BSandbox, LocalSandbox, SandboxToolkit } from "cloudsandbox";
    console.log("loaded");
    const none = async () => {};
    const own = { providerId: "own", start: none, run: none, shell: none, writeFile: none, readFile: none, close: none };
    console.log(new SandboxToolkit(own).getTools()[0].name);
    for (const make of [() => new E2BSandbox({ apiKey: "k" }), () => new LocalSandbox({ isolation: "none" })]) {
      try { make(); } catch (error) { console.log(error.code, error.message.replace(/\\s+/g, " ")); }
    }`;

  for (const minify of [false, true]) {
    test(`C173 it loads; what needs the binary says how to keep the package external${minify ? ", minified" : ""}`, async (t) => {
      const project = tempDir(t);
      mkdirSync(path.join(project, "node_modules"));
      symlinkSync(ROOT, path.join(project, "node_modules/cloudsandbox"));
      writeFileSync(path.join(project, "main.js"), source);
      const outfile = path.join(project, "out.cjs");
      await build({ absWorkingDir: project, entryPoints: ["main.js"], outfile, bundle: true, platform: "node", format: "cjs", logLevel: "silent", minify });
      const run = spawnSync(process.execPath, [outfile], { encoding: "utf8" });
      assert.equal(run.stderr, "");
      const [loaded, tool, ...refused] = run.stdout.trim().split("\n");
      assert.deepEqual([loaded, tool, refused.length], ["loaded", "sandbox_own_run", 2]);
      for (const words of refused) {
        assert.match(words, /^ERR_SANDBOX_MISSING_BINARY cloudsandbox: the native part cannot be loaded/);
        assert.match(words, /Reason: this is a bundle in one CommonJS file/);
        assert.match(words, /mark cloudsandbox as external \(esbuild: --external:cloudsandbox\)/);
      }
    });
  }
});

describe("the native part", () => {
  const folder = path.join(ROOT, "build/Release");

  test("C160 what it is linked with stands beside it, or in every image that has Node.js", { skip: process.platform !== "linux" }, () => {
    for (const file of readdirSync(folder).filter((name) => /\.node$|^sbx_guard$|\.so(\.|$)/.test(name))) {
      const { stdout } = spawnSync("ldd", [path.join(folder, file)], { encoding: "utf8" });
      const elsewhere = [...stdout.matchAll(/^\s*(\S+) => (\S+)/gm)].filter(([, , found]) => path.dirname(found) !== folder);
      for (const [, name] of elsewhere) {
        assert.match(name, /^(libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s|ld-linux|ld-musl|libc\.musl|lib[atu]b?san)[-.\w]*/, `${file} needs ${name}`);
        assert.doesNotMatch(name, /cjson|curl/);
      }
    }
  });

  const program = `import { LocalSandbox } from "cloudsandbox";
    try {
      const sandbox = new LocalSandbox({ isolation: "none" });
      console.log(JSON.stringify(await sandbox.shell("echo ran")));
      await sandbox.close();
    } catch (error) { console.log(error.code, error.message); }`;

  test("C180 a helper program that has lost its execute bit gets it back", async (t) => {
    const cwd = copyPackage(t);
    chmodSync(path.join(cwd, "build/Release/sbx_guard"), 0o644);
    const { stdout, stderr } = await runNode(program, { cwd });
    assert.equal(stderr, "");
    assert.equal(stdout, '{"output":"ran\\n","exitCode":0}\n');
  });

  test("C180 where that is not allowed, one sentence says what to do", async (t) => {
    const cwd = copyPackage(t);
    const guard = path.join(cwd, "build/Release/sbx_guard");
    chmodSync(guard, 0o644);
    const refusing = `process.getBuiltinModule("node:fs").chmodSync = () => { throw new Error("EPERM"); };`;
    const { stdout } = await runNode(program.replace(/^import .*$/m, `${refusing} const { LocalSandbox } = await import("cloudsandbox");`), { cwd });
    assert.match(stdout, /^ERR_SANDBOX_MISSING_BINARY cloudsandbox: its helper program may not be executed\. Run: chmod \+x \//);
    assert.ok(stdout.includes(guard));
    rmSync(guard);
    assert.match((await runNode(program, { cwd })).stdout, /^ERR_SANDBOX_MISSING_BINARY .*\nReason: the helper program \S+sbx_guard is not there\n/);
  });
});

describe("types", { concurrency: 1 }, () => {
  test("C174 every sub-path has types under the old resolution (node10)", (t) => {
    const project = tempDir(t);
    for (const file of ["main.ts", "tsconfig.json"]) copyFileSync(path.join(ROOT, "test/types/node10", file), path.join(project, file));
    // A package does not see itself there.
    mkdirSync(path.join(project, "node_modules"));
    symlinkSync(ROOT, path.join(project, "node_modules/cloudsandbox"));
    const subPaths = Object.keys(manifest.exports).filter((name) => name !== "." && !name.endsWith(".json"));
    const source = readFileSync(path.join(project, "main.ts"), "utf8");
    for (const name of subPaths) assert.ok(source.includes(`"cloudsandbox${name.slice(1)}"`), name);
    const tsc = path.join(ROOT, "node_modules/typescript/bin/tsc");
    const run = spawnSync(process.execPath, [tsc, "-p", project], { encoding: "utf8" });
    assert.equal(run.stdout + run.stderr, "");
    assert.equal(run.status, 0);
  });

  // "plain" has neither Node's types nor the DOM's, and a CommonJS file.
  for (const compiler of ["typescript", "typescript-7"]) {
    for (const project of ["node16", "bundler", "plain"]) {
      test(`C068 the type tests compile: ${project}, ${compiler}`, () => {
        const tsc = path.join(ROOT, "node_modules", compiler, "bin/tsc");
        const run = spawnSync(process.execPath, [tsc, "-p", `test/types/tsconfig.${project}.json`], { cwd: ROOT, encoding: "utf8" });
        assert.equal(run.stdout + run.stderr, "");
        assert.equal(run.status, 0);
      });
    }
  }
});
