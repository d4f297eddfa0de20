// The table that the conformance suite runs over. A provider joins with one row; no test knows a
// provider's name.
//
// A row:
//   name          what tests are labelled with
//   providerId    the port's providerId
//   facts         what the wire can and cannot do; tests read these, never the name
//   world(t)      one provider for one test, shared with no other test:
//                   make(options)    a sandbox of this provider, closed when the test ends
//                   existing()       ids of the sandboxes that exist at the provider now
//                   breakCreation()  from now on creating a sandbox fails; the function that it
//                                    returns mends that
//                   lose(sandbox)    the sandbox vanishes behind its object's back
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import path from "node:path";
import { after, test } from "node:test";

import { E2BSandbox, LocalSandbox, SandboxAgent } from "cloudsandbox";

import { makeCertificate } from "../emulators/certificate.js";
import { startE2B } from "../emulators/e2b/index.js";
import { replies } from "../emulators/engine.js";
import { removeTree, tempDir } from "../support/temp.js";
import { agentCoreRows } from "./agentcore.js";
import { daytonaRows } from "./daytona.js";
import { dockerAgents, dockerRows, engineRows } from "./docker.js";
import { httpRows } from "./http.js";
import { lineRows } from "./line.js";
import { modalRows } from "./modal.js";
import { vercelRows } from "./vercel.js";

/** Makes things that are closed when the test ends, after which `then` runs. */
function closer(t, then) {
  const open = [];
  t.after(async () => {
    await Promise.all(open.map((item) => item.close()));
    then?.();
  });
  return (item) => {
    open.push(item);
    return item;
  };
}

const local = {
  name: "local",
  providerId: "unix-local",
  facts: {
    // Languages of run(); the first is the default one.
    languages: ["python", "node", "shell"],
    // The merged output keeps the order in which the two streams were written.
    keepsStreamOrder: true,
    separatesStreams: true,
    // listFiles() works.
    listsFiles: true,
    // Commands run on this machine, so their processes and files can be looked at from a test.
    onThisMachine: true,
    // Names with control characters are refused by rule; elsewhere they are names like any other.
    refusesControlCharacters: true,
    // `~` in a path is the home of the sandbox's user.
    knowsHome: true,
    // What a command leaves in the background lives on: background.test.js. A provider without the flag
    // does not do it yet; the same holds for the next two.
    background: true,
    // bash where there is one, and `shell` names another: shell.test.js.
    choosesShell: true,
    // Code is a file in its working directory: main-file.test.js.
    mainFile: true,
    // A write takes the file's place in one step; elsewhere the daemon empties it and fills it.
    replacesFilesAtOnce: true,
    // spawn() works: spawn.test.js.
    spawns: true,
    // The settings of a manifest that are kept, besides those that all keep; and options that make room for them.
    manifest: { keeps: [] },
  },
  world(t) {
    const base = tempDir(t);
    const parent = path.join(base, "sandboxes");
    mkdirSync(parent);
    const track = closer(t, () => removeTree(parent));
    return {
      make: (options) => track(new LocalSandbox({ tempDir: parent, isolation: "none", ...options })),
      existing: () => readdirSync(parent),
      breakCreation() {
        rmSync(parent, { recursive: true });
        return () => mkdirSync(parent);
      },
      lose: (sandbox) => rmSync(sandbox.sandboxId, { recursive: true }),
    };
  },
};

/** The same behind namespaces and filters. A machine that cannot isolate says so, once, and has no row. */
const isolated = {
  name: "isolated",
  providerId: "isolated-local",
  facts: { ...local.facts, knowsHome: false, ownLoopback: true, manifest: { keeps: ['network.default: "deny"', "network.allowedHosts"] } },
  world(t) {
    const base = tempDir(t);
    const parent = path.join(base, "sandboxes");
    mkdirSync(parent);
    const track = closer(t, () => removeTree(parent));
    return {
      make: (options) => track(new LocalSandbox({ tempDir: parent, isolation: "required", ...options })),
      existing: () => readdirSync(parent),
      breakCreation() {
        rmSync(parent, { recursive: true });
        return () => mkdirSync(parent);
      },
      lose: (sandbox) => rmSync(sandbox.sandboxId, { recursive: true }),
    };
  },
};

