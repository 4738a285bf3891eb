# SPDX-License-Identifier: Apache-2.0
"""Samples of lm-evaluation-harness (`--log_samples`): `samples_<task>_<time>.jsonl`, with `results_<time>.json` beside.

One row per document and filter. A task with several filters becomes several benchmarks, `<task>-<filter>`. Taken is
the first metric of a row whose value lies in 0–1 (or the one that the user names).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from newskills.base.errors import DataError
from newskills.base.reading.json_values import text_or_empty
from newskills.base.records import Row
from newskills.exchange.importers import (
    ImportedBenchmark,
    ImportSource,
    by_seed,
    origin_of,
    read_lines,
    scored_fields,
)
from newskills.exchange.json_of_others import finite_json, load_json

FORMAT = "lm-eval"
_FILE = re.compile(r"samples_(?P<task>.+)_(?P<time>\d{4}-\d\d-\d\dT[\d.\-:]+)\.jsonl")
_KNOWN_FIELDS = {
    "doc_id",
    "doc",
    "target",
    "arguments",
    "resps",
    "filtered_resps",
    "filter",
    "metrics",
    "doc_hash",
    "prompt_hash",
    "target_hash",
    "task_name",
}
"""Keys that are no metric."""
_REQUIRED_FIELDS = ("doc_id", "doc", "target", "resps", "filtered_resps")
_CHAT = '[{"role":'
_QUESTION = ("question", "problem", "query", "input", "prompt")


def fits(path: Path) -> bool:
    if path.is_file():
        return _FILE.fullmatch(path.name) is not None
    return next(path.rglob("samples_*.jsonl"), None) is not None


def read(source: ImportSource) -> list[ImportedBenchmark]:
    """Read the benchmarks in samples of lm-eval. Raises DataError: broken or foreign rows, no metric of a sample."""
    files, notes = _latest_files(source.path)
    several = len({folder for folder, _ in files}) > 1
    imported = []
    for (folder, task), file in files.items():
        for item in _import_task(task, file, source.score):
            if several:
                item.model = str(folder.relative_to(source.path))
            imported.append(item)
    imported[0].notes[:0] = notes
    return imported


def _latest_files(path: Path) -> tuple[dict[tuple[Path, str], Path], list[str]]:
    """Map (folder of a model, task) to its latest file. Raises DataError."""
    files = [path] if path.is_file() else sorted(path.rglob("samples_*.jsonl"))
    named = [(match["task"], match["time"], file) for file in files if (match := _FILE.fullmatch(file.name))]
    if path.is_file() and not named:
        named = [(path.stem.removeprefix("samples_"), "", path)]
    if not named:
        raise DataError(
            f"{path} has no samples_<task>_<time>.jsonl.", hint="lm_eval writes them with --log_samples."
        )
    latest: dict[tuple[Path, str], tuple[str, Path]] = {}
    for task, time, file in named:
        key = file.parent, task
        latest[key] = max(latest.get(key, (time, file)), (time, file))
    notes = []
    if older := len(named) - len(latest):
        notes.append(f"{older} older files of the same tasks are left out.")
    return {key: file for key, (_, file) in latest.items()}, notes


def _import_task(task: str, file: Path, score: str) -> list[ImportedBenchmark]:
    notes: list[str] = []
    rows = list(read_lines(file, load_json, notes))
    if not rows:
        raise DataError(f"{file} has no rows.")
    for number, row in enumerate(rows, 1):
        if missing := [name for name in _REQUIRED_FIELDS if name not in row]:
            raise DataError(f"{file}, row {number} is not a sample of lm-eval: it has no {', '.join(missing)}.")
    filters = list(dict.fromkeys(str(row.get("filter", "none")) for row in rows))
    origin = origin_of(FORMAT, file, _run_facts(file, task))
    imported = []
    for name in filters:
        own = [row for row in rows if str(row.get("filter", "none")) == name]
        metric = _choose_metric(own, score, file)
        benchmark = task if len(filters) == 1 else f"{task}-{name}"
        records = [(None, _sample_record(row, metric)) for row in own]
        imported.append(
            ImportedBenchmark(
                benchmark=benchmark,
                seeds=by_seed(benchmark, records, notes),
                origin={**origin, "filter": name, "score": metric},
                notes=notes,
            )
        )
        notes = []
    return imported


def _choose_metric(rows: Sequence[Row], score: str, file: Path) -> str:
    """Return the name of the metric to take: one that all rows have. Raises DataError."""
    usable = [
        name for name in _metric_names(rows[0]) if all(_score_value(row.get(name)) is not None for row in rows)
    ]
    if score and score not in usable:
        raise DataError(
            f"{file}: no metric '{score}' in the samples; the choices are {', '.join(usable) or 'none'}."
        )
    if not usable:
        names = ", ".join(_metric_names(rows[0])) or "its metrics"
        raise DataError(f"{file}: none of {names} is a score of a single sample (0 to 1).")
    return score or usable[0]


def _metric_names(row: Row) -> list[str]:
    named = row.get("metrics")
    if isinstance(named, list):
        return [str(name) for name in named]
    return [name for name in row if name not in _KNOWN_FIELDS]


def _score_value(value: object) -> float | None:
    """Return a score of one sample as a number in 0–1; None where `value` is not such a score."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int | float) and math.isfinite(value) and 0 <= value <= 1:
        return float(value)
    return None


