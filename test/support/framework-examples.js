// The examples of frameworks, run as a user runs them: copied to where the frameworks are installed.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, readdirSync, rmSync } from "node:fs";
import path from "node:path";
import { after, describe, test } from "node:test";
import { promisify } from "node:util";

import { ROOT } from "./node.js";

const exec = promisify(execFile);

/** Which are run where their frameworks are. */
const EXAMPLES = {
  frameworks: ["ai-sdk", "anthropic", "google-genai", "langchain", "llamaindex", "mastra", "mcp", "openai", "openai-agents", "openai-agents-sandbox"],
  agents: ["claude-agent-sdk", "genkit", "google-adk"],
};

/** @param {"frameworks" | "agents"} where a folder of test/interop */
export function runExamples(where) {
  const source = path.join(ROOT, "examples/frameworks");
  const copy = path.join(ROOT, "test/interop", where, "node_modules/.examples");
  describe("examples/frameworks", { concurrency: 2 }, () => {
    cpSync(source, copy, { recursive: true });
    after(() => rmSync(copy, { recursive: true }));

    test("each is run by one of the tests", () => {
      const all = readdirSync(source).filter((name) => name.endsWith(".mjs"));
      assert.deepEqual(all.sort(), Object.values(EXAMPLES).flat().map((name) => `${name}.mjs`).sort());
    });

    for (const name of EXAMPLES[where]) {
      test(name, async () => {
        const { stdout } = await exec(process.execPath, [path.join(copy, `${name}.mjs`)]);
        assert.equal(stdout, "42 were sold.\n");
      });
    }
  });
}
