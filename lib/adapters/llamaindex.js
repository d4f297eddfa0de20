// "cloudsandbox/llamaindex": tools as LlamaIndex.TS takes them.
import { checkTools, messageOf, textOf } from "./shared.js";

/** @import { AdaptableTool } from "../../types/adapters/shared.js" */
/** @import { LlamaIndexTool } from "../../types/adapters/llamaindex.js" */

/**
 * @param {readonly AdaptableTool[]} tools
 * @param {{ signal?: import("../../types/index.js").CallSignal | undefined, onOutput?: (text: string) => unknown }} [options] what that framework does not pass on itself
 * @returns {LlamaIndexTool[]}
 */
export function llamaIndexTools(tools, options = {}) {
  return checkTools(tools, "llamaIndexTools").map((tool) => {
    const { name, description, rawJsonSchema: parameters } = tool;
    return {
      metadata: { name, description, parameters },
      async call(input) {
        try {
          const text = await textOf(tool, input, options);
          // That framework writes a result as JSON and takes the quotes out; of JSON in a text nothing legible is left.
          return tool.effect === "execute" ? valueOf(text) : text;
        } catch (error) {
          if (options.signal?.aborted) throw error;
          return `Error: ${messageOf(error)}`;
        }
      },
    };
  });
}

/** @param {string} text */
function valueOf(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text; // A tool of the user's own.
  }
}
