// Records: the union is told apart by `type` and `phase`.
import { subscribe } from "node:diagnostics_channel";
import { onRecord, readRecords, recordTo, RECORD_TYPES } from "cloudsandbox/records";
import type { SandboxRecord, SandboxRecordType } from "cloudsandbox/records";

const recording = recordTo("session.jsonl", { outputBytes: 2000, redact: (text) => text });
export const numbers: number[] = [recording.written, recording.missed];
// @ts-expect-error a misspelt option
recordTo("session.jsonl", { outputbytes: 1 });

export const stop: () => void = onRecord((record) => {
  if (record.type !== "exec") return;
  if (record.phase === "begin") {
    const kind: "command" | "code" | "argv" = record.kind;
    void kind;
    // @ts-expect-error a command that begins has no exit code
    void record.exitCode;
  } else {
    const code: number | undefined = record.exitCode;
    void code;
  }
  // @ts-expect-error no contents
  void record.output;
});
subscribe("cloudsandbox:lost", (message) => void (message as SandboxRecord));

export const types: readonly SandboxRecordType[] = RECORD_TYPES;
export async function outputs(): Promise<(string | undefined)[]> {
  const { records } = await readRecords("session.jsonl");
  return records.map((record) => (record.type === "recording" ? undefined : record.output));
}
