// Where credentials come from, when they are renewed, and what a clock that is wrong does. The emulator computes every
// signature once more: what it answers with 200 was signed with the right ones.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";

import { AgentCoreSandbox } from "cloudsandbox";

import { agentCoreReplies } from "../emulators/agentcore/errors.js";
import { startMetadata } from "../emulators/agentcore/metadata.js";
import { tempDir } from "../support/temp.js";
import { rejection } from "../support/wait.js";
import { INVOKE, START, open, runs, startEmulator, useVariables } from "./support.js";

/** An object without options of its own: everything else comes from the variables. */
function withVariables(t, { emulator, track }, variables, options) {
  useVariables(t, { AWS_ENDPOINT_URL_BEDROCK_AGENTCORE: emulator.url, HOME: "/nonexistent", ...variables });
  return track(new AgentCoreSandbox(options));
}

const pair = (emulator) => {
  const { accessKeyId, secretAccessKey, sessionToken } = emulator.credentials;
  return { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey, ...(sessionToken && { AWS_SESSION_TOKEN: sessionToken }) };
};

const TEMPORARY = { keys: [{ id: "ASIATEMPORARY", secret: "a/b+c", token: "TOKEN/1==" }] };

describe("credentials that are there", () => {
  test("options, with a token", async (t) => {
    const { sandbox } = await open(t, TEMPORARY);
    assert.equal((await sandbox.shell("echo hi")).output, "hi\n");
  });

  test("variables, with a token, and the region", async (t) => {
    const started = await startEmulator(t, { ...TEMPORARY, region: "eu-central-1" });
    const sandbox = withVariables(t, started, { ...pair(started.emulator), AWS_REGION: "eu-central-1" });
    assert.equal((await sandbox.shell("echo hi")).output, "hi\n");
  });

  const CONFIG = "[default]\nregion = us-east-1\n# remark\n[profile other]\nregion=eu-west-1\ns3 =\n  max = 1\n[profile \"sso one\"]\nsso_session = x\n";
  const secrets = ({ accessKeyId, secretAccessKey }) =>
    `[default]\naws_access_key_id = wrong\naws_secret_access_key = wrong\n\n[other]\r\n aws_x = y\naws_access_key_id=${accessKeyId}\r\naws_secret_access_key = ${secretAccessKey} ; mine\n[empty]\nx = 1\n`;
  const files = (t, emulator) => {
    const folder = tempDir(t);
    writeFileSync(path.join(folder, "config"), CONFIG);
    writeFileSync(path.join(folder, "credentials"), secrets(emulator.credentials));
    return { AWS_CONFIG_FILE: path.join(folder, "config"), AWS_SHARED_CREDENTIALS_FILE: path.join(folder, "credentials") };
  };

  test("a profile of the shared files, by its variable and by the option, with its region", async (t) => {
    const started = await startEmulator(t, { region: "eu-west-1" });
    const variables = files(t, started.emulator);
    const first = withVariables(t, started, { ...variables, AWS_PROFILE: "other" });
    assert.equal((await first.shell("echo hi")).output, "hi\n");
    const second = withVariables(t, started, { ...variables, AWS_ACCESS_KEY_ID: "wrong", AWS_SECRET_ACCESS_KEY: "wrong" }, { profile: "other" });
    assert.equal((await second.shell("echo hi")).output, "hi\n");
  });

  test("profiles that cannot be used are refused in words, and before anything is sent", async (t) => {
    const started = await startEmulator(t);
    useVariables(t, files(t, started.emulator));
    assert.throws(() => new AgentCoreSandbox({ profile: "none" }), { code: "ERR_SANDBOX_INVALID_ARG", message: /no profile "none"/ });
    assert.throws(() => new AgentCoreSandbox({ profile: "empty" }), { code: "ERR_SANDBOX_INVALID_ARG", message: /has no aws_access_key_id/ });
    assert.throws(() => new AgentCoreSandbox({ profile: "sso one" }), { code: "ERR_SANDBOX_UNSUPPORTED", message: /`sso_session`.*export-credentials/ });
    process.env.HOME = "/nonexistent";
    delete process.env.AWS_CONFIG_FILE;
    delete process.env.AWS_SHARED_CREDENTIALS_FILE;
    process.env.AWS_WEB_IDENTITY_TOKEN_FILE = "/x";
    assert.throws(() => new AgentCoreSandbox(), { code: "ERR_SANDBOX_UNSUPPORTED", message: /web identity/ });
  });

  test("halves and mixtures are refused", (t) => {
    useVariables(t, { HOME: "/nonexistent", AWS_EC2_METADATA_DISABLED: "true" });
    const refused = (options, words) => assert.throws(() => new AgentCoreSandbox(options), { code: "ERR_SANDBOX_INVALID_ARG", message: words });
    refused({ accessKeyId: "a" }, /together/);
    refused({ secretAccessKey: "canary" }, /together/);
    refused({ sessionToken: "canary" }, /goes with/);
    refused({ accessKeyId: "a", secretAccessKey: "b", profile: "p" }, /not both/);
    refused({ accessKeyId: "a", secretAccessKey: "b c" }, /not shown/);
    process.env.AWS_ACCESS_KEY_ID = "a";
    refused({}, /AWS_SECRET_ACCESS_KEY is missing/);
  });

  test("none at all: the constructor says it, or with lateAuth the first use", async (t) => {
    useVariables(t, { HOME: "/nonexistent", AWS_EC2_METADATA_DISABLED: "true" });
    assert.throws(() => new AgentCoreSandbox(), { code: "ERR_SANDBOX_MISSING_KEY", message: /AWS_ACCESS_KEY_ID.*lateAuth/ });
    const sandbox = new AgentCoreSandbox({ lateAuth: true });
    t.after(() => sandbox.close());
    const error = await rejection(sandbox.shell("true"));
    assert.deepEqual([error.code, error.mayHaveRun], ["ERR_SANDBOX_MISSING_KEY", false], error.message);
  });
});

