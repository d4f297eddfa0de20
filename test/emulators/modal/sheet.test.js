// The fact sheet of Modal's two services, a test for each of its lines. What Modal's own clients make of the replies stands in
// test/interop/modal.test.js.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import http2 from "node:http2";
import { after, afterEach, before, describe, test } from "node:test";

import { makeCertificate } from "../certificate.js";
import { makeId } from "./fleet.js";
import { CODES, frame, refusal } from "./grpc.js";
import { startModal } from "./index.js";
import { control, retryPolicy, router, status } from "./messages.js";
import { decode, encode } from "./proto.js";

const hex = (text) => Buffer.from(text, "hex");

describe("vectors", () => {
  const vectors = [
    [control.AppGetOrCreate, { appName: "demo", creation: 1 }, "0a0464656d6f1801"],
    [control.ImageGetOrCreate, { image: { dockerfileCommands: ["FROM python:3.12-slim"] }, appId: "ap-1", builderVersion: "2025.06" },
      "1217321546524f4d20707974686f6e3a332e31322d736c696d220461702d314a07323032352e3036"],
    [control.ImageJoinStreaming, { imageId: "im-1", timeout: 55 }, "0a04696d2d311500005c42"],
    [control.SandboxCreate, { appId: "ap-1", definition: { args: ["sleep", "600"], imageId: "im-1", timeoutSecs: 600, network: { type: 2 } } },
      "0a0461702d31121a0a05736c6565700a033630301a04696d2d3138d804b201020802"],
    [router.TaskExecStart, { taskId: "ta-1", execId: "e1", args: ["sh", "-c", "id"], stdout: 1, stderr: 1, timeoutSecs: 30, env: { A: "b" } },
      "0a0474612d31120265311a0273681a022d631a02696420012801301e62060a0141120162"],
    [router.TaskExecWait, { taskId: "ta-1", execId: "e1" }, "0a0474612d3112026531"],
  ];
  for (const [[table], message, text] of vectors) {
    test(text.slice(0, 40), () => {
      assert.equal(encode(table, message).toString("hex"), text);
      assert.equal(encode(table, decode(table, hex(text))).toString("hex"), text);
    });
  }

  test("an exit code of 0 is on the wire, and a signal; an empty reply says nothing", () => {
    const [, reply] = router.TaskExecWait;
    for (const [end, text] of [[{ code: 0 }, "0800"], [{ code: 3 }, "0803"], [{ signal: 9 }, "1009"], [{}, ""]]) {
      assert.equal(encode(reply, end).toString("hex"), text);
    }
    assert.equal(decode(reply, hex("08ffffffffffffffffff01")).code, -1);
  });
});

