# SPDX-License-Identifier: Apache-2.0
from pathlib import Path
from typing import Any

import pytest

from newskills.base.errors import ConfigError
from newskills.prompts.renderer import load_prompt
from newskills.prompts.schema import FewShotConfig, replace_few_shots


def write(tmp_path: Path, text: str) -> str:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("usr: x", "unknown key `usr`; did you mean 'user'?"),
        (
            "user: x\nfew_shot_examples: {exampels_type: a}",
            "unknown key `few_shot_examples.exampels_type`; did you mean",
        ),
        ("system: x", "the key `user` is missing"),
        ("user: [1]", "user: expected text, got a list"),
        ("user: x\nimage_position: left", "invalid enum value 'left'"),
        ("user: x\nuser: y", "line 2: the key `user` appears twice"),
        ("user: x\nfew_shot_examples: {retrieval_field: a}", "belong together"),
        (
            "user: x\nfew_shot_examples: {retrieval_field: a, retrieval_file: b, examples_type: c}",
            "exclude each other",
        ),
        ("user: 'x", "is not valid YAML"),
        ("- user", "expected a mapping"),
        ("", "expected a mapping"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name(tmp_path: Path, text: str, said: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as error:
        load_prompt(path)
    assert said in str(error.value)
    assert str(path) in str(error.value)


def test_the_position_of_a_brace_is_that_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, "# note\nsystem: hi\nuser: |-\n\n    Solve {problem}.\n    Use {} here.\n")
    with pytest.raises(ConfigError, match=r"mine\.yaml, line 6, column 9: '\{\}' is not a field name"):
        load_prompt(path)


def test_the_position_in_other_texts_names_the_key(tmp_path: Path) -> None:
    path = write(tmp_path, "user: x\nfew_shot_examples:\n  template: 'ab {'\n")
    with pytest.raises(ConfigError, match=r"mine\.yaml, `few_shot_examples\.template`, line 1, column 4"):
        load_prompt(path)


def test_naming_a_set_takes_the_place_of_retrieval() -> None:
    retrieving = FewShotConfig(retrieval_field="a", retrieval_file="b", template="{x}")
    named = replace_few_shots(retrieving, {"examples_type": "c"}, "here")
    assert (named.examples_type, named.retrieval_field, named.template) == ("c", None, "{x}")
    assert replace_few_shots(named, {"retrieval_field": "a", "retrieval_file": "b"}, "here") == retrieving


@pytest.mark.parametrize(
    ("overrides", "said"),
    [({"num_shots": 1}, "unknown key"), ({"num_few_shots": "two"}, "num_few_shots: expected a whole number")],
)
def test_overrides_are_checked(overrides: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        replace_few_shots(FewShotConfig(), overrides, "here")
