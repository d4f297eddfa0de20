// Whether anybody listens to records, and the way to what makes them: events.js, loaded once somebody does.
import { lazily } from "./errors.js";

/** @import { NativeSandbox } from "./sandbox.js" */
/** @import { SandboxRecordType } from "../types/records.js" */

/** Each has a channel, "cloudsandbox:" and its name. */
export const RECORD_TYPES = Object.freeze(/** @type {const} */ ([
  "created", "started", "failed", "seeded", "exec", "file", "timedOut", "killed", "control", "refused", "lost", "deleted",
]));
/** @type {import("node:diagnostics_channel").Channel[] | undefined} */
let channels;
/**
 * @typedef {object} RecordMaker events.js
 * @property {(instance: NativeSandbox, callId: number, action: string, detail: unknown, size?: number) => { end(result: unknown): void, fail(reason: unknown, aborted: boolean): void } | undefined} begin
 * @property {(instance: NativeSandbox, attached: boolean, news: Record<string, any>) => void} told
 * @property {<T>(tool: { tool: string, toolCallId?: string }, run: () => T) => T} inTool
 * @property {(type: SandboxRecordType, instance: { providerId: string }, sandboxId: string | null | undefined, members: Record<string, unknown>) => void} publish
 */
/** @type {RecordMaker | undefined} */
export let events;
const loadEvents = lazily("events.js", () => import("./events.js"));

/** Whether anybody listens to a channel. All that records cost when nobody does. */
export function isRecorded() {
  channels ??= RECORD_TYPES.map((type) => process.getBuiltinModule("node:diagnostics_channel").channel(`cloudsandbox:${type}`));
  for (const { hasSubscribers } of channels) {
    if (hasSubscribers) return true;
  }
  return false;
}

/** For events.js, as it is loaded. @param {any} maker a RecordMaker */
export function useEvents(maker) {
  events = maker;
}

/** A call goes on without a record when its maker cannot be loaded. */
export async function needEvents() {
  await loadEvents().catch(() => {});
}

/**
 * What a tool does, so that the records of its calls name it.
 *
 * @template T
 * @param {string} tool
 * @param {() => string | undefined} toolCallId the id that a framework has given to the call
 * @param {() => Promise<T>} run
 * @returns {Promise<T>}
 */
export async function inTool(tool, toolCallId, run) {
  if (!isRecorded()) return run();
  if (!events) await needEvents();
  const id = toolCallId();
  return events ? events.inTool({ tool, ...(id && { toolCallId: id }) }, run) : run();
}

/**
 * Publishes a record of any object with the port, of a type that its calls do not tell by themselves.
 *
 * @param {SandboxRecordType} type
 * @param {{ providerId: string, sandboxId?: string | null }} instance
 * @param {Record<string, unknown>} members numbers, ids and words of ours; never contents
 */
export async function record(type, instance, members) {
  if (!isRecorded()) return;
  if (!events) await needEvents();
  events?.publish(type, instance, instance.sandboxId, members);
}
