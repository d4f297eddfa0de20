// Our sandboxes behind the sandbox features of frameworks: AI SDK 7's session, deepagents' backend.
import assert from "node:assert/strict";
import { test } from "node:test";

import { AIMessage, ToolMessage } from "@langchain/core/messages";
import { fakeModel } from "@langchain/core/testing";
import { getConfig } from "@langchain/langgraph";
import { generateText, isStepCount, jsonSchema, tool } from "ai-7";
import { MockLanguageModelV4 } from "ai-7/test";
import { LocalSandbox } from "cloudsandbox";
import { aiSdkSandbox } from "cloudsandbox/ai-sdk";
import { deepAgentsBackend } from "cloudsandbox/deepagents";
import { BaseSandbox, createDeepAgent } from "deepagents";

import { mark } from "../../support/processes.js";

function open(t, options) {
  const sandbox = new LocalSandbox({ trusted: true, ...options });
  t.after(() => sandbox.close());
  return sandbox;
}

test("AI SDK 7: a tool works in the session that the run was given", async (t) => {
  const sandbox = open(t);
  const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
  const call = { type: "tool-call", toolCallId: "1", toolName: "count", input: '{"text":"a b c"}' };
  const model = new MockLanguageModelV4({
    doGenerate: [
      { content: [call], finishReason: { unified: "tool-calls" }, usage, warnings: [] },
      { content: [{ type: "text", text: "done" }], finishReason: { unified: "stop" }, usage, warnings: [] },
    ],
  });
  const count = tool({
    description: "Counts words.",
    inputSchema: jsonSchema({ type: "object", properties: { text: { type: "string" } } }),
    async execute({ text }, { experimental_sandbox: session, abortSignal }) {
      await session.writeTextFile({ path: "t", content: text, abortSignal });
      const { stdout, exitCode } = await session.run({ command: "wc -w <t", abortSignal });
      return `${stdout.trim()} ${exitCode}`;
    },
  });
  const { text, steps } = await generateText({ model, prompt: "Go on.", tools: { count }, stopWhen: isStepCount(3), experimental_sandbox: aiSdkSandbox(sandbox) });
  assert.equal(text, "done");
  assert.equal(steps[0].toolResults[0].output, "3 0");
});

/** Runs a deep agent whose model makes these calls, one a turn; what each came to. */
async function play(backend, calls, signal) {
  let model = fakeModel();
  for (const [index, [name, args]] of calls.entries()) model = model.respondWithTools([{ name, args, id: `c${index}` }]);
  const agent = createDeepAgent({ model: model.respond(new AIMessage("done")), backend });
  const { messages } = await agent.invoke({ messages: "Go on." }, { signal, recursionLimit: 100 });
  assert.equal(messages.at(-1).content, "done");
  return messages.filter((message) => ToolMessage.isInstance(message)).map(({ content }) => (typeof content === "string" ? content : content.map((part) => part.text).join("")));
}

test("deepagents: commands and all its file tools, and a result that is too long for its model", async (t) => {
  const sandbox = open(t);
  const dir = await sandbox.start().then(() => sandbox.sandboxId);
  const results = await play(deepAgentsBackend(sandbox, BaseSandbox), [
    ["write_file", { file_path: `${dir}/notes/a.txt`, content: "one\ntwo\n" }],
    ["edit_file", { file_path: `${dir}/notes/a.txt`, old_string: "two", new_string: "2" }],
    ["read_file", { file_path: `${dir}/notes/a.txt` }],
    ["ls", { path: `${dir}/notes` }],
    ["grep", { pattern: "one", path: dir }],
    ["execute", { command: "cat notes/a.txt; exit 3" }],
    ["execute", { command: "seq 1 40000" }],
    ["read_file", { file_path: "/large_tool_results/c6.txt", limit: 3 }],
  ]);
  assert.equal(await sandbox.readFile("notes/a.txt"), "one\n2\n");
  assert.match(results[2], /one[^]*2/);
  assert.match(results[3], /a\.txt/);
  assert.match(results[4], /notes\/a\.txt/);
  assert.match(results[5], /one\n2\n[^]*3/);
  assert.match(results[6], /large_tool_results/);
  assert.match(results[7], /\b1\n[^]*\b2\n[^]*\b3/);
});

test("deepagents: an aborted run ends its command", async (t) => {
  const { env, started, gone } = mark();
  const controller = new AbortController();
  const backend = deepAgentsBackend(open(t, { env }), BaseSandbox, { signal: () => getConfig()?.signal });
  const ended = Promise.allSettled([play(backend, [["execute", { command: "sleep 600" }]], controller.signal)]);
  await started();
  controller.abort();
  await gone();
  await ended;
});
