// One workspace, two agents: a coder who may write and run, and a reviewer who can only read.
//
//     node examples/shared-workspace.js            # in a container: node examples/shared-workspace.js docker
//
// The models are scripts, so that the example needs none; real ones get the same tools and texts.
import { Workspace, workspaceIdForRun } from "cloudsandbox/workspace";

const provider = process.argv[2] ?? "local";
const workspace = new Workspace({
  workspaceId: workspaceIdForRun("run 42 of the demo"),
  backend: provider,
  backendOptions: provider === "local" ? { isolation: "none" } : {},
  ttlSeconds: 600,
});
workspace.on("expiring", ({ secondsLeft }) => console.log(`the workspace ends in ${Math.round(secondsLeft)} seconds`));
console.log(`workspace ${workspace.workspaceId} on ${provider}\n`);

/** What a model would call: the tool's name without its prefix, and its arguments. */
async function act(who, tools, calls) {
  for (const [name, args] of calls) {
    const tool = tools.find((it) => it.name.endsWith(`_${name}`));
    // What a tool throws is an answer to the model, too.
    const answer = tool ? await tool.execute(args).catch((error) => `Error: ${error.message}`) : "Error: there is no such tool";
    console.log(`${who}: ${name} ${JSON.stringify(args)}\n  ${answer.trim().replaceAll("\n", "\n  ")}`);
  }
}

try {
  const coder = workspace.attach();
  const reviewer = workspace.attach({ mode: "read-only" });
  await act("coder", coder.getTools(), [
    ["write_file", { path: "src/mean.py", contents: "def mean(values):\n    return sum(values) / len(values)\n" }],
    ["write_file", { path: "test_mean.py", contents: "from src.mean import mean\nassert mean([1, 2, 3]) == 2\nprint('passed')\n" }],
    ["shell", { command: "python3 test_mean.py" }],
  ]);
  await act("reviewer", reviewer.getTools(), [
    ["list_files", { path: "." }],
    ["read_file", { path: "src/mean.py" }],
    ["shell", { command: "rm -rf src" }],
  ]);
  // What the tools do not offer is refused below them, too.
  await reviewer.shell("rm -rf src").catch((error) => console.log(`\n${error.code}: ${error.message}`));
  await reviewer.detach();
  console.log(`the coder goes on: ${JSON.stringify(await coder.shell("ls src"))}`);
} finally {
  await workspace.close();
}
