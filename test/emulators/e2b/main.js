// node test/emulators/e2b/main.js [--key=value ...]: the emulator as a program, see ../program.js.
// @ts-check
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { PROGRAM_OPTIONS, PROGRAM_USAGE, serveProgram } from "../program.js";
import { startE2B } from "./index.js";

const USAGE = `usage: node main.js [options]
  --api-port=N          port of the control plane (default: any)
  --sandbox-port=N      port of the sandboxes (default: any)
  --api-key=KEY         the key it accepts
  --limit=N             concurrent sandboxes
  --v2=yes|404|405      serve the second generation of create and connect, or answer that it is not there
  --envd-version=V      version the sandboxes report
  --tls-key=FILE --tls-cert=FILE   serve TLS with HTTP/2
  --debug               also serve the fixed ports of debug mode
${PROGRAM_USAGE}`;

const { values } = parseArgs({
  options: {
    "api-port": { type: "string" },
    "sandbox-port": { type: "string" },
    "api-key": { type: "string" },
    limit: { type: "string" },
    v2: { type: "string", default: "yes" },
    "envd-version": { type: "string" },
    "tls-key": { type: "string" },
    "tls-cert": { type: "string" },
    debug: { type: "boolean", default: false },
    ...PROGRAM_OPTIONS,
  },
});
if (values.help) {
  process.stdout.write(USAGE);
  process.exit(0);
}

const { "tls-key": key, "tls-cert": cert } = values;
const number = (/** @type {string | undefined} */ text) => (text === undefined ? undefined : Number(text));
const emulator = await startE2B({
  apiPort: number(values["api-port"]),
  sandboxPort: number(values["sandbox-port"]),
  debug: values.debug,
  ...(key && cert ? { tls: { key: readFileSync(key), cert: readFileSync(cert) } } : {}),
  ...(values["api-key"] ? { apiKeys: [values["api-key"]] } : {}),
  ...(values.limit ? { concurrencyLimit: Number(values.limit) } : {}),
  ...(values["envd-version"] ? { envdVersion: values["envd-version"] } : {}),
  v2: values.v2 === "404" ? 404 : values.v2 === "405" ? 405 : true,
});
const { apiUrl, sandboxUrl, apiKey } = emulator;
serveProgram(emulator, { apiUrl, sandboxUrl, apiKey }, values);
