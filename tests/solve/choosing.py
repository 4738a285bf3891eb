# SPDX-License-Identifier: Apache-2.0
"""A model that solves by the seed of a request, and compares by a function, for solvers that choose among answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from tests.server import FakeServer, Script
from tests.solve.tir import with_kit

from newskills.base.protocols import Kit, Solver
from newskills.base.records import Inference, Row, Sample
from newskills.prompts.renderer import load_prompt
from newskills.solve import make_solver
from newskills.solve.chat import ChatSolver, ChatSolverOptions
from newskills.solve.parts import SolverParts

SAMPLE = Sample(id="7", row={"problem": "What is 40 + 2?"})
SOLUTIONS = "Solutions:"


class Model:
    """Solutions by seed; `compare(solutions as shown) → reply` for the rest."""

    def __init__(self, solutions: Sequence[str], compare: Callable[[str], str] = lambda shown: "none") -> None:
        self.solutions, self._compare = solutions, compare
        self.comparisons: list[str] = []
        self._lock = threading.Lock()

    def __call__(self, body: Row) -> str:
        asked = body["messages"][-1]["content"] if "messages" in body else body["prompt"]
        if SOLUTIONS not in asked:
            return self.solutions[body["seed"] % len(self.solutions)]
        shown = asked.partition(SOLUTIONS)[2]
        with self._lock:
            self.comparisons.append(shown)
        return self._compare(shown)


def index_of(text: str, shown: str) -> int:
    """The number under which `text` is shown."""
    return int(shown.partition(text)[0].rpartition("Solution ")[2].partition(":")[0])


def choose(text: str) -> Callable[[str], str]:
    """Judges for the solution that has `text`, or for none."""

    def said(shown: str) -> str:
        return f"Judgment: {index_of(text, shown)}" if text in shown else "I cannot tell."

    return said


def parts(options: ChatSolverOptions | None = None, **more: Any) -> SolverParts:
    options = options or ChatSolverOptions(inference=Inference(temperature=0.7, tokens_to_generate=100))
    return SolverParts(chat=ChatSolver(load_prompt({"user": "{problem}"}), options), **more)


def solver(name: str, made_of: SolverParts | None = None, **config: Any) -> Solver:
    return make_solver(name, made_of or parts(), config)


def solve(
    chosen: Solver, model: Callable[[Row], str], script: Script | None = None, sample: Sample = SAMPLE
) -> tuple[Row, list[Row]]:
    """(fields of the attempt, bodies of the requests in order)."""
    with FakeServer(script, answer=model) as server:

        async def work(kit: Kit) -> Row:
            return (await chosen.solve(sample, chosen.request(sample), kit)).fields

        return with_kit(server, work), [record.body for record in server.records]
