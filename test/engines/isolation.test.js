// Whether a container's network is off, as it is looked at from inside; on the real engines. What is outside is another container of
// the same engine, whose networks lead nowhere else.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { NetworkGuard, OUTSIDE } from "../../lib/network-check.js";
import { engines, open } from "./support.js";

// Addresses that are nobody's, should one of them get out after all.
const NOBODYS = { tcp4: [["192.0.2.1", 80]], tcp6: [["2001:db8::1", 80]], metadata: [["192.0.2.2", 80]], name: "nobody..invalid" };
Object.assign(OUTSIDE, NOBODYS);

/** Looks from inside a sandbox, whatever its options say. */
async function look(sandbox, outside) {
  Object.assign(OUTSIDE, { tcp6: [], metadata: [], ...outside });
  const guard = new NetworkGuard({ default: "deny" }, "docker", {
    id: () => sandbox.sandboxId,
    start: () => sandbox.start(),
    exec: async ({ argv }) => ({ output: { bytes: Buffer.from((await sandbox.exec({ argv })).stdout) } }),
    destroy: () => sandbox.close(),
  });
  const error = await guard.look().catch((it) => it);
  Object.assign(OUTSIDE, NOBODYS);
  return { ...guard.isolation, error };
}

for (const engine of engines) {
  describe(`network isolation, ${engine.name}`, () => {
    for (const image of ["python", "dash", "busybox"]) {
      test(`C148 no network, ${image}: isolated, over IPv4, IPv6, names and the metadata address`, async (t) => {
        const { make } = open(t, engine);
        const sandbox = make({ manifest: { image: `cloudsandbox/${image}`, network: {} }, image: undefined });
        assert.equal((await sandbox.shell("echo on")).output, "on\n");
        const { verdict, evidence } = sandbox.networkIsolation;
        assert.equal(verdict, "isolated", JSON.stringify(evidence));
        assert.deepEqual([...new Set(evidence.map(({ kind }) => kind))], ["tcp4", "tcp6", "metadata", "dns"]);
      });
    }

    test("C148 a bridge: what is on it is reachable, with any image, and the container is deleted", { skip: engine.name === "rootless" && "its containers share no network" }, async (t) => {
      const { make, left } = open(t, engine);
      const server = make({ network: "bridge" });
      await server.shell("python3 -m http.server 8080 >/dev/null 2>&1 &");
      const found = await server.run("import socket\nprint(socket.gethostbyname(socket.gethostname()))");
      const outside = { tcp4: [[found.output.trim(), 8080]] };
      for (const image of ["python", "dash", "busybox"]) {
        const { verdict, evidence, error } = await look(make({ network: "bridge", image: `cloudsandbox/${image}` }), outside);
        assert.equal(verdict, "reachable", JSON.stringify(evidence));
        assert.equal(error.code, "ERR_SANDBOX_ISOLATION_UNAVAILABLE");
      }
      assert.deepEqual(left().map(({ Id }) => Id), [server.sandboxId]);
      // From no network the same place is out of reach.
      assert.equal((await look(make({ network: "none" }), outside)).verdict, "isolated");
    });
  });
}
