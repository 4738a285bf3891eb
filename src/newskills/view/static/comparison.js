// SPDX-License-Identifier: Apache-2.0
// Two runs on the same problems.
import { get } from "./api.js";
import { h, replace, table } from "./dom.js";
import { allRuns } from "./runs.js";
import { changed, difference, rich, visible } from "./text.js";
import { why } from "./sample.js";
import { badge, count, link, percent, plural, signed } from "./words.js";

const ROWS = 25;
const SAME = { verdict: ["right in both", "wrong in both", null], share: ["always right in both", "never right in both", "right as often"], score: [null, null, "same score"] };
const seedOf = (seed) => seed === null ? "greedy" : `seed ${seed}`;
const STORY_WORDS = { truncation: "truncated", tool: "tool failed", instrument: "instrument failed", format: "format or extraction", no_answer: "no answer", content: "another answer" };

export async function comparisonPage(context, parameters) {
  context.title("Compare");
  const all = await allRuns();
  const benchmarks = all.benchmarks.filter((name) => all.runs.filter((run) => name in run.scores).length > 1);
  const crumbs = context.crumbs([["Overview", "#/"], ["compare", null]]);
  if (!benchmarks.length) {
    return [crumbs, h("h1", {}, "Compare"), h("div", { class: "card" }, h("p", {}, "No benchmark has results of two runs here."),
      h("p", {}, "Give the folders of both: ns view results/a results/b"), others(all))];
  }
  const benchmark = benchmarks.includes(parameters.benchmark) ? parameters.benchmark : benchmarks[0];
  const having = all.runs.filter((run) => benchmark in run.scores).map((run) => run.id);
  const first = having.includes(parameters.first) ? parameters.first : having[0];
  const second = having.includes(parameters.second) ? parameters.second : having.find((one) => one !== first);
  const at = { first, second, benchmark };
  const picker = pickers(parameters, benchmarks, having, at);
  const head = [crumbs, h("h1", {}, `Compare on ${benchmark}`), picker, against(all, benchmark, having, at)];
  const page = await get("comparison", at);
  const words = page.words;
  const filter = { direction: parameters.direction || "", story: parameters.story || "" };
  const flips = page.flips.map((flip, number) => ({ ...flip, number })).filter((flip) => (!filter.direction || flip.direction === filter.direction) && (!filter.story || flip.story === filter.story));
  const open = parameters.flip === undefined ? null : page.flips[Number(parameters.flip)];
  if (open) {
    const places = flips.map((flip) => flip.number);
    const here = places.indexOf(Number(parameters.flip));
    const to = (place) => places[place] === undefined ? null : link("compare", { ...at, ...filter, flip: places[place] });
    context.keys = { j: to(here + 1), k: here > 0 ? to(here - 1) : null, u: link("compare", { ...at, ...filter }), r: () => context.toggleRaw() };
    return [crumbs, ...await side(context, at, words, open, { previous: here > 0 ? to(here - 1) : null, next: to(here + 1), up: link("compare", { ...at, ...filter }), place: `${here + 1} of ${flips.length}` })];
  }
  const list = h("ol", { class: "samples", "aria-label": "Flips" });
  const from = Number(parameters.page) || 0;
  await fill(list, at, filter, words, flips.slice(from * ROWS, (from + 1) * ROWS));
  return [...head, sentence(page), page.progress < 1 ? h("p", { class: "note" }, `Records are being indexed: ${percent(100 * page.progress)}.`) : null,
    h("div", { class: "grid" }, counts(page, at), stories(page, at, filter)), settings(page),
    h("section", {}, h("h2", {}, plural(flips.length, page.change === "verdict" ? "changed problem" : "change"), filter.direction ? `, ${words[filter.direction]}` : "", filter.story ? `, ${STORY_WORDS[filter.story]}` : "",
      filter.direction || filter.story ? [" ", h("a", { class: "button plain", href: link("compare", at) }, "all")] : null),
    page.gains + page.losses > page.flips.length ? h("p", { class: "note" }, `The ${count(page.flips.length)} largest are listed.`) : null,
    list, pager(at, filter, from, Math.ceil(flips.length / ROWS)))];
}

function pickers(parameters, benchmarks, having, at) {
  const go = (values) => { location.hash = link("compare", { ...at, ...values }); };
  const choice = (name, words, options, value) => h("label", {}, h("span", {}, words), h("select", { name, on: { change: (event) => go({ [name]: event.target.value }) } },
    options.map((one) => h("option", { value: one, selected: one === value }, one))));
  return h("form", { class: "filters", "aria-label": "What to compare", on: { submit: (event) => event.preventDefault() } },
    choice("benchmark", "benchmark", benchmarks, at.benchmark), choice("first", "from", having, at.first), choice("second", "to", having, at.second),
    h("button", { type: "button", on: { click: () => go({ first: at.second, second: at.first }) } }, "Swap"));
}

