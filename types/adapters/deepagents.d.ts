// Types of "cloudsandbox/deepagents".
import type { CallSignal } from "../index.js";
import type { FullSandbox } from "./shared.js";

/** `BaseSandbox` of "deepagents", as far as it is used. */
export type BaseSandboxClass = abstract new () => object;

/**
 * `createDeepAgent({ backend: deepAgentsBackend(sandbox, BaseSandbox) })`. That framework passes no signal on: give
 * `signal: () => getConfig()?.signal`, with `getConfig` of "@langchain/langgraph", and an aborted run ends its command. Without it,
 * `timeoutSeconds` (120) does. The sandbox is not closed by the framework.
 */
export function deepAgentsBackend<Base extends abstract new (...args: any[]) => any>(
  sandbox: FullSandbox,
  BaseSandbox: Base,
  options?: { timeoutSeconds?: number | undefined; signal?: (() => CallSignal | undefined) | undefined },
): InstanceType<Base>;