describe("temporary credentials of this machine", () => {
  /** The emulator knows what the metadata service has given. */
  async function both(t, options) {
    const metadata = await startMetadata(options);
    t.after(() => metadata.close());
    const started = await startEmulator(t, { keys: metadata.keys });
    return { metadata, started };
  }
  /** All sessions are one owner's here, whatever key has started them. */
  const anyOwner = (emulator) => {
    for (const session of emulator.fleet.all()) Object.defineProperty(session.spec, "owner", { get: () => emulator.settings.keys.at(-1).id });
  };

  test("a container's address, with its password; asked once", async (t) => {
    const { metadata, started } = await both(t, { pass: "let me in" });
    const variables = { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${metadata.url}/credentials`, AWS_CONTAINER_AUTHORIZATION_TOKEN: "let me in" };
    const sandbox = withVariables(t, started, { ...variables, http_proxy: "http://127.0.0.1:1" }, { proxy: "" });
    assert.equal((await sandbox.shell("echo hi")).output, "hi\n");
    assert.equal((await sandbox.shell("echo hi")).output, "hi\n");
    assert.equal(metadata.engine.log.length, 1);
  });

  test("a password of a file", async (t) => {
    const { metadata, started } = await both(t, { pass: "of a file" });
    const file = path.join(tempDir(t), "token");
    writeFileSync(file, "of a file\n");
    const sandbox = withVariables(t, started, {
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `${metadata.url}/credentials`, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file,
    });
    assert.equal((await sandbox.shell("echo hi")).output, "hi\n");
  });

  test("a container's address that is somebody else's is refused", (t) => {
    useVariables(t, { HOME: "/nonexistent", AWS_CONTAINER_CREDENTIALS_FULL_URI: "http://example.com/credentials" });
    assert.throws(() => new AgentCoreSandbox(), { code: "ERR_SANDBOX_INVALID_ARG", message: /https/ });
  });

  test("a wrong password: AUTH, and nothing was sent to the service", async (t) => {
    const { metadata, started } = await both(t, { pass: "right" });
    const sandbox = withVariables(t, started, {
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `${metadata.url}/credentials`, AWS_CONTAINER_AUTHORIZATION_TOKEN: "canary-wrong",
    });
    const error = await rejection(sandbox.start());
    assert.deepEqual([error.code, error.mayHaveRun], ["ERR_SANDBOX_AUTH", false], error.message);
    assert.ok(!error.message.includes("canary"), error.message);
    assert.equal(started.engine.log.length, 0);
  });

  test("an instance's metadata, in three requests", async (t) => {
    const { metadata, started } = await both(t);
    const sandbox = withVariables(t, started, { AWS_EC2_METADATA_SERVICE_ENDPOINT: metadata.url });
    assert.equal((await sandbox.shell("echo hi")).output, "hi\n");
    assert.deepEqual(metadata.engine.log.map(({ method }) => method), ["PUT", "GET", "GET"]);
  });

  test("no instance: MISSING_KEY, in words", async (t) => {
    const started = await startEmulator(t);
    const sandbox = withVariables(t, started, { AWS_EC2_METADATA_SERVICE_ENDPOINT: "http://127.0.0.1:1" });
    const error = await rejection(sandbox.start());
    assert.deepEqual([error.code, error.mayHaveRun], ["ERR_SANDBOX_MISSING_KEY", false], error.message);
    assert.match(error.message, /AWS_ACCESS_KEY_ID.*metadata service/);
  });

  test("answers that are none: no part of them is in a message", async (t) => {
    for (const body of ['{"AccessKeyId":"canary","SecretAccessKey":"canary"}', '"canary', "<canary>", '{"Code":"Failed","Message":"canary"}', ""]) {
      const { metadata, started } = await both(t);
      metadata.engine.fault(/credentials/, { instead: { status: 200, body } });
      const sandbox = withVariables(t, started, { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${metadata.url}/credentials` });
      const error = await rejection(sandbox.start());
      assert.equal(error.code, "ERR_SANDBOX_AUTH", error.message);
      assert.ok(!error.message.includes("canary"), error.message);
    }
  });

  test("they are renewed before they end", async (t) => {
    const { metadata, started } = await both(t, { lifeMs: 1000 });
    const sandbox = withVariables(t, started, { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${metadata.url}/credentials` });
    await sandbox.start();
    assert.ok(metadata.keys.length >= 1);
    anyOwner(started.emulator);
    metadata.settings.lifeMs = 3600_000;
    await new Promise((resolve) => setTimeout(resolve, 1100));
    const before = metadata.keys.length;
    assert.equal((await sandbox.shell("echo hi")).output, "hi\n");
    assert.equal(metadata.keys.length, before + 1);
    // The old ones are refused from now on.
    started.emulator.settings.keys = metadata.keys.slice(-1);
    assert.equal((await sandbox.shell("echo on")).output, "on\n");
    assert.equal(metadata.keys.length, before + 1);
  });

  test("when they cannot be renewed, those that are still valid serve", async (t) => {
    const { metadata, started } = await both(t, { lifeMs: 60_000 });
    const sandbox = withVariables(t, started, { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${metadata.url}/credentials` });
    await sandbox.start();
    metadata.engine.fault(/credentials/, { instead: { status: 500 } }, { times: Infinity });
    assert.equal((await sandbox.shell("echo hi")).output, "hi\n");
  });
});

