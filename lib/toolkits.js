// "cloudsandbox/toolkits": the part of the package that an agent framework imports. The same objects
// as in the root.
export { SandboxAgent } from "./agent.js";
export { LocalSandbox } from "./local.js";
export {
  LocalSandboxToolkit,
  SandboxToolkit,
  Toolkit,
  collectToolkitTools,
  describeToolLibrary,
} from "./toolkit.js";
