// node test/emulators/modal/main.js [--key=value ...]: the emulator as a program, see ../program.js.
// @ts-check
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";

import { makeCertificate } from "../certificate.js";
import { PROGRAM_OPTIONS, PROGRAM_USAGE, serveProgram } from "../program.js";
import { startModal } from "./index.js";

const USAGE = `usage: node main.js [options]
  --port=N              (default: any)
  --plain               HTTP/2 without TLS
  --front               and TLS before it, where the command router is then told to be
  --tls-key=FILE --tls-cert=FILE   (default: a certificate made at the start, which is told as "ca")
${PROGRAM_USAGE}`;

const { values } = parseArgs({
  options: {
    port: { type: "string" },
    plain: { type: "boolean", default: false },
    front: { type: "boolean", default: false },
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
const certificate = key && cert ? { key: readFileSync(key, "utf8"), cert: readFileSync(cert, "utf8") } : makeCertificate(["127.0.0.1"]);
const emulator = await startModal({
  ...(values.port ? { port: Number(values.port) } : {}),
  ...(values.plain || values.front ? {} : { tls: certificate }),
});
if (values.front) emulator.settings.routerUrl = await emulator.front(certificate);
serveProgram(emulator, { apiUrl: emulator.apiUrl, ca: certificate.cert, ...emulator.credentials }, values);
