# SPDX-License-Identifier: Apache-2.0
"""Results of newskills as logs of Inspect, one `.eval` per benchmark, for its viewer and its data frames.

Seeds become epochs. Unscored samples have the value NaN, as Inspect's own unscored samples, and leave its accuracy.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from newskills._version import __version__
from newskills.base.errors import DataError
from newskills.base.reading.json_values import list_or_empty, object_or_empty, text_or_empty
from newskills.base.records import Row
from newskills.exchange.credit import answer_credit
from newskills.exchange.importers.inspect_logs import FORMAT
from newskills.exchange.inspect_files import write_log
from newskills.gateway.form import arguments_of, name_of
from newskills.run.records.paths import OutputPaths
from newskills.run.reporting.results import BenchmarkResults, file_parts, list_results, read_output
from newskills.run.reporting.summarize import BENCHMARK_FILE

SCORER = "newskills"
UNKNOWN = "none/unknown"
"""Inspect wants a provider and a model."""
_STOP_REASONS = {
    "length": "max_tokens",
    "stop": "stop",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
}
_ROLES = {"system": "system", "developer": "system", "assistant": "assistant", "tool": "tool"}
_REASONS = {"judge": "grader_failed"}
_BEGINNING = "1970-01-01T00:00:00+00:00"
"""The time of what has none."""
_BASE36 = 22
"""Signs of the ids in Inspect's file names."""
_SHOWN_FIELDS = ("id", "problem", "generation", "expected_answer", "reasoning_content", "conversation", FORMAT)
"""Fields of a record that have a place of their own in a sample."""


class _RunRecord(Struct):
    settings: Row = {}


def export(results_dir: Path, output_dir: Path, *, model: str = "") -> list[Path]:
    """Write a log for each benchmark with records, and return their paths; `model`: the model's name in the logs.

    Raises DataError (no results, broken records, a log of that name), StorageError.
    """
    written = [_write_log(result, output_dir, model) for result in list_results(results_dir) if result.files]
    if not written:
        raise DataError(f"{results_dir} has no output*.jsonl, so there is nothing to export.")
    return written


def _write_log(result: BenchmarkResults, output_dir: Path, model: str) -> Path:
    described = _read_description(result.folder)
    model = model or _model_name(result, described)
    samples = [sample for at, file in enumerate(result.files) for sample in _log_samples(file, at + 1, model)]
    times = sorted(time for sample in samples for time in (sample["started_at"], sample["completed_at"]) if time)
    header = _log_header(result, samples, described, model)
    if times:
        created = times[0]
        header["stats"] = {"started_at": times[0], "completed_at": times[-1]}
    else:
        created = _iso_format(file_parts(result.files[0])[0].stat().st_mtime)
        header["stats"] = {"started_at": "", "completed_at": ""}
    header["eval"]["created"] = created
    stamp = re.sub(r"[:.+]", "-", created)[:19]
    path = output_dir / f"{stamp}_{result.benchmark.replace('_', '-')}_{header['eval']['task_id']}.eval"
    if path.exists():
        raise DataError(f"{path} already exists.", hint="Give another --output_dir, or remove it.")
    write_log(path, header, samples, _sample_summary)
    return path


def _log_header(result: BenchmarkResults, samples: list[Row], described: Row, model: str) -> Row:
    identities = list(dict.fromkeys(sample["id"] for sample in samples))
    task = _stable_identity("task", result.benchmark)
    epochs = len(result.files)
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "eval_id": _stable_identity("eval", str(result.folder.resolve()), str(len(samples))),
            "run_id": _stable_identity("run", str(result.folder.resolve())),
            "created": "",
            "task": result.benchmark,
            "task_id": task,
            "task_version": described.get("version") or 0,
            "dataset": {"name": result.benchmark, "samples": len(identities), "sample_ids": identities},
            "model": model,
            "config": {"epochs": epochs, "epochs_reducer": ["mean"]},
            "packages": {"newskills": __version__},
            "metadata": {SCORER: described},
            "scorers": [{"name": SCORER, "options": {}, "metrics": [{"name": "accuracy"}, {"name": "stderr"}]}],
        },
        "plan": {"name": "plan", "steps": [{"solver": SCORER, "params": {}}], "config": {}},
        "results": _log_results(samples, epochs),
        "stats": {},
    }


