// Models of OpenAI Agents.
import { Usage } from "@openai/agents";

import { CALL, answerTo } from "./script.mjs";

/** @param {string} name @param {object} args @param {(result: string) => string} answer */
const scripted = (name, args, answer) => ({
  async getResponse({ input }) {
    const result = typeof input === "string" ? undefined : input.find(({ type }) => type === "function_call_result")?.output;
    const call = { type: "function_call", callId: CALL.id, name, arguments: JSON.stringify(args), status: "completed" };
    if (!result) return { usage: new Usage(), output: [call] };
    const content = [{ type: "output_text", text: answer(result.text ?? result) }];
    return { usage: new Usage(), output: [{ type: "message", role: "assistant", status: "completed", content }] };
  },
});

export const model = scripted(CALL.name, CALL.args, answerTo);

const sum = "awk -F, 'NR > 1 { sum += $2 } END { print sum }' sales.csv";
export const sandboxModel = scripted("exec_command", { cmd: sum }, (result) => `${result.trim().split("\n").at(-1)} were sold.`);
