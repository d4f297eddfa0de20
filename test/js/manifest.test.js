// The words of a manifest: what is no host, no size, no rule; what an option says, too; an agent's.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { DaytonaSandbox, DockerSandbox, DockerSandboxToolkit, E2BSandbox, LocalSandbox, SandboxAgent } from "cloudsandbox";

import { checkManifest, hostKind } from "../../lib/manifest.js";

const invalid = (message) => ({ name: "SandboxError", code: "ERR_SANDBOX_INVALID_ARG", message });
const e2b = (manifest, options) => new E2BSandbox({ apiKey: "k", ...options, manifest });
const daytona = (manifest, options) => new DaytonaSandbox({ apiKey: "k", ...options, manifest });
const unsupported = (message) => ({ code: "ERR_SANDBOX_UNSUPPORTED", message });

describe("the words", () => {
  test("what has the wrong shape is refused by name", () => {
    for (const [manifest, message] of [
      ["docker", /^manifest: the options must be an object/],
      [[], /^manifest: the options must be an object/],
      [{ image: 7 }, /`manifest\.image` must be a string/],
      [{ workingDir: "work" }, /`manifest\.workingDir` must be an absolute path/],
      [{ network: "off" }, /^manifest\.network: the options must be an object/],
      [{ network: { default: "none" } }, /`manifest\.network\.default`.*"deny", "allow"/],
      [{ network: { allowedHosts: "files.example.org" } }, /`manifest\.network\.allowedHosts` must be an array of hosts/],
      [{ network: { default: "allow", allowedHosts: ["a.b"] } }, /exceptions of default: "deny"/],
      [{ network: { deniedHosts: ["a.b"] } }, /exceptions of default: "allow", which has to be said/],
      [{ env: { "A-B": "canary" } }, /`manifest\.env`/],
      [{ resources: { cpus: 0 } }, /`manifest\.resources\.cpus` must be a number from 0\.01/],
      [{ resources: { memoryMb: 1.5 } }, /`manifest\.resources\.memoryMb` must be a whole number/],
      [{ resources: { gpu: {} } }, /`manifest\.resources\.gpu`/],
      [{ resources: { timeoutSeconds: 0 } }, /`manifest\.resources\.timeoutSeconds`/],
      [{ mounts: {} }, /`manifest\.mounts` must be an array/],
      [{ mounts: [{ src: "/a" }] }, /^manifest\.mounts\[0\]: .*`source`/],
      [{ lifecycle: { cleanup: "later" } }, /`manifest\.lifecycle\.cleanup`/],
      [{ files: [] }, /SandboxAgent's `workspace`/],
    ]) {
      assert.throws(() => checkManifest(manifest), (error) => {
        assert.equal(error.code, "ERR_SANDBOX_INVALID_ARG");
        assert.match(error.message, message);
        assert.ok(!error.message.includes("canary"));
        return true;
      });
    }
  });

  test("hosts: names, addresses, ranges", () => {
    for (const host of ["files.example.org", "*.example.com", "localhost", "A-b.example", "xn--bcher-kva.example"]) assert.equal(hostKind(host), "name", host);
    for (const host of ["1.1.1.1", "10.0.0.0/8", "0.0.0.0/0"]) assert.equal(hostKind(host), "ipv4", host);
    for (const host of ["::1", "2001:db8::/32"]) assert.equal(hostKind(host), "ipv6", host);
    for (const host of [
      "", "https://files.example.org", "files.example.org/simple", "files.example.org:443", "*", "a*.example.com", "256.1.1.1", "1.1.1", "10.0.0.0/33", "01.1.1.1", "::1/129",
      ":::", "a..b", "-a.example", "a b", "user@host", "x".repeat(300), "1.2.3.4\n", "a.b,c.d", "example.com.",
    ]) {
      assert.equal(hostKind(host), undefined, host);
    }
    assert.throws(() => checkManifest({ network: { allowedHosts: ["ok.example", "https://x"] } }), invalid(/allowedHosts\[1\]`.*without scheme, port or path/));
  });

  test("what asks for nothing is nothing: empty lists, no GPU, members that are undefined", () => {
    assert.deepEqual({ ...checkManifest({ image: undefined, mounts: [], resources: { gpu: 0 } }) }, { resources: {} });
    assert.deepEqual({ ...checkManifest({ network: { allowedHosts: [] } }).network }, { default: "deny" });
    new LocalSandbox({ isolation: "none", manifest: { mounts: [], resources: { gpu: 0 } } });
  });

  test("nobody changes the copy", () => {
    const manifest = checkManifest({ env: { A: "1" }, network: { allowedHosts: ["a.b"] }, mounts: [{ source: "/a", target: "/b" }] });
    for (const part of [manifest, manifest.env, manifest.network, manifest.network.allowedHosts, manifest.mounts, manifest.mounts[0]]) {
      assert.ok(Object.isFrozen(part));
    }
  });
});

describe("beside the options of a class", () => {
  test("two words for one thing are refused", () => {
    const network = { network: {} };
    const same = [
      () => e2b({ image: "a" }, { template: "b" }),
      () => e2b(network, { allowInternetAccess: true }),
      () => e2b(network, { network: { allowOut: ["8.8.8.8"] } }),
      () => daytona({ image: "a" }, { image: "a" }),
      () => daytona(network, { domainAllowList: "a.b" }),
      () => new DockerSandbox({ manifest: network, network: "bridge" }),
      () => new DockerSandbox({ manifest: { env: { A: "1" } }, env: {} }),
      () => new DockerSandbox({ manifest: { resources: { timeoutSeconds: 5 } }, defaultTimeoutSeconds: 5 }),
    ];
    for (const make of same) assert.throws(make, invalid(/^`manifest\.[a-zA-Z.]+` and the option `\w+` are about the same thing/));
  });

  test("what is said of a new sandbox says nothing of one that is there", () => {
    for (const make of [
      () => e2b({ network: {} }, { sandboxId: "abc" }),
      () => e2b({ env: { A: "1" } }, { sandboxId: "abc" }),
      () => daytona({ image: "a" }, { sandboxId: "abc" }),
      () => new DockerSandbox({ manifest: { resources: { cpus: 1 } }, containerId: "abc" }),
    ]) {
      assert.throws(make, invalid(/says how a sandbox is made, and `(sandboxId|containerId)` names one that exists/));
    }
    e2b({ resources: { timeoutSeconds: 5 }, lifecycle: { cleanup: "never" } }, { sandboxId: "abc" });
    e2b({ lifecycle: { cleanup: "always" } }, { sandboxId: "abc", owned: true });
    assert.throws(() => e2b({ lifecycle: { cleanup: "always" } }, { sandboxId: "abc" }), unsupported(/left alone by close\(\)/));
    assert.throws(() => e2b({ lifecycle: { cleanup: "never" } }, { sandboxId: "abc", owned: true }), unsupported(/close\(\) deletes/));
  });

  test("values that a provider cannot keep", () => {
    for (const [make, message] of [
      [() => e2b({ network: { allowedHosts: ["2001:db8::1"] } }), /^e2b cannot keep `manifest\.network\.allowedHosts`.*IPv4/],
      [() => e2b({ network: { default: "allow", deniedHosts: ["a.b"] } }), /^e2b cannot keep `manifest\.network\.deniedHosts`.*for names/],
      [() => e2b({ resources: { cpus: 2 } }), /template's/],
      [() => daytona({ resources: { cpus: 2 } }), /of an image only/],
      [() => daytona({ image: "a", resources: { cpus: 0.5 } }), /whole processors/],
      [() => daytona({ image: "a", resources: { memoryMb: 1500 } }), /whole gigabytes: give 2048/],
      [() => daytona({ network: { allowedHosts: ["a.b", "192.0.2.1"] } }), /not both/],
      [() => daytona({ network: { allowedHosts: Array.from({ length: 11 }, (_, i) => `h${i}.example`) } }), /at most 10, and these are 11/],
      [() => new DockerSandbox({ manifest: { network: { allowedHosts: ["a.b"] } } }), /^docker cannot keep/],
    ]) {
      assert.throws(make, unsupported(message));
    }
  });

  test("a toolkit's sandbox has one, too; a shape of the option is the class's to judge", () => {
    assert.throws(() => new DockerSandboxToolkit({ manifest: { network: { allowedHosts: ["a.b"] } } }), unsupported(/^docker/));
    assert.throws(() => new DockerSandbox({ manifest: { mounts: [{ source: "/", target: "/x" }] } }), { code: "ERR_SANDBOX_INVALID_ARG" });
  });

  test("verifyNetwork goes with a manifest", () => {
    assert.throws(() => new DockerSandbox({ verifyNetwork: true }), invalid(/`verifyNetwork` goes with a manifest/));
  });
});

describe("SandboxAgent", () => {
  test("unix-local: variables, below those of the workspace and of the call; the rest is refused", async (t) => {
    const agent = new SandboxAgent({
      backend: "unix-local",
      manifest: { env: { A: "manifest", B: "manifest", C: "manifest" }, resources: { timeoutSeconds: 1 }, network: { default: "allow" } },
      workspace: { env: { B: "workspace", C: "workspace" } },
    });
    t.after(() => agent.close());
    await agent.start();
    assert.equal((await agent.shell('echo "$A $B $C"', { env: { C: "call" } })).output, "manifest workspace call\n");
    assert.equal((await agent.shell("sleep 60")).timedOut, true);
    assert.throws(() => new SandboxAgent({ backend: "unix-local", manifest: { network: {} } }), unsupported(/^unix-local cannot keep `manifest\.network\.default` \("deny"\)/));
  });

  test("docker: the container's, in one place only; remote: the sandbox's own", () => {
    new SandboxAgent({ backend: "docker", manifest: { image: "alpine", network: {} } });
    assert.throws(() => new SandboxAgent({ backend: "docker", manifest: { network: { allowedHosts: ["a.b"] } } }), unsupported(/^docker cannot keep/));
    assert.throws(() => new SandboxAgent({ backend: "docker", manifest: {}, docker: { manifest: {} } }), invalid(/`docker\.manifest` and `manifest`/));
    const remote = e2b(undefined);
    assert.throws(() => new SandboxAgent({ backend: "remote", remote, manifest: {} }), invalid(/new E2BSandbox\(\{ manifest \}\)/));
  });

  test("what is put into a workspace is no part of it", () => {
    assert.throws(() => new SandboxAgent({ backend: "unix-local", manifest: { files: [] } }), invalid(/SandboxAgent's `workspace`/));
  });
});
