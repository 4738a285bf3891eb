// SPDX-License-Identifier: Apache-2.0
// The samples of a benchmark: filters, search, a list.
import { exported, get } from "./api.js";
import { FILTERS, columns, filtered, place, remember, reports, rowOf, tokensOf, used } from "./columns.js";
import { h, replace, save } from "./dom.js";
import { visible } from "./text.js";
import { OUTCOME_WORDS, badge, count, link, percent, plural } from "./words.js";

const ROWS = 50;
// Of one download: records, those of one answer of the server, and characters, which a browser holds in memory.
const MOST_RECORDS = 10_000;
const RECORDS_EACH = 200;
const MOST_CHARACTERS = 256e6;
const AGREEMENT_WORDS = { all: "all seeds right", none: "no seed right", some: "seeds disagree" };
// What is asked of the server in turns, by the name that it has in the address.
const LOOKS = { q: { answer: "search", doing: "Searching" }, where: { answer: "filter", doing: "Filtering" } };
const SORTS = { "": "file order", longest: "longest first", shortest: "shortest first" };

export async function samplesPage(context, parameters) {
  const { run, benchmark } = parameters;
  const at = { run, benchmark };
  context.title(`Samples of ${benchmark} · ${run}`);
  const view = { context, at, parameters: { ...parameters }, made: await columns(run, benchmark, context.fresh), looks: {} };
  view.status = h("p", { role: "status", "aria-live": "polite", class: "quiet" });
  view.told = h("span", { class: "quiet", role: "status" });
  view.download = h("button", { type: "button", id: "download", on: { click: () => download(view) } });
  view.list = h("ol", { class: "samples", "aria-label": "Samples" });
  view.pager = h("nav", { class: "pager", "aria-label": "Pages of the list" });
  view.names = exported ? [] : await get("filter_names", at);
  view.filters = h("div", {}, filterForm(view));
  view.choices = choices(view.made);
  for (const name of Object.keys(LOOKS)) if (parameters[name]) look(view, name);
  await show(view);
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
    view.filters, h("div", { class: "pager" }, view.status, view.download, view.told), view.list, view.pager,
  ];
}

// What there is to choose from, which grows while records are indexed.
function choices(made) {
  return JSON.stringify([used(made.outcomes, made.outcome), made.causes, made.subsets, made.finishes, made.files.length, made.scans.map((scan) => [scan.name, scan.labels])]);
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
    exported ? null : filterLine(view),
    choice("outcome", "outcome", outcomes),
    causes.length ? choice("cause", "cause", causes) : null,
    subsets.length > 1 ? choice("subset", "subset", subsets.slice(0, 500).map((name) => [name || "(none)", name || "(none)"])) : null,
    made.files.length > 1 ? choice("seed", "seed", made.files.map((file, number) => [String(number), file.seed === null ? file.name : `seed ${file.seed}`])) : null,
    made.files.length > 1 ? choice("agreement", "seeds", Object.entries(AGREEMENT_WORDS)) : null,
    finishes.length > 1 ? choice("finish", "finish reason", finishes) : null,
    made.scans.length ? choice("scan", "scanner", scanChoices(made)) : null,
    number("min", "tokens from"), number("max", "to"),
    h("label", {}, h("span", {}, "order"), h("select", { name: "sort", on: { change: (event) => change(view, { sort: event.target.value }) } },
      Object.entries(SORTS).map(([value, text]) => h("option", { value, selected: (parameters.sort || "") === value }, text)))),
    h("button", { type: "button", on: { click: () => { location.hash = link("samples", view.at); } } }, "Clear"));
}

// A filter as it is typed for `ns samples --where`, with names and values to choose from.
function filterLine(view) {
  const options = h("datalist", { id: "where-options" });
  const offer = (text) => replace(options, completions(view, text).map((value) => h("option", { value })));
  offer("");
  return h("label", { class: "line" }, h("span", {}, "filter (Enter)"), h("input", {
    type: "search", id: "where", name: "where", value: view.parameters.where || "", placeholder: "outcome = wrong and tokens > 2000", autocomplete: "off", list: "where-options",
    on: { input: (event) => offer(event.target.value), change: (event) => change(view, { where: event.target.value.trim() }) },
  }), options);
}

