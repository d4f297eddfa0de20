// What is sent, to the letter.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { AgentCoreSandbox, AgentCoreSandboxToolkit, createSandbox } from "cloudsandbox";

import { START, STOP, INVOKE, open, sent, startEmulator, useVariables } from "./support.js";

const KEYS = { accessKeyId: "AKID", secretAccessKey: "secret" };

describe("requests", () => {
  test("start, a command and stop", async (t) => {
    const { engine, sandbox } = await open(t, {}, { name: "mine", lifetimeSeconds: 1200, env: { A: "of all", B: "of all" } });
    const { output } = await sandbox.shell("echo $A $B", { env: { B: "of one" } });
    assert.equal(output, "of all of one\n");
    await sandbox.close();
    const [start] = sent(engine, START);
    assert.match(start.name, /^mine-[0-9a-f]{32}$/);
    assert.match(start.clientToken, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    assert.deepEqual(start, { sessionTimeoutSeconds: 1200, name: start.name, clientToken: start.clientToken });
    const [pwd, command] = sent(engine, INVOKE);
    assert.deepEqual(pwd, { name: "executeCommand", arguments: { command: "pwd -P" } });
    assert.deepEqual([command.name, Object.keys(command.arguments)], ["executeCommand", ["command"]]);
    assert.deepEqual(sent(engine, STOP), [{ clientToken: start.clientToken }]);
    const { headers } = engine.requests(INVOKE)[1];
    assert.equal(headers["x-amzn-code-interpreter-session-id"], new URL(engine.requests(STOP)[0].path, "http://h").searchParams.get("sessionId"));
    assert.match(headers.authorization, /SignedHeaders=content-type;host;x-amz-date;x-amzn-code-interpreter-session-id,/);
    assert.equal(headers["user-agent"], "cloudsandbox");
    assert.equal(engine.accepted, 1, "one connection");
  });

  test("an ARN is one segment of the path, and signed so", async (t) => {
    const arn = "arn:aws:bedrock-agentcore:us-west-2:123456789012:code-interpreter/mine-AbC123";
    const { engine, sandbox } = await open(t, { interpreters: [arn] }, { codeInterpreter: arn });
    await sandbox.start();
    assert.equal(engine.requests(START)[0].path, `/code-interpreters/${encodeURIComponent(arn)}/sessions/start`);
    await sandbox.close();
  });

  test("binary-exact files, and text that a service would change", async (t) => {
    const { sandbox } = await open(t);
    for (const bytes of [Buffer.from(Array.from({ length: 256 }, (_, i) => i)), Buffer.from("\ufeffa\r\nb\r"), Buffer.alloc(0)]) {
      await sandbox.writeFile("f", bytes);
      assert.ok(Buffer.from(await sandbox.readFile("f", "base64"), "base64").equals(bytes));
    }
  });
});

describe("options", () => {
  test("what the class does not do is refused before anything is made", (t) => {
    useVariables(t, {});
    for (const name of ["image", "networkMode", "networkPolicy", "certificates", "filesystemConfigurations", "ports"]) {
      assert.throws(() => new AgentCoreSandbox({ ...KEYS, [name]: "x" }), { code: "ERR_SANDBOX_UNSUPPORTED", message: new RegExp(name) });
    }
    for (const manifest of [{ image: "x" }, { network: {} }, { network: { allowedHosts: ["a.example"] } }, { resources: { cpus: 2 } }, { workingDir: "/x" }]) {
      assert.throws(() => new AgentCoreSandbox({ ...KEYS, manifest }), { code: "ERR_SANDBOX_UNSUPPORTED" });
    }
    assert.equal(new AgentCoreSandbox({ ...KEYS, manifest: { network: { default: "allow" }, env: { A: "1" } } }).providerId, "agentcore");
  });

  test("what is wrong is named, and never shown", (t) => {
    useVariables(t, {});
    const refused = (options, words) =>
      assert.throws(() => new AgentCoreSandbox({ ...KEYS, ...options }), (/** @type {any} */ error) => {
        assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG");
        assert.match(error.message, words);
        return !error.message.includes("canary");
      });
    refused({ region: "canary" }, /region/);
    refused({ region: "us-west-2.canary.example/" }, /region/);
    refused({ name: "-canary" }, /name/);
    refused({ lifetimeSeconds: 28801 }, /lifetimeSeconds/);
    refused({ lifetimeSeconds: 0 }, /lifetimeSeconds/);
    refused({ owned: true }, /owned/);
    refused({ apikey: "canary" }, /apikey/);
    refused({ client: {} }, /baseURL/);
    refused({ env: { A: 1 } }, /env/);
  });

  test("addresses by variable, in their order", async (t) => {
    const { emulator } = await startEmulator(t);
    for (const variables of [
      { AWS_ENDPOINT_URL: emulator.url },
      { AWS_ENDPOINT_URL: "http://127.0.0.1:1", BEDROCK_AGENTCORE_DP_ENDPOINT: emulator.url },
      { BEDROCK_AGENTCORE_DP_ENDPOINT: "http://127.0.0.1:1", AWS_ENDPOINT_URL_BEDROCK_AGENTCORE: emulator.url },
    ]) {
      useVariables(t, { ...variables, AWS_DEFAULT_REGION: emulator.settings.region });
      const { accessKeyId, secretAccessKey } = emulator.credentials;
      const sandbox = new AgentCoreSandbox({ accessKeyId, secretAccessKey });
      await sandbox.start();
      await sandbox.close();
    }
  });

  test("by name, and as tools", async (t) => {
    const { emulator } = await startEmulator(t);
    const options = { ...emulator.credentials, baseURL: emulator.url };
    assert.ok(createSandbox("agentcore", options) instanceof AgentCoreSandbox);
    const toolkit = new AgentCoreSandboxToolkit(options);
    const tools = toolkit.getTools();
    assert.deepEqual(tools.map(({ name }) => name).sort(), [
      "sandbox_agentcore_read_file", "sandbox_agentcore_run", "sandbox_agentcore_shell", "sandbox_agentcore_write_file",
    ]);
    await toolkit.close();
  });
});
