// The Vercel AI SDK: the toolkit's record of tools as it is.
import { generateText, stepCountIs, streamText } from "ai";
import { collectToolkitTools } from "cloudsandbox";

import { scriptedModel } from "./ai-model.js";
import { suite } from "./suite.js";

function options(toolkit, script, abortSignal) {
  const tools = collectToolkitTools([toolkit]);
  return { model: scriptedModel(script), tools, prompt: "Go on.", stopWhen: stepCountIs(20), abortSignal };
}

suite("AI SDK, generateText", async (...args) => (await generateText(options(...args))).text);

suite("AI SDK, streamText", async (...args) => streamText({ ...options(...args), onError: () => {} }).text);
