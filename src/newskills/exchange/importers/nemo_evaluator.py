# SPDX-License-Identifier: Apache-2.0
"""Bundles of nemo-evaluator 0.3 and later: `<benchmark>/eval-<time>-<benchmark>.json` with `results.jsonl` beside.

Repeats become seeds. Taken is `reward` (or the scorer that the user names), if it lies in 0–1. There, a request that
failed has the reward 0; here it is unscored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from newskills.base.errors import DataError, suggest
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

FORMAT = "nemo-evaluator"
RESULTS = "results.jsonl"
_CAUSES = {"solve_timeout": "timeout", "infra_error": "provider"}
"""Category of a failure → who is to blame; anything else is the harness."""
_FAILED_STATUSES = ("solve_failed", "infra_error", "graceful_error", "system_error")
"""Values of `scoring_details.method` of what was never graded."""
_OWN = ("turn_budget_exhausted",)
"""Failures that are the model's: its reward of 0 stands."""


def fits(path: Path) -> bool:
    if path.is_file():
        return path.name.startswith("eval-") and path.suffix == ".json" and (path.parent / RESULTS).is_file()
    return any((bundle.parent / RESULTS).is_file() for bundle in path.rglob("eval-*.json"))


def read(source: ImportSource) -> list[ImportedBenchmark]:
    """Read the benchmarks in bundles of nemo-evaluator. Raises DataError: no bundle, broken or foreign rows, several
    runs of one benchmark, no such scorer."""
    bundles = _newest_bundles(source.path)
    return [_import_benchmark(path, content, source.score) for path, content in bundles.values()]


def _newest_bundles(path: Path) -> dict[str, tuple[Path, Row]]:
    """Map each benchmark to its newest bundle in a folder. Raises DataError."""
    bundles: dict[str, tuple[Path, Row]] = {}
    files = [path] if path.is_file() else sorted(path.rglob("eval-*.json"))
    for file in files:
        content = _read_bundle(file)
        benchmark = content.get("benchmark")
        if not isinstance(benchmark, dict) or not isinstance(benchmark.get("name"), str):
            continue
        other = bundles.get(benchmark["name"])
        if other is not None and other[0].parent != file.parent:
            raise DataError(
                f"{path} has several runs of '{benchmark['name']}': {other[0].parent} and {file.parent}.",
                hint="Import one of these folders.",
            )
        if other is None or str(content.get("timestamp")) >= str(other[1].get("timestamp")):
            bundles[benchmark["name"]] = (file, content)
    if not bundles:
        raise DataError(f"{path} has no eval-*.json of nemo-evaluator with the name of a benchmark.")
    return bundles


def _read_bundle(file: Path) -> Row:
    try:
        content = load_json(file.read_bytes())
    except OSError as error:
        raise DataError(f"Cannot read {file}: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file} is not JSON ({error}).") from error
    if isinstance(content, dict):
        return content
    return {}


def _import_benchmark(file: Path, bundle: Row, score: str) -> ImportedBenchmark:
    name, notes = bundle["benchmark"]["name"], list[str]()
    results = file.parent / RESULTS
    rows = []
    if results.is_file():
        rows = list(read_lines(results, load_json, notes))
    if not rows:
        raise DataError(f"{file} has scores but no samples: {results} does not exist, or is empty.")
    for number, row in enumerate(rows, 1):
        if missing := [key for key in ("problem_idx", "reward", "model_response") if key not in row]:
            raise DataError(
                f"{results}, row {number} is not a sample of nemo-evaluator: it has no {', '.join(missing)}."
            )
    if score:
        _check_scorer(rows, score, results)
    several = len({row.get("repeat") or 0 for row in rows}) > 1
    records = [(_row_seed(row, several), _row_record(row, score)) for row in rows]
    if lost := sum(record.get("outcome") == "unscored" for _, record in records):
        notes.append(
            f"{name}: {lost} of {len(records)} were never graded; they are unscored, not wrong as in the bundle."
        )
    facts = {
        "model": object_or_empty(bundle.get("config")).get("model"),
        "nemo_evaluator": bundle.get("sdk_version"),
        "config_hash": bundle.get("config_hash"),
        "score": score or "reward",
    }
    return ImportedBenchmark(
        benchmark=name.replace(":", "-").replace("/", "-"),
        seeds=by_seed(name, records, notes),
        origin=origin_of(FORMAT, file, facts),
        notes=notes,
    )


def _check_scorer(rows: list[Row], score: str, results: Path) -> None:
    """Raise DataError where no sample has a reward of the scorer `score`."""
    scorers = {key.removeprefix("scorer:") for row in rows for key in (row.get("scorer_rewards") or {})}
    if score not in scorers:
        raise DataError(f"{results}: no scorer '{score}'{suggest(score, scorers)}")


def _row_seed(row: Row, several: bool) -> int | None:
    repeat = row.get("repeat")
    if several:
        if isinstance(repeat, int):
            return repeat
        return 0
    return None


def _row_record(row: Row, score: str) -> Row:
    details = row.get("scoring_details")
    if not isinstance(details, dict):
        details = {}
    predicted_answer = None
    if isinstance(row.get("extracted_answer"), str):
        predicted_answer = row["extracted_answer"]
    made: Row = {
        "id": str(row["problem_idx"]),
        "problem": _value_text(row.get("prompt")),
        "expected_answer": _value_text(row.get("expected_answer")),
        "generation": _value_text(row["model_response"]),
        "predicted_answer": predicted_answer,
        **_verdict_fields(row, details, score),
        **_usage_fields(row),
        "nemo_evaluator": {key: row[key] for key in ("metadata", "scoring_details") if row.get(key)},
    }
    clean: Row = finite_json(made)
    return clean


def _verdict_fields(row: Row, details: Mapping[str, Any], score: str) -> Row:
    category = str(details.get("error_category", ""))
    if details.get("method") in _FAILED_STATUSES and category not in _OWN:
        return unscored_fields(_CAUSES.get(category, "harness"), str(details.get("error") or category))
    if details.get("needs_judge"):
        return unscored_fields("judge", "no judge has judged it")
    if score:
        value = (row.get("scorer_rewards") or {}).get(f"scorer:{score}")
    else:
        value = row["reward"]
    if not isinstance(value, int | float) or not math.isfinite(value) or not 0 <= value <= 1:
        return unscored_fields("grader", f"the score {value!r} is not a share from 0 to 1")
    return scored_fields(float(value), f"{FORMAT}/{score or details.get('method') or 'reward'}")


def _usage_fields(row: Row) -> Row:
    tokens = row.get("completion_tokens", row.get("tokens"))
    if isinstance(tokens, int) and not isinstance(tokens, bool):
        return {"num_generated_tokens": tokens}
    return {}


def _value_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return str(value)
