// Google's Agent Development Kit:   npm install cloudsandbox @google/adk && node google-adk.mjs
import { FunctionTool, InMemoryRunner, LlmAgent } from "@google/adk";
import { LocalSandboxToolkit } from "cloudsandbox";
import { googleAdkTools } from "cloudsandbox/google-adk";

import { model } from "./scripted/google-adk.mjs"; // in its place: "gemini-3-pro", and GOOGLE_API_KEY

const toolkit = new LocalSandboxToolkit({ isolation: "none" }); // no isolation; a container: new DockerSandboxToolkit()
await toolkit.getSandbox().writeFile("sales.csv", "day,sold\nmon,12\ntue,30\n");

const agent = new LlmAgent({ name: "analyst", model, tools: googleAdkTools(toolkit.getTools(), FunctionTool) });
const runner = new InMemoryRunner({ agent, appName: "example" });
const { id: sessionId } = await runner.sessionService.createSession({ appName: "example", userId: "you" });
const newMessage = { role: "user", parts: [{ text: "How many were sold?" }] };
for await (const { content } of runner.runAsync({ userId: "you", sessionId, newMessage })) {
  for (const { text } of content?.parts ?? []) if (text) console.log(text);
}
await toolkit.close();
