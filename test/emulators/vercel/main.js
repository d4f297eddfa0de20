// node test/emulators/vercel/main.js [--key=value ...]: the emulator as a program, see ../program.js.
// @ts-check
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";

import { removeCommandFolders } from "../../support/daytona.js";
import { PROGRAM_OPTIONS, PROGRAM_USAGE, serveProgram } from "../program.js";
import { startVercel } from "./index.js";

const USAGE = `usage: node main.js [options]
  --port=N              (default: any)
  --token=TOKEN         the token it accepts
  --tls-key=FILE --tls-cert=FILE   serve TLS
${PROGRAM_USAGE}`;

const { values } = parseArgs({
  options: {
    port: { type: "string" },
    token: { type: "string" },
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
const emulator = await startVercel({
  ...(values.port ? { port: Number(values.port) } : {}),
  ...(values.token ? { tokens: [values.token] } : {}),
  ...(key && cert ? { tls: { key: readFileSync(key), cert: readFileSync(cert) } } : {}),
});
process.on("exit", () => removeCommandFolders(emulator.engine));
serveProgram(emulator, { apiUrl: emulator.apiUrl, ...emulator.credentials }, values);
