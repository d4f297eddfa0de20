// Google GenAI:   npm install cloudsandbox @google/genai && node google-genai.mjs
import { GoogleGenAI } from "@google/genai";
import { LocalSandboxToolkit } from "cloudsandbox";
import { googleGenAITools } from "cloudsandbox/google-genai";

import { options } from "./scripted/google-genai.mjs"; // in its place: { apiKey }

const toolkit = new LocalSandboxToolkit({ isolation: "none" }); // no isolation; a container: new DockerSandboxToolkit()
await toolkit.getSandbox().writeFile("sales.csv", "day,sold\nmon,12\ntue,30\n");

const { text } = await new GoogleGenAI(options).models.generateContent({
  model: "gemini-3-pro",
  contents: "How many were sold?",
  config: { tools: [googleGenAITools(toolkit.getTools())] },
});
console.log(text);
await toolkit.close();
