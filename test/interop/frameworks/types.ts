// The tools in the frameworks' own types.
import Anthropic from "@anthropic-ai/sdk";
import { tool } from "@langchain/core/tools";
import { Agent as MastraAgent } from "@mastra/core/agent";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { Agent as OpenAIAgent } from "@openai/agents-core";
import { generateText } from "ai";
import { generateText as generateText7 } from "ai-7";
import { MockLanguageModelV3 } from "ai/test";
import { LocalSandboxToolkit, collectToolkitTools, defineTool } from "cloudsandbox";
import { aiSdkTools } from "cloudsandbox/ai-sdk";
import { anthropicTools } from "cloudsandbox/anthropic";
import { langChainTools } from "cloudsandbox/langchain";
import { mcpTools } from "cloudsandbox/mcp";
import { openAIAgentsTools } from "cloudsandbox/openai-agents";
import { createAgent } from "langchain";

const toolkit = new LocalSandboxToolkit();
const record = collectToolkitTools([toolkit]);
const own = defineTool<{ n: number }>({
  name: "own",
  description: "A number.",
  parameters: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
  execute: async ({ n }) => n.toFixed(),
});
const tools = [...toolkit.getTools(), own];
const model = new MockLanguageModelV3();

export const aiSdk = generateText({ model, tools: { ...record, own }, prompt: "" });
export const aiSdkStreaming = generateText({ model, tools: aiSdkTools(tools), prompt: "" });
export const aiSdk7Streaming = generateText7({ model, tools: aiSdkTools(tools), prompt: "" });
export const mastra = new MastraAgent({ id: "a", name: "a", instructions: "", model, tools: { ...record, own } });
export const openAI = new OpenAIAgent({ name: "a", tools: openAIAgentsTools(tools) });
export const langChain = createAgent({ model: "m", tools: langChainTools(tools, tool) });
export const anthropic = new Anthropic().beta.messages.toolRunner({
  model: "m",
  max_tokens: 1,
  messages: [],
  tools: anthropicTools(tools),
});
const { listTools, callTool } = mcpTools(tools);
export const server = new Server({ name: "s", version: "1" });
server.setRequestHandler(ListToolsRequestSchema, listTools);
server.setRequestHandler(CallToolRequestSchema, callTool);
