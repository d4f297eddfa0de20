// Run by e2b-hosts.test.js in a process of its own, which trusts the emulator's certificate: the SDK finds
// everything by a domain, over TLS, as it does in production. Every name resolves to loopback here.
import dns from "node:dns";

dns.lookup = (_name, options, callback) => {
  const done = typeof options === "function" ? options : callback;
  if (options?.all) process.nextTick(done, null, [{ address: "127.0.0.1", family: 4 }]);
  else process.nextTick(done, null, "127.0.0.1", 4);
};

const { Sandbox } = await import("@e2b/code-interpreter");
const sandbox = await Sandbox.create({ network: { allowPublicTraffic: false } });
const { sandboxId, trafficAccessToken } = sandbox;
const result = await sandbox.commands.run("echo by domain");
await sandbox.files.write("a.txt", "a");
const read = await sandbox.files.read("a.txt");
const host = sandbox.getHost(3999);
const { text } = await sandbox.runCode("'run ' + 'by domain'");
const missing = await fetch(`https://${sandbox.getHost(49999)}/health`);
const killed = await sandbox.kill();
const seen = { sandboxId, stdout: result.stdout, read, host, text, killed };
console.log(JSON.stringify({ ...seen, hasToken: Boolean(trafficAccessToken), withoutToken: missing.status }));
