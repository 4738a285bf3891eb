// SPDX-License-Identifier: Apache-2.0
// Plots as SVG, coloured by the style sheet, so that they read in print and in the dark.
import { h, svg } from "./dom.js";
import { count, trimmed } from "./words.js";

const PAD = { left: 46, right: 12, top: 10, bottom: 34 };

export function ticks(low, high, wanted) {
  if (!(high > low)) return [low];
  const raw = (high - low) / Math.max(1, wanted);
  const base = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((one) => one * base).find((one) => one >= raw * 0.999);
  const found = [];
  for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + step * 1e-9; value += step) found.push(Math.abs(value) < step * 1e-9 ? 0 : value);
  return found;
}

function frame(width, height, x, y, labels, title) {
  const across = (value) => PAD.left + (value - x[0]) / (x[1] - x[0] || 1) * (width - PAD.left - PAD.right);
  const up = (value) => height - PAD.bottom - (value - y[0]) / (y[1] - y[0] || 1) * (height - PAD.top - PAD.bottom);
  const node = svg("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": title });
  for (const value of ticks(y[0], y[1], Math.max(2, height / 50))) {
    node.append(svg("line", { class: "grid", x1: PAD.left, x2: width - PAD.right, y1: up(value), y2: up(value) }));
    node.append(svg("text", { x: PAD.left - 6, y: up(value), "text-anchor": "end", "dominant-baseline": "middle" }, labels.yText ? labels.yText(value) : trimmed(value)));
  }
  let steps = labels.xTicks || ticks(x[0], x[1], Math.max(2, (width - 60) / 80));
  if (labels.whole) steps = steps.filter(Number.isInteger);
  for (const value of steps) {
    node.append(svg("text", { x: across(value), y: height - PAD.bottom + 15, "text-anchor": "middle" }, labels.xText ? labels.xText(value) : trimmed(value)));
  }
  node.append(svg("line", { class: "axis", x1: PAD.left, x2: width - PAD.right, y1: height - PAD.bottom, y2: height - PAD.bottom }));
  if (labels.x) node.append(svg("text", { class: "label", x: width - PAD.right, y: height - 4, "text-anchor": "end" }, labels.x));
  return { node, across, up };
}

function legend(series) {
  return h("ul", { class: "legend" }, series.map((one, place) => one.points.length ? h("li", { class: `s${place % 8}` }, h("span", { class: "swatch" }), one.name) : null));
}

// Lines: series are {name, points: [[x, y]], band: [[x, low, high]], raw: points behind a smoothed line}.
export function lines(title, series, options) {
  const { width, height = 220 } = options;
  const drawn = series.filter((one) => one.points.length);
  const all = drawn.flatMap((one) => [...one.points, ...(one.raw || [])]);
  if (!all.length) return h("p", { class: "quiet" }, "Nothing to draw yet.");
  const bands = drawn.flatMap((one) => one.band || []);
  const xs = all.map((point) => point[0]);
  const ys = [...all.map((point) => point[1]), ...bands.flatMap((point) => [point[1], point[2]])];
  let low = options.low !== undefined ? options.low : Math.min(...ys);
  let high = options.high !== undefined ? options.high : Math.max(...ys);
  if (low === high && low === 0) [low, high] = [0, 1];
  else if (low === high) [low, high] = [low - Math.abs(low || 1) * 0.5, high + Math.abs(high || 1) * 0.5];
  else if (options.low === undefined) [low, high] = [low - (high - low) * 0.06, high + (high - low) * 0.06];
  const { node, across, up } = frame(width, height, [Math.min(...xs), Math.max(...xs)], [low, high], options, title);
  series.forEach((one, place) => {
    if (!one.points.length) return;
    const group = svg("g", { class: `line s${place % 8}` });
    if (one.band && one.band.length > 1) {
      const there = one.band.map(([x, , top]) => `${across(x).toFixed(1)},${up(top).toFixed(1)}`);
      const back = [...one.band].reverse().map(([x, bottom]) => `${across(x).toFixed(1)},${up(bottom).toFixed(1)}`);
      group.append(svg("path", { class: "band", d: `M${[...there, ...back].join("L")}Z` }));
    }
    if (one.raw) group.append(svg("path", { class: "stroke raw", d: `M${one.raw.map(([x, y]) => `${across(x).toFixed(1)},${up(y).toFixed(1)}`).join("L")}` }));
    group.append(svg("path", { class: "stroke", d: `M${one.points.map(([x, y]) => `${across(x).toFixed(1)},${up(y).toFixed(1)}`).join("L")}` }));
    if (one.points.length <= 40) {
      for (const [x, y] of one.points) {
        group.append(svg("circle", { cx: across(x).toFixed(1), cy: up(y).toFixed(1), r: 2.6 },
          svg("title", {}, `${one.name}: ${options.xText ? options.xText(x) : trimmed(x)} → ${trimmed(y)}`)));
      }
    }
    node.append(group);
  });
  return h("figure", {}, h("figcaption", {}, title), node, series.length > 1 ? legend(series) : null);
}

