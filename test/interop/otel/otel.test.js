// Records as spans, seen by OpenTelemetry's own SDK and its exporter in memory.
import assert from "node:assert/strict";
import { once } from "node:events";
import { beforeEach, test } from "node:test";

import { SpanKind, SpanStatusCode, context, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { LocalSandbox, LocalSandboxToolkit, SandboxAgent } from "cloudsandbox";
import { traceSandboxes } from "cloudsandbox/otel";
import { onRecord } from "cloudsandbox/records";

const exporter = new InMemorySpanExporter();
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
const tracer = trace.getTracer("test");

beforeEach(() => exporter.reset());

function traced(t, options) {
  const stop = traceSandboxes(options);
  t.after(stop);
  return stop;
}

const spans = () => exporter.getFinishedSpans();
const named = (name) => spans().filter((span) => span.name === name);
const milliseconds = ([seconds, nanoseconds]) => seconds * 1000 + nanoseconds / 1e6;

test("a session: its spans, their times and attributes", async (t) => {
  traced(t);
  const sandbox = new LocalSandbox({ isolation: "none" });
  await sandbox.exec({ command: "printf abc; printf de >&2; exit 3" });
  await sandbox.writeFile("d/f", "12345");
  await sandbox.readFile("d/f/g").catch(() => {});
  const { sandboxId } = sandbox;
  await sandbox.close();
  assert.deepEqual(
    spans().map(({ name }) => name),
    ["sandbox start", "sandbox exec", "sandbox write_file", "sandbox read_file", "sandbox delete"],
  );
  const [start, exec, write, read, removal] = spans();
  assert.deepEqual(
    [exec.kind, exec.status.code, exec.attributes["process.exit.code"], exec.attributes["error.type"]],
    [SpanKind.INTERNAL, SpanStatusCode.ERROR, 3, "3"],
  );
  const { attributes } = exec;
  assert.equal(attributes["cloudsandbox.provider"], "unix-local");
  assert.equal(attributes["cloudsandbox.sandbox.id"], sandboxId);
  assert.deepEqual(
    ["kind", "status", "output_bytes", "stdout_bytes", "stderr_bytes", "truncated"].map((name) => attributes[`cloudsandbox.${name}`]),
    ["command", "exited", 5, 3, 2, false],
  );
  assert.deepEqual([write.attributes["file.path"], write.attributes["cloudsandbox.bytes"], write.status.code], ["d/f", 5, SpanStatusCode.UNSET]);
  assert.equal(read.attributes["error.type"], "ERR_SANDBOX_INVALID_ARG");
  for (const span of [start, exec, write, read, removal]) {
    assert.ok(milliseconds(span.endTime) >= milliseconds(span.startTime), span.name);
    assert.doesNotMatch(JSON.stringify(span.attributes), /printf|12345/);
  }
  assert.ok(milliseconds(exec.endTime) >= milliseconds(start.endTime));
});

test("under the caller's span; a tool's call is the execution of a tool", async (t) => {
  traced(t);
  const toolkit = new LocalSandboxToolkit({ isolation: "none" });
  const [run, shell, write] = toolkit.getTools();
  await tracer.startActiveSpan("invoke_agent me", async (span) => {
    await shell.execute({ command: "true" }, { toolCallId: "call_1" });
    await Promise.all([run.execute({ code: "print(1)" }, {}, { toolCall: { callId: "call_2" } }), write.execute({ path: "f", contents: "x" })]);
    span.end();
  });
  await toolkit.getSandbox().shell("true");
  await toolkit.close();
  const [parent] = named("invoke_agent me");
  const tools = ["sandbox_local_shell", "sandbox_local_run", "sandbox_local_write_file"];
  const [first, second, third] = tools.map((name) => {
    const [span, ...more] = named(`execute_tool ${name}`);
    assert.deepEqual(more, []);
    assert.equal(span.parentSpanContext.spanId, parent.spanContext().spanId);
    assert.equal(span.attributes["gen_ai.operation.name"], "execute_tool");
    assert.equal(span.attributes["gen_ai.tool.name"], name);
    assert.equal(span.attributes["gen_ai.tool.type"], "function");
    return span.attributes["gen_ai.tool.call.id"];
  });
  assert.deepEqual([first, second, third], ["call_1", "call_2", undefined]);
  const [plain] = named("sandbox exec");
  assert.equal(plain.parentSpanContext, undefined);
  assert.equal(plain.attributes["gen_ai.operation.name"], undefined);
});

test("a timeout, an abort, a refusal, a start that fails", async (t) => {
  traced(t);
  const sandbox = new LocalSandbox({ isolation: "none", budget: { commands: 2 } });
  await sandbox.exec({ command: "sleep 60", timeoutSeconds: 0.2 });
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 100);
  await assert.rejects(sandbox.shell("sleep 60", { signal: controller.signal }));
  await assert.rejects(sandbox.shell("true"), { code: "ERR_SANDBOX_QUOTA" });
  await sandbox.close();
  const [late, aborted] = named("sandbox exec");
  assert.deepEqual([late.attributes["error.type"], aborted.attributes["error.type"]], ["timed_out", "cancelled"]);
  assert.deepEqual(late.events.map(({ name }) => name), ["cloudsandbox.timed_out", "cloudsandbox.killed"]);
  assert.deepEqual(aborted.events.map(({ name, attributes }) => [name, attributes["cloudsandbox.reason"]]), [["cloudsandbox.killed", "cancel"]]);
  assert.equal(named("sandbox refused")[0].attributes["error.type"], "ERR_SANDBOX_QUOTA");

  exporter.reset();
  const nowhere = new LocalSandbox({ isolation: "none", tempDir: "/nowhere" });
  await assert.rejects(nowhere.shell("true"));
  for (const name of ["sandbox start", "sandbox exec"]) {
    assert.equal(named(name)[0].status.code, SpanStatusCode.ERROR);
    assert.match(named(name)[0].attributes["error.type"], /^ERR_SANDBOX_/);
  }
  await nowhere.close();
});

test("seeding; and an end in the middle", async (t) => {
  const stop = traced(t, { tracer });
  const agent = new SandboxAgent({ backend: "unix-local", workspace: { files: [{ path: "a", contents: "abc" }] } });
  await agent.start();
  const [seed] = named("sandbox seed");
  assert.deepEqual([seed.attributes["cloudsandbox.files"], seed.attributes["cloudsandbox.bytes"]], [1, 3]);
  const begun = once(process, "begun");
  const unsubscribe = onRecord(({ phase }) => phase === "begin" && process.emit("begun"));
  const running = agent.shell("sleep 0.3");
  await begun;
  unsubscribe();
  stop();
  stop();
  await running;
  assert.equal(named("sandbox exec").length, 1);
  const before = spans().length;
  await agent.close();
  assert.equal(spans().length, before);
  assert.throws(() => traceSandboxes({ tracer: {} }), { code: "ERR_SANDBOX_INVALID_ARG" });
});
