// SPDX-License-Identifier: Apache-2.0
// Text of models, as text: what could act on a reader is made visible, mathematics is set, code is kept in its form.
import { h } from "./dom.js";

const MOST_FORMULAS = 300;
const MOST_FENCES = 1000;
const MOST_HITS = 500;
// Lengths are bounded, so that a text full of beginnings without an end is read in no time, too.
const FORMULA = /\$\$([\s\S]{1,4000}?)\$\$|\\\[([\s\S]{1,4000}?)\\\]|\\\(([\s\S]{1,4000}?)\\\)|(?<![\\$\w])\$(?!\s)([^$\n]{1,400}?)(?<![\s\\])\$(?![\w$])|(\\boxed\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})+\})/g;
const FENCE = /```([\w+-]*)[^\S\n]*\n([\s\S]*?)(?:```|$)/g;
// Control characters, marks that change the direction of text, and characters without width.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

export function visible(text) {
  return text.replace(/\r\n/g, "\n").replace(HIDDEN, (char) => {
    const code = char.charCodeAt(0);
    return code === 0x1b ? "⟦ESC⟧" : `⟦U+${code.toString(16).toUpperCase().padStart(4, "0")}⟧`;
  });
}

// Pieces of `text`: {kind: text | math | code, start, end, …}, in order and without gaps.
export function pieces(text) {
  const found = [];
  for (const match of text.matchAll(FENCE)) {
    if (found.length >= MOST_FENCES) break;
    found.push({ kind: "code", start: match.index, end: match.index + match[0].length, inner: match[2], language: match[1] });
  }
  let formulas = 0;
  for (const match of text.matchAll(FORMULA)) {
    const start = match.index;
    const end = start + match[0].length;
    if (formulas >= MOST_FORMULAS || found.some((one) => one.kind === "code" && start < one.end && end > one.start)) continue;
    const inner = match[1] ?? match[2] ?? match[3] ?? match[4] ?? match[5];
    formulas += 1;
    found.push({ kind: "math", start, end, inner, display: match[1] !== undefined || match[2] !== undefined });
  }
  found.sort((a, b) => a.start - b.start);
  const all = [];
  let at = 0;
  for (const one of found) {
    if (one.start < at) continue;
    if (one.start > at) all.push({ kind: "text", start: at, end: one.start });
    all.push(one);
    at = one.end;
  }
  if (at < text.length) all.push({ kind: "text", start: at, end: text.length });
  all.forEach((one, place) => {
    if (one.kind !== "text") return;
    if (isBlock(all[place - 1])) while (one.start < one.end && text[one.start] === "\n") one.start += 1;
    if (isBlock(all[place + 1])) while (one.end > one.start && text[one.end - 1] === "\n") one.end -= 1;
  });
  return all;
}

// What a formula would link to or fetch makes it stay as it was written.
function refuse() {
  throw new Error("not set");
}

function isBlock(piece) {
  return piece && (piece.kind === "code" || piece.display);
}

export function formula(piece, text) {
  const raw = text.slice(piece.start, piece.end);
  const node = h("span", { class: piece.display ? "formula display" : "formula", title: visible(raw).slice(0, 500) });
  try {
    globalThis.katex.render(piece.inner, node, {
      output: "mathml", displayMode: Boolean(piece.display), throwOnError: true, trust: refuse, strict: "ignore", maxSize: 20, maxExpand: 200,
    });
  } catch {
    node.textContent = visible(raw);
    node.className = "formula raw";
  }
  return node;
}

// Nodes of text[start, end) with the marks that fall into it.
function marked(text, start, end, marks) {
  const nodes = [];
  let at = start;
  for (const mark of marks) {
    const from = Math.max(at, mark.start);
    const to = Math.min(end, mark.end);
    if (from >= to) continue;
    if (from > at) nodes.push(visible(text.slice(at, from)));
    nodes.push(h("mark", { class: mark.kind, title: mark.title }, visible(text.slice(from, to))));
    at = to;
  }
  if (at < end) nodes.push(visible(text.slice(at, end)));
  return nodes;
}

