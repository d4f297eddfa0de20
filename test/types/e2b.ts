// E2BSandbox as a TypeScript user writes it. Nothing here runs; a line that must not compile is marked
// as an expected error.
import { E2BSandbox, E2BSandboxToolkit, SandboxAgent, SandboxToolkit } from "cloudsandbox";
import type { CloudSandbox, E2BSandboxOptions, ExecShownResult } from "cloudsandbox";
import type { E2BSandboxConfig } from "cloudsandbox";
import { E2BSandbox as FromToolkits } from "cloudsandbox/toolkits";
import type { E2BSandboxConfig as ConfigFromToolkits } from "cloudsandbox/toolkits";

/** The name of the older contract. */
export const config: E2BSandboxConfig = { apiKey: "k", template: "base", lifetimeSeconds: 300 };
export const sameConfig: ConfigFromToolkits = config;

export const options: E2BSandboxOptions = {
  template: "base",
  lifetimeSeconds: 600,
  network: {
    denyOut: ["0.0.0.0/0"],
    allowOut: ["*.example.com"],
    egressProxy: { address: "proxy:1080" },
    rules: { "example.com": [{ transform: { headers: { a: "b" } } }] },
  },
  ca: new Uint8Array(1),
};
// @ts-expect-error there is no such option
export const misspelt: E2BSandboxOptions = { tempalte: "base" };
// @ts-expect-error there is no such rule
export const open: E2BSandboxOptions = { network: { denyout: ["0.0.0.0/0"] } };
// @ts-expect-error the vendor's SDK is not used
export const injected: E2BSandboxOptions = { sdk: {} };

export const sandbox: CloudSandbox = new E2BSandbox(options);
export const same: E2BSandbox = new FromToolkits();
export const toolkit = new E2BSandboxToolkit();
export const inside: E2BSandbox = toolkit.getSandbox();
export const around = new SandboxToolkit(new E2BSandbox(), { name: "mine" });
export const agent = new SandboxAgent({ backend: "remote", remote: new E2BSandbox() });

export async function use(e2b: E2BSandbox) {
  const { exitCode } = await e2b.run("1", { context: "a", timeoutSeconds: 5 });
  const exact: number = exitCode;
  // @ts-expect-error a command has no context
  await e2b.shell("true", { context: "a" });
  // @ts-expect-error only code has a context
  await e2b.exec({ command: "true", context: "a" });
  const { results, error, stdout } = await e2b.exec({ code: "1", context: "a" });
  const shown: ExecShownResult | undefined = results?.[0];
  const png: string | undefined = shown?.png;
  const traceback: string | undefined = error?.traceback;
  const { stdout: bytes } = await e2b.exec({ argv: ["ls"], encoding: "buffer" });
  const raw: Uint8Array = bytes;
  await e2b.setLifetime(60);
  await e2b.pause({ signal: AbortSignal.timeout(5) });
  await e2b.resume({ lifetimeSeconds: 60 });
  return { exact, png, traceback, stdout, raw, pause: e2b.capabilities.pause };
}
