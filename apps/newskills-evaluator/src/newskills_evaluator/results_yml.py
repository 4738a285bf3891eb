# SPDX-License-Identifier: Apache-2.0
"""metrics.json → the results of NeMo Evaluator (`results.yml`), and records → its per-sample records.

Its exporters call a score `<benchmark>_<mode>_<metric>`, for example `aime25_pass@1[avg-of-8]_symbolic_correct`.
Scores keep the unit of metrics.json: percent, counts, seconds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.errors import DataError, storage_error
from newskills.base.records import Number, Row
from newskills.base.store import encode_line
from newskills.exchange.credit import VERDICT_FIELDS, answer_credit
from newskills.run.reporting.results import RESULTS_FOLDER, list_results, read_output
from newskills.run.reporting.summarize import EXTENDED_FILE, METRICS_FILE, NOT_SCORES

Z = 1.959963984540054
"""Half the width of a 95 % interval in standard errors."""


class _MetricsFile(Struct):
    numbers: dict[str, dict[str, Number]] = {}


def task_results(folder: Path) -> Row:
    """Return `{"tasks": {T: {"metrics": {mode: {"scores": {metric: {"value", "stats"}}}}}}, "groups": {…}}`.

    `folder`: the output folder of `ns eval`. Groups of benchmarks are reported as groups. Raises DataError where
    there is no file of metrics, or not one score in it.
    """
    metrics, numbers = _read_metrics(folder)
    results: dict[str, Row] = {"tasks": {}, "groups": {}}
    scored = False
    for name, modes in metrics.items():
        kind = "groups" if any(other.startswith(f"{name}.") for other in metrics) else "tasks"
        scores_by_mode = {
            mode: {"scores": _metric_scores(values, numbers.get(name, {}).get(mode, {}))}
            for mode, values in modes.items()
        }
        scored |= any(metric not in NOT_SCORES for mode in scores_by_mode.values() for metric in mode["scores"])
        results[kind][name] = {"metrics": scores_by_mode}
    if not scored:
        raise DataError(f"{folder} has no score: {', '.join(metrics) or 'nothing'} was evaluated without scores.")
    return results


def results_document(*, command: str, config: Row, target: Row, results: Row, git_hash: str | None = None) -> Row:
    """Return all of `results.yml`."""
    return {"command": command, "config": config, "git_hash": git_hash, "results": results, "target": target}


def write_samples(folder: Path, place: Path) -> int:
    """Write one file of per-sample records for each output file, `<benchmark>/<output file>`; return how many
    records.

    Raises DataError (broken records), StorageError.
    """
    count = 0
    for result in list_results(folder):
        for file in result.files:
            target = place / result.benchmark / file.name
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as out:
                    for record in map(sample_record, read_output(file)):
                        out.write(encode_line(record))
                        count += 1
            except OSError as error:
                raise storage_error(error, target) from error
    return count


def sample_record(row: Row) -> Row:
    """Return one of our records as one of NeMo Evaluator's; an unscored sample has no score."""
    generation = row.get("generation")
    if not isinstance(generation, str | dict):
        generation = ""
    value = answer_credit(row)
    signal = next((name for name in VERDICT_FIELDS if isinstance(row.get(name), bool)), "outcome")
    return {
        "id": str(row.get("id", "")),
        "generation": generation,
        "num_generated_tokens": _as_count(row.get("num_generated_tokens")),
        "num_prompt_tokens": _as_count(row.get("num_input_tokens")),
        "sub_query_id": 0,
        "score": None if value is None else int(value),
        "score_name": None if value is None else signal,
        "query": next((row[k] for k in ("problem", "question", "prompt") if isinstance(row.get(k), str)), None),
        "answer": row.get("predicted_answer"),
        "ground_truth": row.get("expected_answer"),
    }


def _as_count(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return 0


def _read_metrics(folder: Path) -> tuple[dict[str, dict[str, Row]], dict[str, dict[str, dict[str, Number]]]]:
    """Read benchmark → mode → metric → value, and in the same form the further facts about the values."""
    places = [folder]
    if not _has_metrics(folder):
        places += sorted((folder / RESULTS_FOLDER).glob("*"))
    metrics: dict[str, dict[str, Row]] = {}
    numbers: dict[str, dict[str, dict[str, Number]]] = {}
    for place in filter(_has_metrics, places):
        metrics |= _decode_file(place / METRICS_FILE, dict[str, dict[str, dict[str, Any]]])
        if (place / EXTENDED_FILE).is_file():
            extended = _decode_file(place / EXTENDED_FILE, dict[str, _MetricsFile])
            numbers |= {name: value.numbers for name, value in extended.items()}
    if not metrics:
        raise DataError(f"{folder} has no {METRICS_FILE}, and neither has {folder / RESULTS_FOLDER}.")
    return metrics, numbers


def _has_metrics(folder: Path) -> bool:
    return (folder / METRICS_FILE).is_file()


def _decode_file(path: Path, type_: Any) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes(), type=type_)
    except (OSError, msgspec.DecodeError) as error:
        raise DataError(f"{path} is not a file of metrics: {error}.") from error


def _metric_scores(values: Mapping[str, object], numbers: Mapping[str, Number]) -> dict[str, Row]:
    scores: dict[str, Row] = {}
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            continue
        stats: Row = {}
        if name in numbers:
            stats = _score_stats(numbers[name])
        scores[name] = {"value": float(value), "stats": stats}
    return scores


def _score_stats(number: Number) -> Row:
    """Return the statistics of a score. The standard error of a share is computed from its value: half of Wilson's
    interval is not a multiple of it."""
    if number.method != "wilson":
        error = (number.high - number.low) / (2 * Z)
    elif number.n:
        error = math.sqrt(max(0.0, number.value * (100 - number.value)) / number.n)
    else:
        error = 0.0
    return {"count": number.n, "mean": float(number.value), "stderr": error}
