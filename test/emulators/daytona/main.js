// node test/emulators/daytona/main.js [--key=value ...]: the emulator as a program, see ../program.js.
// @ts-check
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { removeCommandFolders } from "../../support/daytona.js";
import { PROGRAM_OPTIONS, PROGRAM_USAGE, serveProgram } from "../program.js";
import { startDaytona } from "./index.js";

const USAGE = `usage: node main.js [options]
  --api-port=N          port of the control plane (default: any)
  --proxy-port=N        port of the toolbox proxy (default: any)
  --api-key=KEY         the key it accepts
  --daemon-version=V    version of the daemon in the sandboxes
  --toolbox-url=HOW     where replies tell the toolbox's address: sandbox, route, config or none
  --warm                snapshots' sandboxes are there at once
  --tls-key=FILE --tls-cert=FILE   serve TLS
${PROGRAM_USAGE}`;
const WAYS = /** @type {const} */ (["sandbox", "route", "config", "none"]);

const { values } = parseArgs({
  options: {
    "api-port": { type: "string" },
    "proxy-port": { type: "string" },
    "api-key": { type: "string" },
    "daemon-version": { type: "string" },
    "toolbox-url": { type: "string" },
    warm: { type: "boolean", default: false },
    "tls-key": { type: "string" },
    "tls-cert": { type: "string" },
    ...PROGRAM_OPTIONS,
  },
});
const toolboxUrl = WAYS.find((way) => way === (values["toolbox-url"] ?? "sandbox"));
if (values.help || !toolboxUrl) {
  process.stdout.write(USAGE);
  process.exit(values.help ? 0 : 2);
}

const { "tls-key": key, "tls-cert": cert } = values;
const number = (/** @type {string | undefined} */ text) => (text === undefined ? undefined : Number(text));
const emulator = await startDaytona({
  apiPort: number(values["api-port"]),
  proxyPort: number(values["proxy-port"]),
  toolboxUrl,
  warmPool: values.warm,
  ...(key && cert ? { tls: { key: readFileSync(key), cert: readFileSync(cert) } } : {}),
  ...(values["api-key"] ? { apiKeys: [values["api-key"]] } : {}),
  ...(values["daemon-version"] ? { daemonVersion: values["daemon-version"] } : {}),
});
process.on("exit", () => removeCommandFolders(emulator.engine));
const { apiUrl, toolboxUrl: toolbox, apiKey, jwtToken, organizationId } = emulator;
serveProgram(emulator, { apiUrl, toolboxUrl: toolbox, apiKey, jwtToken, organizationId }, values);
