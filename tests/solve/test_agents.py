# SPDX-License-Identifier: Apache-2.0
"""Agents without a container: what is refused, what the model sees, and endpoints with and without tools."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from newskills.base.environment import ExecutedCommand, image_of
from newskills.base.errors import BadRequestError, ConfigError, ContextLimitError
from newskills.base.records import Message, Reply, Request, TokenPrices, Usage
from newskills.benchmarks import get_benchmark
from newskills.solve import make_solver
from newskills.solve.agents.bash import BashAgent, BashAgentConfig, command_observation
from newskills.solve.agents.options import AgentOptions, Trajectory, text_after
from newskills.solve.agents.rollout import AGENTS
from newskills.solve.parts import SolverParts


def test_only_programs_in_folders_of_their_own_need_a_container() -> None:
    needing = [name for name in AGENTS.built_in_names() if AGENTS.properties(name).needs_container]
    assert needing == ["openhands", "swe-agent"]


@pytest.mark.parametrize(
    "name",
    ["swe-bench", "swe-bench-multilingual", "swe-bench-pro", "swe-rebench", "swe-lancer", "terminal-bench"],
)
def test_work_of_agents_is_refused_without_one(name: str) -> None:
    parts = SolverParts(chat=cast("Any", None))
    with pytest.raises(ConfigError, match=r"an agent, which works in a container per task.* \+\+agent=bash"):
        make_solver(get_benchmark(name).solver, parts, {})


class Shell:
    """Answers commands by a table; all others end with 0 and no output."""

    def __init__(self, **results: ExecutedCommand) -> None:
        self.commands: list[str] = []
        self._results = results

    async def execute(
        self, command: str, *, timeout: float, stdin: bytes = b"", max_output: int = 0
    ) -> ExecutedCommand:
        self.commands.append(command)
        output = b"SUBMIT_CHANGES\n" if command == "echo SUBMIT_CHANGES" else b""
        return self._results.get(command, ExecutedCommand(status="completed", output=output, exit_code=0))

    async def copy_in(self, source: Path, target: str) -> None: ...

    async def copy_out(self, source: str, target: Path, *, max_bytes: int) -> None: ...

    async def stop(self) -> None: ...


class Model:
    """Says `texts` one after the other; refuses tools where told so; each reply costs 10 tokens."""

    name = "fake"

    def __init__(self, *texts: str, tools: bool = True, full_after: int = 1000) -> None:
        self.requests: list[Request] = []
        self._texts, self._tools, self._full_after = texts, tools, full_after

    async def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        if request.tools and not self._tools:
            raise BadRequestError("tools are not supported", status=400)
        turn = sum(message.role == "assistant" for message in request.messages or [])
        if turn >= self._full_after:
            raise ContextLimitError("too long")
        usage = Usage(input_tokens=100, output_tokens=10)
        return Reply(text=self._texts[min(turn, len(self._texts) - 1)], finish_reason="stop", usage=usage)

    async def close(self) -> None: ...


def worked(model: Model, shell: Shell | None = None, *, samples: int = 1, **settings: Any) -> list[Trajectory]:
    options = AgentOptions(
        agent="bash", max_turns=settings.pop("max_turns", 20), prices=TokenPrices(read=1e4, written=1e5)
    )

    async def work() -> list[Trajectory]:
        agent = BashAgent(options, BashAgentConfig(**settings))
        request = agent.prepared(Request(messages=[Message(role="user", content="Do it.")]))
        return await asyncio.gather(*(agent.work(request, model, shell or Shell(), {}) for _ in range(samples)))

    return asyncio.run(work())


def completed(output: bytes, exit_code: int) -> ExecutedCommand:
    return ExecutedCommand(status="completed", output=output, exit_code=exit_code)


SUBMIT = "```bash\necho SUBMIT_CHANGES\n```"
LOOK = "I look.\n```bash\nls\n```\n"


def test_an_endpoint_that_refuses_tools_is_asked_once() -> None:
    model = Model(LOOK, SUBMIT, tools=False)
    for trajectory in worked(model, samples=5):
        assert (trajectory.ended, trajectory.native_tools) == ("submitted", False)
    assert sum(bool(request.tools) for request in model.requests) == 1


def test_tools_are_not_offered_where_the_user_says_so() -> None:
    model = Model(SUBMIT)
    worked(model, native_tools=False)
    assert not any(request.tools for request in model.requests)


@pytest.mark.parametrize(
    ("settings", "ending"),
    [
        ({"max_turns": 3}, "steps"),
        ({"token_limit": 25}, "tokens"),
        ({"cost_limit": 5.0}, "cost"),
        ({"time_limit": 1e-9}, "time"),
    ],
)
def test_limits(settings: dict[str, Any], ending: str) -> None:
    (trajectory,) = worked(Model(LOOK), **settings)
    assert trajectory.ended == ending
    assert len(trajectory.replies) == {"steps": 3, "tokens": 3, "cost": 3, "time": 1}[ending]
    assert sum(step["num_generated_tokens"] for step in trajectory.steps) == trajectory.usage.output_tokens


def test_a_shell_that_warns_first_hears_the_submission() -> None:
    warned = {"output": b"sh: no such locale\nSUBMIT_CHANGES\n", "exit_code": 0}
    shell = Shell(ls=completed(**warned), **{"echo SUBMIT_CHANGES": completed(**warned)})
    (trajectory,) = worked(Model(LOOK, SUBMIT), shell)
    assert (trajectory.ended, len(trajectory.steps)) == ("submitted", 2)
    failed = Shell(**{"echo SUBMIT_CHANGES": completed(**{**warned, "exit_code": 1})})
    assert worked(Model(SUBMIT), failed, max_turns=2)[0].ended == "steps"


@pytest.mark.parametrize(
    ("command", "output", "rest"),
    [
        ("echo END", "END\n", ""),
        ("./submit.sh", "\n END \na\nb\n", "a\nb\n"),
        ("echo END && cat p", "sh: no such locale\nEND\ndiff\n", "diff\n"),
        ("cat log", "sh: no such locale\nEND\n", None),
        ("echo END", "ENDING\n", None),
        ("echo END", "", None),
    ],
)
def test_what_follows_the_line_that_ends_the_work(command: str, output: str, rest: str | None) -> None:
    assert text_after("END", command, output) == rest


def test_a_full_context_ends_the_work() -> None:
    (trajectory,) = worked(Model(LOOK, full_after=2))
    assert trajectory.ended == "context"
    with pytest.raises(ContextLimitError):
        worked(Model(LOOK, full_after=0))


def test_several_blocks_are_none() -> None:
    shell = Shell()
    (trajectory,) = worked(Model(LOOK + LOOK, SUBMIT), shell, native_tools=False)
    assert shell.commands == ["echo SUBMIT_CHANGES"]
    assert "there were 2" in str(trajectory.conversation[2]["content"]).replace("\n", " ")


def test_the_model_sees_how_a_command_ended() -> None:
    cut = ExecutedCommand(status="completed", output=b"abcdef", omitted=1234, exit_code=1)
    assert (
        command_observation(cut, 9) == "Exit code: 1\nabc\n[1,234 bytes are left out here; show less at once]\ndef"
    )
    slow = ExecutedCommand(status="timeout", output=b"\xff")
    assert (
        command_observation(slow, 9)
        == "The command was stopped after 9 seconds, with everything that ran.\n\ufffd"
    )
    assert command_observation(ExecutedCommand(status="completed", exit_code=0), 9) == "Exit code: 0\n(no output)"


def test_a_formatter_names_fields_of_the_row() -> None:
    assert image_of("/i/{instance_id}.sif", {"instance_id": "a"}) == "/i/a.sif"
    with pytest.raises(ConfigError, match="names the field 'instance'; did you mean 'instance_id'"):
        image_of("/i/{instance}.sif", {"instance_id": "a"})
