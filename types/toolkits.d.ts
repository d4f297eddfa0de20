// Types of "cloudsandbox/toolkits": the part of the package that an agent framework imports.
export {
  E2BSandbox,
  E2BSandboxToolkit,
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
  E2BRunOptions,
  E2BSandboxOptions,
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
