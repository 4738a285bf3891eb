# SPDX-License-Identifier: Apache-2.0
"""Replies that were kept are given again, to the same conversation alone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.solve.test_agents import SUBMIT, Model, Shell

from newskills.base.environment import ExecutedCommand
from newskills.base.errors import ServerError
from newskills.base.protocols import Kit
from newskills.base.records import Attempt, Message, Reply, Request, Sample
from newskills.solve.agents.bash import BashAgent, BashAgentConfig
from newskills.solve.agents.options import AgentOptions
from newskills.solve.agents.resumed import FOLDER, ResumedSolver


class Rollouts:
    """A solver that lets the agent work in `shell`."""

    def __init__(self, shell: Shell, **settings: Any) -> None:
        self.shell = shell
        self._agent = BashAgent(AgentOptions(agent="bash"), BashAgentConfig(**settings))

    def check(self) -> None: ...

    def request(self, sample: Sample) -> Request:
        return self._agent.prepared(Request(messages=[Message(role="user", content="Do it.")]))

    async def solve(self, sample: Sample, request: Request, kit: Kit) -> Attempt:
        trajectory = await self._agent.work(request, kit.models["main"], self.shell, sample.row)
        return Attempt(sample_id=sample.id, key="", fields={"ended": trajectory.ended, "steps": trajectory.steps})


class Failing(Model):
    """Gives up at the request with that number."""

    def __init__(self, *texts: str, at: int, tools: bool = True) -> None:
        super().__init__(*texts, tools=tools)
        self._at = at

    async def complete(self, request: Request) -> Reply:
        if len(self.requests) >= self._at:
            raise ServerError("gone", status=500)
        return await super().complete(request)


def solved(folder: Path, model: Model, shell: Shell, **settings: Any) -> Attempt:
    solver = ResumedSolver(Rollouts(shell, **settings), folder)
    sample = Sample(id="a", row={})
    return asyncio.run(solver.solve(sample, solver.request(sample), Kit(models={"main": model})))


TEXTS = ("```bash\nls\n```", "```bash\ncat a\n```", SUBMIT)


@pytest.mark.parametrize("tools", [True, False])
def test_a_rollout_goes_on(tmp_path: Path, tools: bool) -> None:
    with pytest.raises(ServerError):
        solved(tmp_path, Failing(*TEXTS, at=2 if tools else 3, tools=tools), Shell())
    assert len(list((tmp_path / FOLDER).iterdir())) == 1
    model, shell = Model(*TEXTS, tools=tools), Shell()
    attempt = solved(tmp_path, model, shell)
    assert attempt.fields["resumed_steps"] == 2
    assert attempt.fields["ended"] == "submitted"
    assert shell.commands == ["ls", "cat a", "echo SUBMIT_CHANGES"]
    assert len(model.requests) == 1
    assert bool(model.requests[0].tools) is tools
    assert not (tmp_path / FOLDER).exists()


def test_another_output_begins_anew(tmp_path: Path) -> None:
    with pytest.raises(ServerError):
        solved(tmp_path, Failing(*TEXTS, at=2), Shell())
    changed = Shell(ls=ExecutedCommand(status="completed", output=b"new", exit_code=0))
    model = Model(*TEXTS)
    attempt = solved(tmp_path, model, changed)
    assert attempt.fields["began_anew"] == "step 1: a command has another output than before"
    assert len(model.requests) == 3
    assert changed.commands == ["ls", "ls", "cat a", "echo SUBMIT_CHANGES"]
    assert not (tmp_path / FOLDER).exists()


def test_a_torn_line_is_left_out(tmp_path: Path) -> None:
    with pytest.raises(ServerError):
        solved(tmp_path, Failing(*TEXTS, at=2), Shell())
    (file,) = (tmp_path / FOLDER).iterdir()
    file.write_bytes(file.read_bytes()[:-20])
    attempt = solved(tmp_path, Model(*TEXTS), Shell())
    assert attempt.fields["resumed_steps"] == 1
