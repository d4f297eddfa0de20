// Sandbox agents of the OpenAI Agents SDK in our sandboxes, with that SDK's own runner and scripted model.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { Runner, applyDiff, tool } from "@openai/agents";
import { Manifest, SandboxAgent } from "@openai/agents/sandbox";
import { ScriptedModel, assistantMessage, functionCall, modelResponder } from "@openai/agents/testing";
import { LocalSandbox } from "cloudsandbox";
import { openAIAgentsSandboxClient } from "cloudsandbox/openai-agents";
import { z } from "zod";

import { mark } from "../../support/processes.js";
import { tempDir } from "../../support/temp.js";
import { rejection } from "../../support/wait.js";

function clientFor(t, more, options) {
  const made = [];
  t.after(() => Promise.all(made.map((sandbox) => sandbox.close())));
  const make = () => {
    const sandbox = new LocalSandbox({ trusted: true, ...more });
    made.push(sandbox);
    return sandbox;
  };
  return { client: openAIAgentsSandboxClient({ Manifest, applyDiff }, make, options), made };
}

/** Runs the calls one after the other, each [name, args or what gives them from the texts before]. Returns the tools' answers. */
async function runCalls(sandbox, calls, more) {
  const texts = [];
  const seen = ({ input }) => input.filter(({ type }) => type === "function_call_result").map(({ output }) => output.text ?? output);
  const model = new ScriptedChatCompletions([
    ...calls.map(([name, args], index) => [functionCall(name, args, { callId: `call-${index}` })]),
    [assistantMessage("done")],
  ]);
  const agent = new SandboxAgent({ name: "coder", model, ...more });
  const { finalOutput } = await new Runner({ tracingDisabled: true }).run(agent, "Go on.", { sandbox, maxTurns: 20 });
  assert.equal(finalOutput, "done");
  texts.push(...seen(model.calls.at(-1).request));
  return { texts, model };
}

/** By its name that SDK tells whom to offer apply_patch as a function. */
class ScriptedChatCompletions extends ScriptedModel {}

const outputOf = (text) => text.slice(text.indexOf("Output:\n") + 8);

test("commands and files of a run; its sandbox goes with it", async (t) => {
  const { client, made } = clientFor(t);
  const { texts, model } = await runCalls({ client }, [
    ["exec_command", { cmd: "pwd; echo $((6 * 7)) > answer; echo lost >&2; exit 3" }],
    ["exec_command", { cmd: "cat answer", workdir: "." }],
    ["apply_patch", { type: "create_file", path: "new.txt", diff: "+one\n+two" }],
    ["apply_patch", { type: "update_file", path: "new.txt", diff: "@@\n one\n-two\n+three" }],
    ["exec_command", { cmd: "cat new.txt" }],
    ["apply_patch", { type: "create_file", path: "new.txt", diff: "+other" }],
    ["apply_patch", { type: "delete_file", path: "new.txt" }],
    ["apply_patch", { type: "delete_file", path: "new.txt" }],
    ["view_image", { path: "missing.png" }],
    ["exec_command", { cmd: "stty size; read key; echo $key", tty: true, yield_time_ms: 0 }],
    ["write_stdin", { session_id: 4, chars: "typed\n", yield_time_ms: 5000 }],
    ["exec_command", { cmd: "echo $0", shell: "sh" }],
  ]);
  const root = outputOf(texts[0]).split("\n")[0];
  assert.match(texts[0], /^Wall time: [\d.]+ seconds\nProcess exited with code 3\nOutput:\n/);
  assert.match(outputOf(texts[0]), /lost/);
  assert.ok(model.calls[0].request.systemInstructions.includes(root), "the model is told where it works");
  assert.equal(outputOf(texts[1]), "42\n");
  assert.match(texts[3], /changed/);
  assert.equal(outputOf(texts[4]), "one\nthree");
  assert.match(texts[5], /exists already/);
  assert.match(texts[6], /deleted/);
  assert.match(texts[7], /not found/);
  assert.match(texts[8], /was not found/);
  assert.match(texts[9], /Process running with session ID/);
  assert.match(outputOf(texts[9]) + outputOf(texts[10]), /40 120\r\n[^]*typed\r\n/);
  assert.equal(outputOf(texts[11]), "sh\n");
  assert.equal(made.length, 1);
  assert.match((await rejection(made[0].shell("true"))).code, /CLOSED/);
});