/** Why this machine cannot isolate; undefined: it can. */
async function whyNotIsolated() {
  const sandbox = new LocalSandbox({ isolation: "required" });
  try {
    await sandbox.start();
    return undefined;
  } catch (error) {
    if (error.code !== "ERR_SANDBOX_ISOLATION_UNAVAILABLE") throw error;
    return error.message;
  } finally {
    await sandbox.close();
  }
}

async function isolatedRows() {
  const why = await whyNotIsolated();
  if (why === undefined) return [isolated];
  test("row isolated", { skip: `unavailable here: ${why}` });
  return [];
}

/**
 * E2B's emulator, one for all tests of a file; each world has an API key of its own there. With `tls` it
 * is reached over HTTP/2.
 */
async function e2b(name, tls) {
  const emulator = await startE2B({ tls, concurrencyLimit: 1000 });
  after(() => emulator.close());
  let worlds = 0;
  return {
    name,
    providerId: "e2b",
    facts: {
      languages: ["python", "node", "shell"],
      keepsStreamOrder: true,
      separatesStreams: true,
      listsFiles: true,
      onThisMachine: false,
      refusesControlCharacters: false,
      knowsHome: true,
      background: true,
      choosesShell: true,
      mainFile: true,
      replacesFilesAtOnce: false,
      manifest: { keeps: ["image", 'network.default: "deny"', "network.allowedHosts", "network.deniedHosts"] },
    },
    world(t) {
      const track = closer(t);
      const world = String((worlds += 1));
      const apiKey = `e2b_${world}`;
      emulator.settings.apiKeys.push(apiKey);
      const { apiUrl: baseURL, sandboxUrl } = emulator;
      const common = { apiKey, baseURL, sandboxUrl, ca: tls?.cert, metadata: { world } };
      return {
        make: (options) => track(new E2BSandbox({ ...common, ...options })),
        existing: () =>
          emulator.fleet.all().flatMap((sandbox) => (sandbox.metadata?.world === world ? [sandbox.id] : [])),
        breakCreation() {
          let broken = true;
          const where = (exchange) => broken && exchange.header("x-api-key") === apiKey;
          const failure = { instead: replies.json(403, { code: 403, message: "team is blocked" }) };
          emulator.engine.fault("POST /v2/sandboxes", failure, { where, times: Infinity });
          return () => {
            broken = false;
          };
        },
        lose: (sandbox) => emulator.lose(sandbox.sandboxId),
      };
    },
  };
}

/** Where real engines run, the suite is about them: npm run test:engines. */
const real = engineRows(closer);

const emulated = async () => [
  local,
  ...(await isolatedRows()),
  await e2b("e2b"),
  await e2b("e2bh2", makeCertificate(["127.0.0.1"])),
  ...(await daytonaRows(closer)),
  ...(await httpRows(closer)),
  ...(await vercelRows(closer)),
  ...(await agentCoreRows(closer)),
  ...(await modalRows(closer)),
  ...(await lineRows(closer)),
  ...(await dockerRows(closer)),
];

/** One row on this machine and one over a network, where only what is above the core is looked at: scripts/test-nodes. */
const isFirst = (row, index, rows) =>
  rows.findIndex(({ facts }) => facts.onThisMachine === row.facts.onThisMachine) === index;
const all = real.length > 0 ? real : await emulated();

export const providers = process.env.CLOUDSANDBOX_TEST_FEW_ROWS ? all.filter(isFirst) : all;

/**
 * Ways to have a SandboxAgent: its own local workspace, and one over each provider.
 *
 *   facts.abort  what a call that is aborted in flight does: "result" or "reason" (it rejects with it)
 *   facts.language  default language of run()
 *   world(t).make(config)  an agent, closed when the test ends
 */
export const agents = [
  {
    name: "unix-local agent",
    facts: { abort: "result", language: "node" },
    world(t) {
      const track = closer(t);
      return { make: (config) => track(new SandboxAgent({ backend: "unix-local", ...config })) };
    },
  },
  ...dockerAgents(providers.filter(({ providerId }) => providerId === "docker"), closer),
  ...providers.map((provider) => ({
    name: `agent over ${provider.name}`,
    facts: { abort: "reason", language: provider.facts.languages[0] },
    world(t) {
      const world = provider.world(t);
      const track = closer(t);
      return {
        make: (config) =>
          track(new SandboxAgent({ backend: "remote", remote: world.make(), ...config })),
      };
    },
  })),
];
