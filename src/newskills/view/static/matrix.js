// SPDX-License-Identifier: Apache-2.0
// Runs × benchmarks, one screen high: only the rows in sight are elements of the page.
import { exported, get } from "./api.js";
import { h, put, replace } from "./dom.js";
import { lines } from "./plot.js";
import { breakable, count, day, link, middle, percent, plural, share, signed, trimmed } from "./words.js";

const ROW = 46;
const MORE = 8;
const CURVES = 4;
const SERIES = 8;
const TURN = 250;
// What the name of a run tells of its place on an axis: the rest names the curve.
const PLACES = { step: /(^|[/_.-])(?:global_?)?(?:step|checkpoint|ckpt|iter)[_=-]?\d+/gi, size: /(^|[^a-z\d.])\d+(?:\.\d+)?\s?[bm](?![a-z\d])/gi };
const AXES = { step: "training step", began: "date", size: "billions of weights" };
// Where the reader was, which a new look at the folders must not change.
let scroll = { left: 0, top: 0 };

export function matrixPart(context, page, parameters) {
  const view = { context, page, parameters, differences: new Map(), asked: new Set(), rows: [], drawn: "" };
  view.status = h("p", { role: "status", "aria-live": "polite", class: "quiet" });
  view.head = h("div", { class: "mrow mhead", role: "row" });
  view.body = h("div", { class: "mbody", role: "rowgroup" });
  view.box = h("div", { class: "matrix", tabindex: "0", role: "table", "aria-label": "Scores of runs on benchmarks", on: { scroll: () => { scroll = { left: view.box.scrollLeft, top: view.box.scrollTop }; draw(view); } } },
    h("div", { role: "rowgroup", class: "mtop" }, view.head), view.body);
  view.curves = h("div", {});
  const parts = [filters(view), view.status, view.box, h("p", { class: "quiet" }, legend(view)), view.curves];
  arrange(view);
  context.refresh = async () => {
    view.page = await get("matrix", {});
    arrange(view);
  };
  requestAnimationFrame(() => {
    view.box.scrollLeft = scroll.left;
    view.box.scrollTop = scroll.top;
    draw(view);
  });
  return h("section", { class: "card" }, parts);
}

function legend(view) {
  const test = exported ? "In an exported folder differences have no test of significance." : "▲ and ▼ mark significant differences (paired by problem; p < 0.05 after Holm's correction over the benchmarks of a run).";
  return [view.parameters.baseline ? test : "Choose ☆ beside a run to see how the others differ from it.", " The bar below a score shows the shares of unscored (grey) and truncated (amber) samples."];
}

// What is chosen stands in the address, so that a link shows the same.
function change(view, changed) {
  const next = { ...view.parameters, ...changed };
  history.replaceState(null, "", link("", next));
  view.context.moved();
  view.parameters = next;
  view.drawn = "";
  arrange(view);
}

function filters(view) {
  const { page, parameters } = view;
  const text = (name, words, placeholder, id) => h("label", { class: "wide" }, h("span", {}, words), h("input", { type: "search", name, id, value: parameters[name] || "", placeholder, autocomplete: "off", on: { input: (event) => change(view, { [name]: event.target.value }) } }));
  const dates = page.runs.filter((run) => run.began !== null).map((run) => day(run.began));
  const groups = [["model", "model"], ...(page.runs.some((run) => run.step !== null) ? [["step", "training step"]] : []), ...page.settings.map((name) => [`=${name}`, name])];
  return h("form", { class: "filters", role: "search", "aria-label": "Filter the runs", on: { submit: (event) => event.preventDefault() } },
    text("q", "runs", "name, model, setting=value", "search"), text("columns", "benchmarks", "parts of names, with commas"),
    dates.length ? h("label", {}, h("span", {}, "since"), h("input", { type: "date", name: "since", value: parameters.since || "", min: dates.reduce((a, b) => (a < b ? a : b)), on: { change: (event) => change(view, { since: event.target.value }) } })) : null,
    h("label", {}, h("span", {}, "group by"), h("select", { name: "group", on: { change: (event) => change(view, { group: event.target.value }) } },
      h("option", { value: "" }, "nothing"), groups.map(([value, words]) => h("option", { value, selected: parameters.group === value }, words)))),
    h("label", {}, h("span", {}, "also show"), h("select", { name: "also", on: { change: (event) => change(view, { also: event.target.value }) } },
      h("option", { value: "" }, "nothing"), [["began", "date"], ...groups].map(([value, words]) => h("option", { value, selected: parameters.also === value }, words)))));
}

