// LangChain and LangGraph:   npm install cloudsandbox langchain @langchain/core && node langchain.mjs
import { tool } from "@langchain/core/tools";
import { LocalSandboxToolkit } from "cloudsandbox";
import { langChainTools } from "cloudsandbox/langchain";
import { createAgent } from "langchain";

import { model } from "./scripted/langchain.mjs"; // in its place: "openai:gpt-5", or any other

const toolkit = new LocalSandboxToolkit({ isolation: "none" }); // no isolation; a container: new DockerSandboxToolkit()
await toolkit.getSandbox().writeFile("sales.csv", "day,sold\nmon,12\ntue,30\n");

const agent = createAgent({ model, tools: langChainTools(toolkit.getTools(), tool) });
const { messages } = await agent.invoke({ messages: "How many were sold?" });
console.log(messages.at(-1).content);
await toolkit.close();
