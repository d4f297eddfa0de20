// "cloudsandbox/langchain": tools as LangChain.js takes them.
import { checkTools, textOf } from "./shared.js";

/** @import { AdaptableTool } from "../../types/adapters/shared.js" */
/** @import { MakeLangChainTool } from "../../types/adapters/langchain.js" */

/**
 * @template Made
 * @param {readonly AdaptableTool[]} tools
 * @param {MakeLangChainTool<Made>} make `tool` of "@langchain/core/tools"
 * @returns {Made[]}
 */
export function langChainTools(tools, make) {
  return checkTools(tools, "langChainTools").map((tool) => {
    const { name, description, rawJsonSchema: schema } = tool;
    const made = make((args, config) => textOf(tool, args, config), { name, description, schema });
    return checkingFirst(/** @type {any} */ (made), tool);
  });
}

/**
 * LangChain's own check of a JSON Schema tells a model only that something is wrong, and knows none of
 * the slips that a tool tolerates.
 *
 * @param {any} made
 * @param {AdaptableTool} tool
 */
function checkingFirst(made, tool) {
  const { invoke } = made;
  made.invoke = async (/** @type {any} */ input, /** @type {unknown} */ config) => {
    const isCall = input?.type === "tool_call";
    const args = tool.parameters.parse(isCall ? input.args : input);
    return invoke.call(made, isCall ? { ...input, args } : args, config);
  };
  return made;
}
