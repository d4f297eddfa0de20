// What is measured of a client, in a process of its own.
import { readFileSync, writeFileSync } from "node:fs";
import { quantile } from "../stats.js";

export const FILE_BYTES = 64 * 2 ** 20;
export const SANDBOXES = 1000;

/** @typedef {import("./clients.js").Client} Client */

/** @param {number} count @param {number} width how many at a time @param {(i: number) => Promise<unknown>} call */
async function repeat(count, width, call) {
  let next = 0;
  const lane = async () => {
    while (next < count) await call(next++);
  };
  await Promise.all(Array.from({ length: width }, lane));
}

async function checked(/** @type {Client} */ client) {
  const { exitCode } = await client.shell();
  if (exitCode !== 0) throw new Error(`unexpected exit code: ${exitCode}`);
}

/** One after the other, in a plain loop: each function more around a call would be measured with it.
 *
 * @param {Client} client @param {number} count */
async function timed(client, count) {
  /** @type {number[]} */
  const times = [];
  const cpu = process.cpuUsage();
  for (let i = 0; i < count; i++) {
    const start = performance.now();
    const { exitCode } = await client.shell();
    times.push((performance.now() - start) * 1000);
    if (exitCode !== 0) throw new Error(`unexpected exit code: ${exitCode}`);
  }
  const { user, system } = process.cpuUsage(cpu);
  return { cpu: (user + system) / count, p50: quantile(times, 0.5), p99: quantile(times, 0.99) };
}

/** Commands per second. @param {() => Promise<Client>} open @param {number} count @param {number} width */
async function rate(open, count, width) {
  const client = await open();
  await repeat(count, width, () => checked(client));
  const start = performance.now();
  await repeat(count, width, () => checked(client));
  const result = (count / (performance.now() - start)) * 1000;
  await client.close();
  return result;
}

const MEMORY = /** @type {const} */ ({ now: /^VmRSS:\s+(\d+) kB/m, peak: /^VmHWM:\s+(\d+) kB/m });

/** Resident memory of this process in bytes; `peak` since the last forgetPeak(). @param {keyof typeof MEMORY} which */
function memory(which) {
  return Number(readFileSync("/proc/self/status", "latin1").match(MEMORY[which])?.[1]) * 1024;
}

const forgetPeak = () => writeFileSync("/proc/self/clear_refs", "5");

/** By name. @type {Record<string, (open: () => Promise<Client>, count: number) => Promise<unknown>>} */
export const measures = {
  /** Microseconds of CPU and of time per command, one after the other: of the first ones, and once it
   * is warm. */
  async shell(open, count) {
    const client = await open();
    const first = await timed(client, Math.round(count / 10));
    await timed(client, 3 * count);
    const warm = await timed(client, count);
    await client.close();
    return { first, warm };
  },
  /** Milliseconds of a local program, and of a local shell. */
  async local(open, count) {
    const client = /** @type {any} */ (await open());
    /** @type {Record<string, number[]>} */
    const times = { program: [], shell: [] };
    for (let i = 0; i < count; i++) {
      for (const name of ["program", "shell"]) {
        const start = performance.now();
        await client[name]();
        times[name].push(performance.now() - start);
      }
    }
    await client.close();
    return { program: quantile(times.program, 0.5), shell: quantile(times.shell, 0.5) };
  },
  /** One command. */
  async once(open) {
    const client = await open();
    await checked(client);
    await client.close();
  },
  /** Commands per second, 64 at a time. */
  flight: (open, count) => rate(open, count, 64),
  /** The same, 1,000 at a time. */
  crowd: (open, count) => rate(open, count, 1000),
  /** What an engine of containers dominates: microseconds of CPU of the client and of time per command, and commands per
   * second, 32 at a time. */
  async engine(open, count) {
    const client = await open();
    await timed(client, Math.round(count / 4));
    const one = await timed(client, count);
    const start = performance.now();
    await repeat(2 * count, 32, () => checked(client));
    const rate = ((2 * count) / (performance.now() - start)) * 1000;
    await client.close();
    return { ...one, rate };
  },
  /** Milliseconds to read a large file, and to write it. */
  async files(open, count) {
    const client = await open();
    const bytes = new Uint8Array(FILE_BYTES).fill(120);
    /** @type {{ read: number[], write: number[] }} */
    const times = { read: [], write: [] };
    for (let i = 0; i < count; i++) {
      const start = performance.now();
      const got = await client.read?.();
      const middle = performance.now();
      await client.write?.(bytes);
      times.read.push(middle - start);
      times.write.push(performance.now() - middle);
      if (got?.length !== FILE_BYTES) throw new Error(`unexpected length: ${got?.length}`);
    }
    await client.close();
    return times;
  },
  /** By how much resident memory grows at most while a large file is read. */
  async peak(open) {
    const client = await open();
    await checked(client);
    globalThis.gc?.();
    forgetPeak();
    const before = memory("now");
    const got = await client.read?.();
    const grown = memory("peak") - before;
    if (got?.length !== FILE_BYTES) throw new Error(`unexpected length: ${got?.length}`);
    await client.close();
    return grown;
  },
  /** Microseconds of CPU and of time per command, asked in turn of so many open sandboxes. */
  async open(open, count) {
    /** @type {Client[]} */
    const all = [];
    await repeat(count, 16, async (i) => {
      all[i] = await open();
    });
    let next = 0;
    const result = await timed({ ...all[0], shell: () => all[next++ % count].shell() }, 4000);
    await repeat(count, 16, (i) => all[i].close());
    return result;
  },
  /** By how much resident memory has grown when many sandboxes are open and idle. */
  async idle(open, count) {
    // Until the process itself has stopped growing by such work.
    await repeat(3 * count, 16, async () => (await open()).close());
    globalThis.gc?.();
    const before = memory("now");
    /** @type {Client[]} */
    const all = [];
    await repeat(count, 16, async (i) => {
      all[i] = await open();
    });
    globalThis.gc?.();
    const grown = memory("now") - before;
    await repeat(count, 16, (i) => all[i].close());
    return grown;
  },
};
