# SPDX-License-Identifier: Apache-2.0
"""Records of newskills as trajectories in ATIF, one file a sample."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.base.store import atomic_write
from newskills.exchange.atif import trajectory_of
from newskills.exchange.importers import path_part
from newskills.run.reporting.results import SEEDED_NAME, BenchmarkResults, list_results, read_output

_LONGEST_NAME = 120
_REPORTED_FIELDS = ("outcome", "outcome_cause", "grader", "why", "exit_status", "model_patch")


def export(results_dir: Path, output_dir: Path, *, model: str = "") -> list[Path]:
    """Write `output_dir/<benchmark>/<id>[-rsN].json` for every record, and return the folders.

    Raises DataError (no results, broken records, a folder that has files), StorageError.
    """
    folders = [_write_benchmark(result, output_dir, model) for result in list_results(results_dir) if result.files]
    if not folders:
        raise DataError(f"{results_dir} has no output*.jsonl, so there is nothing to export.")
    return folders


def _write_benchmark(result: BenchmarkResults, output_dir: Path, model: str) -> Path:
    folder = output_dir / _file_name(result.benchmark)
    if folder.is_dir() and any(folder.iterdir()):
        raise DataError(f"{folder} already has files.", hint="Give another --output_dir, or remove them.")
    folder.mkdir(parents=True, exist_ok=True)
    times_seen: dict[str, int] = {}
    for file in result.files:
        seeded = SEEDED_NAME.fullmatch(file.name)
        for number, row in enumerate(read_output(file)):
            name = path_part(str(row.get("id", number)), "sample")[:_LONGEST_NAME]
            if seeded:
                name += f"-rs{seeded[1]}"
            times_seen[name] = times_seen.get(name, 0) + 1
            if times_seen[name] > 1:
                name = f"{name}-{times_seen[name]}"
            identity = {"id": str(row.get("id", number)), "benchmark": result.benchmark}
            if seeded:
                identity["seed"] = seeded[1]
            with atomic_write(folder / f"{name}.json") as out:
                out.write(
                    msgspec.json.format(msgspec.json.encode(_trajectory_of_record(row, identity, model)), indent=1)
                )
    return folder


def _trajectory_of_record(row: Row, identity: Row, model: str) -> Row:
    solver = row.get("agent") or row.get("solver")
    agent_name = str(solver) if isinstance(solver, str) else "newskills"
    tool_definitions = row.get("tools") if isinstance(row.get("tools"), list) else None
    agent = {
        "name": agent_name,
        "model_name": model,
        "tool_definitions": tool_definitions,
    }
    total_cost_usd = row.get("cost") if isinstance(row.get("cost"), int | float) else None
    metrics = {
        "total_prompt_tokens": _count_or_none(row.get("num_input_tokens")),
        "total_completion_tokens": _count_or_none(row.get("num_generated_tokens")),
        "total_cost_usd": total_cost_usd,
    }
    verdict = {name: row[name] for name in _REPORTED_FIELDS if row.get(name) is not None}
    return trajectory_of(_record_conversation(row), agent, metrics, {**identity, **verdict})


def _record_conversation(row: Row) -> Sequence[Row]:
    """Return the conversation of a record; of one without, its question and its reply."""
    for name in ("conversation", "messages"):
        messages = row.get(name)
        if isinstance(messages, list) and messages and all(isinstance(message, dict) for message in messages):
            last = messages[-1].get("role")
            if last != "user" or name == "conversation":
                return messages
            return [*messages, _reply_message(row)]
    question = next(
        (row[name] for name in ("problem", "question", "prompt") if isinstance(row.get(name), str)), ""
    )
    return [{"role": "user", "content": question}, _reply_message(row)]


def _reply_message(row: Row) -> Row:
    reply: Row = {"role": "assistant", "content": row.get("generation")}
    if isinstance(row.get("reasoning_content"), str):
        reply["reasoning_content"] = row["reasoning_content"]
    return reply


def _count_or_none(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return None


def _file_name(text: str) -> str:
    return path_part(text, "sample")[:_LONGEST_NAME]
