// SPDX-License-Identifier: Apache-2.0
// Trainings over their steps.
import { get } from "./api.js";
import { h, replace, table } from "./dom.js";
import { lines } from "./plot.js";
import { allRuns } from "./runs.js";
import { changed, difference, rich, visible } from "./text.js";
import { count, lastPart, link, plural, trimmed } from "./words.js";

export async function trainingPage(context, parameters) {
  context.title("Training");
  const all = await allRuns();
  const crumbs = context.crumbs([["Overview", "#/"], ["training", null]]);
  if (!all.trainings.length) {
    return [crumbs, h("h1", {}, "Training"), h("div", { class: "card" }, h("p", {}, "There is no training in these folders: a training is a folder with metrics.jsonl, as ns sft, ns grpo and ns quickstart write it."))];
  }
  const chosen = (parameters.ids ? parameters.ids.split("|") : all.trainings.slice(0, 6)).filter((name) => all.trainings.includes(name));
  const page = await get("training", { ids: (chosen.length ? chosen : all.trainings.slice(0, 6)).join("|") });
  const { trainings } = page;
  const short = names(trainings.map((one) => one.id));
  return [
    crumbs, h("h1", {}, trainings.length === 1 ? trainings[0].id : "Training"),
    picker(all.trainings, chosen),
    ...curves(page, trainings, short, context),
    ...trainings.map((one) => rollouts(one, parameters, context, trainings.length === 1)),
    ...trainings.map(examples),
    ...trainings.map(details),
  ];
}

// The parts of names that tell them apart.
function names(ids) {
  const last = ids.map(lastPart);
  return new Set(last).size === last.length ? last : ids;
}

function picker(all, chosen) {
  if (all.length < 2) return null;
  const set = (name, on) => {
    const next = on ? [...chosen, name] : chosen.filter((one) => one !== name);
    location.hash = link("training", { ids: next.join("|") });
  };
  return h("fieldset", { class: "choices" }, h("legend", {}, "Laid over each other"), all.slice(0, 60).map((name) =>
    h("label", {}, h("input", { type: "checkbox", checked: chosen.includes(name), on: { change: (event) => set(name, event.target.checked) } }), " ", name)));
}

const SMOOTHED = 24;
const PLOTS_OF_REST = 4;
const PLOTS_OF_GROUP = 8;
const SMALL_COLUMNS = 4;

// Curves of what changes; what never does, and what equals another curve, is one line of text.
function curves(page, trainings, short, context) {
  const still = trainings.filter((one) => one.last_step === null).map((one) => h("p", { class: "note" }, `${one.id} has no steps yet.`));
  const known = new Map(trainings.flatMap((one) => one.series.map((line) => [line.name, line])));
  const pointsOf = (one, name) => (one.series.find((line) => line.name === name) || { points: [] }).points;
  const constant = [];
  const byShape = new Map();
  for (const line of known.values()) {
    const values = new Set(trainings.flatMap((one) => pointsOf(one, line.name).map((point) => point[1])));
    const most = Math.max(...trainings.map((one) => pointsOf(one, line.name).length));
    if (values.size === 1 && most > 1) {
      constant.push([line, [...values][0]]);
      continue;
    }
    const shape = JSON.stringify([line.unit, page.small_groups.includes(line.group) && line.group, trainings.map((one) => pointsOf(one, line.name))]);
    if (!byShape.has(shape)) byShape.set(shape, []);
    byShape.get(shape).push(line);
  }
  const left = new Map();
  const drawn = page.groups.flatMap((group) => {
    const mine = [...byShape.values()].filter((equal) => equal[0].group === group);
    const most = group === page.groups[page.groups.length - 1] ? PLOTS_OF_REST : PLOTS_OF_GROUP;
    if (mine.length > most) left.set(group, mine.length - most);
    const small = page.small_groups.includes(group);
    const size = small ? { width: context.width(SMALL_COLUMNS), height: 130 } : { width: context.width(2), height: 190 };
    const plots = mine.slice(0, most).map((equal) => curve(equal, trainings, short, pointsOf, size));
    if (!small) return plots.map((plot) => h("div", { class: "card" }, plot));
    return plots.length ? h("section", { class: "card whole" }, h("h2", {}, group), h("div", { class: "small-plots" }, plots)) : [];
  });
  return [...still, h("div", { class: "grid" }, drawn),
    constant.length ? h("p", { class: "quiet" }, "Constant: ", constant.map(([line, value], place) => [place ? ", " : "", h("span", { title: line.name }, `${line.title} ${trimmed(value)}`)])) : null,
    left.size ? h("p", { class: "quiet" }, `Not drawn: ${[...left].map(([group, rest]) => `${rest} of ${group}`).join(", ")}.`) : null];
}

