// The providers that are reached over HTTP: what tests need to know of each to look at its requests, and to
// answer them in its place.
//
//   name, Class      the provider's, and the name of its class in the package
//   routes           of its emulator: create, remove, command, read
//   created          status of a create that succeeded
//   health           something that its API says to everybody: path and a part of it
//   keyHeader        which header has the key
//   credentials      what an object needs that is to be made by hand
//   start(settings)  an emulator; `urls` are its listeners, `connection` the options that lead to it
//   refusal(status, message)  as the provider words its own; nothing: it has none that says this
//   answer(body)     of a create that succeeded, whatever it says; else JSON with the status `created`
//   hasLifetime(body)         whether this create leaves a sandbox that ends by itself
//   read(request)    the body of a create; else it is JSON
//   isOver(sandbox)  of its emulator; else its state says so
//   findsLost        a sandbox whose create was not answered is found, and deleted
import assert from "node:assert/strict";
import { after } from "node:test";

import * as cloudsandbox from "cloudsandbox";

import { agentCoreReplies } from "../emulators/agentcore/errors.js";
import { startAgentCore } from "../emulators/agentcore/index.js";
import { makeCertificate } from "../emulators/certificate.js";
import { startDaytona } from "../emulators/daytona/index.js";
import { daytonaReplies } from "../emulators/daytona/replies.js";
import { startE2B } from "../emulators/e2b/index.js";
import { replies } from "../emulators/engine.js";
import { startHttp } from "../emulators/http/index.js";
import { frame, refusal } from "../emulators/modal/grpc.js";
import { startModal } from "../emulators/modal/index.js";
import { control } from "../emulators/modal/messages.js";
import { decode } from "../emulators/modal/proto.js";
import { vercelReplies } from "../emulators/vercel/errors.js";
import { startVercel } from "../emulators/vercel/index.js";
import { removeCommandFolders } from "../support/daytona.js";

/** A create's answer over plain HTTP. */
const json = (status) => (body) => ({ status, headers: { "content-type": "application/json" }, body });
const readJson = ({ body }) => JSON.parse(body);
const isDestroyed = ({ state }) => ["destroying", "destroyed"].includes(state);

/** What Modal says in place of a status of HTTP. Its 429 names a wait, after which it is asked again (test/modal). */
const MODAL_CODES = {
  400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ABORTED", 500: "INTERNAL",
};

