// A long series of commands, in a process where nothing else runs.
import assert from "node:assert/strict";
import { test } from "node:test";

import { DaytonaSandbox } from "cloudsandbox";

import { checkSeries } from "../support/series.js";
import { slow } from "../support/slow.js";
import { EXECUTE } from "./support.js";

const count = slow ? 5004 : 600;

/** A refused command has not begun; an answer that breaks off is asked for again, and the faults hit that, too. */
function check({ right, ERR_SANDBOX_PROVIDER: refused, ...others }) {
  assert.deepEqual(others, {});
  assert.equal(right + refused, count);
  assert.ok(right >= (count / 6) * 4, `${right} right`);
  assert.ok(refused >= count / 12, `${refused} refused`);
}

test(`C069 ${count} commands, and faults at a third of the requests: memory, descriptors and processes stay flat`, (t) =>
  checkSeries(t, {
    emulator: "daytona",
    route: EXECUTE,
    count,
    check,
    make: ({ apiKey, apiUrl: baseURL }) => new DaytonaSandbox({ apiKey, baseURL }),
  }));
