// A model of LlamaIndex.TS.
import { BaseLLM } from "llamaindex";

import { CALL } from "./script.mjs";

class Scripted extends BaseLLM {
  supportToolCall = true;
  metadata = { model: "scripted", temperature: 0, topP: 1, contextWindow: 100_000, tokenizer: undefined, structuredOutput: false };
  async chat({ messages }) {
    const result = messages.find(({ options }) => options?.toolResult)?.options.toolResult.result;
    const options = result ? {} : { toolCall: [{ id: CALL.id, name: CALL.name, input: CALL.args }] };
    // The framework takes the quotes out of the result.
    const delta = result ? `${/output: (\d+)/.exec(result)[1]} were sold.` : "";
    return (async function* () {
      yield { raw: {}, delta, options };
    })();
  }
}

export const llm = new Scripted();