// Shares of right samples with intervals: rows are {name, value, low, high, n, href}.
export function bars(title, rows, options) {
  const { width } = options;
  const left = Math.min(Math.max(60, ...rows.map((row) => row.name.length * 7 + 10)), width * 0.4);
  const high = Math.max(1, ...rows.map((row) => row.high ?? row.value ?? 0)) > 60 ? 100 : Math.min(100, Math.max(5, ...rows.map((row) => (row.high ?? 0) * 1.1)));
  const line = 24;
  const height = rows.length * line + 30;
  const node = svg("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": title });
  const right = width - 64;
  const across = (value) => left + value / high * (right - left);
  for (const value of ticks(0, high, (right - left) / 70)) {
    node.append(svg("line", { class: "grid", x1: across(value), x2: across(value), y1: 4, y2: height - 24 }));
    node.append(svg("text", { x: across(value), y: height - 8, "text-anchor": "middle" }, `${trimmed(value)}`));
  }
  rows.forEach((row, place) => {
    const middle = place * line + line / 2 + 4;
    const most = Math.max(4, Math.floor(left / 7));
    node.append(svg("text", { x: left - 8, y: middle, "text-anchor": "end", "dominant-baseline": "middle" },
      row.name.length > most ? `${row.name.slice(0, most - 1)}…` : row.name, svg("title", {}, row.name)));
    if (row.value === null || row.value === undefined) return;
    node.append(svg("rect", { class: "bar", x: left, y: middle - 7, width: Math.max(0, across(row.value) - left), height: 14, rx: 2 },
      svg("title", {}, `${row.name}: ${row.value.toFixed(1)} % of ${count(row.n)}`)));
    node.append(svg("line", { class: "whisker", x1: across(row.low), x2: across(row.high), y1: middle, y2: middle }));
    node.append(svg("text", { x: width - 2, y: middle, "text-anchor": "end", "dominant-baseline": "middle" }, `${row.value.toFixed(1)} %`));
  });
  return h("figure", {}, h("figcaption", {}, title), node);
}

// Stacked bins: edges has one more than each list of counts; names give the classes of the pieces.
export function histogram(title, edges, counts, options) {
  const { width, height = 200 } = options;
  const names = Object.keys(counts);
  const totals = edges.slice(1).map((_, place) => names.reduce((sum, name) => sum + counts[name][place], 0));
  const high = Math.max(1, ...totals);
  const { node, across, up } = frame(width, height, [edges[0], edges[edges.length - 1]], [0, high * 1.04], { ...options, yText: (value) => trimmed(value) }, title);
  totals.forEach((_, place) => {
    let base = 0;
    for (const name of names) {
      const size = counts[name][place];
      if (!size) continue;
      const [from, to] = [across(edges[place]), across(edges[place + 1])];
      node.append(svg("rect", { class: `piece ${name}`, x: from + 0.5, y: up(base + size), width: Math.max(0.5, to - from - 1), height: Math.max(0.5, up(base) - up(base + size)) },
        svg("title", {}, `${trimmed(edges[place])}–${trimmed(edges[place + 1] - 1)}: ${count(size)} ${name.replace("_", " ")}`)));
      base += size;
    }
  });
  return h("figure", {}, h("figcaption", {}, title), node,
    h("ul", { class: "legend" }, names.map((name) => h("li", {}, h("span", { class: `swatch piece ${name}` }), name.replace("_", " ")))));
}

// A whole cut into parts: {name: count}.
export function parts(counts, order, total) {
  return h("span", { class: "parts", role: "img", "aria-label": order.filter((name) => counts[name]).map((name) => `${name.replace("_", " ")} ${count(counts[name])}`).join(", ") },
    order.filter((name) => counts[name]).map((name) => {
      const piece = h("span", { class: `piece ${name}`, title: `${name.replace("_", " ")}: ${count(counts[name])}` });
      piece.style.flexGrow = String(counts[name] / total);
      return piece;
    }));
}
