// A model of the AI SDK, which Mastra takes, too.
import { MockLanguageModelV3 } from "ai/test";

import { CALL, answerTo } from "./script.mjs";

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

export const model = new MockLanguageModelV3({
  async doGenerate({ prompt }) {
    const result = prompt.find(({ role }) => role === "tool")?.content[0].output.value;
    if (result) return { content: [{ type: "text", text: answerTo(result) }], finishReason: { unified: "stop" }, usage, warnings: [] };
    const call = { type: "tool-call", toolCallId: CALL.id, toolName: CALL.name, input: JSON.stringify(CALL.args) };
    return { content: [call], finishReason: { unified: "tool-calls" }, usage, warnings: [] };
  },
});
