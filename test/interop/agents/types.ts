// The tools in the frameworks' own types.
import { query } from "@anthropic-ai/claude-agent-sdk";
import { FunctionTool, LlmAgent } from "@google/adk";
import { LocalSandboxToolkit } from "cloudsandbox";
import { claudeAgentTools } from "cloudsandbox/claude-agent-sdk";
import { genkitTools } from "cloudsandbox/genkit";
import { googleAdkTools } from "cloudsandbox/google-adk";
import { genkit } from "genkit";

const tools = new LocalSandboxToolkit().getTools();
const ai = genkit({});

export const generated = ai.generate({ prompt: "", tools: genkitTools(tools, ai) });
export const agent = new LlmAgent({ name: "a", model: "m", tools: googleAdkTools(tools, FunctionTool) });
export const claude = query({ prompt: "", options: { ...claudeAgentTools(tools), permissionMode: "default" } });