describe("clocks", () => {
  for (const minutes of [-90, 20]) {
    test(`the service's is ${minutes} minutes ahead: corrected once, for all that follows`, async (t) => {
      const { engine, sandbox } = await open(t, { skewMs: minutes * 60_000 });
      assert.equal((await sandbox.shell("echo hi")).output, "hi\n");
      await sandbox.close();
      assert.deepEqual(engine.log.map(({ route, status }) => `${route} ${status}`).slice(0, 2), [`${START} 403`, `${START} 200`]);
      assert.equal(engine.log.filter(({ status }) => status === 403).length, 1);
    });
  }

  test("it begins to differ later: the command was refused, and runs once", async (t) => {
    const { emulator, engine, sandbox } = await open(t);
    await sandbox.start();
    emulator.settings.skewMs = 3600_000;
    assert.equal((await sandbox.shell("echo hi")).output, "hi\n");
    assert.deepEqual(engine.requests(INVOKE).map(({ status }) => status), [200, 403, 200]);
  });

  test("a refusal whose date is ours is not repeated; nor a second one", async (t) => {
    const { engine, sandbox } = await open(t);
    await sandbox.start();
    const refusal = (ms) => agentCoreReplies.error(403, "InvalidSignatureException", "Signature expired", { date: new Date(Date.now() + ms).toUTCString() });
    engine.fault(INVOKE, { instead: refusal(60_000) });
    assert.equal((await rejection(sandbox.shell("true"))).code, "ERR_SANDBOX_AUTH");
    assert.equal(runs(engine), 1);
    engine.clearLog();
    engine.fault(INVOKE, { instead: refusal(3600_000) });
    engine.fault(INVOKE, { instead: refusal(7200_000) });
    assert.equal((await rejection(sandbox.shell("true"))).code, "ERR_SANDBOX_AUTH");
    assert.equal(runs(engine), 2);
  });
});

test("wrong keys: AUTH, and no secret in the message", async (t) => {
  const { emulator, make } = await startEmulator(t);
  for (const wrong of [{ secretAccessKey: "canary-secret" }, { accessKeyId: "AKIDNOBODY" }, { sessionToken: "canary-token" }]) {
    const error = await rejection(make(wrong).start());
    assert.equal(error.code, "ERR_SANDBOX_AUTH", error.message);
    assert.ok(!/canary/.test(error.message) && !error.message.includes(emulator.credentials.secretAccessKey), error.message);
  }
  const error = await rejection(make({ region: "us-east-1" }).start());
  assert.equal(error.code, "ERR_SANDBOX_AUTH");
  assert.match(error.message, /us-west-2/);
});
