// The tools that Anthropic has defined, in the tool runner of its SDK: bash, and memory.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import Anthropic from "@anthropic-ai/sdk";
import { betaMemoryTool } from "@anthropic-ai/sdk/helpers/beta/memory";
import { LocalSandbox } from "cloudsandbox";
import { anthropicBashTool, anthropicMemory } from "cloudsandbox/anthropic";

import { mark } from "../../support/processes.js";
import { withModel } from "./model-server.js";

/** Has a model make these calls, one turn each; gives what it read, and which tools it was offered. */
async function play(tools, inputs, signal) {
  const turns = [...inputs];
  const read = [];
  let offered;
  const answer = ({ tools: given, messages }) => {
    offered ??= given; // Only the first request has them.
    for (const part of messages.at(-1).content) if (part.type === "tool_result") read.push(part.is_error ? { error: part.content } : part.content);
    const turn = turns.shift();
    const calls = turn && (Array.isArray(turn) ? turn : [turn]).map((input, index) => ({ type: "tool_use", id: `t${turns.length}_${index}`, name: offered[0].name, input }));
    const content = calls ?? [{ type: "text", text: "done" }];
    return { id: "m", type: "message", role: "assistant", model: "s", content, stop_reason: calls ? "tool_use" : "end_turn", stop_sequence: null, usage: { input_tokens: 1, output_tokens: 1 } };
  };
  await withModel(answer, async (address) => {
    const client = new Anthropic({ apiKey: "none", baseURL: address, maxRetries: 0 });
    await client.beta.messages.toolRunner({ model: "s", max_tokens: 9, messages: [{ role: "user", content: "Go on." }], tools }, { signal }).runUntilDone();
  });
  return { read, offered };
}

function open(t, options) {
  const sandbox = new LocalSandbox({ isolation: "none", ...options });
  t.after(() => sandbox.close());
  return sandbox;
}

describe("Anthropic's bash", () => {
  test("directory and exported variables last, a restart forgets them, and files stay", async (t) => {
    const { read, offered } = await play([anthropicBashTool(open(t))], [
      { command: "mkdir 'a b' && cd 'a b' && export WORD=\"it's\ntwo lines\" && echo -n in" },
      { command: "pwd | sed 's,.*/,,'; echo \"$WORD\"; exit 3" },
      { command: "echo \"$WORD\" | tail -1; touch f" },
      { restart: true },
      { command: "echo \"[$WORD]\"; ls" },
      {},
    ]);
    assert.deepEqual(offered, [{ type: "bash_20250124", name: "bash" }]);
    assert.deepEqual(read, [
      "in",
      "a b\nit's\ntwo lines\n[exit code 3]",
      "two lines\n",
      "the shell was started anew: in the first directory, with the first variables; files are as they were",
      "[]\na b\n",
      { error: "Error: bash was not run: give a `command`, or `restart`" },
    ]);
  });

  test("calls of one turn run one after another; long output and a limit are told", async (t) => {
    const tool = anthropicBashTool(open(t), { timeoutSeconds: 1, maxToolOutputChars: 1000 });
    const { read } = await play([tool], [
      [{ command: "sleep 0.3; cd /; export N=1" }, { command: "pwd; echo $N" }],
      { command: "seq 1 5000" },
      { command: "cd /tmp; sleep 600" },
      { command: "pwd" },
    ]);
    assert.deepEqual(read.slice(0, 2), ["", "/\n1\n"]);
    assert.ok(read[2].length <= 1000);
    assert.match(read[2], /^1\n2\n[^]*\n\[[\d,]+ characters left out here; .*\]\n[^]*5000\n$/);
    assert.deepEqual(read.slice(3), ["[stopped after 1 s]", "/tmp\n"], "the shell was asked to end, and told where it was");
  });

  test("what a background process prints at the end is output, and never run; a long output loses no directory", async (t) => {
    const { read } = await play([anthropicBashTool(open(t))], [
      { command: "mkdir sub; cd sub; (sleep 0.1; echo 'echo X >ran') &" },
      { command: "ls; pwd | sed 's,.*/,,'; seq 1 400000" },
      { command: "ls; pwd | sed 's,.*/,,'" },
    ]);
    assert.equal(read[0].trim(), "echo X >ran");
    assert.match(read[1], /^sub\n1\n/);
    assert.equal(read[2], "sub\n");
  });

  test("an aborted run ends the command", async (t) => {
    const { env, started, gone } = mark();
    const controller = new AbortController();
    const run = play([anthropicBashTool(open(t, { env }))], [{ command: "sleep 600 & sleep 600" }], controller.signal);
    const ended = assert.rejects(run);
    await started(2);
    controller.abort();
    await Promise.all([gone(), ended]);
  });
});

test("Anthropic's memory: all six commands, and nothing outside /memories", async (t) => {
  const sandbox = open(t);
  const tool = betaMemoryTool(anthropicMemory(sandbox));
  const file = "/memories/a's/notes.txt";
  const { read } = await play([tool], [
    { command: "view", path: "/memories" },
    { command: "create", path: file, file_text: "one\ntwo\n" },
    { command: "create", path: file, file_text: "again" },
    { command: "str_replace", path: file, old_str: "two", new_str: "$&2" },
    { command: "str_replace", path: file, old_str: "absent", new_str: "x" },
    { command: "insert", path: file, insert_line: 0, insert_text: "zero\n" },
    { command: "insert", path: file, insert_line: 9, insert_text: "x" },
    { command: "view", path: file },
    { command: "view", path: file, view_range: [2, -1] },
    { command: "rename", old_path: file, new_path: "/memories/b/c.txt" },
    { command: "view", path: "/memories" },
    { command: "delete", path: "/memories/b" },
    { command: "delete", path: "/memories/b" },
    { command: "delete", path: "/memories" },
    { command: "view", path: "/memories/../../etc/passwd" },
    { command: "view", path: "/etc" },
  ]);
  const failed = read.map((it) => it.error !== undefined);
  assert.deepEqual(failed, [false, false, true, false, true, false, true, false, false, false, false, false, true, true, true, true], JSON.stringify(read, null, 1));
  assert.equal(read[0], "/memories has, in two levels:\n(nothing)");
  assert.match(read[2].error, /there is a file \/memories\/a's\/notes\.txt already/);
  assert.match(read[4].error, /is in .* 0 times/);
  assert.equal(read[7], `${file}, lines 1 to 3 of 3:\n     1\tzero\n     2\tone\n     3\t$&2`);
  assert.equal(read[8], `${file}, lines 2 to 3 of 3:\n     2\tone\n     3\t$&2`);
  assert.equal(read[10], "/memories has, in two levels:\n/memories/a's/\n/memories/b/\n/memories/b/c.txt");
  assert.match(read[12].error, /there is no \/memories\/b/);
  assert.match(read[14].error, /outside \/memories/);
  assert.deepEqual(await sandbox.listFiles(), []);
});
