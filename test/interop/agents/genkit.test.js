// Genkit, through cloudsandbox/genkit, with the model of its own testing kit.
import { genkitTools } from "cloudsandbox/genkit";
import { genkit } from "genkit";

import { ANSWER, suite } from "../../support/agent-suite.js";

function defineScripted(ai, script) {
  return ai.defineModel({ name: "scripted", supports: { tools: true } }, async ({ tools, messages }) => {
    const offered = tools.map(({ name, description, inputSchema: schema }) => ({ name, description, schema }));
    const results = messages
      .flatMap(({ content }) => content)
      .filter((part) => part.toolResponse)
      .map(({ toolResponse: { ref, output } }) => ({ id: ref, text: output }));
    const calls = script.next(offered, results).map(({ id, name, args }) => ({ toolRequest: { ref: id, name, input: args } }));
    return { message: { role: "model", content: calls.length > 0 ? calls : [{ text: ANSWER }] }, finishReason: "stop" };
  });
}

suite("Genkit", async (toolkit, script, signal) => {
  const ai = genkit({ model: "scripted" });
  defineScripted(ai, script);
  const tools = genkitTools(toolkit.getTools(), ai, { signal });
  return (await ai.generate({ prompt: "Go on.", tools, maxTurns: 20, abortSignal: signal })).text;
}, { marks: false });
