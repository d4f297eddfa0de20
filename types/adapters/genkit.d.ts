// Types of "cloudsandbox/genkit".
import type { CallSignal } from "../index.js";
import type { AdaptableTool } from "./shared.js";

/** What is used of `genkit()`. */
export interface GenkitLike<Made> {
  dynamicTool(config: { name: string; description: string; inputJsonSchema: any }, run: (input: any) => Promise<any>): Made;
}

/**
 * `ai.generate({ tools: genkitTools(toolkit.getTools(), ai) })`. A failure is a text that begins with "Error: ", since what a
 * tool throws there ends the whole generate(). Genkit passes no signal on to its tools: give one here to end what runs.
 * Throws for `requiresApproval`.
 */
export function genkitTools<Made>(
  tools: readonly AdaptableTool[],
  ai: GenkitLike<Made>,
  options?: { signal?: CallSignal | undefined; onOutput?: (text: string) => unknown },
): Made[];
