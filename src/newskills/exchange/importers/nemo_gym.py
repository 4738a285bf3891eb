# SPDX-License-Identifier: Apache-2.0
"""Rollouts of NeMo Gym: `X.jsonl`, with `X_failures.jsonl` and `X_materialized_inputs.jsonl` beside it.

The tasks of an agent become a benchmark, repeats become seeds. What is masked, failed, or was never collected is
unscored. Conversations are those of the responses; `ng_trajectory` adds the ones of sub-agents, and of failed rollouts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from newskills.base.errors import DataError
from newskills.base.reading.json_values import object_or_empty
from newskills.base.records import Row
from newskills.base.store import encode_line
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
from newskills.gateway.form import GatewayProblem
from newskills.gateway.protocols.responses import ResponsesProtocol

FORMAT = "nemo-gym"
FAILURES, INPUTS = "_failures", "_materialized_inputs"
TASK, RESPONSE, OURS = "responses_create_params", "response", "newskills_row"
TASK_INDEX, ROLLOUT_INDEX, FAILURE = "_ng_task_index", "_ng_rollout_index", "_ng_failure_class"
_SEED_PATTERN = re.compile(r"-rs(\d+)$")
_MAX_LINE_BYTES = 1 << 26
"""Bytes of a first line."""
_PROTOCOL = ResponsesProtocol()


def fits(path: Path) -> bool:
    return next(_rollout_files(path), None) is not None


def read(source: ImportSource) -> list[ImportedBenchmark]:
    """Read the rollouts of a run as the records of its agents' tasks. Raises DataError: none there, broken rows, two
    different rollouts of one task and repeat."""
    records: dict[str, list[tuple[_Repeat, Row]]] = {}
    expected: dict[str, list[str]] = {}
    models: dict[str, set[str]] = {}
    notes: list[str] = []
    for file in _rollout_files(source.path):
        inputs = list(_rows_beside(file, INPUTS, notes))
        for row in _rollout_rows(file, {row.get(TASK_INDEX): row for row in inputs}, notes):
            name = _benchmark_name(row, file)
            repeat = _Repeat(_seed_of(file), row.get(ROLLOUT_INDEX) or 0)
            records.setdefault(name, []).append((repeat, _rollout_record(row, notes)))
            model = object_or_empty(row.get(RESPONSE)).get("model")
            models.setdefault(name, set())
            if isinstance(model, str):
                models[name].add(model)
        for row in inputs:
            expected.setdefault(_benchmark_name(row, file), []).append(_rollout_identity(row))
    if not records:
        raise DataError(f"{source.path} has no rollouts of NeMo Gym.")
    imported: list[ImportedBenchmark] = []
    for name, pairs in records.items():
        own: list[str] = []
        if not imported:
            own += notes
        numbers = _repeat_seeds({repeat for repeat, _ in pairs})
        numbered = ((numbers[repeat], record) for repeat, record in pairs)
        seeds = by_seed(name, numbered, own, expected.get(name, ()))
        only_model = None
        if len(models[name]) == 1:
            (only_model,) = models[name]
        origin = origin_of(FORMAT, source.path, {"model": only_model})
        imported.append(ImportedBenchmark(benchmark=name, seeds=seeds, origin=origin, notes=own))
    return imported


class _Repeat(NamedTuple):
    """`seed`: that of the file's name, as `ns nemo_gym_rollouts` gives it; `place`: among those of the file."""

    seed: int | None
    place: int


def _seed_of(file: Path) -> int | None:
    seed = _SEED_PATTERN.search(file.stem)
    if seed:
        return int(seed[1])
    return None


def _repeat_seeds(repeats: Collection[_Repeat]) -> dict[_Repeat, int | None]:
    """Return the seed of each: that of its file, where it is the only one there; None for the only one at all."""
    if any(repeat.place for repeat in repeats):
        ordered = sorted(repeats, key=lambda repeat: (repeat.seed or 0, repeat.place))
        return {repeat: number for number, repeat in enumerate(ordered)}
    return {repeat: repeat.seed for repeat in repeats}


def _rollout_files(path: Path) -> Iterator[Path]:
    """Yield the files of rollouts at `path`."""
    files = [path] if path.is_file() else sorted(path.glob("*.jsonl"))
    for file in files:
        if not file.stem.endswith((FAILURES, INPUTS)) and _has_rollouts(file):
            yield file


def _has_rollouts(file: Path) -> bool:
    """Return whether it begins with a rollout, or is empty beside failures, where all have failed."""
    try:
        with file.open("rb") as opened:
            begin = opened.readline(_MAX_LINE_BYTES)
    except OSError:
        return False
    if not begin:
        return _sibling_file(file, FAILURES).is_file()
    return b'"responses_create_params"' in begin and (b'"_ng_rollout_index"' in begin or b'"response"' in begin)


def _sibling_file(file: Path, kind: str) -> Path:
    return file.with_name(f"{file.stem}{kind}{file.suffix}")


def _rows_beside(file: Path, kind: str, notes: list[str]) -> Iterator[Row]:
    if (other := _sibling_file(file, kind)).is_file():
        yield from (finite_json(row) for row in read_lines(other, load_json, notes))


