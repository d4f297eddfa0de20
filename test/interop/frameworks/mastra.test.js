// Mastra: the toolkit's record of tools as it is.
import { Agent } from "@mastra/core/agent";
import { collectToolkitTools } from "cloudsandbox";

import { scriptedModel } from "./ai-model.js";
import { suite } from "../../support/agent-suite.js";

function agentFor(toolkit, script) {
  const tools = collectToolkitTools([toolkit]);
  return new Agent({ id: "scripted", name: "scripted", instructions: "Go on.", model: scriptedModel(script), tools });
}

suite("Mastra", async (toolkit, script, abortSignal) => {
  const { text } = await agentFor(toolkit, script).generate("Go on.", { abortSignal, maxSteps: 20 });
  return text;
});
