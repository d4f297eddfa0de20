// Types of "cloudsandbox/openai".
import type { CallSignal } from "../index.js";
import type { AdaptableTool } from "./shared.js";

export interface OpenAITools {
  /** `client.responses.create({ tools: tools.responses })` */
  responses: { type: "function"; name: string; description: string; parameters: any; strict: false }[];
  /** `client.chat.completions.runTools({ tools: tools.chat })`: it makes the calls, too, and ends them when it is aborted. */
  chat: {
    type: "function";
    function: {
      name: string;
      description: string;
      parameters: any;
      function(input: string, runner?: any): Promise<string>;
    };
  }[];
  /** Whether a call is for one of these tools. */
  has(name: string): boolean;
  /**
   * Makes a call of the Responses API; what it gives is an item of the next request's `input`. A failure is an output, too:
   * "Error: " and what a model can do about it. Rejects when `signal` is aborted.
   */
  call(
    item: { call_id: string; name: string; arguments: string },
    options?: { signal?: CallSignal | undefined; onOutput?: ((text: string) => unknown) | undefined },
  ): Promise<{ type: "function_call_output"; call_id: string; output: string }>;
}

/** Throws for `requiresApproval`. */
export function openAITools(tools: readonly AdaptableTool[]): OpenAITools;
