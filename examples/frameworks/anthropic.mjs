// Anthropic's SDK:   npm install cloudsandbox @anthropic-ai/sdk && node anthropic.mjs
import Anthropic from "@anthropic-ai/sdk";
import { LocalSandboxToolkit } from "cloudsandbox";
import { anthropicTools } from "cloudsandbox/anthropic";

import { options } from "./scripted/anthropic.mjs"; // in its place: nothing, and ANTHROPIC_API_KEY

const toolkit = new LocalSandboxToolkit({ isolation: "none" }); // no isolation; a container: new DockerSandboxToolkit()
await toolkit.getSandbox().writeFile("sales.csv", "day,sold\nmon,12\ntue,30\n");

const { content } = await new Anthropic(options).beta.messages.toolRunner({
  model: "claude-opus-4-8",
  max_tokens: 1024,
  tools: anthropicTools(toolkit.getTools()),
  messages: [{ role: "user", content: "How many were sold?" }],
});
console.log(content[0].text);
await toolkit.close();
