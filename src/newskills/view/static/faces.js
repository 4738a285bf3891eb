// SPDX-License-Identifier: Apache-2.0
// What graders of each kind tell: programs and tests, instructions, options, calls, judges, votes, steps of agents.
import { h } from "./dom.js";
import { markdown } from "./markdown.js";
import { rich, visible } from "./text.js";
import { count, plural, share } from "./words.js";

const DRAWN = { code, output, test, checks, options, calls, judgements, question, votes, diff, steps };

export function faces(blocks, context) {
  return blocks.map((block) => {
    const draw = DRAWN[block.kind];
    return draw ? h("section", { class: `card face-${block.kind}` }, h("h2", {}, block.title), block.note ? h("p", { class: "quiet" }, visible(block.note)) : null, draw(block, context)) : null;
  });
}

// A button that copies a text; without the browser's leave it says so.
export function copyButton(text) {
  const say = (node, words) => {
    node.textContent = words;
    setTimeout(() => { node.textContent = "Copy"; }, 1500);
  };
  return h("button", { type: "button", class: "copy", "aria-label": "Copy", on: { click: (event) => {
    const node = event.currentTarget;
    navigator.clipboard.writeText(text).then(() => say(node, "Copied"), () => say(node, "Not allowed"));
  } } }, "Copy");
}

function code(block) {
  return h("div", { class: "copied" }, copyButton(block.text), h("pre", { class: "code" }, highlighted(block.text)));
}

function output(block) {
  return h("pre", { class: "code log" }, visible(block.text));
}

