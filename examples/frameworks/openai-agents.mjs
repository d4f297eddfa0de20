// OpenAI Agents:   npm install cloudsandbox @openai/agents && node openai-agents.mjs
import { Agent, Runner } from "@openai/agents";
import { LocalSandboxToolkit } from "cloudsandbox";
import { openAIAgentsTools } from "cloudsandbox/openai-agents";

import { model } from "./scripted/openai-agents.mjs"; // in its place: "gpt-5", and OPENAI_API_KEY

const toolkit = new LocalSandboxToolkit({ isolation: "none" }); // no isolation; a container: new DockerSandboxToolkit()
await toolkit.getSandbox().writeFile("sales.csv", "day,sold\nmon,12\ntue,30\n");

const agent = new Agent({ name: "analyst", instructions: "Answer from the data.", model, tools: openAIAgentsTools(toolkit.getTools()) });
const { finalOutput } = await new Runner({ tracingDisabled: true }).run(agent, "How many were sold?");
console.log(finalOutput);
await toolkit.close();
