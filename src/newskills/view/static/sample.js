// SPDX-License-Identifier: Apache-2.0
// One sample.
import { exported, get, media } from "./api.js";
import { FILTERS, columns, filtered, place, remembered, rowOf } from "./columns.js";
import { h, replace, save } from "./dom.js";
import { copyButton, faces } from "./faces.js";
import { markdown } from "./markdown.js";
import { hits, rich, visible } from "./text.js";
import { badge, bytes, count, link, plural } from "./words.js";

const TABS = { "": "Sample", request: "Request", record: "Record" };
const SHOWN_APART = ["generation", "reasoning_content", "conversation", "messages", "serialized_output", "tools"];

export async function samplePage(context, parameters) {
  const { run, benchmark, file, number } = parameters;
  const at = { run, benchmark };
  const [page, around] = await Promise.all([get("sample", { run, benchmark, file, number }), neighbours(parameters)]);
  const kept = Object.fromEntries([...FILTERS, "sort"].map((name) => [name, parameters[name]]));
  context.title(`${page.id || "damaged line"} · ${benchmark}`);
  const body = h("div", {});
  const draw = (tab) => {
    const to = (row) => row && link("sample", { ...at, file: row[0], number: row[1], ...kept, tab });
    context.keys = { j: to(around.next), k: to(around.previous), u: link("samples", { ...at, ...kept }), r: () => context.toggleRaw() };
    const turn = h("nav", { class: "pager", "aria-label": "Neighbours" },
      step(to(around.previous), "Previous (k)"), h("span", { class: "quiet" }, around.place), step(to(around.next), "Next (j)"),
      h("button", { type: "button", "aria-pressed": String(context.raw), on: { click: () => context.toggleRaw() } }, context.raw ? "Rendered (r)" : "Raw (r)"));
    if (page.damaged) {
      return replace(body, h("h1", {}, "A line that is no record"), turn, h("p", { class: "note warn" }, page.damaged),
        h("pre", { class: "code" }, visible(page.raw)), source(page));
    }
    const draws = { "": sampleTab, request: requestTab, record: recordTab };
    return replace(body,
      h("h1", {}, badge(page.verdict.outcome), " ", visible(page.id), page.seed === null ? null : h("small", {}, ` seed ${page.seed}`)),
      turn, siblings(page, at, { ...kept, tab }), tabList(tab, choose),
      h("div", { role: "tabpanel", id: "panel", "aria-labelledby": `tab-${tab}`, tabindex: "0" }, draws[tab](page, context, parameters)),
      source(page));
  };
  const choose = (tab) => {
    history.replaceState(null, "", link("sample", { ...parameters, tab }));
    context.moved();
    draw(tab);
    document.getElementById(`tab-${tab}`).focus();
  };
  draw(parameters.tab in TABS ? parameters.tab : "");
  return [context.crumbs([["Overview", "#/"], [run, null], [benchmark, link("benchmark", at)], ["samples", link("samples", { ...at, ...kept })], [page.id || "damaged line", null]]), body];
}

// One tab is in the order of focus; the arrow keys lead to the others.
function tabList(chosen, choose) {
  const names = Object.keys(TABS);
  const move = (event) => {
    const at = names.indexOf(chosen);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1 + names.length, Home: 0, End: names.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    choose(names[next % names.length]);
  };
  return h("div", { role: "tablist", class: "tabs", "aria-label": "Parts of this page", on: { keydown: move } }, names.map((name) =>
    h("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-selected": String(name === chosen), "aria-controls": "panel", tabindex: name === chosen ? "0" : "-1", on: { click: () => choose(name) } }, TABS[name])));
}

