// The package's root: everything public.
export { SandboxAgent } from "./agent.js";
export { DaytonaSandbox } from "./daytona.js";
export { E2BSandbox } from "./e2b.js";
export { PathSecurityError, SANDBOX_ERROR_CODES, SandboxError } from "./errors.js";
export { LocalSandbox } from "./local.js";
export {
  DaytonaSandboxToolkit,
  E2BSandboxToolkit,
  LocalSandboxToolkit,
  SandboxToolkit,
  Toolkit,
  collectToolkitTools,
  describeToolLibrary,
} from "./toolkit.js";
export { defineTool } from "./tools.js";
