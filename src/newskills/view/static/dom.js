// SPDX-License-Identifier: Apache-2.0
// Elements out of values. Text is only ever put in as text; no markup is read, and no address but our own is linked.

const SVG = "http://www.w3.org/2000/svg";
const SAFE = new Set([
  "class", "id", "title", "role", "type", "name", "value", "placeholder", "scope", "for", "colspan", "tabindex", "min", "max",
  "open", "checked", "selected", "disabled", "controls", "alt", "loading", "lang", "dir", "for", "autocomplete", "list", "multiple",
  "x", "y", "x1", "y1", "x2", "y2", "width", "height", "d", "viewBox", "cx", "cy", "r", "rx", "text-anchor", "transform", "points",
  "dominant-baseline", "preserveAspectRatio",
]);

function made(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, act] of Object.entries(value)) node.addEventListener(event, act);
    else if (name === "href") node.setAttribute("href", own(value));
    else if (name === "src") node.setAttribute("src", ours(value));
    else if (SAFE.has(name) || name.startsWith("aria-") || name.startsWith("data-")) node.setAttribute(name, value === true ? "" : value);
    else throw new Error(`no attribute ${name}`);
  }
  put(node, children);
  return node;
}

// A place in this page.
function own(address) {
  if (!String(address).startsWith("#")) throw new Error("only places in this page are linked");
  return address;
}

// A picture or sound that our server, or the exported folder, hands out.
function ours(address) {
  if (!/^(api\/media\?|media\/)/.test(address)) throw new Error("only media of records are shown");
  return address;
}

// Hands a text to the reader as a file. Its address is one of this page's memory, and no part of the page.
export function save(name, parts) {
  const node = document.createElement("a");
  node.href = URL.createObjectURL(new Blob(parts, { type: "application/octet-stream" }));
  node.download = name.replace(/[^\w.]+/g, "-").replace(/^[.-]+/, "").slice(-120);
  node.click();
  setTimeout(() => URL.revokeObjectURL(node.href), 60_000);
}

export function put(node, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

export function h(tag, attributes, ...children) {
  return made(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return made(document.createElementNS(SVG, tag), attributes, children);
}

export function replace(node, ...children) {
  node.textContent = "";
  put(node, children);
  return node;
}

// A table: head is a list of texts or {text, number}; rows are lists of cells.
export function table(caption, head, rows, attributes) {
  const numeric = head.map((cell) => Boolean(cell && cell.number));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", attributes || {},
      h("caption", { class: "quiet" }, caption),
      h("thead", {}, h("tr", {}, head.map((cell, place) =>
        h("th", { scope: "col", class: numeric[place] ? "number" : null }, cell && cell.text !== undefined ? cell.text : cell)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, place) => {
        const made = cell instanceof HTMLTableCellElement ? cell : h("td", { class: numeric[place] ? "number" : null }, cell);
        made.dataset.label = head[place] && head[place].text !== undefined ? head[place].text : head[place];
        return made;
      }))))));
}
