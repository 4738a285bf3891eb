# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from tests.graders.plain import plain_grader

CODE = "def answer():\n    return 4"


@pytest.mark.parametrize(
    ("generation", "outcome", "cause", "code"),
    [
        (f"So it is 4.\n```python\n{CODE}\n```", "unscored", "judge", CODE),
        (f"```python\nx = 1\n```\nand\n```python\n{CODE}\n```", "unscored", "judge", CODE),
        ("The answer is 4.", "no_answer", "model", ""),
        ("```python\nprint(4)\n```", "no_answer", "model", ""),
        ("<think>on and on", "no_answer", "truncation", ""),
        ("", "no_answer", "model", ""),
    ],
)
def test_only_the_service_decides_on_an_answer(generation: str, outcome: str, cause: str, code: str) -> None:
    score = plain_grader("critpt", {}).grade({"generation": generation})
    assert (score.outcome, score.cause, score.fields["generated_code"].strip()) == (outcome, cause, code)
