// A page of what recordTo() has written: a session as a timeline, for reading in a browser without a server.
//
// Invariant: what a record holds comes into the page as text, never as markup. Every value of it goes through
// escaped() or number(), and the page's own policy allows neither scripts nor anything from elsewhere.
import { checkNames, checkString } from "./options.js";
import { readRecords } from "./records.js";
import { STYLE } from "./report-style.js";

const { writeFile } = process.getBuiltinModule("node:fs").promises;
const { basename } = process.getBuiltinModule("node:path");

/** @import { ReportOptions } from "../types/report.js" */
/** @typedef {Record<string, any>} Rec a record, of whatever a file has held */
/** @typedef {{ begin: Rec, end?: Rec, from: number, to: number, extra: Rec[] }} Row */
/** @typedef {{ id: string, provider: string, rows: Row[], sandboxes: Map<string, Life> }} Lane what one object did */
/** @typedef {{ from: number, to: number, end: string }} Life */

/** It may show outputs. */
const MODE = 0o600;
/** More than anybody reads, and as much as a browser shows at once. */
const MAX_ROWS = 5000;

/**
 * Writes the page of a file of records.
 *
 * @param {string} file
 * @param {string} output
 * @param {ReportOptions} [options]
 */
export async function writeReport(file, output, options) {
  checkString(output, "output");
  const { records, damaged } = await readRecords(file);
  await writeFile(output, reportOf(records, { title: basename(file), damaged, ...checkNames(options, ["title"], "writeReport") }), { mode: MODE });
  return { records: records.length, damaged };
}

/**
 * The page of some records, as text.
 *
 * @param {Iterable<Rec>} records
 * @param {ReportOptions & { damaged?: number }} [options]
 */
export function reportOf(records, options) {
  const { title = "Sandbox session", damaged = 0 } = checkNames(options, ["title", "damaged"], "reportOf");
  const session = sessionOf([...records]);
  return page(session, checkString(title, "title"), number(damaged));
}

// ---- what happened -----------------------------------------------------------------------------------

/** @param {Rec[]} records */
function sessionOf(records) {
  /** @type {Map<string, Lane>} */
  const lanes = new Map();
  /** @type {Map<string, Row>} */
  const open = new Map();
  const times = records.map(({ at }) => number(at)).filter((at) => at > 0);
  let [from, to] = [Infinity, 0];
  for (const at of times) [from, to] = [Math.min(from, at), Math.max(to, at)];
  for (const record of records) {
    if (typeof record?.type !== "string" || record.type === "recording") continue;
    const id = plain(record.instanceId);
    const lane = lanes.get(id) ?? { id, provider: plain(record.provider), rows: [], sandboxes: new Map() };
    lanes.set(id, lane);
    from = Math.min(from, beganAt(record));
    live(lane, record);
    place(lane, record, open);
  }
  if (from > to) from = to;
  for (const lane of lanes.values()) {
    for (const row of lane.rows) if (row.to < 0) row.to = to;
    for (const life of lane.sandboxes.values()) if (life.to < 0) life.to = to;
    lane.rows.sort((a, b) => a.from - b.from);
  }
  return { from, to, lanes: [...lanes.values()] };
}

/** @param {Rec} record */
function beganAt({ at, phase, durationMs, totalMs }) {
  return number(at) - (phase === "begin" ? 0 : number(totalMs ?? durationMs));
}

/** Keeps when each sandbox was there. @param {Lane} lane @param {Rec} record */
function live({ sandboxes }, record) {
  const id = plain(record.sandboxId);
  const at = number(record.at);
  if (record.type === "created" || record.type === "started") {
    const { from = beganAt(record) } = sandboxes.get(id) ?? {};
    sandboxes.set(id, { from: Math.min(from, beganAt(record)), to: -1, end: record.attached ? "attached" : "left" });
  } else if (record.type === "lost" || record.type === "deleted") {
    const life = sandboxes.get(id);
    if (life) sandboxes.set(id, { ...life, to: at, end: record.type });
  }
}

