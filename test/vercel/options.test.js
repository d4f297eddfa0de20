// What a VercelSandbox may be told, where its credentials come from, and what a create then says.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { inspect } from "node:util";

import { SandboxAgent, VercelSandbox, VercelSandboxToolkit } from "cloudsandbox";

import { rejection } from "../support/wait.js";
import { CREATE, DELETE, FIND, STOP, open, sent, startEmulator } from "./support.js";

const TRIPLE = { token: "t", teamId: "team", projectId: "prj" };
const jwt = (claims) => `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.c2ln`;
const LATER = Math.floor(Date.now() / 1000) + 3600;

const saved = {};
beforeEach(() => {
  for (const name of Object.keys(process.env).filter((it) => it.startsWith("VERCEL_"))) {
    saved[name] = process.env[name];
    delete process.env[name];
  }
});
afterEach(() => {
  for (const name of Object.keys(process.env).filter((it) => it.startsWith("VERCEL_"))) delete process.env[name];
  Object.assign(process.env, saved);
});

const refused = (options, code, words) => {
  assert.throws(
    () => new VercelSandbox(options),
    (error) => error.code === `ERR_SANDBOX_${code}` && words.test(error.message) && !error.message.includes("canary"),
    inspect(options),
  );
};

describe("credentials", () => {
  test("all three, as options or variables, or what is missing is named", () => {
    refused({}, "MISSING_KEY", /VERCEL_TOKEN.*VERCEL_OIDC_TOKEN/);
    refused({ token: "canary" }, "MISSING_KEY", /missing: `teamId` and `projectId`/);
    refused({ token: "canary", teamId: "t" }, "MISSING_KEY", /missing: `projectId`/);
    refused({ teamId: "t", projectId: "p" }, "MISSING_KEY", /pass `token`/);
    Object.assign(process.env, { VERCEL_TOKEN: "canary", VERCEL_TEAM_ID: "t" });
    refused({}, "MISSING_KEY", /missing: `projectId`/);
    process.env.VERCEL_PROJECT_ID = "p";
    new VercelSandbox();
    new VercelSandbox({ ...TRIPLE, teamId: undefined });
    refused({ ...TRIPLE, token: "canary canary" }, "INVALID_ARG", /token/);
  });

  test("an OIDC token names its team and its project", async (t) => {
    const token = jwt({ owner_id: "team_oidc", project_id: "prj_oidc", exp: LATER });
    const { emulator, engine, make } = await startEmulator(t, { tokens: [token], teamId: "team_oidc", projectId: "prj_oidc" });
    const { apiUrl: baseURL } = emulator;
    await make({ baseURL, token: undefined, teamId: undefined, projectId: undefined, oidcToken: token }).start();
    process.env.VERCEL_OIDC_TOKEN = token;
    // It is set where programs are deployed, and says nothing by itself.
    process.env.VERCEL_PROJECT_ID = "prj_other";
    const sandbox = new VercelSandbox({ baseURL });
    await sandbox.start();
    await sandbox.close();
    assert.deepEqual(sent(engine, CREATE).map(({ projectId }) => projectId), ["prj_oidc", "prj_oidc"]);
    assert.ok(engine.requests(CREATE).every(({ path }) => path.endsWith("?teamId=team_oidc")));
  });

  test("an OIDC token that is none, has expired, or comes with others", () => {
    for (const oidcToken of ["canary", "a.canary.c", jwt({ owner_id: "canary" }), jwt(["canary"]), jwt({ owner_id: 1, project_id: "canary" })]) {
      refused({ oidcToken }, "INVALID_ARG", /owner_id and project_id/);
    }
    const claims = { owner_id: "o", project_id: "p" };
    refused({ oidcToken: jwt({ ...claims, exp: 1700000000 }) }, "AUTH", /expired at 2023-11-14T22:13:20.000Z.*vercel env pull/);
    refused({ ...TRIPLE, oidcToken: jwt({ ...claims, exp: LATER }) }, "INVALID_ARG", /names its team and project itself/);
    process.env.VERCEL_OIDC_TOKEN = "canary";
    refused({}, "INVALID_ARG", /VERCEL_OIDC_TOKEN/);
    // Who gives a token of his own does not need that one.
    new VercelSandbox(TRIPLE);
  });

  test("lateAuth: the first use rejects, and nothing is sent", async () => {
    const sandbox = new VercelSandbox({ lateAuth: true });
    assert.equal((await rejection(sandbox.start())).code, "ERR_SANDBOX_MISSING_KEY");
    await sandbox.close();
  });

  test("wrong ones are told from wrong teams, and never shown", async (t) => {
    const { make } = await startEmulator(t);
    for (const options of [{ token: "canary" }, { teamId: "other" }, { projectId: "other" }]) {
      const error = await rejection(make(options).start());
      assert.equal(error.code, "ERR_SANDBOX_FORBIDDEN");
      assert.match(error.message, /belong to this team/);
      assert.ok(!inspect(error).includes("canary"));
    }
  });
});

