// node test/emulators/agentcore/main.js [--key=value ...]: the emulator as a program, see ../program.js.
// @ts-check
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";

import { PROGRAM_OPTIONS, PROGRAM_USAGE, serveProgram } from "../program.js";
import { startAgentCore } from "./index.js";

const USAGE = `usage: node main.js [options]
  --port=N              (default: any)
  --region=REGION       (default: us-west-2)
  --tls-key=FILE --tls-cert=FILE   serve TLS
${PROGRAM_USAGE}`;

const { values } = parseArgs({
  options: {
    port: { type: "string" },
    region: { type: "string" },
    "tls-key": { type: "string" },
    "tls-cert": { type: "string" },
    ...PROGRAM_OPTIONS,
  },
});
if (values.help) {
  process.stdout.write(USAGE);
  process.exit(0);
}

const { "tls-key": key, "tls-cert": cert } = values;
const emulator = await startAgentCore({
  ...(values.port ? { port: Number(values.port) } : {}),
  ...(values.region ? { region: values.region } : {}),
  ...(key && cert ? { tls: { key: readFileSync(key), cert: readFileSync(cert) } } : {}),
});
serveProgram(emulator, { url: emulator.url, ...emulator.credentials }, values);