function curve(equal, trainings, short, pointsOf, size) {
  const series = trainings.map((one, place) => {
    const points = pointsOf(one, equal[0].name);
    const smooth = equal[0].group !== "Held-out problems" && points.length > SMOOTHED;
    return { name: short[place], points: smooth ? smoothed(points) : points, raw: smooth ? points : null };
  });
  const title = equal.map((line) => line.title).join(" = ") + (equal[0].unit ? ` (${equal[0].unit})` : "");
  const plot = lines(title, series, { ...size, x: "step", whole: true });
  const caption = plot.querySelector("figcaption");
  if (caption) caption.title = `metrics.jsonl: ${equal.map((line) => line.name).join(", ")}`;
  return plot;
}

// Means over neighbours on both sides, fewer at the ends.
function smoothed(points) {
  const reach = Math.max(1, Math.round(points.length / 30));
  return points.map(([x], place) => {
    const near = points.slice(Math.max(0, place - reach), place + reach + 1);
    return [x, near.reduce((sum, point) => sum + point[1], 0) / near.length];
  });
}

function rollouts(training, parameters, context, alone) {
  if (!training.sample_steps.length) return null;
  const place = h("div", {});
  const steps = training.sample_steps;
  const show = async (step) => {
    replace(place, h("p", { class: "quiet" }, "…"));
    try {
      replace(place, groups(await get("rollouts", { id: training.id, step }), training.most_rollouts, context));
    } catch (error) {
      replace(place, h("p", { class: "note warn" }, error.message));
    }
  };
  const choose = (step) => {
    if (alone) {
      history.replaceState(null, "", link("training", { ids: training.id, step }));
      context.moved();
    }
    show(step);
  };
  const choice = h("select", { "aria-label": `Step of ${training.id}`, on: { change: (event) => choose(Number(event.target.value)) } }, steps.map((step) => h("option", { value: step, selected: String(step) === parameters.step }, `step ${step}${training.explained_steps.includes(step) ? ", explained" : ""}`)));
  const box = h("details", { class: "card", open: alone && parameters.step !== undefined }, h("summary", {}, `Samples of ${training.id}, by step (${count(steps.length)})`), h("p", {}, choice), place);
  box.addEventListener("toggle", () => { if (box.open && !place.childNodes.length) show(Number(choice.value)); });
  if (box.open) show(Number(choice.value));
  return box;
}

// The problems of a step; the first whose rewards differ is open.
function groups(all, most, context) {
  const flat = all.filter((one) => one.without_spread).length;
  const first = all.find((one) => !one.without_spread) || all[0];
  return [h("p", { class: "quiet" }, `${all.length < most ? "" : "the first "}${plural(all.length, "problem")}, ${count(flat)} without spread: all rewards are equal, so nothing is learnt from them.`),
    all.map((one) => rollout(one, context, one === first))];
}

function rollout(one, context, open) {
  const columns = h("div", {});
  const figures = [plural(one.responses.length, "reply").replace("replys", "replies"), one.mean === null ? "" : `mean reward ${trimmed(one.mean)}`, one.deviation === null ? "" : `spread ${trimmed(one.deviation)}`].filter(Boolean);
  const box = h("details", { class: "rollout", open },
    h("summary", {}, visible(one.problem).slice(0, 160), h("span", { class: "quiet", title: "spread: standard deviation of the rewards" }, ` ${figures.join(", ")}`),
      one.without_spread ? h("span", { class: "tag warn" }, "no spread") : null, one.rejected ? h("span", { class: "tag" }, "replaced by another problem") : null, one.benchmark ? h("span", { class: "tag" }, visible(one.benchmark)) : null),
    rich(one.problem, { raw: context.raw }), one.gold ? h("p", {}, h("span", { class: "quiet" }, "expected answer "), h("code", {}, visible(one.gold))) : null, columns);
  const fill = () => { if (box.open && !columns.childNodes.length) replace(columns, sideBySide(one, context, true)); };
  box.addEventListener("toggle", fill);
  fill();
  return box;
}

