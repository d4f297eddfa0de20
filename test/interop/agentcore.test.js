// The vendor's own SDK against our emulator, which computes each of its signatures once more; and our requests against the
// SDK's own signer. Where they disagree, ours is wrong.
import {
  BedrockAgentCoreClient, GetCodeInterpreterSessionCommand, InvokeCodeInterpreterCommand, ListCodeInterpreterSessionsCommand,
  StartCodeInterpreterSessionCommand, StopCodeInterpreterSessionCommand,
} from "@aws-sdk/client-bedrock-agentcore";
import { SignatureV4 } from "@smithy/signature-v4";
import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { after, afterEach, before, describe, test } from "node:test";

import { AgentCoreSandbox } from "../../lib/index.js";
import { agentCoreReplies } from "../emulators/agentcore/errors.js";
import { event, exception, message, streamError, streamOf } from "../emulators/agentcore/eventstream.js";
import { startAgentCore } from "../emulators/agentcore/index.js";

for (const name of Object.keys(process.env)) if (/^(AWS|BEDROCK)_/.test(name)) delete process.env[name];
process.env.AWS_EC2_METADATA_DISABLED = "true";

const ID = "aws.codeinterpreter.v1";
const START = "PUT /sessions/start";
const INVOKE = "POST /tools/invoke";

/** One emulator for a suite; every test leaves it without sessions, faults and internal errors. */
function useEmulator(settings) {
  const use = { identifier: ID };
  before(async () => {
    use.emulator = await startAgentCore(settings);
    use.engine = use.emulator.engine;
    const { accessKeyId, secretAccessKey, sessionToken, region } = use.emulator.credentials;
    use.client = new BedrockAgentCoreClient({ endpoint: use.emulator.url, region, credentials: { accessKeyId, secretAccessKey, sessionToken } });
  });
  afterEach(() => {
    use.engine.clearFaults();
    use.engine.clearLog();
    for (const { id } of use.emulator.fleet.all()) use.emulator.lose(id);
    assert.deepEqual(use.engine.errors, []);
  });
  after(async () => {
    use.client.destroy();
    await use.emulator.close();
  });
  use.send = (Command, input) => use.client.send(new Command({ codeInterpreterIdentifier: use.identifier, ...input }));
  use.start = async (input) => (await use.send(StartCodeInterpreterSessionCommand, input)).sessionId;
  use.invoke = async (sessionId, name, args) => {
    const { stream } = await use.send(InvokeCodeInterpreterCommand, { sessionId, name, arguments: args });
    const results = [];
    for await (const part of stream) if (part.result) results.push(part.result);
    return results;
  };
  return use;
}

describe("sessions", () => {
  const use = useEmulator();

  test("start, get, list and stop", async () => {
    const sessionId = await use.start({ name: "first", sessionTimeoutSeconds: 1200 });
    const [{ body }] = use.engine.requests(START);
    const { clientToken, ...rest } = JSON.parse(body);
    assert.equal(clientToken.length, 36);
    assert.deepEqual(rest, { name: "first", sessionTimeoutSeconds: 1200 });
    const view = await use.send(GetCodeInterpreterSessionCommand, { sessionId });
    assert.deepEqual([view.name, view.status, view.sessionTimeoutSeconds], ["first", "READY", 1200]);
    assert.ok(view.createdAt instanceof Date);
    for (let i = 0; i < 3; i++) await use.start();
    const { items, nextToken } = await use.send(ListCodeInterpreterSessionsCommand, { maxResults: 3, status: "READY" });
    assert.deepEqual([items.length, items[0].sessionId], [3, sessionId]);
    assert.equal((await use.send(ListCodeInterpreterSessionsCommand, { maxResults: 3, nextToken })).items.length, 1);
    await use.send(StopCodeInterpreterSessionCommand, { sessionId });
    assert.equal((await use.send(GetCodeInterpreterSessionCommand, { sessionId })).status, "TERMINATED");
    await assert.rejects(use.invoke(sessionId, "executeCommand", { command: "true" }), { name: "ResourceNotFoundException" });
  });

  test("the same token twice is one session", async () => {
    const clientToken = "6f1c2a50-0000-4000-8000-000000000001";
    assert.equal(await use.start({ clientToken }), await use.start({ clientToken }));
    assert.equal(use.emulator.fleet.all().length, 1);
  });

  test("one of ours is theirs, and the other way round", async () => {
    const { emulator } = use;
    const ours = new AgentCoreSandbox({ ...emulator.credentials, baseURL: emulator.url });
    await ours.writeFile("f", "from ours");
    const [{ content }] = await use.invoke(ours.sandboxId, "readFiles", { paths: ["f"] });
    assert.equal(content[0].resource.text, "from ours");
    await ours.close();
    const sandboxId = await use.start();
    await use.invoke(sandboxId, "writeFiles", { content: [{ path: "a/b", text: "from theirs" }] });
    const attached = new AgentCoreSandbox({ ...emulator.credentials, baseURL: emulator.url, sandboxId });
    assert.equal(await attached.readFile("a/b"), "from theirs");
    await attached.close();
    assert.deepEqual(emulator.existing(emulator.credentials.accessKeyId), [sandboxId]);
  });
});

