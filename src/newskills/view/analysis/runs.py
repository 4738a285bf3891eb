# SPDX-License-Identifier: Apache-2.0
"""The table `runs`: one row for each benchmark of a run, with what it was made with and what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from newskills.base.reading.json_values import object_or_empty
from newskills.base.records import Row
from newskills.view.analysis.arrow import table_of
from newskills.view.analysis.folders import FolderPath, ResultFolders, find_results
from newskills.view.discovery import BenchmarkFiles, Run
from newskills.view.files import metrics_of, read_description, state_of
from newskills.view.filters.columns import Column, number_or_none, text_or_none, whole_or_none

if TYPE_CHECKING:
    import pyarrow

RUN_COLUMNS = (
    Column(name="run", kind="word", meaning="folder of the run, below the folder that was named"),
    Column(name="benchmark", kind="word", meaning="benchmark, as `group.member` where it belongs to a group"),
    Column(name="folder", kind="text", meaning="where the records lie"),
    Column(
        name="system",
        kind="word",
        meaning="tool that made the results: newskills, lm-eval, inspect, …",
    ),
    Column(name="model", kind="word", meaning="name of the model"),
    Column(name="status", kind="word", meaning="done, running, failed, interrupted, …; null: not recorded"),
    Column(name="files", kind="whole", meaning="output files: seeds, or chunks that were not merged"),
    Column(name="rows", kind="whole", meaning="rows of all files, as the run planned them"),
    Column(name="newskills", kind="word", meaning="version of newskills that made the records, or imported them"),
    Column(name="prompt", kind="word", meaning="name of the prompt"),
    Column(name="prompt_hash", kind="word", meaning="hash of the prompt's text"),
    Column(name="prompt_source", kind="word", meaning="wording of the prompt: official, newskills, …"),
    Column(name="grader", kind="word", meaning="grader with its version and settings"),
    Column(name="metric", kind="word", meaning="metric of the benchmark"),
    Column(name="split", kind="word", meaning="split of the data"),
    Column(name="data_sha256", kind="word", meaning="hash of the prepared data"),
    Column(name="temperature", kind="number", meaning="temperature that was asked for"),
    Column(name="top_p", kind="number", meaning="top-p that was asked for"),
    Column(name="max_tokens", kind="whole", unit="tokens", meaning="longest reply that was asked for"),
    Column(name="input_tokens", kind="whole", unit="tokens", meaning="tokens of all prompts"),
    Column(name="output_tokens", kind="whole", unit="tokens", meaning="tokens of all replies"),
    Column(name="cost", kind="number", unit="currency of the prices", meaning="cost of all requests"),
    Column(name="started", kind="time", unit="UTC", meaning="when the first file was begun"),
    Column(name="ended", kind="time", unit="UTC", meaning="when the last file was finished"),
    Column(name="settings", kind="text", meaning="all settings that decide what the model is asked, as JSON"),
)


def runs(paths: FolderPath | Sequence[FolderPath]) -> pyarrow.Table:
    """Return the runs below `paths`, one row for each benchmark. Raises ConfigError (pyarrow is missing), DataError."""
    return runs_in(find_results(paths))


def runs_in(results: ResultFolders) -> pyarrow.Table:
    rows = [_run_row(results, run, benchmark) for run, benchmark in results.benchmarks()]
    return table_of(RUN_COLUMNS, [[row.get(column.name) for column in RUN_COLUMNS] for row in rows], results.notes)


def _run_row(results: ResultFolders, run: Run, benchmark: BenchmarkFiles) -> dict[str, Any]:
    states = [state_of(results.folders, file) for file in benchmark.files]
    facts = read_description(results.folders, benchmark)
    origin = object_or_empty(facts.get("imported"))
    first = states[0] if states else {}
    settings = object_or_empty(first.get("settings"))
    versions = object_or_empty(metrics_of(results.folders, benchmark)[1].get("versions"))
    prompt, _, prompt_hash = str(settings.get("prompt") or "").rpartition(" ")
    statuses = [str(state["status"]) for state in states if state.get("status")]
    first_status = statuses[0] if statuses else None
    return {
        "run": run.id,
        "benchmark": benchmark.name,
        "folder": str(benchmark.folder),
        "system": text_or_none(origin.get("format")) or "newskills",
        "model": text_or_none(settings.get("server.model") or origin.get("model")),
        "status": next((status for status in statuses if status != "done"), first_status),
        "files": len(benchmark.files),
        "rows": _sum_or_none(states, "rows"),
        "newskills": text_or_none(facts.get("newskills") or versions.get("newskills")),
        "prompt": text_or_none(facts.get("prompt")) or prompt or None,
        "prompt_hash": text_or_none(facts.get("prompt_hash")) or prompt_hash or None,
        "prompt_source": text_or_none(facts.get("prompt_source")),
        "grader": text_or_none(facts.get("grader") or first.get("grader")) or None,
        "metric": text_or_none(facts.get("metric")),
        "split": text_or_none(facts.get("split")),
        "data_sha256": text_or_none(object_or_empty(facts.get("data")).get("sha256")),
        "temperature": number_or_none(settings.get("inference.temperature")),
        "top_p": number_or_none(settings.get("inference.top_p")),
        "max_tokens": whole_or_none(settings.get("inference.tokens_to_generate")),
        "input_tokens": _sum_or_none(states, "input_tokens"),
        "output_tokens": _sum_or_none(states, "output_tokens"),
        "cost": _total_cost(states),
        "started": _state_time(states, "started", min),
        "ended": _state_time(states, "ended", max),
        "settings": msgspec.json.encode(settings, order="sorted").decode() if settings else None,
    }


def _sum_or_none(states: Sequence[Row], name: str) -> int | None:
    values = [value for state in states if (value := whole_or_none(state.get(name))) is not None]
    if values:
        return whole_or_none(sum(values))
    return None


def _total_cost(states: Sequence[Row]) -> float | None:
    values = [value for state in states if (value := number_or_none(state.get("cost"))) is not None]
    if values:
        return sum(values)
    return None


def _state_time(states: Sequence[Row], name: str, choose: Any) -> datetime | None:
    values = [value for state in states if (value := number_or_none(state.get(name)))]
    try:
        if values:
            return datetime.fromtimestamp(choose(values), UTC)
        return None
    except (ValueError, OverflowError, OSError):  # no time of this era
        return None
