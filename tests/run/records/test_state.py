# SPDX-License-Identifier: Apache-2.0
"""Which settings a resume must share, in what words a difference is told, and the state file itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from newskills.base.records import Inference, Row
from newskills.run.planning.config import EndpointConfig, GenerationConfig
from newskills.run.records.state import RunState, asked_settings, load_state, setting_changes

BARE = GenerationConfig(server=EndpointConfig(model="m"), inference=Inference())


def settings_of(config: GenerationConfig = BARE, **changed: Any) -> Row:
    config = msgspec.structs.replace(config, **changed)
    return asked_settings(config, input_digest="abcd", prompt="p1", more_prompts="")


def added(**changed: Any) -> Row:
    """Settings that the change of a configuration brings or changes."""
    before = settings_of()
    return {name: value for name, value in settings_of(**changed).items() if before.get(name, ...) != value}


def test_of_a_plain_run_all_that_decides_what_the_model_is_asked() -> None:
    sampling = {f"inference.{name}": value for name, value in msgspec.to_builtins(Inference()).items()}
    expected = {
        "input_file": "abcd",
        "prompt": "p1",
        "server.model": "m",
        "prompt_format": "ns",
        "max_samples": -1,
        "remove_stop_phrases": True,
        "parse_reasoning": False,
        "end_reasoning_string": "</think>",
        "generation_key": "generation",
        "async_position_key": "_async_position",
        **{name: value for name, value in sampling.items() if value not in (None, {})},
    }
    for name in ("inference.timeout", "inference.stream"):
        expected.pop(name, None)
    assert settings_of() == expected
    assert asked_settings(BARE, input_digest="abcd", prompt="p1", more_prompts="x") == {
        **expected,
        "more_prompts": "x",
    }


@pytest.mark.parametrize(
    ("changed", "settings_added"),
    [
        ({"num_chunks": 2, "chunk_id": 0}, {"num_chunks": 2, "chunk_id": 0}),
        ({"stop_phrase": "END"}, {"stop_phrase": "END"}),
        ({"max_samples": 0}, {"max_samples": 0}),
        ({"solver": "autoformalize", "solver_config": {"a": 1}, "code_tags": "qwen"}, {
            "solver": "autoformalize", "solver_config": {"a": 1}, "code_tags": "qwen",
        }),
        ({"solver_config": {"a": 1}, "code_tags": "qwen"}, {}),
        ({"solver": "majority", "solver_config": {"samples": 4}}, {
            "selected_by": "majority", "solver_config": {"samples": 4},
        }),
        ({"tool_overrides": {}, "max_tool_calls": 3}, {}),
        ({"tool_modules": ("python",), "max_tool_calls": 3}, {
            "solver": "tools", "tool_modules": ["python"], "max_tool_calls": 3,
        }),
        ({"audio_chunk_task_types": ("ASR",)}, {
            "audio_chunk_task_types": ["ASR"], "chunk_audio_threshold_sec": 30.0,
        }),
        ({"audio_chunk_task_types": ("ASR",), "enable_audio_chunking": False}, {}),
        ({"enable_audio_chunking": True, "chunk_audio_threshold_sec": 5.0}, {}),
        ({"max_concurrent_requests": 3, "log_level": "debug", "endpoint_patience": 5.0}, {}),
        ({"server": EndpointConfig(model="m", base_url="http://h/v1")}, {}),
        ({"server": EndpointConfig(model="n")}, {"server.model": "n"}),
        ({"inference": Inference(timeout=5.0, temperature=0.7)}, {"inference.temperature": 0.7}),
        ({"inference": Inference(temperature=None)}, {}),
    ],
)  # fmt: skip
def test_a_setting_counts_where_it_decides_something(changed: dict[str, Any], settings_added: Row) -> None:
    assert added(**changed) == settings_added


def test_how_code_runs_counts_where_code_runs() -> None:
    code = {"code_tags": "qwen", "code_execution": True, "total_code_executions_in_prompt": (1, 4)}
    running = added(**code, override_max_code_executions=True)
    limits = msgspec.json.decode(msgspec.json.encode(EndpointConfig().code_execution))
    assert running == {
        "solver": "code_execution",
        "code_tags": "qwen",
        "total_code_executions_in_prompt": [1, 4],
        "override_max_code_executions": True,
        **{
            f"server.code_execution.{name}": value for name, value in limits.items() if value not in (None, {}, "")
        },
    }


def test_how_answers_are_chosen_counts_where_several_are_drawn() -> None:
    thinking = msgspec.structs.replace(BARE.parallel_thinking, mode="genselect", window_size=3)
    kept = msgspec.json.decode(msgspec.json.encode(thinking))
    assert added(parallel_thinking=thinking) == {
        f"parallel_thinking.{name}": value for name, value in kept.items() if value not in (None, {}, "")
    }
    assert added(parallel_thinking=msgspec.structs.replace(BARE.parallel_thinking, window_size=3)) == {}


def test_differences_are_told_in_words() -> None:
    before = {"input_file": "a", "prompt": "p1", "same": 1, "inference.temperature": 0.0, "stop_phrase": "END"}
    now = {"input_file": "b", "prompt": "p2", "same": 1, "inference.temperature": 0.7, "num_chunks": 2}
    assert setting_changes(before, now) == [
        "the content of the input file",
        "the prompt (p1 → p2)",
        "inference.temperature (0.0 → 0.7)",
        "stop_phrase (END → unset)",
        "num_chunks (unset → 2)",
    ]
    assert setting_changes(before, dict(reversed(before.items()))) == []


def test_a_state_survives_its_file_and_tells_who_wrote_it(tmp_path: Path) -> None:
    state = RunState(status="failed", settings={"b": 1, "a": [2]}, sums=[(3, 4)], rows=7, ended=1.5)
    state.save(tmp_path / "state")
    assert load_state(tmp_path / "state") == state
    assert (state.process, state.host) == (os.getpid(), os.uname().nodename)
    bare = RunState(status="running", settings={})
    numbers = ("rows", "size", "written", "distinct_rows", "done", "failures", "unjudged", "started")
    assert [getattr(bare, name) for name in numbers] == [0] * len(numbers)


def test_settings_in_any_order_have_the_same_digest_of_eight_digits() -> None:
    digest = RunState(status="done", settings={"a": 1, "b": {"c": 2, "d": 3}}).digest
    assert digest == RunState(status="failed", settings={"b": {"d": 3, "c": 2}, "a": 1}, rows=3).digest
    assert digest != RunState(status="done", settings={"a": 1, "b": {"c": 2, "d": 4}}).digest
    assert len(digest) == 8
    assert set(digest) <= set("0123456789abcdef")


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"status": "done"}', b'{"status": "\xff", "settings": {}}']
)
def test_a_state_that_cannot_be_read_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "state").write_bytes(content)
    assert load_state(tmp_path / "state") is None
    assert load_state(tmp_path / "absent") is None
    assert load_state(tmp_path / "state" / "below") is None
