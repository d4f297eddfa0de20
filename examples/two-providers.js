// One agent with two places to run code: E2B and Daytona. Eight tools, eight names, two sandboxes; the
// model chooses, and what it writes in one place is not in the other.
//
//   E2B_API_KEY=... DAYTONA_API_KEY=... npm run example examples/two-providers.js
//   npm run example examples/two-providers.js -- --emulator      no accounts: loopback servers of the tests
import {
  DaytonaSandboxToolkit, E2BSandboxToolkit, collectToolkitTools, describeToolLibrary,
} from "cloudsandbox";

const emulators = process.argv.includes("--emulator") ? await startEmulators() : undefined;
if (!emulators && !(process.env.E2B_API_KEY && process.env.DAYTONA_API_KEY)) {
  console.error("E2B_API_KEY or DAYTONA_API_KEY is not set. Without keys: npm run example examples/two-providers.js -- --emulator");
  process.exit(1);
}

const toolkits = [
  new E2BSandboxToolkit(emulators?.e2bOptions),
  new DaytonaSandboxToolkit(emulators?.daytonaOptions),
];
const tools = collectToolkitTools(toolkits);
for (const { name, parameters } of describeToolLibrary(tools)) console.log(`${name}(${parameters.join(", ")})`);

/** What a model might ask for. */
const calls = [
  ["sandbox_e2b_write_file", { path: "note.txt", contents: "written at E2B\n" }],
  ["sandbox_daytona_write_file", { path: "note.txt", contents: "written at Daytona\n" }],
  ["sandbox_e2b_shell", { command: "cat note.txt" }],
  ["sandbox_daytona_shell", { command: "cat note.txt" }],
  ["sandbox_e2b_run", { code: "print(sum(range(10)))" }],
  ["sandbox_daytona_run", { code: "print(sum(range(10)))" }],
];

try {
  for (const [name, args] of calls) console.log(`\n${name}\n  ${await tools[name].execute(args)}`);
} finally {
  // Each deletes its own sandbox; one that fails does not keep the other.
  await Promise.allSettled(toolkits.map((toolkit) => toolkit.close()));
  await emulators?.close();
}

/** Not in the package: from a clone of its repository. */
async function startEmulators() {
  const [{ startE2B }, { startDaytona }] = await Promise.all([
    import("../test/emulators/e2b/index.js"),
    import("../test/emulators/daytona/index.js"),
  ]);
  const [e2b, daytona] = await Promise.all([startE2B(), startDaytona()]);
  return {
    e2bOptions: { apiKey: e2b.apiKey, baseURL: e2b.apiUrl, sandboxUrl: e2b.sandboxUrl },
    daytonaOptions: { apiKey: daytona.apiKey, baseURL: daytona.apiUrl },
    close: () => Promise.all([e2b.close(), daytona.close()]),
  };
}
