// OpenAI's client, through cloudsandbox/openai: the tool runner of its Chat API, and a loop over its Responses API.
import OpenAI from "openai";
import { openAITools } from "cloudsandbox/openai";

import { withModel } from "./model-server.js";
import { ANSWER, suite } from "../../support/agent-suite.js";

const clientAt = (address) => new OpenAI({ apiKey: "none", baseURL: `${address}/v1`, maxRetries: 0 });

function chatAnswer(script) {
  return ({ tools, messages }) => {
    const offered = tools.map(({ function: { name, description, parameters: schema } }) => ({ name, description, schema }));
    const results = messages.filter(({ role }) => role === "tool").map(({ tool_call_id: id, content: text }) => ({ id, text }));
    const calls = script.next(offered, results).map(({ id, name, args }) => {
      return { id, type: "function", function: { name, arguments: JSON.stringify(args) } };
    });
    const message = { role: "assistant", refusal: null, ...(calls.length > 0 ? { content: null, tool_calls: calls } : { content: ANSWER }) };
    const choice = { index: 0, message, logprobs: null, finish_reason: calls.length > 0 ? "tool_calls" : "stop" };
    return { id: "c", object: "chat.completion", created: 1, model: "scripted", choices: [choice] };
  };
}

suite("OpenAI, runTools of the Chat API", (toolkit, script, signal) => withModel(chatAnswer(script), async (address) => {
  const messages = [{ role: "user", content: "Go on." }];
  const { chat: tools } = openAITools(toolkit.getTools());
  const runner = clientAt(address).chat.completions.runTools({ model: "scripted", messages, tools }, { signal, maxChatCompletions: 20 });
  return runner.finalContent();
}), { marks: false });

function responsesAnswer(script) {
  return ({ tools, input }) => {
    const offered = tools.map(({ name, description, parameters: schema }) => ({ name, description, schema }));
    const results = input.filter(({ type }) => type === "function_call_output").map(({ call_id: id, output: text }) => ({ id, text }));
    const calls = script.next(offered, results).map(({ id, name, args }) => {
      return { type: "function_call", id: `fc_${id}`, call_id: id, name, arguments: JSON.stringify(args), status: "completed" };
    });
    const text = { type: "message", id: "m", role: "assistant", status: "completed", content: [{ type: "output_text", text: ANSWER, annotations: [] }] };
    return { id: "r", object: "response", created_at: 1, model: "scripted", status: "completed", output: calls.length > 0 ? calls : [text] };
  };
}

suite("OpenAI, the Responses API", (toolkit, script, signal) => withModel(responsesAnswer(script), async (address) => {
  const client = clientAt(address);
  const tools = openAITools(toolkit.getTools());
  const input = [{ role: "user", content: "Go on." }];
  for (;;) {
    const response = await client.responses.create({ model: "scripted", input, tools: tools.responses }, { signal });
    const calls = response.output.filter(({ type, name }) => type === "function_call" && tools.has(name));
    if (calls.length === 0) return response.output_text;
    input.push(...response.output, ...(await Promise.all(calls.map((call) => tools.call(call, { signal })))));
  }
}), { marks: false });
