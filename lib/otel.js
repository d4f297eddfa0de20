// Records as spans of OpenTelemetry, by the API that the program has installed: a call is a span, and one that was
// made for an agent's tool is what the semantic conventions for generative AI call the execution of a tool.
//
// Invariant: attributes hold what records hold, and so no contents.
// @ts-ignore: an optional peer, which is not installed here
import { SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";

import { onRecord } from "./records.js";
import { checkNames, invalid } from "./options.js";

/** @import { SandboxRecord } from "../types/records.js" */
/** @typedef {import("../types/otel.js").SpanLike} Span */

/** Members that have an attribute of their own, or none. */
const OWN = new Set([
  "type", "phase", "at", "callId", "tool", "toolCallId", "provider", "sandboxId", "instanceId", "error", "exitCode", "path", "operation", "action",
]);

/**
 * Makes spans of all records from now on, until the function that it returns is called.
 *
 * @param {import("../types/otel.js").TraceOptions} [options]
 * @returns {() => void}
 */
export function traceSandboxes(options) {
  const { tracer = trace.getTracer("cloudsandbox") } = checkNames(options, ["tracer"], "traceSandboxes");
  if (typeof tracer?.startSpan !== "function") throw invalid("traceSandboxes: `tracer` must be a tracer of OpenTelemetry, as trace.getTracer(\"name\") gives one");
  const tracing = new Tracing(tracer);
  const stop = onRecord((record) => tracing.add(/** @type {any} */ (record)));
  return () => {
    stop();
    tracing.end();
  };
}

class Tracing {
  #tracer;
  /** Of commands that run. @type {Map<string, Span>} */
  #running = new Map();

  /** @param {import("../types/otel.js").TracerLike} tracer */
  constructor(tracer) {
    this.#tracer = tracer;
  }

  /** @param {SandboxRecord & Record<string, any>} record */
  add(record) {
    switch (record.type) {
      case "exec":
        return record.phase === "begin" ? this.#begin(record) : this.#end(record);
      case "file":
        return this.#past(record, nameOf(record, record.operation === "list" ? "sandbox list_files" : `sandbox ${record.operation}_file`));
      case "control":
        return this.#past(record, `sandbox ${record.action}`);
      case "started":
        return this.#past(record, "sandbox start");
      case "failed":
        return this.#past(record, `sandbox ${record.what}`);
      case "seeded":
        return this.#past(record, "sandbox seed");
      case "deleted":
        return this.#past(record, "sandbox delete");
      case "timedOut":
      case "killed":
        this.#running.get(keyOf(record))?.addEvent(`cloudsandbox.${snake(record.type)}`, attributesOf(record), record.at);
        return;
      case "lost":
      case "refused":
        return this.#past({ ...record, durationMs: 0, error: { code: LOSSES[record.type] } }, `sandbox ${record.type}`);
      default:
    }
  }

  /** Commands that still run have no end that anybody will see. */
  end() {
    for (const span of this.#running.values()) span.end();
    this.#running.clear();
  }

  /** @param {Record<string, any>} record */
  #begin(record) {
    const name = nameOf(record, "sandbox exec");
    const span = this.#tracer.startSpan(name, { kind: SpanKind.INTERNAL, startTime: record.at, attributes: attributesOf(record) });
    this.#running.set(keyOf(record), span);
  }

  /** @param {Record<string, any>} record */
  #end(record) {
    const span = this.#running.get(keyOf(record));
    this.#running.delete(keyOf(record));
    if (!span) return;
    span.setAttributes(attributesOf(record));
    fail(span, record);
    span.end(record.at);
  }

  /** A span of what is over. @param {Record<string, any>} record @param {string} name */
  #past(record, name) {
    const startTime = record.at - record.durationMs;
    const span = this.#tracer.startSpan(name, { kind: SpanKind.INTERNAL, startTime, attributes: attributesOf(record) });
    fail(span, record);
    span.end(record.at);
  }
}

const LOSSES = Object.freeze({ lost: "ERR_SANDBOX_LOST", refused: "ERR_SANDBOX_QUOTA" });

/** @param {Record<string, any>} record */
function keyOf({ instanceId, callId }) {
  return `${instanceId} ${callId}`;
}

/** @param {Record<string, any>} record @param {string} plain */
function nameOf({ tool }, plain) {
  return tool === undefined ? plain : `execute_tool ${tool}`;
}

/**
 * A command that ends badly is an error of the span, as the conventions say of programs: the agent's own doing, but what one
 * looks for.
 *
 * @param {Span} span
 * @param {Record<string, any>} record
 */
function fail(span, { error, status, exitCode }) {
  const type = error?.code ?? (status === "exited" || status === undefined ? (exitCode ? String(exitCode) : undefined) : snake(status));
  if (type === undefined) return;
  span.setAttribute("error.type", type);
  span.setStatus({ code: SpanStatusCode.ERROR });
}

/** @param {Record<string, any>} record */
function attributesOf(record) {
  const { tool, toolCallId, provider, sandboxId, instanceId, exitCode, path, error } = record;
  /** @type {Record<string, any>} */
  const attributes = { "cloudsandbox.provider": provider, "cloudsandbox.instance.id": instanceId };
  if (sandboxId !== null) attributes["cloudsandbox.sandbox.id"] = sandboxId;
  if (tool !== undefined) {
    attributes["gen_ai.operation.name"] = "execute_tool";
    attributes["gen_ai.tool.name"] = tool;
    attributes["gen_ai.tool.type"] = "function";
    if (toolCallId !== undefined) attributes["gen_ai.tool.call.id"] = toolCallId;
  }
  if (exitCode !== undefined) attributes["process.exit.code"] = exitCode;
  if (path !== undefined) attributes["file.path"] = path;
  if (error?.status !== undefined) attributes["http.response.status_code"] = error.status;
  if (error?.mayHaveRun) attributes["cloudsandbox.may_have_run"] = true;
  for (const [name, value] of Object.entries(record)) {
    if (!OWN.has(name) && value !== null && value !== undefined) attributes[`cloudsandbox.${snake(name)}`] = value;
  }
  return attributes;
}

/** @param {string} name */
function snake(name) {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
