// Adapters to agent frameworks: the shapes they give, without the frameworks. With them:
// test/interop/frameworks.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { describe, test } from "node:test";

import { SandboxToolkit, defineTool } from "cloudsandbox";
import * as aiSdk from "cloudsandbox/ai-sdk";
import * as anthropic from "cloudsandbox/anthropic";
import * as claudeAgentSdk from "cloudsandbox/claude-agent-sdk";
import * as genkit from "cloudsandbox/genkit";
import * as googleAdk from "cloudsandbox/google-adk";
import * as googleGenAI from "cloudsandbox/google-genai";
import * as langChain from "cloudsandbox/langchain";
import * as llamaIndex from "cloudsandbox/llamaindex";
import * as mcp from "cloudsandbox/mcp";
import * as openAI from "cloudsandbox/openai";
import * as openAIAgents from "cloudsandbox/openai-agents";

import { fakeSandbox } from "../support/fake.js";
import { runNode } from "../support/node.js";
import { rejection } from "../support/wait.js";

const { aiSdkTools } = aiSdk;
const { anthropicBashTool, anthropicMemory, anthropicTools } = anthropic;
const { claudeAgentTools } = claudeAgentSdk;
const { genkitTools } = genkit;
const { googleAdkTools } = googleAdk;
const { googleGenAITools } = googleGenAI;
const { llamaIndexTools } = llamaIndex;
const { openAITools } = openAI;
const { langChainTools } = langChain;
const { mcpTools } = mcp;
const { openAIAgentsTools } = openAIAgents;

const MODULES = {
  "ai-sdk": aiSdk, anthropic, "claude-agent-sdk": claudeAgentSdk, genkit, "google-adk": googleAdk, "google-genai": googleGenAI, langchain: langChain,
  llamaindex: llamaIndex, mcp, openai: openAI, "openai-agents": openAIAgents,
};
const ADAPTERS = {
  aiSdkTools, anthropicTools, claudeAgentTools, genkitTools, googleAdkTools, googleGenAITools, langChainTools, llamaIndexTools, mcpTools, openAITools, openAIAgentsTools,
};
/** What a module has besides its adapter. */
const OTHERS = {
  "ai-sdk": { aiSdkSandbox: aiSdk.aiSdkSandbox }, anthropic: { anthropicBashTool, anthropicMemory },
  "openai-agents": { openAIAgentsSandboxClient: openAIAgents.openAIAgentsSandboxClient },
};

function open(answers) {
  const fake = fakeSandbox(answers);
  return { ...fake, tools: new SandboxToolkit(fake.sandbox).getTools() };
}

/** A tool of one's own; `more` goes into its definition. */
function own(more) {
  return defineTool({ name: "own", description: "Own.", parameters: { type: "object" }, execute: async () => "text", ...more });
}

/** What is used of ADK's class. */
class FunctionTool {
  constructor(options) {
    this.options = options;
  }
}

const identity = ({ name, description, rawJsonSchema }) => [name, description, rawJsonSchema];

describe("entry points", () => {
  test("one adapter each, by import and by require()", () => {
    const require = createRequire(import.meta.url);
    for (const [name, module] of Object.entries(MODULES)) {
      const others = Object.keys(OTHERS[name] ?? {});
      const [only, ...more] = Object.keys(module).filter((key) => !others.includes(key));
      assert.ok(ADAPTERS[only]);
      assert.deepEqual(more, []);
      for (const key of [only, ...others]) assert.equal(require(`cloudsandbox/${name}`)[key], module[key]);
    }
  });

  test("they load no binary", async () => {
    const imports = Object.keys(MODULES).map((name) => `await import("cloudsandbox/${name}");`);
    const { stdout } = await runNode(`process.dlopen = () => console.log("loaded"); ${imports.join("")} console.log("end");`);
    assert.equal(stdout, "end\n");
  });
});

