// How the page of a report looks: light and dark, wide and narrow.

export const STYLE = `
:root {
  color-scheme: light dark;
  --ground: #ffffff; --panel: #f5f6f8; --line: #dde0e5; --text: #1b1f26; --quiet: #68707d;
  --good: #2c8a4b; --bad: #c2352b; --late: #b86a00; --stopped: #7a8290; --plain: #4a72b8; --life: #cfdcf2;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #14171c; --panel: #1d2128; --line: #323844; --text: #e6e9ee; --quiet: #98a1af;
    --good: #4fb873; --bad: #ef6a5f; --late: #e09a3a; --stopped: #8d96a5; --plain: #7ba2e6; --life: #2b3a55;
  }
}
* { box-sizing: border-box; }
body, html { margin: 0; background: var(--ground); color: var(--text); }
html { font: 14px/1.45 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
header, main, footer { max-width: 1280px; margin: 0 auto; padding: 0 24px; }
header { padding-top: 28px; }
h1 { font-size: 24px; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 17px; margin: 0 0 2px; overflow-wrap: anywhere; }
small, .quiet { color: var(--quiet); font-weight: 400; font-size: 12px; }
code, pre, time { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 12.5px; }
.when { margin: 2px 0 16px; color: var(--quiet); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(180px, 1fr)); gap: 12px; margin: 0 0 14px; }
.tiles div { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 10px 14px; }
.tiles dt { color: var(--quiet); font-size: 12px; }
.tiles dd { margin: 0; font-size: 22px; font-weight: 600; }
.tiles small { display: block; }
.notes { margin: 0 0 14px; padding: 10px 14px 10px 30px; border-left: 4px solid var(--late); background: var(--panel); border-radius: 4px; overflow-wrap: anywhere; }
section { margin: 22px 0 34px; }
.ids { margin: 0 0 6px; overflow-wrap: anywhere; }
.axis, .row > summary, div.row, .lane {
  display: grid; grid-template-columns: 74px minmax(0, 5fr) minmax(0, 6fr) 82px 112px; gap: 0 12px; align-items: center;
}
.axis { height: 22px; border-bottom: 1px solid var(--line); color: var(--quiet); font-size: 11px; }
.ticks { grid-column: 3; position: relative; height: 100%; }
.ticks i { position: absolute; bottom: 2px; font-style: normal; white-space: nowrap; padding-left: 4px; border-left: 1px solid var(--line); }
.row { border-bottom: 1px solid var(--line); }
.row > summary, div.row { min-height: 30px; padding: 3px 0; }
.row > summary { list-style: none; cursor: pointer; }
.row > summary::-webkit-details-marker { display: none; }
.row > summary .what::before { content: "▸"; color: var(--quiet); display: inline-block; width: 14px; }
.row[open] > summary .what::before { content: "▾"; }
div.row .what { padding-left: 14px; color: var(--quiet); }
div.row .what code { color: var(--text); }
.row > summary:hover, .lane:hover { background: var(--panel); }
time { color: var(--quiet); }
.what { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.what code { unicode-bidi: isolate; }
.tool { border: 1px solid var(--line); border-radius: 4px; padding: 0 5px; margin-right: 7px; font-size: 11.5px; color: var(--quiet); }
.track { position: relative; height: 16px; background: linear-gradient(var(--panel), var(--panel)); border-radius: 3px; overflow: hidden; }
.track b { position: absolute; top: 2px; bottom: 2px; min-width: 3px; border-radius: 2px; background: var(--plain); }
.track b.good { background: var(--good); } .track b.bad { background: var(--bad); } .track b.late { background: var(--late); }
.track b.stopped { background: var(--stopped); } .track b.waits { opacity: 0.35; border-radius: 2px 0 0 2px; }
.track b.life { top: 0; bottom: 0; background: var(--life); }
.took { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.chip { justify-self: start; font-size: 12px; font-weight: 600; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; max-width: 100%; color: var(--quiet); }
.chip.good { color: var(--good); } .chip.bad { color: var(--bad); } .chip.late { color: var(--late); }
.more { margin: 2px 0 12px 86px; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: 10px 12px; margin: 6px 0; max-height: 420px; overflow: auto; white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; }
pre.command { border-left: 4px solid var(--plain); }
.cut { display: block; color: var(--late); font-style: italic; }
.facts { display: flex; flex-wrap: wrap; gap: 4px 22px; margin: 6px 0 0; }
.facts div { display: flex; gap: 6px; font-size: 12px; max-width: 100%; }
.facts dt { color: var(--quiet); }
.facts dd { margin: 0; overflow-wrap: anywhere; }
.lane { color: inherit; text-decoration: none; padding: 4px 0; border-bottom: 1px solid var(--line); }
.lane > span:first-child { grid-column: 1 / 3; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.lane .track { grid-column: 3; }
footer { color: var(--quiet); font-size: 12px; padding-bottom: 40px; }
@media (max-width: 760px) {
  header, main, footer { padding-left: 12px; padding-right: 12px; }
  .axis { display: none; }
  .row > summary, div.row { grid-template-columns: 62px minmax(0, 1fr) auto auto; }
  .row .track { grid-column: 1 / -1; grid-row: 2; height: 8px; }
  .lane { grid-template-columns: minmax(0, 1fr); }
  .lane > span:first-child, .lane .track { grid-column: 1; }
  .more { margin-left: 0; }
}
@media print { .row > summary:hover { background: none; } pre { max-height: none; } }
`;
