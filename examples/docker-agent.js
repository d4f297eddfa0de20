// An agent whose code runs in a container of this machine.
//
//   npm run example examples/docker-agent.js                    Docker or Podman; DOCKER_HOST for another engine
//   npm run example examples/docker-agent.js -- --emulator      no engine: a server of the tests, not isolated
//
// The model is a script, so that the example needs none; a real one gets the same tools and texts.
import { DockerSandboxToolkit, collectToolkitTools } from "cloudsandbox";

const emulator = process.argv.includes("--emulator") ? await startEmulator() : undefined;

const toolkit = new DockerSandboxToolkit({
  ...(emulator && { host: emulator.host, workingDir: `${emulator.base}/workspace` }),
  memoryMb: 256,
  pids: 128,
  startTimeoutSeconds: 600, // the image may have to be fetched
  onProgress: ({ status, id, current, total }) => {
    if (total === undefined) console.log(`engine: ${id ? `${id}: ` : ""}${status}`);
    else if (current === total) console.log(`engine: ${id}: ${status}, ${total} bytes`);
  },
});
const tools = collectToolkitTools([toolkit]);

/** What a model might ask for. */
const calls = [
  ["write_file", { path: "input.csv", contents: "name,score\nAda,91\nLin,77\nSam,85\n" }],
  ["run", { code: "import csv\nrows = list(csv.DictReader(open('input.csv')))\nprint(max(rows, key=lambda row: int(row['score'])))" }],
  ["shell", { command: "sort -t, -k2 -n input.csv | tail -1; echo 'a remark' >&2; exit 3" }],
  ["shell", { command: "echo 'this takes long'; sleep 60", timeoutSeconds: 1 }],
  ["read_file", { path: "nothing.txt" }],
];

try {
  for (const [name, args] of calls) {
    console.log(`model: ${name} ${JSON.stringify(args)}`);
    // What a tool throws is an answer to the model, too.
    const content = await tools[`sandbox_docker_${name}`].execute(args).catch((error) => `Error: ${error.message}`);
    console.log(`tool:  ${content}\n`);
    if (content.includes("could not be started")) {
      console.error("Without an engine: npm run example examples/docker-agent.js -- --emulator");
      process.exitCode = 1;
      break;
    }
  }
} finally {
  await toolkit.close(); // removes the container
  await emulator?.close();
}

/** Not in the package: from a clone of its repository. */
async function startEmulator() {
  const { startDocker } = await import("../test/emulators/docker/index.js");
  return startDocker();
}
