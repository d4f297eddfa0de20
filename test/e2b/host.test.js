// Programs that end while an E2BSandbox is at work; what all remote sandboxes share is in ../conformance.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { runNode } from "../support/node.js";
import { open, withoutVariables } from "./support.js";

withoutVariables();

/** A program that has made `sandbox`. */
const program = (options, body) =>
  `import { E2BSandbox } from "cloudsandbox";
   const sandbox = new E2BSandbox(${JSON.stringify(options)});
   ${body}`;

describe("exits", { concurrency: 4 }, () => {
  for (const [name, body] of Object.entries({
    "process.exit()": "process.exit(3);",
    "an uncaught exception": "process.on('uncaughtException', () => process.exit(3)); throw new Error('x');",
  })) {
    test(`${name} with every kind of call in flight`, async (t) => {
      const { engine, options } = await open(t);
      engine.fault("envd POST /files", { instead: "hang" }, { times: Infinity });
      const { code, hung, signal, stderr } = await runNode(
        program({ ...options, template: "code-interpreter-v1" }, `
          await sandbox.start();
          sandbox.shell("sleep 300");
          sandbox.run("import time; time.sleep(300)");
          sandbox.exec({ command: "cat", stdin: "x" });
          sandbox.writeFile("f", "x");
          sandbox.readFile("f");
          setTimeout(() => { ${body} }, 300);`),
      );
      assert.deepEqual({ code, hung, signal, stderr }, { code: 3, hung: false, signal: null, stderr: "" });
    });
  }
});
