// What the adapters share. An adapter renames: the framework's field names around the tool's own name,
// schema and function. It imports no framework.
//
// Invariant: arguments are checked by the tool, not by the framework, so a model reads the same words
// everywhere; and no adapter drops an approval that a tool asks for.
import { wordsOf } from "../errors.js";
import { invalid } from "../options.js";

/** @import { AdaptableTool } from "../../types/adapters/shared.js" */

/**
 * Returns `tools` when each checks its own arguments, has its own name and, unless `approvals`, needs no approval.
 *
 * @param {readonly AdaptableTool[]} tools
 * @param {string} where
 * @param {{ approvals?: boolean }} [can] what the framework has
 * @returns {readonly AdaptableTool[]}
 */
export function checkTools(tools, where, { approvals = false } = {}) {
  if (!Array.isArray(tools)) throw invalid(`${where}: pass an array of tools, such as toolkit.getTools()`);
  const names = new Set();
  for (const tool of tools) {
    if (tool?.parameters?.["~standard"]?.vendor !== "cloudsandbox") {
      throw invalid(
        `${where}: each tool must come from a sandbox's toolkit or from defineTool() with a JSON Schema`,
      );
    }
    if (tool.requiresApproval && !approvals) {
      throw invalid(
        `${where}: the tool "${tool.name}" has \`requiresApproval\`, which has no counterpart there; ` +
          "leave it out and ask for approval in the host",
      );
    }
    if (names.has(tool.name)) {
      throw invalid(
        `${where}: two of the tools are named "${tool.name}"; give one of their toolkits another name, such as ` +
          'new SandboxToolkit(sandbox, { name: "build" })',
      );
    }
    names.add(tool.name);
  }
  return tools;
}

/**
 * Runs the tool for its text. `context` may hold the signal.
 *
 * @param {AdaptableTool} tool
 * @param {unknown} args
 * @param {any} context
 * @returns {Promise<string>}
 */
export async function textOf(tool, args, context) {
  const result = await tool.execute(args, context);
  return typeof result === "string" ? result : result.content;
}

/** What a model is told of a failure. */
export const messageOf = wordsOf;
