// LlamaIndex.TS:   npm install cloudsandbox llamaindex @llamaindex/workflow && node llamaindex.mjs
import { agent } from "@llamaindex/workflow";
import { LocalSandboxToolkit } from "cloudsandbox";
import { llamaIndexTools } from "cloudsandbox/llamaindex";

import { llm } from "./scripted/llamaindex.mjs"; // in its place: openai({ model: "gpt-5" }) of "@llamaindex/openai"

const toolkit = new LocalSandboxToolkit({ isolation: "none" }); // no isolation; a container: new DockerSandboxToolkit()
await toolkit.getSandbox().writeFile("sales.csv", "day,sold\nmon,12\ntue,30\n");

const { data } = await agent({ llm, tools: llamaIndexTools(toolkit.getTools()) }).run("How many were sold?");
console.log(data.result);
await toolkit.close();