def _sample_record(row: Row, metric: str) -> Row:
    share = _score_value(row[metric])
    assert share is not None, "the metric was chosen so that all rows have it"
    generation, answer = _reply_and_answer(row)
    rest = {name: row[name] for name in (*_metric_names(row), "doc_hash", "prompt_hash") if name in row}
    if isinstance(row["target"], str):
        expected_answer = row["target"]
    else:
        expected_answer = str(row["target"])
    made: Row = {
        "id": str(row["doc_id"]),
        "problem": _problem_text(row),
        "expected_answer": expected_answer,
        "generation": generation,
        "predicted_answer": answer,
        **scored_fields(share, f"{FORMAT}/{metric}"),
        **_prompt_fields(row),
        "lm_eval": {"doc": row["doc"], "arguments": row.get("arguments"), **rest},
    }
    clean: Row = finite_json(made)
    return clean


def _reply_and_answer(row: Row) -> tuple[str, str | None]:
    """Return (text, answer): of a generation its text; of choices by likelihood the number of the likeliest."""
    filtered, replies = row["filtered_resps"], row["resps"]
    likelihoods = _read_likelihoods(filtered)
    if likelihoods is not None:
        return "", str(max(range(len(likelihoods)), key=likelihoods.__getitem__))
    answer = _first_value(filtered)
    if not isinstance(answer, str):
        answer = None
    return text_or_empty(_first_value(replies)), answer


def _read_likelihoods(filtered: Any) -> list[float] | None:
    """Read `[[log-probability, is greedy], …]`, which samples hold as texts, too."""
    if not isinstance(filtered, list) or not filtered:
        return None
    try:
        pairs = [(float(likelihood), str(other)) for likelihood, other in filtered]
    except (TypeError, ValueError):
        return None
    if all(other in ("True", "False") for _, other in pairs):
        return [likelihood for likelihood, _ in pairs]
    return None


def _first_value(value: Any) -> Any:
    while isinstance(value, list) and value:
        value = value[0]
    return value


def _problem_text(row: Row) -> str:
    doc = row["doc"]
    if isinstance(doc, dict):
        question = next((doc[name] for name in _QUESTION if isinstance(doc.get(name), str)), None)
        if question is not None:
            return str(question)
    prompt = _request_text(row)
    messages = _chat_messages(prompt)
    if messages and isinstance(messages[-1].get("content"), str):
        return str(messages[-1]["content"])
    return prompt


def _prompt_fields(row: Row) -> Row:
    """Return the prompt that the model was sent, examples included, under the name that our own records have for it."""
    prompt = _request_text(row)
    if messages := _chat_messages(prompt):
        return {"messages": messages}
    if prompt:
        return {"rendered_prompt": prompt}
    return {}


def _request_text(row: Row) -> str:
    """Return the text of the (first) request; empty where the row does not say it."""
    arguments = row.get("arguments")
    while isinstance(arguments, dict) and arguments:
        arguments = next(iter(arguments.values()))
    return text_or_empty(_first_value(arguments))


def _chat_messages(prompt: str) -> list[Row]:
    """Return the messages of a prompt that is a chat as JSON (`--apply_chat_template`); empty for any other."""
    if not prompt.startswith(_CHAT):
        return []
    try:
        messages = load_json(prompt)
    except (ValueError, RecursionError):
        return []
    if isinstance(messages, list) and all(isinstance(message, dict) for message in messages):
        return messages
    return []


def _run_facts(file: Path, task: str) -> Row:
    """Read model, version and shots from the newest results beside the samples; nothing where they are not
    there."""
    for path in sorted(file.parent.glob("results_*.json"), reverse=True):
        try:
            results = load_json(path.read_bytes())
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(results, dict) and task in (results.get("results") or {}):
            return {
                "model": results.get("model_name"),
                "task_version": (results.get("versions") or {}).get(task),
                "num_fewshot": (results.get("n-shot") or {}).get(task),
                "harness_revision": results.get("git_hash"),
            }
    return {}
