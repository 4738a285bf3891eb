# SPDX-License-Identifier: Apache-2.0
"""Trajectories in ATIF: written as Harbor's models want them, read from all versions and from Harbor's jobs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.exchange.atif import VERSIONS, conversation_of, trajectory_of
from newskills.exchange.atif_export import export
from newskills.exchange.importers import ImportSource, read, write_import

PIXEL = "data:image/png;base64,iVBORw0KGgo="
CALL = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
AGENT: list[Row] = [
    {"role": "system", "content": "You work in a shell."},
    {"role": "user", "content": "Mend it."},
    {"role": "assistant", "content": "I look.", "reasoning_content": "First ls.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "a.py"},
    {"role": "assistant", "content": "Done."},
]
STEP_FIELDS = {"step_id", "source", "message", "reasoning_content", "tool_calls", "observation"}


def check(trajectory: Row) -> None:
    """The rules of the format: known fields, steps counted from 1, results that name a call of their step."""
    assert set(trajectory) <= {"schema_version", "session_id", "agent", "steps", "final_metrics", "extra"}
    assert trajectory["schema_version"] in VERSIONS
    assert {"name", "version"} <= set(trajectory["agent"]) <= {"name", "version", "model_name", "tool_definitions"}
    for number, step in enumerate(trajectory["steps"], 1):
        assert step["step_id"] == number
        assert set(step) <= STEP_FIELDS
        assert step["source"] in ("system", "user", "agent")
        if step["source"] != "agent":
            assert not {"reasoning_content", "tool_calls"} & set(step)
        calls = {call["tool_call_id"] for call in step.get("tool_calls", ())}
        for call in step.get("tool_calls", ()):
            assert isinstance(call["arguments"], dict)
        for result in step.get("observation", {"results": []})["results"]:
            assert set(result) <= {"content", "source_call_id"}
            assert result.get("source_call_id") in {None, *calls}


def trajectory(conversation: list[Row], **extra: Any) -> Row:
    return trajectory_of(conversation, {"name": "bash"}, {}, extra)


def test_an_agent_goes_there_and_back() -> None:
    made = trajectory(AGENT, id="t1")
    check(made)
    assert made["schema_version"] == "ATIF-v1.2"
    assert [step["source"] for step in made["steps"]] == ["system", "user", "agent", "agent"]
    assert made["steps"][2]["observation"] == {"results": [{"content": "a.py", "source_call_id": "c1"}]}
    assert conversation_of(made) == AGENT


def test_images_and_sound_need_later_versions() -> None:
    image = {"type": "image_url", "image_url": {"url": PIXEL}}
    sound = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
    seen = trajectory([{"role": "user", "content": [{"type": "text", "text": "What?"}, image]}])
    assert seen["schema_version"] == "ATIF-v1.6"
    assert seen["steps"][0]["message"][1]["source"] == {"media_type": "image/png", "path": PIXEL}
    assert conversation_of(seen)[0]["content"][1] == image
    assert trajectory([{"role": "user", "content": [sound]}])["schema_version"] == "ATIF-v1.8"
    unknown = trajectory([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x.bmp"}}]}])
    assert unknown["steps"][0]["message"] == "[image x.bmp]"


def test_arguments_that_are_no_object_are_kept() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": "{broken"}}
    talk = [{"role": "assistant", "content": "", "tool_calls": [call]}]
    made = trajectory(talk)
    check(made)
    assert made["steps"][0]["tool_calls"][0]["arguments"] == {"_text": "{broken"}
    assert conversation_of(made) == talk


def test_nothing_is_learnt_from_copied_context_and_steps_without_a_model() -> None:
    steps = [
        {"step_id": 1, "source": "agent", "message": "old", "is_copied_context": True},
        {"step_id": 2, "source": "agent", "message": "", "llm_call_count": 0},
        {"step_id": 3, "source": "agent", "message": "new", "llm_call_count": 1},
    ]
    weights = [
        message.get("weight") for message in conversation_of({"schema_version": "ATIF-v1.7", "steps": steps})
    ]
    assert weights == [0, 0, None]


@pytest.mark.parametrize("version", VERSIONS)
def test_all_versions_are_read(version: str) -> None:
    assert conversation_of({"schema_version": version, "steps": [{"source": "user", "message": "Hi"}]})


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ({"schema_version": "ATIF-v2.0", "steps": []}, "not one of ATIF-v1.0 to ATIF-v1.8"),
        ({"schema_version": "ATIF-v1.4", "steps": {}}, "no list of steps"),
        ({"schema_version": "ATIF-v1.4", "steps": [{"source": "robot"}]}, "has the source 'robot'"),
    ],
)
def test_what_is_no_trajectory_is_refused(broken: Row, why: str) -> None:
    with pytest.raises(DataError, match=why):
        conversation_of(broken)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool", "developer", "x"])},
    optional={"content": JSON, "tool_calls": JSON, "tool_call_id": JSON, "reasoning_content": JSON},
)


@given(st.lists(MESSAGE, min_size=1, max_size=6))
def test_any_conversation_becomes_a_valid_trajectory(conversation: list[Row]) -> None:
    made = trajectory(conversation)
    check(json.loads(json.dumps(made)))
    check(trajectory(conversation_of(made)) if conversation_of(made) else made)


def results(tmp_path: Path) -> Path:
    folder = tmp_path / "run/eval-results/swe"
    folder.mkdir(parents=True)
    rows = [
        {"id": "a/b", "conversation": AGENT, "outcome": "correct", "grader": "swe@1", "num_generated_tokens": 7},
        {"id": "a b", "problem": "2+2?", "generation": "5", "outcome": "wrong", "is_correct": False},
    ]
    for seed in (0, 1):
        (folder / f"output-rs{seed}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return tmp_path / "run"


def test_results_are_exported_and_imported_with_their_verdicts(tmp_path: Path) -> None:
    (folder,) = export(results(tmp_path), tmp_path / "out", model="m")
    files = sorted(path.name for path in folder.iterdir())
    assert files == ["a-b-rs0-2.json", "a-b-rs0.json", "a-b-rs1-2.json", "a-b-rs1.json"]
    for file in folder.iterdir():
        check(json.loads(file.read_text()))
    with pytest.raises(DataError, match="already has files"):
        export(tmp_path / "run", tmp_path / "out")
    (imported,) = read(ImportSource(path=tmp_path / "out"))
    assert imported.benchmark == "swe"
    assert set(imported.seeds) == {0, 1}
    first, second = imported.seeds[1]
    assert {first["id"], second["id"]} == {"a/b", "a b"}
    by_id = {row["id"]: row for row in imported.seeds[1]}
    assert by_id["a/b"]["conversation"] == AGENT
    assert (by_id["a/b"]["outcome"], by_id["a/b"]["is_correct"], by_id["a/b"]["num_generated_tokens"]) == (
        "correct",
        True,
        7,
    )
    assert (by_id["a b"]["problem"], by_id["a b"]["generation"], by_id["a b"]["outcome"]) == ("2+2?", "5", "wrong")
    assert write_import(imported, tmp_path / "imported").is_dir()


def test_a_job_of_harbor_brings_its_rewards(tmp_path: Path) -> None:
    for trial, task, verifier in (
        ("hello__a", "hello", {"rewards": {"reward": 1.0}}),
        ("hello__b", "hello", {"rewards": {"reward": 0.5}}),
        ("other__c", "other", None),
    ):
        folder = tmp_path / "job" / trial
        (folder / "agent").mkdir(parents=True)
        (folder / "agent/trajectory.json").write_text(
            json.dumps(trajectory(AGENT)).replace("ATIF-v1.2", "ATIF-v1.8")
        )
        result = {"task_name": task, "source": "terminal-bench", "verifier_result": verifier}
        (folder / "result.json").write_text(json.dumps(result))
    (imported,) = read(ImportSource(path=tmp_path / "job"))
    assert imported.benchmark == "terminal-bench"
    verdicts = {(seed, row["id"]): row["outcome"] for seed, rows in imported.seeds.items() for row in rows}
    assert verdicts == {
        (0, "hello"): "correct",
        (1, "hello"): "wrong",
        (0, "other"): "unscored",
        (1, "other"): "unscored",
    }
    assert imported.seeds[1][0]["is_correct"] == 0.5
