// Answers of Anthropic's API.
import { CALL, answerTo } from "./script.mjs";

const message = { id: "msg_1", type: "message", role: "assistant", model: "scripted", stop_sequence: null, usage: { input_tokens: 1, output_tokens: 1 } };

export const options = {
  apiKey: "none",
  async fetch(_url, { body }) {
    const result = JSON.parse(body).messages.flatMap(({ content }) => content).find(({ type }) => type === "tool_result");
    if (result) return Response.json({ ...message, stop_reason: "end_turn", content: [{ type: "text", text: answerTo(result.content) }] });
    return Response.json({ ...message, stop_reason: "tool_use", content: [{ type: "tool_use", id: CALL.id, name: CALL.name, input: CALL.args }] });
  },
};
