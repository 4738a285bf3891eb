# SPDX-License-Identifier: Apache-2.0
"""Steps of a program, asked for one after the other."""

from __future__ import annotations

import pytest
from tests.conftest import FakeServerFactory
from tests.server import Answer, Script

from newskills.base.aio import run
from newskills.base.errors import DataError
from newskills.base.protocols import Kit
from newskills.base.records import Row, Sample
from newskills.graders.code.given import GIVEN
from newskills.models import make_model
from newskills.models.config import ServerConfig
from newskills.prompts.renderer import load_prompt
from newskills.solve import make_solver
from newskills.solve.chat import MAIN, ChatSolver, ChatSolverOptions
from newskills.solve.parts import SolverParts

ROW: Row = {
    "required_dependencies": "import numpy as np",
    "sub_steps": [
        {
            "step_number": f"1.{number}",
            "step_description_prompt": f"Do thing {number}.",
            "step_background": f"Science {number}.",
            "function_header": f"def thing_{number}():",
        }
        for number in (1, 2, 3)
    ],
}


@pytest.mark.parametrize("background", [True, False])
def test_each_step_sees_those_before_it(fake_server: FakeServerFactory, background: bool) -> None:
    server = fake_server(Script(answer=Answer(text="Well:\n```python\ndef done(): pass\n```")))
    chat = ChatSolver(load_prompt("eval/scicode/background"), ChatSolverOptions())
    solver = make_solver("scicode", SolverParts(chat=chat), {"with_background": background})
    sample = Sample(id="1", row=ROW)

    async def main() -> Row:
        config = ServerConfig(server_type="vllm", model="fake", base_url=server.base_url)
        model = make_model(config, concurrency=1, environ={})
        try:
            return (await solver.solve(sample, solver.request(sample), Kit(models={MAIN: model}))).fields
        finally:
            await model.close()

    fields = run(main)
    assert fields["steps"] == dict.fromkeys(("1.1", "1.2", "1.3"), "def done(): pass")
    assert fields["generation"].count("Well:") == 3
    prompts = [record.prompt for record in server.records]
    assert [prompt.count("def done(): pass") for prompt in prompts] == [0, 1, 2]
    assert [prompt.count("Do thing") for prompt in prompts] == [1, 2, 3]
    assert [prompt.count("Science") for prompt in prompts] == ([1, 2, 3] if background else [0, 0, 0])
    assert "def thing_3():" in prompts[2]
    assert fields["num_generated_tokens"] > 3


def test_given_steps_are_shown_and_not_asked_for(fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=Answer(text="```python\nimport os\ndef done(): pass\n```")))
    solver = make_solver(
        "scicode", SolverParts(chat=ChatSolver(load_prompt("eval/scicode/background"), ChatSolverOptions())), {}
    )
    given, *others = [{**step, "step_number": f"62.{number}"} for number, step in enumerate(ROW["sub_steps"], 1)]
    sample = Sample(id="62", row={**ROW, "sub_steps": [given, *others]})

    async def main() -> Row:
        config = ServerConfig(server_type="vllm", model="fake", base_url=server.base_url)
        model = make_model(config, concurrency=1, environ={})
        try:
            return (await solver.solve(sample, solver.request(sample), Kit(models={MAIN: model}))).fields
        finally:
            await model.close()

    fields = run(main)
    assert fields["steps"] == {"62.1": GIVEN["62.1"], "62.2": "def done(): pass", "62.3": "def done(): pass"}
    prompts = [record.prompt for record in server.records]
    assert [("class EnlargedBlock(Block)" in prompt, "thing_2" in prompt) for prompt in prompts] == [
        (True, True),
        (True, False),
    ]
    assert [message.content for message in solver.request(sample).messages] == [prompts[0]]


def test_rows_without_steps_are_refused() -> None:
    chat = ChatSolver(load_prompt("eval/scicode/background"), ChatSolverOptions())
    solver = make_solver("scicode", SolverParts(chat=chat), {})
    with pytest.raises(DataError, match="sub_steps"):
        solver.request(Sample(id="1", row={}))
