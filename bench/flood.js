// A command that writes 10 GB: how much memory it takes here, how late the event loop gets, and that
// the result is cut at the cap.
import { monitorEventLoopDelay } from "node:perf_hooks";
import { LocalSandbox } from "cloudsandbox";
import { mib, row } from "./stats.js";

const bytes = 10e9;
const cap = 2 ** 20;
const sandbox = new LocalSandbox({ isolation: "none", maxOutputBytes: cap });
await sandbox.shell("true");

const before = process.memoryUsage().rss;
let peak = before;
const sampler = setInterval(() => (peak = Math.max(peak, process.memoryUsage().rss)), 20);
const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
const start = performance.now();
const result = await sandbox.exec({
  command: `head -c ${bytes} /dev/zero`,
  timeoutSeconds: 300,
  mergeStreams: true,
  encoding: "buffer",
});
const seconds = (performance.now() - start) / 1000;
delay.disable();
clearInterval(sampler);
await sandbox.close();

if (result.status !== "exited" || result.output.length !== cap || result.droppedBytes.output !== bytes - cap) {
  throw new Error(`unexpected result: ${result.status}, kept ${result.output.length}, dropped ${result.droppedBytes.output}`);
}
row("10 GB of output: RSS growth", mib(peak - before), "16 MiB");
row("10 GB of output: longest loop delay", `${(delay.max / 1e6).toFixed(1)} ms`, "50 ms");
row("10 GB of output: time, rate", `${seconds.toFixed(1)} s, ${(bytes / seconds / 1e9).toFixed(1)} GB/s`);
