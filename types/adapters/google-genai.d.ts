// Types of "cloudsandbox/google-genai".
import type { CallSignal } from "../index.js";
import type { AdaptableTool } from "./shared.js";

/** A CallableTool of @google/genai. */
export interface GoogleGenAITool {
  tool(): Promise<{ functionDeclarations: { name: string; description: string; parametersJsonSchema: any }[] }>;
  callTool(calls: { id?: string; name?: string; args?: Record<string, unknown> }[]): Promise<any[]>;
}

/**
 * `ai.models.generateContent({ config: { tools: [googleGenAITools(toolkit.getTools())] } })`. That SDK passes no signal on to
 * its tools: give the same one here as in `config.abortSignal`. Throws for `requiresApproval`.
 */
export function googleGenAITools(
  tools: readonly AdaptableTool[],
  options?: { signal?: CallSignal | undefined; onOutput?: (text: string) => unknown },
): GoogleGenAITool;
