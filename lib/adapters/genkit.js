// "cloudsandbox/genkit": tools as Genkit takes them.
import { checkTools, messageOf, textOf } from "./shared.js";

/** @import { AdaptableTool } from "../../types/adapters/shared.js" */
/** @import { GenkitLike } from "../../types/adapters/genkit.js" */

/**
 * @template Made
 * @param {readonly AdaptableTool[]} tools
 * @param {GenkitLike<Made>} ai what genkit() has given
 * @param {{ signal?: import("../../types/index.js").CallSignal | undefined, onOutput?: (text: string) => unknown }} [options] what that framework does not pass on itself
 * @returns {Made[]}
 */
export function genkitTools(tools, ai, options = {}) {
  return checkTools(tools, "genkitTools").map((tool) => {
    const { name, description, rawJsonSchema } = tool;
    // Arguments that fail Genkit's own check end the whole generate(), so it has nothing to check.
    const made = ai.dynamicTool({ name, description, inputJsonSchema: { type: "object" } }, async (input) => {
      try {
        return await textOf(tool, input, options);
      } catch (error) {
        // So does what is thrown.
        if (options.signal?.aborted) throw error;
        return `Error: ${messageOf(error)}`;
      }
    });
    // What is shown to the model is read from here; what is checked was taken when the tool was made.
    Object.assign(/** @type {any} */ (made).__action, { inputJsonSchema: rawJsonSchema });
    return made;
  });
}
