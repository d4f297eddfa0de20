// The rows of Vercel: as it is hosted (TLS, HTTP/2), and over plain HTTP in small pieces.
import { after } from "node:test";

import { VercelSandbox } from "cloudsandbox";

import { makeCertificate } from "../emulators/certificate.js";
import { vercelReplies } from "../emulators/vercel/errors.js";
import { startVercel } from "../emulators/vercel/index.js";
import { removeCommandFolders } from "../support/daytona.js";

const FACTS = {
  languages: ["python", "node", "shell"],
  keepsStreamOrder: true,
  separatesStreams: true,
  listsFiles: true,
  onThisMachine: false,
  refusesControlCharacters: false,
  replacesFilesAtOnce: false,
  knowsHome: true,
  background: true,
  choosesShell: true,
  mainFile: true,
  manifest: { keeps: ["image", 'network.default: "deny"', "network.allowedHosts", "resources.cpus", "resources.memoryMb"] },
};

/** A row over one emulator; each world has a token of its own. */
function row(name, emulator, closer, ca) {
  const { engine, fleet, settings } = emulator;
  const { teamId, projectId } = settings;
  let worlds = 0;
  return {
    name,
    providerId: "vercel",
    facts: FACTS,
    world(t) {
      const track = closer(t);
      const token = `vck_world_${(worlds += 1)}`;
      settings.tokens.push(token);
      let broken = false;
      engine.fault(
        "POST /v3/sandboxes",
        { instead: vercelReplies.error(403, "forbidden", "Not authorized: the team is blocked") },
        { times: Infinity, where: (exchange) => broken && exchange.header("authorization") === `Bearer ${token}` },
      );
      const connection = { baseURL: emulator.apiUrl, token, teamId, projectId, ca };
      return {
        make: (options) => track(new VercelSandbox({ ...connection, ...options })),
        existing: () => fleet.all().flatMap((sandbox) => (sandbox.token === token ? [sandbox.name] : [])),
        breakCreation() {
          broken = true;
          return () => {
            broken = false;
          };
        },
        lose: (sandbox) => emulator.lose(sandbox.sandboxId),
      };
    },
  };
}

/** @param {(t: any) => (item: any) => any} closer closes what a test has made */
export async function vercelRows(closer) {
  const certificate = makeCertificate(["127.0.0.1"]);
  const hosted = await startVercel({ tls: certificate });
  const plain = await startVercel({ startMs: 20, stopMs: 20 });
  after(async () => {
    for (const emulator of [hosted, plain]) {
      await emulator.close();
      removeCommandFolders(emulator.engine);
    }
  });
  return [row("vercel", hosted, closer, certificate.cert), row("vercelplain", plain, closer)];
}
