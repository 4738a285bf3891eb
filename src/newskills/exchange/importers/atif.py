# SPDX-License-Identifier: Apache-2.0
"""Trajectories in ATIF: a file, a folder of them, or a job of Harbor (`<trial>/agent/trajectory.json` beside
`<trial>/result.json`, which has the reward).

A trajectory without a verdict, neither Harbor's nor ours, is unscored.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from newskills.base.errors import DataError
from newskills.base.reading.json_values import object_or_empty, text_or_empty
from newskills.base.records import Row
from newskills.exchange.atif import conversation_of
from newskills.exchange.importers import (
    ImportedBenchmark,
    ImportSource,
    by_seed,
    origin_of,
    scored_fields,
    unscored_fields,
)
from newskills.exchange.json_of_others import finite_json, load_json

FORMAT = "atif"
TRAJECTORY, RESULT = "trajectory.json", "result.json"
OUTCOMES = ("correct", "wrong", "no_answer", "unscored")
_PROBED_BYTES = 1 << 12
"""Bytes of a file in which a trajectory names its version."""


def fits(path: Path) -> bool:
    if path.is_file():
        return path.suffix == ".json" and _is_trajectory(path)
    return any(_is_trajectory(file) for file in _trajectory_files(path))


def read(source: ImportSource) -> list[ImportedBenchmark]:
    """Read trajectories as the records of their benchmarks. Raises DataError: no trajectories, broken ones, other
    versions, two different records of a sample."""
    if source.path.is_file():
        files = [source.path]
    else:
        files = [file for file in _trajectory_files(source.path) if _is_trajectory(file)]
    if not files:
        raise DataError(f"{source.path} has no trajectories in ATIF.")
    records: dict[str, list[tuple[int | None, Row]]] = {}
    models: dict[str, set[str]] = {}
    for file in files:
        trajectory = _read_object(file)
        benchmark, seed, row = _trajectory_record(trajectory, file)
        records.setdefault(benchmark, []).append((seed, row))
        agent = trajectory.get("agent")
        if isinstance(agent, dict) and isinstance(agent.get("model_name"), str):
            models.setdefault(benchmark, set()).add(agent["model_name"])
    imported = []
    for benchmark, pairs in records.items():
        notes: list[str] = []
        model = None
        if len(models.get(benchmark, ())) == 1:
            model = next(iter(models.get(benchmark, ())), None)
        facts = {"model": model}
        seeds = by_seed(benchmark, _by_attempt(pairs), notes)
        origin = origin_of(FORMAT, source.path, facts)
        imported.append(ImportedBenchmark(benchmark=benchmark, seeds=seeds, origin=origin, notes=notes))
    return imported


def _by_attempt(pairs: list[tuple[int | None, Row]]) -> list[tuple[int | None, Row]]:
    """Return the records with a seed each: several trials of a task that name none are counted."""
    identities = [row["id"] for seed, row in pairs if seed is None]
    if len(set(identities)) == len(identities):
        return pairs
    attempts: dict[str, int] = {}
    numbered: list[tuple[int | None, Row]] = []
    for seed, row in pairs:
        if seed is None:
            seed = attempts.get(row["id"], 0)
            attempts[row["id"]] = seed + 1
        numbered.append((seed, row))
    return numbered


def _trajectory_files(folder: Path) -> Iterator[Path]:
    """Yield the files that may be trajectories: of a job of Harbor only those that are called so."""
    named = sorted(folder.rglob(TRAJECTORY))
    yield from named or sorted(folder.rglob("*.json"))


def _is_trajectory(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return b'"ATIF-v1.' in file.read(_PROBED_BYTES)
    except OSError:
        return False


def _read_object(path: Path) -> Row:
    try:
        value = load_json(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: invalid JSON ({error}).") from error
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror}.") from error
    if not isinstance(value, dict):
        raise DataError(f"{path}: expected a JSON object.")
    row: Row = finite_json(value)
    return row


def _trajectory_record(trajectory: Row, file: Path) -> tuple[str, int | None, Row]:
    """Return (benchmark, seed, record)."""
    try:
        conversation = conversation_of(trajectory)
    except DataError as error:
        raise DataError(f"{file}: {error}") from error
    ours = object_or_empty(object_or_empty(trajectory.get("extra")).get("newskills"))
    trial = _trial_result(file)
    replies = [message for message in conversation if message["role"] == "assistant"]
    generation = ""
    if replies:
        generation = text_or_empty(replies[-1]["content"])
    row: Row = {
        "id": str(ours.get("id") or trial.get("task_name") or trajectory.get("session_id") or file.stem),
        "problem": first_text(conversation),
        "generation": generation,
        "conversation": conversation,
        **_tool_fields(trajectory),
        **_usage_fields(trajectory),
    }
    if subagents := trajectory.get("subagent_trajectories"):
        row["subagents"] = [conversation_of(each) for each in subagents if isinstance(each, dict)]
    seed = None
    if (digits := str(ours.get("seed", ""))).isdecimal():
        seed = int(digits)
    benchmark = str(ours.get("benchmark") or trial.get("source") or file.parent.name or "trajectories")
    return benchmark, seed, {**row, **_verdict_fields(ours, trial)}


def _trial_result(file: Path) -> Row:
    """Read the result of Harbor's trial that the trajectory belongs to; empty where there is none."""
    path = file.parent.parent / RESULT
    if file.name != TRAJECTORY or not path.is_file():
        return {}
    return _read_object(path)


def _verdict_fields(ours: Row, trial: Row) -> Row:
    if ours.get("outcome") in OUTCOMES:
        names = ("outcome", "outcome_cause", "grader", "why")
        verdict = {name: ours[name] for name in names if ours.get(name) is not None}
        if ours["outcome"] != "unscored":
            verdict["is_correct"] = ours["outcome"] == "correct"
        return verdict
    rewards = object_or_empty(object_or_empty(trial.get("verifier_result")).get("rewards"))
    reward = rewards.get("reward", next(iter(rewards.values()), None))
    if isinstance(reward, int | float) and not isinstance(reward, bool) and 0 <= reward <= 1:
        return scored_fields(reward, "harbor")
    if trial:
        return unscored_fields(
            "harness", str(object_or_empty(trial.get("exception_info")).get("exception_type") or "no reward")
        )
    return unscored_fields("harness", "the trajectory has no verdict")


def _tool_fields(trajectory: Row) -> Row:
    tools = object_or_empty(trajectory.get("agent")).get("tool_definitions")
    if isinstance(tools, list) and tools:
        return {"tools": tools}
    return {}


def _usage_fields(trajectory: Row) -> Row:
    final = object_or_empty(trajectory.get("final_metrics"))
    names = {
        "num_input_tokens": "total_prompt_tokens",
        "num_generated_tokens": "total_completion_tokens",
        "cost": "total_cost_usd",
    }
    return {own: final[name] for own, name in names.items() if isinstance(final.get(name), int | float)}


def first_text(conversation: list[Row]) -> str:
    """Return the text of the first message of the user."""
    for message in conversation:
        if message["role"] == "user":
            content: Any = message["content"]
            if isinstance(content, str):
                return content
            return "\n".join(part["text"] for part in content if part["type"] == "text")
    return ""
