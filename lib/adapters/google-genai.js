// "cloudsandbox/google-genai": tools as a CallableTool of @google/genai.
import { invalid } from "../options.js";
import { checkTools, messageOf, textOf } from "./shared.js";

/** @import { AdaptableTool } from "../../types/adapters/shared.js" */
/** @import { GoogleGenAITool } from "../../types/adapters/google-genai.js" */

/**
 * @param {readonly AdaptableTool[]} tools
 * @param {{ signal?: import("../../types/index.js").CallSignal | undefined, onOutput?: (text: string) => unknown }} [options] what that SDK does not pass on itself
 * @returns {GoogleGenAITool}
 */
export function googleGenAITools(tools, options = {}) {
  const byName = new Map(checkTools(tools, "googleGenAITools").map((tool) => [tool.name, tool]));
  const functionDeclarations = [...byName.values()].map(({ name, description, rawJsonSchema: parametersJsonSchema }) => {
    return { name, description, parametersJsonSchema };
  });
  /** @param {{ id?: string, name?: string, args?: unknown }} call */
  async function answer({ id, name = "", args = {} }) {
    const tool = byName.get(name);
    if (!tool) throw invalid(`there is no tool ${name}`);
    const of = { ...(id !== undefined && { id }), name };
    try {
      return { functionResponse: { ...of, response: { output: await textOf(tool, args, options) } } };
    } catch (error) {
      if (options.signal?.aborted) throw error;
      // Here what is thrown ends the whole request.
      return { functionResponse: { ...of, response: { error: messageOf(error) } } };
    }
  }
  return {
    tool: async () => ({ functionDeclarations }),
    // That SDK gives every CallableTool the calls of all.
    callTool: (calls) => Promise.all(calls.filter(({ name }) => byName.has(name ?? "")).map(answer)),
  };
}
