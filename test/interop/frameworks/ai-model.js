// A scripted model behind the AI SDK's model interface, which Mastra uses too.
import { simulateReadableStream } from "ai";
import { MockLanguageModelV3 } from "ai/test";

import { ANSWER } from "../../support/agent-suite.js";

const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** A tool's result as the model reads it. */
function resultOf({ toolCallId: id, output: { type, value } }) {
  const text = type === "text" || type === "error-text" ? value : JSON.stringify(value);
  return { id, text, failed: type.startsWith("error-") };
}

function nextContent(script, { tools = [], prompt }) {
  const offered = tools.map(({ name, description, inputSchema }) => ({ name, description, schema: inputSchema }));
  const results = prompt
    .filter(({ role }) => role === "tool")
    .flatMap(({ content }) => content.map(resultOf));
  const calls = script.next(offered, results).map(({ id, name, args }) => {
    return { type: "tool-call", toolCallId: id, toolName: name, input: JSON.stringify(args) };
  });
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