// Replies in columns: the best, the worst, then the others from the best down. Differences are to the best one, and of
// the best one to the worst.
function sideBySide(one, context, marked) {
  const place = (reply) => reply.reward ?? -Infinity;
  const sorted = [...one.responses].sort((a, b) => place(b) - place(a) || 0);
  const ordered = sorted.length > 2 ? [sorted[0], sorted[sorted.length - 1], ...sorted.slice(1, -1)] : sorted;
  const [best, worst] = ordered;
  const body = (reply) => {
    if (reply.tokens.length) return pushed(reply.tokens);
    const parts = marked && worst ? difference(reply === best ? worst.text : reply.text, reply === best ? reply.text : best.text) : null;
    return parts ? changed(parts, reply === best ? "come" : "gone") : rich(reply.text, { raw: context.raw });
  };
  const node = h("div", { class: "scroll columns", tabindex: "0", role: "region", "aria-label": "Replies side by side" }, ordered.map((reply, number) => h("section", { class: "column" }, facts(reply, heading(reply, number, one)), body(reply))));
  const turn = h("button", { type: "button", "aria-pressed": String(marked), on: { click: () => { const next = sideBySide(one, context, !marked); replace(node.parentNode, next); next[0].querySelector("button").focus(); } } }, "Mark differences");
  return [h("p", {}, turn, h("span", { class: "quiet" }, " from the best reply; those of the best one from the worst")), node];
}

function heading(reply, number, one) {
  if (one.without_spread || one.responses.length < 2) return `reply ${number + 1}`;
  return ["best", "worst"][number] || `reply ${number + 1}`;
}

function facts(reply, title) {
  const parts = Object.entries(reply.components);
  const length = reply.token_count ? plural(reply.token_count, "token") : plural(reply.characters, "character");
  const rows = [["reward", reply.reward === null ? "–" : trimmed(reply.reward)], ...(parts.length > 1 ? parts.map(([name, value]) => [`· ${visible(name)}`, trimmed(value)]) : []),
    ["advantage", reply.advantage === null ? "–" : trimmed(reply.advantage)], ["length", length], ["answer", visible(reply.answer)], ["turns", reply.turns === null ? "" : count(reply.turns)],
    ["finish reason", visible(reply.finish)], ["unscored", visible(reply.why)]];
  return [h("h3", {}, title), h("dl", { class: "pairs" }, rows.filter(([, value]) => value).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]))];
}

// Tokens by how far a step pushed their chances: underlined where up, struck through where down, stronger where further.
function pushed(tokens) {
  const percent = (value) => `${(100 * Math.exp(value)).toPrecision(3)} %`;
  const change = tokens.reduce((sum, one) => sum + one.after - one.before, 0);
  return [h("p", { class: "pushed" }, tokens.map((one) => {
    const far = one.after - one.before;
    const strength = Math.min(3, Math.floor(Math.abs(far) * 10));
    const words = `${percent(one.before)} → ${percent(one.after)}`;
    return h("span", { class: strength ? `${far > 0 ? "up" : "down"}${strength}` : "still", title: words }, visible(one.text));
  })), h("p", { class: "quiet" }, `the step made this reply ${Math.exp(Math.abs(change)).toPrecision(3)} times as ${change > 0 ? "likely" : "unlikely"}`)];
}

// The first examples as the model sees them; what it learns to write is marked.
function examples(training) {
  if (!training.examples.length) return null;
  return h("details", { class: "card" }, h("summary", {}, `What ${training.id} is trained on: the first examples`),
    h("p", { class: "quiet" }, "Marked text has a loss; the rest is only read."),
    training.examples.map((one) => h("pre", { class: "wrapped" }, (one.pieces || []).map((piece) => (piece.learnt ? h("mark", {}, visible(piece.text)) : visible(piece.text))))));
}

function details(training) {
  const settings = Object.entries(training.settings).map(([name, value]) => [h("code", {}, name), h("td", { class: "wrapped" }, visible(typeof value === "string" ? value : JSON.stringify(value)))]);
  return h("details", { class: "card" }, h("summary", {}, `Settings and checkpoints of ${training.id}`),
    h("p", { class: "quiet" }, training.folder),
    training.checkpoints.length ? table("Checkpoints", [{ text: "step", number: true }, "name", ""], training.checkpoints.map((one) => [count(one.step), visible(one.name), one.final ? "final" : ""])) : null,
    settings.length ? table("Settings", ["setting", "value"], settings) : null);
}
