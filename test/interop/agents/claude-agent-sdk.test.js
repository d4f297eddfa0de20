// The Claude Agent SDK, through cloudsandbox/claude-agent-sdk. In place of Claude Code there is a process that speaks its
// control protocol with the SDK, and makes the script's calls.
import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { createInterface } from "node:readline";
import { PassThrough } from "node:stream";
import { test } from "node:test";

import { query } from "@anthropic-ai/claude-agent-sdk";
import { LocalSandboxToolkit } from "cloudsandbox";
import { claudeAgentTools } from "cloudsandbox/claude-agent-sdk";

import { ANSWER, suite } from "../../support/agent-suite.js";

const PREFIX = "mcp__sandbox__";

/** What the SDK starts: answers what it must, then plays `play(mcp)` and says `result`. */
function claudeCode(play, signal) {
  const child = Object.assign(new EventEmitter(), { stdin: new PassThrough(), stdout: new PassThrough(), killed: false, exitCode: null });
  const end = () => {
    if (child.exitCode !== null) return;
    child.exitCode = 0;
    child.stdout.end();
    child.emit("exit", 0, null);
  };
  child.kill = () => {
    child.killed = true;
    end();
    return true;
  };
  signal?.addEventListener("abort", end);
  const say = (message) => child.stdout.write(JSON.stringify(message) + "\n");
  const waiting = new Map();
  let count = 0;
  /** One request of MCP to the server inside the SDK's process. */
  const mcp = (method, params, id = `m${(count += 1)}`) => {
    const isNote = method.startsWith("notifications/");
    const request_id = `r${id}${method}`;
    const message = { jsonrpc: "2.0", ...(!isNote && { id }), method, params };
    say({ type: "control_request", request_id, request: { subtype: "mcp_message", server_name: "sandbox", message } });
    return new Promise((resolve) => waiting.set(request_id, ({ response }) => resolve(response?.mcp_response)));
  };
  createInterface({ input: child.stdin }).on("line", async (line) => {
    const { type, request_id, response } = JSON.parse(line);
    if (type === "control_request") {
      say({ type: "control_response", response: { subtype: "success", request_id, response: {} } });
    } else if (type === "control_response") {
      waiting.get(response.request_id)?.(response);
    } else if (type === "user") {
      const result = await play(mcp);
      say({ type: "result", subtype: "success", is_error: false, result, session_id: "s", uuid: "u", num_turns: 1, duration_ms: 1, duration_api_ms: 1, total_cost_usd: 0, usage: {}, modelUsage: {}, permission_denials: [] });
      end();
    }
  });
  child.stdin.on("end", end);
  return child;
}

async function ask(toolkit, play, abortController = new AbortController()) {
  const options = {
    ...claudeAgentTools(toolkit.getTools()),
    abortController,
    settingSources: [],
    pathToClaudeCodeExecutable: process.execPath,
    spawnClaudeCodeProcess: ({ signal }) => claudeCode(play, signal),
  };
  for await (const message of query({ prompt: "Go on.", options })) if (message.type === "result") return message.result;
  return undefined;
}

const hello = (mcp) => mcp("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "claude-code", version: "2" } });

suite("Claude Agent SDK", async (toolkit, script, signal) => {
  const abortController = new AbortController();
  signal?.addEventListener("abort", () => abortController.abort());
  return ask(toolkit, async (mcp) => {
    const { result: { serverInfo, protocolVersion } } = await hello(mcp);
    assert.deepEqual([serverInfo.name, protocolVersion], ["sandbox", "2025-11-25"]);
    mcp("notifications/initialized", {});
    const { result: { tools } } = await mcp("tools/list", {});
    const offered = tools.map(({ name, description, inputSchema: schema }) => ({ name, description, schema }));
    let results = [];
    for (;;) {
      const calls = script.next(offered, results);
      if (calls.length === 0) return ANSWER;
      results = await Promise.all(calls.map(async ({ id, name, args }) => {
        const { result } = await mcp("tools/call", { name, arguments: args }, id);
        return { id, text: result.content[0].text, failed: result.isError };
      }));
    }
  }, abortController);
});

test("Claude Agent SDK: the options, and what is no request of tools", async (t) => {
  const toolkit = new LocalSandboxToolkit({ isolation: "none" });
  t.after(() => toolkit.close());
  const { allowedTools, tools } = claudeAgentTools(toolkit.getTools());
  assert.deepEqual(allowedTools, toolkit.getTools().map(({ name }) => PREFIX + name));
  assert.deepEqual(tools, [], "none of the tools that work on this machine");
  const seen = await ask(toolkit, async (mcp) => {
    await hello(mcp);
    const answers = [await mcp("ping"), await mcp("toString", {}), await mcp("tools/call", { name: "other" })];
    return JSON.stringify(answers.map(({ result, error }) => result ?? [error.code, error.message]));
  });
  assert.deepEqual(JSON.parse(seen), [{}, [-32601, "Method not found: toString"], [-32602, "Unknown tool: other"]]);
});
