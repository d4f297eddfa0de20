// The Vercel AI SDK:   npm install cloudsandbox ai && node ai-sdk.mjs
import { generateText, stepCountIs } from "ai";
import { LocalSandboxToolkit } from "cloudsandbox";
import { aiSdkTools } from "cloudsandbox/ai-sdk";

import { model } from "./scripted/ai-sdk.mjs"; // in its place: openai("gpt-5") of "@ai-sdk/openai", or any other

const toolkit = new LocalSandboxToolkit({ isolation: "none" }); // no isolation; a container: new DockerSandboxToolkit()
await toolkit.getSandbox().writeFile("sales.csv", "day,sold\nmon,12\ntue,30\n");

const { text } = await generateText({ model, tools: aiSdkTools(toolkit.getTools()), stopWhen: stepCountIs(10), prompt: "How many were sold?" });
console.log(text);
await toolkit.close();
