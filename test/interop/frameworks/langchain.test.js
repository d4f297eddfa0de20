// LangChain: its agent, through cloudsandbox/langchain.
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { convertToOpenAITool } from "@langchain/core/utils/function_calling";
import { langChainTools } from "cloudsandbox/langchain";
import { createAgent } from "langchain";

import { ANSWER, suite } from "../../support/agent-suite.js";

class ScriptedModel extends BaseChatModel {
  constructor(script, tools = []) {
    super({});
    this.script = script;
    this.tools = tools;
  }
  _llmType() {
    return "scripted";
  }
  bindTools(tools) {
    return new ScriptedModel(this.script, tools);
  }
  async _generate(messages) {
    const offered = this.tools
      .map((it) => convertToOpenAITool(it).function)
      .map(({ name, description, parameters }) => ({ name, description, schema: parameters }));
    const results = messages
      .filter((message) => ToolMessage.isInstance(message))
      .map(({ tool_call_id: id, content, status }) => ({ id, text: content, failed: status === "error" }));
    const calls = this.script.next(offered, results).map((call) => ({ ...call, type: "tool_call" }));
    const message = new AIMessage({ content: calls.length > 0 ? "" : ANSWER, tool_calls: calls });
    return { generations: [{ text: "", message }] };
  }
}

suite("LangChain", async (toolkit, script, signal) => {
  const tools = langChainTools(toolkit.getTools(), tool);
  const agent = createAgent({ model: new ScriptedModel(script), tools });
  const { messages } = await agent.invoke({ messages: "Go on." }, { signal, recursionLimit: 50 });
  return messages.at(-1).content;
});
