// Types of "cloudsandbox/langchain".
import type { AdaptableTool, ToolCallContext } from "./shared.js";

/** `tool` of "@langchain/core/tools". */
export type MakeLangChainTool<Made> = (
  run: (args: any, config: any) => Promise<string>,
  fields: { name: string; description: string; schema: any },
) => Made;

/** `createAgent({ tools: langChainTools(toolkit.getTools(), tool) })`. Throws for `requiresApproval`. */
export function langChainTools<Made>(
  tools: readonly AdaptableTool[],
  make: MakeLangChainTool<Made>,
): Made[];