describe("options", () => {
  test("unknown ones are refused, with what was meant", () => {
    for (const [name, meant] of [
      ["apiKey", "token"], ["team", "teamId"], ["project", "projectId"], ["timeoutMs", "defaultTimeoutSeconds"], ["lifetime", "lifetimeSeconds"],
      ["cpus", "vcpus"], ["labels", "tags"], ["envs", "env"], ["template", "image"], ["network", "networkPolicy"], ["workspace", "name"],
    ]) {
      refused({ ...TRIPLE, [name]: "x" }, "INVALID_ARG", new RegExp(`there is no option \`${name}\`.*\`${meant}\``));
    }
  });

  test("wrong ones are named", () => {
    for (const [options, words] of [
      [{ lifetimeSeconds: 0 }, /lifetimeSeconds/], [{ lifetimeSeconds: 86401 }, /lifetimeSeconds/], [{ vcpus: 1.5 }, /vcpus/],
      [{ tags: { a: "", b: "", c: "", d: "", e: "" } }, /tags.*at most 4/], [{ env: { "a b": "canary" } }, /env/], [{ owned: true }, /owned/],
      [{ image: "i", runtime: "node24" }, /not both/], [{ baseURL: "canary" }, /baseURL/], [{ networkPolicy: "canary" }, /networkPolicy/],
      [{ networkPolicy: {} }, /says nothing/], [{ networkPolicy: { deny: ["x"] } }, /deny/], [{ networkPolicy: { allow: [7] } }, /allow/],
      [{ networkPolicy: { allow: { "x.com": ["canary"] } } }, /networkPolicy.allow.x.com/], [{ networkPolicy: { subnets: { block: [] } } }, /block/],
      [{ networkPolicy: null }, /networkPolicy/], [{ client: {} }, /speaks the provider's protocol itself/],
    ]) {
      refused({ ...TRIPLE, ...options }, "INVALID_ARG", words);
    }
  });

  test("what Vercel's client has and this class has not: unsupported, before anything is made", async (t) => {
    const { engine, emulator } = await startEmulator(t);
    const connection = { ...emulator.credentials, baseURL: emulator.apiUrl };
    for (const [name, value] of Object.entries({
      persistent: true, source: { type: "git" }, ports: [3000], mounts: [], snapshotExpiration: 1, keepLastSnapshots: 1,
      failoverRegions: ["x"], networkId: "x", memory: 4096,
    })) {
      refused({ ...connection, [name]: value }, "UNSUPPORTED", new RegExp(`\`${name}\` is not supported`));
      assert.throws(() => new VercelSandboxToolkit({ ...connection, [name]: value }), { code: "ERR_SANDBOX_UNSUPPORTED" });
    }
    new VercelSandbox({ ...connection, persistent: false });
    assert.equal(engine.log.length, 0);
  });

  test("a create says what was asked, and that nothing is kept", async (t) => {
    const { engine, make } = await startEmulator(t);
    await make().start();
    await make({
      name: "run-7", image: "vercel/sandbox/python:3.14", vcpus: 4, lifetimeSeconds: 600, region: "fra1", env: { A: "ä" }, tags: { app: "x" },
      networkPolicy: { allow: { "*.example.com": [{ transform: [{ headers: { a: "b" } }] }] }, subnets: { deny: ["10.0.0.0/8"] } },
    }).start();
    await make({ networkPolicy: "deny-all" }).start();
    const { projectId } = engine.log[0] && JSON.parse(engine.log[0].body);
    const [plain, full, denied] = sent(engine, CREATE);
    assert.match(plain.name, /^cloudsandbox-[0-9a-f]{32}$/);
    assert.deepEqual(plain, {
      projectId, timeout: 300_000, ports: [], persistent: false, tags: { cloudsandbox: plain.name.slice(13) }, name: plain.name,
    });
    assert.deepEqual(full, {
      projectId, timeout: 600_000, ports: [], persistent: false, resources: { vcpus: 4 }, image: "vercel/sandbox/python:3.14", region: "fra1",
      networkPolicy: { allow: { "*.example.com": [{ transform: [{ headers: { a: "b" } }] }] }, subnets: { deny: ["10.0.0.0/8"] } },
      env: { A: "ä" }, tags: { app: "x", cloudsandbox: full.tags.cloudsandbox }, name: "run-7",
    });
    assert.deepEqual(denied.networkPolicy, { mode: "deny-all" });
  });

  test("a runtime takes the older route", async (t) => {
    const { engine, make } = await startEmulator(t);
    const sandbox = make({ runtime: "node24" });
    assert.equal((await sandbox.run("1 + 1", { language: "python" })).exitCode, 0);
    assert.equal(engine.count("POST /v2/sandboxes"), 1);
    assert.equal(engine.count(CREATE), 0);
  });
});

describe("an existing sandbox", () => {
  test("by its name: not deleted, unless it is owned", async (t) => {
    const { emulator, engine, make } = await startEmulator(t);
    const first = make({ name: "kept" });
    await first.writeFile("f", "x");
    const second = make({ sandboxId: "kept" });
    assert.equal(await second.readFile("f"), "x");
    assert.equal(second.sandboxId, "kept");
    await second.close();
    assert.equal(engine.count(STOP) + engine.count(DELETE), 0);
    const third = make({ sandboxId: "kept", owned: true });
    await third.start();
    await third.close();
    assert.deepEqual(emulator.fleet.all(), []);
  });

  test("one that is stopped is resumed; one that is not there is not found", async (t) => {
    const { emulator, engine, make } = await startEmulator(t);
    await make({ name: "kept" }).start();
    emulator.expire("kept");
    const sandbox = make({ sandboxId: "kept" });
    assert.equal((await sandbox.shell("echo on")).output, "on\n");
    assert.match(engine.requests(FIND)[0].path, /&resume=true$/);
    assert.equal((await rejection(make({ sandboxId: "none" }).start())).code, "ERR_SANDBOX_NOT_FOUND");
  });
});

test("what a sandbox can do, and its lifetime", async (t) => {
  const { emulator, engine, sandbox } = await open(t, {}, { lifetimeSeconds: 60 });
  const { extend, lifetime, pause, contexts, kill, list, separateStreams } = sandbox.capabilities;
  assert.deepEqual([extend, lifetime, pause, contexts, kill, list, separateStreams], [true, false, false, false, true, true, true]);
  assert.equal((await rejection(sandbox.extendLifetime(60))).code, "ERR_SANDBOX_NOT_READY");
  await sandbox.start();
  for (const seconds of [0, 1.5, -1, 86401, "60"]) assert.equal((await rejection(sandbox.extendLifetime(seconds))).code, "ERR_SANDBOX_INVALID_ARG");
  await sandbox.extendLifetime(90);
  assert.equal(emulator.fleet.find(sandbox.sandboxId).session.timeout, 150_000);
  assert.deepEqual(sent(engine, "POST /extend-timeout"), [{ duration: 90_000 }]);
});

test("SandboxAgent over it", async (t) => {
  const { sandbox } = await open(t);
  const agent = new SandboxAgent({ backend: "remote", remote: sandbox });
  await agent.start();
  assert.equal((await agent.shell("echo hi")).output, "hi\n");
  await agent.close();
});
