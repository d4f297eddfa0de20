// The row of the provider that exists in the tests alone: its only verb is "run this line". It is in builds
// that are made for the tests (scripts/test), and skipped with others.
import { after } from "node:test";

import { withManifest } from "../../lib/manifest.js";
import { checkEnvObject } from "../../lib/options.js";
import { NativeSandbox } from "../../lib/sandbox.js";
import { startLine } from "../emulators/line/index.js";

/** Its commands run on this machine, and it says that they have no network. */
const MANIFEST = { provider: "line", network: [], keeps: { "network.default": () => ({}) } };

class LineSandbox extends NativeSandbox {
  constructor(given) {
    const { url, token, env, ...options } = withManifest(given, MANIFEST);
    const own = { url, token, ...(env !== undefined && { env: checkEnvObject(env) }) };
    super({ provider: "line", providerId: "line", options, own });
  }
}

/** Whether the binary has it. */
function isThere() {
  try {
    new LineSandbox({ url: "http://127.0.0.1:1", token: "t" });
    return true;
  } catch (error) {
    if (error.code !== "ERR_SANDBOX_UNSUPPORTED" || process.env.CLOUDSANDBOX_TEST_PROVIDERS) throw error;
    return false;
  }
}

/** @param {(t: any) => (item: any) => any} closer closes what a test has made */
export async function lineRows(closer) {
  if (!isThere()) return [];
  const service = await startLine();
  after(() => service.close());
  let worlds = 0;
  return [
    {
      name: "line",
      providerId: "line",
      facts: {
        languages: ["python", "node", "shell"],
        keepsStreamOrder: true,
        separatesStreams: true,
        listsFiles: true,
        onThisMachine: false,
        knowsHome: true,
        background: true,
        choosesShell: true,
        mainFile: true,
        refusesControlCharacters: false,
        replacesFilesAtOnce: false,
        manifest: { keeps: ['network.default: "deny"'] },
      },
      world(t) {
        const track = closer(t);
        const token = `world-${(worlds += 1)}`;
        return {
          make: (options) => track(new LineSandbox({ url: service.url, token, ...options })),
          existing: () => service.existing(token),
          breakCreation() {
            service.refused.add(token);
            return () => service.refused.delete(token);
          },
          lose: (sandbox) => service.lose(sandbox.sandboxId),
        };
      },
    },
  ];
}
