// "cloudsandbox/openai": tools for OpenAI's own client, in both of its APIs and those that speak like them.
import { invalid } from "../options.js";
import { checkTools, messageOf, textOf } from "./shared.js";

/** @import { AdaptableTool } from "../../types/adapters/shared.js" */
/** @import { OpenAITools } from "../../types/adapters/openai.js" */

/**
 * @param {readonly AdaptableTool[]} tools
 * @returns {OpenAITools}
 */
export function openAITools(tools) {
  const byName = new Map(checkTools(tools, "openAITools").map((tool) => [tool.name, tool]));
  const all = [...byName.values()];
  /** @param {string} name @param {string} input JSON text @param {any} options */
  const answer = async (name, input, options) => {
    const tool = byName.get(name);
    try {
      if (!tool) throw invalid(`there is no tool ${name}; there are ${[...byName.keys()].join(", ")}`);
      return await textOf(tool, argumentsIn(name, input), options);
    } catch (error) {
      if (options?.signal?.aborted) throw error;
      return `Error: ${messageOf(error)}`;
    }
  };
  return {
    // A strict schema would have no optional members.
    responses: all.map((tool) => ({ type: "function", name: tool.name, description: tool.description, parameters: tool.rawJsonSchema, strict: false })),
    chat: all.map((tool) => ({
      type: "function",
      function: { name: tool.name, description: tool.description, parameters: tool.rawJsonSchema, function: (input, runner) => answer(tool.name, input, { signal: runner?.controller?.signal }) },
    })),
    has: (name) => byName.has(name),
    call: async ({ call_id, name, arguments: input }, options) => ({ type: "function_call_output", call_id, output: await answer(name, input, options) }),
  };
}

/** @param {string} tool @param {string} input */
function argumentsIn(tool, input) {
  try {
    return JSON.parse(input);
  } catch {
    throw invalid(`${tool} was not run, and nothing has changed: the arguments must be a JSON object. Call it again with one.`);
  }
}
