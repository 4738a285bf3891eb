# SPDX-License-Identifier: Apache-2.0
"""metrics.json → the results of NeMo Evaluator (`results.yml`), and records → its per-sample records.

Its exporters call a score `<benchmark>_<mode>_<metric>`, for example `aime25_pass@1[avg-of-8]_symbolic_correct`.
Scores keep the unit of metrics.json: percent, counts, seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
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
    metrics, numbers = _metrics(folder)
    results: dict[str, Row] = {"tasks": {}, "groups": {}}
    scored = False
    for name, modes in metrics.items():
        group = any(other.startswith(f"{name}.") for other in metrics)
        scores_by_mode = {
            mode: _mode(values, numbers.get(name, {}).get(mode, {})) for mode, values in modes.items()
        }
        scored |= any(metric not in NOT_SCORES for mode in scores_by_mode.values() for metric in mode["scores"])
        results["groups" if group else "tasks"][name] = {"metrics": scores_by_mode}
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
    value = answer_credit(row)
    signal = next((name for name in VERDICT_FIELDS if isinstance(row.get(name), bool)), "outcome")
    return {
        "id": str(row.get("id", "")),
        "generation": generation if isinstance(generation, str | dict) else "",
        "num_generated_tokens": _count(row.get("num_generated_tokens")),
        "num_prompt_tokens": _count(row.get("num_input_tokens")),
        "sub_query_id": 0,
        "score": None if value is None else int(value),
        "score_name": None if value is None else signal,
        "query": next((row[k] for k in ("problem", "question", "prompt") if isinstance(row.get(k), str)), None),
        "answer": row.get("predicted_answer"),
        "ground_truth": row.get("expected_answer"),
    }


def _count(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return 0


def _metrics(folder: Path) -> tuple[dict[str, dict[str, Row]], dict[str, dict[str, dict[str, Number]]]]:
    """Read benchmark → mode → metric → value, and in the same form the further facts about the values."""
    places = [folder]
    if not _has(folder):
        places += sorted((folder / RESULTS_FOLDER).glob("*"))
    metrics: dict[str, dict[str, Row]] = {}
    numbers: dict[str, dict[str, dict[str, Number]]] = {}
    for place in filter(_has, places):
        metrics |= _decoded(place / METRICS_FILE, dict[str, dict[str, dict[str, Any]]])
        if (place / EXTENDED_FILE).is_file():
            extended = _decoded(place / EXTENDED_FILE, dict[str, _MetricsFile])
            numbers |= {name: value.numbers for name, value in extended.items()}
    if not metrics:
        raise DataError(f"{folder} has no {METRICS_FILE}, and neither has {folder / RESULTS_FOLDER}.")
    return metrics, numbers


def _has(folder: Path) -> bool:
    return (folder / METRICS_FILE).is_file()


def _decoded(path: Path, type_: Any) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes(), type=type_)
    except (OSError, msgspec.DecodeError) as error:
        raise DataError(f"{path} is not a file of metrics: {error}.") from error


def _mode(values: Mapping[str, object], numbers: Mapping[str, Number]) -> Row:
    return {"scores": dict(_scores(values, numbers))}


def _scores(values: Mapping[str, object], numbers: Mapping[str, Number]) -> Iterator[tuple[str, Row]]:
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            continue
        number = numbers.get(name)
        stats = {} if number is None else _stats(number)
        yield name, {"value": float(value), "stats": stats}


def _stats(number: Number) -> Row:
    """Return the error of a share: Wilson's interval is no multiple of a standard error."""
    if number.method == "wilson":
        if number.n:
            error = math.sqrt(max(0.0, number.value * (100 - number.value)) / number.n)
        else:
            error = 0.0
    else:
        error = (number.high - number.low) / (2 * Z)
    return {"count": number.n, "mean": float(number.value), "stderr": error}
