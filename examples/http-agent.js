// An agent's tools on a service of your own. The model here is a script.
//
//   SANDBOX_HTTP_URL=https://... SANDBOX_HTTP_TOKEN=... npm run example examples/http-agent.js
//   npm run example examples/http-agent.js -- --emulator      no service: examples/http-service.js is started here
import { HttpSandboxToolkit, collectToolkitTools } from "cloudsandbox";

const service = process.argv.includes("--emulator") ? await startOwn() : undefined;
if (!service && !process.env.SANDBOX_HTTP_URL) {
  console.error("SANDBOX_HTTP_URL is not set. Without a service: npm run example examples/http-agent.js -- --emulator");
  process.exit(1);
}

// Nothing is created before the first tool call; close() ends the session.
const toolkit = new HttpSandboxToolkit(service?.options);
const tools = collectToolkitTools([toolkit]);

/** What a model might ask for. */
const calls = [
  ["sandbox_http_write_file", { path: "numbers.txt", contents: "1\n2\n3\n" }],
  ["sandbox_http_run", { code: "print(sum(int(line) for line in open('numbers.txt')))" }],
  ["sandbox_http_shell", { command: "wc -l numbers.txt; ls missing" }],
  ["sandbox_http_shell", { command: "echo working; sleep 60", timeoutSeconds: 2 }],
  ["sandbox_http_read_file", { path: "forecast.csv" }],
];

try {
  for (const [name, args] of calls) console.log(`${name} ${JSON.stringify(args)}\n  ${await tools[name].execute(args)}\n`);
} finally {
  await toolkit.close();
  await service?.close();
}

/** It isolates nothing, so it refuses whoever asks for a network that is off. */
async function startOwn() {
  const { startService } = await import("./http-service.js");
  const token = "secret-of-this-run";
  const { url: baseURL, close } = await startService({ token });
  return { options: { baseURL, token, network: "allow" }, close };
}
