// A scripted model behind the AI SDK's model interface, which Mastra uses too.
import { simulateReadableStream } from "ai";
import { MockLanguageModelV3 } from "ai/test";

import { ANSWER } from "../../support/agent-suite.js";
import { nextCalls } from "../../support/ai-calls.js";

const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

function nextContent(script, options) {
  const calls = nextCalls(script, options);
  return { calls, finishReason: { unified: calls.length > 0 ? "tool-calls" : "stop", raw: undefined } };
}

export function scriptedModel(script) {
  return new MockLanguageModelV3({
    doGenerate: async (options) => {
      const { calls, finishReason } = nextContent(script, options);
      const content = calls.length > 0 ? calls : [{ type: "text", text: ANSWER }];
      return { content, finishReason, usage: USAGE, warnings: [] };
    },
    doStream: async (options) => {
      const { calls, finishReason } = nextContent(script, options);
      const text = ["start", "delta", "end"].map((part) => {
        return { type: `text-${part}`, id: "1", ...(part === "delta" && { delta: ANSWER }) };
      });
      const chunks = [
        { type: "stream-start", warnings: [] },
        ...(calls.length > 0 ? calls : text),
        { type: "finish", finishReason, usage: USAGE },
      ];
      return { stream: simulateReadableStream({ chunks, initialDelayInMs: null, chunkDelayInMs: null }) };
    },
  });
}