function fact(view, run, name) {
  if (!name) return "";
  if (name === "began") return run.began === null ? "" : day(run.began);
  if (name.startsWith("=")) return run.settings[view.page.settings.indexOf(name.slice(1))] || "";
  return run[name] === null ? "" : String(run[name]);
}

function matches(view, run) {
  const { q, since } = view.parameters;
  if (since && (run.began === null || day(run.began) < since)) return false;
  const words = (q || "").toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return true;
  const text = [run.id, `model=${run.model}`, ...view.page.settings.map((name, place) => `${name}=${run.settings[place]}`)].join("\n").toLowerCase();
  return words.every((word) => text.includes(word));
}

function columnsOf(view) {
  const wanted = (view.parameters.columns || "").toLowerCase().split(",").map((part) => part.trim()).filter(Boolean);
  const places = view.page.benchmarks.map((_, place) => place);
  return wanted.length ? places.filter((place) => wanted.some((part) => view.page.benchmarks[place].name.toLowerCase().includes(part))) : places;
}

const byPlace = (run) => {
  if (!run.byPlace) run.byPlace = new Map(run.cells.map((cell) => [cell[0], cell]));
  return run.byPlace;
};

function sortValue(view, run, sort) {
  if (sort === "name") return run.id;
  if (sort === "also") return run[view.parameters.also] ?? fact(view, run, view.parameters.also);
  if (sort.startsWith("b:")) {
    const cell = byPlace(run).get(view.page.benchmarks.findIndex((one) => one.name === sort.slice(2)));
    return cell && cell[1] !== null ? cell[1] : -Infinity;
  }
  return run.began ?? Infinity;
}

