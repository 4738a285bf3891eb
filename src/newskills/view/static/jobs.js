// SPDX-License-Identifier: Apache-2.0
// Jobs that were submitted from this machine.
import { exported, get } from "./api.js";
import { h, replace, table } from "./dom.js";
import { notes } from "./overview.js";
import { visible } from "./text.js";
import { count, link, seconds } from "./words.js";

const GOOD = ["completed"];
const OPEN = ["running", "pending", "queued", "waiting"];

export async function jobsPage(context) {
  context.title("Jobs");
  const crumbs = context.crumbs([["Overview", "#/"], ["jobs", null]]);
  if (exported) return [crumbs, h("h1", {}, "Jobs"), h("p", { class: "note" }, "Jobs are not part of an export.")];
  const page = await get("jobs", {});
  if (!page.experiments.length) return [crumbs, h("h1", {}, "Jobs"), h("div", { class: "card" }, h("p", {}, "Nothing has been submitted from this machine. What runs in the foreground has no job."), notes(page.notes))];
  return [crumbs, h("h1", {}, "Jobs"), notes(page.notes), h("div", { class: "card" }, table("What was submitted from this machine, the latest first", ["experiment", "cluster", "submitted (UTC)", { text: "jobs", number: true }, "commit"],
    page.experiments.map((one) => [h("td", { class: "name" }, h("a", { href: link("job", { name: one.id }) }, one.id)), one.cluster, one.submitted.slice(0, 19).replace("T", " "), count(one.count), h("code", {}, one.commit)])))];
}

export async function jobPage(context, parameters) {
  context.title(parameters.name);
  const crumbs = context.crumbs([["Overview", "#/"], ["jobs", link("jobs", {})], [parameters.name, null]]);
  const page = await get("experiment", { name: parameters.name });
  const log = h("section", {});
  const show = async (job, command) => {
    replace(log, h("p", { class: "quiet" }, "…"));
    try {
      const found = await get("log", { name: page.id, job, command });
      replace(log, h("div", { class: "card" }, h("h2", {}, `${job}${command ? `, ${command}` : ""}`),
        found.left_out ? h("p", { class: "quiet" }, `${count(found.left_out)} earlier lines are left out: ns logs ${page.id} --job=${job}`) : null,
        found.lines.length ? h("pre", { class: "code log" }, visible(found.lines.join("\n"))) : h("p", { class: "quiet" }, "Nothing has been printed yet.")));
      log.scrollIntoView({ block: "nearest" });
    } catch (error) {
      replace(log, h("p", { class: "note warn" }, error.message));
    }
  };
  const rows = page.jobs.map((job) => [h("td", { class: "name" }, job.name), h("td", {}, h("span", { class: `tag ${kind(job.state)}` }, visible(job.state)), job.why ? ` ${visible(job.why)}` : ""), job.exit_code === null ? "" : String(job.exit_code), seconds(job.seconds),
    job.waits_for.length ? job.waits_for.join(", ") : "–", h("td", {}, [...job.commands, "job"].map((command) => h("button", { type: "button", on: { click: () => show(job.name, command) } }, command)))]);
  return [crumbs, h("h1", {}, page.id), h("p", { class: "quiet" }, `on ${page.cluster}, in ${page.folder}, submitted ${page.submitted.slice(0, 19).replace("T", " ")} UTC`),
    page.error ? h("p", { class: "note warn" }, `The states are not known: ${page.error}`) : null,
    waits(page.jobs), h("div", { class: "card" }, table("Jobs", ["job", "state", { text: "exit", number: true }, { text: "time", number: true }, "waits for", "logs"], rows)), log];
}

function kind(state) {
  const word = state.split(" ")[0];
  return GOOD.includes(word) ? "good" : OPEN.includes(word) ? "live" : "warn";
}

// What waits for what, as an indented list: each job below the last of those that it waits for.
function waits(jobs) {
  if (!jobs.some((job) => job.waits_for.length) || jobs.length > 60) return null;
  const below = (name) => jobs.filter((job) => job.waits_for[job.waits_for.length - 1] === name);
  const seen = new Set();
  const item = (job) => {
    if (seen.has(job.name)) return null;
    seen.add(job.name);
    const next = below(job.name).map(item).filter(Boolean);
    return h("li", {}, h("span", { class: `tag ${kind(job.state)}` }, job.name), next.length ? h("ul", {}, next) : null);
  };
  const known = new Set(jobs.map((job) => job.name));
  return h("div", { class: "card" }, h("h2", {}, "What waits for what"), h("ul", { class: "tree" }, jobs.filter((job) => !job.waits_for.some((one) => known.has(one))).map(item)));
}
