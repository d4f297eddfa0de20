// The rows of a service of one's own: one that speaks the protocol as it is proposed, over TLS; and a plain one that
// words its refusals as a web framework does, tells a lost session by 410, and makes no folders.
import { after } from "node:test";

import { HttpSandbox } from "cloudsandbox";

import { makeCertificate } from "../emulators/certificate.js";
import { replies } from "../emulators/engine.js";
import { startHttp } from "../emulators/http/index.js";

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
    keeps: [
      "image", "workingDir", 'network.default: "deny"', "network.allowedHosts", "network.deniedHosts", "resources.cpus", "resources.memoryMb",
      "resources.gpu",
    ],
  },
};

async function row(name, closer, settings) {
  const emulator = await startHttp(settings);
  after(() => emulator.close());
  let worlds = 0;
  return {
    name,
    providerId: "http",
    facts: FACTS,
    world(t) {
      const track = closer(t);
      const token = `token_of_world_${(worlds += 1)}`;
      emulator.settings.tokens.push(token);
      const common = { baseURL: emulator.url, token, ca: settings.tls?.cert };
      return {
        make: (options) => track(new HttpSandbox({ ...common, ...options })),
        existing: () => emulator.existing(token),
        breakCreation() {
          let broken = true;
          const where = (exchange) => broken && exchange.header("authorization") === `Bearer ${token}`;
          const failure = { instead: replies.json(403, { error: { code: "forbidden", message: "not for you" } }) };
          emulator.engine.fault("POST /sessions", failure, { where, times: Infinity });
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
export async function httpRows(closer) {
  return [
    await row("http", closer, { tls: makeCertificate(["127.0.0.1"]) }),
    await row("httpplain", closer, { words: "detail", lostStatus: 410, makesFolders: false, prefix: "" }),
  ];
}
