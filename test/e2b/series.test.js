// A long series of commands, in a process where nothing else runs.
import { test } from "node:test";

import { E2BSandbox } from "cloudsandbox";

import { replies } from "../emulators/engine.js";
import { checkSeries } from "../support/series.js";
import { slow } from "../support/slow.js";
import { withoutVariables } from "./support.js";

withoutVariables();

const START = "process.Process/Start";
const count = slow ? 5004 : 900;

test(`C069 ${count} commands, a third of which fail: memory, descriptors and processes stay flat`, (t) =>
  checkSeries(t, {
    emulator: "e2b",
    count,
    // One in six is refused, and the answer to one in six breaks off and is taken up again, without what it had
    // said by then; the second counts what the first lets through.
    faults: [
      [START, { instead: replies.html(503) }, { every: 6 }],
      [START, { stop: { after: 60, how: "reset" } }, { skip: 2, every: 5 }],
    ],
    expected: { ERR_SANDBOX_PROVIDER: count / 6, "wrong: 3 ": count / 6 },
    make: ({ apiKey, apiUrl: baseURL, sandboxUrl }) => new E2BSandbox({ apiKey, baseURL, sandboxUrl }),
  }));
