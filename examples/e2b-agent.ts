// An agent loop on an E2B sandbox. The model here is a script, so that the example shows the sandbox and
// needs no other account; a real agent gets the same tool objects:
//
//   const agent = new Agent({ model, tools: toolkit.getTools() });
//
// With a key:      E2B_API_KEY=e2b_... npm run example examples/e2b-agent.ts
// Without one:     npm run example examples/e2b-agent.ts -- --emulator   (commands then run on this machine)
import { collectToolkitTools, E2BSandboxToolkit, type SandboxToolArgs } from "cloudsandbox";

const csv = "city,year,visitors\nOslo,2024,1200\nOslo,2025,1500\nPorto,2024,900\nPorto,2025,2100\n";
const analysis = `
import csv
rows = list(csv.DictReader(open("visitors.csv")))
totals = {}
for row in rows:
    totals[row["city"]] = totals.get(row["city"], 0) + int(row["visitors"])
print(max(totals, key=totals.get), totals)
`;

/** What a model would decide, one step after the other. */
const script: [thought: string, tool: string, args: SandboxToolArgs][] = [
  ["I put the data into the sandbox.", "sandbox_e2b_write_file", { path: "visitors.csv", contents: csv }],
  ["I analyse it.", "sandbox_e2b_run", { code: analysis }],
  ["I look around.", "sandbox_e2b_shell", { command: "uname -sm; ls -l visitors.csv" }],
  ["A command that hangs is ended, with all its children.", "sandbox_e2b_shell", { command: "echo working; sleep 60", timeoutSeconds: 2 }],
  ["A file that is not there is an answer.", "sandbox_e2b_read_file", { path: "forecast.csv" }],
];

const emulator = process.argv.includes("--emulator") ? await startEmulator() : undefined;
if (!emulator && !process.env["E2B_API_KEY"]) {
  console.error("E2B_API_KEY is not set. Without a key: npm run example examples/e2b-agent.ts -- --emulator");
  process.exit(1);
}
// Nothing is created before the first tool call; close() deletes the sandbox.
const toolkit = new E2BSandboxToolkit({ lifetimeSeconds: 120, ...emulator?.options });
try {
  const tools = collectToolkitTools([toolkit]);
  for (const [thought, name, args] of script) {
    console.log(`model   ${thought}\n        ${name} ${JSON.stringify(args).slice(0, 100)}`);
    const started = performance.now();
    const result = await tools[name]!.execute(args);
    console.log(`result  ${result}\n        after ${Math.round(performance.now() - started)} ms\n`);
  }
  console.log(`sandbox ${toolkit.getSandbox().sandboxId}`);
} finally {
  await toolkit.close();
  await emulator?.close();
}

/** E2B's services on this machine, from this repository's tests. */
async function startEmulator() {
  const { startE2B } = await import("../test/emulators/e2b/index.js");
  const emulator = await startE2B();
  const { apiKey, apiUrl: baseURL, sandboxUrl } = emulator;
  return { options: { apiKey, baseURL, sandboxUrl }, close: () => emulator.close() };
}
