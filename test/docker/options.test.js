// Options of DockerSandbox: what is refused, in which words, before anything is created.
import assert from "node:assert/strict";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import path from "node:path";
import { after, describe, test } from "node:test";

import { DockerSandbox, DockerSandboxToolkit } from "cloudsandbox";

import { tempDir } from "../support/temp.js";

/** Variables of this machine's user must not decide a test. */
const NAMES = ["DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "DOCKER_API_VERSION", "XDG_RUNTIME_DIR"];
const saved = NAMES.map((name) => [name, process.env[name]]);
for (const name of NAMES) delete process.env[name];
after(() => {
  for (const [name, value] of saved) {
    if (value !== undefined) process.env[name] = value;
  }
});

const INVALID = "ERR_SANDBOX_INVALID_ARG";

/** These options are refused, in such words. */
function refused(rows) {
  for (const [options, words] of rows) {
    assert.throws(() => new DockerSandbox(options), { code: INVALID, message: words }, JSON.stringify(options));
  }
}

/** With these variables set. */
function withEnv(variables, body) {
  Object.assign(process.env, variables);
  try {
    body();
  } finally {
    for (const name of Object.keys(variables)) delete process.env[name];
  }
}

describe("names", () => {
  test("an unknown option names the nearest", () => {
    refused([
      [{ imgae: "x" }, /^DockerSandbox: there is no option `imgae`; did you mean `image`\?/],
      [{ memory: 512 }, /did you mean `memoryMb`\?/],
      [{ cpu: 1 }, /did you mean `cpus`\?/],
      [{ readonly: true }, /did you mean `readOnlyRoot`\?/],
      [{ volumes: [] }, /did you mean `mounts`\?/],
      [{ networkMode: "none" }, /did you mean `network`\?/],
      [{ cwd: "/x" }, /did you mean `workingDir`\?/],
      [{ sandboxId: "x" }, /did you mean `containerId`\?/],
      [{ apiKey: "x" }, /there is no option `apiKey`; the options are/],
      [{ privileged: true }, /there is no option `privileged`/],
      [{ command: "ls" }, /it is given with each call: exec\(\) takes it/],
      [null, /the options must be an object, not null/],
      [[], /not an array/],
    ]);
    assert.throws(() => new DockerSandboxToolkit({ imgae: "x" }), { code: INVALID, message: /^DockerSandboxToolkit: .*`image`/ });
  });

  test("no value is shown that may be a secret", () => {
    for (const options of [{ host: "tcp://user:canary@10.0.0.1:2376" }, { env: { A: { canary: 1 } } }, { image: "canary canary" }, { labels: { "cloudsandbox.x": "canary" } }]) {
      assert.throws(() => new DockerSandbox(options), (error) => error.code === INVALID && !error.message.includes("canary"));
    }
  });
});

describe("limits and words", () => {
  test("negative and absurd limits", () => {
    refused([
      [{ memoryMb: -1 }, /`memoryMb` must be a number from 16 to 1048576, not -1/],
      [{ memoryMb: 15 }, /`memoryMb`/],
      [{ memoryMb: 1.5 }, /`memoryMb` must be a whole number/],
      [{ memoryMb: "512m" }, /`memoryMb` must be a whole number/],
      [{ memoryMb: Infinity }, /`memoryMb`/],
      [{ cpus: 0 }, /`cpus` must be a number from 0.01 to 1024, such as 0.5 for half a core, not 0/],
      [{ cpus: -0.5 }, /`cpus`/],
      [{ cpus: NaN }, /`cpus`/],
      [{ cpus: "2" }, /`cpus`.*not a string/],
      [{ pids: 0 }, /`pids` must be a number from 16 to 4194304, not 0/],
      [{ pids: -1 }, /`pids`/],
      [{ diskMb: 0 }, /`diskMb`/],
      [{ lifetimeSeconds: 0 }, /`lifetimeSeconds`/],
      [{ lifetimeSeconds: 2592001 }, /`lifetimeSeconds`/],
      [{ defaultTimeoutSeconds: 0 }, /`defaultTimeoutSeconds`/],
    ]);
  });

  test("names of users are refused, and numbers that no system has", () => {
    refused([
      [{ user: "root" }, /`user` must be numbers, "1000" or "1000:1000".*what a name means is up to the image/],
      [{ user: "1000:staff" }, /`user` must be numbers/],
      [{ user: "1000:" }, /`user` must be numbers/],
      [{ user: "" }, /`user` must be numbers/],
      [{ user: -1 }, /`user` must be numbers/],
      [{ user: 1.5 }, /`user` must be numbers/],
      [{ user: "2147483648" }, /`user` must be a number from 0 to 2147483647/],
      [{ user: {} }, /`user` must be a string/],
    ]);
  });

  test("networks that are the machine's own, or another container's", () => {
    refused([
      [{ network: "host" }, /`network`: "host" is this machine's own network/],
      [{ network: "container:db" }, /`network` must be the name of a network, and not that of another container/],
      [{ network: "ns:/proc/1/ns/net" }, /`network`/],
      [{ network: "" }, /`network`/],
      [{ network: false }, /`network` must be a string/],
    ]);
  });

  test("capabilities that lead out, and what is none", () => {
    refused([
      [{ capabilities: "ALL" }, /`capabilities` must be an array/],
      [{ capabilities: ["ALL"] }, /ALL lets code out of its container/],
      [{ capabilities: ["cap_sys_admin"] }, /SYS_ADMIN lets code out of its container/],
      [{ capabilities: ["NET_BIND_SERVICE", "SYS_PTRACE"] }, /SYS_PTRACE lets code/],
      [{ capabilities: ["a b"] }, /`capabilities` must be an array/],
      [{ capabilities: [7] }, /`capabilities\[0\]` must be a string/],
    ]);
  });

  test("the rest", () => {
    refused([
      [{ pull: "if_missing" }, /`pull`: it must be one of "missing", "always", "never"/],
      [{ pull: true }, /`pull`/],
      [{ image: "" }, /`image` must be the name of an image/],
      [{ image: "a b" }, /`image`/],
      [{ image: "../x" }, /`image`/],
      [{ runtime: "../runc" }, /`runtime` must be a runtime/],
      [{ platform: "Linux/amd64" }, /`platform` must be a platform such as/],
      [{ platform: "linux/amd64/v8/x" }, /`platform`/],
      [{ workingDir: "workspace" }, /`workingDir` must be an absolute path/],
      [{ readOnlyRoot: "yes" }, /`readOnlyRoot` must be true or false/],
      [{ noNewPrivileges: 0 }, /`noNewPrivileges`/],
      [{ onProgress: {} }, /`onProgress` must be a function/],
      [{ env: { "A B": "x" } }, /`env`: a variable name/],
      [{ env: { A: 1 } }, /`env.A` must be a string/],
      [{ labels: { a: 1 } }, /`labels.a` must be a string/],
      [{ labels: { "cloudsandbox.owner": "x" } }, /`labels`: names that begin with "cloudsandbox" are this package's own/],
      [{ containerId: "-x" }, /`containerId` must be the id or the name of a container/],
      [{ owned: true }, /`owned` goes with `containerId`/],
      [{ containerId: "x", owned: 1 }, /`owned` must be true or false/],
      [{ containerId: "x", image: "y" }, /`image` says how a container is made, and `containerId` names one that exists/],
      [{ containerId: "x", memoryMb: 64 }, /`memoryMb` says how/],
    ]);
  });
});

describe("the engine's address", () => {
  test("what cannot be one is refused with the way out", () => {
    refused([
      [{ host: "ssh://user@host" }, /`host` is an ssh address.*ssh -nNT -L/],
      [{ host: "npipe:////./pipe/docker_engine" }, /`host` must be unix:/],
      [{ host: "fd://" }, /`host` must be unix:/],
      [{ host: "/var/run/docker.sock" }, /`host` names a file: write "unix:\/\/" before/],
      [{ host: "unix://relative.sock" }, /`host` must name the socket by an absolute path/],
      [{ host: `unix:///${"x".repeat(107)}` }, /more than 107 bytes/],
      [{ host: "tcp://" }, /`host` must be a host and a port/],
      [{ host: "tcp://host:99999" }, /`host` must be a host and a port/],
      [{ host: "tcp://host:2375/v1.41" }, /`host` must be a host and a port only/],
      [{ host: 7 }, /`host` must be a string/],
      [{ apiVersion: "v1.41" }, /`apiVersion` must be a version such as 1.41/],
      [{ certPath: "certs" }, /`certPath` must be an absolute path/],
    ]);
  });

  test("the environment is read at each construction, and named when it is wrong", () => {
    withEnv({ DOCKER_HOST: "ssh://user@host" }, () => refused([[{}, /the environment variable DOCKER_HOST is an ssh address/]]));
    withEnv({ DOCKER_API_VERSION: "latest" }, () => refused([[{}, /the environment variable DOCKER_API_VERSION must be/]]));
  });
});

describe("mounts", () => {
  const mount = (source, more) => ({ mounts: [{ source, target: "/data", ...more }] });
  const never = (source, words) => refused([[mount(source), words]]);

  test("the system's own folders, what lies in them and what holds them", () => {
    for (const source of ["/etc", "/etc/passwd", "/proc", "/proc/1/root", "/sys", "/dev", "/dev/sda", "/run", "/var/run/docker.sock", "/boot"]) {
      never(source, /`mounts\[0\].source` is never given to a container: it is, or lies in, \//);
    }
    for (const source of ["/", "/var", "/var/lib"]) never(source, /never given to a container: it holds \//);
    never("/etc/", /never given/);
    never("//etc", /never given/);
  });

  test("the same by way of `..` and of links", (t) => {
    const dir = tempDir(t);
    const link = (name, to) => {
      symlinkSync(to, path.join(dir, name));
      return path.join(dir, name);
    };
    mkdirSync(path.join(dir, "a"));
    never(`${dir}/../../../../../../etc`, /never given/);
    never("/srv/../etc/ssh", /never given/);
    never(link("etc", "/etc"), /lies in, \/etc/);
    never(link("root", "/"), /it holds/);
    never(`${link("etc2", "/etc")}/ssl`, /lies in, \/etc/);
    never(link("chain", path.join(dir, "etc")), /lies in, \/etc/);
    // Where the link leads, and not where its text seems to lead.
    never(`${link("deep", "/etc/ssl")}/../passwd`, /lies in, \/etc/);
  });

  test("homes, and places of credentials wherever they are", (t) => {
    const dir = tempDir(t);
    for (const source of [process.env.HOME ?? "/root", "/root", "/home"]) never(source, /never given/);
    for (const name of [".ssh", ".aws", ".gnupg", ".kube", ".azure"]) {
      mkdirSync(path.join(dir, name));
      never(path.join(dir, name), /it is a place of credentials/);
      never(path.join(dir, name, "deeper"), /it is a place of credentials/);
    }
    never(dir, /there is \.ssh in it/);
    const home = path.join(dir, "home");
    mkdirSync(home);
    writeFileSync(path.join(home, ".netrc"), "");
    never(home, /there is \.netrc in it/);
    never("/home/alice/.docker", /credentials and settings in a home/);
    never("/home/alice/.config/gh", /credentials and settings in a home/);
  });

  test("the engine's socket, by whatever name, and the folder that it is in", async (t) => {
    const dir = tempDir(t);
    const socket = path.join(dir, "e.sock");
    const server = createServer().listen(socket);
    await new Promise((resolve) => server.once("listening", resolve));
    t.after(() => server.close());
    const host = `unix://${socket}`;
    refused([
      [{ host, ...mount(socket) }, /never given/],
      [{ host, ...mount(dir) }, /it holds/],
    ]);
    // Any other socket leads out as well.
    never(socket, /it is neither a folder nor a file, but leads elsewhere, as a socket or a device does/);
    symlinkSync(socket, path.join(dir, "plain"));
    never(path.join(dir, "plain"), /neither a folder nor a file/);
    mkdirSync(path.join(dir, "other"));
    writeFileSync(path.join(dir, "other", "docker.sock"), "");
    never(path.join(dir, "other"), /there is docker\.sock in it/);
  });

  test("shapes", (t) => {
    const dir = tempDir(t);
    refused([
      [{ mounts: "/srv:/data" }, /`mounts` must be an array such as/],
      [{ mounts: [null] }, /mounts\[0\]: the options must be an object, not null/],
      [{ mounts: [{ source: dir, target: "/data", readonly: true }] }, /mounts\[0\]: there is no option `readonly`; did you mean `readOnly`/],
      [{ mounts: [{ source: dir, target: "/data", propagation: "shared" }] }, /there is no option `propagation`/],
      [{ mounts: [{ source: dir }] }, /`mounts\[0\].target` must be a string/],
      [{ mounts: [{ source: "relative", target: "/data" }] }, /`mounts\[0\].source` must be an absolute path/],
      [{ mounts: [{ source: `${dir}/missing`, target: "/data" }] }, /`mounts\[0\].source` is not there/],
      [mount(dir, { readOnly: "no" }), /`mounts\[0\].readOnly` must be true or false/],
      [mount(dir, { target: "/" }), /a folder of its own in the container, such as "\/data", and not its root/],
      [mount(dir, { target: "/proc/1" }), /and not \/proc/],
      [mount(dir, { target: "/x/../etc" }), /and not \/etc/],
      [{ mounts: [{ source: dir, target: "/data" }, { source: dir, target: "/data/" }] }, /`mounts\[1\].target` is that of another mount, too/],
    ]);
  });
});