/** @param {Lane} lane @param {Rec} record @param {Map<string, Row>} open */
function place(lane, record, open) {
  const key = `${lane.id} ${plain(record.callId)}`;
  const row = open.get(key);
  if (record.type === "exec" && record.phase === "end") {
    if (!row) return;
    row.end = record;
    row.to = number(record.at);
    open.delete(key);
  } else if ((record.type === "timedOut" || record.type === "killed") && row) {
    row.extra.push(record);
  } else if (record.type !== "created") {
    /** @type {Row} */
    const made = { begin: record, from: beganAt(record), to: number(record.at), extra: [] };
    if (record.type === "exec") {
      made.to = -1;
      open.set(key, made);
    }
    lane.rows.push(made);
  }
}

// ---- the page ----------------------------------------------------------------------------------------

/** @param {ReturnType<typeof sessionOf>} session @param {string} title @param {number} damaged */
function page(session, title, damaged) {
  const { from, to, lanes } = session;
  const scale = { from, length: Math.max(to - from, 1) };
  const rows = lanes.reduce((sum, lane) => sum + lane.rows.length, 0);
  let left = MAX_ROWS;
  const sections = lanes.map((lane, index) => {
    const shown = lane.rows.slice(0, left);
    left -= shown.length;
    return section(lane, shown, scale, index);
  });
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<style>${STYLE}</style>
<header>
<h1>${escaped(title)}</h1>
<p class="when">${lanes.length === 0 ? "Nothing was recorded." : `${dateOf(from)} · ${duration(to - from)}`}</p>
${tiles(lanes)}
${notes(lanes, damaged, rows)}
</header>
<main>
${lanes.length > 1 ? overview(lanes, scale) : ""}
${sections.join("\n")}
</main>
<footer>Times are those of the machine that recorded. A bar is the time from a call to its result; its paler part is what it waited for.</footer>
</html>
`;
}

/** @param {Lane[]} lanes */
function tiles(lanes) {
  const rows = lanes.flatMap((lane) => lane.rows);
  const execs = rows.filter(({ begin }) => begin.type === "exec");
  const failed = execs.filter(({ end }) => !end || end.status !== "exited" || end.exitCode !== 0);
  const files = rows.filter(({ begin }) => begin.type === "file");
  const lives = lanes.flatMap((lane) => [...lane.sandboxes.values()]);
  const sum = (/** @type {Row[]} */ of, /** @type {(row: Row) => unknown} */ value) => of.reduce((total, row) => total + number(value(row)), 0);
  const inSandboxes = lives.reduce((total, life) => total + life.to - life.from, 0);
  const facts = [
    ["commands", String(execs.length), failed.length === 0 ? "all went well" : `${failed.length} not with exit code 0`],
    ["time in commands", duration(sum(execs, ({ end }) => end?.durationMs)), `${bytes(sum(execs, ({ end }) => end?.outputBytes))} of output`],
    ["sandboxes", String(lives.length), `there for ${duration(inSandboxes)}`],
    ["files", String(files.length), `${bytes(sum(files, ({ begin }) => begin.bytes))} moved`],
  ];
  const tile = (/** @type {string[]} */ [name, value, more]) => `<div><dt>${name}</dt><dd>${value}<small>${more}</small></dd></div>`;
  return `<dl class="tiles">${facts.map(tile).join("")}</dl>`;
}

/** What one would not see in the timeline. @param {Lane[]} lanes @param {number} damaged @param {number} rows */
function notes(lanes, damaged, rows) {
  const left = lanes.flatMap((lane) => [...lane.sandboxes].filter(([, life]) => life.end === "left").map(([id]) => id));
  const all = [
    ...(left.length > 0 ? [`Not deleted as far as this recording goes: ${left.slice(0, 20).map((id) => `<code>${escaped(id)}</code>`).join(", ")}`] : []),
    ...(damaged > 0 ? [`${damaged} ${damaged === 1 ? "line was" : "lines were"} cut short by a crash and left out.`] : []),
    ...(rows > MAX_ROWS ? [`Of ${rows} events the first ${MAX_ROWS} are shown.`] : []),
  ];
  return all.length === 0 ? "" : `<ul class="notes">${all.map((text) => `<li>${text}</li>`).join("")}</ul>`;
}

/** All objects below each other, when there are several. @param {Lane[]} lanes @param {Scale} scale */
function overview(lanes, scale) {
  const lines = lanes.map((lane, index) => {
    const lives = [...lane.sandboxes.values()].map((life) => bar(scale, life.from, life.to, "life"));
    const marks = lane.rows.filter(({ begin }) => begin.type === "exec").slice(0, MAX_ROWS).map((row) => bar(scale, row.from, row.to, `mark ${verdictOf(row).kind}`));
    return `<a class="lane" href="#s${index}"><span>${escaped(lane.provider)} <small>${escaped(lane.id)}</small></span><span class="track">${lives.join("")}${marks.join("")}</span></a>`;
  });
  return `<section class="overview"><h2>Overview</h2>${axis(scale)}${lines.join("\n")}</section>`;
}

/** @typedef {{ from: number, length: number }} Scale */

/** @param {Lane} lane @param {Row[]} rows @param {Scale} scale @param {number} index */
function section(lane, rows, scale, index) {
  const ids = [...lane.sandboxes].map(([id, life]) => `<code>${escaped(id)}</code> <span class="quiet">${ENDS[/** @type {keyof typeof ENDS} */ (life.end)]}</span>`);
  const own = lane.sandboxes.size > 0 ? `<p class="ids">${ids.slice(0, 20).join("<br>")}</p>` : "";
  return `<section id="s${index}">
<h2>${escaped(lane.provider)} <small>${escaped(lane.id)}</small></h2>
${own}
${axis(scale)}
${rows.map((row) => line(row, scale)).join("\n")}
</section>`;
}

const ENDS = Object.freeze({ left: "not deleted here", attached: "was there before", lost: "lost", deleted: "deleted" });

/** Times on a line that all rows have below them. @param {Scale} scale */
function axis(scale) {
  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000];
  const step = steps.find((one) => scale.length / one <= 8) ?? Math.ceil(scale.length / 8 / 3_600_000) * 3_600_000;
  const ticks = [];
  for (let at = 0; at <= scale.length * 0.97; at += step) ticks.push(`<i style="left:${percent(at / scale.length)}">${at === 0 ? "0" : duration(at)}</i>`);
  return `<div class="axis"><span class="ticks">${ticks.join("")}</span></div>`;
}

/** @param {Row} row @param {Scale} scale */
function line(row, scale) {
  const { begin, end, from, to } = row;
  const verdict = verdictOf(row);
  const took = begin.type === "exec" ? (end ? number(end.totalMs) : to - from) : number(begin.durationMs);
  // The command's own time is the end of the call's.
  const waited = end?.durationMs === undefined ? 0 : Math.max(number(end.totalMs) - number(end.durationMs), 0);
  const bars =
    waited > took * 0.02 && waited > 2
      ? bar(scale, from, from + waited, `waits ${verdict.kind}`) + bar(scale, from + waited, to, verdict.kind)
      : bar(scale, from, to, verdict.kind);
  const cells = `<time>${offset(from - scale.from)}</time><span class="what">${whatOf(row)}</span><span class="track">${bars}</span><span class="took">${took > 0 || begin.type === "exec" ? duration(took) : ""}</span><span class="chip ${verdict.kind}">${escaped(verdict.words)}</span>`;
  const more = detailsOf(row);
  return more === "" ? `<div class="row">${cells}</div>` : `<details class="row"><summary>${cells}</summary>${more}</details>`;
}

/** How a row ended: a color, and few words. @param {Row} row @returns {{ kind: string, words: string }} */
function verdictOf({ begin, end }) {
  const error = (end ?? begin).error;
  if (error) return error.code === "aborted" ? { kind: "stopped", words: "aborted" } : { kind: "bad", words: codeOf(error) };
  if (begin.type !== "exec") return EVENTS.get(begin.type) ?? (begin.found === false ? { kind: "stopped", words: "not found" } : { kind: "plain", words: "" });
  if (!end) return { kind: "stopped", words: "no end seen" };
  if (end.status === "timedOut") return { kind: "late", words: "timed out" };
  if (end.status === "cancelled") return { kind: "stopped", words: "cancelled" };
  if (end.status === "signalled") return { kind: "bad", words: plain(end.signal ?? "signal") };
  return end.exitCode === 0 ? { kind: "good", words: "exit 0" } : { kind: "bad", words: `exit ${number(end.exitCode)}` };
}

const EVENTS = new Map(
  Object.entries({
    lost: { kind: "bad", words: "lost" },
    refused: { kind: "late", words: "refused" },
    timedOut: { kind: "late", words: "timed out" },
    killed: { kind: "late", words: "killed" },
  }),
);

/** @param {Rec} error */
function codeOf({ code }) {
  return plain(code).replace(/^ERR_SANDBOX_/, "").toLowerCase().replaceAll("_", " ");
}

/** What a row is about, in one line. @param {Row} row */
function whatOf({ begin }) {
  const tool = begin.tool === undefined ? "" : `<span class="tool">${escaped(begin.tool)}</span>`;
  switch (begin.type) {
    case "exec":
      if (begin.command !== undefined) return `${tool}<code>${escaped(firstLine(begin.command))}</code>`;
      return `${tool}${escaped(begin.language ?? "")} ${escaped(KINDS.get(begin.kind) ?? begin.kind)} <span class="quiet">${bytes(begin.commandBytes)}</span>`;
    case "file":
      if (begin.operation === "list") return `${tool}list files <span class="quiet">${number(begin.entries)}</span>`;
      return `${tool}${escaped(begin.operation)} <code>${escaped(begin.path)}</code>${begin.bytes ? ` <span class="quiet">${bytes(begin.bytes)}</span>` : ""}`;
    case "started":
      return begin.again ? "started again" : begin.attached ? "sandbox is there" : "sandbox created and started";
    case "failed":
      return `${escaped(begin.what)} failed`;
    case "seeded":
      return `workspace seeded <span class="quiet">${number(begin.files)} ${begin.files === 1 ? "file" : "files"}, ${bytes(begin.bytes)}</span>`;
    case "control":
      return `${escaped(begin.action)}${begin.seconds === undefined ? "" : ` ${number(begin.seconds)} s`}`;
    case "refused":
      return `refused: ${escaped(begin.spent)} of the ${escaped(begin.reason)} are spent`;
    case "lost":
      return "sandbox lost with its files";
    case "deleted":
      return "sandbox deleted";
    default:
      return escaped(begin.type);
  }
}

const KINDS = new Map([["command", "command"], ["code", "code"], ["argv", "program"]]);

/** What a row shows when it is opened. @param {Row} row */
function detailsOf({ begin, end, extra }) {
  if (begin.type !== "exec") return "";
  const output = end?.output === undefined ? "" : end.output === "" ? `<p class="quiet">no output</p>` : `<pre>${escaped(end.output)}${end.outputCut ? cut("output") : ""}</pre>`;
  const long = typeof begin.command === "string" && (begin.command.includes("\n") || begin.command.length > 60 || begin.commandCut);
  const command = long ? `<pre class="command">${escaped(begin.command)}${begin.commandCut ? cut("command") : ""}</pre>` : "";
  /** @type {Rec} */
  const members = { ...begin, ...end };
  // Those of few words: what is usual is not said.
  const facts = Object.entries(members).filter(([name, value]) => !NO_FACTS.has(name) && ![null, undefined, false].includes(value) && !(name === "droppedBytes" && value === 0));
  for (const { type, reason, termination } of extra) facts.push([type, [reason, termination].filter(Boolean).map(plain).join(", ") || "yes"]);
  if (end?.error) facts.push(["error", Object.entries(end.error).map(([name, value]) => (name === "code" ? plain(value) : `${name} ${plain(value)}`)).join(", ")]);
  const list = facts.map(([name, value]) => `<div><dt>${escaped(name)}</dt><dd>${escaped(factOf(name, value))}</dd></div>`).join("");
  return `<div class="more">${command}${output}<dl class="facts">${list}</dl></div>`;
}

/** Members that a row shows by itself, or that are the same in all rows. */
const NO_FACTS = new Set([
  "type", "phase", "at", "instanceId", "sandboxId", "provider", "callId", "command", "commandCut", "output", "outputCut", "error", "tool", "status", "exitCode", "kind",
]);

/** @param {string} name @param {unknown} value */
function factOf(name, value) {
  if (/Ms$/.test(name)) return duration(value);
  return /Bytes$/.test(name) ? bytes(value) : value;
}

/** @param {string} what */
function cut(what) {
  return `<span class="cut">… the ${what} goes on; recordTo() was told to keep this much</span>`;
}

/** @param {Scale} scale @param {number} from @param {number} to @param {string} kind */
function bar(scale, from, to, kind) {
  const left = Math.min(Math.max((from - scale.from) / scale.length, 0), 1);
  const width = Math.min(Math.max((to - from) / scale.length, 0), 1 - left);
  return `<b class="${kind}" style="left:${percent(left)};width:${percent(width)}"></b>`;
}

// ---- values as text ----------------------------------------------------------------------------------

/** @type {Record<string, string>} */
const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** Any value as text of the page: no markup, no control character, no colors of a terminal. @param {unknown} value */
function escaped(value) {
  return plain(value)
    // eslint-disable-next-line no-control-regex
    .replace(/\x1b\[[0-?]*[ -/]*[@-~]/g, "")
    .replaceAll("\r\n", "\n")
    // Controls, and what would turn the direction of the text around it.
    // eslint-disable-next-line no-control-regex
    .replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g, "\ufffd")
    .replace(/[&<>"']/g, (sign) => ENTITIES[sign]);
}

/** As text, whatever a file has held: an object's own toString may be anything. @param {unknown} value */
function plain(value) {
  return typeof value === "object" && value !== null ? JSON.stringify(value) : String(value);
}

/** @param {unknown} value */
function number(value) {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

/** @param {number} part */
function percent(part) {
  return `${(part * 100).toFixed(3)}%`;
}

/** @param {unknown} text */
function firstLine(text) {
  const [first, ...rest] = plain(text).trim().split("\n");
  return rest.length > 0 ? `${first} …` : first;
}

/** @param {unknown} value milliseconds */
function duration(value) {
  const ms = number(value);
  if (ms < 1000) return `${ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0).replace(/\.0$/, "")} s`;
  const [hours, minutes, seconds] = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60, Math.round(ms / 1000) % 60];
  if (hours > 0) return `${hours} h${minutes > 0 ? ` ${minutes} min` : ""}`;
  return `${minutes} min${seconds > 0 ? ` ${seconds} s` : ""}`;
}

/** Since the beginning, as a clock shows it. @param {number} ms */
function offset(ms) {
  const tenths = Math.max(Math.floor(ms / 100), 0);
  const [hours, minutes, seconds] = [Math.floor(tenths / 36_000), Math.floor(tenths / 600) % 60, (tenths % 600) / 10];
  const clock = `${String(minutes).padStart(2, "0")}:${seconds.toFixed(1).padStart(4, "0")}`;
  return hours > 0 ? `${hours}:${clock}` : clock;
}

/** @param {unknown} value */
function bytes(value) {
  const count = number(value);
  if (count < 1024) return `${count} B`;
  return count < 1024 * 1024 ? `${(count / 1024).toFixed(1)} KiB` : `${(count / 1024 / 1024).toFixed(1)} MiB`;
}

/** @param {number} at */
function dateOf(at) {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString().replace("T", " ").replace(/\.\d+Z$/, " UTC");
}
