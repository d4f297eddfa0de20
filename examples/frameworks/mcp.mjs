// A server of the Model Context Protocol of your own:   npm install cloudsandbox @modelcontextprotocol/sdk && node mcp.mjs
// A server that is ready: npx -y -p cloudsandbox -p @modelcontextprotocol/sdk cloudsandbox mcp
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { LocalSandboxToolkit } from "cloudsandbox";
import { mcpTools } from "cloudsandbox/mcp";

import { ask, transport } from "./scripted/mcp.mjs"; // in its place: new StdioServerTransport() of "@modelcontextprotocol/sdk/server/stdio.js"

const toolkit = new LocalSandboxToolkit({ isolation: "none" }); // no isolation; a container: new DockerSandboxToolkit()
await toolkit.getSandbox().writeFile("sales.csv", "day,sold\nmon,12\ntue,30\n");

const { listTools, callTool } = mcpTools(toolkit.getTools());
const server = new Server({ name: "analyst", version: "1.0.0" }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, listTools);
server.setRequestHandler(CallToolRequestSchema, callTool);
server.onclose = () => toolkit.close();
await server.connect(transport);

console.log(await ask());
