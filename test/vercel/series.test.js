// A long series of commands, in a process where nothing else runs.
import { test } from "node:test";

import { VercelSandbox } from "cloudsandbox";

import { vercelReplies } from "../emulators/vercel/errors.js";
import { checkSeries } from "../support/series.js";
import { slow } from "../support/slow.js";
import { COMMAND } from "./support.js";

const count = slow ? 5004 : 600;

test(`C069 ${count} commands, a third of which fail: memory, descriptors and processes stay flat`, (t) =>
  checkSeries(t, {
    emulator: "vercel",
    count,
    // Refusals only: what breaks off is asked for again, and comes out right.
    faults: [[COMMAND, { instead: vercelReplies.error(403, "forbidden", "Not authorized") }, { every: 3 }]],
    expected: { ERR_SANDBOX_FORBIDDEN: count / 3 },
    make: ({ apiUrl: baseURL, token, teamId, projectId }) => new VercelSandbox({ token, teamId, projectId, baseURL }),
  }));
