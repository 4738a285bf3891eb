// SPDX-License-Identifier: Apache-2.0
// Replies as Markdown and formulas. markdown-it makes tokens, and this module makes elements of them: no markup of a text is
// ever read by the browser, and what would link elsewhere is shown as text.
import { h } from "./dom.js";
import { asNode, code, formula, pieces, rich, visible } from "./text.js";

const LONGEST = 100000;
// Characters that may be markup: the parser's time grows with their square.
const MOST_MARKUP = 10000;
const TAGS = new Set(["p", "ul", "ol", "li", "blockquote", "table", "thead", "tbody", "tr", "th", "td", "em", "strong", "s"]);
// Formulas and marks stand in the Markdown as characters that no font and no writer uses.
const [REF, END, MARK, UNMARK] = ["\ue000", "\ue001", "\ue002", "\ue003"];
const OURS = /[\ue000-\ue003]/;
const LEAF = /\ue000(\d+)\ue001|\ue002(\d+)\ue001|(\ue003)/g;

const parser = globalThis.markdownit({ html: false, linkify: false, breaks: true }).disable(["image", "reference"]);
parser.normalizeLink = parser.normalizeLinkText = (address) => address; // shown as it was written, never followed

// Like `rich`, with Markdown. What is long, holds our own characters, or would lose some text, is shown by `rich`.
export function markdown(text, options = {}) {
  const { marks = [], raw = false } = options;
  if (raw || text.length > LONGEST || OURS.test(text)) return rich(text, options);
  const formulas = pieces(text).filter((piece) => piece.kind === "math");
  const state = { text, formulas, marks, mark: null };
  const node = h("div", { class: "text markdown", lang: "", dir: "auto" });
  const written = encoded(text, formulas, marks);
  if ((written.match(/[*_~`[\]]/g) || []).length > MOST_MARKUP) return rich(text, options);
  const tokens = parser.parse(written, {});
  if (tokens.reduce((sum, token) => sum + letters(token.content) + letters(token.info), 0) < letters(written)) return rich(text, options);
  build(node, tokens, state);
  return node;
}

// Letters and digits, of which the parser drops some: cells beyond the last column, nesting beyond a hundred levels.
function letters(text) {
  return (text.match(/[\p{L}\p{N}]/gu) || []).length;
}

// The text with a reference in place of each formula, and marks as characters around what they mark.
function encoded(text, formulas, marks) {
  const edits = formulas.map((piece, place) => ({ at: piece.start, until: piece.end, put: `${REF}${place}${END}` }));
  let free = 0;
  marks.forEach((mark, place) => {
    const start = Math.max(mark.start, free);
    const within = formulas.find((piece) => piece.start < mark.end && piece.end > start);
    if (start >= mark.end) return;
    free = mark.end;
    if (within) {
      within.mark = mark;
      return;
    }
    edits.push({ at: start, until: start, put: `${MARK}${place}${END}` }, { at: mark.end, until: mark.end, put: UNMARK });
  });
  edits.sort((a, b) => a.at - b.at || a.until - b.until);
  let [made, at] = ["", 0];
  for (const edit of edits) {
    made += text.slice(at, edit.at) + edit.put;
    at = edit.until;
  }
  return made + text.slice(at);
}

function build(root, tokens, state) {
  const open = [root];
  for (const token of tokens) {
    const top = open[open.length - 1];
    if (token.type === "inline") build(top, token.children, state);
    else if (token.hidden) continue;
    else if (token.nesting === 1) {
      const node = element(token);
      top.append(node);
      open.push(node);
    } else if (token.nesting === -1) {
      open.pop();
      if (token.type === "link_close") open[open.length - 1].append(h("span", { class: "quiet" }, " (", run(state.links.pop(), state, false), ")"));
    } else top.append(...leaf(token, state));
    if (token.type === "link_open") (state.links ||= []).push([token.attrGet("href"), token.attrGet("title")].filter(Boolean).join(" "));
  }
}

function element(token) {
  if (/^h[1-6]$/.test(token.tag)) return h("p", { class: `heading ${token.tag}` });
  const tag = TAGS.has(token.tag) ? token.tag : "span";
  const node = h(tag, {});
  const first = tag === "ol" ? Number(token.attrGet("start")) : 0;
  if (first > 1) node.start = first;
  if (tag === "li" && token.info) node.value = Number(token.info);
  return node;
}

function leaf(token, state) {
  if (token.type === "fence" || token.type === "code_block") {
    return [code(token.info && run(token.info, state, false), run(token.content, state, false))];
  }
  if (token.type === "code_inline") return [h("code", {}, run(token.content, state, false))];
  if (token.type === "softbreak" || token.type === "hardbreak") return [h("br", {})];
  if (token.type === "hr") return [h("hr", {})];
  return run(token.content, state, true);
}

// Nodes of a piece of text; `set`: formulas are set, and otherwise stand as they were written.
function run(content, state, set) {
  const nodes = [];
  let at = 0;
  const put = (node) => nodes.push(state.mark ? h("mark", { class: state.mark.kind, title: state.mark.title }, node) : asNode(node));
  const plain = (end) => { if (end > at) put(visible(content.slice(at, end))); };
  for (const match of content.matchAll(LEAF)) {
    plain(match.index);
    at = match.index + match[0].length;
    if (match[3]) state.mark = null;
    else if (match[2]) state.mark = state.marks[Number(match[2])];
    else {
      const piece = state.formulas[Number(match[1])];
      const node = set ? formula(piece, state.text) : visible(state.text.slice(piece.start, piece.end));
      nodes.push(piece.mark ? h("mark", { class: piece.mark.kind, title: piece.mark.title }, node) : asNode(node));
    }
  }
  plain(content.length);
  return nodes;
}