for (const [name, adapt] of Object.entries(ADAPTERS)) {
  describe(name, () => {
    test("refuses what is not a list of tools that check themselves", () => {
      for (const value of [undefined, {}, new SandboxToolkit(fakeSandbox().sandbox)]) {
        assert.throws(() => adapt(value), { code: "ERR_SANDBOX_INVALID_ARG", message: new RegExp(`^${name}: pass an array of tools`) });
      }
      const zodLike = { _output: {}, safeParse: () => ({ success: true }) };
      for (const value of [null, {}, { name: "own", parameters: { type: "object" } }, own({ parameters: zodLike })]) {
        assert.throws(() => adapt([value]), { code: "ERR_SANDBOX_INVALID_ARG", message: /defineTool\(\) with a JSON Schema/ });
      }
    });

    test("refuses two tools of one name", () => {
      const message = /two of the tools are named "own"; give one of their toolkits another name, such as new SandboxToolkit/;
      assert.throws(() => adapt([own(), own()]), { code: "ERR_SANDBOX_INVALID_ARG", message });
    });

    test("never drops an approval", () => {
      for (const requiresApproval of [true, () => false]) {
        const tools = [own({ requiresApproval })];
        if (["aiSdkTools", "openAIAgentsTools"].includes(name)) assert.equal(Object.keys(adapt(tools)).length, 1);
        else if (name === "googleAdkTools") assert.equal(Boolean(adapt(tools, FunctionTool)[0].options.requireConfirmation), true);
        else assert.throws(() => adapt(tools), { code: "ERR_SANDBOX_INVALID_ARG", message: /"own" has `requiresApproval`/ });
      }
    });
  });
}

describe("openAIAgentsTools", () => {
  test("the shape", async () => {
    const { tools } = open();
    for (const [index, it] of openAIAgentsTools(tools).entries()) {
      const { type, name, description, parameters, strict } = it;
      assert.deepEqual([name, description, parameters], identity(tools[index]));
      assert.deepEqual([type, strict, await it.isEnabled({}), await it.needsApproval({}, {})], ["function", false, true, false]);
    }
  });

  test("a call takes JSON text and the signal, and gives text", async () => {
    const { tools, calls } = open();
    const [, shell] = openAIAgentsTools(tools);
    const { signal } = new AbortController();
    assert.equal(await shell.invoke({}, '{"command":"ls","timeoutSeconds":null}', { signal }), '{"output":"shelled","exitCode":0}');
    assert.deepEqual(calls, [["shell", "ls", { signal }]]);
  });

  test("every failure is text, but that of a cancelled run", async () => {
    const [, shell] = openAIAgentsTools(open({ shell: new Error("no power") }).tools);
    for (const text of ["", "{", '{"command":']) assert.match(await shell.invoke({}, text), /^Error: sandbox_fake_shell was not run.*: the arguments must be a JSON object/);
    assert.match(await shell.invoke({}, "null"), /^Error: sandbox_fake_shell was not run.*: the arguments must be an object, not null/);
    assert.match(await shell.invoke({}, '{"command":"ls"}'), /^Error: sandbox_fake_shell failed: no power\. The command may have run/);
    const [thrower] = openAIAgentsTools([own({ execute: () => Promise.reject("words") })]);
    assert.equal(await thrower.invoke({}, "{}"), "Error: words");
    const signal = AbortSignal.abort();
    assert.equal(await rejection(shell.invoke({}, '{"command":"ls"}', { signal })), signal.reason);
  });

  test("requiresApproval decides needsApproval", async () => {
    const rules = [true, false, undefined, ({ path }) => path === "secret"];
    const answers = [];
    for (const requiresApproval of rules) {
      const [it] = openAIAgentsTools([own({ requiresApproval })]);
      answers.push([await it.needsApproval({}, { path: "secret" }), await it.needsApproval({}, { path: "x" })]);
    }
    assert.deepEqual(answers, [[true, true], [false, false], [false, false], [true, false]]);
  });
});