test("a command that takes longer goes on: it is looked at again, fed and interrupted, and ends with the run", async (t) => {
  const { client } = clientFor(t);
  const tracked = mark();
  const { texts } = await runCalls({ client, manifest: new Manifest({ environment: tracked.env }) }, [
    ["exec_command", { cmd: "echo begun; read line; echo got $line; read again", yield_time_ms: 0 }],
    ["write_stdin", { session_id: 1, chars: "hello\n", yield_time_ms: 500 }],
    ["write_stdin", { session_id: 1, chars: "\u0003", yield_time_ms: 5000 }],
    ["write_stdin", { session_id: 1 }],
    ["exec_command", { cmd: "sleep 600 & sleep 600", yield_time_ms: 0 }],
  ]);
  assert.match(texts[0], /Process running with session ID 1/);
  assert.match(texts[0] + texts[1], /begun\n[^]*got hello\n/);
  assert.match(texts[2], /Process exited with code 130/);
  assert.match(texts[3], /^Error: no command has the session ID 1/);
  assert.match(texts[4], /Process running with session ID 2/);
  await tracked.gone();
});

test("what a manifest has is there: files, folders, a file of the host, variables", async (t) => {
  const { client } = clientFor(t);
  const src = path.join(tempDir(t), "host.txt");
  writeFileSync(src, "of the host");
  const manifest = new Manifest({
    entries: {
      "notes/a.txt": { type: "file", content: "a" },
      d: { type: "dir", children: { "b.bin": { type: "file", content: new Uint8Array([0, 255]) } } },
      "host.txt": { type: "local_file", src },
    },
    environment: { GREETING: "hello" },
  });
  const { texts } = await runCalls({ client, manifest }, [
    ["exec_command", { cmd: "cat notes/a.txt host.txt; od -An -tx1 d/b.bin; echo $GREETING" }],
  ]);
  assert.equal(outputOf(texts[0]), "aof the host 00 ff\nhello\n");
});

test("a session of one's own is used by two runs, and is not closed by them", async (t) => {
  const { client, made } = clientFor(t);
  const session = await client.create();
  await runCalls({ session }, [["exec_command", { cmd: "echo kept > file" }]]);
  const { texts } = await runCalls({ session }, [["exec_command", { cmd: "cat file" }]]);
  assert.equal(outputOf(texts[0]), "kept\n");
  assert.equal((await made[0].shell("cat file")).output, "kept\n");
  assert.equal(await session.directoryExists("."), true);
  assert.deepEqual(await session.listDir({ path: "." }), [{ name: "file", path: "file", type: "file" }]);
  assert.equal(Buffer.from(await session.readFile({ path: "file" })).toString(), "kept\n");
  assert.match((await rejection(session.readFile({ path: "other" }))).message, /not found/);
  const png = Buffer.from("89504e470d0a1a0a", "hex");
  await made[0].writeFile("a.png", png);
  assert.deepEqual(await session.viewImage({ path: "a.png" }), { type: "image", image: { data: png.toString("base64"), mediaType: "image/png" } });
  assert.match((await rejection(session.viewImage({ path: "file" }))).message, /unsupported image format/);
  await session.close();
});

