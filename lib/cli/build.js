// Builds the native part by the package's own script, which needs nothing of the package but its sources.
import { SandboxError } from "../errors.js";
import { buildScript } from "../native.js";

const { spawnSync } = process.getBuiltinModule("node:child_process");
const { existsSync } = process.getBuiltinModule("node:fs");

/** @returns {Promise<number>} the exit code */
export async function build() {
  const script = buildScript();
  if (!existsSync(script)) {
    throw new SandboxError(`cloudsandbox: its build script is not there. Run: node ${script}`, { code: "ERR_SANDBOX_MISSING_BINARY" });
  }
  const { bun, deno } = process.versions;
  const { status, error } = spawnSync(bun || deno ? "node" : process.execPath, [script], { stdio: "inherit" });
  if (error) throw new SandboxError(`cloudsandbox: node cannot be started: ${error.message}`, { code: "ERR_SANDBOX_MISSING_BINARY", cause: error });
  return status ?? 1;
}