function sampleTab(page, context, parameters) {
  const { verdict } = page;
  const at = { run: parameters.run, benchmark: parameters.benchmark };
  return [
    why(verdict, context, page.face.some((block) => block.kind === "judgements")),
    page.scans.length ? scans(page.scans) : null,
    faces(page.face, context),
    section("Prompt", promptNote(page), page.prompt.messages.length ? page.prompt.messages.map((one) => message(one, { raw: true }, parameters.q)) : question(page)),
    page.media.length ? section("Images and sound", "", page.media.map((one, item) => medium(one, item, page, at))) : null,
    page.reasoning ? h("details", { class: "card" }, h("summary", {}, `Reasoning (${plural(page.reasoning.length, "character")})`), markdown(page.reasoning, { raw: context.raw, marks: hits(page.reasoning, parameters.q) })) : null,
    page.turns.length ? section("Reply, in turns", "", page.turns.map((one) => message(one, context, parameters.q)))
      : section("Reply", length(page), page.reply === "" ? h("p", { class: "quiet" }, "The reply has no text.") : [copyButton(page.reply), markdown(page.reply, { raw: context.raw, marks: [...marks(verdict), ...hits(page.reply, parameters.q)].sort((a, b) => a.start - b.start) })]),
  ];
}

// What scanners report of the sample, with the quotes that stand in it.
function scans(lines) {
  return section("Scanners", "", h("dl", { class: "scans" }, lines.map((line) => [
    h("dt", {}, h("span", { class: "tag warn" }, visible(`${line.scanner}: ${line.label === null ? "(invalid)" : line.label}`)), " ", h("span", { class: "quiet" }, visible(line.looks_for))),
    h("dd", {}, line.invalid ? h("p", {}, visible(line.invalid)) : line.quotes.map((quote) => h("blockquote", {}, visible(quote))))])));
}

function promptNote(page) {
  return page.prompt.exact ? page.prompt.note : `Not certain: ${page.prompt.note}`;
}

// What went to the model first. No file holds requests: each part says where it is from.
function requestTab(page) {
  const { messages } = page.prompt;
  const settings = Object.entries(page.settings);
  const text = JSON.stringify({ ...page.settings, messages, ...(page.tools.length ? { tools: page.tools } : {}) }, null, 2);
  const notes = [promptNote(page), messages.length && page.settings.endpoint_type === "text" ? "They were sent as one text." : "",
    page.settings.solver ? `The solver ${visible(String(page.settings.solver))} may have made requests of its own.` : "", page.turns.length ? "Later requests of this sample also carried the turns before them." : ""];
  return [
    section("Messages", notes.filter(Boolean).join(" "), messages.length ? messages.map((one) => message(one, { raw: true })) : question(page)),
    section("Settings", settings.length ? "As the run recorded them for all requests of this file." : "The run recorded no settings.",
      settings.length ? h("dl", { class: "pairs" }, settings.map(([name, value]) => [h("dt", {}, visible(name)), h("dd", {}, shown(value))])) : null),
    section("Tools", page.tools.length ? "The record holds them." : "The record holds no tools.", page.tools.length ? h("pre", { class: "code" }, visible(JSON.stringify(page.tools, null, 1))) : null),
    messages.length ? h("details", { class: "card" }, h("summary", {}, "Messages, settings and tools as JSON"), copyButton(text), h("pre", { class: "code" }, visible(text))) : null,
  ];
}

function recordTab(page) {
  const text = JSON.stringify(page.record, null, 2);
  const told = h("span", { class: "quiet", role: "status" });
  const download = async () => {
    try {
      const [record] = await get("records", { run: page.run, benchmark: page.benchmark, rows: `${page.file}:${page.number}` });
      save(`${page.benchmark}-${page.id}.json`, [record, "\n"]);
    } catch (error) {
      replace(told, error.message);
    }
  };
  const left = exported ? "Of long texts the first 20,000 characters were exported" : "Of long texts the first 20,000 characters are shown; the download has all";
  return [h("section", { class: "card" }, h("h2", {}, "Raw record"), h("p", { class: "quiet" }, `${left}.${page.media.length ? " Images and sound are left out here." : ""}`),
    h("p", {}, h("button", { type: "button", id: "download", on: { click: download } }, "Download (JSON)"), " ", told),
    h("div", { class: "copied" }, copyButton(text), h("pre", { class: "code" }, visible(text)))),
  h("details", { class: "card" }, h("summary", {}, "The other fields, one by one"), fields(Object.fromEntries(Object.entries(page.record).filter(([name]) => !SHOWN_APART.includes(name)))))];
}

