// Types of "cloudsandbox/google-adk".
import type { AdaptableTool } from "./shared.js";

/** `FunctionTool` of "@google/adk". */
export type FunctionToolClass<Made> = new (options: {
  name: string;
  description: string;
  execute: (args: any, context?: any) => Promise<any>;
  requireConfirmation: boolean | ((args: any) => boolean);
}) => Made;

/**
 * `new LlmAgent({ tools: googleAdkTools(toolkit.getTools(), FunctionTool) })`. A failure is `{ error }`; `requiresApproval` is
 * that framework's confirmation.
 */
export function googleAdkTools<Made extends object>(
  tools: readonly AdaptableTool[],
  FunctionTool: FunctionToolClass<Made>,
): Made[];
