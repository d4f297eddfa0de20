// Types of "cloudsandbox/anthropic".
import type { CallSignal } from "../index.js";
import type { AdaptableTool } from "./shared.js";

/** A tool for `client.beta.messages.toolRunner()`. */
export interface AnthropicTool {
  type: "custom";
  name: string;
  description: string;
  input_schema: any;
  parse(input: unknown): any;
  run(input: any, context?: { signal?: CallSignal | null | undefined }): Promise<string>;
}

/** `client.beta.messages.toolRunner({ tools: anthropicTools(toolkit.getTools()), ... })`. Throws for `requiresApproval`. */
export function anthropicTools(tools: readonly AdaptableTool[]): AnthropicTool[];
