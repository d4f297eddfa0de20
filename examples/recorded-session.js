// A session that is recorded, and the page of it: what ran, for how long, how it ended, and what it printed.
//
//     node examples/recorded-session.js            # then open session.html in a browser
//
// Outputs and commands are kept here by choice; they may hold secrets. Without the two options a record has neither.
import { SandboxAgent, SandboxToolkit } from "cloudsandbox";
import { recordTo } from "cloudsandbox/records";
import { writeReport } from "cloudsandbox/report";

const recording = recordTo("session.jsonl", { commandBytes: 1000, outputBytes: 4000 });
const agent = new SandboxAgent({
  backend: "unix-local",
  budget: { commands: 7 },
  workspace: { files: [{ path: "primes.py", contents: "def primes(n):\n    return [p for p in range(2, n) if all(p % q for q in range(2, p))]\n" }] },
});

/** What a model would call. */
const [run, shell, write, read] = new SandboxToolkit(agent).getTools();
const calls = [
  [shell, { command: "ls -l; python3 --version" }],
  [run, { code: "from primes import primes\nprint(len(primes(2000)))" }],
  [write, { path: "test_primes.py", contents: "from primes import primes\nassert primes(10) == [2, 3, 5, 7], 'wrong'\nassert primes(2) == [1], 'this one fails'\n" }],
  [shell, { command: "python3 test_primes.py" }],
  [shell, { command: "sleep 30", timeoutSeconds: 0.8 }],
  [read, { path: "result.txt" }],
  [run, { code: "import time\nfor i in range(4):\n    print('step', i)\n    time.sleep(0.15)", language: "python" }],
];

try {
  await agent.start();
  for (const [tool, args] of calls) console.log(tool.name, await tool.execute(args));
} finally {
  await agent.close();
  recording.stop();
}
const { records } = await writeReport("session.jsonl", "session.html", { title: "A recorded session" });
console.log(`${records} records; open session.html`);
