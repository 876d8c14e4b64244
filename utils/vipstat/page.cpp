// SPDX-License-Identifier: BSD-2-Clause
// The page that vipstat --listen gives a browser: a table of processes and VIs with curves of their rates. It asks for
// nothing but /json of the same end point. All text of processes is set as text, never as markup.
#include "utils/vipstat/render.hpp"

namespace viaduct::vipstat {

std::string page() {
    return R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>vipstat</title><style>
:root { color-scheme: light dark; --line: #8886; --curve: #2a7de1; --bad: #d0342c; }
body { font: 14px/1.4 system-ui, sans-serif; margin: 1rem; }
h1 { font-size: 1.2rem; margin: 0 0 .5rem; }
h2 { font-size: 1rem; margin: 1rem 0 .3rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: .15rem .6rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
svg { width: 120px; height: 24px; vertical-align: middle; }
polyline { fill: none; stroke: var(--curve); stroke-width: 1.5; }
.bad { color: var(--bad); }
</style></head><body><h1>vipstat <small id="state"></small></h1><main id="all"></main><script>
"use strict";
const kLooks = 60, past = new Map();
function made(name, text, kind) {
  const one = document.createElement(name);
  if (text !== undefined) one.textContent = text;
  if (kind) one.className = kind;
  return one;
}
function curve(key, value) {
  const list = past.get(key) || [];
  list.push(value === null ? 0 : value);
  if (list.length > kLooks) list.shift();
  past.set(key, list);
  const most = Math.max(1, ...list), space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg"), line = document.createElementNS(space, "polyline");
  svg.setAttribute("viewBox", "0 0 120 24");
  line.setAttribute("points", list.map((y, x) => `${x * 2},${23 - 22 * y / most}`).join(" "));
  svg.append(line);
  return svg;
}
function seconds(s) { return s === null ? "-" : s < 100 ? s.toFixed(1) + " s" : Math.round(s / 60) + " min"; }
function life(p) {
  const old = seconds(p.running_s) + " old";
  return p.ended_s === null ? old : `ended ${seconds(p.ended_s)} ago, was ${old}`;
}
function queue(row, key, q) {
  row.append(made("td", q.outstanding + (q.unfetched ? "+" + q.unfetched : ""), "number"));
  const rate = made("td", q.completions_per_s === null ? "- " : Math.round(q.completions_per_s) + " ", "number");
  rate.append(curve(key, q.completions_per_s));
  const oldest = `#${q.oldest} ${seconds(q.waiting_s)}${q.asleep ? " asleep" : ""}`;
  row.append(rate, made("td", q.outstanding ? oldest : "-"));
}
function show(seen) {
  const all = made("main");
  all.id = "all";
  if (!seen.processes.length) all.append(made("p", "No process of yours has a NIC open."));
  for (const p of seen.processes) {
    all.append(made("h2", `${p.pid} ${p.program}, library ${p.library}, ${life(p)}`));
    const wide = made("div", undefined, "wide"), table = made("table"), head = made("tr");
    for (const name of ["VI", "NIC", "state", "for", "sends", "/s", "oldest", "receives", "/s", "oldest", "peer",
                        "last error"])
      head.append(made("th", name));
    table.append(head);
    for (const v of p.vis) {
      const row = made("tr"), key = p.pid + "/" + v.handle;
      row.append(made("td", v.handle.toString(16)), made("td", v.nic),
                 made("td", v.state, v.state === "error" ? "bad" : ""), made("td", seconds(v.state_s)));
      queue(row, key + "s", v.send);
      queue(row, key + "r", v.recv);
      row.append(made("td", v.peer), made("td", v.last_error || "-", v.last_error ? "bad" : ""));
      table.append(row);
    }
    wide.append(table);
    if (p.vis.length) all.append(wide);
    for (const f of p.failures) all.append(made("div", `${seconds(f.age_s)} ago: ${f.text}`, "bad"));
  }
  document.getElementById("all").replaceWith(all);
}
async function look() {
  const state = document.getElementById("state");
  try {
    show(await (await fetch("json")).json());
    state.textContent = new Date().toLocaleTimeString();
  } catch (error) {
    state.textContent = "no answer: " + error.message;
  }
  setTimeout(look, 1000);
}
look();
</script></body></html>
)html";
}

}  // namespace viaduct::vipstat