// Whole texts that begin with what was typed, and end with a name, a sign or a value that fits there.
function completions(view, text) {
  const start = text.search(/[^\s()=!<>~,]*$/);
  const before = text.slice(0, start);
  const word = text.slice(start).toLowerCase();
  const condition = before.match(/(\w+)\s*(?:=|!=|in\s*\((?:[^()]*,)?|not in\s*\((?:[^()]*,)?)\s*$/);
  const known = view.names.map((column) => column.name);
  let words = known;
  if (condition) words = valuesOf(view, condition[1]);
  else if (known.includes(before.trim().split(/\s+/).pop())) words = ["=", "!=", "~", "!~", "<", "<=", ">", ">=", "in (", "not in ("];
  else if (/[<>~]\s*$/.test(before)) words = [];
  else if (before.trim() && !/(\band|\bor|\bnot|\()\s*$/.test(before)) words = ["and", "or"];
  return words.filter((one) => one.toLowerCase().startsWith(word)).map((one) => before + one);
}

function valuesOf(view, name) {
  const { made } = view;
  const tables = { cause: made.causes, subset: made.subsets, finish_reason: made.finishes };
  const column = view.names.find((one) => one.name === name);
  const values = (tables[name] || (column ? column.values : [])).filter(Boolean);
  return [...values.map((value) => (/^[\w.-]+$/.test(value) ? value : JSON.stringify(value))), "none"];
}

// All labels of all scanners, with how many samples have them.
function scanChoices(made) {
  return made.scans.flatMap((scan) => {
    const counts = new Uint32Array(256);
    for (const code of scan.codes) counts[code] += 1;
    return scan.labels.map((label, code) => [`${scan.name}=${label || "(none)"}`, `${scan.name}: ${label || "not scanned"} (${count(counts[code])})`, counts[code]]);
  }).filter(([, , found]) => found);
}

function change(view, values) {
  const before = { ...view.parameters };
  Object.assign(view.parameters, values, { page: "" });
  history.replaceState(null, "", link("samples", view.parameters));
  view.context.moved(view.parameters);
  for (const name of Object.keys(LOOKS)) if ((view.parameters[name] || "") !== (before[name] || "")) look(view, name);
  show(view);
}

// Asks in turns, and shows what there is so far. A filter that cannot be read is told below its line.
async function look(view, name) {
  const text = view.parameters[name] || "";
  const mine = { rows: text ? new Set() : null, done: text ? 0 : 1, error: "" };
  view.looks[name] = mine;
  let next = text ? [0, 0] : null;
  while (next && view.looks[name] === mine && view.context.alive()) {
    let answer;
    try {
      answer = await get(LOOKS[name].answer, { ...view.at, q: text, file: next[0], offset: next[1] });
    } catch (error) {
      Object.assign(mine, { rows: null, done: 1, error: error.message });
      break;
    }
    if (view.looks[name] !== mine) return undefined;
    for (const [file, number] of answer.hits) if (number < view.made.files[file].rows) mine.rows.add(rowOf(view.made, file, number));
    next = answer.next;
    mine.done = answer.total ? answer.done / answer.total : 1;
    if (next) await show(view);
  }
  return show(view);
}

async function show(view) {
  const { made, parameters, at } = view;
  const began = performance.now();
  const looks = Object.entries(view.looks);
  const rows = filtered(made, parameters, looks.map(([, one]) => one.rows).filter(Boolean));
  remember(at, parameters, rows);
  view.rows = rows;
  view.download.disabled = !rows.length || looks.some(([, one]) => one.done < 1);
  replace(view.download, rows.length > MOST_RECORDS ? `Download the first ${count(MOST_RECORDS)}` : "Download these (JSON Lines)");
  view.context.filterTime = performance.now() - began;
  const page = Math.max(0, Math.min(Number(parameters.page) || 0, Math.ceil(rows.length / ROWS) - 1));
  const shown = rows.slice(page * ROWS, (page + 1) * ROWS);
  const turn = (view.turn || 0) + 1;
  view.turn = turn;
  const places = shown.map((row) => place(made, row));
  const briefs = shown.length ? await get("rows", { ...at, rows: places.map((one) => one.join(":")).join(",") }) : [];
  if (view.turn !== turn) return;
  view.context.unfinished = made.progress < 1;
  const indexing = made.progress < 1 ? ` Records are being indexed: ${percent(100 * made.progress)}.` : "";
  const looking = looks.filter(([, one]) => one.done < 1).map(([name, one]) => ` ${LOOKS[name].doing}: ${percent(100 * one.done)} of the records.`).join("");
  const errors = looks.map(([, one]) => one.error).filter(Boolean);
  replace(view.status, `${plural(rows.length, "sample")} of ${count(made.rows)}.${looking}${indexing}`, errors.map((error) => h("span", { class: "note warn" }, error)));
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
      reports(made, row).map(([scanner, label]) => h("span", { class: "tag warn" }, visible(`${scanner}: ${label}`))),
      h("span", { class: "quiet right" }, tokens === null ? "" : `${count(tokens)} tokens`)),
    h("span", { class: "question" }, visible(brief.question || "")),
    brief.problem ? h("span", { class: "quiet" }, brief.problem) : h("span", { class: "answers" },
      brief.answer ? h("span", {}, h("span", { class: "quiet" }, "answer "), h("code", {}, visible(brief.answer))) : h("span", { class: "quiet" }, "no answer"),
      brief.gold ? h("span", {}, h("span", { class: "quiet" }, "expected "), h("code", {}, visible(brief.gold))) : null)));
}

// The records of all rows that pass the filters, in their order.
async function download(view) {
  const places = view.rows.slice(0, MOST_RECORDS).map((row) => place(view.made, row).join(":"));
  const lines = [];
  let [done, size, missing] = [0, 0, 0];
  view.download.disabled = true;
  try {
    while (done < places.length && size < MOST_CHARACTERS && view.context.alive()) {
      const records = await get("records", { ...view.at, rows: places.slice(done, done + RECORDS_EACH).join(",") });
      for (const record of records) {
        if (record === null) missing += 1;
        else lines.push(record, "\n");
        size += record === null ? 0 : record.length;
      }
      done += records.length;
      replace(view.told, `Reading: ${percent(100 * done / places.length)}`);
    }
    if (!view.context.alive()) return;
    save(`${view.at.run}-${view.at.benchmark}.jsonl`, lines);
    const left = done < places.length ? `, the first ${count(done)} of ${count(places.length)}, as the rest is too large` : "";
    const gap = exported ? "not exported, or no records" : "no records";
    replace(view.told, `${plural(done - missing, "record")} downloaded${left}${missing ? `; ${count(missing)} left out: ${gap}` : ""}.`);
  } catch (error) {
    replace(view.told, error.message);
  }
  view.download.disabled = false;
}

function pager(view, page, pages) {
  if (pages < 2) return [];
  const go = (number, text, possible) => possible
    ? h("a", { class: "button plain", href: link("samples", { ...view.parameters, page: number || "" }) }, text)
    : h("span", { class: "button plain off" }, text);
  return [go(page - 1, "Previous", page > 0), h("span", { class: "quiet" }, `page ${count(page + 1)} of ${count(pages)}`), go(page + 1, "Next", page < pages - 1)];
}
