# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.errors import ConfigError
from newskills.prompts.template import MissingField, NullField, Template, TextPosition


def make(source: str) -> Template:
    return Template(source, TextPosition("text"))


@given(st.text(), st.text(), st.text())
def test_data_comes_through_verbatim(before: str, value: str, after: str) -> None:
    escaped = [text.replace("{", "{{").replace("}", "}}") for text in (before, after)]
    # A LaTeX command right before a field is refused; a blank tells them apart.
    template = make(f"{escaped[0]} {{field}}{escaped[1]} {{field}}")
    assert template.fill({"field": value}) == f"{before} {value}{after} {value}"


NAMES = st.from_regex(r"[a-z_]{1,5}", fullmatch=True)


@given(st.dictionaries(NAMES, st.text() | st.integers() | st.floats()))
def test_plain_fields_agree_with_str_format(row: dict[str, Any]) -> None:
    source = "".join(f" {{{name}}}{{{{{name}}}}}" for name in row)
    assert make(source).fill(row) == source.format(**row)


@given(st.dictionaries(NAMES, st.text() | st.none(), min_size=1), st.text())
def test_null_is_shown_as_the_template_says_or_not_at_all(row: dict[str, Any], empty: str) -> None:
    source = " ".join(f"{{{name}}}" for name in row)
    said = Template(source, TextPosition("text"), empty)
    shown = {name: empty if value is None else value for name, value in row.items()}
    assert said.fill(row) == said.bind("other", "").fill(row) == source.format(**shown)
    if None in row.values():
        with pytest.raises(NullField):
            make(source).fill(row)


@given(st.lists(st.sampled_from(["{a}", "{b}", "{{", "}}", "x"])), st.text(), st.text())
def test_binding_a_field_is_the_same_as_filling_it(pieces: list[str], a: str, b: str) -> None:
    template = make("".join(pieces))
    bound = template.bind("a", a)
    assert bound.fill({"b": b}) == template.fill({"a": a, "b": b})
    assert "a" not in bound.fields


def test_fields_are_listed_once_in_order() -> None:
    assert make("{b} {a}{b} {{c}} {Problem ID} {문제}").fields == ("b", "a", "Problem ID", "문제")


def test_a_missing_field_is_named() -> None:
    with pytest.raises(MissingField) as error:
        make("{a}{b}").fill({"a": 1})
    assert error.value.name == "b"


@pytest.mark.parametrize(
    ("source", "line", "column", "said"),
    [
        ("ab\n  {", 2, 3, "a single '{'"),
        ("x}", 1, 2, "a single '}'"),
        ("\\boxed{}", 1, 7, "single braces after \\boxed"),
        ("a\nb \\boxed{answer}", 2, 9, "write \\boxed{{answer}}"),
        ("{a {b}}", 1, 1, "a single '{'"),
        ("{}", 1, 1, "not a field name"),
        ("{0}", 1, 1, "not a field name"),
        ("{x.__class__}", 1, 1, "not a field name"),
        ("{x[0]}", 1, 1, "not a field name"),
        ("{x!r}", 1, 1, "not a field name"),
        ("{x:>1000000000}", 1, 1, "not a field name"),
        ('{"answer": 1}', 1, 1, "not a field name"),
        ("{ x }", 1, 1, "not a field name"),
    ],
)
def test_braces_that_insert_nothing_are_refused_with_their_position(
    source: str, line: int, column: int, said: str
) -> None:
    with pytest.raises(ConfigError) as error:
        make(source)
    assert f"text, line {line}, column {column}: " in str(error.value)
    assert said in str(error.value)


def test_a_value_can_stand_inside_a_latex_box() -> None:
    assert make("\\boxed{{{x}}}").fill({"x": "\\frac{1}{2}"}) == "\\boxed{\\frac{1}{2}}"
