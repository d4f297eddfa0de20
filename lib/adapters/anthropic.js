// "cloudsandbox/anthropic": tools as the tool runner of Anthropic's SDK takes them.
import { checkTools, textOf } from "./shared.js";

/** @import { AdaptableTool } from "../../types/adapters/shared.js" */
/** @import { AnthropicTool } from "../../types/adapters/anthropic.js" */

/**
 * @param {readonly AdaptableTool[]} tools
 * @returns {AnthropicTool[]}
 */
export function anthropicTools(tools) {
  return checkTools(tools, "anthropicTools").map((tool) => ({
    type: "custom",
    name: tool.name,
    description: tool.description,
    input_schema: tool.rawJsonSchema,
    parse: (input) => input,
    run: (input, context) => textOf(tool, input, context),
  }));
}

export { anthropicBashTool, anthropicMemory } from "./anthropic-own.js";