describe("tools", () => {
  const use = useEmulator();

  test("commands and code", async () => {
    const id = await use.start();
    const [{ structuredContent, isError, content }] = await use.invoke(id, "executeCommand", { command: "echo out; echo err >&2; exit 3" });
    assert.deepEqual([structuredContent.stdout, structuredContent.stderr, structuredContent.exitCode, isError], ["out\n", "err\n", 3, true]);
    assert.equal(typeof structuredContent.executionTime, "number");
    assert.equal(content[0].type, "text");
    const [python] = await use.invoke(id, "executeCode", { code: "print(6 * 7)", language: "python" });
    assert.equal(python.structuredContent.stdout, "42\n");
    const [node] = await use.invoke(id, "executeCode", { code: "console.log(6 * 7)", language: "javascript", runtime: "nodejs" });
    assert.equal(node.structuredContent.stdout, "42\n");
  });

  test("tasks", async () => {
    const id = await use.start();
    const [{ structuredContent: { taskId, taskStatus } }] = await use.invoke(id, "startCommandExecution", { command: "echo begun; sleep 60" });
    assert.equal(taskStatus, "working");
    const [{ structuredContent }] = await use.invoke(id, "stopTask", { taskId });
    assert.equal(structuredContent.taskStatus, "canceled");
  });

  test("files, as text and as bytes", async () => {
    const id = await use.start();
    const blob = new Uint8Array(Array.from({ length: 67 }, (_, i) => (i * 37) & 255));
    await use.invoke(id, "writeFiles", { content: [{ path: "x.bin", blob }, { path: "d/y.txt", text: "é" }] });
    const [{ content }] = await use.invoke(id, "readFiles", { paths: ["x.bin", "d/y.txt"] });
    assert.deepEqual([...content[0].resource.blob], [...blob]);
    assert.equal(content[1].resource.text, "é");
    const [list] = await use.invoke(id, "listFiles", { path: "" });
    assert.deepEqual(list.content.map(({ name }) => name).sort(), ["d", "x.bin"]);
    const [missing] = await use.invoke(id, "readFiles", { paths: ["none"] });
    assert.ok(missing.isError && /not found/i.test(missing.content[0].text));
    const [outside] = await use.invoke(id, "writeFiles", { content: [{ path: "/etc/x", text: "" }] });
    assert.equal(outside.isError, true);
    await use.invoke(id, "removeFiles", { paths: ["x.bin"] });
    assert.equal((await use.invoke(id, "readFiles", { paths: ["x.bin"] }))[0].isError, true);
  });
});

