# SPDX-License-Identifier: Apache-2.0
import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.solve.judges.claims import next_step, split_claims


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("- A is B.\n* C is D.\n• E", ["A is B.", "C is D.", "E"]),
        ("Here they are:\n\n1. A is B.\n 12) C.", ["A is B.", "C."]),
        ("<think>\n- no claim\n</think>\n- A.", ["A."]),
        ("None.", []),
        ("**NONE**", []),
        ("I cannot.", None),
        ("\n" * 100_000 + " " * 100_000 + "-" * 100_000, None),
        ("", None),
    ],
)
def test_claims_of_a_list(text: str, claims: list[str] | None) -> None:
    assert split_claims(text) == claims


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("Thus.\nVerdict: SUPPORTED", ("supported", "")),
        ("**Verdict:** NOT SUPPORTED.", ("not_supported", "")),
        ("- Verdict: **not_supported**", ("not_supported", "")),
        ("Verdict: [irrelevant]", ("irrelevant", "")),
        ("Verdict: UNSUPPORTED", (None, "")),
        ("Verdict: perhaps", (None, "")),
        ('Search: "height of K2"', (None, "height of K2")),
        ("Search: a\nVerdict: SUPPORTED", ("supported", "")),
        ("Verdict: SUPPORTED would be early.\nSearch: more", (None, "more")),
        ("My verdict: SUPPORTED", (None, "")),
        ("", (None, "")),
    ],
)
def test_the_next_step(text: str, step: tuple[str | None, str]) -> None:
    assert next_step(text) == step


@given(st.text(), st.text("search:verdict \n*- "))
def test_any_text_is_read(text: str, marked: str) -> None:
    for said in (text, marked, f"{marked}{text}"):
        verdict, query = next_step(said)
        assert verdict in (None, "supported", "not_supported", "irrelevant")
        assert not (verdict and query)
        claims = split_claims(said)
        assert claims is None or all(claims)
