// Types of "cloudsandbox/ai-sdk".
import type { ToolSchema } from "../index.js";
import type { AdaptableTool } from "./shared.js";

/** A tool of the Vercel AI SDK, 6 and 7. */
export interface AiSdkTool {
  description: string;
  inputSchema: ToolSchema;
  /** What the tool's `requiresApproval` says. */
  needsApproval?: boolean | ((args: any) => boolean);
  execute(args: any, options?: any): any;
}

/**
 * `generateText({ tools: aiSdkTools(toolkit.getTools()) })`, as `collectToolkitTools([toolkit])`; but the run and the shell
 * tool give preliminary results while they run: JSON text with `output` (the newest 10,000 characters) and `running: true`.
 */
export function aiSdkTools(tools: readonly AdaptableTool[]): Record<string, AiSdkTool>;
