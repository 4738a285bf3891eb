# SPDX-License-Identifier: Apache-2.0
"""Builds for tests, and what a build means, in the plainest words: everything in memory, one row after the other."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from newskills.config.layers import Layer, resolve
from newskills.train.data.build import BuildRequest, InputSource, build_training_set
from newskills.train.data.card import Card
from newskills.train.data.chain import make_chain
from newskills.train.data.filters.base import FilterVerdict
from newskills.train.data.job import BuildJob
from newskills.train.data.settings import RECIPES, TrainingDataConfig, check_settings

OFF = {"filters.remove_contaminated": False, "filters.remove_len_outlier_problems": False}


def config_of(recipe: str, values: dict[str, Any]) -> TrainingDataConfig:
    """The recipe's defaults, the two filters off that need files, then `values`."""
    off = {} if recipe == "code_sft" else OFF
    layers = [Layer("recipe", RECIPES[recipe].defaults), Layer("off", off), Layer("test", values)]
    return resolve(TrainingDataConfig, layers).value


def write(path: Path, rows: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    return path


def made(
    folder: Path,
    files: list[Path],
    recipe: str = "math_sft",
    *,
    graded: bool = True,
    workers: int = 1,
    **more: Any,
) -> tuple[list[dict[str, Any]], Card]:
    """(rows, card); keys of `values` with dots."""
    compared, schema = more.pop("compared", ()), more.pop("schema", "")
    config = config_of(recipe, {"output_path": str(folder / "out.jsonl"), **more.pop("values", {}), **more})
    check_settings(config, RECIPES[recipe], decontaminated=bool(compared))
    inputs = tuple(InputSource(path=path, graded=graded and not schema, schema=schema) for path in files)
    request = BuildRequest(config=config, recipe=recipe, inputs=inputs, compared=compared, workers=workers)
    card = build_training_set(request, lambda what, share: None)
    return [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()], card


def expected(
    rows: list[dict[str, Any]], config: TrainingDataConfig
) -> tuple[list[list[tuple[str, str]]], Counter[Any]]:
    """For math_sft without sampling: (problem, solution) of each problem in order, and what was removed by what."""
    job = BuildJob(config=config, recipe_name="math_sft", inputs=(), work="", partitions=1)
    chain = make_chain(job, lambda: None)  # type: ignore[return-value]
    seen, groups, removed = set(), {}, Counter()  # type: ignore[var-annotated]
    for row in rows:
        row = dict(row)
        if row.get("symbolic_correct") is None:
            removed["rows without a verdict"] += 1
            continue
        if not row["symbolic_correct"]:
            removed["wrong solutions"] += 1
            continue
        pair = row["problem"], row["generation"]
        if config.deduplicate and pair in seen:
            removed["duplicates"] += 1
            continue
        seen.add(pair)
        dropped = next((step.name for step in chain if step.apply(row) is FilterVerdict.DROPPED), None)
        group = groups.setdefault(row["problem"], [])
        final = (row["problem"], row["generation"])
        if dropped:
            removed[dropped] += 1
        elif final in group:
            removed["repeated outputs"] += 1
        else:
            group.append(final)
    return [group for group in groups.values() if group], removed