describe("langChainTools", () => {
  /** What LangChain's tool() gives, in short: it checks nothing here, and hands on what it got. */
  const make = (run, fields) => ({
    ...fields,
    async invoke(input, config) {
      assert.equal(this.name, fields.name);
      if (input.type !== "tool_call") return run(input, config);
      return { content: await run(input.args, config), tool_call_id: input.id };
    },
  });

  test("the shape", () => {
    const { tools } = open();
    const made = langChainTools(tools, make);
    assert.deepEqual(made.map(({ name, description, schema }) => [name, description, schema]), tools.map(identity));
  });

  test("a call with arguments, and with a tool call", async () => {
    const { tools, calls } = open();
    const [, shell] = langChainTools(tools, make);
    const { signal } = new AbortController();
    const args = { command: "ls", timeoutSeconds: "5", why: "extra" };
    assert.equal(await shell.invoke(args, { signal }), '{"output":"shelled","exitCode":0}');
    const call = { type: "tool_call", id: "1", name: shell.name, args };
    assert.deepEqual(await shell.invoke(call), { content: '{"output":"shelled","exitCode":0}', tool_call_id: "1" });
    assert.deepEqual(calls, [["shell", "ls", { timeoutSeconds: 5, signal }], ["shell", "ls", { timeoutSeconds: 5 }]]);
    assert.equal(call.args, args, "the framework's object is left alone");
  });

  test("wrong arguments and failures reject", async () => {
    const [, shell] = langChainTools(open({ shell: new Error("no power") }).tools, make);
    for (const input of [{}, { type: "tool_call", id: "1", name: shell.name, args: {} }]) {
      assert.match((await rejection(shell.invoke(input))).message, /^sandbox_fake_shell was not run.*: `command` is missing/);
    }
    assert.match((await rejection(shell.invoke({ command: "ls" }))).message, /no power/);
  });
});

