// SPDX-License-Identifier: Apache-2.0
// The samples of a benchmark as columns, and filters over them: all of it in this page, so that a filter takes no trip.
import { binary } from "./api.js";

const NO_TOKENS = 0xffffffff;
let kept = { key: "", columns: null };

export const FILTERS = ["outcome", "cause", "subset", "seed", "finish", "agreement", "scan", "min", "max", "q", "where"];

export async function columns(run, benchmark, fresh) {
  const key = JSON.stringify([run, benchmark]);
  if (kept.key !== key || fresh) kept = { key, columns: read(await binary("columns", { run, benchmark })) };
  return kept.columns;
}

function read(buffer) {
  const size = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  const rows = head.rows;
  let at = 4 + size;
  const take = (Type) => {
    const found = new Type(buffer, at, rows);
    at += rows * Type.BYTES_PER_ELEMENT;
    return found;
  };
  const made = { ...head, problem: take(Uint32Array), tokens: take(Uint32Array), subset: take(Uint16Array), outcome: take(Uint8Array), cause: take(Uint8Array), finish: take(Uint8Array) };
  for (const scan of made.scans) scan.codes = take(Uint8Array);
  made.starts = [];
  let start = 0;
  for (const file of head.files) {
    made.starts.push(start);
    start += file.rows;
  }
  made.agreement = agreement(made);
  return made;
}

// For each problem: 0 no verdict, 1 all right, 2 none right, 3 some right.
function agreement(made) {
  const right = new Uint32Array(made.problems);
  const scored = new Uint32Array(made.problems);
  const codes = ["correct", "wrong", "no_answer"].map((name) => made.outcomes.indexOf(name));
  for (let row = 0; row < made.rows; row += 1) {
    const code = made.outcome[row];
    if (code === codes[0]) right[made.problem[row]] += 1;
    if (codes.includes(code)) scored[made.problem[row]] += 1;
  }
  return Uint8Array.from(right, (count, problem) => (!scored[problem] ? 0 : count === scored[problem] ? 1 : count === 0 ? 2 : 3));
}

export function tokensOf(made, row) {
  return made.tokens[row] === NO_TOKENS ? null : made.tokens[row];
}

// Number of a row ↔ [file, number of the record in it].
export function place(made, row) {
  let file = made.starts.length - 1;
  while (file > 0 && made.starts[file] > row) file -= 1;
  return [file, row - made.starts[file]];
}

export function rowOf(made, file, number) {
  return made.starts[file] + number;
}

const AGREEMENTS = { all: 1, none: 2, some: 3 };

let list = { key: "", rows: [] };

// The list that was shown last: its samples are walked through, whatever search made it.
export function remember(at, filters, rows) {
  list = { key: listKey(at, filters), rows };
}

export function remembered(at, filters) {
  return list.key === listKey(at, filters) ? list.rows : null;
}

function listKey(at, filters) {
  return JSON.stringify([at.run, at.benchmark, ...[...FILTERS, "sort"].map((name) => filters[name] || "")]);
}

// Rows that pass all filters and are in every set of `hits`, in the order of the files, or sorted by tokens.
export function filtered(made, filters, hits) {
  const outcomes = codes(filters.outcome, made.outcomes);
  const causes = codes(filters.cause, made.causes);
  const subsets = codes(filters.subset, made.subsets);
  const finishes = codes(filters.finish, made.finishes);
  const scanned = scanCodes(made, filters.scan);
  const agreed = filters.agreement ? AGREEMENTS[filters.agreement] : 0;
  const [min, max] = [filters.min === "" || filters.min === undefined ? 0 : Number(filters.min), filters.max === "" || filters.max === undefined ? Infinity : Number(filters.max)];
  const limited = min > 0 || max < Infinity;
  const found = [];
  made.files.forEach((file, place) => {
    if (filters.seed !== undefined && filters.seed !== "" && String(place) !== filters.seed) return;
    const start = made.starts[place];
    for (let row = start; row < start + file.rows; row += 1) {
      if (outcomes && !outcomes[made.outcome[row]]) continue;
      if (causes && !causes[made.cause[row]]) continue;
      if (subsets && !subsets[made.subset[row]]) continue;
      if (finishes && !finishes[made.finish[row]]) continue;
      if (scanned && !scanned.wanted[scanned.codes[row]]) continue;
      if (agreed && made.agreement[made.problem[row]] !== agreed) continue;
      if (limited && (made.tokens[row] === NO_TOKENS || made.tokens[row] < min || made.tokens[row] > max)) continue;
      if (hits.some((rows) => !rows.has(row))) continue;
      found.push(row);
    }
  });
  if (filters.sort === "longest") found.sort((a, b) => (tokensOf(made, b) ?? -1) - (tokensOf(made, a) ?? -1) || a - b);
  if (filters.sort === "shortest") found.sort((a, b) => made.tokens[a] - made.tokens[b] || a - b);
  return found;
}

// A filter `scanner=label` as the codes that it wants; none where it names no scanner of this benchmark.
function scanCodes(made, chosen) {
  if (!chosen) return null;
  const cut = chosen.indexOf("=");
  const scan = made.scans.find((known) => known.name === chosen.slice(0, cut));
  return scan ? { codes: scan.codes, wanted: codes(chosen.slice(cut + 1), scan.labels) } : null;
}

// What scanners report of a row, as [scanner, label].
export function reports(made, row) {
  return made.scans.map((scan) => [scan.name, scan.labels[scan.codes[row]]]).filter(([, label]) => label && label !== "no");
}

function codes(chosen, table) {
  if (!chosen) return null;
  const wanted = new Uint8Array(Math.max(256, table.length));
  for (const name of chosen.split("|")) {
    const code = table.indexOf(name === "(none)" ? "" : name);
    if (code >= 0) wanted[code] = 1;
  }
  return wanted;
}

export function used(table, column) {
  const seen = new Uint8Array(Math.max(256, table.length));
  for (const code of column) seen[code] = 1;
  return table.filter((_, code) => seen[code]);
}
