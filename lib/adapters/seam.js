// What the adapters share that put a sandbox behind a framework's own: a process that runs in it.
//
// Invariant: what a framework does wrong with a stream never ends the command; the framework hears of it on the stream.
import { SandboxError } from "../errors.js";
import { invalid } from "../options.js";
import { checkSandbox } from "../toolkit.js";

/** Most bytes of a stream that wait for a reader. */
const MAX_WAITING = 64 * 1024 * 1024;
/** Of a result, per stream: what exec() keeps at most. */
export const MAX_OUTPUT = 16 * 1024 * 1024;

const NEEDED = ["exec", "readBytes", "stat", "listDirectory", "deleteFile"];

/**
 * @param {any} sandbox
 * @param {string} where
 * @param {string[]} more of its methods
 * @returns {any} one with the members that the classes of this package add to the port
 */
export function checkNative(sandbox, where, ...more) {
  checkSandbox(sandbox, where);
  const missing = [...NEEDED, ...more].filter((name) => typeof sandbox[name] !== "function");
  if (missing.length === 0) return sandbox;
  throw invalid(`${where}: the sandbox has no ${missing.join("(), ")}(); give one of the classes of this package`);
}

/** What a framework's limit in ms is here: none, when it names none. @param {number | undefined} ms */
export function secondsOf(ms) {
  return ms === undefined || ms === 0 ? Infinity : ms / 1000;
}

/**
 * A framework's callback, whose failure would end the command.
 *
 * @param {((text: string) => unknown) | undefined} callback
 * @returns {((text: string) => void) | undefined}
 */
export function guarded(callback) {
  if (!callback) return undefined;
  return (text) => {
    try {
      Promise.resolve(callback(text)).catch(() => {});
    } catch {
      // Its own affair.
    }
  };
}

/** Output for an interface that has no mark for what is cut. @param {any} result @param {"stdout" | "stderr"} name */
export function whole(result, name) {
  const lost = result.droppedBytes[name];
  return lost > 0 ? `${result[name]}\n[${lost} bytes in the middle of this were left out]\n` : result[name];
}

/** @param {string} message */
export function unsupported(message) {
  return new SandboxError(message, { code: "ERR_SANDBOX_UNSUPPORTED" });
}

/**
 * A command that is running, and its standard input where that is to stay open.
 *
 * @param {any} sandbox
 * @param {{ command: string, cwd?: string | undefined, env?: Record<string, string> | undefined, signal?: AbortSignal | undefined, stdin?: boolean | undefined }} spec
 */
export async function running(sandbox, { signal, stdin, command, ...spec }) {
  const controller = new AbortController();
  const stdout = pipe();
  const stderr = pipe();
  const options = {
    ...spec,
    timeoutSeconds: Infinity,
    encoding: "buffer",
    maxOutputBytes: 1, // The streams have it.
    onStdout: stdout.push,
    onStderr: stderr.push,
    signal: signal ? AbortSignal.any([signal, controller.signal]) : controller.signal,
  };
  const child = stdin ? await sandbox.spawn(command, options) : undefined;
  const ended = child ? child.wait() : sandbox.exec({ ...options, command });
  const settled = ended.then(
    (/** @type {any} */ result) => {
      const error = result.status === "cancelled" && signal?.aborted ? signal.reason : undefined;
      stdout.end(error);
      stderr.end(error);
      if (error !== undefined) throw error;
      return result;
    },
    (/** @type {unknown} */ error) => {
      stdout.end(error);
      stderr.end(error);
      throw error;
    },
  );
  settled.catch(() => {}); // Until somebody waits.
  return {
    stdin: child?.stdin,
    stdout: stdout.stream,
    stderr: stderr.stream,
    settled,
    async kill() {
      controller.abort(new Error("the process was killed"));
      await settled.catch(() => {});
    },
  };
}

/** A web stream that is fed by a callback. */
function pipe() {
  /** @type {ReadableStreamDefaultController<Uint8Array>} */
  let controller;
  let isOpen = true;
  const stream = new ReadableStream(
    {
      start(given) {
        controller = given;
      },
      cancel() {
        isOpen = false;
      },
    },
    { highWaterMark: 0, size: (bytes) => bytes.byteLength },
  );
  return {
    stream,
    /** @param {Uint8Array} bytes valid during the call */
    push(bytes) {
      if (!isOpen) return;
      if (-(controller.desiredSize ?? 0) > MAX_WAITING) {
        isOpen = false;
        controller.error(new Error(`more than ${MAX_WAITING} bytes of output wait for a reader; the command goes on, and the rest of this stream is lost`));
      } else {
        controller.enqueue(new Uint8Array(bytes));
      }
    },
    /** @param {unknown} error undefined at a good end */
    end(error) {
      if (!isOpen) return;
      isOpen = false;
      if (error === undefined) controller.close();
      else controller.error(error);
    },
  };
}