describe("anthropicTools", () => {
  test("the shape", () => {
    const { tools } = open();
    for (const [index, it] of anthropicTools(tools).entries()) {
      assert.deepEqual([it.name, it.description, it.input_schema], identity(tools[index]));
      assert.equal(it.type, "custom");
      assert.equal(it.parse(tools), tools, "run() checks");
    }
  });

  test("a call", async () => {
    const { tools, calls } = open({ shell: [{ output: "", exitCode: 0 }] });
    const [run, shell] = anthropicTools(tools);
    const { signal } = new AbortController();
    assert.equal(await run.run({ code: "1", language: null }, { signal }), '{"output":"ran","exitCode":0}');
    assert.deepEqual(calls, [["run", "1", { signal }]]);
    assert.match((await rejection(run.run({}))).message, /^sandbox_fake_run was not run.*: `code` is missing/);
    assert.match((await rejection(shell.run({ command: "ls" }, { signal: null }))).message, /the sandbox's answer has no `output` text/);
  });

  test("of a result with artifacts, the text", async () => {
    const execute = async () => ({ content: "seen", artifacts: [{ type: "json", data: {} }] });
    const [it] = anthropicTools([own({ execute })]);
    assert.equal(await it.run({}), "seen");
  });
});

describe("mcpTools", () => {
  test("the list, with hints made of the effects", async () => {
    const { tools } = open();
    const listed = (await mcpTools([...tools, own()]).listTools()).tools;
    assert.deepEqual(listed.map(({ name, description, inputSchema }) => [name, description, inputSchema]), [...tools, own()].map(identity));
    const execute = { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true };
    const write = { ...execute, idempotentHint: true, openWorldHint: false };
    const read = { ...write, readOnlyHint: true, destructiveHint: false };
    assert.deepEqual(listed.map(({ annotations }) => annotations), [execute, execute, write, read, undefined]);
  });

  test("a call", async () => {
    const { tools, calls } = open({ readFile: "content" });
    const { callTool } = mcpTools(tools);
    const { signal } = new AbortController();
    const params = { name: "sandbox_fake_read_file", arguments: { path: "f" } };
    assert.deepEqual(await callTool({ params }, { signal }), { content: [{ type: "text", text: "content" }] });
    assert.deepEqual(calls, [["readFile", "f", "utf8", { signal }]]);
  });

  test("a failure is a marked result; an unknown name is JSON-RPC's error; a cancelled call rejects", async () => {
    const { callTool } = mcpTools(open().tools);
    const shell = (args) => ({ params: { name: "sandbox_fake_shell", arguments: args } });
    for (const args of [{}, undefined]) {
      const { content, isError } = await callTool(shell(args));
      assert.equal(isError, true);
      assert.match(content[0].text, /^sandbox_fake_shell was not run.*: `command` is missing/);
    }
    await assert.rejects(callTool({ params: { name: "toString" } }), { code: -32602, message: "Unknown tool: toString" });
    const signal = AbortSignal.abort("no longer wanted");
    assert.equal(await rejection(callTool(shell({ command: "ls" }), { signal })), "no longer wanted");
  });
});

describe("tools for models' own clients", () => {
  test("openAITools: flat for Responses, nested for Chat; failures are outputs", async () => {
    const { tools, calls } = open();
    const { responses, chat, has, call } = openAITools(tools);
    assert.deepEqual(responses.map(({ name, description, parameters }) => [name, description, parameters]), tools.map(identity));
    assert.deepEqual(chat.map(({ function: { name, description, parameters } }) => [name, description, parameters]), tools.map(identity));
    const [{ name }] = tools;
    assert.deepEqual([has(name), has("other")], [true, false]);
    const { signal } = new AbortController();
    assert.deepEqual(await call({ call_id: "c", name, arguments: '{"code":"1"}' }, { signal }), { type: "function_call_output", call_id: "c", output: '{"output":"ran","exitCode":0}' });
    assert.equal(await chat[0].function.function('{"code":"2"}', { controller: { signal } }), '{"output":"ran","exitCode":0}');
    assert.deepEqual(calls, [["run", "1", { signal }], ["run", "2", { signal }]]);
    assert.match((await call({ call_id: "c", name, arguments: "{" })).output, /^Error: .*must be a JSON object/);
    assert.match((await call({ call_id: "c", name: "other", arguments: "{}" })).output, /^Error: there is no tool other; there are /);
    const reason = new Error("stopped");
    assert.equal(await rejection(call({ call_id: "c", name, arguments: '{"code":"1"}' }, { signal: AbortSignal.abort(reason) })), reason);
  });

  test("googleGenAITools: only its own calls are answered; failures are answers", async () => {
    const { tools } = open();
    const made = googleGenAITools(tools);
    const { functionDeclarations } = await made.tool();
    assert.deepEqual(functionDeclarations.map(({ name, description, parametersJsonSchema }) => [name, description, parametersJsonSchema]), tools.map(identity));
    const [{ name }] = tools;
    const answers = await made.callTool([{ name: "other" }, { id: "1", name, args: { code: "1" } }, { name }]);
    assert.deepEqual(answers[0], { functionResponse: { id: "1", name, response: { output: '{"output":"ran","exitCode":0}' } } });
    assert.match(answers[1].functionResponse.response.error, /`code` is missing/);
    assert.equal(answers.length, 2);
    const reason = new Error("stopped");
    const stopped = googleGenAITools(tools, { signal: AbortSignal.abort(reason) });
    assert.equal(await rejection(stopped.callTool([{ name, args: { code: "1" } }])), reason);
  });

  test("llamaIndexTools: results as objects, of a tool of one's own the text; failures as text", async () => {
    const [run] = llamaIndexTools(open().tools);
    assert.deepEqual(await run.call({ code: "1" }), { output: "ran", exitCode: 0 });
    assert.match(await run.call({}), /^Error: .*`code` is missing/);
    assert.equal(await llamaIndexTools([own({ effect: "execute" })])[0].call({}), "text");
    assert.equal("parse" in run.metadata.parameters || "safeParse" in run.metadata.parameters, false, "it would be taken for Zod");
  });

  test("anthropicBashTool and anthropicMemory: a sandbox whose output has no mark; what is refused before it is asked", async () => {
    const { sandbox, calls } = fakeSandbox({ shell: { output: "plain", exitCode: 2, outputTruncated: true } });
    const bash = anthropicBashTool(sandbox);
    assert.equal(await bash.run({ command: "ls" }), "plain\n[there was more output]\n[exit code 2]");
    assert.match(calls[0][1], /EXIT\nls$/);
    assert.equal(calls[0][2].timeoutSeconds, 120);
    await assert.rejects(bash.run({ command: "ls" }, { signal: AbortSignal.abort(new Error("stopped")) }), /stopped/);
    const memory = anthropicMemory(sandbox);
    for (const path of ["/etc", "/memories/../x", "memories/x", "/memories\0", undefined, "/memoriesx"]) await assert.rejects(memory.view({ path }), /outside \/memories/);
    assert.equal(calls.length, 1);
    for (const make of [anthropicBashTool, anthropicMemory]) {
      assert.throws(() => make({}), { code: "ERR_SANDBOX_INVALID_ARG" });
      assert.throws(() => make(sandbox, { timeout: 1 }), { message: /there is no option `timeout`/ });
    }
  });
});

describe("genkitTools and googleAdkTools", () => {
  const dynamicTool = (config, run) => Object.assign(run, { config, __action: { ...config } });

  test("Genkit checks nothing, its model sees the schema; failures are texts, that of a cancelled call is thrown", async () => {
    const { tools, calls } = open();
    const made = genkitTools(tools, { dynamicTool });
    assert.deepEqual(made.map(({ __action: { name, description, inputJsonSchema } }) => [name, description, inputJsonSchema]), tools.map(identity));
    for (const { config } of made) assert.deepEqual(config.inputJsonSchema, { type: "object" });
    assert.equal(await made[0]({ code: "1", language: null }), '{"output":"ran","exitCode":0}');
    assert.match(await made[0]({}), /^Error: sandbox_fake_run was not run.*`code` is missing/);
    const reason = new Error("stopped");
    const [stopped] = genkitTools(tools, { dynamicTool }, { signal: AbortSignal.abort(reason) });
    assert.equal(await rejection(stopped({ code: "1" })), reason);
    assert.equal(calls.length, 1);
  });

  test("ADK has the schema, its signal, and failures as its errors", async () => {
    const { tools, calls } = open();
    const [run] = googleAdkTools(tools, FunctionTool);
    const { name, description, parametersJsonSchema } = run._getDeclaration();
    assert.deepEqual([name, description, parametersJsonSchema], identity(tools[0]));
    const { signal } = new AbortController();
    assert.equal(await run.options.execute({ code: "1" }, { abortSignal: signal }), '{"output":"ran","exitCode":0}');
    assert.deepEqual(calls, [["run", "1", { signal }]]);
    assert.match((await run.options.execute({})).error, /^sandbox_fake_run was not run.*`code` is missing/);
    const reason = new Error("stopped");
    assert.equal(await rejection(run.options.execute({ code: "1" }, { abortSignal: AbortSignal.abort(reason) })), reason);
    const rule = ({ n }) => n > 1;
    const [asking] = googleAdkTools([own({ requiresApproval: rule })], FunctionTool);
    assert.deepEqual([{ n: 1 }, { n: 2 }].map(asking.options.requireConfirmation), [false, true]);
    assert.equal(run.options.requireConfirmation, false);
  });
});

describe("claudeAgentTools", () => {
  /** One connection to the server, as the SDK makes it. */
  async function connect(tools) {
    const { mcpServers } = claudeAgentTools(tools, { name: "box" });
    const sent = [];
    const transport = { start: async () => {}, send: async (message) => void sent.push(message) };
    await mcpServers.box.instance.connect(transport);
    return { sent, transport, ask: (message) => transport.onmessage({ jsonrpc: "2.0", ...message }) };
  }
  /** A tool that runs until it is cancelled. */
  function endless() {
    let begun;
    const started = new Promise((resolve) => (begun = resolve));
    let ended;
    const reason = new Promise((resolve) => (ended = resolve));
    const execute = (_args, { signal }) => new Promise((_, reject) => {
      signal.addEventListener("abort", () => (reject(signal.reason), ended(signal.reason)));
      begun();
    });
    return { tool: own({ execute }), started, reason };
  }
  const call = { id: 7, method: "tools/call", params: { name: "own", arguments: {} } };

  test("the options of query(): the server, the names, and none of Claude Code's own tools", () => {
    const { mcpServers, allowedTools, tools } = claudeAgentTools([own()], { name: "box" });
    assert.deepEqual([mcpServers.box.type, mcpServers.box.name, allowedTools, tools], ["sdk", "box", ["mcp__box__own"], []]);
    for (const name of ["", "a b", "x".repeat(33)]) assert.throws(() => claudeAgentTools([own()], { name }), { code: "ERR_SANDBOX_INVALID_ARG", message: /`name` must have/ });
  });

  test("a cancelled call ends what runs and gets no answer; the next one gets one", async () => {
    const { tool, started, reason } = endless();
    const { sent, ask } = await connect([tool]);
    ask(call);
    await started;
    ask({ method: "notifications/cancelled", params: { requestId: 7 } });
    assert.match((await reason).message, /cancelled/);
    ask({ id: 8, method: "ping" });
    await new Promise(setImmediate);
    assert.deepEqual(sent, [{ jsonrpc: "2.0", id: 8, result: {} }]);
  });

  test("the end of the connection ends what runs", async () => {
    const { tool, started, reason } = endless();
    const { transport, ask } = await connect([tool]);
    ask(call);
    await started;
    transport.onclose();
    assert.match((await reason).message, /query has ended/);
  });
});

describe("mcpTools: output as progress", () => {
  test("only to a client that has asked for it; what it counts grows", async () => {
    const { tools } = open();
    const { callTool } = mcpTools(tools);
    const request = { params: { name: tools[1].name, arguments: { command: "ls" } } };
    for (const progressToken of [undefined, 0, "t"]) {
      const sent = [];
      await callTool(request, { _meta: { progressToken }, sendNotification: async (notification) => sent.push(notification) });
      const params = { progressToken, progress: 7, message: "shelled" };
      assert.deepEqual(sent, progressToken === undefined ? [] : [{ method: "notifications/progress", params }]);
    }
    const { content } = await callTool(request, { _meta: { progressToken: 1 }, sendNotification: () => Promise.reject(new Error("gone")) });
    assert.match(content[0].text, /shelled/);
  });
});

describe("aiSdkTools: preliminary results while a command runs", () => {
  /** A fake whose shell tells its output in steps, as the sandboxes of this package do through their tools. */
  async function steps(parts) {
    let resolve;
    const controller = new AbortController();
    const tool = defineTool({
      name: "own",
      description: "Own.",
      parameters: { type: "object" },
      effect: "execute",
      async execute(_args, { onOutput, abortSignal }) {
        abortSignal.addEventListener("abort", () => resolve?.("aborted"));
        for (const part of parts) {
          onOutput(part);
          await new Promise((done) => setTimeout(done, 150));
        }
        return parts.includes("wait") ? new Promise((done) => (resolve = done)) : "the end";
      },
    });
    return { controller, tool: aiSdkTools([tool]).own };
  }

  test("each shows what has come so far; the last is the result", async () => {
    const { tool } = await steps(["a", "b"]);
    const seen = [];
    for await (const result of tool.execute({}, {})) seen.push(result);
    assert.equal(seen.pop(), "the end");
    assert.deepEqual(seen.map((it) => JSON.parse(it)), [{ output: "a", running: true }, { output: "ab", running: true }]);
  });

  test("a long one shows its newest part", async () => {
    const { tool } = await steps(["x".repeat(20_000)]);
    const { value } = await tool.execute({}, {}).next();
    const { output, outputTruncated } = JSON.parse(value);
    assert.deepEqual([output.length, outputTruncated], [10_000, true]);
  });

  test("what the tool throws comes out; who stops reading ends the call", async () => {
    const tool = aiSdkTools([own({ effect: "execute", execute: () => Promise.reject(new Error("broken")) })]).own;
    await assert.rejects(tool.execute({}, {}).next(), /broken/);
    let aborted = false;
    const long = own({
      effect: "execute",
      execute: (_args, { onOutput, abortSignal }) => new Promise((_, reject) => {
        onOutput("begun");
        abortSignal.addEventListener("abort", () => ((aborted = true), reject(abortSignal.reason)));
      }),
    });
    for await (const result of aiSdkTools([long]).own.execute({}, { abortSignal: new AbortController().signal })) {
      assert.equal(JSON.parse(result).output, "begun");
      break;
    }
    assert.equal(aborted, true);
  });

  test("a tool that runs nothing gives its result alone; approvals stay", async () => {
    const rule = () => true;
    const tool = aiSdkTools([own({ effect: "read", requiresApproval: rule })]).own;
    assert.deepEqual(Object.keys(tool), ["description", "inputSchema", "needsApproval", "execute"], "AI SDK 7 takes no `id`");
    assert.deepEqual([tool.needsApproval, await tool.execute({})], [rule, "text"]);
    assert.equal(aiSdkTools([own({ effect: "execute", requiresApproval: rule })]).own.needsApproval, rule);
  });
});
