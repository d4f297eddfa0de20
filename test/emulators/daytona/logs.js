// What a session's command has printed: asked for once, or followed over a WebSocket or over plain HTTP.
// @ts-check
import { goJson, goText } from "./gojson.js";
import { STDERR_MARK, STDOUT_MARK } from "./session.js";
import { compareVersions } from "./versions.js";
import { WebSocketChannel, wantsWebSocket } from "./websocket.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */
/** @typedef {import("../exchange.js").Reply} Reply */
/** @typedef {import("./sandbox.js").Sandbox} Sandbox */
/** @typedef {import("./session.js").Command} Command */

const VERSION_PROTOCOL = "X-Daytona-SDK-Version~";
const SPLIT_SINCE = "0.27.0";
const FIELDS_SINCE = "0.167.0";

/** What the SDK says of itself, in a header or, where a browser cannot set one, in a subprotocol. @param {Exchange} exchange */
function sdkVersion(exchange) {
  const named = exchange.header("x-daytona-sdk-version");
  if (named) return named;
  const offered = (exchange.header("sec-websocket-protocol") ?? "").split(",").map((name) => name.trim());
  return offered.find((name) => name.startsWith(VERSION_PROTOCOL))?.slice(VERSION_PROTOCOL.length);
}

/**
 * How the asking client wants its output: without marks, with them, or also in fields of their own.
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 * @returns {"plain" | "marked" | "fields"}
 */
export function outputForm(exchange, sandbox) {
  const version = sdkVersion(exchange);
  if (!version) return exchange.header("x-daytona-split-output") === "true" ? "marked" : "plain";
  if ((compareVersions(version, SPLIT_SINCE) ?? 1) < 0) return "plain";
  const fields = (compareVersions(version, FIELDS_SINCE) ?? 1) >= 0 && sandbox.daemonAtLeast(FIELDS_SINCE);
  return fields ? "fields" : "marked";
}

/** Takes marks away, wherever the bytes are cut. */
export class MarkFilter {
  #held = Buffer.alloc(0);
  /** @type {"stdout" | "stderr" | undefined} */
  stream;

  /** @param {Buffer} chunk @returns {{ stream: "stdout" | "stderr" | undefined, bytes: Buffer }[]} */
  take(chunk) {
    const bytes = Buffer.concat([this.#held, chunk]);
    const parts = [];
    let start = 0;
    let at = 0;
    for (; at + 3 <= bytes.length;) {
      const three = bytes.subarray(at, at + 3);
      const found = three.equals(STDOUT_MARK) ? "stdout" : three.equals(STDERR_MARK) ? "stderr" : undefined;
      if (!found) {
        at += 1;
        continue;
      }
      if (at > start) parts.push({ stream: this.stream, bytes: bytes.subarray(start, at) });
      this.stream = found;
      at += 3;
      start = at;
    }
    let keep = bytes.length;
    while (keep > start && bytes.length - keep < 2 && (bytes[keep - 1] === 1 || bytes[keep - 1] === 2)) keep -= 1;
    if (keep > start) parts.push({ stream: this.stream, bytes: bytes.subarray(start, keep) });
    this.#held = bytes.subarray(keep);
    return parts;
  }

  rest() {
    return { stream: this.stream, bytes: this.#held };
  }
}

/** A log's two streams and their mixture, without marks. @param {Buffer} log */
export function splitLog(log) {
  const filter = new MarkFilter();
  const parts = [...filter.take(log), filter.rest()];
  const only = (/** @type {string | undefined} */ stream) =>
    Buffer.concat(parts.filter((part) => stream === undefined || part.stream === stream).map(({ bytes }) => bytes));
  return { stdout: only("stdout"), stderr: only("stderr"), both: only(undefined) };
}

/**
 * The whole log, once.
 * @param {Buffer} log
 * @param {"plain" | "marked" | "fields"} form
 * @returns {Reply}
 */
function wholeLog(log, form) {
  if (form === "fields") {
    const { stdout, stderr } = splitLog(log);
    const body = goJson({ output: goText(log), stdout: goText(stdout), stderr: goText(stderr) });
    return { status: 200, headers: { "content-type": "application/json; charset=utf-8" }, body };
  }
  const body = form === "plain" ? splitLog(log).both : log;
  return { status: 200, headers: { "content-type": "text/plain; charset=utf-8" }, body };
}

/**
 * A command's log as it grows: pieces, until the command is over or its session gone.
 * @param {Command} command
 * @param {Sandbox} sandbox
 * @param {AbortSignal} signal
 */
async function* grow(command, sandbox, signal) {
  /** @type {Buffer[]} */
  const queue = [command.log];
  let wake = () => {};
  let ended = command.exitCode !== undefined;
  const onOutput = (/** @type {Buffer} */ bytes) => {
    queue.push(bytes);
    wake();
  };
  const onEnd = () => {
    ended = true;
    wake();
  };
  command.on("output", onOutput).on("end", onEnd);
  signal.addEventListener("abort", onEnd, { once: true });
  try {
    for (;;) {
      for (let piece = queue.shift(); piece; piece = queue.shift()) yield piece;
      if (ended) break;
      await /** @type {Promise<void>} */ (new Promise((resolve) => (wake = resolve)));
    }
    if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, sandbox.settings.followEndMs));
  } finally {
    command.off("output", onOutput).off("end", onEnd);
    signal.removeEventListener("abort", onEnd);
  }
}

/**
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 * @param {AsyncIterable<Buffer>} pieces
 * @param {AbortController} stop
 */
async function sendFrames(exchange, sandbox, pieces, stop) {
  const version = sdkVersion(exchange);
  const channel = await WebSocketChannel.accept(exchange, version ? [`${VERSION_PROTOCOL}${version}`] : []);
  if (!channel) return;
  const filter = outputForm(exchange, sandbox) === "plain" ? new MarkFilter() : undefined;
  const { frameBytes } = sandbox.settings;
  void channel.closed.then(() => stop.abort());
  for await (const piece of pieces) {
    const bytes = filter ? Buffer.concat(filter.take(piece).map((part) => part.bytes)) : piece;
    for (let at = 0; at < bytes.length; at += frameBytes) await channel.send(bytes.subarray(at, at + frameBytes));
  }
  const rest = filter?.rest().bytes;
  if (rest?.length) await channel.send(rest);
  await channel.close(1000);
}

/**
 * The runner's stream: no marks, no end until the command's.
 * @param {Exchange} exchange
 * @param {AsyncIterable<Buffer>} pieces
 */
async function sendChunks(exchange, pieces) {
  await exchange.open(200, { "content-type": "application/octet-stream" });
  const filter = new MarkFilter();
  for await (const piece of pieces) for (const { bytes } of filter.take(piece)) await exchange.write(bytes);
  await exchange.write(filter.rest().bytes);
  await exchange.end();
}

/**
 * @param {Exchange} exchange
 * @param {Sandbox} sandbox
 * @param {Command} command
 * @returns {Promise<Reply | undefined>}
 */
export async function serveLog(exchange, sandbox, command) {
  const follow = exchange.query.get("follow") === "true";
  const stop = new AbortController();
  exchange.signal.addEventListener("abort", () => stop.abort(), { once: true });
  const pieces = follow ? grow(command, sandbox, stop.signal) : once(command.log);
  if (wantsWebSocket(exchange)) await sendFrames(exchange, sandbox, pieces, stop);
  else if (follow && sandbox.settings.runner) await sendChunks(exchange, pieces);
  else return wholeLog(command.log, outputForm(exchange, sandbox));
  return undefined;
}

/** @param {Buffer} bytes */
async function* once(bytes) {
  yield bytes;
}
