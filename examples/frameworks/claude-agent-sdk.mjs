// The Claude Agent SDK:   npm install cloudsandbox @anthropic-ai/claude-agent-sdk && node claude-agent-sdk.mjs
import { query } from "@anthropic-ai/claude-agent-sdk";
import { LocalSandboxToolkit } from "cloudsandbox";
import { claudeAgentTools } from "cloudsandbox/claude-agent-sdk";

import { scripted } from "./scripted/claude-agent-sdk.mjs"; // in its place: nothing, and ANTHROPIC_API_KEY

const toolkit = new LocalSandboxToolkit({ isolation: "none" }); // no isolation; a container: new DockerSandboxToolkit()
await toolkit.getSandbox().writeFile("sales.csv", "day,sold\nmon,12\ntue,30\n");

// Claude Code's own tools, which work on this machine, are off: it has the sandbox only.
const options = { ...claudeAgentTools(toolkit.getTools()), ...scripted };
for await (const message of query({ prompt: "How many were sold?", options })) {
  if (message.type === "result") console.log(message.result);
}
await toolkit.close();
