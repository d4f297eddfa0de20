// Google's ADK, through cloudsandbox/google-adk.
import assert from "node:assert/strict";
import { test } from "node:test";

import { BaseLlm, FunctionTool, InMemoryRunner, LlmAgent } from "@google/adk";
import { LocalSandboxToolkit, defineTool } from "cloudsandbox";
import { googleAdkTools } from "cloudsandbox/google-adk";

import { ANSWER, Script, suite } from "../../support/agent-suite.js";

class Scripted extends BaseLlm {
  constructor(script) {
    super({ model: "scripted" });
    this.script = script;
  }
  async *generateContentAsync({ config, contents }) {
    const declared = (config?.tools ?? []).flatMap(({ functionDeclarations }) => functionDeclarations ?? []);
    const offered = declared.map(({ name, description, parametersJsonSchema: schema }) => ({ name, description, schema }));
    const results = contents
      .flatMap(({ parts }) => parts)
      .filter((part) => part.functionResponse)
      .map(({ functionResponse: { id, response } }) => ({ id, text: response.result ?? response.error, failed: "error" in response }));
    const calls = this.script.next(offered, results).map(({ id, name, args }) => ({ functionCall: { id, name, args } }));
    yield { content: { role: "model", parts: calls.length > 0 ? calls : [{ text: ANSWER }] } };
  }
}

async function run(script, tools, abortSignal, heard = () => {}) {
  const agent = new LlmAgent({ name: "scripted", instruction: "Go on.", model: new Scripted(script), tools });
  const runner = new InMemoryRunner({ agent, appName: "interop" });
  const { id: sessionId } = await runner.sessionService.createSession({ appName: "interop", userId: "u" });
  let answer;
  const newMessage = { role: "user", parts: [{ text: "Go on." }] };
  for await (const event of runner.runAsync({ userId: "u", sessionId, newMessage, abortSignal })) {
    heard(event);
    answer = event.content?.parts?.find((part) => part.text)?.text ?? answer;
  }
  return answer;
}

suite("Google ADK", (toolkit, script, signal) => run(script, googleAdkTools(toolkit.getTools(), FunctionTool), signal));

test("Google ADK: what needs an approval does not run, and the host is asked", async (t) => {
  const toolkit = new LocalSandboxToolkit({ isolation: "none" });
  t.after(() => toolkit.close());
  let calls = 0;
  const own = defineTool({
    name: "sandbox_local_own",
    description: "Own.",
    parameters: { type: "object", properties: { n: { type: "number" } } },
    requiresApproval: ({ n }) => n > 1,
    execute: async () => `ran ${(calls += 1)}`,
  });
  const asked = [];
  const script = new Script([[["own", { n: 1 }]], [["own", { n: 2 }]]]);
  await run(script, googleAdkTools([own], FunctionTool), undefined, (event) => {
    for (const { functionCall } of event.content?.parts ?? []) if (functionCall?.name === "adk_request_confirmation") asked.push(functionCall);
  });
  assert.equal(calls, 1);
  assert.equal(script.texts[0], "ran 1");
  assert.equal(asked.length, 1);
});
