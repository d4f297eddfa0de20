// The Model Context Protocol: a server and a client in one process, through cloudsandbox/mcp.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { LocalSandboxToolkit } from "cloudsandbox";
import { mcpTools } from "cloudsandbox/mcp";

import { ANSWER, suite } from "../../support/agent-suite.js";

async function connect(toolkit) {
  const { listTools, callTool } = mcpTools(toolkit.getTools());
  const server = new Server({ name: "sandbox", version: "1.0.0" }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, listTools);
  server.setRequestHandler(CallToolRequestSchema, callTool);
  const client = new Client({ name: "host", version: "1.0.0" });
  const [near, far] = InMemoryTransport.createLinkedPair();
  await Promise.all([server.connect(far), client.connect(near)]);
  return client;
}

/** A host's loop: what the client says of tools and results goes to the model. */
suite("MCP", async (toolkit, script, signal) => {
  const client = await connect(toolkit);
  try {
    const { tools } = await client.listTools();
    const offered = tools.map(({ name, description, inputSchema }) => ({ name, description, schema: inputSchema }));
    const results = [];
    for (;;) {
      const calls = script.next(offered, results);
      if (calls.length === 0) return ANSWER;
      const answers = calls.map(async ({ id, name, args }) => {
        const { content, isError } = await client.callTool({ name, arguments: args }, undefined, { signal });
        return { id, text: content[0].text, failed: isError };
      });
      results.push(...(await Promise.all(answers)));
    }
  } finally {
    await client.close();
  }
});

test("MCP: errors are marked, hints are given, an unknown name is an error of the protocol", async (t) => {
  const toolkit = new LocalSandboxToolkit({ isolation: "none" });
  const client = await connect(toolkit);
  t.after(() => Promise.all([client.close(), toolkit.close()]));
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map(({ annotations }) => annotations.readOnlyHint), [false, false, false, true]);
  const failed = await client.callTool({ name: "sandbox_local_shell", arguments: {} });
  assert.equal(failed.isError, true);
  assert.match(failed.content[0].text, /^sandbox_local_shell was not run.*: `command` is missing \(string\)/);
  await assert.rejects(client.callTool({ name: "other" }), { code: -32602, message: /Unknown tool: other/ });
});
