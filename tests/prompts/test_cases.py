# SPDX-License-Identifier: Apache-2.0
"""Prompts whose text depends on a field of the row."""

from __future__ import annotations

from pathlib import Path

import pytest

from newskills.base.errors import ConfigError, DataError
from newskills.prompts.renderer import PromptOverrides, load_prompt

BY_LANGUAGE = """\
system: Be brief.
user: "{examples}Question: {problem}"
few_shot_examples: {template: "{problem}! ", examples_type: shots}
cases:
  field: target_language
  user:
    de: "{examples}Frage: {problem}"
    fr: "Question : {problem} ({hint})"
"""


def shots(name: str) -> list[dict[str, str]]:
    return [{"problem": name}]


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "cases.yaml"
    file.write_text(BY_LANGUAGE)
    return str(file)


def test_the_text_is_that_of_the_rows_value(path: str) -> None:
    prompt = load_prompt(path, examples=shots)

    def text(**row: str) -> object:
        return prompt.messages({"problem": "1+1?", **row})[-1].content

    assert text(target_language="de") == "shots! Frage: 1+1?"
    assert text(target_language="fr", hint="deux") == "Question : 1+1? (deux)"
    assert text(target_language="en") == "shots! Question: 1+1?"
    assert prompt.fields == ("target_language", "problem")
    for key, text_of in (("[user]", "Question: "), ("[user.de]", "Frage: "), ("[user.fr]", "Question : ")):
        assert key in prompt.template
        assert text_of in prompt.template


def test_a_missing_field_and_a_value_without_a_text_are_refused(path: str) -> None:
    prompt = load_prompt(path, examples=shots)
    with pytest.raises(DataError, match="has no field 'target_language'"):
        prompt.messages({"problem": "1+1?"})
    with pytest.raises(DataError, match="has no field 'hint'"):
        prompt.messages({"problem": "1+1?", "target_language": "fr"})
    only = load_prompt({"user": "", "cases": {"field": "kind", "user": {"a": "A {problem}", "b": "B {problem}"}}})
    assert only.messages({"kind": "b", "problem": "?"})[0].content == "B ?"
    with pytest.raises(
        DataError, match=r"has 'c' as 'kind', for which prompt .* has no text; it has texts for a, b"
    ):
        only.messages({"kind": "c", "problem": "?"})


def test_a_text_of_the_command_line_is_for_all_rows(path: str) -> None:
    prompt = load_prompt(path, PromptOverrides(user_message="{examples}All: {problem}"), examples=shots)
    assert prompt.messages({"problem": "1+1?"})[-1].content == "shots! All: 1+1?"


def test_cases_change_the_hash(path: str, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(BY_LANGUAGE.replace("Frage", "Aufgabe"))
    assert load_prompt(path, examples=shots).hash != load_prompt(str(other), examples=shots).hash


@pytest.mark.parametrize(
    ("cases", "fault"),
    [
        ({"field": "kind"}, "cases"),
        ({"field": "kind", "user": {"a": 1}}, "cases"),
        ({"field": "kind", "texts": {}}, "unknown key `cases.texts`"),
        ({"field": "kind", "user": {"a": "{problem"}}, "a single '{'"),
    ],
)
def test_faults_of_cases_are_named(cases: dict[str, object], fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        load_prompt({"user": "{problem}", "cases": cases})
