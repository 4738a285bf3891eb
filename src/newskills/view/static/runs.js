// SPDX-License-Identifier: Apache-2.0
// Which runs, benchmarks and trainings there are, with the scores: what pages choose from.
import { get } from "./api.js";

export async function allRuns() {
  const page = await get("matrix", {});
  const names = page.benchmarks.map((one) => one.name);
  const runs = page.runs.map((run) => ({ id: run.id, scores: Object.fromEntries(run.cells.map(([place, value]) => [names[place], value])) }));
  return { runs, benchmarks: names, trainings: page.trainings };
}
