// The command router: modal.task_command_router.TaskCommandRouter.
// @ts-check
import { environmentOf } from "./control.js";
import { GrpcError } from "./grpc.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */
/** @typedef {import("./fleet.js").Fleet} Fleet */

const MAX_ARGS_BYTES = 128 * 1024;

export class Router {
  /** @param {Fleet} fleet */
  constructor(fleet) {
    this.fleet = fleet;
  }

  /** @param {string} _method @param {Exchange} exchange */
  check(_method, exchange) {
    if (exchange.headers["x-modal-token-secret"] || exchange.headers["x-modal-auth-token"]) {
      throw new GrpcError("INVALID_ARGUMENT", "credentials of the control plane came to the router");
    }
  }

  /** @param {string} taskId @param {Exchange} exchange */
  #sandbox(taskId, exchange) {
    const jwt = /^Bearer (.+)$/.exec(exchange.header("authorization") ?? "")?.[1];
    const sandbox = this.fleet.byTask(taskId);
    if (!jwt) throw new GrpcError("UNAUTHENTICATED", "no token");
    if (!sandbox || sandbox.result) throw new GrpcError("NOT_FOUND", `task ${taskId} not found`);
    const { exp } = JSON.parse(Buffer.from(jwt.split(".")[1], "base64url").toString());
    if (!sandbox.jwts.has(jwt) || exp * 1000 <= Date.now()) throw new GrpcError("UNAUTHENTICATED", "token is expired or not valid");
    return sandbox;
  }

  /** @param {any} request @param {Exchange} exchange */
  #exec({ taskId, execId }, exchange) {
    const exec = this.#sandbox(taskId, exchange).execs.get(execId);
    if (!exec) throw new GrpcError("NOT_FOUND", `exec ${execId} not found`);
    return exec;
  }

  /** @param {any} request @param {Exchange} exchange */
  async TaskExecStart(request, exchange) {
    const { taskId, execId, args, stdout = 0, stderr = 0, timeoutSecs, workdir, secretIds, env, secretSources } = request;
    const sandbox = this.#sandbox(taskId, exchange);
    if (sandbox.execs.has(execId)) return;
    if (args.length === 0) throw new GrpcError("INVALID_ARGUMENT", "command_args is empty");
    const sent = args.reduce((/** @type {number} */ sum, /** @type {string} */ arg) => sum + Buffer.byteLength(arg), 0);
    if (sent > MAX_ARGS_BYTES) throw new GrpcError("INVALID_ARGUMENT", `command_args has ${sent} bytes`);
    const sources = [...secretIds.map((/** @type {string} */ secretId) => ({ secretId })), ...secretSources, { env: { contents: env } }];
    await sandbox.run({ args, stdout, stderr, timeoutSecs, workdir, env: environmentOf(sources, this.fleet) }, execId);
  }

  /** @param {any} request @param {Exchange} exchange */
  async *TaskExecStdioRead(request, exchange) {
    const { offset = 0, fd = 0 } = request;
    yield* this.#exec(request, exchange).follow(offset, fd, exchange.signal);
  }

  /** @param {any} request @param {Exchange} exchange */
  TaskExecWait(request, exchange) {
    return this.#exec(request, exchange).wait(exchange.signal);
  }

  /** @param {any} request @param {Exchange} exchange */
  TaskExecPoll(request, exchange) {
    return this.#exec(request, exchange).end ?? {};
  }

  /** @param {any} request @param {Exchange} exchange */
  TaskExecStdinStatus(request, exchange) {
    return this.#exec(request, exchange).inputStatus;
  }

  /** @param {any} request @param {Exchange} exchange */
  async TaskExecStdinWrite(request, exchange) {
    const { offset = 0, data = Buffer.alloc(0), eof = false } = request;
    await this.#exec(request, exchange).write(offset, data, eof);
  }

  /** @param {AsyncIterable<any>} messages @param {Exchange} exchange */
  async TaskExecStdinWriteStream(messages, exchange) {
    let exec;
    let offset = 0;
    for await (const { start, data, end } of messages) {
      if (start) {
        exec = this.#exec(start, exchange);
        offset = start.offset ?? 0;
      } else if (!exec) throw new GrpcError("INVALID_ARGUMENT", "the first message is no start");
      else if (data) {
        await exec.write(offset, data, false);
        offset += data.length;
      } else if (end) await exec.write(offset, Buffer.alloc(0), true);
    }
  }
}
