// The package's root: everything public.
//
// These come with the others anyway. Named here, they are fetched together with them; else Node goes down
// the graph level by level, which takes up to a millisecond more.
import "./fence.js";
import "./manifest.js";
import "./meant.js";
import "./mounts.js";
import "./native.js";
import "./options.js";
import "./recording.js";
import "./remote-options.js";
import "./results.js";
import "./sandbox.js";
import "./schema.js";
import "./signals.js";
import "./spec.js";
export { SandboxAgent } from "./agent.js";
export { AgentCoreSandbox } from "./agentcore.js";
export { DaytonaSandbox } from "./daytona.js";
export { DockerSandbox, removeStaleDockerSandboxes } from "./docker.js";
export { E2BSandbox } from "./e2b.js";
export { PathSecurityError, SANDBOX_ERROR_CODES, SandboxError } from "./errors.js";
export { HttpSandbox } from "./http.js";
export { LocalSandbox } from "./local.js";
export { ModalSandbox } from "./modal.js";
export { createSandbox, listSandboxProviders, registerSandboxProvider } from "./registry.js";
export {
  AgentCoreSandboxToolkit,
  DaytonaSandboxToolkit,
  DockerSandboxToolkit,
  E2BSandboxToolkit,
  HttpSandboxToolkit,
  LocalSandboxToolkit,
  ModalSandboxToolkit,
  SandboxToolkit,
  Toolkit,
  VercelSandboxToolkit,
  collectToolkitTools,
  describeToolLibrary,
} from "./toolkit.js";
export { defineTool } from "./tools.js";
export { VercelSandbox } from "./vercel.js";
