// Mastra:   npm install cloudsandbox @mastra/core && node mastra.mjs
import { Agent } from "@mastra/core/agent";
import { LocalSandboxToolkit, collectToolkitTools } from "cloudsandbox";

import { model } from "./scripted/ai-sdk.mjs"; // in its place: "openai/gpt-5", or any other

const toolkit = new LocalSandboxToolkit({ isolation: "none" }); // no isolation; a container: new DockerSandboxToolkit()
await toolkit.getSandbox().writeFile("sales.csv", "day,sold\nmon,12\ntue,30\n");

const agent = new Agent({ id: "analyst", name: "analyst", instructions: "Answer from the data.", model, tools: collectToolkitTools([toolkit]) });
const { text } = await agent.generate("How many were sold?");
console.log(text);
await toolkit.close();
