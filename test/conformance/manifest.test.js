// Manifests: each provider keeps the settings that its row names, and refuses every other one before anything is created.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { providers } from "./providers.js";

/** Every setting, in a form that each provider which has it can keep. */
const SETTINGS = {
  image: { image: "python:3.12-slim" },
  workingDir: { workingDir: "/work" },
  'network.default: "deny"': { network: { default: "deny" } },
  'network.default: "allow"': { network: { default: "allow" } },
  "network.allowedHosts": { network: { allowedHosts: ["192.0.2.7"] } },
  "network.deniedHosts": { network: { default: "allow", deniedHosts: ["192.0.2.7"] } },
  env: { env: { MODE: "test" } },
  "resources.cpus": { resources: { cpus: 1 } },
  "resources.memoryMb": { resources: { memoryMb: 2048 } },
  "resources.diskMb": { resources: { diskMb: 3072 } },
  "resources.gpu": { resources: { gpu: 1 } },
  "resources.timeoutSeconds": { resources: { timeoutSeconds: 5 } },
  mounts: { mounts: [{ source: "/srv", target: "/data" }] },
  'lifecycle.cleanup: "always"': { lifecycle: { cleanup: "always" } },
  'lifecycle.cleanup: "onSuccess"': { lifecycle: { cleanup: "onSuccess" } },
  'lifecycle.cleanup: "never"': { lifecycle: { cleanup: "never" } },
};
/** What nobody has to do anything for. */
const EVERYWHERE = ['network.default: "allow"', "env", "resources.timeoutSeconds", 'lifecycle.cleanup: "always"'];

for (const provider of providers) {
  const { keeps, instead } = provider.facts.manifest;

  describe(`manifest, ${provider.name}`, { concurrency: 2 }, () => {
    for (const [setting, manifest] of Object.entries(SETTINGS)) {
      const [name] = setting.split(":");
      if (keeps.includes(setting) || EVERYWHERE.includes(setting)) {
        test(`${setting} is kept`, (t) => {
          provider.world(t).make({ ...instead, manifest });
        });
      } else {
        test(`${setting} is refused, with provider, setting and advice, and nothing is created`, (t) => {
          const world = provider.world(t);
          assert.throws(() => world.make({ ...instead, manifest }), (error) => {
            assert.deepEqual([error.code, error.provider], ["ERR_SANDBOX_UNSUPPORTED", provider.providerId]);
            const start = `${provider.providerId} cannot keep \`manifest.${name}\``;
            assert.ok(error.message.startsWith(start) && /, so nothing was created: .{20}/.test(error.message), error.message);
            return true;
          });
          assert.deepEqual(world.existing(), []);
        });
      }
    }

    test("variables are there, and the limit of a command holds", async (t) => {
      const sandbox = provider.world(t).make({ manifest: { env: { MODE: "test" }, resources: { timeoutSeconds: 4 } } });
      assert.deepStrictEqual(await sandbox.shell('echo "$MODE"; sleep 60'), { output: "test\n", exitCode: 124, timedOut: true });
    });

    test("a member that does not exist is refused with the nearest name", (t) => {
      const world = provider.world(t);
      for (const [manifest, where, nearest] of [
        [{ netwrok: {} }, "manifest", "network"],
        [{ network: { allowedHost: [] } }, "manifest.network", "allowedHosts"],
        [{ resources: { memory: 5 } }, "manifest.resources", "memoryMb"],
        [{ lifecycle: { cleanUp: "always" } }, "manifest.lifecycle", "cleanup"],
      ]) {
        const message = new RegExp(`^${where}: there is no option .*\`${nearest}\``);
        assert.throws(() => world.make({ manifest }), { code: "ERR_SANDBOX_INVALID_ARG", message });
      }
      assert.deepEqual(world.existing(), []);
    });

    test("it is read once: what becomes of the object later changes nothing", async (t) => {
      const env = { MODE: "before" };
      const sandbox = provider.world(t).make({ manifest: { env } });
      env.MODE = "after";
      assert.equal((await sandbox.shell('echo "$MODE"')).output, "before\n");
    });
  });
}