function against(all, benchmark, having, at) {
  if (having.length < 3 || having.length > 40) return null;
  return h("ul", { class: "chips" }, having.filter((one) => one !== at.first).map((one) => {
    const score = all.runs.find((run) => run.id === one).scores[benchmark];
    return h("li", {}, h("a", { href: link("compare", { ...at, second: one }), "aria-current": one === at.second ? "true" : null }, one), " ", percent(score));
  }));
}

function sentence(page) {
  const found = page.difference;
  if (!found) return h("p", { class: "note" }, `There are too few problems with a verdict in both (${count(page.common - page.unscored)}).`);
  const [value, low, high] = [found.value, found.low, found.high];
  const decided = found.p_value < 0.05;
  const verdict = decided ? `${page.second} is ${value > 0 ? "better" : "worse"} by ${Math.abs(value).toFixed(1)} points`
    : `No significant difference between ${page.first} and ${page.second}: ${signed(value)} points`;
  const bounds = decided && value < 0 ? [-high, -low] : [low, high];
  const p = found.p_value < 0.0001 ? "p < 0.0001" : `p = ${Number(found.p_value.toPrecision(2))}`;
  return h("p", { class: "sentence" }, h("b", {}, verdict), ` [${bounds[0].toFixed(1)}, ${bounds[1].toFixed(1)}], ${p}, on ${plural(found.n, "paired problem")}; ${count(page.unscored)} unscored; `,
    found.smallest_significant > 100 ? "too few problems for any difference to be significant. " : `minimum significant difference: ${found.smallest_significant.toFixed(1)} points. `,
    page.only_first || page.only_second ? `Left out, since only one of them has them: ${count(page.only_first)} and ${count(page.only_second)} problems. ` : "",
    h("span", { class: "quiet" }, page.score ? `(${page.score}, in points of 100; ${found.method}, 95 % interval)` : `(${found.method}, 95 % interval)`));
}

function counts(page, at) {
  const words = page.words;
  const [allRight, allWrong, same] = SAME[page.change];
  const row = (name, number, direction) => [direction ? h("a", { href: link("compare", { ...at, direction }) }, name) : name, count(number)];
  return h("div", { class: "card" }, h("h2", {}, "What changed"), table("Problems by outcome", ["problems", { text: "count", number: true }], [
    row(words.gain, page.gains, "gain"), row(words.loss, page.losses, "loss"),
    ...[[allRight, page.same_right], [allWrong, page.same_wrong], [same, page.same]].filter(([name]) => name).map(([name, number]) => row(name, number)),
    row("without a verdict in one", page.unscored),
  ]));
}

function stories(page, at, filter) {
  if (!page.stories.length) return null;
  return h("div", { class: "card" }, h("h2", {}, "Why"), table("Changed problems by failure reason", ["", "failure reason", { text: "problems", number: true }],
    page.stories.map((one) => [h("span", { class: `badge ${one.direction === "gain" ? "correct" : "wrong"}` }, page.words[one.direction]),
      h("td", { class: "wrapped" }, h("a", { href: link("compare", { ...at, direction: one.direction, story: one.story }), "aria-current": filter.story === one.story && filter.direction === one.direction ? "true" : null }, STORY_WORDS[one.story]), h("div", { class: "quiet" }, one.text)), count(one.flips)])));
}

function settings(page) {
  if (!page.settings.length) return h("p", { class: "quiet" }, "Both were run with the same settings, as far as they are recorded.");
  return h("details", { class: "card", open: page.settings.length < 4 }, h("summary", {}, page.settings.length === 1 ? "1 setting differs" : `${count(page.settings.length)} settings differ`),
    table("Settings that differ", ["setting", page.first, page.second], page.settings.map((one) => [h("code", {}, one.setting), h("td", { class: "wrapped" }, one.first || "unset"), h("td", { class: "wrapped" }, one.second || "unset")])));
}

