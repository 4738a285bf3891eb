# SPDX-License-Identifier: Apache-2.0
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.stats import krippendorff_alpha
from newskills.graders.judges.arena import arena_label, read_mark
from newskills.solve.judges.panel import FORMS

LETTERS = {"A": "correct", "B": "incorrect", "C": "not_attempted"}


@pytest.mark.parametrize(
    ("form", "texts", "expected"),
    [
        ("yes_or_no", ["Judgement: Yes", "Judgement: No", "Judgement: No"], "Judgement: No"),
        ("yes_or_no", ["Judgement: Yes", "Judgement: No"], None),
        ("letter", ["A", "INCORRECT", "B"], "B"),
        ("letter", ["A", "B", "C"], None),
        ("game", ["[[A>>B]]", "[[A>B]]", "[[B>A]]"], "[[A>B]]"),
        ("game", ["[[A<B]]", "[[A>B]]"], "[[A=B]]"),
        ("game", ["[[A>>B]]", "[[A>B]]"], "[[A>B]]"),
        ("game", ["[[B>>A]]", "[[B>A]]"], "[[B>A]]"),
        ("mark", ["[[7]]", "[[8]]"], "[[7.500]]"),
    ],
)
def test_verdicts_are_combined(form: str, texts: list[str], expected: str | None) -> None:
    how = FORMS[form]
    verdicts = [how.read(text, LETTERS) for text in texts]
    together = how.combine(verdicts)
    assert (None if together is None else how.write(together, LETTERS, texts)) == expected


@given(st.sampled_from(sorted(FORMS)), st.integers(0, 100))
def test_what_is_written_is_read_as_the_same(form: str, choice: int) -> None:
    how = FORMS[form]
    options = {
        "yes_or_no": ["Yes", "No"],
        "letter": list(LETTERS.values()),
        "game": ["A>>B", "A>B", "A=B", "B>A", "B>>A"],
        "mark": [1 + n / 8 for n in range(73)],
    }[form]
    verdict = options[choice % len(options)]
    assert how.read(how.write(verdict, LETTERS, []), LETTERS) == verdict


def test_graders_read_marks_and_games_of_a_panel() -> None:
    assert read_mark(FORMS["mark"].write(7.333333, {}, [])) == 7.333
    assert arena_label(FORMS["game"].write("B>A", {}, [])) == "A<B"


def test_alpha_is_that_of_the_book() -> None:
    """Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), example C: nominal data, any raters, gaps."""
    rows = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    ]
    columns = [[value for value in column if value is not None] for column in zip(*rows, strict=True)]
    assert krippendorff_alpha([[str(v) for v in unit] for unit in columns]) == pytest.approx(0.743, abs=0.001)
    assert krippendorff_alpha(columns) == pytest.approx(0.849, abs=0.001)
    assert math.isnan(krippendorff_alpha([["a", "a"], ["a", "a"]]))
    assert math.isnan(krippendorff_alpha([["a"]]))
