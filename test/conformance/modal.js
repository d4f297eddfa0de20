// The rows of Modal: over TLS as it is hosted, and with sandboxes that come up late, whose outputs end with their command, in small pieces.
import { after } from "node:test";

import { ModalSandbox } from "cloudsandbox";

import { makeCertificate } from "../emulators/certificate.js";
import { refusal } from "../emulators/modal/grpc.js";
import { startModal } from "../emulators/modal/index.js";

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
  manifest: {
    keeps: ["image", "workingDir", 'network.default: "deny"', "network.allowedHosts", "resources.cpus", "resources.memoryMb"],
  },
};

/** A row over one emulator; each world has a token of its own. */
function row(name, emulator, closer, ca) {
  const { engine, fleet, settings } = emulator;
  let worlds = 0;
  return {
    name,
    providerId: "modal",
    facts: FACTS,
    world(t) {
      const track = closer(t);
      const tokenId = `ak-${name}-world-${(worlds += 1)}`;
      const tokenSecret = `as-${tokenId}-secret`;
      settings.tokens[tokenId] = tokenSecret;
      let broken = false;
      engine.fault(
        "SandboxCreateV2",
        { instead: refusal("PERMISSION_DENIED", "the workspace is blocked") },
        { times: Infinity, where: (exchange) => broken && exchange.header("x-modal-token-id") === tokenId },
      );
      return {
        make: (options) => track(new ModalSandbox({ baseURL: emulator.apiUrl, tokenId, tokenSecret, ca, ...options })),
        existing: () => fleet.all().flatMap((sandbox) => (sandbox.tokenId === tokenId && !sandbox.result ? [sandbox.id] : [])),
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
export async function modalRows(closer) {
  const certificate = makeCertificate(["127.0.0.1"]);
  const hosted = await startModal({ tls: certificate });
  const late = await startModal({ tls: certificate, startMs: 20, closesOutputs: true, builds: 1 });
  after(() => Promise.all([hosted.close(), late.close()]));
  return [row("modal", hosted, closer, certificate.cert), row("modallate", late, closer, certificate.cert)];
}
