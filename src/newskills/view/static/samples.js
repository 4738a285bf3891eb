// SPDX-License-Identifier: Apache-2.0
// The samples of a benchmark: filters, search, a list.
import { exported, get } from "./api.js";
import { FILTERS, columns, filtered, place, rowOf, tokensOf, used } from "./columns.js";
import { h, replace } from "./dom.js";
import { visible } from "./text.js";
import { OUTCOME_WORDS, badge, count, link, percent, plural } from "./words.js";

const ROWS = 50;
const AGREEMENT_WORDS = { all: "all seeds right", none: "no seed right", some: "seeds disagree" };
const SORTS = { "": "file order", longest: "longest first", shortest: "shortest first" };

export async function samplesPage(context, parameters) {
  const { run, benchmark } = parameters;
  const at = { run, benchmark };
  context.title(`Samples of ${benchmark} · ${run}`);
  const view = { context, at, parameters: { ...parameters }, made: await columns(run, benchmark, context.fresh), hits: null };
  view.status = h("p", { role: "status", "aria-live": "polite", class: "quiet" });
  view.list = h("ol", { class: "samples", "aria-label": "Samples" });
  view.pager = h("nav", { class: "pager", "aria-label": "Pages of the list" });
  view.filters = h("div", {}, filterForm(view));
  view.choices = choices(view.made);
  await show(view);
  if (parameters.q) look(view);
  context.refresh = async () => {
    view.made = await columns(run, benchmark, true);
    const now = choices(view.made);
    if (now !== view.choices && !view.filters.contains(document.activeElement)) {
      view.choices = now;
      replace(view.filters, filterForm(view));
    }
    await show(view);
  };
  return [
    context.crumbs([["Overview", "#/"], [run, null], [benchmark, link("benchmark", at)], ["samples", null]]),
    h("h1", {}, "Samples ", h("small", {}, `${benchmark} · ${run}`)),
    view.filters, view.status, view.list, view.pager,
  ];
}

// What there is to choose from, which grows while records are indexed.
function choices(made) {
  return JSON.stringify([used(made.outcomes, made.outcome), made.causes, made.subsets, made.finishes, made.files.length]);
}

function filterForm(view) {
  const { made, parameters } = view;
  const choice = (name, words, options) => h("label", {}, h("span", {}, words), h("select", { name, on: { change: (event) => change(view, { [name]: event.target.value }) } },
    h("option", { value: "" }, "any"), options.map(([value, text]) => h("option", { value, selected: parameters[name] === value }, text))));
  const number = (name, words) => h("label", { class: "small" }, h("span", {}, words), h("input", { type: "number", name, min: "0", value: parameters[name] || "", on: { change: (event) => change(view, { [name]: event.target.value }) } }));
  const outcomes = used(made.outcomes, made.outcome).map((name) => [name || "(none)", OUTCOME_WORDS[name]]);
  const causes = used(made.causes, made.cause).filter(Boolean).map((name) => [name, name]);
  const subsets = used(made.subsets, made.subset);
  const finishes = used(made.finishes, made.finish).filter(Boolean).map((name) => [name, name]);
  let wait = 0;
  const search = h("input", {
    type: "search", id: "search", name: "q", value: parameters.q || "", placeholder: exported ? "text in the exported records" : "text in the records", autocomplete: "off",
    on: { input: (event) => { clearTimeout(wait); wait = setTimeout(() => change(view, { q: event.target.value }), 250); } },
  });
  return h("form", { class: "filters", role: "search", "aria-label": "Filter the samples", on: { submit: (event) => event.preventDefault() } },
    h("label", { class: "wide" }, h("span", {}, "search (/)"), search),
    choice("outcome", "outcome", outcomes),
    causes.length ? choice("cause", "cause", causes) : null,
    subsets.length > 1 ? choice("subset", "subset", subsets.slice(0, 500).map((name) => [name || "(none)", name || "(none)"])) : null,
    made.files.length > 1 ? choice("seed", "seed", made.files.map((file, number) => [String(number), file.seed === null ? file.name : `seed ${file.seed}`])) : null,
    made.files.length > 1 ? choice("agreement", "seeds", Object.entries(AGREEMENT_WORDS)) : null,
    finishes.length > 1 ? choice("finish", "ended by", finishes) : null,
    number("min", "tokens from"), number("max", "to"),
    h("label", {}, h("span", {}, "order"), h("select", { name: "sort", on: { change: (event) => change(view, { sort: event.target.value }) } },
      Object.entries(SORTS).map(([value, text]) => h("option", { value, selected: (parameters.sort || "") === value }, text)))),
    h("button", { type: "button", on: { click: () => { location.hash = link("samples", view.at); } } }, "Clear"));
}