async function neighbours({ run, benchmark, file, number, ...filters }) {
  const made = await columns(run, benchmark, false).catch(() => null);
  if (!made) return { place: "" };
  const rows = remembered({ run, benchmark }, filters) || filtered(made, filters, []);
  const at = rows.indexOf(rowOf(made, Number(file), Number(number)));
  if (at < 0) return { place: "" };
  return {
    place: `${count(at + 1)} of ${count(rows.length)}`,
    previous: at > 0 ? place(made, rows[at - 1]) : null,
    next: at < rows.length - 1 ? place(made, rows[at + 1]) : null,
  };
}

function step(href, text) {
  return href ? h("a", { class: "button plain", href }, text) : h("span", { class: "button plain off" }, text);
}

function section(title, note, children) {
  return h("section", { class: "card" }, h("h2", {}, title), note ? h("p", { class: "quiet" }, note) : null, children);
}

function length(page) {
  const tokens = page.tokens === null || page.tokens === undefined ? "" : plural(page.tokens, "token");
  return [tokens, page.finish ? `finish reason: ${page.finish}` : ""].filter(Boolean).join(", ");
}

export function marks(verdict) {
  const found = [];
  if (verdict.answer_span) found.push({ start: verdict.answer_span[0], end: verdict.answer_span[1], kind: verdict.outcome === "correct" ? "taken right" : "taken", title: "read as the answer" });
  if (verdict.gold_span) found.push({ start: verdict.gold_span[0], end: verdict.gold_span[1], kind: "gold", title: "the expected answer" });
  return found.sort((a, b) => a.start - b.start);
}

// `judged`: the judge's reply is shown apart.
export function why(verdict, context, judged = false) {
  const cell = (name, value, kind) => h("div", { class: `answer ${kind}` }, h("span", { class: "quiet" }, name),
    rich(asMath(value), { raw: context.raw }));
  const told = [];
  if (verdict.cause) told.push(`Cause: ${verdict.cause}.`);
  if (verdict.taken_from) told.push(`The answer was taken from ${verdict.taken_from}.`);
  if (verdict.rule) told.push(`How it was compared: ${verdict.rule}.`);
  if (verdict.has_answer && verdict.answer === null) told.push("No answer was found in the reply.");
  if (verdict.answer && !verdict.answer_span) told.push("The answer does not stand in the reply in these very characters.");
  return h("section", { class: "card why" }, h("h2", {}, "Why the grader decided so"),
    verdict.answer || verdict.gold ? h("div", { class: "two" }, verdict.answer ? cell("answer in the reply", verdict.answer, verdict.outcome === "correct" ? "right" : "wrong") : null,
      verdict.gold ? cell(verdict.gold_field ? `expected answer (${verdict.gold_field})` : "expected answer", verdict.gold, "gold") : null) : null,
    told.length ? h("p", {}, told.join(" ")) : null,
    h("p", { class: "quiet" }, [verdict.grader ? `grader ${verdict.grader}` : "no grader is recorded", verdict.why ? `, reason: ${visible(verdict.why)}` : ""]),
    verdict.error ? h("p", { class: "note warn" }, visible(verdict.error)) : null,
    verdict.judgement && !judged ? h("details", { open: true }, h("summary", {}, "Reply of the judge"), markdown(verdict.judgement, { raw: context.raw })) : null);
}

