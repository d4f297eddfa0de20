// OpenAI's client, in its Responses API:   npm install cloudsandbox openai && node openai.mjs
import { LocalSandboxToolkit } from "cloudsandbox";
import { openAITools } from "cloudsandbox/openai";
import OpenAI from "openai";

import { options } from "./scripted/openai.mjs"; // in its place: nothing, and OPENAI_API_KEY

const toolkit = new LocalSandboxToolkit({ isolation: "none" }); // no isolation; a container: new DockerSandboxToolkit()
await toolkit.getSandbox().writeFile("sales.csv", "day,sold\nmon,12\ntue,30\n");

const client = new OpenAI(options);
const tools = openAITools(toolkit.getTools());
const input = [{ role: "user", content: "How many were sold?" }];
for (;;) {
  const response = await client.responses.create({ model: "gpt-5", input, tools: tools.responses });
  const calls = response.output.filter(({ type, name }) => type === "function_call" && tools.has(name));
  if (calls.length === 0) {
    console.log(response.output_text);
    break;
  }
  input.push(...response.output, ...(await Promise.all(calls.map((call) => tools.call(call)))));
}
await toolkit.close();
