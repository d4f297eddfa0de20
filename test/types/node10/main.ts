// TypeScript's old resolution, which knows nothing of `exports`: every sub-path has its types all the same.
import { LocalSandbox, SandboxToolkit } from "cloudsandbox";
import { aiSdkTools } from "cloudsandbox/ai-sdk";
import { anthropicTools } from "cloudsandbox/anthropic";
import { claudeAgentTools } from "cloudsandbox/claude-agent-sdk";
import { computeSdkProvider } from "cloudsandbox/computesdk";
import { deepAgentsBackend } from "cloudsandbox/deepagents";
import { genkitTools } from "cloudsandbox/genkit";
import { googleAdkTools } from "cloudsandbox/google-adk";
import { googleGenAITools } from "cloudsandbox/google-genai";
import { langChainTools } from "cloudsandbox/langchain";
import { llamaIndexTools } from "cloudsandbox/llamaindex";
import { mastraFilesystem } from "cloudsandbox/mastra";
import { mcpTools } from "cloudsandbox/mcp";
import { openAITools } from "cloudsandbox/openai";
import { openAIAgentsTools } from "cloudsandbox/openai-agents";
import { recordTo } from "cloudsandbox/records";
import { traceSandboxes } from "cloudsandbox/otel";
import { writeReport } from "cloudsandbox/report";
import { workspaceIdForRun } from "cloudsandbox/workspace";
import * as toolkits from "cloudsandbox/toolkits";

const sandbox: toolkits.LocalSandbox = new LocalSandbox({ isolation: "none" });
const tools = new SandboxToolkit(sandbox, { name: "local" }).getTools();
export const all = [aiSdkTools(tools), anthropicTools(tools), langChainTools(tools, (run) => run), mcpTools(tools), openAIAgentsTools(tools)];
export const clients = [googleGenAITools(tools), llamaIndexTools(tools), openAITools(tools)];
export const others = [claudeAgentTools(tools), genkitTools(tools, { dynamicTool: () => 1 }), googleAdkTools(tools, Object)];
export const backend: Date = deepAgentsBackend(sandbox, Date);
export const provider: string = computeSdkProvider(() => () => "made", () => sandbox);
export const filesystem: typeof mastraFilesystem = mastraFilesystem;
export const stop: () => void = traceSandboxes();
export const page: Promise<{ records: number }> = writeReport("a", "b");
export const id: string = workspaceIdForRun("run");
export const written: number = recordTo("f").written;
// @ts-expect-error these are types, and not `any`
export const wrong: number = mcpTools(tools);
