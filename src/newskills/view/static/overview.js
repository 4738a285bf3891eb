// SPDX-License-Identifier: Apache-2.0
// Benchmarks × runs.
import { get } from "./api.js";
import { h, table } from "./dom.js";
import { matrixPart } from "./matrix.js";
import { parts } from "./plot.js";
import { OUTCOMES, count, interval, link, percent, plural, seconds, share, short } from "./words.js";

const FEW = 2;

// Up to two runs have a table for each benchmark; more are a matrix.
export async function overviewPage(context, parameters) {
  const all = await get("matrix", {});
  context.title("Overview");
  if (all.runs.length > FEW) {
    return [
      h("h1", {}, "Overview"),
      h("p", { class: "quiet" }, all.folders.join(", ")),
      matrixPart(context, all, parameters),
      all.trainings.length ? trainings(all.trainings) : null,
      loadTests(all.load_tests),
      notes(all.notes),
    ];
  }
  const page = await get("overview", {});
  const { runs } = page;
  if (!runs.length && !page.trainings.length && !page.load_tests.length) return [h("h1", {}, "Nothing to see yet"), empty(page)];
  return [
    h("h1", {}, "Overview"),
    h("p", { class: "quiet" }, page.folders.join(", ")),
    runs.length ? compareBox(runs) : null,
    ...page.benchmarks.map((name) => section(name, runs.filter((run) => run.benchmarks[name]))),
    differences(page),
    page.trainings.length ? trainings(page.trainings) : null,
    loadTests(page.load_tests),
    notes(page.notes),
  ];
}

// Everything about one benchmark, or about one run.
export async function scoresPage(context, parameters) {
  const { run, benchmark } = parameters;
  const page = await get("overview", run ? { run } : { benchmark });
  const title = run || benchmark;
  context.title(title);
  return [
    context.crumbs([["Overview", "#/"], [title, null]]),
    h("h1", {}, title, h("small", {}, run ? ` ${plural(page.benchmarks.length, "benchmark")}` : ` ${plural(page.runs.length, "run")}`)),
    benchmark && page.runs.length > 1 ? compareBox(page.runs) : null,
    ...page.benchmarks.map((name) => section(name, page.runs.filter((one) => one.benchmarks[name]))),
    differences(page),
  ];
}

function empty(page) {
  return h("div", { class: "card" },
    h("p", {}, `In ${page.folders.join(", ")} there are neither results nor trainings.`),
    h("p", {}, "Results are output*.jsonl files, in eval-results/<benchmark>/ or directly in a folder; a training has metrics.jsonl. Name the folder that you gave as --output_dir."),
    h("p", {}, "This page notices when something appears."), notes(page.notes));
}

function section(name, runs) {
  const cells = runs.map((run) => run.benchmarks[name]);
  const cost = cells.some((cell) => cell.cost !== null);
  const head = ["run", { text: "score", number: true }, { text: "95 % interval", number: true }, "outcomes", { text: "unscored", number: true }, { text: "no answer", number: true },
    { text: "truncated", number: true }, { text: "samples", number: true }, { text: "tokens out", number: true }, ...(cost ? [{ text: "cost", number: true }] : []), { text: "time", number: true }, "state"];
  const rows = runs.map((run) => {
    const cell = run.benchmarks[name];
    const { counts, total } = cell;
    const at = { run: run.id, benchmark: name };
    return [
      h("td", { class: "name" }, h("a", { href: link("benchmark", at) }, run.id), cell.imported ? h("span", { class: "tag" }, `from ${cell.imported}`) : null),
      h("td", { class: "number" }, cell.withheld ? h("span", { title: "Too many samples are unscored." }, "withheld") : h("b", {}, cell.score ? percent(cell.score.value) : "–")),
      h("td", { class: "number quiet", title: cell.score ? `${cell.score.metric}, ${cell.score.mode}` : null }, cell.withheld ? "" : interval(cell.score)),
      h("td", {}, total ? parts(counts, OUTCOMES, total) : "–"),
      lost(counts.unscored, total, link("samples", { ...at, outcome: "unscored" })),
      lost(counts.no_answer, total, link("samples", { ...at, outcome: "no_answer" })),
      lost(cell.truncated, total, link("samples", { ...at, cause: "truncation" })),
      h("td", { class: "number" }, h("a", { href: link("samples", at) }, count(total || cell.done)), cell.seeds > 1 ? h("span", { class: "quiet" }, ` in ${cell.seeds} files`) : null),
      h("td", { class: "number" }, short(cell.output_tokens)),
      ...(cost ? [h("td", { class: "number" }, cell.cost === null ? "–" : `$${cell.cost.toFixed(cell.cost < 10 ? 3 : 2)}`)] : []),
      h("td", { class: "number" }, seconds(cell.seconds)),
      h("td", {}, state(cell)),
    ];
  });
  const best = cells[0] && cells[0].score ? ` (${cells[0].score.metric.replaceAll("_", " ")}, ${cells[0].score.mode})` : "";
  return h("section", { class: "card" }, h("h2", {}, name), table(`Scores of ${name}${best}`, head, rows, { class: "scores" }));
}