async function fill(list, at, filter, words, flips) {
  if (!flips.length) return;
  const rows = (places) => places.map((one) => one.join(":")).join(",");
  const [left, right] = await Promise.all([
    get("rows", { run: at.first, benchmark: at.benchmark, rows: rows(flips.map((flip) => flip.samples.slice(0, 2))) }),
    get("rows", { run: at.second, benchmark: at.benchmark, rows: rows(flips.map((flip) => flip.samples.slice(2))) }),
  ]);
  replace(list, flips.map((flip, place) => h("li", {}, h("a", { class: "row", href: link("compare", { ...at, ...filter, flip: flip.number }) },
    h("span", { class: "top" }, h("span", { class: `badge ${flip.direction === "gain" ? "correct" : "wrong"}` }, words[flip.direction]), h("b", {}, visible(left[place].id)), h("span", { class: "tag" }, STORY_WORDS[flip.story]),
      flip.change === words[flip.direction] ? null : h("span", { class: "quiet right" }, flip.change)),
    h("span", { class: "question" }, visible(left[place].question || "")),
    h("span", { class: "answers" }, h("code", {}, visible(left[place].answer || "no answer")), " → ", h("code", {}, visible(right[place].answer || "no answer")),
      left[place].gold ? h("span", {}, h("span", { class: "quiet" }, " expected "), h("code", {}, visible(left[place].gold))) : null)))));
}

function pager(at, filter, page, pages) {
  if (pages < 2) return null;
  const go = (number, text, possible) => possible ? h("a", { class: "button plain", href: link("compare", { ...at, ...filter, page: number || "" }) }, text) : h("span", { class: "button plain off" }, text);
  return h("nav", { class: "pager", "aria-label": "Pages of the list" }, go(page - 1, "Previous", page > 0), h("span", { class: "quiet" }, `page ${page + 1} of ${pages}`), go(page + 1, "Next", page < pages - 1));
}

// A flip, side by side.
async function side(context, at, words, flip, around) {
  const [a, b, c, d] = flip.samples;
  const [left, right] = await Promise.all([
    get("sample", { run: at.first, benchmark: at.benchmark, file: a, number: b }), get("sample", { run: at.second, benchmark: at.benchmark, file: c, number: d }),
  ]);
  const full = (page) => [page.reasoning, page.reply].filter(Boolean).join("\n\n");
  const diff = left.damaged || right.damaged ? null : difference(full(left), full(right));
  const column = (page, run, kind, seed) => h("div", { class: "card" },
    h("h2", {}, page.verdict ? badge(page.verdict.outcome) : null, " ", h("a", { href: link("sample", { run, benchmark: at.benchmark, file: page.file, number: page.number }) }, run),
      flip.seeds.some((one) => one !== null) ? h("small", {}, ` ${seedOf(seed)}`) : null),
    page.damaged ? [h("p", { class: "note warn" }, page.damaged), h("pre", { class: "code" }, visible(page.raw))]
      : diff && !context.whole ? changed(diff, kind) : rich(full(page), { raw: context.raw }));
  return [
    h("h1", {}, words[flip.direction], " ", h("small", {}, visible(left.id || ""), flip.change === words[flip.direction] ? "" : ` ${flip.change}`)),
    h("nav", { class: "pager", "aria-label": "Neighbours" }, h("a", { class: "button plain", href: around.up }, "All changes (u)"),
      around.previous ? h("a", { class: "button plain", href: around.previous }, "Previous (k)") : h("span", { class: "button plain off" }, "Previous (k)"), h("span", { class: "quiet" }, around.place),
      around.next ? h("a", { class: "button plain", href: around.next }, "Next (j)") : h("span", { class: "button plain off" }, "Next (j)"),
      h("button", { type: "button", "aria-pressed": String(Boolean(context.whole)), on: { click: () => context.toggleWhole() } }, context.whole ? "Show differences" : "Rendered")),
    h("p", { class: "tagline" }, h("span", { class: "tag" }, STORY_WORDS[flip.story])),
    left.record ? h("details", { class: "card", open: true }, h("summary", {}, "Prompt"), left.prompt.messages.length ? left.prompt.messages.map((one) => rich(typeof one.content === "string" ? one.content : JSON.stringify(one.content), { raw: true })) : rich(String(left.record.problem || left.record.question || ""), { raw: true })) : null,
    h("div", { class: "two sides" }, column(left, at.first, "gone", flip.seeds[0]), column(right, at.second, "come", flip.seeds[1])),
    h("div", { class: "two sides" }, left.verdict ? why(left.verdict, context) : h("div", {}), right.verdict ? why(right.verdict, context) : h("div", {})),
  ];
}

function others(all) {
  const known = all.runs.map((run) => `${run.id}: ${Object.keys(run.scores).join(", ")}`);
  return known.length ? h("ul", {}, known.slice(0, 20).map((one) => h("li", {}, one))) : null;
}
