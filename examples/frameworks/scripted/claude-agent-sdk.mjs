// In the place of Claude Code, something that speaks its control protocol.
import { EventEmitter } from "node:events";
import { createInterface } from "node:readline";
import { PassThrough } from "node:stream";

import { CALL, answerTo } from "./script.mjs";

function spawnClaudeCodeProcess() {
  const child = Object.assign(new EventEmitter(), { stdin: new PassThrough(), stdout: new PassThrough(), killed: false, exitCode: null });
  const say = (message) => child.stdout.write(`${JSON.stringify(message)}\n`);
  const end = () => {
    child.exitCode ??= 0;
    child.stdout.end();
    child.emit("exit", 0, null);
  };
  child.kill = () => {
    child.killed = true;
    end();
    return true;
  };
  createInterface({ input: child.stdin }).on("line", (line) => {
    const { type, request_id, response } = JSON.parse(line);
    if (type === "control_request") say({ type: "control_response", response: { subtype: "success", request_id, response: {} } });
    if (type === "user") {
      const message = { jsonrpc: "2.0", id: CALL.id, method: "tools/call", params: { name: CALL.name, arguments: CALL.args } };
      say({ type: "control_request", request_id: "r1", request: { subtype: "mcp_message", server_name: "sandbox", message } });
    }
    if (type === "control_response" && response.request_id === "r1") {
      const result = answerTo(response.response.mcp_response.result.content[0].text);
      say({ type: "result", subtype: "success", is_error: false, result, session_id: "s", uuid: "u", num_turns: 1, duration_ms: 1, duration_api_ms: 1, total_cost_usd: 0, usage: {}, modelUsage: {}, permission_denials: [] });
      end();
    }
  });
  return child;
}

export const scripted = { pathToClaudeCodeExecutable: process.execPath, spawnClaudeCodeProcess };
