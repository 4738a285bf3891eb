# SPDX-License-Identifier: Apache-2.0
"""Runs cases of the golden files: a grader with settings and a record, or a function of a module with its arguments."""

from __future__ import annotations

import json
import typing
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cache
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, Literal, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType

from newskills.base.protocols import Grader
from newskills.base.records import Row
from newskills.graders import is_executing, make_grader
from newskills.graders.gold import gold_reply, same_replies
from newskills.graders.reading.record_faults import grading_function

FOLDER = Path(__file__).parent


class Case(Struct, kw_only=True, omit_defaults=True):
    """`grader` with `config` and `record`, or `call` ("module:function" below newskills.graders) with `args`.

    `ask`: not the verdict of the grader, but its `gold_reply` or `same_replies` of the record, or the verdict as
    workers give it (`graded`), where a faulty record has none.
    """

    grader: str = ""
    ask: Literal["", "gold_reply", "same_replies", "graded"] = ""
    config: Row = {}
    record: Row = {}
    call: str = ""
    args: Row = {}
    gives: Any = UNSET

    def replayed(self) -> Any:
        """What it gives today, as JSON has it."""
        if self.grader:
            grader, record = _grader(self.grader, json.dumps(self.config, sort_keys=True)), deepcopy(self.record)
            if self.ask in ("gold_reply", "same_replies"):
                return _as_json((gold_reply if self.ask == "gold_reply" else same_replies)(grader, record))
            score = (grading_function(grader) if self.ask else grader.grade)(record)
            result = msgspec.to_builtins(score, order="deterministic")
            del result["grader"]  # a version that is raised changes no verdict
            return _as_json({key: value for key, value in result.items() if value not in (None, "")})
        function, types = _function(self.call)
        args = {
            key: msgspec.convert(deepcopy(value), types[key]) if key in types else value
            for key, value in self.args.items()
        }
        return _as_json(function(**args))


def cases(path: Path) -> Iterator[Case]:
    """Yield the cases of a golden file."""
    for line in path.read_bytes().splitlines():
        yield msgspec.json.decode(line, type=Case)


def written(case: Case) -> str:
    """One line of a golden file."""
    shown = msgspec.to_builtins(case)
    return json.dumps(shown, ensure_ascii=False)


def files() -> list[Path]:
    """The golden files, in the order of their names."""
    return sorted(FOLDER.glob("*.jsonl"))


def wrong(path: Path) -> Iterator[str]:
    """Yield input, expected and got of each case that gives something else now."""
    for number, case in enumerate(cases(path), 1):
        assert not isinstance(case.gives, UnsetType)
        try:
            got = case.replayed()
        except Exception as error:  # whatever a rule raises is not what it gave
            got = {"raises": repr(error)}
        if got != case.gives:
            shown = msgspec.to_builtins(case)
            expected = shown.pop("gives")
            texts = (json.dumps(part, ensure_ascii=False) for part in (shown, expected, got))
            yield "{}:{}\n  input    {}\n  expected {}\n  got      {}".format(path.name, number, *texts)


@cache
def _grader(name: str, config: str) -> Grader:
    grader = make_grader(name, json.loads(config))
    assert not is_executing(grader)
    return cast(Grader, grader)


@cache
def _function(name: str) -> tuple[Callable[..., Any], dict[str, Any]]:
    module, _, attribute = name.partition(":")
    function = getattr(import_module(f"newskills.graders.{module}"), attribute)
    hints = typing.get_type_hints(function)
    return function, {key: hints[key] for key in signature(function).parameters if key in hints}


def _as_json(value: Any) -> Any:
    """As a reader of the file has it: no tuple, no key but text; sets in order. Raises TypeError for other objects."""
    return msgspec.json.decode(msgspec.json.encode(value, order="deterministic"))
