// The main job from end to end: an agent loop whose model asks for tools, and a sandbox that runs
// what it asks for. The model here is a script, so the example needs no account and no network; a
// real one would get the same tool objects and see the same result texts.
import { LocalSandbox, SandboxToolkit } from "cloudsandbox";

// Isolated where this machine can do that; without "best-effort" it would refuse where it cannot.
const sandbox = new LocalSandbox({ isolation: "best-effort" });
await sandbox.start();
const isIsolated = sandbox.providerId === "isolated-local";
console.log(
  isIsolated
    ? "The sandbox is isolated: it sees its own files, its own processes and no network.\n"
    : "WARNING: this machine cannot isolate, so the sandbox has the rights of this process. The warning says why.\n",
);
const toolkit = new SandboxToolkit(sandbox, { name: "local" });
const tools = Object.fromEntries(toolkit.getTools().map((tool) => [tool.name, tool]));

const csv = "city,year,visitors\nOslo,2024,1200\nOslo,2025,1500\nPorto,2024,900\nPorto,2025,2100\n";
const analysis = `
import csv, json
rows = list(csv.DictReader(open("visitors.csv")))
totals = {}
for row in rows:
    totals[row["city"]] = totals.get(row["city"], 0) + int(row["visitors"])
json.dump(totals, open("totals.json", "w"), indent=2)
best = max(totals, key=totals.get)
print(f"{len(rows)} rows, {len(totals)} cities; most visitors: {best} ({totals[best]})")
`;

const script = [
  ["First I put the data where the code can find it.", "write_file", { path: "visitors.csv", contents: csv }],
  ["Now I analyse it with Python.", "run", { code: analysis }],
  ["I read back what the analysis wrote.", "read_file", { path: "totals.json" }],
  ["A command may fail; I get its exit code and its words.", "shell", { command: "grep Lisbon visitors.csv || { echo 'no such city' >&2; exit 3; }" }],
  ["A command may hang; it is ended with all its children, and I keep what it printed.", "shell", { command: "echo working...; sleep 60", timeoutSeconds: 1 }],
  ["A file may be missing; that is an answer, not an error.", "read_file", { path: "forecast.csv" }],
];

/** A model: looks at the conversation, answers with a tool call or with its last word. */
function scriptedModel(messages) {
  const turn = messages.filter((message) => message.role === "tool").length;
  if (turn === script.length) {
    return { text: "Porto had the most visitors (3000). One search found nothing, one command was stopped after a second." };
  }
  const [text, tool, args] = script[turn];
  return { text, toolCall: { name: `sandbox_local_${tool}`, args } };
}

const color = process.stdout.isTTY && !process.env.NO_COLOR;
const paint = (code, text) => (color ? `\u001b[${code}m${text}\u001b[0m` : text);
const bar = (text, code) => text.replace(/\n$/, "").split("\n").map((line) => `  ${paint(code, "│")} ${line}`).join("\n");

function show(args) {
  return Object.entries(args)
    .map(([name, value]) => {
      const text = String(value).trim();
      return text.includes("\n") ? `${paint(2, `${name}:`)}\n${text}` : `${paint(2, `${name}:`)} ${text}`;
    })
    .join("\n");
}

const messages = [{ role: "user", content: "Which city had the most visitors?" }];
console.log(`${paint(1, "user")}   ${messages[0].content}\n`);
try {
  for (;;) {
    const answer = scriptedModel(messages);
    console.log(`${paint("1;35", "model")}  ${answer.text}\n`);
    if (!answer.toolCall) break;

    const { name, args } = answer.toolCall;
    console.log(`${paint("1;36", `  ${name}`)}\n${bar(show(args), 36)}`);
    const started = performance.now();
    const result = await tools[name].execute(args);
    const took = Math.round(performance.now() - started);
    messages.push({ role: "tool", name, content: result });
    console.log(`${paint("1;32", "  result")} ${paint(2, `after ${took} ms`)}\n${bar(result, 32)}\n`);
  }
} finally {
  await toolkit.close();
}
console.log(paint(2, "The sandbox is closed; its workspace and its processes are gone."));
