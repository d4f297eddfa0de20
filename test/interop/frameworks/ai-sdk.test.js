// The Vercel AI SDK, versions 6 and 7: the toolkit's record of tools as it is, and with output while a command runs.
import assert from "node:assert/strict";
import { test } from "node:test";

import * as six from "ai";
import * as seven from "ai-7";
import { LocalSandboxToolkit, collectToolkitTools } from "cloudsandbox";
import { aiSdkTools } from "cloudsandbox/ai-sdk";

import { scriptedModel } from "./ai-model.js";
import { ANSWER, Script, suite } from "../../support/agent-suite.js";

const VERSIONS = { 6: six, 7: seven };
const WAYS = {
  "as they are": (toolkit) => collectToolkitTools([toolkit]),
  aiSdkTools: (toolkit) => aiSdkTools(toolkit.getTools()),
};

for (const [version, ai] of Object.entries(VERSIONS)) {
  const stopWhen = (ai.stepCountIs ?? ai.isStepCount)(20);
  for (const [way, toolsOf] of Object.entries(WAYS)) {
    const options = (toolkit, script, abortSignal) => {
      return { model: scriptedModel(script), tools: toolsOf(toolkit), prompt: "Go on.", stopWhen, abortSignal };
    };
    suite(`AI SDK ${version}, generateText, ${way}`, async (...args) => (await ai.generateText(options(...args))).text);
    suite(`AI SDK ${version}, streamText, ${way}`, async (...args) => ai.streamText({ ...options(...args), onError: () => {} }).text);
  }

  test(`AI SDK ${version}: output comes while the command runs, as preliminary results`, async (t) => {
    const toolkit = new LocalSandboxToolkit({ isolation: "none" });
    t.after(() => toolkit.close());
    const script = new Script([[["shell", { command: "echo one; while [ ! -e go ]; do sleep 0.05; done; echo two" }]]]);
    const { fullStream } = ai.streamText({ model: scriptedModel(script), tools: aiSdkTools(toolkit.getTools()), prompt: "Go on.", stopWhen });
    const seen = [];
    let text = "";
    for await (const part of fullStream) {
      if (part.type === "text-delta") text += part.text;
      if (part.type !== "tool-result") continue;
      seen.push([part.preliminary === true, JSON.parse(part.output)]);
      if (seen.length === 1) await toolkit.getSandbox().writeFile("go", "");
    }
    assert.deepEqual(seen[0], [true, { output: "one\n", running: true }]);
    assert.deepEqual(seen.at(-1), [false, { output: "one\ntwo\n", exitCode: 0 }]);
    assert.equal(text, ANSWER);
    assert.deepEqual(script.texts, ['{"output":"one\\ntwo\\n","exitCode":0}'], "the model reads the last one only");
  });
}
