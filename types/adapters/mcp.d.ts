// Types of "cloudsandbox/mcp".
import type { AdaptableTool, ToolCallContext } from "./shared.js";

export interface McpTool {
  name: string;
  description: string;
  inputSchema: any;
  annotations?: {
    readOnlyHint: boolean;
    destructiveHint: boolean;
    idempotentHint: boolean;
    openWorldHint: boolean;
  };
}

export interface McpTextResult {
  [member: string]: unknown;
  content: { type: "text"; text: string }[];
  /** true when the text says why the call failed. */
  isError?: boolean;
}

/** Handlers for `setRequestHandler()` of an MCP server. */
export interface McpHandlers {
  /** For ListToolsRequestSchema. */
  listTools(): Promise<{ tools: McpTool[] }>;
  /**
   * For CallToolRequestSchema. A client that has given a progress token hears the output of its command as messages of
   * progress. An unknown name rejects with JSON-RPC's -32602.
   */
  callTool(
    request: { params: { name: string; arguments?: Record<string, unknown> | undefined } },
    extra?: ToolCallContext,
  ): Promise<McpTextResult>;
}

/** Throws for `requiresApproval`. */
export function mcpTools(tools: readonly AdaptableTool[]): McpHandlers;
