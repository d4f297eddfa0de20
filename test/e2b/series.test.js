// A long series of commands, in a process where nothing else runs.
import { test } from "node:test";

import { E2BSandbox } from "cloudsandbox";

import { checkSeries } from "../support/series.js";
import { slow } from "../support/slow.js";
import { withoutVariables } from "./support.js";

withoutVariables();

const count = slow ? 5004 : 900;

test(`C069 ${count} commands, a third of which fail: memory, descriptors and processes stay flat`, (t) =>
  checkSeries(t, {
    emulator: "e2b",
    route: "process.Process/Start",
    count,
    make: ({ apiKey, apiUrl: baseURL, sandboxUrl }) => new E2BSandbox({ apiKey, baseURL, sandboxUrl }),
  }));
