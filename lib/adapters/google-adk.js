// "cloudsandbox/google-adk": tools as Google's Agent Development Kit takes them.
import { checkTools, messageOf, textOf } from "./shared.js";

/** @import { AdaptableTool } from "../../types/adapters/shared.js" */
/** @import { FunctionToolClass } from "../../types/adapters/google-adk.js" */

/**
 * @template {object} Made
 * @param {readonly AdaptableTool[]} tools
 * @param {FunctionToolClass<Made>} FunctionTool of "@google/adk"
 * @returns {Made[]}
 */
export function googleAdkTools(tools, FunctionTool) {
  return checkTools(tools, "googleAdkTools", { approvals: true }).map((tool) => {
    const { name, description, rawJsonSchema: parametersJsonSchema, requiresApproval: rule } = tool;
    const made = new FunctionTool({
      name,
      description,
      async execute(args, context) {
        try {
          return await textOf(tool, args, context);
        } catch (error) {
          // An error that is thrown gets the framework's words around it.
          if (context?.abortSignal?.aborted) throw error;
          return { error: messageOf(error) };
        }
      },
      requireConfirmation: typeof rule === "function" ? (args) => rule(args) : rule === true,
    });
    // The framework's own declaration is a schema of Gemini, which knows less.
    return Object.assign(made, { _getDeclaration: () => ({ name, description, parametersJsonSchema }) });
  });
}