// Comments, texts, numbers and the usual keywords of Python, C++, Java, Go and Rust, which is all that a reader needs.
const TOKEN = /(#.*|\/\/.*|\/\*[\s\S]*?\*\/)|("""[\s\S]*?"""|'''[\s\S]*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|\b(\d[\w.]*)\b|\b(def|class|return|if|elif|else|for|while|in|not|and|or|import|from|as|with|try|except|finally|raise|lambda|yield|pass|break|continue|None|True|False|is|int|long|float|double|bool|char|void|auto|const|struct|public|private|static|using|namespace|template|new|fn|let|mut|impl|func|var|package|switch|case)\b/g;

function highlighted(text) {
  if (text.length > 50_000) return visible(text);
  const parts = [];
  let at = 0;
  for (const match of text.matchAll(TOKEN)) {
    parts.push(visible(text.slice(at, match.index)));
    const kind = ["comment", "text-literal", "number", "keyword"][match.slice(1, 5).findIndex((group) => group !== undefined)];
    parts.push(h("span", { class: `hl-${kind}` }, visible(match[0])));
    at = match.index + match[0].length;
  }
  parts.push(visible(text.slice(at)));
  return parts;
}

function test(block) {
  return h("dl", { class: "parts-of-test" }, block.parts.filter((part) => part.text !== "").map((part) => [h("dt", {}, part.name), h("dd", {}, h("pre", { class: "code" }, visible(part.text)))]));
}

function mark(passed) {
  return h("span", { class: passed ? "check passed" : "check failed", role: "img", "aria-label": passed ? "passed" : "failed" }, passed ? "✓" : "✗");
}

function checks(block) {
  const failed = block.items.filter((item) => !item.passed).length;
  return [h("p", { class: "quiet" }, failed ? `${failed} of ${plural(block.items.length, "check")} failed` : `all ${count(block.items.length)} passed`),
    h("ul", { class: "checks" }, block.items.map((item) => h("li", {}, mark(item.passed), " ", visible(item.text), item.note ? h("span", { class: "quiet" }, ` ${visible(item.note)}`) : null)))];
}

function options(block, context) {
  return h("ul", { class: "checks" }, block.items.map((item) => h("li", { class: item.gold ? "gold" : item.chosen ? "chosen" : null },
    h("b", {}, `${item.label} `), rich(item.text, { raw: context.raw }),
    item.chosen ? h("span", { class: `tag ${item.gold ? "good" : "warn"}` }, "chosen") : null, item.gold ? h("span", { class: "tag" }, "expected") : null)));
}

function calls(block) {
  return block.rows.map((row) => h("div", { class: "scroll" }, h("table", {},
    h("caption", { class: "quiet" }, row.expected === null ? `not expected: ${visible(row.actual)}` : row.actual === null ? `${visible(row.expected)} was not called` : row.actual === row.expected ? visible(row.expected) : `expected ${visible(row.expected)}, called ${visible(row.actual)}`),
    row.arguments.length ? h("thead", {}, h("tr", {}, ["argument", "expected", "actual"].map((words) => h("th", { scope: "col" }, words)))) : null,
    h("tbody", {}, row.arguments.map((one) => h("tr", {}, h("td", {}, h("code", {}, visible(one.name))), h("td", { class: "wrapped" }, one.expected === "" ? h("i", {}, "not expected") : visible(one.expected)), h("td", { class: "wrapped" }, one.actual === null ? h("i", {}, "not given") : visible(one.actual))))))));
}

function judgements(block, context) {
  return block.items.map((item) => h("details", { open: true }, h("summary", {}, item.title ? visible(item.title) : "Reply of the judge"), markdown(item.text, { raw: context.raw })));
}

// What a judge was asked, verbatim and folded: it repeats the problem and the answer.
function question(block) {
  return block.items.map((item) => h("details", {}, h("summary", {}, visible(item.title)), h("p", { class: "text" }, visible(item.text))));
}

function votes(block) {
  return h("ul", { class: "votes" }, block.groups.map((group) => {
    const bar = h("span", { class: `votes-bar ${group.gold ? "correct" : "wrong"}` });
    bar.style.width = `${100 * group.count / block.total}%`;
    return h("li", {}, h("span", { class: "votes-track" }, bar), h("b", {}, `${count(group.count)} `), h("span", { class: "quiet" }, `${share(group.count, block.total)} `), group.answer === null ? h("i", {}, "no answer") : rich(group.answer, { raw: true }), group.gold ? h("span", { class: "tag good" }, "expected") : null);
  }));
}

function diff(block) {
  return h("div", { class: "copied" }, copyButton(block.text), h("pre", { class: "code diff" }, block.text.split("\n").map((line) => {
    const kind = /^(\+\+\+|---|diff |index )/.test(line) ? "file" : line.startsWith("@@") ? "hunk" : line.startsWith("+") ? "come" : line.startsWith("-") ? "gone" : "";
    return h("span", { class: `line ${kind}` }, visible(line), "\n");
  })));
}

// The timeline of an agent: what it thought, did and saw, with a way to the first error.
function steps(block) {
  const first = block.items.find((item) => item.failed);
  const nodes = block.items.map((item) => h("details", { class: item.failed ? "step failed" : "step", open: item === first },
    h("summary", {}, h("b", {}, `${item.number} `), h("code", {}, visible(item.command).split("\n")[0].slice(0, 120)), h("span", { class: "quiet" }, [
      item.exit_code === null || item.exit_code === undefined ? item.status : `exit code ${item.exit_code}`, typeof item.seconds === "number" ? `${item.seconds.toFixed(1)} s` : "", typeof item.tokens === "number" ? plural(item.tokens, "token") : ""].filter(Boolean).map((words) => ` · ${words}`))),
    item.thought ? h("p", { class: "text" }, visible(item.thought)) : null,
    h("pre", { class: "code" }, visible(item.command)), item.output ? h("pre", { class: "code log" }, visible(item.output)) : null));
  const jump = () => {
    const node = nodes[block.items.indexOf(first)];
    node.open = true;
    node.scrollIntoView({ block: "center" });
  };
  return [h("p", {}, `${plural(block.items.length, "step")}${block.ended ? `, ended: ${visible(block.ended)}` : ""} `, first ? h("button", { type: "button", on: { click: jump } }, "Go to the first error") : null), nodes];
}