def _log_results(samples: list[Row], epochs: int) -> Row:
    """Compute the accuracy: the mean over problems of the means over epochs; its error as Inspect reckons it."""
    values: dict[str, list[float]] = {}
    for sample in samples:
        value = sample["scores"][SCORER]["value"]
        if not math.isnan(value):
            values.setdefault(sample["id"], []).append(value)
    means = [math.fsum(of_one) / len(of_one) for of_one in values.values()]
    mean = math.nan
    if means:
        mean = math.fsum(means) / len(means)
    spread = math.fsum((mean_of_epoch - mean) ** 2 for mean_of_epoch in means)
    error = 0.0
    if len(means) > 1:
        error = math.sqrt(spread / (len(means) - 1) / len(means))
    num_scored = sum(len(of_one) for of_one in values.values())
    reducer = "mean" if epochs > 1 else None
    return {
        "total_samples": len(samples),
        "completed_samples": len(samples),
        "scores": [
            {
                "name": SCORER,
                "scorer": SCORER,
                "reducer": reducer,
                "scored_samples": num_scored,
                "unscored_samples": len(samples) - num_scored,
                "metrics": {
                    "accuracy": {"name": "accuracy", "value": mean},
                    "stderr": {"name": "stderr", "value": error},
                },
            }
        ],
    }


def _log_samples(file: Path, epoch: int, model: str) -> Iterator[Row]:
    times_seen: dict[str, int] = {}
    for number, row in enumerate(read_output(file)):
        identity = str(row.get("id", number))
        times_seen[identity] = times_seen.get(identity, 0) + 1
        if times_seen[identity] == 1:
            sample_id = identity
        else:
            sample_id = f"{identity}-{times_seen[identity]}"
        yield _log_sample(row, sample_id, epoch, model)


def _log_sample(row: Row, identity: str, epoch: int, model: str) -> Row:
    generation = row.get("generation")
    if isinstance(generation, str):
        text = generation
    elif generation is None:
        text = ""
    else:
        text = msgspec.json.encode(generation).decode()
    content: Any = text
    if isinstance(row.get("reasoning_content"), str):
        content = [{"type": "reasoning", "reasoning": row["reasoning_content"]}, {"type": "text", "text": text}]
    answer = {"role": "assistant", "content": content, "source": "generate"}
    question = question_of(row)
    messages = _chat_messages(row.get("conversation"))
    replies = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    if not replies:
        messages, replies = [{"role": "user", "content": question, "source": "input"}, answer], [1]
    for number, message in enumerate(messages):  # Inspect's data frames want them
        message["id"] = _stable_identity("message", identity, str(epoch), str(number))
    answer["id"] = messages[replies[-1]]["id"]
    stop = _STOP_REASONS.get(str(row.get("finish_reason")), "unknown")
    started, ended = _iso_time(row.get("generation_start_time")), _iso_time(row.get("generation_end_time"))
    output = {
        "model": model,
        "choices": [{"message": answer, "stop_reason": stop}],
        "completion": text,
        **_usage_fields(row),
    }
    call = {  # data frames of messages, and Scout, read these
        "event": "model",
        "uuid": _stable_identity("event", identity, str(epoch)),
        "timestamp": started or _BEGINNING,
        "completed": ended,
        "working_start": 0.0,
        "model": model,
        "input": messages[: replies[-1]],
        "tools": [],
        "tool_choice": "none",
        "config": {},
        "output": {**output, "choices": [{"message": messages[replies[-1]], "stop_reason": stop}]},
    }
    return {
        "id": identity,
        "epoch": epoch,
        "input": question,
        "target": _target_text(row.get("expected_answer")),
        "messages": messages,
        "output": output,
        "events": [call],
        "scores": {SCORER: _sample_score(row)},
        "metadata": {name: value for name, value in row.items() if name not in _SHOWN_FIELDS},
        "started_at": started,
        "completed_at": ended,
    }