function lost(part, total, href) {
  return h("td", { class: "number" }, part ? h("a", { href }, share(part, total)) : h("span", { class: "quiet" }, total ? "0" : "–"));
}

function state(cell) {
  if (cell.newer) return h("span", { class: "tag warn", title: "What this version does not know is not shown." }, `written by newskills ${cell.newer}`);
  if (cell.status === "running") return h("span", { class: "tag live" }, `running, ${count(cell.done)} of ${count(cell.rows)}`);
  if (cell.status === "done") return h("span", { class: "quiet" }, "done");
  return h("span", { class: "tag warn" }, cell.status || "not finished");
}

function compareBox(runs) {
  const pairs = [];
  const names = Object.keys(Object.assign({}, ...runs.map((run) => run.benchmarks)));
  for (const name of names) {
    const having = runs.filter((run) => run.benchmarks[name]);
    if (having.length > 1) pairs.push([name, having]);
  }
  if (!pairs.length) return null;
  const [name, having] = pairs[0];
  return h("p", { class: "next" }, h("a", { class: "button", href: link("compare", { benchmark: name, first: having[0].id, second: having[having.length - 1].id }) }, `Compare ${having[0].id} with ${having[having.length - 1].id}`),
    h("span", { class: "quiet" }, ` or any of ${plural(having.length, "run")}: which problems changed, and why`));
}

function differences(page) {
  if (!page.differences.length) return null;
  const runs = page.runs.map((run) => run.id).slice(0, 12);
  const groups = new Map();
  for (const one of page.differences) {
    const key = JSON.stringify([one.setting, runs.map((run) => one.values[run] ?? null)]);
    if (!groups.has(key)) groups.set(key, { ...one, benchmarks: [] });
    groups.get(key).benchmarks.push(one.benchmark);
  }
  const rows = [...groups.values()].slice(0, 200).map((one) => [
    one.benchmarks.length < 4 ? one.benchmarks.join(", ") : h("span", { title: one.benchmarks.join("\n") }, plural(one.benchmarks.length, "benchmark")), h("code", {}, one.setting), ...runs.map((run) => h("td", { class: "wrapped" }, one.values[run] === undefined ? "–" : one.values[run] || "unset")),
  ]);
  return h("section", { class: "card" }, h("h2", {}, "What differs between the runs"),
    table("Settings that are not the same in all runs of a benchmark", ["benchmark", "setting", ...runs], rows));
}

function trainings(names) {
  return h("section", { class: "card" }, h("h2", {}, "Trainings"),
    h("ul", { class: "plain" }, names.map((name) => h("li", {}, h("a", { href: link("training", { ids: name }) }, name)))),
    names.length > 1 ? h("p", {}, h("a", { href: link("training", { ids: names.slice(0, 8).join("|") }) }, "all of them in one plot")) : null);
}

function loadTests(names) {
  return names.length ? h("section", { class: "card" }, h("h2", {}, "Load tests"), h("p", {}, h("a", { href: "#/load" }, names.join(", ")))) : null;
}

export function notes(list) {
  return list && list.length ? h("ul", { class: "notes" }, list.slice(0, 50).map((note) => h("li", {}, note))) : null;
}