test("a run that is interrupted for an approval goes on in the same sandbox", async (t) => {
  const { client, made } = clientFor(t);
  const approved = tool({ name: "ask", description: "Asks.", parameters: z.object({}), needsApproval: true, execute: async () => "yes" });
  const model = new ScriptedModel([
    [functionCall("exec_command", { cmd: "echo kept > file" }, { callId: "1" })],
    [functionCall("ask", {}, { callId: "2" })],
    [functionCall("exec_command", { cmd: "cat file" }, { callId: "3" })],
    [assistantMessage("done")],
  ]);
  const agent = new SandboxAgent({ name: "coder", model, tools: [approved] });
  const runner = new Runner({ tracingDisabled: true });
  const first = await runner.run(agent, "Go on.", { sandbox: { client } });
  assert.equal(first.interruptions.length, 1);
  first.state.approve(first.interruptions[0]);
  const { finalOutput } = await runner.run(agent, first.state, { sandbox: { client } });
  assert.equal(finalOutput, "done");
  const results = model.calls.at(-1).request.input.filter(({ type }) => type === "function_call_result");
  assert.equal(outputOf(results.at(-1).output.text ?? results.at(-1).output), "kept\n");
  assert.equal(made.length, 1);
  assert.match((await rejection(made[0].shell("true"))).code, /CLOSED/);
});

test("an aborted run ends its commands and its sandbox", async (t) => {
  const { client, made } = clientFor(t);
  const tracked = mark();
  const controller = new AbortController();
  const model = new ScriptedModel([
    [functionCall("exec_command", { cmd: "sleep 600", yield_time_ms: 100 }, { callId: "1" })],
    modelResponder(() => {
      controller.abort();
      return [assistantMessage("late")];
    }),
  ]);
  const agent = new SandboxAgent({ name: "coder", model });
  const run = new Runner({ tracingDisabled: true }).run(agent, "Go on.", {
    sandbox: { client, manifest: new Manifest({ environment: tracked.env }) }, signal: controller.signal,
  });
  await run.catch(() => {});
  await tracked.gone();
  assert.match((await rejection(made[0].shell("true"))).code, /CLOSED/);
});

test("a long output is cut to head and tail", async (t) => {
  const { client } = clientFor(t, {}, { maxOutputTokens: 1000 });
  const session = await client.create();
  const text = await session.execCommand({ cmd: "seq 1 200000" });
  assert.match(text, /Original token count: 322224\nOutput:\n1\n2\n[^]*tokens truncated\.\.\.[^]*\n200000\n$/);
  assert.ok(text.length < 4200, `${text.length}`);
  const short = await session.execCommand({ cmd: "seq 1 1000", maxOutputTokens: 10 });
  assert.ok(outputOf(short).length < 80, short);
  await session.close();
});

test("a terminal is refused where the sandbox has none", async (t) => {
  const { client, made } = clientFor(t);
  const session = await client.create();
  Object.defineProperty(made[0], "capabilities", { value: { ...made[0].capabilities, tty: false } });
  assert.match(await session.execCommand({ cmd: "true", tty: true }), /^Error: this sandbox has no terminal\. Nothing was run\./);
  await session.close();
});

test("what it has no room for is refused before anything is made", async (t) => {
  const { client, made } = clientFor(t);
  for (const [manifest, words] of [
    [{ users: [{ name: "u" }] }, /manifest\.users/],
    [{ entries: { r: { type: "git_repo", repo: "a/b" } } }, /"git_repo" is not written by this client/],
    [{ entries: { d: { type: "dir", children: { l: { type: "local_dir", src: "/x" } } } } }, /entries\["d\/l"\]/],
  ]) {
    const error = await rejection(client.create({ manifest }));
    assert.equal(error.code, "ERR_SANDBOX_UNSUPPORTED", error.message);
    assert.match(error.message, words);
  }
  assert.equal(made.length, 0);
  const error = await rejection(client.create({ manifest: { root: "/elsewhere" } }));
  assert.match(error.message, /manifest\.root: the commands of this sandbox begin in/);
  assert.match((await rejection(made[0].shell("true"))).code, /CLOSED/);
  assert.throws(() => openAIAgentsSandboxClient({ Manifest }, () => {}), /applyDiff/);
  for (const maxOutputTokens of [0, 1.5, "many"]) {
    assert.throws(() => openAIAgentsSandboxClient({ Manifest, applyDiff }, () => {}, { maxOutputTokens }), { code: "ERR_SANDBOX_INVALID_ARG", message: /maxOutputTokens/ });
  }
});
