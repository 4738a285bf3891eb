# SPDX-License-Identifier: Apache-2.0
"""Replies that together tell of a server that is set up wrongly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import FakeServerFactory
from tests.run.support import make_unit, records, run_and_listen, write_input
from tests.server import Answer, Fault, Script


def completion(**message: Any) -> str:
    return json.dumps(
        {
            "model": "fake",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 512},
        }
    )


CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize("rows", [3, 60])
@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"content": None, "reasoning_content": "so 4"}, "reasoning parser"),
        ({"content": "", "reasoning": "so 4"}, "reasoning parser"),
        ({"content": None, "tool_calls": [CALL]}, "tool parser"),
    ],
    ids=["null", "empty", "calls"],
)
def test_replies_without_an_answer_are_said_once(
    tmp_path: Path, fake_server: FakeServerFactory, message: dict[str, Any], said: str, rows: int
) -> None:
    fault = Fault(kind="status", status=200, body=completion(**message))
    server = fake_server(Script(faults=(fault,)))
    write_input(tmp_path, rows)
    result, told = run_and_listen(make_unit(tmp_path, server.base_url))
    assert result.exit_code == 0
    assert told.count(said) == 1
    assert f"{min(rows, 20)} of " in told


def test_right_replies_are_passed_over(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(text="4"), reasoning="so"))
    write_input(tmp_path, 60)
    _, told = run_and_listen(make_unit(tmp_path, server.base_url))
    assert "parser" not in told
    assert "come from the model" not in told


@pytest.mark.parametrize("content", [None, ""])
def test_an_answer_of_which_nothing_is_left_has_one_cause(
    tmp_path: Path, fake_server: FakeServerFactory, content: str | None
) -> None:
    server = fake_server(Script(faults=(Fault(kind="status", status=200, body=completion(content=content)),)))
    write_input(tmp_path, 2)
    unit = make_unit(tmp_path, server.base_url, eval_type="math")
    result, _ = run_and_listen(unit)
    assert result.exit_code == 0
    assert {(row["outcome"], row["outcome_cause"]) for row in records(unit.paths.output)} == {
        ("no_answer", "model")
    }
    assert len(server.records) == 2


@pytest.mark.parametrize(
    ("answered", "said"), [("other-7b", True), ("org/fake", False), ("fake-2026-01-01", False), ("", False)]
)
def test_another_models_name_is_said_once(
    tmp_path: Path, fake_server: FakeServerFactory, answered: str, said: bool
) -> None:
    body = json.dumps({**json.loads(completion(content="4")), "model": answered})
    server = fake_server(Script(faults=(Fault(kind="status", status=200, body=body),)))
    write_input(tmp_path, 30)
    _, told = run_and_listen(make_unit(tmp_path, server.base_url))
    assert told.count("come from the model") == said


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded", "length"])
def test_what_ends_at_a_limit_is_truncated(tmp_path: Path, fake_server: FakeServerFactory, reason: str) -> None:
    body = completion(content="so the").replace('"stop"', json.dumps(reason))
    server = fake_server(Script(faults=(Fault(kind="status", status=200, body=body),)))
    write_input(tmp_path, 2)
    unit = make_unit(tmp_path, server.base_url, eval_type="math")
    run_and_listen(unit)
    assert {(row["finish_reason"], row["outcome_cause"]) for row in records(unit.paths.output)} == {
        ("length", "truncation")
    }
