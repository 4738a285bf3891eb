# SPDX-License-Identifier: Apache-2.0
"""Scores of a model in the hub's form: `.eval_results/<benchmark>.yaml` in the model's repository.

https://huggingface.co/docs/hub/eval-results
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import yaml
from msgspec import Struct

from newskills.base.benchmark import Benchmark
from newskills.base.errors import ConfigError, UnknownNameError
from newskills.benchmarks import get_benchmark

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_ADDRESS = re.compile(r"https://huggingface\.co/datasets/([^/]+/[^/]+)/")


class HubDataset(Struct, frozen=True):
    """What the hub calls a benchmark: a data set, and a task of it."""

    id: str
    task: str = "default"


class ModelScore(Struct, frozen=True, kw_only=True):
    """A score in percent, with what is said of how it was made."""

    benchmark: str
    value: float
    date: str = ""
    notes: str = ""


def dataset_of(benchmark: str, named: Mapping[str, HubDataset]) -> HubDataset | None:
    """Return the data set on the hub: the one that was named, else the one that the benchmark's rows come from; None:
    they come from elsewhere."""
    if benchmark in named:
        return named[benchmark]
    try:
        entry = get_benchmark(benchmark)
    except UnknownNameError:
        return None
    return _source_of(entry)


def _source_of(entry: Benchmark) -> HubDataset | None:
    for source in entry.sources:
        if _NAME.fullmatch(source.hf):
            subset = source.config
            if not subset or "{" in subset or "/" in subset:
                subset = "default"
            return HubDataset(source.hf, subset)
        if match := _ADDRESS.match(source.url):
            return HubDataset(match[1])
    return None


def parse_datasets(words: Sequence[str]) -> dict[str, HubDataset]:
    """Parse `gsm8k=openai/gsm8k:main`. Raises ConfigError."""
    datasets = {}
    for word in words:
        benchmark, _, place = word.partition("=")
        name, _, task = place.partition(":")
        if not benchmark or not _NAME.fullmatch(name):
            raise ConfigError(
                f"--hub_dataset: '{word}' names no data set.",
                hint="Write BENCHMARK=OWNER/NAME or BENCHMARK=OWNER/NAME:TASK",
            )
        datasets[benchmark] = HubDataset(name, task or "default")
    return datasets


def evaluation_file(score: ModelScore, dataset: HubDataset) -> bytes:
    """Return the content of a file of evaluation results."""
    entry: dict[str, object] = {
        "dataset": {"id": dataset.id, "task_id": dataset.task},
        "value": round(score.value, 4),
    }
    if score.date:
        entry["date"] = score.date
    if score.notes:
        entry["notes"] = score.notes
    return yaml.safe_dump([entry], sort_keys=False, allow_unicode=True).encode()