// A block of code under the words behind its fence.
export function code(words, nodes) {
  return h("pre", { class: "code" }, words ? h("span", { class: "quiet" }, words, "\n") : null, h("code", {}, nodes));
}

// A block of text. marks: [{start, end, kind, title}] in UTF-16 units, sorted; raw: nothing is set.
export function rich(text, options = {}) {
  const { marks = [], raw = false } = options;
  const node = h("div", { class: "text", lang: "", dir: "auto" });
  if (raw || text.length > 400000) {
    node.append(...marked(text, 0, text.length, marks).map(asNode));
    return node;
  }
  for (const piece of pieces(text)) {
    const within = marks.filter((mark) => mark.start < piece.end && mark.end > piece.start);
    if (piece.kind === "text") {
      node.append(...marked(text, piece.start, piece.end, within).map(asNode));
    } else if (piece.kind === "code") {
      const inside = text.indexOf(piece.inner, piece.start);
      node.append(code(piece.language, marked(text, inside, inside + piece.inner.length, within)));
    } else {
      const set = formula(piece, text);
      node.append(within.length ? h("mark", { class: within[0].kind, title: within[0].title }, set) : set);
    }
  }
  return node;
}

export function asNode(value) {
  return value instanceof Node ? value : document.createTextNode(value);
}

// Words of two texts: [kind, text] with kind same, gone, come. Longer texts are compared by lines.
export function difference(before, after) {
  let [a, b] = [split(before, /(\s+)/), split(after, /(\s+)/)];
  if (a.length * b.length > 4e6) [a, b] = [split(before, /(\n)/), split(after, /(\n)/)];
  if (a.length * b.length > 4e6) return null;
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const [left, right] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)];
  const width = right.length + 1;
  const lengths = new Uint32Array((left.length + 1) * width);
  for (let i = left.length - 1; i >= 0; i -= 1) {
    for (let j = right.length - 1; j >= 0; j -= 1) {
      lengths[i * width + j] = left[i] === right[j] ? lengths[(i + 1) * width + j + 1] + 1 : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    }
  }
  const found = [["same", a.slice(0, head).join("")]];
  let [i, j] = [0, 0];
  while (i < left.length || j < right.length) {
    if (i < left.length && j < right.length && left[i] === right[j]) add(found, "same", left[i++], j++);
    else if (j >= right.length || (i < left.length && lengths[(i + 1) * width + j] >= lengths[i * width + j + 1])) add(found, "gone", left[i++]);
    else add(found, "come", right[j++]);
  }
  add(found, "same", a.slice(a.length - tail).join(""));
  return found;
}

function split(text, pattern) {
  return text.split(pattern).filter((part) => part !== "");
}

function add(found, kind, text) {
  if (!text) return;
  const last = found[found.length - 1];
  if (last && last[0] === kind) last[1] += text;
  else found.push([kind, text]);
}

// Marks of every place where a search text stands, whatever its case.
export function hits(text, query) {
  const marks = [];
  if (!query) return marks;
  const [lower, needle] = [text.toLowerCase(), query.toLowerCase()];
  if (lower.length !== text.length) return marks;
  for (let at = lower.indexOf(needle); at >= 0 && marks.length < MOST_HITS; at = lower.indexOf(needle, at + needle.length)) {
    marks.push({ start: at, end: at + needle.length, kind: "hit", title: "search" });
  }
  return marks;
}

// One side of a difference: what is only there is marked.
export function changed(parts, kind) {
  const node = h("div", { class: "text", dir: "auto" });
  for (const [what, text] of parts) {
    if (what === "same") node.append(visible(text));
    else if (what === kind) node.append(h("mark", { class: kind }, visible(text)));
  }
  return node;
}
