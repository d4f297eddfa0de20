import type { CloudSandbox, LocalSandbox, ToolCallContext, ToolDef, ToolSchema } from "../index.js";

/** A tool of a sandbox's toolkit, or of `defineTool()` with a JSON Schema. */
export type AdaptableTool = ToolDef<ToolSchema> & { readonly rawJsonSchema?: any };

export type { ToolCallContext };

/** A sandbox of one of the classes of this package. */
export type FullSandbox = CloudSandbox &
  Pick<LocalSandbox, "exec" | "readBytes" | "readStream" | "writeStream" | "stat" | "listDirectory" | "deleteFile">;
