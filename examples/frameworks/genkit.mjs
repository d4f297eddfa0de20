// Genkit:   npm install cloudsandbox genkit && node genkit.mjs
import { LocalSandboxToolkit } from "cloudsandbox";
import { genkitTools } from "cloudsandbox/genkit";
import { genkit } from "genkit";

import { defineModel } from "./scripted/genkit.mjs"; // in its place: a plugin, such as "@genkit-ai/google-genai"

const toolkit = new LocalSandboxToolkit({ isolation: "none" }); // no isolation; a container: new DockerSandboxToolkit()
await toolkit.getSandbox().writeFile("sales.csv", "day,sold\nmon,12\ntue,30\n");

const ai = genkit({ model: "scripted" });
defineModel(ai);
const { text } = await ai.generate({ prompt: "How many were sold?", tools: genkitTools(toolkit.getTools(), ai) });
console.log(text);
await toolkit.close();
