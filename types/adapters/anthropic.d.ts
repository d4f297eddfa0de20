// Types of "cloudsandbox/anthropic".
import type { CallSignal, CloudSandbox } from "../index.js";
import type { AdaptableTool } from "./shared.js";

/** A tool for `client.beta.messages.toolRunner()`. */
export interface AnthropicTool {
  type: "custom";
  name: string;
  description: string;
  input_schema: any;
  parse(input: unknown): any;
  run(input: any, context?: { signal?: CallSignal | null | undefined }): Promise<string>;
}

/** `client.beta.messages.toolRunner({ tools: anthropicTools(toolkit.getTools()), ... })`. Throws for `requiresApproval`. */
export function anthropicTools(tools: readonly AdaptableTool[]): AnthropicTool[];

/** The bash tool whose schema Anthropic has defined, for `toolRunner()`. */
export interface AnthropicBashTool {
  type: "bash_20250124";
  name: "bash";
  parse(input: unknown): any;
  run(input: any, context?: { signal?: CallSignal | null | undefined }): Promise<string>;
}

/**
 * To a model it is one shell that goes on: the directory and the exported variables last from call to call, functions and
 * other variables do not; what a command has changed that was killed by its limit may be forgotten. Calls run one after another.
 */
export function anthropicBashTool(
  sandbox: CloudSandbox,
  options?: {
    /** Of each command; 120 when left out. */
    timeoutSeconds?: number;
    /** Most characters of a result; 50000 when left out. */
    maxToolOutputChars?: number;
  },
): AnthropicBashTool;

/** What `betaMemoryTool()` of Anthropic's SDK takes. */
export interface AnthropicMemoryHandlers {
  view(command: { path: string; view_range?: number[] | undefined }): Promise<string>;
  create(command: { path: string; file_text: string }): Promise<string>;
  str_replace(command: { path: string; old_str: string; new_str: string }): Promise<string>;
  insert(command: { path: string; insert_line: number; insert_text: string }): Promise<string>;
  delete(command: { path: string }): Promise<string>;
  rename(command: { old_path: string; new_path: string }): Promise<string>;
}

/** `betaMemoryTool(anthropicMemory(sandbox))`: `/memories` is a folder of the sandbox, "memories" when left out. */
export function anthropicMemory(sandbox: CloudSandbox, options?: { folder?: string }): AnthropicMemoryHandlers;