describe("signatures", () => {
  describe("with a token, and an ARN", () => {
    const arn = "arn:aws:bedrock-agentcore:us-west-2:123456789012:code-interpreter/mine-AbC123";
    const use = useEmulator({ keys: [{ id: "ASIATEMPORARY", secret: "a/b+c", token: "TOKEN/1==" }], interpreters: [arn] });
    use.identifier = arn;
    test("the SDK's are right", async () => {
      const sessionId = await use.start();
      assert.equal((await use.invoke(sessionId, "executeCommand", { command: "echo hi" }))[0].structuredContent.stdout, "hi\n");
      await use.send(GetCodeInterpreterSessionCommand, { sessionId });
      assert.deepEqual(use.engine.log.map(({ status }) => status), [200, 200, 200]);
    });
  });

  describe("with a clock that is wrong", () => {
    const use = useEmulator({ skewMs: 3600_000 });
    test("the SDK corrects its own by the date of a refusal", async () => {
      await use.start();
      assert.deepEqual(use.engine.log.map(({ status }) => status), [403, 200]);
    });
  });

  describe("that are wrong", () => {
    const use = useEmulator();
    test("are refused", async () => {
      const { region } = use.emulator.credentials;
      const credentials = { accessKeyId: use.emulator.credentials.accessKeyId, secretAccessKey: "wrong" };
      const client = new BedrockAgentCoreClient({ endpoint: use.emulator.url, region, credentials });
      await assert.rejects(client.send(new StartCodeInterpreterSessionCommand({ codeInterpreterIdentifier: ID })), { name: "InvalidSignatureException" });
      client.destroy();
    });

    test("ours are those that the SDK's signer makes of our requests", async () => {
      const { emulator, engine } = use;
      const { accessKeyId, secretAccessKey, region } = emulator.credentials;
      const sandbox = new AgentCoreSandbox({ ...emulator.credentials, baseURL: emulator.url });
      await sandbox.shell("echo hi");
      await sandbox.close();
      class Sha256 {
        constructor(secret) {
          this.hash = secret ? createHmac("sha256", secret) : createHash("sha256");
        }
        update(bytes) {
          this.hash.update(bytes);
        }
        async digest() {
          return new Uint8Array(this.hash.digest());
        }
      }
      const signer = new SignatureV4({ service: "bedrock-agentcore", region, credentials: { accessKeyId, secretAccessKey }, sha256: Sha256, applyChecksum: false });
      assert.equal(engine.log.length, 4);
      for (const { method, path, headers, body } of engine.log) {
        const { authorization, "x-amz-date": stamp } = headers;
        const names = /SignedHeaders=([^,]+)/.exec(authorization)[1].split(";").filter((name) => name !== "x-amz-date");
        const url = new URL(path, emulator.url);
        const signed = await signer.sign(
          {
            method, protocol: url.protocol, hostname: url.hostname, port: Number(url.port), path: url.pathname,
            query: Object.fromEntries(url.searchParams), headers: Object.fromEntries(names.map((name) => [name, headers[name]])), body,
          },
          { signingDate: new Date(stamp.replace(/^(....)(..)(..)T(..)(..)(..)Z$/, "$1-$2-$3T$4:$5:$6Z")) },
        );
        assert.equal(authorization, signed.headers.authorization);
      }
    });
  });
});

describe("what the SDK makes of faults, as the sheet says", () => {
  const use = useEmulator();
  const run = async (sessionId) => use.invoke(sessionId, "executeCommand", { command: "echo hi" });
  const RESULT = event({ content: [], structuredContent: { stdout: "a" }, isError: false });

  test("two results, and events that it does not know", async () => {
    const id = await use.start();
    use.engine.fault(INVOKE, { instead: streamOf(event({}, "initial-response"), RESULT, event({}, "other"), RESULT), pieceBytes: 1 });
    assert.equal((await run(id)).length, 2);
  });

  test("exceptions and errors of the stream", async () => {
    const id = await use.start();
    for (const [messages, name] of [
      [[RESULT, exception("internalServerException", "oops")], "InternalServerException"],
      [[RESULT, streamError("Boom", "oops")], "Boom"],
    ]) {
      use.engine.fault(INVOKE, { instead: streamOf(...messages) });
      await assert.rejects(run(id), { name });
    }
  });

  test("checksums that are wrong, and a message that is cut", async () => {
    const id = await use.start();
    for (const at of [2, RESULT.length - 1]) {
      const wrong = Buffer.from(RESULT);
      wrong[at] ^= 1;
      use.engine.fault(INVOKE, { instead: streamOf(message({ ":message-type": "event", ":event-type": "other" }), wrong) });
      await assert.rejects(run(id));
    }
    use.engine.fault(INVOKE, { instead: streamOf(RESULT, RESULT.subarray(0, 20)) });
    await assert.rejects(run(id), /Truncated/);
  });

  for (const typeIn of ["header", "__type", "code"]) {
    test(`refusals whose type is in ${typeIn}`, async () => {
      const id = await use.start();
      for (const [status, type] of [[400, "ValidationException"], [402, "ServiceQuotaExceededException"], [403, "AccessDeniedException"], [404, "ResourceNotFoundException"], [409, "ConflictException"]]) {
        use.engine.clearLog();
        use.engine.fault(INVOKE, { instead: agentCoreReplies.error(status, type, "because", {}, typeIn) });
        await assert.rejects(run(id), { name: type, message: "because" });
        assert.equal(use.engine.count(INVOKE), 1);
      }
    });
  }

  test("it sends an invoke three times after a 500: ours does not", async () => {
    const id = await use.start();
    use.engine.fault(INVOKE, { instead: agentCoreReplies.typed(500, "oops") }, { times: 3 });
    await assert.rejects(run(id), { name: "InternalServerException" });
    assert.equal(use.engine.count(INVOKE), 3);
  });
});
