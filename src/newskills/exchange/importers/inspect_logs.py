# SPDX-License-Identifier: Apache-2.0
"""Logs of Inspect: `.eval` (a zip of JSON files; deflated, or with zstd as since 0.3.2xx) and `.json`.

Epochs become seeds. A sample that ended in an error, or that no scorer could judge, is unscored. `C`, `I`, `P`, `N` are
right, wrong, half right, no answer; numbers in 0–1 are shares.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from newskills.base.errors import DataError
from newskills.base.reading.json_values import list_or_empty, object_or_empty
from newskills.base.records import Row
from newskills.exchange.importers import (
    ImportedBenchmark,
    ImportSource,
    by_seed,
    origin_of,
    scored_fields,
    unscored_fields,
)
from newskills.exchange.inspect_files import read_log
from newskills.exchange.json_of_others import finite_json

FORMAT = "inspect"
ATTACHMENT = "attachment://"
_PROBED_BYTES = 1 << 16
"""Bytes of a JSON file in which a log names its `eval`."""
_LETTER_SCORES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_REASONS = {"grader_failed": "judge", "scoring_failed": "grader"}
"""Reasons of a missing score that are the instrument's; any other one is the model's, which gave no answer."""
_FINISH_REASONS = {"max_tokens": "length", "model_length": "length"}


def fits(path: Path) -> bool:
    if path.is_dir():
        return next(path.rglob("*.eval"), None) is not None
    if path.suffix != ".json":
        return path.suffix == ".eval"
    with path.open("rb") as file:
        return b'"eval"' in file.read(_PROBED_BYTES)


def read(source: ImportSource) -> list[ImportedBenchmark]:
    """Read the benchmarks in logs of Inspect. Raises DataError: broken archives, foreign JSON, several logs of one task
    and model, no such scorer."""
    if source.path.is_file():
        files = [source.path]
    else:
        files = sorted(source.path.rglob("*.eval"))
    if not files:
        raise DataError(f"{source.path} has no .eval logs.")
    imported: dict[tuple[str, str], ImportedBenchmark] = {}
    for file in files:
        log = _import_log(file, source.score)
        key = log.benchmark, str(log.origin.get("model") or "")
        if key in imported:
            raise DataError(
                f"{source.path} has two logs of {log.benchmark}: {imported[key].origin['path']} and {file}.",
                hint="Import one of them, each into its own --output_dir.",
            )
        imported[key] = log
    if len({task for task, _ in imported}) < len(imported):
        for (_, model), log in imported.items():
            log.model = model or "unknown-model"
    return list(imported.values())


def _import_log(file: Path, score: str) -> ImportedBenchmark:
    header, samples = read_log(file)
    spec = _require_object(header.get("eval"), f"{file}: eval")
    notes: list[str] = []
    if (status := header.get("status", "started")) != "success":
        notes.append(f"{file} is the log of a run with status '{status}'.")
    scorer = score or _first_scorer(spec, samples)
    benchmark = str(spec.get("task") or file.stem).rpartition("/")[2]
    rows = [_sample_record(sample, scorer, file) for sample in samples]
    if not rows:
        raise DataError(f"{file} has no samples.")
    if score and not any("grader" in row for _, row in rows):
        names = sorted({name for sample in samples for name in _sample_scores(sample)})
        raise DataError(
            f"{file}: no scorer '{score}' in the samples; the choices are {', '.join(names) or 'none'}."
        )
    several = _epoch_count(spec) > 1 or any(epoch > 1 for epoch, _ in rows)
    records = [(epoch - 1 if several else None, row) for epoch, row in rows]
    facts = {
        "model": spec.get("model"),
        "task_version": spec.get("task_version"),
        "scorer": scorer or None,
        "created": spec.get("created"),
        "packages": spec.get("packages") or None,
    }
    return ImportedBenchmark(
        benchmark=benchmark,
        seeds=by_seed(benchmark, records, notes, _expected_ids(spec)),
        origin=origin_of(FORMAT, file, facts),
        notes=notes,
    )


def _first_scorer(spec: Row, samples: list[Row]) -> str:
    """Return the name of the first scorer in `spec`; where it names none, of the first that judged a sample."""
    for scorer in spec.get("scorers") or []:
        if isinstance(scorer, dict) and isinstance(scorer.get("name"), str):
            name: str = scorer["name"].rpartition("/")[2]
            return name
    return next((name for sample in samples for name in _sample_scores(sample)), "")


def _epoch_count(spec: Row) -> int:
    """Return the number of answers to each sample that the run was to give."""
    epochs = object_or_empty(spec.get("config")).get("epochs")
    if isinstance(epochs, int):
        return epochs
    return 1


def _expected_ids(spec: Row) -> list[str]:
    """Return the ids of all samples of the run, whether or not it came to them."""
    sample_ids = object_or_empty(spec.get("dataset")).get("sample_ids")
    if isinstance(sample_ids, list):
        return [str(sample_id) for sample_id in sample_ids if isinstance(sample_id, str | int)]
    return []


def _sample_record(sample: Row, scorer: str, file: Path) -> tuple[int, Row]:
    """Return (epoch, record) of a sample. Raises DataError."""
    if "id" not in sample or not isinstance(sample.get("epoch"), int):
        raise DataError(f"{file}: a sample has no id or epoch: {str(sample)[:80]}.")
    attachments = object_or_empty(sample.get("attachments"))
    output = _require_object(sample.get("output") or {}, f"{file}: output of sample {sample['id']}")
    first = object_or_empty(next(iter(list_or_empty(output.get("choices"))), None))
    message, usage = object_or_empty(first.get("message")), object_or_empty(output.get("usage"))
    made: Row = {
        "id": str(sample["id"]),
        "problem": _resolve_attachment(_problem_text(sample.get("input")), attachments),
        "expected_answer": _target_value(sample.get("target")),
        "generation": _resolve_attachment(_message_text(message.get("content")), attachments),
        "num_generated_tokens": usage.get("output_tokens"),
        "num_input_tokens": usage.get("input_tokens"),
        "finish_reason": _FINISH_REASONS.get(str(first.get("stop_reason")), first.get("stop_reason")),
        "reasoning_content": _resolve_attachment(_reasoning_text(message.get("content")), attachments),
        "generation_start_time": _parse_timestamp(sample.get("started_at")),
        "generation_end_time": _parse_timestamp(sample.get("completed_at")),
        **_verdict_fields(sample, scorer),
        "inspect": {"metadata": sample.get("metadata") or {}, "scores": sample.get("scores") or {}},
    }
    clean: Row = finite_json({name: value for name, value in made.items() if value is not None})
    return sample["epoch"], clean


def _verdict_fields(sample: Row, scorer: str) -> Row:
    error = sample.get("error")
    if error:
        if isinstance(error, dict):
            error = error.get("message", "")
        return unscored_fields("harness", f"the sample ended in an error: {error}")
    name, _, key = scorer.partition(".")
    score = _sample_scores(sample).get(name)
    if not isinstance(score, dict):
        why = f"no score of {scorer}" if scorer else "no score"
        return unscored_fields("grader", why)
    answer = {"predicted_answer": score.get("answer"), "why": str(score.get("explanation") or "")[:500]}
    value = score.get("value")
    if isinstance(value, dict):
        value = value.get(key) if key else next(iter(value.values()), None)
    if value == "N":
        return {**answer, "is_correct": False, "outcome": "no_answer", "grader": f"{FORMAT}/{scorer}"}
    share = _score_value(value)
    if share is not None:
        return {**answer, **scored_fields(share, f"{FORMAT}/{scorer}")}
    return _without_value(score, answer, scorer)


def _without_value(score: Row, answer: Row, scorer: str) -> Row:
    reason = score.get("reason") or object_or_empty(score.get("metadata")).get("unscored_reason")
    if reason in ("no_response", "refusal", "invalid_response_format"):
        return {**answer, "is_correct": False, "outcome": "no_answer", "grader": f"{FORMAT}/{scorer}"}
    return unscored_fields(
        _REASONS.get(str(reason), "grader"), str(reason or f"the value is {score.get('value')!r:.80}")
    )


def _score_value(value: object) -> float | None:
    if isinstance(value, str):
        return _LETTER_SCORES.get(value)
    if isinstance(value, bool | int | float) and math.isfinite(value) and 0 <= value <= 1:
        return float(value)
    return None


def _sample_scores(sample: Row) -> Row:
    return object_or_empty(sample.get("scores"))


def _problem_text(content: object) -> str:
    """Return the text of the input; if it consists of messages, the text of the last one by the user."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        messages = [message for message in content or [] if isinstance(message, dict)]
    else:
        messages = []
    users = [message for message in messages if message.get("role") == "user"] or messages
    if users:
        return _message_text(users[-1].get("content"))
    return ""