def _chat_messages(conversation: Any) -> list[Row]:
    """Return a conversation of a record as Inspect's messages, with reasoning, calls of tools and what they gave."""
    messages: list[Row] = []
    called: dict[str, str] = {}
    if not isinstance(conversation, list):
        return messages
    for raw in conversation:
        if not isinstance(raw, dict):
            continue
        role = _ROLES.get(str(raw.get("role")), "user")
        message: Row = {"role": role, "content": _chat_content(raw)}
        if role == "tool":
            identity = str(raw.get("tool_call_id") or "")
            message |= {"tool_call_id": identity, "function": called.get(identity)}
        elif role == "assistant":
            message["source"] = "generate"
            calls: list[Row] = [
                {"id": str(call.get("id")), "function": name_of(call), "arguments": arguments_of(call)}
                for call in raw.get("tool_calls") or ()
            ]
            called |= {call["id"]: call["function"] for call in calls}
            if calls:
                message["tool_calls"] = [{**call, "type": "function"} for call in calls]
        messages.append(message)
    return messages


def _chat_content(raw: Row) -> str | list[Row]:
    """Return the content of a message as Inspect has it: images by their address, what it does not know as JSON."""
    content, reasoning = raw.get("content"), raw.get("reasoning_content")
    parts: list[Row] = []
    if isinstance(reasoning, str) and reasoning:
        parts.append({"type": "reasoning", "reasoning": reasoning})
    for part in list_or_empty(content):
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            parts.append({"type": "text", "text": part["text"]})
        elif isinstance(part, dict) and isinstance(part.get("image_url"), dict):
            parts.append({"type": "image", "image": str(part["image_url"].get("url"))})
        else:
            parts.append({"type": "text", "text": msgspec.json.encode(part).decode()})
    if isinstance(content, list):
        return parts
    text = text_or_empty(content)
    if parts:
        return [*parts, {"type": "text", "text": text}]
    return text


def _sample_score(row: Row) -> Row:
    value = answer_credit(row)
    answer = row.get("predicted_answer")
    number = math.nan if value is None else value
    answer_text = None if answer is None else str(answer)
    score: Row = {
        "value": number,
        "answer": answer_text,
        "explanation": str(row.get("why") or "") or None,
        "metadata": {"outcome": row.get("outcome"), "cause": row.get("outcome_cause")},
    }
    if value is None:
        score["reason"] = _REASONS.get(str(row.get("outcome_cause")), "scoring_failed")
    return score


def question_of(row: Row) -> str:
    """Return what a record asks; of a conversation the last message. Empty where it has neither."""
    question = next(
        (row[name] for name in ("problem", "question", "prompt") if isinstance(row.get(name), str)), None
    )
    if question is not None:
        return str(question)
    messages = list_or_empty(row.get("messages"))
    if not messages:
        return ""
    return text_or_empty(object_or_empty(messages[-1]).get("content"))


def _target_text(value: object) -> str | list[str]:
    if isinstance(value, list):
        return [str(item) for item in value]
    if value is None:
        return ""
    return str(value)


def _usage_fields(row: Row) -> Row:
    read, written = row.get("num_input_tokens"), row.get("num_generated_tokens")
    if not isinstance(read, int) and not isinstance(written, int):
        return {}
    read, written = (count if isinstance(count, int) else 0 for count in (read, written))
    return {"usage": {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}}


def _sample_summary(sample: Row) -> Row:
    kept = ("id", "epoch", "input", "target", "scores", "started_at", "completed_at")
    return {**{name: sample[name] for name in kept}, "metadata": {}, "completed": True, "message_count": 2}


def _read_description(folder: Path) -> Row:
    try:
        described: Row = msgspec.json.decode((folder / BENCHMARK_FILE).read_bytes(), type=Row)
    except (OSError, msgspec.DecodeError):
        return {}
    return described


def _model_name(result: BenchmarkResults, described: Row) -> str:
    """Return who was asked: as the run remembers it, or as the import has found it."""
    try:
        state = msgspec.json.decode(OutputPaths(result.files[0]).state.read_bytes(), type=_RunRecord)
    except (OSError, msgspec.DecodeError):
        state = _RunRecord()
    imported_model = object_or_empty(described.get("imported")).get("model")
    return str(state.settings.get("server.model") or imported_model or UNKNOWN)


def _stable_identity(*parts: str) -> str:
    """Return 22 signs that are the same for the same parts."""
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()[:_BASE36]


def _iso_time(value: object) -> str | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        return _iso_format(value)
    except (ValueError, OverflowError, OSError):
        return None


def _iso_format(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
