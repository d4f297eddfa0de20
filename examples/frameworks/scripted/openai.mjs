// Answers of OpenAI's Responses API.
import { CALL, answerTo } from "./script.mjs";

const response = { id: "resp_1", object: "response", created_at: 1, model: "scripted", status: "completed" };

export const options = {
  apiKey: "none",
  async fetch(_url, { body }) {
    const result = JSON.parse(body).input.find(({ type }) => type === "function_call_output");
    const call = { type: "function_call", id: "fc_1", call_id: CALL.id, name: CALL.name, arguments: JSON.stringify(CALL.args), status: "completed" };
    if (!result) return Response.json({ ...response, output: [call] });
    const content = [{ type: "output_text", text: answerTo(result.output), annotations: [] }];
    return Response.json({ ...response, output: [{ type: "message", id: "m", role: "assistant", status: "completed", content }] });
  },
};
