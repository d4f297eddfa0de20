// Types of "cloudsandbox/openai-agents".
import type { AdaptableTool, ToolCallContext } from "./shared.js";

/** A function tool of the OpenAI Agents SDK. */
export interface OpenAIAgentsTool {
  type: "function";
  name: string;
  description: string;
  parameters: any;
  strict: false;
  isEnabled(...args: any[]): Promise<boolean>;
  /** What the tool's `requiresApproval` says. */
  needsApproval(context: any, args: any, callId?: string): Promise<boolean>;
  /** Resolves with the tool's text, or with "Error: " and its error's message. */
  invoke(context: any, input: string, details?: ToolCallContext): Promise<string>;
}

/** `new Agent({ tools: openAIAgentsTools(toolkit.getTools()) })` */
export function openAIAgentsTools(tools: readonly AdaptableTool[]): OpenAIAgentsTool[];
