// "cloudsandbox/openai-agents": tools as the OpenAI Agents SDK takes them, and sandboxes for its sandbox agents.
import { invalid } from "../options.js";
import { checkTools, messageOf, textOf } from "./shared.js";

export { openAIAgentsSandboxClient } from "./openai-agents-sandbox.js";

/** @import { AdaptableTool } from "../../types/adapters/shared.js" */
/** @import { OpenAIAgentsTool } from "../../types/adapters/openai-agents.js" */

/**
 * @param {readonly AdaptableTool[]} tools
 * @returns {OpenAIAgentsTool[]}
 */
export function openAIAgentsTools(tools) {
  return checkTools(tools, "openAIAgentsTools", { approvals: true }).map((tool) => ({
    type: "function",
    name: tool.name,
    description: tool.description,
    parameters: tool.rawJsonSchema,
    // A strict schema would have no optional members.
    strict: false,
    isEnabled: async () => true,
    needsApproval: async (_context, args) => {
      const rule = tool.requiresApproval;
      return typeof rule === "function" ? rule(args) : rule === true;
    },
    async invoke(_context, input, details) {
      try {
        return await textOf(tool, parseArguments(tool.name, input), details);
      } catch (error) {
        // Here what is thrown ends the run, which is right for a cancelled one only.
        if (details?.signal?.aborted) throw error;
        return `Error: ${messageOf(error)}`;
      }
    },
  }));
}

/** @param {string} tool @param {string} input */
function parseArguments(tool, input) {
  try {
    return JSON.parse(input);
  } catch {
    throw invalid(`${tool} was not run, and nothing has changed: the arguments must be a JSON object. Call it again with one.`);
  }
}
