// SPDX-License-Identifier: Apache-2.0
// Answers of the server, or, in an exported folder, of the scripts beside the page.

const waiting = new Map();
const received = new Map();

export const exported = document.documentElement.dataset.exported === "yes";

// Scripts of an exported folder hand over what they hold.
if (exported) globalThis.newskillsReceive = (name, value) => received.set(name, value);

function query(parameters) {
  const known = Object.entries(parameters || {}).map(([name, value]) => [name, String(value)]);
  return new URLSearchParams(known).toString();
}

function script(name) {
  if (!waiting.has(name)) {
    waiting.set(name, new Promise((resolve, reject) => {
      const node = document.createElement("script");
      node.addEventListener("load", () => resolve(received.get(name)));
      node.addEventListener("error", () => reject(new Error("This was not exported. `ns view` on the results shows it.")));
      node.src = `data/${name}.js`;
      document.head.append(node);
    }));
  }
  return waiting.get(name);
}

async function manifest() {
  return script("manifest");
}

export async function get(name, parameters) {
  if (!exported) return fetched(name, parameters).then((reply) => reply.json());
  const known = await manifest();
  if (name === "state") return { state: "exported", indexing: false };
  if (name === "rows" || name === "records" || name === "sample") return samples(known, name, parameters);
  if (name === "search") return search(known, parameters);
  const key = `${name}?${query(parameters)}`;
  if (!(key in known.answers)) throw new Error("This was not exported. `ns view` on the results shows it.");
  return script(known.answers[key]);
}

async function samples(known, name, parameters) {
  const set = known.samples[JSON.stringify([parameters.run, parameters.benchmark])];
  const find = async (file, number) => {
    const chunk = set && set.files[file] && set.files[file][Math.floor(number / known.chunk)];
    if (!chunk) throw new Error("This sample was not exported. `ns view` on the results shows it.");
    return (await script(chunk))[number % known.chunk];
  };
  if (name === "sample") return (await find(parameters.file, parameters.number)).page;
  const rows = String(parameters.rows).split(",").filter(Boolean).map((part) => part.split(":").map(Number));
  return Promise.all(rows.map(async ([file, number]) => {
    try {
      const { brief, page } = await find(file, number);
      if (name === "rows") return brief;
      return page.record ? JSON.stringify(page.record) : null;
    } catch (error) {
      if (name === "records") return null;
      return { id: `#${number}`, question: error.message };
    }
  }));
}

// As the server does, but one script of samples after the other: `offset` and `next` count scripts.
async function search(known, parameters) {
  const { files } = known.samples[JSON.stringify([parameters.run, parameters.benchmark])] || { files: [] };
  const total = files.reduce((sum, names) => sum + names.length, 0);
  const before = files.slice(0, parameters.file).reduce((sum, names) => sum + names.length, 0);
  if (before + parameters.offset >= total) return { hits: [], next: null, done: total, total };
  const file = parameters.offset < files[parameters.file].length ? parameters.file : parameters.file + 1;
  const offset = file === parameters.file ? parameters.offset : 0;
  if (!files[file].length) return { hits: [], next: [file + 1, 0], done: before, total };
  const needle = JSON.stringify(parameters.q).slice(1, -1).toLowerCase();
  const hits = [];
  (await script(files[file][offset])).forEach(({ page }, place) => {
    const text = JSON.stringify([page.id, page.prompt, page.record, page.reasoning, page.reply, page.turns, page.verdict, page.raw]);
    if (text.toLowerCase().includes(needle)) hits.push([file, offset * known.chunk + place]);
  });
  const done = files.slice(0, file).reduce((sum, names) => sum + names.length, 0) + offset + 1;
  return { hits, next: done < total ? [file, offset + 1] : null, done, total };
}

export async function binary(name, parameters) {
  if (!exported) return fetched(name, parameters).then((reply) => reply.arrayBuffer());
  const known = await manifest();
  const text = atob(await script(known.answers[`${name}?${query(parameters)}`]));
  return Uint8Array.from(text, (char) => char.charCodeAt(0)).buffer;
}

async function fetched(name, parameters) {
  let reply;
  try {
    reply = await fetch(`api/${name}?${query(parameters)}`);
  } catch {
    throw new Error("The viewer does not answer: is `ns view` still running?");
  }
  if (!reply.ok) {
    const told = await reply.json().catch(() => ({}));
    throw new Error(told.error || `The viewer answered ${reply.status}.`);
  }
  return reply;
}

export function media(parameters, item) {
  return exported ? `media/${item.file}` : `api/media?${query({ ...parameters, item: item.number })}`;
}