describe("fact sheet", () => {
  const certificate = makeCertificate(["127.0.0.1"]);
  let emulator;
  let client;
  let initial;
  before(async () => {
    emulator = await startModal({ tls: certificate });
    client = http2.connect(emulator.apiUrl, { ca: certificate.cert });
    initial = { ...emulator.settings };
  });
  afterEach(() => {
    for (const sandbox of emulator.fleet.all()) emulator.fleet.remove(sandbox);
    emulator.engine.clearFaults();
    Object.assign(emulator.settings, initial);
    assert.deepEqual(emulator.engine.errors, []);
  });
  after(async () => {
    client.destroy();
    await emulator.close();
  });

  /** One call: its status, its messages, what came in the trailers. */
  function send(path, headers, bodies) {
    return new Promise((resolve, reject) => {
      const stream = client.request({ ":method": "POST", ":path": path, te: "trailers", "content-type": "application/grpc", ...headers });
      const parts = [];
      let fields = {};
      stream.on("response", (head) => (fields = { ...head }));
      stream.on("trailers", (trailers) => Object.assign(fields, trailers));
      stream.on("data", (bytes) => parts.push(bytes));
      stream.on("error", reject);
      stream.on("close", () => {
        const messages = [];
        for (let rest = Buffer.concat(parts); rest.length >= 5; rest = rest.subarray(5 + rest.readUInt32BE(1))) messages.push(rest.subarray(5, 5 + rest.readUInt32BE(1)));
        resolve({ code: Number(fields["grpc-status"]), text: fields["grpc-message"] ?? "", fields, messages });
      });
      for (const body of bodies) stream.write(frame(body));
      stream.end();
    });
  }
  const credentials = () => ({
    "x-modal-client-type": "8", "x-modal-client-version": "1.0.0",
    "x-modal-token-id": emulator.credentials.tokenId, "x-modal-token-secret": emulator.credentials.tokenSecret,
  });
  let auth;
  async function call(method, message = {}, headers = {}) {
    auth ??= (await ask("AuthTokenGet")).token;
    return ask(method, message, { "x-modal-auth-token": auth, ...headers });
  }
  async function ask(method, message = {}, headers = {}) {
    const [request, reply] = control[method];
    const answer = await send(`/modal.client.ModalClient/${method}`, { ...credentials(), ...headers }, [encode(request, message)]);
    const decoded = answer.messages.map((bytes) => decode(reply, bytes));
    return { ...decoded.at(-1), all: decoded, ...answer };
  }
  async function inside(sandbox, method, message = {}, jwt = sandbox.access.jwt) {
    const [request, reply] = router[method];
    const body = encode(request, { taskId: sandbox.taskId, ...message });
    const answer = await send(`/modal.task_command_router.TaskCommandRouter/${method}`, { authorization: `Bearer ${jwt}` }, [body]);
    const decoded = answer.messages.map((bytes) => decode(reply, bytes));
    return { ...decoded.at(-1), all: decoded, code: answer.code, text: answer.text };
  }
  async function make(definition = {}, more = {}) {
    const { appId } = await call("AppGetOrCreate", { appName: "demo", creation: 1 });
    const { imageId } = await call("ImageGetOrCreate", { image: { dockerfileCommands: ["FROM a"] }, appId, builderVersion: "2025.06" });
    return call("SandboxCreateV2", { appId, definition: { imageId, timeoutSecs: 60, ...definition }, tags: [], ...more });
  }
  async function run(sandbox, args, more = {}) {
    const execId = randomUUID();
    const start = await inside(sandbox, "TaskExecStart", { execId, args, stdout: 1, stderr: 1, ...more });
    if (start.code !== 0) return start;
    const [out, err, end] = await Promise.all([
      inside(sandbox, "TaskExecStdioRead", { execId }), inside(sandbox, "TaskExecStdioRead", { execId, fd: 1 }), inside(sandbox, "TaskExecWait", { execId }),
    ]);
    const text = ({ all }) => Buffer.concat(all.map(({ data }) => data)).toString();
    const [last] = end.all;
    return { execId, stdout: text(out), stderr: text(err), exit: last.code, signal: last.signal };
  }

  test("2: token and client on each call; the second token on those of sandboxes only", async () => {
    assert.equal((await ask("AuthTokenGet", {}, { "x-modal-token-secret": "other" })).code, CODES.UNAUTHENTICATED);
    assert.equal((await ask("AppGetOrCreate", { appName: "demo", creation: 1 })).code, 0);
    assert.equal((await ask("SandboxWaitV2", { sandboxId: "sb-x" })).code, CODES.UNAUTHENTICATED);
    const { token } = await ask("AuthTokenGet");
    assert.ok(JSON.parse(Buffer.from(token.split(".")[1], "base64url").toString()).exp > Date.now() / 1000);
  });

  test("3.1 to 3.4: app, environment, image and its build", async () => {
    assert.equal((await call("AppGetOrCreate", { appName: `none-${makeId("x", 4)}` })).code, CODES.NOT_FOUND);
    const { appId } = await call("AppGetOrCreate", { appName: "demo", creation: 1 });
    assert.match(appId, /^ap-/);
    assert.equal((await call("EnvironmentGetOrCreate")).metadata.settings.imageBuilderVersion, "2025.06");
    emulator.settings.builds = 2;
    const recipe = { image: { dockerfileCommands: ["FROM built"] }, appId, builderVersion: "2025.06" };
    const { imageId, result } = await call("ImageGetOrCreate", recipe);
    assert.equal(result, undefined);
    const first = await call("ImageJoinStreaming", { imageId, timeout: 55 });
    assert.deepEqual([first.result, first.entryId], [undefined, "entry-1"]);
    assert.equal((await call("ImageJoinStreaming", { imageId, timeout: 55, lastEntryId: "entry-1" })).all.at(-1).result.status, 1);
    const again = await call("ImageGetOrCreate", recipe);
    assert.deepEqual([again.imageId, again.result.status], [imageId, 1]);
    assert.equal((await call("ImageGetOrCreate", { ...recipe, builderVersion: "1" })).code, CODES.INVALID_ARGUMENT);
  });

  test("3.5, 3.10, 11.3: ids of both kinds; the new one has all in its answer", async () => {
    const made = await make();
    assert.match(made.sandboxId, /^sb-\w{25}V$/);
    assert.match(made.taskId, /^ta-\w{25}V$/);
    assert.match(made.access.url, /^https:/);
    const { appId } = await call("AppGetOrCreate", { appName: "demo", creation: 1 });
    const { imageId } = await call("ImageGetOrCreate", { image: { dockerfileCommands: ["FROM a"] }, appId, builderVersion: "2025.06" });
    const { sandboxId } = await call("SandboxCreate", { appId, definition: { imageId, timeoutSecs: 60 }, tags: [] });
    assert.match(sandboxId, /^sb-\w{22}$/);
    const { taskId } = await call("SandboxGetTaskId", { sandboxId });
    assert.ok((await call("TaskGetCommandRouterAccess", { taskId })).jwt);
    assert.equal((await make({ resources: { gpu: { gpuType: "T4", count: 1 } } })).code, CODES.INVALID_ARGUMENT);
  });

  test("3.5: a name is unique in its app; an idempotency key makes one sandbox", async () => {
    assert.equal((await make({ name: "one" })).code, 0);
    assert.equal((await make({ name: "one" })).code, CODES.ALREADY_EXISTS);
    const { appId } = await call("AppGetOrCreate", { appName: "demo", creation: 1 });
    const { imageId } = await call("ImageGetOrCreate", { image: { dockerfileCommands: ["FROM a"] }, appId, builderVersion: "2025.06" });
    const request = { appId, definition: { imageId, timeoutSecs: 60 }, tags: [{ name: "a", value: "b" }] };
    const key = { "x-idempotency-key": randomUUID() };
    const ids = [await call("SandboxCreateV2", request, key), await call("SandboxCreateV2", request, key)].map(({ sandboxId }) => sandboxId);
    assert.equal(ids[0], ids[1]);
    const { sandboxes } = await call("SandboxListV2", { appId, tags: [{ name: "a", value: "b" }] });
    assert.deepEqual(sandboxes.map(({ id }) => id), [ids[0]]);
  });

  test("3.9: wait, terminate, and NOT_FOUND", async () => {
    const { sandboxId } = await make();
    assert.equal((await call("SandboxWaitV2", { sandboxId, timeout: 0 })).result, undefined);
    await call("SandboxTerminateV2", { sandboxId });
    assert.equal((await call("SandboxWaitV2", { sandboxId, timeout: 0 })).result.status, 3);
    assert.equal((await call("SandboxTerminateV2", { sandboxId: "sb-none" })).code, CODES.NOT_FOUND);
    emulator.settings.secondMs = 10;
    const short = await make({ timeoutSecs: 1 });
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.equal((await call("SandboxWaitV2", { sandboxId: short.sandboxId })).result.status, 4);
  });

  test("4: a command, its streams from any offset, its end; a repeat of the start runs nothing", async () => {
    const sandbox = await make();
    const result = await run(sandbox, ["sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert.deepEqual([result.stdout, result.stderr, result.exit], ["out\n", "err\n", 7]);
    const { execId } = result;
    const rest = await inside(sandbox, "TaskExecStdioRead", { execId, offset: 2 });
    assert.equal(Buffer.concat(rest.all.map(({ data }) => data)).toString(), "t\n");
    assert.equal((await inside(sandbox, "TaskExecStart", { execId, args: ["false"] })).code, 0);
    assert.equal((await run(sandbox, ["sh", "-c", "kill -9 $$"])).signal, 9);
    assert.equal((await run(sandbox, ["sh", "-c", "echo a >&2; echo b"], { stderr: 2 })).stdout, "a\nb\n");
    assert.equal((await inside(sandbox, "TaskExecPoll", { execId })).all[0].code, 7);
  });

  test("4: variables in both forms, the directory, the limit in whole seconds", async () => {
    const sandbox = await make({}, { secretSources: [{ env: { contents: { A: "sandbox", B: "b" } } }] });
    assert.equal((await run(sandbox, ["sh", "-c", "echo $A $B $C"], { env: { A: "12" }, secretSources: [{ env: { contents: { C: "13" } } }] })).stdout, "12 b 13\n");
    assert.equal((await run(sandbox, ["pwd"], { workdir: "/" })).stdout, "/\n");
    assert.equal((await run(sandbox, ["pwd"], { workdir: "/nowhere" })).code, CODES.INVALID_ARGUMENT);
    const begun = Date.now();
    assert.equal((await run(sandbox, ["sleep", "30"], { timeoutSecs: 1 })).signal, 9);
    assert.ok(Date.now() - begun < 15_000);
  });

  test("4: input by offsets", async () => {
    const sandbox = await make();
    const execId = randomUUID();
    await inside(sandbox, "TaskExecStart", { execId, args: ["cat"], stdout: 1 });
    const write = (offset, data, eof = false) => inside(sandbox, "TaskExecStdinWrite", { execId, offset, data: Buffer.from(data), eof });
    assert.equal((await write(0, "abc")).code, 0);
    assert.equal((await write(0, "abc")).code, 0);
    assert.equal((await write(9, "x")).code, CODES.OUT_OF_RANGE);
    await write(2, "cd", true);
    const out = await inside(sandbox, "TaskExecStdioRead", { execId });
    assert.equal(Buffer.concat(out.all.map(({ data }) => data)).toString(), "abcd");
    assert.equal((await write(4, "late")).code, CODES.FAILED_PRECONDITION);
  });

  test("4: tokens of the router", async () => {
    const sandbox = await make();
    assert.equal((await inside(sandbox, "TaskExecPoll", { execId: "e" }, "a.e30.b")).code, CODES.UNAUTHENTICATED);
    emulator.revoke();
    assert.equal((await inside(sandbox, "TaskExecPoll", { execId: "e" })).code, CODES.UNAUTHENTICATED);
    const { jwt } = await call("SandboxGetCommandRouterAccess", { sandboxId: sandbox.sandboxId });
    assert.equal((await inside(sandbox, "TaskExecPoll", { execId: "e" }, jwt)).code, CODES.NOT_FOUND);
  });

  test("5: the helper for files", async () => {
    const sandbox = await make();
    const tools = (argument) => run(sandbox, ["/__modal/.bin/modal-sandbox-fs-tools", JSON.stringify(argument)]);
    const { workdir } = emulator.fleet.all()[0];
    await run(sandbox, ["sh", "-c", "printf text >a"]);
    assert.equal((await tools({ ReadFile: { path: `${workdir}/a` } })).stdout, "text");
    const missing = await tools({ ReadFile: { path: `${workdir}/none` } });
    assert.equal(missing.exit, 1);
    const { version, error_kind: kind, message } = JSON.parse(missing.stderr);
    assert.deepEqual([version, kind, message], [1, "NotFound", "path does not exist"]);
    await tools({ MakeDirectory: { path: `${workdir}/d/e`, parents: true } });
    assert.deepEqual(JSON.parse((await tools({ ListFiles: { path: `${workdir}` } })).stdout).map(({ name, type }) => [name, type]), [["a", "file"], ["d", "directory"]]);
    assert.equal((await tools({ Remove: { path: `${workdir}/d`, recursive: true } })).exit, 0);
  });

  test("6, 7: a refusal's words are encoded, and may ask for a wait", async () => {
    emulator.engine.fault("AuthTokenGet", { instead: refusal("RESOURCE_EXHAUSTED", "slow down €", 2.5) });
    const { code, text, fields } = await ask("AuthTokenGet");
    assert.deepEqual([code, decodeURIComponent(text)], [CODES.RESOURCE_EXHAUSTED, "slow down €"]);
    const details = decode(status, Buffer.from(fields["grpc-status-details-bin"], "base64"));
    assert.match(details.details[0].typeUrl, /\/modal\.client\.RPCRetryPolicy$/);
    assert.equal(decode(retryPolicy, details.details[0].value).retryAfterSecs, 2.5);
  });

  test("9: te and whole messages are asked for; what is not known is UNIMPLEMENTED", async () => {
    const body = encode(control.AuthTokenGet[0], {});
    const path = "/modal.client.ModalClient/AuthTokenGet";
    assert.equal((await send(path, { ...credentials(), te: undefined }, [body])).code, CODES.INTERNAL);
    assert.equal((await send(path, credentials(), [])).code, CODES.INTERNAL);
    assert.equal((await send("/modal.client.ModalClient/ContainerExec", credentials(), [body])).code, CODES.UNIMPLEMENTED);
    emulator.settings.v2 = false;
    assert.equal((await make()).code, CODES.UNIMPLEMENTED);
  });

  test("1: what is the control plane's does not come to the router", async () => {
    const sandbox = await make();
    const headers = { authorization: `Bearer ${sandbox.access.jwt}`, "x-modal-token-secret": "secret" };
    const answer = await send("/modal.task_command_router.TaskCommandRouter/TaskExecPoll", headers, [encode(router.TaskExecPoll[0], { taskId: sandbox.taskId, execId: "e" })]);
    assert.equal(answer.code, CODES.INVALID_ARGUMENT);
  });
});
