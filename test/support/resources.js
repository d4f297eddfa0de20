// What this process holds: descriptors and memory.
import { readdirSync } from "node:fs";

/** Number of open descriptors of this process (the one that lists them left out). */
export function openDescriptors() {
  return readdirSync("/proc/self/fd").length - 1;
}

/**
 * Resident memory of this process in bytes, after a garbage collection where `--expose-gc` allows
 * one.
 */
export function residentBytes() {
  globalThis.gc?.();
  return process.memoryUsage.rss();
}
