// The OpenAI Agents SDK, through cloudsandbox/openai-agents.
import { Agent, Runner, Usage } from "@openai/agents-core";
import { openAIAgentsTools } from "cloudsandbox/openai-agents";

import { ANSWER, suite } from "../../support/agent-suite.js";

function scriptedModel(script) {
  return {
    async getResponse({ tools, input }) {
      const offered = tools.map(({ name, description, parameters }) => ({ name, description, schema: parameters }));
      const results = (typeof input === "string" ? [] : input)
        .filter(({ type }) => type === "function_call_result")
        .map(({ callId, output }) => ({ id: callId, text: typeof output === "string" ? output : output.text }));
      const calls = script.next(offered, results).map(({ id, name, args }) => {
        return { type: "function_call", callId: id, name, arguments: JSON.stringify(args), status: "completed" };
      });
      const content = [{ type: "output_text", text: ANSWER }];
      const answer = { type: "message", role: "assistant", status: "completed", content };
      return { usage: new Usage(), output: calls.length > 0 ? calls : [answer] };
    },
    // eslint-disable-next-line require-yield
    async *getStreamedResponse() {
      throw new Error("not used");
    },
  };
}

suite("OpenAI Agents", async (toolkit, script, signal) => {
  const tools = openAIAgentsTools(toolkit.getTools());
  const agent = new Agent({ name: "scripted", instructions: "Go on.", model: scriptedModel(script), tools });
  const runner = new Runner({ tracingDisabled: true });
  const { finalOutput } = await runner.run(agent, "Go on.", { signal, maxTurns: 20 });
  return finalOutput;
}, { marks: false });
