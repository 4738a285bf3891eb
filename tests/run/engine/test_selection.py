# SPDX-License-Identifier: Apache-2.0
"""Several answers to each row, through the engine: settings, files, resume."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.conftest import FakeServerFactory
from tests.run.support import make_unit, records, run, run_and_listen, write_input
from tests.run.test_kill import finish, start
from tests.run.toy import NAME
from tests.server import Answer, Fault, Latency, Script

from newskills.base.errors import ConfigError, DataError
from newskills.run.planning.config import GenerationConfig
from newskills.run.planning.spec import RunSpec, Unit
from newskills.sandbox.config import SandboxConfig
from newskills.solve.selection.config import ParallelThinking

RANDOM = Script(answer=Answer(kind="random", modulus=10**9))


def unit(folder: Path, base_url: str, mode: str | None = "genselect", **settings: Any) -> Unit:
    thinking = msgspec.convert({"mode": mode, "window_size": 3, **settings.pop("thinking", {})}, ParallelThinking)
    return make_unit(
        folder,
        base_url,
        **{
            "inference": {"temperature": 0.7},
            "parallel_thinking": thinking,
            "add_generation_stats": False,
            **settings,
        },
    )


def test_rows_are_solved_several_times_compared_and_graded(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(RANDOM)
    write_input(tmp_path, 5)
    result = run(unit(tmp_path, server.base_url, eval_type=NAME))
    assert (result.exit_code, len(server.records)) == (0, 5 * 4)
    for record in records(result.units[0].output):
        assert record["generation"] in record["solution_list"]
        assert record["genselect_successful"] is False
        assert record["outcome"] == "wrong"
    again = run(unit(tmp_path, server.base_url, eval_type=NAME))
    assert (again.exit_code, len(server.records)) == (0, 5 * 4)


def test_rows_are_finished_before_many_others_are_begun(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(msgspec.structs.replace(RANDOM, latency=Latency(fixed=0.005)))
    write_input(tmp_path, 40)
    run(unit(tmp_path, server.base_url, thinking={"window_size": 4}, max_concurrent_requests=8))
    first = next(place for place, one in enumerate(server.records) if "Solutions:" in one.prompt)
    assert first <= 4 * 4  # two times 8 requests at once are 4 rows of 4 solutions
    assert server.max_in_flight == 8


def test_a_lost_comparison_is_unscored(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(faults=(Fault(kind="status", status=400, marker="Solutions:"),)))
    write_input(tmp_path, 2)
    lost = unit(tmp_path, server.base_url, eval_type=NAME, server={"enable_soft_fail": True})
    result = run(lost)
    assert result.exit_code == 0
    found = records(result.units[0].output)
    assert [(record["outcome"], record["outcome_cause"]) for record in found] == [("unscored", "provider")] * 2


@pytest.mark.parametrize("kills", [3])
@pytest.mark.slow
def test_kills_lose_no_reply_that_is_kept(tmp_path: Path, fake_server: FakeServerFactory, kills: int) -> None:
    slow = msgspec.structs.replace(RANDOM, latency=Latency(fixed=0.03, jitter=0.05))
    server = fake_server(slow, process=True)
    files = []
    for name in ("calm", "wild"):
        folder = tmp_path / name
        folder.mkdir()
        write_input(folder, 20)
        one = unit(folder, server.base_url, enable_litellm_cache=True)
        RunSpec(units=(one,), output_dir=str(folder)).save(folder)
        files.append(one.merged)
    finish(tmp_path / "calm")
    asked = len(server.records)
    assert asked == 20 * 4
    for _ in range(kills):
        process = start(tmp_path / "wild")
        seen = len(server.records)
        while len(server.records) < seen + 12 and process.poll() is None:
            time.sleep(0.02)
        process.kill()
        process.communicate()
    finish(tmp_path / "wild")
    assert files[0].read_bytes() == files[1].read_bytes()
    assert (
        len(server.records) - asked <= 20 * 4 + kills * 2 * 8
    )  # what was in flight, or not yet on disk, at a kill


def test_other_settings_do_not_mix(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(faults=(Fault(kind="status", status=400, after=14),)))
    write_input(tmp_path, 4)
    assert run(unit(tmp_path, server.base_url)).exit_code != 0
    with pytest.raises(DataError, match=r"parallel_thinking\.window_size"):
        run(unit(tmp_path, server.base_url, thinking={"window_size": 4}))


def test_votes_of_a_selecting_solver(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(kind="random", modulus=2)))
    write_input(tmp_path, 3)
    result = run(unit(tmp_path, server.base_url, None, solver="majority", solver_config={"samples": 5}))
    assert len(server.records) == 15
    for record in records(result.units[0].output):
        votes = record["votes"]
        assert sum(votes.values()) == 5
        assert record["predicted_answer"] == next(iter(votes))


def test_very_many_solutions_in_one_prompt_are_remarked_on(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(RANDOM)
    write_input(tmp_path, 1)
    _, said = run_and_listen(unit(tmp_path, server.base_url, thinking={"window_size": 33}))
    assert "More than 32 solutions in one prompt" in said


def test_several_greedy_answers_are_refused(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server()
    write_input(tmp_path, 1)
    with pytest.raises(ConfigError, match="at temperature 0 they are all the same"):
        run(unit(tmp_path, server.base_url, inference={}))
    with pytest.raises(ConfigError, match="at temperature 0"):
        run(unit(tmp_path, server.base_url, None, inference={}, solver="majority"))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"solver": "majority"}, "use only one of them"),
        ({"solver": "llm_judge"}, "does not write"),
        (
            {"code_execution": True, "code_tags": "qwen", "sandbox": SandboxConfig(max_sessions=7)},
            "8 sandbox sessions",
        ),
    ],
)
def test_what_does_not_go_together(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        GenerationConfig(parallel_thinking=ParallelThinking(mode="genselect"), **settings)


@pytest.mark.parametrize(
    ("sessions", "host", "window"), [(1000, "", 500), (64, "", 32), (8, "", 4), (1000, "elsewhere", None)]
)
def test_requests_in_flight_follow_the_sessions_of_the_sandbox(
    sessions: int, host: str, window: int | None
) -> None:
    sandbox = SandboxConfig(max_sessions=sessions, host=host)
    config = GenerationConfig(
        solver="genselect", code_execution=True, code_tags="qwen", sandbox=sandbox, solver_config={"samples": 8}
    )
    assert config.sandbox_window == window
    assert GenerationConfig(solver="genselect").sandbox_window is None


def test_the_solver_of_single_answers_is_kept() -> None:
    config = GenerationConfig(solver="Majority", tool_modules=("python",))
    assert (config.selected_by, config.solved_by, config.answers_of_a_row) == ("majority", "tools", 16)
    config = GenerationConfig(solver="genselect", code_execution=True, code_tags="qwen", max_concurrent_requests=8)
    assert (config.solved_by, config.needs_sandbox) == ("code_execution", True)


def test_solutions_may_call_tools(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    (tmp_path / "own.py").write_text(
        'def add(a: int, b: int) -> int:\n    """Adds two whole numbers."""\n    return a + b\n'
    )
    call = {"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 1}'}}
    server = fake_server(Script(tool_turns=((call,),), answer=Answer(text="2\nJudgment: 1")))
    write_input(tmp_path, 1)
    result = run(unit(tmp_path, server.base_url, tool_modules=(f"{tmp_path}/own.py::add",)))
    (record,) = records(result.units[0].output)
    assert (record["num_tool_calls"], record["genselect_successful"]) == (1, True)
    assert sum("tools" in one.body for one in server.records) == 6
    comparison = server.records[-1].body
    assert "tools" not in comparison
