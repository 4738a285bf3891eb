// SPDX-License-Identifier: Apache-2.0
// Trainings over their steps.
import { get } from "./api.js";
import { h, replace, table } from "./dom.js";
import { lines } from "./plot.js";
import { allRuns } from "./runs.js";
import { rich, visible } from "./text.js";
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
    ...curves(page.groups, trainings, short, context),
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

// Curves of what changes; what never does, and what equals another curve, is one line of text.
function curves(groups, trainings, short, context) {
  const still = trainings.filter((one) => one.last_step === null).map((one) => h("p", { class: "note" }, `${one.id} has no steps yet.`));
  const names = [...new Set(trainings.flatMap((one) => one.series.map((line) => line.name)))];
  const pointsOf = (one, name) => (one.series.find((line) => line.name === name) || { points: [] }).points;
  const groupOf = (name) => trainings.flatMap((one) => one.series).find((line) => line.name === name).group;
  const constant = [];
  const byShape = new Map();
  for (const name of names) {
    const values = new Set(trainings.flatMap((one) => pointsOf(one, name).map((point) => point[1])));
    const most = Math.max(...trainings.map((one) => pointsOf(one, name).length));
    if (values.size === 1 && most > 1) {
      constant.push([name, [...values][0]]);
      continue;
    }
    const shape = JSON.stringify(trainings.map((one) => pointsOf(one, name)));
    if (!byShape.has(shape)) byShape.set(shape, []);
    byShape.get(shape).push(name);
  }
  const left = new Map();
  const drawn = groups.flatMap((group) => {
    const mine = [...byShape.values()].filter((equal) => groupOf(equal[0]) === group);
    const most = group === groups[groups.length - 1] ? PLOTS_OF_REST : PLOTS_OF_GROUP;
    if (mine.length > most) left.set(group, mine.length - most);
    return mine.slice(0, most).map((equal) => curve(equal, trainings, short, context, pointsOf, group));
  });
  return [...still, h("div", { class: "grid" }, drawn),
    constant.length ? h("p", { class: "quiet" }, "Constant: ", constant.map(([name, value], place) => [place ? ", " : "", h("code", {}, name), ` ${trimmed(value)}`])) : null,
    left.size ? h("p", { class: "quiet" }, `Not drawn: ${[...left].map(([group, rest]) => `${rest} of ${group}`).join(", ")}.`) : null];
}

function curve(equal, trainings, short, context, pointsOf, group) {
  const series = trainings.map((one, place) => {
    const points = pointsOf(one, equal[0]);
    const smooth = group !== "Held-out problems" && points.length > SMOOTHED;
    return { name: short[place], points: smooth ? smoothed(points) : points, raw: smooth ? points : null };
  });
  const title = equal.map((name) => name.replaceAll("_", " ")).join(" = ");
  return h("div", { class: "card" }, lines(title, series, { width: context.width(2), height: 190, x: "step", whole: true }));
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
      const found = await get("rollouts", { id: training.id, step });
      replace(place, found.map((one) => rollout(one, context)));
    } catch (error) {
      replace(place, h("p", { class: "note warn" }, error.message));
    }
  };
  const choice = h("select", { "aria-label": `Step of ${training.id}`, on: { change: (event) => show(Number(event.target.value)) } }, steps.map((step) => h("option", { value: step, selected: String(step) === parameters.step }, `step ${step}${training.explained_steps.includes(step) ? ", explained" : ""}`)));
  const box = h("details", { class: "card", open: alone && parameters.step !== undefined }, h("summary", {}, `Samples of ${training.id}, by step (${count(steps.length)})`), h("p", {}, choice), place);
  box.addEventListener("toggle", () => { if (box.open && !place.childNodes.length) show(Number(choice.value)); });
  if (box.open) show(Number(choice.value));
  return box;
}

function rollout(one, context) {
  const rewards = one.responses.map((reply) => reply.reward).filter((reward) => reward !== null);
  const mean = rewards.length ? rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length : null;
  return h("details", { class: "rollout" }, h("summary", {}, visible(one.problem).slice(0, 160), h("span", { class: "quiet" }, ` ${plural(one.responses.length, "reply").replace("replys", "replies")}${mean === null ? "" : `, mean reward ${trimmed(mean)}`}`)),
    rich(one.problem, { raw: context.raw }), one.gold ? h("p", {}, h("span", { class: "quiet" }, "right answer "), h("code", {}, visible(one.gold))) : null,
    one.responses.map((reply) => h("div", { class: "message assistant" }, h("span", { class: "role" }, `reward ${reply.reward === null ? "–" : trimmed(reply.reward)}`,
      Object.keys(reply.components).length > 1 ? ` (${Object.entries(reply.components).map(([name, value]) => `${name} ${trimmed(value)}`).join(", ")})` : "", reply.advantage === null ? "" : `, advantage ${trimmed(reply.advantage)}`, reply.finish ? `, ended by ${visible(reply.finish)}` : ""),
      reply.tokens.length ? pushed(reply.tokens) : rich(reply.text, { raw: context.raw }))));
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
