// The tools in the frameworks' own types.
import Anthropic from "@anthropic-ai/sdk";
import { betaMemoryTool } from "@anthropic-ai/sdk/helpers/beta/memory";
import { defineProvider } from "@computesdk/provider";
import { GoogleGenAI } from "@google/genai";
import { tool } from "@langchain/core/tools";
import { agent } from "@llamaindex/workflow";
import { Agent as MastraAgent } from "@mastra/core/agent";
import * as mastraWorkspace from "@mastra/core/workspace";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { applyDiff } from "@openai/agents";
import { Agent as OpenAIAgent } from "@openai/agents-core";
import { Manifest, type SandboxClient } from "@openai/agents/sandbox";
import { generateText } from "ai";
import { generateText as generateText7 } from "ai-7";
import type { Experimental_SandboxSession } from "ai-7";
import { MockLanguageModelV3 } from "ai/test";
import { LocalSandbox, LocalSandboxToolkit, collectToolkitTools, defineTool } from "cloudsandbox";
import { aiSdkSandbox, aiSdkTools } from "cloudsandbox/ai-sdk";
import { anthropicBashTool, anthropicMemory, anthropicTools } from "cloudsandbox/anthropic";
import { computeSdkProvider } from "cloudsandbox/computesdk";
import { deepAgentsBackend } from "cloudsandbox/deepagents";
import { googleGenAITools } from "cloudsandbox/google-genai";
import { langChainTools } from "cloudsandbox/langchain";
import { llamaIndexTools } from "cloudsandbox/llamaindex";
import { mastraFilesystem, mastraSandbox } from "cloudsandbox/mastra";
import { mcpTools } from "cloudsandbox/mcp";
import { openAITools } from "cloudsandbox/openai";
import { openAIAgentsSandboxClient, openAIAgentsTools } from "cloudsandbox/openai-agents";
import { compute } from "computesdk";
import { BaseSandbox, createDeepAgent } from "deepagents";
import { createAgent } from "langchain";
import OpenAI from "openai";

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
export const anthropicOwn = new Anthropic().beta.messages.toolRunner({
  model: "m",
  max_tokens: 1,
  messages: [],
  tools: [anthropicBashTool(toolkit.getSandbox()), betaMemoryTool(anthropicMemory(toolkit.getSandbox()))],
});
const clientTools = openAITools(tools);
export const openAIResponses = new OpenAI().responses.create({ model: "m", input: "", tools: clientTools.responses });
export const openAIChat = new OpenAI().chat.completions.runTools({ model: "m", messages: [], tools: clientTools.chat });
export const gemini = new GoogleGenAI({}).models.generateContent({ model: "m", contents: "", config: { tools: [googleGenAITools(tools)] } });
export const llama = agent({ tools: llamaIndexTools(tools) });
export const session: Experimental_SandboxSession = aiSdkSandbox(toolkit.getSandbox());
export const deepAgent = createDeepAgent({ backend: deepAgentsBackend(toolkit.getSandbox(), BaseSandbox) });
export const client: SandboxClient = openAIAgentsSandboxClient({ Manifest, applyDiff }, () => new LocalSandbox());
compute.setConfig({ provider: computeSdkProvider(defineProvider, () => toolkit.getSandbox()) });
export const workspace = new mastraWorkspace.Workspace({
  sandbox: mastraSandbox(toolkit.getSandbox(), mastraWorkspace),
  filesystem: mastraFilesystem(toolkit.getSandbox(), mastraWorkspace),
});
