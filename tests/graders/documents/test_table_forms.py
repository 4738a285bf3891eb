# SPDX-License-Identifier: Apache-2.0
"""Tables and dictionaries in replies, form by form: what is one, and what is none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.graders.reading.tables import (
    Table,
    all_solutions,
    are_same_tables,
    last_block,
    last_solution,
    read_mapping,
    read_table,
)

ROWS: Table = [{"a": "1", "b": "x"}, {"a": "2", "b": None}]


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        ("<solution> x </solution>", "x"),
        ("<solution>a</solution> <solution>b</solution> c", "b"),
        ("<solution>a", None),
        ("</solution><solution>a", None),
        ("</solution>", None),
        ("", None),
    ],
)
def test_the_last_tag(text: str, inner: str | None) -> None:
    assert last_solution(text) == inner


def test_all_tags_of_lines() -> None:
    text = "<solution>a</solution> <solution>\nb</solution>\n<solution>c<solution>d</solution> e</solution> <solution>f"
    assert all_solutions(text) == ["a", "d"]
    assert all_solutions("none") == []


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        ("```csv\na,b\n```", "a,b"),
        ("```\na,b\n```", "a,b"),
        ("```a,b\nc,d\n```", "a,b\nc,d"),
        ("```a```", "a"),
        ("```x\n1\n``` and ```y\n2\n```", "2"),
        ("<solution>```y\n2\n```</solution> ```x\n1\n```", "2"),
        ("``` open\n1", "``` open\n1"),
        (" plain ", "plain"),
    ],
)
def test_the_last_block(text: str, inner: str) -> None:
    assert last_block(text) == inner


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{'a': 1, 'b': None}", {"a": 1}),
        ('{"a": null, "b": 2}', {"b": 2}),
        ("words <solution>{'a': 1}</solution>", {"a": 1}),
        ("see ```json\n{'a':\n1}\n``` or ```python\n{'b': 2}``` or ```\n{'c': 3}```", {"b": 2}),
        ("see ```json\n{'a': 1}``` or ```\n{'c': 3}```", {"a": 1}),
        ("so ```\n{'c': 3}\n```", {"c": 3}),
        (r"\boxed{{'a': \text{'x'}}}", {"a": "x"}),
        ("the mapping is {'a': 1}", None),
        ("[1, 2]", None),
        ("open('/etc/passwd')", None),
        ("", None),
        ("{'a': 1}" + " " * 20_000, {"a": 1}),
        ("{'a': '" + "x" * 20_000 + "'}", None),
    ],
)
def test_a_dictionary_that_a_reply_is(text: str, value: dict[str, Any] | None) -> None:
    assert read_mapping(text) == value


@pytest.mark.parametrize(
    ("form", "text", "table"),
    [
        ("csv", "a,b\n1,x\n2,\n", ROWS),
        ("csv", "see:\na,b\n1,x\n2,NaN", ROWS),
        ("csv", '```csv\n"a","b"\n1,x\n2,null\n```', ROWS),
        ("csv", "a, b \n1,x\n2", ROWS),
        ("csv", "a,b\n1,x\n\n2,\nthis is, too, much\n3,z", ROWS),
        ("csv", "index,a,b\n0,1,x\n1,2,N/A", ROWS),
        ("csv", "a,b", None),
        ("tsv", "a\tb\n1\tx\n2\t", ROWS),
        ("csv", "<solution>a,b\n1,x\n2,</solution> or a,b\n3,z", ROWS),
        ("html", "<p><table><tr><th>a<th>b</tr><tr><td>1</td><td>x</td>no<tr><td>2<td></table>", ROWS),
        ("html", "<table><tr><td>a</td></tr><tr><td>1</td><td>2</td></tr></table>", None),
        ("html", "<table><tr><td>a</td></tr></table>", None),
        ("html", "a table", None),
        ("json", '[{"a": "1", "b": "x"}, {"a": "2", "b": null}]', ROWS),
        ("json", '{"data": [{"a": "1", "b": "x"}, {"a": "2", "b": null}]}', ROWS),
        ("json", '{"r1": {"a": "1", "b": "x"}, "r2": {"a": "2", "b": null}}', ROWS),
        ("json", '{"a": "1", "b": "x"}\n{"a": "2", "b": null}', ROWS),
        ("json", '{"a": "1", "b": "x"}', ROWS[:1]),
        ("json", '{"a": "1", "b": ""}', [{"a": "1", "b": ""}]),
        ("json", "it is [1, 2]", None),
        ("json", "[", None),
        ("json", "none", None),
        ("json", "[]", None),
        ("jsonl", '{"a": "1", "b": "x"},\n{broken}\nwords\n{"a": "2", "b": null}', ROWS),
        ("jsonl", "words", None),
    ],
)
def test_tables(form: str, text: str, table: Table | None) -> None:
    assert read_table(form, text, ("a", "b")) == table


def test_a_table_too_long_is_none() -> None:
    text = '[{"a": "' + "x" * (200_000 - 11) + '"}]'
    assert len(text) == 200_000
    assert read_table("json", text) is not None
    assert read_table("json", text + " ") is None


CELLS = st.sampled_from([None, "", " x ", "x", "1", 1, 1.0000005, 1.0000015, 2, "nan", "inf", True])


def plain(value: Any) -> Any:
    """A cell as it is compared, written down anew."""
    if value is None or str(value) in ("nan", "inf"):
        return None
    try:
        return round(float(str(value)), 9)
    except ValueError:
        return str(value).strip()


@given(st.lists(st.tuples(CELLS, CELLS), max_size=3))
def test_cells_are_the_same_as_numbers_to_a_millionth_else_as_texts(cells: list[tuple[Any, Any]]) -> None:
    first, second = ([{"a": pair[side]} for pair in cells] for side in (0, 1))
    alike = []
    for one, other in cells:
        a, b = plain(one), plain(other)
        alike.append(abs(a - b) < 1e-6 if isinstance(a, float) and isinstance(b, float) else a == b)
    assert are_same_tables(first, second) is all(alike)


def test_rows_and_columns_must_be_the_same() -> None:
    assert are_same_tables([{"a": 1, "b": 2}], [{"b": 2, "a": 1}])
    assert not are_same_tables([{"a": 1}], [{"b": 1}])
    assert not are_same_tables([{"a": 1}], [{"a": 1}, {"a": 1}])
    assert not are_same_tables([{"a": 1}, {"a": 2}], [{"a": 2}, {"a": 1}])
