// "cloudsandbox/mcp": tools as the handlers of an MCP server.
import { handlersOf } from "./mcp-handlers.js";

/** @import { AdaptableTool } from "../../types/adapters/shared.js" */
/** @import { McpHandlers } from "../../types/adapters/mcp.js" */

/**
 * @param {readonly AdaptableTool[]} tools
 * @returns {McpHandlers}
 */
export function mcpTools(tools) {
  return handlersOf(tools, "mcpTools");
}