function change(view, values) {
  const before = view.parameters.q || "";
  Object.assign(view.parameters, values, { page: "" });
  history.replaceState(null, "", link("samples", view.parameters));
  view.context.moved(view.parameters);
  if ((view.parameters.q || "") !== before) look(view);
  show(view);
}

// Searches on in turns, and shows what has been found so far.
async function look(view) {
  const query = view.parameters.q || "";
  view.search = query;
  view.hits = query ? new Set() : null;
  view.searched = query ? 0 : 1;
  if (!query) return show(view);
  let next = [0, 0];
  while (next && view.search === query && view.context.alive()) {
    let found;
    try {
      found = await get("search", { ...view.at, q: query, file: next[0], offset: next[1] });
    } catch (error) {
      replace(view.status, error.message);
      return undefined;
    }
    if (view.search !== query) return undefined;
    for (const [file, number] of found.hits) if (number < view.made.files[file].rows) view.hits.add(rowOf(view.made, file, number));
    next = found.next;
    view.searched = found.total ? found.done / found.total : 1;
    await show(view);
  }
  return undefined;
}

async function show(view) {
  const { made, parameters, at } = view;
  const began = performance.now();
  const rows = filtered(made, parameters, view.hits);
  view.context.filterTime = performance.now() - began;
  const page = Math.max(0, Math.min(Number(parameters.page) || 0, Math.ceil(rows.length / ROWS) - 1));
  const shown = rows.slice(page * ROWS, (page + 1) * ROWS);
  const turn = (view.turn || 0) + 1;
  view.turn = turn;
  const places = shown.map((row) => place(made, row));
  const briefs = shown.length ? await get("rows", { ...at, rows: places.map((one) => one.join(":")).join(",") }) : [];
  if (view.turn !== turn) return;
  const indexing = made.progress < 1 ? ` Records are being indexed: ${percent(100 * made.progress)}.` : "";
  const searching = view.hits && view.searched < 1 ? ` Searching: ${percent(100 * view.searched)} of the records.` : "";
  replace(view.status, `${plural(rows.length, "sample")} of ${count(made.rows)}.${searching}${indexing}`);
  replace(view.list, shown.map((row, number) => item(view, row, places[number], briefs[number])));
  replace(view.pager, pager(view, page, Math.ceil(rows.length / ROWS)));
}

function item(view, row, [file, number], brief) {
  const { made, parameters, at } = view;
  const tokens = tokensOf(made, row);
  const cause = made.causes[made.cause[row]];
  const subset = made.subsets[made.subset[row]];
  const kept = Object.fromEntries([...FILTERS, "sort"].map((name) => [name, parameters[name]]));
  return h("li", {}, h("a", { class: "row", href: link("sample", { ...at, file, number, ...kept }) },
    h("span", { class: "top" }, badge(made.outcomes[made.outcome[row]]), h("b", {}, visible(brief.id)),
      made.files.length > 1 ? h("span", { class: "tag" }, made.files[file].seed === null ? made.files[file].name : `seed ${made.files[file].seed}`) : null,
      subset ? h("span", { class: "tag" }, subset) : null, cause && cause !== "model" ? h("span", { class: "tag warn" }, cause) : null,
      h("span", { class: "quiet right" }, tokens === null ? "" : `${count(tokens)} tokens`)),
    h("span", { class: "question" }, visible(brief.question || "")),
    brief.problem ? h("span", { class: "quiet" }, brief.problem) : h("span", { class: "answers" },
      brief.answer ? h("span", {}, h("span", { class: "quiet" }, "answer "), h("code", {}, visible(brief.answer))) : h("span", { class: "quiet" }, "no answer"),
      brief.gold ? h("span", {}, h("span", { class: "quiet" }, "right "), h("code", {}, visible(brief.gold))) : null)));
}

function pager(view, page, pages) {
  if (pages < 2) return [];
  const go = (number, text, possible) => possible
    ? h("a", { class: "button plain", href: link("samples", { ...view.parameters, page: number || "" }) }, text)
    : h("span", { class: "button plain off" }, text);
  return [go(page - 1, "Previous", page > 0), h("span", { class: "quiet" }, `page ${count(page + 1)} of ${count(pages)}`), go(page + 1, "Next", page < pages - 1)];
}
