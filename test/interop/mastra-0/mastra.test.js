// Mastra 0.24: the toolkit's record of tools as it is, with a model of the interface that this version takes.
import { Agent } from "@mastra/core/agent";
import { collectToolkitTools } from "cloudsandbox";

import { ANSWER, suite } from "../../support/agent-suite.js";
import { nextCalls } from "../../support/ai-calls.js";

const USAGE = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };

/** A LanguageModelV2. */
function scriptedModel(script) {
  return {
    specificationVersion: "v2",
    provider: "scripted",
    modelId: "scripted",
    supportedUrls: {},
    async doGenerate(options) {
      const calls = nextCalls(script, options);
      const content = calls.length > 0 ? calls : [{ type: "text", text: ANSWER }];
      return { content, finishReason: calls.length > 0 ? "tool-calls" : "stop", usage: USAGE, warnings: [] };
    },
  };
}

suite("Mastra 0.24", async (toolkit, script, abortSignal) => {
  const tools = collectToolkitTools([toolkit]);
  const agent = new Agent({ id: "scripted", name: "scripted", instructions: "Go on.", model: scriptedModel(script), tools });
  const { text } = await agent.generate("Go on.", { abortSignal, maxSteps: 20 });
  return text;
}, { marks: false });