// An answer without dollar signs that is plainly a formula is set as one.
function asMath(text) {
  return /\\[a-zA-Z]+|[_^]\{?/.test(text) && !/\$|\n/.test(text) && text.length < 500 && !/[A-Za-z]{4,}\s+[A-Za-z]{3,}/.test(text) ? `$${text}$` : text;
}

function question(page) {
  const names = ["problem", "question", "instruction", "input", "prompt"];
  const name = names.find((one) => typeof page.record[one] === "string");
  return name ? [h("p", { class: "quiet" }, `The field ${name} of the record:`), rich(page.record[name], { raw: true })] : h("p", { class: "quiet" }, "The record has no text of the prompt.");
}

function message(one, context, query = "") {
  const role = String(one.role || one.type || "message");
  const calls = Array.isArray(one.tool_calls) ? one.tool_calls : one.type === "function_call" ? [{ function: one }] : [];
  const output = role === "tool" || one.type === "function_call_output";
  const content = one.content ?? one.output ?? "";
  return h("div", { class: `message ${["user", "system", "assistant", "tool"].includes(role) ? role : "tool"}` },
    h("span", { class: "role" }, output && one.name ? `${role}: ${visible(String(one.name))}` : role),
    one.reasoning_content ? h("details", {}, h("summary", {}, "reasoning"), markdown(String(one.reasoning_content), { raw: context.raw })) : null,
    output ? h("pre", { class: "code" }, visible(texts(content).join("\n"))) : texts(content).map((text) => markdown(text, { raw: context.raw, marks: hits(text, query) })),
    calls.map((call) => h("div", { class: "call" }, h("span", { class: "role" }, `calls ${visible(String((call.function || call).name || ""))}`),
      h("pre", { class: "code" }, visible(argumentsOf(call.function || call))))));
}

function texts(content) {
  if (typeof content === "string") return content ? [content] : [];
  if (Array.isArray(content)) return content.map((part) => typeof part === "string" ? part : part.text ?? part.output ?? JSON.stringify(part));
  return content === null ? [] : [JSON.stringify(content, null, 1)];
}

function argumentsOf(call) {
  const given = call.arguments;
  try {
    const read = typeof given === "string" ? JSON.parse(given) : given;
    const values = Object.values(read || {});
    if (values.length === 1 && typeof values[0] === "string") return values[0];
    return JSON.stringify(read, null, 1);
  } catch {
    return String(given);
  }
}

function medium(one, item, page, at) {
  if (exported && !one.file) return h("p", { class: "quiet" }, `[${one.kind}: ${one.source}] was not exported`);
  const src = media({ ...at, file: page.file, number: page.number }, exported ? one : { number: item });
  const failed = h("p", { class: "quiet" }, `${one.kind} ${visible(one.source)}`);
  const broken = (event) => event.target.replaceWith(h("p", { class: "note warn" }, `This ${one.kind} is not shown: ${visible(one.source)} is missing, of another kind, or outside of the folders given to ns view.`));
  const node = one.kind === "image" ? h("img", { src, alt: `image ${item + 1} of the prompt`, loading: "lazy", on: { error: broken } })
    : h("audio", { src, controls: true, on: { error: broken } });
  return h("figure", { class: "media" }, node, failed);
}

function siblings(page, at, kept) {
  if (page.siblings.length < 2) return null;
  return h("p", { class: "siblings" }, h("span", { class: "quiet" }, "the same problem: "), page.siblings.map((one) =>
    h("a", { class: one.file === page.file ? "here" : null, "aria-current": one.file === page.file ? "true" : null, href: link("sample", { ...at, file: one.file, number: one.number, ...kept }) },
      badge(one.outcome), ` ${one.seed === null ? "greedy" : `seed ${one.seed}`}`)));
}

function fields(values) {
  return h("dl", { class: "fields" }, Object.entries(values).map(([name, value]) => [h("dt", {}, visible(name)), h("dd", {}, shown(value))]));
}

function shown(value) {
  return visible(typeof value === "string" ? value : JSON.stringify(value));
}

function source(page) {
  return h("p", { class: "quiet source" }, `${page.name}, record ${count(Number(page.number) + 1)}, ${bytes(page.bytes)}`);
}
