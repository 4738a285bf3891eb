// SPDX-License-Identifier: Apache-2.0
// Load tests of endpoints: latencies and throughput over the load.
import { get } from "./api.js";
import { h, table } from "./dom.js";
import { notes } from "./overview.js";
import { lines } from "./plot.js";
import { visible } from "./text.js";
import { count, percent, seconds, trimmed } from "./words.js";

const LATENCIES = [["ttft", "Time to first token"], ["tpot", "Time per output token"], ["itl", "Inter-token latency"], ["e2el", "End-to-end latency"]];
const SHARES = ["p50", "p90", "p99"];
const LOADS = { concurrency: "requests in flight", rate: "requests per second" };

export async function loadTestsPage(context) {
  context.title("Load tests");
  const page = await get("load_tests", {});
  const crumbs = context.crumbs([["Overview", "#/"], ["load tests", null]]);
  if (!page.tests.length) return [crumbs, h("h1", {}, "Load tests"), h("div", { class: "card" }, h("p", {}, "There is no load test in these folders: ns load_test writes load_test.json."), notes(page.notes))];
  return [crumbs, h("h1", {}, "Load tests"), notes(page.notes), ...page.tests.flatMap((test) => loadTest(test, context))];
}

function loadTest(test, context) {
  const limits = Object.entries(test.limits).map(([name, value]) => `${name} ≤ ${trimmed(value)} ms`).join(", ");
  const kind = test.levels.length ? test.levels[0].kind : "rate";
  const words = test.levels.flatMap((level) => level.notes.map((note) => `${level.name}: ${note}`));
  return [
    h("h2", {}, visible(test.id)),
    h("p", { class: "quiet" }, `${visible(test.model)} at ${visible(test.address)}`),
    limits ? h("p", {}, test.highest === null ? `No level has ${percent(100 * test.share)} of requests within ${limits}.` : `Highest ${kind} with ${percent(100 * test.share)} of requests within ${limits}: `, test.highest === null ? null : h("b", {}, test.highest ? trimmed(test.highest) : "inf")) : null,
    h("div", { class: "card" }, levels(test)),
    notes(words),
    h("div", { class: "grid" }, plots(test, kind, context)),
  ];
}

function levels(test) {
  const number = (text) => ({ text, number: true });
  const head = ["load", number("requests/s"), number("tokens/s"), ...LATENCIES.map(([name]) => number(name)), number("good"), number("failed"), number("in flight"), number("time"), number("client CPU")];
  return table(`Levels; latencies in ms: ${SHARES.join(" / ")}`, head, test.levels.map((level) => [
    level.name, trimmed(level.request_throughput), trimmed(level.output_throughput),
    ...LATENCIES.map(([name]) => spread(level[`${name}_ms`])),
    level.good_share === null ? "–" : percent(100 * level.good_share),
    h("td", { class: "number", title: Object.entries(level.errors).map(([kind, times]) => `${kind} ${times}`).join(", ") }, count(level.failed)),
    count(level.max_in_flight), seconds(level.seconds), level.client_cpu === null ? "–" : percent(100 * level.client_cpu),
  ]));
}

function spread(figures) {
  return figures ? SHARES.map((name) => trimmed(figures[name])).join(" / ") : "–";
}

// All at once has no place on the axis.
function plots(test, kind, context) {
  const drawn = test.levels.filter((level) => level.value > 0);
  if (drawn.length < 2) return null;
  const points = (value) => drawn.map((level) => [level.value, value(level)]).filter(([, found]) => found !== null && found !== undefined);
  const plot = (title, series) => h("div", { class: "card" }, lines(title, series.filter((one) => one.points.length), { width: context.width(2), height: 200, x: LOADS[kind], low: 0 }));
  const throughput = [{ name: "output tokens per second", points: points((level) => level.output_throughput) }];
  const requests = [{ name: "answered", points: points((level) => level.request_throughput) }];
  if (Object.keys(test.limits).length) requests.push({ name: "within the limits", points: points((level) => level.goodput) });
  return [
    ...LATENCIES.map(([name, title]) => plot(`${title}, ms`, SHARES.map((share) => ({ name: share, points: points((level) => level[`${name}_ms`] && level[`${name}_ms`][share]) })))),
    plot("Output tokens per second", throughput), plot("Requests per second", requests),
  ];
}
