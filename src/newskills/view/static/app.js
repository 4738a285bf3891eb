// SPDX-License-Identifier: Apache-2.0
// Places in the address, keys, theme, and looking again while a run is writing.
import { exported, get } from "./api.js";
import { benchmarkPage } from "./benchmark.js";
import { comparisonPage } from "./comparison.js";
import { h, replace } from "./dom.js";
import { jobPage, jobsPage } from "./jobs.js";
import { loadTestsPage } from "./load_tests.js";
import { overviewPage, scoresPage } from "./overview.js";
import { samplePage } from "./sample.js";
import { samplesPage } from "./samples.js";
import { trainingPage } from "./training.js";

const PAGES = { "": overviewPage, scores: scoresPage, benchmark: benchmarkPage, samples: samplesPage, sample: samplePage, compare: comparisonPage, training: trainingPage, load: loadTestsPage, jobs: jobsPage, job: jobPage };
const NAV = [["", "Overview", "o"], ["compare", "Compare", "c"], ["training", "Training", "t"], ["load", "Load", "l"], ["jobs", "Jobs", "b"]];
const KEYS = [["j, k", "next, previous sample or row"], ["Enter", "open the row"], ["u", "up: back to the list"], ["/", "search"], ["r", "rendered or raw text"], ["g o, g c, g t, g l, g b", "overview, compare, training, load tests, jobs"], ["?", "these keys"]];
const LOOK_EVERY = 2500;
const LOOK_SOON = 700;
const MOST_LATE_LOOKS = 3;

const main = document.getElementById("main");
const activity = document.getElementById("activity");
const dialog = document.getElementById("keys");
let current = null;
let state = null;
let before = "";

class Context {
  constructor(page, fresh) {
    this.page = page;
    this.fresh = fresh;
    this.keys = {};
    this.raw = stored("raw") === "yes";
    this.whole = stored("whole") === "yes";
    this.refresh = null;
    // Whether what is shown was still being read, and how often it was looked at again after that.
    this.unfinished = false;
    this.lateLooks = 0;
  }

  title(text) {
    document.title = `${text} · newskills view`;
  }

  alive() {
    return current === this;
  }

  width(columns) {
    const whole = Math.min(main.clientWidth, 1180) - 34;
    return Math.max(280, Math.floor(whole >= 720 ? (whole - 50) / columns : whole - 8));
  }

  narrow() {
    return window.innerWidth < 720;
  }

  crumbs(steps) {
    return h("nav", { class: "crumbs", "aria-label": "Where this is" }, h("ol", {}, steps.map(([text, href]) => h("li", {}, href ? h("a", { href }, text) : h("span", {}, text)))));
  }

  moved() {
    before = location.hash;
  }

  toggleRaw() {
    store("raw", this.raw ? "no" : "yes");
    render(false);
  }

  toggleWhole() {
    store("whole", this.whole ? "no" : "yes");
    render(false);
  }
}

function stored(name) {
  try {
    return localStorage.getItem(`newskills-view-${name}`);
  } catch {
    return null;
  }
}

function store(name, value) {
  try {
    localStorage.setItem(`newskills-view-${name}`, value);
  } catch {
    // A browser may keep nothing for files.
  }
}

function where() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  return { page: path, parameters: Object.fromEntries(new URLSearchParams(query || "")) };
}

