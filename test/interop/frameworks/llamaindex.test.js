// LlamaIndex.TS: an agent with a scripted model, through cloudsandbox/llamaindex. It writes what a tool returns as JSON and
// takes the quotes out, so the model does not read the texts that it reads elsewhere.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { agent } from "@llamaindex/workflow";
import { LocalSandboxToolkit } from "cloudsandbox";
import { llamaIndexTools } from "cloudsandbox/llamaindex";
import { BaseLLM } from "llamaindex";

import { mark } from "../../support/processes.js";
import { ANSWER, Script } from "../../support/agent-suite.js";

/** A model that makes the script's calls; `seen` has the tools as they came. */
class Scripted extends BaseLLM {
  supportToolCall = true;
  metadata = { model: "scripted", temperature: 0, topP: 1, contextWindow: 100_000, tokenizer: undefined, structuredOutput: false };
  constructor(script) {
    super();
    this.script = script;
  }
  async chat({ tools = [], messages, stream }) {
    const offered = tools.map(({ metadata: { name, description, parameters: schema } }) => ({ name, description, schema }));
    const results = messages
      .filter(({ options }) => options?.toolResult)
      .map(({ options: { toolResult } }) => ({ id: toolResult.id, text: toolResult.result, failed: toolResult.isError }));
    const calls = this.script.next(offered, results).map(({ id, name, args }) => ({ id, name, input: args }));
    const options = calls.length > 0 ? { toolCall: calls } : {};
    const content = calls.length > 0 ? "" : ANSWER;
    if (!stream) return { raw: {}, message: { role: "assistant", content, options } };
    return (async function* () {
      yield { raw: {}, delta: content, options };
    })();
  }
}

async function play(t, turns, options, toolkit = new LocalSandboxToolkit({ isolation: "none" })) {
  t.after(() => toolkit.close());
  const script = new Script(turns);
  const { data } = await agent({ llm: new Scripted(script), tools: llamaIndexTools(toolkit.getTools(), options) }).run("Go on.");
  assert.equal(data.result, ANSWER);
  return { script, toolkit };
}

describe("LlamaIndex", () => {
  test("the model is offered JSON Schemas, and reads results, files and failures", async (t) => {
    const { script, toolkit } = await play(t, [
      [["write_file", { path: "f", contents: "a\n" }], ["shell", { command: "echo one; exit 3", timeoutSeconds: null }]],
      [["read_file", { path: "f" }], ["shell", { cmd: "ls" }]],
      [["read_file", { path: "../x" }]],
    ]);
    const described = toolkit.getTools().map(({ name, description, rawJsonSchema: schema }) => ({ name, description, schema }));
    assert.deepEqual(script.offered, described);
    const [written, result, read, refused, outside] = script.texts;
    assert.equal(written, "ok");
    assert.match(result, /output: one\\n,\s+exitCode: 3/);
    assert.equal(read, "a\\n");
    assert.match(refused, /^Error: sandbox_local_shell was not run, .*`command` is missing/);
    assert.match(outside, /^Error: sandbox_local_read_file failed: .*Nothing was read/);
  });

  test("the signal of the options ends what runs", async (t) => {
    const { env, started, gone } = mark();
    const controller = new AbortController();
    const toolkit = new LocalSandboxToolkit({ isolation: "none", env });
    const running = play(t, [[["shell", { command: "sleep 600 & sleep 600", timeoutSeconds: 900 }]]], { signal: controller.signal }, toolkit);
    const ended = Promise.allSettled([running]);
    await started(2);
    controller.abort();
    await gone();
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 1000))]);
  });
});
