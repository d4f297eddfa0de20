// The program that looks at a sandbox's network from inside, alone: by each program that an image may have, under every shell;
// and what is made of its words. The outside is on this machine.
import assert from "node:assert/strict";
import { execFile, execFileSync, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import path from "node:path";
import { after, describe, test } from "node:test";
import { promisify } from "node:util";

import { NetworkGuard, PROGRAM } from "../../lib/network-check.js";
import { tempDir } from "../support/temp.js";

const which = (name) => spawnSync("/bin/sh", ["-c", 'command -v "$1"', "sh", name], { encoding: "utf8" }).stdout.trim() || undefined;
const python3 = which("python3") && execFileSync("python3", ["-c", "import sys; print(sys.executable)"], { encoding: "utf8" }).trim();
const busybox = which("busybox");
const SHELLS = { dash: ["dash"], bash: ["bash", "--posix"], zsh: ["zsh", "--emulate", "sh"], busybox: ["busybox", "sh"] };

const ports = {};
for (const host of ["127.0.0.1", "::1"]) {
  const server = createServer((socket) => socket.on("error", () => {}).end("HTTP/1.0 403 Forbidden\r\n\r\n")).listen(0, host);
  await once(server, "listening");
  ports[host] = server.address().port;
  after(() => server.close());
}

/** Runs the program with only these programs on its PATH; its lines, by kind and host. */
async function look(t, programs, attempts, shell = [which("dash")]) {
  const bin = path.join(tempDir(t), "bin");
  mkdirSync(bin);
  for (const [name, target] of Object.entries({ sleep: which("sleep"), ...programs })) {
    if (target.startsWith("#!")) writeFileSync(path.join(bin, name), target, { mode: 0o755 });
    else symlinkSync(target, path.join(bin, name));
  }
  const args = [...shell.slice(1), "-c", PROGRAM, "sh", ...attempts.flat().map(String)];
  const { stdout } = await promisify(execFile)(shell[0], args, {
    // Without SHLVL bash takes a socket as its input for somebody who logs in.
    env: { PATH: bin, SHLVL: "1", http_proxy: "http://127.0.0.1:1" },
  });
  const lines = stdout.trimEnd().split("\n").map((line) => line.split(" "));
  return attempts.map(([kind, host, port]) => {
    const found = lines.filter((line) => line[0] === kind && line[1] === host && line[2] === String(port));
    assert.equal(found.length, 1, stdout);
    return found[0].slice(3).join(" ");
  });
}

const TCP = [["tcp4", "127.0.0.1", ports["127.0.0.1"]], ["tcp6", "::1", ports["::1"]], ["tcp4", "127.0.0.2", 1], ["tcp6", "::1", 1]];
const NAMES = [["dns", "localhost", 0], ["dns", "nobody..invalid", 0]];

describe("the program", () => {
  test("shellcheck has nothing to say of it", (t) => {
    if (!which("shellcheck")) {
      assert.ok(!process.env.CLOUDSANDBOX_ALL_SHELLS, "shellcheck is not installed");
      t.skip("shellcheck is not installed");
      return;
    }
    assert.equal(spawnSync("shellcheck", ["-s", "sh", "-e", "SC2317", "-"], { input: PROGRAM, encoding: "utf8" }).stdout, "");
  });

  for (const [name, shell] of Object.entries(SHELLS)) {
    const place = which(shell[0]);
    test(`under ${name}`, { skip: !place && `${name} is not installed` }, async (t) => {
      const programs = { bash: which("bash"), getent: which("getent") };
      assert.deepEqual(await look(t, programs, [...TCP, ...NAMES], [place, ...shell.slice(1)]), [
        "reachable bash", "reachable bash", "blocked bash", "blocked bash", "reachable getent", "blocked getent",
      ]);
    });
  }

  const tools = {
    bash: { bash: which("bash") }, python3: { python3 }, perl: { perl: which("perl") }, node: { node: process.execPath },
    curl: { curl: which("curl") }, wget: { wget: which("wget") },
  };
  for (const [name, program] of Object.entries(tools)) {
    test(`by ${name} alone`, { skip: !program[name] && `${name} is not installed` }, async (t) => {
      assert.deepEqual(await look(t, program, TCP), [`reachable ${name}`, `reachable ${name}`, `blocked ${name}`, `blocked ${name}`]);
    });
  }

  test("by BusyBox's nc alone", { skip: !busybox && "busybox is not installed" }, async (t) => {
    assert.deepEqual(await look(t, { nc: busybox }, TCP), ["reachable nc", "reachable nc", "blocked nc", "blocked nc"]);
  });

  test("the words of other programs: BusyBox's wget, netcats that know no option or no such address", async (t) => {
    const says = (words, code) => `#!/bin/sh\necho "${words}" >&2\nexit ${code}\n`;
    for (const [name, words, found] of [
      ["wget", "wget: server returned error: HTTP/1.1 403 Forbidden", "reachable wget"],
      ["wget", "wget: error getting response", "reachable wget"],
      ["wget", "wget: can't connect to remote host (127.0.0.1): Connection refused", "blocked wget"],
      ["wget", "wget: download timed out", "unknown none"],
      ["wget", "wget: unrecognized option: T", "unknown none"],
      ["nc", "nc: connect to 127.0.0.1 port 80 (tcp) timed out: Operation now in progress", "blocked nc"],
      ["nc", "(UNKNOWN) [127.0.0.1] 80 (http) : Connection refused", "blocked nc"],
      ["nc", "nc: bad address '::1'", "unknown none"],
      ["nc", "nc: getaddrinfo: Address family for hostname not supported", "unknown none"],
      ["nc", "BusyBox v1.36 multi-call binary. Usage: nc IPADDR PORT", "unknown none"],
    ]) {
      assert.deepEqual(await look(t, { [name]: says(words, 1) }, [TCP[0]]), [found], words);
    }
  });

  for (const [name, program] of Object.entries({ getent: { getent: which("getent") }, python3: { python3 }, perl: { perl: which("perl") }, node: { node: process.execPath } })) {
    test(`names by ${name} alone`, { skip: !program[name] && `${name} is not installed` }, async (t) => {
      assert.deepEqual(await look(t, program, NAMES), [`reachable ${name}`, `blocked ${name}`]);
    });
  }

  test("with nothing at all: unknown, since this machine has a network", async (t) => {
    assert.deepEqual(await look(t, {}, [TCP[0], NAMES[0]]), ["unknown none", "unknown none"]);
  });

  test("a program that cannot even start says nothing, and the next one is asked", async (t) => {
    const broken = "#!/bin/sh\nexit 1\n";
    const programs = { bash: "#!/bin/sh\necho '/dev/tcp/x: No such file or directory'; exit 1\n", python3: broken, perl: broken, curl: broken, getent: broken };
    assert.deepEqual(await look(t, { ...programs, node: process.execPath }, [...TCP.slice(1, 3), ...NAMES]), [
      "reachable node", "blocked node", "reachable node", "blocked node",
    ]);
    assert.deepEqual(await look(t, programs, [TCP[0]]), ["unknown none"]);
  });
});

/** What a guard makes of these words. */
function guardOver(words, network = { default: "deny" }) {
  const seen = { specs: [], destroyed: 0 };
  const guard = new NetworkGuard(network, "mine", {
    id: () => "one",
    start: async () => {},
    async exec(spec) {
      seen.specs.push(spec);
      const attempts = spec.argv.slice(4);
      const lines = attempts.flatMap((_, at) => (at % 3 ? [] : [words(attempts[at], attempts[at + 1], attempts[at + 2])]));
      return { output: { bytes: Buffer.from(lines.join("\n")), dropped: 0, tailAt: 0 } };
    },
    async destroy() {
      seen.destroyed += 1;
    },
  });
  return { guard, seen };
}

const blocked = (kind, host, port) => `${kind} ${host} ${port} blocked bash`;

describe("what is made of its words", () => {
  test("everything blocked, over both addresses, names and metadata: isolated, by one command", async () => {
    const { guard, seen } = guardOver(blocked);
    await Promise.all([guard.look(), guard.look()]);
    assert.ok(guard.hasPassed("one") && !guard.hasPassed("two") && !guard.hasPassed(null));
    assert.deepEqual([guard.isolation.verdict, seen.specs.length, seen.destroyed], ["isolated", 1, 0]);
    assert.deepEqual([...new Set(guard.isolation.evidence.map(({ kind }) => kind))], ["tcp4", "tcp6", "metadata", "dns"]);
    assert.ok(guard.isolation.evidence.some(({ host }) => host === "169.254.169.254"));
  });

  for (const [name, words] of Object.entries({
    "no word at all": () => "",
    "one attempt without a word": (kind, host, port) => (kind === "tcp6" ? "" : blocked(kind, host, port)),
    "one that nothing could try": (kind, host, port) => (kind === "dns" ? `dns ${host} ${port} unknown none` : blocked(kind, host, port)),
    "words that say two things": (kind, host, port) => `${blocked(kind, host, port)}\n${kind} ${host} ${port} blocked perl`,
    "a line with more in it": (kind, host, port) => `${blocked(kind, host, port)} reachable`,
    "other words": (kind, host, port) => `${kind} ${host} ${port} off bash`,
  })) {
    test(`C148 ${name}: unknown, and the sandbox is deleted`, async () => {
      const { guard, seen } = guardOver(words);
      await assert.rejects(guard.look(), {
        code: "ERR_SANDBOX_ISOLATION_UNAVAILABLE", provider: "mine", message: /nothing in it could find out whether it is: (tcp|dns).*the sandbox was deleted/,
      });
      assert.deepEqual([guard.isolation.verdict, seen.destroyed, guard.hasPassed("one")], ["unknown", 1, false]);
    });
  }

  test("what the list allows is not tried as forbidden; when nothing is left to try it is unknown", async () => {
    const { guard, seen } = guardOver(blocked, { default: "deny", allowedHosts: ["1.1.1.0/24", "files.example.org"] });
    await guard.look();
    const hosts = guard.isolation.evidence.map(({ kind, host }) => `${kind} ${host}`);
    assert.ok(!hosts.includes("tcp4 1.1.1.1") && hosts.includes("tcp4 8.8.8.8") && hosts.includes("allowed files.example.org"));
    assert.ok(!hosts.some((it) => it.startsWith("dns")));
    assert.deepEqual([guard.isolation.verdict, seen.destroyed], ["isolated", 0]);
    const open = guardOver(blocked, { default: "deny", allowedHosts: ["0.0.0.0/0"] });
    await assert.rejects(open.guard.look(), { message: /no address is left that is not allowed/ });
  });

  test("a sandbox that could not be deleted: the message says what to do", async () => {
    const { guard } = guardOver((kind, host, port) => `${kind} ${host} ${port} reachable nc`);
    const failing = new NetworkGuard({ default: "deny" }, "mine", {
      id: () => "one", start: async () => {}, exec: async () => ({}), destroy: async () => Promise.reject(new Error("HTTP 500")),
    });
    await assert.rejects(failing.look(), { message: /could not be deleted: call close\(\) to try again \(HTTP 500\)/ });
    await assert.rejects(guard.look(), { message: /tcp4 1\.1\.1\.1 port 80 \(by nc\), .*could be reached/ });
  });
});
