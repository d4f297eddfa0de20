// Tools as the handlers of an MCP server, whoever connects it.
import { checkTools, messageOf, textOf } from "./shared.js";

/** @import { AdaptableTool } from "../../types/adapters/shared.js" */
/** @import { McpHandlers } from "../../types/adapters/mcp.js" */

/** JSON-RPC's code for an unknown name, too. */
const INVALID_PARAMS = -32602;

const HINTS = {
  execute: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  write: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  read: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
};

/**
 * @param {readonly AdaptableTool[]} tools
 * @param {string} where the adapter, in what it refuses
 * @returns {McpHandlers}
 */
export function handlersOf(tools, where) {
  const byName = new Map(checkTools(tools, where).map((tool) => [tool.name, tool]));
  const listed = [...byName.values()].map(({ name, description, rawJsonSchema: inputSchema, effect }) => {
    return { name, description, inputSchema, ...(effect && { annotations: HINTS[effect] }) };
  });
  return {
    listTools: async () => ({ tools: listed }),
    async callTool({ params }, extra) {
      const tool = byName.get(params.name);
      if (!tool) throw Object.assign(new Error(`Unknown tool: ${params.name}`), { code: INVALID_PARAMS });
      try {
        return textResult(await textOf(tool, params.arguments ?? {}, withProgress(extra)));
      } catch (error) {
        if (extra?.signal?.aborted) throw error;
        return { ...textResult(messageOf(error)), isError: true };
      }
    },
  };
}

/**
 * Output goes to a client that has asked for progress, as messages of it. It counts characters, since it must grow.
 *
 * @param {any} extra
 */
function withProgress(extra) {
  const progressToken = extra?._meta?.progressToken;
  if (progressToken === undefined || typeof extra.sendNotification !== "function") return extra;
  let progress = 0;
  return {
    ...extra,
    onOutput(/** @type {string} */ message) {
      progress += message.length;
      return extra.sendNotification({ method: "notifications/progress", params: { progressToken, progress, message } });
    },
  };
}

/** @param {string} text */
function textResult(text) {
  return { content: [{ type: /** @type {const} */ ("text"), text }] };
}
