// Types of "cloudsandbox/claude-agent-sdk".
import type { AdaptableTool } from "./shared.js";

/** Options of `query()` of the Claude Agent SDK. */
export interface ClaudeAgentOptions {
  /** One MCP server inside this process. */
  mcpServers: Record<string, { type: "sdk"; name: string; instance: any }>;
  /** The tools' names as Claude Code has them, so that it does not ask before each call. */
  allowedTools: string[];
  /** None of Claude Code's own tools: they work on the machine that this process runs on. */
  tools: string[];
}

/**
 * `query({ prompt, options: { ...claudeAgentTools(toolkit.getTools()) } })`. The commands run in the sandbox, and Claude Code's
 * own tools are off; name those that you want back in `tools` after it. `name` is that of the MCP server ("sandbox").
 * Throws for `requiresApproval`.
 */
export function claudeAgentTools(tools: readonly AdaptableTool[], options?: { name?: string }): ClaudeAgentOptions;
