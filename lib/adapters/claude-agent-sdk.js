// "cloudsandbox/claude-agent-sdk": tools as options of query(), in an MCP server inside this process.
import { invalid } from "../options.js";
import { handlersOf } from "./mcp-handlers.js";

/** @import { AdaptableTool } from "../../types/adapters/shared.js" */
/** @import { ClaudeAgentOptions } from "../../types/adapters/claude-agent-sdk.js" */

/** What Claude Code may find in a name of a tool. */
const NAME = /^[a-zA-Z0-9_-]{1,32}$/;
const METHOD_NOT_FOUND = -32601;
const INTERNAL_ERROR = -32603;

/**
 * @param {readonly AdaptableTool[]} tools
 * @param {{ name?: string }} [options]
 * @returns {ClaudeAgentOptions}
 */
export function claudeAgentTools(tools, { name = "sandbox" } = {}) {
  const handlers = handlersOf(tools, "claudeAgentTools");
  if (!NAME.test(name)) throw invalid("claudeAgentTools: `name` must have 1 to 32 letters, digits, - or _");
  return {
    mcpServers: { [name]: { type: "sdk", name, instance: { connect: (/** @type {any} */ transport) => serve(transport, name, handlers) } } },
    allowedTools: tools.map((tool) => `mcp__${name}__${tool.name}`),
    // Claude Code's own tools run commands and read files on this machine.
    tools: [],
  };
}

/**
 * The part of an MCP server that tools need. One connection is one query.
 *
 * @param {any} transport
 * @param {string} name
 * @param {import("../../types/adapters/mcp.js").McpHandlers} handlers
 */
async function serve(transport, name, handlers) {
  /** @type {Map<unknown, AbortController>} */
  const running = new Map();
  /** @type {Record<string, (params: any, extra: any) => unknown>} */
  const methods = {
    initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name, version: "1" } }),
    ping: () => ({}),
    "tools/list": () => handlers.listTools(),
    "tools/call": (params, extra) => handlers.callTool({ params }, extra),
  };
  const send = (/** @type {object} */ message) => transport.send({ jsonrpc: "2.0", ...message });
  /** @param {{ id: unknown, method: string, params?: any }} request */
  async function answer({ id, method, params = {} }) {
    const controller = new AbortController();
    running.set(id, controller);
    try {
      const handler = Object.hasOwn(methods, method) ? methods[method] : undefined;
      if (!handler) throw Object.assign(new Error(`Method not found: ${method}`), { code: METHOD_NOT_FOUND });
      const result = await handler(params, { signal: controller.signal, _meta: params._meta, sendNotification: send });
      await send({ id, result });
    } catch (error) {
      // Who has cancelled a request waits for no answer.
      const { code = INTERNAL_ERROR, message = "failed" } = /** @type {any} */ (error) ?? {};
      if (!controller.signal.aborted) await send({ id, error: { code: Number.isInteger(code) ? code : INTERNAL_ERROR, message } });
    } finally {
      running.delete(id);
    }
  }
  transport.onmessage = (/** @type {any} */ message) => {
    if (message.method === "notifications/cancelled") running.get(message.params?.requestId)?.abort(new Error("The call was cancelled"));
    else if (message.id !== undefined && message.method) answer(message).catch(() => {}); // The connection is closed.
  };
  transport.onclose = () => {
    for (const controller of running.values()) controller.abort(new Error("The query has ended"));
  };
  await transport.start();
}
