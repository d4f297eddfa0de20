// Types of "cloudsandbox/computesdk".
import type { LocalSandbox } from "../index.js";
import type { FullSandbox } from "./shared.js";

/** A sandbox of one of the classes of this package. */
export type ComputeSandbox = FullSandbox & Pick<LocalSandbox, "mkdir">;

/** `defineProvider` of "@computesdk/provider", as far as it is used. */
export type DefineProvider<Provider> = (definition: { name: string; methods: { sandbox: any } }) => (config: any) => Provider;

/**
 * `compute.setConfig({ provider: computeSdkProvider(defineProvider, ({ envs }) => new DockerSandbox({ image, env: envs })) })`.
 * `make` is called for each create(), with its options (`envs`, `timeout`, `templateId` and so on): what it does not use is not
 * used. Found again by their id are the sandboxes that this provider has made. destroy() deletes the sandbox, and ends what runs in
 * it; a command has the limit that it was given, or none. getUrl() rejects with ERR_SANDBOX_UNSUPPORTED.
 */
export function computeSdkProvider<Provider>(
  defineProvider: DefineProvider<Provider>,
  make: (options: any) => ComputeSandbox | Promise<ComputeSandbox>,
  options?: { name?: string | undefined },
): Provider;
