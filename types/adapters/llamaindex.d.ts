// Types of "cloudsandbox/llamaindex".
import type { CallSignal } from "../index.js";
import type { AdaptableTool } from "./shared.js";

/** A tool of LlamaIndex.TS. */
export interface LlamaIndexTool {
  metadata: { name: string; description: string; parameters: any };
  /** Resolves with "Error: " and the words for a failure. */
  call(input: any): Promise<any>;
}

/**
 * `agent({ tools: llamaIndexTools(toolkit.getTools()) })`. That framework passes no signal on to its tools: give one here to
 * end what runs. Throws for `requiresApproval`.
 */
export function llamaIndexTools(
  tools: readonly AdaptableTool[],
  options?: { signal?: CallSignal | undefined; onOutput?: (text: string) => unknown },
): LlamaIndexTool[];
