// A long series of commands, in a process where nothing else runs.
import { test } from "node:test";

import { DaytonaSandbox } from "cloudsandbox";

import { daytonaReplies } from "../emulators/daytona/replies.js";
import { checkSeries } from "../support/series.js";
import { slow } from "../support/slow.js";
import { EXECUTE } from "./support.js";

const count = slow ? 5004 : 600;

test(`C069 ${count} commands, a third of which fail: memory, descriptors and processes stay flat`, (t) =>
  checkSeries(t, {
    emulator: "daytona",
    count,
    // Refusals only: what breaks off is asked for again, and comes out right.
    faults: [[EXECUTE, { instead: daytonaReplies.toolbox(403, "forbidden") }, { every: 3 }]],
    expected: { ERR_SANDBOX_FORBIDDEN: count / 3 },
    make: ({ apiKey, apiUrl: baseURL }) => new DaytonaSandbox({ apiKey, baseURL }),
  }));
