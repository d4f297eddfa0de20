// The rows of AgentCore: as it is hosted (TLS, HTTP/2), and over plain HTTP, where refusals say their type in the body and a
// session that is over is a request that is not valid.
import { after } from "node:test";

import { AgentCoreSandbox } from "cloudsandbox";

import { agentCoreReplies } from "../emulators/agentcore/errors.js";
import { startAgentCore } from "../emulators/agentcore/index.js";
import { makeCertificate } from "../emulators/certificate.js";

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
  manifest: { keeps: [] },
};

/** A row over one emulator; each world has an access key of its own. */
function row(name, emulator, closer, ca) {
  const { engine, settings } = emulator;
  let worlds = 0;
  return {
    name,
    providerId: "agentcore",
    facts: FACTS,
    world(t) {
      const track = closer(t);
      const id = `AKIDWORLD${(worlds += 1)}X`;
      settings.keys.push({ id, secret: `secret/of/world/${worlds}` });
      let broken = false;
      engine.fault(
        "PUT /sessions/start",
        { instead: agentCoreReplies.error(403, "AccessDeniedException", "User is not authorized", {}, settings.typeIn) },
        { times: Infinity, where: (exchange) => broken && exchange.header("authorization")?.includes(`=${id}/`) },
      );
      const connection = { baseURL: emulator.url, accessKeyId: id, secretAccessKey: `secret/of/world/${worlds}`, ca, region: settings.region };
      return {
        make: (options) => track(new AgentCoreSandbox({ ...connection, ...options })),
        existing: () => emulator.existing(id),
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
export async function agentCoreRows(closer) {
  const certificate = makeCertificate(["127.0.0.1"]);
  const hosted = await startAgentCore({ tls: certificate });
  const plain = await startAgentCore({ typeIn: "__type", overStatus: 400 });
  after(() => Promise.all([hosted.close(), plain.close()]));
  return [row("agentcore", hosted, closer, certificate.cert), row("agentcoreplain", plain, closer)];
}
