// A model of Genkit.
import { CALL, answerTo } from "./script.mjs";

export function defineModel(ai) {
  ai.defineModel({ name: "scripted", supports: { tools: true } }, async ({ messages }) => {
    const result = messages.flatMap(({ content }) => content).find((part) => part.toolResponse)?.toolResponse.output;
    const part = result ? { text: answerTo(result) } : { toolRequest: { ref: CALL.id, name: CALL.name, input: CALL.args } };
    return { finishReason: "stop", message: { role: "model", content: [part] } };
  });
}
