# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from newskills.base.errors import DataError
from newskills.base.records import Row, Sample
from newskills.prompts.renderer import PromptOverrides, load_prompt
from newskills.solve import make_solver
from newskills.solve.chat import ChatSolver, ChatSolverOptions
from newskills.solve.parts import SolverParts


def sent(solver: str, row: Row) -> Row:
    chat = ChatSolver(load_prompt("judge/reply", PromptOverrides()), ChatSolverOptions(generation_key="judgement"))
    return make_solver(solver, SolverParts(chat=chat), {}).request(Sample(id="1", row=row)).extra_body


def test_what_comet_compares() -> None:
    row = {"source": "cat", "reference": "Katze", "generation": "<think>?</think>\nDie Katze"}
    assert sent("comet_judge", row) == {"src": "cat", "mt": "Die Katze", "ref": "Katze"}
    assert sent("comet_judge", {**row, "predicted_answer": None})["mt"] == ""
    assert sent("comet_judge", {**row, "predicted_answer": "Katz"})["mt"] == "Katz"
    with pytest.raises(DataError, match="no text in source or source_text"):
        sent("comet_judge", {"generation": "x"})


def test_what_embeddings_compare() -> None:
    row = {"A": "cat", "B": "dog", "generation": "It is a dog."}
    assert sent("nvembed_judge", row) == {"answer": "It is a dog.", "options": ["cat", "dog"]}
    with pytest.raises(DataError, match="no options"):
        sent("nvembed_judge", {"generation": "x"})


def test_what_was_lost_is_not_measured() -> None:
    assert sent("comet_judge", {"outcome": "unscored", "error": "500"}) == {}