def _rollout_rows(file: Path, inputs: Mapping[Any, Row], notes: list[str]) -> Iterator[Row]:
    """Yield the rollouts, then the last failure of each that never came to its end, with its input."""
    done: set[tuple[str, Any]] = set()
    for row in _identified_rows(file, notes):
        done.add((_rollout_identity(row), row.get(ROLLOUT_INDEX)))
        yield row
    failures = ({**inputs.get(row.get(TASK_INDEX), {}), **row} for row in _rows_beside(file, FAILURES, notes))
    failed = {(_rollout_identity(row), row.get(ROLLOUT_INDEX)): row for row in failures}
    yield from (row for key, row in failed.items() if key not in done)


def _identified_rows(file: Path, notes: list[str]) -> Iterator[Row]:
    """Yield the rows of a file. Older ones name no task: those that ask the same are repeats of one."""
    tasks: dict[bytes, int] = {}
    repeats: Counter[int] = Counter()
    for row in read_lines(file, load_json, notes):
        if not isinstance(row.get(TASK), dict):
            raise DataError(f"{file}: a row has no `{TASK}`, so it is no rollout of NeMo Gym.")
        row = finite_json(row)
        if row.get(TASK_INDEX) is None:  # before inputs were written beside
            fields = {name: row[name] for name in (TASK, "uuid", "id", "expected_answer") if name in row}
            row[TASK_INDEX] = task = tasks.setdefault(encode_line(fields), len(tasks))
            row[ROLLOUT_INDEX] = repeats[task]
            repeats[task] += 1
        yield row


def _rollout_identity(row: Row) -> str:
    identity = object_or_empty(row.get(OURS)).get("id")
    if identity is None:
        identity = row.get(TASK_INDEX)
    return str(identity)


def _benchmark_name(row: Row, file: Path) -> str:
    agent = object_or_empty(row.get("agent_ref")).get("name")
    return str(agent or file.stem).removesuffix("_agent").removesuffix("_simple")


def _rollout_record(row: Row, notes: list[str]) -> Row:
    response, trajectory = object_or_empty(row.get(RESPONSE)), object_or_empty(row.get("ng_trajectory"))
    runs = [run for run in trajectory.get("invocations") or () if isinstance(run, dict)]
    ours = object_or_empty(row.get(OURS))
    task = object_or_empty(row.get(TASK))
    items, output = task.get("input"), response.get("output")
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    if isinstance(output, list):
        items = [*(items or ()), *output]
    elif runs:
        items = runs[0].get("conversation")
    conversation = _response_messages(items, task, notes)
    replies = [message for message in conversation if message["role"] == "assistant"]
    usage = object_or_empty(response.get("usage"))
    generation = ""
    if replies:
        generation = str(replies[-1].get("content") or "")
    finish_reason = "length" if response.get("incomplete_details") else "stop"
    record: Row = {
        **ours,
        "id": _rollout_identity(row),
        "problem": ours.get("problem") or _last_question(conversation),
        "generation": generation,
        "conversation": conversation,
        "num_input_tokens": usage.get("input_tokens"),
        "num_generated_tokens": usage.get("output_tokens"),
        "finish_reason": finish_reason,
        "expected_answer": ours.get("expected_answer", row.get("expected_answer")),
        "reward": row.get("reward"),
    }
    if len(runs) > 1:
        record["subagents"] = [_response_messages(run.get("conversation"), task, notes) for run in runs[1:]]
    if calls := trajectory.get("tool_calls"):
        record["num_tool_calls"] = len(calls)
    return {name: value for name, value in record.items() if value is not None} | _verdict_fields(row)


def _response_messages(items: Any, task: Row, notes: list[str]) -> list[Row]:
    """Return items of a response as messages; none, with a note, where some have no such form."""
    if not items:
        return []
    try:
        program = {"input": items, "instructions": task.get("instructions")}
        messages = _PROTOCOL.read(program, "", False).messages
    except GatewayProblem as problem:
        if (note := f"Conversations are left out: {problem.message}") not in notes:
            notes.append(note)
        return []
    rows: list[Row] = [msgspec.to_builtins(message) for message in messages]
    return rows


def _last_question(conversation: list[Row]) -> str | None:
    texts = [message["content"] for message in conversation if message["role"] == "user"]
    return next((text for text in texts[::-1] if isinstance(text, str)), None)


def _verdict_fields(row: Row) -> Row:
    """Return the verdict: unscored where the rollout failed or its reward is no measurement."""
    kind = row.get(FAILURE) or row.get("failure_kind")
    reward = row.get("reward")
    if row.get(FAILURE) is not None or row.get("mask_sample") is True or not isinstance(reward, int | float):
        reason = row.get("_ng_failure_message") or row.get("failure_reason") or "there is no reward"
        cause = "judge" if str(kind).startswith("judge") else "environment"
        why = f"{kind}: {reason}" if kind else str(reason)
        return unscored_fields(cause, why)
    if row.get("outcome") == "no_answer":  # as our own server says
        return {"is_correct": False, "outcome": "no_answer", "grader": FORMAT}
    return scored_fields(min(1.0, max(0.0, float(reward))), FORMAT)
