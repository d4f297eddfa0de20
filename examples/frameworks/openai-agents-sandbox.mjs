// A sandbox agent of OpenAI Agents:   npm install cloudsandbox @openai/agents && node openai-agents-sandbox.mjs
import { Runner, applyDiff } from "@openai/agents";
import { Manifest, SandboxAgent, shell } from "@openai/agents/sandbox";
import { LocalSandbox } from "cloudsandbox";
import { openAIAgentsSandboxClient } from "cloudsandbox/openai-agents";

import { sandboxModel as model } from "./scripted/openai-agents.mjs"; // in its place: "gpt-5", and OPENAI_API_KEY

const make = () => new LocalSandbox({ isolation: "none" }); // no isolation; a container: new DockerSandbox()
const client = openAIAgentsSandboxClient({ Manifest, applyDiff }, make);
const manifest = new Manifest({ entries: { "sales.csv": { type: "file", content: "day,sold\nmon,12\ntue,30\n" } } });

const agent = new SandboxAgent({ name: "analyst", instructions: "Answer from the data.", model, capabilities: [shell()] });
const { finalOutput } = await new Runner({ tracingDisabled: true }).run(agent, "How many were sold?", { sandbox: { client, manifest } });
console.log(finalOutput);
