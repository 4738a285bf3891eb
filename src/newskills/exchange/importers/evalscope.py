# SPDX-License-Identifier: Apache-2.0
"""Output folders of EvalScope: `reviews/<model>/<dataset>_<subset>.jsonl`, with `predictions/` and `reports/` beside.

The subsets of a data set become one benchmark, repeats become seeds. Taken is the main score of a sample (or the one
that the user names), if it lies in 0–1. A sample that no judge could judge, or whose request failed, is unscored.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from newskills.base.errors import DataError
from newskills.base.reading.json_values import object_or_empty
from newskills.base.records import Row
from newskills.exchange.importers import (
    ImportedBenchmark,
    ImportSource,
    by_seed,
    origin_of,
    read_lines,
    scored_fields,
    unscored_fields,
)
from newskills.exchange.json_of_others import finite_json, load_json

FORMAT = "evalscope"
REVIEWS = "reviews"
_USABLE_STATUSES = ("success", "fallback", "degraded")
_CAUSES = {"transport_error": "provider", "parse_error": "judge", "invalid_session": "judge"}
"""Why a score is not usable → who is to blame; anything else is the grader."""
_FINISH_REASONS = {"max_tokens": "length", "model_length": "length"}


class _Run(NamedTuple):
    """What one model did: files of reviews by data set, then subset; the same of predictions; the reports."""

    model: str
    folder: Path
    reviews: Mapping[str, Mapping[str, Path]]
    reports: Mapping[str, Row]


def fits(path: Path) -> bool:
    return path.is_dir() and bool(_model_folders(path))


def read(source: ImportSource) -> list[ImportedBenchmark]:
    """Read the benchmarks of an EvalScope run. Raises DataError: broken or foreign rows, several runs or models, no
    such score."""
    run = _find_run(source.path)
    return [_data_set(run, name, files, source.score) for name, files in run.reviews.items()]


def _model_folders(path: Path) -> list[Path]:
    """Return the folders of models, with reviews in them."""
    if path.parent.name == REVIEWS and next(path.glob("*.jsonl"), None):
        return [path]
    if path.name == REVIEWS:
        places = [path]
    else:
        places = sorted(p for p in path.rglob(REVIEWS) if p.is_dir())
    models = (model for place in places for model in sorted(place.iterdir()) if model.is_dir())
    return [model for model in models if next(model.glob("*.jsonl"), None)]


def _find_run(path: Path) -> _Run:
    """Find the run below `path`. Raises DataError where there is none, or more than one."""
    folders = _model_folders(path)
    if not folders:
        raise DataError(
            f"{path} has no {REVIEWS}/<model>/*.jsonl.", hint="EvalScope writes them into its work_dir."
        )
    if len(folders) > 1:
        names = ", ".join(str(folder.relative_to(path)) for folder in folders[:8])
        raise DataError(f"{path} has several runs or models: {names}.", hint="Import one of these folders.")
    (folder,) = folders
    reports = {}
    for file in sorted((folder.parents[1] / "reports" / folder.name).glob("*.json")):
        report = _read_object(file)
        reports[file.stem] = report
    by_set: dict[str, dict[str, Path]] = {}
    for file in sorted(folder.glob("*.jsonl")):
        name, subset = _split_name(file.stem, reports)
        by_set.setdefault(name, {})[subset] = file
    return _Run(folder.name, folder, by_set, reports)


def _split_name(stem: str, names: Iterable[str]) -> tuple[str, str]:
    """Return (data set, subset) of `<dataset>_<subset>`, both of which may hold underscores."""
    fitting = [name for name in names if stem.startswith(f"{name}_")]
    name = max(fitting, key=len, default=stem)
    return name, stem[len(name) + 1 :]


def _data_set(run: _Run, name: str, files: Mapping[str, Path], score: str) -> ImportedBenchmark:
    notes: list[str] = []
    reviews = {subset: list(read_lines(file, load_json, notes)) for subset, file in files.items()}
    every = [row for rows in reviews.values() for row in rows]
    for row in every:
        _check_review(row, run.folder, name)
    taken = score or _main_score(every)
    if score and not any(score in _score_fields(row)["value"] for row in every):
        names = dict.fromkeys(key for row in every for key in _score_fields(row)["value"])
        raise DataError(
            f"{name}: no score '{score}' in the samples; the choices are {', '.join(names) or 'none'}."
        )
    records: list[tuple[int | None, Row]] = []
    expected: list[str] = []
    for subset, rows in reviews.items():
        predictions = _read_predictions(run, files[subset].name, notes)
        several = _count_repeats(rows)
        at = f"{subset}-" if subset else ""
        for row in rows:
            group, seed = _sample_place(row, several)
            record = {"id": f"{at}{group}", **_sample_record(row, predictions.get(row["index"], {}), taken)}
            if len(reviews) > 1:
                record["subset_for_metrics"] = subset
            records.append((seed, record))
        expected += [f"{at}{group}" for group in range(_requested_samples(run, name, subset) // several)]
    report = run.reports.get(name, {})
    facts = {"model": run.model, "score": taken or None, "report": report.get("schema_version")}
    return ImportedBenchmark(
        benchmark=name,
        seeds=by_seed(name, records, notes, expected),
        origin=origin_of(FORMAT, run.folder, facts),
        notes=notes,
    )


def _check_review(row: Row, folder: Path, name: str) -> None:
    inner = object_or_empty(row.get("sample_score")).get("score")
    if not isinstance(row.get("index"), int) or not isinstance(inner, dict):
        raise DataError(f"{folder}: a row of {name} is not a review of EvalScope 1.0 or later: {str(row)[:80]}.")
    inner["value"] = object_or_empty(inner.get("value"))


def _score_fields(row: Row) -> Row:
    inner: Row = row["sample_score"]["score"]
    return inner


def _main_score(rows: Sequence[Row]) -> str:
    """Return the name of the score that the first sample with scores calls its main one, or else of its first score;
    empty where no sample has scores."""
    for row in rows:
        score = _score_fields(row)
        if score["value"]:
            return str(score.get("main_score_name") or next(iter(score["value"])))
    return ""


def _count_repeats(rows: Sequence[Row]) -> int:
    """Return how often each sample was asked."""
    places = [row["sample_score"].get("generation_index") or 0 for row in rows]
    groups = Counter(str(group) for row in rows if (group := row["sample_score"].get("group_id")) is not None)
    return max([*groups.values(), max(places, default=0) + 1])


def _sample_place(row: Row, repeats: int) -> tuple[int | str, int | None]:
    """Return (group, seed); repeats are numbered through: 0, 1 of the first group, 2, 3 of the second, …."""
    score = row["sample_score"]
    group = score.get("group_id")
    if group is None:
        group = row["index"] // repeats
    if repeats == 1:
        return group, None
    seed = score.get("generation_index")
    if seed is None:
        seed = row["index"] % repeats
    return group, seed


def _requested_samples(run: _Run, name: str, subset: str) -> int:
    """Return the number of samples that were asked for, answered or not, by the report; 0 means that it does not
    tell."""
    num_requested: Any = run.reports.get(name, {})
    for key in ("execution_summary", "subsets", subset, "requested"):
        if isinstance(num_requested, dict):
            num_requested = num_requested.get(key)
        else:
            num_requested = None
    if isinstance(num_requested, int):
        return num_requested
    return 0


def _read_predictions(run: _Run, name: str, notes: list[str]) -> Mapping[int, Row]:
    """Return the predictions by index; nothing where they were deleted."""
    file = run.folder.parents[1] / "predictions" / run.folder.name / name
    if not file.exists():
        return {}
    rows = read_lines(file, load_json, notes)
    return {row["index"]: row for row in rows if isinstance(row.get("index"), int)}


def _sample_record(row: Row, prediction: Row, taken: str) -> Row:
    score = _score_fields(row)
    messages = row.get("messages")
    if isinstance(messages, list):
        turns = [item for item in messages if isinstance(item, dict)]
    else:
        turns = []
    output = object_or_empty(prediction.get("model_output"))
    choices = output.get("choices")
    if isinstance(choices, list) and choices:
        first = object_or_empty(choices[0])
    else:
        first = {}
    usage = object_or_empty(output.get("usage"))
    reply = _last_message(turns, "assistant")
    stop = first.get("stop_reason")
    if isinstance(score.get("prediction"), str):
        generation = score["prediction"]
    else:
        generation = _message_text(reply)
    made: Row = {
        "problem": _message_text(_last_message(turns, "user")) or row.get("input"),
        "expected_answer": _target_value(row.get("target")),
        "generation": generation,
        "predicted_answer": score.get("extracted_prediction"),
        "num_generated_tokens": usage.get("output_tokens"),
        "num_input_tokens": usage.get("input_tokens"),
        "finish_reason": _FINISH_REASONS.get(str(stop), stop),
        "reasoning_content": _message_text(reply, "reasoning") or None,
        **_verdict_fields(score, taken),
        "evalscope": {
            "scores": score["value"],
            "explanation": score.get("explanation"),
            "metadata": row["sample_score"].get("sample_metadata"),
        },
    }
    clean: Row = finite_json({name: value for name, value in made.items() if value is not None})
    return {"predicted_answer": None, **clean}


def _verdict_fields(score: Row, taken: str) -> Row:
    status = str(score.get("status") or "success")
    if status not in _USABLE_STATUSES:
        return unscored_fields(_CAUSES.get(status, "grader"), f"the score is not usable: {status}")
    value = score["value"].get(taken)
    if isinstance(value, bool | int | float) and math.isfinite(value) and 0 <= value <= 1:
        return scored_fields(value, f"{FORMAT}/{taken}")
    why = f"no score {taken} from 0 to 1" if taken else "no score"
    return unscored_fields("grader", why)


def _last_message(messages: Sequence[Row], role: str) -> Row:
    return next((turn for turn in reversed(messages) if turn.get("role") == role), {})


def _message_text(message: Row, kind: str = "text") -> str:
    """Return the text of the parts of a kind; a message that is no list of parts is text."""
    content = message.get("content")
    if isinstance(content, str):
        if kind == "text":
            return content
        return ""
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict)]
    else:
        parts = []
    return "".join(str(part.get(kind) or "") for part in parts if part.get("type") == kind)


def _target_value(target: object) -> object:
    if isinstance(target, list) and len(target) == 1:
        return target[0]
    return target


def _read_object(path: Path) -> Row:
    """Read a JSON object; nothing where it cannot be read: reports only add facts."""
    try:
        return object_or_empty(load_json(path.read_bytes()))
    except (OSError, ValueError, RecursionError):
        return {}
