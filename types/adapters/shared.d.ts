import type { ToolCallContext, ToolDef, ToolSchema } from "../index.js";

/** A tool of a sandbox's toolkit, or of `defineTool()` with a JSON Schema. */
export type AdaptableTool = ToolDef<ToolSchema> & { readonly rawJsonSchema?: any };

export type { ToolCallContext };
