# SPDX-License-Identifier: Apache-2.0
"""Forms of training data, known by their keys. Standard library only: it also runs in the images of trainers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from newskills.train.data.row_fields import REASONING, SYSTEM, TOLD, lost_field

FORMS: Mapping[str, tuple[str, ...]] = {
    "messages": ("messages",),
    "input_output": ("input", "output"),
    "gym": ("responses_create_params",),
    "verl": ("data_source", "prompt", "reward_model"),
    "plain": ("problem", "expected_answer"),
}
"""Form → keys that each of its rows has."""
SFT = ("messages", "input_output")
GRPO = ("gym", "plain")
PPO = ("verl", "plain")
PARQUET = b"PAR1"


class FormatError(ValueError):
    """A file that a trainer cannot learn from; the text says what is wrong and where."""


class DataFileFacts(NamedTuple):
    """`form` is that of the first row; `both`: rows are conversations and pairs at once; `tools`: some offer tools."""

    form: str
    rows: int
    both: bool = False
    tools: bool = False


def examine_file(path: str | Path, forms: tuple[str, ...]) -> DataFileFacts:
    """Return the form of a JSONL file, all of whose rows are looked at. Parquet is known by its first bytes only (rows
    -1).

    Raises FormatError for a file that cannot be read, is empty, or has a row of none of `forms` or of another one.
    """
    if "verl" in forms and _is_parquet(path):
        return DataFileFacts("verl", -1)
    facts = None
    count, tools = 0, False
    for number, row in rows_of(path):
        count += 1
        tools = tools or "tools" in row
        if facts is None:
            facts = _row_form(row, forms, path, number)
        if missing := [key for key in FORMS[facts.form] if key not in row]:
            raise FormatError(
                f"{path}, line {number}, has no {' and no '.join(map(repr, missing))}, unlike the lines "
                f"before it; its keys are {', '.join(row) or 'none'}."
            )
        _check_lost(row, facts.form, path, number)
    if facts is None:
        raise FormatError(f"{path} is empty.")
    return facts._replace(rows=count, tools=tools)


def examine_first_line(line: bytes, path: str, forms: tuple[str, ...]) -> DataFileFacts:
    """Return the form of a file by its first line alone (rows -1). Raises FormatError."""
    if "verl" in forms and line.startswith(PARQUET):
        return DataFileFacts("verl", -1)
    row = _decode_row(line, path, 1)
    facts = _row_form(row, forms, path, 1)
    _check_lost(row, facts.form, path, 1)
    return facts._replace(rows=-1, tools="tools" in row)


def rows_of(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line number and object of each line that is not blank. Raises FormatError."""
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, _decode_row(line, path, number)
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror or error}.") from error


def _decode_row(line: bytes, path: str | Path, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}, line {number}, is not JSON: {error}.") from error
    if not isinstance(row, dict):
        raise FormatError(f"{path}, line {number}, is not a JSON object.")
    return row


def _row_form(row: Mapping[str, Any], forms: tuple[str, ...], path: str | Path, number: int) -> DataFileFacts:
    has = [form for form in forms if all(key in row for key in FORMS[form])]
    if not has:
        wanted = " or ".join("{" + ", ".join(FORMS[form]) + "}" for form in forms)
        raise FormatError(f"{path}, line {number}, is not {wanted}; its keys are {', '.join(row) or 'none'}.")
    return DataFileFacts(has[0], 0, both=has == list(SFT))


def _check_lost(row: Mapping[str, Any], form: str, path: str | Path, number: int) -> None:
    """Raise FormatError for a field that says what a model was told or thought, and that trainers do not look at."""
    name = None
    if form == "input_output":
        name = lost_field(row, TOLD, str(row["input"])) or lost_field(row, REASONING[:1], str(row["output"]))
    elif form == "messages":
        name = lost_field(row, SYSTEM, str(row["messages"]))
    if name is not None:
        raise FormatError(
            f"{path}, line {number}: the field '{name}' would be lost; write it into the texts or messages, or remove "
            "it."
        )


def _is_parquet(path: str | Path) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(PARQUET)) == PARQUET
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror or error}.") from error


def verl_row(row: Mapping[str, Any], index: int, prompt: str, source: str) -> dict[str, Any]:
    """Return a row {problem, expected_answer} as verl's data sets have them (https://verl.readthedocs.io, Prepare
    Data).

    `prompt` has `{}` where the problem goes, as `str.format` understands it.
    """
    problem, answer = str(row["problem"]), str(row["expected_answer"])
    return {
        "data_source": source,
        "prompt": [{"role": "user", "content": prompt.format(problem)}],
        "ability": str(row.get("task_name") or "math"),
        "reward_model": {"style": "rule", "ground_truth": answer},
        "extra_info": {"index": index, "problem": problem},
    }
