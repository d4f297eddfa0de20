// Types of "cloudsandbox/toolkits": the part of the package that an agent framework imports.
export {
  LocalSandbox,
  LocalSandboxToolkit,
  SandboxAgent,
  SandboxToolkit,
  Toolkit,
  collectToolkitTools,
  describeToolLibrary,
} from "./index.js";
export type {
  CloudSandbox,
  LocalSandboxOptions,
  SandboxAgentConfig,
  SandboxBackend,
  SandboxRunOptions,
  SandboxRunResult,
  SandboxTool,
  ToolDef,
  ToolResult,
  WorkspaceFile,
  WorkspaceManifest,
  WorkspaceSnapshot,
} from "./index.js";
