// A manifest at Vercel: what is asked for on the wire, and what cannot be kept.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { VercelSandbox } from "cloudsandbox";

import { CREATE, startEmulator } from "./support.js";

const refused = (manifest, message, options) =>
  assert.throws(() => new VercelSandbox({ lateAuth: true, ...options, manifest }), { code: "ERR_SANDBOX_UNSUPPORTED", provider: "vercel", message });

describe("a manifest", () => {
  test("its image, processors, variables and network are what is asked for", async (t) => {
    const { engine, make } = await startEmulator(t);
    const start = async (manifest) => {
      await make({ manifest, verifyNetwork: manifest.network.default === "allow" ? undefined : false }).start();
      return JSON.parse(engine.requests(CREATE).at(-1).body);
    };
    const first = await start({ image: "vercel/sandbox/ubuntu", env: { A: "1" }, network: {}, resources: { cpus: 2, memoryMb: 4096 } });
    assert.deepEqual([first.image, first.env.A, first.networkPolicy, first.resources.vcpus], ["vercel/sandbox/ubuntu", "1", { mode: "deny-all" }, 2]);
    assert.equal((await start({ network: {}, resources: { memoryMb: 2048 } })).resources.vcpus, 1);
    assert.deepEqual((await start({ network: { allowedHosts: ["*.example.com", "192.0.2.7", "198.51.100.0/24"] } })).networkPolicy, {
      allow: ["*.example.com"], subnets: { allow: ["192.0.2.7/32", "198.51.100.0/24"] },
    });
    assert.deepEqual((await start({ network: { default: "allow" } })).networkPolicy, { mode: "allow-all" });
  });

  test("values that cannot be kept", () => {
    refused({ resources: { cpus: 0.5 } }, /whole processors/);
    refused({ resources: { memoryMb: 1000 } }, /2048 MB: give 2048/);
    refused({ resources: { cpus: 2, memoryMb: 2048 } }, /2048 MB: give 4096/);
    refused({ network: { allowedHosts: ["2001:db8::1"] } }, /IPv4/);
    refused({ network: { default: "allow", deniedHosts: ["192.0.2.7"] } }, /^vercel cannot keep `manifest\.network\.deniedHosts`/);
  });
});
