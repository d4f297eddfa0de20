// The rows of Daytona: as it is hosted (TLS, the toolbox's address told with each sandbox), and on a
// server of one's own (plain HTTP, an address that does not resolve here and is overridden).
import { after } from "node:test";

import { DaytonaSandbox } from "cloudsandbox";

import { makeCertificate } from "../emulators/certificate.js";
import { startDaytona } from "../emulators/daytona/index.js";
import { replies } from "../emulators/engine.js";
import { removeCommandFolders } from "../support/daytona.js";

const FACTS = {
  languages: ["python", "shell"],
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
  manifest: { keeps: ["image", 'network.default: "deny"', "network.allowedHosts"] },
};

const LEAVING = new Set(["destroying", "destroyed"]);

/** A row over one emulator; each world has a key and a label of its own. */
function row(name, facts, emulator, closer, connection) {
  const { engine, fleet, settings } = emulator;
  let worlds = 0;
  return {
    name,
    providerId: "daytona",
    facts,
    world(t) {
      const track = closer(t);
      const world = `${(worlds += 1)}`;
      const apiKey = `dtn_world_${world}`;
      settings.apiKeys.push(apiKey);
      const own = () => fleet.all().filter(({ labels }) => labels.world === world);
      let broken = false;
      engine.fault(
        "POST /sandbox",
        { instead: replies.html(500) },
        { times: Infinity, where: (exchange) => broken && exchange.header("authorization") === `Bearer ${apiKey}` },
      );
      return {
        make: (options) => track(new DaytonaSandbox({ ...connection, apiKey, labels: { world }, ...options })),
        existing: () => own().filter(({ state }) => !LEAVING.has(state)).map(({ id }) => id),
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
export async function daytonaRows(closer) {
  const certificate = makeCertificate(["127.0.0.1", "localhost"]);
  const unlimited = { quota: { cpu: 1e6, memory: 1e6, disk: 1e6, perSandbox: { cpu: 4, memory: 8, disk: 10 } } };
  const hosted = await startDaytona({ ...unlimited, tls: certificate });
  const own = await startDaytona({ ...unlimited, answerToolboxUrl: "http://proxy.invalid:4000/toolbox" });
  after(async () => {
    for (const emulator of [hosted, own]) {
      await emulator.close();
      removeCommandFolders(emulator.engine);
    }
  });
  return [
    row("daytona", FACTS, hosted, closer, { baseURL: hosted.apiUrl, ca: certificate.cert }),
    row("selfhosted", { ...FACTS, languages: ["python", "node", "shell"] }, own, closer, {
      baseURL: own.apiUrl,
      toolboxUrl: `${own.proxyUrl}/toolbox`,
      allowAnyLanguage: true,
    }),
  ];
}