async function render(fresh) {
  const { page, parameters } = where();
  const context = new Context(page, fresh);
  const moved = location.hash !== before;
  if (current && !moved) context.lateLooks = current.lateLooks;
  current = context;
  before = location.hash;
  replace(document.getElementById("nav"), NAV.map(([name, text]) => h("a", { href: `#/${name}`, "aria-current": name === page ? "page" : null }, text)));
  main.setAttribute("aria-busy", "true");
  let children;
  try {
    children = await (PAGES[page] || nothing)(context, parameters);
  } catch (error) {
    children = [h("h1", {}, "This cannot be shown"), h("p", { class: "note warn" }, error.message), h("p", {}, h("a", { href: "#/" }, "Back to the overview"))];
  }
  if (current !== context) return;
  const open = moved ? [] : [...main.querySelectorAll("details")].map((node) => node.open);
  replace(main, children);
  if (!moved) [...main.querySelectorAll("details")].forEach((node, place) => { if (open[place] !== undefined && open.length) node.open = open[place]; });
  main.setAttribute("aria-busy", "false");
  main.dataset.page = page || "overview";
  if (moved) {
    window.scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
}

function nothing() {
  return [h("h1", {}, "There is no such page"), h("p", {}, h("a", { href: "#/" }, "Overview"))];
}

async function look() {
  let soon = LOOK_EVERY;
  const began = performance.now();
  try {
    const now = await get("state", {});
    const late = Boolean(current) && current.unfinished && !now.indexing && current.lateLooks < MOST_LATE_LOOKS;
    if (late) current.lateLooks += 1;
    const changed = late || (state !== null && (now.state !== state.state || state.indexing));
    if (changed && !busy()) {
      if (current && current.refresh) await current.refresh();
      else await render(true);
    }
    if (!changed || !busy()) state = now;
    replace(activity, now.indexing ? "indexing …" : "");
    soon = now.indexing ? LOOK_SOON : LOOK_EVERY;
  } catch (error) {
    replace(activity, error.message);
  }
  // What takes long to show is shown less often, so that indexing goes on meanwhile.
  setTimeout(look, document.hidden ? LOOK_EVERY * 4 : Math.max(soon, 4 * (performance.now() - began)));
}

// Nobody's reading is disturbed: what is typed into, or marked, stays.
function busy() {
  const node = document.activeElement;
  const typing = node && ["INPUT", "SELECT", "TEXTAREA"].includes(node.tagName) && !(current && current.refresh);
  return typing || dialog.open || (current && current.page === "sample") || String(getSelection()).length > 0;
}

let led = false;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName);
  if (typing) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (led) {
    led = false;
    const target = NAV.find(([, , key]) => key === event.key);
    if (target) location.hash = `#/${target[0]}`;
    return;
  }
  if (act(event.key)) event.preventDefault();
});

function act(key) {
  const own = current && current.keys[key];
  if (own) {
    if (typeof own === "function") own();
    else location.hash = own;
    return true;
  }
  if (key === "g") led = true;
  else if (key === "?") toggleKeys();
  else if (key === "/") {
    const search = document.getElementById("search");
    if (!search) return false;
    search.focus();
    search.select();
  } else if (key === "j" || key === "k") return along(key === "j" ? 1 : -1);
  else if (key === "u") history.back();
  else return false;
  return true;
}

function along(step) {
  const rows = [...main.querySelectorAll("a.row, table.scores td.name a")];
  if (!rows.length) return false;
  const at = rows.indexOf(document.activeElement);
  const next = rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + step))];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
  return true;
}

function toggleKeys() {
  if (dialog.open) return dialog.close();
  replace(dialog, h("h2", { id: "keys-title" }, "Keys"), h("dl", {}, KEYS.map(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)])), h("button", { type: "button", on: { click: () => dialog.close() } }, "Close"));
  return dialog.showModal();
}

const THEMES = ["", "light", "dark"];
function theme(value) {
  document.documentElement.dataset.theme = value;
  replace(document.getElementById("theme"), value === "" ? "Auto" : value === "light" ? "Light" : "Dark");
}

document.getElementById("theme").addEventListener("click", () => {
  const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme || "") + 1) % THEMES.length];
  store("theme", next);
  theme(next);
});
document.getElementById("help").addEventListener("click", toggleKeys);
window.addEventListener("hashchange", () => { if (location.hash !== before) render(false); });
let resized = 0;
let wide = window.innerWidth;
window.addEventListener("resize", () => {
  clearTimeout(resized);
  resized = setTimeout(() => { if (window.innerWidth !== wide) { wide = window.innerWidth; render(false); } }, 200);
});
theme(stored("theme") || "");
render(false).then(() => { if (!exported) look(); });
