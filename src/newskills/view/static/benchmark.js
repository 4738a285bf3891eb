// SPDX-License-Identifier: Apache-2.0
// One benchmark of one run.
import { get } from "./api.js";
import { h, table } from "./dom.js";
import { bars, histogram, lines, parts } from "./plot.js";
import { OUTCOMES, count, interval, link, percent, plural, seconds, share, short, trimmed } from "./words.js";

const CURVES = { pass: "pass@k", majority: "majority@k", average: "average of k" };

export async function benchmarkPage(context, parameters) {
  const { run, benchmark } = parameters;
  const page = await get("benchmark", { run, benchmark });
  context.title(`${benchmark} · ${run}`);
  context.unfinished = page.progress < 1;
  const at = { run, benchmark };
  const { cell } = page;
  const plot = { width: context.width(2) };
  const total = Object.values(page.outcomes).reduce((sum, one) => sum + one, 0);
  return [
    context.crumbs([["Overview", "#/"], [run, null], [benchmark, null]]),
    h("h1", {}, benchmark, " ", h("small", {}, run)),
    page.progress < 1 ? h("p", { class: "note" }, `Records are being indexed: ${percent(100 * page.progress)} so far.`) : null,
    ...page.errors.map((error) => h("p", { class: "note warn" }, error)),
    page.damaged ? h("p", { class: "note warn" }, h("a", { href: link("samples", { ...at, outcome: "damaged" }) }, `${plural(page.damaged, "line")} cannot be read`), " and count for nothing here.") : null,
    h("section", { class: "facts" },
      fact("score", cell.score ? percent(cell.score.value) : "–", cell.score ? `${interval(cell.score)} ${cell.score.mode}` : "no verdicts yet"),
      fact("samples", count(total), cell.seeds > 1 ? `${cell.seeds} files, ${count(page.agreement.problems)} problems` : `${count(page.agreement.problems)} problems`),
      fact("unscored", share(cell.counts.unscored, cell.total), plural(cell.counts.unscored, "sample")),
      fact("no answer", share(cell.counts.no_answer, cell.total), plural(cell.counts.no_answer, "sample")),
      fact("truncated", share(cell.truncated, cell.total), plural(cell.truncated, "sample")),
      fact("tokens", short(cell.output_tokens), page.tokens.mean ? `${trimmed(page.tokens.mean)} a reply` : ""),
      fact("time", seconds(cell.seconds), cell.cost === null ? "" : `$${cell.cost.toFixed(3)}`)),
    h("p", { class: "next" }, h("a", { class: "button", href: link("samples", at) }, "Read the samples"),
      page.outcomes.wrong ? h("a", { class: "button plain", href: link("samples", { ...at, outcome: "wrong" }) }, `the ${count(page.outcomes.wrong)} wrong ones`) : null),
    total ? h("div", { class: "card" }, parts(page.outcomes, OUTCOMES, total), outcomes(page, at, total)) : null,
    h("div", { class: "grid" },
      ...page.curves.map((one) => h("div", { class: "card" }, curve(one, plot))),
      page.tokens.edges.length > 1 ? h("div", { class: "card" }, histogram("Replies by length", page.tokens.edges, page.tokens.counts, { ...plot, x: "tokens" })) : null,
      page.by_length.length ? h("div", { class: "card" }, bars("Right answers by length of the reply (tokens)", page.by_length, plot)) : null,
      page.by_subset.length ? h("div", { class: "card" }, bars("Right answers by subset", page.by_subset.slice(0, 60), plot)) : null,
      page.by_seed.length ? h("div", { class: "card" }, bars("Right answers by seed", page.by_seed, plot)) : null,
      agreement(page.agreement, at, cell.seeds)),
    settings(page),
  ];
}

function fact(name, value, below) {
  return h("div", { class: "fact" }, h("span", { class: "quiet" }, name), h("b", {}, value), h("small", {}, below));
}

function outcomes(page, at, total) {
  const list = [
    ...Object.entries(page.outcomes).filter(([name]) => name).map(([name, number]) => [name.replace("_", " "), number, { outcome: name }]),
    ...Object.entries(page.causes).map(([name, number]) => [`cause: ${name}`, number, { cause: name }]),
    ...Object.entries(page.scans).flatMap(([scanner, labels]) => Object.entries(labels).map(([label, number]) => [`${scanner}: ${label}`, number, { scan: `${scanner}=${label}` }])),
    ...Object.entries(page.finishes).map(([name, number]) => [`finish reason: ${name}`, number, { finish: name }]),
  ];
  return h("ul", { class: "chips" }, list.map(([name, number, filter]) =>
    h("li", {}, h("a", { href: link("samples", { ...at, ...filter }) }, name), ` ${count(number)} `, h("span", { class: "quiet" }, share(number, total)))));
}

function curve(one, plot) {
  const series = Object.entries(one.lines).map(([kind, points]) => ({
    name: CURVES[kind] || kind,
    points: points.map((point) => [point.k, point.value]),
    band: points.filter((point) => point.low !== null).map((point) => [point.k, point.low, point.high]),
  }));
  const most = Math.max(...series.flatMap((line) => line.points.map((point) => point[0])));
  const marks = Array.from({ length: most }, (_, place) => place + 1).filter((k) => most <= 16 || k % Math.ceil(most / 12) === 0 || k === 1);
  return lines(`${one.metric.replaceAll("_", " ")} over k (band: 95 %)`, series, { ...plot, x: "k samples", xTicks: marks, yText: (value) => `${trimmed(value)}` });
}

function agreement(found, at, seeds) {
  if (seeds < 2) return null;
  const row = (name, words, filter) => [h("a", { href: link("samples", { ...at, agreement: filter }) }, words), count(found[name]), share(found[name], found.problems)];
  return h("div", { class: "card" }, h("h2", {}, "Do the seeds agree?"),
    table("Problems by how many samples are right", ["problems that", { text: "count", number: true }, { text: "share", number: true }], [
      row("all", "all samples solve", "all"), row("mixed", "some samples solve", "some"), row("none", "no sample solves", "none"),
    ]),
    h("details", {}, h("summary", {}, "by number of right samples"),
      table("Problems by right samples", ["right samples", { text: "problems", number: true }], found.by_right.map((one) => [`${one.right} of ${one.of}`, count(one.problems)]))));
}

function settings(page) {
  const rows = Object.entries(page.settings).map(([name, value]) => [h("code", {}, name), h("td", { class: "wrapped" }, value)]);
  const data = page.about.data || {};
  const about = [["benchmark version", page.about.version], ["grader", page.about.grader], ["metric", page.about.metric], ["made by", page.about.newskills && `newskills ${page.about.newskills}`],
    ["data", data.sha256 && `sha256 ${data.sha256}`], ["licence of the data", data.licence], ["from", page.about.imported && page.about.imported.format]].filter(([, value]) => value);
  return h("details", { class: "card" }, h("summary", {}, "How it was measured"),
    h("p", { class: "quiet" }, page.folder),
    table("Settings", ["setting", "value"], [...about.map(([name, value]) => [name, h("td", { class: "wrapped" }, String(value))]), ...rows]));
}
