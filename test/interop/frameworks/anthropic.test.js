// Anthropic's SDK: its tool runner against a server on this machine, through cloudsandbox/anthropic.
import { once } from "node:events";
import { createServer } from "node:http";
import { json } from "node:stream/consumers";

import Anthropic from "@anthropic-ai/sdk";
import { anthropicTools } from "cloudsandbox/anthropic";

import { ANSWER, suite } from "../../support/agent-suite.js";

/** Answers POST /v1/messages as the script says. The first request has the tools, each the new messages. */
async function serve(script) {
  let offered;
  const server = createServer(async (request, response) => {
    const { tools, messages } = await json(request);
    offered ??= tools.map(({ name, description, input_schema: schema }) => ({ name, description, schema }));
    const results = messages
      .flatMap(({ content }) => (typeof content === "string" ? [] : content))
      .filter(({ type }) => type === "tool_result")
      .map(({ tool_use_id: id, content, is_error: failed }) => ({ id, text: content, failed }));
    const calls = script.next(offered, results).map(({ id, name, args }) => ({ type: "tool_use", id, name, input: args }));
    const body = {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "scripted",
      content: calls.length > 0 ? calls : [{ type: "text", text: ANSWER }],
      stop_reason: calls.length > 0 ? "tool_use" : "end_turn",
      stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 1 },
    };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(body));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

suite("Anthropic's tool runner", async (toolkit, script, signal) => {
  const server = await serve(script);
  try {
    const baseURL = `http://127.0.0.1:${server.address().port}`;
    const client = new Anthropic({ apiKey: "none", baseURL, maxRetries: 0 });
    const runner = client.beta.messages.toolRunner(
      {
        model: "scripted",
        max_tokens: 100,
        messages: [{ role: "user", content: "Go on." }],
        tools: anthropicTools(toolkit.getTools()),
      },
      { signal },
    );
    const { content } = await runner.runUntilDone();
    return content[0].text;
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