def _target_value(target: object) -> str | list[Any] | None:
    if isinstance(target, list) and len(target) == 1:
        target = target[0]
    if isinstance(target, str | list):
        return target
    return None


def _message_text(content: object) -> str:
    """Return the text parts of a message, joined."""
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in _content_parts(content) if part.get("type") == "text")


def _reasoning_text(content: object) -> str | None:
    reasoning_texts = [
        str(part.get("reasoning", "")) for part in _content_parts(content) if part.get("type") == "reasoning"
    ]
    if reasoning_texts:
        return "\n".join(reasoning_texts)
    return None


def _content_parts(content: object) -> Iterator[Row]:
    return (part for part in list_or_empty(content) if isinstance(part, dict))


def _resolve_attachment(text: str | None, attachments: Row) -> str | None:
    """Return the text that a reference stands for: Inspect keeps long texts apart, under the hash of their content."""
    if text is not None and text.startswith(ATTACHMENT):
        return str(attachments.get(text.removeprefix(ATTACHMENT), text))
    return text


def _parse_timestamp(text: object) -> float | None:
    try:
        if isinstance(text, str):
            return datetime.fromisoformat(text).timestamp()
        return None
    except (ValueError, OverflowError):
        return None


def _require_object(value: object, what: str) -> Row:
    if not isinstance(value, dict):
        raise DataError(f"{what} is missing, or not an object: this is not a log of Inspect.")
    return value
