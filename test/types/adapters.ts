// Adapters: what they take, and that the shim has the types that we publish. In the frameworks' own
// types: test/interop/frameworks.
import { SandboxToolkit, Toolkit, defineTool } from "cloudsandbox";
import type { CloudSandbox } from "cloudsandbox";
import * as aiSdk from "cloudsandbox/ai-sdk";
import * as anthropic from "cloudsandbox/anthropic";
import * as claudeAgentSdk from "cloudsandbox/claude-agent-sdk";
import * as computeSdk from "cloudsandbox/computesdk";
import * as deepAgents from "cloudsandbox/deepagents";
import * as genkit from "cloudsandbox/genkit";
import * as googleAdk from "cloudsandbox/google-adk";
import * as googleGenAI from "cloudsandbox/google-genai";
import * as langChain from "cloudsandbox/langchain";
import * as llamaIndex from "cloudsandbox/llamaindex";
import * as mastra from "cloudsandbox/mastra";
import * as mcp from "cloudsandbox/mcp";
import * as openAI from "cloudsandbox/openai";
import * as openAIAgents from "cloudsandbox/openai-agents";

import * as aiSdkImplementation from "../../lib/adapters/ai-sdk.js";
import * as anthropicImplementation from "../../lib/adapters/anthropic.js";
import * as claudeAgentSdkImplementation from "../../lib/adapters/claude-agent-sdk.js";
import * as computeSdkImplementation from "../../lib/adapters/computesdk.js";
import * as deepAgentsImplementation from "../../lib/adapters/deepagents.js";
import * as genkitImplementation from "../../lib/adapters/genkit.js";
import * as googleAdkImplementation from "../../lib/adapters/google-adk.js";
import * as googleGenAIImplementation from "../../lib/adapters/google-genai.js";
import * as langChainImplementation from "../../lib/adapters/langchain.js";
import * as llamaIndexImplementation from "../../lib/adapters/llamaindex.js";
import * as mastraImplementation from "../../lib/adapters/mastra.js";
import * as mcpImplementation from "../../lib/adapters/mcp.js";
import * as openAIImplementation from "../../lib/adapters/openai.js";
import * as openAIAgentsImplementation from "../../lib/adapters/openai-agents.js";

export const modules: [typeof anthropic, typeof langChain, typeof mcp, typeof openAIAgents, typeof aiSdk] = [
  anthropicImplementation,
  langChainImplementation,
  mcpImplementation,
  openAIAgentsImplementation,
  aiSdkImplementation,
];
export const clients: [typeof openAI, typeof googleGenAI, typeof llamaIndex] = [openAIImplementation, googleGenAIImplementation, llamaIndexImplementation];
export const backends: [typeof computeSdk, typeof deepAgents, typeof mastra] = [computeSdkImplementation, deepAgentsImplementation, mastraImplementation];
export const classes: [typeof genkit, typeof googleAdk, typeof claudeAgentSdk] = [genkitImplementation, googleAdkImplementation, claudeAgentSdkImplementation];

declare const makeTool: (run: (args: any, config: any) => unknown, fields: { name: string }) => { made: string };
declare const zodLike: { readonly _output: { a: string }; safeParse(value: unknown): unknown };

export async function adapt(sandbox: CloudSandbox, own: Toolkit) {
  const toolkit = new SandboxToolkit(sandbox);
  const number = defineTool<{ n: number }>({
    name: "number",
    description: "A number.",
    parameters: { type: "object", properties: { n: { type: "number" } } },
    execute: async ({ n }) => n.toFixed(),
  });
  const tools = [...toolkit.getTools(), number];
  const made: { made: string }[] = langChain.langChainTools(tools, makeTool);
  const [first] = openAIAgents.openAIAgentsTools([...tools, ...own.getTools()]);
  const text: string = (await first?.invoke({}, "{}", { signal: AbortSignal.timeout(1) })) ?? "";
  const names: string[] = anthropic.anthropicTools(tools).map((tool) => tool.name);
  const streaming: string | undefined = aiSdk.aiSdkTools(tools)["number"]?.description;
  void streaming;
  const { listTools, callTool } = mcp.mcpTools(tools);
  const listed: string | undefined = (await listTools()).tools[0]?.name;
  const { content, isError = false } = await callTool({ params: { name: "number" } });
  void [made, text, names, listed, content[0]?.text, isError];

  const withZod = defineTool({ name: "z", description: "z", parameters: zodLike, execute: async ({ a }) => a });
  // @ts-expect-error the framework takes a Zod object itself
  mcp.mcpTools([withZod]);
  // @ts-expect-error tools, not the toolkit
  anthropic.anthropicTools(toolkit);
  // @ts-expect-error LangChain's tool() is missing
  langChain.langChainTools(tools);
}
