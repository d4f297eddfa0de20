// The control plane: modal.client.ModalClient.
// @ts-check
import { GrpcError } from "./grpc.js";
import { makeId, makeJwt, RESULT } from "./fleet.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */
/** @typedef {import("./fleet.js").Fleet} Fleet */
/** @typedef {import("./fleet.js").Sandbox} Sandbox */

const BUILDERS = ["2023.12", "2024.04", "2024.10", "2025.06", "PREVIEW"];
const NAME = /^[a-zA-Z0-9._-]{1,64}$/;
const MAX_LIFETIME_SECONDS = 86400;
/** Clients may call these before they have a token. */
const BEFORE_TOKEN = new Set([
  "ClientHello", "AuthTokenGet", "AppGetOrCreate", "EnvironmentGetOrCreate", "ImageGetOrCreate", "ImageJoinStreaming", "ImageFromId",
  "SecretGetOrCreate",
]);

/** @param {{ secretId?: string, env?: { contents: Record<string, string> } }[]} sources @param {Fleet} fleet */
export function environmentOf(sources, fleet) {
  return Object.assign({}, ...sources.map(({ secretId, env }) => env?.contents ?? fleet.secrets.get(secretId ?? "") ?? {}));
}

export class Control {
  /** Idempotency keys of creates. @type {Map<string, Sandbox>} */
  #created = new Map();

  /** @param {Fleet} fleet */
  constructor(fleet) {
    this.fleet = fleet;
    this.settings = fleet.settings;
  }

  /** Whose call it is. @param {string} method @param {Exchange} exchange */
  check(method, exchange) {
    const { settings } = this;
    const id = exchange.header("x-modal-token-id");
    if (!id || settings.tokens[id] === undefined || settings.tokens[id] !== exchange.header("x-modal-token-secret")) {
      throw new GrpcError("UNAUTHENTICATED", "Token validation failed. Could not find the token.");
    }
    for (const name of ["x-modal-client-type", "x-modal-client-version"]) {
      if (!exchange.header(name)) throw new GrpcError("INVALID_ARGUMENT", `${name} is missing`);
    }
    if (BEFORE_TOKEN.has(method)) return;
    const token = exchange.header("x-modal-auth-token");
    if (!token || !settings.authTokens.has(token)) throw new GrpcError("UNAUTHENTICATED", "auth token is missing or not valid");
  }

