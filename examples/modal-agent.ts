// An agent whose code runs at Modal.
//
//   MODAL_TOKEN_ID=... MODAL_TOKEN_SECRET=... npm run example examples/modal-agent.ts
//   npm run example examples/modal-agent.ts -- --emulator          no account: a loopback server of the tests
//
// The model is a script, so that the example needs none; a real one gets the same tools and texts.
import { collectToolkitTools, ModalSandboxToolkit, type SandboxToolArgs } from "cloudsandbox";

type Message = { role: "user" | "tool"; content: string };
type Answer = { call?: { name: string; args: SandboxToolArgs }; text?: string };

const emulator = process.argv.includes("--emulator") ? await startEmulator() : undefined;
if (!emulator && !process.env["MODAL_TOKEN_ID"] && !process.env["MODAL_PROFILE"]) {
  console.error("MODAL_TOKEN_ID is not set. Without a key: npm run example examples/modal-agent.ts -- --emulator");
  process.exit(1);
}

const toolkit = new ModalSandboxToolkit({
  ...(emulator && { ...emulator.credentials, baseURL: emulator.apiUrl, ca: emulator.ca }),
  blockNetwork: true,
  tags: { purpose: "example" },
  lifetimeSeconds: 300, // should this program die: Modal ends it after five minutes
});
const tools = collectToolkitTools([toolkit]);

const script: [tool: string, args: SandboxToolArgs][] = [
  ["write_file", { path: "input.csv", contents: "name,score\nAda,91\nLin,77\nSam,85\n" }],
  ["run", { code: "import csv\nrows = list(csv.DictReader(open('input.csv')))\nprint(max(rows, key=lambda row: int(row['score'])))" }],
  ["shell", { command: "sort -t, -k2 -n input.csv | tail -1; echo 'a remark' >&2; exit 3" }],
  ["shell", { command: "echo 'this takes long'; sleep 60", timeoutSeconds: 1 }],
  ["run", { code: "console.log(6 * 7)", language: "node" }],
  ["read_file", { path: "nothing.txt" }],
];

/** A model: answers a conversation with the next tool call, or with its last word. */
function scriptedModel(messages: Message[]): Answer {
  const step = script[messages.filter(({ role }) => role === "tool").length];
  return step
    ? { call: { name: `sandbox_modal_${step[0]}`, args: step[1] } }
    : { text: "Ada has the best score." };
}

const messages: Message[] = [{ role: "user", content: "Who has the best score?" }];
try {
  for (;;) {
    const { call, text } = scriptedModel(messages);
    if (!call) {
      console.log(`model: ${text}`);
      break;
    }
    console.log(`model: ${call.name} ${JSON.stringify(call.args)}`);
    // What a tool throws is an answer to the model, too.
    const content = await tools[call.name]!.execute(call.args).catch((error: Error) => `Error: ${error.message}`);
    console.log(`tool:  ${content}\n`);
    messages.push({ role: "tool", content });
  }
} finally {
  await toolkit.close(); // terminates the sandbox
  await emulator?.close();
}

/** Not in the package: from a clone of its repository. */
async function startEmulator() {
  const { makeCertificate } = await import("../test/emulators/certificate.js");
  const { startModal } = await import("../test/emulators/modal/index.js");
  const tls = makeCertificate(["127.0.0.1"]);
  return Object.assign(await startModal({ tls }), { ca: tls.cert });
}
