# SPDX-License-Identifier: Apache-2.0
"""YAML with places: whatever is wrong is named with the line and column at which an editor opens the file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from newskills.base.errors import ConfigError
from newskills.benchmarks.files.describe import description_of
from newskills.benchmarks.files.positions import KeyPath, MarkedDocument, parse_document, read_document

HERE = Path("mine.yaml")
WORDS = st.text(min_size=1, max_size=12).filter(lambda text: text.isprintable())
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS
LINES = ("data: a.csv", "kind: mat", "x", ": ", "- a", "  b: 1", "&a", "*a", "{", "}", "? ", "'", "|")
TREES: Any = st.dictionaries(
    WORDS,
    st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
        max_leaves=8,
    ),
    min_size=1,
    max_size=4,
)


def paths(value: Any, above: KeyPath = ()) -> list[KeyPath]:
    """The paths of all keys of mappings."""
    if isinstance(value, dict):
        return [path for key, item in value.items() for path in [(*above, key), *paths(item, (*above, key))]]
    if isinstance(value, list):
        return [path for number, item in enumerate(value) for path in paths(item, (*above, number))]
    return []


@given(TREES, st.sampled_from([None, True, False]), st.integers(1, 6), st.booleans())
def test_values_are_those_of_yaml_and_each_key_stands_where_it_is_said(
    tree: dict[str, Any], flow: bool | None, indent: int, unicode: bool
) -> None:
    text = yaml.safe_dump(tree, default_flow_style=flow, indent=indent, allow_unicode=unicode, sort_keys=False)
    document = parse_document(text, HERE)
    assert document.values == yaml.safe_load(text) == tree
    # PyYAML breaks lines at more marks than "\n": so does its count of lines.
    lines = re.split("\r\n|[\n\r\x85\u2028\u2029]", text)
    for path in paths(tree):
        place = document.keys[path]
        rest = lines[place.line - 1][place.column - 1 :]
        assert rest[0] in "\"'" or rest.startswith(str(path[-1])), (rest, path)


@given(TREES, st.data(), st.sampled_from([None, True, False]))
def test_an_unknown_key_is_named_at_its_own_place(
    tree: dict[str, Any], data: st.DataObject, flow: bool | None
) -> None:
    """A key that occurs once in the text is put anywhere among the keys of a mapping."""
    assume("xyzzy" not in str(tree))
    where = data.draw(st.sampled_from([(), *[p for p in paths(tree) if isinstance(at(tree, p), dict)]]))
    mapping = at(tree, where)
    items = list(mapping.items())
    items.insert(data.draw(st.integers(0, len(items))), ("xyzzy", 1))
    mapping.clear()
    mapping.update(items)
    text = yaml.safe_dump(tree, default_flow_style=flow, sort_keys=False, allow_unicode=False)
    document = parse_document(text, HERE)
    with pytest.raises(ConfigError) as error:
        document.check_keys(where, [key for key in mapping if key != "xyzzy"])
    offset = text.index("xyzzy")
    line = text.count("\n", 0, offset) + 1
    column = offset - (text.rfind("\n", 0, offset) + 1) + 1
    assert str(error.value).startswith(f"mine.yaml, line {line}, column {column}: there is no key 'xyzzy'")


def at(tree: Any, path: KeyPath) -> Any:
    for step in path:
        tree = tree[step]
    return tree


@given(st.text(max_size=200))
def test_any_text_is_a_document_or_a_sentence(text: str) -> None:
    assert outcome(text) == "" or outcome(text).startswith("mine.yaml")


@given(st.lists(st.sampled_from(LINES)))
def test_any_lines_are_a_description_or_a_sentence(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert outcome(text) == "" or outcome(text).startswith("mine.yaml")


def outcome(text: str) -> str:
    """The sentence that refuses the text; empty where it is a description."""
    try:
        description_of(parse_document(text, HERE))
    except ConfigError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "mine.yaml, line 1, column 1: expected keys with values (data: questions.csv), the file is empty."),
        ("- a", "mine.yaml, line 1, column 1: expected keys"),
        ("a: 1\na: 2", "mine.yaml, line 2, column 1: the key 'a' occurs twice."),
        ("b: {c: 1, c: 2}", "mine.yaml, line 1, column 11: the key 'c' occurs twice."),
        ("no: 1", "mine.yaml, line 1, column 1: the key no is not a text in YAML; write it in quotes: 'no'."),
        ("? [a]\n: 1", "mine.yaml, line 1, column 3: a key must be a text."),
        ("a: &x [*x]", "mine.yaml, line 1, column 4: a value cannot hold itself."),
        ("a: &x {b: 1}\nc: {<<: *x}", "mine.yaml, line 2, column 5: '<<' merges mappings"),
        ("a: [1", "mine.yaml, line 1, column 6: this is not YAML"),
        ("a: 1\n b: 2", "mine.yaml, line 2, column 3: this is not YAML"),
        ("a: !!python/object/apply:os.system [ls]", "mine.yaml, line 1, column 4: the tag"),
        ("a: !!python/name:os.system x", "mine.yaml, line 1, column 4: this is not YAML"),
        ("a: 1\n---\nb: 2", "mine.yaml, line 2, column 1: this is not YAML"),
        ("a: 9999-99-99", "mine.yaml"),
        ("a: 1\nb\0: 1", "mine.yaml, line 2, column 2: this is not YAML: the character '\\x00' is not allowed."),
    ],
)
def test_what_is_no_description(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_document(text, HERE)
    assert str(error.value).startswith(message)


def test_aliases_do_not_multiply_without_end() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    with pytest.raises(ConfigError, match="more than 20000 values"):
        parse_document("\n".join(levels), HERE)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot be read: No such file"):
        read_document(tmp_path / "none.yaml")
    (tmp_path / "big.yaml").write_text("a: " + "x" * (1 << 20))
    with pytest.raises(ConfigError, match="more than 1 MB"):
        read_document(tmp_path / "big.yaml")
    (tmp_path / "latin.yaml").write_bytes("a: ä".encode("latin-1"))
    with pytest.raises(ConfigError, match="cannot be read"):
        read_document(tmp_path / "latin.yaml")
    (tmp_path / "mark.yaml").write_bytes(b"\xef\xbb\xbfa: 1")
    assert read_document(tmp_path / "mark.yaml").values == {"a": 1}


def test_an_error_about_what_is_not_there_names_what_is_above() -> None:
    document = parse_document("a:\n  b: 1\n", HERE)
    assert str(document.fault(("a", "c", 3), "no.")) == "mine.yaml, line 2, column 3: no."
    assert str(document.fault(("a", "c"), "no.", at_key=True)) == "mine.yaml, line 1, column 1: no."
    assert str(MarkedDocument(HERE, {}, {}, {}).fault(("a",), "no.")) == "mine.yaml: no."
