// SPDX-License-Identifier: Apache-2.0
// Numbers and names as people read them.
import { h } from "./dom.js";

export const OUTCOMES = ["correct", "wrong", "no_answer", "unscored", "damaged"];
export const OUTCOME_WORDS = {
  correct: "correct", wrong: "wrong", no_answer: "no answer", unscored: "unscored", damaged: "damaged line", "": "not graded yet",
};

export function count(number) {
  return number === null || number === undefined ? "–" : Math.round(number).toLocaleString("en-GB");
}

export function short(number) {
  if (number === null || number === undefined) return "–";
  for (const [size, unit] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (Math.abs(number) >= size) return `${trimmed(number / (unit === "k" ? 1e3 : size))} ${unit}`;
  }
  return count(number);
}

export function trimmed(number) {
  if (number === null || number === undefined) return "–";
  const size = Math.abs(number);
  if (size === 0) return "0";
  if (size < 1e-3 || size >= 1e6) return number.toExponential(2);
  return String(Number(number.toPrecision(size >= 100 ? 4 : 3)));
}

export function percent(number) {
  return number === null || number === undefined ? "–" : `${number.toFixed(1)} %`;
}

export function share(part, whole) {
  if (!whole) return "–";
  const value = 100 * part / whole;
  return value > 0 && value < 0.1 ? "<0.1 %" : percent(value);
}

export function seconds(number) {
  if (number === null || number === undefined) return "–";
  if (number < 60) return `${number.toFixed(number < 10 ? 1 : 0)} s`;
  if (number < 3600) return `${Math.floor(number / 60)} min ${Math.round(number % 60)} s`;
  return `${Math.floor(number / 3600)} h ${Math.round((number % 3600) / 60)} min`;
}

export function bytes(number) {
  for (const [size, unit] of [[1 << 30, "GiB"], [1 << 20, "MiB"], [1 << 10, "KiB"]]) {
    if (number >= size) return `${trimmed(number / size)} ${unit}`;
  }
  return `${number} B`;
}

export function signed(number, digits = 1) {
  return `${number > 0 ? "+" : number < 0 ? "−" : "±"}${Math.abs(number).toFixed(digits)}`;
}

export function badge(outcome) {
  const known = outcome || "";
  return h("span", { class: `badge ${known || "open"}` }, OUTCOME_WORDS[known] || known);
}

export function interval(found) {
  return found && found.low !== null && found.low !== undefined ? `[${found.low.toFixed(1)}, ${found.high.toFixed(1)}]` : "";
}

export function plural(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

// A day as 2026-11-29, of seconds since 1970.
export function day(began) {
  return new Date(began * 1000).toISOString().slice(0, 10);
}

// A long name without its middle: both ends tell names apart.
export function middle(text, most) {
  const letters = [...String(text)];
  if (letters.length <= most) return String(text);
  const head = Math.ceil((most - 1) / 2);
  return `${letters.slice(0, head).join("")}…${letters.slice(letters.length - (most - 1 - head)).join("")}`;
}

// A name that lines may break behind its signs, not within its words.
export function breakable(text) {
  return String(text).split(/(?<=[/_.=-])/).flatMap((part, place) => (place ? [h("wbr", {}), part] : [part]));
}

// The last part of a path or name: what readers tell runs apart by.
export function lastPart(text) {
  return String(text).split("/").filter(Boolean).pop() || String(text);
}

export function link(page, parameters) {
  const known = Object.entries(parameters || {}).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const query = new URLSearchParams(known.map(([name, value]) => [name, String(value)])).toString();
  return `#/${page}${query ? `?${query}` : ""}`;
}
