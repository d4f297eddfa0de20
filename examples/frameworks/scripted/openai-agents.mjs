// A model of OpenAI Agents.
import { Usage } from "@openai/agents";

import { CALL, answerTo } from "./script.mjs";

export const model = {
  async getResponse({ input }) {
    const result = typeof input === "string" ? undefined : input.find(({ type }) => type === "function_call_result")?.output;
    const call = { type: "function_call", callId: CALL.id, name: CALL.name, arguments: JSON.stringify(CALL.args), status: "completed" };
    if (!result) return { usage: new Usage(), output: [call] };
    const content = [{ type: "output_text", text: answerTo(result.text ?? result) }];
    return { usage: new Usage(), output: [{ type: "message", role: "assistant", status: "completed", content }] };
  },
};
