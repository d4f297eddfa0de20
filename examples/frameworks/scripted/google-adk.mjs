// A model of Google's ADK.
import { BaseLlm } from "@google/adk";

import { CALL, answerTo } from "./script.mjs";

class Scripted extends BaseLlm {
  async *generateContentAsync({ contents }) {
    const result = contents.flatMap(({ parts }) => parts).find((part) => part.functionResponse)?.functionResponse.response.result;
    yield { content: { role: "model", parts: [result ? { text: answerTo(result) } : { functionCall: CALL }] } };
  }
}

export const model = new Scripted({ model: "scripted" });
