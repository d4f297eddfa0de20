// @google/genai: its automatic function calling, through cloudsandbox/google-genai.
import assert from "node:assert/strict";
import { test } from "node:test";

import { GoogleGenAI } from "@google/genai";
import { LocalSandboxToolkit, SandboxToolkit } from "cloudsandbox";
import { googleGenAITools } from "cloudsandbox/google-genai";

import { withModel } from "./model-server.js";
import { ANSWER, Script, suite } from "../../support/agent-suite.js";

function answerOf(script) {
  return ({ tools, contents }) => {
    const declared = tools.flatMap(({ functionDeclarations }) => functionDeclarations);
    const offered = declared.map(({ name, description, parametersJsonSchema: schema }) => ({ name, description, schema }));
    const results = contents
      .flatMap(({ parts }) => parts)
      .filter((part) => part.functionResponse)
      .map(({ functionResponse: { id, response } }) => ({ id, text: response.output ?? response.error, failed: "error" in response }));
    const calls = script.next(offered, results).map(({ id, name, args }) => ({ functionCall: { id, name, args } }));
    return { candidates: [{ index: 0, finishReason: "STOP", content: { role: "model", parts: calls.length > 0 ? calls : [{ text: ANSWER }] } }] };
  };
}

async function generate(address, tools, abortSignal) {
  const ai = new GoogleGenAI({ apiKey: "none", httpOptions: { baseUrl: address } });
  const config = { tools, abortSignal, automaticFunctionCalling: { maximumRemoteCalls: 20 } };
  return (await ai.models.generateContent({ model: "scripted", contents: "Go on.", config })).text;
}

suite("@google/genai", (toolkit, script, signal) => withModel(answerOf(script), (address) => {
  return generate(address, [googleGenAITools(toolkit.getTools(), { signal })], signal);
}));

test("@google/genai: two toolkits, each answers its own calls once", async (t) => {
  const first = new LocalSandboxToolkit({ isolation: "none" });
  const second = new SandboxToolkit(new LocalSandboxToolkit({ isolation: "none" }).getSandbox(), { name: "second" });
  t.after(() => Promise.all([first.close(), second.close()]));
  const script = new Script([[["shell", { command: "echo one" }]]]);
  const text = await withModel(answerOf(script), (address) => generate(address, [first, second].map((it) => googleGenAITools(it.getTools()))));
  assert.equal(text, ANSWER);
  assert.equal(script.offered.length, 8);
  assert.deepEqual(script.texts, ['{"output":"one\\n","exitCode":0}']);
});