  /** @param {string} id @param {Exchange} exchange */
  #sandbox(id, exchange) {
    const sandbox = this.fleet.sandboxes.get(id);
    if (!sandbox || sandbox.tokenId !== exchange.header("x-modal-token-id")) throw new GrpcError("NOT_FOUND", `Sandbox ${id} not found`);
    return sandbox;
  }

  ClientHello() {
    return {};
  }

  AuthTokenGet() {
    const token = makeJwt(this.settings.authSeconds);
    this.settings.authTokens.add(token);
    return { token };
  }

  /** @param {any} request */
  AppGetOrCreate({ appName = "", creation = 0 }) {
    const { apps } = this.fleet;
    if (!NAME.test(appName) && creation !== 5) throw new GrpcError("INVALID_ARGUMENT", `Invalid app name '${appName}'`);
    if (!apps.has(appName)) {
      if (creation === 0) throw new GrpcError("NOT_FOUND", `App '${appName}' not found`);
      apps.set(appName, makeId("ap", 22));
    }
    return { appId: apps.get(appName) };
  }

  /** @param {any} request */
  EnvironmentGetOrCreate({ deploymentName = "main" }) {
    if (!this.settings.environments.includes(deploymentName)) throw new GrpcError("NOT_FOUND", `Environment '${deploymentName}' not found`);
    return { environmentId: "en-1", metadata: { name: deploymentName, settings: { imageBuilderVersion: this.settings.builder } } };
  }

  /** @param {any} request */
  ImageGetOrCreate({ image, appId, builderVersion }) {
    const { fleet, settings } = this;
    if (![...fleet.apps.values()].includes(appId)) throw new GrpcError("NOT_FOUND", `App ${appId} not found`);
    if (!BUILDERS.includes(builderVersion)) throw new GrpcError("INVALID_ARGUMENT", `Unknown image builder version '${builderVersion}'`);
    const recipe = JSON.stringify([image?.dockerfileCommands, image?.baseImages?.map((/** @type {any} */ base) => base.imageId), builderVersion]);
    let made = fleet.images.get(recipe);
    if (!made) {
      const fails = image?.dockerfileCommands?.some((/** @type {string} */ line) => line.includes("no-such-image")) ? "failed to pull image" : undefined;
      made = { id: makeId("im", 22), builds: settings.builds, ...(fails && { fails }) };
      fleet.images.set(recipe, made);
    }
    return { imageId: made.id, ...(made.builds === 0 && { result: this.#result(made) }) };
  }

  /** @param {{ fails?: string }} image */
  #result({ fails }) {
    return fails ? { status: RESULT.failure, exception: fails } : { status: RESULT.success };
  }

  /** @param {string} id */
  #image(id) {
    const image = [...this.fleet.images.values()].find((one) => one.id === id);
    if (!image) throw new GrpcError("NOT_FOUND", `Image ${id} not found`);
    return image;
  }

  /** @param {any} request */
  ImageFromId({ imageId }) {
    return { imageId: this.#image(imageId).id };
  }

  /** The last of its calls brings the result. @param {any} request */
  async *ImageJoinStreaming({ imageId, lastEntryId = "" }) {
    const image = this.#image(imageId);
    const entry = Number(lastEntryId.split("-")[1] ?? 0) + 1;
    yield { logs: [{ data: "#1 pulling\n" }], entryId: `entry-${entry}` };
    image.builds = Math.max(0, image.builds - 1);
    if (image.builds === 0) yield { result: this.#result(image), entryId: `entry-${entry + 1}`, eof: true };
  }

  /** @param {any} request */
  SecretGetOrCreate({ env }) {
    const secretId = makeId("st", 22);
    this.fleet.secrets.set(secretId, env);
    return { secretId };
  }

  /** @param {any} request @param {Exchange} exchange @param {boolean} v2 */
  #make(request, exchange, v2) {
    const { fleet } = this;
    const { appId, tags } = request;
    const definition = request.definition ?? {};
    const tokenId = exchange.header("x-modal-token-id") ?? "";
    const key = exchange.header("x-idempotency-key");
    if (key && this.#created.has(key)) return /** @type {Sandbox} */ (this.#created.get(key));
    if (![...fleet.apps.values()].includes(appId)) throw new GrpcError("NOT_FOUND", `App ${appId} not found`);
    this.#image(definition.imageId);
    if (definition.resources?.gpu?.gpuType && v2) throw new GrpcError("INVALID_ARGUMENT", "GPUs are not supported");
    if (definition.timeoutSecs > MAX_LIFETIME_SECONDS) throw new GrpcError("INVALID_ARGUMENT", "timeout_secs must be at most 86400");
    const alive = fleet.all().filter((sandbox) => !sandbox.result && sandbox.tokenId === tokenId);
    if (alive.length >= this.settings.limit) throw new GrpcError("RESOURCE_EXHAUSTED", "Workspace has reached its limit of sandboxes");
    if (definition.name && alive.some((sandbox) => sandbox.name === definition.name && sandbox.appId === appId)) {
      throw new GrpcError("ALREADY_EXISTS", `Sandbox with name '${definition.name}' already exists`);
    }
    const sources = [
      { env: request.ephemeralSecrets },
      ...(definition.secretIds ?? []).map((/** @type {string} */ secretId) => ({ secretId })),
      ...(request.secretSources ?? []),
    ];
    const sandbox = fleet.make(v2, { tokenId, appId, definition, env: environmentOf(sources, fleet), tags });
    if (key) this.#created.set(key, sandbox);
    return sandbox;
  }

  /** @param {any} request @param {Exchange} exchange */
  SandboxCreate(request, exchange) {
    return { sandboxId: this.#make(request, exchange, false).id };
  }

  /** @param {any} request @param {Exchange} exchange */
  SandboxCreateV2(request, exchange) {
    const sandbox = this.#make(request, exchange, true);
    const { id, taskId } = sandbox;
    const ready = this.settings.startMs === 0;
    return { sandboxId: id, ...(ready && { taskId, access: sandbox.access() }), sandboxToken: "token" };
  }

  /** @param {any} request @param {Exchange} exchange */
  SandboxGetTaskId({ sandboxId }, exchange) {
    const { result, readyAt, taskId } = this.#sandbox(sandboxId, exchange);
    if (result) return { taskId, taskResult: result };
    return Date.now() < readyAt ? {} : { taskId };
  }

  /** @param {any} request @param {Exchange} exchange */
  SandboxGetTaskIdV2(request, exchange) {
    return this.SandboxGetTaskId(request, exchange);
  }

  /** @param {any} request @param {Exchange} exchange */
  async SandboxWait({ sandboxId, timeout = 0 }, exchange) {
    const sandbox = this.#sandbox(sandboxId, exchange);
    const until = Date.now() + timeout * 1000;
    while (!sandbox.result && Date.now() < until && !exchange.signal.aborted) await new Promise((resolve) => setTimeout(resolve, 20));
    return { result: sandbox.result };
  }

  /** @param {any} request @param {Exchange} exchange */
  SandboxWaitV2(request, exchange) {
    return this.SandboxWait(request, exchange);
  }

  /** @param {any} request @param {Exchange} exchange */
  SandboxTerminate({ sandboxId }, exchange) {
    const sandbox = this.#sandbox(sandboxId, exchange);
    const existingResult = sandbox.result;
    sandbox.end(RESULT.terminated);
    return { existingResult };
  }

  /** @param {any} request @param {Exchange} exchange */
  SandboxTerminateV2(request, exchange) {
    return this.SandboxTerminate(request, exchange);
  }

  /** @param {any} request @param {Exchange} exchange */
  SandboxGetFromName({ sandboxName, appName }, exchange) {
    const appId = this.fleet.apps.get(appName);
    const found = this.fleet.all().find((one) => one.name === sandboxName && one.appId === appId && !one.result);
    if (!found || found.tokenId !== exchange.header("x-modal-token-id")) throw new GrpcError("NOT_FOUND", `no sandbox '${sandboxName}'`);
    return { sandboxId: found.id };
  }

  /** @param {any} request @param {Exchange} exchange */
  SandboxGetFromNameV2(request, exchange) {
    return this.SandboxGetFromName(request, exchange);
  }

  /** @param {any} request @param {Exchange} exchange */
  SandboxList({ appId, before, tags }, exchange) {
    const has = (/** @type {Sandbox} */ sandbox) =>
      tags.every((/** @type {any} */ tag) => sandbox.tags.some(({ name, value }) => name === tag.name && value === tag.value));
    const tokenId = exchange.header("x-modal-token-id");
    const found = this.fleet.all().filter(
      (sandbox) => !sandbox.result && sandbox.tokenId === tokenId && (!appId || sandbox.appId === appId) && has(sandbox) && (!before || sandbox.createdAt < before),
    );
    return { sandboxes: found.map(({ id, createdAt, appId: app, tags: all, name }) => ({ id, createdAt, appId: app, tags: all, name })) };
  }

  /** @param {any} request @param {Exchange} exchange */
  SandboxListV2(request, exchange) {
    return this.SandboxList(request, exchange);
  }

  /** @param {any} request @param {Exchange} exchange */
  TaskGetCommandRouterAccess({ taskId }, exchange) {
    const sandbox = this.fleet.byTask(taskId);
    if (!sandbox || sandbox.tokenId !== exchange.header("x-modal-token-id")) throw new GrpcError("NOT_FOUND", `Task ${taskId} not found`);
    return this.#access(sandbox);
  }

  /** @param {any} request @param {Exchange} exchange */
  SandboxGetCommandRouterAccess({ sandboxId }, exchange) {
    return this.#access(this.#sandbox(sandboxId, exchange));
  }

  /** @param {Sandbox} sandbox */
  #access(sandbox) {
    if (sandbox.result) throw new GrpcError("FAILED_PRECONDITION", "the sandbox is not running");
    return sandbox.access();
  }
}
