// "cloudsandbox/toolkits": the part of the package that an agent framework imports. The same objects
// as in the root.
export { SandboxAgent } from "./agent.js";
export { AgentCoreSandbox } from "./agentcore.js";
export { DaytonaSandbox } from "./daytona.js";
export { DockerSandbox } from "./docker.js";
export { E2BSandbox } from "./e2b.js";
export { HttpSandbox } from "./http.js";
export { LocalSandbox } from "./local.js";
export { ModalSandbox } from "./modal.js";
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
export { VercelSandbox } from "./vercel.js";