const rows = [
  {
    name: "e2b",
    Class: "E2BSandbox",
    routes: {
      create: "POST /v2/sandboxes",
      remove: "DELETE /sandboxes/{id}",
      command: "process.Process/Start",
    },
    created: 201,
    health: { path: "/health", part: /Health/ },
    keyHeader: "x-api-key",
    credentials: { apiKey: "k" },
    async start(settings) {
      const emulator = await startE2B(settings);
      const { apiKey, apiUrl: baseURL, sandboxUrl } = emulator;
      return { emulator, connection: { apiKey, baseURL, sandboxUrl }, urls: [baseURL, sandboxUrl] };
    },
    refusal: (status, message) => replies.json(status, { code: status, message }),
    hasLifetime: ({ timeout }) => timeout === 300,
    findsLost: true,
    checkEnd: ({ complaints }) => assert.deepEqual(complaints, []),
  },
  {
    name: "daytona",
    Class: "DaytonaSandbox",
    routes: {
      create: "POST /sandbox",
      remove: "DELETE /sandbox/{id}",
      command: "toolbox POST /process/execute",
    },
    created: 200,
    health: { path: "/api/config", part: /proxyToolboxUrl/ },
    keyHeader: "authorization",
    credentials: { apiKey: "k" },
    async start(settings) {
      const emulator = await startDaytona(settings);
      const { apiKey, apiUrl: baseURL } = emulator;
      return { emulator, connection: { apiKey, baseURL }, urls: [baseURL, emulator.proxyUrl] };
    },
    refusal: (status, message) => daytonaReplies.api(status, message),
    hasLifetime: ({ autoStopInterval, autoDeleteInterval }) => autoStopInterval === 5 && autoDeleteInterval === 0,
    findsLost: true,
    checkEnd: ({ engine }) => removeCommandFolders(engine),
  },
  {
    name: "http",
    Class: "HttpSandbox",
    routes: {
      create: "POST /sessions",
      remove: "DELETE /sessions/{id}",
      command: "POST /sessions/{id}/exec",
    },
    created: 201,
    health: { path: "/health", part: /healthy/ },
    keyHeader: "authorization",
    async start(settings) {
      const emulator = await startHttp(settings);
      const { token, url: baseURL } = emulator;
      return { emulator, connection: { token, baseURL }, urls: [baseURL] };
    },
    refusal: (status, message) => replies.json(status, { error: { code: "refused", message } }),
    // It is the service's: a create says nothing of it.
    hasLifetime: () => true,
    credentials: {},
    findsLost: false,
    checkEnd: ({ engine }) => removeCommandFolders(engine),
  },
  {
    name: "vercel",
    Class: "VercelSandbox",
    routes: {
      create: "POST /v3/sandboxes",
      remove: "DELETE /sandboxes/{name}",
      command: "POST /cmd",
    },
    created: 200,
    health: { path: "/api", part: /not_found/ },
    keyHeader: "authorization",
    credentials: { token: "k", teamId: "t", projectId: "p" },
    async start(settings) {
      const emulator = await startVercel(settings);
      const { apiUrl: baseURL, credentials } = emulator;
      return { emulator, connection: { ...credentials, baseURL }, urls: [baseURL] };
    },
    refusal: (status, message) => vercelReplies.error(status, "error", message),
    hasLifetime: ({ timeout, persistent }) => timeout === 300_000 && persistent === false,
    findsLost: true,
    checkEnd: ({ engine }) => removeCommandFolders(engine),
  },
  {
    name: "agentcore",
    Class: "AgentCoreSandbox",
    routes: {
      create: "PUT /sessions/start",
      remove: "PUT /sessions/stop",
      command: "POST /tools/invoke",
    },
    created: 200,
    health: { path: "/", part: /UnknownOperation|message/ },
    keyHeader: "authorization",
    credentials: { accessKeyId: "AKID", secretAccessKey: "k" },
    async start(settings) {
      const emulator = await startAgentCore(settings);
      return { emulator, connection: { ...emulator.credentials, baseURL: emulator.url }, urls: [emulator.url] };
    },
    refusal: agentCoreReplies.typed,
    hasLifetime: ({ sessionTimeoutSeconds }) => sessionTimeoutSeconds === 900,
    findsLost: true,
    checkEnd: () => {},
  },
  {
    name: "modal",
    Class: "ModalSandbox",
    routes: {
      create: "SandboxCreateV2",
      remove: "SandboxTerminateV2",
      command: "TaskExecStart",
    },
    answer: (body) => ({ ...refusal("OK", ""), body: frame(Buffer.from(body)) }),
    health: { path: "/", part: /application\/grpc/ },
    keyHeader: "x-modal-token-secret",
    credentials: { tokenId: "ak-k", tokenSecret: "as-k" },
    /** Always over TLS: HTTP/2 without it is more than some libcurl can. */
    async start({ tls, ...settings }) {
      const certificate = tls ?? makeCertificate(["127.0.0.1"]);
      const emulator = await startModal({ tls: certificate, ...settings });
      const { credentials, apiUrl: baseURL } = emulator;
      return { emulator, connection: { ...credentials, baseURL, ...(!tls && { ca: certificate.cert }) }, urls: [baseURL] };
    },
    refusal: (status, message) => MODAL_CODES[status] && refusal(MODAL_CODES[status], message),
    read: ({ bytes }) => decode(control.SandboxCreateV2[0], bytes.subarray(5)),
    hasLifetime: ({ definition }) => definition.timeoutSecs === 300,
    isOver: ({ result }) => Boolean(result),
    findsLost: true,
    checkEnd: () => {},
  },
];

const all = rows.map((row) => ({ answer: json(row.created), read: readJson, isOver: isDestroyed, ...row }));

/** The first alone, where only what is above the core is looked at: scripts/test-nodes. */
export const remotes = process.env.CLOUDSANDBOX_TEST_FEW_ROWS ? all.slice(0, 1) : all;

/** An emulator for one test; sandboxes that `make` has made are closed with it, at the test's end. */
export async function open(t, remote, settings = {}) {
  const { emulator, connection, urls } = await remote.start(settings);
  const { engine } = emulator;
  const sandboxes = [];
  t.after(async () => {
    engine.clearFaults();
    await Promise.all(sandboxes.map((sandbox) => sandbox.close()));
    await emulator.close();
    assert.deepEqual(engine.errors, []);
    remote.checkEnd(emulator);
  });
  return {
    emulator,
    engine,
    urls,
    options: connection,
    make(options) {
      const sandbox = new cloudsandbox[remote.Class]({ ...connection, ...(settings.tls && { ca: settings.tls.cert }), ...options });
      sandboxes.push(sandbox);
      return sandbox;
    },
  };
}

/** A program that has made `sandbox`; in a worker thread the package has to be found by its address. */
export const program = (remote, options, body, from = "cloudsandbox") =>
  `const { ${remote.Class} } = await import(${JSON.stringify(from)});
   const sandbox = new ${remote.Class}(${JSON.stringify(options)});
   ${body}`;

/** Variables of this machine's user must not decide a test. */
export function withoutVariables() {
  const names = Object.keys(process.env).filter((name) => /^(E2B|DAYTONA|VERCEL|SANDBOX_HTTP|AWS|BEDROCK_AGENTCORE|MODAL)_|^(https?|no|all)_proxy$/i.test(name));
  const saved = names.map((name) => [name, process.env[name]]);
  for (const name of names) delete process.env[name];
  after(() => Object.assign(process.env, Object.fromEntries(saved)));
}