function compareValues(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b || 0;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

// Rows in their order: filtered, sorted, grouped; then everything is drawn.
function arrange(view) {
  const { page, parameters } = view;
  const sort = parameters.sort || "";
  const runs = page.runs.filter((run) => matches(view, run));
  const turn = parameters.order === "down" ? -1 : 1;
  if (sort) runs.sort((a, b) => turn * compareValues(sortValue(view, a, sort), sortValue(view, b, sort)));
  view.rows = runs.map((run) => ({ run }));
  if (parameters.group) {
    const groups = new Map();
    for (const run of runs) {
      const name = fact(view, run, parameters.group) || "unset";
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(run);
    }
    view.rows = [...groups].flatMap(([group, members]) => [{ group, members }, ...members.map((run) => ({ run }))]);
  }
  view.columns = columnsOf(view);
  view.context.unfinished = Boolean(page.pending);
  const pending = page.pending ? ` Reading: ${plural(page.pending, "result")} to go.` : "";
  replace(view.status, `${plural(runs.length, "run")}${runs.length < page.runs.length ? ` of ${count(page.runs.length)}` : ""} on ${plural(view.columns.length, "benchmark")}.${pending}`);
  view.box.style.setProperty("--columns", String(view.columns.length));
  view.box.style.setProperty("--also", parameters.also ? "8rem" : "0rem");
  replace(view.head, head(view));
  view.body.style.height = `${view.rows.length * ROW}px`;
  view.drawn = "";
  draw(view);
  replace(view.curves, curves(view, runs));
}

function head(view) {
  const { sort, order } = view.parameters;
  const button = (name, words, title, first) => h("button", {
    type: "button", class: "sort", title, "aria-label": `Sort by ${title}`,
    on: { click: () => change(view, { sort: name, order: sort === name ? (order === "down" ? "up" : "down") : first }) },
  }, words, sort === name ? (order === "down" ? " ↓" : " ↑") : "");
  const sorted = (name) => (sort === name ? (order === "down" ? "descending" : "ascending") : null);
  return [
    h("div", { class: "mname", role: "columnheader", "aria-sort": sorted("name") }, button("name", "run", "name", "up")),
    view.parameters.also ? h("div", { class: "malso", role: "columnheader", "aria-sort": sorted("also") }, button("also", middle(view.parameters.also.replace("=", ""), 14), view.parameters.also.replace("=", ""), "up")) : null,
    view.columns.map((place) => {
      const { name, metric } = view.page.benchmarks[place];
      return h("div", { class: "mcell", role: "columnheader", "aria-sort": sorted(`b:${name}`) }, button(`b:${name}`, breakable(middle(name, 22)), name, "down"),
        h("a", { class: "more", href: link("scores", { benchmark: name }), title: `All figures of ${name}${metric ? ` (${metric})` : ""}` }, "all figures"));
    }),
  ];
}

function draw(view) {
  const first = Math.max(0, Math.floor(view.box.scrollTop / ROW) - MORE);
  const last = Math.min(view.rows.length, Math.ceil((view.box.scrollTop + (view.box.clientHeight || 600)) / ROW) + MORE);
  const key = `${first}-${last}`;
  if (key === view.drawn) return;
  view.drawn = key;
  const shown = view.rows.slice(first, last);
  replace(view.body, shown.map((row, number) => (row.run ? runRow(view, row.run, first + number) : groupRow(view, row, first + number))));
  if (view.parameters.baseline && !exported) ask(view, shown.filter((row) => row.run).map((row) => row.run.id));
}

function placed(node, number) {
  node.style.top = `${number * ROW}px`;
  return node;
}

function runRow(view, run, number) {
  const pinned = view.parameters.baseline === run.id;
  const pin = h("button", { type: "button", class: "pin", title: pinned ? "No baseline" : "Show how the others differ from this run", "aria-pressed": String(pinned), on: { click: () => pinRun(view, pinned ? "" : run.id) } }, pinned ? "★" : "☆");
  return placed(h("div", { class: pinned ? "mrow pinned" : "mrow", role: "row" },
    h("div", { class: "mname", role: "rowheader" }, pin, h("a", { href: link("scores", { run: run.id }), title: `${run.id}${run.model ? `\n${run.model}` : ""}` }, breakable(middle(run.id, view.context.narrow() ? 26 : 56)))),
    view.parameters.also ? h("div", { class: "malso", role: "cell", title: fact(view, run, view.parameters.also) }, middle(fact(view, run, view.parameters.also), 16)) : null,
    view.columns.map((place) => scoreCell(view, run, byPlace(run).get(place)))), number);
}

function groupRow(view, row, number) {
  const means = view.columns.map((place) => {
    const values = row.members.map((run) => byPlace(run).get(place)).filter((cell) => cell && cell[1] !== null).map((cell) => cell[1]);
    const mean = values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
    return h("div", { class: "mcell", role: "cell", title: values.length ? `mean of ${plural(values.length, "run")}` : null }, mean === null ? "" : h("i", {}, mean.toFixed(1)));
  });
  return placed(h("div", { class: "mrow mgroup", role: "row" }, h("div", { class: "mname", role: "rowheader", title: row.group }, `${middle(row.group, 22)} (${row.members.length})`),
    view.parameters.also ? h("div", { class: "malso", role: "cell" }) : null, means), number);
}

function scoreCell(view, run, cell) {
  if (!cell) return h("div", { class: "mcell quiet", role: "cell" }, "–");
  const [place, value, low, high, total, unscored, truncated, status] = cell;
  const { name } = view.page.benchmarks[place];
  const lost = [["unscored", unscored], ["truncated", truncated]].filter(([, part]) => part && total);
  const about = [`${name}, ${run.id}`, value === null ? status : `${percent(value)}${low === null ? "" : `, 95 % interval ${low.toFixed(1)}–${high.toFixed(1)}`}`, plural(total, "sample"), ...lost.map(([words, part]) => `${words} ${share(part, total)}`), status === "done" ? "" : status];
  const marks = lost.length ? h("span", { class: "marks" }, lost.map(([words, part]) => {
    const mark = h("span", { class: `mark-${words}` });
    mark.style.width = `${Math.max(4, 100 * part / total)}%`;
    return mark;
  })) : null;
  const score = value === null ? h("span", { class: "quiet" }, status === "withheld" ? "withheld" : "–") : [h("b", {}, value.toFixed(1)), low === null ? null : h("small", {}, ` ±${((high - low) / 2).toFixed(1)}`)];
  return h("div", { class: status === "done" ? "mcell" : "mcell unfinished", role: "cell", title: about.filter(Boolean).join("\n") },
    h("a", { class: "score", href: link("benchmark", { run: run.id, benchmark: name }), "aria-label": about.filter(Boolean).join(", ") }, score), difference(view, run, name, value), marks);
}

// Beside the baseline: tested where the samples were paired, else the plain difference of two scores.
function difference(view, run, name, value) {
  const { baseline } = view.parameters;
  if (!baseline || baseline === run.id || value === null) return null;
  const to = link("compare", { benchmark: name, first: baseline, second: run.id });
  const tested = (view.differences.get(run.id) || {})[name];
  if (tested) {
    const [points, p, problems, verdict] = tested;
    const mark = { better: " ▲", worse: " ▼" }[verdict] || "";
    return h("a", { class: `diff ${verdict.split(" ")[0]}`, href: to, title: `${signed(points)} points on ${plural(problems, "problem")}: ${verdict} (p = ${trimmed(p)}, corrected)` }, `${signed(points)}${mark}`);
  }
  const place = view.page.benchmarks.findIndex((one) => one.name === name);
  const other = view.page.runs.find((one) => one.id === baseline);
  const before = other && byPlace(other).get(place);
  return before && before[1] !== null ? h("a", { class: "diff", href: to, title: "not tested yet" }, `${signed(value - before[1])} …`) : null;
}

function pinRun(view, run) {
  view.differences = new Map();
  view.asked = new Set();
  change(view, { baseline: run });
}

async function ask(view, runs) {
  const { baseline } = view.parameters;
  const missing = runs.filter((run) => run !== baseline && !view.asked.has(run));
  if (!missing.length) return;
  for (const run of missing) view.asked.add(run);
  let pending = true;
  while (pending && view.context.alive() && view.parameters.baseline === baseline) {
    let found;
    try {
      found = await get("differences", { baseline, runs: missing.join("|") });
    } catch (error) {
      replace(view.status, error.message);
      return;
    }
    if (view.parameters.baseline !== baseline) return;
    for (const [run, tests] of Object.entries(found.runs)) view.differences.set(run, tests);
    pending = found.pending;
    view.drawn = "";
    draw(view);
    if (pending) await new Promise((resolve) => { setTimeout(resolve, TURN); });
  }
}

// Scores against the step, the date or the size of models, where runs tell them.
function curves(view, runs) {
  const axes = Object.keys(AXES).filter((axis) => new Set(runs.map((run) => run[axis]).filter((value) => value !== null)).size > 2);
  if (!axes.length) return null;
  const axis = axes.includes(view.parameters.x) ? view.parameters.x : axes[0];
  const choice = h("select", { name: "x", on: { change: (event) => change(view, { x: event.target.value }) } }, axes.map((name) => h("option", { value: name, selected: name === axis }, AXES[name])));
  const plots = view.columns.slice(0, CURVES).map((place) => curve(view, runs, axis, place));
  const opened = (event) => {
    if (event.target.open !== (view.parameters.curves === "open")) change(view, { curves: event.target.open ? "open" : "" });
  };
  const box = h("details", { class: "curves", open: view.parameters.curves === "open", on: { toggle: opened } }, h("summary", {}, "Scores over steps, dates or sizes"));
  if (!box.open) return box;
  put(box, [h("p", {}, h("label", {}, "against ", choice),
    view.columns.length > CURVES ? h("span", { class: "quiet" }, ` The first ${CURVES} benchmarks of the matrix: choose others above.`) : null), h("div", { class: "grid" }, plots)]);
  return box;
}

function curve(view, runs, axis, place) {
  const series = new Map();
  for (const run of runs) {
    const cell = byPlace(run).get(place);
    if (run[axis] === null || !cell || cell[1] === null) continue;
    const group = view.parameters.group ? fact(view, run, view.parameters.group) : PLACES[axis] ? run.id.replace(PLACES[axis], "") : run.model;
    if (!series.has(group)) series.set(group, []);
    series.get(group).push([run[axis], ...cell.slice(1, 4)]);
  }
  const drawn = [...series].slice(0, SERIES).map(([name, points]) => {
    points.sort((a, b) => a[0] - b[0]);
    return { name: series.size > 1 ? name || "(no name)" : "score", points: points.map(([x, y]) => [x, y]), band: points.filter((point) => point[2] !== null).map(([x, , low, high]) => [x, low, high]) };
  });
  const options = { width: view.context.width(2), x: AXES[axis], ...(axis === "began" ? { xText: day } : {}) };
  return h("div", { class: "card" }, lines(view.page.benchmarks[place].name, drawn, options),
    series.size > SERIES ? h("p", { class: "quiet" }, `${SERIES} of ${count(series.size)} curves: filter the runs above for others.`) : null);
}
